// if, loop, functions, tuples, copies, routes, aliases, lowered functions: where everything goes.
// Expected placements are worked out from the rules of docs/planner.md.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/planner/support.h"

// A GPU and an accelerator, each with a memory of its own that only the host's is linked to.
#define GNH                                                                                        \
    "{\"kind\": \"multi\", \"host\": \"h\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"n\", \"target\": {\"kind\": \"vta\"}},"                                          \
    "{\"name\": \"h\", \"target\": {\"kind\": \"cpu\"}}]}"
// Two GPUs and two processors.
#define GQCH                                                                                       \
    "{\"kind\": \"multi\", \"host\": \"h\", \"devices\": ["                                        \
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"q\", \"target\": {\"kind\": \"opencl\"}},"                                       \
    "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"                                          \
    "{\"name\": \"h\", \"target\": {\"kind\": \"cpu\"}}]}"

typedef struct placed {
    const char *what;
    const char *target;  // NULL = target_gch
    const char *text;
    const char *expected;
} placed;

#define T ": f32[4]"
#define S ": f32[]"
#define ON_C " on cpu:0"
#define ON_G " on opencl:0"
#define TO_C ") {device = cpu:0} "
#define TO_G ") {device = opencl:0} "

static const placed modules[] = {
    // ---- if
    {"a condition goes to the host", NULL,
     "graph @main(%p: bool[], %a" T ") { %r = if(%p) { %t = relu(%a) return %t } else "
     "{ %u = neg(%a) return %u } return %r }",
     "@main p:H a:G r:G {t:G =t} {u:G =u} R:G\n"},
    {"a condition made elsewhere is copied to the host", NULL,
     "graph @main(%a" S ON_G ", %b" S ON_G ") { %k = greater(%a, %b) %m = on_device(%k" TO_G
     "%r = if(%m) { %t = relu(%a) return %t } else { %u = neg(%a) return %u } return %r }",
     "@main a:G b:G k:G k>H r:G {t:G =t} {u:G =u} R:G\n"},
    {"results of branches are where the whole is", NULL,
     "graph @main(%p: bool[], %a" T ", %b" T ON_G ") { %r = if(%p) { %t = relu(%a) "
     "%m = on_device(%t) {device = cpu:0, fixed = 1} return %m } else { %u = neg(%b) return %u } "
     "return %r }",
     "@main p:H a:C b:G r:C {t:C =t} {b>C u:C =u} R:C\n"},
    {"needed in both branches: copied before the if", NULL,
     "graph @main(%p: bool[], %a" T ON_C ", %b" T ON_G ") { %r = if(%p) { %t = add(%b, %a) return "
     "%t } else { %u = sub(%b, %a) return %u } return %r }",
     "@main p:H a:C b:G a>G r:G {t:G =t} {u:G =u} R:G\n"},
    {"needed in one branch: copied there", NULL,
     "graph @main(%p: bool[], %a" T ON_C ", %b" T ON_G ") { %r = if(%p) { %t = add(%b, %a) return "
     "%t } else { %u = neg(%b) return %u } return %r }",
     "@main p:H a:C b:G r:G {a>G t:G =t} {u:G =u} R:G\n"},
    {"needed in a branch and behind the if: copied before the if", NULL,
     "graph @main(%p: bool[], %a" T ON_C ", %b" T ON_G ") { %r = if(%p) { %t = add(%b, %a) return "
     "%t } else { %u = neg(%b) return %u } %s = add(%r, %a) return %s }",
     "@main p:H a:C b:G a>G r:G {t:G =t} {u:G =u} s:G R:G\n"},
    // ---- loop
    {"carried values stay where the initial one is", NULL,
     "graph @main(%n: i64[], %x0" T ON_C ", %w" T ON_G ") { %r = loop(%n, _, %x0) (%i: i64[], "
     "%keep: bool[], %x" T ") { %y = add(%w, %x) return %keep, %y } return %r }",
     "@main n:H x0:C w:G w>C r:C {i:H keep:H x:C y:C =keep =y} R:C\n"},
    {"the initial value is copied where the body is elsewhere", NULL,
     "graph @main(%n: i64[], %x0" T ON_C ") { %r = loop(%n, _, %x0) (%i: i64[], %keep: bool[], "
     "%x" T ") { %m = on_device(%x" TO_G "%y = relu(%m) return %keep, %y } return %r }",
     "@main n:H x0:C x0>G r:G {i:H keep:H x:G y:G =keep =y} R:G\n"},
    {"a condition is copied to the host where it is needed first", NULL,
     "graph @main(%n: i64[], %x0" S ON_G ", %w" S ON_G ") { %r = loop(%n, _, %x0) (%i: i64[], "
     "%keep: bool[], %x" S ") { %k = greater(%x, %w) %m = on_device(%k" TO_G
     "%z = if(%m) { %t = relu(%x) return %t } else { %u = neg(%x) return %u } "
     "return %m, %z } return %r }",
     "@main n:H x0:G w:G r:G {i:H keep:H x:G k:G k>H z:G {t:G =t} {u:G =u} =k =z} R:G\n"},
    {"copies leave loops, also when a second use joins them", NULL,
     "graph @main(%n: i64[], %p: bool[], %a" T ON_C ", %x0" T ON_G ") { %r = loop(%n, _, %x0) "
     "(%i: i64[], %keep: bool[], %x" T ") { %y = if(%p) { %t = add(%x, %a) return %t } else "
     "{ %u = sub(%x, %a) return %u } return %keep, %y } return %r }",
     "@main n:H p:H a:C x0:G a>G r:G {i:H keep:H x:G y:G {t:G =t} {u:G =u} =keep =y} R:G\n"},
    {"scanned results are where the body makes them", NULL,
     "graph @main(%n: i64[], %x0" T ON_G ") { %r, %s = loop(%n, _, %x0) (%i: i64[], %keep: bool[], "
     "%x" T ") { %y = relu(%x) %z = neg(%y) %m = on_device(%z) {device = cpu:0, fixed = 1} "
     "return %keep, %y, %m } return %r, %s }",
     "@main n:H x0:G r:G s:C {i:H keep:H x:G y:G y>C z:C =keep =y =z} R:G R:C\n"},
    // ---- functions and tuples
    {"one signature per function: the first call decides", NULL,
     "graph @f(%v" T ") { %w = relu(%v) return %w } graph @main(%a" T ON_G ", %b" T ON_C
     ") { %x = call @f(%a) %y = call @f(%b) %s = add(%x, %y) return %s }",
     "@f v:G w:G R:G\n@main a:G b:C x:G b>G y:G s:G R:G\n"},
    {"functions as arguments are hard: what they demand flows to the call", NULL,
     "graph @neg_c(%v" T ON_C ") { %w = neg(%v) return %w } graph @apply(%f: fn(f32[4])->(f32[4]), "
     "%x" T ") { %y = call_value(%f, %x) return %y } graph @main(%a" T
     ") { %g = func_ref @neg_c() %r = call @apply(%g, %a) return %r }",
     "@neg_c v:C w:C R:C\n@apply f:- x:C y:C R:C\n@main a:C g:- r:C R:C\n"},
    {"a host operation takes no copy of data", NULL,
     "graph @main(%x" T ON_G ") { %s = shape_of(%x) %y = relu(%x) %z = reshape(%y, %s) return %z }",
     "@main x:G s:H y:G z:G R:G\n"},
    // ---- partial devices
    {"a kind alone takes the number from what it joins", GQCH,
     "graph @main(%a" T " on opencl:1, %b" T " on opencl) { %s = add(%a, %b) return %s }",
     "@main a:Q b:Q s:Q R:Q\n"},
    {"a number alone joins any kind", GQCH,
     "graph @main(%a" T ON_C ", %b" T " on *:1) { %s = neg(%b) %m = on_device(%s) {device = cpu} "
     "%t = add(%a, %m) return %t }",
     "@main a:C b:H s:H s>C t:C R:C\n"},
    {"a kind that nothing completes is the first of it", GQCH,
     "graph @main(%a" T ") { %s = neg(%a) %m = on_device(%s) {device = cpu} return %m }",
     "@main a:C s:C R:C\n"},
    {"soft parts that no device has together give way", NULL,
     "graph @main(%a" T ", %b" T ") { %x = neg(%a) on opencl %y = neg(%b) on *:1 "
     "%z = add(%x, %y) return %z }",
     "@main a:G b:H x:G y:H y>G z:G R:G\n"},
    {"a number alone that the default device has not: the one that has it", NULL,
     "graph @main(%b" T ") { %y = neg(%b) on *:1 return %y }", "@main b:H y:H R:H\n"},
    {"a number alone that the default device's kind has", GQCH,
     "graph @main(%b" T ") { %y = neg(%b) on *:1 return %y }", "@main b:Q y:Q R:Q\n"},
    {"a number alone that meets a kind where there is no such device", NULL,
     "graph @main(%a" T " on *:1, %b" T " on opencl) { %p = add(%a, %b) return %p }",
     "@main a:H b:G b>H p:H R:H\n"},
    // ---- copies
    {"once per value and destination", NULL,
     "graph @main(%a" T ON_C ", %b" T ON_G ") { %s = add(%b, %a) %t = mul(%s, %a) %u = sub(%t, %a) "
     "return %u }",
     "@main a:C b:G a>G s:G t:G u:G R:G\n"},
    {"written twice: one stays", NULL,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = cpu:0} on opencl:0 "
     "%n = device_copy(%a) {source = cpu:0} on opencl:0 %s = add(%m, %n) return %s }",
     "@main a:C m>G s:G R:G\n"},
    {"a written copy serves other uses, and moves up to them", NULL,
     "graph @main(%a" T ON_C ", %b" T ON_G ") { %s = add(%b, %a) "
     "%m = device_copy(%a) {source = cpu:0} on opencl:0 %t = add(%s, %m) return %t }",
     "@main a:C b:G m>G s:G t:G R:G\n"},
    {"a written copy whose only reader is elsewhere is gone", NULL,
     "graph @main(%a" T ON_C ", %b" T ") { %m = device_copy(%a) {source = cpu:0} on opencl:0 "
     "%s = add(%m, %b)" ON_C " return %s }",
     "@main a:C b:C s:C R:C\n"},
    {"so are the copies that it alone is made from", GNH,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = opencl:0} on vta:0 %s = neg(%m) on "
     "opencl:0 return %s }",
     "@main a:G s:G R:G\n"},
    {"written in both branches: one before the if", NULL,
     "graph @main(%p: bool[], %a" T ") { %r = if(%p) { %m = device_copy(%a) {source = cpu:0} on "
     "opencl:0 %t = relu(%m) return %t } else { %n = device_copy(%a) {source = cpu:0} on opencl:0 "
     "%u = neg(%n) return %u } return %r }",
     "@main p:H a:C m>G r:G {t:G =t} {u:G =u} R:G\n"},
    {"there and back: the value itself", NULL,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = opencl:0} on cpu:0 %s = relu(%m) "
     "%n = device_copy(%m) {source = cpu:0} on opencl:0 %t = neg(%n) return %s, %t }",
     "@main a:G m>C s:C t:G R:C R:G\n"},
    {"equal ends vanish", NULL,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = cpu:0} on cpu:0 %s = relu(%m) "
     "return %s }",
     "@main a:C s:C R:C\n"},
    {"constants are cloned, never copied", NULL,
     "graph @main(%a" T ON_C ", %b" T ON_G ") { %k = constant() {value = f32[4] (1, 2, 3, 4)} "
     "%s = add(%a, %k) %t = add(%b, %k) %m = device_copy(%k) {source = cpu:0} on opencl:0 "
     "%u = add(%t, %m) return %s, %u }",
     "@main a:C b:G k:G k:C s:C t:G u:G R:C R:G\n"},
    // ---- routes
    {"from the GPU to the accelerator through the host", GNH,
     "graph @main(%a" T ") { %l = relu(%a) %m = on_device(%l" TO_G
     "%s = neg(%m) %o = on_device(%s) {device = vta:0} return %o }",
     "@main a:G l:G l>H l>N s:N R:N\n"},
    {"a stop serves the host, too", GNH,
     "graph @main(%a" T ON_G ", %b" T " on vta:0, %c" T " on cpu:0) { %l = relu(%a) "
     "%s = add(%b, %l) %t = add(%c, %l) %u = mul(%b, %l) return %s, %t, %u }",
     "@main a:G b:N c:H l:G l>H l>N s:N t:H u:N R:N R:H R:N\n"},
    {"a written copy takes the route, too", GNH,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = opencl:0} on vta:0 %s = neg(%m) "
     "return %s }",
     "@main a:G a>H m>N s:N R:N\n"},
    {"a stop of one way that is written out for another", GNH,
     "graph @main(%a" T ") { %m = device_copy(%a) {source = opencl:0} on vta:0 %s = neg(%m) "
     "%n = device_copy(%a) {source = opencl:0} on cpu:0 %t = relu(%n) return %s, %t }",
     "@main a:G n>H m>N s:N t:H R:N R:H\n"},
};
enum { module_count = sizeof(modules) / sizeof(modules[0]) };

