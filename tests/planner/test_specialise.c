// Instances of functions: made where they save copies or where there is no plan otherwise, never
// more than allowed.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/planner/support.h"

#define T ": f32[4]"
#define ON_C " on cpu:0"
#define ON_G " on opencl:0"

typedef struct specialised {
    const char *what;
    uint32_t max_instances;
    const char *text;
    const char *expected;  // NULL = an error
} specialised;

#define ONE(name, operation) "graph @" name "(%x" T ") { %s = " operation "(%x) return %s } "
// %p = a call of f with %a, on a device.
#define AT(p, f, device)                                                                           \
    "%" p " = call @" f "(%a)" T " %" p "m = on_device(%" p ") {device = " device ":0} "
#define F2 "graph @f(%x" T ", %y" T ") { %s = add(%x, %y) return %s } "
// Two calls whose arguments are on G and on C, each used there.
#define GC                                                                                         \
    F2 "graph @main(%a" T ON_G ", %b" T ON_G ", %c" T ON_C ", %d" T ON_C                           \
       ") { %p = call @f(%a, %b) %q = call @f(%c, %d) %r = relu(%p) %k = neg(%q) "                 \
       "%m = on_device(%k) {device = cpu:0} return %r, %m }"
// Three places.
#define GCH                                                                                        \
    F2 "graph @main(%a" T ON_G ", %c" T ON_C ", %h" T " on cpu:1) { %p = call @f(%a, %a) "         \
       "%q = call @f(%c, %c) %r = call @f(%h, %h) %s = call @f(%c, %c) "                           \
       "%t = neg(%q) %u = neg(%r) %v = neg(%s) %m = on_device(%t) {device = cpu:0} "               \
       "%n = on_device(%u) {device = cpu:1} %o = on_device(%v) {device = cpu:0} "                  \
       "return %p, %m, %n, %o }"
// Results that are demanded in two places.
#define CONFLICT                                                                                   \
    F2 "graph @main(%a" T ") { %p = call @f(%a, %a) %m = on_device(%p) {device = cpu:0} "          \
       "%q = call @f(%a, %a) %n = on_device(%q) {device = opencl:0} %s = add(%m, %n) return %s }"

