"""Buffers: what becomes of them in a module, and what they copy."""

import numpy as np

import retrograd as rg
from retrograd import nn


def test_a_buffer_is_registered_by_assignment_and_is_a_plain_tensor_then() -> None:
    data = np.arange(3.0)

    class Kept(nn.Module):
        def __init__(self) -> None:
            self.saved = nn.Buffer(data)
            self.scratch = nn.Buffer(data, persistent=False)

    m = Kept()
    data[0] = 7
    assert m.saved.tolist() == [0, 1, 2]
    assert type(m.saved) is rg.Tensor
    assert [n for n, _ in m.named_buffers()] == ["saved", "scratch"]
    assert list(m.state_dict()) == ["saved"]
    assert not m.saved.requires_grad
    m.saved = m.saved + 1  # type: ignore[assignment]
    assert m.state_dict()["saved"].tolist() == [1, 2, 3]
