"""`device`: the place of a tensor, as scripts of PyTorch name it."""

from __future__ import annotations

from typing import Self

from retrograd.errors import ArgumentError


class device(str):
    """The name of a place, `"cpu"` or `"cuda:0"`, with its `type` and `index`: a text, which `x.to`
    and `device=` take. Tensors are on the CPU; naming another place is no error, going there is.

    `ArgumentError` for what is neither a name nor a number.

    >>> import retrograd as rg
    >>> rg.device("cpu").type, rg.device("cuda", 1).index, rg.ones(2).device == "cpu"
    ('cpu', 1, True)
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None  # type: ignore[assignment] # as PyTorch has it; a text has a method

    def __new__(cls, type: str | int = "cpu", index: int | None = None) -> Self:
        name = f"cuda:{type}" if isinstance(type, int) else type
        if not isinstance(name, str):
            raise ArgumentError(f"a device is named by a text, such as 'cpu', not {type!r}")
        kind, _, number = name.partition(":")
        if number and not number.isdigit():
            raise ArgumentError(f"a device is written 'cuda' or 'cuda:0', not {type!r}")
        at = int(number) if number else index
        made = super().__new__(cls, kind if at is None else f"{kind}:{at}")
        made.type, made.index = kind, at
        return made

    def __repr__(self) -> str:
        at = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{at})"

    def __getnewargs__(self) -> tuple[str]:
        return (str(self),)


CPU = device("cpu")
