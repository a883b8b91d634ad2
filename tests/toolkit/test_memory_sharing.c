// Programs whose values share memory compute what the reference interpreter computes: random graphs
// of elementwise operations, rows, concatenations, splits and slices, run on the CPU.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "tests/check.h"
#include "tests/kernel_cache.h"

enum { columns = 64, most_values = 128, seed_count = 6, op_count = 45 };

typedef struct graph_builder {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t state;
    berth_value_id values[most_values];
    int64_t rows[most_values];
    uint32_t count;
} graph_builder;

static uint32_t draw(graph_builder *g, uint32_t bound) {
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->state >> 33) % bound;
}

static berth_value_id numbers(graph_builder *g, int64_t count, const int64_t *values) {
    berth_tensor tensor = berth_tensor_create(g->arena, BERTH_DTYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, values[i]);
    return berth_graph_constant(g->module, g->main, 0, &tensor, 0);
}

static void keep(graph_builder *g, berth_value_id value, int64_t rows) {
    g->values[g->count] = value;
    g->rows[g->count++] = rows;
}

// A random one of the last values, so that lifetimes end.
static uint32_t pick(graph_builder *g) {
    uint32_t span = g->count < 8 ? g->count : 8;
    return g->count - 1 - draw(g, span);
}

static berth_op_id add_op(graph_builder *g, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count, uint32_t results) {
    return berth_graph_add_op(g->module, g->main, 0, kind, inputs, count, results, 0);
}

static berth_value_id result(graph_builder *g, berth_op_id op, uint32_t index) {
    return berth_graph_get(g->module, g->main)->ops.data[op].outputs[index];
}

static void set_axis(graph_builder *g, berth_op_id op, int64_t axis) {
    berth_attrs_set_int(g->module, &berth_graph_get(g->module, g->main)->ops.data[op].attrs, "axis",
                        axis);
}

static void add_elementwise(graph_builder *g) {
    static const berth_op_kind kinds[] = {BERTH_OP_RELU, BERTH_OP_NEG, BERTH_OP_SIGMOID};
    uint32_t a = pick(g);
    for (uint32_t b = 0; b < g->count && draw(g, 2); ++b) {
        if (g->rows[b] != g->rows[a] || g->count - b > 12) continue;
        berth_op_id op =
            add_op(g, BERTH_OP_ADD, (berth_value_id[]){g->values[a], g->values[b]}, 2, 1);
        keep(g, result(g, op, 0), g->rows[a]);
        return;
    }
    berth_op_id op = add_op(g, kinds[draw(g, 3)], &g->values[a], 1, 1);
    keep(g, result(g, op, 0), g->rows[a]);
}

static void add_concat(graph_builder *g) {
    berth_value_id inputs[3];
    int64_t rows = 0;
    uint32_t count = 2 + draw(g, 2);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t at = pick(g);
        inputs[i] = g->values[at];
        rows += g->rows[at];
    }
    if (rows > 24) return;
    berth_op_id op = add_op(g, BERTH_OP_CONCAT, inputs, count, 1);
    set_axis(g, op, 0);
    keep(g, result(g, op, 0), rows);
}

static void add_parts(graph_builder *g) {
    uint32_t at = pick(g);
    int64_t rows = g->rows[at];
    if (rows < 2) return;
    int64_t first = 1 + draw(g, (uint32_t)rows - 1);
    if (draw(g, 2)) {
        berth_value_id inputs[] = {g->values[at], numbers(g, 2, (int64_t[]){first, rows - first})};
        berth_op_id op = add_op(g, BERTH_OP_SPLIT, inputs, 2, 2);
        set_axis(g, op, 0);
        keep(g, result(g, op, 0), first);
        keep(g, result(g, op, 1), rows - first);
        return;
    }
    berth_value_id inputs[] = {g->values[at], numbers(g, 1, &first), numbers(g, 1, &rows),
                               numbers(g, 1, (int64_t[]){0})};
    berth_op_id op = add_op(g, BERTH_OP_SLICE, inputs, 4, 1);
    keep(g, result(g, op, 0), rows - first);
}

