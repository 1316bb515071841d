"""Models in PyTorch, as its users write them: small ones of the usual kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

Module: Any = nn.Module


class Residual(Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def resnet() -> Any:
    stem = [nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)]
    blocks = [nn.MaxPool2d(3, 2, 1), Residual(4, 4, 1), Residual(4, 8, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


class ViT(Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token, self.places = (nn.Parameter(torch.randn(1, n, 8)) for n in (1, 5))
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class UNet(Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.inner = nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1, bias=False), nn.InstanceNorm2d(8))
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = self.down(x)
        b = F.leaky_relu(self.inner(a), 0.1)
        wide = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)[:, :4]
        return self.out(torch.cat([a, self.up(b) + wide], 1)).log_softmax(1)


class Recurrent(Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.lstm(self.words(x))[0].mean(1))


class GPT(Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(13, 16), nn.Embedding(12, 16)
        self.qkv, self.mix = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU("tanh"), nn.Linear(64, 16))

    def forward(self, x: Any) -> Any:
        batch, length = x.shape
        h = self.words(x) + self.places(torch.arange(length))
        q, k, v = (
            part.view(batch, length, 4, 4).transpose(1, 2)
            for part in self.qkv(self.norm1(h)).split(16, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.mix(y.transpose(1, 2).reshape(batch, length, 16))
        return (h + self.mlp(self.norm2(h))) @ self.words.weight.T


class MobileNet(Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 12, 1),
        )  # fmt: skip
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 4, 1), nn.ReLU(), nn.Conv2d(4, 12, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip
        self.out = nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        x = self.body(x)
        return self.out((x * self.squeeze(x)).mean([2, 3]))


class Sample(NamedTuple):
    """A model, the sizes of its input, which of them may change, and others."""

    model: Callable[[], Any]
    shape: tuple[int, ...]
    free: int  # axes from the first on
    other: tuple[int, ...]
    words: int = 0  # inputs are whole numbers below this


MODELS = {
    "resnet": Sample(resnet, (2, 3, 16, 16), 1, (3, 3, 16, 16)),
    "vit": Sample(ViT, (2, 3, 8, 8), 1, (5, 3, 8, 8)),
    "unet": Sample(UNet, (2, 1, 8, 8), 1, (3, 1, 8, 8)),
    "lstm": Sample(Recurrent, (2, 4), 2, (3, 7), 11),
    "gpt": Sample(GPT, (2, 5), 2, (3, 9), 13),
    "mobilenet": Sample(MobileNet, (2, 3, 8, 8), 1, (4, 3, 8, 8)),
}
