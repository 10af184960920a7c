"""Batches on a real GPU; skipped if there is none.

bench/gpu/measure.py runs each test in a process of its own (bench/gpu/steps.py lists them by framework): once
a kernel has failed, all further CUDA calls of its process do. Therefore no test needs two frameworks, and
none what another test has left.
"""

import gc
import itertools
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

stoker = pytest.importorskip("stoker", reason="the package is not installed here")

SIDE = 32  # side of images that are the number of their sample in every byte


def numbered(samples):
    """Image i is i % 251 everywhere, and its label is i."""
    values = (np.arange(samples) % 251).astype(np.uint8)
    images = np.broadcast_to(values[:, None, None, None], (samples, SIDE, SIDE, 3))
    return stoker.arrays(np.ascontiguousarray(images), np.arange(samples, dtype=np.int64))


@pytest.fixture(scope="module")
def gpu():
    try:
        loader = stoker.Loader(numbered(8), batch_size=4).to_device("cuda:0")
        next(iter(loader))
    except stoker.FailedPreconditionError as error:
        pytest.skip(f"no GPU: {error.cause}")
    return "cuda:0"


@pytest.fixture(scope="module")
def torch(gpu):
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch sees no GPU")
    return module


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_values_are_those_of_the_cpu(gpu, torch, photos, dtype, layout):
    normalize = [] if dtype == "uint8" else [stoker.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))]
    recipe = [
        stoker.RandomResizedCrop(64),
        stoker.RandomHorizontalFlip(),
        *normalize,
        stoker.RandomErasing(value=0 if dtype == "uint8" else "random"),
        stoker.MixUp(num_classes=1000),
    ]

    def loader():
        return stoker.Loader(
            stoker.image_folder(photos), recipe, batch_size=48, dtype=dtype, layout=layout, seed=3
        )

    on_cpu = loader().epoch(0)
    on_gpu = loader().to_device(gpu).epoch(0)
    for (images, labels), (expected, soft) in itertools.zip_longest(
        on_gpu, loader().to_device("cpu").epoch(0)
    ):
        view = {"uint8": torch.uint8, "float32": torch.int32}.get(dtype, torch.int16)
        there = torch.from_dlpack(images).cpu().view(view)
        assert torch.equal(there, torch.from_dlpack(expected).view(view))
        assert torch.equal(torch.from_dlpack(labels).cpu(), torch.from_dlpack(soft))
    assert len(on_cpu) == len(on_gpu)


def test_torch_sees_the_same_memory(gpu, torch):
    images, _ = next(iter(stoker.Loader(numbered(64), batch_size=16).to_device(gpu)))
    assert images.__dlpack_device__() == (2, 0)
    one, other = (torch.from_dlpack(images) for _ in range(2))
    assert one.data_ptr() == other.data_ptr(), "no copy"


def test_cupy_sees_the_same_memory(gpu):
    cupy = pytest.importorskip("cupy")
    images, labels = next(iter(stoker.Loader(numbered(64), batch_size=16).to_device(gpu)))
    one, other = (cupy.from_dlpack(images) for _ in range(2))
    assert one.data.ptr == other.data.ptr, "no copy"
    assert cupy.asnumpy(cupy.from_dlpack(labels)).tolist() == list(range(16))
    assert cupy.asnumpy(one)[:, 0, 0, 0].tolist() == list(range(16))


@pytest.fixture(scope="module")
def jax(gpu):
    module = pytest.importorskip("jax")
    if module.default_backend() != "gpu":
        pytest.skip("this JAX sees no GPU")
    return module


def test_jax_sees_the_same_memory(gpu, jax):
    images, labels = next(iter(stoker.Loader(numbered(64), batch_size=16).to_device(gpu)))
    one, other = (jax.dlpack.from_dlpack(images) for _ in range(2))
    assert one.unsafe_buffer_pointer() == other.unsafe_buffer_pointer(), "no copy"
    assert np.asarray(jax.dlpack.from_dlpack(labels)).tolist() == list(range(16))


def test_other_streams_see_whole_batches(gpu, torch):
    """Uses batches, each on one of three streams that are late by a random time, and releases them at once:
    faults are counted on the device, and nobody waits in between. 10,000 batches, or fewer where other tests
    keep the GPU busy.
    """
    until = time.monotonic() + 20
    streams = [torch.cuda.Stream() for _ in range(3)]
    wrong = [torch.zeros((), dtype=torch.int64, device=gpu) for _ in streams]
    random = np.random.default_rng(0)
    batches = 0
    loader = stoker.Loader(numbered(4096), batch_size=16, shuffle=True).to_device(gpu)
    while batches < 10_000 and (batches < 500 or time.monotonic() < until):
        for images, labels in loader:
            with torch.cuda.stream(streams[batches % 3]):
                if random.random() < 0.2:
                    torch.cuda._sleep(int(random.integers(1_000, 200_000)))
                pixels, numbers = torch.from_dlpack(images), torch.from_dlpack(labels)
                wrong[batches % 3] += (pixels != (numbers % 251)[:, None, None, None]).sum()
                del pixels, numbers
            del images, labels
            batches += 1
    torch.cuda.synchronize()
    assert [int(w) for w in wrong] == [0, 0, 0]


