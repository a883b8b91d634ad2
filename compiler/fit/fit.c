#include "compiler/fit/fit.h"

#include <string.h>

#include "compiler/passes/packed_store.h"
#include "compiler/passes/tensor_parallel.h"

// ---- one try ------------------------------------------------------------------------------------

void berth_fitted_release(berth_fitted *fitted) {
    berth_arena_destroy(fitted->arena);
    berth_packed_store_destroy(fitted->packed_store);
    *fitted = (berth_fitted){0};
}

typedef struct copy_job {
    const berth_module *module;
    berth_fitted *fitted;
} copy_job;

static berth_status run_copy(void *user) {
    copy_job *job = user;
    job->fitted->module = berth_module_copy(job->fitted->arena, job->module);
    return BERTH_OK;
}

static berth_status compile_once(berth_fit_tries *tries, const berth_compile_options *options,
                                 berth_fitted *fitted) {
    berth_compile_options with_store = *options;
    if (tries->count++ == 1) {
        BERTH_TRY(berth_packed_store_create(berth_allocator_system(), &tries->packed_store));
        BERTH_TRY(berth_packed_store_trust(tries->packed_store, tries->module));
    }
    if (!options->packed_store) with_store.packed_store = tries->packed_store;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &fitted->arena));
    copy_job job = {.module = tries->module, .fitted = fitted};
    BERTH_TRY(berth_arena_try(fitted->arena, run_copy, &job));
    return berth_compile(fitted->module, &with_store, &fitted->result);
}

// In place of what `fitted` held. What is known not to fit is not made again.
static berth_status try_once(berth_fit_tries *tries, const berth_compile_options *options,
                             berth_fitted *fitted) {
    berth_fitted_release(fitted);
    if (!berth_fit__may_know(tries, options)) return compile_once(tries, options, fitted);
    berth_fit_question question = {.known = tries->known, .options = options};
    berth_compile_options asking = *options;
    asking.when_sliced = berth_fit__ask;
    asking.when_sliced_user = &question;
    berth_status status = options->no_slices ? berth_fit__ask(&question, "") : BERTH_OK;
    if (!status) status = compile_once(tries, &asking, fitted);
    if (question.found) {
        berth_status_free(status);
        berth_fit__answer(&question, &status, &fitted->result);
    } else {
        berth_fit__learn(&question, status, &fitted->result);
    }
    return status;
}

// Of an error: what it says of the target's memories; 0 = nothing.
berth_fit_over berth_fit__over_of(berth_status status, const berth_fitted *fitted) {
    const berth_compile_result *result = &fitted->result;
    if (status == berth_status_oom()) return (berth_fit_over){0};
    return (berth_fit_over){result->over_bytes, result->over_device, result->over_memory};
}

void berth_fit__set_over(berth_fitted *fitted, berth_fit_over over) {
    fitted->result.over_bytes = over.bytes;
    fitted->result.over_device = over.device;
    fitted->result.over_memory = over.memory;
}

// ---- room ---------------------------------------------------------------------------------------

static bool places_by_search(const berth_compile_options *options) {
    return options->strategy && strcmp(options->strategy, "default") != 0;
}

// So much less room for constants on the device that the last plan was too large for, and on all that share its
// memory. False where nothing is left to take.
static bool reserve_more(const berth_compile_options *options, const berth_fitted *fitted,
                         bool everything, uint64_t *reserve_bytes) {
    const berth_multi_target *target = options->target;
    uint32_t over = fitted->result.over_device;
    uint64_t reserve = reserve_bytes[over];
    if (reserve == UINT64_MAX) return false;
    reserve = everything ? UINT64_MAX : reserve + fitted->result.over_bytes;
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].own_memory == target->devices[over].own_memory)
            reserve_bytes[d] = reserve;
    return true;
}

// Where the memory plan exceeds a memory by so much, the model is placed again with so much less room for
// constants there, and then, device by device, with nothing there that could be elsewhere. The error of
// the first try is reported where that does not help.
static berth_status search_room(berth_fit_tries *tries, const berth_compile_options *asked,
                                uint64_t *reserve_bytes, berth_fitted *fitted) {
    enum { room_attempts = 2 };
    berth_compile_options options = *asked;
    berth_status first = BERTH_OK;
    for (int i = 0;; ++i) {
        berth_status status = try_once(tries, &options, fitted);
        if (!status || status == berth_status_oom()) {
            berth_status_free(first);
            return status;
        }
        if (i == 0)
            first = status;
        else
            berth_status_free(status);
        if (fitted->result.over_bytes == 0 || !places_by_search(&options)) return first;
        options.reserve_bytes = reserve_bytes;
        if (!reserve_more(&options, fitted, i >= room_attempts, reserve_bytes)) return first;
    }
}

