"""A shorthand for text of LLVM that mostly follows pointers from word to word of memory.

A word has 8 bytes, `%i` may be a number. Each of these lines stands for some instructions:

    %x = get TYPE %p %i       load the word number i behind p
    put TYPE %x %p %i         store it
    %x = row %p %i N          the address of row i of a table with N words in a row
    for %k %n                 until `end`, for k from 0 up to n - 1
    end
    need %c else LABEL        go to a label unless c
    skip %c                   go on with the next k if c
"""

from __future__ import annotations

import re
from collections.abc import Callable


def expanded(text: str) -> str:
    """The text with all shorthand written out."""
    writer = _Expander()
    for line in text.splitlines():
        writer.take(line)
    return "\n".join(writer.lines) + "\n"


class _Expander:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._open: list[tuple[str, str]] = []  # loops: label, counter
        self._rules: list[tuple[re.Pattern[str], Callable[..., None]]] = [
            (re.compile(pattern + "$"), rule)
            for pattern, rule in (
                (r"  (%\S+) = get (\w+) (\S+) (\S+)", self._get),
                (r"  put (\w+) (\S+) (\S+) (\S+)", self._put),
                (r"  (%\S+) = row (\S+) (\S+) (\d+)", self._row),
                (r"  for (%\S+) (\S+)", self._for),
                (r"  end", self._end),
                (r"  need (\S+) else (\S+)", self._need),
                (r"  skip (\S+)", self._skip),
            )
        ]

    def take(self, line: str) -> None:
        for pattern, rule in self._rules:
            if found := pattern.match(line):
                return rule(*found.groups())
        self.lines.append(line)
        return None

    def _new(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def _place(self, base: str, i: str) -> str:
        at = f"%{self._new()}"
        self.lines.append(f"  {at} = getelementptr i64, ptr {base}, i64 {i}")
        return at

    def _get(self, name: str, kind: str, base: str, i: str) -> None:
        self.lines.append(f"  {name} = load {kind}, ptr {self._place(base, i)}")

    def _put(self, kind: str, value: str, base: str, i: str) -> None:
        self.lines.append(f"  store {kind} {value}, ptr {self._place(base, i)}")

    def _row(self, name: str, base: str, k: str, words: str) -> None:
        at = f"%{self._new()}"
        self.lines += [
            f"  {at} = mul i64 {k}, {words}",
            f"  {name} = getelementptr i64, ptr {base}, i64 {at}",
        ]

    def _for(self, counter: str, end: str) -> None:
        label = self._new()
        self._open.append((label, counter))
        self.lines += [
            f"  br label %{label}.from",
            f"{label}.from:",
            f"  br label %{label}.head",
            f"{label}.head:",
            f"  {counter} = phi i64 [ 0, %{label}.from ], [ %{label}.k, %{label}.next ]",
            f"  %{label}.more = icmp slt i64 {counter}, {end}",
            f"  br i1 %{label}.more, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]

    def _end(self) -> None:
        label, counter = self._open.pop()
        self.lines += [
            f"  br label %{label}.next",
            f"{label}.next:",
            f"  %{label}.k = add i64 {counter}, 1",
            f"  br label %{label}.head",
            f"{label}.end:",
        ]

    def _need(self, condition: str, label: str) -> None:
        here = self._new()
        self.lines += [f"  br i1 {condition}, label %{here}, label %{label}", f"{here}:"]

    def _skip(self, condition: str) -> None:
        here, (label, _) = self._new(), self._open[-1]
        self.lines += [f"  br i1 {condition}, label %{label}.next, label %{here}", f"{here}:"]
