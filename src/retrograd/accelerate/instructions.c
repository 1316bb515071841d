/* The rows of a traced function of scalars as instructions for the vector machine.
 *
 * The same as `scalar/schedule.py` and `scalar/instructions.py`, where it is said what is done and
 * why; step by step, to the same instructions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Row;

enum { WORDS = 8, KINDS = 6, TABLES = 2 + KINDS };
/* In the order in which `instructions.py` puts them behind the tables. */
enum {
    ADD, MUL, SQRT, POWC, CONSTANT, LEAF, NUMBER, START, STOP, GRADIENT, DOT,
    K_DOT, K_DOT_BACK, K_WIDE, K_WIDE_BACK, K_CLEAR, K_SEED, K_GRADIENT, SETTINGS
};
enum { FORWARD, BACK, CC, CB, BC, ONE };

typedef struct {
    int64_t root, rows;
} Event;

typedef struct {
    int32_t code, segment, size, first, count;
    int64_t events, a, b; /* where its lists begin, or -1 */
    int64_t init;
    int wide;

} Batch;

typedef struct {
    const int64_t *tables, *set;
    int64_t n, event_count, wanted_count;
    uint8_t *code, *arity, *seen, *read, *gone;
    Row *a, *b, *same, *user, *root, *segment, *depth, *slot, *kind, *size;
    int64_t *mask, *wanted;
    Event *events;
    const double *numbers;
    /* contractions, by the row that is the sum */
    Row *start, *terms, *left, *right, *init;
    int64_t *order; /* of factors */
    Row *given, *busy;
    int64_t given_count, busy_count, slots;
    Batch *batches;
    int64_t batch_count, batch_room;
    int64_t *table, table_count, table_room;
    Row *pool;
    int64_t pool_count, pool_room;
    void *kept[64];
    int kept_count, failed;
} Plan;

/* Memory of the last plan, kept for the next: fresh pages would cost as much as all the rest.
   Nobody else is here meanwhile, by the interpreter's lock. */
static struct {
    char *bytes;
    size_t size, used, wanted;
} kept;
static const size_t KEPT = (size_t)64 << 20;

static void *get(Plan *p, int64_t count, size_t size) {
    size_t bytes = ((size_t)(count > 0 ? count : 1) * size + 63) / 64 * 64;
    kept.wanted += bytes;
    if (bytes <= kept.size - kept.used) {
        kept.used += bytes;
        return kept.bytes + kept.used - bytes;
    }
    void *found = malloc(bytes);
    if (!found || p->kept_count == 64) {
        free(found);
        p->failed = 1;
        return NULL;
    }
    return p->kept[p->kept_count++] = found;
}

static void *zeros(Plan *p, int64_t count, size_t size) {
    void *found = get(p, count, size);
    return found ? memset(found, 0, (size_t)(count > 0 ? count : 1) * size) : NULL;
}

static void begin(void) {
    if (kept.wanted > kept.size && kept.wanted <= KEPT) {
        free(kept.bytes);
        kept.bytes = malloc(kept.wanted);
        kept.size = kept.bytes ? kept.wanted : 0;
    }
    kept.used = kept.wanted = 0;
}

static int more(void **memory, int64_t *room, int64_t needed, size_t size) {
    if (needed <= *room)
        return 0;
    int64_t bigger = 2 * *room > needed ? 2 * *room : needed + 64;
    void *found = realloc(*memory, (size_t)bigger * size);
    if (!found)
        return -1;
    *memory = found;
    *room = bigger;
    return 0;
}

/* -- what is needed, and what is a copy ---------------------------------------------------------
   */
static void powers(Plan *p) {
    for (int64_t i = 0; i < p->n; i++)
        if (p->code[i] == p->set[POWC]) {
            double e = p->numbers[p->b[i]];
            if (e == 2.0) {
                p->code[i] = (uint8_t)p->set[MUL];
                p->b[i] = p->a[i];
            } else if (e == 0.5)
                p->code[i] = (uint8_t)p->set[SQRT];
        }
}

