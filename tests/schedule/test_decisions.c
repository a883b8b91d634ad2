// Decisions as text, and functions that are scheduled by given ones: other code, the same results.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

#define TOLERANCE 2e-5

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t between(uint64_t *state, int64_t least, int64_t most) {
    return least + (int64_t)(next(state) % (uint64_t)(most - least + 1));
}

// ---- text ---------------------------------------------------------------------------------------

Test(decisions, what_is_printed_is_read_again) {
    static const int64_t most[BERTH_DECISION_COUNT] = {
        [BERTH_DECISION_FORM] = BERTH_FORM_COUNT - 1,
        [BERTH_DECISION_INTRINSIC] = BERTH_INTRINSIC_COUNT,
        [BERTH_DECISION_UNROLL] = 1,
        [BERTH_DECISION_PANEL] = 1,
        [BERTH_DECISION_ORDER] = BERTH_TILE_ORDER_COUNT - 1};
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    uint64_t state = 3;
    for (int round = 0; round < 500; ++round) {
        berth_nest_decisions made = {.made = (uint32_t)next(&state)};
        made.made &= (1u << BERTH_DECISION_COUNT) - 1;
        for (int i = 0; i < BERTH_DECISION_COUNT; ++i)
            made.values[i] = between(&state, 0, most[i] ? most[i] : INT32_MAX);
        const char *text = berth_decisions_print(arena, &made, false);
        berth_nest_decisions read = {0};
        berth_status status = berth_decisions_parse(&read, text);
        cr_assert(!status, "%s: %s", text, berth_status_message(status));
        cr_expect_eq(read.given, made.made, "%s", text);
        for (int i = 0; i < BERTH_DECISION_COUNT; ++i)
            if (made.made >> i & 1) cr_expect_eq(read.given_values[i], made.values[i], "%s", text);
        cr_expect_str_eq(berth_decisions_print(arena, &read, true), text);
    }
    berth_arena_destroy(arena);
}

static const struct {
    const char *text;
    int column;
    const char *says;
} wrong_texts[] = {
    {"rows", 1, "NAME=VALUE"},           {"rows=6 column=2", 8, "no decision of this name"},
    {"rows=six", 6, "no number"},        {"rows=", 6, "no number"},
    {"rows=-1", 6, "no number"},         {"rows=4 rows=4", 8, "given before"},
    {"form=flatt", 6, "no such value"},  {"  lanes=8 panel=1", 17, "no such value"},
    {"rows=99999999999", 6, "no number"}};

Test(decisions, wrong_text_is_said_with_its_column) {
    for (size_t i = 0; i < sizeof(wrong_texts) / sizeof(wrong_texts[0]); ++i) {
        berth_nest_decisions nest = {0};
        berth_status status = berth_decisions_parse(&nest, wrong_texts[i].text);
        char column[32];
        snprintf(column, sizeof(column), "column %d:", wrong_texts[i].column);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s", wrong_texts[i].text);
        cr_expect(strstr(berth_status_message(status), column) &&
                      strstr(berth_status_message(status), wrong_texts[i].says),
                  "%s", berth_status_message(status));
        berth_status_free(status);
    }
}

// Whatever is read is an error with its column, or decisions that print as what is read again.
Test(decisions, any_text) {
    static const char *const words[] = {"rows=",
                                        "columns=",
                                        "form=",
                                        "flat",
                                        "=",
                                        "no",
                                        "order=",
                                        " ",
                                        " ",
                                        "7",
                                        "12",
                                        "form=flat",
                                        "rows=12 ",
                                        "columns=7",
                                        "none",
                                        "\n",
                                        "\xff",
                                        "intrinsic=",
                                        "99999999999999999999"};
    enum { word_count = sizeof(words) / sizeof(words[0]), most_words = 9 };
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    uint64_t state = 17;
    int good = 0;
    for (int round = 0; round < 20000; ++round) {
        char text[256] = "";
        for (int64_t n = between(&state, 0, most_words); n > 0; --n)
            strcat(text, words[next(&state) % word_count]);
        berth_nest_decisions nest = {0}, again = {0};
        berth_status status = berth_decisions_parse(&nest, text);
        if (status) {
            cr_assert(strstr(berth_status_message(status), ", column "), "%s", text);
            berth_status_free(status);
            continue;
        }
        good += nest.given != 0;
        cr_assert_null(berth_decisions_parse(&again, berth_decisions_print(arena, &nest, true)));
        cr_assert_eq(again.given, nest.given, "%s", text);
    }
    cr_expect_gt(good, 50);
    berth_arena_destroy(arena);
}

