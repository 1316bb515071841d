"""Roles of nodes: told apart by name and by colour, readable on their ground."""

from retrograd import viz
from retrograd.viz.roles import ROLES
from tests.viz import graphs


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_roles_differ_by_name_and_by_fill():
    assert len({role.name for role in ROLES}) == len(ROLES)
    assert len({role.fill for role in ROLES}) == len(ROLES)


def test_black_text_is_readable_on_a_fill():
    """The contrast that WCAG asks of text at its strictest level."""
    assert all((luminance(role.fill) + 0.05) / 0.05 >= 7 for role in ROLES)


def test_nodes_of_documents_have_these_roles():
    names = {role.name for role in ROLES}
    for make in graphs.ALL.values():
        assert {node["role"] for node in viz.document(make())["nodes"]} <= names
