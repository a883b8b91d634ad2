// Budgets of memories: what runs within one computes the same bytes as what runs without, and never
// has more than it allows. Random networks of products and sums on the CPU and through OpenCL.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>

#include "artifact/file.h"
#include "compiler/compile.h"
#include "compiler/toolchain/toolchain.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "ir/graph/graph.h"
#include "tests/check.h"
#include "tests/device_is_here.h"

enum {
    most_values = 64,
    seed_count = 8,
    record_bytes = 256 << 10,  // what a session keeps beside what its devices have, at most
};

typedef enum network_kind { RANDOM, LARGE, SKIPS, JUMPS } network_kind;

typedef struct network {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    uint64_t seed, state;
    int64_t rows;
    network_kind kind;
    berth_value_id values[most_values];
    int64_t widths[most_values];
    uint32_t count;
} network;

static uint32_t draw(network *n, uint32_t bound) {
    n->state = n->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(n->state >> 33) % bound;
}

static berth_value_id weights(network *n, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(n->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&tensor, n->state);
    return berth_graph_constant(n->module, n->main, 0, &tensor, 0);
}

static berth_value_id add(network *n, berth_op_kind kind, berth_value_id a, berth_value_id b) {
    berth_op_id op = berth_graph_add_op(n->module, n->main, 0, kind, (berth_value_id[]){a, b},
                                        b == BERTH_NONE ? 1 : 2, 1, 0);
    return berth_graph_get(n->module, n->main)->ops.data[op].outputs[0];
}

static void keep(network *n, berth_value_id value, int64_t width) {
    n->values[n->count] = value;
    n->widths[n->count++] = width;
}

// A chain of products, some with weights that were used before, with sums and activations between.
static void build(network *n) {
    static const int64_t sizes[] = {10, 128, 203, 256};
    berth_value_id shared = BERTH_NONE;
    n->module = berth_module_create(n->arena, "network");
    n->main = berth_graph_create(n->module, "main", 0);
    n->state = n->seed * 977 + 5;
    n->rows = n->seed % 2 ? 1 : 3 + draw(n, 6);
    int64_t width = 128;
    berth_type_id type =
        berth_type_tensor(n->module, BERTH_DTYPE_F32, 2, (int64_t[]){n->rows, width});
    keep(n, berth_graph_add_param(n->module, n->main, "x", type), width);
    for (int i = 0; i < 14; ++i) {
        berth_value_id last = n->values[n->count - 1];
        int64_t next = sizes[draw(n, 4)];
        if (width == 128 && draw(n, 3) == 0) {
            if (shared == BERTH_NONE) shared = weights(n, 2, (int64_t[]){128, 128});
            last = add(n, BERTH_OP_MATMUL, last, shared);
            next = 128;
        } else {
            last = add(n, BERTH_OP_MATMUL, last, weights(n, 2, (int64_t[]){width, next}));
        }
        if (draw(n, 2)) last = add(n, BERTH_OP_ADD, last, weights(n, 1, &next));
        last = add(n, BERTH_OP_TANH, last, BERTH_NONE);
        for (uint32_t k = 0; k < n->count; ++k)
            if (n->widths[k] == next && draw(n, 3) == 0) {
                last = add(n, BERTH_OP_ADD, last, n->values[k]);
                break;
            }
        keep(n, last, next);
        width = next;
    }
    berth_value_id result = n->values[n->count - 1];
    berth_graph_set_results(n->module, n->main, &result, 1);
    berth_graph_get(n->module, n->main)->values.data[result].name =
        berth_module_intern(n->module, "y");
}

