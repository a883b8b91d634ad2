// The cases of docs/planner.md: where every parameter, operation and result goes. G = opencl:0 (the
// default), C = cpu:0, H = cpu:1 (the host); "@s1" a memory scope; "x>G" a copy of x to G.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/planner/support.h"

typedef struct planner_case {
    const char *text;
    const char *expected;
} planner_case;

#define T ": f32[4]"
#define P2 "(%a" T ", %b" T ")"
#define P4 "(%a" T ", %b" T ", %c" T ", %d" T ")"
#define ON_C ") {device = cpu:0} "
#define MM                                                                                         \
    "tensor @mm(%A" T " in scope \"s1\", %B" T " in, %out" T                                       \
    " out scope \"s1\") { for %i in 4 { %out[%i] = %A[%i] * %B[%i] } } "
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
    // 18: the buffers of @mm demand scopes; %x is there, %z is not
    {MM "graph @main(%x" T " on *@s1, %z" T " on *@s2, %w" T
        ") { %o1 = call @mm(%x, %w) %o2 = call @mm(%z, %w) %o3 = call @mm(%z, %w) "
        "return %o1, %o2, %o3 }",
     "@main x:G@s1 z:G@s2 w:G o1:G@s1 z>G@s1 o2:G@s1 o3:G@s1 R:G@s1 R:G@s1 R:G@s1\n"},
    // A function is no data: what holds it goes nowhere.
    {"graph @f(%v" T ") { %w = neg(%v) return %w } "
     "graph @main(%x" T ") { %h = func_ref @f() %n = neg(%x) on opencl:0 %t = tuple(%h, %n) "
     "return %t }",
     "@f v:G w:G R:G\n@main x:G h:G n:G t:G R:G\n"},
};
enum { case_count = sizeof(cases) / sizeof(cases[0]) };

ParameterizedTestParameters(planner, cases) {
    static int indices[case_count];
    for (int i = 0; i < case_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, case_count);
}

ParameterizedTest(int *index, planner, cases) {
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, cases[*index].text);
    berth_plan_options options = {.target = parse_target(arena, target_gch)};
    berth_plan *made = NULL;
    require(plan_with(module, &options, &made));
    const char *shown = show_module(module, options.target);
    cr_assert_str_eq(shown, cases[*index].expected, "case %d:\n%sexpected\n%s", *index, shown,
                     cases[*index].expected);
    (void)plan_again(module, &options);
    cr_assert_str_eq(show_module(module, options.target), cases[*index].expected);
    berth_arena_destroy(arena);
}
