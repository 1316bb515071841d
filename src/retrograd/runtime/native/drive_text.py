"""The native function that runs the kernels of a program in order, as LLVM IR text.

`rg_drive(block, threads, team, table, kernels)` is the same for all programs: what differs between
them is data, so that a program of many kernels takes no longer to compile than the kernels that
differ. `table` is a row of 8-byte words, written by `codegen/launch_table.py`; `kernels` are the
addresses of the kernels. The caller goes through the table alone. Operations up to the next one
that is not of kind 1 or 2 are an *epoch*, which it shares with the workers of the team if there are
bands in it.

The first words of a table:

    0  the slot of the address of the word that stops the run, or -1 where nothing is to
    1  the slot of the address of the counters of cycles, or -1 where none are kept
    2  bytes of scratch memory that each thread has
    3  slots of the block, where threads need copies of it, otherwise 0
    4  the slot in which kernels that fail leave what they found

Then follow operations, each beginning with its number and its length in words:

    0  end of the run
    1  calls, made by the first thread
    2  a band: how many rows, into how many blocks they are cut, the rows of an element, which no
       block reaches beyond, or 0, a number of which the rows of blocks are multiples, the blocks
       that one thread takes together, the number of local buffers, their slots and the bytes of a
       row of each, then the calls made for each block
    3  what follows needs the results of what comes before
    4  the same, and from there on the run is not to be stopped: what follows overwrites inputs
    5  a region with bands of its own: the number of the address of its function, which is
       `i64 (ptr block, i64 threads, ptr team)`, and its place among the counters

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
it has left there. When it has done them it takes over, from the end, what others have not begun:
those that are slower for a while, or busy with something else, do less, and those that have not
come nothing. To this end a word of each thread's in the team (`CLAIM`) says what is left of its
part, in units of the blocks that one thread takes together, or of several of those where they are
very many: 16 bits each for the first unit that is left and the end, and above these the lowest 32
bits of the number of the band, of all bands that the team has ever begun. A word with the number of
an older band says that nobody has been there: whoever comes first, to take a unit, writes what is
left after that. No band is begun by a thread that has not seen all of the one before taken, so none
of it is forgotten; and one that is late, and finds the number of a newer band, has nothing to do in
the older.

A thread leaves an epoch when all of it is taken, or when it has met with something wrong; what it
has not taken then does not matter any more.

Of a local buffer each thread has only the rows at hand, in its scratch memory; a row of no bytes is
one of which each thread has all. The kernels of a
band with such buffers get a copy of the block that says where these are; the copies lie behind the
block, and are made anew for every table that is gone through.
"""

from __future__ import annotations

from retrograd.runtime.native import band_text
from retrograd.runtime.native.team_text import BANDS, COPIED, COPIES, SHARE

HEAD = 5  # words before operations
END, CALLS, BAND, MEET, KEEP, TOGETHER = range(6)
# Slots from the status on: the address of the word that stops a run; where a walk through a graph
# has the first of the nodes that threads share, and how many they are; and all of them.
STOP_AT, FIRST_AT, NODES_AT, STATUS_SLOTS = 3, 4, 5, 6