// A product with 9 or 10 MiB of weights, more than the budgets below: its columns are read in parts.
static void build_large(network *n) {
    n->module = berth_module_create(n->arena, "large");
    n->main = berth_graph_create(n->module, "main", 0);
    n->state = n->seed;
    n->rows = (int64_t)n->seed;
    int64_t columns = n->seed % 2 ? 2600 : 2305;  // whole parts and 296 columns; and one column
    berth_type_id type =
        berth_type_tensor(n->module, BERTH_DTYPE_F32, 2, (int64_t[]){n->rows, 128});
    berth_value_id x = berth_graph_add_param(n->module, n->main, "x", type);
    x = add(n, BERTH_OP_MATMUL, x, weights(n, 2, (int64_t[]){128, 1024}));
    x = add(n, BERTH_OP_MATMUL, x, weights(n, 2, (int64_t[]){1024, columns}));
    x = add(n, BERTH_OP_ADD, x, weights(n, 1, (int64_t[]){columns}));
    x = add(n, BERTH_OP_RELU, x, BERTH_NONE);
    x = add(n, BERTH_OP_MATMUL, x, weights(n, 2, (int64_t[]){columns, 64}));
    berth_graph_set_results(n->module, n->main, &x, 1);
    berth_graph_get(n->module, n->main)->values.data[x].name = berth_module_intern(n->module, "y");
}

// A chain of products of 256 rows; the first results are wanted again at the end, in reverse.
static void build_skips(network *n) {
    enum { skips = 4, between = 5 };
    n->module = berth_module_create(n->arena, "skips");
    n->main = berth_graph_create(n->module, "main", 0);
    n->state = n->seed;
    n->rows = 256;
    berth_type_id type =
        berth_type_tensor(n->module, BERTH_DTYPE_F32, 2, (int64_t[]){n->rows, 128});
    berth_value_id x = berth_graph_add_param(n->module, n->main, "x", type), kept[skips];
    for (int i = 0; i < 2 * skips + between; ++i) {
        x = add(n, BERTH_OP_MATMUL, x, weights(n, 2, (int64_t[]){128, 128}));
        x = add(n, BERTH_OP_TANH, x, BERTH_NONE);
        if (i < skips) kept[i] = x;
        if (i >= skips + between) x = add(n, BERTH_OP_ADD, x, kept[2 * skips + between - 1 - i]);
    }
    berth_graph_set_results(n->module, n->main, &x, 1);
    berth_graph_get(n->module, n->main)->values.data[x].name = berth_module_intern(n->module, "y");
}

// Values of several widths, each a product or a sum of earlier ones, often of ones from long before: many
// wait while others are computed.
static void build_jumps(network *n) {
    static const int64_t sizes[] = {64, 128};
    berth_value_id sum = BERTH_NONE;
    n->module = berth_module_create(n->arena, "jumps");
    n->main = berth_graph_create(n->module, "main", 0);
    n->state = n->seed * 31 + 11;
    n->rows = 128 + 64 * draw(n, 3);
    berth_type_id type =
        berth_type_tensor(n->module, BERTH_DTYPE_F32, 2, (int64_t[]){n->rows, 128});
    keep(n, berth_graph_add_param(n->module, n->main, "x", type), 128);
    for (int i = 0; i < 10; ++i) {
        uint32_t from = draw(n, 3) ? n->count - 1 : draw(n, n->count);
        int64_t width = sizes[draw(n, 2)];
        berth_value_id value = add(n, BERTH_OP_MATMUL, n->values[from],
                                   weights(n, 2, (int64_t[]){n->widths[from], width}));
        uint32_t other = draw(n, n->count);
        if (n->widths[other] == width) value = add(n, BERTH_OP_ADD, value, n->values[other]);
        keep(n, add(n, draw(n, 2) ? BERTH_OP_TANH : BERTH_OP_RELU, value, BERTH_NONE), width);
    }
    for (uint32_t k = n->count; k-- > 1;) {  // wanted at the end, the last ones first
        if (n->widths[k] != 128) continue;
        if (sum == BERTH_NONE) sum = n->values[k];
        sum = add(n, BERTH_OP_MATMUL, sum, weights(n, 2, (int64_t[]){128, 128}));
        sum = add(n, BERTH_OP_ADD, sum, n->values[k]);
    }
    sum = add(n, BERTH_OP_ADD, sum, n->values[0]);
    berth_graph_set_results(n->module, n->main, &sum, 1);
    berth_graph_get(n->module, n->main)->values.data[sum].name =
        berth_module_intern(n->module, "y");
}

