"""Where the thread pool keeps what Python sets or reads, in bytes; the structs are in `runtime.h`.

`scripts/native.py` generates assertions of these offsets into `layout.h`.
"""

from __future__ import annotations

# Of the pool: what Python sets before `rg_reset`,
PATIENCE, HASTE, PROCESSORS, PIN, CAPACITY, ALLOWED, OS = 256, 264, 272, 304, 328, 512, 768
# what it reads, and what tests look at or change.
ARRIVED, CONTENDED_UNTIL, SHARE, GROUPS, SWEPT = 128, 312, 336, 648, 664
WORKERS = 1152  # where the threads begin, by number, and of each:
WORKER_BYTES, CLAIM = 512, 256
PACE_WORDS = 17  # of how launches of a program are to go
ALIGNMENT = 128

# Functions of the operating system in the order of `struct os`; `futex` is a number.
OS_FUNCTIONS = (
    "syscall", "futex", "wait_on_address", "wake_by_address_single", "pthread_mutex_init",
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_init", "pthread_cond_wait",
    "pthread_cond_broadcast", "sched_getcpu", "sched_getaffinity", "sched_setaffinity",
    "clock_gettime", "getrusage", "pthread_self",
)  # fmt: skip


def assertions() -> dict[str, int]:
    """Expressions of C, with the values that they have to have."""
    pool = {
        "patience": PATIENCE, "haste": HASTE, "processors": PROCESSORS, "pin": PIN,
        "capacity": CAPACITY, "allowed": ALLOWED, "os": OS, "arrived": ARRIVED,
        "contended_until": CONTENDED_UNTIL, "share": SHARE, "groups": GROUPS, "swept": SWEPT,
        "workers": WORKERS,
    }  # fmt: skip
    found = {f"offsetof(struct pool, {name})": at for name, at in pool.items()}
    found |= {f"offsetof(struct os, {name})": 8 * k for k, name in enumerate(OS_FUNCTIONS)}
    found |= {"offsetof(struct worker, claim)": CLAIM, "sizeof(struct worker)": WORKER_BYTES}
    found["sizeof(struct pace)"] = 8 * PACE_WORDS
    return found | {"_Alignof(struct pool)": ALIGNMENT}