/* A bit for each way back that comes to a row. Operands come before results. */
static void cones(Plan *p) {
    const int64_t *arity = p->tables + 256;
    for (int64_t k = 0; k < p->event_count; k++) {
        memset(p->seen, 0, (size_t)p->n);
        p->seen[p->events[k].root] = 1;
        int64_t bit = (int64_t)1 << (k < 62 ? k : 62);
        for (int64_t i = p->events[k].root; i >= 0; i--) {
            if (!p->seen[i])
                continue;
            p->mask[i] |= bit;
            int64_t m = arity[p->code[i]];
            if (m > 0)
                p->seen[p->a[i]] = 1;
            if (m > 1)
                p->seen[p->b[i]] = 1;
        }
    }
}

static void alias(Plan *p) {
    for (int64_t i = 0; i < p->n; i++) {
        if (p->code[i] == p->set[LEAF] && p->b[i]) {
            p->code[i] = (uint8_t)p->set[STOP];
            p->a[i] = p->b[i];
            p->b[i] = 0;
        } else if (p->code[i] == p->set[LEAF] || p->code[i] == p->set[START])
            p->a[i] = p->b[i] = 0;
    }
}

static void copies(Plan *p) {
    memset(p->seen, 0, (size_t)p->n); /* told apart */
    for (int64_t i = 0; i < p->n; i++) {
        p->arity[i] = (uint8_t)p->tables[p->code[i]];
        if (!p->mask[i])
            continue;
        p->seen[i] = 1;
        if (p->arity[i] > 0)
            p->seen[p->a[i]] = 1;
        if (p->arity[i] > 1)
            p->seen[p->b[i]] = 1;
    }
    for (int64_t i = 0; i < p->n; i++) {
        p->same[i] = p->code[i] == p->set[STOP] && !p->seen[i] ? p->same[p->a[i]] : (Row)i;
        if (p->arity[i] > 0 || p->code[i] == p->set[GRADIENT])
            p->a[i] = p->same[p->a[i]];
        if (p->arity[i] > 1)
            p->b[i] = p->same[p->b[i]];
    }
    for (int64_t k = 0; k < p->wanted_count; k++)
        p->wanted[k] = p->same[p->wanted[k]];
}

static void needed(Plan *p) {
    memset(p->seen, 0, (size_t)p->n);
    for (int64_t k = 0; k < p->wanted_count; k++) {
        p->seen[p->wanted[k]] = 1;
        p->read[p->wanted[k]] = 1;
    }
    for (int64_t k = 0; k < p->event_count; k++)
        p->read[p->events[k].root] = 1;
    for (int64_t i = p->n - 1; i >= 0; i--) {
        if (!p->seen[i]) {
            p->arity[i] = 0;
            continue;
        }
        if (p->code[i] == p->set[GRADIENT]) {
            p->seen[p->a[i]] = p->read[p->a[i]] = 1;
            p->seen[p->events[p->b[i]].root] = 1;
        } else if (p->arity[i]) {
            p->seen[p->a[i]] = 1;
            if (p->arity[i] == 2)
                p->seen[p->b[i]] = 1;
        }
    }
}

static void segments(Plan *p) {
    int64_t k = 0;
    for (int64_t i = 0; i < p->n; i++) {
        while (k < p->event_count && p->events[k].rows <= i)
            k++;
        p->segment[i] = (Row)(p->code[i] == p->set[GRADIENT] ? p->b[i] + 1 : k);
    }
}

/* -- sums ---------------------------------------------------------------------------------------
   */
static int is_sum(Plan *p, int64_t i) { return p->code[i] == p->set[ADD] && p->arity[i] == 2; }

/* Whether a row goes into the sum that is its only user. */
static int goes_in(Plan *p, int64_t i, const Row *uses) {
    Row u = p->user[i];
    return p->seen[i] && !p->read[i] && uses[i] == 1 && u >= 0 && is_sum(p, u) &&
           p->segment[i] == p->segment[u];
}

