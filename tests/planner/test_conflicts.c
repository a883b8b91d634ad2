// Hard conflicts of every kind: the message shows both chains of reasons, each from what was
// demanded to where they meet, with locations.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "tests/planner/support.h"

#define T ": f32[4]"

typedef struct conflict {
    const char *what;
    const char *text;     // from line 1; "module" stands in front of it
    const char *pins[3];  // --pin
    // Lines that the message has in this order, as parts of lines: the head, "on A", its chain,
    // "on B", its chain, "which meet in", the edge.
    const char *lines[14];
} conflict;

#define HEAD "device type of the same value or operation is demanded twice:"
#define MEET "which meet in"

static const conflict conflicts[] = {
    {"annotation against annotation",
     "graph @main(%a" T ") {\n %m = on_device(%a) {device = cpu:0}\n"
     " %n = on_device(%a) {device = opencl:0}\n %s = add(%m, %n)\n return %s }",
     {NULL},
     {HEAD, "on cpu:0, because of", "annotation on_device, case:2:2",
      "annotated by on_device, case:2:2", "on opencl:0, because of",
      "annotation on_device, case:3:2", MEET, "annotated by on_device, case:3:2"}},
    {"fields of a tuple (case 20)",
     "graph @main(%x" T ", %y" T ") {\n %m = on_device(%x) {device = cpu:0, fixed = 1}\n"
     " %n = on_device(%y) {device = opencl:0, fixed = 1}\n %t = tuple(%m, %n)\n return %t }",
     {NULL},
     {HEAD, "on opencl:0, because of", "annotation on_device, case:3:2",
      "on_device with its context fixed, case:3:2", "on cpu:0, because of",
      "annotation on_device, case:2:2", "on_device with its context fixed, case:2:2", MEET,
      "field of the tuple, case:4:2"}},
    {"branches of an if",
     "graph @main(%p: bool[], %a" T " on cpu:0, %b" T " on opencl:0) {\n"
     " %r = if(%p) { return %a } else { return %b }\n return %r }",
     {NULL},
     {HEAD, "on opencl:0, because of", "%b is placed here, case:1:12", "on cpu:0, because of",
      "%a is placed here, case:1:12", MEET, "result of the branch, case:2:2"}},
    {"a carried value and the body's result",
     "graph @main(%n: i64[], %x0" T ") {\n"
     " %r = loop(%n, _, %x0) (%i: i64[], %keep: bool[], %x" T ") {\n"
     "  %m = on_device(%x) {device = cpu:0}\n  %y = relu(%m)\n"
     "  %o = on_device(%y) {device = opencl:0, fixed = 1}\n  return %keep, %o }\n return %r }",
     {NULL},
     {HEAD, "on opencl:0, because of", "annotation on_device, case:5:3", "on cpu:0, because of",
      "annotation on_device, case:3:3", "annotated by on_device, case:3:3",
      "carried value and result of the loop, case:2:2", "result of the loop's body, case:2:2", MEET,
      "on_device with its context fixed, case:5:3"}},
    {"one function's result at two places",
     "graph @f(%v" T ") { %w = relu(%v) return %w }\ngraph @main(%a" T ") {\n"
     " %x = call @f(%a)\n %m = on_device(%x) {device = cpu:0}\n %y = call @f(%a)\n"
     " %n = on_device(%y) {device = opencl:0}\n %s = add(%m, %n)\n return %s }",
     {NULL},
     {HEAD, "on cpu:0, because of", "annotation on_device, case:4:2",
      "annotated by on_device, case:4:2", "result of a call, case:3:2",
      "result of a call, case:5:2", "on opencl:0, because of", "annotation on_device, case:6:2",
      MEET, "annotated by on_device, case:6:2"}},
    {"a function's own result against its caller",
     "graph @f(%v" T ") {\n %w = relu(%v)\n %m = on_device(%w) {device = cpu:0}\n return %m }\n"
     "graph @main(%a" T ") {\n %x = call @f(%a)\n %n = on_device(%x) {device = opencl:0}\n"
     " %s = relu(%n)\n return %s }",
     {NULL},
     {HEAD, "on cpu:0, because of", "annotation on_device, case:3:2",
      "on_device as a function's result, case:3:2", "result of the function, case:1:12",
      "result of a call, case:6:2", "on opencl:0, because of", "annotation on_device, case:7:2",
      MEET, "annotated by on_device, case:7:2"}},
    {"a function as an argument",
     "graph @g(%v" T " on cpu:0) { %w = relu(%v) return %w }\n"
     "graph @apply(%f: fn(f32[4])->(f32[4]), %x" T ") {\n %y = call_value(%f, %x)\n return %y }\n"
     "graph @h(%v" T " on opencl:0) { %w = relu(%v) return %w }\n"
     "graph @main(%a" T ") {\n %g = func_ref @g()\n %p = call @apply(%g, %a)\n"
     " %h = func_ref @h()\n %q = call @apply(%h, %a)\n %s = add(%p, %q)\n return %s }",
     {NULL},
     {HEAD, "on cpu:0, because of", "%v is placed here, case:1:12", "on opencl:0, because of",
      "%v is placed here, case:5:1", MEET, "argument and parameter of a call, case:10:2"}},
    {"a function in a tuple is all in one place",
     "graph @f(%v" T ") {\n %m = on_device(%v) {device = opencl:0}\n %w = relu(%m)\n return %w }\n"
     "graph @main(%x" T " on cpu:0) {\n %g = func_ref @f()\n %t = tuple(%g, %x)\n"
     " %h = tuple_get(%t) {index = 0}\n %z = tuple_get(%t) {index = 1}\n"
     " %s = call_value(%h, %z)\n return %s }",
     {NULL},
     {HEAD, "on cpu:0, because of", "%x is placed here, case:5:1", "on opencl:0, because of",
      "annotation on_device, case:2:2", "annotated by on_device, case:2:2", MEET,
      "field of the tuple, case:7:2"}},
    {"a tuple that holds a function is not copied for a call",
     "graph @g(%t: (fn(f32[4])->(f32[4]), f32[4])) {\n %k = tuple_get(%t) {index = 0}\n"
     " %v = tuple_get(%t) {index = 1}\n %y = call_value(%k, %v) on opencl:0\n return %y }\n"
     "graph @f(%v" T ") { %w = relu(%v) return %w }\n"
     "graph @main(%x" T ") {\n %h = func_ref @f()\n %n = neg(%x) on cpu:0\n %t = tuple(%h, %n)\n"
     " %u = call @g(%t)\n %w = add(%u, %n) on cpu:0\n return %w }",
     {NULL},
     {HEAD, "on cpu:0, because of", "placed here, case:9:2", "field of the tuple, case:10:2",
      "on opencl:0, because of", "placed here, case:4:2", MEET,
      "argument and parameter of a call, case:11:2"}},
    {"ends of a copy against annotations",
     "graph @main(%a" T ") {\n %m = on_device(%a) {device = opencl:0, fixed = 1}\n"
     " %n = device_copy(%m) {source = cpu:0} on opencl:0\n %s = relu(%n)\n return %s }",
     {NULL},
     {HEAD, "on opencl:0, because of", "annotation on_device, case:2:2",
      "on_device with its context fixed, case:2:2", "on cpu:0, because of",
      "source of device_copy, case:3:2"}},
    {"the result of a copy against an annotation",
     "graph @main(%a" T ") {\n %n = device_copy(%a) {source = cpu:0} on opencl:0\n"
     " %m = on_device(%n) {device = cpu:0}\n %s = relu(%m)\n return %s }",
     {NULL},
     {HEAD, "on opencl:0, because of", "placed here, case:2:2", "result of device_copy, case:2:2",
      "on cpu:0, because of", "annotation on_device, case:3:2", MEET,
      "annotated by on_device, case:3:2"}},
    {"a context that is fixed against a placed result",
     "graph @main(%a" T ") {\n %s = relu(%a)\n"
     " %m = on_device(%s) {device = cpu:0, fixed = 1}: f32[4] on opencl:0\n return %m }",
     {NULL},
     {HEAD, "on cpu:0, because of", "annotation on_device, case:3:2", "on opencl:0, because of",
      "%m is placed here, case:3:2", MEET, "on_device with its context fixed, case:3:2"}},
    {"a returned annotation against a placed call",
     "graph @f(%v" T ") {\n %w = relu(%v)\n %m = on_device(%w) {device = cpu:0}\n return %m }\n"
     "graph @main(%a" T ") {\n %x = call @f(%a) on opencl:0\n return %x }",
     {NULL},
     {HEAD, "on cpu:0, because of", "annotation on_device, case:3:2",
      "on_device as a function's result, case:3:2", "result of the function, case:1:12",
      "result of a call, case:6:2", "on opencl:0, because of", "placed here, case:6:2"}},
    {"storage and tensor",
     "graph @main(%size: i64[], %align: i64[], %shape: i64[1]) {\n"
     " %sto = alloc_storage(%size, %align) {device = opencl:0}\n"
     " %k = constant() {value = i64[] (0)}\n"
     " %t = alloc_tensor(%sto, %k, %shape) {dtype = f32} on cpu:0\n return %t }",
     {NULL},
     {HEAD, "on opencl:0, because of", "storage allocated here, case:2:2",
      "result of the operation, case:2:2", "on cpu:0, because of", "placed here, case:4:2",
      "result of the operation, case:4:2", MEET, "tensor in this storage, case:4:2"}},
    {"a host operation elsewhere",
     "graph @main(%a" T ") {\n %s = shape_of(%a)\n %m = on_device(%s) {device = opencl:0}\n"
     " return %m }",
     {NULL},
     {HEAD, "on cpu:1, because of", "host operation: reads shapes, not data, case:2:2",
      "result of the operation, case:2:2", "on opencl:0, because of",
      "annotation on_device, case:3:2", MEET, "annotated by on_device, case:3:2"}},
    {"numbers of one kind",
     "graph @main(%a" T " on cpu:0) {\n %m = on_device(%a) {device = cpu:1}\n %s = relu(%m)\n"
     " return %s }",
     {NULL},
     {"virtual id of the same value or operation is demanded twice:", "on cpu:0, because of",
      "%a is placed here, case:1:12", "on cpu:1, because of", "annotation on_device, case:2:2",
      MEET, "annotated by on_device, case:2:2"}},
    {"a pin against an annotation",
     "graph @main(%a" T ") {\n %s = relu(%a) #1\n %m = on_device(%s) {device = opencl:0} #2\n"
     " return %m }\nlocations {\n #1 = \"m.onnx\" node \"act\" op \"Relu\"\n"
     " #2 = \"case\":3:2\n}",
     {"op:Relu=c"},
     {HEAD, "on opencl:0, because of", "annotation on_device, case:3:2",
      "annotated by on_device, case:3:2", "result of the operation, node \"act\"",
      "on cpu:0, because of", "pinned: op:Relu=c (pin 1 of those given), node \"act\""}},
    {"a pin against a pin",
     "graph @main(%a" T ") {\n %s = relu(%a) #1\n return %s }\nlocations {\n"
     " #1 = \"m.onnx\" node \"act\" op \"Relu\"\n}",
     {"op:Relu=c", "act=g"},
     {HEAD, "on cpu:0, because of", "pinned: op:Relu=c (pin 1 of those given), node \"act\"",
      "on opencl:0, because of", "pinned: act=g (pin 2 of those given), node \"act\""}},
    {"parts that meet in no device there is",
     "graph @main(%a" T ") {\n %m = on_device(%a) {device = opencl, fixed = 1}\n"
     " %n = on_device(%m) {device = *:1, fixed = 1}\n %z = exp(%n)\n return %z }",
     {NULL},
     {"the same value or operation is demanded on opencl and on *:1, and no device of the target "
      "is both (it has g (opencl:0), c (cpu:0), h (cpu:1)):",
      "on opencl, because of", "annotation on_device, case:2:2",
      "on_device with its context fixed, case:2:2", "on *:1, because of",
      "annotation on_device, case:3:2", MEET, "annotated by on_device, case:3:2"}},
};
enum { conflict_count = sizeof(conflicts) / sizeof(conflicts[0]) };

