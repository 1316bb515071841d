"""ResNet against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import ResNet, ResNetConfig
from retrograd.models.resnet import _file_name
from tests.models import numpy_models
from tests.models.conftest import RESNET_SIZES, arrays, randomized

IMAGES = np.random.default_rng(3).normal(size=(2, 3, 18, 14))
SHAPES = {
    "basic": RESNET_SIZES,
    "bottleneck": replace(RESNET_SIZES, layer_type="bottleneck"),
    "strides elsewhere": replace(
        RESNET_SIZES,
        layer_type="bottleneck",
        downsample_in_first_stage=True,
        downsample_in_bottleneck=True,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_logits(name):
    model = randomized(ResNet(SHAPES[name], dtype=rg.float64))
    wanted = [numpy_models.resnet(SHAPES[name], arrays(model), x) for x in IMAGES]
    np.testing.assert_allclose(model(IMAGES).numpy(), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("layers", "count"),
    [
        (18, 11689512),
        (50, 25557032),
        pytest.param(34, 21797672, marks=pytest.mark.slow),
        pytest.param(101, 44549160, marks=pytest.mark.slow),
        pytest.param(152, 60192808, marks=pytest.mark.slow),
    ],
)
def test_as_many_parameters_as_torchvision(layers, count):
    """The numbers stand in torchvision's documentation of each."""
    with rg.nn.init.skip_init():
        model = ResNet(ResNetConfig.named(layers))
    assert sum(p.size for p in model.parameters()) == count


def test_names_in_transformers():
    known = {
        "conv1.weight": "resnet.embedder.embedder.convolution.weight",
        "bn1.running_mean": "resnet.embedder.embedder.normalization.running_mean",
        "layer2.1.conv3.weight": "resnet.encoder.stages.1.layers.1.layer.2.convolution.weight",
        "layer1.0.bn2.bias": "resnet.encoder.stages.0.layers.0.layer.1.normalization.bias",
        "layer4.0.downsample.0.weight": (
            "resnet.encoder.stages.3.layers.0.shortcut.convolution.weight"
        ),
        "layer4.0.downsample.1.num_batches_tracked": (
            "resnet.encoder.stages.3.layers.0.shortcut.normalization.num_batches_tracked"
        ),
        "fc.bias": "classifier.1.bias",
    }
    assert {name: _file_name(name) for name in known} == known


@pytest.mark.slow
def test_training_moves_the_statistics():
    model = randomized(ResNet(RESNET_SIZES)).train()
    before = model.state_dict()["layer1.0.bn1.running_mean"].numpy()

    def loss(m):
        return rg.nn.functional.cross_entropy(m(IMAGES.astype(np.float32)), rg.tensor([0, 1])), m

    slopes, trained = rg.grad(loss, has_aux=True)(model)
    assert (trained.layer1[0].bn1.running_mean.numpy() != before).all()
    assert all(np.isfinite(g.numpy()).all() for g in slopes.parameters())
    assert slopes.conv1.weight.numpy().any()


def test_wrong_calls():
    model = randomized(ResNet(RESNET_SIZES))
    with pytest.raises(rg.ShapeError, match=r"images \[batch, 3, height, width\]"):
        model(np.zeros((2, 1, 8, 8), np.float32))
    with pytest.raises(rg.OptionError, match="ResNets of 18, 34, 50, 101, 152 layers, not of 20"):
        ResNetConfig.named(20)
    for change, said in (
        ({"depths": (1,)}, "of the same stages"),
        ({"depths": (0, 1)}, "integers of at least 1"),
        ({"layer_type": "wide"}, "'basic' or 'bottleneck'"),
        ({"layer_type": "bottleneck", "hidden_sizes": (6, 8)}, "are multiples of 4"),
    ):
        with pytest.raises(rg.OptionError, match=said):
            replace(RESNET_SIZES, **change)
