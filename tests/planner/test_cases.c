// The cases of docs/planner.md: where every parameter, operation and result goes. G = opencl:0 (the
// default), C = cpu:0, H = cpu:1 (the host); "@s1" a memory scope; "x>G" a copy of x to G.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "ir/pass.h"
#include "ir/text.h"
#include "planner/planner.h"

static const char *const target_json = "{\"kind\": \"multi\", \"host\": \"h\", \"devices\": ["
                                       "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
                                       "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"
                                       "{\"name\": \"h\", \"target\": {\"kind\": \"cpu\"}}]}";

typedef struct planner_case {
    const char *text;
    const char *expected;
} planner_case;

#define T ": f32[4]"
#define P2 "(%a" T ", %b" T ")"
#define P4 "(%a" T ", %b" T ", %c" T ", %d" T ")"
#define ON_C ") {device = cpu:0} "
#define ON_G ") {device = opencl:0} "

static const planner_case cases[] = {
    // 1
    {"graph @main" P4 "{ %l = add(%a, %b) %r = add(%c, %d) %s = sub(%l, %r) return %s }",
     "@main a:G b:G c:G d:G l:G r:G s:G R:G\n"},
    // 2
    {"graph @main" P4 "{ %l = add(%a, %b) %m = on_device(%l" ON_C
     "%r = add(%c, %d) %s = sub(%m, %r) return %s }",
     "@main a:C b:C c:G d:G l:C r:G l>G s:G R:G\n"},
    // 2, with a copy written out
    {"graph @main" P4
     "{ %l = add(%a, %b) %m = device_copy(%l) {source = cpu:0} on opencl:0 %r = add(%c, %d) "
     "%s = sub(%m, %r) return %s }",
     "@main a:C b:C c:G d:G l:C m>G r:G s:G R:G\n"},
    // 3
    {"graph @main" P4 "{ %l = add(%a, %b) %m = on_device(%l" ON_C
     "%r = add(%c, %d) %n = on_device(%r" ON_C "%s = sub(%m, %n) return %s }",
     "@main a:C b:C c:C d:C l:C r:C l>G r>G s:G R:G\n"},
    // 4
    {"graph @main" P4 "{ %l = add(%a, %b) %r = add(%c, %d) %m = on_device(%l" ON_C
     "%s = sub(%m, %r) return %s }",
     "@main a:C b:C c:G d:G l:C r:G l>G s:G R:G\n"},
    // 5
    {"graph @f(%x" T ", %y" T ") { %l = add(%x, %y) %m = on_device(%l" ON_C "return %m } "
     "graph @main" P4 "{ %l = call @f(%a, %b) %r = add(%c, %d) %s = sub(%l, %r) return %s }",
     "@f x:C y:C l:C R:C\n@main a:C b:C c:C d:C l:C r:C s:C R:C\n"},
    // 6
    {"graph @f(%x" T ", %y" T ") { %l = add(%x, %y) return %l } "
     "graph @main" P4 "{ %l = call @f(%a, %b) %m = on_device(%l" ON_C
     "%r = add(%c, %d) %s = sub(%m, %r) return %s }",
     "@f x:C y:C l:C R:C\n@main a:C b:C c:G d:G l:C r:G l>G s:G R:G\n"},
    // 7
    {"graph @f(%a" T ", %b" T ") { %m = on_device(%b" ON_C "%s = add(%a, %m) return %s } "
     "graph @main(%x" T ", %y" T ") { %g = func_ref @f() %t = tuple(%g, %x) "
     "%h = tuple_get(%t) {index = 0} %z = tuple_get(%t) {index = 1} "
     "%s = call_value(%h, %z, %y) return %s }",
     "@f a:C b:C s:C R:C\n@main x:C y:C g:C t:C h:C z:C s:C R:C\n"},
    // 8
    {"graph @main(%x" T ") { %m = device_copy(%x) {source = cpu:0} on opencl:0 "
     "%k = constant() {value = f32[4] (1, 2, 3, 4)} %s = add(%m, %k) return %s }",
     "@main x:C m>G k:G s:G R:G\n"},
    // 9
    {"graph @main(%x" T ") { %m = on_device(%x" ON_G "%s = shape_of(%m) return %s }",
     "@main x:G s:H R:H\n"},
    // 10
    {"graph @main(%size: i64[], %align: i64[]) { %s = alloc_storage(%size, %align) "
     "{device = opencl:0} return %s }",
     "@main size:H align:H s:G R:G\n"},
    {"graph @main(%sto: storage, %shape: i64[1]) { %k = constant() {value = i64[] (0)} "
     "%s = alloc_tensor(%sto, %k, %shape) {dtype = f32} return %s }",
     "@main sto:G shape:H k:H s:G R:G\n"},
    // 11
    {"graph @main(%x" T ") { %k = constant() {value = i64[2] (2, 2)} %s = reshape(%x, %k) "
     "return %s }",
     "@main x:G k:H s:G R:G\n"},
    // 12
    {"graph @main(%x" T ", %y" T ", %z" T ") { %l = add(%x, %y) %m = on_device(%l" ON_G
     "%s = sub(%m, %z) %n = on_device(%s" ON_C "return %n }",
     "@main x:G y:G z:C l:G l>C s:C R:C\n"},
    // 13
    {"graph @main" P2 "{ %m = on_device(%a" ON_C "%n = on_device(%b" ON_C
     "%s = add(%m, %n) %o = on_device(%s" ON_C "return %o }",
     "@main a:C b:C s:C R:C\n"},
    // 14
    {"graph @main(%x: f32[6]) { %p, %q, %r = split(%x) %t = tuple(%p, %q, %r) "
     "%m = on_device(%t" ON_C "%i = tuple_get(%m) {index = 0} %j = tuple_get(%m) {index = 1} "
     "%s = sub(%i, %j) %o = on_device(%s" ON_G "return %o }",
     "@main x:C p:C q:C r:C t:C i:C j:C i>G j>G s:G R:G\n"},
    // 15
    {"graph @main" P4 "{ %l = add(%a, %b) %m = on_device(%l" ON_C
     "%r = mul(%c, %d) %n = on_device(%r" ON_G "%s = sub(%m, %n) %o = on_device(%s" ON_C
     "return %o }",
     "@main a:C b:C c:G d:G l:C r:G r>C s:C R:C\n"},
    // 16
    {"graph @f(%a" T ", %b" T ") { %m = on_device(%b" ON_C "%s = add(%a, %m) return %s } "
     "graph @main(%x" T ", %y" T ") { %s = call @f(%y, %x) return %s }",
     "@f a:G b:C b>G s:G R:G\n@main x:C y:G s:G R:G\n"},
    // 17
    {"graph @main(%a" T ", %b" T ", %c" T ") { %l = add(%a, %b) %m = on_device(%l" ON_C
     "%r = add(%b, %c) %n = on_device(%r" ON_G "%s = sub(%m, %n) return %s }",
     "@main a:C b:C c:G l:C b>G r:G l>G s:G R:G\n"},
};
enum { case_count = sizeof(cases) / sizeof(cases[0]) };

static berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static void require(berth_status status) {
    cr_assert(!status, "%s", berth_status_message(status));
}

static berth_module *parse(berth_arena *arena, const char *body) {
    berth_module *module = NULL;
    const char *text = berth_arena_printf(arena, "module \"m\" %s", body);
    require(berth_module_parse(arena, text, strlen(text), "case", &module));
    return module;
}

typedef struct job {
    berth_module *module;
    berth_plan_options options;
    berth_plan *plan;
} job;

static berth_status run(void *user) {
    job *j = user;
    return berth_plan_module(j->module, &j->options, &j->plan);
}

static berth_status plan(berth_module *module, berth_plan **out_plan) {
    berth_multi_target *target = NULL;
    require(berth_target_parse(module->arena, target_json, NULL, &target));
    job j = {.module = module, .options = {.target = target}};
    berth_status status = berth_arena_try(module->arena, run, &j);
    *out_plan = j.plan;
    return status;
}

static const char *place(const berth_module *module, berth_device_id id) {
    berth_virtual_device device = berth_virtual_device_get(module->devices, id);
    const char *name = device.device_type == BERTH_DEVICE_OPENCL ? "G"
                       : device.device_type != BERTH_DEVICE_CPU  ? "?"
                       : device.virtual_id == 0                  ? "C"
                                                                 : "H";
    if (!device.memory_scope) return name;
    return berth_arena_printf(module->arena, "%s@%s", name, device.memory_scope);
}

