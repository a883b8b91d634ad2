// Sums of bytes in the forms that plain C has for them: what they compute is what the interpreter
// computes, natively (C99 alone) and on Cortex-M4 and M55 (SMLAD), and that form is what was printed;
// results over operands, and channels in slices.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/bare/sources.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "tests/lower/op_case.h"

#define PAIRS "berth_sum_pairs("
#define ROWS "berth_sum_rows("
#define WINDOWS "berth_sum_windows("
#define BYTES "berth_sum_bytes("

typedef struct row {
    const char *text, *calls;
} row;

static const row rows[] = {
    // one column, an odd number, an even one; depths that are no multiple of four; padding; strides
    {"conv_integer | u8[1,5,1,1] i8[6,5,1,1]! |", PAIRS},
    {"conv_integer | u8[1,8,5,5] i8[4,8,1,1]! u8[]=200 |", PAIRS},
    {"conv_integer | u8[1,8,10,10] i8[4,8,1,1]! u8[]=200 | strides=2,2", PAIRS},
    {"conv_integer | u8[1,3,9,8] i8[4,3,3,3]! u8[]=131 | pads=1,1,1,1", PAIRS},
    {"conv_integer | u8[1,4,10,10] i8[8,4,3,3]! | pads=0,0,1,1 strides=2,2", PAIRS},
    {"conv_integer | i8[2,6,7,7] i8[2,6,2,5]! i8[]=-128 | pads=1,2,0,2 dilations=1,2", PAIRS},
    {"conv_integer | u8[1,1,20,9] i8[4,1,10,4]! u8[]=7 | pads=4,1,5,1 strides=2,2", PAIRS},
    {"conv_integer | u8[1,16,33] i8[6,16,3]! u8[]=255 | pads=1,1", PAIRS},
    {"conv_integer | u8[1,2,3,4,6] i8[2,2,2,3,3]! | pads=1,1,1,0,1,1", PAIRS},
    {"conv_integer | u8[1,8,5,5] u8[4,8,1,1]! u8[]=3 u8[]=128 |", PAIRS},
    {"matmul_integer | u8[6,35] i8[35,8]! u8[]=9 |", PAIRS},
    {"matmul_integer | u8[1,67] i8[67,11]! u8[]=204 |", ROWS},
    {"matmul_integer | u8[1,128] i8[128,32]! |", ROWS},
    {"matmul_integer | u8[1,7] i8[7,9]! u8[]=11 |", ROWS},
    {"matmul_integer | u8[1,23] i8[23,6]! u8[]=90 |", ROWS},
    {"conv_integer | u8[1,3,9,8] i8[3,1,3,3]! | pads=1,1,1,1 group=3", WINDOWS},
    {"conv_integer | u8[1,2,9,9] i8[2,1,3,3]! | pads=0,0,1,1 strides=2,2 group=2", WINDOWS},
    {"conv_integer | u8[1,2,64,61] i8[2,1,3,3]! | pads=1,1,1,1 group=2", WINDOWS},
    {"conv_integer | u8[2,2,7,70] i8[2,1,3,3]! | pads=2,0,2,0 group=2", WINDOWS},
    {"conv_integer | u8[1,4,8,8] i8[4,1,5,2]! | pads=2,1,2,0 group=4", WINDOWS},
};

enum { row_count = sizeof(rows) / sizeof(rows[0]) };

static berth_status build_case(void *user) {
    sources *s = user;
    berth_func_id function = BERTH_NONE;
    berth_tensor given[10] = {{0}};
    s->module = berth_module_create(s->arena, "case");
    BERTH_TRY(op_case_build_given(s->text, s->module, &function, given));
    return sources_expect(s, function);
}

ParameterizedTestParameters(bare_sums, compute_what_the_interpreter_does) {
    static int indices[row_count];
    for (int i = 0; i < row_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, row_count);
}

