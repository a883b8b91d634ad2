// Static memory allocation through the public API. The expected heights are worked out by hand.
#include <berth/allocation.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

TestSuite(allocation, .timeout = 60);

static berth_allocation_problem *problem;

static void add(const char *id, const char *pool, int64_t lower, int64_t upper, uint64_t size) {
    assert_ok(berth_allocation_problem_add(problem, id, pool, lower, upper, size, 32));
}

// Whether no two buffers of a pool that are live together overlap: pair by pair.
static void check_apart(void) {
    const uint32_t count = berth_allocation_problem_buffer_count(problem);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_allocation_buffer *a = berth_allocation_problem_buffer(problem, i);
        cr_assert_eq(a->offset_bytes % a->alignment_bytes, 0);
        for (uint32_t j = 0; j < i; ++j) {
            const berth_allocation_buffer *b = berth_allocation_problem_buffer(problem, j);
            bool meet = a->lower < b->upper && b->lower < a->upper && strcmp(a->pool, b->pool) == 0;
            cr_assert(!meet || a->offset_bytes + a->size_bytes <= b->offset_bytes ||
                          b->offset_bytes + b->size_bytes <= a->offset_bytes,
                      "%s and %s", a->id, b->id);
        }
    }
}

Test(allocation, buffers_one_by_one) {
    assert_ok(berth_allocation_problem_create(&problem));
    assert_fails(berth_allocation_problem_solve(problem, 0, 0), BERTH_FAILED_PRECONDITION,
                 "no buffers");
    // a and b are live together, b and c too, a and c not: c may lie over a.
    add("a", "", 0, 2, 96);
    add("b", "", 1, 3, 64);
    add("c", "", 2, 4, 96);
    add("far", "other", 0, 9, 1);
    cr_assert_not(berth_allocation_problem_is_solved(problem));
    assert_ok(berth_allocation_problem_solve(problem, 100000, 0));
    check_apart();
    const berth_allocation_pool *pool = berth_allocation_problem_pool(problem, 0);
    cr_assert_eq(pool->height_bytes, 96 + 64);
    cr_assert_eq(pool->lower_bound_bytes, 96 + 64);
    cr_assert(pool->proven && pool->verdict == BERTH_ALLOCATION_FITS);
    cr_assert_str_eq(berth_allocation_problem_pool(problem, 1)->name, "other");
    cr_assert_null(berth_allocation_problem_pool(problem, 2));
    // One more, live with a and b: the solution is gone, and a new one is higher.
    add("d", NULL, 0, 9, 32);
    cr_assert_not(berth_allocation_problem_is_solved(problem));
    assert_ok(berth_allocation_problem_solve(problem, 100000, 0));
    check_apart();
    cr_assert_eq(berth_allocation_problem_pool(problem, 0)->height_bytes, 96 + 64 + 32);
    berth_allocation_problem_destroy(problem);
}

Test(allocation, many_buffers) {
    enum { count = 200 };
    assert_ok(berth_allocation_problem_create(&problem));
    uint64_t alone = 0;
    for (int i = 0; i < count; ++i) {
        char id[16];
        snprintf(id, sizeof(id), "b%d", i);
        add(id, i % 3 ? "x" : "y", i, i + 5, (uint64_t)(i % 7 + 1) * 32);
        alone += (uint64_t)(i % 7 + 1) * 32;
    }
    assert_ok(berth_allocation_problem_solve(problem, 100000, 0));
    cr_assert_eq(berth_allocation_problem_buffer_count(problem), count);
    cr_assert_eq(berth_allocation_problem_pool_count(problem), 2);
    check_apart();
    cr_assert_lt(berth_allocation_problem_pool(problem, 0)->height_bytes, alone / 2);
    berth_allocation_problem_destroy(problem);
}

