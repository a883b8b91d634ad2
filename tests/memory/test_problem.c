#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/exact.h"
#include "memory/plot.h"
#include "memory/problem.h"
#include "memory/solve.h"
#include "memory/validator.h"
#include "tests/check.h"
#include "tests/memory/random_problem.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_problem, .init = setup, .fini = teardown);

static berth_memory_problem *parse_ok(const char *text) {
    berth_memory_problem *problem = NULL;
    berth_status status =
        berth_memory_problem_parse(arena, "t.csv", text, strlen(text), NULL, &problem);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_assert_not_null(problem);
    return problem;
}

Test(memory_problem, columns_in_any_order) {
    const berth_memory_problem *p =
        parse_ok("pool,size,id,offset,alignment,upper,lower\r\nfast,10,a,64,32,5,-2\r\n\r\n ,\t7 "
                 ",\"b,\"\"x\"\"\",0,1,9,8\r\n");
    cr_assert_eq(p->buffer_count, 2);
    cr_assert_str_eq(p->ids[0], "a");
    cr_assert_str_eq(p->ids[1], "b,\"x\"");
    cr_assert_eq(p->intervals[0].lower, -2);
    cr_assert_eq(p->intervals[0].upper, 5);
    cr_assert_eq(p->intervals[0].size_bytes, 10);
    cr_assert_eq(p->intervals[0].alignment_bytes, 32);
    cr_assert_eq(p->intervals[1].size_bytes, 7);
    cr_assert_eq(p->pool_count, 2);
    cr_assert_str_eq(p->pool_names[0], "fast");
    cr_assert_str_eq(p->pool_names[1], "");
    cr_assert_eq(p->pools[1], 1);
    cr_assert_eq(p->offsets[0], 64);
    cr_assert_eq(p->offsets[1], 0);
}

Test(memory_problem, without_optional_columns) {
    const berth_memory_problem *p = parse_ok("\xEF\xBB\xBFid,lower,upper,size\nb1,0,3,4");
    cr_assert_eq(p->buffer_count, 1);
    cr_assert_eq(p->intervals[0].alignment_bytes, 1);
    cr_assert_eq(p->pool_count, 1);
    cr_assert_str_eq(p->pool_names[0], "");
    cr_assert_null(p->offsets);
    cr_assert_eq(parse_ok("id,lower,upper,size\n")->buffer_count, 0);
}

Test(memory_problem, write_reads_back) {
    const char *texts[] = {
        "id,lower,upper,size\nx,0,1,2\ny y,3,4,5\n",
        "id,lower,upper,size,alignment,pool\n\"a,b\",0,9223372036854775807,4,16,p\n\"q\"\"\",-5,2,"
        "1,1,\"p,2\"\n",
    };
    for (int t = 0; t < 2; ++t) {
        const berth_memory_problem *p = parse_ok(texts[t]);
        const uint64_t offsets[] = {16, 0};
        berth_strbuf out = berth_strbuf_make(arena);
        berth_memory_problem_write(p, offsets, &out);
        const berth_memory_problem *back = parse_ok(berth_strbuf_text(&out));
        cr_assert_eq(back->buffer_count, p->buffer_count);
        cr_assert_eq(back->has_alignment, p->has_alignment);
        cr_assert_eq(back->has_pool, p->has_pool);
        for (uint32_t i = 0; i < p->buffer_count; ++i) {
            cr_assert_str_eq(back->ids[i], p->ids[i]);
            cr_assert_eq(memcmp(&back->intervals[i], &p->intervals[i], sizeof(p->intervals[i])), 0);
            cr_assert_str_eq(back->pool_names[back->pools[i]], p->pool_names[p->pools[i]]);
            cr_assert_eq(back->offsets[i], offsets[i]);
        }
    }
}

