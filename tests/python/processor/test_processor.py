"""stoker.processor by itself: digests of transformers' arrays, arguments, threads, errors."""

import concurrent.futures
import io
import json
import struct

import numpy as np
import processor_golden
import pytest
import stoker
from stoker import _pixels

GOLDEN = json.loads(processor_golden.FILE.read_text())
QWEN = processor_golden.CONFIGS["qwen2-vl"]
CLIP = {"image_processor_type": "CLIPImageProcessor"}


def png(width, height):
    """Returns the file of a picture."""
    return _pixels.encoded(processor_golden.picture(width, height))


FILES = [png(*size) for size in processor_golden.SIZES]


@pytest.mark.parametrize("name", GOLDEN)
def test_arrays_are_those_of_transformers(name):
    """The digests are those of the arrays that transformers made."""
    family, resampler = name.split(", ")
    processor = stoker.processor(processor_golden.CONFIGS[family], resampler=resampler)
    assert [processor_golden.digest(processor(file)) for file in FILES] == GOLDEN[name]


@pytest.mark.parametrize("family", processor_golden.CONFIGS)
def test_a_list_has_the_rows_of_its_images(family):
    """On several threads, into given memory, and planned: the same as one image after the other."""
    processor = stoker.processor(processor_golden.CONFIGS[family])
    each = [processor(file) for file in FILES]
    together = processor(FILES, runtime=stoker.Runtime(threads=3))
    assert together.keys() == each[0].keys()
    pixels = together["pixel_values"]
    for name in together.keys() - {"pixel_values"}:
        assert np.array_equal(together[name], np.concatenate([one[name] for one in each]))
    if family.startswith("llava"):
        for i, one in enumerate(each):
            tiles = one["pixel_values"].shape[1]
            assert np.array_equal(pixels[i, :tiles], one["pixel_values"][0])
            assert not pixels[i, tiles:].any()
    else:
        assert np.array_equal(pixels, np.concatenate([one["pixel_values"] for one in each]))

    memory = np.full(pixels.nbytes + 8, 0xAB, np.uint8)
    again = processor(FILES, out=memory[:-8])["pixel_values"]
    assert np.array_equal(again, pixels)
    assert np.shares_memory(again, memory)
    assert (memory[-8:] == 0xAB).all()
    for (width, height), one in zip(processor_golden.SIZES, each):
        planned = processor.plan(height, width)
        assert planned.pop("pixel_values") == one.pop("pixel_values").shape
        for name, array in planned.items():
            assert np.array_equal(array, one[name]) and array.dtype == one[name].dtype