ParameterizedTestParameters(planner, structure) {
    static int indices[module_count];
    for (int i = 0; i < module_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, module_count);
}

ParameterizedTest(int *index, planner, structure) {
    const placed *m = &modules[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, m->text);
    berth_plan_options options = {.target =
                                      parse_target(arena, m->target ? m->target : target_gch)};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    const char *shown = show_module(module, options.target);
    cr_expect_str_eq(shown, m->expected, "%s:\n%sexpected\n%s", m->what, shown, m->expected);
    (void)plan_again(module, &options);
    cr_expect_str_eq(show_module(module, options.target), m->expected, "%s", m->what);
    berth_arena_destroy(arena);
}

// A target alone: the first device that has it.
Test(planner, a_target_alone) {
    berth_arena *arena = new_arena();
    berth_multi_target *target = parse_target(arena, GQCH);
    char digits[33];
    berth_hash128_hex(target->devices[2].target->hash, digits);
    berth_module *module = parse_module(
        arena, berth_arena_printf(
                   arena, "graph @main(%%a" T ") { %%x = neg(%%a) on *#%s return %%x }", digits));
    berth_plan_options options = {.target = target};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_expect_str_eq(show_module(module, target), "@main a:C x:C R:C\n");
    (void)plan_again(module, &options);
    berth_arena_destroy(arena);
}