static const struct {
    const char *text;
    const char *message;  // how it begins: name, line, column, what
    berth_code code;
} bad[] = {
    {"", "t.csv:1:1: expected a header", BERTH_INVALID_ARGUMENT},
    {"\nid,lower,upper,size\n", "t.csv:1:1: expected a header", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper\n", "t.csv:1:1: the header lacks the column \"size\"", BERTH_INVALID_ARGUMENT},
    {"id,lower,uper,size\n", "t.csv:1:10: unknown column \"uper\" (did you mean \"upper\"?)",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size,id\n", "t.csv:1:21: column \"id\" is named twice",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1\n", "t.csv:2:6: 3 of 4 fields", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,2,3\n", "t.csv:2:9: more than the 4 fields",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,2\n\nb, 3,3,1\n",
     "t.csv:4:6: upper 3 must be greater than lower 3", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,4,-3,2\n", "t.csv:2:5: upper -3 must be greater than lower 4",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,0\n", "t.csv:2:7: size must not be 0", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,-1\n",
     "t.csv:2:7: size must be a whole number that is not negative, not \"-1\"",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,1e3\n", "t.csv:2:7: size must be", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,,1,1\n", "t.csv:2:3: lower must be a whole number, not \"\"",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,+1,1\n", "t.csv:2:5: upper must be", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\na,0,1,9223372036854775808\n",
     "t.csv:2:7: size 9223372036854775808 does not fit", BERTH_OUT_OF_RANGE},
    {"id,lower,upper,size\na,0,99999999999999999999999999,1\n", "t.csv:2:5: upper 9999",
     BERTH_OUT_OF_RANGE},
    {"id,lower,upper,size\na,0,1,4000000000000000000\nb,7,8,4000000000000000000\n",
     "t.csv:3:7: the sum of sizes", BERTH_OUT_OF_RANGE},
    {"id,lower,upper,size,alignment\na,0,1,1,24\n",
     "t.csv:2:9: alignment must be a power of two, not 24", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size,alignment\na,0,1,1,0\n",
     "t.csv:2:9: alignment must be a power of two, not 0", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size,alignment\na,0,1,1,4611686018427387904\nb,0,1,1,2\n",
     "t.csv:3:7: the sum of sizes", BERTH_OUT_OF_RANGE},
    {"id,lower,upper,size\na,0,1,1\nb,0,1,1\na,5,6,1\n",
     "t.csv:4:1: id \"a\" is already that of row 1", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\n,0,1,1\n", "t.csv:2:1: the id is empty", BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\n\"a,0,1,1\n", "t.csv:2:1: the quote is not closed",
     BERTH_INVALID_ARGUMENT},
    {"id,lower,upper,size\n\"a\"b,0,1,1\n", "t.csv:2:4: expected a comma", BERTH_INVALID_ARGUMENT},
    {"lower,size,upper,id,offset\n0,1,1,a,x\n", "t.csv:2:9: offset must be",
     BERTH_INVALID_ARGUMENT},
};
enum { bad_count = sizeof(bad) / sizeof(bad[0]) };

Test(memory_problem, bad_input_has_line_and_column) {
    for (int i = 0; i < bad_count; ++i) {
        berth_memory_problem *problem = NULL;
        berth_status status = berth_memory_problem_parse(arena, "t.csv", bad[i].text,
                                                         strlen(bad[i].text), NULL, &problem);
        cr_assert_not_null(status, "accepted: %s", bad[i].text);
        cr_assert_null(problem);
        cr_assert_eq(berth_status_code(status), bad[i].code, "%s", berth_status_message(status));
        cr_assert_eq(strncmp(berth_status_message(status), bad[i].message, strlen(bad[i].message)),
                     0, "got \"%s\", expected \"%s\"", berth_status_message(status),
                     bad[i].message);
        berth_status_free(status);
    }
}

Test(memory_problem, id_with_nul_byte) {
    const char text[] = "id,lower,upper,size\na\0b,0,1,1\n";
    berth_memory_problem *problem = NULL;
    berth_status status =
        berth_memory_problem_parse(arena, "t.csv", text, sizeof(text) - 1, NULL, &problem);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
}

Test(memory_problem, a_million_rows) {
    enum { rows = 1000000 };
    char *text = malloc((size_t)rows * 48);
    cr_assert_not_null(text);
    size_t length = (size_t)sprintf(text, "id,lower,upper,size\n");
    for (int i = 0; i < rows; ++i)
        length +=
            (size_t)sprintf(text + length, "t%d,%d,%d,%d\n", i, i, i + 1 + i % 7, 1 + i % 100);
    berth_memory_problem *problem = NULL;
    berth_status status = berth_memory_problem_parse(arena, "t.csv", text, length, NULL, &problem);
    free(text);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_assert_eq(problem->buffer_count, rows);
    cr_assert_eq(problem->intervals[rows - 1].lower, rows - 1);
    cr_assert_str_eq(problem->ids[rows - 1], "t999999");
}