static void add_softmax(graph_builder *g) {
    uint32_t at = pick(g);
    berth_op_id op = add_op(g, BERTH_OP_SOFTMAX, &g->values[at], 1, 1);
    set_axis(g, op, 1);
    keep(g, result(g, op, 0), g->rows[at]);
}

static void build(graph_builder *g, uint64_t seed) {
    g->module = berth_module_create(g->arena, "random");
    g->main = berth_graph_create(g->module, "main", 0);
    g->state = seed * 977 + 5;
    berth_type_id type = berth_type_tensor(g->module, BERTH_DTYPE_F32, 2, (int64_t[]){4, columns});
    keep(g, berth_graph_add_param(g->module, g->main, "x", type), 4);
    for (int i = 0; i < op_count; ++i) switch (draw(g, 6)) {
        case 0: add_concat(g); break;
        case 1: add_parts(g); break;
        case 2: add_softmax(g); break;
        default: add_elementwise(g);
        }
    berth_value_id results[3] = {g->values[g->count - 1], g->values[g->count - 2],
                                 g->values[g->count / 2]};
    berth_graph_set_results(g->module, g->main, results, 3);
    static const char *const names[] = {"last", "before", "middle"};
    for (int i = 0; i < 3; ++i)
        berth_graph_get(g->module, g->main)->values.data[results[i]].name =
            berth_module_intern(g->module, names[i]);
}

static berth_arena *arena;

static void compare(const berth_tensor *got, const berth_tensor *expected, uint64_t seed) {
    int64_t count = berth_tensor_element_count(expected);
    cr_assert_eq(berth_tensor_element_count(got), count);
    double worst = 0;
    for (int64_t i = 0; i < count; ++i)
        worst = fmax(worst, fabs(berth_tensor_get_f64(got, i) - berth_tensor_get_f64(expected, i)));
    cr_expect(worst < 1e-4, "seed %llu: differs by %g", (unsigned long long)seed, worst);
}

static int seeds[seed_count];

ParameterizedTestParameters(memory_sharing, random_graphs) {
    for (int i = 0; i < seed_count; ++i) seeds[i] = i;
    return cr_make_param_array(int, seeds, seed_count);
}

static berth_status build_body(void *user) {
    graph_builder *g = user;
    build(g, g->state);
    return BERTH_OK;
}

ParameterizedTest(int *index, memory_sharing, random_graphs, .timeout = 300) {
    uint64_t seed = (uint64_t)*index;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    graph_builder g = {.arena = arena, .state = seed};
    assert_ok(berth_arena_try(arena, build_body, &g));
    berth_tensor x = berth_tensor_create(arena, BERTH_DTYPE_F32, 2, (int64_t[]){4, columns});
    berth_tensor_fill_random(&x, seed);
    berth_tensor expected[3];
    assert_ok(berth_eval_function(g.module, g.main, &x, 1, expected, 3, arena));

    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, "cpu", NULL, &target));
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    berth_compile_options options = {.target = target,
                                     .cache_folder = kernels.folder,
                                     .no_fusion = seed % 2 == 0,
                                     .verify = true};
    berth_compile_result compiled;
    assert_ok(berth_compile(g.module, &options, &compiled));
    const berth_memory_report *memory = compiled.memory;
    cr_expect_gt(memory->in_place_count + memory->removed_steps, 0);
    cr_expect_leq(memory->ordered_bytes, memory->in_place_bytes);
    cr_expect_leq(memory->in_place_bytes, memory->plain_bytes);

    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), compiled.program, NULL, &session));
    for (int run = 0; run < 2; ++run) {  // the second one finds what the first one left
        assert_ok(berth_session_set_input(session, "x", &x));
        assert_ok(berth_session_run(session, -1));
        for (uint32_t r = 0; r < 3; ++r)
            compare(berth_session_output(session, r), &expected[r], seed);
    }
    berth_session_close(session);
    kernel_cache_close(&kernels);
    berth_arena_destroy(arena);
}
