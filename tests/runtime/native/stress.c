/* The native runtime under load, for the sanitizers: `stress WAY ROUNDS`, where WAY is how threads
   sleep. Several callers launch programs of random shapes on one pool; results are compared with what
   they have to be. Kernels write and read rows without any synchronization of their own, so whatever
   the runtime does not order is a race that the thread sanitizer sees. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime.c"

enum { WORKERS_STARTED = 3, CALLERS = 3, MOST_ROWS = 700, FIRST = 1000 };
/* Slots of a frame. */
enum { A, B, LOCAL, TOTAL, ROWS, STOP, STATUS, TABLE, INNER, FAIL_AT, COUNT, COUNTERS, SLOTS };

static struct pool *pool;

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "wrong: %s\n", what);
        abort();
    }
}

/* -- how threads sleep ------------------------------------------------------------------------- */

static int wait_on_address(void *word, void *value, size_t size, uint32_t milliseconds)
{
    uint32_t seen;
    memcpy(&seen, value, sizeof seen);
    check(size == sizeof seen && milliseconds == UINT32_MAX, "wait");
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL);
    return 1;
}

static void wake_by_address_single(void *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

static void *own_thread(void)
{
    return (void *)(intptr_t)pthread_self();
}

static void fill_os(struct os *os, const char *way)
{
    memset(os, 0, sizeof *os);
    if (strcmp(way, "futex") == 0) {
        os->syscall = syscall;
        os->futex = SYS_futex;
        os->sched_getcpu = sched_getcpu;
        os->sched_getaffinity = (int (*)(int, size_t, void *))sched_getaffinity;
        os->sched_setaffinity = (int (*)(int, size_t, const void *))sched_setaffinity;
        os->clock_gettime = (int (*)(int, void *))clock_gettime;
        os->getrusage = (int (*)(int, void *))getrusage;
        os->pthread_self = own_thread;
    }
    else if (strcmp(way, "windows") == 0) {
        os->wait_on_address = wait_on_address;
        os->wake_by_address_single = wake_by_address_single;
    }
    else {
        check(strcmp(way, "condition") == 0, "the way to sleep");
        os->pthread_mutex_init = (int (*)(void *, const void *))pthread_mutex_init;
        os->pthread_mutex_lock = (int (*)(void *))pthread_mutex_lock;
        os->pthread_mutex_unlock = (int (*)(void *))pthread_mutex_unlock;
        os->pthread_cond_init = (int (*)(void *, const void *))pthread_cond_init;
        os->pthread_cond_wait = (int (*)(void *, void *))pthread_cond_wait;
        os->pthread_cond_broadcast = (int (*)(void *))pthread_cond_broadcast;
    }
}

/* -- kernels ----------------------------------------------------------------------------------- */

static int64_t *buffer(const int64_t *frame, int64_t slot)
{
    return (int64_t *)(intptr_t)frame[slot];
}

static int64_t fill_rows(int64_t *frame, const int64_t *slots, int64_t first, int64_t end)
{
    int64_t *a = buffer(frame, slots[0]);
    for (int64_t row = first; row < end; row++)
        a[row] = FIRST + row * row;
    return 0;
}

/* Into a local buffer, of which a thread has the rows at hand. */
static int64_t double_rows(int64_t *frame, const int64_t *slots, int64_t first, int64_t end)
{
    const int64_t *a = buffer(frame, slots[0]);
    int64_t local = frame[slots[1]];
    for (int64_t row = first; row < end; row++)
        *(int64_t *)(intptr_t)(local + 8 * row) = 2 * a[row];
    return 0;
}

/* With rows that other threads have made before the barrier. */
static int64_t add_rows(int64_t *frame, const int64_t *slots, int64_t first, int64_t end)
{
    const int64_t *a = buffer(frame, slots[0]);
    int64_t *b = buffer(frame, slots[1]), local = frame[slots[2]], rows = frame[slots[3]];
    for (int64_t row = first; row < end; row++)
        b[row] = *(int64_t *)(intptr_t)(local + 8 * row) + a[(row + 7) % rows];
    return 0;
}

static int64_t sum_rows(int64_t *frame, const int64_t *slots, int64_t first, int64_t end)
{
    const int64_t *b = buffer(frame, slots[0]);
    int64_t total = first + end;
    for (int64_t row = 0; row < frame[slots[1]]; row++)
        total += b[row];
    *buffer(frame, slots[2]) += total;
    return 0;
}

/* Fails at a row. */
static int64_t find_row(int64_t *frame, const int64_t *slots, int64_t first, int64_t end)
{
    int64_t row = frame[slots[0]];
    if (row < first || row >= end)
        return 0;
    frame[slots[1]] = row + 1; /* of this thread's copy */
    return 1;
}

static int64_t run_inner(int64_t *frame, int64_t threads, struct pool *given)
{
    extern void *const functions[];
    for (int64_t k = 0; k < 3; k++) {
        int64_t result = rg_drive(frame, threads, given, buffer(frame, INNER), functions);
        if (result != 0)
            return result;
    }
    return 0;
}

enum { FILL, DOUBLE, ADD_ROWS, SUM, FIND, RUN_INNER };
void *const functions[] = {
    (void *)fill_rows, (void *)double_rows, (void *)add_rows,
    (void *)sum_rows, (void *)find_row, (void *)run_inner,
};

/* -- tables ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t words[200];
    int64_t length, operation;
} Table;

static void put(Table *table, int64_t word)
{
    table->words[table->length++] = word;
}

static void begin_table(Table *table, int64_t scratch)
{
    const int64_t head[] = {STOP, COUNTERS, scratch, SLOTS, STATUS};
    table->length = 0;
    for (int k = 0; k < HEAD_WORDS; k++)
        put(table, head[k]);
}

static void begin(Table *table, int64_t kind)
{
    table->operation = table->length;
    put(table, kind);
    put(table, 0);
}

static void end(Table *table)
{
    table->words[table->operation + OP_LENGTH] = table->length - table->operation;
}

static void call(Table *table, int64_t function, int64_t failure, int64_t count, const int64_t *slots)
{
    const int64_t words[] = {function, failure, function, count};
    for (int k = 0; k < CALL_SLOTS; k++)
        put(table, words[k]);
    for (int64_t k = 0; k < count; k++)
        put(table, slots[k]);
}

static void begin_tiles(Table *table, const int64_t *cut, int local)
{
    begin(table, TILES);
    put(table, -1 - ROWS);
    for (int k = 0; k < 4; k++) /* tiles, element, unit, chain */
        put(table, cut[k]);
    put(table, local);
    if (local) {
        put(table, LOCAL);
        put(table, 8);
    }
}

