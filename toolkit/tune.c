#include "toolkit/tune.h"

#include <string.h>

#include "base/clock.h"
#include "executor/session.h"
#include "toolkit/compare.h"
#include "toolkit/step_times.h"
#include "toolkit/tune_search.h"

enum { warm_up_runs = 2, fewest_rounds = 5, most_rounds = 61, last_rounds = 31 };
static const double least_share = 0.01;  // of a run, of functions that are tuned
static const double least_gain = 0.98;   // of the time of the best so far
static const double kept_gain = 0.97;    // of the policy's time, at the end

// A program of the model that runs.
typedef struct runner {
    berth_model *model;
    const berth_program *program;
    berth_session *session;
    uint32_t *kernel_of;  // per step; BERTH_NO_INDEX = none
    double *ns;           // per step, of the last run
} runner;

typedef struct tuner {
    const berth_tune_options *options;
    const char *path;
    berth_tuned_table *table;
    berth_arena *arena;
    runner policy;
    berth_interner *keys;  // of kernels; a kernel's number is its key's less 1
    BERTH_VEC(berth_tune_kernel) kernels;
    double **ratios;  // [kernel][round]
    double **ns[2];   // [policy, tried][kernel][round]
    uint64_t random;
    int64_t start_ns, last_ns;  // when it began; how long the last trial took
    uint32_t trials;
} tuner;

static void say(const tuner *t, const char *what) {
    if (t->options->progress) t->options->progress(t->options->progress_user, what);
}

static int64_t duration_ns(const tuner *t) {
    static const int64_t usual_ns = 60000000000;
    return t->options->duration_ns > 0 ? t->options->duration_ns : usual_ns;
}

// ---- programs -----------------------------------------------------------------------------------

static uint32_t kernel_index(tuner *t, const berth_kernel_choice *choice, bool add) {
    char hex[33];
    uint32_t id = 0;
    berth_hash128_hex(choice->function, hex);
    const char *key = berth_arena_printf(t->arena, "%s %s", hex, choice->target);
    if (!add) return berth_intern_find(t->keys, key, &id) && id > 0 ? id - 1 : BERTH_NO_INDEX;
    return berth_intern(t->keys, key) - 1;
}

static void find_kernels(tuner *t, runner *r) {
    uint32_t count = 0;
    const berth_kernel_choice *choices = berth_model_choices(r->model, &count);
    const uint32_t *of_step = berth_model_step_choices(r->model);
    r->kernel_of = berth_arena_new_array(t->arena, uint32_t, r->program->step_count + 1);
    r->ns = berth_arena_new_array(t->arena, double, r->program->step_count + 1);
    for (uint32_t i = 0; i < r->program->step_count; ++i) {
        bool has = of_step[i] != BERTH_NO_INDEX;
        r->kernel_of[i] = has ? kernel_index(t, &choices[of_step[i]], false) : BERTH_NO_INDEX;
    }
}

