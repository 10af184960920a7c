"""Transforms that move pixels and draw nothing at random, for comparisons with torchvision."""

# The name, arguments and options, which torchvision and stoker both take.
MOVES = [
    ("CenterCrop", ((60, 70),), {}),
    ("RandomHorizontalFlip", (1,), {}),
    ("RandomVerticalFlip", (1,), {}),
    ("Pad", ([3, 7, 11, 2],), {}),
    ("RandomRotation", ((17, 17),), {}),
    ("RandomRotation", ((-50, -50),), {"center": (20, 11)}),
    ("RandomAffine", ((30, 30),), {"scale": (0.8, 0.8), "shear": (10, 10, 5, 5)}),
    ("RandomAffine", ((0, 0),), {"scale": (1.3, 1.3), "center": (60, 3)}),
]
