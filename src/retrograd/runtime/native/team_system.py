"""What the native half of the team asks of the system and the processor, as LLVM IR text.

`park` and `unpark`, which put a thread to sleep and wake it; `settle`, which keeps workers off the
caller's processor, and `hold`, which keeps the caller on it; `crowded`, which says if other
programs need processors, and `look_around` and `judge`, which find out; `get_mode` and `set_mode`,
how a thread rounds, and `flush`, what it does with tiny numbers; and what spinning threads do
meanwhile. The memory `settle` works on is laid out in `team_text.py`.
"""

from __future__ import annotations

import platform
import sys
from string import Template

CROWDED = 100_000_000  # nanoseconds for which others are taken to need processors, once they have
OFTEN = 1_000_000  # between two looks of the caller if they do

# How each system puts a thread to sleep until a word changes: `park` returns, at the latest, when
# `unpark` is called after the word has changed; it may return early.
_FUTEX = Template("""
declare i64 @syscall(i64, ...)

define internal void @park(ptr %word, i32 %value) noinline {
  %ignored = call i64 (i64, ...) @syscall(i64 $number, ptr %word, i64 128, i32 %value, ptr null)
  ret void
}

define internal void @unpark(ptr %word) noinline {
  %ignored = call i64 (i64, ...) @syscall(i64 $number, ptr %word, i64 129, i64 1)
  ret void
}

define void @renew() {
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Bind the caller, which is about to sleep, to the processor that workers keep off, and keep in
; `mask` where it may run; whether that was done. A virtual processor that sleeps looks as if it had
; been taken away, so Linux wakes a thread where the waker is: a worker, which may not move. Both
; would share that processor for the rest of the run.
define internal i1 @hold(ptr %team, ptr %mask) {
start:
  %own = alloca [128 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %own, i8 0, i64 128, i1 false)
  %wanted.at = getelementptr i8, ptr %team, i64 304
  %wanted = load i64, ptr %wanted.at
  %any = icmp ne i64 %wanted, 0
  %avoided.at = getelementptr i8, ptr %team, i64 288
  %avoided = load i64, ptr %avoided.at
  %known = icmp ult i64 %avoided, 1024
  %there = and i1 %any, %known
  br i1 %there, label %ask, label %no
ask:
  %failed = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %check, label %no
check:
  %byte = lshr i64 %avoided, 3
  %bit = and i64 %avoided, 7
  %bit.short = trunc i64 %bit to i8
  %one = shl i8 1, %bit.short
  %allowed.at = getelementptr i8, ptr %mask, i64 %byte
  %allowed = load i8, ptr %allowed.at
  %common = and i8 %allowed, %one
  %may = icmp ne i8 %common, 0
  br i1 %may, label %bind, label %no
bind:
  %own.at = getelementptr i8, ptr %own, i64 %byte
  store i8 %one, ptr %own.at
  %refused = call i32 @sched_setaffinity(i32 0, i64 128, ptr %own)
  %bound = icmp eq i32 %refused, 0
  ret i1 %bound
no:
  ret i1 false
}

define internal void @let_go(ptr %mask) {
  %ignored = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  ret void
}

declare i32 @clock_gettime(i32, ptr)

define internal i64 @clock() {
  %time = alloca [2 x i64], align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %part.at = getelementptr i64, ptr %time, i64 1
  %part = load i64, ptr %part.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %part
  ret i64 %now
}

declare i32 @getrusage(i32, ptr)
declare ptr @pthread_self()

; Look if the system has taken the processor away from this thread since it looked last, which its
; place says: then others need processors, too, and for some time the system is to find places for
; all, since it knows where it is crowded.
define internal void @look_around(ptr %team, i64 %thread) noinline {
start:
  %usage = alloca [32 x i64], align 8
  %ignored = call i32 @getrusage(i32 1, ptr %usage)  ; of this thread
  %taken.at = getelementptr i64, ptr %usage, i64 17
  %taken = load i64, ptr %taken.at
  %who = call ptr @pthread_self()
  %place = call ptr @place(ptr %team, i64 %thread)
  %before.at = getelementptr i8, ptr %place, i64 144
  %before = load i64, ptr %before.at
  %whose.at = getelementptr i8, ptr %place, i64 152
  %whose = load ptr, ptr %whose.at
  store i64 %taken, ptr %before.at
  store ptr %who, ptr %whose.at
  %same = icmp eq ptr %who, %whose
  %more = icmp ne i64 %taken, %before
  %again = and i1 %same, %more
  br i1 %again, label %note, label %done
note:
  %now = call i64 @clock()
  %until = add i64 %now, $crowded
  %until.at = getelementptr i8, ptr %team, i64 312
  store atomic i64 %until, ptr %until.at monotonic, align 8
  br label %done
done:
  ret void
}

; At the end of a launch: look around if it was rare that workers came, but not too often.
define internal void @judge(ptr %team, i64 %wanted, i64 %helped) {
start:
  %twice = shl i64 %helped, 1
  %rare = icmp ult i64 %twice, %wanted
  br i1 %rare, label %time, label %done
time:
  %now = call i64 @clock()
  %next.at = getelementptr i8, ptr %team, i64 320
  %next = load i64, ptr %next.at
  %soon = icmp slt i64 %now, %next
  br i1 %soon, label %done, label %look
look:
  %later = add i64 %now, $often
  store i64 %later, ptr %next.at
  call void @look_around(ptr %team, i64 0)
  br label %done
done:
  ret void
}

; Whether it is still so.
define internal i1 @crowded(ptr %team) {
start:
  %until.at = getelementptr i8, ptr %team, i64 312
  %until = load atomic i64, ptr %until.at monotonic, align 8
  %some = icmp ne i64 %until, 0
  br i1 %some, label %look, label %no
look:
  %now = call i64 @clock()
  %yet = icmp slt i64 %now, %until
  br i1 %yet, label %yes, label %over
yes:
  ret i1 true
over:
  store atomic i64 0, ptr %until.at monotonic, align 8
  br label %no
no:
  ret i1 false
}

; Keep the workers off the caller's processor. A thread that is woken is often put where it was
; woken from; there it would be idle while the caller works.
define internal void @settle(ptr %team, i64 %workers, i1 %calm) {
start:
  %wanted.at = getelementptr i8, ptr %team, i64 304
  %wanted = load i64, ptr %wanted.at
  %any = icmp ne i64 %wanted, 0
  br i1 %any, label %look, label %done
look:
  %here = call i32 @sched_getcpu()
  %wide = sext i32 %here to i64
  %avoid = select i1 %calm, i64 %wide, i64 -1
  %avoided.at = getelementptr i8, ptr %team, i64 288
  %avoided = load i64, ptr %avoided.at
  %settled.at = getelementptr i8, ptr %team, i64 296
  %settled = load i64, ptr %settled.at
  %same = icmp eq i64 %avoid, %avoided
  %all = icmp eq i64 %workers, %settled
  %good = and i1 %same, %all
  br i1 %good, label %done, label %move
move:
  store i64 %avoid, ptr %avoided.at
  store i64 %workers, ptr %settled.at
  %mask = alloca [128 x i8], align 8
  %allowed = getelementptr i8, ptr %team, i64 512
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %mask, ptr align 8 %allowed, i64 128, i1 false)
  %known = icmp ult i64 %avoid, 1024
  br i1 %known, label %clear, label %each
clear:
  %byte = lshr i64 %avoid, 3
  %byte.at = getelementptr i8, ptr %mask, i64 %byte
  %old = load i8, ptr %byte.at
  %bit = and i64 %avoid, 7
  %bit.short = trunc i64 %bit to i8
  %one = shl i8 1, %bit.short
  %others = xor i8 %one, -1
  %new = and i8 %old, %others
  store i8 %new, ptr %byte.at
  br label %each
each:
  %thread = phi i64 [ 1, %move ], [ 1, %clear ], [ %next, %each ]
  %place = call ptr @place(ptr %team, i64 %thread)
  %id.at = getelementptr i8, ptr %place, i64 128
  %id = load i64, ptr %id.at
  %id.short = trunc i64 %id to i32
  %ignored = call i32 @sched_setaffinity(i32 %id.short, i64 128, ptr %mask)
  %next = add i64 %thread, 1
  %more = icmp ule i64 %next, %workers
  br i1 %more, label %each, label %done
done:
  ret void
}
""")