static berth_status build_body(void *user) {
    static void (*const builders[])(network *) = {build, build_large, build_skips, build_jumps};
    network *n = user;
    builders[n->kind](n);
    return BERTH_OK;
}

typedef struct bench {
    berth_arena *arena;
    const char *target;
    const char *device;  // whose memory is limited
    char folder[64];
    uint64_t seed;
    network_kind kind;
    berth_tensor unlimited;
    uint64_t whole_bytes;
} bench;

// Compiles the network for a budget (0 = none).
static berth_status compile_within(bench *b, uint64_t budget, const berth_program **out_program,
                                   const berth_memory_report **out_report, int64_t *out_rows) {
    network *n = berth_arena_new(b->arena, network);
    n->arena = b->arena;
    n->seed = b->seed;
    n->kind = b->kind;
    assert_ok(berth_arena_try(b->arena, build_body, n));
    berth_multi_target *target = NULL;
    char text[64];
    snprintf(text, sizeof(text), "%s=%llu", b->device, (unsigned long long)budget);
    berth_target_options options = {.budgets = budget ? text : NULL};
    assert_ok(berth_target_parse(b->arena, b->target, &options, &target));
    berth_compile_result result;
    berth_status status = berth_compile(
        n->module, &(berth_compile_options){.target = target, .cache_folder = b->folder}, &result);
    *out_program = result.program;
    *out_report = result.memory;
    *out_rows = n->rows;
    return status;
}

// The device's measured peak; what the session's allocator has, for the cpu.
static uint64_t run(bench *b, const berth_program *program, int64_t rows, uint64_t budget,
                    berth_tensor *out) {
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_session *session = NULL;
    berth_tensor x = berth_tensor_create(b->arena, BERTH_DTYPE_F32, 2, (int64_t[]){rows, 128});
    berth_tensor_fill_random(&x, b->seed + 1);
    assert_ok(berth_session_open(berth_counting_allocator_get(&counting), program,
                                 &(berth_session_options){.thread_count = 2}, &session));
    for (int i = 0; i < 3; ++i) {  // later runs find what earlier ones left
        assert_ok(berth_session_set_input(session, "x", &x));
        assert_ok(berth_session_run(session, -1));
        const berth_tensor *y = berth_session_output(session, 0);
        if (i == 0) *out = berth_tensor_create(b->arena, y->dtype, y->rank, y->dims);
        if (i == 0) memcpy(out->data, y->data, berth_tensor_size_bytes(y));
        cr_assert_arr_eq(out->data, y->data, berth_tensor_size_bytes(y), "run %d", i);
    }
    berth_session_report report;
    berth_session_get_report(session, &report);
    uint64_t peak = 0;
    for (uint32_t d = 0; d < report.device_count; ++d)
        if (strcmp(report.devices[d].kind, b->device) == 0) peak = report.devices[d].peak_bytes;
    if (budget && strcmp(b->device, "cpu") == 0)
        cr_expect_leq((uint64_t)atomic_load(&counting.live_bytes), budget + record_bytes);
    berth_session_close(session);
    return peak;
}

// To the bit, on every device.
static void expect_same(const bench *b, const berth_tensor *got, uint64_t budget) {
    uint64_t size_bytes = berth_tensor_size_bytes(got);
    cr_assert_eq(size_bytes, berth_tensor_size_bytes(&b->unlimited));
    cr_expect_arr_eq(got->data, b->unlimited.data, size_bytes, "%s, seed %llu, budget %llu",
                     b->device, (unsigned long long)b->seed, (unsigned long long)budget);
}

