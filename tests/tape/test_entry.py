"""What stands on a tape: entries, and hooks on them."""

import numpy as np
import pytest

import retrograd as rg
from tests.tape.worked_example import worked_example

pytestmark = pytest.mark.usefixtures("reference")


def test_entries_are_open_to_inspection():
    tape, f = worked_example()
    assert [e.op for e in tape] == ["input", "input", "input", "mul", "add", "relu"]
    assert [e.parents for e in tape] == [(), (), (), (0, 1), (3, 2), (4,)]
    assert [e.name for e in tape][:3] == ["a", "b", "d"]
    assert [e.value.item() for e in tape] == [2, 3, 1, 6, 7, 7]
    assert tape[-1].node is f.node
    assert len(tape) == 6
    with pytest.raises(IndexError, match="6 entries"):
        tape[6]


def test_hooks_see_and_replace_gradients():
    tape = rg.Tape()
    x = tape.leaf([1.0, 2.0], name="x")
    y = x * x
    z = y.sum() + (y * 2).sum()
    seen = []
    first = tape.register_hook(y, lambda g: seen.append(g.tolist()))
    second = tape.register_hook(y, lambda g: np.clip(g, 0, 1))
    assert tape.backward_dense(z)[0].tolist() == [2, 4]
    assert seen == [[3, 3]]  # complete: both uses have contributed
    assert tape.backward_sparse(z)[1].tolist() == [1, 1]
    first.remove()
    second.remove()
    second.remove()
    assert tape.backward_dense(z)[0].tolist() == [6, 12]
    assert len(seen) == 2
    last = tape.register_hook(x, lambda g: -g)
    assert tape.backward_dense(z)[0].tolist() == [-6, -12]
    last.remove()
    wrong = tape.register_hook(y, lambda g: np.ones(3, np.float32))
    with pytest.raises(rg.ShapeError, match="hook returned for entry 1"):
        tape.backward_dense(z)
    wrong.remove()
    with pytest.raises(rg.GradientError, match="frozen"):
        tape.register_hook(tape.leaf(1.0, requires_grad=False), print)
    with pytest.raises(rg.OptionError, match="hook"):
        tape.register_hook(x, 3)  # type: ignore[arg-type]