def test_types_are_rounded_from_float32():
    """float16 and bfloat16 are rounded once; uint8 becomes float32 by mean and std, to the bit."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for config in (QWEN, CLIP, processor_golden.CONFIGS["siglip2"]):
        exact = stoker.processor(config)(FILES[2])["pixel_values"]
        for dtype in (np.float16, ml_dtypes.bfloat16):
            got = stoker.processor(config, dtype=dtype)(FILES[2])["pixel_values"]
            assert np.array_equal(got, exact.astype(dtype))
        processor = stoker.processor(config, dtype="uint8")
        pixels = processor(FILES[2])["pixel_values"]
        assert pixels.dtype == np.uint8
        if config is CLIP:
            mean, std = processor.mean[:, None, None], processor.std[:, None, None]
        elif config is QWEN:
            mean, std = (np.repeat(by, 2 * 14 * 14) for by in (processor.mean, processor.std))
        else:
            mean, std = (np.tile(by, 16 * 16) for by in (processor.mean, processor.std))
            exact, pixels = exact[0, :4], pixels[0, :4]
        assert np.array_equal((pixels - mean) / std, exact)


def test_reads_files_and_folders(tmp_path):
    """A folder has the nested configuration first, as for transformers."""
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(CLIP))
    (tmp_path / "processor_config.json").write_text(json.dumps({"processor_class": "CLIPProcessor"}))
    path = tmp_path / "image.png"
    path.write_bytes(FILES[1])
    expected = stoker.processor(CLIP)(FILES[1])["pixel_values"]
    for config in (tmp_path, str(tmp_path), tmp_path / "preprocessor_config.json"):
        assert np.array_equal(stoker.processor(config)(path)["pixel_values"], expected)
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": QWEN}))
    processor = stoker.processor(tmp_path, max_pixels=50176)
    assert processor([str(path)])["image_grid_thw"].tolist() == [[1, 4, 6]]
    with pytest.raises(FileNotFoundError, match="no such file"):
        stoker.processor(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"neither processor_config\.json nor"):
        stoker.processor(tmp_path / "empty")
    for text, cause in (
        ("[", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"image_processor": ' * 50 + "{" + "}" * 51, "levels deep"),
        (" " * 2**20 + "{}", "is longer than 1048576 bytes"),
        ('{"image_processor": {"size": NaN}}', "is not JSON"),
        ('{"image_processor": {"size": 3, "size": 4}}', '"size" twice'),
        ('{"image_processor": {"image_processor_type": "ViTImageProcessor", "size": 0}}', "size is 0"),
    ):
        (tmp_path / "processor_config.json").write_text(text)
        with pytest.raises(ValueError, match=rf"processor_config\.json.*{cause}"):
            stoker.processor(tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    (tmp_path / "processor_config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"processor_config\.json.*no image_processor"):
        stoker.processor(tmp_path)


def test_errors_name_their_cause(tmp_path):
    """The key, the argument, the image or its file."""
    with pytest.raises(ValueError, match="DetrImageProcessor"):
        stoker.processor({"image_processor_type": "DetrImageProcessor"})
    with pytest.raises(ValueError, match='"sise"'):
        stoker.processor(CLIP, sise=3)
    with pytest.raises(ValueError, match="resampler"):
        stoker.processor(CLIP, resampler="opencv")
    with pytest.raises(NotImplementedError, match="nearest"):
        stoker.processor(CLIP, resample=0)
    dino = {"image_processor_type": "DINOv3ViTImageProcessor"}
    with pytest.raises(ValueError, match="uint8"):
        stoker.processor(dino, dtype="uint8")
    with pytest.raises(NotImplementedError, match="Pillow"):
        stoker.processor(dino, resampler="pillow")
    with pytest.raises(ValueError, match="uint8"):
        stoker.processor(CLIP, do_rescale=False, do_normalize=False)
    with pytest.raises(ValueError, match="rescale_factor"):
        stoker.processor(CLIP, rescale_factor=float("nan"))
    with pytest.raises(TypeError, match="size"):
        stoker.processor(CLIP, size=np.zeros(3))
    with pytest.raises(ValueError, match=r"size\.shortest_edge is 65536"):
        stoker.processor(processor_golden.CONFIGS["qwen3-vl"], max_pixels=np.int64(50176))
    with pytest.raises(TypeError, match="processor"):
        stoker.Processor()
    processor = stoker.processor(QWEN)
    with pytest.raises(ValueError, match="there are no images"):
        processor([])
    with pytest.raises(stoker.DataLossError, match=r"images\[1\]: "):
        processor([FILES[0], b"no image", FILES[1]])
    path = tmp_path / "thin.png"
    path.write_bytes(png(1, 201))
    with pytest.raises(ValueError, match=r"thin\.png.*1 × 201"):
        processor([FILES[0], path])
    with pytest.raises(ValueError, match="bytes"):
        processor(FILES[3], out=np.empty(10, np.uint8))
    with pytest.raises(ValueError, match="writable"):
        processor(FILES[3], out=np.empty((100, 100), np.float32)[:, ::2])
    with pytest.raises(ValueError, match=r"images\[1\].*one array"):
        stoker.processor(CLIP, do_center_crop=False)(FILES)
    with pytest.raises(TypeError, match="images"):
        processor(3)
    with pytest.raises(stoker.ResourceExhaustedError):
        stoker.processor(QWEN, max_image_pixels=100)(FILES[3])


@pytest.mark.parametrize("config", [CLIP, QWEN])
def test_out_is_the_memory_or_an_error(config):
    """Memory that is empty, too short, read-only or would be copied is refused, for an image and a list."""
    processor = stoker.processor(config)
    for images in (FILES[2], FILES[1:3]):
        expected = processor(images)["pixel_values"]
        for short in (np.empty(0, np.uint8), np.empty((0, 3, 224, 224), np.float32),
                      np.empty(expected.nbytes - 1, np.uint8)):  # fmt: skip
            with pytest.raises(ValueError, match="the memory for them has"):
                processor(images, out=short)
        frozen = np.empty_like(expected)
        frozen.flags.writeable = False
        for memory in (frozen, bytes(expected.nbytes)):
            with pytest.raises(ValueError, match="writable"):
                processor(images, out=memory)
        for copied in ([0] * 10, (0,), 3, np.array([None])):
            with pytest.raises(TypeError):
                processor(images, out=copied)
        buffer = bytearray(expected.nbytes)
        got = processor(images, out=buffer)["pixel_values"]
        assert np.array_equal(got, expected) and bytes(buffer) == expected.tobytes()


def test_limits_are_enforced_before_memory_is_allocated():
    """Rows of one image, and of all: no such memory is written or even reserved."""
    siglip2 = {"image_processor_type": "Siglip2ImageProcessor", "patch_size": 256}
    with pytest.raises(stoker.ResourceExhaustedError, match="4 GiB"):
        stoker.processor(siglip2, max_num_patches=1 << 20)
    with pytest.raises(ValueError, match="patch_size"):
        stoker.processor(siglip2, patch_size=1024)
    processor = stoker.processor(siglip2, max_num_patches=5000, do_resize=False)  # 3.7 GiB each
    with pytest.raises(stoker.ResourceExhaustedError, match="available"):
        processor([FILES[0]] * 5000)
    with pytest.raises(stoker.ResourceExhaustedError, match="256 TiB"):
        processor([FILES[0]] * 100_000)
    large = stoker.processor(siglip2, patch_size=200, max_num_patches=20, do_resize=False)
    file = png(400, 200)
    assert np.array_equal(large([file])["pixel_values"], large(file)["pixel_values"])


def test_rows_are_those_of_the_class():
    """A number as the size, rows of Qwen without groups and copies, and images that are not resized."""
    siglip = stoker.processor({"image_processor_type": "SiglipImageProcessor"}, size=384)
    assert siglip(png(64, 32))["pixel_values"].shape == (1, 3, 384, 768)
    qwen = stoker.processor(QWEN, merge_size=1, temporal_patch_size=1, do_resize=False)
    made = qwen([png(84, 42)])
    assert made["pixel_values"].shape == (18, 588)
    assert made["image_grid_thw"].tolist() == [[1, 3, 6]]
    for name in ("CLIP", "Bit", "Siglip", "ViT"):
        kept = stoker.processor({"image_processor_type": f"{name}ImageProcessor"}, do_resize=False,
                                do_center_crop=False, do_normalize=False)  # fmt: skip
        want = processor_golden.picture(53, 37).transpose(2, 0, 1) * np.float32(1 / 255)
        assert np.array_equal(kept(FILES[1])["pixel_values"][0], want)
    siglip2 = stoker.processor(processor_golden.CONFIGS["siglip2"], do_resize=False)
    assert siglip2(png(32, 48))["spatial_shapes"].tolist() == [[3, 2]]
    with pytest.raises(ValueError, match="do not divide"):
        siglip2(png(32, 49))
    with pytest.raises(ValueError, match="do_resize"):
        stoker.processor(processor_golden.CONFIGS["llava-next"], do_resize=False)


def test_threads_of_python_share_a_processor():
    """Calls on several threads give what one thread gives."""
    processor = stoker.processor(QWEN)
    expected = [processor(file)["pixel_values"] for file in FILES]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, want in zip(pool.map(processor, FILES), expected):
                assert np.array_equal(got["pixel_values"], want)


def test_transparent_pixels_become_white():
    """As transformers' convert_to_rgb does, where do_convert_rgb is set; otherwise alpha is dropped."""
    image = pytest.importorskip("PIL.Image")
    rgba = np.dstack([processor_golden.picture(60, 40), np.full((40, 60), 128, np.uint8)])
    rgba[:10, :, 3] = 0
    white = image.new("RGBA", (60, 40), (255, 255, 255, 255))
    for mode, pixels in (("RGBA", rgba), ("LA", np.ascontiguousarray(rgba[:, :, 2:]))):
        picture = image.fromarray(pixels, mode)
        file = io.BytesIO()
        picture.save(file, "PNG")
        shown = np.asarray(image.alpha_composite(white, picture.convert("RGBA")).convert("RGB"))
        opaque = np.repeat(pixels[:, :, :1], 3, axis=2) if mode == "LA" else pixels[:, :, :3]
        for converts, same in ((True, shown), (False, opaque)):
            processor = stoker.processor(QWEN, do_convert_rgb=converts)
            expected = processor(_pixels.encoded(np.ascontiguousarray(same)))["pixel_values"]
            assert np.array_equal(processor(file.getvalue())["pixel_values"], expected)


