"""Fused layers do what both did."""

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.errors import OptionError

rng = np.random.default_rng(0)


def norm(make: Any, n: int, **options: Any) -> Any:
    m = make(n, dtype=rg.float64, **options)
    for name, x in [*m.named_parameters(), *m.named_buffers()]:
        if name != "num_batches_tracked":
            x.replace(rng.uniform(0.5, 2, n))
    return m.eval()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_fused(bias: bool, affine: bool) -> None:
    cases: list[Any] = [
        (nn.Linear(3, 4, bias, dtype=rg.float64), nn.BatchNorm1d, (5, 3), False),
        (nn.Conv2d(3, 4, 2, bias=bias, dtype=rg.float64), nn.BatchNorm2d, (2, 3, 5, 5), False),
        (nn.ConvTranspose2d(3, 4, 2, bias=bias, dtype=rg.float64), nn.BatchNorm2d, (2, 3, 5, 5),
         True),
    ]  # fmt: skip
    for layer, make, shape, transpose in cases:
        bn, x = norm(make, 4, affine=affine), rng.normal(size=shape)
        layer.eval()
        before = layer.weight.numpy().copy()
        if isinstance(layer, nn.Linear):
            fused = nn.utils.fuse_linear_bn_eval(layer, bn)
        else:
            fused = nn.utils.fuse_conv_bn_eval(layer, bn, transpose)
        np.testing.assert_allclose(fused(x).numpy(), bn(layer(x)).numpy(), rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(layer.weight.numpy(), before)
        assert type(fused) is type(layer)


def test_refusals() -> None:
    with pytest.raises(OptionError, match=r"eval\(\)"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 2), nn.BatchNorm1d(2))
    bare = nn.BatchNorm1d(2, track_running_stats=False).eval()
    with pytest.raises(OptionError, match="without running statistics"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 2).eval(), bare)
