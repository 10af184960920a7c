"""Writes images of the formats that are decoded whole, by Pillow, ImageMagick and tiffcp:

python tests/fuzz/make_whole.py tests/fuzz/corpus/whole
"""

import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(sys.argv[1])
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
