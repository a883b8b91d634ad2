// The planner after lowering: memory scopes of tensor functions' buffers flow to the callers'
// values, and scopes that the callers fix flow to buffers that leave them open. Also what copies
// cost, and what shared memories save.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "ir/tensor/function.h"
#include "tests/planner/support.h"

#define T ": f32[4]"
// Tensor functions out = a * b with these scopes.
#define MUL(name, a, b, out)                                                                       \
    "tensor @" name "(%A" T " in" a ", %B" T " in" b ", %out" T " out" out                         \
    ") { for %i in 4 { %out[%i] = %A[%i] * %B[%i] } } "
#define IN(scope) " scope \"" scope "\""
#define FN "fn(f32[4], f32[4])->(f32[4])"
#define REF "%f = func_ref @mm(): " FN " "

typedef struct lowered {
    const char *what;
    const char *text;
    const char *expected;
    const char *buffers;  // scopes of @mm's buffers afterwards
} lowered;

static const lowered modules[] = {
    {"buffers to callers",
     MUL("mm", IN("s1"), "", IN("s3")) "graph @main(%x" T ", %w" T ") { %o = call @mm(%x, %w) "
                                       "return %o }",
     "@main x:G@s1 w:G o:G@s3 R:G@s3\n", "s1 - s3"},
    {"callers to buffers",
     MUL("mm", "", "", "") "graph @main(%x" T " on *@s2, %w" T ") { %o = call @mm(%x, %w) "
                           "%m = on_device(%o) {device = *@s4} return %m }",
     "@main x:G@s2 w:G o:G@s4 R:G@s4\n", "s2 - s4"},
    {"the first call decides, later ones copy",
     MUL("mm", "", "", "") "graph @main(%x" T " on *@s2, %z" T " on *@s5) { %o = call @mm(%x, %z) "
                           "%p = call @mm(%z, %x) return %o, %p }",
     "@main x:G@s2 z:G@s5 o:G z>G@s2 x>G@s5 p:G R:G R:G\n", "s2 s5 -"},
    {"a result demanded in another scope is copied there",
     MUL("mm", "", "", IN("s1")) "graph @main(%x" T ", %w" T ") { %o = call @mm(%x, %w) "
                                 "%m = on_device(%o) {device = *@s2, fixed = 1} return %m }",
     "@main x:G w:G o:G@s1 o>G@s2 R:G@s2\n", "- - s1"},
    {"a result used in its scope and in another",
     MUL("mm", IN("s1"), "", IN("s1")) "graph @main(%x" T ", %w" T ") { %o = call @mm(%x, %w) "
                                       "%m = on_device(%o) {device = *@s2, fixed = 1} "
                                       "%p = call @mm(%o, %w) return %m, %p }",
     "@main x:G@s1 w:G o:G@s1 p:G@s1 o>G@s2 R:G@s2 R:G@s1\n", "s1 - s1"},
    {"from one lowered function to another",
     MUL("mm", IN("s1"), "", IN("s2"))
         MUL("nn", IN("s3"), "", "") "graph @main(%x" T ", %w" T ") { %o = call @mm(%x, %w) "
                                     "%p = call @nn(%o, %w) return %p }",
     "@main x:G@s1 w:G o:G@s2 o>G@s3 p:G R:G\n", "s1 - s2"},
    {"through a graph function",
     MUL("mm", IN("s1"), "", IN("s2")) "graph @f(%v" T ", %k" T ") { %o = call @mm(%v, %k) return "
                                       "%o } graph @main(%x" T ", %w" T
                                       ") { %r = call @f(%x, %w) return %r }",
     "@f v:G@s1 k:G o:G@s2 R:G@s2\n@main x:G@s1 w:G r:G@s2 R:G@s2\n", "s1 - s2"},
    {"a call stays on its arguments' device, and takes a copy from another",
     MUL("mm", IN("s1"), "", "") "graph @main(%x" T " on cpu:0, %w" T " on opencl:0) "
                                 "{ %o = call @mm(%w, %x) return %o }",
     "@main x:C w:G@s1 x>G o:G R:G\n", "s1 - -"},
    {"constants are cloned into scopes; a result's user decides for every call",
     MUL("mm", IN("s1"), IN("s2"), "") "graph @main(%x" T ") { %k = constant() {value = f32[4] "
                                       "(1, 2, 3, 4)} %o = call @mm(%x, %k) %p = call @mm(%k, %o) "
                                       "return %p }",
     "@main x:G@s1 k:G@s1 k:G@s2 o:G@s2 p:G@s2 R:G@s2\n", "s1 s2 s2"},
    // %m is %o itself once the copies there and back are gone, and %o is in s1.
    {"what copies that vanish leave behind decides, too",
     MUL("nn", "", "", IN("s1")) MUL("mm", "", "", "") "graph @main(%x" T ", %w" T
                                                       ") { %o = call @nn(%x, %w) "
                                                       "%k = device_copy(%o) on cpu:0 "
                                                       "%m = device_copy(%k) on opencl:0 "
                                                       "%p = call @mm(%x, %m) return %p, %k }",
     "@main x:G w:G o:G@s1 k>C p:G R:G R:C\n", "- s1 -"},
    {"through a function that is a value",
     MUL("mm", IN("s1"), "", IN("s3")) "graph @main(%x" T ", %w" T ") { " REF
                                       "%o = call_value(%f, %x, %w) return %o }",
     "@main x:G@s1 w:G f:- o:G@s3 R:G@s3\n", "s1 - s3"},
    {"through a function that applies it",
     MUL("mm", IN("s1"), "", IN("s3")) "graph @apply(%g: " FN ", %p" T ", %q" T ") { "
                                       "%r = call_value(%g, %p, %q) return %r } graph @main(%x" T
                                       ", %w" T ") { " REF "%o = call @apply(%f, %x, %w) "
                                       "return %o }",
     "@apply g:- p:G@s1 q:G r:G@s3 R:G@s3\n@main x:G@s1 w:G f:- o:G@s3 R:G@s3\n", "s1 - s3"},
    {"a result of a function that is a value, demanded in another scope",
     MUL("mm", "", "", IN("s1")) "graph @main(%x" T ", %w" T ") { " REF
                                 "%o = call_value(%f, %x, %w) "
                                 "%m = on_device(%o) {device = *@s2, fixed = 1} return %m }",
     "@main x:G w:G f:- o:G@s1 o>G@s2 R:G@s2\n", "- - s1"},
    {"callers to buffers through a function that is a value",
     MUL("mm", "", "", "") "graph @main(%x" T " on *@s2, %w" T ") { " REF
                           "%o = call_value(%f, %x, %w) "
                           "%m = on_device(%o) {device = *@s4} return %m }",
     "@main x:G@s2 w:G f:- o:G@s4 R:G@s4\n", "s2 - s4"},
    {"references to one lowered function, on two devices",
     MUL("mm", IN("s1"), "", "") "graph @main(%x" T " on cpu:0, %y" T " on opencl:0) { " REF
                                 "%g = func_ref @mm(): " FN " %o = call_value(%f, %x, %x) "
                                 "%p = call_value(%g, %y, %y) return %o, %p }",
     "@main x:C@s1 y:G@s1 f:- g:- o:C p:G R:C R:G\n", "s1 s1 -"},
    {"read and written in one buffer",
     "tensor @mm(%A" T " in, %O" T " inout" IN("s1") ") { for %i in 4 { %O[%i] = %A[%i] } } "
                                                     "graph @main(%x" T ", %y" T
                                                     ") { %r = call @mm(%x, %y)" T " return %r }",
     "@main x:G y:G@s1 r:G@s1 R:G@s1\n", "- s1"},
    {"one buffer, read and written, and one written only",
     "tensor @mm(%O" T " out" IN("s1") ", %T" T " inout" IN(
         "s2") ", %A" T " in) "
               "{ for %i in 4 { %O[%i] = %A[%i] } } graph @main(%x" T ", %y" T ") { "
               "%r = call @mm(%x, %y)" T " %s, %t = call @mm(%x, %y)" T
               ", f32[4] return %r, %s, %t }",
     "@main x:G@s2 y:G r:G@s1 s:G@s1 t:G@s2 R:G@s1 R:G@s1 R:G@s2\n", "s1 s2 -"},
    {"results among the operands",
     "tensor @mm(%A" T " in" IN("s1") ", %O" T " out" IN(
         "s2") ") "
               "{ for %i in 4 { %O[%i] = %A[%i] } } graph @main(%x" T ", %y" T ") { "
               "call @mm(%x, %y) return %y }",
     "@main x:G@s1 y:G@s2 R:G@s2\n", "s1 s2"},
    {"operations share a scope as they share a device",
     MUL("mm", IN("s1"), "", IN("s1")) "graph @main(%x" T ", %w" T ") { %o = call @mm(%x, %w) "
                                       "%p = relu(%o) return %p }",
     "@main x:G@s1 w:G o:G@s1 p:G@s1 R:G@s1\n", "s1 - s1"},
};
enum { module_count = sizeof(modules) / sizeof(modules[0]) };

