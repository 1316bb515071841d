/* The launcher: runs the kernels of a program by its launch table.

   `rg_drive(frame, threads, pool, table, functions)` is the same for all programs: what differs
   between them is data, so that a program of many kernels takes no longer to compile than the
   kernels that differ. `frame` holds a word for each buffer, size and so on that kernels refer to, by
   the number of its *slot*. `table` is a row of words, made by the code generator; `functions` are the
   addresses of the kernels. The caller goes through the table alone. Operations up to the next one
   that is neither CALLS nor TILES are an *epoch*, which it shares with the workers of the pool if
   there are tiles in it. Words and operations are described where they are numbered, in the layout in
   Python (see `layout.h`).

   A thread begins with tiles of its own, the same in every group, so that it finds in its cache what
   it has left there. When it has done them it takes over, from the end, what others have not begun:
   those that are slower for a while, or busy with something else, do less, and those that have not
   come nothing. To this end a word of each thread's in the pool (`claim`) says what is left of its
   part, in units of the tiles that one thread takes together, or of several of those where they are
   very many: 16 bits each for the first unit that is left and the end, and above these the lowest 32
   bits of the number of the group, of all groups that the pool has ever begun. A word with the number
   of an older group says that nobody has been there: whoever comes first, to take a unit, writes what
   is left after that. No group is begun by a thread that has not seen all of the one before taken, so
   none of it is forgotten; and one that is late, and finds the number of a newer group, has nothing to
   do in the older.

   A thread leaves an epoch when all of it is taken, or when it has met with something wrong; what it
   has not taken then does not matter any more.

   Of a local buffer each thread has only the rows at hand, in its scratch memory; a row of no bytes
   is one of which each thread has all. The kernels of a group with such buffers get a copy of the
   frame that says where these are; the copies lie behind the frame, and are made anew for every table
   that is gone through. */

#include "runtime.h"

/* What the threads that share an epoch are told. */
struct epoch {
    int64_t *frame;
    const int64_t *table, *first; /* the first operation */
    void *const *functions;
    const int64_t *stop;   /* the word that ends the run early when it is not 0 */
    int64_t *counters;     /* two for each kernel, see `count`; NULL: none are kept */
    int64_t frame_copies;  /* the number of the copies of the frame */
    int64_t group;         /* the number of the first tile group */
};

/* One thread in an epoch. */
struct part {
    const struct epoch *epoch;
    struct pool *pool;
    int64_t thread, threads;
    int64_t *copy;   /* its copy of the frame */
    int64_t scratch; /* where its scratch memory begins, in bytes behind the first thread's */
};

/* Which rows of a tile group belong to which tile: elements of `rows`, each cut into `tiles`. */
struct cut {
    uint64_t rows, tiles;
    uint64_t unit, units; /* rows that stay together, and how many times as many an element has */
};

INTERNAL uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

INTERNAL uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* -- calls ------------------------------------------------------------------------------------- */

/* Begin to count; the cycles until now. */
INTERNAL int64_t begin_count(void)
{
    forget_subnormals();
    return cycles();
}

/* Count the cycles of a kernel, and that it has met subnormal numbers. */
INTERNAL void count(int64_t *counters, int64_t number, int64_t before)
{
    int64_t passed = cycles() - before;
    ADD(&counters[COUNTER_WORDS * number], passed, RELAXED);
    if (met_subnormals())
        ADD(&counters[COUNTER_WORDS * number + COUNTED_SUBNORMALS], 1, RELAXED);
}

/* Make the calls up to `end`; 0, or why one failed. The word that stops the run is looked at after
   the last one, too: a kernel that saw it has not done its work. */
