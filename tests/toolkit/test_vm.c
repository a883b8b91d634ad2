// Models under the virtual machine, loaded once and run with inputs of several shapes, beside the
// reference interpreter; on every device.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "devices/registry.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/device_is_here.h"
#include "toolkit/vm_session.h"

enum { most_values = 5, most_runs = 6 };

// Shapes of the inputs of a run: f32 of these extents, or a number.
typedef struct input {
    int rank;  // -1: an i64 scalar
    int64_t dims[3];
} input;

typedef struct vm_case {
    const char *name;
    const char *text;
    uint32_t input_count, output_count, run_count;
    input runs[most_runs][most_values];
} vm_case;

#define N(number)                                                                                  \
    {                                                                                              \
        -1, {                                                                                      \
            number                                                                                 \
        }                                                                                          \
    }
#define V(a)                                                                                       \
    {                                                                                              \
        1, {                                                                                       \
            a                                                                                      \
        }                                                                                          \
    }
#define M(a, b)                                                                                    \
    {                                                                                              \
        2, {                                                                                       \
            a, b                                                                                   \
        }                                                                                          \
    }

static const vm_case cases[] = {
    {"a loop carries and scans",
     "graph @main(%x: f32[N], %n: i64[]) {\n"
     "  %zero = constant() {value = f32[] (0)}\n"
     "  %sum, %rows = loop(%n, _, %zero) (%i: i64[], %go: bool[], %acc: f32[]) {\n"
     "    %v = gather(%x, %i)\n    %t = tanh(%v)\n    %next = add(%acc, %t)\n"
     "    %scaled = mul(%x, %next)\n"
     "    return %go, %next, %scaled\n  }\n"
     "  return %sum, %rows\n}\n",
     2,
     2,
     4,
     {{V(5), N(3)}, {V(5), N(5)}, {V(9), N(2)}, {V(9), N(0)}}},
    {"values trade places",
     "graph @main(%x: f32[N], %n: i64[]) {\n"
     "  %y = exp(%x)\n"
     "  %a, %b = loop(%n, _, %x, %y) (%i: i64[], %go: bool[], %p: f32[N], %q: f32[N]) {\n"
     "    return %go, %q, %p\n  }\n"
     "  %d = sub(%a, %b)\n"
     "  return %a, %b, %d\n}\n",
     2,
     3,
     3,
     {{V(4), N(0)}, {V(4), N(1)}, {V(7), N(4)}}},
    {"a condition that depends on the data ends the loop; the state grows",
     "graph @main(%x: f32[1,K], %limit: f32[]) {\n"
     "  %yes = constant() {value = bool[] (1)}\n  %axes = constant() {value = i64[1] (0)}\n"
     "  %all = loop(_, %yes, %x) (%i: i64[], %go: bool[], %c: f32[R,K]) {\n"
     "    %m = reduce_sum(%c, %axes) {keepdims = 1}\n    %row = sigmoid(%m)\n"
     "    %longer = concat(%c, %row) {axis = 0}\n"
     "    %total = reduce_sum(%longer) {keepdims = 0}\n"
     "    %more = less(%total, %limit)\n"
     "    return %more, %longer\n  }\n"
     "  %t = transpose(%all) {perm = [1, 0]}\n  %p = matmul(%all, %t)\n"
     "  return %all, %p\n}\n",
     2,
     2,
     3,
     {{M(1, 3), {0, {0}}}, {M(1, 8), {0, {0}}}, {M(1, 3), {0, {0}}}}},
    {"branches of different shapes, one inside the other",
     "graph @main(%x: f32[A,B], %k: i64[]) {\n"
     "  %zero = constant() {value = i64[] (0)}\n  %two = constant() {value = i64[] (2)}\n"
     "  %positive = greater(%k, %zero)\n"
     "  %y = if(%positive) {\n"
     "    %big = greater(%k, %two)\n"
     "    %r = if(%big) {\n      %t = transpose(%x) {perm = [1, 0]}\n      return %t\n    } else "
     "{\n"
     "      %s = add(%x, %x)\n      return %s\n    }\n"
     "    return %r\n  } else {\n"
     "    %one = constant() {value = i64[1] (1)}\n    %f = reduce_mean(%x, %one) {keepdims = 0}\n"
     "    return %f\n  }\n"
     "  %z = relu(%y)\n"
     "  return %z\n}\n",
     2,
     1,
     5,
     {{M(2, 3), N(-1)}, {M(2, 3), N(1)}, {M(2, 3), N(5)}, {M(4, 1), N(5)}, {M(4, 1), N(0)}}},
    {"what is not zero decides how much there is to do",
     "graph @main(%x: f32[A,B]) {\n"
     "  %zero = constant() {value = f32[] (0)}\n  %p = greater(%x, %zero)\n"
     "  %places = non_zero(%p)\n  %t = transpose(%places) {perm = [1, 0]}\n"
     "  %kept = gather_nd(%x, %t)\n  %r = sqrt(%kept)\n  %sum = reduce_sum(%r) {keepdims = 0}\n"
     "  return %r, %sum\n}\n",
     1,
     2,
     3,
     {{M(3, 4)}, {M(5, 5)}, {M(1, 2)}}},
    {"a function is called, and a tuple opened",
     "graph @twice(%v: f32[P], %n: i64[]) {\n"
     "  %r = loop(%n, _, %v) (%i: i64[], %go: bool[], %c: f32[P]) {\n"
     "    %d = add(%c, %c)\n    return %go, %d\n  }\n"
     "  return %r\n}\n"
     "graph @main(%x: f32[N], %n: i64[]) {\n"
     "  %a = call(%x, %n) {callee = @twice}\n  %b = neg(%x)\n"
     "  %both = tuple(%a, %b)\n  %second = tuple_get(%both) {index = 1}\n"
     "  %e = call(%second, %n) {callee = @twice}\n"
     "  return %a, %e\n}\n",
     2,
     2,
     3,
     {{V(3), N(2)}, {V(6), N(3)}, {V(3), N(0)}}},
    {"shapes alone, no control flow",
     "graph @main(%x: f32[A,B]) {\n"
     "  %s = shape_of(%x)\n  %first = constant() {value = i64[1] (0)}\n"
     "  %rows = gather(%s, %first)\n  %rest = constant() {value = i64[1] (-1)}\n"
     "  %two = constant() {value = i64[1] (2)}\n"
     "  %d = mul(%rows, %two)\n  %to = concat(%d, %rest) {axis = 0}\n"
     "  %y = concat(%x, %x) {axis = 0}\n  %z = reshape(%y, %to)\n  %e = exp(%z)\n"
     "  return %e\n}\n",
     1,
     1,
     3,
     {{M(2, 6)}, {M(3, 1)}, {M(8, 8)}}},
};

