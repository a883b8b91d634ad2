// Static memory allocation on plain data (<berth/allocation.h>).
#include <berth/allocation.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "memory/plot.h"
#include "memory/solve.h"
#include "memory/validator.h"

// Facts are made anew when the problem changes.
struct berth_allocation_problem {
    berth_arena *arena;  // of this struct
    berth_memory_problem data;
    uint32_t buffer_capacity, pool_capacity;
    berth_interner *ids;
    uint32_t id_count;           // interned
    uint64_t *capacities_bytes;  // [pool_capacity]
    uint64_t total_bytes;        // berth_memory_total of all
    bool solved;
    uint64_t node_count;
    berth_allocation_buffer *buffers;  // [buffer_capacity]
    berth_allocation_pool *pools;      // [pool_capacity]
};

// ---- making -------------------------------------------------------------------------------------

typedef struct make_job {
    berth_arena *arena;
    const char *path;         // or
    const char *name, *text;  // or neither
    size_t length;
    const berth_limits *limits;  // NULL = the reader's own
    berth_allocation_problem *problem;
} make_job;

// Of buffers from `first` on, and of all pools.
static void take_facts(berth_allocation_problem *problem, uint32_t first) {
    const berth_memory_problem *data = &problem->data;
    for (uint32_t i = first; i < data->buffer_count; ++i) {
        const berth_memory_interval *interval = &data->intervals[i];
        problem->buffers[i] =
            (berth_allocation_buffer){.id = data->ids[i],
                                      .pool = data->pool_names[data->pools[i]],
                                      .lower = interval->lower,
                                      .upper = interval->upper,
                                      .size_bytes = interval->size_bytes,
                                      .alignment_bytes = interval->alignment_bytes,
                                      .offset_bytes = problem->solved ? data->offsets[i] : 0};
    }
    for (uint32_t p = 0; p < data->pool_count; ++p)
        problem->pools[p] = (berth_allocation_pool){.name = data->pool_names[p],
                                                    .capacity_bytes = problem->capacities_bytes[p],
                                                    .strategy = ""};
}

static berth_status make(void *user) {
    make_job *job = user;
    berth_arena *arena = job->arena;
    berth_memory_problem *data = NULL;
    if (job->path)
        BERTH_TRY(berth_memory_problem_read(arena, job->path, job->limits, &data));
    else if (job->text)
        BERTH_TRY(
            berth_memory_problem_parse(arena, job->name, job->text, job->length, NULL, &data));
    berth_allocation_problem *problem = berth_arena_new(arena, berth_allocation_problem);
    problem->arena = arena;
    problem->ids = berth_interner_create(arena);
    if (data) problem->data = *data;
    problem->solved = problem->data.offsets != NULL;
    problem->buffer_capacity = problem->data.buffer_count;
    problem->pool_capacity = problem->data.pool_count;
    problem->capacities_bytes = berth_arena_new_array(arena, uint64_t, problem->pool_capacity);
    problem->buffers =
        berth_arena_new_array(arena, berth_allocation_buffer, problem->buffer_capacity);
    problem->pools = berth_arena_new_array(arena, berth_allocation_pool, problem->pool_capacity);
    for (uint32_t i = 0; i < problem->data.buffer_count; ++i)
        problem->id_count = berth_intern(problem->ids, problem->data.ids[i]);
    problem->total_bytes = berth_memory_total(problem->data.intervals, problem->data.buffer_count);
    take_facts(problem, 0);
    job->problem = problem;
    return BERTH_OK;
}

static berth_status begin(make_job *job, berth_allocation_problem **out_problem) {
    *out_problem = NULL;
    BERTH_TRY(berth_arena_make(make, job, &job->arena));
    *out_problem = job->problem;
    return BERTH_OK;
}

berth_status berth_allocation_problem_create(berth_allocation_problem **out_problem) {
    make_job job = {.path = NULL};
    return begin(&job, out_problem);
}

berth_status berth_allocation_problem_read(const char *path,
                                           berth_allocation_problem **out_problem) {
    make_job job = {.path = path};
    return begin(&job, out_problem);
}

