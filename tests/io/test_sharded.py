"""Several processes write the file that one would write."""

import pytest

from tests.distributed.machines import in_processes

SAVING = """
import sys
import numpy as np, retrograd as rg
from pathlib import Path
from retrograd import distributed as D
from retrograd.io.checkpoint import _encode

number, count, address, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
D.initialize(address, count, number, timeout_s=60)
mesh = rg.Mesh({"data": 2, "model": 2})
rng = np.random.default_rng(0)
kinds = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
bits = rg.asarray(rng.integers(0, 2, (8, 6)) * 3)
plain = {k: bits.astype(getattr(rg, k)) for k in [*kinds.split(), "complex64"]}
long = rg.asarray(rng.standard_normal((64, 4)))
plain |= {"number": rg.asarray(2.5), "empty": rg.zeros((0, 2)), "long": long}
specs = [("data", "model"), ("model",), (None, "model"), (("model", "data"),)]
with rg.backend("xla"), mesh:
    parts = {}
    for i, (name, x) in enumerate(plain.items()):
        parts[name] = D.shard(x, specs[i % 4] if x.size > 1 else ())
    rg.io.save_checkpoint(folder + "/a.safetensors", parts=parts, step=3)
    assert Path(folder, "a.safetensors").read_bytes() == _encode({"parts": plain, "step": 3})
    try:
        rg.io.save_checkpoint(folder + "/none/m.safetensors", parts=parts)
    except OSError as error:
        assert "all hosts see" in str(error), error
    else:
        raise AssertionError("there is no such folder")
    assert [p.name for p in Path(folder).iterdir()] == ["a.safetensors"]
"""


@pytest.mark.slow
def test_a_file_of_all_dtypes_is_that_of_one_process(tmp_path):
    """Byte for byte, with tensors divided over devices of both processes in several ways."""
    pytest.importorskip("jax")
    for code, _, err in in_processes(2, SAVING, str(tmp_path), devices=2):
        assert code == 0, err[-3000:]