static void compile_row(sources *s, const row *r, const char *target, const char *calls,
                        const char *folder) {
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    *s = (sources){.text = r->text};
    assert_ok(berth_arena_create(berth_allocator_system(), &s->arena));
    assert_ok(berth_arena_try(s->arena, build_case, s));
    assert_ok(bare_compile(s->module, target, false, &program, &memory));
    sources_print(s, program, memory, folder);
    const char *function = strstr(sources_code(s), "static void u");
    cr_expect(function && strstr(function, calls), "%s does not call %s", s->text, calls);
    cr_expect(function && !strstr(function, "(int32_t)0;"), "%s: a loop sets sums to 0", s->text);
    sources_run_natively(s, folder);
}

ParameterizedTest(int *index, bare_sums, compute_what_the_interpreter_does, .timeout = 300) {
    const row *r = &rows[*index];
    sources s;
    char folder[64];
    make_folder(folder);
    compile_row(&s, r, BARE_CORTEX_M4, r->calls, folder);
    if (shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0) {
        sources_run_on_board(&s, folder, "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -Os", "an386.ld",
                             "mps2-an386");
        sources_run_on_board(&s, folder, "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -O0", "an386.ld",
                             "mps2-an386");
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -O2 -fno-omit-frame-pointer",
                             "an547.ld", "mps3-an547");
    }
    berth_arena_destroy(s.arena);
    remove_tree(folder);
}

ParameterizedTestParameters(bare_sums, compute_the_same_with_helium) {
    static int indices[row_count];
    for (int i = 0; i < row_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, row_count);
}

// Clang has fewer registers for assembly, and other attributes.
static void compile_with_clang_for_helium(const char *folder) {
    static const char clang[] =
        "clang --target=thumbv8.1m.main-none-eabi -mcpu=cortex-m55 -mfloat-abi=hard -std=c99 -Wall "
        "-Wextra -Werror -isystem \"$(dirname \"$(arm-none-eabi-gcc "
        "-print-file-name=libc.a)\")/../include\" -c -o clang.o";
    if (shell_status("cd %s && echo '#include <arm_mve.h>\n#include <math.h>\n#include <string.h>' "
                     ">probe.c && %s probe.c 2>probe.log",
                     folder, clang) != 0)
        return;
    shell("cd %s && %s -Os m.c && %s -O3 m.c", folder, clang, clang);
}

// The target says that it has Helium: strips of bytes, loops in vectors; on the core, and as C99. With loops
// unrolled a compiler sees each store, and which ones it believes to be read.
ParameterizedTest(int *index, bare_sums, compute_the_same_with_helium, .timeout = 300) {
    const row *r = &rows[*index];
    bool bytes = strcmp(r->calls, PAIRS) == 0;
    sources s;
    char folder[64];
    make_folder(folder);
    compile_row(&s, r, BARE_CORTEX_M55, bytes ? BYTES : r->calls, folder);
    if (shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0) {
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -O3 -funroll-loops",
                             "an547.ld", "mps3-an547");
        compile_with_clang_for_helium(folder);
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -Os", "an547.ld",
                             "mps3-an547");
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -O2 -fno-omit-frame-pointer",
                             "an547.ld", "mps3-an547");
    }
    berth_arena_destroy(s.arena);
    remove_tree(folder);
}

// ---- whole graphs -------------------------------------------------------------------------------

static void add_layer(berth_strbuf *out, int index, int inputs, int outputs, int64_t *seed) {
    char name[16], type[32];
    snprintf(name, sizeof(name), "w%d", index);
    snprintf(type, sizeof(type), "i8[%d,%d,1,1]", outputs, inputs);
    sources_add_constant(out, name, type, inputs * outputs, seed);
    berth_strbuf_addf(out,
                      "  %%s%d = conv_integer(%%v%d, %%w%d)\n"
                      "  %%f%d = cast(%%s%d) {to = f32}\n"
                      "  %%v%d = quantize_linear(%%f%d, %%scale, %%zero)\n",
                      index, index, index, index, index, index + 1, index);
}

