// What the analytic cost model says a device lacks.
#include <criterion/criterion.h>

#include "compiler/cost/alike.h"
#include "compiler/cost/cost.h"
#include "compiler/cost/work.h"
#include "ir/graph/graph.h"
#include "tests/check.h"

static berth_multi_target *parse_target(berth_arena *arena, const char *source) {
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, source, NULL, &target));
    return target;
}

// An element type that a device lacks: of operands, of results, of views, and not of what the host reads.
Test(cost, element_types_that_devices_lack) {
    static const struct {
        berth_op_kind kind;
        berth_dtype from, to;
        const char *why;
    } rows[] = {
        {BERTH_OP_RELU, BERTH_DTYPE_F32, BERTH_DTYPE_F32, NULL},
        {BERTH_OP_CAST, BERTH_DTYPE_F32, BERTH_DTYPE_F64, "the device has no 64-bit floats"},
        {BERTH_OP_CAST, BERTH_DTYPE_F64, BERTH_DTYPE_F32, "the device has no 64-bit floats"},
        {BERTH_OP_CAST, BERTH_DTYPE_U64, BERTH_DTYPE_F32, "the device has no 64-bit integers"},
        {BERTH_OP_CAST, BERTH_DTYPE_F32, BERTH_DTYPE_BOOL, "the device has no elements of 8 bits"},
        {BERTH_OP_CAST, BERTH_DTYPE_BF16, BERTH_DTYPE_F32, "the device has no elements of 16 bits"},
        {BERTH_OP_RESHAPE, BERTH_DTYPE_I8, BERTH_DTYPE_I8, "the device has no elements of 8 bits"},
        {BERTH_OP_RESHAPE, BERTH_DTYPE_F32, BERTH_DTYPE_F32, NULL}};
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id function = berth_graph_create(module, "main", 0);
    berth_tensor shape = {.dtype = BERTH_DTYPE_I64, .rank = 1, .dims = {1}, .data = (int64_t[]){4}};
    for (int i = 0; i < COUNT; ++i) {
        berth_type_id type = berth_type_tensor(module, rows[i].from, 1, (int64_t[]){4});
        bool reshapes = rows[i].kind == BERTH_OP_RESHAPE;
        berth_value_id values[] = {berth_graph_add_param(module, function, "x", type), BERTH_NONE};
        if (reshapes) values[1] = berth_graph_constant(module, function, 0, &shape, 0);
        berth_value_id value =
            berth_graph_op1(module, function, rows[i].kind, values, 1 + reshapes, 0);
        berth_graph_get(module, function)->values.data[value].type =
            berth_type_tensor(module, rows[i].to, 1, (int64_t[]){4});
    }
    const berth_graph *graph = berth_graph_get(module, function);
    berth_multi_target *target = parse_target(
        arena, "{\"kind\": \"multi\", \"devices\": ["
               "{\"name\": \"a\", \"target\": {\"kind\": \"vulkan\", \"lacks_f64\": true, "
               "\"lacks_i64\": true, \"lacks_8bit\": true, \"lacks_16bit\": true}},"
               "{\"name\": \"b\", \"target\": {\"kind\": \"opencl\"}},"
               "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}], \"host\": \"c\"}");
    berth_cost_model model = berth_cost_model_create(arena, target, NULL);
    uint32_t row = 0;
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
        berth_op_id op = graph->regions.data[0].ops.data[i];
        if (graph->ops.data[op].kind == BERTH_OP_CONSTANT) continue;
        for (uint32_t device = 0; device < 3; ++device) {
            const char *why = model.unsupported(model.user, module, function, op, device, arena);
            if (rows[row].why && device == 0)
                cr_assert_str_eq(why, rows[row].why, "operation %u", row);
            else
                cr_assert_null(why, "operation %u, device %u: %s", row, device, why);
        }
        ++row;
    }
    cr_assert_eq(row, COUNT);
    berth_arena_destroy(arena);
}