// No chain is empty, and no step is said twice in a row.
static void check_chains(const char *what, const char *message) {
    static const char step[] = "\n    ", because[] = "because of";
    for (const char *at = strstr(message, because); at; at = strstr(at + 1, because))
        cr_expect_eq(strncmp(at + strlen(because), step, strlen(step)), 0,
                     "%s: an empty chain in\n%s", what, message);
    for (const char *at = strstr(message, step); at; at = strstr(at + 1, step)) {
        size_t length = strcspn(at + 1, "\n") + 1;
        cr_expect(strncmp(at, at + length, length) != 0 ||
                      (at[2 * length] && at[2 * length] != '\n'),
                  "%s: a step twice in\n%s", what, message);
    }
}

ParameterizedTestParameters(planner, conflicts) {
    static int indices[conflict_count];
    for (int i = 0; i < conflict_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, conflict_count);
}

ParameterizedTest(int *index, planner, conflicts) {
    const conflict *k = &conflicts[*index];
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, k->text);
    berth_target_options target_options = {.pins = k->pins};
    berth_multi_target *target = NULL;
    require(berth_target_parse(arena, target_gch, &target_options, &target));
    berth_plan_options options = {.target = target};
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    cr_assert_not_null(status, "%s: no error", k->what);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect_null(plan);
    const char *message = berth_status_message(status), *at = message;
    for (int i = 0; k->lines[i]; ++i) {
        const char *found = strstr(at, k->lines[i]);
        cr_assert_not_null(found, "%s: \"%s\" is not, or not behind the parts before it, in\n%s",
                           k->what, k->lines[i], message);
        at = found + strlen(k->lines[i]);
    }
    check_chains(k->what, message);
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// What would be a soft difference is never an error: the same demands with contexts free.
Test(planner, differences_are_copies) {
    static const char *const texts[] = {
        "graph @main(%x" T " on cpu:0, %y" T " on opencl:0) { %s = add(%x, %y) return %s }",
        "graph @main(%x" T ", %y" T ") { %m = on_device(%x) {device = cpu:0} "
        "%n = on_device(%y) {device = opencl:0} %t = tuple(%m, %n) return %t }",
        "graph @main(%p: bool[], %a" T ", %b" T ") { %r = if(%p) { %m = on_device(%a) {device = "
        "cpu:0} return %m } else { %n = on_device(%b) {device = opencl:0} return %n } return %r }"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        berth_arena *arena = new_arena();
        berth_module *module = parse_module(arena, texts[i]);
        berth_plan *plan = NULL;
        require(plan_on(module, target_gch, &plan));
        cr_expect_eq(plan->copy_count, 1, "%zu: %u copies", i, plan->copy_count);
        berth_arena_destroy(arena);
    }
}