// Pixel by pixel: values of 144, 288 and 144 bytes between input and output, each over the one before.
// Beside each other two would need 432.
Test(bare_sums, pointwise_layers_write_over_what_they_read) {
    static const int channels[] = {4, 4, 8, 4, 6};
    berth_arena *arena = NULL;
    int64_t seed = 1;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: u8[1,4,6,6]) {\n"
                            "  %scale = constant() {value = f32[] (150.0)}\n"
                            "  %zero = constant() {value = u8[] (3)}\n");
    for (int i = 0; i < 4; ++i) add_layer(&text, i, channels[i], channels[i + 1], &seed);
    berth_strbuf_add(&text, "  return %v4\n}\n");
    cr_expect_eq(sources_arena_bytes(berth_strbuf_text(&text), "cpu -arch=cortex-m4"), 288);
    berth_arena_destroy(arena);
}

// A result of floats, four times as long as the bytes that it is computed from, is not written over those that are
// still to be read, though both have as many elements.
Test(bare_sums, floats_are_not_written_over_bytes) {
    berth_arena *arena = NULL;
    int64_t seed = 3;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: u8[1,4,12,8]) {\n"
                            "  %scale = constant() {value = f32[] (150.0)}\n"
                            "  %zero = constant() {value = u8[] (3)}\n"
                            "  %pads = constant() {value = i64[8] (0, 0, 1, 1, 0, 0, 1, 1)}\n");
    add_layer(&text, 0, 4, 12, &seed);
    sources_add_constant(&text, "w1", "i8[4,12,1,1]", 48, &seed);
    berth_strbuf_add(&text, "  %s1 = conv_integer(%v1, %w1)\n  %f1 = cast(%s1) {to = f32}\n"
                            "  %r1 = relu(%f1)\n  %p = pad(%r1, %pads) {mode = \"reflect\"}\n"
                            "  return %p\n}\n");
    sources_arena_bytes(berth_strbuf_text(&text), "cpu -arch=cortex-m4");
    berth_arena_destroy(arena);
}

// One function serves products of other depths and rows, so that no compiler knows either.
Test(bare_sums, products_share_rows_with_helium) {
    int64_t seed = 5;
    sources s = {.text = NULL};
    char folder[64];
    make_folder(folder);
    assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
    berth_strbuf text = berth_strbuf_make(s.arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: u8[1,14]) {\n"
                            "  %scale = constant() {value = f32[] (900.0)}\n"
                            "  %zero = constant() {value = u8[] (100)}\n");
    sources_add_constant(&text, "w0", "i8[14,7]", 98, &seed);
    sources_add_constant(&text, "w1", "i8[7,12]", 84, &seed);
    berth_strbuf_add(&text, "  %s0 = matmul_integer(%x, %w0)\n  %f0 = cast(%s0) {to = f32}\n"
                            "  %q = quantize_linear(%f0, %scale, %zero)\n"
                            "  %s1 = matmul_integer(%q, %w1, %zero)\n  return %s1\n}\n");
    s.text = berth_strbuf_text(&text);
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    assert_ok(sources_compile(&s, BARE_CORTEX_M55, &program, &memory));
    sources_print(&s, program, memory, folder);
    const char *last = NULL;
    for (const char *at = sources_code(&s); (at = strstr(at, ROWS)) != NULL; ++at) last = at;
    cr_expect(last && strstr(last, "vstrwq_s32("), "12 results are not stored in vectors");
    sources_run_natively(&s, folder);
    if (shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0) {
        // Assembly that takes nearly all registers: however it is compiled.
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -Os", "an547.ld",
                             "mps3-an547");
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -O3 -fno-omit-frame-pointer",
                             "an547.ld", "mps3-an547");
    }
    remove_tree(folder);
    berth_arena_destroy(s.arena);
}

