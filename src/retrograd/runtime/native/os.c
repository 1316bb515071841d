/* What the thread pool asks of the operating system and of the processor: sleeping and waking,
   placing threads, knowing whether other programs need processors, and the floating-point mode. */

#include "runtime.h"

enum {
    FUTEX_WAIT_PRIVATE = 128,
    FUTEX_WAKE_PRIVATE = 129,
    CLOCK_MONOTONIC_LINUX = 1,
    RUSAGE_OF_THREAD = 1,
    INVOLUNTARY_SWITCHES = 17, /* the place of `ru_nivcsw` among the words of `struct rusage` */
    MASK_BYTES = 8 * CPU_WORDS,
    MASK_BITS = 64 * CPU_WORDS,
};

static const int64_t CONTENDED = 100000000; /* nanoseconds that others are taken to need processors */
static const int64_t LOOK_EVERY = 1000000;  /* nanoseconds between two looks of the caller if they do */

/* -- sleeping ---------------------------------------------------------------------------------- */

/* The memory of the condition variable, made anew: also in a child of fork, where a thread that no
   longer exists may have held it. */
INTERNAL void renew_condition(struct pool *pool)
{
    if (pool->os.pthread_mutex_init == NULL)
        return;
    for (int k = 0; k < 16; k++)
        pool->mutex[k] = pool->condition[k] = 0;
    pool->os.pthread_mutex_init(pool->mutex, NULL);
    pool->os.pthread_cond_init(pool->condition, NULL);
}

/* Sleep while a word has this value, at the latest until `unpark` is called after it has changed;
   may return early. */
NOINLINE void park(struct pool *pool, uint32_t *word, uint32_t value)
{
    const struct os *os = &pool->os;
    if (os->syscall != NULL) {
        os->syscall((long)os->futex, word, (long)FUTEX_WAIT_PRIVATE, (long)value, (void *)NULL);
    }
    else if (os->wait_on_address != NULL) {
        os->wait_on_address(word, &value, sizeof value, UINT32_MAX);
    }
    else {
        os->pthread_mutex_lock(pool->mutex);
        if (LOAD(word, SEQ_CST) == value)
            os->pthread_cond_wait(pool->condition, pool->mutex);
        os->pthread_mutex_unlock(pool->mutex);
    }
}

NOINLINE void unpark(struct pool *pool, uint32_t *word)
{
    const struct os *os = &pool->os;
    if (os->syscall != NULL) {
        os->syscall((long)os->futex, word, (long)FUTEX_WAKE_PRIVATE, 1L);
    }
    else if (os->wake_by_address_single != NULL) {
        os->wake_by_address_single(word);
    }
    else {
        os->pthread_mutex_lock(pool->mutex);
        os->pthread_cond_broadcast(pool->condition);
        os->pthread_mutex_unlock(pool->mutex);
    }
}

/* -- contention -------------------------------------------------------------------------------- */

INTERNAL int64_t now(struct pool *pool)
{
    int64_t time[2];
    pool->os.clock_gettime(CLOCK_MONOTONIC_LINUX, time);
    return time[0] * 1000000000 + time[1];
}

/* Look if the system has taken the processor away from this thread since it looked last: then others
   need processors, too, and for some time the system is to find places for all threads, since it
   knows where it is crowded. */
NOINLINE void look_around(struct pool *pool, int64_t thread)
{
    struct worker *own = &pool->workers[thread];
    int64_t usage[32];
    if (pool->os.getrusage == NULL)
        return;
    pool->os.getrusage(RUSAGE_OF_THREAD, usage);
    int64_t before = own->preemptions, lost = usage[INVOLUNTARY_SWITCHES];
    void *whose = own->preempted, *self = pool->os.pthread_self();
    own->preemptions = lost;
    own->preempted = self;
    if (whose == self && lost != before)
        STORE(&pool->contended_until, now(pool) + CONTENDED, RELAXED);
}

/* At the end of a launch: look around if it was rare that workers came, but not too often. */
INTERNAL void judge(struct pool *pool, uint64_t wanted, uint64_t helped)
{
    if (pool->os.getrusage == NULL || helped << 1 >= wanted)
        return;
    int64_t time = now(pool);
    if (time < pool->next_look)
        return;
    pool->next_look = time + LOOK_EVERY;
    look_around(pool, 0);
}

/* Whether other programs are taken to need processors. */
INTERNAL int is_contended(struct pool *pool)
{
    int64_t until = LOAD(&pool->contended_until, RELAXED);
    if (until == 0)
        return 0;
    if (now(pool) < until)
        return 1;
    STORE(&pool->contended_until, 0, RELAXED);
    return 0;
}

/* -- placing threads --------------------------------------------------------------------------- */

INTERNAL int is_placed(const struct pool *pool)
{
    return pool->pin != 0 && pool->os.sched_setaffinity != NULL;
}

/* Keep the workers off the caller's processor. A thread that is woken is often put where it was
   woken from; there it would be idle while the caller works. */
