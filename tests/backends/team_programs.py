"""Programs for teams, written by hand, and what it takes to run them."""

from __future__ import annotations

import functools
import time

import llvmlite.binding as llvm
import numpy as np

from retrograd.backends.llvm.team import Team, current_team

PATIENCE = 60.0  # seconds; only to fail instead of hanging

# Each gets an array of i64. `meet`: in every of [0] rounds write the round into cell [16 t], meet,
# count in [1] the cells of others that differ, meet. `poll`: in every of [0] rounds thread k mod n
# votes k mod 3, and a wrong result counts in [1]. `add`: 64 partial sums of f64, of [0] numbers
# each, from address [1] to address [2], part c by thread c mod n; then thread 0 adds them up to
# [2][64]. `hold`: [0] becomes the number of threads, and it runs until [1] is not 0. `endless`:
# votes on [0] until it is not 0; [1] is 1 from the beginning and 2 at the end. `halve`: [16 + t]
# becomes a half of the f64 at [0]. `late`: thread 0 waits for others, who come when [1] is not 0.
TEXT = """
declare void @rg_barrier(ptr, i64, i64)
declare i64 @rg_vote(ptr, i64, i64, i64)

define i64 @count(ptr %b, i64 %t, i64 %n, ptr %team) {
  ret i64 %n
}

define i64 @meet(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %rounds = load i64, ptr %b
  %wrong.at = getelementptr i64, ptr %b, i64 1
  %own.index = mul i64 %t, 16
  %own.far = add i64 %own.index, 16
  %own = getelementptr i64, ptr %b, i64 %own.far
  br label %round
round:
  %k = phi i64 [ 0, %start ], [ %k.next, %after ]
  store i64 %k, ptr %own
  call void @rg_barrier(ptr %team, i64 %t, i64 %n)
  br label %cell
cell:
  %c = phi i64 [ 0, %round ], [ %c.next, %cell ]
  %c.index = mul i64 %c, 16
  %c.far = add i64 %c.index, 16
  %c.at = getelementptr i64, ptr %b, i64 %c.far
  %value = load i64, ptr %c.at
  %differs = icmp ne i64 %value, %k
  %one = zext i1 %differs to i64
  %was = atomicrmw add ptr %wrong.at, i64 %one monotonic
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %n
  br i1 %c.more, label %cell, label %after
after:
  call void @rg_barrier(ptr %team, i64 %t, i64 %n)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %rounds
  br i1 %more, label %round, label %done
done:
  ret i64 %n
}

define i64 @poll(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %rounds = load i64, ptr %b
  %wrong.at = getelementptr i64, ptr %b, i64 1
  br label %round
round:
  %k = phi i64 [ 0, %start ], [ %k.next, %round ]
  %turn = urem i64 %k, %n
  %mine = icmp eq i64 %turn, %t
  %want = urem i64 %k, 3
  %bring = select i1 %mine, i64 %want, i64 0
  %got = call i64 @rg_vote(ptr %team, i64 %t, i64 %n, i64 %bring)
  %differs = icmp ne i64 %got, %want
  %one = zext i1 %differs to i64
  %was = atomicrmw add ptr %wrong.at, i64 %one monotonic
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %rounds
  br i1 %more, label %round, label %done
done:
  ret i64 %n
}

define i64 @add(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %size = load i64, ptr %b
  %from.at = getelementptr i64, ptr %b, i64 1
  %from = load ptr, ptr %from.at
  %to.at = getelementptr i64, ptr %b, i64 2
  %to = load ptr, ptr %to.at
  br label %part
part:
  %c = phi i64 [ %t, %start ], [ %c.next, %stored ]
  %mine = icmp ult i64 %c, 64
  br i1 %mine, label %prepare, label %meet
prepare:
  %first = mul i64 %c, %size
  br label %item
item:
  %i = phi i64 [ 0, %prepare ], [ %i.next, %item ]
  %s = phi double [ 0.0, %prepare ], [ %s.next, %item ]
  %index = add i64 %first, %i
  %x.at = getelementptr double, ptr %from, i64 %index
  %x = load double, ptr %x.at
  %s.next = fadd double %s, %x
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %size
  br i1 %more, label %item, label %stored
stored:
  %s.at = getelementptr double, ptr %to, i64 %c
  store double %s.next, ptr %s.at
  %c.next = add i64 %c, %n
  br label %part
meet:
  call void @rg_barrier(ptr %team, i64 %t, i64 %n)
  %first.thread = icmp eq i64 %t, 0
  br i1 %first.thread, label %total, label %done
total:
  %j = phi i64 [ 0, %meet ], [ %j.next, %total ]
  %a = phi double [ 0.0, %meet ], [ %a.next, %total ]
  %p.at = getelementptr double, ptr %to, i64 %j
  %p = load double, ptr %p.at
  %a.next = fadd double %a, %p
  %j.next = add i64 %j, 1
  %left = icmp ult i64 %j.next, 64
  br i1 %left, label %total, label %write
write:
  %y.at = getelementptr double, ptr %to, i64 64
  store double %a.next, ptr %y.at
  br label %done
done:
  ret i64 %n
}

define i64 @hold(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  store atomic i64 %n, ptr %b release, align 8
  %go.at = getelementptr i64, ptr %b, i64 1
  br label %wait
wait:
  %go = load atomic i64, ptr %go.at acquire, align 8
  %no = icmp eq i64 %go, 0
  br i1 %no, label %wait, label %done
done:
  ret i64 %n
}

define i64 @endless(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %state = getelementptr i64, ptr %b, i64 1
  store atomic i64 1, ptr %state release, align 8
  br label %again
again:
  %mine = load atomic i64, ptr %b monotonic, align 8
  %stop = call i64 @rg_vote(ptr %team, i64 %t, i64 %n, i64 %mine)
  %on = icmp eq i64 %stop, 0
  br i1 %on, label %again, label %done
done:
  store atomic i64 2, ptr %state release, align 8
  ret i64 -1
}

define i64 @late(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  store atomic i64 %n, ptr %b release, align 8
  %first = icmp eq i64 %t, 0
  %go.at = getelementptr i64, ptr %b, i64 1
  br i1 %first, label %meet, label %wait
wait:
  %go = load atomic i64, ptr %go.at acquire, align 8
  %no = icmp eq i64 %go, 0
  br i1 %no, label %wait, label %meet
meet:
  call void @rg_barrier(ptr %team, i64 %t, i64 %n)
  ret i64 %n
}

define i64 @halve(ptr %b, i64 %t, i64 %n, ptr %team) {
  %x = load double, ptr %b
  %y = fmul double %x, 0.5
  %far = add i64 %t, 16
  %at = getelementptr i64, ptr %b, i64 %far
  store double %y, ptr %at
  ret i64 %n
}
"""

