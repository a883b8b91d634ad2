// Calls put in place, functions per device, modules per machine: all of them compute what the whole
// does, by the reference interpreter; several machines as threads with channels between them.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/decompose/decompose.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"

// Two machines, each with a processor and a GPU; the first one's processor is the host.
static const char two_machines[] =
    "{\"kind\": \"multi\", \"machines\": [{\"name\": \"a\", \"target\": \"cpu,opencl\"}, "
    "{\"name\": "
    "\"b\", \"target\": \"cpu,opencl\"}], \"links\": [{\"from\": \"a.host\", \"to\": \"b.host\", "
    "\"bandwidth_bytes_per_s\": 1e9}]}";
static const char *const devices[] = {"cpu:0", "opencl:0", "cpu:1", "opencl:1"};

enum { width = 4, most_results = 4 };
static const float given[3][width] = {{1, -2, 3, 0.5f}, {0.25f, 4, -1, 2}, {-3, 1, 1, -0.5f}};

typedef struct fixture {
    berth_arena *arena;
    berth_multi_target *target;
    berth_module *module;
    berth_func_id main;
} fixture;

static berth_status run_passes(fixture *f, const char *const *passes) {
    berth_compile_options options = {
        .target = f->target, .plan_only = true, .verify = true, .max_instances = 4};
    berth_compile_result result;
    return berth_compile_run_passes(f->module, passes, &options, &result);
}

static const char *const to_plan[] = {"keep-names", "fold-constants", "plan-devices", NULL};
static const char *const to_inline[] = {"inline-calls", NULL};

static fixture parse(const char *target, const char *text) {
    fixture f = {.arena = NULL};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_target_parse(f.arena, target, NULL, &f.target));
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    f.main = berth_module_find_function(f.module, "main");
    return f;
}

static fixture plan(const char *target, const char *text) {
    fixture f = parse(target, text);
    assert_ok(run_passes(&f, to_plan));
    return f;
}

static void finish(fixture *f) {
    berth_arena_destroy(f->arena);
}

static const char *print(const fixture *f) {
    berth_strbuf text = berth_strbuf_make(f->arena);
    berth_module_print(f->module, &text);
    return berth_strbuf_text(&text);
}

// ---- evaluation

typedef struct outcome {
    uint32_t count;
    float values[most_results][width];
} outcome;

// Arguments by the names of main's parameters: x, y, z.
static berth_status evaluate(const fixture *f, const berth_eval_channels *channels, outcome *out) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_region *root = &graph->regions.data[0];
    berth_tensor arguments[3] = {{0}}, results[most_results];
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const char *name =
            berth_module_str(f->module, graph->values.data[root->params.data[i]].name);
        const berth_type *type =
            berth_type_get(f->module, graph->values.data[root->params.data[i]].type);
        arguments[i] = (berth_tensor){.dtype = BERTH_DTYPE_F32, .rank = type->rank};
        memcpy(arguments[i].dims, type->dims, (size_t)type->rank * sizeof(type->dims[0]));
        memcpy(&arguments[i].data, &(const void *){given[name[0] - 'x']}, sizeof(void *));
    }
    out->count = root->results.count;
    BERTH_TRY(berth_eval_function_with(f->module, f->main, channels, arguments, root->params.count,
                                       results, out->count, f->arena));
    for (uint32_t i = 0; i < out->count; ++i)
        memcpy(out->values[i], results[i].data, sizeof(out->values[i]));
    return BERTH_OK;
}

static void expect_same(const fixture *f, const outcome *wanted, const char *what) {
    outcome got;
    assert_ok(evaluate(f, NULL, &got));
    cr_assert_eq(got.count, wanted->count, "%s", what);
    cr_assert_eq(memcmp(got.values, wanted->values, got.count * sizeof(got.values[0])), 0,
                 "%s:\n%s", what, print(f));
}

// ---- random modules

