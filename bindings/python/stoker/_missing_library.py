"""Explains why the compiled part of the package cannot be loaded. Imports nothing that is compiled."""

from __future__ import annotations

import pathlib
import sysconfig


def in_words(error: ImportError, folder: pathlib.Path) -> ImportError:
    """Returns the exception to raise for an error of `from stoker import _stoker`.

    Args:
        error: the exception that was raised.
        folder: the folder of the package.
    """
    module = folder / f"_stoker{sysconfig.get_config_var('EXT_SUFFIX')}"
    others = ", ".join(sorted(path.name for path in folder.glob("_stoker*.so")))
    if module.is_file():
        words = (
            f"stoker's compiled module cannot be loaded. `ldd {module}` lists the libraries that this "
            "machine does not have: install their packages (docs/install.md), add their folder to "
            "LD_LIBRARY_PATH, or build stoker from its source on this machine (pip install . in a "
            "checkout). If a file of stoker or of stoker.libs is missing, install the package again "
            "(pip install --force-reinstall)"
        )
    elif others:
        words = (
            f"stoker in {folder} was built for another Python ({others}); this one would load "
            f"{module.name}. Install stoker for this Python"
        )
    else:
        words = (
            f"{folder} has stoker's Python files without its compiled module: is it the source? "
            "Install stoker (pip install . in a checkout), and import it from another folder"
        )
    return ImportError(f"{words}. The import failed with: {error}", name="stoker._stoker", path=error.path)
