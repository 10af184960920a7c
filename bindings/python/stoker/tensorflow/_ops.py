"""Loads and binds the ops: the dataset op if it can be built, else the fallback."""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading
import warnings
from typing import Any, Optional

import tensorflow as tf

from stoker import _stoker
from stoker.tensorflow import build

CHOICES = ("auto", "native", "fallback")
_ENVIRONMENT = "STOKER_TF_OP"

_lock = threading.Lock()
_loaded: dict[str, Any] = {}
_refused: Optional[build.PluginError] = None  # why there is no dataset op in this process


class FallbackWarning(UserWarning):
    """The dataset op cannot be built or loaded; the prebuilt ops are used instead."""


def load_ops(op: str = "auto") -> str:
    """Registers stoker's ops with TensorFlow, and returns which ones: "native" or "fallback".

    `as_tf_dataset` does it automatically. Call it in processes that receive a dataset as a graph:
    the dispatcher and the workers of tf.data service, or a program that loads a saved dataset.

    Args:
        op: as in `as_tf_dataset`. The prebuilt ops are registered in any case.

    Raises:
        PluginError: op="native", and it cannot be built.
    """
    if op not in CHOICES:
        raise ValueError(f"op must be one of {', '.join(CHOICES)}, not {op!r}")
    kind, _ = choose(op)
    with _lock:
        _fallback()
    return kind


def choose(op: str) -> tuple[str, Any]:
    """Returns ("native" or "fallback", the module with its ops)."""
    asked = op
    if op == "auto":
        asked = os.environ.get(_ENVIRONMENT) or "auto"
        if asked not in CHOICES:
            raise ValueError(f"{_ENVIRONMENT} must be one of {', '.join(CHOICES)}, not {asked!r}")
    with _lock:
        if asked == "fallback":
            return "fallback", _fallback()
        try:
            return "native", _native()
        except build.PluginError as error:
            if asked == "native":
                raise
            _say(error)
            return "fallback", _fallback()


def _say(error: build.PluginError) -> None:
    """Warns once per process, regardless of the filters for repeated warnings."""
    if "said" in _loaded:
        return
    _loaded["said"] = True
    warnings.warn(
        f"stoker's dataset op for TensorFlow {tf.__version__} cannot be used, and prebuilt ops take its "
        f"place: {error}. They give the same batches, each less than a millisecond later. But skip(n) "
        "decodes the batches that it skips, Ctrl-C waits for a batch, the Profiler does not show stoker, "
        "tf.data service needs epoch=k to share an epoch, and a checkpoint from the end of an epoch may "
        "resume in epoch 0 (docs/tensorflow.md has details). To build the op, or to see why not, run "
        f"`stoker build-tf-plugin`; {_ENVIRONMENT}=fallback chooses the prebuilt ops without this warning.",
        FallbackWarning,
        stacklevel=5,
    )


def _native() -> Any:
    global _refused
    if "native" in _loaded:
        return _loaded["native"]
    if _refused is not None:
        raise _refused
    try:
        _loaded["native"] = _load_native()
    except build.PluginError as error:
        _refused = error
        raise
    return _loaded["native"]


def _load_native() -> Any:
    path = build.plugin()
    try:
        ops = load(path)
        # The first call is short; the second may wait for code that wants the GIL.
        _loaded["next"] = (
            ctypes.PyDLL(str(path)).stoker_tf_expect,
            ctypes.CDLL(str(path)).stoker_tf_take_back,
        )
    except (tf.errors.OpError, OSError, AttributeError) as error:  # a function is missing
        raise build.PluginError(f"{path} does not load: {error}") from error
    for function in _loaded["next"]:
        function.argtypes, function.restype = [], None
    return ops


def next_functions() -> Optional[tuple[Any, Any]]:
    """Returns the plugin's stoker_tf_expect and stoker_tf_take_back; None if it is not loaded."""
    functions: Optional[tuple[Any, Any]] = _loaded.get("next")
    return functions


def _fallback() -> Any:
    if "fallback" not in _loaded:
        _loaded["fallback"] = load(pathlib.Path(__file__).with_name("_fallback_ops.so"))
    return _loaded["fallback"]


def load(path: pathlib.Path) -> Any:
    """Returns the ops of a plugin, bound to this process' libstoker."""
    ops = tf.load_op_library(str(path))
    library = ctypes.CDLL(str(path))
    bind = library.stoker_tf_bind
    bind.restype = ctypes.c_char_p
    bind.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    thread_state = ctypes.cast(ctypes.pythonapi.PyGILState_GetThisThreadState, ctypes.c_void_p)
    refused = bind(_stoker.api_address(), _stoker.interrupt_address(), thread_state)
    if refused is not None:
        raise build.PluginError(f"{path}: {refused.decode()}")
    return ops
