"""The native function that runs the kernels of a program in order, as LLVM IR text.

`rg_drive(block, thread, threads, team, table, kernels)` is the same for all programs: what differs
between them is data, so that a program of many kernels takes no longer to compile than the kernels
that differ. `table` is a row of 8-byte words, written by `driver.py`; `kernels` are the addresses
of the kernels.

The first words of a table:

    0  the slot of the address of the word that stops the run, or -1 where nothing is to
    1  the slot of the address of the counters of cycles, or -1 where none are kept
    2  bytes of scratch memory that each thread has
    3  slots of the block, where threads need copies of it, otherwise 0

Then follow operations, each beginning with its number and its length in words:

    0  end of the run
    1  calls, made by the first thread
    2  a band: how many rows, into how many blocks they are cut, the rows of an element, which no
       block reaches beyond, or 0, the blocks that one thread takes together, the number of local
       buffers, their slots and the bytes of a row of each, then the calls made for each block
    3  all threads wait for each other, and leave if one of them has failed or was stopped
    4  the same, and from there on the run is not to be stopped: what follows overwrites inputs
    5  a loop whose steps all threads go through: the number of the address of its function, which
       is `i64 (ptr block, i64 thread, i64 threads, ptr team)`, and its place among the counters

Rows are -1 - slot where the block holds their number. Blocks are -n for one for each n rows, but
two at least, where there are two rows: a number that does not depend on the threads. They are 0 for
one for each thread, or more where there are many rows: a run has to be able to stop among them.
They are -2^62 for one for each thread.

A call is the number of the kernel's address, the result of the run if it fails, or 0 where the
kernel returns that itself, its place among the counters, how many slots it uses, and these slots.
Kernels are `i64 (ptr block, ptr slots, i64 lo,
i64 hi)`, with the rows to do. They return 0, or something else where an index check failed. One
that takes long looks at the word itself, and returns 0 with its work not done.

A thread begins with blocks of its own, the same in every band, so that it finds in its cache what
it has left there. When it has done them it takes over, from the end, what others have not begun: a
processor that is slower for a while, or busy with something else, does less. To this end each
thread says in a word of the team's (`CLAIM`) what is left of its blocks, in units of those that one
thread takes together: the band, 32 bits, the last one that is left and the first, 16 bits each.

Of a local buffer each thread has only the rows at hand, in its scratch memory; a row of no bytes is
one of which each thread has all. The kernels of a
band with such buffers get a copy of the block that says where these are; the copies lie behind the
block.
"""

from __future__ import annotations

from retrograd.backends.llvm.drive_sizes import TEXT as SIZES
from retrograd.backends.llvm.team_text import CLAIM, PLACES, THREAD_BYTES, VOTE

HEAD, CALL, LOCAL = 4, 4, 7  # words before operations, slots of a call, local buffers of a band
END, CALLS, BAND, MEET, KEEP, TOGETHER = range(6)
MOST_CLAIMS = 1 << 16  # beyond them, blocks are many, and each thread does its own
STOPPED = 1 << 62  # the result of a run that was told to stop
STOP_AT = 3  # slots from the status to the address of the word that stops a run