static berth_status open_runner(tuner *t, const berth_tuned_table *table, bool explain, runner *r) {
    berth_model_options options = t->options->model;
    options.tuned = NULL;
    options.compile.tuned = table;
    options.compile.explain_kernels = explain;
    options.only_these_inputs = true;
    if (table) {  // what there is to say of the model was said of the first one
        options.compile.log = options.import.log = options.target_options.log = (berth_log){0};
        options.compile.progress = NULL;
    }
    BERTH_TRY(berth_model_load(t->path, &options, &r->model));
    r->program = berth_model_program(r->model);
    if (!berth_model_step_choices(r->model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, whose kernels are what they are: give "
                                 "the model",
                                 t->path);
    const berth_multi_target *target = berth_model_target(r->model);
    berth_session_options session = {.profile = true,
                                     .thread_count =
                                         (uint32_t)target->devices[target->host].target->cores,
                                     .cache_folder = options.compile.cache_folder};
    BERTH_TRY(berth_session_open(berth_allocator_system(), r->program, &session, &r->session));
    for (uint32_t i = 0; berth_session_input(r->session, i); ++i) {
        berth_tensor tensor = *berth_session_input(r->session, i);
        berth_tensor_fill_random(&tensor, t->options->seed + i);
    }
    for (int i = 0; i < warm_up_runs; ++i) BERTH_TRY(berth_session_run(r->session, -1));
    return BERTH_OK;
}

static void close_runner(runner *r) {
    berth_session_close(r->session);
    berth_model_destroy(r->model);
    *r = (runner){0};
}

// ---- measuring ----------------------------------------------------------------------------------

// A run of a program: what each kernel took, summed over its steps.
static berth_status run_once(tuner *t, runner *r, double **ns, uint32_t round) {
    BERTH_TRY(berth_session_run(r->session, -1));
    berth_step_times(r->program, r->session, t->arena, r->ns);
    for (uint32_t k = 0; k < t->kernels.count; ++k) ns[k][round] = 0;
    for (uint32_t i = 0; i < r->program->step_count; ++i)
        if (r->kernel_of[i] != BERTH_NO_INDEX) ns[r->kernel_of[i]][round] += r->ns[i];
    return BERTH_OK;
}

static berth_status check_results(const tuner *t, const runner *tried, bool *out_same) {
    *out_same = true;
    for (uint32_t i = 0; berth_session_output(t->policy.session, i); ++i) {
        berth_comparison comparison;
        BERTH_TRY(berth_compare(berth_session_output(tried->session, i),
                                berth_session_output(t->policy.session, i), &BERTH_COMPARE_DEFAULTS,
                                &comparison));
        *out_same &= comparison.pass;
    }
    return BERTH_OK;
}

// Both programs in turns, so that what else the machine does meets both; *out_rounds.
static berth_status run_in_turns(tuner *t, runner *tried, uint32_t rounds, int64_t limit_ns,
                                 uint32_t *out_rounds) {
    int64_t start_ns = berth_clock_ns();
    uint32_t round = 0;
    for (; round < most_rounds; ++round) {
        if (round >= rounds && berth_clock_ns() - start_ns >= limit_ns) break;
        runner *first = round % 2 ? tried : &t->policy, *second = round % 2 ? &t->policy : tried;
        BERTH_TRY(run_once(t, first, t->ns[round % 2], round));
        BERTH_TRY(run_once(t, second, t->ns[1 - round % 2], round));
    }
    *out_rounds = round;
    return BERTH_OK;
}

static double ratio_of(tuner *t, uint32_t kernel, uint32_t rounds) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < rounds; ++i)
        if (t->ns[0][kernel][i] > 0 && t->ns[1][kernel][i] > 0)
            t->ratios[kernel][count++] = t->ns[1][kernel][i] / t->ns[0][kernel][i];
    return count ? berth_median(t->ratios[kernel], count) : 1;
}

// ---- trials -------------------------------------------------------------------------------------

static void add_trial(berth_tuned_table *table, const berth_tune_kernel *k,
                      const char *const *decisions) {
    berth_tuned_record record = {.target = k->target,
                                 .function = k->function,
                                 .name = k->name,
                                 .decisions = decisions,
                                 .nest_count = k->nest_count,
                                 .ns = 1,
                                 .policy_ns = 1,
                                 .runs = 1,
                                 .trial = true};
    berth_tuned_table_add(table, &record);
}

// What could not be scheduled as it was asked for tells nothing.
static void drop_refused(tuner *t, const berth_model *model) {
    uint32_t count = 0;
    const berth_kernel_choice *choices = berth_model_choices(model, &count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t k = kernel_index(t, &choices[i], false);
        if (k != BERTH_NO_INDEX && choices[i].by != BERTH_CHOSEN_BY_TUNING)
            t->kernels.data[k].tries = false;
    }
}

