// Templates of source text: which numbers become arguments, and that the text stays what was printed.
#include "compiler/codegen/template.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { most_numbers = 24 };

static const char *arguments_of(uint32_t count, berth_arena *arena) {
    return berth_arena_printf(arena, "<%u>", count);
}

static const berth_codegen language = {.number_arguments = arguments_of,
                                       .number_lines = arguments_of};

// "x \x01A\x02 + \x01B\x02 + ..." with a name, in `arena`.
static berth_template make(const int64_t *numbers, uint32_t count, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "void " BERTH_TEMPLATE_PREFIX "_0() {" BERTH_TEMPLATE_LINES " x");
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&text, " +" BERTH_TEMPLATE_NUMBER_BEGIN "%lld" BERTH_TEMPLATE_NUMBER_END,
                          (long long)numbers[i]);
    berth_template made;
    berth_template_read(berth_strbuf_text(&text), arena, &made);
    cr_assert_eq(made.number_count, count);
    return made;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

// The text with values in the arguments' places.
static const char *filled(const char *text, const int64_t *values, berth_arena *arena) {
    berth_strbuf out = berth_strbuf_make(arena);
    for (; *text; ++text) {
        if (*text != 'n') {
            berth_strbuf_add_n(&out, text, 1);
            continue;
        }
        unsigned index = 0;
        int length = 0;
        cr_assert_eq(sscanf(text + 1, "%u%n", &index, &length), 1);
        berth_strbuf_addf(&out, "%lld", (long long)values[index]);
        text += length;
    }
    return berth_strbuf_text(&out);
}

static berth_status check_random(void *user) {
    berth_arena *arena = user;
    uint32_t seed = 7;
    for (int round = 0; round < 300; ++round) {
        int64_t numbers[3][most_numbers];
        uint32_t count = next_random(&seed) % most_numbers;
        for (int t = 0; t < 3; ++t)
            for (uint32_t i = 0; i < count; ++i)
                numbers[t][i] = (int64_t)(next_random(&seed) % 3) - 1;
        berth_template made[3];
        for (int t = 0; t < 3; ++t) made[t] = make(numbers[t], count, arena);
        berth_template_arguments two = berth_template_join(&made[0], NULL, &made[1], arena);
        berth_template_arguments all = berth_template_join(&made[1], &two, &made[2], arena);
        cr_assert_geq(all.count, two.count);
        for (int t = 0; t < 3; ++t) {
            int64_t values[most_numbers + 1];
            cr_assert(berth_template_fits(&made[2], &all, &made[t], values));
            const char *text = berth_template_text(&made[2], &all, &language, "k", arena);
            berth_template_arguments none = berth_template_join(&made[t], NULL, &made[t], arena);
            cr_assert_eq(none.count, 0);
            const char *exact = berth_template_text(&made[t], &none, &language, "k", arena);
            // But for the count of arguments.
            cr_assert_str_eq(strchr(filled(text, values, arena), '>'), strchr(exact, '>'));
        }
    }
    return BERTH_OK;
}

Test(template, arguments_put_in_give_the_text_that_was_printed) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, check_random, arena));
    berth_arena_destroy(arena);
}

static berth_status check_sharing(void *user) {
    berth_arena *arena = user;
    int64_t values[8];
    berth_template a = make((int64_t[]){5, 5, 5, 7}, 4, arena);
    berth_template b = make((int64_t[]){6, 6, 8, 7}, 4, arena);
    berth_template_arguments one = berth_template_join(&a, NULL, &b, arena);
    cr_assert_eq(one.count, 2);  // of the fives, two always were equal
    cr_assert_str_eq(berth_template_text(&a, &one, &language, "k9", arena),
                     "void k9_0() {<2> x +n0 +n0 +n1 +7");
    berth_template fits = make((int64_t[]){-3, -3, 0, 7}, 4, arena);
    cr_assert(berth_template_fits(&a, &one, &fits, values));
    cr_assert(values[0] == -3 && values[1] == 0);
    berth_template apart = make((int64_t[]){1, 2, 0, 7}, 4, arena);
    cr_assert_not(berth_template_fits(&a, &one, &apart, values));
    berth_template fixed = make((int64_t[]){1, 1, 0, 9}, 4, arena);
    cr_assert_not(berth_template_fits(&a, &one, &fixed, values));
    berth_template form = make((int64_t[]){5, 5, 5}, 3, arena);
    cr_assert_not(berth_template_fits(&a, &one, &form, values));
    cr_assert_eq(berth_template_join(&b, &one, &apart, arena).count, 3);
    return BERTH_OK;
}

static berth_status check_hints(void *user) {
    berth_arena *arena = user;
    int64_t values[4];
    berth_template a, b, c, d;
    berth_template_read("unroll " BERTH_TEMPLATE_HINT_BEGIN "21" BERTH_TEMPLATE_NUMBER_END, arena,
                        &a);
    berth_template_read("unroll " BERTH_TEMPLATE_HINT_BEGIN "22" BERTH_TEMPLATE_NUMBER_END, arena,
                        &b);
    berth_template_read("unroll " BERTH_TEMPLATE_NUMBER_BEGIN "22" BERTH_TEMPLATE_NUMBER_END, arena,
                        &c);
    berth_template_arguments none = berth_template_join(&a, NULL, &a, arena);
    berth_template_arguments one = berth_template_join(&a, NULL, &b, arena);
    cr_assert_str_eq(berth_template_text(&a, &none, &language, "k", arena), "unroll 21");
    cr_assert_str_eq(berth_template_text(&b, &one, &language, "k", arena), "unroll 4");
    cr_assert_eq(one.count, 0);
    // Nobody passes it, so that any fits.
    berth_template_read("unroll " BERTH_TEMPLATE_HINT_BEGIN "7" BERTH_TEMPLATE_NUMBER_END, arena,
                        &d);
    cr_assert(berth_template_fits(&b, &one, &d, values));
    cr_assert_not(berth_template_fits(&a, &none, &d, values));
    cr_assert_not(berth_template_fits(&b, &one, &c, values));  // another form
    return BERTH_OK;
}

Test(template, hints_are_never_arguments) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, check_hints, arena));
    berth_arena_destroy(arena);
}

Test(template, numbers_that_were_always_equal_share_an_argument) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, check_sharing, arena));
    berth_arena_destroy(arena);
}