typedef struct form {
    const char *text, *calls, *code;
} form;

// Code for Helium has the form, and computes what the interpreter does.
static void expect_forms(const form *forms, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const row r = {forms[i].text, forms[i].calls};
        sources s;
        char folder[64];
        make_folder(folder);
        compile_row(&s, &r, BARE_CORTEX_M55, r.calls, folder);
        cr_expect(strstr(strstr(sources_code(&s), "static void u"), forms[i].code), "%s: no %s",
                  r.text, forms[i].code);
        if (shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0) {
            sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -Os", "an547.ld",
                                 "mps3-an547");
            // Nine weights in registers: there has to be one for everything else, too.
            if (strcmp(r.calls, WINDOWS) == 0)
                sources_run_on_board(&s, folder,
                                     "-mcpu=cortex-m55 -mfpu=auto -O3 -fno-omit-frame-pointer",
                                     "an547.ld", "mps3-an547");
        }
        berth_arena_destroy(s.arena);
        remove_tree(folder);
    }
}

// Windows of one element go on from row to row: 25 results share a strip, where a row of the image has 5. Others
// end with the row.
Test(bare_sums, strips_of_bytes_have_many_results) {
    static const form forms[] = {
        {"conv_integer | u8[1,8,7,25] i8[4,8,1,1]! u8[]=200 |", BYTES, ", 8, 25, "},
        {"conv_integer | u8[1,8,5,5] i8[4,8,1,1]! u8[]=200 |", BYTES, ", 8, 25, "},
        {"conv_integer | u8[1,8,10,10] i8[4,8,1,1]! u8[]=200 | strides=2,2", BYTES, ", 8, 5, "},
        {"conv_integer | u8[1,4,12,12] i8[4,4,3,3]! u8[]=9 | pads=1,1,1,1", BYTES, ", 12, 12, "},
        // 32 results of 96 bytes would take more than 2048
        {"conv_integer | u8[1,96,4,8] i8[2,96,1,1]! u8[]=9 |", BYTES, ", 96, 16, "},
    };
    expect_forms(forms, sizeof(forms) / sizeof(forms[0]));
}

// Copies between bytes have a lane for each, 16 in a row or 8 that lie apart; what is the same in all lanes is loaded
// before the loop.
Test(bare_sums, bytes_move_in_vectors_of_bytes) {
    static const form forms[] = {
        {"conv_integer | u8[1,16,3,3] i8[2,16,1,1]! u8[]=200 |", BYTES,
         "vldrbq_gather_offset_u16("},
        {"conv_integer | u8[1,14,3,3] i8[2,14,1,1]! u8[]=200 |", BYTES,
         "vldrbq_gather_offset_z_u16("},
        {"conv_integer | u8[1,2,9,21] i8[2,1,3,3]! | pads=1,1,1,1 group=2", WINDOWS, "vldrbq_u8("},
        {"conv_integer | u8[1,2,9,12] i8[2,1,3,3]! | pads=1,1,1,1 group=2", WINDOWS,
         "vldrbq_z_u8("},
        {"conv_integer | u8[1,4,4,4] i8[4,4,3,3]! u8[]=9 | pads=1,1,1,1", BYTES,
         "const int32_t same0 = "},
    };
    expect_forms(forms, sizeof(forms) / sizeof(forms[0]));
}

