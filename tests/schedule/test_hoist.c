// What does not depend on a loop goes into tables: under the interpreter (which refuses places outside
// a buffer) and compiled, the results are those of the plain loops.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/schedule/support.h"

typedef struct form {
    const char *what;
    const char *text;
    bool has_tables;
} form;

#define HEAD(params) "module \"m\"\ntensor @f(" params ") {\n"
// The place of a result along a row of `size` elements, from data in [-1, 1).
#define PLACE(size, last) "max(0, min(index((%g[%h, %w] + 1.0) * " size "), " last "))"
#define WEIGHT "abs(%g[%h, %w] * 0.5 - 0.25)"

static const form forms[] = {
    {"places and weights from data",
     HEAD("%x: f32[5,40] in, %g: f32[7,9] in, %y: f32[5,7,9] out") "parallel %c in 5 { parallel %h "
                                                                   "in 7 { for %w in 9 {\n"
                                                                   "  %y[%c, %h, %w] = " WEIGHT
                                                                   " * %x[%c, " PLACE(
                                                                       "20.0",
                                                                       "39") "]\n} } }\n}\n",
     true},
    {"channels outside rows of one dimension: nothing to take in parts",
     HEAD("%x: f32[5,40] in, %g: f32[1,9] in, %y: f32[2,5,9] out") "parallel %n in 2 { parallel %c "
                                                                   "in 5 { for %w in 9 {\n"
                                                                   "  %y[%n, %c, %w] = abs(%g[0, "
                                                                   "%w] * 0.5 - 0.25) *\n"
                                                                   "      %x[%c, max(0, "
                                                                   "min(index((%g[0, %w] + 1.0) * "
                                                                   "20.0), 39))]\n} } }\n}\n",
     true},
    {"channels last",
     HEAD("%x: f32[40,5] in, %g: f32[7,9] in, %y: f32[7,9,5] out") "parallel %h in 7 { parallel %w "
                                                                   "in 9 { for %c in 5 {\n"
                                                                   "  %y[%h, %w, %c] = " WEIGHT
                                                                   " * %x[" PLACE(
                                                                       "20.0",
                                                                       "39") ", %c]\n} } }\n}\n",
     false},
    {"a sum over samples",
     HEAD("%x: f32[12,40] in, %g: f32[6,8] in, %y: f32[12,8] out") "parallel %c in 12 { for %w in "
                                                                   "8 {\n"
                                                                   "  register %acc: f32[]\n  "
                                                                   "%acc[] = 0.0\n"
                                                                   "  for %h in 6 { %acc[] = "
                                                                   "fma(" WEIGHT ", %x[%c, " PLACE(
                                                                       "20.0",
                                                                       "39") "], %acc[]) }\n"
                                                                             "  %y[%c, %w] = "
                                                                             "%acc[]\n} }\n}\n",
     true},
    {"a sum over samples of regions",
     HEAD(
         "%x: f32[12,40] in, %g: f32[6,8] in, %r: f32[3] in, %y: f32[3,12,8] out") "parallel %n in "
                                                                                   "3 { parallel "
                                                                                   "%c in 12 { for "
                                                                                   "%w in 8 {\n"
                                                                                   "  register "
                                                                                   "%acc: f32[]\n  "
                                                                                   "%acc[] = 0.0\n"
                                                                                   "  for %h in 6 "
                                                                                   "{ %acc[] = "
                                                                                   "fma(" WEIGHT
                                                                                   " * %r[%n], "
                                                                                   "%x[%c, " PLACE(
                                                                                       "20.0",
                                                                                       "39") "], "
                                                                                             "%acc["
                                                                                             "]) "
                                                                                             "}\n"
                                                                                             "  "
                                                                                             "%y[%"
                                                                                             "n, "
                                                                                             "%c, "
                                                                                             "%w] "
                                                                                             "= "
                                                                                             "%acc["
                                                                                             "]\n} "
                                                                                             "} "
                                                                                             "}\n}"
                                                                                             "\n",
     true},
    // %g has 7 rows, and row 7 of the result reads none of them
    {"weights that a selection guards",
     HEAD("%x: f32[5,40] in, %g: f32[7,9] in, %y: f32[5,8,9] out") "parallel %c in 5 { parallel %h "
                                                                   "in 8 { for %w in 9 {\n"
                                                                   "  %y[%c, %h, %w] = select(%h < "
                                                                   "7, " WEIGHT " * %x[%c, " PLACE(
                                                                       "20.0",
                                                                       "39") "], 0.0)\n} } }\n}\n",
     false},
    {"weights that the condition loads, too",
     HEAD(
         "%x: f32[5,40] in, %g: f32[8,9] in, %y: f32[5,8,9] out") "parallel %c in 5 { parallel %h "
                                                                  "in 8 { for %w in 9 {\n"
                                                                  "  %y[%c, %h, %w] = "
                                                                  "select(%g[%h, %w] < 0.5, " WEIGHT
                                                                  " * %x[%c, " PLACE(
                                                                      "20.0",
                                                                      "39") "], 0.0)\n} } }\n}\n",
     true},
    {"one channel",
     HEAD("%x: f32[1,40] in, %g: f32[7,9] in, %y: f32[1,7,9] out") "parallel %c in 1 { parallel %h "
                                                                   "in 7 { for %w in 9 {\n"
                                                                   "  %y[%c, %h, %w] = " WEIGHT
                                                                   " * %x[%c, " PLACE(
                                                                       "20.0",
                                                                       "39") "]\n} } }\n}\n",
     false},
};

enum { form_count = sizeof(forms) / sizeof(forms[0]) };

static bool has_tables(const berth_tfn *fn) {
    for (uint32_t b = 0; b < fn->bufs.count; ++b)
        if (fn->bufs.data[b].scope == BERTH_SCOPE_PRIVATE) return true;
    return false;
}

ParameterizedTestParameters(hoist, tables) {
    static int indices[form_count];
    for (int i = 0; i < form_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, form_count);
}

ParameterizedTest(int *index, hoist, tables) {
    const form *f = &forms[*index];
    bench_case c = support_case_parse(f->text);
    berth_buf y = c.fn->param_count - 1;
    support_fill(&c, 19);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", f->what, berth_status_message(status));
    const float *plain = c.buffers[y];
    berth_tfn_share(c.fn, c.arena);
    status = berth_schedule_apply(c.fn, support_target(c.arena, "cpu"));
    cr_assert(!status, "%s: %s", f->what, berth_status_message(status));
    cr_expect_eq(has_tables(c.fn), f->has_tables, "%s", f->what);
    status = support_interpret(&c);
    cr_assert(!status, "%s: scheduled: %s", f->what, berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[y], plain, c.element_counts[y]), 1e-5, "%s",
                  f->what);
    status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: compiled: %s", f->what, berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[y], plain, c.element_counts[y]), 1e-5,
                  "%s: compiled", f->what);
    support_case_destroy(&c);
}
