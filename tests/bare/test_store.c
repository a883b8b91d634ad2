// Constants that flash has no room for, read from a store by a function of the application.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ir/text.h"
#include "tests/bare/sources.h"
#include "tests/bare/support.h"
#include "tests/check.h"

// Three convolutions.
enum { W0_BYTES = 8 * 8 * 9 * 4, W1_BYTES = 8 * 8 * 4, W2_BYTES = 16 * 8 * 9 * 4 };
enum { ALL_BYTES = W0_BYTES + W1_BYTES + W2_BYTES };

static const char *convolutions(berth_arena *arena) {
    int64_t seed = 7;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: f32[1,8,6,6]) {\n");
    sources_add_constant(&text, "w0", "f32[8,8,3,3]", 8 * 8 * 9, &seed);
    sources_add_constant(&text, "w1", "f32[8,8,1,1]", 8 * 8, &seed);
    sources_add_constant(&text, "w2", "f32[16,8,3,3]", 16 * 8 * 9, &seed);
    berth_strbuf_add(&text, "  %a = conv(%x, %w0, _) {pads = [1, 1, 1, 1]}\n"
                            "  %b = relu(%a)\n"
                            "  %c = conv(%b, %w1, _)\n"
                            "  %d = tanh(%c)\n"
                            "  %e = conv(%d, %w2, _)\n"
                            "  return %e\n"
                            "}\n");
    return berth_strbuf_text(&text);
}

static const char *board(berth_arena *arena, unsigned ram, unsigned flash, unsigned store) {
    return berth_arena_printf(
        arena,
        "{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "
        "\"cortex-m4\"}}], "
        "\"memories\": [{\"name\": \"sram\", \"capacity_bytes\": %u, \"reached_by\": [\"mcu\"]}, "
        "{\"name\": \"flash\", \"holds\": \"constants\", \"capacity_bytes\": %u, \"reached_by\": "
        "[\"mcu\"]}, {\"name\": \"spi\", \"scope\": \"store\", \"capacity_bytes\": %u, "
        "\"bandwidth_bytes_per_s\": 1e7, \"latency_ns\": 1000, \"reached_by\": [\"mcu\"]}]}",
        ram, flash, store);
}

typedef struct outcome {
    unsigned long long stored, in_flash, ram;
} outcome;

static unsigned long long number_behind(const char *text, const char *what) {
    const char *at = strstr(text, what);
    unsigned long long value = 0;
    cr_assert(!at || sscanf(at + strlen(what), "%llu", &value) == 1);
    return value;
}

typedef const char *(*make_text)(berth_arena *arena);

// Builds, runs here (and on a board, if it is asked), compares, and says what lies where.
static outcome run_text(make_text text, unsigned ram, unsigned flash, bool on_board) {
    sources s = {.fit = true};
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    char folder[64];
    make_folder(folder);
    assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
    s.text = text(s.arena);
    assert_ok(sources_compile(&s, board(s.arena, ram, flash, 1 << 20), &program, &memory));
    sources_print(&s, program, memory, folder);
    sources_run_natively(&s, folder);
    if (on_board && shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0)
        sources_run_on_board(&s, folder, "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -Os", "an386.ld",
                             "mps2-an386");
    outcome found = {0};
    unsigned long long file_bytes = 0;
    for (uint32_t i = 0; i < s.file_count; ++i) {
        if (strcmp(s.files[i].name, "m_store.bin") == 0) file_bytes = s.files[i].size_bytes;
        if (strcmp(s.files[i].name, "m.h") != 0) continue;
        found = (outcome){number_behind(s.files[i].text, "#define M_STORE_BYTES "),
                          number_behind(s.files[i].text, "#define M_CONSTANT_BYTES "),
                          number_behind(s.files[i].text, "#define M_RAM_BYTES ")};
    }
    cr_expect_eq(file_bytes, found.stored);
    remove_tree(folder);
    berth_fitted_release(&s.fitted);
    berth_arena_destroy(s.arena);
    return found;
}

static outcome run(unsigned ram, unsigned flash, bool on_board) {
    return run_text(convolutions, ram, flash, on_board);
}

Test(bare_store, holds_what_flash_has_no_room_for) {
    outcome all = run(1 << 16, ALL_BYTES, false);
    cr_expect_eq(all.stored, 0);
    cr_expect_eq(all.in_flash, ALL_BYTES);
    // A byte less: the smallest is read, which takes least.
    outcome one = run(1 << 16, ALL_BYTES - 1, true);
    cr_expect_eq(one.stored, W1_BYTES, "%llu", one.stored);
    cr_expect_eq(one.in_flash, W0_BYTES + W2_BYTES, "%llu", one.in_flash);
    cr_expect_leq(one.ram, all.ram + W1_BYTES, "%llu, %llu", one.ram, all.ram);
    // Room for one of the smaller ones and not for both.
    outcome two = run(1 << 16, W0_BYTES, false);
    cr_expect_eq(two.in_flash, W0_BYTES, "%llu", two.in_flash);
    cr_expect_eq(two.stored, W1_BYTES + W2_BYTES, "%llu", two.stored);
    outcome none = run(1 << 16, 1, true);
    cr_expect_eq(none.stored, ALL_BYTES, "%llu", none.stored);
    cr_expect_eq(none.in_flash, 0);
}