berth_status berth_allocation_problem_read_limited(const char *path, const char *limits_text,
                                                   berth_allocation_problem **out_problem) {
    berth_limits limits;
    *out_problem = NULL;
    BERTH_TRY(berth_limits_parse(limits_text, &limits));
    make_job job = {.path = path, .limits = &limits};
    return begin(&job, out_problem);
}

berth_status berth_allocation_problem_parse(const char *name, const char *text, size_t length,
                                            berth_allocation_problem **out_problem) {
    make_job job = {.name = name, .text = text, .length = length};
    return begin(&job, out_problem);
}

void berth_allocation_problem_destroy(berth_allocation_problem *problem) {
    if (problem) berth_arena_destroy(problem->arena);
}

// ---- adding -------------------------------------------------------------------------------------

typedef struct add_job {
    berth_allocation_problem *problem;
    const char *id, *pool;
    berth_memory_interval interval;
} add_job;

// Room for one more of everything.
static void reserve(berth_allocation_problem *problem) {
    berth_memory_problem *data = &problem->data;
    berth_arena *arena = problem->arena;
    const uint32_t count = problem->buffer_capacity, pools = problem->pool_capacity;
    if (data->buffer_count == count) {
        const uint32_t wanted = count ? 2 * count : 16;
#define GROW(array, old, new)                                                                      \
    (array) = berth_arena_grow(arena, (array), (old) * sizeof(*(array)), (new) * sizeof(*(array)))
        GROW(data->ids, count, wanted);
        GROW(data->intervals, count, wanted);
        GROW(data->pools, count, wanted);
        GROW(problem->buffers, count, wanted);
        problem->buffer_capacity = wanted;
    }
    if (data->pool_count == pools) {
        const uint32_t wanted = pools + 4;
        GROW(data->pool_names, pools, wanted);
        GROW(problem->capacities_bytes, pools, wanted);
        GROW(problem->pools, pools, wanted);
#undef GROW
        problem->pool_capacity = wanted;
    }
}

// Index of the pool, or that of the first free row.
static uint32_t find_pool(const berth_memory_problem *data, const char *name) {
    uint32_t p = 0;
    while (p < data->pool_count && strcmp(data->pool_names[p], name) != 0) ++p;
    return p;
}

// What can run out of memory comes before what changes the problem.
static berth_status add(void *user) {
    const add_job *job = user;
    berth_allocation_problem *problem = job->problem;
    berth_memory_problem *data = &problem->data;
    reserve(problem);
    const uint32_t pool = find_pool(data, job->pool), at = data->buffer_count;
    const char *pool_name = pool == data->pool_count ? berth_arena_strdup(problem->arena, job->pool)
                                                     : data->pool_names[pool];
    const uint32_t id = berth_intern(problem->ids, job->id);
    if (id <= problem->id_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "there is a buffer \"%s\" already",
                                 job->id);
    problem->id_count = id;
    if (pool == data->pool_count) {
        data->pool_names[pool] = pool_name;
        problem->capacities_bytes[pool] = 0;
        ++data->pool_count;
    }
    data->ids[at] = berth_interned(problem->ids, id);
    data->intervals[at] = job->interval;
    data->pools[at] = pool;
    data->has_alignment |= job->interval.alignment_bytes > 1;
    data->has_pool |= *job->pool != 0;
    ++data->buffer_count;
    problem->total_bytes += berth_memory_total(&job->interval, 1);
    problem->solved = false;
    take_facts(problem, data->offsets ? 0 : at);
    data->offsets = NULL;
    return BERTH_OK;
}

