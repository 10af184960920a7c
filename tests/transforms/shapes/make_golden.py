"""Writes golden_polygons.h: polygons, and their masks as pycocotools makes them.

python make_golden.py > golden_polygons.h
"""

import random

import pycocotools.mask


def polygon(rng, width, height):
    kind = rng.randrange(6)
    count = rng.choice([3, 3, 4, 5, 8, 12])
    if kind == 0:  # with two digits, as annotations have
        return [round(rng.uniform(0, side), 2) for _ in range(count) for side in (width, height)]
    if kind == 1:  # on pixels' edges and centers
        return [rng.randrange(2 * side + 1) / 2 for _ in range(count) for side in (width, height)]
    if kind == 2:  # in tenths, where rounding to fifths is even
        return [rng.randrange(10 * side + 1) / 10 for _ in range(count) for side in (width, height)]
    if kind == 3:  # far outside
        return [rng.randrange(-3 * side, 4 * side) / 4 for _ in range(count) for side in (width, height)]
    if kind == 4:  # tiny
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        return [round(at + rng.uniform(0, 1.5), 3) for _ in range(count) for at in (x, y)]
    corners = [rng.uniform(-0.2 * side, 1.2 * side) for _ in range(count) for side in (width, height)]
    return corners + corners[:2]  # closed twice


def runs(polygon, width, height):
    mask = pycocotools.mask.decode(pycocotools.mask.frPyObjects([polygon], height, width))[:, :, 0]
    lengths, inside = [0], 0
    for value in mask.flatten(order="F").tolist():
        if value != inside:
            lengths.append(0)
            inside = value
        lengths[-1] += 1
    return lengths


def main():
    rng = random.Random(7)
    print("// Made by make_golden.py with pycocotools", end="")
    print(" 2.0.11: for each polygon a line with the height and width")
    print("// of an image, the number of coordinates, x and y of each corner, the number of runs, and runs.")
    print("#pragma once\n\nnamespace stoker::testing {\n")
    print('inline constexpr char kGoldenPolygons[] = R"(', end="")
    for _ in range(120):
        width, height = rng.randrange(1, 26), rng.randrange(1, 26)
        corners = polygon(rng, width, height)
        lengths = runs(corners, width, height)
        numbers = [height, width, len(corners), *corners, len(lengths), *lengths]
        print(*numbers)
    print(')";\n\n}  // namespace stoker::testing')


if __name__ == "__main__":
    main()