NOINLINE int64_t make_calls(const struct epoch *epoch, int64_t *frame, const int64_t *call,
                            const int64_t *end, int64_t first_row, int64_t end_row)
{
    int64_t *counters = epoch->counters;
    while (LOAD(epoch->stop, RELAXED) == 0) {
        if (call == end)
            return 0;
        kernel_function *kernel = (kernel_function *)epoch->functions[call[CALL_FUNCTION]];
        const int64_t *slots = call + CALL_SLOTS;
        int64_t before = counters != NULL ? begin_count() : 0;
        int64_t result = kernel(frame, slots, first_row, end_row);
        if (counters != NULL)
            count(counters, call[CALL_COUNTER], before);
        if (result != 0)
            return call[CALL_FAILURE] != 0 ? call[CALL_FAILURE] : result;
        call = slots + call[CALL_COUNT];
    }
    return STOPPED;
}

/* -- frames ------------------------------------------------------------------------------------ */

/* Have a thread's copy of the frame, before it says where local buffers are, or what kernels found. */
INTERNAL void copy_frame(const int64_t *frame, int64_t *copy, const int64_t *table)
{
    int64_t count = table[HEAD_COPIED];
    /* The caller may be moving cursors, none of which are of use to others meanwhile. */
    for (int64_t i = 0; i < count; i++)
        copy[i] = LOAD(&frame[i], RELAXED);
    if (count != 0)
        copy[table[HEAD_STATUS]] = 0;
}

/* Have it say where the rows of local buffers are, from `row` on. */
INTERNAL void place_locals(const struct part *part, const int64_t *local, const int64_t *end,
                           uint64_t row)
{
    const int64_t *frame = part->epoch->frame;
    for (; local != end; local += LOCAL_WORDS)
        part->copy[local[LOCAL_SLOT]] =
            frame[local[LOCAL_SLOT]] + part->scratch - (int64_t)row * local[LOCAL_ROW_BYTES];
}

/* -- tile groups ------------------------------------------------------------------------------- */

/* How many rows a group has. */
INTERNAL uint64_t rows_of(const int64_t *frame, int64_t word)
{
    return (uint64_t)(word >= 0 ? word : frame[-1 - word]);
}

/* Into how many tiles they are cut. */
INTERNAL uint64_t tiles_of(const int64_t *frame, int64_t word, uint64_t rows, uint64_t threads)
{
    if (word > 0)
        return (uint64_t)word;
    if (word == 0)
        return most(rows / LONG_ROWS, threads);
    if (word == -ONE_EACH)
        return threads;
    uint64_t tiles, fewest = 2;
    if (word < -ONE_EACH) {
        uint64_t packed = (uint64_t)(-1 - ONE_EACH - word);
        uint64_t asked = (uint64_t)frame[packed & ((UINT64_C(1) << SLOT_BITS) - 1)];
        tiles = least(asked, rows / (packed >> SLOT_BITS));
        /* What a slot counts, and is less than a tile, is one, for one thread. */
        if (tiles == 0 && threads == 1)
            fewest = 1;
    }
    else {
        tiles = rows / (uint64_t)-word;
    }
    return most(tiles, least(rows, fewest));
}

/* Do the tiles from `tile` to before `end`. */
NOINLINE int64_t do_tiles(const struct part *part, const int64_t *group, const int64_t *group_end,
                          const struct cut *cut, uint64_t tile, uint64_t end)
{
    const int64_t *local = group + GROUP_LOCALS;
    const int64_t *calls = local + LOCAL_WORDS * group[GROUP_LOCAL_COUNT];
    int64_t *frame = calls == local ? part->epoch->frame : part->copy;
    for (; tile < end; tile++) {
        uint64_t element = tile / cut->tiles, k = tile % cut->tiles;
        uint64_t before = element * cut->rows;
        uint64_t first = before + k * cut->units / cut->tiles * cut->unit;
        uint64_t last = before + least((k + 1) * cut->units / cut->tiles * cut->unit, cut->rows);
        place_locals(part, local, calls, first);
        int64_t result =
            make_calls(part->epoch, frame, calls, group_end, (int64_t)first, (int64_t)last);
        if (result != 0)
            return result;
    }
    return 0;
}

