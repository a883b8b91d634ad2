// Names that a target gives to its devices, in the text form and in JSON: read as the virtual
// devices that they mean. Expected: what the target itself says of the device of that name.
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/text.h"
#include "target/target.h"
#include "tests/check.h"

static berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

// Two GPUs of two makes; names that begin with a kind, that are one, and that are an element type.
static const char *const several =
    "{\"kind\": \"multi\", \"host\": \"cpu\", \"devices\": ["
    "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
    "{\"name\": \"g.2\", \"target\": {\"kind\": \"opencl\", \"compute_units\": 3}},"
    "{\"name\": \"opencl-slow\", \"target\": {\"kind\": \"opencl\", \"compute_units\": 1}},"
    "{\"name\": \"f32\", \"target\": {\"kind\": \"cpu\"}},"
    "{\"name\": \"cpu\", \"target\": {\"kind\": \"cpu\"}}]}";

static berth_multi_target *make_target(berth_arena *arena) {
    berth_target_options options = {0};
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, several, &options, &target));
    return target;
}

static berth_status read_text(berth_arena *arena, const berth_multi_target *target,
                              const char *device, berth_module **out) {
    berth_dialect_registry registry = {.target = target};
    const char *text =
        berth_arena_printf(arena,
                           "module \"m\"\ngraph @main(%%x: f32[2] on %s, %%y: f32[2]) {\n"
                           "  %%m = on_device(%%y) {to = f32, device = %s}: f32[2]\n"
                           "  %%z = neg(%%m) on %s: f32[2] on %s\n  return %%z\n}\n",
                           device, device, device, device);
    return berth_module_parse_with(arena, text, strlen(text), "t", &registry, out);
}

// All four places are on this device.
static void expect_device(const berth_module *module, const char *expected) {
    const berth_graph *graph = berth_graph_get(module, 0);
    const berth_attr *named = berth_attrs_find(module, &graph->ops.data[0].attrs, "device");
    berth_device_id ids[] = {graph->values.data[0].device, named->device, graph->ops.data[1].device,
                             graph->values.data[graph->ops.data[1].outputs[0]].device};
    cr_assert_eq(named->kind, BERTH_ATTR_DEVICE);
    for (int i = 0; i < 4; ++i)
        cr_expect_str_eq(berth_virtual_device_print(module->devices, ids[i]), expected);
    cr_expect_eq(berth_attrs_find(module, &graph->ops.data[0].attrs, "to")->kind, BERTH_ATTR_DTYPE);
}

static const char *device_of(berth_arena *arena, const berth_multi_target *target, const char *name,
                             const char *scope) {
    berth_virtual_device device =
        berth_multi_target_virtual_device(target, berth_multi_target_device(target, name));
    device.memory_scope = scope;
    return berth_virtual_device_name(arena, device);
}

Test(device_names, mean_the_targets_devices) {
    berth_arena *arena = new_arena();
    const berth_multi_target *target = make_target(arena);
    berth_module *module = NULL;
    static const char *const names[] = {"g", "g.2", "opencl-slow"};
    for (int i = 0; i < 3; ++i) {
        assert_ok(read_text(arena, target, names[i], &module));
        expect_device(module, device_of(arena, target, names[i], NULL));
        const char *with_scope = berth_arena_printf(arena, "%s@s1", names[i]);
        assert_ok(read_text(arena, target, with_scope, &module));
        expect_device(module, device_of(arena, target, names[i], "s1"));
    }
    berth_arena_destroy(arena);
}

// What names no device means the same with and without a target: parts that are free stay free.
Test(device_names, kinds_stay_kinds) {
    berth_arena *arena = new_arena();
    berth_module *module = NULL;
    static const char *const names[] = {"cpu", "opencl", "opencl:1", "*", "*@s1", "cpu:1"};
    for (int i = 0; i < 6; ++i) {
        assert_ok(read_text(arena, make_target(arena), names[i], &module));
        expect_device(module, names[i]);
    }
    berth_arena_destroy(arena);
}

Test(device_names, unknown_names_are_refused) {
    berth_arena *arena = new_arena();
    const berth_multi_target *target = make_target(arena);
    berth_module *module = NULL;
    assert_fails(read_text(arena, target, "h", &module), BERTH_INVALID_ARGUMENT,
                 "t:2:27: 'h' is not a virtual device");
    assert_fails(read_text(arena, target, "g2", &module), BERTH_INVALID_ARGUMENT,
                 "it a device of the target, which has g, g.2, opencl-slow, f32, cpu");
    assert_fails(read_text(arena, NULL, "g", &module), BERTH_INVALID_ARGUMENT, "target is given");
    assert_fails(read_text(arena, target, "g#00000000000000000000000000000000", &module),
                 BERTH_INVALID_ARGUMENT, "the device called g has another target");
    berth_arena_destroy(arena);
}

Test(device_names, in_json) {
    berth_arena *arena = new_arena();
    const berth_multi_target *target = make_target(arena);
    berth_dialect_registry registry = {.target = target};
    berth_module *module = NULL;
    const char *json = NULL;
    assert_ok(read_text(arena, target, "vta:7@s1", &module));
    assert_ok(berth_module_to_json_text(arena, module, 0, &json));
    berth_strbuf named = berth_strbuf_make(arena);
    for (const char *at = json, *next; *at; at = next + strlen("vta:7@s1")) {
        next = strstr(at, "vta:7@s1");
        if (!next) {
            berth_strbuf_add(&named, at);
            break;
        }
        berth_strbuf_addf(&named, "%.*sg.2@s1", (int)(next - at), at);
    }
    const char *text = berth_strbuf_text(&named);
    assert_ok(berth_module_from_json_text(arena, text, strlen(text), "t", &registry, &module));
    expect_device(module, device_of(arena, target, "g.2", "s1"));
    assert_fails(berth_module_from_json_text(arena, text, strlen(text), "t", NULL, &module),
                 BERTH_INVALID_ARGUMENT, "'g.2@s1' is not a virtual device");
    berth_arena_destroy(arena);
}
