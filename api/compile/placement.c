// Device placement on plain data (<berth/placement.h>).
#include <berth/placement.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "planner/solve/plot.h"
#include "planner/solve/problem/problem_file.h"

struct berth_placement_problem {
    berth_arena *arena;  // of this struct
    // As added; moved into `data` when it is solved first.
    BERTH_VEC(berth_place_kind) kinds;
    BERTH_VEC(const char *) names;
    BERTH_VEC(double) times, transfers;  // [nodes * kinds]
    BERTH_VEC(double) sizes;
    BERTH_VEC(uint32_t) pins;
    BERTH_VEC(uint32_t) from, to;
    uint32_t device_count;
    berth_place_problem *data;  // NULL: not finished

    bool placed;
    berth_place_objective objective;
    berth_place_answer found;
    berth_placement_answer answer;
    berth_placement_device *devices;  // [data->device_count]
    berth_placement_node *nodes;      // [data->node_count]
};

// ---- the problem --------------------------------------------------------------------------------

typedef struct make_job {
    berth_arena *arena;
    const char *path;
    const char *name, *text;
    size_t length;
    const berth_limits *limits;  // NULL = the reader's own
    berth_placement_problem *problem;
} make_job;

// Devices and nodes of a finished problem, and where the answer has them.
static void take_facts(berth_placement_problem *problem) {
    const berth_place_problem *data = problem->data;
    const berth_place_answer *found = problem->placed ? &problem->found : NULL;
    for (uint32_t d = 0; d < data->device_count; ++d) {
        berth_placement_device *device = &problem->devices[d];
        device->capacity_bytes = data->kinds[data->device_kind[d]].capacity_bytes;
        device->load = found ? found->value.device_load[d] : 0;
        device->size_bytes = 0;
        device->node_count = 0;
    }
    for (uint32_t v = 0; v < data->node_count; ++v) {
        const uint32_t device = found ? found->assignment[v] : BERTH_NO_DEVICE;
        problem->nodes[v] = (berth_placement_node){data->node_names[v], device};
        if (!found) continue;
        problem->devices[device].size_bytes += data->size_bytes[v];
        ++problem->devices[device].node_count;
    }
}

static void take_finished(berth_placement_problem *problem, berth_place_problem *data) {
    problem->data = data;
    problem->devices =
        berth_arena_new_array(problem->arena, berth_placement_device, data->device_count);
    problem->nodes = berth_arena_new_array(problem->arena, berth_placement_node, data->node_count);
    for (uint32_t d = 0; d < data->device_count; ++d)
        problem->devices[d].name = berth_place_device_name(problem->arena, data, d);
    take_facts(problem);
}

static berth_status make(void *user) {
    make_job *job = user;
    berth_place_problem *data = NULL;
    if (job->path)
        BERTH_TRY(berth_place_problem_read(job->arena, job->path, job->limits, &data));
    else if (job->text)
        BERTH_TRY(
            berth_place_problem_parse(job->arena, job->name, job->text, job->length, NULL, &data));
    job->problem = berth_arena_new(job->arena, berth_placement_problem);
    job->problem->arena = job->arena;
    if (data) take_finished(job->problem, data);
    return BERTH_OK;
}

static berth_status begin(make_job *job, berth_placement_problem **out_problem) {
    *out_problem = NULL;
    BERTH_TRY(berth_arena_make(make, job, &job->arena));
    *out_problem = job->problem;
    return BERTH_OK;
}

berth_status berth_placement_problem_create(berth_placement_problem **out_problem) {
    make_job job = {.path = NULL};
    return begin(&job, out_problem);
}

berth_status berth_placement_problem_read(const char *path, berth_placement_problem **out_problem) {
    make_job job = {.path = path};
    return begin(&job, out_problem);
}

berth_status berth_placement_problem_read_limited(const char *path, const char *limits_text,
                                                  berth_placement_problem **out_problem) {
    berth_limits limits;
    *out_problem = NULL;
    BERTH_TRY(berth_limits_parse(limits_text, &limits));
    make_job job = {.path = path, .limits = &limits};
    return begin(&job, out_problem);
}

berth_status berth_placement_problem_parse(const char *name, const char *text, size_t length,
                                           berth_placement_problem **out_problem) {
    make_job job = {.name = name, .text = text, .length = length};
    return begin(&job, out_problem);
}

