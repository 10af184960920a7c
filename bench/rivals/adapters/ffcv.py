"""FFCV, which reads files that it has written. It borrows PyTorch. pip compiles it, against Debian's
libopencv-dev and libturbojpeg0-dev."""

from workload import BATCH, MEAN, SIZE, STD

NAME = "FFCV"
DISTRIBUTION = "ffcv"
PACKAGES = (
    "setuptools<70", "wheel", "numpy", "numba", "opencv-python-headless", "pandas", "tqdm", "psutil",
    "imgcat", "assertpy", "fastargs", "terminaltables",
)  # fmt: skip
BUILT_WITH_THESE = ("ffcv",)
IMPORTS = ("ffcv",)
BORROWS = ("torch_loader",)
VARIANTS = {
    "jpeg": "areas averaged; written before as JPEGs of quality 90, of at most 500 × 500",
    "raw": "areas averaged; pixels of at most 500 × 500, written before, are not decoded",
}
WORKLOADS = ("train", "train-f32", "eval")


def prepare(data, variant):
    import numpy as np
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from PIL import Image

    files = data.files()

    class Photos:
        def __len__(self):
            return len(files)

        def __getitem__(self, place):
            return np.asarray(Image.open(files[place]).convert("RGB")), 0

    image = (
        RGBImageField(write_mode="jpg", max_resolution=500, jpeg_quality=90)
        if variant == "jpeg"
        else RGBImageField(write_mode="raw", max_resolution=500)
    )
    writer = DatasetWriter(
        str(data.prepared / f"{variant}.beton"), {"image": image, "label": IntField()}, num_workers=1
    )
    writer.from_indexed_dataset(Photos())


def batches(data, workload, variant):
    import numpy as np
    from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip

    if workload.train:
        crop = RandomResizedCropRGBImageDecoder((SIZE, SIZE), scale=(0.08, 1), ratio=(3 / 4, 4 / 3))
        steps = [crop, RandomHorizontalFlip()]
    else:
        steps = [CenterCropRGBImageDecoder((SIZE, SIZE), ratio=SIZE / 256)]
    if workload.normalized:
        steps.append(NormalizeImage(np.array(MEAN) * 255, np.array(STD) * 255, np.dtype(workload.dtype)))
    loader = Loader(
        str(data.prepared / f"{variant}.beton"),
        batch_size=BATCH,
        num_workers=data.cores,
        os_cache=True,
        order=OrderOption.RANDOM if workload.train else OrderOption.SEQUENTIAL,
        drop_last=True,
        pipelines={"image": steps, "label": None},
    )
    while True:
        for batch in loader:
            yield batch[0]
