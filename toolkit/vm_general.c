#include "toolkit/vm_general.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "toolkit/background.h"
#include "toolkit/vm_bounds.h"
#include "toolkit/vm_build.h"
#include "toolkit/vm_general_file.h"

// Shapes before the first program: fewer do not tell how they change. Shapes of one program: the compiler's passes run
// for each, a tenth of a second for each of a model of 400 operations. Programs of a session: what changes in ways that
// none foresaw is left to compile for itself. Restarts: programs that were given up while they were made.
enum {
    FIRST_SHAPES = 3,
    FEW_SHAPES = 128,
    MOST_SHAPES = 1024,
    MOST_PROGRAMS = 6,
    MOST_RESTARTS = 3,
    MOST_SEEN = 256
};

// A program that is made, and what it is made from.
typedef struct made_program {
    berth_vm_general *general;
    berth_arena *arena;
    atomic_uint is_given_up;  // for a wider one
    berth_vm_bounds bounds;
    const int64_t **rows;  // that they were chosen from
    uint32_t row_count;
    const berth_tensor **shapes;  // inputs for each shape
    berth_module *module;
    const berth_program *program;  // NULL = it could not be made, or is not yet
    berth_status status;
    uint64_t size_bytes;
} made_program;

struct berth_vm_general {
    berth_vm_general_what what;
    berth_arena *arena;  // of what was seen
    uint32_t axis_count;
    int64_t *row;  // of the run at hand
    BERTH_VEC(const int64_t *) seen;
    BERTH_VEC(const int64_t *) kept;  // that earlier sessions saw
    berth_hash128 key;                // of the file
    bool has_key;
    berth_background *background;
    pthread_mutex_t lock;
    made_program *making;  // by the background, the latest; under the lock
    bool is_done;          // `making` is, and a run is to take it; under the lock
    uint32_t restart_count;
    uint32_t first_level;  // of bounds: the model does not allow wider ones
    made_program *held;
    berth_vm_runner *runner;  // of it
    berth_vm_watch watch;
    uint64_t limit_bytes;
    berth_vm_general_report report;
    char why[400];  // report.refusal
};

// ---- one program --------------------------------------------------------------------------------

static void destroy_made(made_program *made) {
    if (!made) return;
    berth_status_free(made->status);
    berth_arena_destroy(made->arena);
    berth_free(berth_allocator_system(), made, sizeof(*made));
}

static bool ends(void *state) {
    const made_program *made = state;
    return atomic_load(&made->is_given_up) || berth_background_ends(made->general->background);
}

static void make(void *user) {
    made_program *made = user;
    const berth_vm_general *g = made->general;
    berth_compile_options options = g->what.compile;
    // Kernels and packed constants are the program's own: the session's change while runs go on.
    options.generic_kernels = NULL;
    options.packed_store = NULL;
    options.seen_extents = NULL;
    options.any_size = options.other_sizes = false;
    options.log = (berth_log){0};
    options.jobs = 1;
    options.interrupt = (berth_interrupt){.pending = ends, .state = made};
    made->status = berth_vm_build_shapes(made->arena, made->module, &options, made->shapes,
                                         (uint32_t)made->bounds.shape_count, &made->program);
    made->size_bytes = berth_arena_used_bytes(made->arena);
    if (made->status || !g->has_key) return;
    const berth_vm_general_file file = {.program = made->program,
                                        .rows = made->rows,
                                        .row_count = made->row_count,
                                        .axis_count = g->axis_count,
                                        .level = made->bounds.level};
    berth_vm_general_write(&options, g->key, &file);
}

static void give(void *user) {
    made_program *made = user;
    berth_vm_general *g = made->general;
    pthread_mutex_lock(&g->lock);
    const bool is_latest = made == g->making;
    g->is_done |= is_latest;
    pthread_mutex_unlock(&g->lock);
    if (!is_latest) destroy_made(made);
}

// ---- what is made -------------------------------------------------------------------------------

// All extents of all inputs; false: an input is no tensor, or of another rank.
static bool read_row(const berth_vm_general *g, berth_vm_value *const *inputs) {
    const berth_vm_program *code = g->what.code;
    int64_t *at = g->row;
    for (uint32_t i = 0; i < code->input_count; ++i) {
        const berth_vm_value *value = inputs[i];
        if (!value || value->kind != BERTH_VM_VALUE_TENSOR ||
            value->tensor.rank != code->inputs[i].rank ||
            value->tensor.dtype != code->inputs[i].dtype)
            return false;
        for (int d = 0; d < value->tensor.rank; ++d) *at++ = value->tensor.dims[d];
    }
    return true;
}

