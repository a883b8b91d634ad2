// Recurrent operators read their weights block by block.
#include <criterion/criterion.h>

#include "tests/check.h"
#include "tests/lower/op_case.h"

// Vectors of operand `buf` whose rows begin at a constant that `block` does not divide.
static int across_blocks(const berth_tfn *fn, berth_buf buf, int64_t block, int *out_vectors) {
    int count = 0;
    *out_vectors = 0;
    for (uint32_t i = 1; i < fn->exprs.count; ++i) {
        const berth_expr_node *load = &fn->exprs.data[i];
        if (load->kind != BERTH_EXPR_LOAD || load->load.buf != buf || load->lanes != block)
            continue;
        const berth_expr_node *row = &fn->exprs.data[berth_tfn_load_indices(fn, i)[1]];
        int64_t first = 0;
        if (row->kind != BERTH_EXPR_RAMP || !berth_tfn_const_value(fn, row->a, &first)) continue;
        ++*out_vectors;
        count += first % block != 0;
    }
    return count;
}

// 2 x 20 rows of the gates that do not wait for the reset state end in the middle of a block of 16.
static void check(const berth_target *target) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_tfn *fn = NULL;
    assert_ok(op_case_schedule(
        "gru | f32[5,1,8] f32[1,60,8]{aBc16b} f32[1,60,20]{aBc16b} | hidden_size=20 | . .", target,
        arena, &fn));
    int vectors = 0;
    cr_expect_eq(across_blocks(fn, 2, 16, &vectors), 0);
    cr_expect_geq(vectors, 5);  // three blocks, and two for the gate that waits
    berth_arena_destroy(arena);
}

Test(recurrent, late_gates_begin_at_a_block) {
    with_target("cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512", check);
}