def test_transparent_colours_become_white():
    """As Pillow's do, of a PNG; that of a GIF is refused unless alpha is dropped."""
    image = pytest.importorskip("PIL.Image")
    pixels = processor_golden.picture(60, 40) // 64 * 64
    colours = image.fromarray(pixels)
    key = tuple(int(value) for value in pixels[3, 5])
    file, gif = io.BytesIO(), io.BytesIO()
    colours.save(file, "PNG", transparency=key)
    colours.quantize(16).save(gif, "GIF", transparency=3)
    shown = np.where((pixels == key).all(axis=2, keepdims=True), 255, pixels).astype(np.uint8)
    for converts, same in ((True, shown), (False, pixels)):
        processor = stoker.processor(QWEN, do_convert_rgb=converts)
        expected = processor(_pixels.encoded(np.ascontiguousarray(same)))["pixel_values"]
        assert np.array_equal(processor(file.getvalue())["pixel_values"], expected)
    with pytest.raises(stoker.UnimplementedError, match="transparent colour of a GIF"):
        stoker.processor(QWEN)(gif.getvalue())
    stoker.processor(QWEN, do_convert_rgb=False)(gif.getvalue())
    icon = io.BytesIO()
    colours.quantize(16).save(icon, "PNG", transparency=3)
    png = icon.getvalue()
    head = struct.pack("<HHHBBBBHHII", 0, 1, 1, 60, 40, 0, 0, 1, 32, len(png), 22)
    with pytest.raises(stoker.UnimplementedError, match="transparent colour of a PNG"):
        stoker.processor(QWEN)(head + png)  # of an ICO, whose tRNS Pillow ignores
    stoker.processor(QWEN, do_convert_rgb=False)(head + png)
    damaged = bytearray(png)
    damaged[png.index(b"tRNS") + 4] ^= 1
    with pytest.raises(stoker.UnimplementedError, match="transparent colour of a PNG"):
        stoker.processor(QWEN)(head + damaged)
    with pytest.raises(
        stoker.DataLossError, match=r"tRNS has a wrong checksum.*or set do_convert_rgb to false"
    ):
        stoker.processor(QWEN)(damaged)
    stoker.processor(QWEN, do_convert_rgb=False)(damaged)
