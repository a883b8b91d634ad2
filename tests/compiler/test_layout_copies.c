// Layouts at the border between devices of processor cores: what one makes in blocks of channels the
// other reads so, with no conversion in between.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(layout_copies, .init = setup, .fini = teardown);

// 1 x 1 convolutions of 32 channels one after the other, each on the device named for it.
static uint32_t count_steps(const char *target_text, const char *const *devices, int count) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: f32[1,32,20,20]) {\n"
                            "%w = constant() {value = f32[32,32,1,1] (0.5");
    for (int i = 1; i < 32 * 32; ++i) berth_strbuf_add(&text, ", 0.5");
    berth_strbuf_add(&text, ")}\n");
    for (int i = 0; i < count; ++i)
        berth_strbuf_addf(&text, "%%v%d = conv(%%v%d, %%w, _) on %s\n", i + 1, i, devices[i]);
    berth_strbuf_addf(&text, "return %%v%d }", count);
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, berth_strbuf_text(&text), text.length, "text", &module));
    assert_ok(berth_compile(module, &(berth_compile_options){.target = target, .plan_only = true},
                            &result));
    return result.program->step_count;
}

#define WIDE "cpu -cores=1 -vector_bits=512"
#define NARROW "cpu -cores=1 -vector_bits=256"

Test(layout_copies, blocks_go_from_device_to_device) {
    static const char *const one[] = {"cpu:0", "cpu:0", "cpu:0"};
    static const char *const two[] = {"cpu:0", "cpu:1", "cpu:0"};
    uint32_t least = count_steps(WIDE "," WIDE, one, 3);
    cr_assert_geq(least, 3);
    cr_expect_eq(count_steps(WIDE "," WIDE, two, 3), least);
    cr_expect_eq(count_steps(NARROW "," NARROW, two, 3), least);
}

// Blocks of 16 become blocks of 8 for the narrow device, once; those of 8 every device reads.
Test(layout_copies, blocks_of_other_widths_are_converted_once) {
    static const char *const one[] = {"cpu:0", "cpu:0", "cpu:0"};
    static const char *const two[] = {"cpu:0", "cpu:1", "cpu:0"};
    uint32_t least = count_steps(WIDE "," NARROW, one, 3);
    cr_expect_eq(count_steps(WIDE "," NARROW, two, 3), least + 1);
    cr_expect_eq(count_steps(NARROW "," WIDE, two, 3), least + 1);
}
