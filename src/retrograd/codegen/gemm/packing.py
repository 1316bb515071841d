"""Copying blocks of a matrix into panels: the order in which tiles read them.

A panel has a fixed number of columns, the last one fewer, but whole vectors; it lies row after row,
and panels lie one after the other. What is beyond the matrix in the last vector may be anything.
"""

from __future__ import annotations

from retrograd.codegen import types
from retrograd.codegen.builder import FunctionBuilder
from retrograd.codegen.gemm.microkernel import Tile
from retrograd.codegen.register_transpose import together, transpose_in_registers

PARAMETERS = "ptr noalias %to, ptr noalias %from, i64 %width, i64 %depth, i64 %step"


def pack_rows(tile: Tile, name: str, vectors: int, w: FunctionBuilder) -> str:
    """A function that copies `%depth` rows of `%width` elements, `%step` apart, into panels of so
    many vectors. Memory is read in the order in which it lies."""
    columns, lanes = vectors * tile.lanes, tile.lanes
    full = w.new(f"udiv i64 %width, {columns}")
    rest = w.new(f"urem i64 %width, {columns}")
    wide = w.new(f"and i64 {w.new(f'add i64 {rest}, {lanes - 1}')}, {-lanes}")
    last = w.new(f"sub i64 {wide}, {lanes}")  # where the last vector starts
    mask = tile.first_lanes(w, w.new(f"sub i64 {rest}, {last}"))
    size = w.new(f"mul i64 %depth, {columns}")
    tail = tile.at(w, "%to", w.new(f"mul i64 {full}, {size}"))
    some = w.new(f"icmp sgt i64 {rest}, 0")

    rows = w.open_loop("%depth", 1, "0", [("ptr", "%from")])
    row = rows.values[0]
    to = tile.at(w, "%to", w.new(f"mul i64 {rows.counter}, {columns}"))
    panels = w.open_loop(full, 1, "0", [("ptr", row), ("ptr", to)])
    at, to = panels.values
    found = [tile.load(w, tile.at(w, at, v * lanes)) for v in range(vectors)]
    for v, x in enumerate(found):
        tile.store(w, x, tile.at(w, to, v * lanes))
    w.close_loop(panels, [tile.at(w, at, columns), tile.at(w, to, size)])
    go, skip = w.label(), w.label()
    w.branch(some, go, skip)
    w.start_block(go)
    at, to = panels.values[0], tile.at(w, tail, w.new(f"mul i64 {rows.counter}, {wide}"))
    inner = w.open_loop(last, lanes)
    tile.store(w, tile.load(w, tile.at(w, at, inner.counter)), tile.at(w, to, inner.counter))
    w.close_loop(inner)
    tile.store(w, tile.load(w, tile.at(w, at, last), mask), tile.at(w, to, last))
    w.jump(skip)
    w.start_block(skip)
    w.close_loop(rows, [tile.at(w, row, "%step")])
    w.line("ret void")
    return f"define internal void @{name}({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def pack_columns(tile: Tile, w: FunctionBuilder) -> str:
    """The function `pack_columns`, which copies `%width` columns of `%depth` elements, `%step`
    apart, into panels as wide as a tile: a few columns at a time are turned in registers."""
    lanes = tile.lanes
    at_once = together(tile.dtype, lanes)
    w.declare("i64 @llvm.smin.i64(i64, i64)")
    deep = w.new(f"and i64 %depth, {-at_once}")
    last = w.new("sub i64 %width, 1")
    size = w.new(f"mul i64 %depth, {tile.columns}")

    vectors = w.open_loop("%width", lanes)
    first = vectors.counter
    panel = w.new(f"udiv i64 {first}, {tile.columns}")
    left = w.new(f"sub i64 %width, {w.new(f'mul i64 {panel}, {tile.columns}')}")
    left = w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {tile.columns})")
    wide = w.new(f"and i64 {w.new(f'add i64 {left}, {lanes - 1}')}, {-lanes}")
    inside = w.new(f"urem i64 {first}, {tile.columns}")
    to = tile.at(w, tile.at(w, "%to", w.new(f"mul i64 {panel}, {size}")), inside)
    columns = []
    for i in range(lanes):
        column = w.new(f"add i64 {first}, {i}")
        column = w.new(f"call i64 @llvm.smin.i64(i64 {column}, i64 {last})")
        columns.append(tile.at(w, "%from", w.new(f"mul i64 {column}, %step")))
    rows = w.open_loop(deep, at_once)
    found = transpose_in_registers(w, [tile.at(w, c, rows.counter) for c in columns], tile.dtype)
    for i, row in enumerate(found):
        place = w.new(f"mul i64 {w.new(f'add i64 {rows.counter}, {i}')}, {wide}")
        tile.store(w, row, tile.at(w, to, place))
    w.close_loop(rows)
    _one_by_one(tile, to, (first, deep, wide), w)
    w.close_loop(vectors)
    w.line("ret void")
    return f"define internal void @pack_columns({PARAMETERS}) #0 {{\n{w.text()}\n}}"


def _one_by_one(tile: Tile, to: str, bounds: tuple[str, str, str], w: FunctionBuilder) -> None:
    """The rows that are left, fewer than are made together."""
    first, deep, wide = bounds
    rows = w.open_loop("%depth", 1, deep)
    at = tile.at(w, to, w.new(f"mul i64 {rows.counter}, {wide}"))
    left = w.new(f"sub i64 %width, {first}")
    inner = w.open_loop(w.new(f"call i64 @llvm.smin.i64(i64 {left}, i64 {tile.lanes})"))
    column = w.new(f"mul i64 {w.new(f'add i64 {first}, {inner.counter}')}, %step")
    place = w.new(f"add i64 {column}, {rows.counter}")
    x = types.load(w, tile.at(w, "%from", place), tile.dtype)
    types.store(w, x, tile.at(w, at, inner.counter), tile.dtype)
    w.close_loop(inner)
    w.close_loop(rows)
