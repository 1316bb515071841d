/* Whether a launch is shared, by what launches of the same program have taken.

   To share work costs waking workers and waiting for the last of them: little on a machine of one's
   own, much where others need the processors; what it gains depends on the program. So now and then
   a few launches are timed, and then a few that go the other way: alone where others are shared, or
   shared where they are alone. The way that takes less is kept until the next such trial; trials
   become rarer as long as they change nothing. Of launches that take long, of which a trial costs most,
   only one goes the other way. Results do not depend on any of this.

   A thread that loses its processor is without it for a thousand times as long as many a launch
   takes. Such a time counts, but not for more than a few times the least. */

#include "runtime.h"

enum {
    SOONEST = 16,       /* launches between two trials, at first, */
    LATEST = 1024,      /* and at last */
    OUTLIER = 4,        /* times the least that a launch counts for, at most */
    LONG = 30000000,    /* cycles of launches that take long */
    OTHER = PACE_TIMES, /* the launch of a trial that is the first to go the other way: not counted, as
                           threads may have to wake up */
    LAST = 2 * PACE_TIMES,
};

INTERNAL int64_t least_of(const int64_t *times)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < PACE_TIMES; k++) {
        int64_t time = LOAD(&times[k], RELAXED);
        least = time < least ? time : least;
    }
    return least;
}

/* The sum of times, none of which counts for more than some times the least. */
INTERNAL int64_t sum_of(const int64_t *times)
{
    int64_t sum = 0, most = OUTLIER * least_of(times);
    for (int k = 0; k < PACE_TIMES; k++) {
        int64_t time = LOAD(&times[k], RELAXED);
        sum += time < most ? time : most;
    }
    return sum;
}

/* Begin a launch: its number in a trial, or -1 for one that is not timed. Launches of several callers
   have different numbers. */
INTERNAL int64_t begin_launch(struct pace *pace)
{
    int64_t left = ADD(&pace->left, -1, RELAXED);
    if (LOAD(&pace->interval, RELAXED) == 0) { /* the first launch of all */
        STORE(&pace->interval, SOONEST, RELAXED);
        STORE(&pace->left, SOONEST, RELAXED);
        return -1;
    }
    return left <= 0 && left >= -LAST ? -left : -1;
}

/* Whether a launch is for the caller alone. */
INTERNAL int goes_alone(const struct pace *pace, int64_t number)
{
    int alone = LOAD(&pace->alone, RELAXED) != 0;
    return number >= OTHER ? !alone : alone;
}

/* No trial for so many launches, times more than before unless that one has changed something. */
INTERNAL void end_trial(struct pace *pace, int changed)
{
    int64_t interval = LOAD(&pace->interval, RELAXED);
    interval = changed ? SOONEST : interval < LATEST ? 2 * interval : interval;
    STORE(&pace->interval, interval, RELAXED);
    STORE(&pace->left, interval, RELAXED);
}

/* Learn from a launch of a trial. To be kept from now on, the other way has to be better by a tenth;
   if launches are long, and one of them is all there is of it, by a fifth. */
INTERNAL void learn(struct pace *pace, int64_t number, int64_t passed)
{
    int64_t *usual = pace->times, *other = pace->times + PACE_TIMES;
    if (number < OTHER)
        STORE(&usual[number], passed, RELAXED);
    else if (number > OTHER)
        STORE(&other[number - OTHER - 1], passed, RELAXED);
    if (number == OTHER - 1 && least_of(usual) >= LONG) {
        STORE(&pace->left, -LAST, RELAXED);
    }
    else if (number == LAST) {
        int is_long = least_of(usual) >= LONG;
        int64_t took = sum_of(usual), less = took / (is_long ? 5 : 10);
        int better = (is_long ? PACE_TIMES * passed : sum_of(other)) < took - less;
        if (better)
            STORE(&pace->alone, LOAD(&pace->alone, RELAXED) == 0, RELAXED);
        end_trial(pace, better);
    }
}
