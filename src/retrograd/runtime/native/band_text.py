"""How a thread makes calls, and goes through the blocks of a band: the part of `drive_text.py` that
does the work."""

from __future__ import annotations

from retrograd.runtime.native.drive_sizes import TEXT as SIZES
from retrograd.runtime.native.team_text import CLAIM, PLACES, THREAD_BYTES

CALL, LOCAL = 4, 8  # words of a call before its slots, of a band before its local buffers
MOST_UNITS = 1 << 15  # that a part of a band may consist of
STOPPED = 1 << 62  # the result of a run that was told to stop

TEXT = f"""{SIZES}
define internal i64 @calls(ptr %block, ptr %first, ptr %end, i64 %lo, i64 %hi, ptr %word,
                           ptr %times, ptr %kernels) noinline nounwind {{
start:
  %timed = icmp ne ptr %times, null
  br label %head
head:
  ; Looked at after the last one, too: a kernel that saw the word has not done its work.
  %at = phi ptr [ %first, %start ], [ %next, %called ]
  %stop = load atomic i64, ptr %word monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %halt, label %look
look:
  %over = icmp eq ptr %at, %end
  br i1 %over, label %good, label %go
go:
  %kernel = load i64, ptr %at
  %kernel.at = getelementptr ptr, ptr %kernels, i64 %kernel
  %function = load ptr, ptr %kernel.at
  %count.at = getelementptr i64, ptr %at, i64 3
  %count = load i64, ptr %count.at
  %slots = getelementptr i64, ptr %at, i64 {CALL}
  %next = getelementptr i64, ptr %slots, i64 %count
  br i1 %timed, label %clock, label %plain
plain:
  %result.plain = call i64 %function(ptr %block, ptr %slots, i64 %lo, i64 %hi)
  br label %called
clock:
  %before = call i64 @llvm.readcyclecounter()
  %result.timed = call i64 %function(ptr %block, ptr %slots, i64 %lo, i64 %hi)
  %after = call i64 @llvm.readcyclecounter()
  %passed = sub i64 %after, %before
  %number.at = getelementptr i64, ptr %at, i64 2
  %number = load i64, ptr %number.at
  %counter = getelementptr i64, ptr %times, i64 %number
  %old = atomicrmw add ptr %counter, i64 %passed monotonic
  br label %called
called:
  %result = phi i64 [ %result.plain, %plain ], [ %result.timed, %clock ]
  %fine = icmp eq i64 %result, 0
  br i1 %fine, label %head, label %failed
failed:
  %failure.at = getelementptr i64, ptr %at, i64 1
  %failure = load i64, ptr %failure.at
  %itself = icmp eq i64 %failure, 0
  %reason = select i1 %itself, i64 %result, i64 %failure
  ret i64 %reason
halt:
  ret i64 {STOPPED}
good:
  ret i64 0
}}

; Have a thread's copy of the block say where the rows from `lo` on of local buffers are.
define internal void @place(ptr %block, ptr %copy, ptr %locals, ptr %end, i64 %own, i64 %lo)
    nounwind {{
start:
  br label %head
head:
  %at = phi ptr [ %locals, %start ], [ %next, %each ]
  %over = icmp eq ptr %at, %end
  br i1 %over, label %done, label %each
each:
  %slot = load i64, ptr %at
  %row.at = getelementptr i64, ptr %at, i64 1
  %row = load i64, ptr %row.at
  %next = getelementptr i64, ptr %at, i64 2
  %from = getelementptr i64, ptr %block, i64 %slot
  %all = load i64, ptr %from
  %mine = add i64 %all, %own
  %before = mul i64 %lo, %row
  %moved = sub i64 %mine, %before
  %to = getelementptr i64, ptr %copy, i64 %slot
  store i64 %moved, ptr %to
  br label %head
done:
  ret void
}}

; A word of a thread's place in the team.
define internal ptr @own(ptr %team, i64 %thread, i64 %word) nounwind {{
  %offset = mul i64 %thread, {THREAD_BYTES}
  %from = add i64 %offset, {PLACES}
  %to = add i64 %from, %word
  %at = getelementptr i8, ptr %team, i64 %to
  ret ptr %at
}}

define internal i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls, ptr %end,
                            i64 %first, i64 %last, i64 %pieces.one, i64 %element, i64 %unit,
                            i64 %own, ptr %word, ptr %times, ptr %kernels) noinline nounwind {{
start:
  ; An element is so many units, of which the last one may be smaller.
  %up = add i64 %element, %unit
  %up.less = sub i64 %up, 1
  %units = udiv i64 %up.less, %unit
  br label %head
head:
  %k = phi i64 [ %first, %start ], [ %k.next, %piece ]
  %more = icmp ult i64 %k, %last
  br i1 %more, label %piece, label %good
piece:
  %k.next = add i64 %k, 1
  %own.element = udiv i64 %k, %pieces.one
  %before = mul i64 %own.element, %pieces.one
  %piece.lo = sub i64 %k, %before
  %piece.hi = add i64 %piece.lo, 1
  %lo.scaled = mul i64 %piece.lo, %units
  %hi.scaled = mul i64 %piece.hi, %units
  %lo.unit = udiv i64 %lo.scaled, %pieces.one
  %hi.unit = udiv i64 %hi.scaled, %pieces.one
  %lo.inside = mul i64 %lo.unit, %unit
  %hi.whole = mul i64 %hi.unit, %unit
  %hi.inside = call i64 @llvm.umin.i64(i64 %hi.whole, i64 %element)
  %start.row = mul i64 %own.element, %element
  %lo = add i64 %start.row, %lo.inside
  %hi = add i64 %start.row, %hi.inside
  call void @place(ptr %block, ptr %copy, ptr %locals, ptr %calls, i64 %own, i64 %lo)
  %result = call i64 @calls(ptr %given, ptr %calls, ptr %end, i64 %lo, i64 %hi, ptr %word,
                            ptr %times, ptr %kernels)
  %fine = icmp eq i64 %result, 0
  br i1 %fine, label %head, label %failed
failed:
  ret i64 %result
good:
  ret i64 0
}}

define internal i64 @band(ptr %block, ptr %copy, ptr %at, ptr %end, i64 %thread, i64 %threads,
                          ptr %team, i64 %own, ptr %word, ptr %times, ptr %kernels,
                          i64 %number)
    noinline nounwind {{
start:
  %rows.at = getelementptr i64, ptr %at, i64 2
  %rows.word = load i64, ptr %rows.at
  %rows = call i64 @rows(ptr %block, i64 %rows.word)
  %blocks.at = getelementptr i64, ptr %at, i64 3
  %blocks.word = load i64, ptr %blocks.at
  %blocks = call i64 @blocks(ptr %block, i64 %blocks.word, i64 %rows, i64 %threads)
  %element.at = getelementptr i64, ptr %at, i64 4
  %element.word = load i64, ptr %element.at
  %whole = icmp eq i64 %element.word, 0
  %element = select i1 %whole, i64 %rows, i64 %element.word
  %element.one = call i64 @llvm.umax.i64(i64 %element, i64 1)
  %elements = udiv i64 %rows, %element.one
  %elements.one = call i64 @llvm.umax.i64(i64 %elements, i64 1)
  %pieces = udiv i64 %blocks, %elements.one
  %pieces.one = call i64 @llvm.umax.i64(i64 %pieces, i64 1)
  %step.at = getelementptr i64, ptr %at, i64 5
  %step = load i64, ptr %step.at
  %chain.at = getelementptr i64, ptr %at, i64 6
  %chain = load i64, ptr %chain.at
  %chains = udiv i64 %blocks, %chain
  %count.at = getelementptr i64, ptr %at, i64 7
  %count = load i64, ptr %count.at
  %locals = getelementptr i64, ptr %at, i64 {LOCAL}
  %words = shl i64 %count, 1
  %calls = getelementptr i64, ptr %locals, i64 %words
  %none = icmp eq i64 %count, 0
  %given = select i1 %none, ptr %block, ptr %copy
  %alone = icmp eq i64 %threads, 1
  br i1 %alone, label %mine, label %share
mine:
  %every = mul i64 %chains, %chain
  %result.mine = call i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls,
                                  ptr %end, i64 0, i64 %every, i64 %pieces.one, i64 %element,
                                  i64 %step, i64 %own, ptr %word, ptr %times, ptr %kernels)
  ret i64 %result.mine
share:
  %many = udiv i64 %chains, {MOST_UNITS}
  %unit = add i64 %many, 1
  %up = add i64 %chains, %many
  %units = udiv i64 %up, %unit
  %tag = shl i64 %number, 32
  %short = trunc i64 %number to i32
  br label %whose
whose:
  %v = phi i64 [ 0, %share ], [ %v.next, %others ]
  %sum = add i64 %thread, %v
  %over = icmp uge i64 %sum, %threads
  %around = sub i64 %sum, %threads
  %who = select i1 %over, i64 %around, i64 %sum
  %left.at = call ptr @own(ptr %team, i64 %who, i64 {CLAIM})
  %ours = icmp eq i64 %v, 0
  %taken = select i1 %ours, i64 1, i64 -65536
  %later = add i64 %who, 1
  %first.scaled = mul i64 %who, %units
  %end.scaled = mul i64 %later, %units
  %first.unit = udiv i64 %first.scaled, %threads
  %end.unit = udiv i64 %end.scaled, %threads
  %end.high = shl i64 %end.unit, 16
  %all = or i64 %first.unit, %end.high
  %fresh = or i64 %tag, %all
  br label %look
look:
  %found = load atomic i64, ptr %left.at acquire, align 8
  %found.tag = lshr i64 %found, 32
  %found.short = trunc i64 %found.tag to i32
  %age = sub i32 %short, %found.short
  %old = icmp sgt i32 %age, 0
  %newer = icmp slt i32 %age, 0
  %left = select i1 %old, i64 %fresh, i64 %found
  %lo = and i64 %left, 65535
  %left.hi = lshr i64 %left, 16
  %hi = and i64 %left.hi, 65535
  %none.left = icmp uge i64 %lo, %hi
  %shut = or i1 %newer, %none.left
  br i1 %shut, label %others, label %take
take:
  %rest = add i64 %left, %taken
  %swap = cmpxchg ptr %left.at, i64 %found, i64 %rest acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %got, label %do, label %look
do:
  %hi.last = sub i64 %hi, 1
  %which = select i1 %ours, i64 %lo, i64 %hi.last
  %from.chain = mul i64 %which, %unit
  %to.chain = add i64 %from.chain, %unit
  %to.least = call i64 @llvm.umin.i64(i64 %to.chain, i64 %chains)
  %from = mul i64 %from.chain, %chain
  %to = mul i64 %to.least, %chain
  %result = call i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls,
                             ptr %end, i64 %from, i64 %to, i64 %pieces.one, i64 %element,
                             i64 %step, i64 %own, ptr %word, ptr %times, ptr %kernels)
  %fine = icmp eq i64 %result, 0
  br i1 %fine, label %look, label %failed
failed:
  ret i64 %result
others:
  %v.next = add i64 %v, 1
  %more = icmp ult i64 %v.next, %threads
  br i1 %more, label %whose, label %good
good:
  ret i64 0
}}
"""
