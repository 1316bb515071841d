"""A convolutional network for images of any size, with residual blocks."""

from __future__ import annotations

from typing import Any

import retrograd as rg
from retrograd import nn
from retrograd.functions.random.generator import Generator
from retrograd.nn import functional as F

SMALLEST = 4  # rows of the image that the last block sees, at least


class RandomShift(nn.Module):
    """Images moved by up to `most` pixels in each direction while training, the edge repeated, and
    mirrored every other time where they may be."""

    def __init__(self, most: int, mirrored: bool, generator: Generator) -> None:
        self.most, self.mirrored, self.generator = most, mirrored, generator

    def forward(self, x: Any) -> Any:
        if not self.training:
            return x
        n, channels, height, width = x.shape
        by = self.generator.randint(-self.most, self.most + 1, (n, 2))
        rows = rg.clip(rg.arange(height) + by[:, :1], 0, height - 1)
        columns = rg.clip(rg.arange(width) + by[:, 1:], 0, width - 1)
        if self.mirrored:
            turned = self.generator.bernoulli(0.5, (n, 1))
            columns = rg.where(turned, width - 1 - columns, columns)
        images = rg.arange(n)[:, None, None, None]
        parts = rg.arange(channels)[None, :, None, None]
        return x[images, parts, rows[:, None, :, None], columns[:, None, None, :]]


class ConvBlock(nn.Module):
    """Two convolutions with batch norm, whose result is added to what they are given (He et al.,
    arXiv:1512.03385), with half as many rows and columns where the number of channels changes."""

    def __init__(self, channels: int, out: int, generator: Generator) -> None:
        stride = 1 if channels == out else 2
        self.conv1 = nn.Conv2d(
            channels, out, 3, stride=stride, padding=1, bias=False, generator=generator
        )
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False, generator=generator)
        self.norm2 = nn.BatchNorm2d(out)
        self.shortcut = (
            nn.Identity()
            if stride == 1
            else nn.Conv2d(channels, out, 1, stride=2, bias=False, generator=generator)
        )

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ImageNetwork(nn.Module):
    """Scores `[N, classes]` of images `[N, C, H, W]`: a convolution, residual blocks that halve
    the image until few rows are left, the mean over places, dropout, and a linear layer."""

    def __init__(
        self, size: int, channels: int, classes: int, width: int, dropout: float,
        mirrored: bool, generator: Generator,
    ) -> None:  # fmt: skip
        self.shift = RandomShift(max(size // 8, 1), mirrored, generator)
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False, generator=generator)
        self.norm = nn.BatchNorm2d(width)
        blocks: list[Any] = [ConvBlock(width, width, generator)]
        while size >= 2 * SMALLEST and len(blocks) < 4:
            blocks.append(ConvBlock(width, 2 * width, generator))
            size, width = -(-size // 2), 2 * width
        self.blocks = nn.Sequential(*blocks)
        self.dropout = nn.Dropout(dropout, generator=generator)
        self.head = nn.Linear(width, classes, generator=generator)

    def forward(self, x: Any) -> Any:
        y = self.blocks(F.relu(self.norm(self.stem(self.shift(x)))))
        return self.head(self.dropout(y.mean(axis=(2, 3))))
