// Rows of a work-group: sums that work-items share compute what one work-item does, under the interpreter, whose
// work-items run in step between barriers, and on OpenCL and Vulkan devices; bodies that have no such form stay.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/opencl_run.h"

static const char *const targets[] = {
    "opencl -arch=gfx900 -subgroup_size=64 -max_group_size=256 -local_memory_bytes=65536",
    "opencl -arch=gfx900 -subgroup_size=64 -max_group_size=12 -local_memory_bytes=8192",
    "vulkan -max_group_size=128 -local_memory_bytes=16384",
    "vulkan -max_group_size=128 -local_memory_bytes=16384 -features=subgroup_arithmetic",
    "opencl -subgroup_size=1",  // processor cores: no groups
    "cuda -arch=sm_90a -compute_units=16",
};
enum { TARGETS = 6, CORES = 4 };

typedef struct row_case {
    const char *name;
    bool grouped;
    const char *text;
} row_case;

#define HEAD(x, y) "module \"m\" tensor @f(%x: f32" x " in, %y: f32" y " out) { "

static const row_case cases[] = {
    {"softmax", true,
     HEAD("[3,77]", "[3,77]") "parallel %i in 3 {"
                              " register %top: f32[] %top[] = -inf"
                              " for %r in 77 { %top[] = max(%top[], %x[%i, %r]) }"
                              " register %acc: f32[] %acc[] = 0.0 private %row: f32[77]"
                              " for %r in 77 { %row[%r] = exp(%x[%i, %r] - %top[])"
                              " %acc[] = %acc[] + %row[%r] }"
                              " %acc[] = 1.0 / %acc[]"
                              " for %r in 77 { %y[%i, %r] = %row[%r] * %acc[] } } }"},
    {"two sums of a loop, one that begins at 3, and what the second needs of the first", true,
     HEAD("[2,3,200]", "[2,3]") "parallel %i in 2 { parallel %j in 3 {"
                                " register %a: f32[] %a[] = 3.0 register %b: f32[] %b[] = 1000.0"
                                " for %r in 200 { %a[] = fma(%x[%i, %j, %r], 0.5, %a[])"
                                " %b[] = min(%x[%i, %j, %r], %b[]) }"
                                " register %c: f32[] %c[] = 0.0"
                                " for %r in 200 { %c[] = %c[] + (%x[%i, %j, %r] - %b[]) }"
                                " %y[%i, %j] = %a[] + %c[] * 0.01 } } }"},
    {"a sum over two loops that no group divides", true,
     HEAD("[5,7,9]", "[5]") "parallel %i in 5 { register %acc: f32[] %acc[] = 0.0"
                            " for %r in 7 { for %s in 9 { %acc[] = %acc[] + %x[%i, %r, %s] } }"
                            " %y[%i] = %acc[] / 63.0 } }"},
    {"few columns, whose terms do not lie one after another", true,
     HEAD("[300,4]", "[4]") "parallel %i in 4 { register %acc: f32[] %acc[] = 1.0"
                            " for %r in 300 { %acc[] = %acc[] * (1.0 + 0.001 * %x[%r, %i]) }"
                            " %y[%i] = %acc[] } }"},
    {"a row times a matrix: columns beside each other, whose sums are divided", true,
     "module \"m\" tensor @f(%x: f32[100] in, %w: f32[100,70] in, %y: f32[70] out) {"
     " parallel %j in 70 { register %acc: f32[] %acc[] = 0.0"
     " for %k in 100 { %acc[] = fma(%x[%k], %w[%k, %j], %acc[]) } %y[%j] = %acc[] } }"},
    {"two rows of columns, a maximum and results inside of the loop", true,
     HEAD("[2,90,64]", "[2,90,64]") "parallel %i in 2 { parallel %j in 64 {"
                                    " register %top: f32[] %top[] = -1000.0"
                                    " for %k in 90 { %top[] = max(%x[%i, %k, %j], %top[]) }"
                                    " for %k in 90 { %y[%i, %k, %j] = %x[%i, %k, %j] - %top[] }"
                                    " } } }"},
    {"a row that is read backwards from what the group has", true,
     HEAD("[2,40]", "[2,40]") "parallel %i in 2 { private %row: f32[40]"
                              " register %acc: f32[] %acc[] = 0.0"
                              " for %r in 40 { %row[%r] = %x[%i, %r] * 2.0 }"
                              " for %r in 40 { %acc[] = %acc[] + %row[39 - %r] }"
                              " for %r in 40 { %y[%i, %r] = %row[39 - %r] + %acc[] } } }"},
    {"an element that all read before the row is written again", true,
     HEAD("[2,40]", "[2]") "parallel %i in 2 { private %row: f32[40]"
                           " register %a: f32[] register %acc: f32[] %acc[] = 0.0"
                           " for %r in 40 { %row[%r] = %x[%i, %r] }"
                           " %a[] = %row[0]"
                           " for %r in 40 { %row[%r] = %row[%r] * 2.0 + %a[] }"
                           " for %r in 40 { %acc[] = %acc[] + %row[%r] } %y[%i] = %acc[] } }"},
    {"many columns: a work-item each", false,
     HEAD("[50,9000]", "[9000]") "parallel %i in 9000 { register %acc: f32[] %acc[] = 0.0"
                                 " for %r in 50 { %acc[] = %acc[] + %x[%r, %i] }"
                                 " %y[%i] = %acc[] } }"},
    {"a short sum", false,
     HEAD("[20,9]", "[20]") "parallel %i in 20 { register %acc: f32[] %acc[] = 0.0"
                            " for %r in 9 { %acc[] = %acc[] + %x[%i, %r] } %y[%i] = %acc[] } }"},
    {"running sums", false,
     HEAD("[3,50]", "[3,50]") "parallel %i in 3 { register %acc: f32[] %acc[] = 0.0"
                              " for %r in 50 { %acc[] = %acc[] + %x[%i, %r]"
                              " %y[%i, %r] = %acc[] } } }"},
    {"a difference is no sum", false,
     HEAD("[3,50]", "[3]") "parallel %i in 3 { register %acc: f32[] %acc[] = 0.0"
                           " for %r in 50 { %acc[] = %x[%i, %r] - %acc[] }"
                           " %y[%i] = %acc[] } }"},
    {"what is added depends on the sum", false,
     HEAD("[3,50]", "[3]") "parallel %i in 3 { register %acc: f32[] %acc[] = 0.0"
                           " for %r in 50 { %acc[] = %acc[] + %x[%i, %r] * %acc[] * 0.1 }"
                           " %y[%i] = %acc[] } }"},
    {"each element from the one before", false,
     HEAD("[3,50]", "[3]") "parallel %i in 3 { private %row: f32[51]"
                           " register %acc: f32[] %acc[] = 0.0"
                           " for %r in 51 { %row[%r] = 0.0 }"
                           " for %r in 50 { %row[%r + 1] = %row[%r] * 0.5 + %x[%i, %r] }"
                           " for %r in 50 { %acc[] = %acc[] + %row[%r] } %y[%i] = %acc[] } }"},
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

// Work-items of the whole function.
static int64_t count_items(const berth_tfn *fn) {
    int64_t items = 1, extent = 0;
    for (uint32_t i = 1; i < fn->stmts.count; ++i) {
        const berth_stmt_node *node = &fn->stmts.data[i];
        if (node->kind == BERTH_STMT_FOR && node->loop_kind >= BERTH_LOOP_GROUP_X &&
            berth_tfn_const_value(fn, node->value, &extent))
            items *= extent;
    }
    return items;
}

// A row times a matrix on a GPU that has 2048 threads in each of 132 units: at least half of them are there, since each has
// few loads in flight; but where groups are as large as they get, as many as these have.
Test(group_rows, rows_fill_the_device) {
    static const int64_t sizes[][2] = {
        {4096, 4096}, {4096, 22016}, {11008, 4096}, {4096, 32000}, {4096, 128256}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        char text[512];
        long long k = sizes[i][0], n = sizes[i][1];
        snprintf(text, sizeof(text),
                 "module \"m\" tensor @f(%%x: f16[%lld] in, %%w: f16[%lld,%lld] in, %%y: f16[%lld] "
                 "out) {"
                 " parallel %%j in %lld { register %%acc: f32[] %%acc[] = 0.0"
                 " for %%k in %lld { %%acc[] = fma(f32(%%x[%%k]), f32(%%w[%%k, %%j]), %%acc[]) }"
                 " %%y[%%j] = f16(%%acc[]) } }",
                 k, k, n, n, n, k);
        bench_case c = support_case_parse(text);
        berth_status status = berth_schedule_apply(
            c.fn, support_target(c.arena, "cuda -arch=sm_90a -compute_units=132"));
        cr_assert(!status, "%s", berth_status_message(status));
        int64_t most = n * 1024 / 32, half = 132 * 2048 / 2;  // groups of 32 columns
        int64_t items = count_items(c.fn);
        cr_expect_geq(items, most < half ? most : half, "%lld x %lld: %lld work-items", k, n,
                      (long long)items);
        support_case_destroy(&c);
    }
}

ParameterizedTestParameters(group_rows, same_values) {
    static int numbers[CASES * TARGETS];
    for (int i = 0; i < CASES * TARGETS; ++i) numbers[i] = i;
    return cr_make_param_array(int, numbers, CASES *TARGETS);
}

ParameterizedTest(int *index, group_rows, same_values, .timeout = 120) {
    const row_case *row = &cases[*index / TARGETS];
    int which = *index % TARGETS;
    bench_case c = support_case_parse(row->text);
    const berth_target *target = support_target(c.arena, targets[which]);
    support_fill(&c, 11);
    berth_buf y = c.fn->param_count - 1;
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
    const float *plain = c.buffers[y];
    status = berth_schedule_apply(c.fn, target);
    cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
    berth_strbuf text = berth_strbuf_make(c.arena);
    berth_tfn_print(c.fn, &text);
    bool grouped = strstr(berth_strbuf_text(&text), "%shared") != NULL;
    cr_expect_eq(grouped, row->grouped && which != CORES, "%s on %d: grouped: %d\n%s", row->name,
                 which, grouped, berth_strbuf_text(&text));
    status = support_interpret(&c);
    cr_assert(!status, "%s: scheduled: %s", row->name, berth_status_message(status));
    double difference = support_difference(c.buffers[y], plain, c.element_counts[y]);
    cr_expect(difference < 2e-5, "%s on %d: scheduled differs by %g", row->name, which, difference);
    const berth_codegen *codegen = berth_codegen_find(berth_device_kind_name(target->kind));
    if (device_is_here(codegen->kind)) {
        status = device_run(&c, codegen);
        cr_assert(!status, "%s: %s", row->name, berth_status_message(status));
        difference = support_difference(c.buffers[y], plain, c.element_counts[y]);
        cr_expect(difference < 2e-5, "%s on %d: the device differs by %g", row->name, which,
                  difference);
    }
    support_case_destroy(&c);
}
