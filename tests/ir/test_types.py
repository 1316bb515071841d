import numpy as np
import pytest

from retrograd.errors import ShapeError
from retrograd.ir import Dim, TensorType, as_shape, float32, int64, spec

N = Dim("N")


def test_text_names_dtype_and_shape():
    assert str(spec((N, 3))) == "f32[N, 3]"
    assert str(spec((), "int64")) == "i64[]"
    assert str(spec((2 * N + 1,), bool)) == "b1[2*N + 1]"


def test_equality_and_hash_go_by_dtype_and_shape():
    assert spec((N, 2)) == spec((N, 2), float)
    assert hash(spec((N + 1 - 1, 2))) == hash(spec((N, 2)))
    assert spec((2, 3)) != spec((3, 2))
    assert spec(3) != spec(3, int64)


def test_size_rank_and_names():
    t = spec((N, 4, Dim("M")))
    assert t.rank == 3
    assert t.size == 4 * N * Dim("M")
    assert t.dim_names == {"N", "M"}
    assert not t.is_static
    assert t.bind({"N": 2, "M": 5}) == TensorType(float32, (2, 4, 5))


def test_shapes_are_made_of_what_counts():
    assert as_shape(3) == (3,)
    assert as_shape(N) == (N,)
    assert as_shape([np.int32(2), N]) == (2, N)
    assert all(type(d) is int for d in as_shape(np.array([2, 3])))


@pytest.mark.parametrize(("shape", "match"), [((2, -1), "not negative"), ((2.0,), "integers")])
def test_other_shapes_are_errors(shape, match):
    with pytest.raises(ShapeError, match=match):
        as_shape(shape)