// ---- functions ----------------------------------------------------------------------------------

// A product or a convolution that follows from the number.
static void build(bench_case *c, uint64_t seed, char *what, size_t what_size) {
    uint64_t state = seed * 977 + 5;
    if (seed % 2) {
        int64_t m = between(&state, 1, 40), k = between(&state, 1, 40), n = between(&state, 1, 90);
        bool packed = next(&state) % 2;
        if (packed) n = (n + 15) / 16 * 16;
        snprintf(what, what_size, "matmul %ld x %ld x %ld", m, k, n);
        support_build_matmul(c, m, k, n, packed ? "Ba16b" : "");
        return;
    }
    bool depthwise = next(&state) % 4 == 0;
    conv_shape s = {.ic = 8 * between(&state, 1, 2),
                    .oc = 8 * between(&state, 1, 4),
                    .oh = between(&state, 1, 6),
                    .ow = between(&state, 1, 15),
                    .kh = between(&state, 1, 3),
                    .kw = between(&state, 1, 3),
                    .stride = between(&state, 1, 2),
                    .x_layout = "aBcd8b",
                    .w_layout = depthwise ? "Abcd8a" : "ABcd8b8a",
                    .y_layout = "aBcd8b",
                    .depthwise = depthwise};
    if (depthwise) s.oc = s.ic;
    snprintf(what, what_size, "convolution %ld > %ld, %ld x %ld, %ld x %ld, stride %ld%s", s.ic,
             s.oc, s.oh, s.ow, s.kh, s.kw, s.stride, depthwise ? ", depthwise" : "");
    support_build_conv(c, &s);
}

static berth_status schedule(bench_case *c, const char *target, const char *given,
                             berth_schedule_decisions **out) {
    berth_schedule_decisions *decisions = berth_decisions_create(c->arena, 1);
    berth_status status = berth_decisions_parse(&decisions->nests[0], given);
    cr_assert(!status, "%s", berth_status_message(status));
    c->fn->decisions = decisions;
    status = berth_schedule_apply(c->fn, support_target(c->arena, target));
    c->fn->decisions = NULL;
    *out = decisions;
    return status;
}

// Some of the decisions that the policy made, with other values within their limits.
static const char *mutate(berth_arena *arena, const berth_nest_decisions *made, uint64_t *state) {
    berth_nest_decisions wanted = {0};
    for (int i = 1; i < BERTH_DECISION_COUNT; ++i) {
        if (!(made->made >> i & 1) || next(state) % 2) continue;
        int64_t most = made->most[i] < 64 ? made->most[i] : 64;
        if (most < made->least[i]) most = made->least[i];
        wanted.given |= 1u << i;
        wanted.given_values[i] = between(state, made->least[i], most);
    }
    return berth_decisions_print(arena, &wanted, true);
}

static const char *const targets[] = {"cpu -vector_bits=128", "cpu -vector_bits=256",
                                      "cpu -vector_bits=512", "opencl -subgroup_size=32 -host=cpu",
                                      "opencl -host=cpu",     "cuda -arch=sm_80"};
enum { target_count = sizeof(targets) / sizeof(targets[0]), seeds = 24, tries = 4 };

