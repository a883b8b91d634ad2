// Strategies of placement in the pipeline: optima worked out by hand and by enumeration, what every
// plan states about itself, and that a placed module computes what it did.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/pass.h"
#include "tests/planner/support.h"

#define NO NAN  // unsupported

// Times in microseconds on device 0, 1, 2 of the operation whose first result has the name.
typedef struct cost_row {
    const char *name;
    double us[3];
} cost_row;

enum { row_limit = 8 };

static const cost_row *row_of(const void *user, const berth_module *module, berth_func_id function,
                              berth_op_id op) {
    const berth_graph *graph = berth_graph_get(module, function);
    const cost_row *rows = user;
    if (!graph->ops.data[op].output_count) return NULL;
    berth_str_id name = graph->values.data[graph->ops.data[op].outputs[0]].name;
    for (int i = 0; i < row_limit && rows[i].name; ++i)
        if (strcmp(rows[i].name, berth_module_str(module, name)) == 0) return &rows[i];
    return NULL;
}

static double cost_ns(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id op, uint32_t device) {
    const cost_row *row = row_of(user, module, function, op);
    return row && !isnan(row->us[device]) ? row->us[device] * 1e3 : 0;
}

static const char *cost_unsupported(void *user, const berth_module *module, berth_func_id function,
                                    berth_op_id op, uint32_t device, berth_arena *arena) {
    (void)arena;
    const cost_row *row = row_of(user, module, function, op);
    return row && isnan(row->us[device]) ? "not in its instruction set" : NULL;
}

static berth_plan_options options_of(const berth_multi_target *target, const cost_row *rows,
                                     const char *strategy, const char *objective) {
    union {
        const cost_row *constant;
        void *mutable_pointer;
    } user = {.constant = rows};
    return (berth_plan_options){
        .target = target,
        .cost = {.unsupported = cost_unsupported, .time_ns = cost_ns, .user = user.mutable_pointer},
        .strategy = strategy,
        .objective = objective,
        .host_bound = true,
        .explain = true};
}

// A fast device g behind a link, the host c. 1 KiB over LATENCY 1000 takes 2.024 us.
#define LINKED(LATENCY, CAPACITY)                                                                  \
    "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["                         \
    "{\"name\": \"vram\", \"reached_by\": [\"g\"], \"capacity_bytes\": " CAPACITY "},"             \
    "{\"name\": \"ram\", \"reached_by\": [\"c\"], \"capacity_bytes\": 16384}], \"links\": ["       \
    "{\"from\": \"ram\", \"to\": \"vram\", \"bandwidth_bytes_per_s\": 1e9, "                       \
    "\"latency_ns\": " LATENCY ", \"duplex\": true}]}"
#define SHARED                                                                                     \
    "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["                         \
    "{\"name\": \"ram\", \"reached_by\": [\"g\", \"c\"], \"capacity_bytes\": 1000000}]}"