// What an operation picks from is read as far as it picks: three rows of a table.
Test(cost, picking_reads_what_it_gives) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id function = berth_graph_create(module, "main", 0);
    berth_type_id table = berth_type_tensor(module, BERTH_DTYPE_F32, 2, (int64_t[]){1000, 64});
    berth_type_id rows = berth_type_tensor(module, BERTH_DTYPE_I64, 1, (int64_t[]){3});
    berth_value_id from[] = {berth_graph_add_param(module, function, "table", table),
                             berth_graph_add_param(module, function, "rows", rows)};
    berth_value_id given = berth_graph_op1(module, function, BERTH_OP_GATHER, from, 2, 0);
    berth_graph *graph = berth_graph_get(module, function);
    graph->values.data[given].type =
        berth_type_tensor(module, BERTH_DTYPE_F32, 2, (int64_t[]){3, 64});
    berth_graph_set_results(module, function, &given, 1);
    const double bytes = 2 * 3 * 64 * 4 + 3 * 8;
    berth_op_id op = graph->regions.data[0].ops.data[0];
    cr_assert_float_eq(berth_op_work_of(module, function, op).bytes, bytes, 1e-9);
    cr_assert_float_eq(berth_work_of_primitive(module, function, arena).bytes, bytes, 1e-9);
    berth_arena_destroy(arena);
}

// A convolution of integers with its scales is as much work as the plain one: its weights are the
// fourth operand, 4 * 5 * 3 * 3 of them for each of 2 * 6 * 6 results of 4 channels.
Test(cost, a_quantised_convolution_is_a_convolution) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id function = berth_graph_create(module, "main", 0);
    berth_type_id x = berth_type_tensor(module, BERTH_DTYPE_I8, 4, (int64_t[]){2, 5, 8, 8});
    berth_type_id w = berth_type_tensor(module, BERTH_DTYPE_I8, 4, (int64_t[]){4, 5, 3, 3});
    berth_type_id scale = berth_type_tensor(module, BERTH_DTYPE_F32, 0, NULL);
    berth_type_id zero = berth_type_tensor(module, BERTH_DTYPE_I8, 0, NULL);
    const berth_type_id types[] = {x, scale, zero, w, scale, zero, scale, zero};
    berth_value_id from[8];
    for (int i = 0; i < 8; ++i)
        from[i] =
            berth_graph_add_param(module, function, (const char[]){(char)('a' + i), 0}, types[i]);
    berth_value_id y = berth_graph_op1(module, function, BERTH_OP_QLINEAR_CONV, from, 8, 0);
    berth_graph *graph = berth_graph_get(module, function);
    graph->values.data[y].type =
        berth_type_tensor(module, BERTH_DTYPE_I8, 4, (int64_t[]){2, 4, 6, 6});
    berth_graph_set_results(module, function, &y, 1);
    berth_op_id op = graph->regions.data[0].ops.data[0];
    cr_assert_float_eq(berth_op_work_of(module, function, op).flops,
                       2.0 * (2 * 4 * 6 * 6) * (5 * 3 * 3), 1e-9);
    berth_arena_destroy(arena);
}

static double roofline_ns(berth_arena *arena, const char *source, double flops, double bytes,
                          berth_cost_constants constants) {
    const berth_work work = {.dtype = BERTH_DTYPE_F32, .flops = flops, .bytes = bytes};
    return berth_cost_roofline_ns(parse_target(arena, source), 0, &work, constants);
}

// 512 KiB fit into the second level, 32 MB into none; constants only stay where those of all kernels do.
Test(cost, bytes_come_from_the_cache_that_holds_them) {
    static const char source[] =
        "cpu -cores=1 -clock_hz=2000000000 -vector_bits=256 -l2_bytes=1048576 -l3_bytes=0 "
        "-dispatch_ns=0 -memory_bandwidth_bytes_per_s=1e10";
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_cost_constants none = {0}, few = {524288, 524288}, of_many = {524288, 32e6};
    double from_memory_ns = 524288 / 1e10 * 1e9;
    cr_expect_float_eq(roofline_ns(arena, source, 1, 32e6, none), 32e6 / 1e10 * 1e9, 1e-6);
    cr_expect_lt(roofline_ns(arena, source, 1, 524288, none), from_memory_ns / 2);
    cr_expect_lt(roofline_ns(arena, source, 1, 524288, few), from_memory_ns / 2);
    cr_expect_float_eq(roofline_ns(arena, source, 1, 524288, of_many), from_memory_ns, 1e-6);
    berth_arena_destroy(arena);
}

