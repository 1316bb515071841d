"""How many rows a band has, and how many blocks, by its words in a table; see `drive_text.py`.

The word for rows is their number, or -1 - the slot that holds it. That for blocks is their number;
0, where each thread takes one, or a few; -`EACH`, where it takes one; less than that where a slot
holds their number, see `counted`; otherwise - the rows of a block, about.
"""

from __future__ import annotations

from retrograd.schedule.tiling.groups import EACH

LONG_ROWS = 1024  # after which a run may stop
SLOT_BITS = 32


def counted(slot: int, least: int) -> int:
    """The word for as many blocks as a slot says, of so many rows at least."""
    return -1 - EACH - slot - (least << SLOT_BITS)


TEXT = f"""
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define internal i64 @rows(ptr %block, i64 %word) nounwind {{
start:
  %known = icmp sge i64 %word, 0
  br i1 %known, label %here, label %there
here:
  ret i64 %word
there:
  %slot = sub i64 -1, %word
  %at = getelementptr i64, ptr %block, i64 %slot
  %rows = load i64, ptr %at
  ret i64 %rows
}}

define internal i64 @blocks(ptr %block, i64 %word, i64 %rows, i64 %threads) nounwind {{
start:
  %known = icmp sgt i64 %word, 0
  br i1 %known, label %here, label %ask
here:
  ret i64 %word
ask:
  %each = icmp eq i64 %word, 0
  br i1 %each, label %shares, label %count
shares:
  %long = udiv i64 %rows, {LONG_ROWS}
  %more = call i64 @llvm.umax.i64(i64 %long, i64 %threads)
  ret i64 %more
count:
  %all = icmp eq i64 %word, -{EACH}
  br i1 %all, label %one, label %some
one:
  ret i64 %threads
some:
  %counted = icmp slt i64 %word, -{EACH}
  br i1 %counted, label %load, label %divide
load:
  %both = sub i64 -{EACH + 1}, %word
  %slot = and i64 %both, {(1 << SLOT_BITS) - 1}
  %least.rows = lshr i64 %both, {SLOT_BITS}
  %at = getelementptr i64, ptr %block, i64 %slot
  %there = load i64, ptr %at
  %enough = udiv i64 %rows, %least.rows
  %most = call i64 @llvm.umin.i64(i64 %there, i64 %enough)
  br label %told
divide:
  %size = sub i64 0, %word
  %quotient = udiv i64 %rows, %size
  br label %told
told:
  %many = phi i64 [ %most, %load ], [ %quotient, %divide ]
  ; What is counted, and less than a block, is one, for one thread.
  %none = icmp eq i64 %many, 0
  %alone = icmp eq i64 %threads, 1
  %less = and i1 %none, %counted
  %single = and i1 %less, %alone
  %two = select i1 %single, i64 1, i64 2
  %least = call i64 @llvm.umin.i64(i64 %rows, i64 %two)
  %blocks = call i64 @llvm.umax.i64(i64 %many, i64 %least)
  ret i64 %blocks
}}
"""
