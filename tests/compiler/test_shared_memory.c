// Programs for devices that share a memory: no copies, results in the output's place, and an order
// between all steps of different devices that use the same bytes. Plans only.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

#define SHARED "opencl -shares_host_memory=true,cpu"
#define APART "opencl,cpu"
#define TWO_SHARED "opencl -shares_host_memory=true,opencl -shares_host_memory=true,cpu"

static berth_status try_plan(berth_arena *arena, const char *text, const char *target_text,
                             const berth_program **out_program) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    char whole[8192];
    snprintf(whole, sizeof(whole), "module \"m\"\ngraph @main(%%v0: f32[1024]) { %s }", text);
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, whole, strlen(whole), "text", &module));
    berth_status status = berth_compile(
        module, &(berth_compile_options){.target = target, .plan_only = true}, &result);
    *out_program = result.program;
    return status;
}

static const berth_program *plan(berth_arena *arena, const char *text, const char *target) {
    const berth_program *program = NULL;
    assert_ok(try_plan(arena, text, target, &program));
    return program;
}

static uint64_t copied_bytes(const berth_program *p) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->step_count; ++i)
        if (p->steps[i].kind == BERTH_STEP_COPY)
            sum += p->tensors[p->steps[i].bindings[0]].size_bytes;
    return sum;
}

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(shared_memory, .init = setup, .fini = teardown);

// x goes to the GPU, a value comes back, goes there again, and the result comes back: 4 KiB each.
Test(shared_memory, nothing_is_copied) {
    static const char text[] = "%v1 = relu(%v0) on opencl:0 %v2 = neg(%v1) on cpu:0 "
                               "%v3 = exp(%v2) on opencl:0 return %v3";
    const berth_program *apart = plan(arena, text, APART);
    const berth_program *shared = plan(arena, text, SHARED);
    cr_assert_eq(copied_bytes(apart), 4 * 4096);
    cr_assert_eq(copied_bytes(shared), 0);
    cr_assert_eq(shared->step_count, 3);
    // The two values between are the second over the first, or beside it; the rest is in and out.
    uint64_t workspace = 0, io = 0;
    for (uint32_t i = 0; i < shared->pool_count; ++i) {
        const berth_program_pool *pool = &shared->pools[i];
        cr_expect_str_eq(shared->devices[pool->device].kind, "cpu");
        cr_expect_eq(pool->shared_with.word, 1, "shared with opencl:0");
        if (pool->usage == BERTH_POOL_IO) io += pool->size_bytes;
        if (pool->usage == BERTH_POOL_WORKSPACE) workspace += pool->size_bytes;
    }
    cr_expect_eq(io, 2 * 4096);
    cr_expect_leq(workspace, 2 * 4096);
}

Test(shared_memory, outputs_take_no_extra_step) {
    static const char text[] = "%v1 = relu(%v0) on opencl:0 return %v1";
    cr_expect_eq(plan(arena, text, SHARED)->step_count, 1);
    static const char passed[] = "return %v0";
    cr_expect_eq(copied_bytes(plan(arena, passed, SHARED)), 4096, "an input is not its own output");
}

// ---- order --------------------------------------------------------------------------------------

// after[a * n + b]: step a is done before b begins, by the order of queues and waits.
static bool *closure(const berth_program *p) {
    uint32_t n = p->step_count;
    bool *after = berth_arena_new_array(arena, bool, (size_t)n *n);
    for (uint32_t b = 0; b < n; ++b) {
        const berth_program_step *step = &p->steps[b];
        for (uint32_t a = 0; a < b; ++a) {
            bool direct = p->steps[a].device == step->device;
            for (uint32_t w = 0; w < step->wait_count; ++w) direct = direct || step->waits[w] == a;
            if (!direct) continue;
            after[(size_t)a * n + b] = true;
            for (uint32_t c = 0; c < a; ++c)
                if (after[(size_t)c * n + a]) after[(size_t)c * n + b] = true;
        }
    }
    return after;
}