/* Take a unit of what is left of the part of `whose` of a group; its number, or `units` where nothing
   is left. A thread takes from the beginning of its own part, and from the end of others'. */
INTERNAL uint64_t take_unit(const struct part *part, uint64_t whose, uint64_t number, uint64_t units)
{
    uint64_t *claim = &part->pool->workers[whose].claim;
    uint64_t threads = (uint64_t)part->threads, own = whose == (uint64_t)part->thread;
    uint64_t fresh = whose * units / threads | (whose + 1) * units / threads << 16;
    uint64_t found = LOAD(claim, ACQUIRE), first, end, rest;
    do {
        int32_t age = (int32_t)((uint32_t)number - (uint32_t)(found >> 32));
        uint64_t left = age > 0 ? number << 32 | fresh : found;
        first = left & 0xffff;
        end = left >> 16 & 0xffff;
        if (age < 0 || first >= end)
            return units;
        rest = left + (own ? 1 : -(UINT64_C(1) << 16));
    } while (!__atomic_compare_exchange_n(claim, &found, rest, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return own ? first : end - 1;
}

/* One thread's part of a group of that number, up to the next operation at `group_end`. */
NOINLINE int64_t do_group(const struct part *part, const int64_t *group, const int64_t *group_end,
                          int64_t number)
{
    const int64_t *frame = part->epoch->frame;
    uint64_t threads = (uint64_t)part->threads;
    uint64_t rows = rows_of(frame, group[GROUP_ROWS]);
    uint64_t tiles = tiles_of(frame, group[GROUP_TILES], rows, threads);
    uint64_t element = group[GROUP_ELEMENT] != 0 ? (uint64_t)group[GROUP_ELEMENT] : rows;
    uint64_t elements = most(rows / most(element, 1), 1), unit = (uint64_t)group[GROUP_UNIT];
    struct cut cut = {element, most(tiles / elements, 1), unit, (element + unit - 1) / unit};
    uint64_t chain = (uint64_t)group[GROUP_CHAIN], chains = tiles / chain;
    if (threads == 1)
        return do_tiles(part, group, group_end, &cut, 0, chains * chain);
    uint64_t each = chains / MOST_UNITS + 1; /* chains in a unit */
    uint64_t units = (chains + each - 1) / each;
    for (uint64_t v = 0; v < threads; v++) {
        uint64_t whose = ((uint64_t)part->thread + v) % threads, k;
        while ((k = take_unit(part, whose, (uint64_t)number, units)) < units) {
            uint64_t from = k * each, to = least(from + each, chains);
            int64_t result = do_tiles(part, group, group_end, &cut, from * chain, to * chain);
            if (result != 0)
                return result;
        }
    }
    return 0;
}

/* -- epochs ------------------------------------------------------------------------------------ */

/* Have the frame say what a check has found that is in a thread's copy. */
INTERNAL void tell_status(const struct part *part)
{
    int64_t status = part->epoch->table[HEAD_STATUS];
    if (part->copy != part->epoch->frame && part->copy[status] != 0)
        STORE(&part->epoch->frame[status], part->copy[status], RELAXED);
}

/* One thread's part of an epoch. */
INTERNAL int64_t do_epoch(void *argument, int64_t thread, int64_t threads, struct pool *pool)
{
    const struct epoch *epoch = argument;
    const int64_t *table = epoch->table, *at = epoch->first;
    int64_t copied = table[HEAD_COPIED], number = epoch->group;
    struct part part = {
        epoch, pool, thread, threads, epoch->frame + copied * (thread + 1),
        table[HEAD_SCRATCH] * thread,
    };
    if (thread != 0 && copied != 0 && pool->workers[thread].frame_copy != epoch->frame_copies) {
        copy_frame(epoch->frame, part.copy, table);
        pool->workers[thread].frame_copy = epoch->frame_copies;
    }
    for (;;) {
        const int64_t *end = at + at[OP_LENGTH];
        int64_t result = 0;
        if (at[OP_KIND] == TILES) {
            result = do_group(&part, at, end, number++);
            if (result != 0)
                tell_status(&part);
        }
        else if (at[OP_KIND] != CALLS) {
            return 0;
        }
        else if (thread == 0) {
            result = make_calls(epoch, epoch->frame, at + OP_WORDS, end, 0, 0);
        }
        if (result != 0)
            return result;
        at = end;
    }
}

/* The end of the epoch that begins at an operation; how many tile groups it has, in `groups`. */
INTERNAL const int64_t *end_of_epoch(const int64_t *at, int64_t *groups)
{
    *groups = 0;
    while (at[OP_KIND] == TILES || at[OP_KIND] == CALLS) {
        *groups += at[OP_KIND] == TILES;
        at += at[OP_LENGTH];
    }
    return at;
}

/* Run the epoch that begins at an operation, by all threads if there is something to share. */
INTERNAL int64_t run_epoch(struct epoch *epoch, const int64_t *at, int64_t threads, int64_t groups,
                           struct pool *pool)
{
    epoch->first = at;
    if (threads == 1 || groups == 0)
        return do_epoch(epoch, 0, threads, pool);
    epoch->group = pool->groups;
    pool->groups += groups;
    return pool->share(pool, do_epoch, epoch, threads);
}

/* Run a region that has launch tables of its own. */
INTERNAL int64_t run_region(const struct epoch *epoch, const int64_t *at, int64_t threads,
                            struct pool *pool)
{
    region_function *region = (region_function *)epoch->functions[at[REGION_FUNCTION]];
    int64_t *counters = epoch->counters;
    if (counters == NULL)
        return region(epoch->frame, threads, pool);
    if (threads != 1)
        STORE(&pool->met, 0, RELAXED); /* what workers have met counts, too */
    int64_t before = begin_count();
    int64_t result = region(epoch->frame, threads, pool);
    count(counters, at[REGION_COUNTER], before);
    if (threads != 1 && LOAD(&pool->met, RELAXED) != 0)
        ADD(&counters[COUNTER_WORDS * at[REGION_COUNTER] + COUNTED_SUBNORMALS], 1, RELAXED);
    return result;
}

/* Make the caller's copy of the frame, and have workers make theirs. */
INTERNAL void renew_copies(struct epoch *epoch, int64_t threads, struct pool *pool)
{
    copy_frame(epoch->frame, epoch->frame + epoch->table[HEAD_COPIED], epoch->table);
    if (threads != 1)
        epoch->frame_copies = ++pool->frame_copies;
}

/* Run a program; 0, or what is wrong. `pool` may be anything where there is one thread. */
int64_t rg_drive(int64_t *frame, int64_t threads, struct pool *pool, const int64_t *table,
                        void *const *functions)
{
    int64_t never = 0, stop = table[HEAD_STOP], counters = table[HEAD_COUNTERS];
    struct epoch epoch = {
        .frame = frame,
        .table = table,
        .functions = functions,
        .stop = stop >= 0 ? (const int64_t *)frame[stop] : &never,
        .counters = counters >= 0 ? (int64_t *)frame[counters] : NULL,
    };
    renew_copies(&epoch, threads, pool);
    for (const int64_t *at = table + HEAD_WORDS;;) {
        const int64_t *end = at + at[OP_LENGTH];
        int64_t result = 0, groups;
        switch (at[OP_KIND]) {
        case CALLS:
        case TILES:
            end = end_of_epoch(at, &groups);
            result = run_epoch(&epoch, at, threads, groups, pool);
            break;
        case BARRIER:
            break;
        case COMMIT:
            epoch.stop = &never;
            break;
        case REGION:
            result = run_region(&epoch, at, threads, pool);
            if (result == 0) /* its tables have had copies of their own */
                renew_copies(&epoch, threads, pool);
            break;
        default: /* END */
            return 0;
        }
        if (result != 0)
            return result;
        at = end;
    }
}