def test_a_slow_stream_does_not_hold_up_batches_with_named_streams(gpu, torch):
    """The slow stream is busy for longer than all batches take. Closing the loader may wait for it."""
    slow, step = torch.cuda.Stream(), torch.cuda.Stream()
    slow_end = torch.cuda.Event()
    loader = stoker.Loader(numbered(1024), batch_size=16).to_device(gpu)
    iterator = iter(loader)

    def check(images, labels):
        images.record_stream(step)
        pixels, numbers = torch.from_dlpack(images), torch.from_dlpack(labels)
        assert int((pixels != (numbers % 251)[:, None, None, None]).sum()) == 0

    with torch.cuda.stream(step):  # the context, all buffers, and torch's kernels, whose loading may wait
        check(*next(iterator))
    with torch.cuda.stream(slow):
        next(iterator)
        torch.cuda._sleep(10_000_000_000)
        slow_end.record()
    for images, labels in iterator:
        with torch.cuda.stream(step):
            check(images, labels)
        del images, labels
        slow_goes_on = not slow_end.query()
    assert slow_goes_on


def test_another_thread_captures_a_graph(gpu, torch):
    """Batches whose streams are named make no call that would invalidate it."""
    ended, failures = threading.Event(), []

    def capture():
        try:
            values = torch.ones(1000, device=gpu)
            while not ended.is_set():
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    out = values.sum()
                    time.sleep(0.002)
                graph.replay()
                torch.cuda.synchronize()
                assert out.item() == 1000
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=capture)
    thread.start()
    try:
        for _ in range(10):
            for images, labels in stoker.Loader(numbered(4096), batch_size=16).to_device(gpu):
                images.record_stream(torch.cuda.current_stream())
                pixels, numbers = torch.from_dlpack(images), torch.from_dlpack(labels)
                assert bool((pixels == (numbers % 251)[:, None, None, None]).all())
    finally:
        ended.set()
        thread.join()
    assert failures == []


def test_jax_lets_go_of_what_it_still_computes_with(gpu, jax):
    @jax.jit
    def wrong(images, labels):
        slow = jax.lax.fori_loop(0, 200, lambda _, x: x + 1 - 1, images.astype("int32"))
        return (slow != (labels % 251)[:, None, None, None]).sum()

    counts = []
    for _ in range(4):
        for images, labels in stoker.Loader(numbered(4096), batch_size=16).to_device(gpu):
            counts.append(wrong(jax.dlpack.from_dlpack(images), jax.dlpack.from_dlpack(labels)))
            del images, labels
    assert sum(int(c) for c in counts) == 0


def test_a_tensor_outlives_its_loader(gpu, torch):
    loader = stoker.Loader(numbered(64), batch_size=16).to_device(gpu)
    kept = [torch.from_dlpack(images) for images, _ in [next(iter(loader))]]
    loader.close()
    del loader
    gc.collect()
    assert kept[0].float().mean().item() == pytest.approx(7.5)


def test_a_graph_can_be_captured_meanwhile(gpu, torch):
    """Batches are released right before and during a capture: no call for them, here or in the loader's
    thread, may break the capture or become part of it.
    """
    batches = iter(stoker.Loader(numbered(4096), batch_size=16).to_device(gpu))
    static = torch.empty((16, SIDE, SIDE, 3), dtype=torch.uint8, device=gpu)
    for _ in range(50):
        before, during = (torch.from_dlpack(next(batches)[0]) for _ in range(2))
        images, labels = next(batches)
        graph = torch.cuda.CUDAGraph()
        del before
        with torch.cuda.graph(graph):
            out = static.float().mean()
            del during
            time.sleep(0.02)  # the loader's thread comes to them
        static.copy_(torch.from_dlpack(images))
        graph.replay()
        assert out.item() == pytest.approx((torch.from_dlpack(labels) % 251).float().mean().item())


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CONTEXTS = """
    import ctypes
    def contexts():
        driver = ctypes.CDLL("libcuda.so.1")
        assert driver.cuInit(0) == 0
        count, active = ctypes.c_int(), []
        assert driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        for device in range(count.value):
            flags, state = ctypes.c_uint(), ctypes.c_int()
            assert driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(state)) == 0
            active.append(state.value)
        return active
    import numpy as np, stoker
    source = stoker.arrays(np.zeros((64, 8, 8, 3), np.uint8))
    for images in stoker.Loader(source, batch_size=16): pass
"""


def test_no_context_on_the_cpu_and_one_where_asked(gpu):
    assert set(run(CONTEXTS + "    print(*contexts())")) == {"0"}
    first, *others = run(
        CONTEXTS
        + """
    import threading
    def iterate():
        for images in stoker.Loader(source, batch_size=16).to_device("cuda:0"): pass
    for _ in range(2):
        thread = threading.Thread(target=iterate)
        thread.start()
        thread.join()
    print(*contexts())"""
    )
    assert first == "1"
    assert set(others) <= {"0"}


def test_it_ends_with_batches_in_hand(gpu):
    run(
        """
        import numpy as np, stoker
        source = stoker.arrays(np.zeros((4096, 8, 8, 3), np.uint8))
        batches = iter(stoker.Loader(source, batch_size=16).to_device("cuda:0"))
        held = [next(batches), next(batches)]
        """
    )
