// The constraint planner: time per phase and memory on modules of many operations.
//
//   bench_planner [COUNT...]        operations (default 10000 100000 200000)
//
// Shapes: "chain" (every operation reads the one before it), "dag" (operands drawn from the last 64
// values or from all, 1,000 annotations), "calls" (functions of 100 operations, each called twice).
// Times of operations are invented, so that modules of up to BERTH_PLAN_SEARCH_LIMIT operations are
// valued and every rejected device is explained ("value").
// Prints JSON lines. Milliseconds are processor time; "constraints" is nodes, hard and soft edges
// and defaults; bytes are what planning adds to the arena.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "ir/graph/graph.h"
#include "planner/planner.h"

typedef struct bench {
    berth_module *module;
    berth_func_id function;
    berth_type_id type;
    berth_plan_options options;
    berth_plan *plan;
    const char *shape;
    uint32_t count;
    uint64_t random;
    double last_s;
    double constraints_ms;
} bench;

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(berth_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", berth_status_message(status));
    exit(1);
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint32_t below(bench *b, uint32_t count) {
    uint64_t z = (b->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

// ---- modules ------------------------------------------------------------------------------------

static berth_value_id add(bench *b, berth_op_kind kind, const berth_value_id *inputs,
                          uint32_t count) {
    berth_value_id value = berth_graph_op1(b->module, b->function, kind, inputs, count, 0);
    berth_graph_get(b->module, b->function)->values.data[value].type = b->type;
    return value;
}

static berth_value_id annotate(bench *b, berth_value_id value, const char *device) {
    berth_value_id result = add(b, BERTH_OP_ON_DEVICE, &value, 1);
    berth_graph *graph = berth_graph_get(b->module, b->function);
    berth_device_id id = 0;
    must(berth_virtual_device_parse(b->module->devices, device, &id));
    berth_attrs_set(b->module, &graph->ops.data[graph->values.data[result].op].attrs, "device",
                    (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = id});
    return result;
}

static void start_function(bench *b, const char *name, berth_value_id params[2]) {
    b->function = berth_graph_create(b->module, name, 0);
    params[0] = berth_graph_add_param(b->module, b->function, "a", b->type);
    params[1] = berth_graph_add_param(b->module, b->function, "b", b->type);
}

static void make_chain(bench *b) {
    berth_value_id values[2];
    start_function(b, "main", values);
    for (uint32_t i = 0; i < b->count; ++i) values[0] = add(b, BERTH_OP_ADD, values, 2);
    berth_graph_set_results(b->module, b->function, values, 1);
}

static void make_dag(bench *b) {
    static const char *const devices[] = {"cpu:0", "opencl:0", "opencl:1"};
    berth_value_id params[2];
    start_function(b, "main", params);
    berth_value_id *values = calloc(b->count + 2, sizeof(*values));
    if (!values) exit(1);
    memcpy(values, params, sizeof(params));
    uint32_t known = 2, every = b->count / 1000;
    for (uint32_t i = 0; i < b->count; ++i, ++known) {
        berth_value_id inputs[2];
        for (int k = 0; k < 2; ++k) {
            uint32_t back = 1 + below(b, below(b, 4) && known > 64 ? 64 : known);
            inputs[k] = values[known - back];
        }
        values[known] = add(b, BERTH_OP_ADD, inputs, 2);
        if (every && i % every == 0)
            values[known] = annotate(b, values[known], devices[below(b, 3)]);
    }
    berth_graph_set_results(b->module, b->function, &values[known - 1], 1);
    free(values);
}

static berth_value_id call(bench *b, berth_func_id callee, const berth_value_id inputs[2]) {
    berth_value_id value = add(b, BERTH_OP_CALL, inputs, 2);
    berth_graph *graph = berth_graph_get(b->module, b->function);
    berth_attrs_set(b->module, &graph->ops.data[graph->values.data[value].op].attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = callee});
    return value;
}

static void make_calls(bench *b) {
    uint32_t functions = b->count / 100;
    berth_func_id *ids = calloc(functions + 1, sizeof(*ids));
    if (!ids) exit(1);
    berth_value_id values[2];
    for (uint32_t i = 0; i < functions; ++i) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        start_function(b, name, values);
        for (uint32_t k = 0; k < 100; ++k) values[k & 1] = add(b, BERTH_OP_ADD, values, 2);
        if (i % 7 == 0) values[0] = annotate(b, values[0], "cpu:0");
        berth_graph_set_results(b->module, b->function, values, 1);
        ids[i] = b->function;
    }
    start_function(b, "main", values);
    for (uint32_t i = 0; i < 2 * functions; ++i) values[i & 1] = call(b, ids[i / 2], values);
    berth_graph_set_results(b->module, b->function, values, 1);
    free(ids);
}

// ---- measuring ----------------------------------------------------------------------------------

static void after_stage(void *user, const berth_plan_stage *stage) {
    bench *b = user;
    double now_s = cpu_seconds(), ms = (now_s - b->last_s) * 1e3;
    printf(", \"%s_ms\": %.2f", stage->name, ms);
    static const char *const parts[] = {"nodes", "hard", "pins", "support", "place"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        if (strcmp(parts[i], stage->name) == 0) b->constraints_ms += ms;
    b->last_s = cpu_seconds();
}

static berth_status run(void *user) {
    bench *b = user;
    int64_t dims[1] = {4};
    b->type = berth_type_tensor(b->module, BERTH_DTYPE_F32, 1, dims);
    if (strcmp(b->shape, "chain") == 0) make_chain(b);
    if (strcmp(b->shape, "dag") == 0) make_dag(b);
    if (strcmp(b->shape, "calls") == 0) make_calls(b);
    size_t before = berth_arena_used_bytes(b->module->arena);
    printf("{\"shape\": \"%s\", \"operations\": %u", b->shape, b->count);
    double start_s = b->last_s = cpu_seconds();
    must(berth_plan_module(b->module, &b->options, &b->plan));
    double total_ms = (cpu_seconds() - start_s) * 1e3;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    size_t bytes = berth_arena_used_bytes(b->module->arena) - before;
    printf(", \"constraints_ms\": %.2f, \"total_ms\": %.2f, \"bytes_per_operation\": %.0f, "
           "\"process_peak_kib\": %ld, \"copies\": %u}\n",
           b->constraints_ms, total_ms, (double)bytes / b->count, usage.ru_maxrss,
           b->plan->copy_count);
    return BERTH_OK;
}

static double time_ns(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id op, uint32_t device) {
    (void)user;
    (void)module;
    (void)function;
    return 1e3 * (1 + (op + device) % 7);
}

static void measure(const char *shape, uint32_t count) {
    static const char *const devices =
        "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"opencl\"}}, {\"target\": "
        "{\"kind\": \"opencl\"}}, {\"target\": {\"kind\": \"cpu\"}}]}";
    berth_arena *arena = NULL;
    must(berth_arena_create(berth_allocator_system(), &arena));
    berth_multi_target *target = NULL;
    must(berth_target_parse(arena, devices, NULL, &target));
    bench b = {.module = berth_module_create(arena, "bench"),
               .shape = shape,
               .count = count,
               .random = 1,
               .options = {.target = target,
                           .cost = {.time_ns = time_ns},
                           .explain = true,
                           .after_stage = after_stage}};
    b.options.stage_user = &b;
    must(berth_arena_try(arena, run, &b));
    berth_arena_destroy(arena);
}

int main(int argc, char **argv) {
    static const char *const shapes[] = {"chain", "dag", "calls"};
    static const char *const counts[] = {"10000", "100000", "200000"};
    int count = argc > 1 ? argc - 1 : 3;
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
        for (int i = 0; i < count; ++i) {
            long number = strtol(argc > 1 ? argv[i + 1] : counts[i], NULL, 10);
            if (number < 1000 || number > 100000000) {
                fprintf(stderr, "bench_planner: COUNT is a number of at least 1000\n");
                return 2;
            }
            measure(shapes[s], (uint32_t)number);
        }
    }
    return 0;
}
