// top_k sorts whole lines without jumps that depend on the data, and keeps a few elements in a heap.
#include <criterion/criterion.h>

#include "tests/lower/op_case.h"

static int count_ifs(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return 0;
    int count = node->kind == BERTH_STMT_IF;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += count_ifs(fn, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        count += count_ifs(fn, node->body) + count_ifs(fn, node->other);
    return count;
}

static int ifs_of(const char *text, const berth_target *target) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    const berth_tfn *fn = NULL;
    berth_status status = op_case_schedule(text, target, arena, &fn);
    cr_assert(!status, "%s: %s", text, berth_status_message(status));
    int count = count_ifs(fn, fn->body);
    berth_arena_destroy(arena);
    return count;
}

static void check(const berth_target *target) {
    cr_expect_eq(ifs_of("top_k | f32[2,100] i64[1]=100 | | . .", target), 0);
    cr_expect_eq(ifs_of("top_k | i64[7,2000] i64[1]=1000 | largest=0 | . .", target), 0);
    cr_expect_gt(ifs_of("top_k | f32[2,100] i64[1]=3 | | . .", target), 0);
}

Test(sort, whole_lines_without_jumps) {
    with_target("cpu", check);
}
