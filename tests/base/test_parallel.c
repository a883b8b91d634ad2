// Loops in the background: every index once, whatever the number of helpers.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>

#include "base/parallel.h"

typedef struct counts {
    atomic_uint *visits;
    atomic_uint others;  // indices that another thread than the owner's took
    pthread_t owner;
} counts;

static void visit(void *user, size_t index) {
    counts *c = user;
    atomic_fetch_add(&c->visits[index], 1);
    if (!pthread_equal(pthread_self(), c->owner)) atomic_fetch_add(&c->others, 1);
}

static const struct {
    uint32_t helpers;
    size_t count;
} loops[] = {{0, 0}, {3, 0}, {0, 1}, {1, 1}, {0, 1000}, {1, 1000}, {3, 1000}, {200, 5000}};

ParameterizedTestParameters(parallel, every_index_once) {
    static int index[sizeof(loops) / sizeof(loops[0])];
    for (int i = 0; i < (int)(sizeof(loops) / sizeof(loops[0])); ++i) index[i] = i;
    return cr_make_param_array(int, index, sizeof(loops) / sizeof(loops[0]));
}

ParameterizedTest(int *row, parallel, every_index_once) {
    size_t count = loops[*row].count;
    counts c = {.visits = calloc(count + 1, sizeof(atomic_uint)), .owner = pthread_self()};
    berth_parallel loop = {0};
    for (unsigned round = 1; round <= 3; ++round) {  // a finished loop may start again
        berth_parallel_start(&loop, loops[*row].helpers, count, visit, &c);
        berth_parallel_finish(&loop);
        berth_parallel_finish(&loop);
        for (size_t i = 0; i < count; ++i) cr_assert_eq(atomic_load(&c.visits[i]), round);
        cr_assert_eq(atomic_load(&c.visits[count]), 0);
    }
    if (loops[*row].helpers == 0) cr_assert_eq(atomic_load(&c.others), 0);
    free(c.visits);
}

// The owner does not have to take part for the work to be done.
static void wait_for_helpers(const atomic_uint *visits, size_t count) {
    for (size_t i = 0; i < count; ++i)
        while (!atomic_load(&visits[i])) sched_yield();
}

Test(parallel, goes_on_in_the_background, .timeout = 60) {
    enum { count = 100 };
    atomic_uint visits[count + 1] = {0};
    counts c = {.visits = visits, .owner = pthread_self()};
    berth_parallel loop = {0};
    berth_parallel_start(&loop, 1, count, visit, &c);
    wait_for_helpers(visits, count);
    berth_parallel_finish(&loop);
    cr_assert_eq(atomic_load(&c.others), count);
    cr_assert_geq(berth_core_count(), 1);
}
