// berth opt --format=json: the plan next to the module, as pure JSON that can be read again.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define PLAN_JSON                                                                                  \
    BERTH_COMMAND " opt examples/planner/annotation.txt --passes plan-devices --target "           \
                  "examples/planner/gpu_cpu.json --format=json"

static const char *member(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

Test(command, opt_json_has_the_plan) {
    FILE *pipe = popen(PLAN_JSON, "r");
    cr_assert_not_null(pipe);
    json_error_t error;
    json_t *json = json_loadf(pipe, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    cr_assert_eq(pclose(pipe), 0);
    json_t *places = json_object_get(json_object_get(json, "plan"), "places"), *place = NULL;
    size_t i = 0, parameters = 0, copies = 0, operations = 0, results = 0;
    json_array_foreach(places, i, place) {
        const char *kind = member(place, "kind");
        parameters += strcmp(kind, "parameter") == 0;
        operations += strcmp(kind, "operation") == 0;
        results += strcmp(kind, "result") == 0;
        copies += strcmp(kind, "copy") == 0;
        cr_expect(*member(place, "reason"), "place %zu has no reason", i);
        cr_expect_str_eq(member(place, "function"), "main");
        if (strcmp(kind, "copy") == 0)
            cr_expect_eq(json_integer_value(json_object_get(place, "bytes")), 16);
        // add is annotated; sub follows nobody.
        if (strcmp(member(place, "operation"), "add") == 0)
            cr_expect(strstr(member(place, "device"), "cpu:0") &&
                      strstr(member(place, "reason"), "annotation.txt:5:3"));
        if (strcmp(member(place, "operation"), "sub") == 0)
            cr_expect(strstr(member(place, "device"), "opencl:0"));
    }
    cr_expect_eq(parameters, 3);
    cr_expect_eq(operations, 3);
    cr_expect_eq(copies, 3);
    cr_expect_eq(results, 1);
    json_decref(json);
}

Test(command, opt_json_with_a_plan_is_read_again) {
    cr_expect_eq(system("T=$(mktemp -d) && " PLAN_JSON " >$T/a.json && " BERTH_COMMAND
                        " opt $T/a.json --format=json >$T/b.json && " BERTH_COMMAND
                        " opt $T/b.json --format=json | cmp - $T/b.json; R=$?; rm -r $T; exit $R"),
                 0);
}

Test(command, opt_places_needs_the_plan) {
    cr_expect_neq(
        system(BERTH_COMMAND " opt examples/planner/annotation.txt --places >/dev/null 2>&1"), 0);
}

// The target's names for its devices, in a module and where the planner has read them.
Test(command, modules_use_device_names_of_the_target) {
    cr_expect_eq(system("T=$(mktemp -d) && printf 'module \"m\"\\ngraph @main(%%a: f32[4]) {\\n"
                        "%%b = neg(%%a) on big\\nreturn %%b\\n}\\n' >$T/m.txt && "
                        "printf '{\"kind\":\"multi\",\"host\":\"small\",\"devices\":[{\"name\":"
                        "\"big\",\"target\":{\"kind\":\"opencl\"}},{\"name\":\"small\",\"target\":{"
                        "\"kind\":\"cpu\"}}]}' >$T/t.json && " BERTH_COMMAND
                        " opt $T/m.txt --passes plan-devices --places --target $T/t.json | "
                        "grep -q '^  neg  *%b  *opencl:0  *placed here'; R=$?; rm -r $T; exit $R"),
                 0);
}

// Of 8,000 values, each made by itself: minutes where every operand asks again what all of them bind.
Test(command, opt_refuses_a_wide_concatenation_at_once, .timeout = 200) {
    cr_expect_eq(
        system(
            "T=$(mktemp -d) && awk 'BEGIN { print \"module \\\"m\\\"\\ngraph @main(%a: f32[4]) {\";"
            " for (i = 0; i < 8000; ++i) { print \"  %v\" i \" = neg(%a)\"; all = all (i ? \", \" "
            ": "
            "\"\") \"%v\" i } print \"  %t = concat(\" all \") {axis = 0}\\n  return %t\\n}\" }' "
            ">$T/wide.txt && { timeout 120 " BERTH_COMMAND
            " opt $T/wide.txt --passes plan-devices --target cpu,cpu >$T/out 2>$T/err; "
            "test $? = 1; } && grep -q 'wide.txt:8003:3: it binds 8001 buffers' $T/err; R=$?; "
            "rm -r $T; exit $R"),
        0);
}