_CONDITION = """
; Room for the largest of any system we know of. `renew` makes them, and makes them again in a child
; of fork, where a thread that no longer exists may have held them.
@mutex = internal global [16 x i64] zeroinitializer, align 64
@condition = internal global [16 x i64] zeroinitializer, align 64

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @renew() {
  store [16 x i64] zeroinitializer, ptr @mutex
  store [16 x i64] zeroinitializer, ptr @condition
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @condition, ptr null)
  ret void
}

define internal void @park(ptr %word, i32 %value) noinline {
start:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %value
  br i1 %same, label %sleep, label %done
sleep:
  %w = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %done
done:
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

define internal void @unpark(ptr %word) noinline {
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @condition)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
"""

_WINDOWS = """
declare i32 @WaitOnAddress(ptr, ptr, i64, i32)
declare void @WakeByAddressSingle(ptr)

define internal void @park(ptr %word, i32 %value) noinline {
  %other = alloca i32
  store i32 %value, ptr %other
  %ignored = call i32 @WaitOnAddress(ptr %word, ptr %other, i64 4, i32 -1)
  ret void
}

define internal void @unpark(ptr %word) noinline {
  call void @WakeByAddressSingle(ptr %word)
  ret void
}

define void @renew() {
  ret void
}
"""

# Other systems offer no way to place threads, or place them well enough.
_STAY = """
define internal void @settle(ptr %team, i64 %workers, i1 %calm) {
  ret void
}

define internal void @look_around(ptr %team, i64 %thread) {
  ret void
}

define internal void @judge(ptr %team, i64 %wanted, i64 %helped) {
  ret void
}

define internal i1 @crowded(ptr %team) {
  ret i1 false
}

define internal i1 @hold(ptr %team, ptr %mask) {
  ret i1 false
}

define internal void @let_go(ptr %mask) {
  ret void
}
"""

