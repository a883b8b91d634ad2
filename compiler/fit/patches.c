// Which stages of a model run in patches of the image (passes/patches.h), by plans of its memory
// that are compared.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/fit/fit.h"
#include "compiler/passes/roll_rows.h"

// Plans that are compared where the smallest is wanted: of plain C, which are made fast, and others.
enum { most_plain = 16, most_others = 6 };

typedef struct fitter {
    berth_fit_tries *tries;
    const berth_compile_options *options;
    berth_arena *arena;  // of this search alone
    berth_patch_candidate *candidates;
    uint32_t candidate_count;
    uint64_t unpatched_bytes, unpatched_over_bytes;  // as in berth_compile_options
    const char *best;                                // "NODE=N"; NULL = none is better
    double best_ns;
    uint64_t best_bytes;
    berth_status failure;  // of the plan that exceeds a memory by the least
    berth_fit_over failure_over;
} fitter;

static bool is_word(const char *text) {
    return !text || strcmp(text, "auto") == 0 || strcmp(text, "never") == 0 ||
           strcmp(text, "least") == 0;
}

berth_status berth_fit_check_patches(const char *text) {
    if (is_word(text) || berth_rolls_rows(text) || berth_patch_choice_parse(NULL, text, NULL))
        return BERTH_OK;
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "patches are auto, never, least, rolling, or [AFTER..]NODE=N[xM] (the stages after one "
        "node, "
        "or from the first one on, up to another one in N bands of rows, or N x M tiles), not "
        "\"%s\"",
        text);
}

// ---- plans --------------------------------------------------------------------------------------

// What kernels of plain C keep for themselves in static memory.
static uint64_t private_bytes(const berth_program *program) {
    uint64_t most = 0;
    bool plain = strcmp(program->executor, berth_executor_kind_name(BERTH_EXECUTOR_AOT)) == 0;
    for (uint32_t i = 0; plain && i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > most) most = program->kernels[i].scratch_bytes;
    return most;
}

// All that the program's memories hold but for the model's file.
static uint64_t bytes_of(const berth_fitted *fitted) {
    const berth_program *program = fitted->result.program;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage != BERTH_POOL_STORE) sum += program->pools[i].size_bytes;
    return sum + private_bytes(program);
}

static bool reads_again(const berth_fitted *fitted) {
    const berth_memory_report *memory = fitted->result.memory;
    return memory && memory->streamed_count > 0;
}

static bool ran_out(berth_status status) {
    return status == berth_status_oom();
}

// What there is to say of the model was said when it was compiled first.
static berth_compile_options quiet(const berth_compile_options *options) {
    berth_compile_options copy = *options;
    copy.log = (berth_log){0};
    copy.progress = NULL;
    return copy;
}

// The model up to the pass of patches and nothing more, with the list of choices for what is wanted.
static berth_status list_candidates(fitter *f, const char *wanted, berth_fitted *fitted) {
    berth_compile_options options = quiet(f->options);
    options.patches = wanted;
    options.find_patches = true;
    options.stop_after = "patches";
    options.plan_only = true;
    BERTH_TRY(berth_fit__without_patches(f->tries, &options, fitted));
    const berth_compile_result *result = &fitted->result;
    f->candidate_count = result->patch_candidate_count;
    f->candidates = berth_arena_copy(f->arena, result->patch_candidates,
                                     f->candidate_count * sizeof(*f->candidates));
    for (uint32_t i = 0; i < f->candidate_count; ++i) {
        berth_patch_choice *choice = &f->candidates[i].choice;
        choice->node = berth_arena_strdup(f->arena, choice->node);
        if (choice->after) choice->after = berth_arena_strdup(f->arena, choice->after);
    }
    return BERTH_OK;
}

// Plans with a candidate, with or without slices of channels where they are needed. Where it does not fit, *out_fits is
// false, and the status kept or freed.
static berth_status plan_sliced(fitter *f, const char *text, bool no_slices, berth_fitted *fitted,
                                bool *out_fits) {
    berth_compile_options options = quiet(f->options);
    options.patches = text;
    options.no_slices |= no_slices;
    options.plan_only = true;
    berth_status status = berth_fit__without_patches(f->tries, &options, fitted);
    *out_fits = !status;
    if (!status) return BERTH_OK;
    berth_fit_over over = berth_fit__over_of(status, fitted);
    if (over.bytes == 0) return status;
    if (over.bytes < f->failure_over.bytes) {
        berth_status_free(f->failure);
        f->failure = status;
        f->failure_over = over;
    } else {
        berth_status_free(status);
    }
    return BERTH_OK;
}