static berth_status check_buffer(const berth_allocation_problem *problem, const add_job *job) {
    const berth_memory_interval *interval = &job->interval;
    const uint64_t alignment = interval->alignment_bytes;
    const char *wrong = !*job->id                                     ? "an id must not be empty"
                        : interval->lower >= interval->upper          ? "lower must be below upper"
                        : interval->size_bytes == 0                   ? "the size must not be 0"
                        : !alignment || (alignment & (alignment - 1)) ? "the alignment must be a "
                                                                        "power of two"
                                                                      : NULL;
    if (wrong)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "buffer \"%s\": %s", job->id, wrong);
    uint64_t more = berth_memory_total(interval, 1);
    if (problem->data.buffer_count == BERTH_MEMORY_BUFFER_LIMIT ||
        more > BERTH_MEMORY_TOTAL_LIMIT_BYTES ||
        problem->total_bytes > BERTH_MEMORY_TOTAL_LIMIT_BYTES - more)
        return berth_status_make(
            BERTH_OUT_OF_RANGE,
            "buffer \"%s\": the sum of all sizes is above 2^62 bytes, or there "
            "are too many buffers",
            job->id);
    return BERTH_OK;
}

berth_status berth_allocation_problem_add(berth_allocation_problem *problem, const char *id,
                                          const char *pool, int64_t lower, int64_t upper,
                                          uint64_t size_bytes, uint64_t alignment_bytes) {
    add_job job = {.problem = problem,
                   .id = id,
                   .pool = pool ? pool : "",
                   .interval = {lower, upper, size_bytes, alignment_bytes}};
    BERTH_TRY(check_buffer(problem, &job));
    return berth_arena_try(problem->arena, add, &job);
}

berth_status berth_allocation_problem_set_capacity(berth_allocation_problem *problem,
                                                   const char *pool, uint64_t size_bytes) {
    const uint32_t count = problem->data.pool_count;
    const uint32_t first = pool ? find_pool(&problem->data, pool) : 0;
    if (pool && first == count)
        return berth_status_make(BERTH_NOT_FOUND, "no buffer is in a pool \"%s\"", pool);
    for (uint32_t p = first; p < (pool ? first + 1 : count); ++p)
        problem->pools[p].capacity_bytes = problem->capacities_bytes[p] = size_bytes;
    return BERTH_OK;
}

// ---- solving ------------------------------------------------------------------------------------

typedef struct solve_job {
    berth_allocation_problem *problem;
    berth_memory_solve_options options;
    const char *title;
    const char *svg;
} solve_job;

// Whatever found it, it is checked: against the capacities where it is said to fit.
static berth_status check_solution(berth_arena *scratch, const berth_allocation_problem *problem,
                                   const berth_memory_solution *solution) {
    const berth_memory_problem *data = &problem->data;
    uint64_t *limits = berth_arena_new_array(scratch, uint64_t, data->pool_count);
    for (uint32_t p = 0; p < data->pool_count; ++p)
        if (solution->pools[p].verdict == BERTH_MEMORY_FITS)
            limits[p] = problem->capacities_bytes[p];
    return berth_status_prefix(
        berth_memory_validate(scratch, data, solution->offsets, limits, NULL),
        "the solver's result is wrong, please report this");
}

static berth_status solve(void *user) {
    const solve_job *job = user;
    berth_allocation_problem *problem = job->problem;
    berth_memory_problem *data = &problem->data;
    berth_memory_solution solution;
    if (data->buffer_count == 0)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "there are no buffers to place");
    BERTH_TRY(berth_memory_solve(problem->arena, data, &job->options, &solution));
    BERTH_TRY(check_solution(problem->arena, problem, &solution));
    data->offsets = solution.offsets;
    problem->solved = true;
    problem->node_count = solution.nodes;
    take_facts(problem, 0);
    for (uint32_t p = 0; p < data->pool_count; ++p) {
        const berth_memory_pool_solution *pool = &solution.pools[p];
        problem->pools[p].verdict = pool->verdict == BERTH_MEMORY_FITS ? BERTH_ALLOCATION_FITS
                                    : pool->verdict == BERTH_MEMORY_CANNOT_FIT
                                        ? BERTH_ALLOCATION_CANNOT_FIT
                                        : BERTH_ALLOCATION_UNKNOWN;
        problem->pools[p].height_bytes = pool->height_bytes;
        problem->pools[p].lower_bound_bytes = pool->lower_bound_bytes;
        problem->pools[p].proven = pool->proven;
        problem->pools[p].strategy = pool->strategy;
    }
    return BERTH_OK;
}