// Of a product's 24 sums a row that a product of one column reads, none has a place in small code: 240 bytes of the
// layer before are all that is kept. Rows, both kinds of products, a sum that another operation reads, too.
Test(bare_sums, sums_that_are_read_once_have_no_place) {
    static const char *const bodies[] = {
        "  %h = matmul(%a, %w1)\n  %r = relu(%h)\n  %y = matmul(%r, %w2)\n  %o = sigmoid(%y)\n"
        "  return %o\n",
        "  %h = gemm(%a, %w3, %b1) {transB = 1, alpha = 0.5}\n  %r = tanh(%h)\n"
        "  %y = gemm(%r, %w4, %b2) {transB = 1, beta = 2.0}\n  return %y\n",
        "  %h = matmul(%a, %w1)\n  %r = add(%b1, %h)\n  %y = matmul(%r, %w5)\n  return %y\n",
        "  %h = matmul(%a, %w1)\n  %r = relu(%h)\n  %y = matmul(%r, %w2)\n  %o = add(%h, %y)\n"
        "  return %o\n"};
    // The third one has a result of a vector's product; in the last one the sums are read twice.
    static const uint64_t bytes[] = {240, 240, 240, 0};
    for (int i = 0; i < 4; ++i) {
        berth_arena *arena = NULL;
        int64_t seed = 11;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_strbuf text = berth_strbuf_make(arena);
        berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: f32[3,4]) {\n");
        sources_add_constant(&text, "w0", "f32[4,20]", 80, &seed);
        sources_add_constant(&text, "w1", "f32[20,24]", 480, &seed);
        sources_add_constant(&text, "w2", "f32[24,1]", 24, &seed);
        sources_add_constant(&text, "w3", "f32[24,20]", 480, &seed);
        sources_add_constant(&text, "w4", "f32[1,24]", 24, &seed);
        sources_add_constant(&text, "w5", "f32[24]", 24, &seed);
        sources_add_constant(&text, "b1", "f32[24]", 24, &seed);
        sources_add_constant(&text, "b2", "f32[1]", 1, &seed);
        berth_strbuf_add(&text, "  %z = matmul(%x, %w0)\n  %a = relu(%z)\n");
        berth_strbuf_addf(&text, "%s}\n", bodies[i]);
        uint64_t small = sources_bytes((sources){.text = berth_strbuf_text(&text), .small = true},
                                       "cpu -arch=cortex-m4");
        if (bytes[i]) cr_expect_eq(small, bytes[i], "%d: %llu bytes", i, (unsigned long long)small);
        berth_arena_destroy(arena);
    }
}

// In small code both operands of a vector's product are read in steps of one, four elements in a turn where there are
// many products, else two.
Test(bare_sums, small_code_reads_rows_of_weights_for_a_vector) {
    static const char *const products[] = {"matmul(%x, %w)", "gemm(%x, %w, %b)"};
    static const int columns[] = {80, 10};
    for (int i = 0; i < 4; ++i) {
        sources s = {.small = true};
        int64_t seed = 6;
        char folder[64], type[32];
        int n = columns[i % 2];
        make_folder(folder);
        assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
        berth_strbuf text = berth_strbuf_make(s.arena);
        berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: f32[1,64]) {\n");
        snprintf(type, sizeof(type), "f32[64,%d]", n);
        sources_add_constant(&text, "w", type, 64 * n, &seed);
        snprintf(type, sizeof(type), "f32[%d]", n);
        sources_add_constant(&text, "b", type, n, &seed);
        berth_strbuf_addf(&text, "  %%y = %s\n  return %%y\n}\n", products[i / 2]);
        s.text = berth_strbuf_text(&text);
        const berth_program *program = NULL;
        const berth_memory_report *memory = NULL;
        assert_ok(sources_compile(&s, BARE_CORTEX_M4, &program, &memory));
        sources_print(&s, program, memory, folder);
        const char *function = strstr(sources_code(&s), "static void u");
        const char *next = n == 80 ? "* 64 + i1 * 4 + 3)]" : "* 64 + i1 * 2 + 1)]";
        cr_expect(function && strstr(function, next), "%s: no [%s", products[i / 2], next);
        sources_run_natively(&s, folder);
        remove_tree(folder);
        berth_arena_destroy(s.arena);
    }
}

