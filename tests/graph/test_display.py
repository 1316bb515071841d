"""Tapes, scalars and failures on pages of the explorer."""

import pytest
from click.testing import CliRunner

import retrograd as rg
from retrograd.cli.main import app
from retrograd.errors import NonFiniteError
from retrograd.viz import loads


def shown(path):
    text = path.read_text(encoding="utf-8")
    return loads(text.partition('id="data">')[2].partition("</script>")[0])


def number(doc, i):
    return doc["values"][str(i)]["data"][0]


def test_a_tape_is_shown_with_its_numbers(tmp_path):
    with rg.Tape() as tape:
        a, b = tape.leaf(2.0, name="a"), tape.leaf(-3.0, name="b")
        y = rg.relu(a * b + 10.0)
        rg.exp(a)  # nobody uses it
    doc = shown(tape.show(y, path=tmp_path / "tape.html", open=False))
    names = {r["name"]: r for r in doc["nodes"]}
    assert number(doc, names["a"]["gradient"]) == -3.0
    assert number(doc, names["b"]["gradient"]) == 2.0
    assert "exp" not in {r["op"] for r in doc["nodes"]}
    everything = shown(tape.show(open=False))
    assert {"exp", "relu"} <= {r["op"] for r in everything["nodes"]}
    assert len(everything["steps"]) == 1  # of the last result, which is the exponential


def test_a_value_is_shown_as_its_own_gradients_say(tmp_path):
    a, b = rg.Value(2.0, label="a"), rg.Value(-3.0, label="b")
    c = (a * b + a**2 - 1.5).relu() + (b / a).tanh() * a - (-b).exp()
    c.backward()
    doc = shown(c.show(path=tmp_path / "value.html", open=False))
    names = {r["name"]: r for r in doc["nodes"]}
    assert number(doc, doc["outputs"][0]) == pytest.approx(c.data)
    assert number(doc, names["a"]["gradient"]) == pytest.approx(a.grad)
    assert number(doc, names["b"]["gradient"]) == pytest.approx(b.grad)
    assert {"relu", "tanh", "exp", "div"} <= {r["op"] for r in doc["nodes"]}


@pytest.mark.slow
def test_a_deep_value_is_shown_without_recursion(tmp_path):
    x, y = rg.Value(1.0, label="x"), rg.Value(2.0, label="y")
    z = x
    for _ in range(5_000):
        z = z + y
    doc = shown(z.show(path=tmp_path / "deep.html", open=False))
    assert number(doc, doc["outputs"][0]) == 10_001.0
    assert len(doc["steps"]) == 5_000


def test_a_lone_value_is_a_graph_too(tmp_path):
    doc = shown(rg.Value(3.0).show(path=tmp_path / "v.html", open=False))
    assert number(doc, 0) == 3.0


def test_debug_writes_the_page_wherever_the_error_comes_from(tmp_path):
    x = rg.tensor([1.0, 0.0])
    with pytest.raises(NonFiniteError) as caught, rg.debug(page=tmp_path / "in.html"):
        rg.log(x).numpy()
    assert caught.value.__notes__ == [f"The page is in {tmp_path / 'in.html'}"]
    assert shown(tmp_path / "in.html")["problem"]["title"].startswith("log gives -inf")
    with rg.debug(page=tmp_path / "none.html"):
        rg.exp(x).numpy()
    assert not (tmp_path / "none.html").exists()
    with pytest.raises(ZeroDivisionError), rg.debug(page=tmp_path / "none.html"):
        raise ZeroDivisionError
    assert not (tmp_path / "none.html").exists()


MODULE = """
import retrograd as rg

def bad():
    x = rg.zeros(3)
    return 1 / x
"""


def test_check_leaves_a_page(tmp_path, monkeypatch):
    (tmp_path / "module_with_nan.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["check", "module_with_nan:bad", "--page", "nan.html"])
    assert found.exit_code == 1
    assert "The page is in nan.html" in found.output
    doc = shown(tmp_path / "nan.html")
    assert doc["nodes"][doc["focus"]]["op"] == "div"
    assert "gives inf in 3 of 3" in doc["problem"]["title"]
