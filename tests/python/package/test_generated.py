"""The output of tools/generate.py matches the library."""

import inspect
import re
import subprocess
import sys

import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

TRANSFORMS = [
    value
    for value in vars(stoker).values()
    if inspect.isclass(value) and issubclass(value, stoker.Transform) and value is not stoker.Transform
]


def test_generated_files_are_up_to_date(root):
    done = subprocess.run(
        [sys.executable, root / "tools/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", TRANSFORMS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_documented(kind):
    for name in inspect.signature(kind).parameters:
        assert re.search(rf"^ +{name}: ", inspect.getdoc(kind), re.M), name


def test_every_option_of_a_loader_is_documented():
    for name in list(inspect.signature(stoker.Loader).parameters):
        assert re.search(rf"^ +{name}: ", inspect.getdoc(stoker.Loader), re.M), name


@pytest.mark.parametrize("kind", TRANSFORMS, ids=lambda kind: kind.__name__)
def test_every_transform_is_on_the_pages_about_them(root, kind):
    """On that of transforms, in the reference, in the changelog, and in the comparison with the library whose
    names it has.
    """
    of_keras = ("RandomZoom", "RandomTranslation", "RandomShear")
    compared = "from-tf-data" if kind.__name__ in of_keras else "from-torchvision"
    pages = {
        page: (root / page).read_text()
        for page in (
            "docs/transforms.md",
            "docs/reference/transforms.md",
            "CHANGELOG.md",
            f"docs/{compared}.md",
        )
    }
    missing = [page for page, text in pages.items() if not re.search(rf"\b{kind.__name__}\b", text)]
    assert missing == []
