import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd.ops.elementwise as e
from retrograd.autodiff import gradient
from retrograd.errors import FormatError
from retrograd.ir import Dim, Graph, Node, Op, Provenance, Source, made_by, print_graph, spec
from retrograd.ops.leaf import Constant, input_node
from retrograd.ops.matmul import matmul
from retrograd.ops.reduce import ReduceSum
from retrograd.verify.records import RECORDS
from tests.random_graphs import random_graph
from tests.sampling import examples

TEXT = """\
graph loss {
  %0 x: f32[N, 3] = input
  %1 w: f32[3, 4] = input
  %2: f32[N, 4] = dot_general(%0, %1) a_contract=(1,) b_contract=(0,)  @model.layers[0]
  %3 h: f32[N, 4] = tanh(%2)  @"a \\"scope\\""
  %4: f32[N, 4] = constant value=f32(0.1)
  %5: f32[N, 4] = mul(%3, %4)
  %6: f32[] = reduce_sum(%5) axes=(0, 1)
  return %6, %3
}
"""


def example():
    x, w = input_node(spec((Dim("N"), 3)), "x"), input_node(spec((3, 4)), "w")
    with made_by(Provenance("model.layers[0]")):
        y = matmul(x, w)
    with made_by(Provenance('a "scope"')):
        h = e.tanh(y).renamed("h")
    return Graph([x, w], [ReduceSum((0, 1))(h * 0.1), h], "loss")


def test_what_it_looks_like():
    assert str(example()) == TEXT


def test_parsed_back():
    g = Graph.parse(TEXT)
    assert g == example()
    assert g.name == "loss"
    assert str(g) == TEXT


def test_a_gradient_is_parsed_back():
    g = gradient(example())
    assert Graph.parse(str(g)) == g


def test_subclasses_parse_to_themselves():
    class Mine(Graph):
        __slots__ = ()

    assert type(Mine.parse(TEXT)) is Mine


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda r: r.name)
def test_every_op_is_parsed_back(record):
    for sample in record.samples():
        nodes = sample.nodes()
        y = sample.op(*nodes)
        g = Graph(nodes or [y], [y]) if y.op == "input" else Graph(nodes, [y])
        assert_is_parsed_back(g, record.name)
    for case in record.symbolic:
        nodes = [input_node(t) for t in case.types]
        assert_is_parsed_back(Graph(nodes, [case.op(*nodes)]), record.name)


def assert_is_parsed_back(g, name):
    found = Graph.parse(str(g))
    if name in ("custom", "pure_callback"):  # of a Python function it has the name, and says so
        lines = [line.partition("  # ") for line in str(g).split("\n")]
        assert str(found) == "\n".join(line for line, _, _ in lines)
        assert any("Python" in remark for _, _, remark in lines)
        return
    assert str(found) == str(g)
    assert found == g, str(g)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_random_graphs_are_parsed_back(seed, nodes):
    g = random_graph(seed, nodes)
    text = str(g)
    back = Graph.parse(text)
    assert back == g
    assert back.name == g.name
    assert str(back) == text


@given(st.text(st.characters()), st.text(st.characters()), st.text(st.characters()))
def test_any_name_scope_and_title_survive(name, scope, title):
    x = input_node(spec(()), name)
    with made_by(Provenance(scope)):
        y = e.exp(x).renamed(name)
    back = Graph.parse(str(Graph([x], [y], title)))
    assert (back.name, back.inputs[0].name) == (title, name)
    assert (back.outputs[0].name, back.outputs[0].scope) == (name, scope)


def test_inputs_that_were_cut_out_of_another_graph():
    x = input_node(spec(3), "x")
    a = e.exp(x)
    g = Graph([a], [e.sin(a)])
    assert str(g).splitlines()[1:3] == ["  %0: f32[3] = input", "  %1: f32[3] = sin(%0)"]
    assert Graph.parse(str(g)) == g


def test_graphs_of_nothing():
    for g in (Graph([], []), Graph([input_node(spec(2))], [])):
        assert Graph.parse(str(g)) == g


def test_large_constants_are_exact_and_kept_on_their_line():
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    g = Graph([], [Constant(values, values.shape)()])
    assert len(str(g).splitlines()) == 4
    assert Graph.parse(str(g)) == g