// 4 cores that draw a quarter of the memory's bandwidth each and more; one alone, and a device of two.
Test(cost, a_core_alone_draws_only_so_much) {
    static const struct {
        int cores;
        const char *core_bandwidth;
        double bandwidth;
    } cases[] = {{4, "4e9", 1e10}, {2, "4e9", 8e9}, {1, "4e9", 4e9}, {1, "2e10", 1e10}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_cost_constants none = {0}, all = {512e6, 512e6};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
        const char *source = berth_arena_printf(
            arena,
            "cpu -cores=%d -l3_bytes=0 -dispatch_ns=0 -memory_bandwidth_bytes_per_s=1e10 "
            "-core_bandwidth_bytes_per_s=%s",
            cases[c].cores, cases[c].core_bandwidth);
        double expected_ns = 512e6 / cases[c].bandwidth * 1e9;
        double begin_ns = cases[c].cores > 1 ? 2000 : 0;
        cr_expect_float_eq(roofline_ns(arena, source, 1, 512e6, none), expected_ns + begin_ns, 1,
                           "case %zu", c);
        cr_expect_float_eq(roofline_ns(arena, source, 1, 512e6, all), expected_ns + begin_ns, 1,
                           "case %zu, constants", c);
    }
    berth_arena_destroy(arena);
}

// Of a memory's bandwidth, what no cache keeps: through a driver, too, and at the memory's own pace.
Test(cost, what_work_takes_of_its_memory) {
    static const char *const sources[] = {
        "cpu -cores=1 -l2_bytes=1048576 -l3_bytes=0 -memory_bandwidth_bytes_per_s=1e10",
        ("cpu -cores=1 -l2_bytes=1048576 -l3_bytes=0 -peak_flops.f32=1e6 "
         "-memory_bandwidth_bytes_per_s=1e10"),
        "cuda -arch=sm_90 -memory_bandwidth_bytes_per_s=1e10"};
    static const struct {
        double bytes;
        berth_cost_constants constants;
        double from_memory[2];  // of a processor, of a GPU
    } cases[] = {{32e6, {0, 0}, {32e6, 32e6}},
                 {524288, {0, 0}, {0, 524288}},
                 {524288, {524288, 524288}, {0, 524288}},
                 {600000, {524288, 32e6}, {524288, 600000}}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t s = 0; s < 3; ++s)
        for (size_t c = 0; c < 4; ++c) {
            const berth_work work = {.dtype = BERTH_DTYPE_F32, .flops = 1, .bytes = cases[c].bytes};
            double ns =
                berth_cost_memory_ns(parse_target(arena, sources[s]), 0, &work, cases[c].constants);
            cr_expect_float_eq(ns, cases[c].from_memory[s == 2] / 10, 1e-6, "%s, case %zu: %g",
                               sources[s], c, ns);
        }
    berth_arena_destroy(arena);
}

// A microsecond is over before another core has begun; ten milliseconds are shared.
Test(cost, small_work_takes_one_core) {
    static const char one[] = "cpu -cores=1 -peak_flops.f32=1e11 -dispatch_ns=0",
                      four[] = "cpu -cores=4 -peak_flops.f32=4e11 -dispatch_ns=0";
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_cost_constants none = {0};
    cr_expect_float_eq(roofline_ns(arena, four, 1e5, 64, none),
                       roofline_ns(arena, one, 1e5, 64, none), 1e-6);
    double ratio = roofline_ns(arena, one, 1e9, 64, none) / roofline_ns(arena, four, 1e9, 64, none);
    cr_expect(ratio > 3.9 && ratio < 4, "%g", ratio);
    berth_arena_destroy(arena);
}

// Plain C runs on one thread, and only what a C compiler makes vectors of is in vectors: slower than kernels
// with vectors on the same core, and no slower than kernels of a core without any. Without vectors it
// is the same.
Test(cost, plain_c_has_no_vectors_of_its_own) {
    static const struct {
        int cores, vector_bits;
        bool plain;
    } cases[] = {{1, 512, false}, {1, 32, false}, {1, 512, true}, {4, 512, true}, {1, 32, true}};
    enum { VECTORS, SINGLE, PLAIN, PLAIN_OF_FOUR, PLAIN_SINGLE };
    berth_arena *arena = NULL;
    double ns[5];
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (int i = 0; i < 5; ++i) {
        berth_multi_target *target = parse_target(
            arena, berth_arena_printf(
                       arena, "cpu -clock_hz=2000000000 -dispatch_ns=0 -cores=%d -vector_bits=%d",
                       cases[i].cores, cases[i].vector_bits));
        if (cases[i].plain) target->executor = BERTH_EXECUTOR_AOT;
        const berth_work work = {.dtype = BERTH_DTYPE_F32, .flops = 1e9, .bytes = 64};
        ns[i] = berth_cost_roofline_ns(target, 0, &work, (berth_cost_constants){0});
    }
    cr_expect(ns[PLAIN] > 3 * ns[VECTORS] && ns[PLAIN] <= ns[SINGLE], "%g between %g and %g",
              ns[PLAIN], ns[VECTORS], ns[SINGLE]);
    cr_expect_float_eq(ns[PLAIN_OF_FOUR], ns[PLAIN], 1e-3);
    cr_expect_float_eq(ns[PLAIN_SINGLE], ns[SINGLE], 1e-3);
    berth_arena_destroy(arena);
}

