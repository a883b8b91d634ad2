// What the sources look like, where they go, and what is refused.
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/text.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "toolkit/model.h"
#include "toolkit/tensor_file.h"

// The sources of a module as text.
static bare_built build(const char *text, const char *name) {
    bare_built b = {0};
    assert_ok(bare_build(&b, text, BARE_CORTEX_M4, name));
    return b;
}

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); ++at) ++count;
    return count;
}

// Compiles the sources to a library and calls NAME_run.
static int run(const bare_built *b, const char *name, const void *inputs, const void *outputs) {
    typedef int run_function(const void *inputs, const void *outputs);
    union {
        void *address;
        run_function *function;
    } symbol;
    char folder[64], path[128];
    make_folder(folder);
    write_files(folder, b->files, b->count);
    shell("cd %s && gcc " BARE_WARNINGS " -O2 -fPIC -shared -o model.so %s.c %s_weights.c -lm",
          folder, name, name);
    shell("cd %s && g++ -std=c++11 -Wall -Wextra -Werror -pedantic -fsyntax-only -x c++ %s.h",
          folder, name);
    snprintf(path, sizeof(path), "%s/model.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    snprintf(path, sizeof(path), "%s_run", name);
    symbol.address = dlsym(library, path);
    cr_assert(symbol.address);
    int result = symbol.function(inputs, outputs);
    dlclose(library);
    remove_tree(folder);
    return result;
}

// ---- what they say ------------------------------------------------------------------------------

static const char chain[] = "module \"m\"\n"
                            "graph @main(%x: f32[1,2,4,4], %w: f32[2,2,3,3], %v: f32[2,2,3,3]) {\n"
                            "  %a = conv(%x, %w, _) {pads = [1, 1, 1, 1]}\n"
                            "  %b = conv(%a, %v, _) {pads = [1, 1, 1, 1]}\n"
                            "  %c = conv(%b, %w, _) {pads = [1, 1, 1, 1]}\n"
                            "  %d = conv(%c, %v, _) {pads = [1, 1, 1, 1]}\n"
                            "  return %d\n"
                            "}\n";

// Three values of 128 bytes, of which two are live at once. The second one lies in the output, which nothing
// has written yet; the others are there after each other: 128 bytes, and the last one is in no output.
Test(bare, the_arena_of_a_chain_is_one_value_and_said_to_be_optimal) {
    bare_built b = build(chain, "chain");
    const char *header = bare_text_of(&b, "chain.h");
    cr_expect(strstr(header, "#define CHAIN_ARENA_BYTES 128\n"));
    cr_expect(strstr(header, "#define CHAIN_RAM_BYTES 128\n"));
    cr_expect(strstr(header, "proven optimal"));
    bare_end(&b);
}

// The same with a result of half the size, which has no room for any of them: two values are live at once.
Test(bare, the_arena_of_a_chain_to_a_small_output_is_two_values) {
    bare_built b = build("module \"m\"\n"
                         "graph @main(%x: f32[1,2,4,4], %w: f32[2,2,3,3], %v: f32[1,2,3,3]) {\n"
                         "  %a = conv(%x, %w, _) {pads = [1, 1, 1, 1]}\n"
                         "  %b = conv(%a, %w, _) {pads = [1, 1, 1, 1]}\n"
                         "  %c = conv(%b, %w, _) {pads = [1, 1, 1, 1]}\n"
                         "  %d = conv(%c, %v, _) {pads = [1, 1, 1, 1]}\n"
                         "  return %d\n"
                         "}\n",
                         "chain");
    const char *header = bare_text_of(&b, "chain.h");
    cr_expect(strstr(header, "#define CHAIN_ARENA_BYTES 256\n"));
    cr_expect(strstr(header, "proven optimal"));
    bare_end(&b);
}

// A value of bytes lies in an output of floats. What comes out are the maxima of 7 x 7 windows.
Test(bare, a_value_in_an_output_does_not_change_it) {
    int8_t x[144];
    float y[36] = {0};
    for (int i = 0; i < 144; ++i) x[i] = (int8_t)(i * 37 % 101 - 50);
    bare_built b = build("module \"m\"\n"
                         "graph @main(%x: i8[1,1,12,12]) {\n"
                         "  %a = max_pool(%x) {kernel_shape = [3, 3]}\n"
                         "  %b = max_pool(%a) {kernel_shape = [3, 3]}\n"
                         "  %c = max_pool(%b) {kernel_shape = [3, 3]}\n"
                         "  %d = cast(%c) {to = f32}\n"
                         "  return %d\n"
                         "}\n",
                         "bytes");
    const void *inputs[] = {x}, *outputs[] = {y};
    cr_assert_eq(count_of(bare_text_of(&b, "bytes.c"), "void *)outputs->"), 2,
                 "the first maxima, written and read");
    cr_assert_eq(run(&b, "bytes", inputs, outputs), 0);
    for (int i = 0; i < 36; ++i) {
        float most = -128;
        for (int k = 0; k < 49; ++k) most = fmaxf(most, x[(i / 6 + k / 7) * 12 + i % 6 + k % 7]);
        cr_expect_eq(y[i], most, "%d", i);
    }
    bare_end(&b);
}

Test(bare, equal_layers_are_one_function) {
    bare_built b = build(chain, "chain");
    cr_expect_eq(count_of(bare_text_of(&b, "chain.c"), "static void "), 1);
    cr_expect_eq(count_of(bare_text_of(&b, "chain.c"), "    u0_0("), 4);
    bare_end(&b);
}

Test(bare, the_same_module_gives_the_same_bytes) {
    bare_built a = build(chain, "chain"), b = build(chain, "chain");
    cr_assert_eq(a.count, b.count);
    for (uint32_t i = 0; i < a.count; ++i) {
        cr_expect_str_eq(a.files[i].name, b.files[i].name);
        cr_expect_str_eq(a.files[i].text, b.files[i].text);
    }
    bare_end(&a);
    bare_end(&b);
}

Test(bare, a_name_is_one_that_c_takes) {
    static const struct {
        const char *given, *name;
    } rows[] = {{"mnist", "mnist"},
                {"mnist-8", "mnist_8"},
                {"8bit", "m8bit"},
                {"", "model"},
                {"int", "int_"},
                {"a//b..c", "a_b_c"},
                {"*/", "m"},
                {"-x-", "mx"},
                {"main", "main_"},
                {"\xc3\xa4 b", "m_b"},
                // words of C++, standard headers, targets that CMake and make have for themselves
                {"export", "export_"},
                {"math", "math_"},
                {"test", "test_"},
                {"Makefile", "Makefile_"}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
        cr_expect_str_eq(berth_bare_name(arena, rows[i].given), rows[i].name, "%s", rows[i].given);
    berth_arena_destroy(arena);
}

// Names that are equal in C, a keyword, and locations that would end a comment or start another.
Test(bare, hostile_names_stay_names) {
    static const char text[] = "module \"*/ #error\"\n"
                               "graph @main(%\"a b\": f32[2], %\"a/b\": f32[2], %int: f32[2]) {\n"
                               "  %s = add(%\"a b\", %\"a/b\") #1\n"
                               "  %\"*/ int x; /*\" = sub(%s, %int) #2\n"
                               "  return %\"*/ int x; /*\"\n"
                               "}\n"
                               "locations {\n"
                               "  #1 = \"m.onnx\" node \"*/ int y; /*\" op \"Add\"\n"
                               "  #2 = \"m.onnx\" node \"line\\none\\\\\" op \"*/\"\n"
                               "}\n";
    bare_built b = build(text, "hostile");
    float a[2] = {1, 2}, c[2] = {10, 20}, d[2] = {100, 200}, y[2] = {0};
    const void *inputs[] = {a, c, d};
    void *outputs[] = {y};
    cr_expect(strstr(bare_text_of(&b, "hostile.h"), "const float *a_b;"));
    cr_expect(strstr(bare_text_of(&b, "hostile.h"), "const float *a_b_2;"));
    cr_expect(strstr(bare_text_of(&b, "hostile.h"), "const float *int_;"));
    cr_expect_eq(run(&b, "hostile", inputs, outputs), 0);
    cr_expect(y[0] == -89 && y[1] == -178, "%g %g", y[0], y[1]);
    bare_end(&b);
}

// An input and a constant as outputs are copied; special values of constants survive.
Test(bare, outputs_that_nothing_computes_are_copied) {
    static const char text[] =
        "module \"m\"\n"
        "graph @main(%x: i64[2]) {\n"
        "  %f = constant() {value = f32[4] (nan, inf, -inf, -0.0)}\n"
        "  %i = constant() {value = i64[2] (-9223372036854775808, 9223372036854775807)}\n"
        "  %d = constant() {value = f64[2] (0.1, -1e-310)}\n"
        "  %b = constant() {value = bool[2] (true, false)}\n"
        "  %m = constant() {value = i32[1] (-2147483648)}\n"
        "  return %x, %f, %i, %d, %b, %m\n"
        "}\n";
    bare_built b = build(text, "copies");
    int64_t x[2] = {-1, INT64_MAX}, got_x[2], got_i[2];
    float f[4];
    double d[2];
    uint8_t bools[2];
    int32_t m[1];
    const void *inputs[] = {x};
    void *outputs[] = {got_x, f, got_i, d, bools, m};
    cr_expect_eq(run(&b, "copies", inputs, outputs), 0);
    cr_expect_arr_eq(got_x, x, sizeof(x));
    cr_expect(f[0] != f[0] && f[1] > 1e38f && f[2] < -1e38f && f[3] == 0 && 1 / f[3] < 0);
    cr_expect(got_i[0] == INT64_MIN && got_i[1] == INT64_MAX);
    cr_expect(d[0] == 0.1 && d[1] == -1e-310);
    cr_expect(bools[0] == 1 && bools[1] == 0 && m[0] == INT32_MIN);
    bare_end(&b);
}

Test(bare, a_missing_pointer_is_an_error_and_nothing_is_done) {
    bare_built b =
        build("module \"m\"\ngraph @main(%x: f32[2]) {\n  %y = neg(%x)\n  return %y\n}\n", "neg");
    float y[2] = {7, 7};
    const void *inputs[] = {NULL};
    void *outputs[] = {y};
    cr_expect_eq(run(&b, "neg", inputs, outputs), 1);
    cr_expect(y[0] == 7 && y[1] == 7);
    bare_end(&b);
}

// ---- what is refused ----------------------------------------------------------------------------

static void expect_refused(const char *text, const char *target_text, const char *executor,
                           const char *message) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    berth_target_options options = {.executor = executor};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    assert_ok(berth_target_parse(arena, target_text, &options, &target));
    berth_compile_options compile = {.target = target};
    assert_fails(berth_compile(module, &compile, &result), BERTH_UNSUPPORTED, message);
    berth_arena_destroy(arena);
}

Test(bare, what_cannot_be_plain_c_is_refused) {
    expect_refused(chain, "cpu,opencl", "aot", "for a single processor");
    expect_refused(chain, "opencl -host=cpu", "aot", "for a single processor");
    expect_refused(chain, "cpu", "vm", "executor \"vm\"");
    expect_refused("module \"m\"\n"
                   "graph @main(%x: f32[2]) {\n  %y = call @f(%x)\n  return %y\n}\n"
                   "external @f fn(f32[2])->(f32[2]) language \"c\" symbol \"f\" code meta(m1)\n"
                   "meta {\n  m1 = text \"void f(const float *x, float *y) { y[0] = x[0]; }\"\n}\n",
                   "cpu", "aot", "code of others");
}

Test(bare, values_that_do_not_fit_the_memory_are_refused_with_what_they_need) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    berth_target_options options = {.runtime = "bare"};
    static const char text[] =
        "module \"m\"\ngraph @main(%x: f32[1000]) {\n  %y = neg(%x)\n  return %y\n}\n";
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    assert_ok(berth_target_parse(arena, "cpu -arch=cortex-m4 -memory_capacity_bytes=7999", &options,
                                 &target));
    berth_compile_options compile = {.target = target};
    assert_fails(berth_compile(module, &compile, &result), BERTH_OUT_OF_MEMORY, "(8000 bytes)");
    berth_arena_destroy(arena);
}