static const char *buffers_of(const berth_module *module) {
    const berth_tfn *fn = berth_tfn_get(module, berth_module_find_function(module, "mm"));
    berth_strbuf out = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        berth_str_id scope = fn->bufs.data[i].memory_scope;
        berth_strbuf_addf(&out, "%s%s", i ? " " : "",
                          scope ? berth_module_str(module, scope) : "-");
    }
    return berth_strbuf_text(&out);
}

ParameterizedTestParameters(planner, lowered) {
    static int indices[module_count];
    for (int i = 0; i < module_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, module_count);
}

ParameterizedTest(int *index, planner, lowered) {
    const lowered *m = &modules[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, m->text);
    berth_plan_options options = {.target = parse_target(arena, target_gch)};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    const char *shown = show_module(module, options.target);
    cr_expect_str_eq(shown, m->expected, "%s:\n%sexpected\n%s", m->what, shown, m->expected);
    cr_expect_str_eq(buffers_of(module), m->buffers, "%s: %s", m->what, buffers_of(module));
    (void)plan_again(module, &options);
    cr_expect_str_eq(show_module(module, options.target), m->expected, "%s", m->what);
    berth_arena_destroy(arena);
}

// A lowered function may demand what no caller's tuple can give: refused, with both chains.
Test(planner, scopes_conflict) {
    berth_arena *arena = new_arena();
    berth_module *module =
        parse_module(arena, "graph @main(%x" T ") {\n %m = on_device(%x) {device = *@s1}\n"
                            " %n = on_device(%x) {device = *@s2}\n %s = add(%m, %n)\n return %s }");
    berth_plan *plan = NULL;
    berth_status status = plan_on(module, target_gch, &plan);
    cr_assert_not_null(status);
    const char *const parts[] = {"memory scope", "*@s1", "*@s2", "case:2:2", "case:3:2"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        cr_expect_not_null(strstr(berth_status_message(status), parts[i]), "%s in:\n%s", parts[i],
                           berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// ---- what copies cost ---------------------------------------------------------------------------

typedef struct cost {
    const char *what;
    const char *target;
    const char *text;
    uint64_t size_bytes;  // of the one copy
    double time_ns;
} cost;

#define TWO(gpu, more)                                                                             \
    "{\"kind\": \"multi\", \"host\": \"c\", \"devices\": [{\"name\": \"g\", \"target\": " gpu      \
    "}, {\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}]" more "}"
// 4 bytes per nanosecond after 100 ns.
#define LINKED                                                                                     \
    TWO("{\"kind\": \"opencl\"}",                                                                  \
        ", \"memories\": [{\"name\": \"ram\", \"capacity_bytes\": 1e9, \"reached_by\": [\"c\"]}, " \
        "{\"name\": \"vram\", \"capacity_bytes\": 1e9, "                                           \
        "\"reached_by\": [\"g\"]}], \"links\": [{\"from\": \"ram\", \"to\": \"vram\", "            \
        ""                                                                                         \
        "\"bandwidth_bytes_per_s\": 4e9, \"latency_ns\": 100}]")

static const cost costs[] = {
    {"a tensor", LINKED,
     "graph @main(%a" T " on cpu:0, %b" T " on opencl:0) { %s = add(%b, %a) return %s }", 16, 104},
    {"a tuple: the sum of its fields", LINKED,
     "graph @f(%t: (f32[4], i64[3])) { %x = tuple_get(%t) {index = 0} %m = on_device(%x) {device = "
     "opencl:0, fixed = 1} return %m } graph @main(%a" T " on cpu:0, %b: i64[3] on cpu:0) "
     "{ %t = tuple(%a, %b) %r = call @f(%t) return %r }",
     40, 110},
    {"a device in host memory: an alias",
     TWO("{\"kind\": \"opencl\", \"shares_host_memory\": true}", ""),
     "graph @main(%a" T " on cpu:0, %b" T " on opencl:0) { %s = add(%b, %a) return %s }", 0, 0},
    {"one memory that both reach: an alias",
     TWO("{\"kind\": \"opencl\"}", ", \"memories\": [{\"name\": \"dram\", \"capacity_bytes\": 1e9, "
                                   "\"reached_by\": [\"c\", \"g\"]}]"),
     "graph @main(%a" T " on cpu:0, %b" T " on opencl:0) { %s = add(%b, %a) return %s }", 0, 0},
};
enum { cost_count = sizeof(costs) / sizeof(costs[0]) };

ParameterizedTestParameters(planner, copy_costs) {
    static int indices[cost_count];
    for (int i = 0; i < cost_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, cost_count);
}

ParameterizedTest(int *index, planner, copy_costs) {
    const cost *k = &costs[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, k->text);
    // The same from the copies that were made and from those that were there already.
    for (int run = 0; run < 2; ++run) {
        berth_plan *plan = NULL;
        require(plan_on(module, k->target, &plan));
        cr_assert_eq(plan->copy_count, 1, "%s: %u copies", k->what, plan->copy_count);
        cr_expect_eq(plan->copies[0].size_bytes, k->size_bytes, "%s: %llu bytes", k->what,
                     (unsigned long long)plan->copies[0].size_bytes);
        cr_expect_float_eq(plan->copies[0].time_ns, k->time_ns, 1e-6, "%s: %f ns", k->what,
                           plan->copies[0].time_ns);
    }
    berth_arena_destroy(arena);
}