static berth_value_id add_typed(berth_module *module, berth_func_id function, berth_op_kind kind,
                                const berth_value_id *inputs, uint32_t count, berth_type_id type) {
    berth_value_id value = berth_graph_op1(module, function, kind, inputs, count, 0);
    berth_graph_get(module, function)->values.data[value].type = type;
    return value;
}

// What is found once is true of all operations that are alike, and of no others: kind, attributes, element type, shape,
// and which operands are one value. An operation that reads a constant is like none.
Test(cost, operations_that_are_alike) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *m = berth_module_create(arena, "test");
    berth_func_id f = berth_graph_create(m, "main", 0);
    berth_type_id four = berth_type_tensor(m, BERTH_DTYPE_F32, 1, (int64_t[]){4}),
                  five = berth_type_tensor(m, BERTH_DTYPE_F32, 1, (int64_t[]){5});
    berth_value_id a = berth_graph_add_param(m, f, "a", four),
                   b = berth_graph_add_param(m, f, "b", four),
                   c = berth_graph_add_param(m, f, "c", five);
    berth_value_id k = add_typed(m, f, BERTH_OP_CONSTANT, NULL, 0, four);
    berth_value_id ab[] = {a, b}, ba[] = {b, a}, aa[] = {a, a}, cc[] = {c, c}, ak[] = {a, k};
    const struct {
        berth_op_kind kind;
        const berth_value_id *inputs;
        berth_type_id type;
        const char *attr;
        int64_t value;
        int like;  // an earlier one; -1: no other
    } cases[] = {{BERTH_OP_ADD, ab, four, NULL, 0, -1},    {BERTH_OP_ADD, ba, four, NULL, 0, 0},
                 {BERTH_OP_MUL, ab, four, NULL, 0, -1},    {BERTH_OP_ADD, aa, four, NULL, 0, -1},
                 {BERTH_OP_ADD, cc, five, NULL, 0, -1},    {BERTH_OP_ADD, ab, five, NULL, 0, -1},
                 {BERTH_OP_ADD, ab, four, "n", 64, -1},    {BERTH_OP_ADD, ba, four, "n", 64, 6},
                 {BERTH_OP_ADD, ab, four, "n", 1, -1},     {BERTH_OP_ADD, ab, four, "n", -1, -1},
                 {BERTH_OP_ADD, ab, four, "other", 64, -1}};
    enum { count = sizeof(cases) / sizeof(cases[0]) };
    berth_alike alike = {.arena = arena};
    berth_op_id ops[count];
    for (uint32_t i = 0; i < count; ++i) {
        berth_value_id value = add_typed(m, f, cases[i].kind, cases[i].inputs, 2, cases[i].type);
        ops[i] = berth_graph_get(m, f)->values.data[value].op;
        if (cases[i].attr)
            berth_attrs_set_int(m, &berth_graph_get(m, f)->ops.data[ops[i]].attrs, cases[i].attr,
                                cases[i].value);
    }
    const berth_graph *graph = berth_graph_get(m, f);
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; ++i) {
        berth_alike_facts *facts = berth_alike_find(&alike, m, graph, ops[i]);
        cr_assert_not_null(facts);
        if (cases[i].like < 0) ++known;
        uint32_t first = (uint32_t)(cases[i].like < 0 ? (int)i : cases[i].like);
        cr_expect_eq(facts, berth_alike_find(&alike, m, graph, ops[first]), "operation %u", i);
        facts = berth_alike_find(&alike, m, graph, ops[i]);
        cr_expect_eq(facts->lowers, cases[i].like >= 0, "operation %u", i);
        facts->lowers = true;
    }
    cr_expect_eq(known, 9);
    berth_value_id of_constant = add_typed(m, f, BERTH_OP_ADD, ak, 2, four);
    cr_expect_null(berth_alike_find(&alike, m, graph, graph->values.data[of_constant].op));
    berth_arena_destroy(arena);
}