// The smallest budget that the refusal of one byte names.
static uint64_t smallest_budget(bench *b) {
    const berth_program *program;
    const berth_memory_report *report;
    int64_t rows;
    berth_status status = compile_within(b, 1, &program, &report, &rows);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                 berth_status_message(status));
    const char *message = berth_status_message(status);
    cr_assert_not_null(strstr(message, "no smaller one would do"), "%s", message);
    cr_assert_not_null(strstr(message, "The largest values at the peak: "), "%s", message);
    unsigned long long bytes = 0;
    cr_assert_eq(sscanf(strstr(message, " ("), " (%llu bytes)", &bytes), 1, "%s", message);
    berth_status_free(status);
    status = compile_within(b, bytes - 1, &program, &report, &rows);
    cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%llu", bytes - 1);
    berth_status_free(status);
    return bytes;
}

static void run_within(bench *b, uint64_t budget, bool streams) {
    const berth_program *program;
    const berth_memory_report *report;
    int64_t rows;
    assert_ok(compile_within(b, budget, &program, &report, &rows));
    cr_expect(!streams || report->streamed_count == 1, "budget %llu", (unsigned long long)budget);
    berth_tensor y;
    uint64_t peak = run(b, program, rows, budget, &y);
    cr_expect_leq(peak, budget, "seed %llu", (unsigned long long)b->seed);
    cr_expect_gt(peak, 0);
    expect_same(b, &y, budget);
    // The same from a file, out of which constants are read.
    char path[96];
    snprintf(path, sizeof(path), "%s/p.berth", b->folder);
    assert_ok(berth_program_write(program, path));
    assert_ok(berth_program_read(b->arena, path, NULL, &program));
    cr_expect_leq(run(b, program, rows, budget, &y), budget);
    expect_same(b, &y, budget);
    remove(path);
}

static void begin(bench *b) {
    const berth_program *program;
    const berth_memory_report *report;
    int64_t rows;
    snprintf(b->folder, sizeof(b->folder), "/tmp/berth-budget-XXXXXX");
    cr_assert(mkdtemp(b->folder));
    assert_ok(berth_arena_create(berth_allocator_system(), &b->arena));
    assert_ok(compile_within(b, 0, &program, &report, &rows));
    cr_expect_eq(report->streamed_count, 0);
    b->whole_bytes = run(b, program, rows, 0, &b->unlimited);
}

static void end(bench *b) {
    berth_cache_stats stats;
    berth_status_ignore(berth_toolchain_cache_clear(b->folder, &stats));
    remove(b->folder);
    berth_arena_destroy(b->arena);
}

static void check_budgets(uint64_t seed, const char *target, const char *device) {
    bench b = {.target = target, .device = device, .seed = seed};
    begin(&b);
    uint64_t least = smallest_budget(&b);
    cr_assert_lt(least, b.whole_bytes / 2, "%llu of %llu", (unsigned long long)least,
                 (unsigned long long)b.whole_bytes);
    run_within(&b, least, true);
    network dice = {.state = seed + 7};
    for (int i = 0; i < 3; ++i)
        run_within(&b, least + draw(&dice, (uint32_t)(b.whole_bytes - least)), false);
    end(&b);
}

// One row, where parts are bytes in a row, and several. Through OpenCL for a GPU's forms, where the order of a sum
// depends on how many results there are.
static void check_large(const char *target, const char *device) {
    for (uint64_t rows = 1; rows <= 5; rows += rows == 1 ? 1 : 3) {
        bench b = {.target = target, .device = device, .seed = rows, .kind = LARGE};
        begin(&b);
        cr_assert_gt(b.whole_bytes, 9 << 20);
        run_within(&b, 6 << 20, true);
        end(&b);
    }
}

static int seeds[seed_count];

static struct criterion_test_params all_seeds(void) {
    for (int i = 0; i < seed_count; ++i) seeds[i] = i;
    return cr_make_param_array(int, seeds, seed_count);
}

ParameterizedTestParameters(budget, random_networks_on_the_cpu) {
    return all_seeds();
}

ParameterizedTest(int *index, budget, random_networks_on_the_cpu, .timeout = 300) {
    check_budgets((uint64_t)*index, "cpu", "cpu");
}

ParameterizedTestParameters(budget, random_networks_through_opencl) {
    return all_seeds();
}

