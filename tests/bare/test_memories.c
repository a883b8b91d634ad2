// Targets with several memories for values: which value lies in which, what the sources say of it, what is refused.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "tests/bare/support.h"
#include "tests/check.h"

// Windows of 3 x 3 on 12 x 12: 100 values, of which the next ones read 9 each and make 64; one of these is the result.
static const char windows[] = "module \"m\"\n"
                              "graph @main(%x: f32[1,1,12,12]) {\n"
                              "  %a = max_pool(%x) {kernel_shape = [3, 3]}\n"
                              "  %b = max_pool(%a) {kernel_shape = [3, 3]}\n"
                              "  %c = max_pool(%b) {kernel_shape = [8, 8]}\n"
                              "  return %c\n"
                              "}\n";

enum {
    INPUT_BYTES = 144 * 4,
    OUTPUT_BYTES = 4,
    A_BYTES = 100 * 4,
    B_BYTES = 64 * 4,
    A_MOVED_BYTES = 100 * 4 + 64 * 9 * 4,  // each written once, nine read for each of the next ones
    B_MOVED_BYTES = 64 * 4 + 64 * 4
};

// A board with an SRAM of its own and another memory beside it, of such a bandwidth.
static const char *board(char target[512], unsigned own_bytes, const char *name,
                         unsigned other_bytes, const char *bandwidth) {
    snprintf(target, 512,
             "{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "
             "\"cortex-m4\"}}], "
             "\"memories\": [{\"name\": \"sram\", \"capacity_bytes\": %u, "
             "\"bandwidth_bytes_per_s\": 1e8, \"reached_by\": [\"mcu\"]}, "
             "{\"name\": \"%s\", \"capacity_bytes\": %u, \"bandwidth_bytes_per_s\": %s, "
             "\"reached_by\": [\"mcu\"]}]}",
             own_bytes, name, other_bytes, bandwidth);
    return target;
}

static berth_status try_build(bare_built *b, const char *target) {
    return bare_build(b, windows, target, "m");
}

static bare_built build(const char *target) {
    bare_built b = {0};
    assert_ok(try_build(&b, target));
    return b;
}

static const berth_memory_share *share_of(const bare_built *b, const char *memory) {
    for (uint32_t i = 0; i < b->memory->share_count; ++i)
        if (strcmp(b->memory->shares[i].memory, memory) == 0) return &b->memory->shares[i];
    cr_assert_fail("no memory %s", memory);
    return NULL;
}

// Checks which bytes lie in and are moved in each memory.
static void check_shares(const bare_built *b, uint64_t own_bytes, double own_moved,
                         uint64_t other_bytes, double other_moved, const char *other) {
    uint64_t own = 0, others = 0;
    for (uint32_t i = 0; i < b->program->pool_count; ++i) {
        const berth_program_pool *pool = &b->program->pools[i];
        if (pool->usage != BERTH_POOL_WORKSPACE) continue;
        *(strcmp(pool->scope, other) == 0 ? &others : &own) += pool->size_bytes;
    }
    cr_expect_eq(own, own_bytes, "%llu bytes in its own memory", (unsigned long long)own);
    cr_expect_eq(others, other_bytes, "%llu bytes in the other", (unsigned long long)others);
    cr_expect_eq(share_of(b, "sram")->moved_bytes, own_moved, "%g moved in its own memory",
                 share_of(b, "sram")->moved_bytes);
    cr_expect_eq(share_of(b, other)->moved_bytes, other_moved, "%g moved in the other",
                 share_of(b, other)->moved_bytes);
    cr_expect(b->memory->shares_proven);
}