// Of a chain of 10,000 steps both ends are shown, and how much there is between.
Test(planner, a_long_chain_is_abbreviated) {
    enum { levels = 5000 };
    berth_arena *arena = new_arena();
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "graph @main(%v0" T " on cpu:0) {\n");
    for (int i = 0; i < levels; ++i)
        berth_strbuf_addf(&text, " %%t%d = tuple(%%v%d)\n %%v%d = tuple_get(%%t%d) {index = 0}\n",
                          i, i, i + 1, i);
    berth_strbuf_addf(&text, " %%m = on_device(%%v%d) {device = opencl:0}\n return %%m }", levels);
    berth_plan *plan = NULL;
    berth_status status = plan_on(parse_module(arena, berth_strbuf_text(&text)), target_gch, &plan);
    cr_assert_not_null(status);
    const char *message = berth_status_message(status);
    uint32_t lines = 1;
    for (const char *at = message; *at; ++at) lines += *at == '\n';
    cr_expect_lt(lines, 24, "%u lines", lines);
    cr_expect_not_null(strstr(message,
                              "%v0 is placed here, case:1:12\n    field of the tuple, case:2:2"
                              "\n    projection of the tuple, case:3:2"));
    // The demand, and a field and a projection per level.
    const char *between =
        berth_arena_printf(arena, "\n    ... %d more steps between ...\n", 1 + 2 * levels - 2 * 5);
    cr_expect_not_null(strstr(message, between), "%s", message);
    cr_expect_not_null(strstr(message, "projection of the tuple, case:10001:2\n  on opencl:0"),
                       "%s", message);
    check_chains("a long chain", message);
    berth_status_free(status);
    berth_arena_destroy(arena);
}
