/* The thread pool: fork and join of parallel regions, waiting for them, and launches of programs.

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

   Who enters (compare and swap, acquire) sees what the caller wrote before it opened the gate
   (release), and the caller, who finds nobody inside (acquire), what workers wrote before they left
   (release; others who leave later, and the caller that closes it, change the same word, which hands
   on what they release).

   Threads sleep on a count, `wakeups`, beside which they say that they do, `asleep`. Whoever falls
   asleep reads the count, says so, and looks once more if there is reason to; whoever gives a reason
   looks if they sleep afterwards. All four are sequentially consistent, so that one of the two sees
   the other; and who has been woken since reading the count does not fall asleep. To say so again is
   up to the sleeper: whoever wakes takes it back first (exchange), so no call that comes late takes
   back what was said later. */

#include "runtime.h"

static const uint64_t ONE_INSIDE = 1, INSIDE = 0xffff, OPEN = 1 << 16, OPENED_ONCE = UINT64_C(1) << 32;
enum { THREADS_SHIFT = 17 };

INTERNAL uint64_t times_opened(uint64_t gate)
{
    return gate & ~(OPENED_ONCE - 1);
}

INTERNAL int64_t threads_of(uint64_t gate)
{
    return (int64_t)((gate & (OPENED_ONCE - 1)) >> THREADS_SHIFT);
}

/* -- waking ------------------------------------------------------------------------------------ */

/* Wake a thread, if it sleeps. */
INTERNAL void wake(struct pool *pool, struct worker *worker)
{
    if (LOAD(&worker->asleep, SEQ_CST) == 0)
        return;
    if (__atomic_exchange_n(&worker->asleep, 0, __ATOMIC_SEQ_CST) == 0)
        return;
    ADD(&worker->wakeups, 1, SEQ_CST);
    unpark(pool, &worker->wakeups);
}

/* Thread t wakes t + 2^k for every 2^k > t: a tree of depth log2. */
INTERNAL void wake_children(struct pool *pool, int64_t thread, int64_t threads)
{
    int64_t step = 1;
    while (step <= thread)
        step <<= 1;
    for (; thread + step < threads; step <<= 1)
        wake(pool, &pool->workers[thread + step]);
}

/* -- the caller -------------------------------------------------------------------------------- */

/* Wait until nobody is inside the closed gate: spinning, then asleep. */
INTERNAL void join(struct pool *pool, uint64_t gate)
{
    struct worker *own = &pool->workers[0];
    uint64_t mask[CPU_WORDS];
    for (int64_t k = 1; k < pool->spins; k++) {
        if ((gate & INSIDE) == 0)
            return;
        pause_briefly();
        gate = LOAD(&pool->gate, ACQUIRE);
    }
    if ((gate & INSIDE) == 0)
        return;
    int bound = bind_caller(pool, mask);
    for (;;) {
        uint32_t wakeups = LOAD(&own->wakeups, SEQ_CST);
        STORE(&own->asleep, 1, SEQ_CST);
        if ((LOAD(&pool->gate, SEQ_CST) & INSIDE) == 0)
            break;
        park(pool, &own->wakeups, wakeups);
    }
    STORE(&own->asleep, 0, RELAXED);
    if (bound)
        unbind_caller(pool, mask);
}

/* Run `work(argument, thread, threads, pool)` on the caller, and on workers that come before it has
   returned there; it must return there when all that is to be done has been begun. The result is the
   largest (unsigned) of theirs. */
INTERNAL int64_t share(struct pool *pool, share_function *work, void *argument, int64_t threads)
{
    pool->work = work;
    pool->argument = argument;
    /* Nobody changes a gate that is closed with nobody inside. */
    uint64_t opened = times_opened(LOAD(&pool->gate, RELAXED)) + OPENED_ONCE;
    STORE(&pool->gate, opened | (uint64_t)threads << THREADS_SHIFT | OPEN, SEQ_CST);
    wake_children(pool, 0, threads);
    uint64_t own = (uint64_t)work(argument, 0, threads, pool);
    join(pool, __atomic_fetch_and(&pool->gate, ~OPEN, __ATOMIC_SEQ_CST));
    uint64_t worst = LOAD(&pool->worst, RELAXED);
    if (worst == 0)
        return (int64_t)own;
    STORE(&pool->worst, 0, RELAXED);
    return (int64_t)(own > worst ? own : worst);
}

int64_t rg_share(struct pool *pool, share_function *work, void *argument, int64_t threads)
{
    return share(pool, work, argument, threads);
}

/* Have no claim look as if it were new: they tell tile groups apart by the lowest 32 bits of their
   number. Nobody is at work. */
INTERNAL void sweep(struct pool *pool)
{
    uint64_t old = (uint64_t)(pool->groups - 1) << 32;
    for (int64_t thread = 0; thread < pool->capacity; thread++)
        STORE(&pool->workers[thread].claim, old, RELAXED);
    pool->swept = pool->groups;
}

