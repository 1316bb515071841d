"""Checkpoints: everything comes back, damage is found, a failed load changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.io import (
    load_checkpoint,
    read_checkpoint_header,
    save_checkpoint,
    save_safetensors,
)


class Box:
    """Something with a state."""

    def __init__(self, value: float, refuses: bool = False) -> None:
        self.value = rg.tensor([value])
        self.refuses = refuses

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.refuses and state["value"].item() != self.value.item():
            raise rg.ShapeError("this box keeps what it has")
        self.value = state["value"]


def test_nested_parts_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    parts: dict[str, Any] = {
        "numbers": {"third": 1 / 3, "inf": float("inf"), "n": -(2**70), "none": None, "yes": True},
        "nested": [{"w": np.arange(3, dtype=np.uint8)}, (1, ("two", []))],
        "text": 'naïve "quotes" \N{SNOWMAN}',
    }
    save_checkpoint(path, **parts)
    found = load_checkpoint(path)
    np.testing.assert_array_equal(found["nested"][0].pop("w"), parts["nested"][0].pop("w"))
    assert found == parts


def test_tensors_come_back_as_tensors_and_arrays_as_arrays(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a", t=rg.ones(2), a=np.ones(2), s=np.float64(3))
    found = load_checkpoint(tmp_path / "a")
    assert isinstance(found["t"], rg.Tensor)
    assert isinstance(found["a"], np.ndarray)
    assert found["s"].shape == ()


def test_the_same_parts_give_the_same_file(tmp_path: Path) -> None:
    for name in "ab":
        save_checkpoint(tmp_path / name, model={"w": rg.ones(2), "b": rg.zeros(3)}, step=1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    generator = rg.random.Generator(3)
    generator.normal((2,)).numpy()
    save_checkpoint(tmp_path / "a", generator=generator)
    other = rg.random.Generator(0)
    load_checkpoint(tmp_path / "a", generator=other)
    assert other.bits((4,)).tolist() == generator.bits((4,)).tolist()


def test_an_optimizer_goes_on_where_it_was(tmp_path: Path) -> None:
    def run(steps: int, model: Any, optimizer: Any) -> Any:
        for _ in range(steps):
            optimizer.zero_grad()
            (model(rg.ones((4, 2))) ** 2).sum().backward()
            optimizer.step()
        return model.weight.numpy().tobytes()

    def fresh() -> Any:
        model = rg.nn.Linear(2, 3, generator=rg.random.Generator(0))
        return model, rg.optim.AdamW(model, lr=0.1)

    model, optimizer = fresh()
    run(3, model, optimizer)
    save_checkpoint(tmp_path / "c", model=model, optimizer=optimizer, keys={3: "a", -1: "b"})
    expected = run(2, model, optimizer)
    again, other = fresh()
    parts = load_checkpoint(tmp_path / "c", model=again, optimizer=other)
    assert run(2, again, other) == expected
    assert parts["keys"] == {3: "a", -1: "b"}


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(rg.DTypeError, match="config/f is a function"):
        save_checkpoint(tmp_path / "a", config={"f": test_what_cannot_be_saved_is_named})
    with pytest.raises(rg.DTypeError, match=r"key 3\.5"):
        save_checkpoint(tmp_path / "a", config={3.5: 1})
    with pytest.raises(rg.DTypeError, match="key 3"):
        save_checkpoint(tmp_path / "a", config={3: 1, "b": 2})
    assert list(tmp_path.iterdir()) == []


def test_a_refused_load_changes_nothing(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a", first=Box(1.0), second=Box(2.0))
    first, second = Box(10.0), Box(20.0, refuses=True)
    with pytest.raises(rg.ShapeError) as caught:
        load_checkpoint(tmp_path / "a", first=first, second=second)
    assert "while loading 'second' from" in caught.value.__notes__[0]
    assert (first.value.item(), second.value.item()) == (10.0, 20.0)
    with pytest.raises(rg.FormatError, match=r"no part 'third'; it has first, second"):
        load_checkpoint(tmp_path / "a", first=first, third=second)


def test_every_truncation_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_checkpoint(path, model={"w": rg.ones((4, 4))}, step=3)
    whole = path.read_bytes()
    for n in {0, 1, 7, 8, 9, 50, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:n])
        with pytest.raises(rg.FormatError) as caught:
            load_checkpoint(path)
        assert str(path) in str(caught.value)


def test_every_flipped_bit_is_found_or_harmless(tmp_path: Path) -> None:
    """A change of the file gives an error, or (in blanks of the header) no change at all."""
    path = tmp_path / "a"
    save_checkpoint(path, model={"w": rg.ones((2,))}, step=3)
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
        try:
            found = load_checkpoint(path)
        except rg.FormatError:
            continue
        assert found["step"] == 3
        assert found["model"]["w"].tolist() == [1.0, 1.0]


def test_damaged_numbers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_checkpoint(path, model={"a": rg.zeros(2), "w": rg.ones(2)})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(rg.FormatError, match="'model/w' are not those that were saved"):
        load_checkpoint(path)


def test_foreign_files(tmp_path: Path) -> None:
    save_safetensors(tmp_path / "a", {"w": rg.ones(1)})
    with pytest.raises(rg.FormatError, match="no checkpoint of retrograd"):
        load_checkpoint(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(rg.FormatError, match="no safetensors file"):
        load_checkpoint(tmp_path / "b")
    for text in ("[]", '{"version": 1}', "nonsense"):
        save_safetensors(tmp_path / "c", {"w": rg.ones(1)}, {"retrograd": text})
        with pytest.raises(rg.FormatError, match="metadata cannot be read"):
            load_checkpoint(tmp_path / "c")
    later = '{"version": 2, "content": {}, "checksum": 0, "checksums": {}}'
    save_safetensors(tmp_path / "d", {"w": rg.ones(1)}, {"retrograd": later})
    with pytest.raises(rg.FormatError, match="format version 2; this retrograd reads version 1"):
        load_checkpoint(tmp_path / "d")


def test_the_header_alone(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a", model={"w": rg.ones(2)}, step=3)
    assert read_checkpoint_header(tmp_path / "a") == {"model": {"w": None}, "step": 3}
