"""Clips: samples of several images that follow each other, of one camera or several."""

import copy
import pickle
import warnings

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
from epochs import same, same_for_settings, taken  # noqa: E402

EPISODES = [7, 5, 2, 9]
FRAMES, STRIDE = 3, 2
SPAN = (FRAMES - 1) * STRIDE + 1
# The first frame of each clip: an episode of 2 frames has none.
FIRSTS = [0, 1, 2, 7, 14, 15, 16, 17, 18]
CROP = [stoker.RandomResizedCrop(16), stoker.RandomHorizontalFlip(), stoker.ColorJitter(brightness=0.4)]
WHOLE = [stoker.Resize((12, 16))]


@pytest.fixture(scope="module")
def cameras(tmp_path_factory):
    """Two folders of episodes' frames: of 40 × 30 pixels and of 32 × 32."""
    root = tmp_path_factory.mktemp("clips")
    rng = np.random.default_rng(0)
    for camera, size in (("front", (30, 40)), ("wrist", (32, 32))):
        for episode, length in enumerate(EPISODES):
            folder = root / camera / f"episode{episode}"
            folder.mkdir(parents=True)
            for frame in range(length):
                coarse = rng.integers(0, 256, (4, 4, 3), np.uint8)
                Image.fromarray(coarse).resize(size[::-1], Image.Resampling.BICUBIC).save(
                    folder / f"{frame:04d}.jpg"
                )
    return root


@pytest.fixture(scope="module")
def front(cameras):
    return stoker.image_folder(cameras / "front")


