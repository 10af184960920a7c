"""Compares stoker.processor with the image processors of transformers, where these are installed."""

import io

import numpy as np
import pytest
import stoker

transformers = pytest.importorskip("transformers", minversion="5.24")  # other versions may differ
pytest.importorskip("torchvision")
from PIL import Image, ImageOps  # noqa: E402
from processor_golden import CONFIGS, reference  # noqa: E402
from processor_images import files, transparent_files  # noqa: E402

COUNT = 60  # images for each processor; it also held for 200


def opened(data, converts):
    """Returns the image as transformers' load_image turns it; with its alpha, if that becomes white."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return image if converts else image.convert("RGB")


@pytest.fixture(scope="module")
def images():
    """Files of all sizes and kinds."""
    return list(files(COUNT))


@pytest.mark.parametrize("resampler", ["torchvision", "pillow"])
@pytest.mark.parametrize("family", CONFIGS)
def test_arrays_equal(family, resampler, images):
    """Each array of each image is that of transformers: to the bit, or where floats are resized nearly."""
    config = CONFIGS[family]
    theirs = reference(family, resampler)
    if theirs is None:
        pytest.skip(f"transformers has no {family} of {resampler}")
    ours = stoker.processor(config, resampler=resampler)
    compare(family, ours, theirs, images)


@pytest.mark.parametrize("resampler", ["torchvision", "pillow"])
@pytest.mark.parametrize("family", CONFIGS)
def test_transparent_images_equal(family, resampler):
    """PNGs with tRNS and WebPs with alpha are put onto white where transformers does that."""
    theirs = reference(family, resampler)
    if theirs is None:
        pytest.skip(f"transformers has no {family} of {resampler}")
    ours = stoker.processor(CONFIGS[family], resampler=resampler)
    compare(family, ours, theirs, transparent_files())


def compare(family, ours, theirs, images):
    """Checks that both make the same arrays of each image."""
    converts = bool(getattr(theirs, "do_convert_rgb", None))
    for name, data in images:
        image = opened(data, converts)
        try:
            expected = theirs(image, return_tensors="np")
        except ValueError as error:
            assert "aspect ratio" in str(error), name
            with pytest.raises(ValueError, match="aspect ratio"):
                ours(data)
            continue
        got = ours(data)
        assert sorted(got) == sorted(expected), name
        for key, array in got.items():
            other = np.asarray(expected[key])
            assert array.dtype == other.dtype, (name, key, array.dtype, other.dtype)
            assert array.shape == other.shape, (name, key, array.shape, other.shape)
            if family == "dinov3" and key == "pixel_values":
                np.testing.assert_allclose(array, other, rtol=0, atol=1e-4, err_msg=name)
            else:
                assert np.array_equal(array, other), (name, key, np.abs(array - other).max())
