"""Programs for teams, written by hand, and what it takes to run them."""

from __future__ import annotations

import functools
import time

import llvmlite.binding as llvm
import numpy as np

from retrograd.runtime.thread_pool import ThreadPool, current_team

PATIENCE = 60.0  # seconds; only to fail instead of hanging

# Each gets an array of i64. `meet`: in every of [0] rounds all threads come; each of the others
# writes the number of the round, from 1, into its cell [16 t] as it leaves, and cells that the
# caller then finds to differ count in [1]. `bag`: in every of [0] rounds whoever comes takes some
# of 16 items, as [2] counts, and writes the round into their cells, [16] to [31]; wrong ones count
# in [1]. `poll`: the same, but whoever takes item k mod 16 returns k mod 3, and wrong results count
# in [1]. `add`: 64 partial sums of f64, of [0] numbers each, from address [1] to address [2]; then
# the caller adds them up to [2][64]; [3] counts those that have been taken. `hold`: [0] becomes the
# number of threads, and it runs until [1] is not 0. `endless`: shares work that returns [0] until
# that is not 0; [1] is 1 from the beginning and 2 at the end. `halve`: [16 + t] becomes a half of
# the f64 at [0]; [2] counts. `late`: the caller waits for others, who have come when [0] is set and
# leave when [1] is not 0.
TEXT = """
declare i64 @rg_share(ptr, ptr, ptr, i64)

define i64 @count(ptr %b, i64 %t, i64 %n, ptr %team) {
  ret i64 %n
}

; Come, and wait for all others where this is the caller; how often this was done is [2].
define internal void @come(ptr %b, i64 %t, i64 %n, i64 %round) {
start:
  %came = getelementptr i64, ptr %b, i64 2
  %was = atomicrmw add ptr %came, i64 1 acq_rel
  %all = mul i64 %n, %round
  %leads = icmp eq i64 %t, 0
  br i1 %leads, label %wait, label %done
wait:
  %here = load atomic i64, ptr %came acquire, align 8
  %less = icmp ult i64 %here, %all
  br i1 %less, label %wait, label %done
done:
  ret void
}

define internal i64 @meet.work(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %round.at = getelementptr i64, ptr %b, i64 3
  %round = load i64, ptr %round.at
  call void @come(ptr %b, i64 %t, i64 %n, i64 %round)
  br label %idle
idle:  ; the caller has left meanwhile
  %k = phi i64 [ 0, %start ], [ %k.next, %idle ]
  %k.next = add i64 %k, 1
  %seen = load atomic i64, ptr %b monotonic, align 8
  %more = icmp ult i64 %k.next, 100
  br i1 %more, label %idle, label %write
write:
  %index = mul i64 %t, 16
  %far = add i64 %index, 16
  %cell = getelementptr i64, ptr %b, i64 %far
  store i64 %round, ptr %cell
  ret i64 0
}

; In every round share `work`, which gets the round in [3]; then count cells `step` apart that are
; not the round, from the one of number `first` to `end`, or a result that is not the round mod 3.
define internal void @rounds(ptr %b, i64 %n, ptr %team, ptr %work, i64 %first, i64 %end, i64 %step,
                             i1 %votes) {
start:
  %rounds = load i64, ptr %b
  %wrong.at = getelementptr i64, ptr %b, i64 1
  %cursor = getelementptr i64, ptr %b, i64 2
  %round.at = getelementptr i64, ptr %b, i64 3
  br label %round
round:
  %k = phi i64 [ 1, %start ], [ %k.next, %after ]
  store i64 %k, ptr %round.at
  %got = call i64 @rg_share(ptr %team, ptr %work, ptr %b, i64 %n)
  %vote = urem i64 %k, 3
  %want = select i1 %votes, i64 %vote, i64 0
  %agreed = icmp eq i64 %got, %want
  br i1 %agreed, label %cell, label %refuse
refuse:
  %before = load i64, ptr %wrong.at
  %more.wrong = add i64 %before, 1
  store i64 %more.wrong, ptr %wrong.at
  br label %cell
cell:
  %c = phi i64 [ %first, %round ], [ %first, %refuse ], [ %c.next, %look ]
  %c.more = icmp ult i64 %c, %end
  br i1 %c.more, label %look, label %after
look:
  %c.index = mul i64 %c, %step
  %c.far = add i64 %c.index, 16
  %c.at = getelementptr i64, ptr %b, i64 %c.far
  %value = load i64, ptr %c.at
  %differs = icmp ne i64 %value, %k
  %one = zext i1 %differs to i64
  %found = load i64, ptr %wrong.at
  %sum = add i64 %found, %one
  store i64 %sum, ptr %wrong.at
  %c.next = add i64 %c, 1
  br label %cell
after:
  %k.next = add i64 %k, 1
  %over = icmp ugt i64 %k.next, %rounds
  br i1 %over, label %done, label %round
done:
  ret void
}

define i64 @meet(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %share, label %done
share:
  call void @rounds(ptr %b, i64 %n, ptr %team, ptr @meet.work, i64 1, i64 %n, i64 16, i1 false)
  br label %done
done:
  ret i64 %n
}

define internal i64 @bag.work(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %round.at = getelementptr i64, ptr %b, i64 3
  %round = load i64, ptr %round.at
  %cursor = getelementptr i64, ptr %b, i64 2
  %end = mul i64 %round, 32
  %half = sub i64 %end, 16
  br label %next
next:
  ; Above 16 times the rounds so far: nothing is left to take, and the next round begins anew.
  %taken = load atomic i64, ptr %cursor monotonic, align 8
  %base = sub i64 %end, 32
  %fresh = icmp ult i64 %taken, %base
  %from = select i1 %fresh, i64 %base, i64 %taken
  %some = icmp ult i64 %from, %half
  br i1 %some, label %take, label %done
take:
  %up = add i64 %from, 1
  %swap = cmpxchg ptr %cursor, i64 %taken, i64 %up acq_rel monotonic
  %got = extractvalue { i64, i1 } %swap, 1
  br i1 %got, label %idle, label %next
idle:
  %k = phi i64 [ 0, %take ], [ %k.next, %idle ]
  %k.next = add i64 %k, 1
  %seen = load atomic i64, ptr %b monotonic, align 8
  %more = icmp ult i64 %k.next, 30
  br i1 %more, label %idle, label %write
write:
  %item = sub i64 %from, %base
  %far = add i64 %item, 16
  %cell = getelementptr i64, ptr %b, i64 %far
  store i64 %round, ptr %cell
  br label %next
done:
  ret i64 0
}

define i64 @bag(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %share, label %done
share:
  call void @rounds(ptr %b, i64 %n, ptr %team, ptr @bag.work, i64 0, i64 16, i64 1, i1 false)
  br label %done
done:
  ret i64 %n
}

define internal i64 @poll.work(ptr %b, i64 %t, i64 %n, ptr %team) {
  %round.at = getelementptr i64, ptr %b, i64 3
  %round = load i64, ptr %round.at
  call void @come(ptr %b, i64 %t, i64 %n, i64 %round)
  %turn = urem i64 %round, %n
  %mine = icmp eq i64 %turn, %t
  %vote = urem i64 %round, 3
  %bring = select i1 %mine, i64 %vote, i64 0
  ret i64 %bring
}

define i64 @poll(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %share, label %done
share:
  call void @rounds(ptr %b, i64 %n, ptr %team, ptr @poll.work, i64 0, i64 0, i64 1, i1 true)
  br label %done
done:
  ret i64 %n
}

define internal i64 @add.work(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %size = load i64, ptr %b
  %from.at = getelementptr i64, ptr %b, i64 1
  %from = load ptr, ptr %from.at
  %to.at = getelementptr i64, ptr %b, i64 2
  %to = load ptr, ptr %to.at
  %cursor = getelementptr i64, ptr %b, i64 3
  br label %part
part:
  %c = atomicrmw add ptr %cursor, i64 1 monotonic
  %mine = icmp ult i64 %c, 64
  br i1 %mine, label %prepare, label %done
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
  br label %part
done:
  ret i64 0
}

define i64 @add(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %to.at = getelementptr i64, ptr %b, i64 2
  %to = load ptr, ptr %to.at
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %share, label %alone
share:
  %all = call i64 @rg_share(ptr %team, ptr @add.work, ptr %b, i64 %n)
  br label %total
alone:
  %own = call i64 @add.work(ptr %b, i64 0, i64 1, ptr %team)
  br label %total
total:
  %j = phi i64 [ 0, %share ], [ 0, %alone ], [ %j.next, %total ]
  %a = phi double [ 0.0, %share ], [ 0.0, %alone ], [ %a.next, %total ]
  %p.at = getelementptr double, ptr %to, i64 %j
  %p = load double, ptr %p.at
  %a.next = fadd double %a, %p
  %j.next = add i64 %j, 1
  %left = icmp ult i64 %j.next, 64
  br i1 %left, label %total, label %write
write:
  %y.at = getelementptr double, ptr %to, i64 64
  store double %a.next, ptr %y.at
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

define internal i64 @endless.work(ptr %b, i64 %t, i64 %n, ptr %team) {
  %stop = load atomic i64, ptr %b monotonic, align 8
  ret i64 %stop
}

define i64 @endless(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %state = getelementptr i64, ptr %b, i64 1
  store atomic i64 1, ptr %state release, align 8
  %many = icmp ugt i64 %n, 1
  br i1 %many, label %share, label %alone
share:
  %all = call i64 @rg_share(ptr %team, ptr @endless.work, ptr %b, i64 %n)
  %on = icmp eq i64 %all, 0
  br i1 %on, label %share, label %done
alone:
  %stop = load atomic i64, ptr %b monotonic, align 8
  %on.alone = icmp eq i64 %stop, 0
  br i1 %on.alone, label %alone, label %done
done:
  store atomic i64 2, ptr %state release, align 8
  ret i64 -1
}

define internal i64 @late.work(ptr %b, i64 %t, i64 %n, ptr %team) {
start:
  %first = icmp eq i64 %t, 0
  br i1 %first, label %look, label %tell
look:
  %come = load atomic i64, ptr %b acquire, align 8
  %nobody = icmp eq i64 %come, 0
  br i1 %nobody, label %look, label %done
tell:
  store atomic i64 %n, ptr %b release, align 8
  %go.at = getelementptr i64, ptr %b, i64 1
  br label %wait
wait:
  %go = load atomic i64, ptr %go.at acquire, align 8
  %no = icmp eq i64 %go, 0
  br i1 %no, label %wait, label %done
done:
  ret i64 0
}

define i64 @late(ptr %b, i64 %t, i64 %n, ptr %team) {
  %all = call i64 @rg_share(ptr %team, ptr @late.work, ptr %b, i64 %n)
  ret i64 %n
}

define internal i64 @halve.work(ptr %b, i64 %t, i64 %n, ptr %team) {
  %x = load double, ptr %b
  %y = fmul double %x, 0.5
  %far = add i64 %t, 16
  %at = getelementptr i64, ptr %b, i64 %far
  store double %y, ptr %at
  call void @come(ptr %b, i64 %t, i64 %n, i64 1)
  ret i64 0
}

define i64 @halve(ptr %b, i64 %t, i64 %n, ptr %team) {
  %all = call i64 @rg_share(ptr %team, ptr @halve.work, ptr %b, i64 %n)
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

    def __init__(self, team: ThreadPool) -> None:
        names = ["count", "meet", "bag", "poll", "add", "hold", "endless", "halve", "late"]
        self.team = team
        self.code = link(TEXT, names, team.symbols)

    def run(self, name: str, block: np.ndarray, threads: int) -> int:
        return self.team.run(self.code[name], block.ctypes.data, threads)

    def wrong(self, name: str, rounds: int, threads: int) -> int:
        """What `meet`, `bag` or `poll` counted; as many threads as were asked for were there."""
        block = np.zeros(16 * 17, np.int64)
        block[0] = rounds
        assert self.run(name, block, threads) == threads
        return int(block[1])

    def total(self, x: np.ndarray, threads: int) -> tuple[float, int]:
        """The sum of an array by `add`, and on how many threads at most."""
        assert x.dtype == np.float64
        assert x.size % 64 == 0
        to = np.zeros(65)
        block = np.array([x.size // 64, x.ctypes.data, to.ctypes.data, 0], np.int64)
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
