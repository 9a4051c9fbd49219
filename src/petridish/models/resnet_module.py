"""ResNet-18 of small images as a plain PyTorch module [He et al. 2016]."""

from __future__ import annotations

from torch import Tensor, nn


def convolution(given: int, filters: int, size: int, stride: int) -> nn.Conv2d:
    """Return a convolution that keeps the size of an image, up to its stride."""
    return nn.Conv2d(given, filters, size, stride, padding=size // 2, bias=False)


class BlockModule(nn.Module):
    """Two convolutions beside a shortcut, which has a convolution of its own where sizes differ."""

    def __init__(self, given: int, filters: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(given, filters, 3, stride), nn.BatchNorm2d(filters)
        self.conv2, self.bn2 = convolution(filters, filters, 3, 1), nn.BatchNorm2d(filters)
        self.shortcut = nn.Sequential()
        if stride != 1 or given != filters:
            self.shortcut = nn.Sequential(
                convolution(given, filters, 1, stride), nn.BatchNorm2d(filters)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's images."""
        h = self.bn1(self.conv1(x)).relu()
        outputs: Tensor = (self.bn2(self.conv2(h)) + self.shortcut(x)).relu()
        return outputs


class ResNetModule(nn.Module):
    """A convolution, four stages of two blocks, the mean over places, a linear layer."""

    def __init__(self, channels: int, filters: int, n_outputs: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(channels, filters, 3, 1), nn.BatchNorm2d(filters)
        given = filters
        for stage in range(4):
            own = filters * 2**stage
            first = BlockModule(given, own, 1 if stage == 0 else 2)
            self.add_module(f"layer{stage + 1}", nn.Sequential(first, BlockModule(own, own, 1)))
            given = own
        self.fc = nn.Linear(given, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (batch, output)."""
        h = self.bn1(self.conv1(x)).relu()
        for stage in range(1, 5):
            h = self.get_submodule(f"layer{stage}")(h)
        outputs: Tensor = self.fc(h.mean(dim=(2, 3)))
        return outputs