static berth_status plan(fitter *f, const char *text, berth_fitted *fitted, bool *out_fits) {
    return plan_sliced(f, text, false, fitted, out_fits);
}

// ---- what is wanted -----------------------------------------------------------------------------

// Plans with more and more work until one fits, by halves: the more work, the lower the peak, nearly. That holds
// among regions of one form, and not across forms: of each, and none with more work than what fits already.
static berth_status halve(fitter *f, const berth_patch_candidate *list, uint32_t count,
                          double *most_work, berth_fitted *fitted) {
    uint32_t low = 0, high = count;
    while (high > 0 && list[high - 1].extra_work >= *most_work) --high;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        const char *text = berth_patch_choice_text(f->arena, &list[at].choice);
        bool fits = false;
        BERTH_TRY(plan(f, text, fitted, &fits));
        if (fits && (!f->best || fitted->result.program->predicted_ns < f->best_ns)) {
            f->best = text;
            f->best_ns = fitted->result.program->predicted_ns;
        }
        if (fits && !reads_again(fitted)) {
            high = at;
            *most_work = list[at].extra_work;
        } else {
            low = at + 1;
        }
    }
    return BERTH_OK;
}

// A plan with rows that roll (passes/roll_rows.h). What it needs does not end the search for slices of others.
static berth_status plan_rolling(fitter *f, bool no_slices, berth_fitted *fitted, bool *out_fits) {
    uint64_t least_over_bytes = f->tries->least_over_bytes;
    BERTH_TRY(plan_sliced(f, BERTH_PATCHES_ROLLING, no_slices, fitted, out_fits));
    f->tries->least_over_bytes = least_over_bytes;
    return BERTH_OK;
}

// Rows that roll take no operations again. Of plain C only. With slices, whose search takes long, where nothing else fits:
// find_smallest.
static berth_status try_rolling(fitter *f, double *most_work, berth_fitted *fitted) {
    bool fits = false;
    if (f->options->target->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    BERTH_TRY(plan_rolling(f, true, fitted, &fits));
    if (!fits || (f->best && fitted->result.program->predicted_ns >= f->best_ns)) return BERTH_OK;
    f->best = BERTH_PATCHES_ROLLING;
    f->best_ns = fitted->result.program->predicted_ns;
    if (!reads_again(fitted)) *most_work = 0;
    return BERTH_OK;
}

static berth_status find_fitting(fitter *f, berth_fitted *fitted) {
    double most_work = INFINITY;
    BERTH_TRY(try_rolling(f, &most_work, fitted));
    berth_patch_candidate *list =
        berth_arena_new_array(f->arena, berth_patch_candidate, f->candidate_count + 1);
    for (uint32_t form = 0; form < BERTH_PATCH_FORMS; ++form) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < f->candidate_count; ++i)
            if (berth_patch_form(&f->candidates[i].choice) == form)
                list[count++] = f->candidates[i];
        BERTH_TRY(halve(f, list, count, &most_work, fitted));
    }
    return BERTH_OK;
}

static int compare_peaks(const void *left, const void *right) {
    const berth_patch_candidate *a = left, *b = right;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
    return a->extra_work < b->extra_work ? -1 : a->extra_work > b->extra_work;
}

static void take_smaller(fitter *f, const char *text, bool fits, const berth_fitted *fitted) {
    if (!fits || bytes_of(fitted) >= f->best_bytes) return;
    f->best_bytes = bytes_of(fitted);
    f->best = text;
}

// From the lowest estimated peak on: the least that is planned.
static berth_status find_smallest(fitter *f, berth_fitted *fitted) {
    berth_patch_candidate *sorted =
        berth_arena_copy(f->arena, f->candidates, f->candidate_count * sizeof(*f->candidates));
    qsort(sorted, f->candidate_count, sizeof(*sorted), compare_peaks);
    bool plain = f->options->target->executor == BERTH_EXECUTOR_AOT;
    uint32_t most = plain ? most_plain : most_others;
    bool fits = false;
    for (uint32_t i = 0; i < most && i < f->candidate_count; ++i) {
        const char *text = berth_patch_choice_text(f->arena, &sorted[i].choice);
        BERTH_TRY(plan(f, text, fitted, &fits));
        take_smaller(f, text, fits, fitted);
    }
    if (!plain) return BERTH_OK;
    BERTH_TRY(plan_rolling(f, false, fitted, &fits));
    take_smaller(f, BERTH_PATCHES_ROLLING, fits, fitted);
    return BERTH_OK;
}

