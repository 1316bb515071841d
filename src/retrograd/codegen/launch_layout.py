"""The layout of launch tables: what the code generator writes and the launcher reads.

The launcher is C (`runtime/native/launch.c`); all that is a number here in capitals is generated
into its header `layout.h` by `scripts/native.py`, so both sides have it from this file.

A table is a row of 8-byte words. The *frame* of a run has a word for each buffer, symbolic size and
so on, by the number of its *slot*. A table begins with the words of HEAD; then follow operations,
each beginning with its kind and its length in words:

    END      the end of the run
    CALLS    calls, made by the first thread
    TILES    a tile group: rows, cut into tiles that threads share; the words of GROUP, then the
             slot and the bytes of a row of each local buffer, then the calls made for each tile
    BARRIER  what follows needs the results of what comes before
    COMMIT   the same, and from there on the run is not to be stopped: what follows overwrites
             inputs
    REGION   a loop or branch with launch tables of its own: a function
             `i64 (ptr frame, i64 threads, ptr pool)`

A call has the words of CALL, then the slots that the kernel refers to. Kernels are `i64 (ptr frame,
ptr slots, i64 first, i64 end)`, with the rows to do. They return 0, or something else where a check
failed. One that takes long looks at the word that stops the run itself, and returns 0 with its work
not done.
"""

from __future__ import annotations

# Words of a table before its operations.
(
    HEAD_STOP,  # the slot of the address of the word that stops the run; -1 where nothing is to
    HEAD_COUNTERS,  # the slot of the address of the counters of kernels; -1 where none are kept
    HEAD_SCRATCH,  # bytes of scratch memory that each thread has
    HEAD_COPIED,  # slots of the frame, where threads need copies of it, otherwise 0
    HEAD_STATUS,  # the slot in which kernels that fail leave what they found
    HEAD_WORDS,
) = range(6)

END, CALLS, TILES, BARRIER, COMMIT, REGION = range(6)  # kinds of operations
OP_KIND, OP_LENGTH, OP_WORDS = range(3)

# Words of a tile group. GROUP_ROWS is the number of rows, or -1 - the slot that holds it.
# GROUP_TILES is the number of tiles: n; 0: one for each thread, or more where there are many rows,
# as a run has to be able to stop among them; -ONE_EACH: one for each thread; -n: one for each n
# rows, but two at least where there are two rows, a number that does not depend on the threads;
# less than -ONE_EACH: as many as a slot says, see `counted`.
(
    GROUP_ROWS,
    GROUP_TILES,
    GROUP_ELEMENT,  # the rows of an element, which no tile reaches beyond, or 0
    GROUP_UNIT,  # of which the rows of tiles are multiples
    GROUP_CHAIN,  # tiles that one thread does together
    GROUP_LOCAL_COUNT,  # local buffers
    GROUP_LOCALS,
) = range(OP_WORDS, OP_WORDS + 7)
LOCAL_SLOT, LOCAL_ROW_BYTES, LOCAL_WORDS = range(3)

REGION_FUNCTION, REGION_COUNTER = range(OP_WORDS, OP_WORDS + 2)

# Words of a call before its slots.
(
    CALL_FUNCTION,  # the number of the kernel's address
    CALL_FAILURE,  # the result of the run if it fails; 0: the kernel returns that itself
    CALL_COUNTER,  # its place among the counters of kernels
    CALL_COUNT,  # how many slots it refers to
    CALL_SLOTS,
) = range(5)

ONE_EACH = 1 << 62
SLOT_BITS = 32
LONG_ROWS = 1024  # rows after which a run may stop
MOST_UNITS = 1 << 15  # units that a part of a group may consist of; a claim has 16 bits for one
STOPPED = 1 << 62  # the result of a run that was told to stop

# Counters of a kernel: cycles, and how often it has met subnormal numbers.
COUNTED_CYCLES, COUNTED_SUBNORMALS, COUNTER_WORDS = range(3)

# Slots from the status on: the address of the word that stops a run; where a walk through a graph
# has the first of the nodes that threads share, and how many they are; and all of them.
STOP_AT, FIRST_AT, NODES_AT, STATUS_SLOTS = 3, 4, 5, 6


def counted(slot: int, least: int) -> int:
    """GROUP_TILES for as many tiles as a slot says, of so many rows at least."""
    return -1 - ONE_EACH - slot - (least << SLOT_BITS)
