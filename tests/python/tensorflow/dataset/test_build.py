"""The plugin's cache: built once, accepted when proven, refused with a message, never trusted blindly."""

import fcntl
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import forks
import pytest
import tensorflow as tf
from stoker import _doctor as doctor
from stoker.tensorflow import FallbackWarning, PluginError, _ops, build

pytestmark = pytest.mark.long  # most tests start processes that import TensorFlow

FAILING = """#!/bin/sh
if [ $1 = --version ]; then echo failing 1.0; exit; fi
echo 'error: no such header' >&2
exit 1
"""


# "Compiles" by copying a plugin that is good, and records each call.
COPYING = """#!/bin/sh
if [ $1 = --version ]; then echo copying 1.0; exit; fi
echo >> {tries}
sleep {seconds}
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then cp {good} "$2"; fi; shift; done
"""


@pytest.fixture(scope="module")
def good():
    """A plugin that was built and proven."""
    return build.plugin()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def filled(good, cache):
    """Returns a cache with that plugin."""
    place = cache / "stoker" / good.parent.name
    shutil.copytree(good.parent, place)
    return place / good.name


def compiler(tmp_path, monkeypatch, text):
    path = tmp_path / "compiler"
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))


@pytest.fixture
def none_loaded(monkeypatch):
    """Resets the state to that of a process that has not used TensorFlow yet."""
    monkeypatch.setattr(_ops, "_loaded", {k: v for k, v in _ops._loaded.items() if k == "fallback"})
    monkeypatch.setattr(_ops, "_refused", None)


def test_the_built_plugin_is_reused_and_readable_by_others(filled):
    assert build.plugin() == filled
    assert filled.stat().st_mode & 0o777 == 0o755


def test_nothing_is_built_where_no_compiler_is(cache, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(PluginError, match=r"CXX=/nowhere/g\+\+ does not run"):
        build.plugin()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PluginError, match=r"no C\+\+ compiler"):
        build.plugin()


def test_what_was_built_before_serves_without_a_compiler(filled, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert build.plugin() == filled


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:1000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.with_suffix(".json").unlink(),
        lambda path: path.with_suffix(".json").write_text("{"),
        lambda path: path.with_suffix(".json").write_text('{"tensorflow": "1.15.0"}'),
    ],
)
def test_a_damaged_entry_is_not_used(filled, monkeypatch, damage):
    damage(filled)
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(PluginError):
        build.plugin()


def test_what_cannot_be_compiled(cache, tmp_path, monkeypatch):
    compiler(tmp_path, monkeypatch, FAILING)
    with pytest.raises(PluginError, match="no such header"):
        build.plugin()
    assert not list(cache.rglob("*.so"))


def test_what_failed_is_not_tried_again_until_forced(cache, tmp_path, monkeypatch):
    compiler(tmp_path, monkeypatch, FAILING.replace("echo 'error", f"echo >> {tmp_path}/tries\necho 'error"))
    for _ in range(2):
        with pytest.raises(PluginError, match="no such header"):
            build.plugin()
    assert (tmp_path / "tries").read_text() == "\n"
    with pytest.raises(PluginError, match=r"[.]json; `--force` tries again"):
        build.plugin()
    with pytest.raises(PluginError, match="no such header"):
        build.plugin(force=True)
    assert (tmp_path / "tries").read_text() == "\n\n"


def test_what_fails_its_proof_is_not_kept_and_tried_again(cache, tmp_path, monkeypatch):
    """A compiler whose output is no library."""
    (tmp_path / "rubbish").write_text("rubbish")
    tries = tmp_path / "tries"
    compiler(tmp_path, monkeypatch, COPYING.format(tries=tries, seconds=0, good=tmp_path / "rubbish"))
    for _ in range(2):
        with pytest.raises(PluginError, match="failed when tried"):
            build.plugin()
    assert tries.read_text() == "\n\n"
    assert not list(cache.rglob("*.so"))


