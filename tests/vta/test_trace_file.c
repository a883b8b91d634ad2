// Recorded programs: the ones in ../shared/vta-golden (skipped where that is not), and files that are
// not what they should be.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "drivers/vta/trace_file.h"
#include "tests/check.h"
#include "tests/vta/validator.h"

#define FOLDER "../shared/vta-golden"

static void replay_in_every_order(const berth_vta_trace *trace) {
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order)
        for (uint64_t seed = 1; seed <= (order == BERTH_VTA_ORDER_RANDOM ? 20 : 2); ++seed) {
            berth_vta_run_options options = {
                .order = (berth_vta_order)order, .seed = seed, .refuse_unordered = true};
            berth_vta_shape shape;
            assert_ok(berth_vta_shape_make(&trace->config, &shape));
            assert_ok(berth_vta_hazards_create(berth_allocator_system(), &shape, &options.hazards));
            berth_vta_replay replay;
            berth_status status =
                berth_vta_trace_replay(trace, berth_allocator_system(), &options, &replay);
            cr_assert_null(status, "%s: %s", trace->name, berth_status_message(status));
            cr_assert(replay.reproduced, "%s, order %s: %llu bytes differ", trace->name,
                      berth_vta_order_name(options.order), (unsigned long long)replay.wrong_bytes);
            cr_assert(replay.counted, "%s: counters", trace->name);
            berth_vta_hazards_destroy(options.hazards);
        }
}

// The validator of these tests agrees with the recording on what boards would run.
static void validate_trace(const berth_vta_trace *trace) {
    const char *first = NULL;
    for (uint32_t r = 0; r < trace->runs.count; ++r) {
        stream s = {trace->config,
                    trace->before,
                    (int64_t)trace->base,
                    (int64_t)trace->size_bytes,
                    (int64_t)trace->runs.data[r].address,
                    (int)trace->runs.data[r].count};
        const char *problem = validate(&s);
        if (problem && !first) first = problem;
    }
    // A second run uses micro-ops of the first, which the validator looks at by itself.
    if (trace->runs.count > 1) return;
    cr_assert_eq(trace->portable, first == NULL, "%s: %s", trace->name, first ? first : "no rule");
}

Test(vta_trace_file, recorded_programs, .timeout = 120) {
    DIR *folder = opendir(FOLDER);
    if (!folder) cr_skip("skipped: " FOLDER " is not here\n");
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".vtag") != 0) continue;
        char path[512], *text = NULL;
        snprintf(path, sizeof(path), FOLDER "/%s", entry->d_name);
        berth_vta_trace trace;
        assert_ok(berth_file_read(arena, path, 1 << 24, &text, &length));
        assert_ok(berth_vta_trace_parse(arena, path, text, length, &trace));
        replay_in_every_order(&trace);
        validate_trace(&trace);
        count++;
    }
    closedir(folder);
    cr_assert_geq(count, 14);
    berth_arena_destroy(arena);
}

// ---- written by hand ----

#define HEADER                                                                                     \
    "VTA-GOLDEN 1\nname small\ndesc add one\nhw_portable yes\n"                                    \
    "config log_inp_width=3 log_block_in=4 log_block_out=4\narena 1000 1000\nfill a5\n"

static berth_status parse(const char *text, berth_vta_trace *trace, berth_arena **out_arena) {
    assert_ok(berth_arena_create(berth_allocator_system(), out_arena));
    return berth_vta_trace_parse(*out_arena, "t", text, strlen(text), trace);
}

static void refuse(const char *text, const char *part) {
    berth_arena *arena = NULL;
    berth_vta_trace trace;
    berth_status status = parse(text, &trace, &arena);
    cr_assert_not_null(status, "nothing is wrong, and \"%s\" was expected", part);
    cr_assert_not_null(strstr(berth_status_message(status), part), "%s",
                       berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(vta_trace_file, files_that_are_wrong) {
    refuse("", "t:0: no recorded program");
    refuse("VTA-GOLDEN 2\n", "t:1: no recorded program");
    refuse("VTA-GOLDEN 1\n", "it was cut");
    refuse("VTA-GOLDEN 1\nend\n", "a program needs an arena and a run");
    refuse("VTA-GOLDEN 1\nend\nmore\n", "something follows");
    refuse("VTA-GOLDEN 1\n\nend\n", "t:2: an empty line");
    refuse("VTA-GOLDEN 1\nwhat is this\n", "t:2: \"what\" is not known here");
    refuse("VTA-GOLDEN 1\nconfig log_block_in=x\n", "is no KEY=NUMBER");
    refuse("VTA-GOLDEN 1\nconfig log_block_in=4 log_block_out=5\n", "log_block_out differs");
    refuse("VTA-GOLDEN 1\narena 1000 ffffffff\n", "are the limit");
    refuse("VTA-GOLDEN 1\narena fffff000 2000\n", "32 bits");
    refuse("VTA-GOLDEN 1\narena 1000 10000000000000000\n", "base and a size");
    refuse("VTA-GOLDEN 1\narena 0 10\narena 0 10\n", "a second arena");
    refuse("VTA-GOLDEN 1\nfill 00\n", "comes after the arena");
    refuse("VTA-GOLDEN 1\nregion a 1000 4 in\n00000000\n", "outside of the arena");
    refuse(HEADER "region a fff 4 in\n", "outside of the arena");
    refuse(HEADER "region a 1ffd 4 in\n", "outside of the arena");
    refuse(HEADER "region a 1ffd 99999999999999999999 in\n", "a name, an address and a size");
    refuse(HEADER "region a 1000 4 in\n000000\n", "8 hex digits, not 6");
    refuse(HEADER "region a 1000 4 in\n0000000g\n", "no hex digits");
    refuse(HEADER "region a 1000 40 in\n0000", "64 hex digits");
    refuse(HEADER "run 1000 1\n00\n", "32 hex digits");
    refuse(HEADER "run 1000 1000000000\n", "a run has");
    refuse(HEADER "run 1000 2\n00000000000000000000000000000003\n", "the file ends inside");
    refuse(HEADER "run 1ff8 1\n00000000000000000000000000000003\n", "outside of the arena");
    refuse(HEADER "run 1000 1\n00000000000000000000000000000003\n", "it was cut");
}

// What differs is seen: a byte that should have changed, and one that should not have.
Test(vta_trace_file, a_result_that_differs) {
    static const char program[] = "run 1200 1\n00000000000000000000000000000003\n";
    char text[1024];
    berth_arena *arena = NULL;
    berth_vta_trace trace;
    for (int wrong = 0; wrong < 2; ++wrong) {
        snprintf(text, sizeof(text), HEADER "%sexpect out 1300 2\na5%s\nend\n", program,
                 wrong ? "a6" : "a5");
        assert_ok(parse(text, &trace, &arena));
        berth_vta_run_options options = {0};
        berth_vta_replay replay;
        assert_ok(berth_vta_trace_replay(&trace, berth_allocator_system(), &options, &replay));
        cr_assert_eq(replay.reproduced, !wrong);
        cr_assert_eq(replay.wrong_bytes, (uint64_t)wrong);
        cr_assert_eq(replay.first_wrong, wrong ? 0x1301 : 0);
        berth_arena_destroy(arena);
    }
}
