"""Ultralytics' training of a YOLO (https://github.com/ultralytics/ultralytics), fed by stoker.

    python examples/torch/yolo.py

A trainer of its own replaces get_dataloader, which starts worker processes; model, losses and schedule are
those of Ultralytics. `stoker.yolo` reads the labels, and `stoker.Mosaic` makes each row of four images.
Ultralytics is licensed under the AGPL-3.0, which then applies to a program that is distributed with it.
"""

import pathlib
import tempfile

import shapes
import stoker
import stoker.torch
import torch
from ultralytics.models.yolo.detect import DetectionTrainer

SIZE, BATCH, EPOCHS = 96, 8, 4  # YOLO's own size is 640


class Batches:
    """The batches of a loader as Ultralytics' collate function makes them."""

    num_workers = 0

    def __init__(self, data: str, batch_size: int) -> None:
        source = stoker.yolo(data)
        transforms = [
            stoker.Mosaic(SIZE),
            stoker.RandomHorizontalFlip(),
            stoker.ConvertBoundingBoxFormat("cxcywh", normalized=True),
        ]
        self.loader = stoker.torch.DataLoader(
            source, transforms, batch_size=batch_size, shuffle=True, drop_last=True, dtype="uint8"
        )
        self.dataset, self.sampler = self.loader.dataset, self.loader.sampler
        self.batch_size, self.drop_last = batch_size, True

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            rows = torch.arange(len(batch.image)).repeat_interleave(batch.boxes.counts)
            yield {
                "img": batch.image,
                "bboxes": batch.boxes.values,
                "cls": batch.labels.values[:, None].float(),
                "batch_idx": rows.float(),
            }


class Trainer(DetectionTrainer):
    """Ultralytics', with stoker's loader for training."""

    def get_dataloader(self, dataset_path, batch_size=16, rank=0, mode="train"):
        """Replaces a DataLoader with worker processes; validation keeps Ultralytics' own."""
        if mode == "train":
            return Batches(self.args.data, batch_size)
        return super().get_dataloader(dataset_path, batch_size, rank, mode)


def print_losses(trainer: Trainer) -> None:
    print(f"epoch {trainer.epoch}: mean loss {sum(trainer.label_loss_items(trainer.tloss).values()):.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        shapes.make(pathlib.Path(folder))
        options = {"imgsz": SIZE, "batch": BATCH, "epochs": EPOCHS, "device": "cpu", "workers": 0}
        quiet = {"project": folder, "plots": False, "val": False, "verbose": False, "save": False}
        data = {"model": "yolo11n.yaml", "data": str(pathlib.Path(folder, "data.yaml")), "pretrained": False}
        trainer = Trainer(overrides={**options, **quiet, **data, "close_mosaic": 0})
        trainer.add_callback("on_train_epoch_end", print_losses)
        trainer.train()
