// Operands whose shapes do not fit each other are refused: kernels take extents from one operand and would read beside another.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "tests/check.h"

// Types of the operands %a, %b, ..., an operation on them, and what its error has; NULL: it is right.
typedef struct operand_case {
    const char *operands;
    const char *operation;
    const char *what;
} operand_case;

static const operand_case cases[] = {
    {"%a: f32[4,3], %b: i64[5,1], %c: f32[5,3]", "scatter_nd(%a, %b, %c)", NULL},
    {"%a: f32[4,3], %b: i64[5,1], %c: f32[4,3]", "scatter_nd(%a, %b, %c)", "updates: extents 5"},
    {"%a: f32[4,3], %b: i64[5,1], %c: f32[5,2]", "scatter_nd(%a, %b, %c)", "updates: extents 3"},
    {"%a: f32[4,3], %b: i64[5,1], %c: f32[5]", "scatter_nd(%a, %b, %c)", "rank"},
    {"%a: f32[4,3], %b: i64[5,3], %c: f32[5]", "scatter_nd(%a, %b, %c)", "3 entries"},
    {"%a: f32[4,3], %b: i64[6,2], %c: f32[6,2]", "scatter_elements(%a, %b, %c) {axis = 0}", NULL},
    {"%a: f32[4,3], %b: i64[6,4], %c: f32[6,4]", "scatter_elements(%a, %b, %c) {axis = 0}",
     "4 indices along dimension 1"},
    {"%a: f32[4,3], %b: i64[6,2], %c: f32[5,2]", "scatter_elements(%a, %b, %c) {axis = 0}",
     "extents 6 and 5"},
    {"%a: f32[4,3], %b: i64[9,3]", "gather_elements(%a, %b) {axis = 0}", NULL},
    {"%a: f32[4,3], %b: i64[9,4]", "gather_elements(%a, %b) {axis = 0}", "4 indices"},
    {"%a: f32[2,4,3], %b: i64[2,5,1]", "gather_nd(%a, %b) {batch_dims = 1}", NULL},
    {"%a: f32[2,4,3], %b: i64[3,5,1]", "gather_nd(%a, %b) {batch_dims = 1}", "batch dimensions"},
    {"%a: f32[2,3,4], %b: f32[3], %c: f32[3]", "instance_normalization(%a, %b, %c)", NULL},
    {"%a: f32[2,3,4], %b: f32[2], %c: f32[3]", "instance_normalization(%a, %b, %c)", "channels"},
    {"%a: f32[2,4,5], %b: f32[2], %c: f32[2]", "group_normalization(%a, %b, %c) {num_groups = 2}",
     NULL},
    {"%a: f32[2,4,5], %b: f32[4], %c: f32[3]", "group_normalization(%a, %b, %c) {num_groups = 2}",
     "channels"},
    {"%a: f32[4,3], %b: i64[3]", "reverse_sequence(%a, %b) {batch_axis = 1, time_axis = 0}", NULL},
    {"%a: f32[4,3], %b: i64[2]", "reverse_sequence(%a, %b) {batch_axis = 1, time_axis = 0}",
     "lengths"},
    {"%a: f32[1,1,2,2], %b: i64[1,1,2,2]", "max_unpool(%a, %b) {kernel_shape = [2, 2]}", NULL},
    {"%a: f32[1,1,2,2], %b: i64[1,1,1,2]", "max_unpool(%a, %b) {kernel_shape = [2, 2]}", "indices"},
    {"%a: u8[4,3], %b: u8[3,2], %c: u8[4], %d: u8[2]", "matmul_integer(%a, %b, %c, %d)", NULL},
    {"%a: u8[4,3], %b: u8[3,2], %c: u8[], %d: u8[1,2]", "matmul_integer(%a, %b, %c, %d)", NULL},
    {"%a: u8[4,3], %b: u8[3,2], %c: u8[2], %d: u8[2]", "matmul_integer(%a, %b, %c, %d)", "rows"},
    {"%a: u8[4,3], %b: u8[3,2], %c: u8[4], %d: u8[3]", "matmul_integer(%a, %b, %c, %d)", "columns"},
    {"%a: u8[1,2,5], %b: i8[4,2,3], %c: u8[], %d: i8[4]", "conv_integer(%a, %b, %c, %d)", NULL},
    {"%a: u8[1,2,5], %b: i8[4,2,3], %c: u8[], %d: i8[3]", "conv_integer(%a, %b, %c, %d)",
     "zero points"},
    {"%a: u8[1,2,5], %b: i8[4,2,3], %c: u8[4], %d: i8[4]", "conv_integer(%a, %b, %c, %d)",
     "one element"},
    {"%a: f32[1,2,8,8], %b: f32[3,4], %c: i64[3]", "roi_align(%a, %b, %c)", NULL},
    {"%a: f32[1,2,8,8], %b: f32[4,4], %c: i64[3]", "roi_align(%a, %b, %c)", "batch indices"},
    {"%a: u8[5,4], %b: f32[], %c: u8[], %d: u8[5,4], %e: f32[1], %f: u8[1], %g: f32[], %h: u8[]",
     "qlinear_add(%a, %b, %c, %d, %e, %f, %g, %h)", NULL},
    {"%a: u8[5,4], %b: f32[2], %c: u8[], %d: u8[5,4], %e: f32[], %f: u8[], %g: f32[], %h: u8[]",
     "qlinear_add(%a, %b, %c, %d, %e, %f, %g, %h)", "operand 1"},
    {"%a: u8[5,4], %b: f32[], %c: u8[], %d: u8[5,4], %e: f32[], %f: u8[], %g: f32[3], %h: u8[]",
     "qlinear_add(%a, %b, %c, %d, %e, %f, %g, %h)", "operand 6"},
    {"%a: i64[3], %b: i64[], %c: f32[2]", "one_hot(%a, %b, %c)", NULL},
    {"%a: i64[3], %b: i64[], %c: f32[1]", "one_hot(%a, %b, %c)", "values"},
};

Test(operand_shapes, what_does_not_fit_is_refused) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const operand_case *it = &cases[i];
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\ngraph @main(%s) {\n  %%y = %s\n  return %%y\n}\n", it->operands,
                 it->operation);
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_status status = berth_module_parse(arena, text, strlen(text), "test", &module);
        if (!status)
            status = berth_infer_function(module, berth_module_find_function(module, "main"));
        if (!it->what)
            cr_expect_null(status, "%s: %s", text, status ? berth_status_message(status) : "");
        else if (!status)
            cr_expect_fail("%s is taken", text);
        else
            cr_expect_not_null(strstr(berth_status_message(status), it->what), "%s: %s", text,
                               berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}