# Rounding, and whether tiny numbers are flushed to zero: a property of each thread, inherited from
# whatever created it. Workers take over the caller's, or results would depend on their number.
_MODE_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse2.pause()

define internal i64 @get_mode() {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %bits = load i32, ptr %at
  %mode = and i32 %bits, -64  ; the lowest six are what has happened, not what shall
  %wide = zext i32 %mode to i64
  ret i64 %wide
}

define internal void @set_mode(i64 %mode) {
  %at = alloca i32
  %bits = trunc i64 %mode to i32
  store i32 %bits, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""

_MODE_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare void @llvm.aarch64.isb(i32)

define internal i64 @get_mode() {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}

define internal void @set_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""

_MODE_OTHER = """
define internal i64 @get_mode() {
  ret i64 0
}

define internal void @set_mode(i64 %mode) {
  ret void
}
"""

# Have the thread flush tiny numbers, as arguments and as results, or not; whether it did so before.
_FLUSH = Template("""
define i64 @flush(i64 %on) {
  %mode = call i64 @get_mode()
  %bits = and i64 %mode, $bits
  %was = icmp ne i64 %bits, 0
  %wanted = icmp ne i64 %on, 0
  %with = or i64 %mode, $bits
  %without = xor i64 %with, $bits
  %new = select i1 %wanted, i64 %with, i64 %without
  call void @set_mode(i64 %new)
  %result = zext i1 %was to i64
  ret i64 %result
}
""")
_FLUSH_X86, _FLUSH_ARM = 0x8040, 1 << 24  # of results and of arguments; both at once

_X86 = ("x86_64", "amd64")
_ARM = ("aarch64", "arm64")
_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}


def parking(system: str = sys.platform, machine: str = platform.machine()) -> str:
    """The name of how threads sleep here: "futex", "windows" or, elsewhere, "condition"."""
    if system == "win32":
        return "windows"
    return "futex" if system == "linux" and machine in _FUTEX_NUMBERS else "condition"


def system_text(how: str, machine: str) -> str:
    """`park`, `unpark`, `renew` and `settle` for threads that sleep by `how` (see `parking`), then
    `get_mode`, `set_mode` and `flush` for a kind of processor."""
    sleep = {
        "futex": _FUTEX.substitute(
            number=_FUTEX_NUMBERS.get(machine, 0), crowded=CROWDED, often=OFTEN
        ),
        "condition": _CONDITION + _STAY,
        "windows": _WINDOWS + _STAY,
    }[how]
    mode, bits = _MODE_OTHER, 0
    if machine.lower() in _X86:
        mode, bits = _MODE_X86, _FLUSH_X86
    elif machine.lower() in _ARM:
        mode, bits = _MODE_ARM, _FLUSH_ARM
    return sleep + mode + _FLUSH.substitute(bits=bits)


def flushes(machine: str = platform.machine()) -> bool:
    """Whether `flush` can do anything on a kind of processor."""
    return machine.lower() in (*_X86, *_ARM)


def pause(machine: str) -> str:
    """The instruction by which a thread that spins makes room for others on its core."""
    if machine.lower() in _X86:
        return "call void @llvm.x86.sse2.pause()"
    return "call void @llvm.aarch64.isb(i32 15)" if machine.lower() in _ARM else ""