static bool touch_same_bytes(const berth_program *p, uint32_t a, uint32_t b) {
    uint32_t counts[2];
    const uint32_t steps[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
        const berth_program_step *s = &p->steps[steps[i]];
        counts[i] = s->kind == BERTH_STEP_COPY ? 2 : p->kernels[s->kernel].binding_count;
    }
    for (uint32_t i = 0; i < counts[0]; ++i)
        for (uint32_t k = 0; k < counts[1]; ++k) {
            const berth_program_tensor *x = &p->tensors[p->steps[a].bindings[i]];
            const berth_program_tensor *y = &p->tensors[p->steps[b].bindings[k]];
            if (x->pool == y->pool && !berth_bits_is_empty(p->pools[x->pool].shared_with) &&
                p->pools[x->pool].usage != BERTH_POOL_CONSTANT &&
                x->offset_bytes < y->offset_bytes + y->size_bytes &&
                y->offset_bytes < x->offset_bytes + x->size_bytes)
                return true;
        }
    return false;
}

// xorshift64*: Marsaglia 2003, Vigna 2016.
static uint32_t pick(uint64_t *state, uint32_t bound) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 2685821657736338717u >> 33) % bound;
}

static const char *random_text(uint64_t *random, uint32_t gpus) {
    static const char *const unary[] = {"relu", "neg", "exp", "abs"};
    enum { ops = 14 };
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 1; i <= ops; ++i) {
        uint32_t device = pick(random, gpus + 1);
        if (pick(random, 2))
            berth_strbuf_addf(&text, "%%v%u = %s(%%v%u)", i, unary[pick(random, 4)],
                              pick(random, i));
        else
            berth_strbuf_addf(&text, "%%v%u = add(%%v%u, %%v%u)", i, pick(random, i),
                              pick(random, i));
        if (device == gpus)
            berth_strbuf_add(&text, " on cpu:0 ");
        else
            berth_strbuf_addf(&text, " on opencl:%u ", device);
    }
    berth_strbuf_addf(&text, "return %%v%u, %%v%u", ops, ops / 2);
    return berth_strbuf_text(&text);
}

Test(shared_memory, uses_of_the_same_bytes_are_ordered) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        uint64_t random = seed * 0x9e3779b97f4a7c15u;
        uint32_t gpus = 1 + (uint32_t)(seed % 2);
        const char *text = random_text(&random, gpus);
        const berth_program *p = plan(arena, text, gpus == 2 ? TWO_SHARED : SHARED);
        const bool *after = closure(p);
        uint64_t outputs = 0;
        for (uint32_t b = 0; b < p->step_count; ++b) {
            if (p->steps[b].kind == BERTH_STEP_COPY) outputs += 4096;
            for (uint32_t a = 0; a < b; ++a)
                if (touch_same_bytes(p, a, b))
                    cr_assert(after[(size_t)a * p->step_count + b],
                              "seed %llu: steps %u (%s) and %u (%s) use the same bytes at once",
                              (unsigned long long)seed, a, p->steps[a].name, b, p->steps[b].name);
        }
        cr_assert_leq(outputs, 4096, "copies only where a value is an output twice: %s", text);
    }
}

// ---- capacity -----------------------------------------------------------------------------------

// What the devices put into their memory together is what its capacity is for.
Test(shared_memory, capacity_counts_all_devices) {
    static const char text[] = "%v1 = relu(%v0) on opencl:0 %v2 = neg(%v1) on cpu:0 return %v2";
    static const char target[] =
        "{\"kind\": \"multi\", \"devices\": ["
        "{\"name\": \"opencl:0\", \"target\": {\"kind\": \"opencl\"}},"
        "{\"name\": \"cpu:0\", \"target\": {\"kind\": \"cpu\"}}], \"host\": \"cpu:0\", "
        "\"memories\": ["
        "{\"name\": \"dram\", \"reached_by\": [\"opencl:0\", \"cpu:0\"], \"capacity_bytes\": %d}]}";
    // In and out, 4 KiB each; the value between is where the result will be.
    const berth_program *program = NULL;
    assert_ok(try_plan(arena, text, berth_arena_printf(arena, target, 2 * 4096), &program));
    berth_status status =
        try_plan(arena, text, berth_arena_printf(arena, target, 2 * 4096 - 1), &program);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                 berth_status_message(status));
    cr_assert_not_null(strstr(berth_status_message(status), "memory \"dram\" needs 8.0 KiB"), "%s",
                       berth_status_message(status));
    berth_status_free(status);
}