// What the last try of a function was, so that another one can be compared.
static void check_same_results(bench_case *plain, uint64_t seed, const char *target,
                               const char *given, const char *what, int *possible, int *differ) {
    char ignored[96];
    bench_case c = support_case_create();
    build(&c, seed, ignored, sizeof(ignored));
    support_fill(&c, 7);
    berth_schedule_decisions *made = NULL;
    berth_status status = schedule(&c, target, given, &made);
    if (status) {
        const char *message = berth_status_message(status);
        cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s", message);
        cr_expect(strstr(message, "not possible"), "%s, %s: %s", what, given, message);
        berth_status_free(status);
    } else {
        bench_case policy = support_case_create();
        berth_schedule_decisions *unused = NULL;
        build(&policy, seed, ignored, sizeof(ignored));
        cr_assert_null(schedule(&policy, target, "", &unused));
        *differ += !berth_hash128_equal(berth_tfn_hash(policy.fn), berth_tfn_hash(c.fn));
        support_case_destroy(&policy);
        ++*possible;
        for (int i = 0; i < BERTH_DECISION_COUNT; ++i)
            if (made->nests[0].given >> i & 1)
                cr_expect_eq(made->nests[0].values[i], made->nests[0].given_values[i]);
        status = support_interpret(&c);
        cr_assert(!status, "%s, %s: %s", what, given, berth_status_message(status));
        berth_buf y = c.fn->param_count - 1;
        double difference =
            support_difference(c.buffers[y], plain->buffers[y], c.element_counts[y]);
        cr_expect(difference < TOLERANCE, "%s for %s, %s: differs by %g", what, target, given,
                  difference);
    }
    support_case_destroy(&c);
}

ParameterizedTestParameters(decisions, random_ones) {
    static int indices[seeds];
    for (int i = 0; i < seeds; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, seeds);
}

ParameterizedTest(int *seed, decisions, random_ones) {
    uint64_t state = (uint64_t)*seed + 100;
    int possible = 0, differ = 0;
    for (int t = 0; t < target_count; ++t) {
        char what[96];
        bench_case plain = support_case_create();
        build(&plain, (uint64_t)*seed, what, sizeof(what));
        support_fill(&plain, 7);
        berth_status status = support_interpret(&plain);
        cr_assert(!status, "%s", berth_status_message(status));
        bench_case c = support_case_create();
        build(&c, (uint64_t)*seed, what, sizeof(what));
        berth_schedule_decisions *made = NULL;
        status = schedule(&c, targets[t], "", &made);
        cr_assert(!status, "%s", berth_status_message(status));
        // The policy's own choice, given by name, is the same function.
        const char *own = berth_decisions_print(c.arena, &made->nests[0], false);
        int none = 0;
        check_same_results(&plain, (uint64_t)*seed, targets[t], own, what, &possible, &none);
        cr_expect_eq(none, 0, "%s for %s: %s", what, targets[t], own);
        for (int i = 0; i < tries; ++i)
            check_same_results(&plain, (uint64_t)*seed, targets[t],
                               mutate(c.arena, &made->nests[0], &state), what, &possible, &differ);
        support_case_destroy(&c);
        support_case_destroy(&plain);
    }
    cr_expect_geq(possible, target_count + 3, "few decisions are possible: %d", possible);
    // Of the smallest functions every decision but one is without effect.
    cr_expect(differ >= 1 || possible >= target_count * (tries + 1) - 2);
}

static const struct {
    const char *target, *given, *says;
} refused[] = {
    {"cpu -vector_bits=256", "rows=1000", "rows=1000 is not possible: 1 to "},
    {"cpu -vector_bits=256", "lanes=16", "lanes=16"},
    {"cpu -vector_bits=256", "columns=4 rows=20", "rows=20 is not possible: 1 to 16"},
    {"cpu -vector_bits=256", "rows=5 chunk=3", "chunk=3 is not possible: it does not divide"},
    {"cpu -vector_bits=256", "form=transposed", "form=transposed is not possible"},
    {"cpu -vector_bits=256", "depth=4", "depth=4 is not possible: the nest is arranged without"},
    {"cpu -vector_bits=256", "panel=yes", "panel=yes is not possible: only no is"},
    {"cpu -vector_bits=256", "intrinsic=zip_low_x8", "intrinsic=zip_low_x8 is not possible"},
    {"opencl -subgroup_size=32 -host=cpu", "lanes=3", "power of two"},
    {"opencl -subgroup_size=32 -host=cpu", "group_columns=100000", "group_columns=100000"},
    {"opencl -subgroup_size=32 -host=cpu", "chunk=1", "chunk=1 is not possible"},
    {"opencl -subgroup_size=32 -local_memory_bytes=16384 -host=cpu", "rows=64 depth=64",
     "the tiles take"},
};