static void judge(tuner *t, uint32_t rounds) {
    uint32_t tried = 0, gained = 0;
    for (uint32_t i = 0; i < t->kernels.count; ++i) {
        berth_tune_kernel *k = &t->kernels.data[i];
        if (!k->tries) continue;
        double ratio = ratio_of(t, i, rounds);
        tried++;
        if (ratio >= k->best_ratio * least_gain) continue;
        k->best = k->candidate;
        k->best_ratio = ratio;
        gained++;
    }
    double left = 0, shares = 0;
    for (uint32_t i = 0; i < t->kernels.count; ++i) {
        shares += t->kernels.data[i].share;
        left += t->kernels.data[i].share * t->kernels.data[i].best_ratio;
    }
    say(t, berth_arena_printf(t->arena,
                              "trial %u: %u kernels tried, %u better; of the run's time %.1f %% "
                              "would be left",
                              t->trials, tried, gained, 100 * (left + 1 - shares)));
}

static berth_status run_trial(tuner *t, runner *tried) {
    berth_tuned_table *table = berth_tuned_table_create(t->arena);
    uint32_t rounds = 0;
    bool same = true;
    for (uint32_t i = 0; i < t->kernels.count; ++i) {
        berth_tune_kernel *k = &t->kernels.data[i];
        k->tries = k->share >= least_share && berth_tune__propose(t->arena, k, &t->random);
        if (k->tries) add_trial(table, k, k->candidate);
    }
    if (berth_tuned_table_count(table) == 0) return BERTH_OK;
    BERTH_TRY(open_runner(t, table, false, tried));
    find_kernels(t, tried);
    drop_refused(t, tried->model);
    static const int64_t usual_ns = 1000000000;
    BERTH_TRY(run_in_turns(t, tried, fewest_rounds, usual_ns, &rounds));
    BERTH_TRY(check_results(t, tried, &same));
    if (same)
        judge(t, rounds);
    else
        say(t, "results differ from the policies': nothing of this trial is taken");
    return BERTH_OK;
}

static bool has_time(const tuner *t) {
    if (t->options->trials) return t->trials < t->options->trials;
    return berth_clock_ns() - t->start_ns + 2 * t->last_ns < duration_ns(t);
}

static bool is_exhausted(const tuner *t) {
    for (uint32_t i = 0; i < t->kernels.count; ++i)
        if (t->kernels.data[i].share >= least_share && !t->kernels.data[i].exhausted) return false;
    return true;
}

// ---- the end ------------------------------------------------------------------------------------

static void keep_records(tuner *t, uint32_t rounds) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->kernels.count; ++i) {
        berth_tune_kernel *k = &t->kernels.data[i];
        double ratio = k->best_ratio < 1 ? ratio_of(t, i, rounds) : 1;
        if (!(ratio < kept_gain)) continue;
        double policy_ns = berth_median(t->ns[0][i], rounds);
        berth_tuned_record record = {.target = k->target,
                                     .function = k->function,
                                     .name = k->name,
                                     .decisions = k->best,
                                     .nest_count = k->nest_count,
                                     .ns = policy_ns * ratio,
                                     .policy_ns = policy_ns,
                                     .runs = rounds};
        berth_tuned_table_add(t->table, &record);
        say(t, berth_arena_printf(t->arena, "%s: %.1f us, %.1f us by the policy", k->name,
                                  record.ns / 1e3, policy_ns / 1e3));
        kept++;
    }
    say(t, berth_arena_printf(t->arena, "%u of %u kernels gain", kept, t->kernels.count));
}

// All that was found in one program, measured once more.
static berth_status finish(tuner *t, runner *tried) {
    berth_tuned_table *table = berth_tuned_table_create(t->arena);
    uint32_t rounds = 0;
    bool same = true;
    for (uint32_t i = 0; i < t->kernels.count; ++i)
        if (t->kernels.data[i].best_ratio < 1)
            add_trial(table, &t->kernels.data[i], t->kernels.data[i].best);
    if (berth_tuned_table_count(table) > 0) {
        BERTH_TRY(open_runner(t, table, false, tried));
        find_kernels(t, tried);
        BERTH_TRY(run_in_turns(t, tried, last_rounds, 0, &rounds));
        BERTH_TRY(check_results(t, tried, &same));
    }
    if (!same)
        return berth_status_make(BERTH_INTERNAL,
                                 "the tuned kernels together compute other results than the "
                                 "policies'; no record is kept (please report the model)");
    keep_records(t, rounds);
    return BERTH_OK;
}