@pytest.mark.parametrize(
    "said", ["g++: fatal error: Killed signal terminated program cc1plus", "error: No space left on device"]
)
def test_what_the_machine_failed_at_is_tried_again(cache, tmp_path, monkeypatch, said):
    tries = f"echo >> {tmp_path}/tries\necho '{said}' >&2\nexit 1\n"
    compiler(tmp_path, monkeypatch, FAILING.partition("echo 'error")[0] + tries)
    for _ in range(2):
        with pytest.raises(PluginError, match=said.rpartition(": ")[2].replace("+", ".")):
            build.plugin()
    assert (tmp_path / "tries").read_text() == "\n\n"


def test_the_proof_takes_nothing_from_the_current_folder(good, cache, tmp_path, monkeypatch):
    """Uses neither modules with the names of the proof's, nor a sitecustomize from a PYTHONPATH of `.`."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("base64", "tempfile", "numpy", "tensorflow", "stoker", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", ".")
    compiler(tmp_path, monkeypatch, COPYING.format(tries=tmp_path / "tries", seconds=0, good=good))
    assert build.plugin().exists()
    assert not (tmp_path / "ran").exists()


def test_processes_that_start_together_build_once(good, cache, tmp_path, monkeypatch):
    compiler(tmp_path, monkeypatch, COPYING.format(tries=tmp_path / "tries", seconds=5, good=good))
    script = tmp_path / "build.py"
    script.write_text("from stoker.tensorflow import build; print(build.plugin())")
    with ThreadPoolExecutor(3) as threads:
        runs = list(threads.map(lambda _: forks.run(script, timeout=300), range(3)))
    assert len({run.stdout for run in runs}) == 1
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert (tmp_path / "tries").read_text() == "\n"


def test_a_process_that_waits_for_another_one_to_build_says_so(filled, capsys):
    away = filled.rename(filled.with_suffix(".away"))
    with ThreadPoolExecutor(1) as threads, (filled.parent / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting, said, end = threads.submit(build.plugin), "", time.monotonic() + 60
        try:
            while not said and time.monotonic() < end:
                time.sleep(0.01)
                said = capsys.readouterr().err
        finally:
            away.rename(filled)
            fcntl.flock(other, fcntl.LOCK_UN)
        assert said == f"stoker: waiting for another process that builds the dataset op in {filled.parent}\n"
        assert waiting.result(60) == filled
    assert capsys.readouterr().err == ""


def test_the_cache_is_the_users_alone_and_a_build_says_where_it_is(
    good, cache, tmp_path, monkeypatch, capsys
):
    compiler(tmp_path, monkeypatch, COPYING.format(tries=tmp_path / "tries", seconds=0, good=good))
    made = build.plugin()
    begun, done = capsys.readouterr().err.splitlines()
    assert begun.startswith(f"stoker: building the dataset op for TensorFlow {tf.__version__} with copying")
    assert done.startswith(f"stoker: the dataset op is in {made}: compiled in ")
    assert build.plugin() == made and capsys.readouterr().err == ""
    assert [made.parents[i].stat().st_mode & 0o777 for i in range(2)] == [0o700, 0o700]
    assert made.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("parents", [0, 1])
def test_a_folder_that_others_can_write_is_not_trusted(filled, parents, mode):
    folder = filled.parents[parents]
    folder.chmod(mode)
    with pytest.raises(PluginError, match=f"{folder} can be written by other users"):
        build.plugin()


def test_a_cache_below_a_folder_that_anyone_can_write_is_not_trusted(filled, cache, tmp_path, monkeypatch):
    """Other users could put another plugin in its place; in a sticky folder, like /tmp, they cannot."""
    monkeypatch.setenv("CXX", "/nowhere/g++")
    cache.chmod(0o777)
    with pytest.raises(PluginError, match=f"any user can replace files in {cache}"):
        build.plugin()
    link = tmp_path / "link"
    link.symlink_to(cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(link))
    with pytest.raises(PluginError, match=f"any user can replace files in {cache}"):
        build.plugin()
    cache.chmod(0o1777)
    for missing in ("", "/nowhere/g++"):
        monkeypatch.setenv("CXX", missing)
        assert build.plugin().parent == filled.parent


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("suffix", [".so", ".json"])
def test_a_file_that_others_can_write_is_not_loaded(filled, monkeypatch, mode, suffix):
    filled.with_suffix(suffix).chmod(mode)
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(PluginError, match="no plugin that was built before"):
        build.plugin()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_loaded(filled, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    os.chown(filled, 12345, 12345)
    with pytest.raises(PluginError, match="no plugin that was built before"):
        build.plugin()
    os.chown(filled, 0, 0)
    os.chown(filled.parent, 12345, 12345)
    with pytest.raises(PluginError, match="belongs to user 12345, not to 0"):
        build.plugin()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # and root's is
    assert build.plugin() == filled


def test_a_cache_is_never_relative(monkeypatch, tmp_path):
    """A relative XDG_CACHE_HOME does not count; without any home there is an error that says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert build._place().parents[1] == tmp_path / "home" / ".cache"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no HOME, and no entry for the user
    with pytest.raises(PluginError, match="no home folder"):
        build.plugin()
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(PluginError, match="XDG_CACHE_HOME"):
        build.plugin()