TEXT = f"""
{band_text.TEXT}@never = internal constant i64 0
@never.at = internal constant ptr @never
declare i64 @llvm.readcyclecounter()

; Have a thread's copy of the block, before it says where local buffers are, or what kernels found.
define internal void @fill(ptr %block, ptr %copy, i64 %count, ptr %table) nounwind {{
start:
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %i.next, %each ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %each, label %filled
each:
  %from = getelementptr i64, ptr %block, i64 %i
  ; The caller may be moving cursors, none of which are of use to others meanwhile.
  %slot = load atomic i64, ptr %from monotonic, align 8
  %to = getelementptr i64, ptr %copy, i64 %i
  store i64 %slot, ptr %to
  %i.next = add i64 %i, 1
  br label %head
filled:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %clear, label %done
clear:
  %status.at = getelementptr i64, ptr %table, i64 4
  %status = load i64, ptr %status.at
  %found.at = getelementptr i64, ptr %copy, i64 %status
  store i64 0, ptr %found.at
  br label %done
done:
  ret void
}}

; One thread's part of an epoch. The words of `job`: block, table, the first operation, kernels, the
; word that stops the run, counters, the number of the copies, the number of the first band.
define internal i64 @epoch(ptr %job, i64 %thread, i64 %threads, ptr %team) nounwind {{
start:
  %block = load ptr, ptr %job
  %table.at = getelementptr i64, ptr %job, i64 1
  %table = load ptr, ptr %table.at
  %first.at = getelementptr i64, ptr %job, i64 2
  %first = load ptr, ptr %first.at
  %kernels.at = getelementptr i64, ptr %job, i64 3
  %kernels = load ptr, ptr %kernels.at
  %word.at = getelementptr i64, ptr %job, i64 4
  %word = load ptr, ptr %word.at
  %times.at = getelementptr i64, ptr %job, i64 5
  %times = load ptr, ptr %times.at
  %number.at = getelementptr i64, ptr %job, i64 7
  %number.first = load i64, ptr %number.at
  %scratch.at = getelementptr i64, ptr %table, i64 2
  %scratch.each = load i64, ptr %scratch.at
  %own = mul i64 %scratch.each, %thread
  %copied.at = getelementptr i64, ptr %table, i64 3
  %copied = load i64, ptr %copied.at
  %copies = add i64 %thread, 1
  %copy.place = mul i64 %copied, %copies
  %copy = getelementptr i64, ptr %block, i64 %copy.place
  %leads = icmp eq i64 %thread, 0
  %unneeded = icmp eq i64 %copied, 0
  %has = or i1 %leads, %unneeded
  br i1 %has, label %next, label %see
see:
  %copies.at = getelementptr i64, ptr %job, i64 6
  %copies.number = load i64, ptr %copies.at
  %made.at = call ptr @own(ptr %team, i64 %thread, i64 {COPIED})
  %made = load i64, ptr %made.at
  %there = icmp eq i64 %made, %copies.number
  br i1 %there, label %next, label %make
make:
  call void @fill(ptr %block, ptr %copy, i64 %copied, ptr %table)
  store i64 %copies.number, ptr %made.at
  br label %next
next:
  %at = phi ptr [ %first, %start ], [ %first, %see ], [ %first, %make ], [ %end, %single ],
    [ %end, %single.do ], [ %end, %shared ]
  %number = phi i64 [ %number.first, %start ], [ %number.first, %see ], [ %number.first, %make ],
    [ %number, %single ], [ %number, %single.do ], [ %number.next, %shared ]
  %op = load i64, ptr %at
  %length.at = getelementptr i64, ptr %at, i64 1
  %length = load i64, ptr %length.at
  %end = getelementptr i64, ptr %at, i64 %length
  switch i64 %op, label %over [
    i64 {CALLS}, label %single
    i64 {BAND}, label %shared
  ]
single:
  br i1 %leads, label %single.do, label %next
single.do:
  %calls = getelementptr i64, ptr %at, i64 2
  %result.single = call i64 @calls(ptr %block, ptr %calls, ptr %end, i64 0, i64 0,
                                   ptr %word, ptr %times, ptr %kernels)
  %good.single = icmp eq i64 %result.single, 0
  br i1 %good.single, label %next, label %bad
shared:
  %result.shared = call i64 @band(ptr %block, ptr %copy, ptr %at, ptr %end, i64 %thread,
                                  i64 %threads, ptr %team, i64 %own, ptr %word, ptr %times,
                                  ptr %kernels, i64 %number)
  %number.next = add i64 %number, 1
  %good.shared = icmp eq i64 %result.shared, 0
  br i1 %good.shared, label %next, label %wrong
wrong:
  ; What a check has found is in the copy, if there is one.
  br i1 %unneeded, label %bad, label %say
say:
  %status.at = getelementptr i64, ptr %table, i64 4
  %status = load i64, ptr %status.at
  %own.status.at = getelementptr i64, ptr %copy, i64 %status
  %own.status = load i64, ptr %own.status.at
  %nothing = icmp eq i64 %own.status, 0
  br i1 %nothing, label %bad, label %tell
tell:
  %main.status.at = getelementptr i64, ptr %block, i64 %status
  store atomic i64 %own.status, ptr %main.status.at monotonic, align 8
  br label %bad
bad:
  %result = phi i64 [ %result.single, %single.do ], [ %result.shared, %wrong ],
    [ %result.shared, %say ], [ %result.shared, %tell ]
  ret i64 %result
over:
  ret i64 0
}}

; The end of the epoch that begins at an operation; how many bands it has, in `bands`.
define internal ptr @epoch_end(ptr %first, ptr %bands) nounwind {{
start:
  br label %head
head:
  %at = phi ptr [ %first, %start ], [ %end, %inside ]
  %count = phi i64 [ 0, %start ], [ %count.next, %inside ]
  %op = load i64, ptr %at
  %length.at = getelementptr i64, ptr %at, i64 1
  %length = load i64, ptr %length.at
  %end = getelementptr i64, ptr %at, i64 %length
  %band = icmp eq i64 %op, {BAND}
  %call = icmp eq i64 %op, {CALLS}
  %either = or i1 %band, %call
  br i1 %either, label %inside, label %over
inside:
  %one = zext i1 %band to i64
  %count.next = add i64 %count, %one
  br label %head
over:
  store i64 %count, ptr %bands
  ret ptr %at
}}

define i64 @rg_drive(ptr %block, i64 %threads, ptr %team, ptr %table, ptr %kernels) nounwind {{
start:
  %job = alloca [8 x i64], align 64
  %bands.at = alloca i64
  %stop.slot = load i64, ptr %table
  %stop.there = getelementptr i64, ptr %block, i64 %stop.slot
  %stoppable = icmp sge i64 %stop.slot, 0
  %stop.at = select i1 %stoppable, ptr %stop.there, ptr @never.at
  %word.first = load ptr, ptr %stop.at
  %times.at = getelementptr i64, ptr %table, i64 1
  %times.slot = load i64, ptr %times.at
  %timed = icmp sge i64 %times.slot, 0
  br i1 %timed, label %counters, label %begin
counters:
  %counters.at = getelementptr i64, ptr %block, i64 %times.slot
  %counters.all = load ptr, ptr %counters.at
  br label %begin
begin:
  %times = phi ptr [ null, %start ], [ %counters.all, %counters ]
  %copied.at = getelementptr i64, ptr %table, i64 3
  %copied = load i64, ptr %copied.at
  %copy = getelementptr i64, ptr %block, i64 %copied
  %copies.at = getelementptr i8, ptr %team, i64 {COPIES}
  %number.at = getelementptr i8, ptr %team, i64 {BANDS}
  %share.at = getelementptr i8, ptr %team, i64 {SHARE}
  %alone = icmp eq i64 %threads, 1
  %first = getelementptr i64, ptr %table, i64 {HEAD}
  store ptr %block, ptr %job
  %job.table = getelementptr i64, ptr %job, i64 1
  store ptr %table, ptr %job.table
  %job.first = getelementptr i64, ptr %job, i64 2
  %job.kernels = getelementptr i64, ptr %job, i64 3
  store ptr %kernels, ptr %job.kernels
  %job.word = getelementptr i64, ptr %job, i64 4
  store ptr %word.first, ptr %job.word
  %job.times = getelementptr i64, ptr %job, i64 5
  store ptr %times, ptr %job.times
  %job.copies = getelementptr i64, ptr %job, i64 6
  %job.number = getelementptr i64, ptr %job, i64 7
  br label %copy.it
copy.it:
  ; At the beginning, and after a region, whose tables have had copies of their own.
  %at.first = phi ptr [ %first, %begin ], [ %end, %together.done ]
  call void @fill(ptr %block, ptr %copy, i64 %copied, ptr %table)
  br i1 %alone, label %next, label %count.it
count.it:
  %copies.old = load i64, ptr %copies.at
  %copies = add i64 %copies.old, 1
  store i64 %copies, ptr %copies.at
  store i64 %copies, ptr %job.copies
  br label %next
next:
  %at = phi ptr [ %at.first, %copy.it ], [ %at.first, %count.it ], [ %end, %passed ],
    [ %epoch.end, %did ]
  %op = load i64, ptr %at
  %length.at = getelementptr i64, ptr %at, i64 1
  %length = load i64, ptr %length.at
  %end = getelementptr i64, ptr %at, i64 %length
  switch i64 %op, label %over [
    i64 {CALLS}, label %some
    i64 {BAND}, label %some
    i64 {MEET}, label %passed
    i64 {KEEP}, label %keep
    i64 {TOGETHER}, label %together
  ]
keep:
  store ptr @never, ptr %job.word
  br label %passed
passed:
  br label %next
together:
  %loop.at = getelementptr i64, ptr %at, i64 2
  %loop = load i64, ptr %loop.at
  %loop.function.at = getelementptr ptr, ptr %kernels, i64 %loop
  %loop.function = load ptr, ptr %loop.function.at
  %loop.before = call i64 @llvm.readcyclecounter()
  %result.together = call i64 %loop.function(ptr %block, i64 %threads, ptr %team)
  br i1 %timed, label %together.count, label %together.look
together.count:
  %loop.after = call i64 @llvm.readcyclecounter()
  %loop.passed = sub i64 %loop.after, %loop.before
  %loop.number.at = getelementptr i64, ptr %at, i64 3
  %loop.number = load i64, ptr %loop.number.at
  %loop.counter = getelementptr i64, ptr %times, i64 %loop.number
  %loop.old = atomicrmw add ptr %loop.counter, i64 %loop.passed monotonic
  br label %together.look
together.look:
  %together.good = icmp eq i64 %result.together, 0
  br i1 %together.good, label %together.done, label %bad
together.done:
  br label %copy.it
some:
  store ptr %at, ptr %job.first
  %epoch.end = call ptr @epoch_end(ptr %at, ptr %bands.at)
  %bands = load i64, ptr %bands.at
  %none = icmp eq i64 %bands, 0
  %own = or i1 %alone, %none
  br i1 %own, label %do, label %share
do:
  %result.own = call i64 @epoch(ptr %job, i64 0, i64 %threads, ptr %team)
  br label %did
share:
  %number = load i64, ptr %number.at
  store i64 %number, ptr %job.number
  %number.next = add i64 %number, %bands
  store i64 %number.next, ptr %number.at
  %share.function = load ptr, ptr %share.at
  %result.all = call i64 %share.function(ptr %team, ptr @epoch, ptr %job, i64 %threads)
  br label %did
did:
  %result.epoch = phi i64 [ %result.own, %do ], [ %result.all, %share ]
  %good = icmp eq i64 %result.epoch, 0
  br i1 %good, label %next, label %bad
bad:
  %result = phi i64 [ %result.together, %together.look ], [ %result.epoch, %did ]
  ret i64 %result
over:
  ret i64 0
}}
"""
