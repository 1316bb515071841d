"""The examples on scalars: small runs that learn, with and without jit."""

import random
from xml.etree import ElementTree

import pytest

import retrograd as rg
from examples import microgpt, moons
from retrograd import micrograd
from retrograd.micrograd import MLP
from retrograd.scalar import RECORDERS


@pytest.fixture(autouse=True, params=list(RECORDERS))
def recorder(request, monkeypatch):
    for place in (rg, microgpt, micrograd.nn):
        monkeypatch.setattr(place, "Value", RECORDERS[request.param])


def test_moons():
    losses = {}
    for name, compiled in (("eager", lambda f: f), ("jit", rg.jit)):
        random.seed(7)
        points, labels = moons.moons(24)
        model = MLP(2, [8, 1])
        step = compiled(moons.training_step(model, points, labels))
        losses[name] = [step(1.0 - 0.02 * k) for k in range(40)]
    assert losses["jit"] == [pytest.approx(x, rel=1e-9) for x in losses["eager"]]
    assert losses["jit"][-1][0] < 0.5 * losses["jit"][0][0]
    assert losses["jit"][-1][1] > losses["jit"][0][1]


def test_the_picture_of_the_moons(tmp_path):
    """The plane under each point has the colour of its score's side."""
    random.seed(7)
    points, labels = moons.moons(24)
    model = MLP(2, [8, 1])
    moons.draw(model, points, labels, str(tmp_path / "moons.svg"))
    drawn = ElementTree.parse(tmp_path / "moons.svg").getroot()
    circles = [e.attrib for e in drawn if e.tag.endswith("circle")]
    rectangles = [e.attrib for e in drawn if e.tag.endswith("rect")]
    assert [c["fill"] for c in circles] == [moons.DARK[label > 0] for label in labels]
    for x, y in ((-1.312, 0.711), (0.013, 0.011), (1.112, -0.411), (2.212, 1.511)):
        (under,) = [
            r["fill"]
            for r in rectangles
            if 0 <= x - float(r["x"]) < float(r["width"])
            and 0 <= -y - float(r["y"]) < float(r["height"])
        ]
        assert under == moons.LIGHT[model([x, y]).data > 0]


def test_microgpt():
    losses = {}
    for name, compiled in (("eager", lambda f: f), ("jit", rg.jit)):
        random.seed(3)
        w = microgpt.weights()
        step = compiled(microgpt.training_step(w))
        name_ = [microgpt.MARK, 0, 21, 0, microgpt.MARK]
        losses[name] = [
            step(name_, 0.01, 1 - 0.85 ** (t + 1), 1 - 0.99 ** (t + 1)) for t in range(12)
        ]
    assert losses["jit"] == pytest.approx(losses["eager"], rel=1e-9)
    assert losses["jit"][-1] < 0.7 * losses["jit"][0]
    assert set(microgpt.sample(w)) <= set(microgpt.LETTERS)