typedef struct vm_run {
    const vm_case *test;
    berth_arena *arena;
    berth_module *module;  // of the reference
    berth_vm_session *session;
    char path[64];
} vm_run;

static vm_run begin_requiring(const vm_case *test, const char *target, const char *devices) {
    vm_run r = {.test = test};
    char text[4096];
    int length = snprintf(text, sizeof(text), "module \"m\"\n%s", test->text);
    cr_assert(length > 0 && (size_t)length < sizeof(text));
    snprintf(r.path, sizeof(r.path), "/tmp/berth-vm-%d.txt", (int)getpid());
    assert_ok(berth_arena_create(berth_allocator_system(), &r.arena));
    assert_ok(berth_file_write(r.path, text, (size_t)length));
    assert_ok(berth_module_parse(r.arena, berth_arena_strdup(r.arena, text), (size_t)length, "text",
                                 &r.module));
    berth_model_options options = {
        .target = target,
        .required_devices = devices,
        .compile = {.cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")}};
    berth_status status = berth_vm_session_open(r.path, &options, 2, &r.session);
    cr_assert_null(status, "%s: %s", test->name, berth_status_message(status));
    return r;
}

static vm_run begin(const vm_case *test, const char *target) {
    return begin_requiring(test, target, NULL);
}

static void end(vm_run *r) {
    berth_vm_session_close(r->session);
    berth_arena_destroy(r->arena);
    unlink(r->path);
}

static berth_tensor make(const vm_run *r, const input *wanted, uint64_t seed) {
    if (wanted->rank < 0) {
        berth_tensor scalar = berth_tensor_create(r->arena, BERTH_DTYPE_I64, 0, NULL);
        berth_tensor_set_i64(&scalar, 0, wanted->dims[0]);
        return scalar;
    }
    berth_tensor tensor =
        berth_tensor_create(r->arena, BERTH_DTYPE_F32, wanted->rank, wanted->dims);
    berth_tensor_fill_random(&tensor, seed);
    if (wanted->rank == 0) berth_tensor_set_f64(&tensor, 0, 9);
    return tensor;
}

static void expect_equal(const vm_case *test, const berth_tensor *got, const berth_tensor *wanted,
                         uint32_t run, uint32_t output) {
    cr_assert(berth_tensor_same_shape(got, wanted), "%s: run %u: the shape of result %u",
              test->name, run, output);
    int64_t count = berth_tensor_element_count(wanted);
    for (int64_t i = 0; i < count; ++i) {
        double a = berth_tensor_get_f64(got, i), b = berth_tensor_get_f64(wanted, i);
        cr_assert(fabs(a - b) <= 1e-5 + 1e-5 * fabs(b), "%s: run %u, result %u: %g, expected %g",
                  test->name, run, output, a, b);
    }
}

static void run_with(vm_run *r, const input *shapes, uint32_t index) {
    const vm_case *test = r->test;
    berth_tensor inputs[most_values], wanted[most_values];
    berth_vm_value *given[most_values], *got[most_values];
    for (uint32_t i = 0; i < test->input_count; ++i) {
        inputs[i] = make(r, &shapes[i], 100 * index + i);
        assert_ok(berth_vm_value_borrow(berth_allocator_system(), &inputs[i], &given[i]));
    }
    assert_ok(berth_eval_function(r->module, berth_module_find_function(r->module, "main"), inputs,
                                  test->input_count, wanted, test->output_count, r->arena));
    berth_status status = berth_vm_session_run(r->session, given, got);
    cr_assert_null(status, "%s: run %u: %s", test->name, index, berth_status_message(status));
    for (uint32_t i = 0; i < test->output_count; ++i) {
        expect_equal(test, &got[i]->tensor, &wanted[i], index, i);
        berth_vm_value_release(got[i]);
    }
    for (uint32_t i = 0; i < test->input_count; ++i) berth_vm_value_release(given[i]);
}

static void run_once(vm_run *r, uint32_t index) {
    run_with(r, r->test->runs[index], index);
}

// All runs twice: the second time everything is compiled already.
static void run_case(const vm_case *test, const char *target) {
    vm_run r = begin(test, target);
    berth_vm_report first, second;
    for (uint32_t i = 0; i < test->run_count; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &first);
    for (uint32_t i = 0; i < test->run_count; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &second);
    cr_assert_eq(first.compiled_count, second.compiled_count, "%s compiles again", test->name);
    end(&r);
}

// Elementwise operations, a transposed copy, reductions and a product, of any size.
static const vm_case sizes = {
    "any size",
    "graph @main(%x: f32[A,B]) {\n"
    "  %y = tanh(%x)\n  %t = transpose(%y) {perm = [1, 0]}\n  %e = exp(%t)\n"
    "  %axes = constant() {value = i64[1] (0)}\n  %s = reduce_sum(%e, %axes) {keepdims = 0}\n"
    "  %m = reduce_mean(%y, %axes) {keepdims = 0}\n  %p = matmul(%t, %y)\n"
    "  return %e, %s, %m, %p\n}\n",
    1,
    4,
    6,
    {{M(64, 96)}, {M(128, 160)}, {M(77, 112)}, {M(96, 48)}, {M(121, 80)}, {M(40, 64)}}};

static void several_sizes(const char *target) {
    vm_run r = begin(&sizes, target);
    berth_vm_report second, last;
    for (uint32_t i = 0; i < 3; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &second);
    cr_assert_gt(second.kernels.generic_count, 0, "%s", target);
    for (uint32_t i = 3; i < sizes.run_count; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &last);
    cr_assert_eq(last.compiled_count, sizes.run_count);
    cr_assert_gt(last.kernels.reused_count, second.kernels.reused_count, "%s", target);
    for (uint32_t i = 0; i < sizes.run_count; ++i) run_once(&r, i);  // each with its own numbers
    end(&r);
}

// What the kernels of the second shape are arguments for is known from shapes that have not come; with the third, those
// of other forms are there, too.
Test(vm_models, a_fourth_shape_of_equal_form_compiles_nothing) {
    static const input shapes[] = {M(64, 96), M(128, 160), M(320, 352), M(256, 224)};
    vm_run r = begin(&sizes, "cpu");
    berth_vm_report third, fourth;
    for (uint32_t i = 0; i < 4; ++i) {
        if (i == 3) berth_vm_session_wait(r.session);
        if (i == 3) berth_vm_session_get_report(r.session, &third);
        run_with(&r, &shapes[i], i);
    }
    berth_vm_session_get_report(r.session, &fourth);
    cr_assert_gt(third.kernels.generic_count, 0);
    cr_assert_eq(fourth.kernels.exact_count, third.kernels.exact_count);
    cr_assert_eq(fourth.kernels.generic_count, third.kernels.generic_count);
    end(&r);
}

// From the third shape on kernels of other forms are there too. B has one extent only, which the model names all the
// same: it must not keep the others from being asked for.
static const vm_case one_extent = {
    "one extent",
    "graph @main(%x: f32[A,B]) {\n"
    "  %w = constant() {value = f32[3,4] (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)}\n"
    "  %p = matmul(%x, %w)\n  %t = transpose(%p) {perm = [1, 0]}\n  %e = exp(%t)\n"
    "  %axes = constant() {value = i64[1] (0)}\n  %s = reduce_max(%p, %axes) {keepdims = 0}\n"
    "  return %e, %s\n}\n",
    1,
    2,
    0,
    {{{0}}}};

// Rows and columns that change together, in tiles that have rests for some of them.
static const vm_case square = {
    "square",
    "graph @main(%x: f32[A,B]) {\n"
    "  %t = transpose(%x) {perm = [1, 0]}\n  %p = matmul(%x, %t)\n"
    "  %q = softmax(%p) {axis = 1}\n"
    "  %axes = constant() {value = i64[1] (0)}\n  %s = reduce_max(%p, %axes) {keepdims = 0}\n"
    "  return %q, %s\n}\n",
    1,
    2,
    0,
    {{{0}}}};

// Forty lengths of a program file, whose four pieces of arithmetic have a result for each: all of it is kept, so that
// lengths that come again open nothing.
static const char counting[] =
    "module \"m\"\n"
    "graph @main(%x: f32[A,3], %s: f32[]) {bounds = \"A=1..40\"} {\n"
    "  %shape = shape_of(%x)\n  %zero = constant() {value = i64[] (0)}\n"
    "  %n = gather(%shape, %zero)\n  %two = constant() {value = i64[] (2)}\n"
    "  %m = mul(%n, %two)\n  %k = add(%m, %two)\n  %y = neg(%x)\n  %t = add(%s, %s)\n"
    "  return %y, %k, %t\n}\n";

static void run_counting(berth_vm_session *session, int64_t rows) {
    float x[120] = {1, 2, 3}, scalar = 4;
    const berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 2, {rows, 3}, x},
                                    {BERTH_DTYPE_F32, 0, {0}, &scalar}};
    berth_vm_value *given[2], *got[3];
    for (int i = 0; i < 2; ++i)
        assert_ok(berth_vm_value_borrow(berth_allocator_system(), &inputs[i], &given[i]));
    assert_ok(berth_vm_session_run(session, given, got));
    cr_assert_eq(*(const int64_t *)got[1]->tensor.data, 2 * rows + 2);
    for (int i = 0; i < 3; ++i) berth_vm_value_release(got[i]);
    for (int i = 0; i < 2; ++i) berth_vm_value_release(given[i]);
}