// Two devices, each far from the host, with a link between them.
#define PEERS                                                                                      \
    "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"h\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["                         \
    "{\"name\": \"one\", \"reached_by\": [\"g\"], \"capacity_bytes\": 1000000},"                   \
    "{\"name\": \"two\", \"reached_by\": [\"h\"], \"capacity_bytes\": 1000000},"                   \
    "{\"name\": \"ram\", \"reached_by\": [\"c\"], \"capacity_bytes\": 1000000}], \"links\": ["     \
    "{\"from\": \"ram\", \"to\": \"one\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 9000},"  \
    "{\"from\": \"ram\", \"to\": \"two\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 9000},"  \
    "{\"from\": \"one\", \"to\": \"two\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 500}]}"
#define T ": f32[256]"
#define CHAIN "%a = relu(%x) %b = neg(%a) %d = exp(%b) return %d }"
#define NUMBERS "(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8)} "
// 64 bytes each
#define WEIGHTS                                                                                    \
    "%v = constant() {value = f32[2,8] " NUMBERS "%w = constant() {value = f32[8,2] " NUMBERS

typedef struct hand_case {
    const char *what, *text, *target;
    cost_row rows[row_limit];
    const char *objective;
    double value;        // microseconds, or the share
    const char *places;  // NULL = several are as good
} hand_case;

static const hand_case hand_cases[] = {
    {"a fast device behind a cheap link",
     "graph @main(%x" T ") { " CHAIN,
     LINKED("1000", "1000000"),
     {{"a", {10, 100}}, {"b", {10, 100}}, {"d", {10, 100}}},
     "latency",
     2.024 + 30 + 2.024,
     "@main x:C x>G a:G b:G d:G d>C R:C\n"},
    {"a fast device behind an expensive link",
     "graph @main(%x" T ") { " CHAIN,
     LINKED("1000000", "1000000"),
     {{"a", {10, 100}}, {"b", {10, 100}}, {"d", {10, 100}}},
     "latency",
     300,
     "@main x:C a:C b:C d:C R:C\n"},
    {"two branches in a shared memory",
     "graph @main(%x" T ") { %a = relu(%x) %b = neg(%x) %d = add(%a, %b) return %d }",
     SHARED,
     {{"a", {10, 10}}, {"b", {10, 10}}, {"d", {10, 10}}},
     "latency",
     20,
     NULL},
    {"an operation that the fast device cannot run",
     "graph @main(%x" T ") { " CHAIN,
     LINKED("1000", "1000000"),
     {{"a", {10, 1000}}, {"b", {NO, 5}}, {"d", {10, 1000}}},
     "latency",
     2.024 + 10 + 2.024 + 5 + 2.024 + 10 + 2.024,
     "@main x:C x>G a:G a>C b:C b>G d:G d>C R:C\n"},
    {"an operation that is held on the slow device",
     "graph @main(%x" T ") { %a = relu(%x) %b = neg(%a) on cpu:0 %d = exp(%b) return %d }",
     LINKED("1000", "1000000"),
     {{"a", {10, 1000}}, {"b", {10, 50}}, {"d", {10, 1000}}},
     "latency",
     2.024 + 10 + 2.024 + 50 + 2.024 + 10 + 2.024,
     "@main x:C x>G a:G a>C b:C b>G d:G d>C R:C\n"},
    {"two operations that must share a device",  // apart: 40
     "graph @main(%x" T ") { %a = relu(%x) %b = neg(%x) %t = tuple(%a, %b) "
     "%i = tuple_get(%t) {index = 0} %j = tuple_get(%t) {index = 1} %d = add(%i, %j) return %d }",
     LINKED("1000", "1000000"),
     {{"a", {10, 30}}, {"b", {100, 30}}, {"d", {10, 10}}},
     "latency",
     70,
     "@main x:C a:C b:C t:C i:C j:C d:C R:C\n"},
    {"constants that do not both fit",  // values of 8, 32 and 8 bytes
     "graph @main(%x: f32[1,2]) { " WEIGHTS "%a = matmul(%x, %v) "
     "%b = matmul(%a, %w) return %b }",
     LINKED("1000", "110"),
     {{"a", {10, 50}}, {"b", {10, 50}}},
     "latency",
     1.008 + 10 + 1.032 + 50,
     NULL},
    {"a pipeline of two stages",
     "graph @main(%x" T ") { %a = relu(%x) %b = neg(%a) %d = exp(%b) %e = abs(%d) return %e }",
     SHARED,
     {{"a", {10, 10}}, {"b", {10, 10}}, {"d", {10, 10}}, {"e", {10, 10}}},
     "throughput",
     20,
     NULL},
    {"constants spread evenly",
     "graph @main(%x: f32[1,2]) { " WEIGHTS "%a = matmul(%x, %v) "
     "%b = matmul(%a, %w) return %b }",
     LINKED("1000", "16384"),
     {{"a", {10, 50}}, {"b", {10, 50}}},
     "memory",
     64 / 16384.0,
     NULL},
    {"a direct link",  // 1 KiB takes 10.024 us to the host, 1.524 us to the peer
     "graph @main(%x" T ") { " CHAIN,
     PEERS,
     {{"a", {10, 100, 100}}, {"b", {100, 10, 100}}, {"d", {10, 100, 100}}},
     "latency",
     10.024 + 10 + 1.524 + 10 + 1.524 + 10 + 10.024,
     "@main x:C x>G a:G a>H b:H b>G d:G d>C R:C\n"},
};
enum { hand_case_count = sizeof(hand_cases) / sizeof(hand_cases[0]), capacity_case = 6 };

// What every plan must be, whoever made it.
static void check_plan(const berth_module *module, const berth_multi_target *target,
                       const berth_plan *plan) {
    cr_assert(plan->valued);
    cr_assert(plan->reproducible);
    cr_assert_leq(plan->lower_bound, plan->value);
    cr_assert_float_eq(
        plan->gap, plan->value > 0 ? (plan->value - plan->lower_bound) / plan->value : 0, 1e-12);
    cr_assert_eq(plan->proven, plan->lower_bound == plan->value);
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        const berth_plan_entry *entry = &plan->entries[i];
        uint32_t device = berth_plan_device_of(module, target, graph->ops.data[entry->op].device);
        cr_assert_eq(device, entry->device);
        if (berth_op_has(graph->ops.data[entry->op].kind, BERTH_TRAIT_STRUCTURE)) continue;
        cr_assert_eq(entry->rejected_count, target->device_count - 1);
        for (uint32_t r = 0; r < entry->rejected_count; ++r) {
            cr_assert_neq(entry->rejected[r].device, entry->device);
            cr_assert_not_null(entry->rejected[r].reason);
            // One move away from an optimum nothing is better.
            if (plan->proven && !isnan(entry->rejected[r].delta) &&
                !strstr(entry->rejected[r].reason, "placed here"))
                cr_assert_geq(entry->rejected[r].delta, -1e-6, "%s", entry->rejected[r].reason);
        }
    }
}

static void check_values(const char *text, const berth_module *planned) {
    berth_arena *arena = new_arena();
    const berth_module *plain = parse_module(arena, text);
    const berth_module *modules[] = {plain, planned};
    berth_tensor given = {0}, got[2];
    for (int i = 0; i < 2; ++i) {
        berth_func_id main = berth_module_find_function(modules[i], "main");
        const berth_graph *graph = berth_graph_get(modules[i], main);
        berth_value_id x = graph->regions.data[0].params.data[0];
        const berth_type *type = berth_type_get(modules[i], graph->values.data[x].type);
        if (i == 0) {
            given = berth_tensor_create(arena, BERTH_DTYPE_F32, type->rank, type->dims);
            berth_tensor_fill_random(&given, 5);
        }
        require(berth_eval_function(modules[i], main, &given, 1, &got[i], 1, arena));
    }
    cr_assert(berth_tensor_same_shape(&got[0], &got[1]));
    cr_assert_eq(memcmp(got[0].data, got[1].data, berth_tensor_size_bytes(&got[0])), 0);
    berth_arena_destroy(arena);
}

// On g, where the rules have it, the chain takes 304 us with its copies. The host's 303 us are no
// reason to go there, its 270 us are.
Test(strategies, small_gains_change_nothing) {
    static const struct {
        double host_us;
        const char *places;
    } cases[] = {{101, "@main x:C x>G a:G b:G d:G d>C R:C\n"}, {90, "@main x:C a:C b:C d:C R:C\n"}};
    for (int i = 0; i < 2; ++i) {
        berth_arena *arena = new_arena();
        berth_multi_target *target = parse_target(arena, LINKED("1000", "1000000"));
        const double us = cases[i].host_us;
        const cost_row rows[row_limit] = {{"a", {100, us}}, {"b", {100, us}}, {"d", {100, us}}};
        berth_plan_options options = options_of(target, rows, "auto", "latency");
        berth_module *module = parse_module(arena, "graph @main(%x" T ") { " CHAIN);
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        cr_expect_str_eq(show_module(module, target), cases[i].places, "%s",
                         show_module(module, target));
        berth_arena_destroy(arena);
    }
}

static bool ten_us(void *user, uint32_t from, uint32_t to, uint64_t size_bytes, double *out_ns) {
    (void)user;
    (void)size_bytes;
    *out_ns = 10000;
    return from != to;
}

// Two devices of one memory, 10 us apart. %d on the other one, beside %b, saves its time; but c is kept
// from its work while it hands over, for up to 20 us.
Test(strategies, handing_over_takes_time_of_both) {
    static const char two[] =
        "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["
        "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"
        "{\"name\": \"g\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
        "{\"name\": \"ram\", \"reached_by\": [\"c\", \"g\"], \"capacity_bytes\": 1000000}]}";
    static const struct {
        double us;
        bool split;
    } cases[] = {{15, false}, {60, true}};
    for (int i = 0; i < 2; ++i) {
        berth_arena *arena = new_arena();
        berth_multi_target *target = parse_target(arena, two);
        const double us = cases[i].us;
        const cost_row rows[row_limit] = {
            {"a", {100, 100}}, {"b", {100, 100}}, {"d", {us, us}}, {"e", {10, 10}}};
        berth_plan_options options = options_of(target, rows, "auto", "latency");
        options.cost.copy_ns = ten_us;
        berth_module *module =
            parse_module(arena, "graph @main(%x" T ") { %a = relu(%x) %b = neg(%a) %d = exp(%a) "
                                "%e = add(%b, %d) return %e }");
        berth_plan *plan = NULL;
        require(plan_with(module, &options, &plan));
        cr_expect_eq(strchr(show_module(module, target), 'G') != NULL, cases[i].split, "%g us: %s",
                     us, show_module(module, target));
        berth_arena_destroy(arena);
    }
}

ParameterizedTestParameters(strategies, by_hand) {
    static int indices[hand_case_count];
    for (int i = 0; i < hand_case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, hand_case_count);
}

ParameterizedTest(int *index, strategies, by_hand) {
    const hand_case *k = &hand_cases[*index];
    berth_arena *arena = new_arena();
    berth_multi_target *target = parse_target(arena, k->target);
    berth_plan_options options = options_of(target, k->rows, "auto", k->objective);
    berth_module *module = parse_module(arena, k->text);
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    bool share = strcmp(k->objective, "memory") == 0;
    cr_expect_float_eq(plan->value, share ? k->value : k->value * 1e3, 1e-6, "%s: %g, not %g",
                       k->what, plan->value, k->value);
    cr_expect_str_eq(plan->unit, share ? "of capacity" : "ns");
    cr_expect(plan->proven, "%s: bound %g of %g", k->what, plan->lower_bound, plan->value);
    if (k->places)
        cr_expect_str_eq(show_module(module, target), k->places, "%s: %s", k->what,
                         show_module(module, target));
    check_plan(module, target, plan);
    check_values(k->text, module);
    // The same again, from the text.
    berth_module *again = parse_module(arena, k->text);
    berth_plan *second = NULL;
    require(plan_with(again, &options, &second));
    cr_expect_str_eq(print_module(module), print_module(again));
    plan_twice(again, &options);
    berth_arena_destroy(arena);
}

// Every strategy's plan is well-formed, states what is true of it, and computes the same.
Test(strategies, all_of_them) {
    const char *name = NULL, *doc = NULL;
    int plans = 0;
    for (int c = 0; c < hand_case_count; ++c) {
        const hand_case *k = &hand_cases[c];
        for (uint32_t s = 0; berth_plan_strategy_at(s, &name, &doc); ++s) {
            berth_arena *arena = new_arena();
            berth_multi_target *target = parse_target(arena, k->target);
            berth_plan_options options = options_of(target, k->rows, name, k->objective);
            berth_module *module = parse_module(arena, k->text);
            berth_plan *plan = NULL;
            berth_status status = plan_with(module, &options, &plan);
            if (status) {
                cr_assert(strstr(berth_status_message(status), "does not apply") ||
                              berth_status_code(status) == BERTH_OUT_OF_RANGE,
                          "%s, %s: %s", name, k->what, berth_status_message(status));
                cr_assert_str_neq(name, "auto");
                berth_status_free(status);
            } else {
                double unit = strcmp(plan->unit, "ns") == 0 ? 1e3 : 1;
                cr_assert_str_eq(plan->strategy, name);
                // `default` may exceed a memory; the memory plan says so.
                bool may_exceed = strcmp(name, "default") == 0 && c == capacity_case;
                if (!may_exceed) {
                    cr_assert_geq(plan->value, k->value * unit - 1e-6, "%s, %s", name, k->what);
                    check_plan(module, target, plan);
                }
                require(berth_module_verify(module));
                check_values(k->text, module);
                ++plans;
            }
            berth_arena_destroy(arena);
        }
    }
    cr_assert_geq(plans, 4 * hand_case_count);  // default, auto, greedy and one more
}

// ---- enumeration --------------------------------------------------------------------------------

#define THREE                                                                                      \
    "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"h\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["                         \
    "{\"name\": \"one\", \"reached_by\": [\"g\"], \"capacity_bytes\": 1000000},"                   \
    "{\"name\": \"two\", \"reached_by\": [\"h\"], \"capacity_bytes\": 1000000},"                   \
    "{\"name\": \"ram\", \"reached_by\": [\"c\"], \"capacity_bytes\": 1000000}], \"links\": ["     \
    "{\"from\": \"ram\", \"to\": \"one\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 1000},"  \
    "{\"from\": \"ram\", \"to\": \"two\", \"bandwidth_bytes_per_s\": 5e8, \"latency_ns\": 3000}]}"

enum { random_ops = 5, random_modules = 12 };
static const char *const op_names[random_ops] = {"a", "b", "d", "e", "f"};
static const char *const device_names[] = {"opencl:0", "opencl:1", "cpu:0"};

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

// A module of additions of earlier values; `places`: devices, or NULL.
static const char *random_text(berth_arena *arena, uint64_t seed, const uint32_t *places) {
    uint64_t random = seed * 0x9E3779B97F4A7C15u + 1;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "graph @main(%x" T ") { ");
    for (uint32_t i = 0; i < random_ops; ++i) {
        uint32_t first = (uint32_t)(next_random(&random) % (i + 1));
        uint32_t second = (uint32_t)(next_random(&random) % (i + 1));
        berth_strbuf_addf(&text, "%%%s = add(%%%s, %%%s) ", op_names[i],
                          first ? op_names[first - 1] : "x", second ? op_names[second - 1] : "x");
        if (places) berth_strbuf_addf(&text, "on %s ", device_names[places[i]]);
    }
    berth_strbuf_add(&text, "%r = add(%f, %e) ");
    if (places) berth_strbuf_addf(&text, "on %s ", device_names[places[random_ops]]);
    berth_strbuf_add(&text, "return %r }");
    return berth_strbuf_text(&text);
}

static void random_rows(uint64_t seed, cost_row *rows) {
    uint64_t random = seed * 0xD1B54A32D192ED03u + 7;
    for (uint32_t i = 0; i <= random_ops; ++i) {
        rows[i].name = i < random_ops ? op_names[i] : "r";
        for (int d = 0; d < 3; ++d) rows[i].us[d] = (double)(1 + next_random(&random) % 20);
        uint64_t lost = next_random(&random) % 8;
        if (lost < 3) rows[i].us[lost] = NAN;
    }
}

static double value_of(const char *machine, const char *text, const cost_row *rows,
                       const char *strategy, const char *objective, bool must_be_proven) {
    berth_arena *arena = new_arena();
    berth_multi_target *target = parse_target(arena, machine);
    berth_plan_options options = options_of(target, rows, strategy, objective);
    berth_module *module = parse_module(arena, text);
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    double value = INFINITY;
    if (status) {
        cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED, "%s",
                     berth_status_message(status));
        berth_status_free(status);
    } else {
        value = plan->value;
        check_plan(module, target, plan);
        if (must_be_proven) cr_assert(plan->proven);
    }
    berth_arena_destroy(arena);
    return value;
}

static double enumerate(const char *machine, uint64_t seed, const cost_row *rows,
                        const char *objective) {
    double best = INFINITY;
    uint32_t places[random_ops + 1] = {0};
    for (;;) {
        berth_arena *arena = new_arena();
        double value =
            value_of(machine, random_text(arena, seed, places), rows, "default", objective, false);
        best = fmin(best, value);
        berth_arena_destroy(arena);
        uint32_t i = 0;
        for (; i <= random_ops && ++places[i] == 3; ++i) places[i] = 0;
        if (i > random_ops) return best;
    }
}

ParameterizedTestParameters(strategies, enumerated) {
    static int seeds[random_modules];
    for (int i = 0; i < random_modules; ++i) seeds[i] = i + 1;
    return cr_make_param_array(int, seeds, random_modules);
}

ParameterizedTest(int *seed, strategies, enumerated) {
    cost_row rows[row_limit] = {{0}};
    random_rows((uint64_t)*seed, rows);
    const char *objective = *seed % 3 ? "latency" : "throughput";
    const char *machine = *seed % 2 ? THREE : PEERS;
    double best = enumerate(machine, (uint64_t)*seed, rows, objective);
    cr_assert(best < INFINITY);
    berth_arena *arena = new_arena();
    const char *text = random_text(arena, (uint64_t)*seed, NULL);
    double found = value_of(machine, text, rows, "auto", objective, true);
    double rules = value_of(machine, text, rows, "default", objective, false);
    cr_assert_float_eq(found, best, 1e-6, "auto %g, the best of all %g", found, best);
    cr_assert_geq(rules, found - 1e-6);
    berth_arena_destroy(arena);
}

// ---- reasons and errors -------------------------------------------------------------------------

static const char *rejected_reason(const berth_module *module, const berth_plan *plan,
                                   const char *name) {
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        berth_value_id out = graph->ops.data[plan->entries[i].op].outputs[0];
        if (strcmp(berth_module_str(module, graph->values.data[out].name), name) == 0)
            return plan->entries[i].rejected[0].reason;
    }
    cr_assert_fail("no operation %s", name);
    return NULL;
}

