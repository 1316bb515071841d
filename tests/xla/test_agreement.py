"""What processes tell each other before they do something together."""

from types import SimpleNamespace

import pytest

import retrograd as rg
from retrograd.xla import agreement


class Store:
    """A key-value store, as of JAX's coordinator, in which nobody else writes any more."""

    def __init__(self, **entries):
        self.entries = entries

    def key_value_set(self, key, value):
        self.entries[key.rpartition("/")[2]] = value

    def blocking_key_value_get(self, key, timeout_ms):
        try:
            return self.entries[key.rpartition("/")[2]]
        except KeyError:
            raise RuntimeError("DEADLINE_EXCEEDED: GetKeyValue() timed out") from None


@pytest.fixture
def first(monkeypatch):
    """This process is the first of two."""

    def of(store):
        monkeypatch.setattr(agreement, "RUN", agreement.AgreedRun(0, 2, 0.5))
        state = SimpleNamespace(client=store, process_id=0, num_processes=2)
        monkeypatch.setattr(agreement, "_state", lambda: state)

    return of


def test_one_process_agrees_with_itself():
    agreement.agree("anything", "content")
    assert agreement.any_of(True)
    assert not agreement.any_of(False)
    assert agreement.first_says(3.0) == 3.0
    assert agreement.is_main()
    assert not agreement.is_several()


def test_the_same_and_something_else(first):
    said = Store()
    first(said)
    with pytest.raises(rg.DistributedTimeoutError, match=r"process 1 did not come within 0\.5 s"):
        agreement.agree("runs step", "graph")
    mine = Store()
    first(mine)
    mine.entries["1"] = f"{agreement.hashlib.sha256(b'graph').hexdigest()} runs step"
    agreement.agree("runs step", "graph")
    assert mine.entries["verdict"] == "same"
    mine.entries["1"] = "0 runs eval"
    with pytest.raises(rg.DistributedError, match="process 1 runs eval, where process 0 runs step"):
        agreement.agree("runs step", "graph")
    mine.entries["1"] = "0 runs step"
    with pytest.raises(rg.DistributedError, match="runs step of the same name, but not the same"):
        agreement.agree("runs step", "graph")


def test_failures_of_a_connection_are_told():
    with (
        pytest.raises(rg.DistributedError, match="a process that this one computes with has ended"),
        agreement.collective(True),
    ):
        raise ValueError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer")
    with pytest.raises(ValueError, match="another"), agreement.collective(True):
        raise ValueError("another")
    with pytest.raises(ValueError, match="Gloo"), agreement.collective(False):
        raise ValueError("Gloo")


def test_a_result_that_does_not_come(monkeypatch):
    monkeypatch.setattr(agreement, "RUN", agreement.AgreedRun(0, 2, 0.05))
    agreement.awaited(SimpleNamespace(is_ready=lambda: True))
    with pytest.raises(rg.DistributedTimeoutError, match=r"has not ended within 0\.05 s"):
        agreement.awaited(SimpleNamespace(is_ready=lambda: False))