INTERNAL void settle(struct pool *pool, int64_t workers, int calm)
{
    uint64_t mask[CPU_WORDS];
    if (!is_placed(pool))
        return;
    int64_t here = pool->os.sched_getcpu();
    int64_t avoid = calm ? here : -1;
    if (avoid == pool->avoided && workers == pool->settled)
        return;
    pool->avoided = avoid;
    pool->settled = workers;
    for (int k = 0; k < CPU_WORDS; k++)
        mask[k] = pool->allowed[k];
    if ((uint64_t)avoid < MASK_BITS)
        mask[avoid / 64] &= ~(UINT64_C(1) << avoid % 64);
    for (int64_t thread = 1; thread <= workers; thread++)
        pool->os.sched_setaffinity((int)pool->workers[thread].id, MASK_BYTES, mask);
}

/* Bind the caller, which is about to sleep, to the processor that workers keep off, and keep in
   `mask` where it may run; whether that was done. A virtual processor that sleeps looks as if it had
   been taken away, so Linux wakes a thread where the waker is: a worker, which may not move. Both
   would share that processor for the rest of the run. */
INTERNAL int bind_caller(struct pool *pool, uint64_t *mask)
{
    uint64_t own[CPU_WORDS] = {0};
    uint64_t cpu = (uint64_t)pool->avoided;
    if (!is_placed(pool) || cpu >= MASK_BITS || pool->os.sched_getaffinity(0, MASK_BYTES, mask) != 0)
        return 0;
    own[cpu / 64] = UINT64_C(1) << cpu % 64;
    if ((mask[cpu / 64] & own[cpu / 64]) == 0)
        return 0;
    return pool->os.sched_setaffinity(0, MASK_BYTES, own) == 0;
}

INTERNAL void unbind_caller(struct pool *pool, const uint64_t *mask)
{
    pool->os.sched_setaffinity(0, MASK_BYTES, mask);
}

/* -- the processor ----------------------------------------------------------------------------- */

/* How a thread rounds, and whether it flushes subnormal numbers to zero, is a property of each
   thread, inherited from whatever created it. Workers take over the caller's, or results would
   depend on their number; that has the processor forget what has happened. `met_subnormals` tells
   whether operations since `forget_subnormals` have read any, where the processor knows. `pause` is
   how a thread that spins makes room for others on its core. */
#if defined(__x86_64__)
#define FLUSH_BITS INT64_C(0x8040)         /* of results, and of arguments */
#define SUBNORMAL_OPERAND UINT32_C(2) /* stays set once an operand was one, unless they are flushed */

INTERNAL void pause_briefly(void)
{
    __builtin_ia32_pause();
}

INTERNAL int64_t floating_mode(void)
{
    return __builtin_ia32_stmxcsr() & ~UINT32_C(63); /* the lowest six are what has happened */
}

INTERNAL void set_floating_mode(int64_t mode)
{
    __builtin_ia32_ldmxcsr((uint32_t)mode);
}

INTERNAL int met_subnormals(void)
{
    return (__builtin_ia32_stmxcsr() & SUBNORMAL_OPERAND) != 0;
}

INTERNAL void forget_subnormals(void)
{
    uint32_t state = __builtin_ia32_stmxcsr();
    if (state & SUBNORMAL_OPERAND) /* to write takes ten times longer than to read */
        __builtin_ia32_ldmxcsr(state & ~SUBNORMAL_OPERAND);
}
#elif defined(__aarch64__)
#define FLUSH_BITS (INT64_C(1) << 24) /* of results and of arguments at once */

INTERNAL void pause_briefly(void)
{
    __asm__ volatile("isb" ::: "memory");
}

INTERNAL int64_t floating_mode(void)
{
    int64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

INTERNAL void set_floating_mode(int64_t mode)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
}
#else
#define FLUSH_BITS INT64_C(0)

INTERNAL void pause_briefly(void) {}

INTERNAL int64_t floating_mode(void)
{
    return 0;
}

INTERNAL void set_floating_mode(int64_t mode)
{
    (void)mode;
}
#endif

#if !defined(__x86_64__)
/* 64-bit ARM keeps that only while they are flushed. */
INTERNAL int met_subnormals(void)
{
    return 0;
}

INTERNAL void forget_subnormals(void) {}
#endif

/* Cycles since some point in time; 0 where the compiler knows no instruction for it. */
INTERNAL int64_t cycles(void)
{
#if defined(__clang__)
    return (int64_t)__builtin_readcyclecounter();
#elif defined(__x86_64__)
    return (int64_t)__builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* Have this thread flush subnormal numbers, as arguments and as results, or not; whether it did. */
int64_t rg_flush(int64_t on)
{
    int64_t mode = floating_mode();
    set_floating_mode(on ? mode | FLUSH_BITS : mode & ~FLUSH_BITS);
    return (mode & FLUSH_BITS) != 0;
}

/* So many pauses, to measure how long they take. */
void rg_pauses(int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        pause_briefly();
}
