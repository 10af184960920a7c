"""Exceptions of a user's function whose messages are hard to show."""


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


# Each with a pattern for the beginning of stoker's message.
ODD = [
    (ValueError("half of \udcff"), r"ValueError: half of \\udcff \("),
    (Mute(), r"Mute: its message cannot be shown \("),
    (SystemExit(3), r"SystemExit: 3 \("),
]
