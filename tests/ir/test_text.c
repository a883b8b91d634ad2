// The text form: every construct, and the positions of errors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"
#include "ir/pass.h"
#include "ir/text.h"

static berth_module *parse(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "t", &module);
    cr_assert(!status, "%s", berth_status_message(status));
    return module;
}

static berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static const char *print(berth_module *module) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    berth_status status = berth_module_to_text(module, NULL, &out);
    cr_assert(!status, "%s", berth_status_message(status));
    return berth_strbuf_text(&out);
}

Test(text, hand_written) {
    berth_arena *arena = new_arena();
    berth_module *module =
        parse(arena, "module \"m\" {n = 1, f = 1.5, l = [1,2]} // comment\n"
                     "graph @main(%x: f32[1,4] on cpu:0, %c: bool[]) {\n"
                     "  %y = relu(%x)\n"
                     "  %z = on_device(%y) {device = opencl:0@local, fixed = 1}\n"
                     "  %w = constant() {value = f32[2,2] (1, -0.0, nan, inf)}\n"
                     "  %r, %s = if(%c) {return %y, %z} else { return %x, %z }\n"
                     "  %u = call @other(%r)\n"
                     "  return %u, %s, %w\n"
                     "}\n"
                     "graph @other(%x: f32[N,4]) { %y = relu(%x) return %y }\n");
    const char *text = print(module);
    fprintf(stderr, "%s", text);
    berth_module *again = parse(arena, text);
    cr_assert_str_eq(print(again), text);
    berth_arena_destroy(arena);
}
