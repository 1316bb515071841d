"""Where the thread pool keeps what Python sets, as the header of the C side has it."""

import re
from pathlib import Path

import retrograd
from retrograd.runtime.native import layout

HEADER = (Path(retrograd.__file__).parent / "runtime" / "native" / "runtime.h").read_text()


def test_functions_are_in_the_order_of_the_struct() -> None:
    body = re.search(r"^struct os \{(.*?)^\};", HEADER, re.DOTALL | re.MULTILINE)
    assert body is not None
    lines = [line.split("/*")[0] for line in body[1].splitlines() if ";" in line]
    names = [re.search(r"\(\*(\w+)\)|(\w+);", line) for line in lines]
    assert [m[1] or m[2] for m in names if m] == [*layout.OS_FUNCTIONS]


def test_every_place_is_asserted_by_the_compiler() -> None:
    """One by one in their order, and none of them twice."""
    asserted = layout.assertions()
    others = "WORKER_BYTES", "ALIGNMENT", "CLAIM", "PACE_WORDS"
    places = {
        n: v for n, v in vars(layout).items()
        if n.isupper() and isinstance(v, int) and n not in others
    }  # fmt: skip
    for name, at in places.items():
        assert asserted[f"offsetof(struct pool, {name.lower()})"] == at
    assert len({*places.values()}) == len(places)
    assert max(places.values()) == layout.WORKERS
    assert layout.WORKER_BYTES % layout.ALIGNMENT == layout.WORKERS % layout.ALIGNMENT == 0


def test_the_accelerator_has_room_for_a_pace() -> None:
    source = Path(retrograd.__file__).parent / "accelerate" / "brief_program.h"
    found = re.search(r"^#define PACE_WORDS (\d+)", source.read_text(), re.MULTILINE)
    assert found is not None
    assert int(found[1]) == layout.PACE_WORDS
