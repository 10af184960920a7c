"""The Profiler's trace has stoker's rows by name."""

import collections

import pytest
import tensorflow as tf


def rows(folder):
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        from tensorflow.core.profiler.protobuf import xplane_pb2
    names = collections.Counter()
    arguments = {}
    (path,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                name = metadata.display_name or metadata.name
                names[name] += 1
                for stat in event.stats:
                    arguments.setdefault(name, set()).add(plane.stat_metadata[stat.metadata_id].name)
    return names, arguments


def test_the_profile_has_spans_and_iterator_arguments(make, tmp_path):
    loader = make()
    dataset = loader.as_tf_dataset(op="native").prefetch(2)
    tf.profiler.experimental.start(str(tmp_path))
    for step, _ in enumerate(dataset):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            pass
    tf.profiler.experimental.stop()
    names, arguments = rows(tmp_path)
    for span in ("stoker.read", "stoker.decode", "stoker.wait"):
        assert names[span] > 0, span
    (iterator,) = [name for name in names if name.endswith("::Stoker")]
    assert {"parallelism", "depth", "batches"} <= arguments[iterator]


@pytest.mark.parametrize("autotune", [True, False])
def test_autotune_leaves_the_workers_alone(make, autotune):
    loader = make()
    options = tf.data.Options()
    options.autotune.enabled = autotune
    assert len(list(loader.as_tf_dataset(op="native").with_options(options).repeat(3))) == 18
