"""Remote objects in a process where TensorFlow was loaded first, which has a libcurl of its own."""

import forks
import pytest
from object_server import ObjectServer

READ = """
import sys, tensorflow, stoker
source = stoker.records(sys.argv[1], "uint8")
print(sum(int(batch.sum()) for batch in stoker.Loader(source, [], batch_size=100).epoch(0)))
"""


@pytest.mark.long
def test_libcurl_calls_its_own_functions(tmp_path):
    (tmp_path / "bytes.bin").write_bytes(bytes(range(250)))
    (tmp_path / "read.py").write_text(READ)
    with ObjectServer(tmp_path) as server:
        for _ in range(2):
            read = forks.run(tmp_path / "read.py", f"{server.url}/bytes.bin")
            assert (read.returncode, read.stdout.strip()) == (0, str(sum(range(250)))), read.stderr
