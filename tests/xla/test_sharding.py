"""Meshes and specs: what fits, and what is said of what does not."""

import pickle

import pytest

import retrograd as rg
from retrograd.errors import ArgumentError, OptionError, ShapeError
from retrograd.xla.sharding import as_spec, checked_spec, current_mesh
from tests.xla.stand_in import stand_in

jax = pytest.importorskip("jax")


def test_a_mesh_has_as_many_devices_as_its_axes_say():
    mesh = rg.Mesh({"data": 1, "model": 1}, devices=jax.devices()[:1])
    assert mesh.shape == {"data": 1, "model": 1}
    assert mesh.axis_names == ("data", "model")
    assert mesh.size == 1
    assert not mesh.is_multi_process
    with pytest.raises(
        OptionError, match=r"data=2 x model=3 is made of 6 devices, and devices lists 1"
    ):
        rg.Mesh({"data": 2, "model": 3}, devices=jax.devices()[:1])
    with pytest.raises(OptionError, match="xla_force_host_platform_device_count=1024"):
        rg.Mesh({"data": 1024})


@pytest.mark.parametrize(
    ("axes", "error", "said"),
    [
        ({}, OptionError, "at least one axis"),
        ({"data": 0}, OptionError, "at least 1"),
        ({"data": 1.0}, ArgumentError, "an integer"),
        ({"data": True}, ArgumentError, "an integer"),
        ({"a b": 1}, ArgumentError, "a word"),
        ({1: 1}, ArgumentError, "a word"),
        (8, ArgumentError, "sizes by name"),
    ],
)
def test_axes_that_are_none(axes, error, said):
    with pytest.raises(error, match=said):
        rg.Mesh(axes)


def test_the_mesh_of_the_block_is_current():
    mesh = rg.Mesh({"data": 1}, devices=jax.devices()[:1])
    assert current_mesh() is None
    with mesh as entered:
        assert entered is mesh
        assert current_mesh() is mesh
        with mesh:  # again
            assert current_mesh() is mesh
    assert current_mesh() is None
    assert mesh == rg.Mesh({"data": 1}, devices=jax.devices()[:1])
    assert mesh != rg.Mesh({"model": 1}, devices=jax.devices()[:1])
    if len(jax.devices()) == 1:
        assert pickle.loads(pickle.dumps(mesh)) == mesh


def test_a_spec_has_an_entry_for_each_axis():
    mesh = stand_in(data=4, model=2)
    assert checked_spec(("data",), (8, 3), mesh, "x") == ("data", None)
    assert checked_spec("model", (2,), mesh, "x") == ("model",)
    assert checked_spec((("data", "model"), None), (16, 3), mesh, "x") == (("data", "model"), None)
    assert checked_spec((), (), mesh, "x") == () == as_spec(None, "x")
    assert checked_spec(("data",), (0, 3), mesh, "x") == ("data", None)
    assert as_spec(jax.sharding.PartitionSpec("data", None), "x") == ("data", None)


@pytest.mark.parametrize(
    ("spec", "shape", "error", "said"),
    [
        (("data",), (6, 3), ShapeError, r"axis 0 of w, of the shape \(6, 3\), has the size 6"),
        (("data",), (6, 3), ShapeError, "which mesh axis 'data' of size 4 does not divide"),
        ((None, ("data", "model")), (6, 12), ShapeError, "'data' x 'model' of size 8"),
        (("data", None, None), (8, 8), ShapeError, "at least 3 axes"),
        (("dada",), (8,), OptionError, "did you mean 'data'"),
        (("data", "data"), (8, 8), OptionError, "twice"),
        ((0,), (8,), ArgumentError, "not 0"),
        (8, (8,), ArgumentError, "not 8"),
    ],
)  # fmt: skip
def test_specs_that_do_not_fit(spec, shape, error, said):
    with pytest.raises(error, match=said):
        checked_spec(spec, shape, stand_in(data=4, model=2), "w")
