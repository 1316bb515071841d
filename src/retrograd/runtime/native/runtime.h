/* The native runtime: what compiled programs and the thread pool share.

   Freestanding C. The object that is made of it refers to nothing outside of itself: functions of
   the operating system come in a table (`struct os`), and all that changes lies in memory that the
   caller gives (`struct pool`). So any linker loads it, and nothing depends on the LLVM at hand.

   All that Python reads or writes has its offsets asserted here against `layout.h`, which is
   generated from the layout in Python. */

#ifndef RETROGRAD_RUNTIME_H
#define RETROGRAD_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

#define INTERNAL static
#define NOINLINE static __attribute__((noinline))

#define LOAD(at, order) __atomic_load_n(at, __ATOMIC_##order)
#define STORE(at, value, order) __atomic_store_n(at, value, __ATOMIC_##order)
#define ADD(at, value, order) __atomic_fetch_add(at, value, __ATOMIC_##order)
#define CAS(at, expected, value, success) \
    __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_##success, __ATOMIC_RELAXED)

struct pool;

/* A share of the work of a parallel region, as one thread does it; 0, or what is wrong. */
typedef int64_t share_function(void *argument, int64_t thread, int64_t threads, struct pool *pool);
/* A compiled program. */
typedef int64_t program_function(int64_t *frame, int64_t thread, int64_t threads, struct pool *pool);
/* A compiled kernel, for the rows from `first` to before `end`. */
typedef int64_t kernel_function(int64_t *frame, const int64_t *slots, int64_t first, int64_t end);
/* A compiled loop or branch that runs launch tables of its own. */
typedef int64_t region_function(int64_t *frame, int64_t threads, struct pool *pool);

/* Functions of the operating system; NULL where it has none. How threads sleep is told by which of
   them there are: `syscall` (a futex, on Linux), `wait_on_address` (Windows), else a condition
   variable. Without `sched_setaffinity` threads are not placed. */
struct os {
    long (*syscall)(long number, ...);
    int64_t futex; /* the number of that system call */
    int (*wait_on_address)(void *word, void *value, size_t size, uint32_t milliseconds);
    void (*wake_by_address_single)(void *word);
    int (*pthread_mutex_init)(void *mutex, const void *attributes);
    int (*pthread_mutex_lock)(void *mutex);
    int (*pthread_mutex_unlock)(void *mutex);
    int (*pthread_cond_init)(void *condition, const void *attributes);
    int (*pthread_cond_wait)(void *condition, void *mutex);
    int (*pthread_cond_broadcast)(void *condition);
    int (*sched_getcpu)(void);
    int (*sched_getaffinity)(int thread, size_t bytes, void *mask);
    int (*sched_setaffinity)(int thread, size_t bytes, const void *mask);
    int (*clock_gettime)(int clock, void *time);
    int (*getrusage)(int who, void *usage);
    void *(*pthread_self)(void);
};

#define CPU_WORDS 16 /* of 64 processors each */

/* What belongs to one thread, in lines of the cache of its own: 128 bytes apart, because processors
   fetch lines in pairs. */
struct worker {
    _Alignas(128) uint32_t wakeups; /* how often it was woken: the word that it sleeps on */
    uint32_t asleep;                /* whether somebody who has work for it has to wake it */
    _Alignas(128) int64_t id;       /* the system's number for the thread */
    int64_t frame_copy;             /* the number of the frame copies that it has made its own for */
    int64_t preemptions;            /* how often it has lost its processor to others, as it knows */
    void *preempted;                /* which thread of the system that count is of */
    _Alignas(128) uint64_t claim;   /* what is left of its part of a tile group: see launch.c */
    _Alignas(128) char end[128];
};

struct pool {
    _Alignas(128) int64_t busy; /* whether a launch is running */

    _Alignas(128) int64_t arrived; /* workers that are there */
    int64_t numbered;              /* numbers given out to workers */

    _Alignas(128) int64_t patience; /* pauses for which a waiting thread spins before it sleeps, */
    int64_t haste;                  /* and where others need the processors */
    int64_t processors;
    int64_t spins;           /* which of the two holds for the present launch */
    int64_t avoided;         /* the processor that workers keep off; -1 for none, */
    int64_t settled;         /* and how many workers do */
    int64_t pin;             /* whether they shall */
    int64_t contended_until; /* when others are taken to need processors no more, in nanoseconds; or 0 */
    int64_t next_look;       /* when the caller looks again if they do */
    int64_t capacity;        /* how many threads there is memory for */
    int64_t (*share)(struct pool *, share_function *, void *, int64_t threads); /* `rg_share` */

    _Alignas(128) uint64_t gate; /* see thread_pool.c */
    share_function *work;        /* what is done inside, */
    void *argument;
    int64_t mode;   /* how the caller rounds, */
    int64_t helped; /* how often workers have entered in this launch, */
    int64_t met;    /* and whether they have met subnormal numbers */

    _Alignas(128) uint64_t allowed[CPU_WORDS]; /* the processors that workers may use, a bit each */

    _Alignas(128) uint64_t worst; /* the largest result of workers that have left */
    int64_t groups;               /* tile groups that were begun by all programs so far */
    int64_t frame_copies;         /* how often copies of a frame were needed so far */
    int64_t swept;                /* `groups` when claims were last made to look old */

    _Alignas(128) struct os os;
    _Alignas(128) int64_t mutex[16]; /* room for the largest of any system we know of */
    _Alignas(128) int64_t condition[16];

    _Alignas(128) struct worker workers[]; /* by the number of the thread; the caller's is 0 */
};

#define PACE_TIMES 7
/* How launches of a program are to go, see pace.c; zeros to begin with. */
struct pace {
    int64_t alone;    /* whether they are for the caller alone */
    int64_t interval; /* launches between two trials; 0: none was made */
    int64_t left;     /* launches until the next trial; during it, minus the number of the launch */
    int64_t times[2 * PACE_TIMES]; /* of a trial, in cycles: of the usual way, and of the other */
};

LAYOUT_ASSERTIONS

void rg_reset(struct pool *pool);
void rg_worker(struct pool *pool, int64_t id);
int64_t rg_launch(struct pool *pool, program_function *run, int64_t *frame, int64_t asked,
                  struct pace *pace, int64_t *subnormal);
int64_t rg_share(struct pool *pool, share_function *work, void *argument, int64_t threads);
int64_t rg_drive(int64_t *frame, int64_t threads, struct pool *pool, const int64_t *table,
                        void *const *functions);
void rg_pauses(int64_t count);
int64_t rg_flush(int64_t on);

#endif