Test(vm_models, lengths_that_come_again_open_nothing) {
    const char *const states[] = {"s=t"};
    const berth_model_options options = {
        .target = "cpu",
        .states = states,  // so that a program is made
        .state_count = 1,
        .compile = {.cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")}};
    char path[] = "/tmp/berth-counting-XXXXXX";
    berth_vm_session *session = NULL;
    close(mkstemp(path));
    assert_ok(berth_file_write(path, counting, strlen(counting)));
    assert_ok(berth_vm_session_open(path, &options, 1, &session));
    unlink(path);
    for (int64_t rows = 1; rows <= 40; ++rows) run_counting(session, rows);
    const berth_vm_runner *runner = berth_vm_session_runner(session);
    const uint32_t opened = berth_vm_runner_get_report(runner)->opened_count;
    cr_assert_gt(opened, 0);
    for (int64_t rows = 1; rows <= 40; ++rows) run_counting(session, rows);
    cr_assert_eq(berth_vm_runner_get_report(runner)->opened_count, opened);
    berth_vm_session_close(session);
}

static bool never(void *state) {
    (void)state;
    return false;
}

// Asked for after three shapes: forms, and how many kernels there are.
static berth_vm_report after_three(vm_run *r) {
    static const int64_t rows[] = {504, 328, 160};
    berth_vm_report report;
    for (uint32_t i = 0; i < 3; ++i) run_with(r, (const input[]){M(rows[i], 3)}, i);
    berth_vm_session_get_report(r->session, &report);
    return report;
}

static uint32_t kernel_count(const berth_vm_report *report) {
    return report->kernels.generic_count + report->kernels.exact_count;
}

// Kernels of forms that come later are compiled beside the runs: in the end of every form that was noted, as where a run
// waits for them (where signals wait for compilers). A session closes, and runs, while they are compiled.
Test(vm_models, other_forms_are_compiled_beside_the_runs) {
    vm_run r = begin(&square, "cpu");
    berth_vm_session_follow(r.session, (berth_log){0}, (berth_interrupt){.pending = never});
    const berth_vm_report at_once = after_three(&r);
    berth_vm_session_wait(r.session);
    berth_vm_report later;
    berth_vm_session_get_report(r.session, &later);
    cr_assert_eq(later.kernels.noted_form_count, at_once.kernels.noted_form_count);
    cr_assert_eq(later.kernels.generic_count, at_once.kernels.generic_count);
    end(&r);
    r = begin(&square, "cpu");
    (void)after_three(&r);
    berth_vm_session_wait(r.session);
    berth_vm_session_get_report(r.session, &later);
    // A form that the third run has a kernel of by then need not be noted.
    cr_assert_gt(later.kernels.noted_form_count, 0);
    cr_assert_leq(later.kernels.noted_form_count, at_once.kernels.noted_form_count);
    // Where a run had to compile one of them itself there are more.
    cr_assert_geq(kernel_count(&later), kernel_count(&at_once));
    end(&r);
    r = begin(&square, "cpu");
    (void)after_three(&r);
    run_with(&r, (const input[]){M(72, 3)}, 3);
    run_with(&r, (const input[]){M(504, 3)}, 4);
    end(&r);
}

Test(vm_models, later_shapes_compile_next_to_nothing) {
    static const int64_t first[] = {504, 328, 160};
    static const int64_t later[] = {72, 640, 321, 999, 100, 77, 200, 333, 480, 150, 64, 128};
    vm_run r = begin(&one_extent, "cpu");
    berth_vm_report before, after;
    uint32_t index = 0;
    for (; index < 3; ++index) run_with(&r, (const input[]){M(first[index], 3)}, index);
    berth_vm_session_wait(r.session);
    berth_vm_session_get_report(r.session, &before);
    for (uint32_t i = 0; i < 12; ++i, ++index) run_with(&r, (const input[]){M(later[i], 3)}, index);
    berth_vm_session_get_report(r.session, &after);
    uint32_t more = after.kernels.exact_count + after.kernels.generic_count -
                    before.kernels.exact_count - before.kernels.generic_count;
    cr_assert_leq(more, 2, "%u more kernels for 12 shapes", more);
    end(&r);
}

Test(vm_models, kernels_serve_several_sizes) {
    several_sizes("cpu");
    if (device_is_here("opencl", 1)) several_sizes("opencl -host=cpu");
}

// The largest shape comes first: the others work in its workspace.
Test(vm_models, shapes_have_one_workspace) {
    vm_run r = begin(&sizes, "cpu");
    berth_vm_report first, last;
    run_once(&r, 1);
    berth_vm_session_get_report(r.session, &first);
    cr_assert_gt(first.workspace_bytes, 0);
    for (uint32_t i = 0; i < sizes.run_count; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &last);
    cr_assert_eq(last.compiled_count, sizes.run_count);
    cr_assert_eq(last.workspace_bytes, first.workspace_bytes, "%llu, then %llu bytes",
                 (unsigned long long)first.workspace_bytes,
                 (unsigned long long)last.workspace_bytes);
    end(&r);
}

// A decoder of two layers with a cache that grows by a row: what the cache's length does not change is
// compiled once, and for each length a mask that both layers share, and the attention, which is equal.
static const vm_case growing = {
    "growing cache",
    "graph @main(%x: f32[1,B], %k0: f32[P,16], %k1: f32[P,16], %w: f32[16,16], "
    "%m: f32[1,T]) {\n  %e = exp(%m)\n"
    "  %h0 = matmul(%x, %w)\n  %a0 = tanh(%h0)\n  %b0 = add(%a0, %x)\n  %q0 = matmul(%b0, %w)\n"
    "  %c0 = concat(%k0, %q0) {axis = 0}\n  %t0 = transpose(%c0) {perm = [1, 0]}\n"
    "  %r0 = matmul(%q0, %t0)\n  %s0 = add(%r0, %e)\n  %p0 = softmax(%s0) {axis = -1}\n  %o0 = "
    "matmul(%p0, %c0)\n"
    "  %h1 = matmul(%o0, %w)\n  %a1 = tanh(%h1)\n  %b1 = add(%a1, %x)\n  %q1 = matmul(%b1, %w)\n"
    "  %c1 = concat(%k1, %q1) {axis = 0}\n  %t1 = transpose(%c1) {perm = [1, 0]}\n"
    "  %r1 = matmul(%q1, %t1)\n  %s1 = add(%r1, %e)\n  %p1 = softmax(%s1) {axis = -1}\n  %o1 = "
    "matmul(%p1, %c1)\n"
    "  %h2 = matmul(%o1, %w)\n  %a2 = tanh(%h2)\n  %y = add(%a2, %x)\n"
    "  return %y, %c0, %c1\n}\n",
    5,
    3,
    6,
    {{M(1, 16), M(1, 16), M(1, 16), M(16, 16), M(1, 2)},
     {M(1, 16), M(2, 16), M(2, 16), M(16, 16), M(1, 3)},
     {M(1, 16), M(3, 16), M(3, 16), M(16, 16), M(1, 4)},
     {M(1, 16), M(9, 16), M(9, 16), M(16, 16), M(1, 10)},
     {M(1, 16), M(31, 16), M(31, 16), M(16, 16), M(1, 32)},
     {M(1, 16), M(32, 16), M(32, 16), M(16, 16), M(1, 33)}}};

Test(vm_models, a_growing_cache_compiles_attention_only) {
    vm_run r = begin(&growing, "cpu");
    berth_vm_report first, second, last;
    run_once(&r, 0);
    berth_vm_session_get_report(r.session, &first);
    cr_assert_eq(first.compiled_count, 1);
    run_once(&r, 1);  // divided: before, between and after the layers' attention
    berth_vm_session_get_report(r.session, &second);
    cr_assert_eq(second.compiled_count, first.compiled_count + 3 + 2);
    for (uint32_t i = 2; i < growing.run_count; ++i) {
        run_once(&r, i);
        berth_vm_session_get_report(r.session, &last);
        cr_assert_eq(last.compiled_count, second.compiled_count + 2 * (i - 1), "run %u", i);
    }
    for (uint32_t i = 0; i < growing.run_count; ++i) run_once(&r, i);
    berth_vm_session_get_report(r.session, &second);
    cr_assert_eq(second.compiled_count, last.compiled_count);
    end(&r);
    if (device_is_here("opencl", 1)) run_case(&growing, "opencl -host=cpu");
}

// Every length from 1 on, as a decoder has them, with whole and broken vectors; what is kept for them
// stays within its limits.
Test(vm_models, hundreds_of_lengths_are_right_and_take_no_more_memory) {
    enum { lengths = 360, warm = 180 };
    vm_run r = begin(&growing, "cpu");
    berth_vm_report before, after;
    berth_vm_session_set_limits(r.session, 8, 0);
    for (int64_t n = 1; n <= lengths; ++n) {
        const input shapes[] = {M(1, 16), M(n, 16), M(n, 16), M(16, 16), M(1, n + 1)};
        run_with(&r, shapes, (uint32_t)n);
        if (n == warm) berth_vm_session_get_report(r.session, &before);
    }
    berth_vm_session_get_report(r.session, &after);
    cr_assert_gt(after.dropped_count, lengths);
    // Buffers of longer caches, and a few kernels of forms that are new.
    cr_assert_lt(after.held_bytes, before.held_bytes + (1 << 20), "%llu, then %llu bytes",
                 (unsigned long long)before.held_bytes, (unsigned long long)after.held_bytes);
    cr_assert_lt(after.kernels.exact_count + after.kernels.generic_count -
                     before.kernels.exact_count - before.kernels.generic_count,
                 10, "lengths share kernels");
    end(&r);
}

// With room for one compiled segment everything is compiled again and again, and right.
Test(vm_models, old_shapes_make_room) {
    vm_run by_count = begin(&cases[0], "cpu"), by_bytes = begin(&cases[6], "cpu");
    berth_vm_report report;
    berth_vm_session_set_limits(by_count.session, 1, 0);
    berth_vm_session_set_limits(by_bytes.session, 0, 1);
    for (int round = 0; round < 2; ++round) {
        run_once(&by_count, 0);
        run_once(&by_count, 2);
        run_once(&by_bytes, 0);
        run_once(&by_bytes, 1);
    }
    berth_vm_session_get_report(by_count.session, &report);
    cr_assert_eq(report.compiled_count, report.dropped_count + 1);
    cr_assert_geq(report.dropped_count, 3);
    berth_vm_session_get_report(by_bytes.session, &report);
    cr_assert_eq(report.compiled_count, report.dropped_count + 1);
    cr_assert_eq(report.dropped_count, 3);
    end(&by_count);
    end(&by_bytes);
}

static void run_all(const char *target) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) run_case(&cases[i], target);
}

