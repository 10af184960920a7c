"""Where the repository and its build are."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build")).resolve()
COMMAND = pathlib.Path(os.environ.get("STOKER_COMMAND", BUILD / "stoker")).resolve()
