// Memory scopes of a device: values of each lie in a pool of their own, which keeps to the capacity
// of the memory that the target declares for it. Plans only.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

// A device with two memories beside its own, of `near_bytes` and 4096.
static const char target_format[] =
    "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"opencl\"}}, "
    "{\"target\": {\"kind\": \"cpu\"}}], \"memories\": ["
    "{\"name\": \"near_memory\", \"scope\": \"near\", \"capacity_bytes\": %d, \"reached_by\": "
    "[\"opencl:0\"]}, "
    "{\"name\": \"far_memory\", \"scope\": \"far\", \"capacity_bytes\": 4096, \"reached_by\": "
    "[\"opencl:0\"]}]}";

// %a is wanted in one memory, the result is made in the other, where the next call does not want it.
static const char module_text[] = "module \"m\"\n"
                                  "tensor @mul(%a: f32[64] in scope \"near\", %b: f32[64] in, "
                                  "%out: f32[64] out scope \"far\") {\n"
                                  "  for %i in 64 { %out[%i] = %a[%i] * %b[%i] }\n"
                                  "}\n"
                                  "graph @main(%x: f32[64], %w: f32[64]) {\n"
                                  "  %p = call @mul(%x, %w) on opencl:0: f32[64]\n"
                                  "  %q = call @mul(%p, %w) on opencl:0: f32[64]\n"
                                  "  return %q\n"
                                  "}\n";

static berth_status plan(berth_arena *arena, int near_bytes, const berth_program **out_program) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    char target_text[1024];
    snprintf(target_text, sizeof(target_text), target_format, near_bytes);
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    assert_ok(berth_module_parse(arena, module_text, strlen(module_text), "text", &module));
    berth_status status = berth_compile(
        module, &(berth_compile_options){.target = target, .plan_only = true}, &result);
    *out_program = result.program;
    return status;
}

static const berth_program_pool *pool_of(const berth_program *p, uint32_t tensor) {
    return &p->pools[p->tensors[tensor].pool];
}

Test(scope_pools, values_are_where_kernels_want_them) {
    berth_arena *arena = NULL;
    const berth_program *p = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(plan(arena, 4096, &p));
    uint32_t kernels = 0, between_scopes = 0;
    for (uint32_t i = 0; i < p->step_count; ++i) {
        const berth_program_step *step = &p->steps[i];
        const char *first = pool_of(p, step->bindings[0])->scope;
        const char *second = pool_of(p, step->bindings[1])->scope;
        if (step->kind == BERTH_STEP_COPY) {
            between_scopes += strcmp(first, "far") == 0 && strcmp(second, "near") == 0;
            continue;
        }
        kernels++;
        cr_expect_str_eq(first, "near");
        cr_expect_str_eq(second, "global");
        cr_expect_str_eq(pool_of(p, step->bindings[2])->scope, "far");
    }
    cr_expect_eq(kernels, 2);
    cr_expect_eq(between_scopes, 1, "the first product goes to where the second call wants it");
    for (uint32_t i = 0; i < p->pool_count; ++i) {
        bool global = strcmp(p->pools[i].scope, "global") == 0;
        if (!global) cr_expect_leq(p->pools[i].size_bytes, 4096);
        if (!global) cr_expect_str_eq(p->devices[p->pools[i].device].name, "opencl:0");
    }
    berth_arena_destroy(arena);
}

// 256 bytes are needed there at a time.
Test(scope_pools, capacity_is_kept) {
    berth_arena *arena = NULL;
    const berth_program *p = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(plan(arena, 256, &p));
    berth_status status = plan(arena, 255, &p);
    cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    const char *message = berth_status_message(status);
    cr_expect(strstr(message, "memory \"near_memory\" needs 256 B"), "%s", message);
    cr_expect(strstr(message, "The largest values at the peak: "), "%s", message);
    cr_expect(strstr(message, "x (256 B)") || strstr(message, "p (256 B)"), "%s", message);
    berth_status_free(status);
    berth_arena_destroy(arena);
}