// A static array of 9 bytes takes 16, since it is aligned to 8: a memory must have room for these.
Test(bare, a_budget_counts_static_arrays_as_large_as_they_are) {
    static const char text[] = "module \"m\"\n"
                               "graph @main(%x: i8[1,1,5,5]) {\n"
                               "  %a = max_pool(%x) {kernel_shape = [3, 3]}\n"
                               "  %b = max_pool(%a) {kernel_shape = [3, 3]}\n"
                               "  return %b\n"
                               "}\n";
    enum { INPUT_BYTES = 32, OUTPUT_BYTES = 1, ARRAY_BYTES = 16 };
    bare_built b = {0};
    assert_fails(bare_build(&b, text, "cpu -arch=cortex-m4 -memory_capacity_bytes=48", "odd"),
                 BERTH_OUT_OF_MEMORY, "(49 bytes)");
    bare_end(&b);
    b = (bare_built){0};
    assert_ok(bare_build(&b, text, "cpu -arch=cortex-m4 -memory_capacity_bytes=49", "odd"));
    cr_assert_eq(INPUT_BYTES + OUTPUT_BYTES + ARRAY_BYTES, 49);
    cr_expect(strstr(bare_text_of(&b, "odd.h"), "#define ODD_ARENA_BYTES 9\n"));
    cr_expect(strstr(bare_text_of(&b, "odd.h"), "#define ODD_RAM_BYTES 16\n"));
    bare_end(&b);
}

