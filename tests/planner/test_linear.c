// Planning is linear where many operations have one device in common, or none: sixteen times as many take sixteen times as
// long, not 256 times. Processor time of this thread, the least of three runs: what else the machine does hardly counts.
#include <criterion/criterion.h>
#include <time.h>

#include "tests/planner/support.h"

typedef enum shape_kind { RESULTS, TUPLE, FIELDS } shape_kind;

typedef struct shape {
    berth_arena *arena;
    berth_module *module;
    uint32_t count;
    shape_kind kind;
} shape;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static berth_value_id add(shape *s, berth_func_id function, berth_op_kind kind,
                          const berth_value_id *inputs, uint32_t count, berth_type_id type) {
    berth_value_id value = berth_graph_op1(s->module, function, kind, inputs, count, 0);
    berth_graph_get(s->module, function)->values.data[value].type = type;
    return value;
}

static berth_value_id field(shape *s, berth_func_id function, berth_value_id tuple, uint32_t index,
                            berth_type_id type) {
    berth_value_id value = add(s, function, BERTH_OP_TUPLE_GET, &tuple, 1, type);
    berth_graph *graph = berth_graph_get(s->module, function);
    berth_attrs_set_int(s->module, &graph->ops.data[graph->values.data[value].op].attrs, "index",
                        index);
    return value;
}

// `count` operations that are results, or a tuple of which one field or all are read.
static berth_status make(void *user) {
    shape *s = user;
    berth_module *m = s->module = berth_module_create(s->arena, "linear");
    berth_type_id type = berth_type_tensor(m, BERTH_DTYPE_F32, 1, (int64_t[]){4});
    berth_func_id main = berth_graph_create(m, "main", 0);
    berth_value_id x = berth_graph_add_param(m, main, "x", type), last = x;
    berth_value_id *values = berth_arena_new_array(s->arena, berth_value_id, s->count);
    berth_type_id *types = berth_arena_new_array(s->arena, berth_type_id, s->count);
    for (uint32_t i = 0; i < s->count; ++i) {
        values[i] = add(s, main, BERTH_OP_TANH, &x, 1, type);
        types[i] = type;
    }
    if (s->kind == RESULTS) {
        berth_graph_set_results(m, main, values, s->count);
        return BERTH_OK;
    }
    berth_value_id tuple =
        add(s, main, BERTH_OP_TUPLE, values, s->count, berth_type_tuple(m, types, s->count));
    for (uint32_t i = 0; i < (s->kind == FIELDS ? s->count : 1); ++i) {
        berth_value_id both[] = {last, field(s, main, tuple, i, type)};
        last = add(s, main, BERTH_OP_ADD, both, 2, type);
    }
    berth_graph_set_results(m, main, &last, 1);
    return BERTH_OK;
}

static double same_time_ns(void *user, const berth_module *module, berth_func_id function,
                           berth_op_id op, uint32_t device) {
    (void)user;
    (void)module;
    (void)function;
    (void)op;
    return 1e3 * (1 + device);
}

static double plan_seconds(shape_kind kind, uint32_t count, bool valued) {
    double least = 1e9;
    for (int run = 0; run < 3; ++run) {
        shape s = {.arena = new_arena(), .count = count, .kind = kind};
        berth_plan_options options = {.target = parse_target(s.arena, target_gch), .explain = true};
        berth_plan *plan = NULL;
        if (valued) options.cost.time_ns = same_time_ns;
        require(berth_arena_try(s.arena, make, &s));
        double from = seconds();
        require(plan_with(s.module, &options, &plan));
        double taken = seconds() - from;
        cr_assert_eq(plan->valued, valued);
        least = taken < least ? taken : least;
        berth_arena_destroy(s.arena);
    }
    return least;
}

static void check_linear(shape_kind kind, uint32_t count, bool valued) {
    double small = plan_seconds(kind, count / 16, valued),
           large = plan_seconds(kind, count, valued);
    cr_log_info("%u operations: %g s, a sixteenth %g s", count, large, small);
    cr_expect_lt(large, 16 * 3 * small, "%u operations take %g s, a sixteenth of them %g s", count,
                 large, small);
}

// Every operation could be the first on its device.
Test(linear, many_results_valued) {
    check_linear(RESULTS, 16000, true);
}

// All operations are one group: a tuple is in one place.
Test(linear, tuple_valued) {
    check_linear(TUPLE, 16000, true);
}

// Whether each field's tuple may be copied is looked at once.
Test(linear, fields_of_a_tuple) {
    check_linear(FIELDS, 100000, false);
}
