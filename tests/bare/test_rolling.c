// Rows that roll (compiler/passes/roll_rows.h): what the sources compute is what the interpreter computes, in less
// memory.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "tests/bare/sources.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "toolkit/model.h"

#define M4 "cpu -arch=cortex-m4"
#define M55 "cpu -arch=cortex-m55 -features=mve"

typedef struct chain {
    berth_strbuf text;
    int64_t seed;
    int64_t channels, rows, columns;
    int layer;
    bool floats;
    const char *point;  // zero point of what is convolved
} chain;

static int64_t draw(chain *c, int64_t low, int64_t high) {
    c->seed = (c->seed * 1103515245 + 12345) % 2147483648;
    return low + c->seed / 65536 % (high - low + 1);
}

static chain begin_floats(berth_arena *arena, int64_t seed, int64_t channels, int64_t side) {
    chain c = {.text = berth_strbuf_make(arena),
               .seed = seed,
               .channels = channels,
               .rows = side,
               .columns = side,
               .floats = true};
    berth_strbuf_addf(&c.text, "module \"m\"\ngraph @main(%%v0: f32[1,%d,%d,%d]) {\n",
                      (int)channels, (int)side, (int)side);
    return c;
}

static chain begin(berth_arena *arena, int64_t seed, int64_t channels, int64_t side) {
    chain c = {.text = berth_strbuf_make(arena),
               .seed = seed,
               .channels = channels,
               .rows = side,
               .columns = side,
               .point = "%zero"};
    berth_strbuf_addf(&c.text,
                      "module \"m\"\ngraph @main(%%v0: u8[1,%d,%d,%d]) {\n"
                      "  %%scale = constant() {value = f32[] (900.0)}\n"
                      "  %%zero = constant() {value = u8[] (120)}\n",
                      (int)channels, (int)side, (int)side);
    return c;
}

// A convolution of %v of the layer with padding that keeps the extents but for the stride; of bytes they are
// quantised again.
static void add_convolution(chain *c, int64_t channels, int64_t kernel, int64_t stride,
                            int64_t groups) {
    char name[16], type[48], attributes[96];
    int pad = (int)kernel / 2, i = c->layer++;
    int64_t depth = c->channels / groups;
    snprintf(name, sizeof(name), "w%d", i);
    snprintf(type, sizeof(type), "%s[%d,%d,%d,%d]", c->floats ? "f32" : "i8", (int)channels,
             (int)depth, (int)kernel, (int)kernel);
    snprintf(attributes, sizeof(attributes),
             "{group = %d, pads = [%d, %d, %d, %d], strides = [%d, %d]}", (int)groups, pad, pad,
             pad, pad, (int)stride, (int)stride);
    sources_add_constant(&c->text, name, type, channels * depth * kernel * kernel, &c->seed);
    if (c->floats)
        berth_strbuf_addf(&c->text,
                          "  %%f%d = conv(%%v%d, %%w%d, _) %s\n"
                          "  %%v%d = relu(%%f%d)\n",
                          i, i, i, attributes, i + 1, i);
    else
        berth_strbuf_addf(&c->text,
                          "  %%s%d = conv_integer(%%v%d, %%w%d, %s) %s\n"
                          "  %%f%d = cast(%%s%d) {to = f32}\n"
                          "  %%v%d = quantize_linear(%%f%d, %%scale, %%zero)\n",
                          i, i, i, c->point, attributes, i, i, i + 1, i);
    c->channels = channels;
    c->rows = (c->rows - 1) / stride + 1;
    c->columns = (c->columns - 1) / stride + 1;
}

static void convolve(chain *c, int64_t channels, int64_t kernel, int64_t stride) {
    add_convolution(c, channels, kernel, stride, 1);
}

// Every channel with a window of its own.
static void convolve_depthwise(chain *c, int64_t kernel, int64_t stride) {
    add_convolution(c, c->channels, kernel, stride, c->channels);
}

// The sum of the last value and an earlier one of the same shape.
static void join(chain *c, int earlier) {
    int i = c->layer++;
    berth_strbuf_addf(&c->text,
                      "  %%a%d = dequantize_linear(%%v%d, %%scale, %%zero)\n"
                      "  %%b%d = dequantize_linear(%%v%d, %%scale, %%zero)\n"
                      "  %%f%d = add(%%a%d, %%b%d)\n"
                      "  %%v%d = quantize_linear(%%f%d, %%scale, %%zero)\n",
                      i, i, i, earlier, i, i, i, i + 1, i);
}

static const char *end(chain *c) {
    berth_strbuf_addf(&c->text, "  return %%v%d\n}\n", c->layer);
    return berth_strbuf_text(&c->text);
}

