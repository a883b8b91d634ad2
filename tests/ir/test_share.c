// berth_tfn_share: equal expressions become one, whatever a module was read from.
#include <criterion/criterion.h>
#include <string.h>

#include "ir/tensor/function.h"
#include "ir/text.h"
#include "tests/check.h"

static const char text[] = "module \"m\"\n"
                           "tensor @f(%x: f32[8] in, %y: f32[8] out) {\n"
                           "  parallel %i in 4 {\n"
                           "    %y[%i + 4] = select(is_nan(%x[%i + 4]), 0.0, %x[%i + 4])\n"
                           "    %y[%i] = %x[%i + 4] * %x[%i]\n"
                           "  }\n"
                           "}\n";

// Different expressions of what the body uses.
static uint32_t count_used(const berth_tfn *fn) {
    bool used[256] = {0};
    uint32_t count = 0;
    cr_assert_lt(fn->exprs.count, 256);
    for (uint32_t s = 1; s < fn->stmts.count; ++s) {
        const berth_stmt_node *node = &fn->stmts.data[s];
        used[node->value] = true;
        for (int i = 0; node->kind == BERTH_STMT_STORE && i < node->index_count; ++i)
            used[berth_tfn_store_indices(fn, s)[i]] = true;
    }
    for (berth_expr id = fn->exprs.count; id-- > 1;) {
        const berth_expr_node *node = &fn->exprs.data[id];
        if (!used[id]) continue;
        count++;
        used[node->a] = used[node->b] = used[node->c] = true;
        for (int i = 0; node->kind == BERTH_EXPR_LOAD && i < node->index_count; ++i)
            used[berth_tfn_load_indices(fn, id)[i]] = true;
    }
    return count;
}

Test(share, equal_expressions_become_one) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    berth_tfn *fn = berth_tfn_get(module, berth_module_find_function(module, "f"));
    berth_strbuf before = berth_strbuf_make(arena);
    berth_tfn_print(fn, &before);
    // As written: 4, 4 (extent); i, 4, i + 4 and a load, four times over but for the stores' own.
    cr_assert_gt(count_used(fn), 13);
    berth_tfn_share(fn, arena);
    // 4 as extent and 4 in sums, i, i + 4, x[i + 4], x[i], is_nan, 0.0, select, the product.
    cr_assert_leq(count_used(fn), 10);
    berth_strbuf after = berth_strbuf_make(arena);
    berth_tfn_print(fn, &after);
    cr_assert_str_eq(berth_strbuf_text(&after), berth_strbuf_text(&before));
    berth_tfn_share(fn, arena);
    cr_assert_leq(count_used(fn), 10);
    berth_arena_destroy(arena);
}
