#!/usr/bin/env python3
"""Tries an installed stoker; tools/check_wheel.py runs it with the Python that has the wheel.

  wheel_trial.py [--tensorflow]

Prints a line for each check, and last a JSON object: {"digest": of the batches, "failed": names}. Needs only
stoker, and for --tensorflow TensorFlow. Works in the current folder.
"""

import argparse
import base64
import ctypes
import functools
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import warnings
import zlib

# NumPy is not stoker's. `packages` are those of site-packages that `import stoker` loads.
IMPORT = """
import json, numpy, sys, time
before, start = set(sys.modules), time.process_time()
import stoker
seconds = time.process_time() - start
added = {name: getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before}
packages = {name.partition(".")[0] for name, file in added.items() if "site-packages" in file}
print(json.dumps({"seconds": seconds, "packages": sorted(packages - before)}))
"""
# One pixel, by libwebp's lossless mode.
WEBP = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
PHOTOS = 60
ROWS = 8  # of a batch
EPOCHS = 10
CHECKS = {}


def check(function):
    CHECKS[function.__name__.replace("_", " ")] = function
    return function


def output(*command):
    """Returns what a command prints; an error has what it printed on stderr."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def has_library(*names):
    for name in names:
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


def png_of_one_pixel(colour):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" + bytes(colour))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def loader(source, **options):
    import stoker

    transforms = [stoker.RandomResizedCrop(64), stoker.RandomHorizontalFlip()]
    return stoker.Loader(source, transforms, batch_size=ROWS, shuffle=True, seed=7, **options)


def digest_of(loader):
    """Returns the digest of two epochs."""
    digest = hashlib.sha256()
    for _ in range(2):
        for images, labels in loader:
            digest.update(images.tobytes() + labels.tobytes())
    return digest.hexdigest()


# --- the checks, in their order ---------------------------------------------------------------------------


@check
def import_stoker():
    runs = [json.loads(output(sys.executable, "-c", IMPORT)) for _ in range(7)]
    assert runs[0]["packages"] == ["stoker"], f"import stoker loads {runs[0]['packages']}"
    times = sorted(run["seconds"] for run in runs)
    return f"{times[0] * 1000:.0f} to {times[-1] * 1000:.0f} ms of CPU time in 7 imports, without NumPy's"


@check
def the_command():
    version = " ".join(output(sys.executable, "-m", "stoker", "--version").split())
    script = pathlib.Path(sys.executable).with_name("stoker")
    assert " ".join(output(script, "--version").split()) == version
    output(script, "synth", "photos", "--count", PHOTOS, "--classes", 3, "--seed", 1)
    output(script, "verify", "photos")
    output(script, "index", "photos")
    output(script, "pack", "photos", "packed")
    return f"{version}: synth, verify, index, pack"


@check
def doctor():
    report = output(sys.executable, "-m", "stoker", "doctor")
    return "\n    ".join(["", *report.splitlines()])


@check
def a_loader_over_photographs():
    import stoker

    digest = digest_of(loader(stoker.image_folder("photos")))
    alone = stoker.Runtime(threads=1, reader="pread", executor="threads")
    assert digest_of(loader(stoker.image_folder("photos"), runtime=alone)) == digest
    assert digest_of(loader(stoker.packed("packed"))) == digest
    RESULT["digest"] = digest
    return f"sha256 {digest[:16]}…, the same from one thread, and packed"


@check
def png_and_webp():
    import stoker

    assert stoker.decode_image(png_of_one_pixel((1, 2, 3))).tolist() == [[[1, 2, 3]]]
    assert stoker.decode_image(WEBP).shape == (1, 1, 3)
    return "decoded"


@check
def tar_archives():
    import stoker

    with tarfile.open("photos.tar", "w") as archive:
        for path in sorted(pathlib.Path("photos").rglob("*.jpg")):
            archive.add(path, f"{path.stem}.jpg")
    return _needs(
        lambda: stoker.tar("photos.tar"), has_library("libarchive.so.13"), "apt-get install libarchive13"
    )


@check
def objects_behind_urls():
    import stoker

    server = _QuietServer(("127.0.0.1", 0), functools.partial(_Ranges, directory="packed"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        there = has_library("libcurl.so.4", "libcurl-gnutls.so.4")
        return _needs(lambda: stoker.packed(url), there, "apt-get install libcurl4")
    finally:
        server.shutdown()


class _QuietServer(http.server.ThreadingHTTPServer):
    """Python's server, without a word about requests that a loader drops when it ends."""

    def handle_error(self, request, client_address):
        pass


class _Ranges(http.server.SimpleHTTPRequestHandler):
    """Python's handler, which knows no ranges of bytes, with them."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        asked = self.headers.get("Range")
        path = pathlib.Path(self.translate_path(self.path))
        if not asked or not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        first, _, last = asked.partition("=")[2].partition("-")
        begin = int(first) if first else len(content) - int(last)
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.send_header("ETag", f'"{len(content)}"')
        self.end_headers()
        self.wfile.write(content[begin:end])


def _needs(open_source, there, advice):
    """Reads the source where the library is, and else asserts that the error gives the advice."""
    import stoker

    if there:
        source = open_source()
        batches = sum(1 for _ in loader(source))
        assert len(source) == PHOTOS and batches == -(-PHOTOS // ROWS)
        return f"{len(source)} samples read"
    try:
        open_source()
    except stoker.UnavailableError as error:
        assert advice in str(error), f"the error does not say what to install: {error}"
        return f"refused, since the library is not here: {error}"
    raise AssertionError("the library is not here, and nothing said so")


def tensorflow():
    import stoker

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    os.environ["XDG_CACHE_HOME"] = str(pathlib.Path("cache").resolve())
    digest = hashlib.sha256()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):  # the second time says nothing more
            train = loader(stoker.image_folder("photos"), drop_remainder=True)
            for images, _ in train.as_tf_dataset():
                digest.update(images.numpy().tobytes())
    said = [str(w.message) for w in caught if w.category.__name__ == "FallbackWarning"]
    compiler = next(filter(shutil.which, ("g++", "c++", "clang++")), None)
    if compiler is None:
        assert len(said) == 1, f"one warning is wanted, not {said}"
        return f"the prebuilt ops, and one warning: {said[0]}"
    assert said == [], f"there is {compiler}, and still: {said}"
    return f"the op that {compiler} built here"


def a_model_trained():
    import stoker
    from tensorflow import keras

    keras.utils.set_random_seed(1)
    source = stoker.image_folder("photos")
    model = keras.Sequential(
        [
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(len(source.classes), activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    losses = model.fit(loader(source).as_tf_dataset(), epochs=EPOCHS, verbose=0).history["loss"]
    assert len(losses) == EPOCHS and losses[-1] < losses[0], f"the loss does not fall: {losses}"
    return f"by model.fit; the loss fell from {losses[0]:.2f} to {losses[-1]:.2f} in {EPOCHS} epochs"


def run(name, function):
    try:
        print(f"{name}: {function()}", flush=True)
    except Exception as error:  # the other checks run all the same
        RESULT["failed"].append(name)
        print(f"{name}: FAILED: {type(error).__name__}: {error}", flush=True)


RESULT = {"digest": None, "failed": []}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", action="store_true")
    arguments = parser.parse_args()
    if arguments.tensorflow:
        CHECKS.update({"TensorFlow": tensorflow, "a model trained": a_model_trained})
    for name, function in CHECKS.items():
        run(name, function)
    print(json.dumps(RESULT))
    return 1 if RESULT["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
