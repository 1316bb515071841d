"""A graph compiled to one native function."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograd.codegen import program as codegen
from retrograd.codegen.launch_layout import COUNTED_CYCLES, COUNTER_WORDS
from retrograd.codegen.launch_layout import COUNTED_SUBNORMALS as MET
from retrograd.errors import BackendError
from retrograd.ir import Graph, Node, TensorType, evaluate
from retrograd.memory_limit import check_memory
from retrograd.ops.control.body import run as evaluated
from retrograd.passes import prepared
from retrograd.runtime.backend import Array, axes_of_names, bind
from retrograd.runtime.call_frame import CallFrame
from retrograd.runtime.denormals import SubnormalCount, exactly, tells
from retrograd.runtime.device_array import host
from retrograd.runtime.disk_cache import current_store, key_of
from retrograd.runtime.errors import answer, failure_of, index_to_find, what_to_ask
from retrograd.runtime.executable_format import BufferPlacement, ExecutableRecord, place, recipe_of
from retrograd.runtime.fast_call import entry_of, is_unshared, specs_of
from retrograd.runtime.fingerprint import program_key
from retrograd.runtime.interrupt import interruptible
from retrograd.runtime.native import layout
from retrograd.runtime.subnormal_watch import look
from retrograd.runtime.threads import threads_here
from retrograd.schedule import planning
from retrograd.schedule.buffer import ALIGNMENT
from retrograd.shared import IMPORTING
from retrograd.tuning import TUNING

if TYPE_CHECKING:
    from retrograd.runtime.compiler import Compiler, LoadedCode
    from retrograd.schedule.planning.plan import KernelPlan


@dataclass(frozen=True)
class KernelTimes:
    """One call of a program: nanoseconds of each kernel of the plan, and whether it met subnormal
    numbers, None where the processor does not tell."""

    plan: KernelPlan
    graph: Graph
    sizes: dict[str, int]
    times: list[float]
    subnormal: list[bool] | None


# Who is told how long the kernels of programs took, see `Executable.told`.
RUNS: ContextVar[list[KernelTimes] | None] = ContextVar("runs", default=None)


class SpecializedExecutable:
    """A program at sizes that are known: shapes, memory, frames ready for use."""

    def __init__(self, program: Executable, sizes: Mapping[str, int]) -> None:
        recipe = program.recipe
        self.program = program
        self.placement = recipe.placement or program.place(sizes)
        check_memory(self.peak, lambda: program.plan.arrays(sizes), sizes)
        time = self.placement.nanoseconds
        self.shared = program.shares(self.placement)
        facts = recipe.facts
        self.long = time >= TUNING.interruptible_ns or facts.endless
        self.brief = not self.shared and time < TUNING.gil_held_ns and not facts.endless
        self.inputs = [_known(x.type, sizes) for x in program.graph.inputs]
        self.outputs = outputs = [_known(y.type, sizes) for y in program.graph.outputs]
        # A donated input is overwritten if nothing but the two lists of the call refers to it.
        most = dict.fromkeys(program.donated.values(), 2)
        self.expected, self.results = specs_of(self.inputs, most), specs_of(outputs)
        # Which inputs become outputs, and what has to be allocated.
        self._taken = [program.donated.get(k, 0) for k in range(len(outputs))]
        self._fresh = [(k, s, d) for k, (d, s) in enumerate(outputs) if k not in program.donated]
        self._pick = itemgetter(*self._taken) if len(outputs) > 1 and program.donated else None
        own = type(program).allocate
        self._make_array = np.empty if own is Executable.allocate else program.allocate
        # Whether C can read the arrays; those of no elements need care.
        self.plain = self.expected is not None and all(math.prod(s) for _, s in self.inputs)
        # Whether a call in C can run it, see fast_call.py. What needs much memory shares it.
        self.at_once = self.brief and self.placement.arena <= TUNING.kept_arena_bytes
        # What becomes known while the program runs is set then.
        known = {**dict.fromkeys(facts.hidden, 1), **sizes}
        self.sizes = [evaluate(d, known) for d in recipe.sizes]
        self.frames: list[CallFrame] = []  # a stack; append and pop are atomic
        self._pace = np.zeros(layout.PACE_WORDS, np.int64) if self.shared else None

    def quick(self, arrays: list[Array]) -> list[Array] | None:
        """The results, if the arrays are of these sizes and laid out plainly, and nobody else can
        see those that are donated; otherwise None, and nothing was done."""
        program = self.program
        if not self.plain or len(arrays) != program.count:
            return None
        results = self._outputs(arrays)
        frame = self.frame()
        failed = frame.entry.enter(arrays, results)
        if failed < 0:
            self.frames.append(frame)
            return None
        if program.last is not self:
            program.turn_to(self)
        if failed == 0 and self.brief:
            self.frames.append(frame)
            return results
        return self._finish(frame, failed or self._enter(frame, arrays), arrays, results)

    def run(self, addresses: bytes, arrays: list[Array]) -> int:
        """Run on inputs and outputs at these addresses; the number of the check that failed, or 0.
        The outputs' arrays must stay alive, and the inputs', `arrays`; see `Executable.enter`."""
        frame = self.frame()
        count = len(self.inputs) + len(self.outputs)
        frame.block[:count] = np.frombuffer(addresses, np.int64, count)
        self.program.turn_to(self)
        failed = self._enter(frame, arrays)
        self.frames.append(frame)
        return failed

    def _enter(self, frame: CallFrame, arrays: list[Array]) -> int:
        """`Executable.enter`; once in a while it is tried out what subnormal numbers cost."""
        if self.program.subnormals.is_due:
            look(self, frame)
        return self.program.enter(frame, arrays)

    def _outputs(self, arrays: list[Array]) -> list[Array]:
        """Arrays for the outputs."""
        if not self.program.donated:
            make = self._make_array
            return [make(s, d) for _, s, d in self._fresh]
        pick = self._pick
        results = [arrays[j] for j in self._taken] if pick is None else list(pick(arrays))
        for k, shape, dtype in self._fresh:
            results[k] = self._make_array(shape, dtype)
        return results

    def slow(self, arrays: list[Array]) -> list[Array]:
        """The results for arrays of the right types, however they are laid out."""
        frame, keep = self.frame(), []
        for slot, a in enumerate(arrays):
            flags = a.flags
            if not (flags.c_contiguous and flags.aligned and type(a) is np.ndarray and a.size):
                a = readable(a)
                keep.append(a)
            frame.block[slot] = a.ctypes.data
        results = self._outputs(arrays)
        for slot, y in enumerate(results, self.program.count):
            frame.block[slot] = y.ctypes.data
        return self._finish(frame, self._enter(frame, arrays), arrays, results)

    def _finish(
        self, frame: CallFrame, failed: int, arrays: list[Array], results: list[Array]
    ) -> list[Array]:
        program = self.program
        value = int(frame.block[program.recipe.status]) if failed else 0
        self.frames.append(frame)
        if failed:
            raise program.failure(failed - 1, value, arrays)
        return results

    def frame(self) -> CallFrame:
        """A frame nobody uses."""
        try:
            frame = self.frames.pop()
        except IndexError:
            return self.fresh_frame()
        # Another number of threads than before may have been asked for.
        same = not self.shared or frame.threads == self.program.threads()
        return frame if same else self.fresh_frame()

    @property
    def peak(self) -> int:
        """Bytes that a call allocates."""
        return self.program.peak_of(self.placement)

    def rest(self) -> None:
        """Calls have gone on to other sizes, which take over large memory."""
        if self.placement.arena + self.program.recipe.facts.scratch > TUNING.kept_arena_bytes:
            with contextlib.suppress(IndexError):
                self.program.spares[:] = [self.frames.pop().arena]
            self.frames.clear()

    def frame_in_common(self) -> CallFrame:
        """A frame for brief runs, of which there is one at a time: its arena is that of all sizes
        of the program, so that it is in the cache. What no run needs of it takes no memory."""
        program = self.program
        if program.common is None:
            size = TUNING.kept_arena_bytes + program.recipe.facts.scratch + ALIGNMENT
            program.common = program.allocate((size,), np.dtype(np.uint8))
        return self.fresh_frame(program.common)

    def fresh_frame(self, arena: Array | None = None) -> CallFrame:
        """A new one."""
        program, recipe, placed = self.program, self.program.recipe, self.placement
        threads = program.threads() if self.shared else 1
        size = placed.arena + recipe.facts.scratch * threads
        if arena is None:
            arena = program.arena(size + ALIGNMENT)
        copies = threads if recipe.facts.scratch else 0
        frame = CallFrame(recipe.slots * (1 + copies), arena, threads)
        for slot, array in enumerate(program.constants, recipe.facts.arguments):
            frame.block[slot] = array.ctypes.data
        temporaries = slice(recipe.first_temporary, recipe.first_cursor)
        frame.block[temporaries] = np.array(placed.offsets, np.int64) + frame.start
        frame.block[recipe.first_size : recipe.status] = self.sizes
        frame.block[recipe.status + 1] = 0 if program.times is None else program.times.ctypes.data
        run = program.address if self.brief else 0
        frame.entry = entry_of(
            frame.address,
            self.expected,
            self.results,
            run,
            program.subnormals.address,
            bool(program.donated),
        )
        frame.block[recipe.stop] = stop = frame.address + 8 * (recipe.stop - 1)
        frame.stop = stop if self.long else 0
        frame.pace = None if self._pace is None else self._pace.ctypes.data
        return frame


def start_compiler() -> Compiler:
    """The compiler, ready: for what comes first at a prompt, so that nothing later waits for it."""
    with IMPORTING:  # llvmlite is loaded when first needed, see compiler.py
        from retrograd.runtime.compiler import engine

    return engine()


class Executable:
    """Runs a graph as native code. May be called from several threads at once.

    `donate` are inputs whose memory may be taken for outputs by `consume`. `donated` tells which
    were: outputs, with the input they overwrite. With `simplify` the graph is optimised first. A
    `timed` program counts the cycles of each kernel, see `told` and `measure`. A
    `light` program has little to do: it is compiled in less time, and takes more; a `narrow` one
    goes through one element at a time, which is less yet, and more.
    """

    def __init__(
        self,
        graph: Graph,
        timed: bool = False,
        donate: Collection[int] = (),
        simplify: bool = False,
        light: bool = False,
        narrow: bool = False,
    ) -> None:
        if any(node.dtype.is_complex for node in graph.nodes):
            raise BackendError("native code has real numbers only: lower complex ones first")
        self.graph = graph
        self._donate = sorted(donate)
        self._simplify = simplify
        self._light = light
        self._narrow = narrow
        self._plan: KernelPlan | None = None
        self._key: str | None = None  # in the store
        compiler = start_compiler()
        with exactly():
            self.recipe, self._code = self._prepare(compiler, timed)
        facts = self.recipe.facts
        self.constants = [readable(a) for a in self.recipe.constants]
        self.recipe = replace(self.recipe, constants=[])
        self.times = np.zeros(COUNTER_WORDS * facts.kernels, np.int64) if timed else None
        self.subnormals = SubnormalCount(on=not (timed or facts.endless))
        self._compiler = compiler
        self._shaped: dict[tuple[int, ...], SpecializedExecutable] = {}
        self.last: SpecializedExecutable | None = None  # the sizes of the latest call
        self.common: Array | None = None  # the arena of brief runs
        self.spares: list[Array] = []  # one at most, of calls of other sizes; pop is atomic
        self.address = self._code.address
        self.count = len(graph.inputs)
        self.donated: dict[int, int] = dict(facts.donated)
        self._named = bool(graph.dim_names)
        self._axes = axes_of_names(graph.inputs) if self._named else None
        if not self._named:
            self.last = self._shaped[()] = SpecializedExecutable(self, {})

    def _prepare(self, compiler: Compiler, timed: bool) -> tuple[ExecutableRecord, LoadedCode]:
        """Recipe and code: from the store if it has both, otherwise made, and stored."""
        store, found = current_store(), None
        if store is not None:
            options = timed, self._donate, self._simplify, self._light, self._narrow
            self._key = program_key(self.graph, compiler.identity, compiler.machine, *options)
        if store is not None and self._key is not None:
            found = store.load(self._key)
        if found is not None:
            recipe = ExecutableRecord.from_bytes(found)
            code = compiler.recall(recipe.facts.object, recipe.facts.symbols)
            if code is not None:
                return recipe, code
        recipe, code = self._make(compiler, timed)
        if store is not None and self._key is not None:
            store.save(self._key, recipe.to_bytes())
        return recipe, code

    def _make(self, compiler: Compiler, timed: bool) -> tuple[ExecutableRecord, LoadedCode]:
        plan, static = self.plan, not self.graph.dim_names
        if static:  # sizes beyond all measure cannot even be compiled
            check_memory(plan.least_bytes, lambda: plan.arrays({}), {})
        machine = compiler.machine
        if self._narrow:
            machine = replace(machine, width=1)
        module = codegen.ModuleEmitter(plan, machine, timed)
        made = compiler.assemble(module.text(), self._light)
        recipe = recipe_of(plan, module, made, static)
        if static and not timed:
            self._plan = None  # it is large, and can be made again
        return recipe, compiler.load(made.code, module.symbols)

    @property
    def plan(self) -> KernelPlan:
        """The kernels that the graph became."""
        if self._plan is None:
            graph = prepared(self.graph, self._simplify)
            self._plan = planning.KernelPlan(graph, self._donate, self._light)
        return self._plan

    def place(self, sizes: Mapping[str, int]) -> BufferPlacement:
        """Where the memory of a call at these sizes lies. For the first sizes the store is asked: a
        plan takes longer to make than the code to load."""
        store = current_store()
        if store is None or self._key is None or (self._plan is not None and self._shaped):
            return place(self.plan, sizes)
        key = key_of(["placement", self._key, str([*sizes.items()])])
        found = store.load(key)
        if found is not None:
            return BufferPlacement.from_bytes(found)
        placement = place(self.plan, sizes)
        store.save(key, placement.to_bytes())
        return placement

    @property
    def functions(self) -> int:
        """How many kernels differ."""
        return self.recipe.facts.functions

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        listed = list(arrays)
        if self.donated and len(listed) == self.count:
            for j in self.donated.values():
                listed[j] = np.array(listed[j])
        return self.consume(listed)

    def consume(self, arrays: list[Array]) -> list[Array]:
        """The same, but arrays that are donated become outputs where the list has the only
        reference to them, and they can be written to."""
        shaped = self.last if self._axes is None else self._seen(arrays)
        results = shaped.quick(arrays) if shaped is not None else None
        if results is not None:
            return results
        arrays[:] = map(host, arrays)  # those of another backend
        shaped = self.shaped_for(arrays)
        for j in self.donated.values():
            if not is_unshared(arrays, j):
                arrays[j] = np.array(arrays[j], order="C")
        results = shaped.quick(arrays)
        return results if results is not None else shaped.slow(arrays)

    def _seen(self, arrays: Sequence[Array]) -> SpecializedExecutable | None:
        """What calls of such sizes share, if there was one, by the axes that say what names stand
        for: all else of the arrays is looked at when they are bound."""
        try:
            return self._shaped.get(tuple([arrays[i].shape[axis] for i, axis in self._axes or ()]))
        except IndexError:
            return None

    def enter(self, frame: CallFrame, arrays: list[Array]) -> int:
        """Run on a frame that holds all addresses; the number of the check that failed, or 0.

        A long run that is interrupted ends between two kernels or blocks of rows, with all arrays
        as they were; once it has begun to overwrite donated ones, it goes on to its end. What has
        overwritten any, or may have, leaves nothing in `arrays`.
        """
        found: list[int] = []

        def run() -> int:
            found.append(self.run_once(frame))
            return found[0]

        try:
            failed = interruptible(run, frame.stop) if frame.stop else run()
            if self.donated and not failed:
                arrays.clear()
            return failed
        except BaseException:
            if self.donated and (found == [0] or not frame.stop):
                arrays.clear()
            raise

    def run_once(self, frame: CallFrame) -> int:
        """Run on a frame, without all that `enter` does for calls."""
        return self._compiler.team.run(
            self.address, frame.address, frame.threads, frame.pace, self.subnormals.address
        )

    def shares(self, placement: BufferPlacement) -> bool:
        """Whether threads share the work of a call."""
        facts = self.recipe.facts
        return facts.threaded and (not self._named or placement.shared >= TUNING.parallel_grain_ns)

    def peak_of(self, placement: BufferPlacement) -> int:
        """Bytes that a call allocates, with the scratch memory of each of its threads."""
        more = self.threads() - 1 if self.shares(placement) else 0
        return placement.peak + more * self.recipe.facts.scratch

    def threads(self) -> int:
        """How many threads a program that shares work may use."""
        return threads_here()

    def arena(self, size: int) -> Array:
        """Memory of this size at least, and twice as much at most."""
        with contextlib.suppress(IndexError):
            spare = self.spares.pop()
            if size <= spare.nbytes <= 2 * size and spare is not self.common:
                return spare
        return self.allocate((size,), np.dtype(np.uint8))

    @staticmethod
    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory for an output, or for the arena."""
        return np.empty(shape, dtype)

    def shaped_for(self, arrays: Sequence[Array]) -> SpecializedExecutable:
        """Check the arrays against the inputs' types; what calls of such sizes share."""
        sizes = bind(self.graph.inputs, arrays)
        key = tuple(sizes.values())  # bind lists the sizes in the order of the inputs
        found = self._shaped.get(key)
        if found is None:
            found = SpecializedExecutable(self, sizes)
            if len(self._shaped) >= TUNING.kept_frames:
                self._shaped.clear()
            self._shaped[key] = found
        self.turn_to(found)
        return found

    def turn_to(self, shaped: SpecializedExecutable) -> None:
        """Calls go on at these sizes."""
        if self.last is not shaped and self.last is not None:
            self.last.rest()
        self.last = shaped

    def failure(self, check: int, value: int, arrays: Sequence[Array]) -> BaseException:
        """What to raise for a check that failed with this value."""
        node, sizes = self.plan.checks[check], bind(self.graph.inputs, arrays)
        asked = what_to_ask(node)
        if asked is not None:  # the operation itself knows what is wrong with its operands
            return answer(asked, self._values(asked.inputs, arrays, sizes), sizes)
        index = index_to_find(node, self.plan.source.inputs)
        if index is None:
            return failure_of(node, value, sizes)
        return failure_of(node, value, sizes, self._values([index], arrays, sizes)[0])

    def _values(
        self, nodes: Sequence[Node], arrays: Sequence[Array], sizes: Mapping[str, int]
    ) -> list[Array]:
        """What nodes of the source are for these inputs."""
        given = Graph(self.plan.source.inputs, nodes)
        return list(evaluated(given.bind(sizes) if sizes else given, arrays))

    # -- about the program --------------------------------------------------------------------
    @property
    def predicted_peak(self) -> int:
        """Bytes that one call allocates: arena and outputs. Of a graph with symbolic sizes, those
        of the latest call; see `peak_bytes`."""
        return self.last.peak if self.last is not None else 0

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        """Bytes that one call with these sizes allocates: arena and outputs."""
        return self.peak_of(place(self.plan, sizes))

    def explain(self, sizes: Mapping[str, int] | None = None) -> str:
        """The kernels and what they cost, as text."""
        return self.plan.explain(sizes)

    def told(self, arrays: Sequence[Array]) -> list[Array]:
        """The results of a call, which tells `RUNS` how long each kernel took. For a program made
        with `timed`."""
        counted, plan = self._counted(), self.plan
        start = time.perf_counter()
        results = self(arrays)
        passed = (time.perf_counter() - start) * 1e9
        runs = RUNS.get()
        if runs is not None:
            sizes = bind(self.graph.inputs, arrays)
            times = _shares(counted, passed)
            runs.append(KernelTimes(plan, self.graph, sizes, times, self.met_subnormals))
        return results

    def measure(self, arrays: Sequence[Array], calls: int = 20) -> list[float]:
        """Nanoseconds of each kernel in one call: its share of the cycles, of the time of a call.
        What passes between kernels is spread over them. For a program made with `timed`."""
        self(arrays)  # memory and caches are ready afterwards
        counted = self._counted()
        start = time.perf_counter()
        for _ in range(calls):
            self(arrays)
        return _shares(counted, (time.perf_counter() - start) / calls * 1e9)

    @property
    def met_subnormals(self) -> list[bool] | None:
        """Which kernels met subnormal numbers since counting began; None where the processor does
        not tell. For a program made with `timed`."""
        if self.times is None or not tells():
            return None
        return [bool(n) for n in self.times[MET::COUNTER_WORDS]]

    def _counted(self) -> Array:
        """The cycles of each kernel from now on."""
        if self.times is None:
            raise BackendError("only a program made with timed=True counts the cycles of kernels")
        self.times[:] = 0
        return self.times[COUNTED_CYCLES::COUNTER_WORDS]


def _shares(cycles: Array, nanoseconds: float) -> list[float]:
    """Time in proportion to cycles."""
    total = max(int(cycles.sum()), 1)
    return [float(t) * nanoseconds / total for t in cycles]


def _known(of: TensorType, sizes: Mapping[str, int]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Dtype and shape at sizes that are known."""
    return of.dtype.dtype, tuple([evaluate(d, sizes) for d in of.shape])


def readable(a: Array) -> Array:
    """A contiguous, aligned array; one of no elements gets memory of which the first can be read.

    Compiled code reads element 0 instead of one that does not exist, where it is not used.
    """
    if a.size == 0:
        return np.zeros(ALIGNMENT, np.uint8)
    return np.array(a, order="C", copy=True)