void berth_placement_problem_destroy(berth_placement_problem *problem) {
    if (problem) berth_arena_destroy(problem->arena);
}

// ---- adding -------------------------------------------------------------------------------------

typedef struct add_job {
    berth_placement_problem *problem;
    const char *name;
    berth_place_kind kind;
    const double *time_ms, *transfer_ms;
    double size_bytes;
    uint32_t from, to;
} add_job;

static berth_status is_open(const berth_placement_problem *problem) {
    if (!problem->data) return BERTH_OK;
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "the placement problem was read or solved: it takes no more nodes");
}

static berth_status add_kind(void *user) {
    const add_job *job = user;
    berth_placement_problem *problem = job->problem;
    berth_place_kind kind = job->kind;
    kind.name = berth_arena_strdup(problem->arena, job->name);
    berth_vec_push(problem->arena, &problem->kinds, kind);
    problem->device_count += kind.device_count;
    return BERTH_OK;
}

berth_status berth_placement_problem_add_kind(berth_placement_problem *problem, const char *name,
                                              uint32_t device_count, double capacity_bytes,
                                              int concurrent) {
    add_job job = {.problem = problem,
                   .name = name,
                   .kind = {.device_count = device_count,
                            .capacity_bytes = capacity_bytes,
                            .concurrent = concurrent != 0}};
    BERTH_TRY(is_open(problem));
    if (problem->names.count)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "kind \"%s\" comes after nodes, which have a time on each kind",
                                 name);
    if (device_count > BERTH_PLACE_DEVICE_LIMIT - problem->device_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "kind \"%s\": at most %u devices in all",
                                 name, BERTH_PLACE_DEVICE_LIMIT);
    return berth_arena_try(problem->arena, add_kind, &job);
}

static berth_status add_node(void *user) {
    const add_job *job = user;
    berth_placement_problem *problem = job->problem;
    berth_arena *arena = problem->arena;
    const uint32_t at = problem->names.count, kinds = problem->kinds.count;
    const char *name = berth_arena_strdup(arena, job->name);
    berth_vec_reserve(arena, &problem->times, (at + 1) * kinds);
    berth_vec_reserve(arena, &problem->transfers, (at + 1) * kinds);
    berth_vec_reserve(arena, &problem->sizes, at + 1);
    berth_vec_reserve(arena, &problem->pins, at + 1);
    berth_vec_push(arena, &problem->names, name);  // the last that can run out of memory
    for (uint32_t k = 0; k < kinds; ++k) {
        problem->times.data[at * kinds + k] = job->time_ms[k];
        problem->transfers.data[at * kinds + k] = job->transfer_ms[k];
    }
    problem->sizes.data[at] = job->size_bytes;
    problem->pins.data[at] = BERTH_PLACE_NONE;
    return BERTH_OK;
}

berth_status berth_placement_problem_add_node(berth_placement_problem *problem, const char *name,
                                              const double *time_ms, const double *transfer_ms,
                                              double size_bytes) {
    add_job job = {.problem = problem,
                   .name = name,
                   .time_ms = time_ms,
                   .transfer_ms = transfer_ms,
                   .size_bytes = size_bytes};
    BERTH_TRY(is_open(problem));
    if (problem->kinds.count == 0)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "node \"%s\" comes before the kinds of devices", name);
    if (problem->names.count == BERTH_PLACE_NODE_LIMIT)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "node \"%s\": at most %u nodes", name,
                                 BERTH_PLACE_NODE_LIMIT);
    return berth_arena_try(problem->arena, add_node, &job);
}

static berth_status check_node(const berth_placement_problem *problem, uint32_t node) {
    if (node < problem->names.count) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE, "node %u of %u", node, problem->names.count);
}

static berth_status add_edge(void *user) {
    const add_job *job = user;
    berth_placement_problem *problem = job->problem;
    berth_vec_reserve(problem->arena, &problem->to, problem->to.count + 1);
    berth_vec_push(problem->arena, &problem->from, job->from);
    problem->to.data[problem->to.count++] = job->to;
    return BERTH_OK;
}

berth_status berth_placement_problem_add_edge(berth_placement_problem *problem, uint32_t from,
                                              uint32_t to) {
    add_job job = {.problem = problem, .from = from, .to = to};
    BERTH_TRY(is_open(problem));
    BERTH_TRY(check_node(problem, from));
    BERTH_TRY(check_node(problem, to));
    return berth_arena_try(problem->arena, add_edge, &job);
}