static berth_tensor *inputs_of(const berth_vm_general *g, const int64_t *row, berth_arena *arena) {
    const berth_vm_program *code = g->what.code;
    berth_tensor *inputs = berth_arena_new_array(arena, berth_tensor, code->input_count + 1);
    for (uint32_t i = 0; i < code->input_count; ++i) {
        inputs[i] = (berth_tensor){.dtype = code->inputs[i].dtype, .rank = code->inputs[i].rank};
        for (int d = 0; d < inputs[i].rank; ++d) inputs[i].dims[d] = *row++;
    }
    return inputs;
}

static void list_limits(const berth_vm_general *g, int64_t *least, int64_t *most) {
    const berth_vm_program *code = g->what.code;
    for (uint32_t i = 0; i < code->input_count; ++i)
        for (int d = 0; d < code->inputs[i].rank; ++d) {
            *least++ = code->inputs[i].least[d];
            *most++ = code->inputs[i].most[d];
        }
}

static void choose_bounds(const berth_vm_general *g, made_program *made, uint32_t first_level) {
    int64_t *least = berth_arena_new_array(made->arena, int64_t, g->axis_count + 1);
    int64_t *most = berth_arena_new_array(made->arena, int64_t, g->axis_count + 1);
    list_limits(g, least, most);
    const berth_vm_bounds_seen seen = {made->rows, made->row_count, g->axis_count, least,
                                       most,       FEW_SHAPES,      MOST_SHAPES,   first_level};
    made->bounds = berth_vm_bounds_choose(&seen, made->arena);
}

static void list_rows(const berth_vm_general *g, made_program *made) {
    const uint32_t kept = g->kept.count;
    made->row_count = kept + g->seen.count;
    made->rows = berth_arena_new_array(made->arena, const int64_t *, made->row_count + 1);
    for (uint32_t i = 0; i < made->row_count; ++i)
        made->rows[i] =
            berth_arena_copy(made->arena, i < kept ? g->kept.data[i] : g->seen.data[i - kept],
                             g->axis_count * sizeof(int64_t));
}

static berth_status prepare(void *user) {
    made_program *made = user;
    const berth_vm_general *g = made->general;
    list_rows(g, made);
    choose_bounds(g, made, g->first_level);
    const uint32_t count = (uint32_t)made->bounds.shape_count;
    made->shapes = berth_arena_new_array(made->arena, const berth_tensor *, count + 1);
    int64_t *row = berth_arena_new_array(made->arena, int64_t, g->axis_count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_vm_bounds_shape(&made->bounds, i, row);
        made->shapes[i] = inputs_of(g, row, made->arena);
    }
    made->module = berth_module_copy(made->arena, g->what.module);
    return BERTH_OK;
}

static void refuse(berth_vm_general *g, const char *why) {
    if (g->report.refusal) return;
    snprintf(g->why, sizeof(g->why), "%s", why);
    g->report.refusal = g->why;
}

static berth_status begin(berth_vm_general *g) {
    made_program *made = berth_calloc(berth_allocator_system(), 1, sizeof(*made));
    if (!made) return berth_status_oom();
    made->general = g;
    berth_status status = berth_arena_create(berth_allocator_system(), &made->arena);
    if (!status) status = berth_arena_try(made->arena, prepare, made);
    if (status || !made->bounds.shape_count) {
        if (!status) refuse(g, "the shapes that came have too many between them");
        destroy_made(made);
        return status;
    }
    pthread_mutex_lock(&g->lock);
    g->making = made;
    g->is_done = false;
    pthread_mutex_unlock(&g->lock);
    berth_background_add(g->background, make, give, made);
    return BERTH_OK;
}

// ---- what is there ------------------------------------------------------------------------------

static const char *trouble_of(const berth_vm_general *g, const made_program *made) {
    if (made->status) return berth_status_message(made->status);
    if (!made->program) return "it was not made";
    return made->size_bytes > g->limit_bytes ? "it takes more memory than is kept" : NULL;
}

// Takes it over, in the place of what was there.
static berth_status hold(berth_vm_general *g, made_program *made) {
    const berth_vm_runner_options options = {g->what.thread_count, g->what.compile.cache_folder,
                                             g->what.heap, g->what.cancelled};
    berth_vm_runner *runner = NULL;
    berth_status status = berth_vm_runner_open(made->program, &options, &runner);
    if (status) {
        destroy_made(made);
        return status;
    }
    berth_vm_runner_watch(runner, g->watch);
    berth_vm_runner_close(g->runner);
    destroy_made(g->held);
    g->held = made;
    g->runner = runner;
    g->report.program_count++;
    g->report.shape_count = (uint32_t)made->bounds.shape_count;
    g->report.held_bytes = made->size_bytes;
    g->report.was_kept = made->rows == g->kept.data;
    return BERTH_OK;
}