static void operation(Table *table, int64_t kind)
{
    begin(table, kind);
    end(table);
}

/* Fill A; from it B, by way of a local buffer; look for a row. */
static void inner_table(Table *table, const int64_t *cut, int64_t scratch)
{
    begin_table(table, scratch);
    begin_tiles(table, cut, 0);
    call(table, FILL, 0, 1, (int64_t[]){A});
    end(table);
    operation(table, BARRIER);
    begin_tiles(table, cut, 1);
    call(table, DOUBLE, 0, 2, (int64_t[]){A, LOCAL});
    call(table, ADD_ROWS, 0, 4, (int64_t[]){A, B, LOCAL, ROWS});
    end(table);
    begin_tiles(table, cut, 1); /* the same epoch */
    call(table, FIND, 7, 2, (int64_t[]){FAIL_AT, STATUS});
    end(table);
    operation(table, END);
}

/* The same in a region, a few times, with sums in between. */
static void outer_table(Table *table)
{
    const int64_t sum[] = {B, ROWS, TOTAL};
    begin_table(table, 0);
    begin(table, REGION);
    put(table, RUN_INNER);
    put(table, RUN_INNER);
    end(table);
    operation(table, BARRIER);
    begin(table, CALLS);
    call(table, SUM, 0, 3, sum);
    call(table, SUM, 0, 3, sum);
    end(table);
    operation(table, COMMIT);
    begin(table, CALLS);
    call(table, SUM, 0, 3, sum);
    end(table);
    operation(table, END);
}

/* -- callers ----------------------------------------------------------------------------------- */

static int64_t drive(int64_t *frame, int64_t thread, int64_t threads, struct pool *given)
{
    check(thread == 0, "the number of the caller");
    return rg_drive(frame, threads, given, buffer(frame, TABLE), functions);
}

static int64_t random_below(unsigned *seed, int64_t n)
{
    return rand_r(seed) % n;
}

typedef struct {
    unsigned seed;
    long rounds;
} Caller;

static struct pace pace; /* which all callers share */

