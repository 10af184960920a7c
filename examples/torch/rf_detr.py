"""RF-DETR's training (https://github.com/roboflow/rf-detr, pip install "rfdetr[train]"), fed by stoker.

    python examples/torch/rf_detr.py

RF-DETR's data module makes the loaders. Here one of its own replaces train_dataloader, which starts worker
processes; all else is RF-DETR's. Targets are those of its dataset class: labels, and boxes as shares of the
image (cx, cy, w, h). They are views of two arrays, regardless of the number of images.
"""

import pathlib
import tempfile

import shapes
import stoker
import stoker.torch
import torch
from pytorch_lightning import Trainer
from rfdetr.config import RFDETRNanoConfig, TrainConfig
from rfdetr.training import RFDETRDataModule, RFDETRModelModule
from rfdetr.utilities.tensors import NestedTensor

SIZE, BATCH, EPOCHS = 96, 4, 3  # RF-DETR's own size is 384
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Batches:
    """The batches of a loader as RF-DETR's collate function makes them."""

    def __init__(self, loader: stoker.torch.DataLoader) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            no_padding = torch.zeros(len(batch.image), *batch.image.shape[2:], dtype=torch.bool)
            objects = zip(batch.boxes, batch.labels, batch.image_id)
            targets = tuple(
                {"boxes": boxes, "labels": labels, "image_id": id} for boxes, labels, id in objects
            )
            yield NestedTensor(batch.image, no_padding, no_padding=True), targets


class Data(RFDETRDataModule):
    """RF-DETR's, with stoker's loader for training."""

    def setup(self, stage: str) -> None:
        """Replaces the opening of RF-DETR's datasets."""
        folder = pathlib.Path(self.train_config.dataset_dir)
        source = stoker.coco(
            folder / "boxes.json", folder / "images", keep_crowd=False, contiguous_labels=True
        )
        side = self.model_config.resolution
        transforms = [
            stoker.RandomHorizontalFlip(),
            stoker.Resize((side, side)),
            stoker.SanitizeBoundingBoxes(),
            stoker.ConvertBoundingBoxFormat("cxcywh", normalized=True),
            stoker.Normalize(MEAN, STD),
        ]
        batch = self.train_config.batch_size
        loader = stoker.torch.DataLoader(source, transforms, batch_size=batch, shuffle=True, drop_last=True)
        self.batches = Batches(loader)

    def train_dataloader(self) -> Batches:
        """Replaces a DataLoader with worker processes."""
        return self.batches


class PrintLosses(RFDETRModelModule):
    """RF-DETR's, which prints the mean loss of each epoch."""

    def on_train_epoch_end(self) -> None:
        """Prints a line."""
        super().on_train_epoch_end()
        loss = self.trainer.callback_metrics["train/loss"]
        print(f"epoch {self.current_epoch}: mean loss {loss:.3f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        shapes.make(pathlib.Path(folder), count=24)
        small = {
            "resolution": SIZE,
            "positional_encoding_size": SIZE // 16,
            "num_queries": 30,
            "group_detr": 1,
        }
        model = RFDETRNanoConfig(pretrain_weights=None, num_classes=len(shapes.CLASSES), **small)
        train = TrainConfig(
            dataset_dir=folder, output_dir=folder, batch_size=BATCH, epochs=EPOCHS, lr=5e-4, num_workers=0
        )
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = Trainer(max_epochs=EPOCHS, accelerator="cpu", limit_val_batches=0, **quiet)
        trainer.fit(PrintLosses(model, train), Data(model, train))