berth_status berth_placement_problem_pin(berth_placement_problem *problem, uint32_t node,
                                         uint32_t device) {
    BERTH_TRY(is_open(problem));
    BERTH_TRY(check_node(problem, node));
    if (device >= problem->device_count)
        return berth_status_make(BERTH_OUT_OF_RANGE, "device %u of %u", device,
                                 problem->device_count);
    problem->pins.data[node] = device;
    return BERTH_OK;
}

static berth_status finish(berth_placement_problem *problem) {
    if (problem->data) return BERTH_OK;
    const uint32_t count = problem->names.count;
    berth_place_problem *data = berth_arena_new(problem->arena, berth_place_problem);
    *data = (berth_place_problem){
        .node_count = count,
        .node_names = problem->names.data,
        .time = problem->times.data,
        .transfer = problem->transfers.data,
        .size_bytes = problem->sizes.data,
        .group = berth_arena_new_array(problem->arena, uint32_t, count),
        .pin = problem->pins.data,
        .backward = berth_arena_new_array(problem->arena, bool, count),
        .edge_count = problem->from.count,
        .edge_from = problem->from.data,
        .edge_to = problem->to.data,
        .kind_count = problem->kinds.count,
        .kinds = problem->kinds.data,
    };
    for (uint32_t v = 0; v < count; ++v) data->group[v] = v;
    BERTH_TRY(berth_place_problem_finish(problem->arena, data));
    take_finished(problem, data);
    return BERTH_OK;
}

// ---- solving ------------------------------------------------------------------------------------

typedef struct solve_job {
    berth_placement_problem *problem;
    berth_placement_settings settings;
    const char *path;   // check
    const char *title;  // draw
    const char *svg;
} solve_job;

static void tell(void *user, const berth_place_search *search) {
    const berth_placement_settings *settings = user;
    const berth_placement_progress progress = {search->strategy ? search->strategy : "",
                                               search->best_value, search->lower_bound};
    settings->progress(settings->progress_user, &progress);
}

static berth_status read_settings(const berth_placement_settings *given, solve_job *job) {
    berth_placement_settings *settings = &job->settings;
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*settings))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_placement_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_placement_settings), %zu in this version",
                                 given->size_bytes, sizeof(*settings));
    memcpy(settings, given, given->size_bytes);
    if ((unsigned)settings->objective > BERTH_PLACEMENT_MEMORY)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "no such objective: %u",
                                 (unsigned)settings->objective);
    if (settings->contiguous && settings->objective != BERTH_PLACEMENT_THROUGHPUT)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "contiguous is for the objective throughput");
    if (settings->one_node_at_a_time && settings->objective != BERTH_PLACEMENT_LATENCY)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "one node at a time is for the objective latency");
    return BERTH_OK;
}

static void take_answer(berth_placement_problem *problem, berth_place_objective objective,
                        const berth_place_answer *found) {
    problem->placed = true;
    problem->objective = objective;
    problem->found = *found;
    problem->answer = (berth_placement_answer){
        .value = found->value.value,
        .lower_bound = found->lower_bound,
        .gap = found->gap,
        .proven = found->proven,
        .reproducible = found->reproducible,
        .is_share = objective == BERTH_PLACE_MEMORY && berth_place_memory_is_share(problem->data),
        .strategy = found->strategy ? found->strategy : "",
        .node_count = found->nodes};
    take_facts(problem);
}

static berth_place_options options_of(berth_placement_settings *settings) {
    static const berth_place_objective objectives[] = {
        [BERTH_PLACEMENT_THROUGHPUT] = BERTH_PLACE_THROUGHPUT,
        [BERTH_PLACEMENT_LATENCY] = BERTH_PLACE_LATENCY,
        [BERTH_PLACEMENT_MEMORY] = BERTH_PLACE_MEMORY};
    return (berth_place_options){
        .objective = objectives[settings->objective],
        .contiguous = settings->contiguous != 0,
        .strategy = settings->strategy,
        .node_budget = settings->node_budget,
        .deadline_ns = settings->time_budget_ns > 0
                           ? berth_clock_deadline_ns(berth_clock_ns(), settings->time_budget_ns)
                           : 0,
        .progress = settings->progress ? tell : NULL,
        .progress_user = settings};
}

