"""ResNet (He et al., arXiv:1512.03385), with the names of torchvision; files may have those of
transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.models.activations import activations, need_activation
from retrograd.models.config import LabelledConfig
from retrograd.models.pretrained import Pretrained
from retrograd.nn import functional as F

DEPTHS = {
    18: ("basic", (2, 2, 2, 2)),
    34: ("basic", (3, 4, 6, 3)),
    50: ("bottleneck", (3, 4, 6, 3)),
    101: ("bottleneck", (3, 4, 23, 3)),
    152: ("bottleneck", (3, 8, 36, 3)),
}
EXPANSION = {"basic": 1, "bottleneck": 4}


@dataclass(frozen=True)
class ResNetConfig(LabelledConfig):
    """The settings of a ResNet, with the names and defaults of `transformers.ResNetConfig`
    (ResNet-50, the stride in its 3x3 convolutions, as in torchvision). `named(18)` gives those of
    torchvision's ResNet-18, and so on for 34, 50, 101, 152.

    `OptionError` for sizes below 1, lists of different lengths, and what is not known.

    >>> from retrograd.models import ResNetConfig
    >>> ResNetConfig.named(18, num_labels=10).hidden_sizes
    (64, 128, 256, 512)
    """

    model_type = "resnet"
    ignored: ClassVar[Mapping[str, str]] = {
        **LabelledConfig.ignored,
        **dict.fromkeys(("out_features", "out_indices", "stage_names"), "of a backbone"),
    }

    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    depths: tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden_sizes", "depths"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._positive("num_channels", "embedding_size")
        sizes = (*self.hidden_sizes, *self.depths)
        if not all(isinstance(n, int) and n > 0 for n in sizes) or not self.depths:
            raise OptionError("hidden_sizes and depths of a ResNet are integers of at least 1")
        if len(self.hidden_sizes) != len(self.depths):
            raise OptionError(
                f"hidden_sizes {self.hidden_sizes} and depths {self.depths} are of the same stages"
            )
        if self.layer_type not in EXPANSION:
            raise OptionError(f"layer_type is 'basic' or 'bottleneck', not {self.layer_type!r}")
        by = EXPANSION[self.layer_type]
        if any(n % by for n in self.hidden_sizes):
            raise OptionError(f"hidden_sizes {self.hidden_sizes} are multiples of {by}")
        need_activation(self.hidden_act, "hidden_act")
        self._count_weights(sum(self.depths), 18 * max(self.hidden_sizes) ** 2 // by**2)

    @classmethod
    def named(cls, layers: int, **settings: Any) -> ResNetConfig:
        """That of torchvision's network of so many layers: 18, 34, 50, 101 or 152; of 1000 classes
        unless `num_labels` says otherwise."""
        if layers not in DEPTHS:
            known = ", ".join(map(str, DEPTHS))
            raise OptionError(f"there are ResNets of {known} layers, not of {layers!r}")
        kind, depths = DEPTHS[layers]
        sizes = tuple(n * EXPANSION[kind] for n in (64, 128, 256, 512))
        given = {"layer_type": kind, "depths": depths, "hidden_sizes": sizes, "num_labels": 1000}
        return cls(**{**given, **settings})


def _conv(size: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(size, out, kernel, stride, kernel // 2, bias=False)


class Downsample(nn.Sequential):
    """What is added where the shape changes: a 1x1 convolution of the input, normalised."""

    def __init__(self, size: int, out: int, stride: int) -> None:
        super().__init__(_conv(size, out, 1, stride), nn.BatchNorm2d(out))


class ResidualBlock(nn.Module):
    """Base of the blocks: `activation(f(x) + shortcut(x))`."""

    activation: str

    def _shortcut(self, size: int, out: int, stride: int) -> Any:
        return Downsample(size, out, stride) if size != out or stride != 1 else None

    def _added(self, y: Tensor, x: Tensor) -> Tensor:
        return self._act(y + (x if self.downsample is None else self.downsample(x)))

    def _act(self, x: Tensor) -> Tensor:
        return activations()[self.activation](x)

    downsample: Any


class BasicBlock(ResidualBlock):
    """Two 3x3 convolutions."""

    def __init__(self, size: int, out: int, stride: int, config: ResNetConfig) -> None:
        self.conv1, self.bn1 = _conv(size, out, 3, stride), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = _conv(out, out, 3), nn.BatchNorm2d(out)
        self.downsample = self._shortcut(size, out, stride)
        self.activation = config.hidden_act

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))  # as in transformers, whatever hidden_act says
        return self._added(self.bn2(self.conv2(y)), x)


class Bottleneck(ResidualBlock):
    """A 1x1 convolution to fewer channels, a 3x3 one, and one back."""

    def __init__(self, size: int, out: int, stride: int, config: ResNetConfig) -> None:
        inner = out // EXPANSION["bottleneck"]
        first, second = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
        self.conv1, self.bn1 = _conv(size, inner, 1, first), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = _conv(inner, inner, 3, second), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = _conv(inner, out, 1), nn.BatchNorm2d(out)
        self.downsample = self._shortcut(size, out, stride)
        self.activation = config.hidden_act

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return self._added(self.bn3(self.conv3(y)), x)


class ResNet(Pretrained):
    """ResNet with its classifier: torchvision's `resnet18` to `resnet152`, transformers'
    `ResNetForImageClassification`.

    `model(images)` of `[B, channels, H, W]` gives logits `[B, num_labels]`; `features(images)` the
    means `[B, hidden]` before the classifier. Parameters have torchvision's names
    (`layer1.0.conv1.weight`), so that `load_state_dict` takes its states; files that
    `from_pretrained` reads may have these or those of transformers, which `save_pretrained` writes.
    The model begins in training, where batches are normalised by their own statistics and running
    ones move on; `from_pretrained` gives it in evaluation.

    `ShapeError` for images with another number of channels or of axes.

    >>> import retrograd as rg
    >>> from retrograd.models import ResNet, ResNetConfig
    >>> config = ResNetConfig.named(18, hidden_sizes=(4, 4, 8, 8), embedding_size=4, num_labels=3)
    >>> model = ResNet(config, generator=rg.random.Generator(0)).eval()
    >>> model(rg.ones((2, 3, 32, 32))).shape
    (2, 3)
    """

    config_class = ResNetConfig
    architecture = "ResNetForImageClassification"
    prefix = "resnet"
    gradient_checkpointing = False

    def _build(self, config: ResNetConfig) -> None:
        block = BasicBlock if config.layer_type == "basic" else Bottleneck
        size = config.embedding_size
        self.conv1 = _conv(config.num_channels, size, 7, 2)
        self.bn1 = nn.BatchNorm2d(size)
        for stage, (out, depth) in enumerate(zip(config.hidden_sizes, config.depths, strict=True)):
            first = 2 if stage or config.downsample_in_first_stage else 1
            strides = [first, *[1] * (depth - 1)]
            sizes = [size, *[out] * (depth - 1)]
            blocks = [block(n, out, s, config) for n, s in zip(sizes, strides, strict=True)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            size = out
        self.fc = nn.Linear(size, config.num_labels)

    def features(self, images: Any) -> Tensor:
        """The means over the places of the last stage, `[B, hidden]`."""
        x = rg.asarray(images)
        if x.ndim != 4 or x.shape[1] != self.config.num_channels:
            raise ShapeError(
                f"ResNet takes images [batch, {self.config.num_channels}, height, width], not of "
                f"the shape {x.shape}"
            )
        x = activations()[self.config.hidden_act](self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(len(self.config.depths)):
            x = getattr(self, f"layer{stage + 1}")(x)
        return rg.mean(x, axis=(2, 3))

    def forward(self, images: Any) -> Tensor:
        return self.fc(self.features(images))

    def _initial(self, name: str, p: Tensor, generator: Generator | None) -> Tensor:
        """As torchvision draws it: convolutions normal by their fan-out, the classifier as any
        `Linear`."""
        options: Any = {"generator": generator}
        if p.ndim == 4:
            return nn.init.kaiming_normal(p.shape, mode="fan_out", nonlinearity="relu", **options)
        if name == "fc.weight":
            return nn.init.kaiming_uniform(p.shape, a=math.sqrt(5), **options)
        if name == "fc.bias":
            bound = 1 / math.sqrt(self.fc.in_features)
            return nn.init.uniform(p.shape, -bound, bound, **options)
        return super()._initial(name, p, generator)

    def _file_names(self) -> dict[str, str]:
        """The names in transformers."""
        return {name: _file_name(name) for name in self._weights()}


def _file_name(name: str) -> str:
    """The name in transformers of a weight: `layer1.0.conv2.weight` is
    `resnet.encoder.stages.0.layers.0.layer.1.convolution.weight` there."""
    parts = name.split(".")
    end = parts[-1]
    if parts[0] == "fc":
        return f"classifier.1.{end}"
    if not parts[0].startswith("layer"):
        return f"resnet.embedder.embedder.{_kind(parts[0])}.{end}"
    place = f"resnet.encoder.stages.{int(parts[0][5:]) - 1}.layers.{parts[1]}"
    if parts[2] == "downsample":
        return f"{place}.shortcut.{('convolution', 'normalization')[int(parts[3])]}.{end}"
    return f"{place}.layer.{int(parts[2][-1]) - 1}.{_kind(parts[2])}.{end}"


def _kind(part: str) -> str:
    return "convolution" if part.startswith("conv") else "normalization"
