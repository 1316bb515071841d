"""C is told of the classes there are once."""

import pytest

import retrograd as rg
from retrograd.accelerate import is_compiled
from retrograd.eager.immediate.install import install_immediate


@pytest.mark.skipif(not is_compiled("immediate"), reason="no C compiler was found")
def test_a_second_time_is_refused():
    with pytest.raises(RuntimeError, match="installed already"):
        install_immediate(rg.Tensor, lambda: False)
    assert (rg.tensor([1.0]) + 1).tolist() == [2]