// With RAM for its values and one of the smaller ones alone, the largest stays in flash.
Test(bare_store, keeps_in_flash_what_ram_has_no_room_for) {
    enum { INPUT_BYTES = 8 * 36 * 4, OUTPUT_BYTES = 16 * 16 * 4, VALUE_BYTES = 8 * 36 * 4 };
    unsigned ram = INPUT_BYTES + OUTPUT_BYTES + 2 * VALUE_BYTES + W0_BYTES;
    outcome found = run(ram, W2_BYTES, false);
    cr_expect_eq(found.in_flash, W2_BYTES, "%llu", found.in_flash);
    cr_expect_eq(found.stored, W0_BYTES + W1_BYTES, "%llu", found.stored);
    cr_expect_leq(found.ram, ram - INPUT_BYTES - OUTPUT_BYTES, "%llu", found.ram);
}

// With RAM for a part of them alone, and no flash, it is read in pieces.
Test(bare_store, is_read_in_pieces_where_ram_has_no_room_for_all) {
    enum { INPUT_BYTES = 8 * 36 * 4, OUTPUT_BYTES = 16 * 16 * 4, VALUE_BYTES = 8 * 36 * 4 };
    unsigned ram = INPUT_BYTES + OUTPUT_BYTES + 2 * VALUE_BYTES + W0_BYTES;
    outcome found = run(ram, 1, true);
    cr_expect_eq(found.stored, ALL_BYTES, "%llu", found.stored);
    cr_expect_eq(found.in_flash, 0);
    cr_expect_leq(found.ram, ram - INPUT_BYTES - OUTPUT_BYTES, "%llu", found.ram);
}

enum { FROM = 64, TO = 90, ROWS = 3, COLUMN_BYTES = FROM * 4 };

// A product whose columns are no whole number of pieces, with what is per column behind it.
static const char *product(berth_arena *arena, int rows) {
    int64_t seed = 3;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text, "module \"m\"\ngraph @main(%%x: f32[%d,64]) {\n", rows);
    sources_add_constant(&text, "w", "f32[64,90]", FROM * TO, &seed);
    sources_add_constant(&text, "b", "f32[90]", TO, &seed);
    sources_add_constant(&text, "v", "f32[1,90]", TO, &seed);
    berth_strbuf_add(&text, "  %p = matmul(%x, %w)\n  %q = add(%p, %b)\n  %r = tanh(%q)\n"
                            "  %y = mul(%v, %r)\n  return %y\n}\n");
    return berth_strbuf_text(&text);
}

static const char *row(berth_arena *arena) {
    return product(arena, 1);
}

static const char *rows(berth_arena *arena) {
    return product(arena, ROWS);
}

Test(bare_store, products_are_read_in_columns) {
    enum { PRODUCT_BYTES = (FROM * TO + 2 * TO) * 4 };
    unsigned io = (FROM + TO) * 4, columns = 13;
    outcome one = run_text(row, io + columns * COLUMN_BYTES, 1, true);
    cr_expect_eq(one.stored, PRODUCT_BYTES, "%llu", one.stored);
    cr_expect_leq(one.ram, columns * COLUMN_BYTES, "%llu", one.ram);
    // Rows are put together at the end.
    io *= ROWS;
    unsigned parts = ROWS * TO * 4;
    outcome three = run_text(rows, io + parts + columns * COLUMN_BYTES, 1, false);
    cr_expect_eq(three.stored, PRODUCT_BYTES, "%llu", three.stored);
    cr_expect_leq(three.ram, parts + columns * COLUMN_BYTES, "%llu", three.ram);
}

// A convolution of quantised numbers, whose result goes on as bytes.
static const char *quantised(berth_arena *arena) {
    int64_t seed = 5;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: u8[1,8,6,6]) {\n");
    sources_add_constant(&text, "w", "i8[22,8,3,3]", 22 * 8 * 9, &seed);
    sources_add_constant(&text, "s", "f32[22,1,1]", 22, &seed);
    berth_strbuf_add(
        &text, "  %k = constant() {value = u8[] (3)}\n  %t = constant() {value = f32[] (0.01)}\n"
               "  %z = constant() {value = u8[] (128)}\n"
               "  %p = conv_integer(%x, %w, %k, _)\n  %q = cast(%p) {to = f32}\n"
               "  %r = mul(%q, %s)\n  %y = quantize_linear(%r, %t, %z)\n  return %y\n}\n");
    return berth_strbuf_text(&text);
}