/* Run a program on so many threads, unless the pool has other work: then on the caller's alone. */
INTERNAL int64_t run_shared(struct pool *pool, program_function *run, int64_t *frame,
                            int64_t threads, int *met)
{
    int64_t workers = LOAD(&pool->arrived, ACQUIRE), idle = 0;
    if (!CAS(&pool->busy, &idle, 1, ACQUIRE))
        return run(frame, 0, 1, pool);
    int calm = threads <= pool->processors && !is_contended(pool);
    STORE(&pool->spins, calm ? pool->patience : pool->haste, RELAXED);
    settle(pool, workers, calm);
    pool->mode = floating_mode();
    if ((uint64_t)(pool->groups - pool->swept) > UINT64_C(1) << 30)
        sweep(pool);
    uint64_t before = LOAD(&pool->gate, RELAXED);
    STORE(&pool->helped, 0, RELAXED);
    STORE(&pool->met, 0, RELAXED);
    int64_t result = run(frame, 0, threads, pool);
    uint64_t opened = (LOAD(&pool->gate, RELAXED) - before) / OPENED_ONCE;
    judge(pool, opened * (uint64_t)(threads - 1), (uint64_t)LOAD(&pool->helped, RELAXED));
    *met = LOAD(&pool->met, RELAXED) != 0;
    STORE(&pool->busy, 0, RELEASE);
    return result;
}

/* Run a program on at most so many threads; on fewer where that is quicker, as `pace` learns (see
   pace.c). If some thread meets subnormal numbers, one is added to `subnormal`. Both may be NULL. */
int64_t rg_launch(struct pool *pool, program_function *run, int64_t *frame, int64_t asked,
                  struct pace *pace, int64_t *subnormal)
{
    int64_t there = LOAD(&pool->arrived, ACQUIRE) + 1, threads = asked < there ? asked : there;
    int64_t number = -1, result, before = 0;
    int met = 0, alone = threads <= 1;
    if (!alone && pace != NULL) {
        number = begin_launch(pace);
        alone = goes_alone(pace, number);
        before = number >= 0 ? cycles() : 0;
    }
    forget_subnormals();
    result = alone ? run(frame, 0, 1, pool) : run_shared(pool, run, frame, threads, &met);
    if (number >= 0)
        learn(pace, number, cycles() - before);
    if (subnormal != NULL && (met || met_subnormals()))
        ++*subnormal;
    return result;
}

/* A pool without workers, of memory that is zero but for what Python has set; see thread_pool.py. */
void rg_reset(struct pool *pool)
{
    pool->spins = pool->patience;
    pool->groups = pool->swept = 1;
    pool->share = share;
    renew_condition(pool);
}

/* -- workers ----------------------------------------------------------------------------------- */

/* Enter the gate, if it is open to a thread, and for another time than `last`: what it was when the
   thread entered, or 0. */
INTERNAL uint64_t enter(struct pool *pool, int64_t thread, uint64_t last)
{
    uint64_t gate = LOAD(&pool->gate, SEQ_CST);
    do {
        if (!(gate & OPEN) || thread >= threads_of(gate) || times_opened(gate) == last)
            return 0;
    } while (!CAS(&pool->gate, &gate, gate + ONE_INSIDE, SEQ_CST));
    return gate;
}

/* Do what is shared, and leave. */
INTERNAL void help(struct pool *pool, int64_t thread, uint64_t entered)
{
    int64_t threads = threads_of(entered);
    wake_children(pool, thread, threads);
    share_function *work = pool->work;
    void *argument = pool->argument;
    ADD(&pool->helped, 1, RELAXED);
    uint64_t result = (uint64_t)work(argument, thread, threads, pool);
    if (met_subnormals())
        STORE(&pool->met, 1, RELAXED);
    uint64_t worst = LOAD(&pool->worst, RELAXED);
    while (result > worst && !CAS(&pool->worst, &worst, result, RELAXED))
        ;
    uint64_t before = __atomic_fetch_sub(&pool->gate, ONE_INSIDE, __ATOMIC_SEQ_CST);
    int is_last = (before & (OPEN | INSIDE)) == ONE_INSIDE; /* closed, and nobody else */
    if (is_last && LOAD(&pool->workers[0].asleep, SEQ_CST) != 0) {
        /* The caller has tired of waiting for this thread. */
        wake(pool, &pool->workers[0]);
        look_around(pool, thread);
    }
}

/* Enter the gate for another time than `last`: spinning, then asleep. */
INTERNAL uint64_t wait_to_enter(struct pool *pool, int64_t thread, uint64_t last)
{
    struct worker *own = &pool->workers[thread];
    for (;;) {
        int64_t spins = LOAD(&pool->spins, RELAXED), k = 0;
        do {
            uint64_t entered = enter(pool, thread, last);
            if (entered != 0)
                return entered;
            pause_briefly();
        } while (++k < spins);
        uint32_t wakeups;
        do {
            wakeups = LOAD(&own->wakeups, SEQ_CST);
            STORE(&own->asleep, 1, SEQ_CST);
            uint64_t entered = enter(pool, thread, last);
            if (entered != 0) {
                STORE(&own->asleep, 0, RELAXED);
                return entered;
            }
            park(pool, &own->wakeups, wakeups);
        } while (LOAD(&own->wakeups, SEQ_CST) == wakeups);
    }
}

/* The life of a worker. It takes the next number, reports once those before it have, and never
   returns. */
void rg_worker(struct pool *pool, int64_t id)
{
    int64_t before = ADD(&pool->numbered, 1, SEQ_CST), thread = before + 1;
    uint64_t entered = 0;
    pool->workers[thread].id = id;
    while (LOAD(&pool->arrived, ACQUIRE) != before)
        pause_briefly();
    STORE(&pool->arrived, thread, RELEASE);
    for (;;) {
        entered = wait_to_enter(pool, thread, times_opened(entered));
        set_floating_mode(pool->mode);
        help(pool, thread, entered);
    }
}
