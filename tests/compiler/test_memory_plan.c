// What the packager makes of memory, in bytes that follow from the graph: results over operands,
// parts inside wholes, the order of steps. Plans only: nothing is compiled.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "tests/compiler/planned.h"

enum { unit_bytes = 4096 };  // a value of f32[4,256]

static berth_value_id input(fixture *f, const char *name, int64_t rows) {
    berth_type_id type = berth_type_tensor(f->module, BERTH_DTYPE_F32, 2, (int64_t[]){rows, 256});
    return berth_graph_add_param(f->module, f->main, name, type);
}

static berth_value_id numbers(fixture *f, int64_t count, const int64_t *values) {
    berth_tensor tensor = berth_tensor_create(f->arena, BERTH_DTYPE_I64, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, values[i]);
    return berth_graph_constant(f->module, f->main, 0, &tensor, 0);
}

static berth_value_id unary(fixture *f, berth_op_kind kind, berth_value_id x) {
    return berth_graph_op1(f->module, f->main, kind, &x, 1, 0);
}

static berth_value_id add(fixture *f, berth_value_id a, berth_value_id b) {
    return berth_graph_op1(f->module, f->main, BERTH_OP_ADD, (berth_value_id[]){a, b}, 2, 0);
}

static berth_value_id concat(fixture *f, const berth_value_id *parts, uint32_t count,
                             int64_t axis) {
    berth_value_id value = berth_graph_op1(f->module, f->main, BERTH_OP_CONCAT, parts, count, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs_set_int(f->module, &graph->ops.data[graph->values.data[value].op].attrs, "axis",
                        axis);
    return value;
}

// The sum of all: four bytes, so that the result is not where anything else could be.
static berth_value_id total(fixture *f, berth_value_id x) {
    berth_value_id inputs[] = {x, numbers(f, 2, (int64_t[]){0, 1})};
    berth_value_id value = berth_graph_op1(f->module, f->main, BERTH_OP_REDUCE_SUM, inputs, 2, 0);
    berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attrs_set_int(f->module, &graph->ops.data[graph->values.data[value].op].attrs, "keepdims",
                        1);
    return value;
}

static berth_compile_result plan(fixture *f, const berth_value_id *results, uint32_t count) {
    berth_graph_set_results(f->module, f->main, results, count);
    for (uint32_t i = 0; i < count; ++i)
        berth_graph_get(f->module, f->main)->values.data[results[i]].name =
            berth_module_intern(f->module, berth_arena_printf(f->arena, "out%u", i));
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f->arena, "cpu", NULL, &target));
    berth_compile_options options = {
        .target = target, .no_fusion = true, .plan_only = true, .verify = true};
    berth_compile_result result;
    assert_ok(berth_compile(f->module, &options, &result));
    return result;
}

static uint64_t workspace_bytes(const berth_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == BERTH_POOL_WORKSPACE) bytes += program->pools[i].size_bytes;
    return bytes;
}

typedef struct held {
    size_t bytes, limit_bytes;
} held;

static void *resize_within_limit(void *state, void *pointer, size_t old_bytes, size_t new_bytes) {
    held *h = state;
    if (h->bytes - old_bytes + new_bytes > h->limit_bytes) return NULL;
    berth_allocator system = berth_allocator_system();
    void *result = system.resize(system.state, pointer, old_bytes, new_bytes);
    if (result || !new_bytes) h->bytes += new_bytes - old_bytes;
    return result;
}