// The gates of a step are 33 floats, too many for the stack: 132 bytes, and no more than alignment to 8 adds.
Test(bare, private_arrays_are_aligned_as_static_memory_is) {
    bare_built b = build("module \"m\"\n"
                         "graph @main(%x: f32[3,1,5], %w: f32[1,33,5], %r: f32[1,33,11]) {\n"
                         "  %y, %h = gru(%x, %w, %r, _, _, _) {hidden_size = 11}\n"
                         "  return %h\n"
                         "}\n",
                         "gru");
    cr_expect(strstr(bare_text_of(&b, "gru.h"), "#define GRU_SCRATCH_BYTES 136\n"));
    bare_end(&b);
}

// A batch of one in front of the steps or behind them: the same bytes, and the same memory and code.
Test(bare, a_transpose_that_moves_nothing_costs_nothing) {
    static const char *const text[] = {
        "module \"m\"\n"
        "graph @main(%x: f32[3,1,5], %w: f32[1,33,5], %r: f32[1,33,11]) {\n"
        "  %y, %h = gru(%x, %w, %r, _, _, _) {hidden_size = 11}\n"
        "  return %h\n"
        "}\n",
        "module \"m\"\n"
        "graph @main(%x: f32[1,3,5], %w: f32[1,33,5], %r: f32[1,33,11]) {\n"
        "  %t = transpose(%x) {perm = [1, 0, 2]}\n"
        "  %y, %h = gru(%t, %w, %r, _, _, _) {hidden_size = 11}\n"
        "  return %h\n"
        "}\n"};
    char ram[2][64] = {"", ""};
    uint32_t kernels[2];
    for (int i = 0; i < 2; ++i) {
        bare_built b = build(text[i], "gru");
        const char *at = strstr(bare_text_of(&b, "gru.h"), "#define GRU_RAM_BYTES ");
        cr_assert(at);
        snprintf(ram[i], sizeof(ram[i]), "%.*s", (int)strcspn(at, "\n"), at);
        kernels[i] = b.program->kernel_count;
        bare_end(&b);
    }
    cr_expect_str_eq(ram[0], ram[1]);
    cr_expect_eq(kernels[0], kernels[1]);
}

