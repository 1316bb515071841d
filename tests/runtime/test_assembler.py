"""From text to object code: kept in the store, under a key of all that the code depends on."""

import ctypes
from pathlib import Path

import pytest
from llvmlite import binding as llvm

from retrograd.runtime import disk_cache
from retrograd.runtime.assembler import Assembler, lies_together

TEXT = """define i64 @triple(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(disk_cache.VARIABLE, str(tmp_path))
    return tmp_path


def test_code_is_linked_and_runs() -> None:
    for near in (False, True):
        assembler = Assembler("", "", 0, near)
        code = assembler.assemble(TEXT).code
        builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("triple")
        library = builder.link(assembler.linker(), "test")
        triple = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library["triple"])
        assert triple(-7) == -21


def test_equal_texts_are_compiled_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Assembler("", "")
    code = first.assemble(TEXT)
    again = Assembler("", "")
    monkeypatch.setattr(again, "compile", lambda text: pytest.fail("compiled twice"))
    assert again.assemble(TEXT) == code


def test_another_cpu_level_or_text_is_another_key(store: Path) -> None:
    keys = {
        Assembler(*how).assemble(text).key
        for how in (("", ""), ("x86-64", ""), ("", "", 1), ("", "", 2, True))
        for text in (TEXT, TEXT.replace("3", "4"))
        if how[0] == "" or lies_together(_triple())
    }
    assert len(keys) == (8 if lies_together(_triple()) else 6)


def test_an_option_of_llvm_holds_while_code_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is set back whatever happens, and an LLVM that may not know it is not asked."""
    asked: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda name, option: asked.append(option))
    assembler = Assembler("", "")
    assembler.compile(TEXT)
    assert asked == ["-disable-lsr=true", "-disable-lsr=false"]
    with pytest.raises(RuntimeError, match="wrong"):
        assembler.compile("wrong")
    assert asked[-1] == "-disable-lsr=false"
    asked.clear()
    monkeypatch.setattr(llvm, "llvm_version_info", (99, 0, 0))
    assembler.compile(TEXT)
    assert asked == []


def _triple() -> str:
    return str(llvm.get_process_triple())


def test_where_parts_lie_together() -> None:
    assert lies_together("x86_64-unknown-linux-gnu")
    assert not lies_together("aarch64-unknown-linux-gnu")
    assert not lies_together("x86_64-apple-darwin23")