static const specialised modules[] = {
    {"one signature: the first call decides", 1, GC,
     "@f x:G y:G s:G R:G\n@main a:G b:G c:C d:C p:G c>G d>G q:G r:G q>C k:C R:G R:C\n"},
    {"two: no copy is left", 2, GC,
     "@f x:G y:G s:G R:G\n@main a:G b:G c:C d:C p:G q:C r:G k:C R:G R:C\n"
     "@f.1 x:C y:C s:C R:C\n"},
    {"more than are of use are not made", 8, GC,
     "@f x:G y:G s:G R:G\n@main a:G b:G c:C d:C p:G q:C r:G k:C R:G R:C\n"
     "@f.1 x:C y:C s:C R:C\n"},
    {"three places, two instances: the first that copies gets its own", 2, GCH,
     "@f x:G y:G s:G R:G\n@main a:G c:C h:H p:G q:C h>G r:G s:C t:C r>H u:H v:C R:G R:C R:H R:C\n"
     "@f.1 x:C y:C s:C R:C\n"},
    {"three places, three instances; calls that want the same share one", 3, GCH,
     "@f x:G y:G s:G R:G\n@main a:G c:C h:H p:G q:C r:H s:C t:C u:H v:C R:G R:C R:H R:C\n"
     "@f.1 x:C y:C s:C R:C\n@f.2 x:H y:H s:H R:H\n"},
    {"nothing saved, nothing made: the body is bound to its place", 8,
     "graph @f(%x" T ") { %m = on_device(%x) {device = opencl:0} %s = neg(%m) "
     "%o = on_device(%s) {device = opencl:0} return %o } graph @main(%a" T ON_G ", %c" T ON_C
     ") { %p = call @f(%a) %q = call @f(%c) return %p, %q }",
     "@f x:G s:G R:G\n@main a:G c:C p:G c>G q:G R:G R:G\n"},
    {"without, contradicting results are an error", 1, CONFLICT, NULL},
    {"with two, there is a plan", 2, CONFLICT,
     "@f x:C y:C s:C R:C\n@main a:C p:C a>G q:G p>G s:G R:G\n@f.1 x:G y:G s:G R:G\n"},
    {"an error that instances do not help stays one, and leaves none", 8,
     F2 "graph @main(%a" T ") { %p = call @f(%a, %a) %q = call @f(%p, %a) "
        "%m = on_device(%a) {device = cpu:0} %n = on_device(%a) {device = opencl:0} "
        "%s = add(%m, %n) %t = add(%s, %q) return %t }",
     NULL},
    {"instances of what an instance calls", 8,
     "graph @g(%x" T ") { %s = neg(%x) return %s } "
     "graph @f(%x" T ") { %s = call @g(%x) return %s } graph @main(%a" T ON_G ", %c" T ON_C
     ") { %p = call @f(%a) %q = call @f(%c) %k = neg(%q) %m = on_device(%k) {device = cpu:0} "
     "return %p, %m }",
     "@g x:G s:G R:G\n@f x:G s:G R:G\n@main a:G c:C p:G q:C k:C R:G R:C\n"
     "@f.1 x:C s:C R:C\n@g.1 x:C s:C R:C\n"},
    {"what an instance calls and that stays as it was is not made again", 8,
     "graph @g(%x" T ") { %m = on_device(%x) {device = opencl:0} %s = neg(%m) %o = on_device(%s) "
     "{device = opencl:0} return %o } graph @f(%x" T ") { %r = relu(%x) %s = call @g(%x) "
     "%t = exp(%r) return %t, %s } graph @main(%a" T ON_G ", %c" T ON_C ") { %p, %u = call @f(%a) "
     "%q, %v = call @f(%c) %k = neg(%q) %m = on_device(%k) {device = cpu:0} return %p, %m }",
     "@g x:G s:G R:G\n@f x:G r:G s:G t:G R:G R:G\n@main a:G c:C p:G u:G q:C v:G k:C R:G R:C\n"
     "@f.1 x:C r:C x>G s:G t:C R:C R:G\n"},
    {"two functions", 2,
     ONE("f", "neg") ONE("g", "exp") "graph @main(%a" T ") { " AT("p", "f", "cpu")
         AT("q", "f", "opencl") AT("u", "g", "cpu")
             AT("v", "g", "opencl") "%s = add(%pm, %qm) %t = add(%um, %vm) return %s, %t }",
     "@f x:C s:C R:C\n@g x:C s:C R:C\n@main a:C p:C a>G q:G u:C v:G p>G s:G u>G t:G R:G R:G\n"
     "@g.1 x:G s:G R:G\n@f.1 x:G s:G R:G\n"},
    {"two levels", 2,
     ONE("h", "neg") "graph @f(%x" T ") { %s = call @h(%x) return %s } graph @main(%a" T ") { " AT(
         "p", "f", "cpu") AT("q", "f", "opencl") "%s = add(%pm, %qm) return %s }",
     "@h x:C s:C R:C\n@f x:C s:C R:C\n@main a:C p:C a>G q:G p>G s:G R:G\n"
     "@f.1 x:G s:G R:G\n@h.1 x:G s:G R:G\n"},
    {"many calls, two places", 2,
     ONE("f", "neg") "graph @main(%a" T ") { " AT("p", "f", "cpu") AT("q", "f", "opencl")
         AT("r", "f", "cpu") AT("s", "f", "opencl") AT("t", "f", "cpu")
             AT("u", "f", "opencl") "return %p, %q, %r, %s, %t, %u }",
     "@f x:C s:C R:C\n@main a:C p:C a>G q:G r:C s:G t:C u:G R:C R:G R:C R:G R:C R:G\n"
     "@f.1 x:G s:G R:G\n"},
    {"a call without a demand takes the first", 8,
     ONE("f", "neg") "graph @main(%a" T ") { %o = call @f(%a) " AT("p", "f", "cpu")
         AT("q", "f", "opencl") "return %o, %p, %q }",
     "@f x:C s:C R:C\n@main a:C o:C p:C a>G q:G R:C R:C R:G\n@f.1 x:G s:G R:G\n"},
    {"three places are more than two instances", 2,
     ONE("f", "neg") "graph @main(%a" T ") { " AT("p", "f", "cpu")
         AT("q", "f",
            "opencl") "%r = call @f(%a) %m = on_device(%r) {device = cpu:1} return %p, %q, %r }",
     NULL},
    {"three places, three instances", 3,
     ONE("f", "neg") "graph @main(%a" T ") { " AT("p", "f", "cpu")
         AT("q", "f",
            "opencl") "%r = call @f(%a) %m = on_device(%r) {device = cpu:1} return %p, %q, %r }",
     "@f x:C s:C R:C\n@main a:C p:C a>G q:G a>H r:H R:C R:G R:H\n@f.1 x:G s:G R:G\n"
     "@f.2 x:H s:H R:H\n"},
    {"a partial demand joins what it agrees with", 2,
     ONE("f", "neg") "graph @main(%a" T ") { " AT(
         "p", "f", "opencl") "%r = call @f(%a) "
                             "%m = on_device(%r) {device = *:1} %o = call @f(%a) "
                             "%n = on_device(%o) {device = cpu} return %p, %r, %o }",
     "@f x:G s:G R:G\n@main a:G p:G a>H r:H o:H R:G R:H R:H\n@f.1 x:H s:H R:H\n"},
    {"a function that calls itself", 2,
     "graph @f(%x" T ", %p: bool[]) { %r = if(%p): f32[4] { %n = neg(%x) return %n } else { "
     "%z = call @f(%x, %p)" T " return %z } return %r } graph @main(%a" T ", %c: bool[]) { "
     "%p = call @f(%a, %c) %pm = on_device(%p) {device = cpu:0} %q = call @f(%a, %c) "
     "%qm = on_device(%q) {device = opencl:0} return %p, %q }",
     "@f x:C p:H r:C {n:C =n} {z:C =z} R:C\n@main a:C c:H p:C a>G q:G R:C R:G\n"
     "@f.1 x:G p:H r:G {n:G =n} {z:G =z} R:G\n"},
    {"functions that call each other", 2,
     "graph @f(%x" T ") { %z = call @g(%x)" T " return %z } graph @g(%x" T ") { %z = call @f(%x)" T
     " return %z } graph @main(%a" T ") { " AT("p", "f", "cpu")
         AT("q", "g", "opencl") "return %p, %q }",
     "@f x:C z:C R:C\n@g x:C z:C R:C\n@main a:C p:C q:G R:C R:G\n"
     "@g.1 x:C z:G R:G\n@f.1 x:C z:G R:G\n"},
    {"functions as arguments", 2,
     "graph @g(%v" T ON_C ") { %w = neg(%v) return %w } graph @h(%v" T ON_G ") { %w = neg(%v) "
     "return %w } graph @apply(%f: fn(f32[4])->(f32[4]), %x" T ") { %y = call_value(%f, %x) "
     "return %y } graph @main(%a" T ") { %g = func_ref @g() %p = call @apply(%g, %a) "
     "%h = func_ref @h() %q = call @apply(%h, %a) return %p, %q }",
     "@g v:C w:C R:C\n@h v:G w:G R:G\n@apply f:- x:C y:C R:C\n"
     "@main a:C g:- p:C h:- a>G q:G R:C R:G\n@apply.1 f:- x:G y:G R:G\n"},
    {"references", 2,
     ONE("f", "neg") "graph @main(%a" T ", %b" T ") { %f = func_ref @f() %t = tuple(%f, %a) "
                     "%m = on_device(%a) {device = cpu:0} %g = func_ref @f() %u = tuple(%g, %b) "
                     "%n = on_device(%b) {device = opencl:0} %h = tuple_get(%t) {index = 0} "
                     "%k = tuple_get(%u) {index = 0} %p = call_value(%h, %a) "
                     "%q = call_value(%k, %b) return %p, %q }",
     "@f x:C s:C R:C\n@main a:C b:G f:C t:C g:G u:G h:C k:G p:C q:G R:C R:G\n"
     "@f.1 x:G s:G R:G\n"},
    {"demands of scopes", 2,
     ONE("f", "neg") "graph @main(%a" T ") { %p = call @f(%a) %pm = on_device(%p) {device = *@s1} "
                     "%q = call @f(%a) %qm = on_device(%q) {device = *@s2} return %p, %q }",
     "@f x:G@s1 s:G@s1 R:G@s1\n@main a:G@s1 p:G@s1 a>G@s2 q:G@s2 R:G@s1 R:G@s2\n"
     "@f.1 x:G@s2 s:G@s2 R:G@s2\n"},
};
enum { module_count = sizeof(modules) / sizeof(modules[0]) };

