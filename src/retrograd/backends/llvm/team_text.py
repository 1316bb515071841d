"""The native half of the team, as LLVM IR text: waiting, barriers, launches.

Everything is built of one thing, a *flag*: a counter in memory with one thread that adds to it
(`signal`) and one that waits for it to move on (`wait`). No two threads ever write the same flag,
so there is nothing to contend for.

Flag, 256 bytes; the two halves lie in different cache lines, because they are written by different
threads, and 128 bytes apart, because processors fetch lines in pairs:

      0  i32  count of signals, the word that the waiter sleeps on
      4  i32  whether the waiter sleeps
      8       the job, in flags that hand one out: ptr run, ptr block, i64 threads, i64 mode
    128  i32  count of signals that the waiter has seen

Thread, 3328 bytes: flag `go` at 0, flag `done` at 256, ten flags of barriers from 512, and a line
of its own at 3072 with the number, modulo 3, of its next vote, and at 3080 the system's number for
the thread; at 3200, in another line, a word that `drive_text.py` uses.

Team: 1024 bytes, then the threads by number.

      0  i64  whether a launch is running
    128  i64  workers that have arrived; 136 numbers given out to workers
    256  i64  pauses before a waiter sleeps; 264 the same where threads outnumber processors;
              272 processors; 280 what holds for the present launch;
              288 the processor that workers keep off, -1 for none; 296 how many of them do;
              304 whether they shall; 336 the address of `rg_vote`
    384  i64  votes, three of them in turn
    512       the processors that workers may use, a bit each
"""

from __future__ import annotations

import platform
from string import Template

from retrograd.backends.llvm.team_system import pause, system_text

MOST_THREADS = 1024  # two to the number of a thread's barrier flags
THREAD_BYTES = 3328
VOTE = 336
PLACES, CLAIM = 1024, 3200  # where threads begin, and of each the word for what is left to do
TEAM_BYTES = PLACES + MOST_THREADS * THREAD_BYTES