Test(strategies, rejected_devices_have_reasons) {
    berth_arena *arena = new_arena();
    const char *pins[] = {"op:Neg=c", NULL};
    berth_target_options target_options = {.pins = pins};
    berth_multi_target *target = NULL;
    require(berth_target_parse(arena, LINKED("1000", "64"), &target_options, &target));
    berth_module *module = parse_module(
        arena, "graph @main(%x: f32[1,2]) { " WEIGHTS "%a = relu(%x) #1 %b = neg(%a) #2 "
               "%d = matmul(%b, %v) #1 %e = exp(%d) #1 %f = abs(%e) #1 return %f }\n"
               "locations {\n #1 = \"m\" node \"n\" op \"N\"\n #2 = \"m\" node \"k\" op "
               "\"Neg\"\n}");
    static const cost_row rows[row_limit] = {
        {"a", {10, 100}}, {"b", {10, 50}}, {"d", {10, 50}}, {"e", {NO, 5}}, {"f", {10, 11}}};
    berth_plan_options options = options_of(target, rows, "auto", NULL);
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    const char *pinned = rejected_reason(module, plan, "b");
    cr_expect(strncmp(pinned, "pinned: op:Neg=c (pin 1 of those given); ", 41) == 0, "%s", pinned);
    // The constants alone would just fit.
    cr_expect_not_null(strstr(rejected_reason(module, plan, "d"), "capacity: "));
    cr_expect_str_eq(rejected_reason(module, plan, "e"), "unsupported: not in its instruction set");
    // exp and abs on the host take 5 + 11; abs on g takes 10 and two copies of 1.032.
    const char *dearer = rejected_reason(module, plan, "f");
    cr_expect_str_eq(dearer, "+1.06 us: computing -1 us, copies +2.06 us");
    berth_arena_destroy(arena);
}

