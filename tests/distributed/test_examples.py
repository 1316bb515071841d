"""The examples of docs/distributed.md run as they stand there, on eight virtual devices."""

import re

import pytest

from tests.distributed.machines import HERE, on_devices

pytest.importorskip("jax")


@pytest.mark.slow
def test_examples(tmp_path):
    text = (HERE / "docs" / "distributed.md").read_text(encoding="utf-8")
    step, start, load, weights, cost = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "initialize" in start  # of several machines
    assert "DistributedSampler" in load
    save = """
rg.io.save_checkpoint("a.safetensors", model=model)
"""
    place = f"import os; os.chdir({str(tmp_path)!r})\n"
    out = on_devices(8, place + step + save + weights + cost)
    assert out.splitlines()[-1].endswith("('model', None)")
