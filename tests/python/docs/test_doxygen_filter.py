"""What tools/doxygen_filter.py makes of our comments, so that doxygen reads them."""

import pytest


@pytest.fixture
def filtered(program_of_tools):
    program = program_of_tools("doxygen_filter")
    return lambda text: "\n".join(program.filtered(text.split("\n")))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("// What it promises.\n#pragma once", "/// What it promises.\n#pragma once"),
        ("int a = 0;  // of rows\nint b;", "int a = 0;  ///< of rows\nint b;"),
        (
            "  kPad,  // the order starts\n         // again\n  // Before it.\n  kB,",
            "  kPad,  ///< the order starts\n         ///< again\n  /// Before it.\n  kB,",
        ),
        (
            "// As in:\n//\n//   Loader::Open(a).value();",
            "/// As in:\n///\n///        Loader::Open(a).value();",
        ),
        ("// a Result<int> of #1, `x<y>`", r"/// a Result\<int\> of \#1, `x<y>`"),
        ("}  // namespace stoker", "}  // namespace stoker"),
        ("  Result(Error e) {}  // NOLINT: implicit", "  Result(Error e) {}  // NOLINT: implicit"),
        ("// ---- Settings", ""),
        ('const char* url = "http://a";', 'const char* url = "http://a";'),
    ],
)
def test_comments(filtered, header, expected):
    assert filtered(header) == "/// @file\n" + expected