Test(vm_models, cpu) {
    run_all("cpu");
}

Test(vm_models, opencl) {
    if (device_is_here("opencl", 1)) run_all("opencl -host=cpu");
}

Test(vm_models, vulkan) {
    if (device_is_here("vulkan", 1)) run_all("vulkan -host=cpu");
}

Test(vm_models, two_devices) {
    if (device_is_here("opencl", 1)) run_all("cpu,opencl");
}

// What a device was asked for and the host's interpreter computed is refused; counters and shapes
// may be computed there.
Test(vm_models, requires_a_device) {
    vm_run on_cpu = begin(&cases[4], "cpu");  // NonZero
    run_once(&on_cpu, 0);
    assert_ok(berth_vm_session_require(on_cpu.session, "cpu:0"));
    berth_vm_report report;
    berth_vm_session_get_report(on_cpu.session, &report);
    cr_assert_eq(report.host_data_operations, 1);
    end(&on_cpu);
    if (!device_is_here("opencl", 1)) return;
    vm_run branches = begin(&cases[3], "opencl -host=cpu"), data = begin(&cases[4], "opencl");
    run_once(&branches, 2);
    run_once(&data, 0);
    assert_ok(berth_vm_session_require(branches.session, "opencl:0"));
    assert_fails(berth_vm_session_require(branches.session, "cpu:0"), BERTH_UNAVAILABLE,
                 "runs on opencl:0");
    assert_fails(berth_vm_session_require(data.session, "opencl:0"), BERTH_UNAVAILABLE,
                 "runs on the host (cpu:0), not on opencl:0");
    end(&branches);
    end(&data);
}