static uint64_t next(uint64_t *random, uint64_t limit) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    return (*random >> 33) % limit;
}

// A line that makes %NAMEi of two values before it; calls only of functions after @f`function`.
static void add_line(berth_strbuf *text, uint64_t *random, uint32_t i, uint32_t values,
                     uint32_t function) {
    static const char *const two[] = {"add", "mul", "sub", "max"};
    static const char *const one[] = {"neg", "relu", "abs"};
    unsigned a = (unsigned)next(random, values), b = (unsigned)next(random, values);
    uint64_t kind = next(random, 10);
    if (kind == 0)
        berth_strbuf_addf(text, "  %%v%u = constant() {value = f32[4] (1, -1, 0.5, %u)}", i, i);
    else if (kind <= 2 && function < 3)
        berth_strbuf_addf(text, "  %%v%u = call @f%u(%%v%u, %%v%u)", i,
                          function + 1 + (unsigned)next(random, 3 - function), a, b);
    else if (kind <= 4)
        berth_strbuf_addf(text, "  %%v%u = %s(%%v%u)", i, one[next(random, 3)], a);
    else
        berth_strbuf_addf(text, "  %%v%u = %s(%%v%u, %%v%u)", i, two[next(random, 4)], a, b);
    if (kind > 2 && next(random, 2)) berth_strbuf_addf(text, " on %s", devices[next(random, 4)]);
    berth_strbuf_add(text, "\n");
}

static const char *random_text(berth_arena *arena, uint64_t seed) {
    uint64_t random = seed;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"random\"\n");
    for (uint32_t function = 0; function < 4; ++function) {
        uint32_t first = function ? 2 : 3, count = first + 2 + (uint32_t)next(&random, 8);
        if (function)
            berth_strbuf_addf(&text, "graph @f%u(%%x: f32[4], %%y: f32[4]) {\n", function);
        else
            berth_strbuf_add(&text, "graph @main(%x: f32[4], %y: f32[4], %z: f32[4]) {\n");
        for (uint32_t i = 0; i < first; ++i)
            berth_strbuf_addf(&text, "  %%v%u = neg(%%%c)\n", i, 'x' + (int)i);
        for (uint32_t i = first; i < count; ++i) add_line(&text, &random, i, i, function);
        if (function)
            berth_strbuf_addf(&text, "  return %%v%u\n}\n", count - 1);
        else
            berth_strbuf_addf(&text, "  return %%v%u, %%v%u\n}\n", count - 1, count - 2);
    }
    return berth_strbuf_text(&text);
}

// The module taken apart.
static fixture check_split(const char *target, const char *text, const outcome *wanted,
                           const char *pass) {
    const char *const split[] = {"inline-calls", pass, "check-targets", NULL};
    fixture f = plan(target, text);
    assert_ok(run_passes(&f, split));
    expect_same(&f, wanted, pass);
    fixture again = parse(target, print(&f));
    expect_same(&again, wanted, "printed and read");
    assert_ok(run_passes(&again, to_inline));
    expect_same(&again, wanted, "put together again");
    finish(&again);
    return f;
}

static uint32_t count_on(const fixture *f, berth_op_kind kind, berth_device_kind device) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_region *root = &graph->regions.data[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        count += op->kind == kind &&
                 berth_virtual_device_get(f->module->devices, op->device).device_type == device;
    }
    return count;
}

// ---- machines

typedef struct message {
    bool sent;
    berth_tensor tensor;
} message;

// What all machines share. A tensor's data lives as long as the sender's arena.
typedef struct network {
    pthread_mutex_t lock;
    pthread_cond_t came;
    message messages[256];
    uint32_t count;
} network;

typedef struct machine {
    pthread_t thread;
    fixture f;
    network *net;
    outcome out;
    berth_status status;
} machine;