Test(bare, no_session_opens_sources) {
    bare_built b = build(chain, "chain");
    berth_session *session = NULL;
    assert_fails(berth_session_open(berth_allocator_system(), b.program, NULL, &session),
                 BERTH_UNSUPPORTED, "executor \"aot\"");
    cr_expect_null(session);
    bare_end(&b);
}

// ---- the folder ---------------------------------------------------------------------------------

static int files_in(const char *folder) {
    int count = 0;
    DIR *open = opendir(folder);
    cr_assert(open);
    while (readdir(open)) ++count;
    closedir(open);
    return count - 2;
}

Test(bare, the_folder_is_written_whole_or_not_at_all) {
    bare_built b = build(chain, "chain");
    char folder[64], path[128], other[160];
    make_folder(folder);
    snprintf(path, sizeof(path), "%s/out", folder);
    berth_bare_options options = {.name = "chain"};
    assert_ok(berth_bare_write(b.program, &options, path));
    cr_expect_eq(files_in(path), 7);
    options.name = "again";  // replaces the files of another name, too
    assert_ok(berth_bare_write(b.program, &options, path));
    cr_expect_eq(files_in(path), 7);
    snprintf(other, sizeof(other), "%s/chain.h", path);
    cr_expect(!berth_file_exists(other));
    snprintf(other, sizeof(other), "%s/notes.txt", path);
    write_bytes(other, "mine", 4);
    assert_fails(berth_bare_write(b.program, &options, path), BERTH_ALREADY_EXISTS, "notes.txt");
    cr_expect_eq(files_in(path), 8);
    cr_expect_eq(files_in(folder), 1, "something was left beside the folder");
    snprintf(other, sizeof(other), "%s/file", folder);
    write_bytes(other, "mine", 4);
    assert_fails(berth_bare_write(b.program, &options, other), BERTH_ALREADY_EXISTS, "no folder");
    snprintf(other, sizeof(other), "%s/none/out", folder);
    assert_fails(berth_bare_write(b.program, &options, other), BERTH_IO, "none/out");
    // C files that are somebody's own are no earlier output.
    snprintf(other, sizeof(other), "%s/own", folder);
    cr_assert_eq(mkdir(other, 0700), 0);
    assert_ok(berth_bare_write(b.program, &options, other));  // an empty folder will do
    snprintf(path, sizeof(path), "%s/own/again_weights.h", folder);
    unlink(path);
    assert_fails(berth_bare_write(b.program, &options, other), BERTH_ALREADY_EXISTS, "own");
    remove_tree(folder);
    bare_end(&b);
}

