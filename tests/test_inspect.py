"""The name that `retrograd.viz` had first."""

import retrograd as rg
from retrograd import inspect, viz


def test_it_is_viz_by_another_name():
    graph = rg.trace(lambda x: rg.sin(x), rg.spec(()))
    assert inspect.to_dot(graph) == viz.to_dot(graph)
    assert {name: getattr(inspect, name) for name in inspect.__all__} == {
        name: getattr(viz, name) for name in viz.__all__
    }