static berth_status solve(void *user) {
    solve_job *job = user;
    berth_placement_problem *problem = job->problem;
    BERTH_TRY(finish(problem));
    problem->data->one_subgraph = !job->settings.one_node_at_a_time;
    const berth_place_options options = options_of(&job->settings);
    berth_place_answer found;
    BERTH_TRY(berth_place_solve(problem->arena, problem->data, &options, &found));
    take_answer(problem, options.objective, &found);
    return BERTH_OK;
}

berth_status berth_placement_problem_solve(berth_placement_problem *problem,
                                           const berth_placement_settings *settings) {
    solve_job job = {.problem = problem};
    BERTH_TRY(read_settings(settings, &job));
    return berth_arena_try(problem->arena, solve, &job);
}

static berth_status check(void *user) {
    solve_job *job = user;
    berth_placement_problem *problem = job->problem;
    berth_arena *arena = problem->arena;
    const size_t limit_bytes = (size_t)1 << 28;
    char *text = NULL;
    size_t length = 0;
    BERTH_TRY(finish(problem));
    problem->data->one_subgraph = !job->settings.one_node_at_a_time;
    const berth_place_options options = options_of(&job->settings);
    berth_place_answer found = {.assignment = NULL};
    BERTH_TRY(berth_file_read(arena, job->path, limit_bytes, &text, &length));
    BERTH_TRY(
        berth_place_answer_parse(arena, job->path, text, length, problem->data, &found.assignment));
    BERTH_TRY(berth_status_prefix(berth_place_evaluate(arena, problem->data, options.objective,
                                                       options.contiguous, found.assignment,
                                                       &found.value),
                                  "%s", job->path));
    take_answer(problem, options.objective, &found);
    return BERTH_OK;
}

berth_status berth_placement_problem_check(berth_placement_problem *problem, const char *path,
                                           const berth_placement_settings *settings) {
    solve_job job = {.problem = problem, .path = path};
    BERTH_TRY(read_settings(settings, &job));
    return berth_arena_try(problem->arena, check, &job);
}

int berth_placement_strategy_at(uint32_t index, const char **out_name, const char **out_text) {
    const berth_place_strategy *const *all = berth_place_strategies();
    for (uint32_t i = 0; all[i]; ++i) {
        if (i != index) continue;
        *out_name = all[i]->name;
        *out_text = all[i]->doc;
        return 1;
    }
    return 0;
}

// ---- the answer ---------------------------------------------------------------------------------

const berth_placement_answer *
berth_placement_problem_answer(const berth_placement_problem *problem) {
    return problem->placed ? &problem->answer : NULL;
}

uint32_t berth_placement_problem_device_count(const berth_placement_problem *problem) {
    return problem->data ? problem->data->device_count : 0;
}

uint32_t berth_placement_problem_node_count(const berth_placement_problem *problem) {
    return problem->data ? problem->data->node_count : problem->names.count;
}

uint32_t berth_placement_problem_edge_count(const berth_placement_problem *problem) {
    return problem->data ? problem->data->edge_count : problem->from.count;
}

uint32_t berth_placement_problem_group_count(const berth_placement_problem *problem) {
    return problem->data ? problem->data->group_count : 0;
}

const berth_placement_device *berth_placement_problem_device(const berth_placement_problem *problem,
                                                             uint32_t index) {
    return index < berth_placement_problem_device_count(problem) ? &problem->devices[index] : NULL;
}

const berth_placement_node *berth_placement_problem_node(const berth_placement_problem *problem,
                                                         uint32_t index) {
    return problem->data && index < problem->data->node_count ? &problem->nodes[index] : NULL;
}

static berth_status draw(void *user) {
    solve_job *job = user;
    berth_placement_problem *problem = job->problem;
    if (!problem->placed)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "nothing is placed: solve it first");
    berth_strbuf svg = berth_strbuf_make(problem->arena);
    const berth_place_plot_options options = {.title = job->title};
    berth_place_plot(problem->data, problem->objective, &problem->found, &options, &svg);
    job->svg = berth_strbuf_text(&svg);
    return BERTH_OK;
}

berth_status berth_placement_problem_draw(berth_placement_problem *problem, const char *title,
                                          const char **out_svg) {
    solve_job job = {.problem = problem, .title = title};
    *out_svg = NULL;
    BERTH_TRY(berth_arena_try(problem->arena, draw, &job));
    *out_svg = job.svg;
    return BERTH_OK;
}