def test_source_lines_are_comments():
    code = test_source_lines_are_comments.__code__
    with made_by(Provenance("", Source(code, 0))):
        x = input_node(spec(()))
        g = Graph([x], [e.exp(x)])
    text = print_graph(g, sources=True)
    assert f"# {__file__}:" in text
    assert Graph.parse(text) == g


def test_layout_comments_and_numbers_are_free():
    text = """
# a comment
graph   f{   # here as well
%7:f32[]=input
    %3 y : f32[ ] = exp( %7 )@s # and here

  return %3,%3
}
"""
    g = Graph.parse(text.replace("\n", "\r\n"))
    assert [n.op for n in g.nodes] == ["input", "exp"]
    assert g.outputs[0] is g.outputs[1]


def damaged(old, new):
    assert old in TEXT
    return TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "line 1: expected 'graph NAME {', found the end of the text"),
        ("\n\nhello", "line 3: expected 'graph NAME {', found 'hello'"),
        (damaged("tanh", "tangh"), "line 5: there is no op named 'tangh'"),
        (damaged("(%2)", "(%9)"), "line 5: expected the number of a node above, found %9"),
        (damaged("(%2)", "(%5)"), "line 5: expected the number of a node above, found %5"),
        (damaged("(%3, %4)", "(%3)"), "line 7: mul takes 2 inputs, not 1"),
        (damaged("(%3, %4)", "(%3, %4"), "line 7: expected inputs such as .%0, %1., found '.%3"),
        (damaged("%5: f32[N, 4]", "%5: f32[N, 5]"), "line 7: the type should be f32.N, 4.: mul"),
        (damaged("%5: f32[N, 4]", "%5: g32[N, 4]"), "line 7: expected"),
        (damaged("%5:", "%4:"), "line 7: expected a new number, found %4 again"),
        (damaged("= mul", "mul"), "line 7: expected '=', found ' mul"),
        (damaged("axes=(0, 1)", "axis=0"), "line 8: expected an attribute of reduce_sum"),
        (damaged("axes=(0, 1)", ""), "line 8: expected the attribute axes of reduce_sum"),
        (damaged("axes=(0, 1)", "axes=(0, 2)"), "line 8: ill-typed: reduce_sum"),
        (damaged("axes=(0, 1)", "axes=7"), "line 8: ill-typed: reduce_sum"),
        (damaged("axes=(0, 1)", "axes=(0, 1) axes=(0, 1)"), "line 8: expected an attribute of"),
        (damaged("axes=(0, 1)", "axes=(0, 1) ?"), "line 8: expected an attribute such as"),
        (damaged(" w:", " x:"), "line 3: expected another name, found a second input 'x'"),
        (damaged("f32(0.1)", "f32[2](0.1, 1)"), "line 6: constant cannot have these attributes"),
        (damaged("return", "retrun"), "line 9: expected a node .*, or 'return', found 'retr"),
        (damaged("  return %6, %3\n}\n", ""), "found the end of the text"),
        (damaged("}", ""), "line 10: expected '}'|expected '}', found the end of the text"),
        (TEXT + "more", "line 11: expected the end of the text, found 'more'"),
        (TEXT[: len(TEXT) // 2], "line"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_line(text, match):
    with pytest.raises(FormatError, match=match):
        Graph.parse(text)


CHARACTERS = "\n\"'%()[]{}=,:@#-+*/._ \t\\`09azNf32é\x00\u2028"


@pytest.mark.slow
@examples(400)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_any_damage_parses_or_is_a_format_error(seed, graph):
    rng = random.Random(seed)
    text = str(random_graph(graph, 25))
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(text)), rng.choice((0, 1, 1, 2, 9))
        other = rng.randrange(len(text))
        insert = rng.choice(("", rng.choice(CHARACTERS), text[other : other + length]))
        text = text[:at] + insert + text[at + length :]
    try:
        g = Graph.parse(text)
    except FormatError:
        return
    assert Graph.parse(str(g)) == g


def test_an_attribute_that_has_no_text_names_the_node():
    @dataclasses.dataclass(frozen=True)
    class Odd(Op):
        name = "odd"
        arity = 1
        table: list

    x = input_node(spec(()))
    with pytest.raises(FormatError, match=r"no way to write \[1, 2\].*attribute table of odd"):
        str(Graph([x], [Node(Odd([1, 2]), (x,), x.type)]))
