"""Summaries: counts by hand, shapes, and that the model stays as it is."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError, ShapeError


class Net(nn.Module):
    def __init__(self) -> None:
        self.conv = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8 * 4 * 4, 10)
        self.unused = nn.Linear(2, 2).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.conv(x).reshape((x.shape[0], -1))))


@pytest.fixture
def net() -> Net:
    return Net()


def test_counts_by_hand(net: Net) -> None:
    found = nn.summary(net, (5, 3, 8, 8))
    rows = {row.name: row for row in found.layers}
    assert rows["conv.0"].parameters == 8 * 3 * 9 + 8
    assert rows["conv.0"].flops == 5 * 8 * 64 * (2 * 27 + 1)
    assert rows["conv.0"].output_shape == (5, 8, 8, 8)
    assert rows["conv"].parameters == 224 + 16
    assert rows["conv"].output_shape == (5, 8, 4, 4)
    assert rows["head"].flops == 5 * 10 * (2 * 128 + 1)
    assert (rows["head"].input_shape, rows["head"].calls) == ((5, 128), 1)
    assert (rows["unused"].calls, rows["unused"].output_shape) == (0, None)
    assert found.total_params == 240 + 1290 + 6
    assert found.non_trainable_params == 6
    assert found.parameter_bytes == (1536 + 16) * 4 + 8
    assert found.input_bytes == 5 * 3 * 64 * 4
    # Convolution, norm and activation, then the pool, dropout, and the head.
    assert found.output_bytes == 4 * 5 * (3 * 512 + 128 + 128 + 10)
    assert found.flops == rows[""].flops
    assert found.peak_bytes > found.parameter_bytes
    assert sum(row.parameters for row in found.layers if row.depth == 1) == found.total_params


@pytest.mark.parametrize("mode", ["eval", "train", "same"])
def test_the_model_stays_as_it_is(net: Net, mode: str) -> None:
    before = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    net.conv[1].eval()
    nn.summary(net, (5, 3, 8, 8), mode=mode)
    for name, x in net.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), before[name])
    assert [m.training for _, m in net.named_modules()].count(False) == 1
    assert all("forward" not in vars(m) for m in net.modules())
    assert all(p.grad is None for p in net.parameters())


def test_text(net: Net) -> None:
    text = str(
        nn.summary(net, (3, 8, 8), batch_dim=0, depth=1, col_names=("num_params", "trainable"))
    )
    lines = text.splitlines()
    assert lines[0].split() == ["Module", "Parameters", "Trainable"]
    assert lines[2].split() == ["Net", "1,536", "partly"]
    assert lines[3].split() == ["conv:", "Sequential", "240", "yes"]
    assert lines[6].split() == ["unused:", "Linear", "6", "no"]
    assert "Parameters: 1,536, of which train 1,530" in lines
    assert repr(nn.summary(net)) == str(nn.summary(net))


def test_inputs() -> None:
    both = nn.Bilinear(3, 4, 2)
    by_size = nn.summary(both, [(5, 3), (5, 4)])
    by_data = nn.summary(both, input_data=(np.ones((5, 3)), np.ones((5, 4))))
    named = nn.summary(both, input_data={"input1": rg.ones((5, 3)), "input2": rg.ones((5, 4))})
    for found in (by_size, by_data, named):
        assert found.layers[0].input_shape == ((5, 3), (5, 4))
        assert found.layers[0].output_shape == (5, 2)
    tokens = nn.Sequential(nn.Embedding(10, 4), nn.LSTM(4, 6, batch_first=True))
    rows = nn.summary(tokens, (2, 7), dtypes=[rg.int64]).layers
    assert rows[2].output_shape == ((2, 7, 6), ((1, 2, 6), (1, 2, 6)))
    sized = nn.summary(nn.Linear(3, 2), (rg.Dim("N"), 3))
    assert str(sized.flops) == "14*N"
    attention = nn.GroupedQueryAttention(8, 2)
    cached = nn.summary(attention, (1, 1, 8), cache=attention.make_cache(1, 4))
    assert cached.layers[0].calls == 1


def test_modules_that_are_shared_count_once() -> None:
    layer = nn.Linear(3, 3)
    found = nn.summary(nn.Sequential(layer, nn.Tanh(), layer), (2, 3))
    assert found.total_params == 12
    assert [row.calls for row in found.layers] == [1, 2, 1]
    assert found.layers[1].flops == 2 * 2 * 3 * 7


def test_refusals(net: Net) -> None:
    with pytest.raises(OptionError, match="column 'size'"):
        nn.summary(net, (1, 3, 8, 8), col_names=("size",))
    with pytest.raises(OptionError, match="not both"):
        nn.summary(net, (1, 3, 8, 8), net)
    with pytest.raises(OptionError, match="mode"):
        nn.summary(net, (1, 3, 8, 8), mode="test")
    with pytest.raises(OptionError, match="as many dtypes"):
        nn.summary(net, (1, 3, 8, 8), dtypes=[rg.float32, rg.float32])
    with pytest.raises(ShapeError) as error:
        nn.summary(net, (1, 4, 8, 8))
    assert any("conv[0]" in note for note in error.value.__notes__)
    assert all("forward" not in vars(m) for m in net.modules())


def test_the_table_of_a_notebook_says_what_the_text_does():
    model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.ReLU(), rg.nn.Linear(8, 1))
    found = rg.nn.summary(model, (32, 4))
    root = ET.fromstring(found._repr_html_())
    words = [w for r in root.iter("tr") for c in r for w in "".join(c.itertext()).split()]
    lines = str(found).splitlines()
    assert words == [w for line in (lines[0], *lines[2:6]) for w in line.split()]
    assert "Parameters: 49, of which train 49" in "".join(root.itertext())
