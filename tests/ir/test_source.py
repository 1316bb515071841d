"""Where in the user's program we are: the line of whoever calls, below the package itself."""

import sys
from typing import Any

import pytest

import retrograd as rg
from retrograd import errors
from retrograd.ir import Source, source
from retrograd.ir.source import locate, located, user_source


def here():
    """As a function of the package: what calls it is the user."""
    frame = sys._getframe(1)
    return Source(frame.f_code, frame.f_lasti)


@pytest.mark.usefixtures("recorded_first")
def test_the_line_is_the_innermost_one_of_the_user():
    def inner():
        return rg.tensor([1.0, 2.0]) * 3  # this line

    def outer():
        return inner()

    text = str(outer().node.source)
    assert text.startswith(f"{__file__}:")
    assert text.endswith("in inner: return rg.tensor([1.0, 2.0]) * 3  # this line")


@pytest.mark.usefixtures("recorded_first")
def test_layers_are_looked_through_and_callbacks_are_the_user_s():
    layer = rg.nn.Linear(2, 2)
    found = layer(rg.ones((1, 2))).node.source  # the call
    assert found.text.endswith("# the call")
    mapped = rg.trace(rg.vmap(lambda x: rg.exp(x)), rg.spec((3,)))
    (exp,) = (n for n in mapped.nodes if n.op == "exp")
    assert (exp.source.file, exp.source.function) == (__file__, "<lambda>")


def test_below_the_command_a_recipe_is_the_user(monkeypatch):
    """Where no line of a user's is to be found: as if this file were of a recipe."""
    monkeypatch.setitem(source.PLACES, __file__, source.RECIPE)
    found: list[Any] = []
    namespace: dict[str, Any] = {"call": lambda: found.append(user_source())}
    code = compile("def command():\n    recipe(call)\n", "command.py", "exec")
    monkeypatch.setitem(source.PLACES, "command.py", source.TOOL)
    exec(code, namespace)
    namespace["recipe"] = lambda f: f()
    namespace["command"]()
    assert [s.file for s in found] == [__file__]
    assert "append(user_source())" in found[0].text  # not what called that


def test_files_are_told_apart_by_where_they_are():
    package = source.PACKAGE
    for path, where in [
        ("/home/me/model.py", source.USER),
        (package[:-1] + "_extras/a.py", source.USER),
        (package + "cli/main.py", source.TOOL),
        (package + "nn/layers/linear.py", source.RECIPE),
        (package + "optim/sgd.py", source.RECIPE),
        (package + "ir/node.py", source.INSIDE),
    ]:
        assert source._where(path) == where, path


def test_a_refusal_says_once_which_function_was_called_where():
    at = here()
    error = errors.ShapeError("sizes differ")
    for _ in range(2):
        locate(error, "module.f", at)
    assert str(error) == f"sizes differ (module.f at {at})"
    private = errors.ShapeError("sizes differ")
    locate(private, "module._f", at)
    assert str(private) == f"sizes differ (at {at})"
    locate(nowhere := errors.ShapeError("sizes differ"), "f", None)
    assert str(nowhere) == "sizes differ"


def test_located_functions_say_their_line_and_leave_other_errors_alone():
    @located
    def refuse(error):
        raise error

    with pytest.raises(errors.OptionError, match=r"no \(refuse at .*test_source.py:\d+.*# asked"):
        refuse(errors.OptionError("no"))  # asked
    with pytest.raises(KeyError) as caught:
        refuse(KeyError("no"))
    assert caught.value.args == ("no",)
