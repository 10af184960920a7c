"""`stoker doctor` from the package: the native command's report, and what TensorFlow is for stoker."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any, Optional


def main(arguments: list[str]) -> int:
    """Runs `stoker doctor ARGUMENTS`; returns the exit code."""
    command = [str(pathlib.Path(__file__).with_name("stoker")), "doctor", *arguments]
    as_json = "--json" in arguments
    done = subprocess.run(command, stdout=subprocess.PIPE if as_json else None, text=True, check=False)
    if done.returncode != 0 or not set(arguments) <= {"--json"}:  # an error, or help
        print(done.stdout or "", end="")
        return done.returncode
    found = _tensorflow()
    if as_json:
        print(json.dumps({**json.loads(done.stdout), "tensorflow": found}))
    elif found is None:
        print("tensorflow       not installed for this Python")
    else:
        cuda = "without CUDA" if found["cuda"] is None else f"with CUDA {found['cuda']}"
        print(f"tensorflow\n  version        {found['version']}, built {cuda}")
        print(f"  stoker's op    {found['op']}: {found['op_reason']}")
    return 0


def _tensorflow() -> Optional[dict[str, Any]]:
    """Returns the members of "tensorflow" in the report; None if it is not installed."""
    try:
        import tensorflow as tf

        from stoker.tensorflow import build
    except ImportError:
        return None
    about = tf.sysconfig.get_build_info()
    op, reason = build.state()
    cuda = str(about.get("cuda_version", "unknown")) if about["is_cuda_build"] else None
    return {"version": tf.__version__, "cuda": cuda, "op": op, "op_reason": reason}