Test(allocation, capacities) {
    assert_ok(berth_allocation_problem_create(&problem));
    add("a", "p", 0, 2, 96);
    add("b", "p", 1, 3, 64);
    assert_fails(berth_allocation_problem_set_capacity(problem, "q", 1), BERTH_NOT_FOUND, "\"q\"");
    assert_ok(berth_allocation_problem_set_capacity(problem, "p", 159));
    assert_ok(berth_allocation_problem_solve(problem, 100000, 0));
    const berth_allocation_pool *pool = berth_allocation_problem_pool(problem, 0);
    cr_assert_eq(pool->verdict, BERTH_ALLOCATION_CANNOT_FIT);
    cr_assert(pool->proven);
    assert_ok(berth_allocation_problem_set_capacity(problem, NULL, 160));
    assert_ok(berth_allocation_problem_solve(problem, 100000, 0));
    cr_assert_eq(pool->verdict, BERTH_ALLOCATION_FITS);
    assert_ok(berth_allocation_problem_check(problem));
    berth_allocation_problem_destroy(problem);
}

Test(allocation, refused) {
    berth_allocation_problem *none = NULL;
    assert_ok(berth_allocation_problem_create(&problem));
    add("a", "", 0, 2, 96);
    assert_fails(berth_allocation_problem_add(problem, "a", "", 5, 6, 1, 1), BERTH_INVALID_ARGUMENT,
                 "already");
    assert_fails(berth_allocation_problem_add(problem, "", "", 0, 1, 1, 1), BERTH_INVALID_ARGUMENT,
                 "empty");
    assert_fails(berth_allocation_problem_add(problem, "b", "", 1, 1, 1, 1), BERTH_INVALID_ARGUMENT,
                 "below upper");
    assert_fails(berth_allocation_problem_add(problem, "b", "", 0, 1, 0, 1), BERTH_INVALID_ARGUMENT,
                 "size");
    assert_fails(berth_allocation_problem_add(problem, "b", "", 0, 1, 1, 3), BERTH_INVALID_ARGUMENT,
                 "power of two");
    assert_fails(berth_allocation_problem_add(problem, "b", "", 0, 1, UINT64_MAX, 1),
                 BERTH_OUT_OF_RANGE, "2^62");
    cr_assert_eq(berth_allocation_problem_buffer_count(problem), 1);
    assert_fails(berth_allocation_problem_check(problem), BERTH_FAILED_PRECONDITION, "no offsets");
    const char *svg = NULL;
    assert_fails(berth_allocation_problem_draw(problem, NULL, &svg), BERTH_FAILED_PRECONDITION,
                 "no offsets");
    berth_allocation_problem_destroy(problem);
    assert_fails(berth_allocation_problem_read("no/such.csv", &none), BERTH_NOT_FOUND, "such.csv");
    assert_fails(berth_allocation_problem_parse("t.csv", "id,lower\n", 9, &none),
                 BERTH_INVALID_ARGUMENT, "t.csv:1");
    cr_assert_null(none);
}

Test(allocation, files) {
    static const char text[] = "id,lower,upper,size,offset\na,0,2,10,0\nb,1,3,4,8\n";
    char path[] = "/tmp/berth-allocation-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_allocation_problem_parse("text", text, strlen(text), &problem));
    cr_assert(berth_allocation_problem_is_solved(problem));
    assert_fails(berth_allocation_problem_check(problem), BERTH_FAILED_PRECONDITION, "b");
    assert_ok(berth_allocation_problem_solve(problem, 1000, 0));
    assert_ok(berth_allocation_problem_check(problem));
    assert_ok(berth_allocation_problem_save(problem, path));
    const char *svg = NULL;
    assert_ok(berth_allocation_problem_draw(problem, "title <here>", &svg));
    cr_assert(strstr(svg, "<svg") && strstr(svg, "title &lt;here&gt;"));
    berth_allocation_problem_destroy(problem);
    assert_fails(berth_allocation_problem_read_limited(path, "items=1", &problem),
                 BERTH_OUT_OF_RANGE, "more than 1 rows");
    cr_assert_null(problem);
    assert_ok(berth_allocation_problem_read_limited(path, "items=1000", &problem));
    berth_allocation_problem_destroy(problem);
    assert_ok(berth_allocation_problem_read(path, &problem));
    assert_ok(berth_allocation_problem_check(problem));
    cr_assert_eq(berth_allocation_problem_pool(problem, 0)->height_bytes, 14);
    berth_allocation_problem_destroy(problem);
    unlink(path);
}
