"""The native half of the team, as LLVM IR text: work that threads share, waiting for it, launches.

The caller goes through a program alone. Where there is work to share it opens a *gate*
(`rg_share`), begins with the work itself, and closes the gate when nothing is left to begin.
Workers that come by meanwhile enter, do what they find, and leave. When the gate is closed the
caller waits for those that are inside: they have begun what they have not finished. A worker that
does not come, as the system has given its processor to another program, is not waited for; what
would have been its part others do.

The gate is one word, so that to see that it is open and to enter are one step:

     0 ..15  workers inside
    16       whether it is open
    17 ..27  threads that may enter, the caller included: workers with smaller numbers
    32 ..63  how often it was opened, by which workers know whether they have been inside

Who enters (`cmpxchg`, acquire) sees what the caller wrote before it opened the gate (release), and
the caller, who finds nobody inside (acquire), what workers wrote before they left (release; others
who leave later, and the caller that closes it, change the same word, which hands on what they
release).

Threads sleep on a *bell*, a count, beside which they say that they do. Whoever falls asleep reads
the count, says so, and looks once more if there is reason to; whoever gives a reason looks if they
sleep afterwards. All four are seq_cst, so that one of the two sees the other; and who has been rung
for since reading the count does not fall asleep. To say so again is up to the sleeper: whoever
rings takes it back first (`xchg`), so no ring that comes late takes back what was said later.

Thread, 512 bytes, in lines of their own, and 128 bytes apart, because processors fetch lines in
pairs:

      0  i32  the bell; 4 i32 whether the thread sleeps
    128  i64  the system's number for the thread; 136 the latest of the numbers at 656 of the team
              that it has made a copy for; 144 how often it has lost its processor to others, as
              it knows; 152 who knows that
    256  i64  what is left of its part: see `drive_text.py`

Team: 1024 bytes, then the threads by number.

      0  i64  whether a launch is running
    128  i64  workers that have arrived; 136 numbers given out to workers
    256  i64  pauses before a waiter sleeps; 264 the same where others need the processor;
              272 processors; 280 what holds for the present launch;
              288 the processor that workers keep off, -1 for none; 296 how many of them do;
              304 whether they shall; 312 until when others are taken to need processors, in
              nanoseconds, or 0; 320 when the caller looks again if they do;
              336 the address of `rg_share`
    384  i64  the gate; 392 the function that is called inside; 400 its argument; 408 how the caller
              rounds; 416 how often workers have entered it in this launch
    512       the processors that workers may use, a bit each
    640  i64  the largest result of those who have left
    648  i64  bands that were begun by all programs so far; 656 copies that were needed of blocks,
              both counted by the caller in `drive_text.py`; 664 the bands at the latest `sweep`
"""

from __future__ import annotations

import platform
from string import Template

from retrograd.runtime.native.team_system import pause, system_text
from retrograd.runtime.threads import MOST_THREADS

THREAD_BYTES = 512
SHARE, BANDS, COPIES, SWEPT = 336, 648, 656, 664
PLACES = 1024  # where threads begin, and of each:
COPIED, CLAIM = 136, 256
TEAM_BYTES = PLACES + MOST_THREADS * THREAD_BYTES

