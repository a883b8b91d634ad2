// Which indices a run is to look at (passes/index_checks.h): expected by what ONNX says the range of an index is.
#include "compiler/passes/index_checks.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "compiler/passes/fold.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct check_case {
    const char *body;    // of @main(%x: f32[4,5], %i: i64[3,2], %f: f32[3])
    const char *checks;  // "source from_end extents | ..."
} check_case;

static const check_case cases[] = {
    {"%y = gather(%x, %i) {axis = 1}\n return %y", "input 1 end 5|"},
    {"%y = gather(%x, %i) {axis = -2}\n return %y", "input 1 end 4|"},
    {"%y = gather_nd(%x, %i)\n return %y", "input 1 end 4 5|"},
    {"%n = constant() {value = i64[1] (6)}\n %r = reshape(%i, %n)\n"
     " %y = gather(%x, %r) {axis = 0}\n return %y",
     "input 1 end 4|"},
    // Once, however many use it; another extent is another check.
    {"%a = gather(%x, %i) {axis = 1}\n %b = gather(%x, %i) {axis = 1}\n"
     " %c = gather(%x, %i) {axis = 0}\n return %a, %b, %c",
     "input 1 end 5|input 1 end 4|"},
    // Made by the run, and an output or not.
    {"%c = cast(%f) {to = i64}\n %y = gather(%x, %c) {axis = 0}\n return %y", "result 1 end 4|"},
    {"%c = cast(%f) {to = i64}\n %y = gather(%x, %c) {axis = 0}\n return %y, %c",
     "result 1 end 4|"},
    {"%c = cast(%f) {to = i32}\n %w = cast(%c) {to = i64}\n %y = gather(%x, %w) {axis = 0}\n"
     " return %y",
     "result 1 end 4|"},
    // What cannot be out of range.
    {"%a = arg_max(%x) {axis = 1}\n %y = gather(%x, %a) {axis = 1}\n return %y", ""},
    {"%a = arg_max(%x) {axis = 1}\n %y = gather(%x, %a) {axis = 0}\n return %y", "result 1 end 4|"},
    {"%k = constant() {value = i64[1] (2)}\n %v, %t = top_k(%x, %k) {axis = 1}\n"
     " %y = gather_elements(%x, %t) {axis = 1}\n return %y",
     ""},
    {"%a = constant() {value = i64[] (-4)}\n %b = constant() {value = i64[] (3)}\n"
     " %t = clip(%i, %a, %b)\n %y = gather(%x, %t) {axis = 0}\n return %y",
     ""},
    {"%a = constant() {value = i64[] (-5)}\n %b = constant() {value = i64[] (3)}\n"
     " %t = clip(%i, %a, %b)\n %y = gather(%x, %t) {axis = 0}\n return %y",
     "result 1 end 4|"},
    {"%y = gather(%x, %i) {axis = 1, in_range = 1}\n return %y", ""},
    {"%c = constant() {value = i64[2] (0, -5)}\n %y = gather(%x, %c) {axis = 1}\n return %y", ""},
};

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

ParameterizedTestParameters(index_checks, are_those_that_a_run_needs) {
    static int numbers[case_count];
    for (int i = 0; i < case_count; ++i) numbers[i] = i;
    return cr_make_param_array(int, numbers, case_count);
}

typedef struct work {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
} work;

static berth_status find(void *user) {
    const work *w = user;
    BERTH_TRY(berth_pass_fold(w->module, w->main, NULL));
    berth_pass_check_indices(w->module, w->main, w->target);
    return BERTH_OK;
}

ParameterizedTest(int *number, index_checks, are_those_that_a_run_needs) {
    const check_case *c = &cases[*number];
    berth_arena *arena = NULL;
    berth_multi_target *target = NULL;
    berth_index_checks found;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_target_parse(arena, "cpu", NULL, &target));
    const char *text = berth_arena_printf(
        arena, "module \"m\"\ngraph @main(%%x: f32[4,5], %%i: i64[3,2], %%f: f32[3]) {\n %s\n}\n",
        c->body);
    work w = {.target = target};
    assert_ok(berth_module_parse(arena, text, strlen(text), "test.txt", &w.module));
    w.main = berth_module_find_function(w.module, "main");
    assert_ok(berth_arena_try(arena, find, &w));
    assert_ok(berth_index_checks_of(w.module, w.main, arena, &found));
    berth_strbuf list = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < found.count; ++i) {
        const berth_program_check *check = &found.checks[i];
        int64_t source = found.sources[i];
        berth_strbuf_addf(&list, "%s %d %s", source < 0 ? "input" : "result",
                          (int)(source < 0 ? -1 - source : source),
                          check->from_end ? "end" : "start");
        for (uint32_t k = 0; k < check->width; ++k)
            berth_strbuf_addf(&list, " %d", (int)check->extents[k]);
        berth_strbuf_add(&list, "|");
    }
    cr_expect_str_eq(berth_strbuf_text(&list), c->checks, "%s", c->body);
    berth_arena_destroy(arena);
}