static void sums(Plan *p) {
    int64_t n = p->n;
    Row *uses = zeros(p, n, sizeof(Row)), *worth = zeros(p, n, sizeof(Row));
    uint8_t *into = get(p, n, 1);
    if (p->failed)
        return;
    memset(p->user, 0xff, (size_t)n * sizeof(Row));
    for (int64_t i = 0; i < n; i++) {
        if (p->arity[i] > 0) {
            uses[p->a[i]]++;
            p->user[p->a[i]] = (Row)i;
        }
        if (p->arity[i] > 1) {
            uses[p->b[i]]++;
            p->user[p->b[i]] = (Row)i;
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        into[i] = (uint8_t)goes_in(p, i, uses);
        p->gone[i] = into[i] && is_sum(p, i);
        p->root[i] = p->gone[i] ? p->root[p->user[i]] : (Row)i;
    }
    /* Terms of each sum, in the order of the additions that have them. */
    for (int64_t i = 0; i < n; i++)
        if (is_sum(p, i))
            worth[p->root[i]] += !p->gone[p->a[i]] + !p->gone[p->b[i]];
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        p->start[i] = (Row)total;
        if (worth[i] >= 3)
            total += worth[i];
    }
    p->left = get(p, total, sizeof(Row));
    p->right = get(p, total, sizeof(Row));
    if (p->failed)
        return;
    for (int64_t i = 0; i < n; i++) {
        if (!is_sum(p, i) || worth[p->root[i]] < 3)
            continue;
        Row r = p->root[i], x[2] = {p->a[i], p->b[i]};
        for (int side = 0; side < 2; side++)
            if (!p->gone[x[side]])
                p->left[p->start[r] + p->terms[r]++] = x[side];
    }
    for (int64_t i = 0; i < n; i++) /* two terms are an addition */
        if (p->gone[i] && worth[p->root[i]] < 3)
            p->gone[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = p->start[r]; k < p->start[r] + p->terms[r]; k++) {
            Row t = p->left[k];
            int product = into[t] && p->code[t] == p->set[MUL] && p->arity[t] == 2;
            p->right[k] = product ? p->b[t] : -1;
            if (product) {
                p->left[k] = p->a[t];
                p->gone[t] = 1;
            }
        }
}

/* One summand beside products goes first; others are products with 1, which is row `n`; `n + 1`
 * is 0. */
static void contractions(Plan *p) {
    Row n = (Row)p->n;
    for (int64_t i = 0; i < p->n; i++) {
        p->kind[i] = p->code[i];
        p->size[i] = 0;
        p->order[i] = INT64_MAX;
    }
    int64_t longest = 0;
    for (int64_t r = 0; r < p->n; r++) {
        Row from = p->start[r], count = p->terms[r], plain = 0, kept = 0;
        if (!count)
            continue;
        for (Row k = 0; k < count; k++)
            plain += p->right[from + k] < 0;
        p->init[r] = n + 1;
        for (Row k = 0; k < count; k++) {
            Row x = p->left[from + k], y = p->right[from + k];
            if (y < 0 && plain == 1 && count > 1) {
                p->init[r] = x;
                continue;
            }
            p->left[from + kept] = x;
            p->right[from + kept++] = y < 0 ? n : y;
        }
        p->terms[r] = kept;
        p->kind[r] = (Row)p->set[DOT];
        p->size[r] = kept;
        longest = kept > longest ? kept : longest;
    }
    for (int64_t r = 0; r < p->n; r++)
        for (Row k = 0; k < p->terms[r]; k++) {
            Row x[2] = {p->left[p->start[r] + k], p->right[p->start[r] + k]};
            for (int side = 0; side < 2; side++) {
                int64_t key = (2 * r + side) * longest + k;
                if (x[side] < n && key < p->order[x[side]])
                    p->order[x[side]] = key;
            }
        }
}

static void depths(Plan *p) {
    for (int64_t i = 0; i < p->n; i++) {
        Row found = 0;
        if (p->arity[i]) {
            found = p->depth[p->a[i]];
            if (p->arity[i] == 2 && p->depth[p->b[i]] > found)
                found = p->depth[p->b[i]];
            found += !p->gone[i];
        }
        p->depth[i] = found;
    }
}

/* -- batches and their slots ------------------------------------------------------------------- */
static int is_given(Plan *p, int64_t i) {
    int c = p->code[i];
    return c == p->set[CONSTANT] || c == p->set[LEAF] || c == p->set[NUMBER] || c == p->set[START];
}

