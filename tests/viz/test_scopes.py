"""Scopes are a tree."""

from retrograd.viz.scopes import prefixes, scopes


def test_scopes_are_a_tree():
    assert prefixes("a.b[2].c") == ["a", "a.b", "a.b[2]", "a.b[2].c"]
    tree = scopes(["", "m.a", "m", "m.a", "m.l[0]"])
    assert [(s["path"], s["name"], s["parent"], s["nodes"]) for s in tree] == [
        ("m", "m", None, [2]),
        ("m.a", "a", 0, [1, 3]),
        ("m.l", "l", 0, []),
        ("m.l[0]", "[0]", 2, [4]),
    ]
    assert len(prefixes("." * 10_000)) <= 32
