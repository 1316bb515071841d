"""A tour of the house: one function from Python to machine code and back, every stage printed.

Run it from the root of the repository:

    PYTHONPATH=src python docs/tour.py

The first half follows the *compiled* path, in which a function becomes a graph, the graph of its
gradient, kernels, LLVM and a program. The second half follows the *eager* path, in which operations
are recorded as they are called. Both meet in the same graphs, rules and executors.

Nothing here is a copy: each stage calls the function or class that the library itself calls. The
comment above a stage says in which file to read on.
"""

import numpy as np

import retrograd as rg
from retrograd import autodiff
from retrograd.backend_registry import compile_graph
from retrograd.codegen.program.module import ModuleEmitter
from retrograd.eager import trace_buffer
from retrograd.ir import Graph, Node, print_graph, verify
from retrograd.passes import optimize
from retrograd.passes.lowering.legalize import legalize
from retrograd.passes.rewrite import checked_by
from retrograd.runtime.compiler import engine
from retrograd.runtime.executable import Executable
from retrograd.runtime.executors.bytecode import BytecodeExecutor
from retrograd.runtime.executors.op_by_op import OpByOpExecutor
from retrograd.schedule.planning.plan import KernelPlan
from retrograd.tuning import TUNING

SAMPLES, INPUTS, OUTPUTS = 64, 8, 4


def loss(x, w):
    """The function that the tour follows: one layer and the mean of its squares."""
    return (rg.tanh(x @ w) ** 2).mean()


def stage(title: str) -> None:
    """Print the heading of a stage."""
    print(f"\n=== {title} " + "=" * max(0, 76 - len(title)))


def head(text: str, lines: int) -> str:
    """The first lines of a text."""
    found = text.splitlines()
    more = [f"... {len(found) - lines} lines more"] if len(found) > lines else []
    return "\n".join(found[:lines] + more)


# 1. Tracing: Python to IR. `graph/graph.py` calls the function with tensors that stand for graph
# inputs; every library function (`functions/`) builds nodes on them. What comes out is a `Graph` of
# `Node`s (`ir/node.py`): an op, the nodes it is applied to, a type, and the line it came from.
# Broadcasting and promotion have become ops of their own: the IR does nothing implicitly.


def trace() -> Graph:
    stage("1. trace: Python to IR")
    graph = rg.trace(loss, rg.spec((SAMPLES, INPUTS)), rg.spec((INPUTS, OUTPUTS)))
    print(print_graph(graph))
    node = graph.nodes[3]
    print(f"one node: {node.describe()}")
    print(f"its op is an object, {node.prim!r}, of the class {type(node.prim).__name__}")
    return graph


# 2. Reverse mode: IR to IR. `autodiff/reverse.py` walks the nodes from the last to the first, and
# asks each op for its vector-Jacobian product, the method `vjp` of its class in `ops/`. The rule
# builds nodes, so the gradient is a graph like any other and can be differentiated again.


def differentiate(graph: Graph) -> Graph:
    stage("2. autodiff.reverse: the pullback, node by node")

    def told(visit: autodiff.Visit) -> None:
        receivers = ", ".join(f"input {i} gets {part.op}" for i, part, _ in visit.parts)
        print(f"{visit.node.op:12} cotangent {visit.upstream.op:12} {receivers}")

    gradient = autodiff.gradient(graph, visit=told)
    print()
    print(print_graph(gradient))
    # The value and the gradient are wanted together: one graph with three outputs.
    both = Graph(gradient.inputs, [*graph.outputs, *gradient.outputs], "loss and its gradient")
    second = autodiff.gradient(gradient, outputs=[gradient.nodes[-1]])
    print(f"{len(graph)} nodes; with the gradient {len(both)}; its gradient again {len(second)}")
    return both


# 3. Rewriting: IR to IR, meaning kept to the bit. `passes/pipeline.py` runs constant folding,
# algebraic simplification and common subexpression elimination in one walk until nothing changes.
# In tests a verifier looks at the graph after every walk, as it does here.


def rewrite(graph: Graph) -> Graph:
    stage("3. passes: fold, simplify, eliminate common subexpressions")

    def after(rules: str, result: Graph) -> None:
        verify(result)
        print(f"after {rules}: {len(result)} nodes")

    with checked_by(after):
        optimized = optimize(graph)
    print(print_graph(optimized))
    # Composite ops have no loops of their own. `passes/lowering/` rewrites them into ops that have:
    # a convolution becomes a matrix product, for example.
    conv = rg.trace(lambda x, k: rg.conv(x, k), rg.spec((1, 3, 8, 8)), rg.spec((4, 3, 3, 3)))
    lowered = legalize(conv)
    print("before lowering:", ", ".join(n.op for n in conv.body))
    print("after lowering: ", ", ".join(n.op for n in lowered.body))
    return optimized


# 4. Scheduling: IR to loop nests over buffers. `schedule/fusion.py` decides which nodes are stored;
# all others are computed where they are read, which is what fusion means here. `schedule/lower.py`
# makes loop nests of the stored ones, `schedule/tiling/` joins kernels that go through the same
# rows, and `schedule/memory/` places what is stored in one arena.


def schedule(graph: Graph) -> KernelPlan:
    stage("4. schedule: fusion and loop nests")
    plan = KernelPlan(graph)
    print(plan.explain())
    for number, kernel in enumerate(plan.kernels):
        for nest in kernel.nests:
            sizes = " x ".join(map(str, nest.loops))
            values = " ".join(v.op for v in nest.body.values if v.op not in ("size", "loop"))
            print(f"kernel {number}: a {nest.kind} nest of {sizes}: {values[:90]}")
    return plan


# 5. Code generation: loop nests to LLVM text. `codegen/program/module.py` has an emitter for each
# kind of nest; `codegen/emit/kernel.py` prints a body, `codegen/math/` the functions in it.


