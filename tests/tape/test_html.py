"""Tapes in notebooks."""

import retrograd as rg
from tests.notebook.test_array import well_formed


def rows(tape):
    root = well_formed(tape._repr_html_())
    return [["".join(c.itertext()) for c in r.findall("td")] for r in root.iter("tr")][1:]


def test_entries_with_values_parents_and_what_is_frozen():
    tape = rg.Tape()
    x = tape.leaf([1.0, float("nan")], name="<x>")
    c = tape.leaf(2.0, requires_grad=False)
    y = x * c
    found = rows(tape)
    assert found[0][:4] == ["%0", "<x>", "input", ""]
    assert found[0][5] == "[ 1., nan]"
    assert found[1][6] == "frozen"
    last = next(r for r in found if r[2] == "mul")
    assert last[4:7] == ["float32 [2]", "[ 2., nan]", "yes"]
    assert "y = x * c" in last[7]
    assert tape.backward_dense(y, seed=[1.0, 1.0])[0].tolist() == [2.0, 2.0]


def test_a_long_tape_has_its_first_and_last_entries():
    tape = rg.Tape()
    x = tape.leaf(rg.ones((3, 3)))
    for _ in range(200):
        x = x * 1.0
    found = rows(tape)
    assert len(found) == 51
    assert found[25][0] == "…"
    assert found[-1][0] == f"%{len(tape) - 1}"
    assert found[-1][5] == "1 to 1"


def test_without_entries_and_after_the_end():
    tape = rg.Tape()
    assert "0 entries" in tape._repr_html_()
    tape.leaf(1.0)
    tape.finish()
    assert "finished" in tape._repr_html_()
    tape.reset()
    assert "0 entries" in tape._repr_html_()
