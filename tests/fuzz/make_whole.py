"""Writes images of the formats that are decoded whole, by Pillow, ImageMagick, tiffcp and
heif-enc:

python tests/fuzz/make_whole.py tests/fuzz/corpus/whole tests/transforms/whole/files
"""

import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image

FOLDER, LARGE = (pathlib.Path(argument) for argument in sys.argv[1:3])
FOLDER.mkdir(parents=True, exist_ok=True)
SIZE = (23, 17)
Y, X, C = np.mgrid[0 : SIZE[1], 0 : SIZE[0], 0:4]
PIXELS = ((X * (C + 3) + Y * (9 - C) + (X * Y * 7 % 31)) % 256).astype(np.uint8)
RGB = Image.fromarray(PIXELS[:, :, :3])
IMAGES = {
    "1": RGB.convert("1"),
    "L": RGB.convert("L"),
    "LA": RGB.convert("LA"),
    "P": RGB.quantize(37),
    "RGB": RGB,
    "RGBA": Image.fromarray(PIXELS),
    "CMYK": RGB.convert("CMYK"),
    "I16": Image.fromarray(PIXELS[:, :, 0].astype(np.uint16) * 257),
}


def save(name, mode, **options):
    IMAGES[mode].save(FOLDER / name, **options)


def convert(name, *options, mode="RGB"):
    IMAGES[mode].save("/tmp/made_whole.png")
    subprocess.run(["convert", "/tmp/made_whole.png", *options, str(FOLDER / name)], check=True)


for mode in ("1", "L", "P", "RGB", "RGBA"):
    save(f"{mode}.bmp", mode)
for mode in ("1", "P", "RGB", "RGBA"):
    save(f"{mode}.ico", mode, sizes=[SIZE, (9, 6)], bitmap_format="bmp")
save("png.ico", "RGBA", sizes=[SIZE])
for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I16"):
    save(f"{mode}.tif", mode)
for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "group4"):
    save(f"{compression}.tif", "1" if compression == "group4" else "RGB", compression=compression)
for mode in ("1", "L", "RGB"):
    save(f"{mode}.pnm", mode)
save("I16.pgm", "I16", format="PPM")
convert("text.pbm", "-monochrome", "-compress", "none")
convert("text.ppm", "-compress", "none")
convert("deep.ppm", "-depth", "16")
convert("runs.bmp", "-colors", "40", "-type", "palette", "-compress", "RLE")
convert("os2.bmp", "-colors", "40", "-type", "palette", "-define", "bmp:format=bmp2")
convert("tiles.tif", "-define", "tiff:tile-geometry=16x16", "-compress", "lzw")
convert("planes.tif", "-interlace", "plane")
convert("deep.tif", "-depth", "16", "-compress", "zip")
subprocess.run(["tiffcp", "-c", "jpeg", FOLDER / "RGB.tif", FOLDER / "ycbcr.tif"], check=True)
convert("turned.tif", "-orient", "right-top")
save("P.gif", "P", transparency=3)
save("L.gif", "L")
save("frames.gif", "RGB", save_all=True, append_images=[IMAGES["RGB"].rotate(90)], loop=0)
convert("interlaced.gif", "-interlace", "GIF")
convert("part.gif", "-repage", "40x30+5+7")
for mode in ("L", "RGB", "RGBA"):
    save(f"{mode}.jp2", mode)
    save(f"{mode}.j2k", mode, irreversible=True, quality_layers=[4])
    save(f"{mode}.avif", mode)
    save("/tmp/made_whole.png", mode)
    subprocess.run(["heif-enc", "/tmp/made_whole.png", "-o", FOLDER / f"{mode}.heic"], check=True)
save("tiles.jp2", "RGB", tile_size=(8, 8))
save("I16.jp2", "I16")
save("frames.avif", "RGB", save_all=True, append_images=[IMAGES["RGB"].rotate(90)])
save("/tmp/made_whole.png", "RGB")
subprocess.run(["avifenc", "-d", "10", "-y", "422", "/tmp/made_whole.png", FOLDER / "deep.avif"], check=True)
subprocess.run(["avifenc", "-d", "12", "-y", "444", "/tmp/made_whole.png", FOLDER / "full.avif"], check=True)


# Large ones of few bytes, for tests of memory.
def size_in_header(data, side):
    """The header says side x side pixels."""
    data = bytearray(data)
    for at in [at for at in range(len(data)) if data[at : at + 4] == b"ispe"]:
        data[at + 8 : at + 16] = side.to_bytes(4, "big") * 2
    return data


Image.new("RGBA", (2000, 1500), (90, 120, 200, 99)).save("/tmp/made_whole.png")
LARGE.mkdir(parents=True, exist_ok=True)
Image.open("/tmp/made_whole.png").save(LARGE / "large.jp2")
Image.open("/tmp/made_whole.png").save(LARGE / "tiles.jp2", tile_size=(256, 256), precinct_size=(64, 64))
subprocess.run(["avifenc", "-d", "12", "-y", "444", "/tmp/made_whole.png", LARGE / "large.avif"], check=True)
subprocess.run(
    ["avifenc", "-d", "12", "-y", "444", "--grid", "4x3", "/tmp/made_whole.png", LARGE / "tiles.avif"],
    check=True,
)
heif_enc = ["heif-enc", "/tmp/made_whole.png", "-p", "chroma=444", "-b", "10", "-o", LARGE / "large.heic"]
subprocess.run(heif_enc, check=True)

Image.new("RGB", (4000, 4000), (90, 120, 200)).save("/tmp/made_whole.png")
subprocess.run(["avifenc", "-s", "10", "/tmp/made_whole.png", "/tmp/made_whole.avif"], check=True)
subprocess.run(["heif-enc", "/tmp/made_whole.png", "-o", "/tmp/made_whole.heic"], check=True)
for kind in ("avif", "heic"):
    data = pathlib.Path(f"/tmp/made_whole.{kind}").read_bytes()
    (LARGE / f"larger_stream.{kind}").write_bytes(size_in_header(data, 16))
