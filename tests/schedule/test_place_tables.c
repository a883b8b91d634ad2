// Elements of one and two bytes at places that data gives: the places go into a table before the copies, and the results
// are those of the plain loops.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/schedule/support.h"

typedef struct gather {
    const char *dtype;
    int columns;
    const char *target;
    const char *place;
    bool table;
} gather;

#define OF_ELEMENT "max(0, min(index(%p[%i, %j]), 63))"

static const gather gathers[] = {
    {"u8", 100, "cpu -vector_bits=512", OF_ELEMENT, true},
    {"i8", 700, "cpu -vector_bits=512", OF_ELEMENT, true},    // in strips
    {"u8", 9001, "cpu -vector_bits=256", OF_ELEMENT, true},   // in chunks, the last a part of one
    {"f32", 100, "cpu -vector_bits=512", OF_ELEMENT, false},  // processors gather these themselves
    {"f32", 100, "cpu -vector_bits=256", OF_ELEMENT, true},
    {"u8", 100, "cpu -vector_bits=512", "max(0, min(index(%p[%i, 3]), 63))", false},  // one place
};

Test(place_tables, small_elements_are_copied_from_a_table_of_places) {
    for (size_t i = 0; i < sizeof(gathers) / sizeof(gathers[0]); ++i) {
        const gather *g = &gathers[i];
        char text[512];
        snprintf(text, sizeof(text),
                 "module \"m\"\n"
                 "tensor @f(%%x: %s[3,64] in, %%p: i8[3,%d] in, %%y: %s[3,%d] out) {\n"
                 "  parallel %%i in 3 {\n    for %%j in %d {\n"
                 "      %%y[%%i, %%j] = %%x[%%i, %s]\n    }\n  }\n}\n",
                 g->dtype, g->columns, g->dtype, g->columns, g->columns, g->place);
        bench_case c = support_case_parse(text);
        support_fill(&c, 5);
        assert_ok(support_interpret(&c));
        const void *plain = c.buffers[2];
        const berth_target *target = support_target(c.arena, g->target);
        assert_ok(berth_schedule_apply(c.fn, target));
        berth_strbuf printed = berth_strbuf_make(c.arena);
        berth_tfn_print(c.fn, &printed);
        cr_expect_eq(strstr(printed.data, "private %places") != NULL, g->table, "%s", printed.data);
        for (int compiled = 0; compiled < 2; ++compiled) {
            assert_ok(compiled ? support_run_compiled(&c, target, true) : support_interpret(&c));
            cr_expect_arr_eq(c.buffers[2], plain, support_buffer_bytes(&c, 2), "%zu %d", i,
                             compiled);
        }
        support_case_destroy(&c);
    }
}
