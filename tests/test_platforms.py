"""What holds on systems that the tests do not run on, as far as reading the source tells: text has
an encoding, what only POSIX has is asked for first, files take the place of others in one function,
which is patient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import retrograd

SOURCE = Path(retrograd.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "O_CLOEXEC", "O_NONBLOCK", "WNOHANG", "chown", "fork", "forkpty", "getegid", "geteuid",
        "getloadavg", "getpgid", "getuid", "killpg", "memfd_create", "mkfifo", "nice", "pipe2",
        "posix_fadvise", "posix_fallocate", "pread", "pwrite", "register_at_fork",
        "sched_getaffinity", "sched_setaffinity", "sendfile", "setpgid", "setsid", "statvfs",
        "sysconf", "uname", "wait", "wait3", "wait4",
    },
    "signal": {
        "SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "alarm", "pthread_kill",
        "pthread_sigmask", "setitimer", "sigwait", "valid_signals_posix",
    },
    "socket": {"AF_UNIX", "recv_fds", "send_fds", "socketpair"},
    "time": {"clock", "clock_gettime", "clock_gettime_ns"},
}  # fmt: skip
ELSEWHERE = ("os", "webbrowser", "zipfile", "pillow", "self", "tarfile")  # where `open` is another
# What says in a function, or in the module, that a system was asked for before.
GUARDS = ("hasattr(", "getattr(", "sys.platform", "os.name", "AttributeError")


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def texts_without_encoding(source: str) -> list[str]:
    """The calls that open a file as text, or read or write all of one, without an encoding."""
    found: list[str] = []
    if "open(" not in source and "_text(" not in source:
        return found
    for call in calls(ast.parse(source)):
        f = call.func
        name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
        on = ast.unparse(f.value) if isinstance(f, ast.Attribute) else ""
        if on in ELSEWHERE:
            continue
        given = [k.arg for k in call.keywords]
        if name in ("read_text", "write_text"):
            at = 0 if name == "read_text" else 1
            if "encoding" not in given and len(call.args) <= at:
                found.append(f"{name} in line {call.lineno}")
        elif name in ("open", "fdopen", "TextIOWrapper"):
            place = 0 if isinstance(f, ast.Attribute) else 1
            mode = [k.value for k in call.keywords if k.arg == "mode"] + call.args[place:]
            binary = mode and isinstance(mode[0], ast.Constant) and "b" in str(mode[0].value)
            shown = bool(mode) and isinstance(mode[0], ast.Constant)
            bare = isinstance(f, ast.Attribute) and not mode and not given
            as_path = bare and on.split(".")[-1] in ("p", "path", "file")
            if "encoding" not in given and not binary and (shown or as_path):
                found.append(f"{name} in line {call.lineno}")
    return found


def unguarded(source: str) -> list[str]:
    """Imports and uses of what only POSIX has, where nothing has asked for it before."""
    found: list[str] = []
    named = [f"{module}.{n}" for module, names in POSIX_NAMES.items() for n in names]
    if not any(name in source for name in [*named, *POSIX_MODULES]):
        return found  # soon said of most files
    tree = ast.parse(source)
    for statement in tree.body:  # at the level of the module, not within try
        names = [a.name for a in statement.names] if isinstance(statement, ast.Import) else []
        names += [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
        found += [f"import {n} in line {statement.lineno}" for n in names if n in POSIX_MODULES]
    owners: dict[ast.AST, ast.AST] = {}
    owner: ast.AST
    for owner in ast.walk(tree):  # the innermost function or statement of the module comes last
        if isinstance(owner, ast.FunctionDef) or owner in tree.body:
            owners |= dict.fromkeys(ast.walk(owner), owner)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.attr in POSIX_NAMES.get(node.value.id, ()):
            around = ast.get_source_segment(source, owners[node]) or ""
            whole = f"hasattr({node.value.id}, " in source
            if not whole and not any(guard in around for guard in GUARDS):
                found.append(f"{node.value.id}.{node.attr} in line {node.lineno}")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "open('a', 'r')",
        "open('a', 'w')",
        "p.open('a')",
        "p.open()",
        "p.read_text()",
        "p.write_text(t)",
    ],
)
def test_text_without_an_encoding_is_found(source: str) -> None:
    assert texts_without_encoding(source)
    opened = source.replace(")", ", encoding='utf-8')").replace("(, ", "(")
    assert not texts_without_encoding(opened)


def test_what_only_posix_has_is_found() -> None:
    assert unguarded("import os, fcntl")
    assert unguarded("def f():\n    return os.fork()\n")
    assert not unguarded("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None\n")
    assert not unguarded("def f():\n    if hasattr(os, 'fork'):\n        return os.fork()\n")


def test_text_is_read_and_written_in_a_named_encoding() -> None:
    wrong = {p.relative_to(SOURCE): texts_without_encoding(p.read_text("utf-8")) for p in FILES}
    assert {str(p): found for p, found in wrong.items() if found} == {}


def test_what_only_posix_has_is_asked_for_first() -> None:
    wrong = {p.relative_to(SOURCE): unguarded(p.read_text("utf-8")) for p in FILES}
    assert {str(p): found for p, found in wrong.items() if found} == {}


def test_files_take_the_place_of_others_in_one_function() -> None:
    """Which is patient where Windows refuses it."""
    names = ("os.replace(", "os.rename(", "shutil.move(")
    found = [p for p in FILES if any(name in p.read_text("utf-8") for name in names)]
    assert [p.relative_to(SOURCE).as_posix() for p in found] == ["files.py"]


def test_no_folder_of_one_system_is_named() -> None:
    """But those that are asked whether they are there."""
    names = [f"{quote}/{folder}" for quote in "'\"" for folder in ("tmp", "var/", "usr/", "home/")]
    for path in FILES:
        assert not any(name in path.read_text("utf-8") for name in names), path