static berth_status send(void *user, int64_t channel, const berth_tensor *tensor) {
    network *net = user;
    pthread_mutex_lock(&net->lock);
    bool twice = net->messages[channel].sent;
    net->messages[channel] = (message){true, *tensor};
    net->count++;
    pthread_cond_broadcast(&net->came);
    pthread_mutex_unlock(&net->lock);
    return twice ? berth_status_make(BERTH_INTERNAL, "sent twice") : BERTH_OK;
}

static berth_status receive(void *user, int64_t channel, berth_tensor *out) {
    network *net = user;
    pthread_mutex_lock(&net->lock);
    while (!net->messages[channel].sent) pthread_cond_wait(&net->came, &net->lock);
    *out = net->messages[channel].tensor;
    pthread_mutex_unlock(&net->lock);
    return BERTH_OK;
}

static void *run_machine(void *user) {
    machine *m = user;
    berth_eval_channels channels = {send, receive, m->net};
    m->status = evaluate(&m->f, &channels, &m->out);
    return NULL;
}

// Both machines at the same time. All results are on the first, the host's.
static uint32_t check_machines(const char *text, const outcome *wanted) {
    network net = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    machine machines[2];
    for (uint32_t i = 0; i < 2; ++i) {
        machine *m = &machines[i];
        *m = (machine){.f = plan(two_machines, text), .net = &net};
        berth_multi_target *own = NULL;
        assert_ok(run_passes(&m->f, to_inline));
        assert_ok(berth_decompose_machine(m->f.module, m->f.main, m->f.target, i, &own));
        assert_ok(berth_module_verify(m->f.module));
        cr_assert_eq(own->device_count, 2u);
        cr_assert_eq(own->machine_count, 1u);
        fixture read = parse(own->canonical, print(&m->f));
        assert_ok(run_passes(&read, to_plan));  // its devices are those of its own target
        finish(&read);
    }
    for (uint32_t i = 0; i < 2; ++i)
        pthread_create(&machines[i].thread, NULL, run_machine, &machines[i]);
    for (uint32_t i = 0; i < 2; ++i) pthread_join(machines[i].thread, NULL);
    for (uint32_t i = 0; i < 2; ++i) assert_ok(machines[i].status);
    cr_assert_eq(machines[0].out.count, wanted->count);
    cr_assert_eq(machines[1].out.count, 0u);
    cr_assert_eq(
        memcmp(machines[0].out.values, wanted->values, wanted->count * sizeof(wanted->values[0])),
        0, "%s", text);
    for (uint32_t i = 0; i < 2; ++i) finish(&machines[i].f);
    return net.count;
}

Test(decompose, random_modules_compute_what_the_whole_does, .timeout = 120) {
    uint32_t sent = 0, calls = 0;
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (uint64_t seed = 1; seed <= 150; ++seed) {
        const char *text = random_text(arena, seed);
        fixture whole = parse(two_machines, text);
        outcome wanted;
        assert_ok(evaluate(&whole, NULL, &wanted));
        calls += strstr(text, "call") != NULL;
        fixture f = plan(two_machines, text);
        assert_ok(run_passes(&f, to_inline));
        expect_same(&f, &wanted, "calls in place");
        cr_assert_eq(count_on(&f, BERTH_OP_CALL, BERTH_DEVICE_CPU) +
                         count_on(&f, BERTH_OP_CALL, BERTH_DEVICE_OPENCL),
                     0u);
        fixture by_device = check_split(two_machines, text, &wanted, "split-devices");
        fixture by_host = check_split(two_machines, text, &wanted, "split-host");
        sent += check_machines(text, &wanted);
        finish(&by_device);
        finish(&by_host);
        finish(&f);
        finish(&whole);
    }
    cr_assert_gt(sent, 150u);
    cr_assert_gt(calls, 50u);
    berth_arena_destroy(arena);
}

// ---- backends

static const char one_library[] = "cpu -libs=openblas -libs_policy=always,opencl";

