"""LeRobot's Diffusion Policy (https://github.com/huggingface/lerobot, pip install lerobot), fed by stoker.

    python examples/torch/policy.py

The program replaces LeRobotDataset, which finds the frames of each sample in a video, with `stoker.clips` of
frames in image files, of two cameras here. A sample has the last two frames of each camera with their
states, and the actions of the next eight steps. Frames may also lie in packed sets or tar archives.
"""

import pathlib
import tempfile

import numpy as np
import stoker
import stoker.torch
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.diffusion.modeling_diffusion import DiffusionPolicy
from PIL import Image

EPISODES, STEPS, SIDE, BATCH, EPOCHS = 6, 24, 64, 16, 3
OBSERVED, HORIZON = 2, 8  # frames; actions, from the first of these frames on
CAMERAS = ("front", "wrist")


def make_episodes(folder: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Writes the frames of a block that goes to the middle; returns states and actions, -1 to 1."""
    random = np.random.default_rng(1)
    states, actions = [], []
    for episode in range(EPISODES):
        for camera in CAMERAS:
            (folder / camera / f"{episode:03}").mkdir(parents=True)
        state = random.uniform(-0.8, 0.8, 2)
        for step in range(STEPS):
            left, top = ((state + 1) / 2 * (SIDE - 16)).astype(int)
            pixels = np.full((SIDE, SIDE, 3), 60, np.uint8)
            pixels[top : top + 16, left : left + 16] = 240, 120, 20
            for camera, image in zip(CAMERAS, (pixels, pixels[::-1])):
                Image.fromarray(image).save(folder / camera / f"{episode:03}" / f"{step:04}.jpg", quality=95)
            states.append(state)
            actions.append(-0.2 * state)
            state = state + actions[-1]
    return np.float32(states), np.float32(actions)


def make_loader(folder: pathlib.Path) -> stoker.torch.DataLoader:
    states, actions = make_episodes(folder)
    cameras = {name: stoker.image_folder(folder / name) for name in CAMERAS}  # a folder for each episode
    episode = cameras["front"].labels
    frame = np.arange(len(episode))
    last = np.searchsorted(episode, episode, side="right") - 1
    chunk = frame[:, None] + np.arange(HORIZON)
    columns = {
        "episode": episode,
        "state": states,
        "action": actions[np.minimum(chunk, last[:, None])],  # the last one again, after the episode's end
        "action_is_pad": chunk > last[:, None],
    }
    paths = [cameras["front"].path(i) for i in frame]
    cameras["front"] = stoker.files(paths, columns=columns)
    clips = stoker.clips(cameras, by="episode", frames=OBSERVED)
    transforms = [stoker.RandomCrop(SIDE - 8), stoker.ColorJitter(0.2)]  # one draw for a camera's frames
    return stoker.torch.DataLoader(clips, transforms, batch_size=BATCH, shuffle=True, drop_last=True, seed=1)


def as_lerobot(batch: stoker.Batch) -> dict[str, torch.Tensor]:
    images = {f"observation.images.{name}": batch[name] for name in CAMERAS}  # (rows, frames, 3, h, w)
    chunk = {"action": batch.action[:, 0], "action_is_pad": batch.action_is_pad[:, 0]}
    return {**images, **chunk, "observation.state": batch.state}


def make_policy() -> DiffusionPolicy:
    image = PolicyFeature(FeatureType.VISUAL, (3, SIDE - 8, SIDE - 8))
    features = {f"observation.images.{name}": image for name in CAMERAS}
    features["observation.state"] = PolicyFeature(FeatureType.STATE, (2,))
    config = DiffusionConfig(
        input_features=features,
        output_features={"action": PolicyFeature(FeatureType.ACTION, (2,))},
        n_obs_steps=OBSERVED,
        horizon=HORIZON,
        n_action_steps=HORIZON - OBSERVED + 1,
        down_dims=(32, 64),
        num_train_timesteps=20,
        crop_shape=None,
        device="cpu",
    )
    return DiffusionPolicy(config)


if __name__ == "__main__":
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        loader = make_loader(pathlib.Path(folder))
        policy = make_policy()
        optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            losses = []
            for batch in loader:
                loss, _ = policy.forward(as_lerobot(batch))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: {len(losses)} batches, mean loss {np.mean(losses):.3f}")
