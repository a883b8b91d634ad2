#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/schedule/support.h"

static const char source[] = "int answer(void); int answer(void) { return 42; }\n";

static char *new_folder(berth_arena *arena) {
    char *folder = berth_arena_strdup(arena, "/tmp/berth-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    return folder;
}

static void remove_folder(const char *folder) {
    berth_cache_stats stats;
    berth_status_ignore(berth_toolchain_cache_clear(folder, &stats));
    rmdir(folder);
}

Test(toolchain, second_time_comes_from_the_cache) {
    bench_case c = support_case_create();
    char *folder = new_folder(c.arena);
    berth_toolchain_options options = {.target = support_target(c.arena, "cpu"),
                                       .cache_folder = folder};
    for (int round = 0; round < 2; ++round) {
        berth_toolchain_unit units[] = {{.label = "a", .source = source},
                                        {.label = "b", .source = source}};
        berth_status status = berth_toolchain_compile(&options, c.arena, units, 2);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_eq(units[0].cached, round == 1);
        cr_expect_eq(units[0].image, units[1].image, "equal sources are compiled once");
        cr_expect(memcmp(units[0].image, "\177ELF", 4) == 0);
    }
    berth_cache_stats stats;
    cr_assert(!berth_toolchain_cache_stats(folder, &stats));
    cr_expect_eq(stats.entry_count, 1);
    cr_assert(!berth_toolchain_cache_clear(folder, &stats));
    cr_assert(!berth_toolchain_cache_stats(folder, &stats));
    cr_expect_eq(stats.entry_count, 0);
    remove_folder(folder);
    support_case_destroy(&c);
}

Test(toolchain, damaged_entry_is_made_anew) {
    bench_case c = support_case_create();
    char *folder = new_folder(c.arena);
    berth_toolchain_options options = {.target = support_target(c.arena, "cpu"),
                                       .cache_folder = folder};
    berth_toolchain_unit unit = {.label = "a", .source = source};
    cr_assert(!berth_toolchain_compile(&options, c.arena, &unit, 1));
    char command[512];
    snprintf(command, sizeof(command), "for f in %s/*.so; do printf garbage > \"$f\"; done",
             folder);
    cr_assert_eq(system(command), 0);
    cr_assert(!berth_toolchain_compile(&options, c.arena, &unit, 1));
    cr_expect_not(unit.cached);
    cr_expect(memcmp(unit.image, "\177ELF", 4) == 0);
    remove_folder(folder);
    support_case_destroy(&c);
}

Test(toolchain, eviction_keeps_the_limit) {
    bench_case c = support_case_create();
    char *folder = new_folder(c.arena);
    berth_toolchain_options options = {
        .target = support_target(c.arena, "cpu"), .cache_folder = folder, .cache_limit_bytes = 1};
    berth_toolchain_unit unit = {.label = "a", .source = source};
    cr_assert(!berth_toolchain_compile(&options, c.arena, &unit, 1));
    berth_cache_stats stats;
    cr_assert(!berth_toolchain_cache_stats(folder, &stats));
    cr_expect_eq(stats.entry_count, 0);
    remove_folder(folder);
    support_case_destroy(&c);
}

Test(toolchain, folder_that_others_can_write_is_refused) {
    bench_case c = support_case_create();
    char *folder = new_folder(c.arena);
    cr_assert_eq(chmod(folder, 0777), 0);
    berth_toolchain_options options = {.target = support_target(c.arena, "cpu"),
                                       .cache_folder = folder};
    berth_toolchain_unit unit = {.label = "a", .source = source};
    berth_status status = berth_toolchain_compile(&options, c.arena, &unit, 1);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect(strstr(berth_status_message(status), folder));
    berth_status_free(status);
    remove_folder(folder);
    support_case_destroy(&c);
}

Test(toolchain, errors_say_what_is_wrong) {
    bench_case c = support_case_create();
    berth_toolchain_options options = {.target = support_target(c.arena, "cpu")};
    berth_toolchain_unit unit = {.label = "broken", .source = "int f(void) { return nonsense; }\n"};
    berth_status status = berth_toolchain_compile(&options, c.arena, &unit, 1);
    cr_expect_eq(berth_status_code(status), BERTH_INTERNAL);
    cr_expect(strstr(berth_status_message(status), "nonsense") &&
              strstr(berth_status_message(status), "broken"));
    berth_status_free(status);
    options.c_compiler = "no-such-compiler";
    status = berth_toolchain_compile(&options, c.arena, &unit, 1);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    berth_status_free(status);
    options.c_compiler = NULL;
    options.search_path = "/nonexistent";
    status = berth_toolchain_compile(&options, c.arena, &unit, 1);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(berth_status_message(status), "install"));
    berth_status_free(status);
    support_case_destroy(&c);
}

// Elementary functions of generated C against the interpreter's (libm in double), and their special
// values.
Test(codegen_c, elementary_functions) {
    static const berth_unary ops[] = {BERTH_UNARY_EXP,   BERTH_UNARY_LOG,     BERTH_UNARY_TANH,
                                      BERTH_UNARY_ERF,   BERTH_UNARY_SIGMOID, BERTH_UNARY_SQRT,
                                      BERTH_UNARY_FLOOR, BERTH_UNARY_ROUND};
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); ++k) {
        bench_case c = support_case_create();
        berth_tfn *fn = c.fn;
        int64_t n = 1000;
        berth_buf x = support_param(&c, "x", 1, &n, "", BERTH_ROLE_IN);
        berth_buf y = support_param(&c, "y", 1, &n, "", BERTH_ROLE_OUT);
        berth_var i = berth_tfn_var(fn, "i");
        berth_expr at = berth_tfn_var_ref(fn, i);
        berth_stmt body = berth_tfn_store(
            fn, y, &at, 1, berth_tfn_unary(fn, ops[k], berth_tfn_load(fn, x, &at, 1)));
        body = berth_tfn_for(fn, i, berth_tfn_index(fn, n), BERTH_LOOP_SIMD, body);
        fn->body = berth_tfn_seq(fn, &body, 1);
        float *values = c.buffers[x];
        for (int64_t e = 0; e < n; ++e) values[e] = (float)(e - 500) * 0.05F;
        const float special[] = {
            0.0F, -0.0F, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 88.0F, -100.0F};
        memcpy(values, special, sizeof(special));
        cr_assert(!support_interpret(&c));
        float *expected = c.buffers[y];
        berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
        cr_assert(!status, "%s", berth_status_message(status));
        const float *got = c.buffers[y];
        for (int64_t e = 0; e < n; ++e) {
            bool same = got[e] == expected[e] || (got[e] != got[e] && expected[e] != expected[e]);
            float difference = __builtin_fabsf(got[e] - expected[e]);
            float scale =
                __builtin_fabsf(expected[e]) > 1e-30F ? __builtin_fabsf(expected[e]) : 1e-30F;
            cr_expect(same || difference <= 3e-7F * scale, "op %zu of %g: %g, expected %g", k,
                      (double)values[e], (double)got[e], (double)expected[e]);
        }
        support_case_destroy(&c);
    }
}
