// The least memory that a refusal names is one that a plan keeps to: a plan for that much is made before it is named.
#include <string.h>

#include "compiler/fit/fit.h"

// What a plan needs depends on the room that it was made for (slices of channels, patches): one that is made for
// what another one needs may need more.
enum { most_rounds = 4 };

static bool exceeds(berth_status status, const berth_fitted *fitted) {
    return status && status != berth_status_oom() && fitted->result.over_bytes > 0;
}

// A plan for so much more of a memory; what it says of the limit is of the one that was asked for. `patches`: these
// alone, and slices as for this limit; NULL = whatever fits.
static berth_status plan_with_more(berth_fit_tries *tries, const berth_compile_options *asked,
                                   uint32_t memory, uint64_t more_bytes, const char *patches,
                                   berth_fitted *fitted) {
    berth_allocator allocator = berth_allocator_system();
    berth_compile_options options = *asked;
    berth_multi_target target = *asked->target;
    size_t size_bytes = target.memory_count * sizeof(*target.memories);
    target.memories = berth_calloc(allocator, target.memory_count, sizeof(*target.memories));
    if (!target.memories) return berth_status_oom();
    memcpy(target.memories, asked->target->memories, size_bytes);
    options.stated_limit_bytes = target.memories[memory].budget_bytes;
    target.memories[memory].budget_bytes += more_bytes;
    options.target = &target;
    options.plan_only = true;
    options.log = (berth_log){0};
    options.progress = NULL;
    berth_fit_tries more = {.module = tries->module,
                            .count = tries->count,
                            .packed_store = tries->packed_store,
                            .known = tries->known};
    if (patches) {
        options.patches = patches;
        more.least_over_bytes = 1;  // no further rounds: what they do depends on the plans before
    }
    berth_status status = patches ? berth_fit__without_patches(&more, &options, fitted)
                                  : berth_fit__with_patches(&more, &options, fitted);
    tries->count = more.count;
    tries->packed_store = more.packed_store;
    berth_free(allocator, target.memories, size_bytes);
    return status;
}

// Whether the patches of the plan that needs so much are a plan for that limit, too: the search comes to them, unless
// something fits before.
static bool is_enough(berth_fit_tries *tries, const berth_compile_options *options, uint32_t memory,
                      uint64_t more_bytes) {
    const char *patches = berth_fit__patches_of_least(tries->known, memory);
    if (!patches) return false;
    berth_fitted tried = {0};
    berth_status status = plan_with_more(tries, options, memory, more_bytes, patches, &tried);
    berth_fitted_release(&tried);
    berth_status_free(status);
    return !status;
}

// `status` is that of a plan that exceeds a memory. Returns it, or that of one for the least that it named which
// needs more.
static berth_status name_least(berth_fit_tries *tries, const berth_compile_options *options,
                               berth_status status, berth_fitted *fitted) {
    uint32_t memory = fitted->result.over_memory;
    for (int i = 0; i < most_rounds; ++i) {
        berth_fitted tried = {0};
        uint64_t more_bytes = fitted->result.over_bytes;
        if (is_enough(tries, options, memory, more_bytes)) break;
        berth_status next = plan_with_more(tries, options, memory, more_bytes, NULL, &tried);
        bool again = exceeds(next, &tried) && tried.result.over_memory == memory;
        if (again) {
            berth_status_free(status);
            status = next;
            fitted->result.over_bytes = more_bytes + tried.result.over_bytes;
        } else {
            berth_status_free(next);
        }
        berth_fitted_release(&tried);
        if (!again) break;
    }
    return status;
}

berth_status berth_fit(const berth_module *module, const berth_compile_options *options,
                       berth_fitted *out_fitted) {
    *out_fitted = (berth_fitted){0};
    BERTH_TRY(berth_fit_check_patches(options->patches));
    berth_fit_tries tries = {.module = module};
    BERTH_TRY(berth_fit__known_create(&tries.known));
    berth_status status = berth_fit__with_patches(&tries, options, out_fitted);
    if (options->target->executor == BERTH_EXECUTOR_AOT && exceeds(status, out_fitted))
        status = name_least(&tries, options, status, out_fitted);
    berth_fit__known_destroy(tries.known);
    out_fitted->packed_store = tries.packed_store;
    return status;
}
