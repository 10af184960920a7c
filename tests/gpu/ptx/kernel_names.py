"""What kernels are called in reports: nvcc's names contain a hash of the file's path."""

from __future__ import annotations

import re

TYPES = {"2": "u8", "10": "f16", "11": "bf16", "12": "f32"}
LAYOUTS = {"0": "NHWC", "1": "NCHW"}
EXTENTS = {"0": "converts", "1": "erases", "2": "mixes"}
DEFERRED = re.compile(r"DeferredOpsKernel.*DTypeE(\d+)E.*LayoutE(\d)E.*ExtentE(\d)ELb([01])E")


def title(mangled: str) -> str:
    """As `Unpack` and `DeferredOps.f16.NHWC.mixes.groups`."""
    if deferred := DEFERRED.search(mangled):
        type, layout, extent, groups = deferred.groups()
        unit = "groups" if groups == "1" else "pixels"
        return f"DeferredOps.{TYPES[type]}.{LAYOUTS[layout]}.{EXTENTS[extent]}.{unit}"
    kernel = re.search(r"\d([A-Z][a-z]+)Kernel", mangled)
    return kernel[1] if kernel else mangled