// Products, which OpenBLAS takes on the processor, and what it does not, all of 2 x 2.
static const char *random_products(berth_arena *arena, uint64_t seed) {
    static const char *const two[] = {"matmul", "matmul", "matmul", "sub"};
    uint64_t random = seed;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"products\" graph @main(%x: f32[2,2], %y: f32[2,2], "
                            "%z: f32[2,2]) {\n  %v0 = neg(%x)\n  %v1 = abs(%y)\n"
                            "  %v2 = neg(%z)\n");
    uint32_t count = 8 + (uint32_t)next(&random, 12);
    for (uint32_t i = 3; i < count; ++i) {
        unsigned least = i > 6 ? i - 6 : 0;
        unsigned a = least + (unsigned)next(&random, i - least);
        unsigned b = least + (unsigned)next(&random, i - least);
        if (next(&random, 5) == 0)
            berth_strbuf_addf(&text, "  %%v%u = relu(%%v%u)", i, a);
        else
            berth_strbuf_addf(&text, "  %%v%u = %s(%%v%u, %%v%u)", i, two[next(&random, 4)], a, b);
        berth_strbuf_addf(&text, " on %s\n", next(&random, 6) ? "cpu:0" : "opencl:0");
    }
    berth_strbuf_addf(&text, "  return %%v%u, %%v%u\n}\n", count - 1, count - 2);
    return berth_strbuf_text(&text);
}

// Of the function that an operation calls; "" = it calls none, or one without a backend.
static const char *backend_of(const fixture *f, const berth_op *op) {
    const berth_attr *callee = berth_attrs_find(f->module, &op->attrs, "callee");
    if (op->kind != BERTH_OP_CALL || !callee) return "";
    return berth_attrs_string(f->module, &berth_module_function(f->module, callee->function)->attrs,
                              "backend", "");
}

static bool reads(const berth_graph *graph, berth_op_id op, berth_op_id from) {
    for (uint32_t k = 0; k < graph->ops.data[op].input_count; ++k)
        if (graph->values.data[graph->ops.data[op].inputs[k]].op == from) return true;
    return false;
}

// Whether the i-th operation of main comes to the k-th over another one.
static bool leads_around(const berth_graph *graph, uint32_t i, uint32_t k) {
    const berth_region *root = &graph->regions.data[0];
    bool after[64] = {false};
    cr_assert_lt(root->ops.count, 64u);
    for (uint32_t at = i + 1; at <= k; ++at)
        for (uint32_t before = i; before < at && !after[at]; ++before)
            after[at] = (before == i ? at != k : after[before]) &&
                        reads(graph, root->ops.data[at], root->ops.data[before]);
    return after[k];
}

// No product is left, and no two functions of which one reads the other's could be one. Returns how
// many such pairs there are, and adds up functions and products in them.
static uint32_t check_regions(const fixture *f, uint32_t *functions, uint32_t *products) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_region *root = &graph->regions.data[0];
    uint32_t pairs = 0;
    for (uint32_t k = 0; k < root->ops.count; ++k) {
        const berth_op *op = &graph->ops.data[root->ops.data[k]];
        berth_virtual_device on = berth_virtual_device_get(f->module->devices, op->device);
        cr_expect(op->kind != BERTH_OP_MATMUL || on.device_type == BERTH_DEVICE_OPENCL, "%s",
                  print(f));
        if (!*backend_of(f, op)) continue;
        cr_expect_str_eq(backend_of(f, op), "openblas");
        const berth_graph *inner =
            berth_graph_get(f->module, berth_attrs_find(f->module, &op->attrs, "callee")->function);
        ++*functions;
        for (uint32_t i = 0; i < inner->regions.data[0].ops.count; ++i)
            *products +=
                inner->ops.data[inner->regions.data[0].ops.data[i]].kind == BERTH_OP_MATMUL;
        for (uint32_t i = 0; i < k; ++i) {
            if (!*backend_of(f, &graph->ops.data[root->ops.data[i]]) ||
                !reads(graph, root->ops.data[k], root->ops.data[i]))
                continue;
            ++pairs;
            cr_expect(leads_around(graph, i, k), "operations %u and %u of main:\n%s", i, k,
                      print(f));
        }
    }
    return pairs;
}