/* Sort rows by a key that is not negative, keeping the order of equals. */
static void sort_by(Plan *p, Row *rows, Row *other, int64_t count, const Row *key) {
    static const int BITS = 11;
    int64_t counts[2049];
    Row top = 0;
    for (int64_t i = 0; i < count; i++)
        top = key[rows[i]] > top ? key[rows[i]] : top;
    Row *from = rows, *to = other;
    for (int shift = 0; shift < 32 && top >> shift; shift += BITS) {
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < count; i++)
            counts[1 + ((key[from[i]] >> shift) & 2047)]++;
        for (int k = 0; k < 2048; k++)
            counts[k + 1] += counts[k];
        for (int64_t i = 0; i < count; i++)
            to[counts[(key[from[i]] >> shift) & 2047]++] = from[i];
        Row *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, (size_t)count * sizeof(Row));
}

static int by_mask(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* The rank of each mask among those there are. */
static void ranks(Plan *p, Row *rank) {
    int64_t *distinct = NULL, count = 0, room = 0, last = 0, at = -1;
    for (int64_t i = 0; i < p->n; i++) {
        if (at >= 0 && p->mask[i] == last)
            continue;
        last = p->mask[i];
        for (at = 0; at < count && distinct[at] != last; at++)
            ;
        if (at == count) {
            if (more((void **)&distinct, &room, count + 1, sizeof(int64_t))) {
                p->failed = 1;
                break;
            }
            distinct[count++] = last;
        }
    }
    if (distinct)
        qsort(distinct, (size_t)count, sizeof(int64_t), by_mask);
    at = 0;
    for (int64_t i = 0; i < p->n && !p->failed; i++) {
        if (distinct[at] != p->mask[i]) {
            int64_t *found =
                bsearch(&p->mask[i], distinct, (size_t)count, sizeof(int64_t), by_mask);
            at = found - distinct;
        }
        rank[i] = (Row)at;
    }
    free(distinct);
}

typedef struct {
    int64_t code, order;
    Row row;
} Given;

static int by_given(const void *x, const void *y) {
    const Given *a = x, *b = y;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void assign_given(Plan *p) {
    Given *found = get(p, p->n, sizeof(Given));
    if (p->failed)
        return;
    for (int64_t i = 0; i < p->n; i++)
        if (p->seen[i] && is_given(p, i)) {
            Given one = {p->code[i], p->order[i], (Row)i};
            found[p->given_count++] = one;
        }
    qsort(found, (size_t)p->given_count, sizeof(Given), by_given);
    for (int64_t k = 0; k < p->given_count; k++) {
        p->given[k] = found[k].row;
        p->slot[found[k].row] = (Row)k;
    }
}

static void assign_computed(Plan *p) {
    Row *rank = get(p, p->n, sizeof(Row)), *other = get(p, p->n, sizeof(Row));
    if (p->failed)
        return;
    ranks(p, rank);
    for (int64_t i = 0; i < p->n; i++)
        if (p->seen[i] && !p->gone[i] && !is_given(p, i))
            p->busy[p->busy_count++] = (Row)i;
    const Row *keys[] = {rank, p->size, p->kind, p->depth, p->segment};
    for (int k = 0; k < 5; k++)
        sort_by(p, p->busy, other, p->busy_count, keys[k]);
    for (int64_t k = 0; k < p->busy_count; k++) {
        Row i = p->busy[k], before = k ? p->busy[k - 1] : -1;
        p->slot[i] = (Row)(p->given_count + k);
        int same = k > 0;
        for (int m = 0; same && m < 5; m++)
            same = keys[m][i] == keys[m][before];
        if (same) {
            p->batches[p->batch_count - 1].count++;
            continue;
        }
        if (more((void **)&p->batches, &p->batch_room, p->batch_count + 1, sizeof(Batch))) {
            p->failed = 1;
            return;
        }
        Batch batch = {p->kind[i], p->segment[i], p->size[i], (int32_t)k, 1, p->mask[i], -1, -1,
                       -1, 0};
        p->batches[p->batch_count++] = batch;
    }
    p->slots = p->given_count + p->busy_count + 2;
    p->slot[p->n] = (Row)(p->slots - 2);
    p->slot[p->n + 1] = (Row)(p->slots - 1);
}

/* -- slots that are used again ------------------------------------------------------------------
   */
typedef struct {
    int64_t size, slot, end;
} Span;

static void used(Plan *p, const Row *home, Row x, int64_t *ends, int64_t i) {
    Row at = p->slot[x];
    if (at >= 0 && home[at] >= 0 && ends[home[at]] < i)
        ends[home[at]] = i;
}

static void readers(Plan *p, const Row *home, int64_t *ends, Batch *of, int64_t i) {
    for (int64_t k = 0; k < of->count; k++) {
        Row r = p->busy[of->first + k];
        if (of->code == p->set[GRADIENT])
            return;
        if (of->code == p->set[DOT]) {
            used(p, home, p->init[r], ends, i);
            for (Row m = 0; m < of->size; m++) {
                used(p, home, p->left[p->start[r] + m], ends, i);
                used(p, home, p->right[p->start[r] + m], ends, i);
            }
        } else {
            used(p, home, p->a[r], ends, i);
            if (p->tables[of->code] > 1)
                used(p, home, p->b[r], ends, i);
        }
    }
}

static void share(Plan *p, int64_t most) {
    int64_t first = p->batch_count;
    while (first > 0 && p->batches[first - 1].segment == p->event_count)
        first--;
    int64_t count = p->batch_count - first, busy_count = 0, free_count = 0;
    if (!count || count > most)
        return;
    Batch *batches = p->batches + first;
    Row *home = get(p, p->slots, sizeof(Row));
    int64_t *ends = get(p, count, sizeof(int64_t));
    Span *busy = get(p, count, sizeof(Span)), *open = get(p, 2 * count, sizeof(Span));
    if (p->failed)
        return;
    int64_t top = p->slot[p->busy[batches[0].first]];
    memset(home, 0xff, (size_t)p->slots * sizeof(Row));
    for (int64_t i = 0; i < count; i++) {
        ends[i] = i;
        for (int64_t k = 0; k < batches[i].count; k++)
            home[p->slot[p->busy[batches[i].first + k]]] = (Row)i;
    }
    for (int64_t i = 0; i < count; i++)
        readers(p, home, ends, batches + i, i);
    for (int64_t k = 0; k < p->wanted_count; k++)
        used(p, home, (Row)p->wanted[k], ends, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t size = batches[i].count, best = -1, slot, kept = 0;
        for (int64_t k = 0; k < busy_count; k++)
            if (busy[k].end < i)
                open[free_count++] = busy[k];
            else
                busy[kept++] = busy[k];
        busy_count = kept;
        for (int64_t k = 0; k < free_count; k++)
            if (open[k].size >= size &&
                (best < 0 || open[k].size < open[best].size ||
                 (open[k].size == open[best].size && open[k].slot < open[best].slot)))
                best = k;
        if (best < 0) {
            slot = top;
            top += size;
        } else {
            slot = open[best].slot;
            Span rest = {open[best].size - size, slot + size, 0};
            open[best] = open[--free_count];
            if (rest.size)
                open[free_count++] = rest;
        }
        Span now = {size, slot, ends[i]};
        busy[busy_count++] = now;
        for (int64_t k = 0; k < size; k++)
            p->slot[p->busy[batches[i].first + k]] = (Row)(slot + k);
    }
    p->slot[p->n] = (Row)top;
    p->slot[p->n + 1] = (Row)(top + 1);
    p->slots = top + 2;
}

/* -- instructions --------------------------------------------------------------------------------
   */
static int64_t reserved(Plan *p, int64_t count) {
    if (more((void **)&p->pool, &p->pool_room, p->pool_count + count, sizeof(Row))) {
        p->failed = 1;
        return -1;
    }
    p->pool_count += count;
    return p->pool_count - count;
}

/* Words `a`, `b`, `init` say with `lists` which of them are slots in the pool. */
static void emit(Plan *p, int64_t kind, int64_t n, int64_t out, const int64_t *abi, int64_t size,
                 int lists) {
    if (more((void **)&p->table, &p->table_room, p->table_count + 1, WORDS * sizeof(int64_t))) {
        p->failed = 1;
        return;
    }
    int64_t *w = p->table + WORDS * p->table_count++;
    w[0] = kind;
    w[1] = n;
    w[2] = out;
    for (int k = 0; k < 3; k++)
        w[3 + k] = abi[k];
    w[6] = size;
    w[7] = lists;
}

enum { SIDE, ALIKE, MIXED };

static int mode(const Row *x, int64_t n) {
    int side = 1, alike = 1;
    for (int64_t k = 1; k < n && (side || alike); k++) {
        side &= x[k] == x[k - 1] + 1;
        alike &= x[k] == x[k - 1];
    }
    return side ? SIDE : alike ? ALIKE : MIXED;
}

static int64_t listed(Plan *p, const Batch *of, const Row *operand) {
    int64_t at = reserved(p, of->count);
    for (int64_t k = 0; at >= 0 && k < of->count; k++)
        p->pool[at + k] = p->slot[operand[p->busy[of->first + k]]];
    return at;
}

static void contraction(Plan *p, Batch *of, int64_t out) {
    int64_t n = of->count, size = of->size;
    of->init = listed(p, of, p->init);
    of->a = reserved(p, n * size);
    of->b = reserved(p, n * size);
    if (p->failed)
        return;
    Row *a = p->pool + of->a, *b = p->pool + of->b;
    int wide = size > 1;
    for (int64_t k = 0; k < n; k++) {
        Row from = p->start[p->busy[of->first + k]];
        for (int64_t m = 0; m < size; m++) {
            a[k * size + m] = p->slot[p->left[from + m]];
            b[k * size + m] = p->slot[p->right[from + m]];
        }
        wide = wide && mode(a + k * size, size) == SIDE && mode(b + k * size, size) == SIDE;
    }
    if (wide) { /* the first slots are enough */
        for (int64_t k = 0; k < n; k++)
            a[k] = a[k * size];
        for (int64_t k = 0; k < n; k++)
            p->pool[of->a + n + k] = b[k * size];
        of->b = of->a + n;
        p->pool_count = of->b + n;
    }
    of->wide = wide;
    int64_t words[] = {of->a, of->b, of->init};
    emit(p, p->set[wide ? K_WIDE : K_DOT], n, out, words, size, 7);
}

static void forward(Plan *p, Batch *of) {
    int64_t out = p->slot[p->busy[of->first]], n = of->count, words[3] = {0, 0, 0};
    if (of->code == p->set[DOT]) {
        contraction(p, of, out);
        return;
    }
    of->a = words[0] = listed(p, of, p->a);
    if (p->failed)
        return;
    if (of->code == p->set[GRADIENT]) {
        emit(p, p->set[K_GRADIENT], n, out, words, 0, 1);
        return;
    }
    const int64_t *kinds = p->tables + 512;
    Row *a = p->pool + of->a;
    int64_t one = kinds[256 * ONE + of->code], wide = -1;
    int m = mode(a, n);
    if (one >= 0 && m == SIDE) {
        words[0] = a[0];
        emit(p, one, n, out, words, 0, 0);
        return;
    }
    if (p->tables[of->code] < 2) {
        emit(p, kinds[of->code], n, out, words, 0, 1);
        return;
    }
    of->b = words[1] = listed(p, of, p->b);
    if (p->failed)
        return;
    a = p->pool + of->a;
    Row *b = p->pool + of->b;
    int right = mode(b, n);
    if (n > 3 && m != MIXED && right != MIXED && (m == SIDE || right == SIDE))
        wide = kinds[256 * (m == ALIKE ? BC : right == ALIKE ? CB : CC) + of->code];
    if (wide >= 0) {
        words[0] = a[0];
        words[1] = b[0];
    }
    emit(p, wide >= 0 ? wide : kinds[of->code], n, out, words, 0, wide >= 0 ? 0 : 3);
}

static void backward(Plan *p, const Batch *of) {
    int64_t out = p->slot[p->busy[of->first]], words[3] = {of->a, of->b, of->init};
    if (of->code == p->set[DOT]) {
        emit(p, p->set[of->wide ? K_WIDE_BACK : K_DOT_BACK], of->count, out, words, of->size, 7);
        return;
    }
    int64_t kind = (p->tables + 512)[256 * BACK + of->code];
    if (kind < 0)
        return;
    int two = p->tables[of->code] == 2;
    words[1] = two ? of->b : 0;
    words[2] = 0;
    emit(p, kind, of->count, out, words, 0, two ? 3 : 1);
}

static void instructions(Plan *p) {
    int64_t next = 0, none[3] = {0, 0, 0};
    for (int64_t k = 0; k <= p->event_count && !p->failed; k++) {
        for (; next < p->batch_count && p->batches[next].segment == k; next++)
            forward(p, p->batches + next);
        if (k == p->event_count)
            break;
        Row root = p->slot[p->events[k].root];
        if (root < 0)
            continue; /* nobody wants the gradients of this way back */
        int64_t end = p->given_count;
        end += next ? p->batches[next - 1].first + p->batches[next - 1].count : 0;
        emit(p, p->set[K_CLEAR], end, 0, none, 0, 0);
        emit(p, p->set[K_SEED], 1, root, none, 0, 0);
        for (int64_t m = next - 1; m >= 0 && !p->failed; m--)
            if (p->batches[m].events >> (k < 62 ? k : 62) & 1)
                backward(p, p->batches + m);
    }
}

static void prepare(Plan *p) {
    int64_t n = p->n;
    uint8_t **bytes[] = {&p->arity, &p->seen, &p->gone};
    Row **rows[] = {&p->same, &p->user, &p->root, &p->segment, &p->depth, &p->slot, &p->kind,
                    &p->size, &p->start, &p->init, &p->given, &p->busy};
    for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++)
        *bytes[k] = get(p, n, 1);
    p->read = zeros(p, n, 1);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        *rows[k] = get(p, n + 2, sizeof(Row));
    p->terms = zeros(p, n, sizeof(Row));
    p->mask = zeros(p, n, sizeof(int64_t));
    p->order = get(p, n, sizeof(int64_t));
    if (!p->failed)
        memset(p->slot, 0xff, (size_t)(n + 2) * sizeof(Row));
}

static void plan(Plan *p, int64_t most) {
    void (*steps[])(Plan *) = {prepare, powers,       cones,  alias,       copies,    needed, segments,
                               sums,    contractions, depths, assign_given, assign_computed};
    for (size_t k = 0; k < sizeof steps / sizeof *steps && !p->failed; k++)
        steps[k](p);
    if (!p->failed)
        share(p, most);
    for (int64_t i = 0; i < p->n && !p->failed; i++)
        p->slot[i] = p->slot[p->same[i]];
    if (!p->failed)
        instructions(p);
}

/* -- from and to Python --------------------------------------------------------------------------
   */
static void *copied(Plan *p, const char *bytes, Py_ssize_t size) {
    void *found = get(p, size, 1);
    return found ? memcpy(found, bytes, (size_t)size) : NULL;
}

static int sound(Plan *p) {
    for (int64_t i = 0; i < p->n; i++) {
        int64_t c = p->code[i], m = p->tables[c], from = p->a[i], other = p->b[i];
        if (from < 0 || other < 0 || (m > 0 && from >= i) || (m > 1 && other >= i) ||
            (c == p->set[LEAF] && other && other >= i) ||
            (c == p->set[GRADIENT] && (from >= i || other >= p->event_count)))
            return 0;
    }
    for (int64_t k = 0; k < p->event_count; k++)
        if (p->events[k].root < 0 || p->events[k].root >= p->n)
            return 0;
    for (int64_t k = 0; k < p->wanted_count; k++)
        if (p->wanted[k] < 0 || p->wanted[k] >= p->n)
            return 0;
    return 1;
}

static PyObject *results(Plan *p) {
    PyObject *pool = PyBytes_FromStringAndSize((char *)p->pool,
                                               (Py_ssize_t)(p->pool_count * sizeof(Row)));
    if (!pool)
        return NULL;
    int64_t base = (int64_t)(intptr_t)PyBytes_AsString(pool);
    for (int64_t k = 0; k < p->table_count; k++) {
        int64_t *w = p->table + WORDS * k;
        for (int m = 0; m < 3; m++)
            if (w[7] >> m & 1)
                w[3 + m] = base + (int64_t)sizeof(Row) * w[3 + m];
        w[7] = 0;
    }
    PyObject *found = Py_BuildValue(
        "y#Ly#y#N", (char *)p->slot, (Py_ssize_t)((p->n + 2) * (int64_t)sizeof(Row)),
        (long long)p->slots, (char *)p->given, (Py_ssize_t)(p->given_count * (int64_t)sizeof(Row)),
        p->table ? (char *)p->table : "", (Py_ssize_t)(p->table_count * WORDS * (int64_t)sizeof(int64_t)), pool);
    return found;
}

static PyObject *compiled_plan(PyObject *self, PyObject *args) {
    Py_buffer in[7];
    long long most;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*L", &in[0], &in[1], &in[2], &in[3], &in[4], &in[5],
                          &in[6], &most))
        return NULL;
    begin();
    Plan p;
    memset(&p, 0, sizeof p);
    p.n = in[1].len;
    p.tables = in[0].buf;
    p.set = p.tables + 256 * TABLES;
    p.event_count = in[5].len / (int64_t)sizeof(Event);
    p.wanted_count = in[6].len / 8;
    PyObject *found = NULL;
    if (in[0].len != 8 * (256 * TABLES + SETTINGS) || in[2].len != 4 * p.n || in[3].len != 4 * p.n ||
        in[4].len != 8 * p.n) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
    } else {
        p.code = copied(&p, in[1].buf, in[1].len);
        p.a = copied(&p, in[2].buf, in[2].len);
        p.b = copied(&p, in[3].buf, in[3].len);
        p.numbers = in[4].buf;
        p.events = copied(&p, in[5].buf, in[5].len);
        p.wanted = copied(&p, in[6].buf, in[6].len);
        if (!p.failed && !sound(&p))
            PyErr_SetString(PyExc_ValueError, "a row with operands that do not come before it");
        else {
            if (!p.failed)
                plan(&p, most);
            found = p.failed ? PyErr_NoMemory() : results(&p);
        }
    }
    while (p.kept_count)
        free(p.kept[--p.kept_count]);
    free(p.batches);
    free(p.table);
    free(p.pool);
    for (int k = 0; k < 7; k++)
        PyBuffer_Release(&in[k]);
    return found;
}

