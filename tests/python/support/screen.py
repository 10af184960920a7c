"""A screen: shows the bytes that a terminal was sent. Supports only what our programs send."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\x1b\[(\d*)([AJK])|\x1b([78D])|([\r\n])|([^\x1b\r\n]+)")


class Screen:
    """Lines have no maximal length; the screen scrolls at the end of `height`."""

    def __init__(self, height: int) -> None:
        self.lines = [""] * height
        self.scrolled: list[str] = []
        self._row = self._column = 0
        self._saved = (0, 0)

    def shown(self) -> list[str]:
        """Returns all lines, from the very first one, without blanks at the end."""
        lines = [line.rstrip() for line in self.scrolled + self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            assert token, f"a sequence that is not known here: {text[at : at + 10]!r}"
            at = token.end()
            count, command, escape, control, plain = token.groups()
            if plain:
                self._put(plain)
            elif control == "\r":
                self._column = 0
            elif control == "\n" or escape == "D":
                self._down()
            elif escape == "7":
                self._saved = (self._row, self._column)
            elif escape == "8":
                self._row, self._column = self._saved
            elif command == "A":
                self._row = max(0, self._row - int(count or 1))
            else:
                self._wipe(below=command == "J")

    def _put(self, text: str) -> None:
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)

    def _down(self) -> None:
        if self._row + 1 < len(self.lines):
            self._row += 1
        else:
            self.scrolled.append(self.lines.pop(0))
            self.lines.append("")

    def _wipe(self, below: bool) -> None:
        self.lines[self._row] = self.lines[self._row][: self._column]
        if below:
            self.lines[self._row + 1 :] = [""] * (len(self.lines) - self._row - 1)