_TEXT = Template("""
define internal ptr @place(ptr %team, i64 %thread) {
  %offset = mul i64 %thread, 3328
  %from = add i64 %offset, 1024
  %at = getelementptr i8, ptr %team, i64 %from
  ret ptr %at
}

; A thread that is given a team sleeps on a processor that workers keep off: see `hold`.
define internal void @wait(ptr %flag, i64 %pauses, ptr %team) {
start:
  %mask = alloca [128 x i8], align 8
  %seen.at = getelementptr i8, ptr %flag, i64 128
  %seen = load i32, ptr %seen.at
  br label %spin
spin:
  %k = phi i64 [ 0, %start ], [ %k.next, %rest ]
  %now = load atomic i32, ptr %flag acquire, align 4
  %still = icmp eq i32 %now, %seen
  br i1 %still, label %rest, label %done
rest:
  $pause
  %k.next = add i64 %k, 1
  %patient = icmp ult i64 %k.next, %pauses
  br i1 %patient, label %spin, label %tire
tire:
  ; Either the signaller sees that we sleep, or we see its signal: hence seq_cst on all four.
  %asleep = getelementptr i8, ptr %flag, i64 4
  store atomic i32 1, ptr %asleep seq_cst, align 4
  %caller = icmp ne ptr %team, null
  br i1 %caller, label %stick, label %look
stick:
  %held = call i1 @hold(ptr %team, ptr %mask)
  br label %look
look:
  %bound = phi i1 [ false, %tire ], [ %held, %stick ], [ %bound, %sleep ]
  %last = load atomic i32, ptr %flag seq_cst, align 4
  %same = icmp eq i32 %last, %seen
  br i1 %same, label %sleep, label %wake
sleep:
  call void @park(ptr %flag, i32 %seen)
  br label %look
wake:
  store atomic i32 0, ptr %asleep monotonic, align 4
  br i1 %bound, label %free, label %done
free:
  call void @let_go(ptr %mask)
  br label %done
done:
  %next = add i32 %seen, 1
  store i32 %next, ptr %seen.at
  ret void
}

define internal void @signal(ptr %flag) {
start:
  %old = load atomic i32, ptr %flag monotonic, align 4
  %new = add i32 %old, 1
  store atomic i32 %new, ptr %flag seq_cst, align 4
  %asleep.at = getelementptr i8, ptr %flag, i64 4
  %asleep = load atomic i32, ptr %asleep.at seq_cst, align 4
  %sleeps = icmp ne i32 %asleep, 0
  br i1 %sleeps, label %wake, label %done
wake:
  call void @unpark(ptr %flag)
  br label %done
done:
  ret void
}

; All threads wait for each other. In round r each thread signals the one 2^r places further on, so
; after log2(threads) rounds each has heard of all, directly or not ("dissemination barrier").
define void @rg_barrier(ptr %team, i64 %thread, i64 %threads) {
start:
  %many = icmp ugt i64 %threads, 1
  br i1 %many, label %enter, label %done
enter:
  %pauses.at = getelementptr i8, ptr %team, i64 280
  %pauses = load i64, ptr %pauses.at
  %first = icmp eq i64 %thread, 0
  %stay = select i1 %first, ptr %team, ptr null
  br label %round
round:
  %step = phi i64 [ 1, %enter ], [ %step.next, %round ]
  %offset = phi i64 [ 512, %enter ], [ %offset.next, %round ]
  %sum = add i64 %thread, %step
  %over = icmp uge i64 %sum, %threads
  %around = sub i64 %sum, %threads
  %to = select i1 %over, i64 %around, i64 %sum
  %theirs = call ptr @place(ptr %team, i64 %to)
  %theirs.flag = getelementptr i8, ptr %theirs, i64 %offset
  call void @signal(ptr %theirs.flag)
  %mine = call ptr @place(ptr %team, i64 %thread)
  %mine.flag = getelementptr i8, ptr %mine, i64 %offset
  call void @wait(ptr %mine.flag, i64 %pauses, ptr %stay)
  %step.next = shl i64 %step, 1
  %offset.next = add i64 %offset, 256
  %more = icmp ult i64 %step.next, %threads
  br i1 %more, label %round, label %done
done:
  ret void
}

; A barrier that returns the largest (unsigned) of what the threads bring, to all the same.
; Three votes take turns: while one is read, the next may be written, and the one after is empty.
define i64 @rg_vote(ptr %team, i64 %thread, i64 %threads, i64 %mine) {
start:
  %many = icmp ugt i64 %threads, 1
  br i1 %many, label %enter, label %alone
alone:
  ret i64 %mine
enter:
  %own = call ptr @place(ptr %team, i64 %thread)
  %turn.at = getelementptr i8, ptr %own, i64 3072
  %turn = load i64, ptr %turn.at
  %after = add i64 %turn, 1
  %wraps = icmp eq i64 %after, 3
  %turn.next = select i1 %wraps, i64 0, i64 %after
  store i64 %turn.next, ptr %turn.at
  %votes = getelementptr i8, ptr %team, i64 384
  %vote = getelementptr i64, ptr %votes, i64 %turn
  %first = icmp eq i64 %thread, 0
  br i1 %first, label %look, label %bring
look:
  %empty = getelementptr i64, ptr %votes, i64 %turn.next
  %left = load atomic i64, ptr %empty monotonic, align 8
  %dirty = icmp ne i64 %left, 0  ; a store would take the line away from the others
  br i1 %dirty, label %clear, label %bring
clear:
  store atomic i64 0, ptr %empty monotonic, align 8
  br label %bring
bring:
  %something = icmp ne i64 %mine, 0
  br i1 %something, label %add, label %meet
add:
  %was = atomicrmw umax ptr %vote, i64 %mine monotonic
  br label %meet
meet:
  call void @rg_barrier(ptr %team, i64 %thread, i64 %threads)
  %result = load atomic i64, ptr %vote monotonic, align 8
  ret i64 %result
}

; Thread t starts t + 2^k for every 2^k > t, and later waits for the same: a tree of depth log2.
define internal i64 @first_step(i64 %thread) {
  %zeros = call i64 @llvm.ctlz.i64(i64 %thread, i1 false)
  %bits = sub i64 64, %zeros
  %step = shl i64 1, %bits
  ret i64 %step
}

define internal void @release(
    ptr %team, i64 %thread, ptr %run, ptr %block, i64 %threads, i64 %mode) {
start:
  %step.0 = call i64 @first_step(i64 %thread)
  br label %head
head:
  %step = phi i64 [ %step.0, %start ], [ %step.next, %child ]
  %to = add i64 %thread, %step
  %more = icmp ult i64 %to, %threads
  br i1 %more, label %child, label %done
child:
  %go = call ptr @place(ptr %team, i64 %to)
  %run.at = getelementptr i8, ptr %go, i64 8
  store ptr %run, ptr %run.at
  %block.at = getelementptr i8, ptr %go, i64 16
  store ptr %block, ptr %block.at
  %threads.at = getelementptr i8, ptr %go, i64 24
  store i64 %threads, ptr %threads.at
  %mode.at = getelementptr i8, ptr %go, i64 32
  store i64 %mode, ptr %mode.at
  call void @signal(ptr %go)
  %step.next = shl i64 %step, 1
  br label %head
done:
  ret void
}

define internal void @collect(ptr %team, i64 %thread, i64 %threads) {
start:
  %pauses.at = getelementptr i8, ptr %team, i64 280
  %pauses = load i64, ptr %pauses.at
  %first = icmp eq i64 %thread, 0
  %stay = select i1 %first, ptr %team, ptr null
  %step.0 = call i64 @first_step(i64 %thread)
  br label %head
head:
  %step = phi i64 [ %step.0, %start ], [ %step.next, %child ]
  %from = add i64 %thread, %step
  %more = icmp ult i64 %from, %threads
  br i1 %more, label %child, label %done
child:
  %place = call ptr @place(ptr %team, i64 %from)
  %done.flag = getelementptr i8, ptr %place, i64 256
  call void @wait(ptr %done.flag, i64 %pauses, ptr %stay)
  %step.next = shl i64 %step, 1
  br label %head
done:
  ret void
}

; One thread's share of a launch.
define internal i64 @share(ptr %team, i64 %thread, ptr %run, ptr %block, i64 %threads, i64 %mode) {
  call void @release(ptr %team, i64 %thread, ptr %run, ptr %block, i64 %threads, i64 %mode)
  %own = call ptr @place(ptr %team, i64 %thread)
  %turn.at = getelementptr i8, ptr %own, i64 3072
  store i64 0, ptr %turn.at
  %result = call i64 %run(ptr %block, i64 %thread, i64 %threads, ptr %team)
  call void @collect(ptr %team, i64 %thread, i64 %threads)
  ret i64 %result
}

; The life of a worker. It takes the next number, reports once those before it have, never returns.
define void @work(ptr %team, i64 %id) {
start:
  %given.at = getelementptr i8, ptr %team, i64 136
  %before = atomicrmw add ptr %given.at, i64 1 seq_cst
  %thread = add i64 %before, 1
  %go = call ptr @place(ptr %team, i64 %thread)
  %id.at = getelementptr i8, ptr %go, i64 3080
  store i64 %id, ptr %id.at
  %arrived.at = getelementptr i8, ptr %team, i64 128
  br label %queue
queue:
  %arrived = load atomic i64, ptr %arrived.at acquire, align 8
  %turn = icmp eq i64 %arrived, %before
  br i1 %turn, label %report, label %rest
rest:
  $pause
  br label %queue
report:
  store atomic i64 %thread, ptr %arrived.at release, align 8
  %done.flag = getelementptr i8, ptr %go, i64 256
  %pauses.at = getelementptr i8, ptr %team, i64 280
  br label %next
next:
  %pauses = load atomic i64, ptr %pauses.at monotonic, align 8
  call void @wait(ptr %go, i64 %pauses, ptr null)
  %run.at = getelementptr i8, ptr %go, i64 8
  %run = load ptr, ptr %run.at
  %block.at = getelementptr i8, ptr %go, i64 16
  %block = load ptr, ptr %block.at
  %threads.at = getelementptr i8, ptr %go, i64 24
  %threads = load i64, ptr %threads.at
  %mode.at = getelementptr i8, ptr %go, i64 32
  %mode = load i64, ptr %mode.at
  call void @set_mode(i64 %mode)
  %ignored = call i64 @share(ptr %team, i64 %thread, ptr %run, ptr %block, i64 %threads, i64 %mode)
  call void @signal(ptr %done.flag)
  br label %next
}

; Run a program on at most so many threads; on the caller's alone while the team has other work.
define i64 @launch(ptr %team, ptr %run, ptr %block, i64 %asked) {
start:
  %arrived.at = getelementptr i8, ptr %team, i64 128
  %arrived = load atomic i64, ptr %arrived.at acquire, align 8
  %there = add i64 %arrived, 1
  %threads = call i64 @llvm.umin.i64(i64 %asked, i64 %there)
  %many = icmp ugt i64 %threads, 1
  br i1 %many, label %try, label %alone
try:
  %taken = cmpxchg ptr %team, i64 0, i64 1 acquire monotonic
  %ours = extractvalue { i64, i1 } %taken, 1
  br i1 %ours, label %together, label %alone
alone:
  %result.alone = call i64 %run(ptr %block, i64 0, i64 1, ptr %team)
  ret i64 %result.alone
together:
  %room.at = getelementptr i8, ptr %team, i64 272
  %room = load i64, ptr %room.at
  %fits = icmp ule i64 %threads, %room
  %choice = select i1 %fits, i64 256, i64 264
  %choice.at = getelementptr i8, ptr %team, i64 %choice
  %pauses = load i64, ptr %choice.at
  %pauses.at = getelementptr i8, ptr %team, i64 280
  store atomic i64 %pauses, ptr %pauses.at monotonic, align 8
  %votes = getelementptr i8, ptr %team, i64 384
  store [3 x i64] zeroinitializer, ptr %votes
  call void @settle(ptr %team, i64 %arrived, i1 %fits)
  %mode = call i64 @get_mode()
  %result = call i64 @share(ptr %team, i64 0, ptr %run, ptr %block, i64 %threads, i64 %mode)
  store atomic i64 0, ptr %team release, align 8
  ret i64 %result
}

; The same with all arguments in memory, which is faster to call from Python.
define i64 @dispatch(ptr %job) {
  %run = load ptr, ptr %job
  %block.at = getelementptr i64, ptr %job, i64 1
  %block = load ptr, ptr %block.at
  %threads.at = getelementptr i64, ptr %job, i64 2
  %threads = load i64, ptr %threads.at
  %team.at = getelementptr i64, ptr %job, i64 3
  %team = load ptr, ptr %team.at
  %result = call i64 @launch(ptr %team, ptr %run, ptr %block, i64 %threads)
  ret i64 %result
}

; So many pauses, to measure how long they take.
define void @pauses(i64 %count) {
start:
  br label %loop
loop:
  %k = phi i64 [ 0, %start ], [ %k.next, %loop ]
  $pause
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
""")


def team_text(how: str, machine: str = platform.machine()) -> str:
    """The module for a kind of processor, with threads that sleep by `how` (see `parking`)."""
    return _TEXT.substitute(pause=pause(machine)) + system_text(how, machine)