_TEXT = Template("""
define internal ptr @place(ptr %team, i64 %thread) {
  %offset = mul i64 %thread, 512
  %from = add i64 %offset, 1024
  %at = getelementptr i8, ptr %team, i64 %from
  ret ptr %at
}

; Wake a thread, if it sleeps.
define internal void @ring(ptr %bell) {
start:
  %asleep = getelementptr i8, ptr %bell, i64 4
  %sleeps = load atomic i32, ptr %asleep seq_cst, align 4
  %maybe = icmp ne i32 %sleeps, 0
  br i1 %maybe, label %take, label %done
take:
  %said = atomicrmw xchg ptr %asleep, i32 0 seq_cst
  %still = icmp ne i32 %said, 0
  br i1 %still, label %wake, label %done
wake:
  %was = atomicrmw add ptr %bell, i32 1 seq_cst
  call void @unpark(ptr %bell)
  br label %done
done:
  ret void
}

; Thread t wakes t + 2^k for every 2^k > t: a tree of depth log2.
define internal void @wake(ptr %team, i64 %thread, i64 %threads) {
start:
  %zeros = call i64 @llvm.ctlz.i64(i64 %thread, i1 false)
  %bits = sub i64 64, %zeros
  %step.0 = shl i64 1, %bits
  br label %head
head:
  %step = phi i64 [ %step.0, %start ], [ %step.next, %child ]
  %to = add i64 %thread, %step
  %more = icmp ult i64 %to, %threads
  br i1 %more, label %child, label %done
child:
  %bell = call ptr @place(ptr %team, i64 %to)
  call void @ring(ptr %bell)
  %step.next = shl i64 %step, 1
  br label %head
done:
  ret void
}

; Run `i64 work(argument, thread, threads, team)` on the caller, and on workers that come before it
; has returned there; it must return there when all that is to be done has been begun. The result is
; the largest (unsigned) of theirs.
define i64 @rg_share(ptr %team, ptr %work, ptr %argument, i64 %threads) {
start:
  %mask = alloca [128 x i8], align 8
  %gate = getelementptr i8, ptr %team, i64 384
  %work.at = getelementptr i8, ptr %team, i64 392
  store ptr %work, ptr %work.at
  %argument.at = getelementptr i8, ptr %team, i64 400
  store ptr %argument, ptr %argument.at
  ; Nobody changes a gate that is closed with nobody inside.
  %before = load atomic i64, ptr %gate monotonic, align 8
  %count = and i64 %before, -4294967296
  %count.next = add i64 %count, 4294967296
  %who = shl i64 %threads, 17
  %open = or i64 %who, 65536
  %new = or i64 %count.next, %open
  store atomic i64 %new, ptr %gate seq_cst, align 8
  call void @wake(ptr %team, i64 0, i64 %threads)
  %mine = call i64 %work(ptr %argument, i64 0, i64 %threads, ptr %team)
  %closing = atomicrmw and ptr %gate, i64 -65537 seq_cst
  %pauses.at = getelementptr i8, ptr %team, i64 280
  %pauses = load i64, ptr %pauses.at
  br label %look
look:
  %k = phi i64 [ 0, %start ], [ %k.next, %rest ]
  %now = phi i64 [ %closing, %start ], [ %seen, %rest ]
  %inside = and i64 %now, 65535
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %spin
spin:
  %k.next = add i64 %k, 1
  %patient = icmp ult i64 %k.next, %pauses
  br i1 %patient, label %rest, label %tire
rest:
  $pause
  %seen = load atomic i64, ptr %gate acquire, align 8
  br label %look
tire:
  ; It sleeps on a processor that workers keep off: see `hold`.
  %bound = call i1 @hold(ptr %team, ptr %mask)
  %bell = call ptr @place(ptr %team, i64 0)
  %asleep = getelementptr i8, ptr %bell, i64 4
  br label %again
again:
  %rings = load atomic i32, ptr %bell seq_cst, align 4
  store atomic i32 1, ptr %asleep seq_cst, align 4
  %last = load atomic i64, ptr %gate seq_cst, align 8
  %last.inside = and i64 %last, 65535
  %left = icmp eq i64 %last.inside, 0
  br i1 %left, label %wakes, label %sleep
sleep:
  call void @park(ptr %bell, i32 %rings)
  br label %again
wakes:
  store atomic i32 0, ptr %asleep monotonic, align 4
  br i1 %bound, label %free, label %done
free:
  call void @let_go(ptr %mask)
  br label %done
done:
  %worst.at = getelementptr i8, ptr %team, i64 640
  %worst = load atomic i64, ptr %worst.at monotonic, align 8
  %none = icmp eq i64 %worst, 0
  br i1 %none, label %good, label %clear
good:
  ret i64 %mine
clear:
  store atomic i64 0, ptr %worst.at monotonic, align 8
  %result = call i64 @llvm.umax.i64(i64 %mine, i64 %worst)
  ret i64 %result
}

; Enter the gate, if it is open to a thread, and for another time than `done`: what it was when the
; thread entered, or 0.
define internal i64 @enter(ptr %gate, i64 %thread, i64 %done) {
start:
  br label %look
look:
  %now = load atomic i64, ptr %gate seq_cst, align 8
  %bit = and i64 %now, 65536
  %open = icmp ne i64 %bit, 0
  %low = and i64 %now, 4294967295
  %threads = lshr i64 %low, 17
  %wanted = icmp ult i64 %thread, %threads
  %count = and i64 %now, -4294967296
  %new = icmp ne i64 %count, %done
  %both = and i1 %open, %wanted
  %may = and i1 %both, %new
  br i1 %may, label %try, label %no
try:
  %more = add i64 %now, 1
  %swap = cmpxchg ptr %gate, i64 %now, i64 %more seq_cst monotonic
  %got = extractvalue { i64, i1 } %swap, 1
  br i1 %got, label %yes, label %look
yes:
  ret i64 %now
no:
  ret i64 0
}

; Do what is shared, and leave.
define internal void @help(ptr %team, i64 %thread, i64 %entered) {
start:
  %low = and i64 %entered, 4294967295
  %threads = lshr i64 %low, 17
  call void @wake(ptr %team, i64 %thread, i64 %threads)
  %work.at = getelementptr i8, ptr %team, i64 392
  %work = load ptr, ptr %work.at
  %argument.at = getelementptr i8, ptr %team, i64 400
  %argument = load ptr, ptr %argument.at
  %helped.at = getelementptr i8, ptr %team, i64 416
  %helped = atomicrmw add ptr %helped.at, i64 1 monotonic
  %result = call i64 %work(ptr %argument, i64 %thread, i64 %threads, ptr %team)
  %something = icmp ne i64 %result, 0
  br i1 %something, label %tell, label %leave
tell:
  %worst.at = getelementptr i8, ptr %team, i64 640
  %was = atomicrmw umax ptr %worst.at, i64 %result monotonic
  br label %leave
leave:
  %gate = getelementptr i8, ptr %team, i64 384
  %before = atomicrmw sub ptr %gate, i64 1 seq_cst
  %state = and i64 %before, 131071
  %last = icmp eq i64 %state, 1  ; closed, and nobody else
  br i1 %last, label %call, label %done
call:
  %caller = call ptr @place(ptr %team, i64 0)
  %asleep.at = getelementptr i8, ptr %caller, i64 4
  %asleep = load atomic i32, ptr %asleep.at seq_cst, align 4
  %waits = icmp ne i32 %asleep, 0
  br i1 %waits, label %late, label %done
late:
  ; It has tired of waiting for this thread.
  call void @ring(ptr %caller)
  call void @look_around(ptr %team, i64 %thread)
  br label %done
done:
  ret void
}

; The life of a worker. It takes the next number, reports once those before it have, never returns.
define void @work(ptr %team, i64 %id) {
start:
  %given.at = getelementptr i8, ptr %team, i64 136
  %before = atomicrmw add ptr %given.at, i64 1 seq_cst
  %thread = add i64 %before, 1
  %bell = call ptr @place(ptr %team, i64 %thread)
  %asleep = getelementptr i8, ptr %bell, i64 4
  %id.at = getelementptr i8, ptr %bell, i64 128
  store i64 %id, ptr %id.at
  %arrived.at = getelementptr i8, ptr %team, i64 128
  br label %queue
queue:
  %arrived = load atomic i64, ptr %arrived.at acquire, align 8
  %turn = icmp eq i64 %arrived, %before
  br i1 %turn, label %report, label %line
line:
  $pause
  br label %queue
report:
  store atomic i64 %thread, ptr %arrived.at release, align 8
  %gate = getelementptr i8, ptr %team, i64 384
  %mode.at = getelementptr i8, ptr %team, i64 408
  %pauses.at = getelementptr i8, ptr %team, i64 280
  br label %next
next:
  %done = phi i64 [ 0, %report ], [ %count, %do ], [ %done, %sleep ]
  %pauses = load atomic i64, ptr %pauses.at monotonic, align 8
  br label %spin
spin:
  %k = phi i64 [ 0, %next ], [ %k.next, %rest ]
  %soon = call i64 @enter(ptr %gate, i64 %thread, i64 %done)
  %in = icmp ne i64 %soon, 0
  br i1 %in, label %do, label %rest
rest:
  $pause
  %k.next = add i64 %k, 1
  %patient = icmp ult i64 %k.next, %pauses
  br i1 %patient, label %spin, label %tire
tire:
  %rings = load atomic i32, ptr %bell seq_cst, align 4
  store atomic i32 1, ptr %asleep seq_cst, align 4
  %late = call i64 @enter(ptr %gate, i64 %thread, i64 %done)
  %in.late = icmp ne i64 %late, 0
  br i1 %in.late, label %up, label %sleep
up:
  store atomic i32 0, ptr %asleep monotonic, align 4
  br label %do
sleep:
  call void @park(ptr %bell, i32 %rings)
  %rings.now = load atomic i32, ptr %bell seq_cst, align 4
  %silent = icmp eq i32 %rings.now, %rings
  br i1 %silent, label %tire, label %next
do:
  %entered = phi i64 [ %soon, %spin ], [ %late, %up ]
  %count = and i64 %entered, -4294967296
  %mode = load i64, ptr %mode.at
  call void @set_mode(i64 %mode)
  call void @help(ptr %team, i64 %thread, i64 %entered)
  br label %next
}

; Have no word that says what is left of a part look as if it were new: they tell bands apart by the
; lowest 32 bits of their number. Nobody is at work.
define internal void @sweep(ptr %team, i64 %bands) {
start:
  %before = sub i64 %bands, 1
  %left = shl i64 %before, 32
  br label %each
each:
  %thread = phi i64 [ 0, %start ], [ %next, %each ]
  %place = call ptr @place(ptr %team, i64 %thread)
  %left.at = getelementptr i8, ptr %place, i64 256
  store atomic i64 %left, ptr %left.at monotonic, align 8
  %next = add i64 %thread, 1
  %more = icmp ult i64 %next, $most
  br i1 %more, label %each, label %done
done:
  %swept.at = getelementptr i8, ptr %team, i64 664
  store i64 %bands, ptr %swept.at
  ret void
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
  %crowded = call i1 @crowded(ptr %team)
  %free = xor i1 %crowded, true
  %calm = and i1 %fits, %free
  %choice = select i1 %calm, i64 256, i64 264
  %choice.at = getelementptr i8, ptr %team, i64 %choice
  %pauses = load i64, ptr %choice.at
  %pauses.at = getelementptr i8, ptr %team, i64 280
  store atomic i64 %pauses, ptr %pauses.at monotonic, align 8
  call void @settle(ptr %team, i64 %arrived, i1 %calm)
  %mode = call i64 @get_mode()
  %mode.at = getelementptr i8, ptr %team, i64 408
  store i64 %mode, ptr %mode.at
  %bands.at = getelementptr i8, ptr %team, i64 648
  %bands = load i64, ptr %bands.at
  %swept.at = getelementptr i8, ptr %team, i64 664
  %swept = load i64, ptr %swept.at
  %since = sub i64 %bands, %swept
  %old = icmp ugt i64 %since, 1073741824
  br i1 %old, label %clean, label %go
clean:
  call void @sweep(ptr %team, i64 %bands)
  br label %go
go:
  %gate = getelementptr i8, ptr %team, i64 384
  %gate.before = load atomic i64, ptr %gate monotonic, align 8
  %helped.at = getelementptr i8, ptr %team, i64 416
  store atomic i64 0, ptr %helped.at monotonic, align 8
  %result = call i64 %run(ptr %block, i64 0, i64 %threads, ptr %team)
  %gate.after = load atomic i64, ptr %gate monotonic, align 8
  %opened.high = sub i64 %gate.after, %gate.before
  %opened = lshr i64 %opened.high, 32
  %workers = sub i64 %threads, 1
  %wanted = mul i64 %opened, %workers
  %helped = load atomic i64, ptr %helped.at monotonic, align 8
  call void @judge(ptr %team, i64 %wanted, i64 %helped)
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
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
""")


def team_text(how: str, machine: str = platform.machine()) -> str:
    """The module for a kind of processor, with threads that sleep by `how` (see `parking`)."""
    return _TEXT.substitute(pause=pause(machine), most=MOST_THREADS) + system_text(how, machine)
