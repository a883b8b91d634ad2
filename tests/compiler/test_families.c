// Programs that differ in numbers only: which numbers are expressions, and how those are divided that are none.
#include <string.h>

#include "compiler/vm/families.h"
#include "tests/check.h"

enum { first = 9, most_count = 72 };

// What an operation on one integer gives.
static int64_t product(int64_t v) {
    return 3 * v + 5;
}
// What tiles of 8 leave over of every fourth: two quotients.
static int64_t rest_of_tiles(int64_t v) {
    return (v + 3) / 4 % 8;
}
// 9 of 14 tiles for each 4 columns, rounded up: none of the quotients that are tried by their numbers.
static int64_t tiles_of_tiles(int64_t v) {
    return 6 * ((9 * v + 100) / 56) + 5;
}
static int64_t odd_and_even(int64_t v) {
    return v % 2 ? v * v : 7 * v + 1;
}
static int64_t no_less_than(int64_t v) {
    return v < 40 ? 64 : 2 * v - 7;
}
static int64_t four_kinds(int64_t v) {
    return v * (v % 4 + 1) + v % 4 * v % 4 * v;
}
static int64_t anything(int64_t v) {
    return v * v * v % 257 * (v % 13);
}

typedef struct case_of {
    int64_t (*of)(int64_t v);
    uint32_t count, most_variants;
} case_of;

// Results for each value of one integer, as variants of code for it.
static berth_vm_variant *variants_of(const case_of *c, berth_arena *arena) {
    berth_vm_variant *variants = berth_arena_new_array(arena, berth_vm_variant, c->count);
    for (uint32_t i = 0; i < c->count; ++i) {
        const int64_t one = 1, v = first + (int64_t)(c->count - 1 - i);
        berth_tensor *tensors = berth_arena_new_array(arena, berth_tensor, 2);
        for (int k = 0; k < 2; ++k)
            tensors[k] = berth_tensor_create(arena, BERTH_DTYPE_I64, 1, &one);
        berth_tensor_set_i64(&tensors[0], 0, v);
        berth_tensor_set_i64(&tensors[1], 0, c->of(v));
        variants[i] = (berth_vm_variant){.inputs = &tensors[0], .results = &tensors[1]};
    }
    return variants;
}

// What the families and variants that were found give for a value.
static int64_t result_for(const berth_vm_program *code, const berth_vm_families *found, int64_t v,
                          berth_arena *arena) {
    const int64_t one = 1;
    const berth_vm_body body = {code, found->variants, found->variant_count, found->families,
                                found->family_count};
    berth_tensor input = berth_tensor_create(arena, BERTH_DTYPE_I64, 1, &one);
    berth_tensor_set_i64(&input, 0, v);
    for (uint32_t i = 0; i < found->family_count; ++i) {
        int64_t values[BERTH_FAMILY_VARIABLES];
        berth_vm_variant made;
        if (!berth_vm_family_holds(&found->families[i], &input, values)) continue;
        assert_ok(berth_vm_family_member(&body, &found->families[i], values, arena, &made));
        return berth_tensor_get_i64(&made.results[0], 0);
    }
    for (uint32_t i = 0; i < found->variant_count; ++i)
        if (berth_tensor_get_i64(&found->variants[i].inputs[0], 0) == v)
            return berth_tensor_get_i64(&found->variants[i].results[0], 0);
    cr_expect(false, "nothing is for %ld", (long)v);
    return -1;
}

typedef struct find_job {
    const case_of *c;
    berth_arena *arena;
} find_job;

static berth_status expect_found(void *user) {
    const find_job *job = user;
    static const berth_vm_piece piece = {
        .name = "n", .op = "o", .input_count = 1, .output_count = 1};
    const berth_vm_program code = {.name = "p", .segments = &piece, .segment_count = 1};
    const berth_vm_variant *variants = variants_of(job->c, job->arena);
    berth_vm_families found;
    BERTH_TRY(berth_vm_families_find(job->arena, &code, variants, job->c->count, &found));
    cr_expect_leq(found.variant_count, job->c->most_variants, "%u", found.variant_count);
    for (int64_t v = first; v < first + job->c->count; ++v)
        cr_expect_eq(result_for(&code, &found, v, job->arena), job->c->of(v), "of %ld", (long)v);
    return BERTH_OK;
}

Test(families, numbers_that_are_no_expression_divide_what_they_are_of) {
    static const case_of cases[] = {
        {product, 40, 1},      {tiles_of_tiles, 60, 1},
        {odd_and_even, 40, 2}, {no_less_than, 62, 2},  // from 9 to 70: 40 is the middle
        {four_kinds, 40, 4},   {anything, 20, 20},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        find_job job = {&cases[i], NULL};
        assert_ok(berth_arena_create(berth_allocator_system(), &job.arena));
        assert_ok(berth_arena_try(job.arena, expect_found, &job));
        berth_arena_destroy(job.arena);
    }
}

