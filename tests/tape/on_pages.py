"""What tapes on pages are compared by, and what they cost."""

from retrograd.eager import listeners, quick_dispatch, trace_buffer


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes()


class Counted:
    """How often something is called that has to do with tapes, nodes or what is not yet known."""

    def __init__(self, monkeypatch):
        self.calls = {}
        for where, name in (
            (quick_dispatch, "_with_listeners"),
            (quick_dispatch, "_look"),
            (trace_buffer, "materialize"),
            (listeners, "registered"),
        ):
            monkeypatch.setattr(where, name, self.counted(name, getattr(where, name)))

    def counted(self, name, f):
        def call(*args, **kwargs):
            self.calls[name] = self.calls.get(name, 0) + 1
            return f(*args, **kwargs)

        return call
