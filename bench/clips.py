"""Clips of 8 frames of 4 cameras on one core: stoker, torchvision's v2 transforms, Pillow, and torchcodec.

    python bench/clips.py PHOTOS [--rounds 7] [--seconds 4] [--core 0] [--size 224] [--only NAME,…]

Frames of 640 × 480 pixels are made of PHOTOS, a folder of photographs: each episode of each camera shows a
part of one, which moves by a few pixels from frame to frame. A sample is a window of 8 frames that follow
each other in an episode, at random, of 4 cameras: 32 images. Each loader decodes them, takes one random crop
(of RandomResizedCrop) and one flip for all frames of a camera, and resizes to size × size. Batches have 2
clips of uint8, (2, 8, size, size, 3) for each camera, or channels first.

stoker reads packed sets, or the JPEG files ("stoker from files"), with 1 worker. torchvision and Pillow read
the JPEG files, torchcodec reads a video file for each episode (H.264, a key frame every 12 frames, made by
ffmpeg); they are measured if they are installed. Samples of these are loaded one after the other in this
process, as a worker of a DataLoader does.

How they are compared: bench/in_turns.py.
"""

import pathlib
import subprocess
import sys

import numpy as np
from in_turns import compare, endless, photographs

BATCH, FRAMES, CAMERAS, EPISODES, LENGTH = 2, 8, 4, 2, 20
HEIGHT, WIDTH = 480, 640


def make_episode(photo, folder, number):
    """Writes the frames that a moving window sees of a photograph."""
    from PIL import Image

    folder.mkdir(parents=True)
    with Image.open(photo) as opened:
        image = opened.convert("RGB")
    scale = max((WIDTH + 100) / image.width, (HEIGHT + 100) / image.height)
    image = image.resize((round(image.width * scale), round(image.height * scale)))
    for frame in range(LENGTH):
        left, top = (3 + number % 3) * frame, 2 * frame
        image.crop((left, top, left + WIDTH, top + HEIGHT)).save(folder / f"{frame:04d}.jpg", quality=90)


def make_video(frames, to):
    """Returns whether ffmpeg is here."""
    to.parent.mkdir(parents=True, exist_ok=True)
    command = ["ffmpeg", "-v", "error", "-framerate", "30", "-i", frames / "%04d.jpg", "-c:v", "libx264"]
    try:
        subprocess.run([*command, "-g", "12", "-pix_fmt", "yuv420p", to], check=True)
    except FileNotFoundError:
        return False
    return True


def make_clips(photos, folder):
    """Returns the path of each frame of each clip, by camera."""
    found = photographs(photos)
    for camera in range(CAMERAS):
        frames = folder / "frames" / f"camera{camera}"
        for episode in range(EPISODES):
            number = camera * EPISODES + episode
            make_episode(found[number * 7 % len(found)], frames / f"episode{episode}", number)
            make_video(frames / f"episode{episode}", folder / f"video/camera{camera}/episode{episode}.mp4")
        pack = [sys.executable, "-m", "stoker", "pack", frames, folder / f"packed/camera{camera}"]
        subprocess.run(pack, check=True, stdout=subprocess.DEVNULL)
    return [
        [
            [
                str(folder / f"frames/camera{camera}/episode{episode}/{first + i:04d}.jpg")
                for i in range(FRAMES)
            ]
            for camera in range(CAMERAS)
        ]
        for episode in range(EPISODES)
        for first in range(LENGTH - FRAMES + 1)
    ]


def folder_of(clips):
    return pathlib.Path(clips[0][0][0]).parents[3]


def by_stoker_of(open_camera):
    def batches(clips, size):
        import stoker

        cameras = {f"camera{i}": open_camera(folder_of(clips), f"camera{i}") for i in range(CAMERAS)}
        source = stoker.clips(cameras, by="label", frames=FRAMES)
        assert len(source) == len(clips)
        loader = stoker.Loader(
            source,
            [stoker.RandomResizedCrop(size), stoker.RandomHorizontalFlip()],
            batch_size=BATCH,
            shuffle=True,
            runtime=stoker.Runtime(threads=1),
        )
        yield from (len(batch.camera0) for batch in endless(loader))

    return batches


def packed(folder, camera):
    import stoker

    return stoker.packed(folder / "packed" / camera)


def files(folder, camera):
    import stoker

    return stoker.image_folder(folder / "frames" / camera, crop_index=None)


def by_torchvision(clips, size):
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    recipe = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])

    def load(camera):
        return recipe(torch.stack([decode_image(path, ImageReadMode.RGB) for path in camera]))

    yield from stacked(load, clips, torch.stack)


def by_pillow(clips, size):
    from PIL import Image

    random = np.random.default_rng(0)

    def load(camera):
        area = WIDTH * HEIGHT * random.uniform(0.08, 1)
        ratio = np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
        width = min(round((area * ratio) ** 0.5), WIDTH)
        height = min(round((area / ratio) ** 0.5), HEIGHT)
        left, top = random.integers(0, WIDTH - width + 1), random.integers(0, HEIGHT - height + 1)
        flips = random.random() < 0.5
        frames = []
        for path in camera:
            with Image.open(path) as image:
                box = (left, top, left + width, top + height)
                frame = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box)
                frames.append(np.asarray(frame)[:, ::-1] if flips else np.asarray(frame))
        return np.stack(frames)

    yield from stacked(load, clips, np.stack)


def by_torchcodec(clips, size):
    import torch
    from torchcodec.decoders import VideoDecoder
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    recipe = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])

    def load(camera):
        first = pathlib.Path(camera[0])
        episode, name = first.parent.name, first.parent.parent.name
        video = folder_of(clips) / "video" / name / f"{episode}.mp4"
        decoder = VideoDecoder(str(video), num_ffmpeg_threads=1)
        begin = int(first.stem)
        return recipe(decoder.get_frames_in_range(begin, begin + FRAMES).data)

    yield from stacked(load, clips, torch.stack)


def stacked(load, clips, stack):
    random = np.random.default_rng(0)
    while True:
        order = random.permutation(len(clips))
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            batch = [stack([load(clips[i][camera]) for i in some]) for camera in range(CAMERAS)]
            yield len(batch[0])


LOADERS = {
    "stoker": by_stoker_of(packed),
    "stoker from files": by_stoker_of(files),
    "torchvision v2": by_torchvision,
    "Pillow": by_pillow,
    "torchcodec": by_torchcodec,
}
NEEDS = {"torchvision v2": "torchvision", "Pillow": "PIL", "torchcodec": "torchcodec"}

if __name__ == "__main__":
    compare(__file__, __doc__, LOADERS, NEEDS, make_clips, size=224)