// A slice whose end is the counter's; the greatest elements, as many as what was computed from the data
// says.
static const vm_case parameters_of_the_run = {
    "parameters that only the run knows",
    "graph @main(%x: f32[N], %n: i64[]) {\n"
    "  %none = constant() {value = f32[] (0)}\n  %zero = constant() {value = i64[1] (0)}\n"
    "  %one = constant() {value = i64[] (1)}\n"
    "  %sum, %sums = loop(%n, _, %none) (%i: i64[], %go: bool[], %acc: f32[]) {\n"
    "    %next = add(%i, %one)\n    %end = unsqueeze(%next, %zero)\n"
    "    %part = slice(%x, %zero, %end)\n    %s = reduce_sum(%part) {keepdims = 0}\n"
    "    %more = add(%acc, %s)\n    return %go, %more, %s\n  }\n"
    "  %square = mul(%sum, %sum)\n  %whole = cast(%square) {to = i64}\n"
    "  %two = constant() {value = i64[] (2)}\n  %few = min(%whole, %two)\n"
    "  %some = max(%few, %one)\n  %k = unsqueeze(%some, %zero)\n"
    "  %top, %at = top_k(%x, %k) {axis = 0}\n"
    "  return %sums, %top\n}\n",
    2,
    2,
    2,
    {{V(6), N(4)}, {V(9), N(3)}}};