// Devices g and c work in one memory of 120 bytes, h has its own: two constants of 64 bytes are not
// both in the shared one, though each device alone had room for one.
Test(strategies, a_shared_memory_has_its_capacity_once) {
    static const cost_row rows[row_limit] = {{"a", {10, 50, 50}}, {"b", {50, 50, 10}}};
    static const char text[] = "graph @main(%x: f32[1,2]) { " WEIGHTS "%a = matmul(%x, %v) "
                               "%b = matmul(%a, %w) return %b }";
    static const char target_text[] =
        "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": ["
        "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"h\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
        "{\"name\": \"ram\", \"reached_by\": [\"g\", \"c\"], \"capacity_bytes\": %d},"
        "{\"name\": \"far\", \"reached_by\": [\"h\"], \"capacity_bytes\": 1000000}], \"links\": ["
        "{\"from\": \"ram\", \"to\": \"far\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": "
        "1000}]}";
    for (int tight = 0; tight < 2; ++tight) {
        berth_arena *arena = new_arena();
        berth_multi_target *target =
            parse_target(arena, berth_arena_printf(arena, target_text, tight ? 120 : 1000));
        berth_plan_options options = options_of(target, rows, "auto", "latency");
        berth_plan *plan = NULL;
        berth_module *module = parse_module(arena, text);
        require(plan_with(module, &options, &plan));
        int shared = 0;
        for (uint32_t i = 0; i < plan->entry_count; ++i) shared += plan->entries[i].device != 1;
        cr_expect_eq(shared, tight ? 1 : 2, "%d of 2 in the shared memory", shared);
        cr_expect_leq(plan->lower_bound, plan->value);
        berth_arena_destroy(arena);
    }
}

Test(strategies, capacity_is_a_reason) {
    berth_arena *arena = new_arena();
    const hand_case *k = &hand_cases[capacity_case];
    cr_assert_str_eq(k->what, "constants that do not both fit");
    berth_multi_target *target = parse_target(arena, k->target);
    berth_plan_options options = options_of(target, k->rows, "auto", "latency");
    berth_module *module = parse_module(arena, k->text);
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    const char *reasons[] = {rejected_reason(module, plan, "a"),
                             rejected_reason(module, plan, "b")};
    int capacity = 0;
    for (int i = 0; i < 2; ++i) capacity += strncmp(reasons[i], "capacity: ", 10) == 0;
    cr_assert_eq(capacity, 1, "%s, %s", reasons[0], reasons[1]);
    berth_arena_destroy(arena);
}

static void expect_error(const char *strategy, const char *objective, berth_code code,
                         const char *part) {
    berth_arena *arena = new_arena();
    berth_multi_target *target = parse_target(arena, SHARED);
    static const cost_row rows[row_limit] = {{"a", {1, 1}}};
    berth_plan_options options = options_of(target, rows, strategy, objective);
    berth_plan *plan = NULL;
    berth_status status = plan_with(
        parse_module(arena, "graph @main(%x" T ") { %a = relu(%x) return %a }"), &options, &plan);
    cr_assert_not_null(status);
    cr_expect_eq(berth_status_code(status), code);
    cr_expect_not_null(strstr(berth_status_message(status), part), "%s",
                       berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(strategies, unknown_names) {
    expect_error("gready", NULL, BERTH_INVALID_ARGUMENT, "did you mean \"greedy\"?");
    expect_error("auto", "speed", BERTH_INVALID_ARGUMENT, "there are latency, throughput, memory");
}

Test(strategies, constants_that_fit_nowhere) {
    berth_arena *arena = new_arena();
    berth_multi_target *target = parse_target(arena, LINKED("1000", "63"));
    static const cost_row rows[row_limit] = {{"a", {10, NO}}};
    berth_plan_options options = options_of(target, rows, "auto", NULL);
    berth_plan *plan = NULL;
    berth_status status = plan_with(parse_module(arena, "graph @main(%x: f32[1,2]) { " WEIGHTS
                                                        "%a = matmul(%x, %v) return %a }"),
                                    &options, &plan);
    cr_assert_not_null(status);
    cr_expect_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION);
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// 30,000 operations: placed by the rules, and the plan says so.
Test(strategies, large_modules_are_left_to_the_rules) {
    berth_arena *arena = new_arena();
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "graph @main(%x" T ") { %v0 = relu(%x) ");
    for (int i = 1; i < 30000; ++i) berth_strbuf_addf(&text, "%%v%d = relu(%%v%d) ", i, i - 1);
    berth_strbuf_add(&text, "return %v29999 }");
    static const cost_row rows[row_limit] = {{0}};
    berth_multi_target *target = parse_target(arena, SHARED);
    berth_plan_options options = options_of(target, rows, "auto", NULL);
    berth_module *module = parse_module(arena, berth_strbuf_text(&text));
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_assert(!plan->valued);
    cr_assert_eq(plan->note_count, 1);
    berth_arena_destroy(arena);
}