static const char *show(const berth_module *module) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        const berth_graph *graph = berth_graph_get(module, f);
        if (!graph) continue;
        const berth_region *root = &graph->regions.data[0];
        berth_strbuf_addf(&out, "@%s",
                          berth_module_str(module, berth_module_function(module, f)->name));
        for (uint32_t i = 0; i < root->params.count; ++i) {
            const berth_value *v = &graph->values.data[root->params.data[i]];
            berth_strbuf_addf(&out, " %s:%s", berth_module_str(module, v->name),
                              place(module, v->device));
        }
        for (uint32_t i = 0; i < root->ops.count; ++i) {
            const berth_op *op = &graph->ops.data[root->ops.data[i]];
            cr_assert_neq(op->kind, BERTH_OP_ON_DEVICE);
            for (uint32_t k = 0; k < op->output_count; ++k) {
                const berth_value *v = &graph->values.data[op->outputs[k]];
                if (op->device)
                    cr_assert_str_eq(place(module, op->device), place(module, v->device));
                berth_strbuf_addf(&out, " %s%s%s", berth_module_str(module, v->name),
                                  op->kind == BERTH_OP_DEVICE_COPY ? ">" : ":",
                                  place(module, v->device));
            }
        }
        for (uint32_t i = 0; i < root->results.count; ++i)
            berth_strbuf_addf(&out, " R:%s",
                              place(module, graph->values.data[root->results.data[i]].device));
        berth_strbuf_add(&out, "\n");
    }
    return berth_strbuf_text(&out);
}

static const char *print(const berth_module *module) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    require(berth_module_to_text(module, NULL, &out));
    return berth_strbuf_text(&out);
}

ParameterizedTestParameters(planner, cases) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

ParameterizedTest(int *index, planner, cases) {
    berth_arena *arena = new_arena();
    berth_module *module = parse(arena, cases[*index].text);
    berth_plan *made = NULL;
    require(plan(module, &made));
    cr_assert_str_eq(show(module), cases[*index].expected, "case %d:\n%sexpected\n%s", *index,
                     show(module), cases[*index].expected);
    require(berth_module_verify(module));
    // Again, and again after print and parse: nothing changes.
    const char *text = print(module);
    require(plan(module, &made));
    cr_assert_str_eq(print(module), text);
    berth_module *again = NULL;
    require(berth_module_parse(arena, text, strlen(text), "case", &again));
    require(plan(again, &made));
    cr_assert_str_eq(print(again), text);
    berth_arena_destroy(arena);
}

// 20: both chains, with their locations.
Test(planner, conflict_shows_both_chains) {
    berth_arena *arena = new_arena();
    berth_module *module =
        parse(arena, "graph @main(%x" T ", %y" T ") {\n %m = on_device(%x) {device = cpu:0, fixed "
                     "= 1}\n %n = on_device(%y) {device = opencl:0, fixed = 1}\n"
                     " %t = tuple(%m, %n)\n return %t }");
    berth_plan *made = NULL;
    berth_status status = plan(module, &made);
    cr_assert_not_null(status);
    const char *message = berth_status_message(status);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    const char *const parts[] = {"cpu:0", "opencl:0", "case:2:2", "case:3:2", "case:4:2"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        cr_assert_not_null(strstr(message, parts[i]), "%s in:\n%s", parts[i], message);
    berth_status_free(status);
    berth_arena_destroy(arena);
}