// Of these values, those whose size is known.
static uint64_t values_bytes(const berth_module *module, const berth_graph *graph,
                             const berth_value_id *values, uint32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
        berth_type_id type = graph->values.data[values[i]].type;
        if (berth_type_is_static(berth_type_get(module, type)))
            sum += berth_type_size_bytes(module, type);
    }
    return sum;
}

// Of plain C: whether the inputs and outputs alone are more than the limit.
static bool cannot_fit(const fitter *f) {
    const berth_multi_target *target = f->options->target;
    const berth_module *module = f->tries->module;
    berth_func_id main = berth_module_find_function(module, "main");
    const berth_graph *graph = main == BERTH_NONE ? NULL : berth_graph_get(module, main);
    if (target->executor != BERTH_EXECUTOR_AOT || !graph) return false;
    const berth_region *root = &graph->regions.data[0];
    const berth_target_memory *own =
        &target->memories[target->devices[target->default_device].own_memory];
    uint64_t bytes = values_bytes(module, graph, root->params.data, root->params.count) +
                     values_bytes(module, graph, root->results.data, root->results.count);
    return own->budget_bytes && bytes > own->budget_bytes;
}

static berth_status search(fitter *f, berth_fitted *fitted) {
    bool plain = f->options->target->executor == BERTH_EXECUTOR_AOT;
    const char *wanted = f->options->patches;
    bool least = wanted && strcmp(wanted, "least") == 0;
    if (!least && !cannot_fit(f)) {
        BERTH_TRY(list_candidates(f, wanted, fitted));
        BERTH_TRY(find_fitting(f, fitted));
        // More work is not always a lower peak, and slices of channels are not always of use. Plans of plain C are
        // made fast, and a refusal is to name the least.
        if (f->best || !plain) return BERTH_OK;
    }
    BERTH_TRY(list_candidates(f, "least", fitted));
    return find_smallest(f, fitted);
}

static berth_status run_search(void *user) {
    fitter *f = user;
    berth_fitted tried = {0};
    berth_status status = search(f, &tried);
    berth_fitted_release(&tried);
    return status;
}

// Compiles as it was asked for, with what was found.
static berth_status compile_best(fitter *f, berth_fitted *fitted) {
    berth_compile_options options = quiet(f->options);
    options.progress = f->options->progress;
    options.patches = f->best;
    options.unpatched_bytes = f->unpatched_bytes;
    options.unpatched_over_bytes = f->unpatched_over_bytes;
    return berth_fit__without_patches(f->tries, &options, fitted);
}

// After a first plan that ended so: whether others are made.
static bool wants_patches(const berth_compile_options *options, berth_status status,
                          const berth_fitted *fitted) {
    const char *text = options->patches;
    if (!is_word(text) || (text && strcmp(text, "never") == 0) || options->stop_after ||
        options->expose_values)
        return false;
    if (status) return !ran_out(status) && fitted->result.over_bytes > 0;
    return (text && strcmp(text, "least") == 0) || reads_again(fitted);
}

// Makes others. `status` is that of the first plan, which `fitted` has.
static berth_status compare(fitter *f, berth_status status, berth_fitted *fitted) {
    if (status) f->failure_over = berth_fit__over_of(status, fitted);
    f->unpatched_over_bytes = f->failure_over.bytes;
    f->failure = status;
    f->best_bytes = UINT64_MAX;
    if (!status) {
        f->unpatched_bytes = f->best_bytes = bytes_of(fitted);
        f->best_ns = fitted->result.program->predicted_ns;
        f->best = "never";
    } else {
        berth_fitted_release(fitted);  // may be large
    }
    berth_status searched = berth_arena_try(f->arena, run_search, f);
    bool found = f->best && strcmp(f->best, "never") != 0;
    if (!searched && found) searched = compile_best(f, fitted);
    if (!searched && !found && f->failure) {
        searched = f->failure;
        f->failure = BERTH_OK;
        berth_fit__set_over(fitted, f->failure_over);
    }
    if (f->failure) berth_status_free(f->failure);
    return searched;
}

berth_status berth_fit__with_patches(berth_fit_tries *tries, const berth_compile_options *options,
                                     berth_fitted *fitted) {
    berth_status status = berth_fit__without_patches(tries, options, fitted);
    if (!wants_patches(options, status, fitted)) return status;
    fitter f = {.tries = tries, .options = options};
    berth_status made = berth_arena_create(berth_allocator_system(), &f.arena);
    if (made) {
        berth_status_ignore(status);
        return made;
    }
    status = compare(&f, status, fitted);
    berth_arena_destroy(f.arena);
    return status;
}