Test(bare_memories, what_moves_most_for_its_size_is_in_the_fast_memory) {
    char target[512];
    bare_built b = build(board(target, 4096, "dtcm", A_BYTES, "8e8"));
    check_shares(&b, B_BYTES, B_MOVED_BYTES, A_BYTES, A_MOVED_BYTES, "dtcm");
    const char *header = bare_text_of(&b, "m.h"), *code = bare_text_of(&b, "m.c");
    cr_expect(strstr(header, "#define M_ARENA_BYTES 256\n"), "%s", header);
    cr_expect(strstr(header, "#define M_ARENA_DTCM_BYTES 400\n"), "%s", header);
    cr_expect(strstr(header, "#define M_MEMORY_BYTES 256\n"), "%s", header);
    cr_expect(strstr(header, "#define M_IN_DTCM_MEMORY_BYTES 400\n"), "%s", header);
    cr_expect(strstr(header, "#define M_RAM_BYTES 656\n"), "%s", header);
    cr_expect(strstr(header, "84.1 % in \"dtcm\", 15.9 % in \"sram\""), "%s", header);
    cr_expect(strstr(code, "static M_IN_DTCM_ATTRIBUTE m_arena_dtcm_memory m_arena_dtcm;"));
    cr_expect(strstr(code, "static M_RAM_ATTRIBUTE m_arena_memory m_arena;"));
    bare_end(&b);
    // One byte less: only the other value has room there.
    b = build(board(target, 4096, "dtcm", A_BYTES - 1, "8e8"));
    check_shares(&b, A_BYTES, A_MOVED_BYTES, B_BYTES, B_MOVED_BYTES, "dtcm");
    bare_end(&b);
    b = build(board(target, 4096, "dtcm", 4096, "8e8"));
    check_shares(&b, 0, 0, A_BYTES + B_BYTES, A_MOVED_BYTES + B_MOVED_BYTES, "dtcm");
    bare_end(&b);
}

// Windows that are clipped at the borders: 28 x 28 of the 30 x 30 elements that 10 x 10 of them have are inside.
Test(bare_memories, clipped_windows_count_as_what_they_read) {
    static const char padded[] = "module \"m\"\n"
                                 "graph @main(%x: f32[1,1,12,12], %w: f32[1,1,3,3]) {\n"
                                 "  %a = max_pool(%x) {kernel_shape = [3, 3]}\n"
                                 "  %b = conv(%a, %w, _) {pads = [1, 1, 1, 1]}\n"
                                 "  %c = max_pool(%b) {kernel_shape = [10, 10]}\n"
                                 "  return %c\n"
                                 "}\n";
    char target[512];
    bare_built b = {0};
    assert_ok(bare_build(&b, padded, board(target, 4096, "dtcm", 400, "8e8"), "m"));
    double moved = share_of(&b, "dtcm")->moved_bytes;
    cr_expect(moved >= 400 + 28 * 28 * 4 && moved <= 400 + 30 * 30 * 4, "%g", moved);
    cr_expect_eq(share_of(&b, "sram")->moved_bytes, 400 + 400);
    bare_end(&b);
}

// External memory takes what has no room in the board's own, and of that what moves least.
Test(bare_memories, a_slow_memory_holds_what_does_not_fit) {
    char target[512];
    bare_built b = build(board(target, 4096, "external", 1 << 20, "1e7"));
    check_shares(&b, A_BYTES + B_BYTES, A_MOVED_BYTES + B_MOVED_BYTES, 0, 0, "external");
    bare_end(&b);
    // Inputs and outputs are in the board's own memory (every one from a multiple of 8 on).
    unsigned fixed = INPUT_BYTES + OUTPUT_BYTES;
    b = build(board(target, fixed + A_BYTES, "external", 1 << 20, "1e7"));
    check_shares(&b, A_BYTES, A_MOVED_BYTES, B_BYTES, B_MOVED_BYTES, "external");
    bare_end(&b);
    b = build(board(target, fixed, "external", 1 << 20, "1e7"));
    check_shares(&b, 0, 0, A_BYTES + B_BYTES, A_MOVED_BYTES + B_MOVED_BYTES, "external");
    bare_end(&b);
}

Test(bare_memories, equally_fast_memories_are_used_where_the_own_one_is_full) {
    char target[512];
    bare_built b = build(board(target, 4096, "sram2", 4096, "1e8"));
    check_shares(&b, A_BYTES + B_BYTES, A_MOVED_BYTES + B_MOVED_BYTES, 0, 0, "sram2");
    bare_end(&b);
}

