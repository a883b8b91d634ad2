// Operations that devices lack: what a value's device cannot run goes elsewhere by a copy, and
// never fails for it; what none can run is listed.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/planner/support.h"

#define T ": f32[4]"

// The device "g" has no abs, "c" no neg, none has exp.
static const char *lacks(void *user, const berth_module *module, berth_func_id function,
                         berth_op_id op, uint32_t device, berth_arena *arena) {
    const berth_multi_target *target = user;
    berth_op_kind kind = berth_graph_get(module, function)->ops.data[op].kind;
    const char *name = target->devices[device].name;
    bool lacking = (kind == BERTH_OP_ABS && strcmp(name, "g") == 0) ||
                   (kind == BERTH_OP_NEG && strcmp(name, "c") == 0) || kind == BERTH_OP_EXP;
    return lacking ? berth_arena_printf(arena, "%s has no %s", name, berth_op_facts_get(kind)->name)
                   : NULL;
}

typedef struct lacking {
    const char *what;
    const char *text;
    const char *expected;
    const char *messages[3];  // instead, of the error
    const char *warning;      // NULL = none
} lacking;

static const lacking modules[] = {
    {"a value is where its reader cannot run",
     "graph @main(%a" T " on cpu:0) { %s = neg(%a) return %s }",
     "@main a:C a>G s:G R:G\n",
     {NULL},
     NULL},
    {"the default device cannot: the first that can, and nothing goes with it",
     "graph @main(%a" T ") { %r = relu(%a) %s = abs(%r) %t = relu(%s) return %t }",
     "@main a:G r:G r>C s:C s>G t:G R:G\n",
     {NULL},
     "\"g\" cannot run 1 of the operations, which run elsewhere: g has no abs"},
    {"one after the other",
     "graph @main(%a" T " on cpu:0) { %r = abs(%a) %s = neg(%r) %t = abs(%s) return %t }",
     "@main a:C r:C r>G s:G s>C t:C R:C\n",
     {NULL},
     "\"g\" cannot run 2 of the operations, which run elsewhere: g has no abs, ..."},
    {"in a function",
     "graph @f(%v" T ") { %w = neg(%v) return %w } graph @main(%a" T
     " on cpu:0) { %s = call @f(%a) return %s }",
     "@f v:G w:G R:G\n@main a:C a>G s:G R:G\n",
     {NULL},
     NULL},
    {"of a kind, the first that can",
     "graph @main(%a" T ") { %s = neg(%a) on cpu return %s }",
     "@main a:H s:H R:H\n",
     {NULL},
     NULL},
    {"of a number, the one that can",
     "graph @main(%a" T ") { %s = abs(%a) on *:0 return %s }",
     "@main a:C s:C R:C\n",
     {NULL},
     "\"g\" cannot run 1 of the operations, which run elsewhere: g has no abs"},
    {"no device can",
     "graph @main(%a" T ") {\n %r = exp(%a)\n %s = relu(%r)\n %t = exp(%s)\n return %t }",
     NULL,
     {"no device of the target can run", "case:2:2: g has no exp", "case:4:2: g has no exp"},
     NULL},
    {"the one that is demanded cannot",
     "graph @main(%a" T ") {\n %r = neg(%a)\n %m = on_device(%r) {device = cpu:0}\n return %m }",
     NULL,
     {"no device of the target can run", "case:2:2: c has no neg", ""},
     NULL},
};
enum { module_count = sizeof(modules) / sizeof(modules[0]) };

ParameterizedTestParameters(planner, lacking) {
    static int indices[module_count];
    for (int i = 0; i < module_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, module_count);
}

ParameterizedTest(int *index, planner, lacking) {
    const lacking *m = &modules[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, m->text);
    berth_multi_target *target = parse_target(arena, target_gch);
    berth_plan_options options = {.target = target, .cost = {.unsupported = lacks, .user = target}};
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    if (m->expected) {
        require(status);
        const char *shown = show_module(module, target);
        cr_expect_str_eq(shown, m->expected, "%s:\n%sexpected\n%s", m->what, shown, m->expected);
        cr_expect_eq(plan->warning_count, m->warning != NULL, "%s", m->what);
        if (m->warning && plan->warning_count)
            cr_expect_eq(strncmp(plan->warnings[0], m->warning, strlen(m->warning)), 0, "%s",
                         plan->warnings[0]);
        (void)plan_again(module, &options);
    } else {
        cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED, "%s", m->what);
        for (int i = 0; i < 3; ++i)
            cr_expect_not_null(strstr(berth_status_message(status), m->messages[i]),
                               "%s: no \"%s\" in %s", m->what, m->messages[i],
                               berth_status_message(status));
        berth_status_free(status);
    }
    berth_arena_destroy(arena);
}
