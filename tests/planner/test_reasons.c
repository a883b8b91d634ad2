// Why everything is where it is, in words: the neighbour it goes with, and the demand behind that.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/planner/support.h"

#define T ": f32[4]"

static const char *describe(const berth_module *module, const berth_plan *plan) {
    static const char *const kinds[] = {"parameter", "operation", "copy", "result"};
    berth_strbuf out = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < plan->place_count; ++i) {
        const berth_plan_place *p = &plan->places[i];
        berth_strbuf_addf(
            &out, "@%s %s %s: %s\n",
            berth_module_str(module, berth_module_function(module, p->function)->name),
            kinds[p->kind], p->value, p->reason);
    }
    return berth_strbuf_text(&out);
}

static void expect_reasons(const char *text, const char *const *pins, const char *target_text,
                           const char *expected) {
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(arena, text);
    berth_target_options target_options = {.pins = pins};
    berth_multi_target *target = NULL;
    require(berth_target_parse(arena, target_text, &target_options, &target));
    berth_plan_options options = {.target = target};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    cr_expect_str_eq(describe(module, plan), expected, "%sexpected\n%s", describe(module, plan),
                     expected);
    berth_arena_destroy(arena);
}

Test(planner, reasons_of_annotations) {
    expect_reasons("graph @main(%a" T ", %b" T ", %c" T ", %d" T ") {\n %l = add(%a, %b)\n"
                   " %m = on_device(%l) {device = cpu:0}\n %r = mul(%c, %d)\n"
                   " %s = sub(%m, %r)\n return %s }",
                   NULL, target_gch,
                   "@main parameter a: with %l (operand of add): annotation on_device, case:3:2\n"
                   "@main parameter b: with %l (operand of add): annotation on_device, case:3:2\n"
                   "@main parameter c: default device\n"
                   "@main parameter d: default device\n"
                   "@main operation l: with %m (annotated by on_device): annotation on_device, "
                   "case:3:2\n"
                   "@main operation r: default device\n"
                   "@main copy l: needed there by sub, case:5:2\n"
                   "@main operation s: default device\n"
                   "@main result s: default device\n");
}

Test(planner, reasons_of_pins_and_functions) {
    static const char *const pins[] = {"op:Relu=c", NULL};
    expect_reasons(
        "graph @f(%v" T ") { %w = neg(%v) #1 return %w }\n"
        "graph @main(%a" T " on cpu:1) {\n %x = call @f(%a) #2\n %y = relu(%x) #3\n"
        " %n = shape_of(%y) #4\n return %y, %n }\nlocations {\n"
        " #1 = \"m\" node \"n1\" op \"Neg\"\n #2 = \"m\" node \"n2\" op \"Call\"\n"
        " #3 = \"m\" node \"n3\" op \"Relu\"\n #4 = \"m\" node \"n4\" op \"Shape\"\n}",
        pins, target_gch,
        "@f parameter v: with %a (argument and parameter of a call): %a is placed here\n"
        "@f operation w: with %v (operand of neg): %a is placed here\n"
        "@f result w: with %w (result of the function): %a is placed here\n"
        "@main parameter a: %a is placed here\n"
        "@main operation x: with result 0 of @f (result of a call): %a is placed here\n"
        "@main copy x: needed there by relu, node \"n3\" (Relu) in m\n"
        "@main operation y: pinned: op:Relu=c (pin 1 of those given)\n"
        "@main operation n: host operation: reads shapes, not data\n"
        "@main result y: with %y (result of the function): pinned: op:Relu=c (pin 1 of "
        "those given), node \"n3\" (Relu) in m\n"
        "@main result n: with %n (result of the function): host operation: reads shapes, "
        "not data, node \"n4\" (Shape) in m\n");
}

Test(planner, reasons_of_copies) {
    expect_reasons(
        "graph @main(%a" T " on opencl:0, %b" T " on vta:0, %k" T ") {\n"
        " %s = add(%b, %a)\n %c = constant() {value = f32[4] (1, 2, 3, 4)}\n"
        " %t = mul(%k, %c)\n %u = add(%a, %c)\n return %s, %t, %u }",
        NULL,
        "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"opencl\"}}, "
        "{\"target\": {\"kind\": \"vta\"}}, {\"target\": {\"kind\": \"cpu\"}}]}",
        "@main parameter a: %a is placed here, case:1:12\n"
        "@main parameter b: %b is placed here, case:1:12\n"
        "@main parameter k: default device\n"
        "@main copy a: on the way to vta:0\n"
        "@main copy a: needed there by add, case:2:2\n"
        "@main operation s: with %b (operand of add): %b is placed here, case:1:12\n"
        "@main operation c: constant, where it is used\n"
        "@main operation t: default device\n"
        "@main operation u: with %a (operand of add): %a is placed here, case:1:12\n"
        "@main result s: with %s (result of the function): %b is placed here, case:1:12\n"
        "@main result t: default device\n"
        "@main result u: with %u (result of the function): %a is placed here, "
        "case:1:12\n");
}

// Of several demands that say the same, an operation names its own, and its neighbours the nearest.
Test(planner, reasons_are_the_nearest) {
    expect_reasons("graph @main(%a" T ") {\n %l = neg(%a)\n %m = on_device(%l) {device = cpu:0}\n"
                   " %s = exp(%m)\n %n = on_device(%s) {device = cpu:0}\n"
                   " %t = add(%n, %m)\n %u = on_device(%t) {device = cpu:0}\n return %u }",
                   NULL, target_gch,
                   "@main parameter a: with %l (operand of neg): annotation on_device, case:3:2\n"
                   "@main operation l: with %m (annotated by on_device): annotation on_device, "
                   "case:3:2\n"
                   "@main operation s: with %n (annotated by on_device): annotation on_device, "
                   "case:5:2\n"
                   "@main operation t: with %u (annotated by on_device): annotation on_device, "
                   "case:7:2\n"
                   "@main result t: with %u (result of the function): annotation on_device, "
                   "case:7:2\n");
}

// Values without a name are called by their number in the text, copies as what they copy.
Test(planner, reasons_of_values_without_names) {
    expect_reasons("graph @main(%0" T ", %1" T " on cpu:0) {\n %2 = relu(%1)\n %x = neg(%0)\n"
                   " %3 = sub(%x, %2) on opencl:0\n return %3 }",
                   NULL, target_gch,
                   "@main parameter 0: with %x (operand of neg): placed here, case:4:2\n"
                   "@main parameter 1: %1 is placed here, case:1:12\n"
                   "@main operation 2: with %1 (operand of relu): %1 is placed here, case:1:12\n"
                   "@main operation x: with %3 (operand of sub): placed here, case:4:2\n"
                   "@main copy 2: needed there by sub, case:4:2\n"
                   "@main operation 3: placed here\n"
                   "@main result 3: with %3 (result of the function): placed here, case:4:2\n");
}
