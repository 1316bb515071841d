"""Pictures of what no graph shows: the kernels of a program with the memory between them, and how
many machine instructions of each kind they have. For docs/compiler-in-pictures.md."""

from __future__ import annotations

import re
from collections import Counter
from html import escape

import retrograd as rg
from retrograd.schedule.buffer import Buffer
from retrograd.schedule.kernel import Kernel
from retrograd.schedule.planning.plan import KernelPlan

WIDTH, ROW = 860, 96
# Of loop bodies: the loops themselves, and what finds places in memory.
NOT_SHOWN = ("size", "loop", "load", "store", "const", "imul", "iadd")
# What instructions do, by their first word in LLVM's text.
KINDS = {
    "memory": "load store",
    "arithmetic": "fadd fsub fmul fdiv fneg frem call",
    "choice": "fcmp icmp select phi",
    "addresses, integers": "getelementptr add sub mul and or xor shl lshr ashr bitcast trunc zext",
    "jumps": "br ret switch",
}
COLOURS = ("#7aa2f7", "#f7a8b8", "#f6c177", "#a6d8c0", "#c4b5fd")
FONT = 'font-family="system-ui, sans-serif"'


def svg(height: int, parts: list[str], title: str) -> str:
    """A picture with a white ground and a title."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
    head += f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([head, ground, words(20, 30, title, 17, "600"), *parts, "</svg>\n"])


def words(x: float, y: float, text: str, size: float = 13, weight: str = "400") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="#1e293b" '
        f"{FONT}>{escape(text)}</text>"
    )


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
        f'fill="{colour}" stroke="#94a3b8"/>'
    )


def arrow(x: float, y: float, length: float) -> str:
    return (
        f'<path d="M{x:g} {y:g}h{length - 6:g}m-6 -4l6 4l-6 4" fill="none" stroke="#64748b" '
        f'stroke-width="1.5"/>'
    )


def name_of(buffer: Buffer) -> str:
    """What a buffer holds: an input by its name, the others by their kind."""
    name = buffer.node.name if buffer.kind == "input" else f"{buffer.kind} {buffer.number}"
    return f"{name}  {buffer.type}"


def chip(x: float, y: float, width: float, buffer: Buffer) -> list[str]:
    """A buffer: its kind is the colour."""
    colour = {"input": "#fde9b8", "output": "#fbd5e5"}.get(buffer.kind, "#e8ebf0")
    return [box(x, y, width, 22, colour), words(x + 8, y + 16, name_of(buffer))]


def done_in(kernel: Kernel) -> str:
    """The operations in the loop nests of a kernel, each with how often it stands there."""
    found = Counter(
        str(getattr(v.op, "value", v.op)) for nest in kernel.nests for v in nest.body.values
    )
    shown = {op: n for op, n in found.items() if op not in NOT_SHOWN}
    return "  ".join(op if n == 1 else f"{n} {op}" for op, n in shown.items())


def kernels(graph: rg.Graph) -> str:
    """The kernels of a graph that is lowered: what each reads, its loops, what it stores."""
    plan = KernelPlan(graph)
    parts: list[str] = []
    for x, text in ((20, "reads"), (290, "loops and operations"), (640, "stores")):
        parts.append(words(x, 62, text, 13, "600"))
    for i, kernel in enumerate(plan.kernels):
        y = 76 + i * ROW
        for j, buffer in enumerate(kernel.reads[:3]):
            parts += chip(20, y + j * 26, 220, buffer)
        parts.append(arrow(244, y + 36, 40))
        nest = kernel.nests[-1]
        parts += [
            box(290, y, 300, 76, "#dbeafe"),
            words(302, y + 22, f"kernel {i}: {', '.join(n.op for n in kernel.nodes)}", 13, "600"),
            words(302, y + 43, f"a {nest.kind} nest of {' x '.join(map(str, nest.loops))}"),
            words(302, y + 64, done_in(kernel) or "sum"),
            arrow(594, y + 36, 40),
        ]
        for j, buffer in enumerate(kernel.outs):
            parts += chip(640, y + j * 26, 200, buffer)
    title = f"{len(plan.kernels)} kernels for {len(graph.body)} nodes"
    return svg(84 + len(plan.kernels) * ROW, parts, title)


def counted(llvm: str) -> dict[str, Counter[str]]:
    """How many instructions of each kind the kernels of an LLVM module have."""
    kind_of = {word: kind for kind, text in KINDS.items() for word in text.split()}
    found: dict[str, Counter[str]] = {}
    for name, body in re.findall(r"^define [^\n]*@(k\d+)\([^\n]*\{\n(.*?)^\}", llvm, re.S | re.M):
        names = re.findall(r"^  (?:%[\w.]+ = )?(?:tail )?(\w+)", body, re.MULTILINE)
        found[name] = Counter(kind_of.get(word, "others") for word in names)
    return found


def instructions(llvm: str) -> str:
    """Bars: the instructions of each kernel, by what they do."""
    found = counted(llvm)
    parts: list[str] = []
    most = max(sum(c.values()) for c in found.values())
    for i, kind in enumerate(KINDS):
        parts += [box(20 + 165 * i, 46, 14, 14, COLOURS[i]), words(40 + 165 * i, 58, kind)]
    for row, (name, counts) in enumerate(found.items()):
        y, left = 84 + row * 40, 110.0
        parts.append(words(20, y + 19, f"kernel {name[1:]}", 13, "600"))
        for colour, kind in zip(COLOURS, KINDS, strict=True):
            width = 640 * counts[kind] / most
            if width:
                parts.append(box(left, y, width, 28, colour))
            if width > 22:
                parts.append(words(left + 5, y + 19, str(counts[kind]), 12))
            left += width
    return svg(96 + 40 * len(found), parts, "Instructions of LLVM, by kernel")
