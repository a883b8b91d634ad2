// Pins: in every function, by the names that plans print, and what becomes of those that match
// nothing.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/planner/support.h"

#define T ": f32[4]"
#define LOCATIONS                                                                                  \
    "\nlocations {\n #1 = \"m\" node \"act\" op \"Relu\"\n #2 = \"m\" node \"conv\" op \"Conv\"\n" \
    " #3 = \"m\" node \"bn\" op \"BatchNormalization\"\n #4 = fused(#2, #3)\n"                     \
    " #5 = \"m\" node \"gone\" op \"Identity\"\n}"

typedef struct pinned {
    const char *what;
    const char *pins[3];  // --pin
    const char *text;
    const char *expected;  // NULL = an error
    const char *message;   // part of the error, or of the only warning; NULL = none
} pinned;

#define IN_CALLEE                                                                                  \
    "graph @f(%x" T ") { %y = relu(%x) #1 return %y } graph @main(%a" T ") { %b = call @f(%a) "    \
    "%c = neg(%a) return %b, %c }" LOCATIONS
#define FUSED                                                                                      \
    "graph @main(%a" T ") { %b = neg(%a) #4 %c = relu(%b) #1 %d = exp(%c) #5 return %d "           \
    "}" LOCATIONS

static const pinned modules[] = {
    {"in a called function",
     {"act=c"},
     IN_CALLEE,
     "@f x:G x>C y:C R:C\n@main a:G b:C c:G R:C R:G\n",
     NULL},
    {"in a function that is a value",
     {"op:Relu=c"},
     "graph @f(%x" T ") { %y = relu(%x) #1 return %y } graph @main(%a" T " on opencl:0) { "
     "%f = func_ref @f() %b = call_value(%f, %a) return %b }" LOCATIONS,
     "@f x:G x>C y:C R:C\n@main a:G f:- b:C R:C\n",
     NULL},
    {"by one of the names of a fused operation",
     {"bn=c"},
     FUSED,
     "@main a:G a>C b:C b>G c:G d:G R:G\n",
     NULL},
    {"by the name that plans print",
     {"conv+bn=c"},
     FUSED,
     "@main a:G a>C b:C b>G c:G d:G R:G\n",
     NULL},
    {"by the operators that plans print",
     {"op:Conv+Batch*=c"},
     FUSED,
     "@main a:G a>C b:C b>G c:G d:G R:G\n",
     NULL},
    {"a pattern without a plus does not reach over names",
     {"c*n=c"},
     FUSED,
     NULL,
     "pin c*n=c: pattern \"c*n\" matches no operation"},
    {"by the line and the column that plans print of text",
     {"3:2=c"},
     "graph @main(%a" T ") {\n %b = neg(%a)\n %c = relu(%b)\n %d = exp(%c)\n return %d }",
     "@main a:G b:G b>C c:C c>G d:G R:G\n",
     NULL},
    {"what is no operation any more",
     {"gone=c"},
     "graph @main(%a" T ") { %k = constant() {value = f32[4] (1, 2, 3, 4)} #5 %b = add(%a, %k) "
     "return %b }" LOCATIONS,
     "@main a:G k:G b:G R:G\n",
     "pin gone=c: \"gone\" matches nothing that is left to compute; no effect"},
    {"nothing at all",
     {"act=c", "nothing=c"},
     IN_CALLEE,
     NULL,
     "pin nothing=c: pattern \"nothing\" matches no operation of the model"},
};
enum { module_count = sizeof(modules) / sizeof(modules[0]) };

ParameterizedTestParameters(pins, modules) {
    static int indices[module_count];
    for (int i = 0; i < module_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, module_count);
}

ParameterizedTest(int *index, pins, modules) {
    const pinned *m = &modules[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, m->text);
    berth_target_options target_options = {.pins = m->pins};
    berth_multi_target *target = NULL;
    require(berth_target_parse(arena, target_gch, &target_options, &target));
    berth_plan_options options = {.target = target};
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    if (!m->expected) {
        cr_assert_not_null(status, "%s", m->what);
        cr_expect_not_null(strstr(berth_status_message(status), m->message), "%s: %s", m->what,
                           berth_status_message(status));
        berth_status_free(status);
    } else {
        require(status);
        const char *shown = show_module(module, target);
        cr_expect_str_eq(shown, m->expected, "%s:\n%sexpected\n%s", m->what, shown, m->expected);
        cr_expect_eq(plan->warning_count, m->message != NULL, "%s", m->what);
        if (m->message && plan->warning_count) cr_expect_str_eq(plan->warnings[0], m->message);
        (void)plan_again(module, &options);
    }
    berth_arena_destroy(arena);
}

// A target's pins may be about other models.
Test(pins, of_a_target_that_match_nothing) {
    berth_arena *arena = new_arena();
    berth_multi_target *target =
        parse_target(arena, "{\"kind\": \"multi\", \"devices\": ["
                            "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
                            "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}}],"
                            "\"pins\": [{\"match\": \"op:Softmax\", \"device\": \"c\"},"
                            "{\"match\": \"act\", \"device\": \"c\"}]}");
    berth_module *module = parse_module(arena, IN_CALLEE);
    berth_plan_options options = {.target = target};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_assert_eq(plan->warning_count, 1);
    cr_expect_str_eq(plan->warnings[0],
                     "pins[0]: \"op:Softmax\" matches no operation of this model; no effect");
    cr_expect_str_eq(show_module(module, target),
                     "@f x:G x>C y:C R:C\n@main a:G b:C c:G R:C R:G\n");
    berth_arena_destroy(arena);
}