ParameterizedTestParameters(planner, specialised) {
    static int indices[module_count];
    for (int i = 0; i < module_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, module_count);
}

ParameterizedTest(int *index, planner, specialised) {
    const specialised *m = &modules[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, m->text);
    uint32_t function_count = module->functions.count;
    berth_plan_options options = {.target = parse_target(arena, target_gch),
                                  .max_instances = m->max_instances};
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    cr_assert_eq(status == NULL, m->expected != NULL, "%s: %s", m->what,
                 status ? berth_status_message(status) : "planned");
    if (status) {
        cr_expect_not_null(strstr(berth_status_message(status), "demanded twice"));
        cr_expect_eq(module->functions.count, function_count);
        berth_status_free(status);
    } else {
        const char *shown = show_module(module, options.target);
        cr_expect_str_eq(shown, m->expected, "%s:\n%sexpected\n%s", m->what, shown, m->expected);
        (void)plan_again(module, &options);
        cr_expect_str_eq(show_module(module, options.target), m->expected, "%s", m->what);
    }
    berth_arena_destroy(arena);
}

// Ten places, eight instances.
Test(planner, at_most_eight_instances) {
    berth_arena *arena = new_arena();
    berth_strbuf target = berth_strbuf_make(arena), text = berth_strbuf_make(arena);
    berth_strbuf_add(&target,
                     "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"cpu\"}}");
    berth_strbuf_add(&text, "graph @f(%x" T ") { %s = neg(%x) return %s } graph @main(");
    for (int i = 0; i < 10; ++i) {
        berth_strbuf_add(&target, ", {\"target\": {\"kind\": \"opencl\"}}");
        berth_strbuf_addf(&text, "%s%%a%d" T " on opencl:%d", i ? ", " : "", i, i);
    }
    berth_strbuf_add(&target, "]}");
    berth_strbuf_add(&text, ") {");
    for (int i = 0; i < 10; ++i)
        berth_strbuf_addf(&text,
                          " %%p%d = call @f(%%a%d) %%q%d = neg(%%p%d) "
                          "%%r%d = on_device(%%q%d) {device = opencl:%d}",
                          i, i, i, i, i, i, i);
    berth_strbuf_add(&text, " return %r0");
    for (int i = 1; i < 10; ++i) berth_strbuf_addf(&text, ", %%r%d", i);
    berth_strbuf_add(&text, " }");
    berth_module *module = parse_module(arena, berth_strbuf_text(&text));
    berth_plan_options options = {.target = parse_target(arena, berth_strbuf_text(&target)),
                                  .max_instances = 100};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_expect_eq(module->functions.count, 1 + 8, "%u functions", module->functions.count);
    cr_expect_neq(berth_module_find_function(module, "f.7"), BERTH_NONE);
    // Two calls there and back, through the host's memory.
    cr_expect_eq(plan->copy_count, 2 * 2 * 2, "%u copies", plan->copy_count);
    (void)plan_again(module, &options);
    berth_arena_destroy(arena);
}