# On x86: flush numbers below the normal range to zero, in this thread, or stop doing so.
FLUSH = """
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i64 @flush(i32 %bits) {
  %at = alloca i32
  store i32 %bits, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret i64 0
}
"""


def link(text: str, names: list[str], symbols: dict[str, int]) -> dict[str, int]:
    """Addresses of functions of a module, loaded for good."""
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    linker = llvm.create_lljit_compiler(machine)
    library = llvm.JITLibraryBuilder().add_ir(text)
    for name, address in symbols.items():
        library.import_symbol(name, address)
    for name in names:
        library.export_symbol(name)
    tracker = library.link(linker, "test")
    found = {name: tracker[name] for name in names}
    tracker.detach()
    linker.detach()
    return found


class Programs:
    """The programs above, for one team."""

    def __init__(self, team: Team) -> None:
        names = ["count", "meet", "poll", "add", "hold", "endless", "halve", "late"]
        self.team = team
        self.code = link(TEXT, names, team.symbols)

    def run(self, name: str, block: np.ndarray, threads: int) -> int:
        return self.team.run(self.code[name], block.ctypes.data, threads)

    def wrong(self, name: str, rounds: int, threads: int) -> int:
        """What `meet` or `poll` counted; every thread that was asked for took part."""
        block = np.zeros(16 * 17, np.int64)
        block[0] = rounds
        assert self.run(name, block, threads) == threads
        return int(block[1])

    def total(self, x: np.ndarray, threads: int) -> tuple[float, int]:
        """The sum of an array by `add`, and on how many threads."""
        assert x.dtype == np.float64
        assert x.size % 64 == 0
        to = np.zeros(65)
        block = np.array([x.size // 64, x.ctypes.data, to.ctypes.data], np.int64)
        used = self.run("add", block, threads)
        return float(to[64]), used

    def gather(self, threads: int) -> None:
        """Wait until so many threads are there."""
        self.team.prepare(threads)
        deadline = time.monotonic() + PATIENCE
        while self.team.threads < threads:
            assert time.monotonic() < deadline, f"{self.team.threads} threads of {threads}"
            time.sleep(0.001)


def wait_for(cell: np.ndarray, index: int, value: int) -> None:
    """Wait until another thread has written a number."""
    deadline = time.monotonic() + PATIENCE
    while int(cell[index]) != value:
        assert time.monotonic() < deadline, f"{int(cell[index])} instead of {value}"
        time.sleep(0.001)


@functools.cache
def programs() -> Programs:
    """The programs for the team of this process."""
    return Programs(current_team())
