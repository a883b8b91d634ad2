// Kernels take no more buffers than their device does (`max_bindings` of a target): fusion stops
// there, wide operations are taken apart, what binds more by itself runs elsewhere. Expected: the
// interpreter's values.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/kernel_cache.h"

enum { values = 40, results = 5, elements = 16 };

static void add_list(berth_strbuf *out, const char *name) {
    for (int i = 0; i < values; ++i) berth_strbuf_addf(out, "%s%%%s%d", i ? ", " : "", name, i);
}

// 40 values beside each other, taken apart again, their largest and their sum, and a chain of
// elementwise operations with an operand of its own at each.
static const char *module_text(berth_arena *arena) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_addf(&out, "module \"m\" graph @main(");
    for (int i = 0; i < values; ++i) berth_strbuf_addf(&out, "%s%%a%d: f32[2,8]", i ? ", " : "", i);
    berth_strbuf_addf(&out, ") { %%c = concat(");
    add_list(&out, "a");
    berth_strbuf_addf(&out, ") {axis = 1} %%m = max(");
    add_list(&out, "a");
    berth_strbuf_addf(&out, ") %%s = sum(");
    add_list(&out, "a");
    berth_strbuf_addf(&out, ") %%e0 = neg(%%a0) ");
    for (int i = 1; i < values; ++i)
        berth_strbuf_addf(&out, "%%e%d = %s(%%e%d, %%a%d) ", i, i % 2 ? "add" : "sub", i - 1, i);
    berth_strbuf_addf(&out, "%%n = constant() {value = i64[%d] (", values);
    for (int i = 0; i < values; ++i) berth_strbuf_addf(&out, "%s8", i ? ", " : "");
    berth_strbuf_addf(&out, ")} ");
    add_list(&out, "p");
    berth_strbuf_addf(&out, " = split(%%c, %%n) {axis = 1} %%q = add(%%p0, %%p%d) ", values - 1);
    berth_strbuf_addf(&out, "return %%c, %%m, %%s, %%e%d, %%q }", values - 1);
    return berth_strbuf_text(&out);
}

static void run(const berth_program *program, const berth_tensor *inputs,
                const berth_tensor *expected) {
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), program, NULL, &session);
    if (berth_status_code(status) == BERTH_UNAVAILABLE) {
        berth_status_free(status);
        cr_skip_test("the device is not here");
    }
    assert_ok(status);
    for (uint32_t i = 0; i < values; ++i)
        memcpy(berth_session_input(session, i)->data, inputs[i].data,
               berth_tensor_size_bytes(&inputs[i]));
    assert_ok(berth_session_run(session, -1));
    for (uint32_t r = 0; r < results; ++r) {
        const berth_tensor *got = berth_session_output(session, r);
        cr_assert(berth_tensor_same_shape(got, &expected[r]));
        for (int64_t i = 0; i < berth_tensor_element_count(got); ++i)
            cr_expect_float_eq(berth_tensor_get_f64(got, i), berth_tensor_get_f64(&expected[r], i),
                               1e-4, "result %u", r);
    }
    berth_session_close(session);
}

// Whether a kernel of the program binds more than `limit`.
static bool binds_more(const berth_program *program, uint32_t limit) {
    bool more = false;
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        more |= program->kernels[i].binding_count > limit;
    return more;
}

static void check(const char *target_text, uint32_t limit, bool wide) {
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = module_text(arena);
    berth_module *module = NULL, *reference = NULL;
    assert_ok(berth_module_parse(arena, text, strlen(text), "m", &module));
    assert_ok(berth_module_parse(arena, text, strlen(text), "m", &reference));
    berth_tensor inputs[values], expected[results];
    for (uint32_t i = 0; i < values; ++i) {
        inputs[i] = berth_tensor_create(arena, BERTH_DTYPE_F32, 2, (int64_t[]){2, 8});
        berth_tensor_fill_random(&inputs[i], i + 1);
    }
    assert_ok(berth_eval_function(reference, berth_module_find_function(reference, "main"), inputs,
                                  values, expected, results, arena));
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    berth_compile_options options = {
        .target = target, .cache_folder = kernels.folder, .verify = true};
    berth_compile_result compiled;
    assert_ok(berth_compile(module, &options, &compiled));
    cr_expect_eq(binds_more(compiled.program, limit), wide, "%s: %s", target_text,
                 wide ? "the case has no kernel that binds more" : "a kernel binds more");
    run(compiled.program, inputs, expected);
    berth_arena_destroy(arena);
    kernel_cache_close(&kernels);
}

Test(bindings, without_a_limit_kernels_bind_more) {
    check("cpu", 8, true);
}

Test(bindings, eight_on_the_processor) {
    check("cpu -max_bindings=8", 8, false);
}

Test(bindings, twelve_on_opencl) {
    check("opencl -max_bindings=12 -host=cpu", 12, false);
}

// ---- operations that bind more by themselves ----------------------------------------------------

static const char lstm_text[] =
    "module \"m\" graph @main(%x: f32[5,2,3], %w: f32[1,16,3], %r: f32[1,16,4], %b: f32[1,32], "
    "%l: i32[2], %h: f32[1,2,4], %c: f32[1,2,4], %p: f32[1,12]) { %y, %yh, %yc = lstm(%x, %w, %r, "
    "%b, %l, %h, %c, %p) {hidden_size = 4} %z = add(%yh, %yc) return %y, %z }";

typedef struct planned {
    berth_arena *arena;
    berth_module *module;
    berth_multi_target *target;
    berth_compile_result result;
} planned;

static berth_status plan_lstm(const char *target, planned *out) {
    assert_ok(berth_arena_create(berth_allocator_system(), &out->arena));
    assert_ok(berth_module_parse(out->arena, lstm_text, strlen(lstm_text), "m", &out->module));
    assert_ok(berth_target_parse(out->arena, target, NULL, &out->target));
    berth_compile_options options = {.target = out->target, .plan_only = true, .verify = true};
    return berth_compile(out->module, &options, &out->result);
}

Test(bindings, what_binds_more_runs_on_another_device) {
    planned p;
    assert_ok(plan_lstm("opencl -max_bindings=8,cpu", &p));
    const berth_plan *plan = p.result.plan;
    uint32_t found = 0;
    for (uint32_t i = 0; i < plan->place_count; ++i) {
        const berth_plan_place *place = &plan->places[i];
        if (place->kind != BERTH_PLAN_OP || strcmp(place->operation, "lstm") != 0) continue;
        found++;
        uint32_t device = berth_plan_device_of(p.module, p.target, place->device);
        cr_assert_neq(device, BERTH_NO_INDEX);
        cr_expect_str_eq(p.target->devices[device].name, "cpu:0");
        cr_expect_not_null(strstr(place->reason, "binds 11 buffers"), "%s", place->reason);
    }
    cr_expect_eq(found, 1);
    berth_arena_destroy(p.arena);
}

Test(bindings, where_no_device_takes_them_is_an_error) {
    planned p;
    berth_status status = plan_lstm("cpu -max_bindings=8", &p);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect_not_null(strstr(berth_status_message(status), "binds 11 buffers"), "%s",
                       berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(p.arena);
}
