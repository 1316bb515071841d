"""Muon by its formulas in NumPy."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import optim
from tests.optim.steps import MATRICES, MATRIX, moved


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_steps(wide, nesterov, adjust) -> None:
    lr, momentum, decay, (a, b, c) = 0.1, 0.7, 0.2, (3.0, -4.0, 2.0)
    start, gradients = (MATRIX.T, MATRICES.swapaxes(1, 2)) if wide else (MATRIX, MATRICES)
    p, kept, expected = start, 0.0, []
    for g in gradients:
        kept = momentum * kept + (1 - momentum) * g
        u, s, vt = np.linalg.svd(
            (1 - momentum) * g + momentum * kept if nesterov else kept, full_matrices=False
        )
        s = s / np.linalg.norm(s)
        for _ in range(5):  # what the steps do to the singular values
            s = a * s + b * s**3 + c * s**5
        ratio = 0.2 * np.sqrt(3) if adjust else (1 if wide else np.sqrt(1.5))
        p = p - lr * decay * p - lr * ratio * (u * s) @ vt
        expected.append(p)
    found = moved(
        optim.Muon, gradients, start, lr=lr, momentum=momentum, weight_decay=decay,
        nesterov=nesterov, ns_coefficients=(a, b, c), adjust_lr_fn=adjust,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_direction_is_near_orthogonal() -> None:
    (after,) = moved(optim.Muon, MATRICES[:1], MATRIX, lr=1.0, weight_decay=0.0)
    sizes = np.linalg.svd((MATRIX - after) / np.sqrt(1.5), compute_uv=False)
    assert (np.abs(sizes - 1) < 0.35).all()


def test_refusals() -> None:
    with pytest.raises(rg.ShapeError, match=r"shape \(3,\).*AdamW"):
        optim.Muon(rg.nn.Linear(2, 3))
    with pytest.raises(rg.ShapeError, match="for matrices"):
        optim.Muon().init([rg.ones(3)])
    for options in ({"ns_steps": 100}, {"adjust_lr_fn": "other"}, {"ns_coefficients": (1.0, 2.0)}):
        with pytest.raises(rg.OptionError, match=next(iter(options))):
            optim.Muon(**options)