// Three rows of 8 x 16 bytes are all that there is of a value that a window of three rows reads, with any stride. Of %v1 the
// sum reads a row that lies two rows behind the newest one: three rows again.
Test(bare_rolling, of_values_in_between_there_are_the_rows_that_are_read, .timeout = 300) {
    enum { ring = 3 * 8 * 16 };
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    chain plain = begin(arena, 3, 3, 16);
    for (int i = 0; i < 3; ++i) convolve(&plain, 8, 3, i == 2 ? 2 : 1);
    const char *text = end(&plain);
    cr_expect_geq(sources_arena_bytes(text, M4), 8 * 16 * 16);
    cr_expect_eq(sources_patched_bytes(text, M4, "rolling"), 2 * ring);

    chain residual = begin(arena, 4, 3, 16);
    for (int i = 0; i < 3; ++i) convolve(&residual, 8, 3, 1);
    join(&residual, 1);
    convolve(&residual, 8, 3, 2);
    text = end(&residual);
    cr_expect_geq(sources_arena_bytes(text, M4), 2 * 8 * 16 * 16);
    cr_expect_eq(sources_patched_bytes(text, M4, "rolling"), 3 * ring);
    berth_arena_destroy(arena);
}

// A window of one channel is copied a few rows at a time, and a window of floats goes over the rows that there are: from
// both a row comes at a time, and three rows of their operand are all that there is of it. Between a depthwise
// convolution and one of single pixels there is one row. The last one has a fourth of the pixels: it is not what needs most.
Test(bare_rolling, depthwise_windows_and_floats_roll, .timeout = 300) {
    enum { row = 8 * 16, rings = 3 * row + row + 3 * row };
    static const char *const points[] = {"%zero", "_"};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (int form = 0; form < 3; ++form) {
        bool floats = form == 2;
        uint64_t bytes = floats ? 4 : 1;
        chain c = floats ? begin_floats(arena, 6, 3, 16) : begin(arena, 6, 3, 16);
        c.point = points[form % 2];
        convolve(&c, 8, 3, 1);
        convolve_depthwise(&c, 3, 1);
        convolve(&c, 8, 1, 1);
        convolve_depthwise(&c, 3, 2);
        const char *text = end(&c);
        cr_expect_geq(sources_arena_bytes(text, M4), bytes * 8 * 16 * 16);
        cr_expect_eq(sources_patched_bytes(text, M4, "rolling"), bytes * rings);
        cr_expect_eq(sources_patched_bytes(text, M55, "rolling"), bytes * rings);
        cr_expect_eq(
            sources_bytes((sources){.text = text, .patches = "rolling", .small = true}, M4),
            bytes * rings);
    }
    berth_arena_destroy(arena);
}

// A depthwise convolution that does not roll, since what follows reads all rows at once, is written over its operand as
// without rolling rows: only in the form that does not keep rows apart is a whole channel copied before. With that one,
// two images would be there.
Test(bare_rolling, what_does_not_roll_keeps_its_form, .timeout = 300) {
    enum { image = 16 * 8 * 8, rings = 2 * 3 * 4 * 16 };
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    chain c = begin(arena, 8, 3, 16);
    convolve(&c, 4, 3, 1);
    convolve(&c, 4, 3, 1);
    convolve(&c, 16, 3, 2);
    c.point = "_";
    convolve_depthwise(&c, 3, 1);
    convolve_depthwise(&c, 3, 1);
    berth_strbuf_addf(&c.text, "  %%v%d = max_pool(%%v%d) {kernel_shape = [8, 8]}\n", c.layer + 1,
                      c.layer);
    ++c.layer;
    const char *text = end(&c);
    cr_expect_eq(sources_arena_bytes(text, M4), 4 * 16 * 16 * 2);
    cr_expect_eq(sources_patched_bytes(text, M4, "rolling"), rings + image);
    berth_arena_destroy(arena);
}

// Terms of sums that the small code of two convolutions of floats writes out.
static int written_terms(const char *patches) {
    sources s = {.patches = patches, .small = true};
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    char folder[64];
    int64_t seed = 5;
    int terms = 0;
    make_folder(folder);
    assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
    berth_strbuf text = berth_strbuf_make(s.arena);
    berth_strbuf_add(&text, "module \"m\"\ngraph @main(%v0: f32[1,8,12,12]) {\n");
    for (int i = 0; i < 2; ++i) {
        sources_add_constant(&text, i ? "w1" : "w0", i ? "f32[4,8,3,3]" : "f32[8,8,3,3]",
                             (i ? 4 : 8) * 8 * 3 * 3, &seed);
        berth_strbuf_addf(&text, "  %%v%d = conv(%%v%d, %%w%d) {pads = [1, 1, 1, 1]}\n", i + 1, i,
                          i);
    }
    berth_strbuf_add(&text, "  return %v2\n}\n");
    s.text = berth_strbuf_text(&text);
    assert_ok(sources_compile(&s, M4, &program, &memory));
    sources_print(&s, program, memory, folder);
    sources_run_natively(&s, folder);
    for (const char *at = sources_code(&s); (at = strstr(at, "= berth_fma_f32(")); ++at) ++terms;
    remove_tree(folder);
    berth_arena_destroy(s.arena);
    return terms;
}