berth_status berth_allocation_problem_solve(berth_allocation_problem *problem, uint64_t node_limit,
                                            int64_t time_limit_ns) {
    solve_job job = {
        .problem = problem,
        .options = {.capacities_bytes = problem->capacities_bytes,
                    .node_limit = node_limit,
                    .deadline_ns = time_limit_ns > 0
                                       ? berth_clock_deadline_ns(berth_clock_ns(), time_limit_ns)
                                       : 0}};
    return berth_arena_try(problem->arena, solve, &job);
}

static berth_status without_offsets(void) {
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "the buffers have no offsets: solve the problem first");
}

static berth_status check(void *user) {
    berth_allocation_problem *problem = ((solve_job *)user)->problem;
    const berth_memory_problem *data = &problem->data;
    if (!problem->solved) return without_offsets();
    uint64_t *heights = berth_arena_new_array(problem->arena, uint64_t, data->pool_count);
    BERTH_TRY(berth_memory_validate(problem->arena, data, data->offsets, problem->capacities_bytes,
                                    heights));
    for (uint32_t p = 0; p < data->pool_count; ++p) {
        berth_allocation_pool *pool = &problem->pools[p];
        pool->verdict = BERTH_ALLOCATION_FITS;
        pool->height_bytes = heights[p];
        pool->lower_bound_bytes = berth_memory_validate_lower_bound(problem->arena, data, p);
        pool->proven = pool->capacity_bytes || pool->height_bytes == pool->lower_bound_bytes;
    }
    return BERTH_OK;
}

berth_status berth_allocation_problem_check(berth_allocation_problem *problem) {
    solve_job job = {.problem = problem};
    return berth_arena_try(problem->arena, check, &job);
}

// ---- facts --------------------------------------------------------------------------------------

int berth_allocation_problem_is_solved(const berth_allocation_problem *problem) {
    return problem->solved;
}

uint64_t berth_allocation_problem_node_count(const berth_allocation_problem *problem) {
    return problem->node_count;
}

uint32_t berth_allocation_problem_buffer_count(const berth_allocation_problem *problem) {
    return problem->data.buffer_count;
}

uint32_t berth_allocation_problem_pool_count(const berth_allocation_problem *problem) {
    return problem->data.pool_count;
}

const berth_allocation_buffer *
berth_allocation_problem_buffer(const berth_allocation_problem *problem, uint32_t index) {
    return index < problem->data.buffer_count ? &problem->buffers[index] : NULL;
}

const berth_allocation_pool *berth_allocation_problem_pool(const berth_allocation_problem *problem,
                                                           uint32_t index) {
    return index < problem->data.pool_count ? &problem->pools[index] : NULL;
}

typedef struct save_job {
    berth_arena *arena;
    const berth_allocation_problem *problem;
    const char *path;
} save_job;

static berth_status save(void *user) {
    const save_job *job = user;
    berth_strbuf csv = berth_strbuf_make(job->arena);
    berth_memory_problem_write(&job->problem->data,
                               job->problem->solved ? job->problem->data.offsets : NULL, &csv);
    return berth_file_write(job->path, berth_strbuf_text(&csv), csv.length);
}

berth_status berth_allocation_problem_save(const berth_allocation_problem *problem,
                                           const char *path) {
    save_job job = {.problem = problem, .path = path};
    return berth_arena_scratch(save, &job, &job.arena);
}

static berth_status draw(void *user) {
    solve_job *job = user;
    berth_allocation_problem *problem = job->problem;
    if (!problem->solved) return without_offsets();
    berth_strbuf svg = berth_strbuf_make(problem->arena);
    const berth_memory_plot_options options = {.capacity_bytes = problem->capacities_bytes,
                                               .title = job->title};
    berth_memory_plot(&problem->data, problem->data.offsets, &options, &svg);
    job->svg = berth_strbuf_text(&svg);
    return BERTH_OK;
}

berth_status berth_allocation_problem_draw(berth_allocation_problem *problem, const char *title,
                                           const char **out_svg) {
    solve_job job = {.problem = problem, .title = title};
    *out_svg = NULL;
    BERTH_TRY(berth_arena_try(problem->arena, draw, &job));
    *out_svg = job.svg;
    return BERTH_OK;
}
