"""What image processors of transformers make of small images: digests for machines that do not have it.

Written by `python tests/python/support/processor_golden.py` with transformers 5.24.0, torchvision 0.29.2 and
Pillow 13.0.0, on a CPU with AVX2.
"""

import hashlib
import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_suffix(".json")
SIZES = [(1, 1), (53, 37), (200, 300), (640, 481)]  # (width, height)
CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
CONFIGS = {
    "clip": {"image_processor_type": "CLIPImageProcessor"},
    "clip-336": {
        "image_processor_type": "CLIPImageProcessorFast",
        "size": 336,
        "crop_size": {"height": 335, "width": 338},
        "resample": 2,
    },
    "siglip": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}},
    "vit": {"image_processor_type": "ViTImageProcessor"},
    "dinov2": {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}},
    "dinov3": {"image_processor_type": "DINOv3ViTImageProcessorFast"},
    "siglip2": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 256},
    "siglip2-128": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 128},
    "siglip2-576": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 576},
    "qwen2-vl": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 3136,
        "max_pixels": 1003520,
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        **CLIP,
    },
    "qwen3-vl": {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"shortest_edge": 65536, "longest_edge": 1048576},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    },
    "llava-next": {
        "image_processor_type": "LlavaNextImageProcessor",
        "size": {"shortest_edge": 336},
        "crop_size": {"height": 336, "width": 336},
    },
    "llava-onevision": {"image_processor_type": "LlavaOnevisionImageProcessor"},
    "internvl": {
        "image_processor_type": "GotOcr2ImageProcessorFast",
        "size": {"height": 448, "width": 448},
        "crop_to_patches": True,
    },
}


def picture(width, height):
    """Returns pixels, (height, width, 3), the same everywhere."""
    y, x, c = np.mgrid[:height, :width, :3]
    return ((x * 7 + y * 13 + c * 50 + x * y // 3 + (x // 9 % 2) * 90) % 256).astype(np.uint8)


def digest(arrays):
    """Returns the digest of a processor's result."""
    parts = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        parts += [f"{name} {array.dtype} {array.shape}".encode(), array.tobytes()]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def reference(family, resampler):
    """Returns transformers' processor, or None if there is none."""
    import transformers

    keys = dict(CONFIGS[family])
    name = keys.pop("image_processor_type").removesuffix("Fast") + ("Pil" if resampler == "pillow" else "")
    made = getattr(transformers, name, None)
    return None if made is None else made(**keys)


def write():
    """Writes the digests."""
    from PIL import Image

    digests = {}
    for family in CONFIGS:
        for resampler in ("torchvision", "pillow"):
            processor = reference(family, resampler)
            if processor is None or family == "dinov3":  # floats are resized: not equal to the bit
                continue
            images = [Image.fromarray(picture(*size)) for size in SIZES]
            digests[f"{family}, {resampler}"] = [digest(processor(i, return_tensors="np")) for i in images]
    FILE.write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    write()
