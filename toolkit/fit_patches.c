#include "toolkit/fit_patches.h"

#include <stdlib.h>
#include <string.h>

// Plans that are compared where the smallest is wanted: of plain C, which are made fast, and others.
enum { most_plain = 16, most_others = 6 };

typedef struct fitter {
    berth_fit_load *load;
    void *user;
    const berth_model_options *options;
    berth_model *listed;  // that holds the candidates
    const berth_patch_candidate *candidates;
    uint32_t candidate_count;
    uint64_t unpatched_bytes, unpatched_over_bytes;  // as in berth_compile_options
    uint64_t over_bytes;  // of the plan that was tried last; 0 = it fits, or failed otherwise
    const char *best;     // "NODE=N"; NULL = none is better
    double best_ns;
    uint64_t best_bytes, best_over_bytes;
    berth_status failure;  // of the plan that exceeds a memory by the least
} fitter;

static bool is_word(const char *text) {
    return !text || strcmp(text, "auto") == 0 || strcmp(text, "never") == 0 ||
           strcmp(text, "least") == 0;
}

berth_status berth_fit_patches_check(const char *text) {
    const char *equals = text ? strrchr(text, '=') : NULL;
    size_t digits = equals ? strspn(equals + 1, "0123456789") : 0;
    if (is_word(text) ||
        (equals && equals != text && digits > 0 && digits < 10 && equals[1 + digits] == 0))
        return BERTH_OK;
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "patches are auto, never, least, or NODE=N (the stages up to this node "
        "of the model, in N patches), not \"%s\"",
        text);
}

// ---- plans --------------------------------------------------------------------------------------

// All that the program's memories hold but for the model's file.
static uint64_t bytes_of(const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage != BERTH_POOL_STORE) sum += program->pools[i].size_bytes;
    return sum;
}

static bool reads_again(const berth_model *model) {
    const berth_memory_report *memory = berth_model_memory(model);
    return memory && memory->streamed_count > 0;
}

static bool ran_out(berth_status status) {
    return status == berth_status_oom();
}

// What there is to say of the model was said when it was loaded first.
static berth_model_options quiet(const berth_model_options *options) {
    berth_model_options copy = *options;
    copy.compile.log = copy.import.log = copy.target_options.log = (berth_log){0};
    copy.compile.progress = NULL;
    return copy;
}

// The model's first stages and nothing more, with the list of choices for what is wanted.
static berth_status list_candidates(fitter *f, const char *wanted) {
    berth_model_options options = quiet(f->options);
    options.compile.patches = wanted;
    berth_model_destroy(f->listed);
    f->listed = NULL;
    options.compile.find_patches = true;
    options.compile.stop_after = "patches";
    options.compile.plan_only = true;
    BERTH_TRY(f->load(f->user, &options, &f->listed));
    f->candidates = berth_model_patch_candidates(f->listed, &f->candidate_count);
    return BERTH_OK;
}

static const char *text_of(const berth_patch_candidate *candidate, berth_arena *arena) {
    return berth_arena_printf(arena, "%s=%u", candidate->choice.node, candidate->choice.count);
}

// Plans with a candidate. *out_model is NULL, and the status kept or freed, where it does not fit.
static berth_status plan(fitter *f, const char *text, berth_model **out_model) {
    berth_model_options options = quiet(f->options);
    options.compile.patches = text;
    options.compile.plan_only = true;
    options.over_bytes = &f->over_bytes;
    f->over_bytes = 0;
    *out_model = NULL;
    berth_status status = f->load(f->user, &options, out_model);
    if (!status) return BERTH_OK;
    if (ran_out(status) || f->over_bytes == 0) return status;
    if (f->over_bytes < f->best_over_bytes) {
        berth_status_free(f->failure);
        f->failure = status;
        f->best_over_bytes = f->over_bytes;
    } else {
        berth_status_free(status);
    }
    return BERTH_OK;
}

// ---- what is wanted -----------------------------------------------------------------------------

// Plans with more and more work until one fits, by halves: the more work, the lower the peak, nearly.
static berth_status find_fitting(fitter *f, berth_arena *arena) {
    uint32_t low = 0, high = f->candidate_count;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        const char *text = text_of(&f->candidates[at], arena);
        berth_model *model = NULL;
        BERTH_TRY(plan(f, text, &model));
        bool fits = model && !reads_again(model);
        if (model && (!f->best || berth_model_program(model)->predicted_ns < f->best_ns)) {
            f->best = text;
            f->best_ns = berth_model_program(model)->predicted_ns;
        }
        berth_model_destroy(model);
        if (fits)
            high = at;
        else
            low = at + 1;
    }
    return BERTH_OK;
}

static int compare_peaks(const void *left, const void *right) {
    const berth_patch_candidate *a = left, *b = right;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
    return a->extra_work < b->extra_work ? -1 : a->extra_work > b->extra_work;
}