Test(decompose, a_function_per_region_of_a_backend, .timeout = 120) {
    uint32_t functions = 0, products = 0, pairs = 0;
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (uint64_t seed = 1; seed <= 150; ++seed) {
        const char *text = random_products(arena, seed);
        fixture whole = parse(one_library, text);
        outcome wanted;
        assert_ok(evaluate(&whole, NULL, &wanted));
        fixture f = check_split(one_library, text, &wanted, "split-backends");
        pairs += check_regions(&f, &functions, &products);
        finish(&f);
        finish(&whole);
    }
    cr_expect_gt(functions, 150u);
    cr_expect_gt(products, functions * 3 / 2, "%u products in %u functions", products, functions);
    cr_expect_gt(pairs, 10u);
    berth_arena_destroy(arena);
}

// What goes into a library's call goes with it, the device's functions may hold the backend's, and a
// backend's region is one function though two ways lead through it.
Test(decompose, a_region_holds_what_a_call_computes) {
    static const char *const passes[] = {"inline-calls", "split-backends", "check-targets", NULL};
    fixture f = plan(one_library,
                     "module \"t\" graph @main(%x: f32[2,2], %y: f32[2,2]) { "
                     "%a = matmul(%x, %y) %b = relu(%a) %c = matmul(%b, %y) %d = matmul(%b, %x) "
                     "%e = matmul(%c, %d) %f = exp(%e) return %f }");
    assert_ok(run_passes(&f, passes));
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    const berth_region *root = &graph->regions.data[0];
    cr_assert_eq(root->ops.count, 2u, "%s", print(&f));
    const berth_attr *callee =
        berth_attrs_find(f.module, &graph->ops.data[root->ops.data[0]].attrs, "callee");
    cr_assert_not_null(callee);
    cr_expect_eq(berth_graph_get(f.module, callee->function)->regions.data[0].ops.count, 5u);
    finish(&f);
}

// ---- calls

// @f was lowered whole, for the device of the call.
Test(decompose, a_called_function_computes_on_two_devices) {
    static const char *const passes[] = {"inline-calls", "layout", "fuse", "lower", NULL};
    fixture f = plan("cpu,opencl",
                     "module \"t\" graph @main(%x: f32[4]) { %a = call @f(%x) %b = call @f(%a) "
                     "return %b } graph @f(%x: f32[4]) { %y = exp(%x) on cpu:0 %z = neg(%y) on "
                     "opencl:0 %w = abs(%z) on cpu:0 return %w }");
    assert_ok(run_passes(&f, passes));
    cr_assert_eq(count_on(&f, BERTH_OP_CALL, BERTH_DEVICE_OPENCL), 2u, "%s", print(&f));
    cr_assert_eq(count_on(&f, BERTH_OP_CALL, BERTH_DEVICE_CPU), 3u, "abs and exp between are one");
    finish(&f);
}