static int64_t value_for(const berth_fitter *f, uint32_t quantity, const int64_t *values) {
    const berth_vm_quantity *q = &f->quantities.data[quantity];
    switch (q->kind) {
    case BERTH_QUANTITY_VARIABLE: return values[q->a];
    case BERTH_QUANTITY_NUMBER: return q->number;
    case BERTH_QUANTITY_SUM: return value_for(f, q->a, values) + value_for(f, q->b, values);
    case BERTH_QUANTITY_PRODUCT: return value_for(f, q->a, values) * value_for(f, q->b, values);
    default: return value_for(f, q->a, values) / q->number;
    }
}

static int64_t value_of(const berth_fitter *f, uint32_t quantity, int64_t v) {
    return value_for(f, quantity, &v);
}

static berth_status expect_rest(void *user) {
    berth_arena *arena = user;
    int64_t values[most_count * BERTH_FAMILY_VARIABLES] = {0}, every[most_count], rest[most_count];
    for (int m = 0; m < most_count; ++m) {
        const int64_t v = values[m * BERTH_FAMILY_VARIABLES] = first + m;
        every[m] = (v + 3) / 4;
        rest[m] = rest_of_tiles(v);
    }
    berth_fitter f = {
        .arena = arena, .variable_count = 1, .member_count = most_count, .values = values};
    cr_expect_eq(berth_fitter_fit(&f, rest), UINT32_MAX, "two quotients at once");
    cr_expect_neq(berth_fitter_fit(&f, every), UINT32_MAX);
    const uint32_t made = berth_fitter_fit(&f, rest);
    cr_assert_neq(made, UINT32_MAX, "a quotient of what is known");
    for (int64_t v = first; v < first + most_count; ++v)
        cr_expect_eq(value_of(&f, made, v), rest_of_tiles(v));
    return BERTH_OK;
}

// Rows in tiles of 12, then of 4, then one by one: tiles of 4 are an expression of the other two numbers.
static berth_status expect_smaller_tiles(void *user) {
    berth_arena *arena = user;
    int64_t values[most_count * BERTH_FAMILY_VARIABLES] = {0};
    int64_t whole[most_count], in_tiles[most_count], smaller[most_count];
    for (int m = 0; m < most_count; ++m) {
        const int64_t v = values[m * BERTH_FAMILY_VARIABLES] = first + m;
        whole[m] = v / 12;
        in_tiles[m] = v / 4 * 4;
        smaller[m] = v % 12 / 4;
    }
    berth_fitter f = {
        .arena = arena, .variable_count = 1, .member_count = most_count, .values = values};
    cr_expect_eq(berth_fitter_fit(&f, smaller), UINT32_MAX, "two quotients at once");
    cr_expect_neq(berth_fitter_fit(&f, whole), UINT32_MAX);
    cr_expect_eq(berth_fitter_fit(&f, smaller), UINT32_MAX, "one of two");
    cr_expect_neq(berth_fitter_fit(&f, in_tiles), UINT32_MAX);
    const uint32_t made = berth_fitter_fit(&f, smaller);
    cr_assert_neq(made, UINT32_MAX, "a plane over both");
    for (int64_t v = first; v < first + most_count; ++v)
        cr_expect_eq(value_of(&f, made, v), v % 12 / 4);
    smaller[most_count / 2]++;
    cr_expect_eq(berth_fitter_fit(&f, smaller), UINT32_MAX, "all but one member");
    return BERTH_OK;
}

// Tiles of rows times tiles of columns of some pictures: two quotients, of two variables.
static berth_status expect_product(void *user) {
    enum { pictures = 3, rows = 4, columns = 6, all = pictures * rows * columns };
    berth_arena *arena = user;
    int64_t values[all * BERTH_FAMILY_VARIABLES] = {0}, tiles[all];
    for (int m = 0; m < all; ++m) {
        int64_t *v = &values[m * BERTH_FAMILY_VARIABLES];
        v[0] = 1 + m / (rows * columns);
        v[1] = 8 + m / columns % rows;
        v[2] = 21 + m % columns;
        tiles[m] = 5 * v[0] * ((v[1] + 1) / 2) * ((v[2] + 3) / 4);
    }
    berth_fitter f = {.arena = arena, .variable_count = 3, .member_count = all, .values = values};
    const uint32_t made = berth_fitter_fit(&f, tiles);
    cr_assert_neq(made, UINT32_MAX, "a product of what each variable gives");
    for (int m = 0; m < all; ++m)
        cr_expect_eq(value_for(&f, made, &values[m * BERTH_FAMILY_VARIABLES]), tiles[m], "%d", m);
    tiles[all / 2]++;
    cr_expect_eq(berth_fitter_fit(&f, tiles), UINT32_MAX, "all but one member");
    return BERTH_OK;
}

Test(families, a_product_of_quotients_of_several_variables_is_an_expression) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, expect_product, arena));
    berth_arena_destroy(arena);
}

Test(families, tiles_of_a_smaller_size_are_an_expression_of_the_others) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, expect_smaller_tiles, arena));
    berth_arena_destroy(arena);
}

Test(families, what_is_left_of_a_quotient_is_an_expression_of_it) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, expect_rest, arena));
    berth_arena_destroy(arena);
}
