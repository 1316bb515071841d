"""The reference holds every public name, as the modules themselves list them."""

import inspect
import types

import pytest

import retrograd as rg
from scripts.site import commands, entries, markdown, reference
from scripts.site.entries import ROOT, Entry


def test_no_public_name_is_missing():
    found = {e.name for page in reference.pages() for e in page.entries}
    for word in rg.__all__:
        value = getattr(rg, word)
        if not isinstance(value, types.ModuleType):
            assert f"rg.{word}" in found
        else:
            for inner in getattr(value, "__all__", []):
                if not isinstance(getattr(value, inner), types.ModuleType):
                    assert f"rg.{word}.{inner}" in found
    assert {"rg.nn.functional.relu", "rg.nn.utils.rnn.pad_sequence", "rg.tree.map"} <= found
    assert len(found) == sum(len(page.entries) for page in reference.pages())


@pytest.mark.slow
def test_every_name_has_a_heading_a_summary_and_its_source():
    for page in reference.pages():
        text = reference.text(page, lambda path, place: f"{place.file}:{place.line}")
        for entry in page.entries:
            assert f"{{ #{entry.anchor} " in text
            assert entries.summary(entry), entry.name
            place = entries.place(entry)
            if entry.kind != "value":
                assert place is not None, entry.name
                assert f"[Source]({place.file}:{place.line})" in text


@pytest.mark.parametrize("name", ["rg.sin", "rg.nn.Linear", "rg.profile", "rg.fft.rfft"])
def test_a_source_is_the_line_of_the_definition(name):
    place = entries.place(entries.entries()[name])
    lines = (ROOT / place.file).read_text(encoding="utf-8").splitlines()
    around = "\n".join(lines[place.line - 1 : place.line + 4])
    assert f"{name.rpartition('.')[2]}" in around


def test_all_methods_of_a_tensor_are_there():
    found = {m.word for m in entries.members(entries.entries()["rg.Tensor"])}
    expected = {
        word
        for word in dir(rg.Tensor)
        if not word.startswith("_") and inspect.isroutine(getattr(rg.Tensor, word))
    }
    assert expected - found == set()
    assert {"shape", "grad", "ndim"} <= found


def test_members_of_a_public_base_stand_there_only():
    inner = {m.word for m in entries.members(entries.entries()["rg.nn.Linear"])}
    assert "state_dict" not in inner
    assert "state_dict" in {m.word for m in entries.members(entries.entries()["rg.nn.Module"])}
    assert not entries.members(entries.entries()["rg.nn.HuberLoss"])
    inner = {m.word for m in entries.members(entries.entries()["rg.nn.Parameter"])}
    assert "abs" not in inner


def test_a_name_of_no_subject_is_an_error():
    stranger = types.FunctionType((lambda: None).__code__, {}, "stranger")
    stranger.__module__ = "retrograd.nowhere"
    with pytest.raises(LookupError, match=r"rg\.stranger, defined in retrograd\.nowhere"):
        reference.subject_of(Entry("rg.stranger", stranger))


def sample(x: "int", /, *values: float, scale: float = 1.0, f=max, **options: "str"):
    """The sum `a. b` of it: so."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (sample, "sample(x: int, /, *values: float, scale: float = 1.0, f=max, **options: str)"),
        (lambda a, *, b=2: a, "sample(a, *, b=2)"),
        (property(lambda self: 1), "sample"),
    ],
)  # fmt: skip
def test_signatures(value, expected):
    found = entries.signature(Entry("rg.sample", value))
    assert found.replace(",\n)", ")").replace("(\n    ", "(").replace(",\n    ", ", ") == expected


def test_long_signatures_have_a_line_for_each_parameter():
    text = entries.signature(entries.entries()["rg.train.fit"])
    assert len(text.splitlines()) == 3 + len(inspect.signature(rg.train.fit).parameters)
    assert "    optimizer: Optimizer,\n" in text


def test_the_first_sentence_is_the_summary():
    assert entries.summary(Entry("rg.sample", sample)) == "The sum `a. b` of it"


def test_docstrings_as_markdown():
    made = markdown.of_docstring(
        "A * b of `x * y` < 3:\n- one\n- two\n\n>>> 1 + 1  # doctest: +SKIP\n2\n\nEnd."
    )
    assert made.splitlines() == [
        "A \\* b of `x * y` &lt; 3:", "", "- one", "- two", "", "",
        "```pycon", ">>> 1 + 1", "2", "```", "", "End.",
    ]  # fmt: skip


def test_lists_in_lists_are_indented_by_four():
    made = markdown.with_lists("Text:\n- one\n  more\n  - inner\n- two\n\n```\n- code\n```\n")
    assert made == "Text:\n\n- one\n    more\n    - inner\n- two\n\n```\n- code\n```\n"


def test_every_command_is_there():
    text = commands.text()
    for name in ("train gpt", "view", "check", "convert", "info"):
        assert f"## `retrograd {name}`\n" in text
    assert "`--resume" in text
