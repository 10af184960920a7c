"""examples/notebook: its cells run, one after another, and its pictures are stored in it."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def cells(root):
    notebook = json.loads((root / "examples" / "notebook" / "stoker.ipynb").read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


# Photographs, seconds of a measurement, and steps.
LESS = {
    '"--count", "2000"': '"--count", "200"',
    "seconds=2.0": "seconds=0.1",
    "[0.06, 0.0], 40": "[0.06, 0.0], 6",
}


@pytest.mark.long
def test_its_cells_run(cells, tmp_path):
    """With less to do."""
    pytest.importorskip("matplotlib")
    program = "\n\n".join("".join(cell["source"]) for cell in cells)
    for much, less in LESS.items():
        assert program.count(much) == 1
        program = program.replace(much, less)
    environment = {**os.environ, "MPLBACKEND": "Agg", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "photographs of 10 classes" in done.stdout and "times the bytes" in done.stdout


def test_each_cell_that_draws_has_its_picture(cells):
    for cell in cells:
        draws = any("plt.show()" in line or line.startswith("show(") for line in cell["source"])
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert len(pictures) == draws, "".join(cell["source"])
        assert all(output["output_type"] != "error" for output in cell["outputs"])