// Where a device is required from the beginning it does what the host would have done sooner.
Test(vm_models, a_required_device_takes_parameters_of_the_run) {
    if (!device_is_here("opencl", 1)) return;
    vm_run free = begin(&parameters_of_the_run, "opencl");
    run_once(&free, 0);
    assert_fails(berth_vm_session_require(free.session, "opencl:0"), BERTH_UNAVAILABLE,
                 "runs on the host (cpu:0), not on opencl:0");
    end(&free);
    vm_run asked = begin_requiring(&parameters_of_the_run, "opencl", "opencl:0");
    for (uint32_t i = 0; i < parameters_of_the_run.run_count; ++i) run_once(&asked, i);
    assert_ok(berth_vm_session_require(asked.session, "opencl:0"));
    end(&asked);
    vm_run hosts = begin_requiring(&parameters_of_the_run, "opencl", "opencl:0,cpu:0");
    run_once(&hosts, 0);
    berth_vm_report report;
    berth_vm_session_get_report(hosts.session, &report);
    cr_expect_gt(report.host_data_operations, 0);  // it may, and is faster
    end(&hosts);
}

Test(vm_models, wrong_inputs_are_refused) {
    vm_run r = begin(&cases[0], "cpu");
    input wrong = M(2, 2);
    berth_tensor tensor = make(&r, &wrong, 1);
    berth_vm_value *given[2] = {NULL}, *got[2];
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &tensor, &given[0]));
    given[1] = given[0];
    assert_fails(berth_vm_session_run(r.session, given, got), BERTH_INCOMPATIBLE,
                 "input \"x\" is f32[2,2], but must be f32[N]");
    cr_assert_null(got[0]);
    berth_vm_value_release(given[0]);
    end(&r);
}

// An index outside of the data is an error of the run, which can be followed by others.
Test(vm_models, a_run_that_fails_leaves_the_session_usable) {
    vm_run r = begin(&cases[5], "cpu");
    berth_vm_session_cancel(r.session);
    berth_tensor tensor = make(&r, &cases[5].runs[0][0], 1),
                 count = make(&r, &cases[5].runs[0][1], 1);
    berth_vm_value *given[2], *got[2];
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &tensor, &given[0]));
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &count, &given[1]));
    assert_fails(berth_vm_session_run(r.session, given, got), BERTH_CANCELLED, "cancelled");
    berth_vm_value_release(given[0]);
    berth_vm_value_release(given[1]);
    run_once(&r, 0);
    end(&r);
}