ParameterizedTest(int *index, budget, random_networks_through_opencl, .timeout = 300) {
    if (!device_is_here("opencl", 1)) cr_skip("there is no OpenCL device");
    check_budgets((uint64_t)*index, "opencl -host=cpu", "opencl");
}

Test(budget, weights_larger_than_the_budget, .timeout = 300) {
    check_large("cpu", "cpu");
    if (!device_is_here("opencl", 1)) cr_skip("there is no OpenCL device");
    check_large("opencl -host=cpu", "opencl");
}

// What of a kind of network a device's budgets change, between the smallest and none.
static void check_moves(const char *target, const char *device, network_kind kind, uint64_t seed,
                        uint32_t *out_moved, uint32_t *out_again) {
    bench b = {.target = target, .device = device, .seed = seed, .kind = kind};
    const berth_program *program;
    const berth_memory_report *report;
    int64_t rows;
    network dice = {.state = seed + 7};
    begin(&b);
    uint64_t least = smallest_budget(&b);
    for (int i = 0; i < 3; ++i) {
        uint64_t budget = i ? least + draw(&dice, (uint32_t)(b.whole_bytes - least)) : least;
        run_within(&b, budget, i == 0);
        assert_ok(compile_within(&b, budget, &program, &report, &rows));
        if (report->streamed_count == 0) continue;
        const berth_memory_streamed *fit = &report->streamed[0];
        *out_moved += fit->spilled_count;
        *out_again += fit->recomputed_count;
        cr_expect_geq(fit->recomputed_steps, fit->recomputed_count);
        cr_expect_eq(fit->recompute_ns > 0, fit->recomputed_count > 0);
        uint32_t named = 0;
        for (uint32_t s = 0; s < program->step_count; ++s)
            named += program->steps[s].kind == BERTH_STEP_DISPATCH &&
                     strstr(program->steps[s].name, " again") != NULL;
        cr_expect_eq(named, fit->recomputed_steps, "%u of %u", named, fit->recomputed_steps);
    }
    end(&b);
}

Test(budget, values_are_computed_again_on_the_cpu, .timeout = 300) {
    uint32_t moved = 0, again = 0;
    for (uint64_t seed = 0; seed < seed_count; ++seed)
        check_moves("cpu", "cpu", JUMPS, seed, &moved, &again);
    cr_expect_eq(moved, 0);  // beside a cpu's memory there is none to wait in
    cr_expect_gt(again, seed_count);
}

Test(budget, values_are_moved_or_computed_again_through_opencl, .timeout = 300) {
    uint32_t moved = 0, again = 0;
    if (!device_is_here("opencl", 1)) cr_skip("there is no OpenCL device");
    for (uint64_t seed = 0; seed < 2; ++seed)
        check_moves("opencl -host=cpu", "opencl", JUMPS, seed, &moved, &again);
    cr_expect_gt(moved + again, 0);
}

// Of four values of 128 KiB that wait, a memory with room for two or three holds none at its fullest.
Test(budget, values_wait_in_host_memory, .timeout = 300) {
    enum { value_bytes = 256 * 128 * 4 };
    if (!device_is_here("opencl", 1)) cr_skip("there is no OpenCL device");
    bench b = {.target = "opencl -host=cpu", .device = "opencl", .seed = 3, .kind = SKIPS};
    const berth_program *program;
    const berth_memory_report *report;
    int64_t rows;
    begin(&b);
    uint64_t least = smallest_budget(&b);
    cr_expect_lt(least, 4 * value_bytes);
    for (uint64_t budget = least; budget < 6 * value_bytes; budget += value_bytes) {
        run_within(&b, budget, true);
        assert_ok(compile_within(&b, budget, &program, &report, &rows));
        cr_expect(budget > least || report->streamed[0].spilled_count > 0);
        cr_expect_eq(report->streamed[0].spilled_bytes,
                     report->streamed[0].spilled_count * (uint64_t)value_bytes);
    }
    end(&b);
}
