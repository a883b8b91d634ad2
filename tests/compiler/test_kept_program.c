// The program of a module in the module: through the serial forms, and not once the module changed.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/package/kept_program.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/text.h"
#include "tests/check.h"

static const berth_opaque_ops *const opaque[] = {&berth_kept_program_ops, NULL};
static const berth_dialect_registry registry = {.opaque_ops = opaque};

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    const berth_program *program;
    const berth_program *found;
    bool stale;
    berth_strbuf text;
} fixture;

static berth_status keep(void *user) {
    fixture *f = user;
    BERTH_TRY(berth_module_keep_program(f->module, f->program));
    f->text = berth_strbuf_make(f->arena);
    return berth_module_to_text(f->module, NULL, &f->text);
}

static berth_status find(void *user) {
    fixture *f = user;
    return berth_module_kept_program(f->module, &f->found, &f->stale);
}

// A plan, whose program has no code: it is a program all the same.
static fixture make(void) {
    static const char text[] = "module \"m\"\n"
                               "graph @main(%x: f32[64]) {\n"
                               "  %w = constant() {value = f32[64] meta(m1)}\n"
                               "  %y = add(%x, %w) %z = exp(%y) return %z\n"
                               "}\n";
    fixture f = {0};
    berth_multi_target *target = NULL;
    berth_compile_result result;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &f.arena));
    berth_strbuf whole = berth_strbuf_make(f.arena);
    berth_strbuf_add(&whole, text);
    berth_strbuf_add(&whole, "meta { m1 = f32[64] \"");
    for (int i = 0; i < 85; ++i) berth_strbuf_add(&whole, "AACA");
    berth_strbuf_add(&whole, "PA==\" }\n");
    assert_ok(berth_target_parse(f.arena, "cpu", NULL, &target));
    assert_ok(berth_module_parse(f.arena, whole.data, whole.length, "t", &f.module));
    assert_ok(berth_compile(f.module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    f.program = result.program;
    assert_ok(berth_arena_try(f.arena, keep, &f));
    return f;
}

static void expect_kept(fixture *f, bool kept, bool stale) {
    assert_ok(berth_arena_try(f->arena, find, f));
    cr_expect_eq(f->found != NULL, kept);
    cr_expect_eq(f->stale, stale);
}

Test(kept_program, survives_text_and_json) {
    fixture f = make();
    expect_kept(&f, true, false);
    cr_expect_eq(f.found, f.program);
    fixture again = {.arena = f.arena};
    assert_ok(berth_module_parse_with(f.arena, f.text.data, f.text.length, "t", &registry,
                                      &again.module));
    expect_kept(&again, true, false);
    cr_expect_eq(again.found->step_count, f.program->step_count);
    cr_expect_str_eq(again.found->target_json, f.program->target_json);

    const char *json = NULL;
    fixture third = {.arena = f.arena};
    assert_ok(berth_module_to_json_text(f.arena, again.module, 0, &json));
    assert_ok(
        berth_module_from_json_text(f.arena, json, strlen(json), "j", &registry, &third.module));
    expect_kept(&third, true, false);
    cr_expect_eq(third.found->step_count, f.program->step_count);
    berth_arena_destroy(f.arena);
}

Test(kept_program, counts_for_one_state_of_the_module) {
    fixture f = make();
    berth_attrs_set_int(f.module, &f.module->attrs, "other", 1);
    expect_kept(&f, false, true);
    berth_attrs_remove(f.module, &f.module->attrs, "other");
    expect_kept(&f, true, false);
    // A weight among many: not in the text that is hashed, and yet another model.
    berth_func_id main = berth_module_find_function(f.module, "main");
    const berth_graph *graph = berth_graph_get(f.module, main);
    bool changed = false;
    for (uint32_t i = 0; i < graph->ops.count && !changed; ++i) {
        const berth_attr *value = berth_attrs_find(f.module, &graph->ops.data[i].attrs, "value");
        if (graph->ops.data[i].region == BERTH_NONE || !value) continue;
        ((float *)value->tensor->data)[17] += 1;
        changed = true;
    }
    cr_assert(changed);
    expect_kept(&f, false, true);
    berth_arena_destroy(f.arena);
}

// Of external code the text that is hashed says no more than its size.
Test(kept_program, external_code_counts) {
    static const char text[] = "module \"m\"\n"
                               "external @f fn(f32[4])->(f32[4]) language \"c\" symbol \"f\" code "
                               "meta(m1)\n"
                               "graph @main(%x: f32[4]) { %y = exp(%x) return %y }\n"
                               "meta { m1 = text \"void f(const float *x, float *y);\" }\n";
    fixture f = make();
    fixture g = {.arena = f.arena, .program = f.program};
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "t", &g.module));
    assert_ok(berth_arena_try(g.arena, keep, &g));
    expect_kept(&g, true, false);
    berth_external *external =
        berth_external_get(g.module, berth_module_find_function(g.module, "f"));
    uint8_t *code = berth_arena_copy(g.arena, external->code, external->code_size_bytes);
    code[5] = 'g';
    external->code = code;
    expect_kept(&g, false, true);
    berth_arena_destroy(f.arena);
}

Test(kept_program, damaged) {
    fixture f = make();
    char *at = strstr(berth_strbuf_text(&f.text), "= text \"");
    cr_assert_not_null(at);
    at[60] = at[60] == 'A' ? 'B' : 'A';
    berth_module *module = NULL;
    assert_fails(
        berth_module_parse_with(f.arena, f.text.data, f.text.length, "t", &registry, &module),
        BERTH_INVALID_ARGUMENT, "kept");
    berth_arena_destroy(f.arena);
}