Test(decompose, calls_without_an_end_are_refused) {
    fixture f = plan("cpu", "module \"t\" graph @main(%x: f32[4]) { %a = call @f(%x) return %a } "
                            "graph @f(%x: f32[4]) { %y = exp(%x) return %y }");
    berth_func_id function = berth_module_find_function(f.module, "f");
    berth_graph *graph = berth_graph_get(f.module, function);
    berth_op *op = &graph->ops.data[graph->regions.data[0].ops.data[0]];
    op->kind = BERTH_OP_CALL;  // calls itself
    berth_attrs_set(f.module, &op->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
    assert_fails(run_passes(&f, to_inline), BERTH_UNSUPPORTED, "calls itself");
    finish(&f);

    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"t\" graph @main(%x: f32[4]) { %a = call @f0(%x) return %a }");
    for (int i = 0; i < 30; ++i)
        berth_strbuf_addf(&text,
                          " graph @f%d(%%x: f32[4]) { %%a = call @f%d(%%x) %%b = call @f%d(%%a) "
                          "return %%b }",
                          i, i + 1, i + 1);
    berth_strbuf_add(&text, " graph @f30(%x: f32[4]) { %a = abs(%x) return %a }");
    f = plan("cpu", berth_strbuf_text(&text));
    assert_fails(run_passes(&f, to_inline), BERTH_UNSUPPORTED, "more than 1048576 operations");
    finish(&f);
    berth_arena_destroy(arena);
}

// ---- what does not fit

Test(decompose, functions_keep_to_their_device) {
    static const char *const check[] = {"check-targets", NULL};
    static const struct {
        const char *text, *wrong;
    } cases[] = {
        {"module \"t\" graph @main(%x: f32[4]) { %a = call @f(%x) on cpu:0 return %a } graph "
         "@f(%x: f32[4]) {target = \"opencl:0\"} { %y = exp(%x) on opencl:0 return %y }",
         "@f, which is for opencl:0, is called on cpu:0"},
        {"module \"t\" graph @main(%x: f32[4]) { %a = call @f(%x) on opencl:0 return %a } graph "
         "@f(%x: f32[4]) {target = \"opencl:0\"} { %y = exp(%x) on cpu:0 return %y }",
         "it is on cpu:0, in @f, which is for opencl:0 alone"},
        {"module \"t\" graph @main(%x: f32[4]) { return %x } graph @f(%x: f32[4]) {target = "
         "\"cpu:0\"} { %a = call @g(%x) on cpu:0 return %a } graph @g(%x: f32[4]) {target = "
         "\"opencl:0\"} { return %x }",
         "@g, which is for opencl:0, is called on cpu:0"},
        {"module \"t\" graph @main(%x: f32[4]) { return %x } graph @f(%x: f32[4]) {target = "
         "\"vulkan:3\"} { return %x }",
         "@f is for vulkan:3, which the target does not have"},
        {"module \"t\" graph @main(%x: f32[4]) { return %x } graph @f(%x: f32[4]) {target = "
         "\"cpu:0\", backend = \"openblas\"} { %y = exp(%x) on cpu:0 return %y }",
         "openblas does not take it, in @f"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        fixture f = parse("cpu,opencl", cases[i].text);
        assert_fails(run_passes(&f, check), BERTH_FAILED_PRECONDITION, cases[i].wrong);
        finish(&f);
    }
}

Test(decompose, what_cannot_be_taken_apart_says_so) {
    static const char *const late[] = {"inline-calls", "layout", "split-devices", NULL};
    static const char text[] = "module \"t\" graph @main(%x: f32[4]) { %a = abs(%x) return %a }";
    berth_multi_target *own = NULL;
    fixture f = plan("cpu", text);
    assert_fails(berth_decompose_machine(f.module, f.main, f.target, 0, &own),
                 BERTH_INVALID_ARGUMENT, "a target with 1");
    assert_fails(run_passes(&f, late), BERTH_FAILED_PRECONDITION, "before layout and fuse");
    finish(&f);
    f = parse("cpu", text);
    assert_fails(berth_decompose_devices(f.module, f.main, f.target, false),
                 BERTH_FAILED_PRECONDITION, "plan-devices decides that");
    finish(&f);
    f = parse("cpu", "module \"t\" graph @main(%x: f32[4]) { send(%x) {channel = 0, to = \"b\"} "
                     "return %x }");
    outcome out;
    assert_fails(evaluate(&f, NULL, &out), BERTH_UNSUPPORTED, "no channel");
    finish(&f);
}
