// Products of bytes on a matrix unit of processor cores (AMX): in whole tiles of rows, with rows and columns that
// are none, against sums of the operands' elements. What the interpreter gives is checked everywhere, what the
// instructions give where this machine has them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "tests/schedule/support.h"

#define WITHOUT "cpu -vector_bits=512 -features=avx2,avx512f,avx512bw,avx512vl,avx512vnni,fma"
#define WITH WITHOUT ",amx-tile,amx-int8"

typedef struct product {
    int rows, columns, terms;
    int sums;  // of the unit, at once; 0 = it is not used
} product;

static bench_case build(const product *p) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: u8[%d,%d] in, %%w: i8[%d,%d]{BA16b4a} in, %%b: i32[%d] in, %%y: "
             "i32[%d,%d] out) {\n"
             "  parallel %%i in %d { for %%j in %d {\n"
             "    register %%acc: i32[]\n"
             "    %%acc[] = 0:i32\n"
             "    for %%k in %d { %%acc[] = %%acc[] + i32(%%x[%%i, %%k]) * i32(%%w[%%k, %%j]) }\n"
             "    %%y[%%i, %%j] = %%acc[] + %%b[%%j]\n"
             "  } }\n}\n",
             p->rows, p->terms, p->terms, p->columns, p->columns, p->rows, p->columns, p->rows,
             p->columns, p->terms);
    return support_case_parse(text);
}

static void expect_sums(const bench_case *c, const product *p, const char *how) {
    const uint8_t *x = c->buffers[0];
    const int8_t *w = c->buffers[1];
    const int32_t *b = c->buffers[2], *y = c->buffers[3];
    int bad = 0;
    for (int i = 0; i < p->rows; ++i)
        for (int j = 0; j < p->columns; ++j) {
            int32_t sum = b[j];
            for (int k = 0; k < p->terms; ++k)
                sum += x[i * p->terms + k] *
                       w[(j / 16 * (p->terms / 4) + k / 4) * 64 + j % 16 * 4 + k % 4];
            bad += y[i * p->columns + j] != sum;
        }
    cr_expect_eq(bad, 0, "%d x %d x %d, %s: %d sums are wrong", p->rows, p->terms, p->columns, how,
                 bad);
}

static int sums_of_unit(const berth_tfn *fn) {
    int most = 0;
    for (uint32_t i = 0; i < fn->bufs.count; ++i)
        if (fn->bufs.data[i].lanes == 256 && fn->bufs.data[i].dims[0] > most)
            most = (int)fn->bufs.data[i].dims[0];
    return most;
}

// Extremes and numbers of all kinds.
static void fill(bench_case *c) {
    for (int b = 0; b < 2; ++b)
        for (int64_t i = 0; i < c->element_counts[b]; ++i)
            ((uint8_t *)c->buffers[b])[i] = (uint8_t)(i % 7 == 0    ? 255
                                                      : i % 11 == 0 ? 128
                                                                    : i * 37 + b);
    for (int64_t i = 0; i < c->element_counts[2]; ++i)
        ((int32_t *)c->buffers[2])[i] = (int32_t)(i * 1000 - 5000);
}

static const product products[] = {
    {32, 32, 128, 4}, {16, 48, 64, 2},
    {37, 40, 64, 4},  // 5 rows by dot products; half a tile of columns
    {50, 16, 192, 1}, {49, 33, 64, 2},
    {15, 32, 64, 0},                    // too few rows
    {32, 32, 96, 0},  {64, 64, 64, 4},  // half a tile of terms
};
enum { product_count = sizeof(products) / sizeof(products[0]) };

Test(unit_tiles, under_the_interpreter) {
    for (int i = 0; i < product_count; ++i) {
        const product *p = &products[i];
        for (int with = 0; with < 2; ++with) {
            bench_case c = build(p);
            fill(&c);
            cr_assert_null(
                berth_schedule_apply(c.fn, support_target(c.arena, with ? WITH : WITHOUT)));
            cr_expect_eq(sums_of_unit(c.fn), with ? p->sums : 0, "%d x %d x %d: %d sums", p->rows,
                         p->terms, p->columns, sums_of_unit(c.fn));
            berth_status status = support_interpret(&c);
            cr_assert(!status, "%s", berth_status_message(status));
            expect_sums(&c, p, with ? "interpreted with the unit" : "interpreted without");
            support_case_destroy(&c);
        }
    }
}

// A program asks for the unit where its kernels use it, and not because its target has it.
Test(unit_tiles, needs_of_an_image) {
    for (int i = 0; i < product_count; ++i) {
        bench_case c = build(&products[i]);
        const berth_target *target = support_target(c.arena, WITH);
        berth_codegen_result code;
        berth_codegen_bytes image;
        cr_assert_null(berth_schedule_apply(c.fn, target));
        cr_assert_null(berth_codegen_c.print(c.fn, NULL, "k", c.arena, &code));
        berth_compile_options options = {0};
        berth_codegen_unit unit = {.label = "test", .code = &code};
        berth_codegen_job job = {
            .target = target, .units = &unit, .count = 1, .options = &options, .arena = c.arena};
        berth_status status = berth_codegen_c.finish(&job, &image);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_eq(strstr(image.options, " amx-") != NULL, products[i].sums > 0,
                     "%d x %d x %d needs %s", products[i].rows, products[i].terms,
                     products[i].columns, image.options);
        cr_expect(strstr(image.options, " avx512vnni"), "%s", image.options);
        support_case_destroy(&c);
    }
}

// Whether this machine has the unit; asking gives its registers to this process.
static bool has_unit(void) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    const berth_target *here = support_target(arena, "local");
    bool has =
        berth_target_has_feature(here, "amx-int8") && berth_target_has_feature(here, "avx512vnni");
    berth_arena_destroy(arena);
    return has;
}

Test(unit_tiles, on_the_unit) {
    if (!has_unit()) cr_skip("this machine has no AMX");
    for (int i = 0; i < product_count; ++i) {
        bench_case c = build(&products[i]);
        fill(&c);
        const berth_target *target = support_target(c.arena, WITH);
        cr_assert_null(berth_schedule_apply(c.fn, target));
        berth_status status = support_run_compiled(&c, target, true);
        cr_assert(!status, "%s", berth_status_message(status));
        expect_sums(&c, &products[i], "on the unit");
        support_case_destroy(&c);
    }
}