/* One program on memory of its own, so that the address sanitizer sees what is out of it. */
static void run_once(unsigned *seed, Table *inner, Table *outer)
{
    const int64_t most = WORKERS_STARTED + 1;
    int64_t rows = 1 + random_below(seed, MOST_ROWS), threads = 1 + random_below(seed, most);
    int64_t unit = random_below(seed, 2) ? 1 : 4, chain = 1 + random_below(seed, 2);
    int64_t many = 1 + random_below(seed, 40), least_rows = 1 + random_below(seed, 9);
    const int64_t ways[] = {
        chain * many, 0, -ONE_EACH, -1 - random_below(seed, 50),
        -1 - ONE_EACH - COUNT - (least_rows << SLOT_BITS),
    };
    int64_t which = random_below(seed, 5);
    const int64_t cut[] = {ways[which], 0, unit, which == 0 ? chain : 1};
    int64_t *a = malloc((size_t)rows * 8), *b = malloc((size_t)rows * 8), total = 0, stop = 0;
    int64_t *scratch = malloc((size_t)(rows * most) * 8), counters[8 * COUNTER_WORDS] = {0};
    int64_t *frame = calloc(SLOTS * (size_t)(most + 1), 8);
    int64_t fails = random_below(seed, 4) == 0 ? random_below(seed, rows) : -1;
    stop = random_below(seed, 16) == 0;
    inner_table(inner, cut, rows * 8);
    outer_table(outer);
    int64_t *const buffers[] = {a, b, scratch, &total};
    for (int k = 0; k < 4; k++)
        frame[k] = (int64_t)(intptr_t)buffers[k];
    frame[ROWS] = rows;
    frame[STOP] = (int64_t)(intptr_t)&stop;
    frame[TABLE] = (int64_t)(intptr_t)outer->words;
    frame[INNER] = (int64_t)(intptr_t)inner->words;
    frame[FAIL_AT] = fails;
    frame[COUNT] = many;
    frame[COUNTERS] = (int64_t)(intptr_t)counters;
    int64_t result = rg_launch(pool, drive, frame, threads, &pace, NULL);
    if (stop) {
        check(result == STOPPED && total == 0, "a run that was stopped");
    }
    else if (fails >= 0) {
        check(result == 7 && total == 0, "the result of a run that failed");
        check(frame[STATUS] == fails + 1, "what a kernel found");
    }
    else {
        int64_t sum = 0;
        for (int64_t row = 0; row < rows; row++) {
            int64_t other = (row + 7) % rows;
            int64_t want = 2 * (FIRST + row * row) + FIRST + other * other;
            check(b[row] == want, "a row");
            sum += want;
        }
        check(result == 0 && total == 3 * sum, "a sum");
    }
    free(a);
    free(b);
    free(scratch);
    free(frame);
}

static void *run_caller(void *given)
{
    Caller *caller = given;
    Table *inner = malloc(sizeof *inner), *outer = malloc(sizeof *outer);
    for (long k = 0; k < caller->rounds; k++) {
        run_once(&caller->seed, inner, outer);
        if (k % 50 == 0)
            usleep(1000); /* workers fall asleep */
    }
    free(inner);
    free(outer);
    return NULL;
}

static void *run_worker(void *unused)
{
    (void)unused;
    rg_worker(pool, (int64_t)syscall(SYS_gettid));
    return NULL;
}

int main(int count, char **arguments)
{
    check(count == 3, "the arguments");
    size_t bytes = sizeof *pool + (WORKERS_STARTED + 1) * sizeof(struct worker);
    pool = aligned_alloc(128, bytes);
    memset(pool, 0, bytes);
    pool->patience = 200;
    pool->haste = 5;
    pool->processors = 2;
    pool->capacity = WORKERS_STARTED + 1;
    pool->pin = 1;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    memcpy(pool->allowed, &allowed, sizeof pool->allowed);
    fill_os(&pool->os, arguments[1]);
    rg_reset(pool);
    pthread_t threads[CALLERS], worker;
    for (int k = 0; k < WORKERS_STARTED; k++) {
        check(pthread_create(&worker, NULL, run_worker, NULL) == 0, "a worker");
        pthread_detach(worker); /* it never returns */
    }
    Caller callers[CALLERS];
    for (int k = 0; k < CALLERS; k++) {
        callers[k] = (Caller){(unsigned)k + 1, atol(arguments[2])};
        check(pthread_create(&threads[k], NULL, run_caller, &callers[k]) == 0, "a caller");
    }
    for (int k = 0; k < CALLERS; k++)
        pthread_join(threads[k], NULL);
    printf("good: %lld tile groups\n", (long long)pool->groups - 1);
    fflush(stdout);
    return 0;
}