// The same of bytes: nothing is kept between input and output.
Test(bare_sums, integers_that_are_read_once_have_no_place) {
    berth_arena *arena = NULL;
    int64_t seed = 12;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: u8[3,12]) {\n"
                            "  %scale = constant() {value = f32[] (150.0)}\n"
                            "  %zero = constant() {value = u8[] (130)}\n");
    sources_add_constant(&text, "w0", "i8[12,16]", 192, &seed);
    sources_add_constant(&text, "w1", "i8[16,1]", 16, &seed);
    berth_strbuf_add(&text, "  %s0 = matmul_integer(%x, %w0)\n  %f0 = cast(%s0) {to = f32}\n"
                            "  %q = quantize_linear(%f0, %scale, %zero)\n"
                            "  %s1 = matmul_integer(%q, %w1, %zero)\n  return %s1\n}\n");
    cr_expect_eq(sources_bytes((sources){.text = berth_strbuf_text(&text), .small = true},
                               "cpu -arch=cortex-m4"),
                 0);
    berth_arena_destroy(arena);
}

// What a zero point adds to every sum is a constant, which the bias takes in: the weights are multiplied once, and
// one array of i32 is added. On cores with Helium unsigned bytes have one of 128 for that.
Test(bare_sums, sums_of_weights_are_part_of_the_bias) {
    static const struct {
        const char *target, *calls, *x, *w, *bias, *sum;
        int weights, outputs;
    } cases[] = {
        {BARE_CORTEX_M55, BYTES, "u8[1,3,9,8]", "i8[4,3,3,3]", "i32[1,4,1,1]",
         "conv_integer(%x, %w, %zero) {pads = [1, 1, 1, 1]}", 108, 4},
        {BARE_CORTEX_M55, BYTES, "u8[1,8,5,5]", "i8[4,8,1,1]", "i32[1,4,1,1]",
         "conv_integer(%x, %w)", 32, 4},
        {BARE_CORTEX_M4, ROWS, "u8[1,20]", "i8[20,8]", "i32[1,8]", "matmul_integer(%x, %w, %zero)",
         160, 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sources s = {0};
        int64_t seed = 4;
        char folder[64];
        make_folder(folder);
        assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
        berth_strbuf text = berth_strbuf_make(s.arena);
        berth_strbuf_addf(&text, "module \"m\"\ngraph @main(%%x: %s) {\n", cases[i].x);
        sources_add_constant(&text, "w", cases[i].w, cases[i].weights, &seed);
        sources_add_constant(&text, "b", cases[i].bias, cases[i].outputs, &seed);
        berth_strbuf_addf(&text,
                          "  %%zero = constant() {value = u8[] (131)}\n  %%s = %s\n"
                          "  %%y = add(%%s, %%b)\n  return %%y\n}\n",
                          cases[i].sum);
        s.text = berth_strbuf_text(&text);
        const berth_program *program = NULL;
        const berth_memory_report *memory = NULL;
        assert_ok(sources_compile(&s, cases[i].target, &program, &memory));
        sources_print(&s, program, memory, folder);
        const char *function = strstr(sources_code(&s), "static void u");
        cr_assert(function);
        const char *call = strstr(function, cases[i].calls);
        cr_expect(call && !strstr(call + 1, cases[i].calls), "%s: more than one call", s.text);
        const char *added = strstr(function, "const int32_t *");
        cr_expect(added && !strstr(added + 1, "const int32_t *"), "%s: more is added", s.text);
        sources_run_natively(&s, folder);
        remove_tree(folder);
        berth_arena_destroy(s.arena);
    }
}

// Between two convolutions 9216 bytes, of which every channel becomes larger, so that it cannot be written
// over them; input (2304) and output (12544) are the caller's. A memory of 27648 bytes, of which 8192 stay
// free for kernels, has room for half of them.
Test(bare_sums, channels_are_sliced_where_the_memory_is_small) {
    berth_arena *arena = NULL;
    int64_t seed = 2;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: f32[1,4,12,12]) {\n");
    sources_add_constant(&text, "w", "f32[16,4,1,1]", 64, &seed);
    sources_add_constant(&text, "b", "f32[16]", 16, &seed);
    sources_add_constant(&text, "v", "f32[16,1,3,3]", 144, &seed);
    berth_strbuf_add(&text, "  %a = conv(%x, %w, %b)\n  %r = relu(%a)\n"
                            "  %y = conv(%r, %v, _) {group = 16, pads = [2, 2, 2, 2]}\n"
                            "  return %y\n}\n");
    cr_expect_eq(sources_arena_bytes(berth_strbuf_text(&text), "cpu -arch=cortex-m4"), 9216);
    cr_expect_eq(sources_arena_bytes(berth_strbuf_text(&text),
                                     "cpu -arch=cortex-m4 -memory_capacity_bytes=27648"),
                 4608);
    berth_arena_destroy(arena);
}

// 1 x 1 convolutions and depthwise ones of floats, each over what it reads, with tiles and without: values of 4608
// bytes and less between input and output. The largest is all that is needed: what the window of maxima (576) makes
// of 2304 bytes lies in the rest of the place. Every result is the interpreter's.
Test(bare_sums, floats_are_written_over_what_they_read) {
    static const char *const layers[] = {
        "conv(%v0, %w0, _)",
        "conv(%v1, %w1, _) {group = 16, pads = [1, 1, 1, 1]}",
        "conv(%v2, %w2, _)",
        "max_pool(%v3) {kernel_shape = [2, 2], strides = [2, 2]}",
        "conv(%v4, %w3, _) {group = 8, pads = [1, 1, 1, 1], strides = [2, 2]}",
        "conv(%v5, %w4, _)"};
    static const char *const weights[] = {"f32[16,2,1,1]", "f32[16,1,3,3]", "f32[8,16,1,1]",
                                          "f32[8,1,3,3]", "f32[3,8,1,1]"};
    static const int counts[] = {32, 144, 128, 72, 24};
    berth_arena *arena = NULL;
    int64_t seed = 7;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: f32[1,2,12,6]) {\n");
    for (int i = 0; i < 5; ++i) {
        char name[8];
        snprintf(name, sizeof(name), "w%d", i);
        sources_add_constant(&text, name, weights[i], counts[i], &seed);
    }
    for (int i = 0; i < 6; ++i) berth_strbuf_addf(&text, "  %%v%d = %s\n", i + 1, layers[i]);
    berth_strbuf_add(&text, "  return %v6\n}\n");
    for (int small = 0; small < 2; ++small)
        cr_expect_eq(sources_bytes((sources){.text = berth_strbuf_text(&text), .small = small},
                                   "cpu -arch=cortex-m4"),
                     4608);
    berth_arena_destroy(arena);
}

// Between the convolutions there are 2048 bytes in %c, in front of the first one 512 in %p.
static const char *patched_stages(berth_arena *arena) {
    int64_t seed = 5;
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%x: u8[1,3,16,16]) {\n"
                            "  %scale = constant() {value = f32[] (900.0)}\n"
                            "  %zero = constant() {value = u8[] (120)}\n");
    sources_add_constant(&text, "u", "i8[2,3,3,3]", 54, &seed);
    sources_add_constant(&text, "w", "i8[8,2,3,3]", 144, &seed);
    sources_add_constant(&text, "v", "i8[8,1,3,3]", 72, &seed);
    berth_strbuf_add(&text, "  %n = conv_integer(%x, %u, %zero) {pads = [1, 1, 1, 1]}\n"
                            "  %o = cast(%n) {to = f32}\n"
                            "  %p = quantize_linear(%o, %scale, %zero)\n"
                            "  %a = conv_integer(%p, %w, %zero) {pads = [1, 1, 1, 1]}\n"
                            "  %b = cast(%a) {to = f32}\n"
                            "  %c = quantize_linear(%b, %scale, %zero)\n"
                            "  %d = conv_integer(%c, %v, %zero) {group = 8, pads = [1, 1, 1, 1], "
                            "strides = [2, 2]}\n"
                            "  %e = cast(%d) {to = f32}\n"
                            "  %y = quantize_linear(%e, %scale, %zero)\n"
                            "  return %y\n}\n");
    return berth_strbuf_text(&text);
}