// Twenty functions, each calling the next twice: a million ways down, two places, two instances.
Test(planner, instances_of_many_ways) {
    enum { levels = 20 };
    berth_arena *arena = new_arena();
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text, "graph @f%d(%%x" T ") { %%s = neg(%%x) return %%s } ", levels);
    for (int i = levels; i-- > 0;)
        berth_strbuf_addf(&text,
                          "graph @f%d(%%x" T ") { %%p = call @f%d(%%x) %%q = call @f%d(%%p) "
                          "%%s = call @f%d(%%q) return %%s } ",
                          i, i + 1, i + 1, i + 1);
    berth_strbuf_add(&text, "graph @main(%a" T ") { " AT("p", "f0", "cpu")
                                AT("q", "f0", "opencl") "return %p, %q }");
    berth_module *module = parse_module(arena, berth_strbuf_text(&text));
    berth_plan_options options = {.target = parse_target(arena, target_gch), .max_instances = 2};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_expect_eq(module->functions.count, 2 * (levels + 1) + 1, "%u functions",
                 module->functions.count);
    // Calls without a demand take the first instance: only the last of all is on the other device.
    uint32_t copies = 0;
    for (uint32_t i = 0; i < plan->place_count; ++i)
        copies += plan->places[i].kind == BERTH_PLAN_COPY;
    cr_expect_eq(copies, 1, "%u copies", copies);
    (void)plan_again(module, &options);
    berth_arena_destroy(arena);
}