// A model may have no results for shapes beyond those that came (a table of positions ends): then only these are.
static bool may_be_narrower(berth_vm_general *g, const made_program *made) {
    const berth_code code = berth_status_code(made->status);
    const uint32_t level = made->bounds.level;
    if (!berth_vm_bounds_level_is_wide(level) || code == BERTH_CANCELLED ||
        code == BERTH_OUT_OF_MEMORY || !made->status)
        return false;
    while (berth_vm_bounds_level_is_wide(g->first_level) || g->first_level <= level)
        g->first_level++;
    return true;
}

// What the background has made takes the place of what was there.
static berth_status take_done(berth_vm_general *g) {
    pthread_mutex_lock(&g->lock);
    made_program *made = g->is_done ? g->making : NULL;
    if (made) g->making = NULL;
    g->is_done = false;
    pthread_mutex_unlock(&g->lock);
    if (!made) return BERTH_OK;
    const char *trouble = trouble_of(g, made);
    if (!trouble) return hold(g, made);
    if (!may_be_narrower(g, made)) refuse(g, trouble);
    destroy_made(made);
    return BERTH_OK;
}

// Whether a program may be begun. One that is made already, but not for the shape at hand, is given up for it: none of
// its successors would be narrower.
static bool may_begin(berth_vm_general *g) {
    pthread_mutex_lock(&g->lock);
    made_program *made = g->is_done ? NULL : g->making;
    const bool is_in_the_way =
        made && (g->restart_count >= MOST_RESTARTS || berth_vm_bounds_hold(&made->bounds, g->row));
    if (made && !is_in_the_way) {
        g->restart_count++;
        g->making = NULL;
        atomic_store(&made->is_given_up, 1);
    }
    pthread_mutex_unlock(&g->lock);
    return !is_in_the_way;
}

static bool is_among(const int64_t *row, const int64_t *const *rows, uint32_t count,
                     uint32_t axis_count) {
    for (uint32_t i = 0; i < count; ++i)
        if (memcmp(rows[i], row, axis_count * sizeof(*row)) == 0) return true;
    return false;
}

static bool was_seen(const berth_vm_general *g) {
    return is_among(g->row, g->seen.data, g->seen.count, g->axis_count);
}

// Whether a shape came that the program is not for, perhaps while it was made.
static bool lacks_some(const berth_vm_general *g) {
    for (uint32_t i = 0; i < g->seen.count; ++i)
        if (!g->held || !berth_vm_bounds_hold(&g->held->bounds, g->seen.data[i])) return true;
    return false;
}

static berth_status keep_row(void *user) {
    berth_vm_general *g = user;
    int64_t *row = berth_arena_copy(g->arena, g->row, g->axis_count * sizeof(*row));
    berth_vec_push(g->arena, &g->seen, row);
    return BERTH_OK;
}

berth_status berth_vm_general_find(berth_vm_general *general, berth_vm_value *const *inputs,
                                   bool is_cheap, berth_vm_runner **out_runner) {
    berth_vm_general *g = general;
    *out_runner = NULL;
    if (g->axis_count == 0 || !read_row(g, inputs)) return BERTH_OK;
    BERTH_TRY(take_done(g));
    const bool is_new = !was_seen(g);
    if (is_new && g->runner && berth_vm_bounds_hold(&g->held->bounds, g->row)) {
        *out_runner = g->runner;
        g->report.run_count++;
        return BERTH_OK;
    }
    if (g->report.refusal || g->seen.count >= MOST_SEEN) return BERTH_OK;
    if (is_new) BERTH_TRY(berth_arena_try(g->arena, keep_row, g));
    const bool is_wanted = g->what.makes && !is_cheap && lacks_some(g) &&
                           g->seen.count + g->kept.count >= FIRST_SHAPES &&
                           g->report.program_count < MOST_PROGRAMS;
    return is_wanted && may_begin(g) ? begin(g) : BERTH_OK;
}

void berth_vm_general_give_up(berth_vm_general *general, const char *why) {
    refuse(general, why);
    berth_vm_runner_close(general->runner);
    destroy_made(general->held);
    general->runner = NULL;
    general->held = NULL;
    general->report.held_bytes = 0;
}

const berth_program *berth_vm_general_program(const berth_vm_general *general) {
    return general->held ? general->held->program : NULL;
}

void berth_vm_general_watch(berth_vm_general *general, berth_vm_watch watch) {
    general->watch = watch;
    if (general->runner) berth_vm_runner_watch(general->runner, watch);
}