// Two of a sum at a time are smaller than one, but where rows roll: there each asks where its row lies.
Test(bare_rolling, small_code_takes_terms_one_by_one) {
    cr_expect_eq(written_terms("never"), 4);
    cr_expect_eq(written_terms("rolling"), 2);
}

typedef struct loaded {
    berth_arena *arena;
    const char *text;
} loaded;

static berth_status parse(void *user, berth_arena *arena, berth_module **out_module) {
    const loaded *l = user;
    return berth_module_parse(arena, l->text, strlen(l->text), "test", out_module);
}

static berth_status plan(loaded *l, const char *executor, const char *patches, uint64_t limit,
                         berth_model **out_model) {
    char target[80];
    snprintf(target, sizeof(target), M4 " -memory_capacity_bytes=%llu", (unsigned long long)limit);
    berth_model_options options = {.target = target, .compile = {.plan_only = true}};
    options.target_options.executor = executor;
    options.compile.patches = patches;
    return berth_model_load_built(parse, l, "m", &options, out_model);
}

static bool has_note(const berth_model *model, const char *what) {
    const berth_plan *planned = berth_model_plan(model);
    for (uint32_t i = 0; i < planned->note_count; ++i)
        if (strstr(planned->notes[i], what)) return true;
    return false;
}

// Whole values have 4096 bytes at the peak. Between what these need and what rings need, rows roll; where there is
// room for whole ones they do not, nor where they are not wanted.
Test(bare_rolling, rows_roll_where_the_memory_is_too_small, .timeout = 300) {
    enum { io = 3 * 16 * 16 + 8 * 8 * 8, spare = 2560, small = io + 2 * 3 * 8 * 16 + spare };
    static const struct {
        const char *patches;
        uint64_t limit;
        bool rolls;
    } cases[] = {{"auto", small, true},
                 {"auto", 65536, false},
                 {"rolling", 65536, true},
                 {"never", 65536, false}};
    loaded l = {0};
    berth_model *model = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &l.arena));
    chain c = begin(l.arena, 3, 3, 16);
    for (int i = 0; i < 3; ++i) convolve(&c, 8, 3, i == 2 ? 2 : 1);
    l.text = end(&c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
        assert_ok(plan(&l, "aot", cases[i].patches, cases[i].limit, &model));
        cr_expect_eq(has_note(model, "rolling rows: 3 stages"), cases[i].rolls, "case %zu", i);
        berth_model_destroy(model);
    }
    assert_fails(plan(&l, "aot", "never", small, &model), BERTH_OUT_OF_MEMORY, "needs");
    assert_fails(plan(&l, "graph", "rolling", 65536, &model), BERTH_INVALID_ARGUMENT, "aot");
    berth_arena_destroy(l.arena);
}

static int seeds[10];

static struct criterion_test_params all_seeds(void) {
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); ++i) seeds[i] = (int)i;
    return cr_make_param_array(int, seeds, sizeof(seeds) / sizeof(*seeds));
}

ParameterizedTestParameters(bare_rolling, random_chains_compute_the_same) {
    return all_seeds();
}

// Kernels of 1, 3 and 5, strides, windows of single channels, sums with earlier values; small images, in which rings are
// longer than values. Of bytes and of floats, for both cores.
ParameterizedTest(int *seed, bare_rolling, random_chains_compute_the_same, .timeout = 300) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    int64_t side = *seed == 0 ? 5 : 9 + *seed % 8;
    chain c = *seed % 3 == 2 ? begin_floats(arena, *seed * 7919 + 1, 3, side)
                             : begin(arena, *seed * 7919 + 1, 3, side);
    const char *target = *seed % 2 ? M55 : M4;
    int saved = 0, layers = 3 + *seed % 3;
    convolve(&c, draw(&c, 2, 6), 3, 1);
    for (int i = 0; i < layers; ++i) {
        int64_t strides = c.rows > 6 && draw(&c, 0, 2) == 0 ? 2 : 1;
        bool sums = strides == 1 && !c.floats && draw(&c, 0, 1) == 1;
        saved = c.layer;
        c.point = draw(&c, 0, 1) ? "_" : "%zero";
        if (!sums && draw(&c, 0, 1) == 1)
            convolve_depthwise(&c, 1 + 2 * draw(&c, 1, 2), strides);
        else
            convolve(&c, sums ? c.channels : draw(&c, 2, 6), 1 + 2 * draw(&c, 0, 2), strides);
        if (sums) join(&c, saved);
    }
    convolve(&c, 2, 3, 1);
    const char *text = end(&c);
    uint64_t whole = sources_arena_bytes(text, target);
    cr_expect_leq(sources_patched_bytes(text, target, "rolling"), whole);
    berth_arena_destroy(arena);
}
