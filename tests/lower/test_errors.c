// What cannot be lowered says why; running out of memory at any allocation leaves nothing behind.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/lower/context.h"
#include "tests/lower/op_case.h"

static const char *refusal(const char *text, berth_arena *arena) {
    berth_module *module = berth_module_create(arena, "case");
    berth_func_id function = BERTH_NONE;
    berth_func_id lowered = 0;
    berth_status status = op_case_build(text, module, &function);
    cr_assert_null(status, "%s: %s", text, berth_status_message(status));
    berth_op_id op = berth_graph_get(module, function)->ops.count - 1;
    const char *answer = berth_lower_check(module, function, op, arena);
    status = berth_lower_function(module, function, &lowered);
    cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED, "%s: %s", text,
                 berth_status_message(status));
    cr_expect_eq(lowered, BERTH_NONE);
    const char *message = berth_arena_strdup(arena, berth_status_message(status));
    berth_status_free(status);
    cr_expect(answer && strcmp(answer, message) == 0, "%s: berth_lower_check says %s", text,
              answer ? answer : "yes");
    return message;
}

Test(lower_errors, reasons) {
    static const struct {
        const char *text;
        const char *reason;
    } rows[] = {{"slice | f32[5,6] i64[2]~0,0 i64[2]~2,2 |", "static shape"},
                {"cum_sum | f32[5,6] i64[]~0 |", "data-dependent"},
                {"non_zero | f32[5,6] |", "static shape"},
                {"compress | f32[5,6] bool[5] |", "static shape"},
                {"dft | f32[2,6,1] - f32[1,1,6,2,5] |", "no tables"},
                {"batch_normalization | f32[2,3] f32[3] f32[3] f32[3] f32[3] | training_mode=1",
                 "training mode"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        const char *message = refusal(rows[i].text, arena);
        cr_expect(strstr(message, rows[i].reason) != NULL, "%s: %s", rows[i].text, message);
        berth_arena_destroy(arena);
    }
}

// Operations that compute something and have no lowering, each with the reason.
static bool may_lack_lowering(berth_op_kind kind) {
    if (berth_op_has(kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST)) return true;  // not kernels
    if (berth_op_has(kind, BERTH_TRAIT_DATA_DEPENDENT)) return true;  // no static result shape
    if (berth_op_has(kind, BERTH_TRAIT_INTERPRETED)) return true;     // the host's only
    if (kind == BERTH_OP_BIT_CAST) return true;  // a view of the same bytes, never fused
    return kind == BERTH_OP_MEL_WEIGHT_MATRIX || kind == BERTH_OP_RANDOM;  // always folded
}

Test(lower_errors, every_operation_has_a_row) {
    for (int kind = 0; kind < BERTH_OP_COUNT; ++kind) {
        bool expected = !may_lack_lowering((berth_op_kind)kind);
        if (expected)
            cr_expect_not_null(berth_lower__row((berth_op_kind)kind), "%s has no lowering",
                               berth_op_facts_get((berth_op_kind)kind)->name);
    }
}

// ---- out of memory ------------------------------------------------------------------------------

typedef struct attempt {
    const char *text;
    berth_arena *arena;
    berth_module *module;
    berth_func_id function;
} attempt;

static berth_status build_attempt(void *user) {
    attempt *a = user;
    a->module = berth_module_create(a->arena, "case");
    return op_case_build(a->text, a->module, &a->function);
}

Test(lower_errors, out_of_memory) {
    static const char *const texts[] = {
        "conv | f32[1,13,5,5]{aBcd8b} f32[11,13,3,3] f32[11] | pads=1,1,1,1 | {aBcd8b}",
        "top_k | f32[3,8] i64[1]=3 | | . .",
        "cum_sum | f32[5,6] i64[]~0 |",  // fails by itself
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        bool finished = false;
        for (int64_t n = 1; n < 100000 && !finished; ++n) {
            berth_counting_allocator counting;
            berth_counting_allocator_init(&counting, berth_allocator_system());
            attempt a = {.text = texts[i], .function = BERTH_NONE};
            berth_func_id lowered = BERTH_NONE;
            cr_assert_null(berth_arena_create(berth_counting_allocator_get(&counting), &a.arena));
            cr_assert_null(berth_arena_try(a.arena, build_attempt, &a));
            counting.fail_at = n;
            berth_status status = berth_lower_function(a.module, a.function, &lowered);
            finished = berth_status_code(status) != BERTH_OUT_OF_MEMORY;
            cr_expect((lowered != BERTH_NONE) == (status == BERTH_OK));
            berth_status_free(status);
            berth_arena_destroy(a.arena);
            cr_assert_eq(counting.live_bytes, 0, "%s, allocation %lld", texts[i], (long long)n);
        }
        cr_expect(finished);
    }
}

// ---- cost ---------------------------------------------------------------------------------------

typedef struct chain {
    berth_arena *arena;
    berth_module *module;
    berth_func_id function;
    uint32_t count;
    size_t asked_bytes;  // of the system, in all
} chain;

static void *count_bytes(void *state, void *pointer, size_t old_size_bytes, size_t new_size_bytes) {
    ((chain *)state)->asked_bytes += new_size_bytes;
    berth_allocator system = berth_allocator_system();
    return system.resize(system.state, pointer, old_size_bytes, new_size_bytes);
}

static berth_status build_chain(void *user) {
    chain *c = user;
    c->module = berth_module_create(c->arena, "chain");
    c->function = berth_graph_create(c->module, "main", 0);
    berth_type_id type = berth_type_tensor(c->module, BERTH_DTYPE_F32, 1, (int64_t[]){4});
    berth_value_id value = berth_graph_add_param(c->module, c->function, "x", type);
    for (uint32_t i = 0; i < c->count; ++i) {
        value = berth_graph_op1(c->module, c->function, BERTH_OP_RELU, &value, 1, 0);
        berth_graph_get(c->module, c->function)->values.data[value].type = type;
    }
    return BERTH_OK;
}

static berth_status check_all(void *user) {
    chain *c = user;
    for (uint32_t op = 0; op < 100; ++op)
        cr_assert_null(berth_lower_check(c->module, c->function, op, c->arena));
    return BERTH_OK;
}

// The graph around an operation costs nothing: the same memory for a question in a chain of 100 and
// in one of 20,000.
Test(lower_errors, a_check_is_as_large_as_its_operation) {
    size_t asked_bytes[2];
    for (int i = 0; i < 2; ++i) {
        chain c = {.count = i ? 20000 : 100};
        cr_assert_null(berth_arena_create((berth_allocator){count_bytes, &c}, &c.arena));
        cr_assert_null(berth_arena_try(c.arena, build_chain, &c));
        c.asked_bytes = 0;
        cr_assert_null(berth_arena_try(c.arena, check_all, &c));
        asked_bytes[i] = c.asked_bytes;
        berth_arena_destroy(c.arena);
    }
    cr_expect_leq(asked_bytes[1], asked_bytes[0] + asked_bytes[0] / 4, "%zu against %zu bytes",
                  asked_bytes[1], asked_bytes[0]);
}