Test(bare_memories, what_fits_no_memory_is_refused_with_the_least_that_would_do) {
    char target[512];
    bare_built b = {0};
    // The larger value fits the other memory, so that the smaller one alone is in the own one.
    unsigned least = INPUT_BYTES + OUTPUT_BYTES + B_BYTES;
    char expected[64];
    snprintf(expected, sizeof(expected), "(%u bytes)", least);
    assert_fails(try_build(&b, board(target, least - 1, "dtcm", A_BYTES, "8e8")),
                 BERTH_OUT_OF_MEMORY, expected);
    bare_end(&b);
    b = build(board(target, least, "dtcm", A_BYTES, "8e8"));
    bare_end(&b);
}

// Names of memories that C does not take, and two that are one in C.
Test(bare_memories, hostile_names_of_memories_stay_names) {
    static const char text[] =
        "{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "
        "\"cortex-m4\"}}], "
        "\"memories\": [{\"name\": \"sram\", \"capacity_bytes\": 4096, \"reached_by\": [\"mcu\"]}, "
        "{\"name\": \"a-1\", \"capacity_bytes\": 256, \"bandwidth_bytes_per_s\": 1e10, "
        "\"latency_ns\": 0, \"reached_by\": [\"mcu\"]}, "
        "{\"name\": \"A.1\", \"capacity_bytes\": 400, \"bandwidth_bytes_per_s\": 1e9, "
        "\"latency_ns\": 0, \"reached_by\": [\"mcu\"]}]}";
    char folder[64];
    bare_built b = build(text);
    make_folder(folder);
    write_files(folder, b.files, b.count);
    shell("cd %s && gcc " BARE_WARNINGS
          " -O1 -DM_IN_A_1_MEMORY=one -DM_IN_A_1_2_MEMORY=two -c m.c m_weights.c && "
          "nm m.o | grep -q 'U one' && nm m.o | grep -q 'U two' && ! nm m.o | grep -i ' [bd] '",
          folder);
    remove_tree(folder);
    bare_end(&b);
}

// Both values of 100 that %b and %c read nine times are in a fast memory that has room for one, where the steps run branch
// by branch: which needs more of the other memory than the order with the least peak, in which both are live when
// %i, of 400 values, ends. Where there is no room for that, one of them is in the other memory.
Test(bare_memories, steps_run_in_the_order_in_which_values_wait_least) {
    static const char branches[] =
        "module \"m\"\n"
        "graph @main(%x: f32[1,1,22,22], %v: f32[2,1,3,3], %w: f32[2,1,3,3]) {\n"
        "  %i = max_pool(%x) {kernel_shape = [3, 3]}\n"
        "  %h = max_pool(%i) {kernel_shape = [11, 11]}\n"
        "  %g = average_pool(%i) {kernel_shape = [11, 11]}\n"
        "  %b = conv(%h, %v, _) {pads = [1, 1, 1, 1]}\n"
        "  %c = conv(%g, %w, _) {pads = [1, 1, 1, 1]}\n"
        "  %s = add(%b, %c)\n"
        "  %o = max_pool(%s) {kernel_shape = [10, 10]}\n"
        "  return %o\n"
        "}\n";
    enum { FIXED_BYTES = (22 * 22 + 2 * 9 + 2 * 9 + 2) * 4, I_BYTES = 1600, ONE_BYTES = 400 };
    char target[512];
    bare_built b = {0};
    assert_ok(bare_build(&b, branches, board(target, 16384, "dtcm", ONE_BYTES, "8e8"), "m"));
    cr_expect(b.memory->ordered_for_memories);
    double both = share_of(&b, "dtcm")->moved_bytes;
    cr_expect(strstr(bare_text_of(&b, "m.h"), "#define M_ARENA_DTCM_BYTES 400\n"));
    cr_expect(strstr(bare_text_of(&b, "m.h"), "not in that of the least peak. */"));
    bare_end(&b);
    // %i, and %h or %g beside it, of which one is in the fast memory.
    unsigned least = FIXED_BYTES + 16 + I_BYTES + ONE_BYTES;
    b = (bare_built){0};
    assert_ok(bare_build(&b, branches, board(target, least, "dtcm", ONE_BYTES, "8e8"), "m"));
    cr_expect_not(b.memory->ordered_for_memories);
    cr_expect_lt(share_of(&b, "dtcm")->moved_bytes, 0.6 * both, "%g of %g",
                 share_of(&b, "dtcm")->moved_bytes, both);
    bare_end(&b);
}
