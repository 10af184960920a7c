"""A pseudo-terminal, for tests of what a command writes to a terminal."""

import pty

import pytest


def open_pseudo_terminal():
    """Returns the file descriptors of both ends. Skips the test where the system has none, as in a container
    without /dev/pts."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")
