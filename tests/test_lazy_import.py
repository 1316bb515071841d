"""Names whose modules are imported when they are first asked for."""

import subprocess
import sys
import threading
import types

import pytest

from retrograd.lazy_import import attach, need


@pytest.fixture
def package(monkeypatch):
    made = types.ModuleType("made_for_a_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    vars(made).update(__getattr__=attach(made.__name__, {"path": "os.path"}, {"sleep": "time"}))
    return made


def test_a_name_is_a_module_or_what_a_module_has(package):
    import os
    import time

    assert package.path is os.path
    assert package.sleep is time.sleep


def test_a_name_is_looked_for_once(package):
    assert not {"path", "sleep"} & set(vars(package))
    package.path  # noqa: B018
    package.sleep  # noqa: B018
    del package.__getattr__
    assert package.path is not None
    assert package.sleep is not None


def test_what_is_not_there(package):
    with pytest.raises(AttributeError, match="'made_for_a_test' has no attribute 'more'"):
        package.more  # noqa: B018


@pytest.mark.parametrize("name", ["retrograd.viz", "retrograd.onnx"])
def test_a_lazy_package_has_all_that_it_lists_and_imports_none_of_it(name):
    code = (
        "import sys, importlib\n"
        f"package = importlib.import_module({name!r})\n"
        f"inner = [m for m in sys.modules if m.startswith({name + '.'!r})]\n"
        "assert not inner, inner\n"
        "assert set(package.LATER_NAMES) == set(package.__all__)\n"
        f"exec('from {name} import *')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_that_another_thread_is_importing_is_waited_for(tmp_path, monkeypatch):
    begun, end = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "slow_to_import", (begun, end), raising=False)
    (tmp_path / "slow_to_import.py").write_text(
        "import threading\n"
        "begun, end = threading.slow_to_import\n"
        "begun.set()\n"
        "end.wait(30)\n"
        "name = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    first = threading.Thread(target=need, args=("slow_to_import", "this test"))
    first.start()
    assert begun.wait(30)
    threading.Timer(0.05, end.set).start()
    assert need("slow_to_import", "this test").name == 1
    first.join()
    del sys.modules["slow_to_import"]