TEXT = f"""{SIZES}
@never = internal constant i64 0
@never.at = internal constant ptr @never
declare i64 @llvm.readcyclecounter()

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

; Where a thread says what is left of its blocks.
define internal ptr @claim(ptr %team, i64 %thread) nounwind {{
  %offset = mul i64 %thread, {THREAD_BYTES}
  %from = add i64 %offset, {PLACES + CLAIM}
  %at = getelementptr i8, ptr %team, i64 %from
  ret ptr %at
}}

define internal i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls, ptr %end,
                            i64 %first, i64 %last, i64 %pieces.one, i64 %element, i64 %own,
                            ptr %word, ptr %times, ptr %kernels) noinline nounwind {{
start:
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
  %lo.scaled = mul i64 %piece.lo, %element
  %hi.scaled = mul i64 %piece.hi, %element
  %lo.inside = udiv i64 %lo.scaled, %pieces.one
  %hi.inside = udiv i64 %hi.scaled, %pieces.one
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
                          ptr %team, i64 %own, ptr %word, ptr %times, ptr %kernels)
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
  %chain.at = getelementptr i64, ptr %at, i64 5
  %chain = load i64, ptr %chain.at
  %chains = udiv i64 %blocks, %chain
  %count.at = getelementptr i64, ptr %at, i64 6
  %count = load i64, ptr %count.at
  %locals = getelementptr i64, ptr %at, i64 {LOCAL}
  %words = shl i64 %count, 1
  %calls = getelementptr i64, ptr %locals, i64 %words
  %none = icmp eq i64 %count, 0
  %given = select i1 %none, ptr %block, ptr %copy
  %later = add i64 %thread, 1
  %first.scaled = mul i64 %thread, %chains
  %last.scaled = mul i64 %later, %chains
  %first.chain = udiv i64 %first.scaled, %threads
  %last.chain = udiv i64 %last.scaled, %threads
  %few = icmp ult i64 %chains, {MOST_CLAIMS}
  %many = icmp ugt i64 %threads, 1
  %shared = and i1 %few, %many
  br i1 %shared, label %publish, label %mine
mine:
  %first = mul i64 %first.chain, %chain
  %last = mul i64 %last.chain, %chain
  %result.mine = call i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls,
                                  ptr %end, i64 %first, i64 %last, i64 %pieces.one, i64 %element,
                                  i64 %own, ptr %word, ptr %times, ptr %kernels)
  ret i64 %result.mine
publish:
  %number = ptrtoint ptr %at to i64
  %tag = shl i64 %number, 29  ; a word has 8 bytes
  %tag.only = and i64 %tag, -4294967296
  %tag.last = shl i64 %last.chain, 16
  %tag.first = or i64 %tag.only, %first.chain
  %left.first = or i64 %tag.first, %tag.last
  %own.at = call ptr @claim(ptr %team, i64 %thread)
  store atomic i64 %left.first, ptr %own.at release, align 8
  br label %whose
whose:
  %v = phi i64 [ 0, %publish ], [ %v.next, %others ]
  %sum = add i64 %thread, %v
  %over = icmp uge i64 %sum, %threads
  %around = sub i64 %sum, %threads
  %who = select i1 %over, i64 %around, i64 %sum
  %left.at = call ptr @claim(ptr %team, i64 %who)
  %ours = icmp eq i64 %v, 0
  %taken = select i1 %ours, i64 1, i64 -65536
  br label %look
look:
  %left = load atomic i64, ptr %left.at acquire, align 8
  %left.tag = and i64 %left, -4294967296
  %here = icmp eq i64 %left.tag, %tag.only
  %lo = and i64 %left, 65535
  %left.hi = lshr i64 %left, 16
  %hi = and i64 %left.hi, 65535
  %some = icmp ult i64 %lo, %hi
  %open = and i1 %here, %some
  br i1 %open, label %take, label %others
take:
  %rest = add i64 %left, %taken
  %swap = cmpxchg ptr %left.at, i64 %left, i64 %rest acq_rel monotonic
  %got = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %got, label %do, label %look
do:
  %hi.last = sub i64 %hi, 1
  %which = select i1 %ours, i64 %lo, i64 %hi.last
  %from = mul i64 %which, %chain
  %to = add i64 %from, %chain
  %result = call i64 @pieces(ptr %block, ptr %given, ptr %copy, ptr %locals, ptr %calls,
                             ptr %end, i64 %from, i64 %to, i64 %pieces.one, i64 %element,
                             i64 %own, ptr %word, ptr %times, ptr %kernels)
  %fine = icmp eq i64 %result, 0
  br i1 %fine, label %look, label %failed
failed:
  store atomic i64 0, ptr %own.at release, align 8  ; nobody is to find it in another run
  ret i64 %result
others:
  %v.next = add i64 %v, 1
  %more = icmp ult i64 %v.next, %threads
  br i1 %more, label %whose, label %good
good:
  ret i64 0
}}

define i64 @rg_drive(ptr %block, i64 %thread, i64 %threads, ptr %team, ptr %table, ptr %kernels)
    nounwind {{
start:
  %stop.slot = load i64, ptr %table
  %stop.there = getelementptr i64, ptr %block, i64 %stop.slot
  %stoppable = icmp sge i64 %stop.slot, 0
  %stop.at = select i1 %stoppable, ptr %stop.there, ptr @never.at
  %word.first = load ptr, ptr %stop.at
  %times.at = getelementptr i64, ptr %table, i64 1
  %times.slot = load i64, ptr %times.at
  %timed = icmp sge i64 %times.slot, 0
  br i1 %timed, label %counters, label %scratch
counters:
  %counters.at = getelementptr i64, ptr %block, i64 %times.slot
  %counters.all = load ptr, ptr %counters.at
  br label %scratch
scratch:
  %times = phi ptr [ null, %start ], [ %counters.all, %counters ]
  %scratch.at = getelementptr i64, ptr %table, i64 2
  %scratch.each = load i64, ptr %scratch.at
  %own = mul i64 %scratch.each, %thread
  %copied.at = getelementptr i64, ptr %table, i64 3
  %copied = load i64, ptr %copied.at
  %copies = add i64 %thread, 1
  %copy.place = mul i64 %copied, %copies
  %copy = getelementptr i64, ptr %block, i64 %copy.place
  %first = getelementptr i64, ptr %table, i64 {HEAD}
  %leads = icmp eq i64 %thread, 0
  %alone = icmp eq i64 %threads, 1
  br label %fill
fill:
  %i = phi i64 [ 0, %scratch ], [ %i.next, %filling ]
  %unfilled = icmp ult i64 %i, %copied
  br i1 %unfilled, label %filling, label %next
filling:
  %from = getelementptr i64, ptr %block, i64 %i
  %slot = load i64, ptr %from
  %to = getelementptr i64, ptr %copy, i64 %i
  store i64 %slot, ptr %to
  %i.next = add i64 %i, 1
  br label %fill
next:
  %at = phi ptr [ %first, %fill ], [ %end, %after ]
  %result = phi i64 [ 0, %fill ], [ %result.new, %after ]
  %word = phi ptr [ %word.first, %fill ], [ %word.new, %after ]
  %op = load i64, ptr %at
  %length.at = getelementptr i64, ptr %at, i64 1
  %length = load i64, ptr %length.at
  %end = getelementptr i64, ptr %at, i64 %length
  %fine = icmp eq i64 %result, 0
  %mine = and i1 %fine, %leads
  switch i64 %op, label %over [
    i64 {CALLS}, label %single
    i64 {BAND}, label %shared
    i64 {MEET}, label %meet
    i64 {KEEP}, label %meet
    i64 {TOGETHER}, label %together
  ]
together:
  br i1 %fine, label %together.do, label %after
together.do:
  %loop.at = getelementptr i64, ptr %at, i64 2
  %loop = load i64, ptr %loop.at
  %loop.function.at = getelementptr ptr, ptr %kernels, i64 %loop
  %loop.function = load ptr, ptr %loop.function.at
  %loop.before = call i64 @llvm.readcyclecounter()
  %result.together = call i64 %loop.function(ptr %block, i64 %thread, i64 %threads, ptr %team)
  br i1 %timed, label %together.count, label %together.done
together.count:
  %loop.after = call i64 @llvm.readcyclecounter()
  %loop.passed = sub i64 %loop.after, %loop.before
  %loop.number.at = getelementptr i64, ptr %at, i64 3
  %loop.number = load i64, ptr %loop.number.at
  %loop.counter = getelementptr i64, ptr %times, i64 %loop.number
  %loop.old = atomicrmw add ptr %loop.counter, i64 %loop.passed monotonic
  br label %together.done
together.done:
  br label %after
single:
  br i1 %mine, label %single.do, label %after
single.do:
  %calls = getelementptr i64, ptr %at, i64 2
  %result.single = call i64 @calls(ptr %block, ptr %calls, ptr %end, i64 0, i64 0,
                                   ptr %word, ptr %times, ptr %kernels)
  br label %after
shared:
  br i1 %fine, label %shared.do, label %after
shared.do:
  %result.shared = call i64 @band(ptr %block, ptr %copy, ptr %at, ptr %end, i64 %thread,
                                  i64 %threads, ptr %team, i64 %own, ptr %word, ptr %times,
                                  ptr %kernels)
  br label %after
meet:
  %keeps = icmp eq i64 %op, {KEEP}
  %word.kept = select i1 %keeps, ptr @never, ptr %word
  br i1 %alone, label %met, label %agree
agree:
  %vote.at = getelementptr i8, ptr %team, i64 {VOTE}
  %vote = load ptr, ptr %vote.at
  %all = call i64 %vote(ptr %team, i64 %thread, i64 %threads, i64 %result)
  br label %met
met:
  %worst = phi i64 [ %result, %meet ], [ %all, %agree ]
  %agreed = icmp eq i64 %worst, 0
  br i1 %agreed, label %after, label %leave
leave:
  ret i64 %worst
after:
  %result.new = phi i64 [ %result, %single ], [ %result.single, %single.do ],
    [ %result, %shared ], [ %result.shared, %shared.do ], [ 0, %met ],
    [ %result, %together ], [ %result.together, %together.done ]
  %word.new = phi ptr [ %word, %single ], [ %word, %single.do ],
    [ %word, %shared ], [ %word, %shared.do ], [ %word.kept, %met ],
    [ %word, %together ], [ %word, %together.done ]
  br label %next
over:
  ret i64 %result
}}
"""