Test(decisions, impossible_ones_are_refused) {
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); ++i) {
        bench_case c = support_case_create();
        berth_schedule_decisions *made = NULL;
        support_build_matmul(&c, 40, 64, 64, "Ba16b");
        berth_status status = schedule(&c, refused[i].target, refused[i].given, &made);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s for %s",
                     refused[i].given, refused[i].target);
        cr_expect(strstr(berth_status_message(status), refused[i].says) &&
                      strstr(berth_status_message(status), "nest 0"),
                  "%s: %s", refused[i].given, berth_status_message(status));
        berth_status_free(status);
        support_case_destroy(&c);
    }
}

Test(decisions, there_is_an_entry_per_nest) {
    bench_case c = support_case_create();
    support_build_matmul(&c, 4, 4, 16, "");
    c.fn->decisions = berth_decisions_create(c.arena, 2);
    berth_status status = berth_schedule_apply(c.fn, support_target(c.arena, "cpu"));
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
    support_case_destroy(&c);
}

// A tile is what was asked for: as many accumulators as it has vectors.
Test(decisions, a_tile_has_the_size_that_is_given) {
    static const char *const given[] = {"columns=1 rows=3", "columns=2 rows=8", "columns=4 rows=1"};
    static const int64_t accumulators[] = {3, 16, 4};
    for (int i = 0; i < 3; ++i) {
        bench_case c = support_case_create();
        berth_schedule_decisions *made = NULL;
        support_build_matmul(&c, 24, 64, 64, "Ba16b");
        cr_assert_null(schedule(&c, "cpu -vector_bits=256", given[i], &made));
        bool found = false;
        for (uint32_t b = 0; b < c.fn->bufs.count; ++b) {
            const berth_buf_info *info = &c.fn->bufs.data[b];
            found |= info->lanes == 8 && info->rank == 1 && info->dims[0] == accumulators[i];
        }
        cr_expect(found, "%s", given[i]);
        support_case_destroy(&c);
    }
}

static int64_t rows_for(const char *target) {
    bench_case c = support_case_create();
    berth_schedule_decisions *made = NULL;
    support_build_matmul(&c, 120, 64, 64, "Ba16b");
    cr_assert_null(schedule(&c, target, "columns=2", &made));
    int64_t rows = made->nests[0].values[BERTH_DECISION_ROWS];
    support_case_destroy(&c);
    return rows;
}

// Beside two columns of a tile 2 rows + 2 weights + 1 broadcast are in registers, and the target's cap
// holds where these allow more; on processor cores behind OpenCL, too.
Test(decisions, tiles_follow_the_target) {
    static const char *const kinds[] = {"cpu -vector_bits=256",
                                        "opencl -host=cpu -subgroup_size=1"};
    for (int k = 0; k < 2; ++k)
        for (int registers = 8; registers <= 64; registers *= 2)
            for (int cap = 1; cap <= 40; cap += 3) {
                char target[160];
                snprintf(target, sizeof(target), "%s -vector_registers=%d -tile_rows=%d", kinds[k],
                         registers, cap);
                int64_t rows = rows_for(target), room = (registers - 3) / 2;
                int64_t most = room < cap ? room : cap;
                cr_expect(rows <= most && rows > most / 2, "%s: %lld rows", target,
                          (long long)rows);
            }
}

// Results over an operand are stored once: columns that fill no vector stay single.
static void decisions_over(bool over, const char *target, int64_t m, int64_t k, int64_t n,
                           const char *layout, const char *given, int64_t *values) {
    bench_case c = support_case_create();
    berth_schedule_decisions *made = NULL;
    support_build_matmul(&c, m, k, n, layout);
    for (berth_buf b = 0; over && b < c.fn->param_count; ++b) c.fn->bufs.data[b].may_alias = true;
    cr_assert_null(schedule(&c, target, given, &made), "%s", target);
    memcpy(values, made->nests[0].values, BERTH_DECISION_COUNT * sizeof(*values));
    support_case_destroy(&c);
}

static void decisions_for(const char *target, int64_t m, int64_t k, int64_t n, const char *layout,
                          const char *given, int64_t *values) {
    decisions_over(false, target, m, k, n, layout, given, values);
}