// From the lowest estimated peak on: the least that is planned.
static berth_status find_smallest(fitter *f, berth_arena *arena) {
    berth_patch_candidate *sorted =
        berth_arena_copy(arena, f->candidates, f->candidate_count * sizeof(*f->candidates));
    qsort(sorted, f->candidate_count, sizeof(*sorted), compare_peaks);
    bool plain = berth_model_target(f->listed)->executor == BERTH_EXECUTOR_AOT;
    uint32_t most = plain ? most_plain : most_others;
    for (uint32_t i = 0; i < most && i < f->candidate_count; ++i) {
        const char *text = text_of(&sorted[i], arena);
        berth_model *model = NULL;
        BERTH_TRY(plan(f, text, &model));
        if (!model) continue;
        uint64_t bytes = bytes_of(model);
        if (bytes < f->best_bytes) {
            f->best_bytes = bytes;
            f->best = text;
        }
        berth_model_destroy(model);
    }
    return BERTH_OK;
}

typedef struct search {
    fitter *f;
    berth_arena *arena;
    bool least;
} search;

static berth_status run_search(void *user) {
    search *s = user;
    fitter *f = s->f;
    BERTH_TRY(list_candidates(f, f->options->compile.patches));
    if (s->least) return find_smallest(f, s->arena);
    BERTH_TRY(find_fitting(f, s->arena));
    // More work is not always a lower peak, and slices of channels are not always of use. Plans of plain C are made
    // fast, and a refusal is to name the least.
    if (f->best || berth_model_target(f->listed)->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    BERTH_TRY(list_candidates(f, "least"));
    return find_smallest(f, s->arena);
}

// Loads as it was asked for, with what was found.
static berth_status load_best(fitter *f, berth_model **in_out_model) {
    berth_model_options options = quiet(f->options);
    options.compile.progress = f->options->compile.progress;
    berth_model_destroy(*in_out_model);
    *in_out_model = NULL;
    options.compile.patches = f->best;
    options.compile.unpatched_bytes = f->unpatched_bytes;
    options.compile.unpatched_over_bytes = f->unpatched_over_bytes;
    return f->load(f->user, &options, in_out_model);
}

static bool wants_patches(const berth_model_options *options, berth_status status,
                          const berth_model *model, uint64_t over_bytes) {
    const char *text = options->compile.patches;
    if (!is_word(text) || (text && strcmp(text, "never") == 0) || options->compile.stop_after ||
        options->compile.expose_values || (status && (ran_out(status) || over_bytes == 0)))
        return false;
    if (!status && !berth_model_memory(model)) return false;  // a program file
    return status || (text && strcmp(text, "least") == 0) || reads_again(model);
}

static berth_status fit(fitter *f, berth_arena *arena, berth_status status,
                        berth_model **in_out_model) {
    const char *text = f->options->compile.patches;
    search s = {.f = f, .arena = arena, .least = text && strcmp(text, "least") == 0};
    f->unpatched_over_bytes = status ? f->over_bytes : 0;
    f->best_over_bytes = status ? f->over_bytes : UINT64_MAX;
    f->failure = status;
    f->best_bytes = UINT64_MAX;
    if (*in_out_model) {
        const berth_program *program = berth_model_program(*in_out_model);
        f->unpatched_bytes = f->best_bytes = bytes_of(*in_out_model);
        f->best_ns = program->predicted_ns;
        f->best = "never";
    }
    berth_status searched = berth_arena_try(arena, run_search, &s);
    bool found = f->best && strcmp(f->best, "never") != 0;
    if (!searched && found) searched = load_best(f, in_out_model);
    if (!searched && !found && f->failure) {
        searched = f->failure;
        f->failure = BERTH_OK;
    }
    if (f->failure) berth_status_free(f->failure);
    if (searched && *in_out_model) {
        berth_model_destroy(*in_out_model);
        *in_out_model = NULL;
    }
    return searched;
}

berth_status berth_fit_patches(berth_fit_load *load, void *user, const berth_model_options *options,
                               berth_model **out_model) {
    fitter f = {.load = load, .user = user, .options = options};
    berth_model_options first = *options;
    uint64_t *wanted_over = options->over_bytes;
    first.over_bytes = &f.over_bytes;
    BERTH_TRY(berth_fit_patches_check(options->compile.patches));
    berth_status status = load(user, &first, out_model);
    uint64_t over_bytes = f.over_bytes;
    if (wants_patches(options, status, *out_model, f.over_bytes)) {
        berth_arena *arena = NULL;
        berth_status made = berth_arena_create(berth_allocator_system(), &arena);
        if (made) {
            berth_status_ignore(status);
            berth_model_destroy(*out_model);
            *out_model = NULL;
            return made;
        }
        status = fit(&f, arena, status, out_model);
        if (status) over_bytes = f.best_over_bytes == UINT64_MAX ? 0 : f.best_over_bytes;
        berth_model_destroy(f.listed);
        berth_arena_destroy(arena);
    }
    if (wanted_over) *wanted_over = status ? over_bytes : 0;
    return status;
}