// A band of two rows of the result has 128 bytes and needs five rows of %c (640) and seven of %p (224); a tile of four
// rows and columns, of 128 bytes too, nine of each (648) and eleven (242). The parts wait beside each other until the
// last one is done. What is whole before them is there until then.
Test(bare_sums, stages_in_patches_compute_the_same_in_less_memory, .timeout = 300) {
    enum { parts = 4 * 128, p = 512, c = 2048 };
    static const struct {
        const char *patches;
        uint64_t most_bytes;
    } cases[] = {
        {"y=4", 640 + 224 + parts}, {"y=2x2", 648 + 242 + parts}, {"p..y=4", p + 640 + parts}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = patched_stages(arena), *target = "cpu -arch=cortex-m4";
    cr_expect_geq(sources_arena_bytes(text, target), c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
        cr_expect_leq(sources_patched_bytes(text, target, cases[i].patches), cases[i].most_bytes,
                      "%s", cases[i].patches);
    berth_arena_destroy(arena);
}

// %r is 4608 bytes, %b and %c are 9216 each, and %r waits while both are there. Where there is no room for all, it is
// computed from the input again for the product.
Test(bare_sums, values_that_wait_are_computed_again_where_memory_is_short, .timeout = 300) {
    enum { side = 12, map = side * side * 4, io = 2 * map, spare = 512 };
    static const char *const types[] = {"f32[8,1,1,1]", "f32[16,8,3,3]", "f32[16,16,3,3]",
                                        "f32[8,16,3,3]", "f32[1,8,3,3]"};
    static const int counts[] = {8, 1152, 2304, 1152, 72};
    berth_arena *arena = NULL;
    int64_t seed = 9;
    char name[8], target[80];
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text, "module \"m\"\ngraph @main(%%x: f32[1,1,%d,%d]) {\n", side, side);
    for (int i = 0; i < 5; ++i) {
        snprintf(name, sizeof(name), "w%d", i);
        sources_add_constant(&text, name, types[i], counts[i], &seed);
    }
    berth_strbuf_add(&text, "  %a = conv(%x, %w0, _)\n  %r = relu(%a)\n"
                            "  %b = conv(%r, %w1, _) {pads = [1, 1, 1, 1]}\n"
                            "  %c = conv(%b, %w2, _) {pads = [1, 1, 1, 1]}\n"
                            "  %d = conv(%c, %w3, _) {pads = [1, 1, 1, 1]}\n"
                            "  %e = mul(%d, %r)\n"
                            "  %y = conv(%e, %w4, _) {pads = [1, 1, 1, 1]}\n"
                            "  return %y\n}\n");
    cr_expect_eq(sources_arena_bytes(berth_strbuf_text(&text), "cpu -arch=cortex-m4"), 40 * map);
    snprintf(target, sizeof(target), "cpu -arch=cortex-m4 -memory_capacity_bytes=%d",
             32 * map + io + spare);
    cr_expect_eq(sources_arena_bytes(berth_strbuf_text(&text), target), 32 * map);

    // A refusal counts on it.
    bare_built built;
    berth_status status = bare_build(&built, berth_strbuf_text(&text),
                                     "cpu -arch=cortex-m4 -memory_capacity_bytes=1024", "m");
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    cr_expect_not_null(strstr(berth_status_message(status), "of which 18432 bytes"), "%s",
                       berth_status_message(status));
    berth_status_free(status);
    bare_end(&built);
    berth_arena_destroy(arena);
}
