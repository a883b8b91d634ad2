// Sources that share a compiler: which do, and that nothing else changes by it.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/toolchain/join.h"
#include "tests/schedule/toolchain_case.h"

#define PREAMBLE "static inline int twice(int x) { return 2 * x; }\n"

// int f<index>(void), with a comment of `filler` bytes.
static berth_toolchain_unit unit_of(toolchain_case *c, uint32_t index, size_t filler) {
    char *comment = berth_arena_new_array(c->arena, char, filler + 1);
    memset(comment, '-', filler);
    return (berth_toolchain_unit){
        .label = berth_arena_printf(c->arena, "u%u", index),
        .source = berth_arena_printf(
            c->arena, "int f%u(void);\nint f%u(void) { return twice(%u); }\n/*%s*/\n", index, index,
            index, comment),
        .is_part = true};
}

static const char *complete(const char *parts, berth_arena *arena) {
    return berth_arena_printf(arena, PREAMBLE "%s", parts);
}

static uint32_t count_of(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

Test(join, small_parts_share_one_text) {
    toolchain_case c = toolchain_case_open();
    berth_toolchain_unit units[3];
    for (uint32_t i = 0; i < 3; ++i) units[i] = unit_of(&c, i, 100);
    berth_joined joined = berth_toolchain__join(units, 3, c.arena);
    cr_assert_eq(joined.count, 1);
    cr_expect_eq(joined.members[0], 3);
    cr_expect(strstr(joined.units[0].source, "int f0(void) { return twice(0); }") &&
              strstr(joined.units[0].source, "int f2(void) { return twice(2); }"));
    cr_expect_str_eq(joined.units[0].label, "u0 to u2");
    toolchain_case_close(&c);
}

Test(join, a_program_is_split_for_several_compilers) {
    toolchain_case c = toolchain_case_open();
    enum { count = 40 };
    berth_toolchain_unit units[count];
    for (uint32_t i = 0; i < count; ++i) units[i] = unit_of(&c, i, 4 << 10);
    berth_joined joined = berth_toolchain__join(units, count, c.arena);
    cr_expect_geq(joined.count, BERTH_JOINED_PARTS);
    uint32_t members = 0;
    for (uint32_t i = 0; i < joined.count; ++i) {
        cr_expect_leq(strlen(joined.units[i].source), (size_t)BERTH_JOINED_MAX_BYTES);
        members += joined.members[i];
    }
    cr_expect_eq(members, count);
    for (uint32_t i = 0; i < count; ++i)
        cr_expect(strstr(joined.units[joined.of[i]].source,
                         berth_arena_printf(c.arena, "int f%u(void);", i)));
    toolchain_case_close(&c);
}

Test(join, what_stays_alone) {
    toolchain_case c = toolchain_case_open();
    static const char code[] = "object";
    berth_object_code object = {code, sizeof(code)};
    berth_toolchain_unit units[6];
    for (uint32_t i = 0; i < 6; ++i) units[i] = unit_of(&c, i, 100);
    units[1].is_part = false;
    units[3].objects = &object;
    units[3].object_count = 1;
    units[5] = unit_of(&c, 5, BERTH_JOINED_MAX_BYTES);
    berth_joined joined = berth_toolchain__join(units, 6, c.arena);
    cr_assert_eq(joined.count, 6);
    for (uint32_t i = 0; i < 6; ++i) cr_expect_str_eq(joined.units[i].source, units[i].source);
    toolchain_case_close(&c);
}

Test(join, equal_sources_are_one_unit) {
    toolchain_case c = toolchain_case_open();
    berth_toolchain_unit units[3] = {unit_of(&c, 0, 10), unit_of(&c, 1, 10), unit_of(&c, 0, 10)};
    berth_joined joined = berth_toolchain__join(units, 3, c.arena);
    cr_assert_eq(joined.count, 1);
    cr_expect_eq(joined.members[0], 3);
    cr_expect_eq(joined.of[2], 0);
    cr_expect_eq(count_of(joined.units[0].source, "int f0(void);"), 1);
    toolchain_case_close(&c);
}

typedef struct progress {
    uint32_t last, total;
} progress;

static void note_progress(void *user, uint32_t done, uint32_t total) {
    progress *seen = user;
    cr_expect_gt(done, seen->last);
    *seen = (progress){done, total};
}

// Whatever the number of compilers and whatever a cache holds; progress counts what was given.
Test(join, the_image_has_the_same_bytes) {
    toolchain_case c = toolchain_case_open();
    c.options.cache_folder = toolchain_case_path(&c, "cache", false);
    c.options.complete = complete;
    enum { count = 24 };
    berth_toolchain_image images[3];
    for (uint32_t round = 0; round < 3; ++round) {
        berth_toolchain_unit units[count];
        for (uint32_t i = 0; i < count; ++i) units[i] = unit_of(&c, i, 4 << 10);
        progress seen = {0};
        c.options.progress = note_progress;
        c.options.progress_user = &seen;
        c.options.jobs = round == 0 ? 1 : 3;
        if (round == 2) c.options.cache_folder = NULL;
        berth_status status =
            berth_toolchain_compile(&c.options, c.arena, units, count, &images[round]);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect(seen.last == count && seen.total == count);
        for (uint32_t i = 0; i < count; ++i) cr_expect_eq(units[i].cached, round == 1);
        cr_assert_eq(images[round].size_bytes, images[0].size_bytes);
        cr_expect_eq(memcmp(images[round].data, images[0].data, (size_t)images[0].size_bytes), 0);
    }
    toolchain_case_close(&c);
}

Test(join, a_rejected_source_is_named) {
    toolchain_case c = toolchain_case_open();
    berth_toolchain_unit units[2] = {unit_of(&c, 0, 10), unit_of(&c, 1, 10)};
    c.options.complete = complete;
    units[1].source = "int f1(void);\nint f1(void) { return no_such_name; }\n";
    berth_toolchain_image image;
    berth_status status = berth_toolchain_compile(&c.options, c.arena, units, 2, &image);
    cr_assert(status);
    cr_expect_eq(berth_status_code(status), BERTH_INTERNAL);
    cr_expect(strstr(berth_status_message(status), "u0 to u1") &&
                  strstr(berth_status_message(status), "no_such_name"),
              "%s", berth_status_message(status));
    berth_status_free(status);
    toolchain_case_close(&c);
}