def test_the_fallback_is_chosen_and_said_once(cache, tmp_path, monkeypatch, none_loaded, make, recwarn):
    compiler(tmp_path, monkeypatch, FAILING)
    loader = make()
    assert len(list(loader.as_tf_dataset())) == 6
    loader.as_tf_dataset()
    said = [w for w in recwarn if issubclass(w.category, FallbackWarning)]
    assert len(said) == 1
    assert "no such header" in str(said[0].message)
    assert "build-tf-plugin" in str(said[0].message)
    assert "skip(n) decodes the batches that it skips" in str(said[0].message)  # what it costs
    with pytest.raises(PluginError, match="no such header"):
        loader.as_tf_dataset(op="native")


def test_the_environment_decides_for_auto(cache, monkeypatch, none_loaded, make, recwarn):
    monkeypatch.setenv("STOKER_TF_OP", "fallback")
    assert len(list(make().as_tf_dataset())) == 6
    assert not [w for w in recwarn if issubclass(w.category, FallbackWarning)]
    monkeypatch.setenv("STOKER_TF_OP", "fast")
    with pytest.raises(ValueError, match="STOKER_TF_OP"):
        make().as_tf_dataset()


def test_the_command(filled):
    done = forks.run("-m", "stoker", "build-tf-plugin")
    assert done.returncode == 0 and str(filled) in done.stdout and tf.__version__ in done.stdout


def test_the_command_says_what_is_wrong(cache):
    process = forks.run("-m", "stoker", "build-tf-plugin", env={**os.environ, "CXX": "/nowhere/g++"})
    assert process.returncode == 1
    assert "CXX=/nowhere/g++ does not run" in process.stderr


def test_doctor_names_tensorflow_and_the_op(filled, cache, tmp_path, monkeypatch, capfd):
    def told():
        assert doctor.main(["--json"]) == 0
        return json.loads(capfd.readouterr().out)["tensorflow"]

    cuda = tf.sysconfig.get_build_info().get("cuda_version") if tf.test.is_built_with_cuda() else None
    known = {"version": tf.__version__, "cuda": cuda}
    assert told() == {**known, "op": "built", "op_reason": str(filled)}
    assert doctor.main([]) == 0
    assert capfd.readouterr().out.endswith(f"\n  stoker's op    built: {filled}\n")
    shutil.rmtree(cache)
    assert told()["op"] == "missing" and not cache.exists()  # nothing is built
    compiler(tmp_path, monkeypatch, "#error no\n")
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert told() == {**known, "op": "prebuilt", "op_reason": told()["op_reason"]}
    assert "CXX=no-such-compiler does not run" in told()["op_reason"]


def test_importing_touches_no_device(tmp_path):
    (tmp_path / "script.py").write_text(
        "import stoker.tensorflow, tensorflow as tf\n"
        "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)\n"
        "assert len(tf.config.list_logical_devices('CPU')) == 3\n"
    )
    done = forks.run(tmp_path / "script.py")
    assert done.returncode == 0, done.stderr
