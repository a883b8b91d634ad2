// Einsums of many operands as chains of pairs (passes/einsum_order.h): the same values, fewer multiplications.
#include <stdio.h>
#include <string.h>

#include "compiler/passes/simplify.h"
#include "ir/eval.h"
#include "ir/graph/einsum.h"
#include "ir/graph/graph.h"
#include "ir/infer.h"
#include "ir/pass.h"
#include "tests/check.h"

enum { most_operands = 9 };

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    const char *equation;
    int count;
    int ranks[most_operands];
    int64_t dims[most_operands][BERTH_MAX_RANK];
} fixture;

static berth_status build(void *user) {
    fixture *f = user;
    berth_value_id inputs[most_operands];
    f->module = berth_module_create(f->arena, "m");
    f->main = berth_graph_create(f->module, "main", 0);
    for (int k = 0; k < f->count; ++k)
        inputs[k] = berth_graph_add_param(
            f->module, f->main, (char[]){(char)('a' + k), 0},
            berth_type_tensor(f->module, BERTH_DTYPE_F32, f->ranks[k], f->dims[k]));
    berth_op_id op = berth_graph_add_op(f->module, f->main, 0, BERTH_OP_EINSUM, inputs,
                                        (uint32_t)f->count, 1, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs_set_string(f->module, &graph->ops.data[op].attrs, "equation", f->equation);
    berth_graph_set_results(f->module, f->main, graph->ops.data[op].outputs, 1);
    return berth_infer_function(f->module, f->main);
}

static berth_status simplify(void *user) {
    fixture *f = user;
    BERTH_TRY(berth_simplify(f->module, f->main, NULL));
    return berth_module_verify(f->module);
}

static uint32_t count_ops(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        count += graph->ops.data[i].region != BERTH_NONE;
    return count;
}

// Multiplications of all that is left, by the labels of each operation.
static double multiplications(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    double sum = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE) continue;
        berth_einsum e;
        int ranks[most_operands];
        const int64_t *dims[most_operands];
        int64_t extents[BERTH_EINSUM_MAX_LABELS];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            const berth_type *type =
                berth_type_get(f->module, graph->values.data[op->inputs[k]].type);
            ranks[k] = type->rank;
            dims[k] = type->dims;
        }
        cr_assert(berth_einsum_parse(berth_attrs_string(f->module, &op->attrs, "equation", ""),
                                     (int)op->input_count, ranks, &e));
        cr_assert(berth_einsum_extents(&e, dims, extents));
        double product = op->input_count - 1;
        for (int label = 0; label < BERTH_EINSUM_MAX_LABELS; ++label)
            if (extents[label] >= 0) product *= (double)extents[label];
        sum += product;
    }
    return sum;
}

static void create(fixture *f) {
    assert_ok(berth_arena_create(berth_allocator_system(), &f->arena));
    assert_ok(berth_arena_try(f->arena, build, f));
}

// Values before and after are the same.
static void expect_same(fixture *f) {
    berth_tensor inputs[most_operands], before, after;
    for (int k = 0; k < f->count; ++k) {
        inputs[k] = berth_tensor_create(f->arena, BERTH_DTYPE_F32, f->ranks[k], f->dims[k]);
        berth_tensor_fill_random(&inputs[k], (uint64_t)k + 5);
    }
    uint32_t count = (uint32_t)f->count;
    assert_ok(berth_eval_function(f->module, f->main, inputs, count, &before, 1, f->arena));
    assert_ok(berth_arena_try(f->arena, simplify, f));
    assert_ok(berth_eval_function(f->module, f->main, inputs, count, &after, 1, f->arena));
    cr_assert(berth_tensor_same_shape(&before, &after), "%s", f->equation);
    for (int64_t i = 0; i < berth_tensor_element_count(&before); ++i)
        cr_assert_float_eq(berth_tensor_get_f64(&before, i), berth_tensor_get_f64(&after, i), 1e-4,
                           "%s, element %d", f->equation, (int)i);
}

// Known best orders: (multiplications, operations), counted by hand.
static const struct {
    const char *equation;
    int ranks[most_operands];
    int64_t dims[most_operands][BERTH_MAX_RANK];
    double multiplications;
    uint32_t operations;
} known[] = {
    {"ij,jk,kl->il", {2, 2, 2}, {{8, 8}, {8, 8}, {8, 8}}, 2 * 512, 2},
    // the vector at the end first: never a product of matrices
    {"ij,jk,kl,l->i", {2, 2, 2, 1}, {{9, 8}, {8, 7}, {7, 6}, {6}}, 42 + 56 + 72, 3},
    // Cormen, Leiserson, Rivest, Stein, section 15.2: 30x35, 35x15, 15x5, 5x10, 10x20, 20x25 takes 15,125
    {"ab,bc,cd,de,ef,fg->ag",
     {2, 2, 2, 2, 2, 2},
     {{30, 35}, {35, 15}, {15, 5}, {5, 10}, {10, 20}, {20, 25}},
     15125,
     5},
    // all at once is as good
    {"i,i,i->i", {1, 1, 1}, {{40}, {40}, {40}}, 80, 1},
    {"...ij,jk,...k->...i", {3, 2, 2}, {{3, 4, 5}, {5, 6}, {3, 6}}, 3 * 30 + 3 * 20, 2},
};

Test(einsum_order, best_orders) {
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        fixture f = {.equation = known[i].equation};
        while (f.count < most_operands && known[i].ranks[f.count]) f.count++;
        memcpy(f.ranks, known[i].ranks, sizeof(f.ranks));
        memcpy(f.dims, known[i].dims, sizeof(f.dims));
        create(&f);
        if (f.count < 6)
            expect_same(&f);
        else
            assert_ok(berth_arena_try(f.arena, simplify, &f));
        cr_expect_eq(multiplications(&f), known[i].multiplications, "%s: %g", f.equation,
                     multiplications(&f));
        cr_expect_eq(count_ops(&f), known[i].operations, "%s", f.equation);
        berth_arena_destroy(f.arena);
    }
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

// Letters of up to six labels, some twice in a term, some of extent 1 in one operand only; more operands than are
// tried in all orders, too.
Test(einsum_order, random_equations) {
    uint64_t state = 11;
    uint32_t chains = 0;
    for (int round = 0; round < 300; ++round) {
        fixture f = {.count = 3 + (int)(next(&state) % (round % 20 == 0 ? 7 : 2))};
        int64_t extents[6];
        bool used[6] = {false};
        char text[96];
        int n = 0;
        for (int l = 0; l < 6; ++l) extents[l] = 1 + (int64_t)(next(&state) % 3);
        for (int k = 0; k < f.count; ++k) {
            if (k) text[n++] = ',';
            f.ranks[k] = 1 + (int)(next(&state) % 3);
            for (int d = 0; d < f.ranks[k]; ++d) {
                int l = (int)(next(&state) % 6);
                bool twice = d && text[n - 1] == 'a' + l;
                used[l] = true;
                text[n++] = (char)('a' + l);
                f.dims[k][d] = next(&state) % 8 || twice ? extents[l] : 1;
            }
        }
        n += snprintf(text + n, 3, "->");
        for (int l = 0; l < 6; ++l)
            if (used[l] && next(&state) % 2) text[n++] = (char)('a' + l);
        text[n] = 0;
        f.equation = text;
        create(&f);
        expect_same(&f);
        chains += count_ops(&f) > 1;
        berth_arena_destroy(f.arena);
    }
    cr_expect_gt(chains, 50u);
}