// 128 x 64 x 128 is a multiple of all these bounds, so that tiles in local memory are as large as they allow.
Test(decisions, tiles_in_local_memory_follow_the_target) {
    static const char *const kinds[] = {"cuda", "vulkan -host=cpu",
                                        "opencl -host=cpu -subgroup_size=32"};
    static const int bounds[][4] = {{2, 4, 8, 8}, {4, 8, 2, 16}, {8, 2, 4, 32}};
    for (int k = 0; k < 3; ++k)
        for (int b = 0; b < 3; ++b) {
            char target[200];
            int64_t got[BERTH_DECISION_COUNT];
            snprintf(target, sizeof(target),
                     "%s -item_rows=%d -group_columns=%d -group_rows=%d -tile_depth=%d", kinds[k],
                     bounds[b][0], bounds[b][1], bounds[b][2], bounds[b][3]);
            decisions_for(target, 128, 64, 128, "", "", got);
            cr_expect_eq(got[BERTH_DECISION_ROWS], bounds[b][0], "%s", target);
            cr_expect_eq(got[BERTH_DECISION_GROUP_COLUMNS], bounds[b][1], "%s", target);
            cr_expect_eq(got[BERTH_DECISION_GROUP_ROWS], bounds[b][2], "%s", target);
            cr_expect_eq(got[BERTH_DECISION_DEPTH], bounds[b][3], "%s", target);
        }
}

// A row alone takes as many columns as sums are worked on at a time; columns that fill no vector bound rows.
Test(decisions, sums_of_a_tile_follow_the_target) {
    for (int sums = 2; sums <= 8; sums *= 2) {
        char target[160];
        int64_t got[BERTH_DECISION_COUNT];
        snprintf(target, sizeof(target), "cpu -vector_bits=256 -sums_in_flight=%d", sums);
        decisions_for(target, 1, 64, 8 * 8 * 16 * 8, "Ba8b", "", got);
        cr_expect_eq(got[BERTH_DECISION_COLUMNS], sums, "%s: %lld", target,
                     (long long)got[BERTH_DECISION_COLUMNS]);
        snprintf(target, sizeof(target), "cpu -vector_bits=256 -tile_singles=%d", 3 * sums);
        decisions_over(true, target, 120, 64, 8 + 3, "", "form=register_tile", got);
        cr_expect(got[BERTH_DECISION_ROWS] <= sums && got[BERTH_DECISION_ROWS] > sums / 2,
                  "%s: %lld", target, (long long)got[BERTH_DECISION_ROWS]);
    }
}

// Columns of a tile of sums over `terms` rows of 384 elements each.
static int64_t columns_of_sums(int64_t terms) {
    char text[512];
    berth_schedule_decisions *made = NULL;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[8,%lld,384] in, %%y: f32[8,384] out) {\n"
             "  parallel %%i in 8 { parallel %%j in 384 {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%k in %lld { %%sum[] = %%sum[] + %%x[%%i, %%k, %%j] }\n"
             "    %%y[%%i, %%j] = %%sum[]\n"
             "  } }\n}\n",
             (long long)terms, (long long)terms);
    bench_case c = support_case_parse(text);
    cr_assert_null(schedule(&c, "cpu -vector_bits=512", "", &made));
    int64_t columns = made->nests[0].values[BERTH_DECISION_COLUMNS];
    support_case_destroy(&c);
    return columns;
}

// Rows of a long sum are read by pairs of lines of the cache, 32 elements; a short one reads few of them anyway.
Test(decisions, long_sums_of_rows_take_pairs_of_lines) {
    cr_expect_geq(columns_of_sums(128), 2);
    cr_expect_eq(columns_of_sums(4), 1);
}

// One row times weights whose rows are pages apart reads longer pieces of these, though there are fewer groups then.
Test(decisions, columns_of_rows_that_are_pages_apart) {
    int64_t apart[BERTH_DECISION_COUNT], near[BERTH_DECISION_COUNT];
    decisions_for("cpu -vector_bits=512 -sums_in_flight=8", 1, 64, 1024, "", "", apart);
    decisions_for("cpu -vector_bits=512 -sums_in_flight=8", 1, 64, 768, "", "", near);
    cr_expect_eq(apart[BERTH_DECISION_COLUMNS], 8);
    cr_expect_leq(near[BERTH_DECISION_COLUMNS], 4);
}