static berth_status with_room(berth_fit_tries *tries, const berth_compile_options *options,
                              berth_fitted *fitted) {
    berth_allocator allocator = berth_allocator_system();
    size_t count = options->target->device_count;
    uint64_t *reserve_bytes = berth_calloc(allocator, count, sizeof(*reserve_bytes));
    if (!reserve_bytes) return berth_status_oom();
    berth_status status = search_room(tries, options, reserve_bytes, fitted);
    berth_free(allocator, reserve_bytes, count * sizeof(*reserve_bytes));
    return status;
}

// ---- slices -------------------------------------------------------------------------------------

// Left free beside what pieces of weights are estimated to need, where that was too little: in powers of two.
enum { least_spare_bytes = 256, most_spare_bytes = 8192 };

// Of two errors, the one of the plan that exceeds the memory by less; the other one is freed. False: the first.
static bool take_lesser(berth_status *first, uint64_t first_over_bytes, berth_status second,
                        uint64_t second_over_bytes) {
    bool lesser = second == berth_status_oom() || second_over_bytes == 0 ||
                  second_over_bytes < first_over_bytes;
    berth_status_free(lesser ? *first : second);
    if (lesser) *first = second;
    return lesser;
}

// For the next round. False: there is none.
static bool change_slices(berth_compile_options *options, const berth_fitted *fitted,
                          uint64_t least_bytes) {
    const berth_multi_target *target = options->target;
    uint32_t memory = target->devices[fitted->result.over_device].own_memory;
    bool constants = fitted->result.over_memory != memory;  // RAM has no room for pieces of them
    bool reads = berth_multi_target_memory_of(target, fitted->result.over_device,
                                              BERTH_TARGET_SCOPE_STORE) != BERTH_NO_INDEX;
    if (constants && (!reads || options->slice_spare_bytes >= most_spare_bytes)) return false;
    if (constants)
        options->slice_spare_bytes =
            options->slice_spare_bytes ? 2 * options->slice_spare_bytes : least_spare_bytes;
    else
        options->slice_budget_bytes = target->memories[memory].budget_bytes + least_bytes - 1;
    return true;
}

// With channels in slices. How many are best is an estimate: a plan that exceeds the memory by little more than the
// best so far is made once more with slices as for a byte less than that one needs, until that gives no better one.
static berth_status with_slices(berth_fit_tries *tries, const berth_compile_options *asked,
                                berth_fitted *fitted) {
    enum { most_rounds = 16, slack_share = 16 };
    berth_compile_options options = *asked;
    uint64_t *least_bytes = &tries->least_over_bytes;
    berth_status status = with_room(tries, &options, fitted);
    berth_fit_over over = berth_fit__over_of(status, fitted);
    for (int i = 0; i < most_rounds && over.bytes > 0; ++i) {
        if (*least_bytes == 0 || over.bytes < *least_bytes) *least_bytes = over.bytes;
        uint64_t spare_bytes = options.slice_spare_bytes;
        bool near = over.bytes <= *least_bytes + *least_bytes / slack_share;
        if (!change_slices(&options, fitted, *least_bytes)) break;
        if (!near && options.slice_spare_bytes == spare_bytes) break;
        berth_status next = with_room(tries, &options, fitted);
        berth_fit_over next_over = berth_fit__over_of(next, fitted);
        if (!next) {
            berth_status_free(status);
            return BERTH_OK;
        }
        bool lesser = take_lesser(&status, over.bytes, next, next_over.bytes);
        if (!lesser && options.slice_spare_bytes == spare_bytes) break;
        if (lesser) over = next_over;
    }
    berth_fit__set_over(fitted, over);
    return status;
}

// Whether values are computed again in each run, or constants read.
static bool works_again(const berth_fitted *fitted) {
    return fitted->result.memory && fitted->result.memory->streamed_count > 0;
}