Test(bare, make_and_cmake_build_the_example) {
    bare_built b =
        build("module \"m\"\ngraph @main(%x: f32[2]) {\n  %y = neg(%x)\n  return %y\n}\n", "neg");
    static const float x[2] = {1, -2};
    char folder[64], path[128], *out = NULL;
    size_t size = 0;
    make_folder(folder);
    write_files(folder, b.files, b.count);
    snprintf(path, sizeof(path), "%s/in", folder);
    write_bytes(path, x, sizeof(x));
    shell("cd %s && make -s && ./example <in >out && make -s clean && cmake -S . -B b >log && "
          "cmake --build b >log && b/neg_example <in | cmp - out",
          folder);
    snprintf(path, sizeof(path), "%s/out", folder);
    assert_ok(berth_file_read(b.arena, path, 64, &out, &size));
    cr_assert_eq(size, sizeof(x));
    cr_expect(((float *)(void *)out)[0] == -1 && ((float *)(void *)out)[1] == 2);
    remove_tree(folder);
    bare_end(&b);
}

// ---- a trained model ----------------------------------------------------------------------------

// The network of examples/digits recognises most of the 360 images of its test set: nine of ten, where
// one of ten is chance.
Test(bare, digits_are_recognised) {
    berth_model *model = NULL;
    berth_model_options model_options = {.target = "cpu -arch=cortex-m4",
                                         .target_options = {.runtime = "bare"},
                                         .import = {.default_batch = 1}};
    assert_ok(berth_model_load("examples/digits/digits.onnx", &model_options, &model));
    bare_built b = {0};
    assert_ok(berth_arena_create(berth_allocator_system(), &b.arena));
    berth_bare_options options = {.name = "digits", .memory = berth_model_memory(model)};
    assert_ok(berth_bare_print(berth_model_program(model), &options, b.arena, &b.files, &b.count));
    berth_tensor images, labels;
    assert_ok(berth_tensor_file_read(b.arena, "examples/digits/test_images.npy", &images, NULL));
    assert_ok(berth_tensor_file_read(b.arena, "examples/digits/test_labels.npy", &labels, NULL));
    int64_t count = labels.dims[0], right = 0;
    char folder[64], path[128], *out = NULL;
    size_t size = 0;
    make_folder(folder);
    write_files(folder, b.files, b.count);
    shell("cd %s && gcc " BARE_WARNINGS " -O2 -o program *.c -lm", folder);
    snprintf(path, sizeof(path), "%s/in", folder);
    write_bytes(path, images.data, berth_tensor_size_bytes(&images));
    // One process per image: the example reads 256 bytes, what follows is the next one's.
    shell("cd %s && split -b 256 in image. && for i in image.*; do ./program <$i; done >out",
          folder);
    snprintf(path, sizeof(path), "%s/out", folder);
    assert_ok(berth_file_read(b.arena, path, 1 << 20, &out, &size));
    cr_assert_eq(size, (size_t)count * 10 * sizeof(float));
    for (int64_t i = 0; i < count; ++i) {
        const float *p = (const float *)(void *)out + 10 * i;
        int best = 0;
        for (int k = 1; k < 10; ++k)
            if (p[k] > p[best]) best = k;
        right += best == (int)berth_tensor_get_i64(&labels, i);
    }
    cr_expect(right * 10 >= count * 9, "%d of %d", (int)right, (int)count);
    remove_tree(folder);
    bare_end(&b);
    berth_model_destroy(model);
}

