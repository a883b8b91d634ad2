// Which functions have tiles that are the same for all sizes.
#include <criterion/criterion.h>
#include <stdio.h>

#include "compiler/schedule/seen_extents.h"
#include "tests/schedule/support.h"

typedef struct seen_case {
    berth_seen_extents *seen;
    bench_case c;  // whose arena has it
    // Of the function that was noted last: loops that do not keep their extent, and extents of the first loop.
    int varying;
    uint32_t size_count;
    int64_t first[3];
} seen_case;

static berth_status make(void *user) {
    seen_case *s = user;
    s->seen = berth_seen_extents_create(s->c.arena);
    return BERTH_OK;
}

static seen_case start(void) {
    seen_case s = {.c = support_case_create()};
    cr_assert_null(berth_arena_try(s.c.arena, make, &s));
    return s;
}

// A batch of n images of h rows and w columns; of one image the loop over them is left out, as lowering does.
static berth_seen_change note_images(seen_case *s, const char *name, int n, int h, int w) {
    char text[600], batch[40] = "";
    berth_seen_change change = BERTH_SEEN_INNER;
    if (n > 1) snprintf(batch, sizeof(batch), "parallel %%n in %d {", n);
    snprintf(
        text, sizeof(text),
        "module \"m\"\ntensor @f(%%x: f32[%d, %d, %d, 16] in, %%y: f32[%d, %d, %d, 16] out) {\n"
        "%s parallel %%i in %d { for %%j in %d { for %%c in 16 {\n"
        "  %%y[%s, %%i, %%j, %%c] = %%x[%s, %%i, %%j, %%c]\n} } } %s\n}\n",
        n, h, w, n, h, w, batch, h, w, n > 1 ? "%n" : "0", n > 1 ? "%n" : "0", n > 1 ? "}" : "");
    bench_case f = support_case_parse(text);
    cr_assert_null(berth_seen_extents_note(s->seen, 0, name, f.fn, &change));
    f.fn->any_size = true;
    s->varying = 0;
    for (berth_stmt id = 1; id < f.fn->stmts.count; ++id)
        if (f.fn->stmts.data[id].kind == BERTH_STMT_FOR)
            s->varying += berth_tfn_loop_varies(f.fn, f.fn->stmts.data[id].var);
    const int64_t *extents = f.fn->vars.data[f.fn->stmts.data[f.fn->body].var].extents;
    s->size_count = f.fn->size_count;
    for (uint32_t i = 0; i < s->size_count && i < 3; ++i) s->first[i] = extents[i];
    support_case_destroy(&f);
    return change;
}

// Rows of a product, of which only those change: they are the tile's own.
static berth_seen_change note_rows(seen_case *s, int rows) {
    char text[400];
    berth_seen_change change = BERTH_SEEN_INNER;
    snprintf(text, sizeof(text),
             "module \"m\"\ntensor @f(%%x: f32[%d, 8] in, %%y: f32[%d, 8] out) {\n"
             "parallel %%i in %d { for %%j in 8 { %%y[%%i, %%j] = %%x[%%i, %%j] } }\n}\n",
             rows, rows, rows);
    bench_case f = support_case_parse(text);
    cr_assert_null(berth_seen_extents_note(s->seen, 0, "rows", f.fn, &change));
    support_case_destroy(&f);
    return change;
}

Test(seen_extents, images_of_a_batch) {
    seen_case s = start();
    cr_expect_eq(note_images(&s, "a", 2, 14, 14), BERTH_SEEN_NOTHING);
    cr_expect_eq(note_images(&s, "a", 3, 14, 14), BERTH_SEEN_OUTERMOST);
    cr_expect_eq(note_images(&s, "a", 2, 14, 14), BERTH_SEEN_OUTERMOST, "also that seen first");
    cr_expect_eq(note_images(&s, "a", 1, 14, 14), BERTH_SEEN_NOTHING, "it has other loops");
    cr_expect_eq(note_images(&s, "b", 3, 7, 7), BERTH_SEEN_NOTHING, "another function");
    support_case_destroy(&s.c);
}

Test(seen_extents, what_changes_inside) {
    seen_case s = start();
    cr_expect_eq(note_images(&s, "a", 2, 14, 14), BERTH_SEEN_NOTHING);
    cr_expect_eq(note_images(&s, "a", 2, 14, 13), BERTH_SEEN_INNER);
    cr_expect_eq(s.varying, 1, "its columns");
    cr_expect_eq(note_images(&s, "a", 3, 14, 14), BERTH_SEEN_INNER, "for all sizes");
    cr_expect_eq(s.varying, 2, "and its images");
    cr_expect_eq(note_rows(&s, 4), BERTH_SEEN_NOTHING);
    cr_expect_eq(note_rows(&s, 5), BERTH_SEEN_INNER, "nothing but rows");
    support_case_destroy(&s.c);
}

// Schedules see the sizes that were noted before, each once, whichever they are for and whatever comes later.
Test(seen_extents, sizes_are_known_once_it_is_closed) {
    seen_case s = start();
    (void)note_images(&s, "a", 2, 14, 14);
    (void)note_images(&s, "a", 5, 14, 13);
    (void)note_images(&s, "a", 2, 14, 14);
    cr_expect_eq(s.size_count, 0, "more may come");
    berth_seen_extents_close(s.seen);
    (void)note_images(&s, "a", 7, 14, 12);
    cr_expect_eq(s.size_count, 2);
    cr_expect_eq(s.first[0], 2);
    cr_expect_eq(s.first[1], 5);
    support_case_destroy(&s.c);
}