def clips_of(source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an episode is too short
        return stoker.clips(source, **{"by": "label", "frames": FRAMES, "stride": STRIDE, **options})


def make(source, recipe=CROP, **options):
    return stoker.Loader(source, recipe, **{"batch_size": 4, "shuffle": True, "seed": 7, **options})


def test_clips_are_their_frames(front):
    clips = clips_of(front)
    assert len(clips) == len(FIRSTS)
    everything = np.concatenate([images for images, _ in stoker.Loader(front, WHOLE, batch_size=8)])
    (images, labels), *_ = stoker.Loader(clips, WHOLE, batch_size=len(clips))
    assert images.shape == (9, FRAMES, 12, 16, 3) and labels.shape == (9, FRAMES)
    for first, clip, of_frames in zip(FIRSTS, images, labels, strict=True):
        np.testing.assert_array_equal(clip, everything[first : first + SPAN : STRIDE])
        np.testing.assert_array_equal(of_frames, front.labels[first : first + SPAN : STRIDE])


def test_frames_of_cameras_have_columns_of_their_own(cameras, front):
    wrist = stoker.image_folder(cameras / "wrist")
    clips = clips_of({"front": front, "wrist": wrist})
    alone = [taken(make(clips_of(camera)))[0][0] for camera in (front, wrist)]
    batch = next(iter(make(clips)))
    assert batch._fields == ("front", "wrist", "label")
    same([[batch.front, batch.wrist]], [alone])


def test_the_frames_of_a_clip_get_the_same_draw(front):
    """As frames that are loaded one by one, where each comes at the place of its clip."""
    frames = [taken(make(front.subset([first + k * STRIDE for first in FIRSTS]))) for k in range(FRAMES)]
    for batch, *of_frames in zip(make(clips_of(front)), *frames, strict=True):
        np.testing.assert_array_equal(batch[0], np.stack([images for images, _ in of_frames], axis=1))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_layouts_are_of_each_frame(front, layout):
    clips = clips_of(front)
    recipe = [*CROP, stoker.Normalize([0.5] * 3, [0.2] * 3)]
    images = next(iter(make(clips, recipe, layout=layout, dtype="float32")))[0]
    assert images.shape == (4, FRAMES, *((16, 16, 3) if layout == "NHWC" else (3, 16, 16)))


def test_all_threads_and_depths_give_the_same(front):
    clips = clips_of(front)
    same_for_settings(make, lambda: clips, taken(make(clips)))


def test_values_come_with_their_frames(cameras, front):
    paths = [front.path(i) for i in range(len(front))]
    episode = np.repeat(np.arange(4), EPISODES)
    action = np.arange(2 * len(paths), dtype=np.float32).reshape(-1, 2)
    columns = {"episode": episode, "action": action, "task": [f"task {e}" for e in episode]}
    clips = clips_of(stoker.files(paths, columns=columns), by="episode", step=2)
    batch = next(iter(stoker.Loader(clips, WHOLE, batch_size=8)))
    firsts = [0, 2, 7, 14, 16, 18]
    for row, first in enumerate(firsts):
        np.testing.assert_array_equal(batch.action[row], action[first : first + SPAN : STRIDE])
    assert batch.action.shape == (6, FRAMES, 2) and batch.episode.shape == (6, FRAMES)
    assert batch.task == [f"task {episode[first]}" for first in firsts]


def test_a_path_is_that_of_a_frame(cameras, front):
    clips = clips_of({"front": front, "wrist": stoker.image_folder(cameras / "wrist")})
    assert clips.path(3, "wrist", 2) == str(cameras / "wrist/episode1/0004.jpg")
    assert clips.path(3) == clips.path(3, "front") == str(cameras / "front/episode1/0000.jpg")
    with pytest.raises(IndexError, match="frames 0 to 2"):
        clips.path(3, "wrist", 3)
    with pytest.raises(IndexError, match="frames 0 to 0"):
        front.path(0, None, 1)


def test_a_clip_of_one_frame_has_the_dimension(front):
    clips = stoker.clips(front, frames=1)
    images, labels = next(iter(stoker.Loader(clips, WHOLE, batch_size=4)))
    assert images.shape == (4, 1, 12, 16, 3) and labels.shape == (4, 1)


def test_subsets_and_combinations(front):
    clips = clips_of(front)
    chosen = clips.subset([8, 0, 3])
    assert chosen.path(1, frame=1) == front.path(2)
    images = next(iter(stoker.Loader(chosen, WHOLE, batch_size=3)))[0]
    everything = next(iter(stoker.Loader(clips, WHOLE, batch_size=9)))[0]
    np.testing.assert_array_equal(images, everything[[8, 0, 3]])
    both = stoker.combine([chosen, clips])
    assert len(both) == 12 and both.path(4, frame=2) == front.path(5)
    np.testing.assert_array_equal(next(iter(stoker.Loader(both, WHOLE, batch_size=12)))[0][3:], everything)
    with pytest.raises(ValueError, match="3 encoded images"):
        stoker.combine([clips, clips_of(front, frames=2)])


@pytest.mark.parametrize("of", ["one", "cameras", "subset"])
def test_clips_are_pickled(cameras, front, of):
    clips = clips_of({"a": front, "b": stoker.image_folder(cameras / "wrist")} if of == "cameras" else front)
    clips = clips.subset([2, 0]) if of == "subset" else clips
    again = pickle.loads(pickle.dumps(clips))
    assert repr(again) == repr(clips) and len(again) == len(clips)
    same(taken(make(again)), taken(make(clips)))
    assert copy.deepcopy(clips) is clips


def test_a_state_continues(front):
    clips = clips_of(front)
    wanted = taken(make(clips))
    loader = make(clips)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = make(pickle.loads(pickle.dumps(clips)))
    again.load_state_dict(state)
    same(taken(again), wanted[1:])
    with pytest.raises(
        stoker.FailedPreconditionError, match="images of a sample was 3 × image and is 2 × image"
    ):
        make(clips_of(front, frames=2)).load_state_dict(state)


def test_too_short_episodes_are_a_warning(front):
    with pytest.warns(UserWarning, match="1 of 4 episodes of image_folder.* is shorter than a clip"):
        stoker.clips(front, by="label", frames=FRAMES, stride=STRIDE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.clips(front, by="label", frames=2)


def test_warnings_of_a_source_are_told_once(tmp_path, front):
    for name in ("a.jpg", "b.jpg", "c.exr"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.warns(stoker.SkippedFilesWarning, match="1 image file is skipped"):
        frames = stoker.image_folder(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clips = stoker.clips({"a": frames, "b": frames}, frames=2)
    assert clips._native.warning == frames._native.warning


def test_mistakes(front):
    with pytest.raises(TypeError, match="must be a Source"):
        stoker.clips("photos")
    with pytest.raises(TypeError, match="names of cameras"):
        stoker.clips({1: front})
    with pytest.raises(ValueError, match="frames is 0"):
        stoker.clips(front, frames=0)
    with pytest.raises(ValueError, match=r"by is 'episode', and .* has 'label'"):
        stoker.clips(front, by="episode")
    states = stoker.files(["a.jpg"] * 9, columns={"state": np.zeros((9, 2))})
    with pytest.raises(ValueError, match="by is 'state', a column of arrays"):
        stoker.clips(states, by="state")
    with pytest.raises(ValueError, match=r"2 frames, and .* has 23"):
        stoker.clips({"a": front, "b": front.subset([0, 1])})
    with pytest.raises(ValueError, match="no source"):
        stoker.clips({})
    with pytest.raises(ValueError, match="has no labels"):
        _ = stoker.clips(front).labels


def test_what_is_refused(front):
    clips = clips_of(front)
    with pytest.raises(stoker.UnimplementedError, match="3 encoded images"):
        make(clips, views=[CROP, CROP], recipe=[])
    with pytest.raises(stoker.UnimplementedError, match="3 encoded images"):
        make(clips, [*CROP, stoker.MixUp(num_classes=4)])


def test_explain_says_what_happens_to_the_columns(cameras, front):
    clips = clips_of({"front": front, "wrist": stoker.image_folder(cameras / "wrist")})
    told = make(clips).explain()
    assert "column 'front': 3 images a row" in told
    assert "column 'wrist': as the images, 3 a row" in told


def test_jax(front):
    pytest.importorskip("jax", reason="JAX is not installed here")
    loader = make(clips_of(front))
    batch = next(iter(loader.to_jax()))
    same([[np.asarray(batch[0])]], [taken(loader.epoch(0))[0][:1]])


def test_torch(front):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    import stoker.torch

    clips = clips_of(front)
    options = {"batch_size": 4, "shuffle": True, "seed": 7}
    loader = stoker.torch.DataLoader(clips, transforms=CROP, **options)
    images = next(iter(loader))[0]
    layout = {"layout": "NCHW", "dtype": "float32"}
    wanted = next(iter(make(clips, CROP, **layout)))[0]
    assert isinstance(images, torch.Tensor) and images.shape == (4, FRAMES, 3, 16, 16)
    np.testing.assert_array_equal(images.numpy(), wanted)
    with pytest.raises(stoker.UnimplementedError, match="several images"):
        loader.dataset[0]


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_tensors_have_the_same_columns(front, device):
    loader = make(clips_of(front))
    batches = [tuple(np.from_dlpack(tensor).copy() for tensor in batch) for batch in loader.to_device(device)]
    same(batches, taken(make(clips_of(front))))


@pytest.mark.parametrize("op", ["native", "fallback"])
def test_tensorflow(front, op):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed here")
    loader = make(clips_of(front), drop_remainder=True)
    dataset = loader.as_tf_dataset(op=op)
    assert dataset.element_spec[0] == tf.TensorSpec((4, FRAMES, 16, 16, 3), tf.uint8)
    assert dataset.element_spec[1] == tf.TensorSpec((4, FRAMES), tf.int64)
    same([[column.numpy() for column in next(iter(dataset))]], taken(loader.epoch(0))[:1])