// ---- beginning ----------------------------------------------------------------------------------

static void add_kernels(tuner *t) {
    uint32_t count = 0;
    const berth_kernel_choice *choices = berth_model_choices(t->policy.model, &count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t nests = choices[i].decisions->nest_count;
        if (nests == 0 || kernel_index(t, &choices[i], true) < t->kernels.count) continue;
        const char **none = berth_arena_new_array(t->arena, const char *, nests);
        for (uint32_t n = 0; n < nests; ++n) none[n] = "";
        berth_tune_kernel kernel = {.name = choices[i].name,
                                    .target = choices[i].target,
                                    .function = choices[i].function,
                                    .nest_count = nests,
                                    .policy = choices[i].decisions->nests,
                                    .best = none,
                                    .best_ratio = 1,
                                    .tried = berth_interner_create(t->arena)};
        berth_vec_push(t->arena, &t->kernels, kernel);
    }
    double ***const tables[] = {&t->ratios, &t->ns[0], &t->ns[1]};
    for (int i = 0; i < 3; ++i) {
        *tables[i] = berth_arena_new_array(t->arena, double *, t->kernels.count + 1);
        for (uint32_t k = 0; k < t->kernels.count; ++k)
            (*tables[i])[k] = berth_arena_new_array(t->arena, double, most_rounds);
    }
}

static berth_status measure_shares(tuner *t) {
    double totals[fewest_rounds] = {0};
    for (uint32_t round = 0; round < fewest_rounds; ++round) {
        BERTH_TRY(run_once(t, &t->policy, t->ns[0], round));
        for (uint32_t i = 0; i < t->policy.program->step_count; ++i)
            totals[round] += t->policy.ns[i];
    }
    double all = berth_median(totals, fewest_rounds);
    for (uint32_t k = 0; k < t->kernels.count; ++k)
        t->kernels.data[k].share = berth_median(t->ns[0][k], fewest_rounds);
    uint32_t heavy = 0;
    for (uint32_t k = 0; k < t->kernels.count; ++k) {
        t->kernels.data[k].share /= all > 0 ? all : 1;
        heavy += t->kernels.data[k].share >= least_share;
    }
    say(t, berth_arena_printf(t->arena, "%u of %u kernels take 1 %% of a run or more", heavy,
                              t->kernels.count));
    return BERTH_OK;
}

static berth_status run(void *user) {
    tuner *t = user;
    t->keys = berth_interner_create(t->arena);
    t->random = t->options->seed;
    t->start_ns = berth_clock_ns();
    BERTH_TRY(open_runner(t, NULL, true, &t->policy));
    add_kernels(t);
    find_kernels(t, &t->policy);
    BERTH_TRY(measure_shares(t));
    while (has_time(t) && !is_exhausted(t)) {
        int64_t begin_ns = berth_clock_ns();
        runner tried = {0};
        t->trials++;
        berth_status status = run_trial(t, &tried);
        close_runner(&tried);
        BERTH_TRY(status);
        t->last_ns = berth_clock_ns() - begin_ns;
    }
    runner tried = {0};
    berth_status status = finish(t, &tried);
    close_runner(&tried);
    return status;
}

berth_status berth_tune(const char *path, const berth_tune_options *options,
                        berth_tuned_table *table) {
    tuner t = {.options = options, .path = path, .table = table};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &t.arena));
    berth_status status = berth_arena_try(t.arena, run, &t);
    close_runner(&t.policy);
    berth_arena_destroy(t.arena);
    return status;
}