Test(memory_problem, every_failing_allocation_is_reported) {
    const char *text = "id,lower,upper,size,alignment,pool,offset\n\"a\"\"\",0,5,8,4,p,0\nb,1,6,12,"
                       "2,q,8\nc,2,3,1,1,p,20\n";
    bool done = false;
    for (int64_t n = 1; !done && n < 10000; ++n) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = n;
        berth_arena *own = NULL;
        berth_memory_problem *problem = NULL;
        berth_memory_solution solution;
        berth_memory_solve_options options = {.node_limit = 100};
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &own);
        if (!status)
            status = berth_memory_problem_parse(own, "t.csv", text, strlen(text), NULL, &problem);
        if (!status) status = berth_memory_solve(own, problem, &options, &solution);
        if (!status) status = berth_memory_validate(own, problem, solution.offsets, NULL, NULL);
        done = !status;
        if (status)
            cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                         berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(own);
        cr_assert_eq(counting.live_count, 0);
    }
    cr_assert(done);
}

// ---- validator ----------------------------------------------------------------------------------

static berth_status validate(const char *text, uint64_t capacity) {
    const berth_memory_problem *p = parse_ok(text);
    return berth_memory_validate(arena, p, p->offsets, &capacity, NULL);
}

static void assert_invalid(const char *text, uint64_t capacity, const char *words) {
    berth_status status = validate(text, capacity);
    cr_assert_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION, "%s", text);
    cr_assert(strstr(berth_status_message(status), words), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(memory_problem, validator_names_what_is_wrong) {
    cr_assert_null(
        validate("id,lower,upper,size,offset\na,0,5,10,0\nb,5,9,10,0\nc,0,9,5,10\n", 15));
    assert_invalid("id,lower,upper,size,offset\na,0,5,10,0\nb,4,9,10,9\n", 0,
                   "\"a\" [0, +10) and \"b\" [9, +10) overlap at time 4");
    assert_invalid("id,lower,upper,size,offset\na,0,5,10,6\n", 15, "beyond the capacity of 15");
    assert_invalid("id,lower,upper,size,alignment,offset\na,0,5,10,8,12\n", 0,
                   "not a multiple of 8");
    assert_invalid("id,lower,upper,size,offset\na,0,9,10,0\nb,2,3,1,4\n", 0, "overlap");  // inside
    assert_invalid("id,lower,upper,size,offset\na,2,3,1,4\nb,0,9,10,4\n", 0,
                   "overlap");  // same offset
}

// Random offsets: the sweep and looking at all pairs agree.
Test(memory_problem, validator_agrees_with_all_pairs) {
    int valid = 0;
    for (uint64_t seed = 1; seed <= 3000; ++seed) {
        uint64_t state = seed;
        berth_arena_destroy(arena);
        setup();
        const berth_memory_problem *p =
            random_problem(arena, seed, (random_shape){2 + (uint32_t)(seed % 9), 6, 5, 1, 1});
        uint64_t offsets[16];
        for (uint32_t i = 0; i < p->buffer_count; ++i) offsets[i] = random_next(&state) % 40;
        bool overlap = has_overlap(p, offsets);
        berth_status status = berth_memory_validate(arena, p, offsets, NULL, NULL);
        cr_assert_eq(overlap, status != NULL, "seed %d: %s", (int)seed,
                     berth_status_message(status));
        berth_status_free(status);
        valid += !overlap;
    }
    cr_assert(valid > 100 && valid < 2900, "%d of 3000 are valid: the test sees only one side",
              valid);
}

// ---- solving by pools, plotting -----------------------------------------------------------------

Test(memory_problem, pools_are_apart) {
    const berth_memory_problem *p =
        parse_ok("id,lower,upper,size,pool\na,0,5,10,x\nb,0,5,20,y\nc,1,3,5,x\nd,7,9,30,y\n");
    const uint64_t capacities[] = {14, 0};
    berth_memory_solve_options options = {.capacities_bytes = capacities, .node_limit = 1000};
    berth_memory_solution solution;
    cr_assert_null(berth_memory_solve(arena, p, &options, &solution));
    cr_assert_eq(solution.pools[0].verdict, BERTH_MEMORY_CANNOT_FIT);
    cr_assert(solution.pools[0].proven);
    cr_assert_eq(solution.pools[0].lower_bound_bytes, 15);
    cr_assert_eq(solution.pools[1].verdict, BERTH_MEMORY_FITS);
    cr_assert_eq(solution.pools[1].height_bytes, 30);
    cr_assert(solution.pools[1].proven);
    cr_assert_null(berth_memory_validate(arena, p, solution.offsets, NULL, NULL));
}

Test(memory_problem, plot_draws_every_buffer) {
    const berth_memory_problem *p = parse_ok(
        "id,lower,upper,size,pool,offset\n<a&\">,0,5,10,x,0\nb,0,5,20,y,0\nc,1,3,5,x,10\n");
    berth_strbuf out = berth_strbuf_make(arena);
    berth_memory_plot_options options = {.title = "t"};
    berth_memory_plot(p, p->offsets, &options, &out);
    const char *svg = berth_strbuf_text(&out);
    cr_assert_eq(strncmp(svg, "<svg ", 5), 0);
    cr_assert_str_eq(svg + out.length - 7, "</svg>\n");
    cr_assert(strstr(svg, "&lt;a&amp;&quot;&gt;: [0, 5), 10 bytes at 0"));
    cr_assert(strstr(svg, "c: [1, 3), 5 bytes at 10"));
    cr_assert(strstr(svg, "pool \"y\""));
    int buffers = 0;
    for (const char *at = svg; (at = strstr(at, "<rect x=")); ++at) buffers++;
    cr_assert_eq(buffers, 3 + 2);  // and a frame for each pool
    cr_assert(strstr(svg, ">&lt;a&amp;&quot;&gt;</text>"), "a name where there is room");
    cr_assert(strstr(svg, "peak: 15 B live at 1</text>"), "a and c");
    cr_assert(strstr(svg, "peak: 20 B live at 0</text>"), "b alone");
    berth_strbuf empty = berth_strbuf_make(arena);
    berth_memory_plot(parse_ok("id,lower,upper,size\n"), NULL, &options, &empty);
    cr_assert(strstr(berth_strbuf_text(&empty), "</svg>"));
}

Test(memory_problem, plot_names_times) {
    const berth_memory_problem *p =
        parse_ok("id,lower,upper,size,offset\na,0,2,10,0\nb,1,3,20,10\n");
    static const char *const names[] = {"conv<1>", "relu", "gemm"};
    berth_strbuf out = berth_strbuf_make(arena);
    berth_memory_plot_options options = {.time_names = names, .time_name_count = 3};
    berth_memory_plot(p, p->offsets, &options, &out);
    const char *svg = berth_strbuf_text(&out);
    cr_assert(strstr(svg, "20 bytes at 10; from 1 (relu) to 2 (gemm)</title>"));
    cr_assert(strstr(svg, "from 0 (conv&lt;1&gt;) to 1 (relu)</title>"));
    cr_assert(strstr(svg, "peak: 30 B live at 1 (relu)</text>"));
}

Test(problem, limits_of_rows_and_bytes) {
    static const char text[] = "id,lower,upper,size\na,0,1,4\nb,0,1,4\n";
    berth_arena *own = NULL;
    berth_memory_problem *problem = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &own));
    berth_limits limits = {.items = 2, .bytes = sizeof(text) - 1};
    assert_ok(berth_memory_problem_parse(own, "t.csv", text, sizeof(text) - 1, &limits, &problem));
    limits.items = 1;
    assert_fails(
        berth_memory_problem_parse(own, "t.csv", text, sizeof(text) - 1, &limits, &problem),
        BERTH_OUT_OF_RANGE, "t.csv: more than 1 rows");
    limits = (berth_limits){.bytes = sizeof(text) - 2};
    assert_fails(
        berth_memory_problem_parse(own, "t.csv", text, sizeof(text) - 1, &limits, &problem),
        BERTH_OUT_OF_RANGE, "t.csv: ");
    cr_assert_null(problem);
    berth_arena_destroy(own);
}