Test(bare_store, convolutions_of_bytes_are_read_in_channels) {
    enum { CHANNEL_BYTES = 8 * 9, IO_BYTES = 8 * 36 + 22 * 16, CHANNELS = 22 };
    unsigned room = 8 * CHANNEL_BYTES + 256;
    outcome found = run_text(quantised, IO_BYTES + room, 1, true);
    cr_expect_geq(found.stored, CHANNELS * CHANNEL_BYTES, "%llu", found.stored);
    cr_expect_leq(found.ram, room, "%llu", found.ram);
    cr_expect_lt(found.ram, CHANNELS * CHANNEL_BYTES);
}

// Returns how many bytes would do.
static unsigned long long expect_refused(unsigned ram, unsigned flash, unsigned store,
                                         const char *text) {
    sources s = {.fit = true};
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
    s.text = convolutions(s.arena);
    berth_status status = sources_compile(&s, board(s.arena, ram, flash, store), &program, &memory);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    cr_expect(strstr(berth_status_message(status), text), "%s", berth_status_message(status));
    unsigned long long least = number_behind(berth_status_message(status), "(");
    // What the error says, whichever plan was tried last.
    if (s.fitted.result.over_bytes) {
        cr_expect_eq(s.fitted.result.over_memory, 1);
        cr_expect_eq(s.fitted.result.over_bytes, least - flash);
    }
    berth_status_free(status);
    berth_fitted_release(&s.fitted);
    berth_arena_destroy(s.arena);
    return least;
}

Test(bare_store, refusals_say_what_would_do) {
    expect_refused(
        1 << 16, W0_BYTES + W1_BYTES, W2_BYTES - 1,
        "memory \"spi\" needs 4608 bytes for the constants of this model that \"flash\" has "
        "no room for; its limit is 4607 bytes");
    // RAM has no room for a channel of a 3 x 3 convolution beside the values: flash must have them.
    enum { INPUT_BYTES = 8 * 36 * 4, OUTPUT_BYTES = 16 * 16 * 4, VALUE_BYTES = 8 * 36 * 4 };
    unsigned ram = INPUT_BYTES + OUTPUT_BYTES + VALUE_BYTES + 8 * 9 * 4 - 16;
    unsigned long long least = expect_refused(ram, 1, 1 << 20, "memory \"flash\"");
    cr_expect_geq(least, W2_BYTES, "%llu", least);
    cr_expect_leq(least, W0_BYTES + W2_BYTES, "%llu", least);
    outcome found = run(ram, (unsigned)least, false);
    cr_expect_eq(found.in_flash, least, "%llu", found.in_flash);
}

// The application's function that fails is an error of the run, at once.
Test(bare_store, a_failed_read_ends_the_run) {
    static const char caller[] =
        "#include \"m.h\"\n"
        "int m_read_store(void *to, uint32_t offset, uint32_t bytes) {\n"
        "    (void)to; (void)offset; (void)bytes; return 1;\n"
        "}\n"
        "static float x[288], y[256];\n"
        "int main(void) { m_inputs in = {x}; m_outputs out = {y}; return m_run(&in, &out); }\n";
    bare_built b = {0};
    char folder[64], path[128];
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(bare_build(&b, convolutions(arena), board(arena, 1 << 16, 1, 1 << 20), "m"));
    make_folder(folder);
    write_files(folder, b.files, b.count);
    snprintf(path, sizeof(path), "%s/main.c", folder);
    write_bytes(path, caller, sizeof(caller) - 1);
    shell("cd %s && gcc " BARE_WARNINGS " -O1 -o program *.c -lm", folder);
    cr_expect_eq(shell_status("cd %s && ./program", folder), 2);
    remove_tree(folder);
    bare_end(&b);
    berth_arena_destroy(arena);
}

Test(bare_store, shared_libraries_have_none) {
    bare_built b = {0};
    berth_arena *arena = NULL;
    const berth_bare_file *files = NULL;
    uint32_t count = 0;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(bare_build(&b, convolutions(arena), board(arena, 1 << 16, 1, 1 << 20), "m"));
    berth_toolchain_options toolchain = {0};
    berth_bare_options options = {.name = "m", .toolchain = &toolchain};
    berth_status status = berth_bare_print(b.program, &options, arena, &files, &count);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect(strstr(berth_status_message(status), "all constants inside"));
    berth_status_free(status);
    bare_end(&b);
    berth_arena_destroy(arena);
}
