"""SPDL, which decodes and resizes by FFmpeg in threads. It needs FFmpeg's shared libraries."""

import random

from workload import BATCH, center, normalize, random_crop

NAME = "SPDL"
DISTRIBUTION = "spdl"
PACKAGES = ("spdl", "numpy")
IMPORTS = ("spdl.io", "spdl.pipeline")
VARIANTS = {"ffmpeg": "antialiased"}
WORKLOADS = ("train", "train-f32", "eval")


def batches(data, workload, variant):
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    def load(path):
        packets = spdl.io.demux_image(path)
        width, height = packets.codec.width, packets.codec.height
        if workload.train:
            left, top, w, h = random_crop(width, height, random)
            steps = f"crop={w}:{h}:{left}:{top},scale=224:224:flags=bilinear" + random.choice(("", ",hflip"))
        else:
            w, h, left, top = center(width, height)
            steps = f"scale={w}:{h}:flags=bilinear,crop=224:224:{left}:{top}"
        return spdl.io.decode_packets(packets, filter_desc=steps + ",format=pix_fmts=rgb24")

    def batched(frames):
        images = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        return normalize(images) if workload.normalized else images

    pipeline = (
        PipelineBuilder()
        .add_source(data.endless(shuffled=workload.train))
        .pipe(load, concurrency=data.cores, output_order="completion" if workload.train else "input")
        .aggregate(BATCH)
        .pipe(batched)
        .add_sink(3)
        .build(num_threads=data.cores)
    )
    with pipeline.auto_stop():
        yield from pipeline
