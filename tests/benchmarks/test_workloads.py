"""The workloads: what retrograd computes in the first steps is what plain NumPy does."""

from typing import Any

import numpy as np
import pytest

from benchmarks.harness.catalog import ALL, STEPS, check_peers, find, select, select_peers
from benchmarks.harness.workload import LIBRARIES, Session, Unavailable, library
from benchmarks.workloads import chain, elementwise, gcn, mlp, moons


def first(session: Session, n: int) -> list[float]:
    return [next(session.losses) for _ in range(n)]


def session_of(workload: str, peer: str) -> Session:
    try:
        return find(workload).peers[peer]()
    except Unavailable as reason:
        pytest.skip(str(reason))
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


def moons_by_hand(steps: int) -> list[float]:
    """Losses of W2 with derivatives written out, in float64."""
    x, y = (a.astype(float) for a in moons.points())
    p = [a.astype(float) for a in moons.weights()]
    losses = []
    for _ in range(steps):
        h1 = np.maximum(x @ p[0] + p[1], 0)
        h2 = np.maximum(h1 @ p[2] + p[3], 0)
        margin = 1 - y * (h2 @ p[4] + p[5])[:, 0]
        losses.append(np.maximum(margin, 0).mean() + 1e-4 * sum((w * w).sum() for w in p))
        g3 = (-y * (margin > 0) / len(y))[:, None]
        g2 = (g3 @ p[4].T) * (h2 > 0)
        g1 = (g2 @ p[2].T) * (h1 > 0)
        slopes = [x.T @ g1, g1.sum(0), h1.T @ g2, g2.sum(0), h2.T @ g3, g3.sum(0)]
        p = [w - 0.01 * (g + 2e-4 * w) for w, g in zip(p, slopes, strict=True)]
    return losses


PEERS = ["retrograd", "retrograd-eager", "retrograd-scan"]


@pytest.mark.parametrize("peer", [*PEERS, pytest.param("micrograd", marks=pytest.mark.slow)])
def test_moons(peer: str) -> None:
    steps = 3 if peer == "micrograd" else 10
    losses = first(session_of("W2", peer), steps)
    assert losses == pytest.approx(moons_by_hand(steps), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["retrograd", "retrograd-eager", "retrograd-scan"])
@pytest.mark.sample(1)
def test_microgpt_is_the_model_in_scalars(peer: str) -> None:
    expected = list(session_of("W1", "python").losses)
    assert first(session_of("W1", peer), len(expected)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_mlp_begins_with_the_loss_of_its_weights() -> None:
    x, y = mlp.batches(np.asarray)[0]
    z = mlp.layers([w.astype(float) for w in mlp.weights()], x, lambda a: np.maximum(a, 0))
    expected = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).mean()
    for peer in ("retrograd", "retrograd-eager"):
        assert first(session_of("W3", peer), 1) == pytest.approx([expected], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["retrograd", "torch_geometric"])
@pytest.mark.parametrize("workload", ["W6-dense", "W6-sparse"])
@pytest.mark.sample(1)
def test_gcn_begins_with_the_loss_of_its_weights(workload: str, peer: str) -> None:
    d, p = gcn.data(), [w.astype(float) for w in gcn.weights()]

    def propagate(h: Any, w: Any) -> Any:
        y = np.zeros((gcn.NODES, h.shape[1]))
        np.add.at(y, d.target, h[d.source] * w[:, None])
        return y

    z = gcn.logits(p, lambda w: d.x @ w, propagate, lambda a: np.maximum(a, 0))
    expected = (np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), d.y]).mean()
    assert first(session_of(workload, peer), 1) == pytest.approx([expected], rel=1e-5)


@pytest.mark.parametrize("peer", ["retrograd-eager", "retrograd-value"])
def test_chains_recorded(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "LENGTH", 50)
    y, slope = chain.START, 1.0
    expected: list[float] = []
    for n in range(1, 51):
        y = np.tanh(1.001 * y + 0.01)
        slope *= 1.001 * (1 - y * y)
        if n in (chain.SHORT, 50):
            expected = [y, slope, *expected]
    assert list(session_of("W8-eager", peer).losses) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["jit", "eager"])
@pytest.mark.parametrize("size", [1, 64])
def test_elementwise(kind: str, size: int) -> None:
    peer = "retrograd" if kind == "jit" else "retrograd-eager"
    x, a, b = elementwise.NUMBERS
    session = session_of(f"W9-{kind}-{size}", peer)
    expected = [size * elementwise.chain(x, a, b), a**50]
    assert first(session, 2) == pytest.approx(expected, rel=1e-4)


def test_names_stand_for_workloads_and_peers() -> None:
    assert [w.name for w in select(["w6", "W1", "W6-dense"])] == ["W6-dense", "W6-sparse", "W1"]
    assert select([]) == list(ALL)
    with pytest.raises(ValueError, match="no workload 'W10'"):
        select(["W10"])
    assert select_peers(find("W2"), ["jax", "torch-compile"]) == [
        "jax",
        "jax-scan",
        "torch-compile",
    ]
    assert "torch-compile" not in select_peers(find("W2"), [])
    assert select_peers(find("W2"), ["all"]) == list(find("W2").peers)
    with pytest.raises(ValueError, match="no peer 'nobody'"):
        check_peers(["nobody"])


def test_the_catalog_is_consistent() -> None:
    names = [w.name for w in ALL]
    assert len(set(names)) == len(names)
    for workload in STEPS:
        assert all(library(p) in LIBRARIES for p in workload.peers)
        assert workload.optional <= set(workload.peers)
        assert all({t.peer, t.against} <= set(workload.peers) for t in workload.targets)
        assert all({c.peer, c.against} <= set(workload.peers) for c in workload.claims)
        assert workload.unlike < set(workload.peers)