void berth_vm_general_wait(berth_vm_general *general) {
    berth_background_wait(general->background);
}

void berth_vm_general_set_limit(berth_vm_general *general, uint64_t bytes) {
    general->limit_bytes = bytes;
}

void berth_vm_general_get_report(const berth_vm_general *general, berth_vm_general_report *out) {
    *out = general->report;
}

// ---- lifetime -----------------------------------------------------------------------------------

// None: an input is no tensor, or its rank or element type is any.
static uint32_t count_axes(const berth_vm_program *code) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->input_count; ++i) {
        if (!code->inputs[i].is_tensor || code->inputs[i].rank < 0 || !code->inputs[i].dtype)
            return 0;
        count += (uint32_t)code->inputs[i].rank;
    }
    return count;
}

static berth_status make_row(void *user) {
    berth_vm_general *g = user;
    g->row = berth_arena_new_array(g->arena, int64_t, g->axis_count + 1);
    return BERTH_OK;
}

static bool is_open(const berth_vm_program *code) {
    for (uint32_t i = 0; i < code->input_count; ++i)
        for (int d = 0; d < code->inputs[i].rank; ++d)
            if (code->inputs[i].dims[d] < 0) return true;
    return false;
}

typedef struct kept_job {
    berth_vm_general *general;
    const berth_vm_general_file *file;
    made_program *made;
} kept_job;

static berth_status take_rows(void *user) {
    const kept_job *job = user;
    berth_vm_general *g = job->general;
    for (uint32_t i = 0; i < job->file->row_count && g->kept.count < MOST_SEEN; ++i) {
        int64_t *row = berth_arena_copy(g->arena, job->file->rows[i], g->axis_count * sizeof(*row));
        berth_vec_push(g->arena, &g->kept, row);
    }
    return BERTH_OK;
}

static berth_status take_bounds(void *user) {
    const kept_job *job = user;
    job->made->rows = (const int64_t **)job->general->kept.data;
    job->made->row_count = job->general->kept.count;
    choose_bounds(job->general, job->made, job->file->level);
    return BERTH_OK;
}

// What an earlier session kept, into `made`, which keeps what it holds.
static berth_status read_kept(berth_vm_general *g, made_program *made) {
    berth_vm_general_file file;
    kept_job job = {g, &file, made};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &made->arena));
    BERTH_TRY(berth_vm_general_read(&g->what.compile, g->key, g->axis_count, made->arena, &file));
    if (!file.program || file.size_bytes > g->limit_bytes) return BERTH_OK;
    BERTH_TRY(berth_arena_try(g->arena, take_rows, &job));
    BERTH_TRY(berth_arena_try(made->arena, take_bounds, &job));
    made->program = made->bounds.shape_count ? file.program : NULL;
    made->size_bytes = berth_arena_used_bytes(made->arena);
    return BERTH_OK;
}

static berth_status take_kept(berth_vm_general *g) {
    if (g->axis_count == 0 || !is_open(g->what.code)) return BERTH_OK;
    BERTH_TRY(berth_vm_general_key(g->what.module, &g->what.compile, &g->key, &g->has_key));
    if (!g->has_key) return BERTH_OK;
    made_program *made = berth_calloc(berth_allocator_system(), 1, sizeof(*made));
    if (!made) return berth_status_oom();
    made->general = g;
    berth_status status = read_kept(g, made);
    if (status || !made->program) {
        destroy_made(made);
        return status;
    }
    return hold(g, made);
}

berth_status berth_vm_general_open(const berth_vm_general_what *what,
                                   berth_vm_general **out_general) {
    berth_vm_general *g = berth_calloc(berth_allocator_system(), 1, sizeof(*g));
    *out_general = g;
    if (!g) return berth_status_oom();
    g->what = *what;
    g->limit_bytes = UINT64_MAX;
    pthread_mutex_init(&g->lock, NULL);
    g->axis_count = count_axes(what->code);
    berth_status status = berth_arena_create(berth_allocator_system(), &g->arena);
    if (!status) status = berth_arena_try(g->arena, make_row, g);
    if (!status) status = berth_background_create(&g->background);
    if (!status) status = take_kept(g);
    if (!status) return BERTH_OK;
    berth_vm_general_close(g);
    *out_general = NULL;
    return status;
}

void berth_vm_general_close(berth_vm_general *general) {
    if (!general) return;
    berth_background_destroy(general->background);
    berth_vm_runner_close(general->runner);
    destroy_made(general->held);
    destroy_made(general->making);
    berth_arena_destroy(general->arena);
    pthread_mutex_destroy(&general->lock);
    berth_free(berth_allocator_system(), general, sizeof(*general));
}