// ---- one memory of several models ---------------------------------------------------------------

// y = v w v w x for matrices over two channels of 16 pixels; w and v as main writes them.
static const char two_models[] =
    "#include <stdio.h>\n#include <string.h>\n#include \"a.h\"\n#include \"b.h\"\n"
    "enum { size = A_MEMORY_BYTES > B_MEMORY_BYTES ? A_MEMORY_BYTES : B_MEMORY_BYTES };\n"
    "unsigned char shared[size + 64] __attribute__((aligned(8)));\n"
    "static float x[32], y[32], z[32], w[36], v[36];\n"
    "static const float w_middle[4] = {1, 2, 0, 1}, v_middle[4] = {1, 0, -1, 1};\n"
    "static int wrong(const float *got) {\n"
    "    static const float product[4] = {1, 2, -1, -1};\n"  // v w
    "    float square[4], want;\n"
    "    int i, k, n = 0;\n"
    "    for (i = 0; i < 4; ++i)\n"
    "        square[i] = product[i / 2 * 2] * product[i % 2] + product[i / 2 * 2 + 1] * product[2 "
    "+ i % 2];\n"
    "    for (k = 0; k < 2; ++k)\n"
    "        for (i = 0; i < 16; ++i) {\n"
    "            want = square[2 * k] * x[i] + square[2 * k + 1] * x[16 + i];\n"
    "            n += got[16 * k + i] != want;\n"
    "        }\n"
    "    return n;\n"
    "}\n"
    "int main(void) {\n"
    "    a_inputs in_a = {x, w, v};\n    a_outputs out_a = {y};\n"
    "    b_inputs in_b = {x, w, v};\n    b_outputs out_b = {z};\n"
    "    int i, failed = 0;\n"
    "    for (i = 0; i < 32; ++i) x[i] = (float)(i * 7 % 11);\n"
    "    for (i = 0; i < 4; ++i) w[9 * i + 4] = w_middle[i], v[9 * i + 4] = v_middle[i];\n"
    "    memset(shared, 0x5a, sizeof(shared));\n"
    "    for (i = 0; i < 2; ++i) failed |= a_run(&in_a, &out_a) | b_run(&in_b, &out_b);\n"
    "    for (i = size; i < size + 64; ++i) failed |= shared[i] != 0x5a;\n"
    "    failed |= shared[0] == 0x5a && shared[4] == 0x5a;\n"
    "    return failed || wrong(y) || wrong(z);\n"
    "}\n";

// Both compute what two products of the matrices give, in one array of the size of the larger one, and
// have no static memory of their own.
Test(bare, models_share_one_array) {
    bare_built a = build(chain, "a"), b = build(chain, "b");
    char folder[64], path[128];
    make_folder(folder);
    write_files(folder, a.files, a.count);
    write_files(folder, b.files, b.count);
    snprintf(path, sizeof(path), "%s/both.c", folder);
    write_bytes(path, two_models, strlen(two_models));
    shell(
        "cd %s && gcc " BARE_WARNINGS " -O2 -DA_MEMORY=shared -DB_MEMORY=shared -c a.c "
        "a_weights.c b.c b_weights.c both.c && gcc -o both a.o a_weights.o b.o b_weights.o both.o "
        "-lm && ./both && ! nm a.o b.o | grep -i ' [bd] '",
        folder);
    shell("cd %s && gcc " BARE_WARNINGS " -O2 -c a.c && nm a.o | grep -i ' b '", folder);
    remove_tree(folder);
    bare_end(&a);
    bare_end(&b);
}