// Plain C: channels in slices (passes/slice_channels.h) only where the plan without does not fit, or fits with values
// that are computed again, for what slices need is estimated, results over operands apart. Where neither fits,
// the error of the one that needs less.
static berth_status one_way(berth_fit_tries *tries, const berth_compile_options *options,
                            berth_fitted *fitted) {
    berth_compile_options whole = *options;
    whole.no_slices = true;
    if (options->target->executor != BERTH_EXECUTOR_AOT || options->stop_after ||
        options->no_slices)
        return with_room(tries, options, fitted);
    berth_status status = with_room(tries, &whole, fitted);
    berth_fit_over over = berth_fit__over_of(status, fitted);
    bool fits = !status;
    if (fits ? !works_again(fitted) : over.bytes == 0) return status;
    berth_status sliced = with_slices(tries, options, fitted);
    if (!sliced && (!fits || !works_again(fitted))) {
        berth_status_free(status);
        return BERTH_OK;
    }
    berth_fit_over sliced_over = berth_fit__over_of(sliced, fitted);
    if (fits) {
        bool failed = sliced && sliced_over.bytes == 0;
        if (failed) return sliced;
        berth_status_free(sliced);
        return with_room(tries, &whole, fitted);
    }
    if (!take_lesser(&status, over.bytes, sliced, sliced_over.bytes))
        berth_fit__set_over(fitted, over);
    return status;
}

// ---- ways ---------------------------------------------------------------------------------------

static bool is_asked(const berth_compile_options *options, const char *parallel) {
    return options->parallel && strcmp(options->parallel, parallel) == 0;
}

// One way to use several devices: "none", "tensor", or "pipeline", operations of its own for each.
static berth_compile_options in_parallel(const berth_compile_options *options, const char *how) {
    berth_compile_options way = *options;
    bool pipeline = strcmp(how, "pipeline") == 0;
    way.parallel = pipeline ? "none" : how;
    if (pipeline && !places_by_search(options)) way.strategy = "auto";
    return way;
}

// Of a part of the passes nothing is predicted that ways could be compared by.
static berth_status first_way(berth_fit_tries *tries, const berth_compile_options *options,
                              berth_fitted *fitted) {
    berth_compile_options way = in_parallel(options, "none");
    berth_log_message(options->log, BERTH_LOG_INFO,
                      "parallel auto: ways are compared by whole plans; up to pass %s it is none",
                      options->stop_after);
    return one_way(tries, &way, fitted);
}

// Plans every way, and takes the one with the shortest predicted time of those that can be planned and fit the
// memories; the first of equal ones. Where none can, the error of the first.
static berth_status fastest_way(berth_fit_tries *tries, const berth_compile_options *options,
                                berth_fitted *fitted) {
    static const char *const ways[] = {"none", "tensor", "pipeline"};
    const char *best = NULL;
    double best_ns = 0;
    berth_status first = BERTH_OK;
    berth_fit_over first_over = {0};
    uint32_t count = berth_tensor_parallel_devices(options->target) > 1 ? 3 : 0;
    for (uint32_t i = 0; i < count; ++i) {
        berth_compile_options way = in_parallel(options, ways[i]);
        way.plan_only = true;
        berth_status status = one_way(tries, &way, fitted);
        if (!status) {
            double ns = fitted->result.program->predicted_ns;
            berth_log_message(options->log, BERTH_LOG_INFO, "parallel %s: %.3f ms predicted",
                              ways[i], ns / 1e6);
            if (!best || ns < best_ns) {
                best = ways[i];
                best_ns = ns;
            }
            continue;
        }
        if (status == berth_status_oom()) {
            berth_status_free(first);
            return status;
        }
        berth_log_message(options->log, BERTH_LOG_INFO, "parallel %s: %s", ways[i],
                          berth_status_message(status));
        if (first) {
            berth_status_free(status);
            continue;
        }
        first = status;
        first_over = berth_fit__over_of(status, fitted);
    }
    if (!best && first) {
        berth_fit__set_over(fitted, first_over);
        return first;
    }
    berth_status_free(first);
    berth_compile_options way = in_parallel(options, best ? best : ways[0]);
    return one_way(tries, &way, fitted);
}

berth_status berth_fit__without_patches(berth_fit_tries *tries,
                                        const berth_compile_options *options,
                                        berth_fitted *fitted) {
    if (is_asked(options, "auto"))
        return options->stop_after ? first_way(tries, options, fitted)
                                   : fastest_way(tries, options, fitted);
    if (!is_asked(options, "pipeline")) return one_way(tries, options, fitted);
    berth_compile_options way = in_parallel(options, "pipeline");
    return one_way(tries, &way, fitted);
}