def generate(plan: KernelPlan) -> str:
    stage("5. codegen: LLVM text")
    target = engine().machine
    print(f"for a CPU with {target.width} floats in a register, and {target.registers} registers")
    text = ModuleEmitter(plan, target).text()
    functions = [line for line in text.splitlines() if line.startswith("define")]
    print(head("\n".join(functions), 6))
    print(head(text[text.index("define internal i64 @k0") :], 12))
    return text


# 6. Running. `runtime/executable.py` does stages 4 and 5 and has `runtime/compiler.py` make machine
# code of the text, or finds it on disk (`runtime/disk_cache.py`). It is one of four executors. All
# but the first agree to the bit; the reference is the definition of what an op means.


def execute(graph: Graph) -> list[np.ndarray]:
    stage("6. runtime: an executable, and three other executors")
    rng = np.random.default_rng(0)
    shapes = [(SAMPLES, INPUTS), (INPUTS, OUTPUTS)]
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    compiled = Executable(graph)
    print(f"machine code: {compiled.functions} functions, entered at {compiled.address:#x}")
    results = compiled(arrays)
    print(f"compiled:   loss {results[0]}, gradient by w {results[2][0]}")
    others = {
        "reference": compile_graph(graph, "reference"),
        "op by op": OpByOpExecutor(graph),
        "bytecode": BytecodeExecutor(graph),
    }
    for name, program in others.items():
        found = program(arrays)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(found, results, strict=True))
        close = all(np.allclose(a, b, rtol=1e-5) for a, b in zip(found, results, strict=True))
        assert close
        assert same or name == "reference"
        print(f"{name + ':':11} loss {found[0]}, {'the same bits' if same else 'close'}")
    return [*arrays, *results]


# 7. The transforms that users call put these stages together. `transforms/grad.py` makes the nodes
# of stage 2, `transforms/jit/jit.py` traces once for each signature (structure, dtypes, shapes) and
# keeps the program. The second call of the same kind finds its `CallSite`
# (`transforms/jit/fast_call.py`), and is one call in C (`accelerate/fast_call.c`).


def transform(x: np.ndarray, w: np.ndarray, expected: np.ndarray) -> None:
    stage("7. transforms: jit(grad(loss))")
    slope = rg.jit(rg.grad(loss, argnums=1))
    for call in range(3):
        found = slope(rg.asarray(x), rg.asarray(w))
        print(f"call {call + 1}: {slope.cache_stats()}")
    assert slope.cache_stats()["compilations"] == 1
    assert np.array_equal(found.numpy(), expected)


# 8. Eager: what has not returned some hundred times runs operation by operation
# (`eager/immediate/`). What has is recorded; here it is from the first time on. An operation on
# tensors computes nothing then. It looks up, or makes, a `TraceNode` (`eager/trace_cache.py`): a
# node over numbered slots in place of arrays. The thread's `TraceBuffer` (`eager/trace_buffer.py`)
# holds what is in the slots. `eager/quick_dispatch.py` records operators, `eager/dispatch.py` and
# `eager/call_cache.py` calls of library functions.


def record(x: rg.Tensor, w: rg.Tensor) -> rg.Tensor:
    result = loss(x, w)
    buffer = trace_buffer.CURRENT.buffer
    recorded = buffer.site.trace_nodes  # the nodes of this trace site
    slots = [node for node, trace_node in recorded.items() if trace_node.slot >= 0]
    print(f"{len(buffer.arrays)} arrays in slots, {len(recorded) - len(slots)} operations known:")
    print("  " + ", ".join(node.op for node in recorded if node not in slots))
    return result


# 9. Looking at a tensor executes the buffer: everything that is needed and held is one program,
# which hangs on the trace nodes. `backward()` (`eager/backward.py`) records the gradient, by the
# same pullback as stage 2; it is on the trace nodes from the second time on. So the second step of
# a loop differentiates nothing, makes no program, and computes with the one that is there.


def train(x: np.ndarray, w: np.ndarray, expected: np.ndarray) -> None:
    stage("8. eager: the trace buffer")
    inputs, weight = rg.asarray(x), rg.tensor(w, requires_grad=True)
    made = []
    for step in range(3):
        if step == 1:
            stage("9. eager: the second step finds the trace nodes, the gradient and the program")
        result = record(inputs, weight)
        result.backward()
        assert weight.grad is not None
        gradient = weight.grad.numpy()
        stats = rg.cache_stats()
        made.append(stats["misses"])
        print(f"step {step + 1}: loss {result.item():.6f}, programs made so far {made[-1]}")
        assert np.array_equal(gradient, expected)
        weight.grad = None
    assert made[0] == made[1] == made[2]


# 10. Every node knows where it came from: the user's line, and for a node of a gradient the forward
# node it belongs to. Errors, the profiler and the explorer (`viz/`) say so.


def explain(graph: Graph) -> None:
    stage("10. provenance: where the nodes came from")
    nodes: list[Node] = [n for n in graph.body if n.source is not None]
    for node in nodes[-3:]:
        belongs = f", the gradient of {node.origin.op}" if node.origin is not None else ""
        assert node.source is not None
        print(f"{node.op:12} line {node.source.line}: {node.source.text}{belongs}")


def main() -> None:
    TUNING.returned_runs = 0  # for stages 8 and 9
    graph = trace()
    both = differentiate(graph)
    optimized = rewrite(both)
    plan = schedule(optimized)
    generate(plan)
    x, w, _, _, gradient = execute(optimized)
    transform(x, w, gradient)
    train(x, w, gradient)
    explain(optimized)
    stage("the end: docs/architecture.md says where to read on")


if __name__ == "__main__":
    main()