// Thousands of operations over each other in one output: what planning them takes grows with their
// number, not with that of their pairs (nine million here).
Test(memory_plan, long_chain_in_place) {
    held h = {.limit_bytes = (size_t)200 << 20};
    fixture f = {0};
    assert_ok(berth_arena_create((berth_allocator){resize_within_limit, &h}, &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    berth_value_id x = input(&f, "x", 4);
    for (int i = 0; i < 3000; ++i) x = unary(&f, BERTH_OP_RELU, x);
    berth_compile_result r = plan(&f, &x, 1);
    cr_expect_eq(r.program->step_count, 3000);
    cr_expect_eq(workspace_bytes(r.program), 0);  // all of it where the output is
    berth_arena_destroy(f.arena);
    cr_expect_eq(h.bytes, 0);
}

// Two values of a chain are live at once; over each other, one.
Test(memory_plan, chain_of_relus) {
    fixture f = begin();
    berth_value_id x = input(&f, "x", 4);
    for (int i = 0; i < 5; ++i) x = unary(&f, BERTH_OP_RELU, x);
    berth_value_id out = total(&f, x);
    berth_compile_result r = plan(&f, &out, 1);
    cr_expect_eq(r.memory->plain_bytes, 2 * unit_bytes);
    cr_expect_eq(r.memory->in_place_bytes, unit_bytes);
    cr_expect_eq(r.memory->in_place_count, 4);  // the first one must not overwrite the input
    cr_expect_eq(workspace_bytes(r.program), unit_bytes);
    berth_arena_destroy(f.arena);
}

// A chain that ends in an output is computed in the output's memory.
Test(memory_plan, chain_to_an_output) {
    fixture f = begin();
    berth_value_id x = input(&f, "x", 4);
    for (int i = 0; i < 5; ++i) x = unary(&f, BERTH_OP_RELU, x);
    berth_compile_result r = plan(&f, &x, 1);
    cr_expect_eq(r.memory->plain_bytes, 2 * unit_bytes);
    cr_expect_eq(workspace_bytes(r.program), 0);
    berth_arena_destroy(f.arena);
}

// a is read after b is made of it, so b has its own bytes; the sum takes over one of them.
Test(memory_plan, operand_that_is_read_later) {
    fixture f = begin();
    berth_value_id a = unary(&f, BERTH_OP_RELU, input(&f, "x", 4));
    berth_value_id b = unary(&f, BERTH_OP_NEG, a);
    berth_value_id out = total(&f, add(&f, a, b));
    berth_compile_result r = plan(&f, &out, 1);
    cr_expect_eq(r.memory->plain_bytes, 3 * unit_bytes);
    cr_expect_eq(r.memory->in_place_bytes, 2 * unit_bytes);
    cr_expect_eq(workspace_bytes(r.program), 2 * unit_bytes);
    berth_arena_destroy(f.arena);
}

// The parts are made inside the whole: no third copy of them, and no step.
Test(memory_plan, concatenation) {
    fixture f = begin();
    berth_value_id x = input(&f, "x", 4);
    berth_value_id parts[] = {unary(&f, BERTH_OP_RELU, x), unary(&f, BERTH_OP_NEG, x)};
    berth_value_id out = total(&f, concat(&f, parts, 2, 0));
    berth_compile_result r = plan(&f, &out, 1);
    cr_expect_eq(r.memory->plain_bytes, 4 * unit_bytes);
    cr_expect_eq(r.memory->removed_steps, 1);
    cr_expect_eq(r.memory->removed_bytes, 2 * unit_bytes);
    cr_expect_eq(r.memory->views_bytes, 2 * unit_bytes);
    cr_expect_eq(workspace_bytes(r.program), 2 * unit_bytes);
    cr_expect_eq(r.program->step_count, 3);
    cr_expect_eq(r.program->kernel_count, 3, "the kernel of the concatenation is left out");
    berth_arena_destroy(f.arena);
}

typedef struct concat_case {
    const char *why;
    int64_t axis;
    int64_t rows[2];
    bool input_part, twice, output_part;
    uint32_t removed;
} concat_case;

static const concat_case concat_cases[] = {
    {"as above", 0, {4, 4}, false, false, false, 1},
    {"columns are not in a row", 1, {4, 4}, false, false, false, 0},
    {"one row: columns are", 1, {1, 1}, false, false, false, 1},
    {"an input stays where it is", 0, {4, 4}, true, false, false, 0},
    {"the same value at two places", 0, {4, 4}, false, true, false, 0},
    {"an output has its own place", 0, {4, 4}, false, false, true, 0},
};

Test(memory_plan, concatenations_that_need_a_step) {
    for (size_t i = 0; i < sizeof(concat_cases) / sizeof(concat_cases[0]); ++i) {
        const concat_case *c = &concat_cases[i];
        fixture f = begin();
        berth_value_id x = input(&f, "x", c->rows[0]);
        berth_value_id y = input(&f, "y", c->rows[1]);
        berth_value_id parts[] = {c->input_part ? x : unary(&f, BERTH_OP_RELU, x),
                                  unary(&f, BERTH_OP_NEG, y)};
        if (c->twice) parts[1] = parts[0];
        berth_value_id outs[] = {total(&f, concat(&f, parts, 2, c->axis)), parts[0]};
        berth_compile_result r = plan(&f, outs, c->output_part ? 2 : 1);
        cr_expect_eq(r.memory->removed_steps, c->removed, "%s: %u", c->why,
                     r.memory->removed_steps);
        berth_arena_destroy(f.arena);
    }
}

// Parts of a value are read where they are.
Test(memory_plan, split_and_slice) {
    fixture f = begin();
    berth_value_id a = unary(&f, BERTH_OP_RELU, input(&f, "x", 8));
    berth_value_id inputs[] = {a, numbers(&f, 2, (int64_t[]){4, 4})};
    berth_op_id split = berth_graph_add_op(f.module, f.main, 0, BERTH_OP_SPLIT, inputs, 2, 2, 0);
    berth_graph *graph = berth_graph_get(f.module, f.main);
    berth_attrs_set_int(f.module, &graph->ops.data[split].attrs, "axis", 0);
    berth_value_id left = graph->ops.data[split].outputs[0];
    berth_value_id right = graph->ops.data[split].outputs[1];
    berth_value_id cut[] = {right, numbers(&f, 1, (int64_t[]){2}), numbers(&f, 1, (int64_t[]){4}),
                            numbers(&f, 1, (int64_t[]){0})};
    berth_value_id slice = berth_graph_op1(f.module, f.main, BERTH_OP_SLICE, cut, 4, 0);
    berth_value_id outs[] = {total(&f, left), total(&f, slice)};
    berth_compile_result r = plan(&f, outs, 2);
    cr_expect_eq(r.memory->removed_steps, 3, "one per result");
    cr_expect_eq(workspace_bytes(r.program), 2 * unit_bytes);
    cr_expect_eq(r.program->step_count, 3);
    berth_arena_destroy(f.arena);
}

// x becomes two large values that shrink again. As given both large ones are live; one branch after
// the other it is one of them and the small result of the other branch.
Test(memory_plan, order_of_branches) {
    fixture f = begin();
    berth_value_id x = input(&f, "x", 4);
    berth_value_id times = numbers(&f, 2, (int64_t[]){8, 1});
    berth_value_id large[2];
    for (int i = 0; i < 2; ++i) {
        berth_value_id inputs[] = {x, times};
        large[i] = berth_graph_op1(f.module, f.main, BERTH_OP_TILE, inputs, 2, 0);
    }
    berth_value_id first = total(&f, large[0]);
    berth_value_id out = add(&f, first, total(&f, large[1]));
    berth_compile_result r = plan(&f, &out, 1);
    // The first sum is in the output's place, the second one (4 bytes) beside what it is made of.
    cr_expect_eq(r.memory->views_bytes, 2 * 8 * unit_bytes);
    cr_expect_eq(r.memory->ordered_bytes, 8 * unit_bytes + 4);
    cr_expect_eq(r.memory->order_bound_bytes, r.memory->ordered_bytes);
    berth_arena_destroy(f.arena);
}

// The report names what is live at the peak, where, and its bounds.
Test(memory_plan, report) {
    fixture f = begin();
    berth_value_id a = unary(&f, BERTH_OP_RELU, input(&f, "x", 4));
    berth_value_id b = unary(&f, BERTH_OP_NEG, a);
    berth_graph_get(f.module, f.main)->values.data[a].name = berth_module_intern(f.module, "a");
    berth_graph_get(f.module, f.main)->values.data[b].name = berth_module_intern(f.module, "b");
    berth_value_id out = total(&f, add(&f, a, b));
    berth_compile_result r = plan(&f, &out, 1);
    cr_assert_eq(r.memory->pool_count, 1);
    const berth_memory_report_pool *pool = &r.memory->pools[0];
    cr_expect_eq(r.program->pools[pool->pool].usage, BERTH_POOL_WORKSPACE);
    cr_expect_eq(pool->live_bytes, 2 * unit_bytes);
    cr_assert_eq(pool->value_count, 2);
    cr_expect_eq(pool->values[0].size_bytes, unit_bytes);
    cr_expect_str_eq(pool->values[0].name, "a");
    cr_expect_str_eq(pool->values[1].name, "b");
    berth_arena_destroy(f.arena);
}

// A budget below the peak names the values that are live there.
Test(memory_plan, budget) {
    fixture f = begin();
    berth_value_id a = unary(&f, BERTH_OP_RELU, input(&f, "x", 4));
    berth_value_id b = unary(&f, BERTH_OP_NEG, a);
    berth_graph_get(f.module, f.main)->values.data[a].name = berth_module_intern(f.module, "a");
    berth_value_id out = total(&f, add(&f, a, b));
    berth_graph_set_results(f.module, f.main, &out, 1);
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(f.arena, "cpu", NULL, &target));
    ((berth_target_memory *)target->memories)[0].budget_bytes = 3 * unit_bytes;
    berth_compile_options options = {.target = target, .no_fusion = true, .plan_only = true};
    berth_compile_result result;
    berth_status status = berth_compile(f.module, &options, &result);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    cr_expect(strstr(berth_status_message(status), "at the peak: a (4.0 KiB)"), "%s",
              berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(f.arena);
}

// Of many concatenations the peak is looked at a few times, however many there are: one by one that takes time as their square.
Test(memory_plan, many_parts_are_joined_at_once) {
    enum { count = 300, most_trials = 256 };
    fixture f = begin();
    berth_value_id x = input(&f, "x", 4);
    for (int i = 0; i < count; ++i) {
        const berth_value_id parts[] = {unary(&f, BERTH_OP_TANH, x), unary(&f, BERTH_OP_NEG, x)};
        x = add(&f, x, total(&f, concat(&f, parts, 2, 0)));
    }
    berth_compile_result result = plan(&f, &x, 1);
    cr_expect_eq(result.memory->removed_steps, count, "%u", result.memory->removed_steps);
    cr_expect_leq(result.memory->join_trials, most_trials, "%u", result.memory->join_trials);
    berth_arena_destroy(f.arena);
}