/* reached(paths, code, a, b, root): for each row up to the root whether a way back comes to it. */
static PyObject *reached(PyObject *self, PyObject *args) {
    Py_buffer in[4];
    long long root;
    if (!PyArg_ParseTuple(args, "y*y*y*y*L", &in[0], &in[1], &in[2], &in[3], &root))
        return NULL;
    const uint8_t *paths = in[0].buf, *code = in[1].buf;
    const Row *a = in[2].buf, *b = in[3].buf;
    PyObject *found = NULL;
    if (in[0].len != 256 || in[2].len != 4 * in[1].len || in[3].len != in[2].len || root < 0 ||
        root >= in[1].len)
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
    else
        found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)root + 1);
    if (found) {
        char *seen = PyBytes_AsString(found);
        memset(seen, 0, (size_t)root + 1);
        seen[root] = 1;
        for (int64_t i = root; i >= 0; i--) {
            int m = seen[i] ? paths[code[i]] : 0;
            if (m > 0 && a[i] >= 0 && a[i] < i)
                seen[a[i]] = 1;
            if (m > 1 && b[i] >= 0 && b[i] < i)
                seen[b[i]] = 1;
        }
    }
    for (int k = 0; k < 4; k++)
        PyBuffer_Release(&in[k]);
    return found;
}

static PyMethodDef functions[] = {
    {"reached", reached, METH_VARARGS, "The rows that a way back comes to."},
    {"plan", compiled_plan, METH_VARARGS, "Slots and instructions for rows."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_instructions", "Rows as instructions.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__instructions(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddStringConstant(module, "STAMP", RETROGRAD_STAMP)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
