// How many plans are made until one fits, or none does (compiler/fit/fit.h).
#include "compiler/fit/fit.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "tests/check.h"

// Windows of 3 x 3: 24 x 24 values, then 22 x 22, 20 x 20, and one.
static const char windows[] = "module \"m\"\n"
                              "graph @main(%x: f32[1,1,24,24]) {\n"
                              "  %a = max_pool(%x) {kernel_shape = [3, 3]}\n"
                              "  %b = max_pool(%a) {kernel_shape = [3, 3]}\n"
                              "  %c = max_pool(%b) {kernel_shape = [20, 20]}\n"
                              "  return %c\n"
                              "}\n";

enum { BORDER_BYTES = (24 * 24 + 1) * 4, A_BYTES = 22 * 22 * 4 };

// Of passes that ran: of every try one, and one of those whose memory was planned.
typedef struct counts {
    uint32_t tries, plans;
} counts;

static void count_pass(void *user, const berth_pass *pass, const berth_module *module,
                       int64_t elapsed_ns) {
    counts *c = user;
    (void)module;
    (void)elapsed_ns;
    c->tries += strcmp(pass->name, "simplify") == 0;
    c->plans += strcmp(pass->name, "schedule") == 0;
}

static berth_status fit(unsigned budget_bytes, const char *patches, counts *out_counts) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    char budget[32];
    snprintf(budget, sizeof(budget), "sram=%u", budget_bytes);
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, windows, strlen(windows), "test", &module));
    berth_target_options target_options = {.runtime = "bare", .budgets = budget};
    assert_ok(berth_target_parse(arena, "cpu -arch=cortex-m4", &target_options, &target));
    *out_counts = (counts){0};
    berth_pass_instrument instrument = {count_pass, out_counts};
    berth_compile_options options = {.target = target,
                                     .patches = patches,
                                     .plan_only = true,
                                     .instruments = &instrument,
                                     .instrument_count = 1};
    berth_fitted fitted;
    berth_status status = berth_fit(module, &options, &fitted);
    berth_fitted_release(&fitted);
    berth_arena_destroy(arena);
    return status;
}

// Without slices and with them it is the same plan: there are no channels to slice. One is made, and one for what
// it needs before that is named.
Test(fit, what_is_refused_is_not_planned_again) {
    counts c;
    char least[64];
    snprintf(least, sizeof(least), "(%d bytes)", BORDER_BYTES + A_BYTES + 20 * 20 * 4);
    assert_fails(fit(BORDER_BYTES + A_BYTES, "never", &c), BERTH_OUT_OF_MEMORY, least);
    cr_expect_eq(c.plans, 2, "%u plans", c.plans);
}

// Below the inputs and outputs nothing fits: what there is with little work is not looked for, only what needs the
// least. That is the same for every limit that is too small.
Test(fit, below_inputs_and_outputs_only_the_least_is_looked_for) {
    counts hopeless, tight;
    berth_status below = fit(1, "auto", &hopeless), above = fit(BORDER_BYTES + 1, "auto", &tight);
    unsigned long long least = 0, other = 0;
    cr_assert(below && above);
    cr_expect_eq(sscanf(berth_status_message(below), "%*[^(](%llu", &least), 1);
    cr_expect_eq(sscanf(berth_status_message(above), "%*[^(](%llu", &other), 1);
    cr_expect_eq(least, other);
    cr_expect_lt(least, BORDER_BYTES + A_BYTES, "patches are found: %llu bytes", least);
    cr_expect_lt(hopeless.tries, tight.tries, "%u and %u tries", hopeless.tries, tight.tries);
    berth_status_free(below);
    berth_status_free(above);
}
