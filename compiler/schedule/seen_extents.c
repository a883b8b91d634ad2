#include "compiler/schedule/seen_extents.h"

#include <string.h>

// A tile has rows, columns and lanes: with that many loops of one extent none of them is the one that changes.
enum { least_depth = 3, most_sizes = 256 };

typedef struct seen_function {
    struct seen_function *next;
    uint32_t scope;
    const char *name;
    // Of loops, in the order of statements.
    uint32_t count;
    int64_t *extents;  // [loop * most_sizes + size]
    uint32_t size_count;
    bool *changes;
} seen_function;

struct berth_seen_extents {
    berth_arena *arena;
    seen_function *functions;
    bool is_closed;
};

berth_seen_extents *berth_seen_extents_create(berth_arena *arena) {
    berth_seen_extents *seen = berth_arena_new(arena, berth_seen_extents);
    seen->arena = arena;
    return seen;
}

static bool is_loop(const berth_tfn *fn, berth_stmt id) {
    return id && fn->stmts.data[id].kind == BERTH_STMT_FOR;
}

// -1: only the run knows it.
static int64_t extent_of(const berth_tfn *fn, berth_stmt loop) {
    const berth_expr_node *extent = berth_tfn_expr(fn, fn->stmts.data[loop].value);
    return extent->kind == BERTH_EXPR_INT ? extent->i : -1;
}

static uint32_t count_loops(const berth_tfn *fn) {
    uint32_t count = 0;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) count += is_loop(fn, id);
    return count;
}

typedef struct note_job {
    berth_seen_extents *seen;
    uint32_t scope;
    const char *name;
    const berth_tfn *fn;
    seen_function *found;
} note_job;

static berth_status add(void *user) {
    note_job *job = user;
    berth_arena *arena = job->seen->arena;
    const uint32_t count = count_loops(job->fn);
    seen_function *made = berth_arena_new(arena, seen_function);
    made->scope = job->scope;
    made->name = berth_arena_strdup(arena, job->name);
    made->extents = berth_arena_new_array(arena, int64_t, ((size_t)count + 1) * most_sizes);
    made->changes = berth_arena_new_array(arena, bool, count + 1);
    made->count = count;
    made->next = job->seen->functions;
    job->seen->functions = job->found = made;
    return BERTH_OK;
}

// Whether size `size` of those that were noted has the function's extents.
static bool is_size(const seen_function *held, uint32_t size, const berth_tfn *fn) {
    uint32_t i = 0;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id)
        if (is_loop(fn, id) && held->extents[most_sizes * i++ + size] != extent_of(fn, id))
            return false;
    return true;
}

static void add_size(seen_function *held, const berth_tfn *fn) {
    uint32_t i = 0;
    for (uint32_t size = 0; size < held->size_count; ++size)
        if (is_size(held, size, fn)) return;
    if (held->size_count == most_sizes) return;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id)
        if (is_loop(fn, id)) held->extents[most_sizes * i++ + held->size_count] = extent_of(fn, id);
    held->size_count++;
}

static void compare(seen_function *held, const berth_tfn *fn) {
    uint32_t i = 0;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) {
        if (!is_loop(fn, id)) continue;
        held->changes[i] |= held->extents[most_sizes * i] != extent_of(fn, id);
        i++;
    }
}

// Loops of more than one round, each with nothing but the next one in it, inside `loop`.
static int depth_inside(const berth_tfn *fn, berth_stmt loop) {
    int depth = 0;
    for (berth_stmt id = fn->stmts.data[loop].body; is_loop(fn, id); id = fn->stmts.data[id].body)
        depth += extent_of(fn, id) > 1;
    return depth;
}

static bool is_outermost(const berth_tfn *fn, berth_stmt loop) {
    const berth_stmt_node *body = &fn->stmts.data[fn->body];
    if (body->kind != BERTH_STMT_SEQ) return loop == fn->body;
    for (uint32_t i = 0; i < body->count; ++i)
        if (berth_tfn_seq_items(fn, fn->body)[i] == loop) return true;
    return false;
}

static berth_seen_change change_of(const seen_function *held, const berth_tfn *fn) {
    berth_seen_change change = BERTH_SEEN_NOTHING;
    uint32_t i = 0;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) {
        if (!is_loop(fn, id) || !held->changes[i++]) continue;
        if (!is_outermost(fn, id) || depth_inside(fn, id) < least_depth) return BERTH_SEEN_INNER;
        change = BERTH_SEEN_OUTERMOST;
    }
    return change;
}

static void mark_loops(const seen_function *held, berth_tfn *fn, bool with_extents) {
    uint32_t i = 0;
    fn->size_count = with_extents ? held->size_count : 0;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) {
        if (!is_loop(fn, id)) continue;
        berth_var_info *var = &fn->vars.data[fn->stmts.data[id].var];
        var->keeps_extent = !held->changes[i];
        var->extents = with_extents ? &held->extents[most_sizes * i] : NULL;
        i++;
    }
}

void berth_seen_extents_close(berth_seen_extents *seen) {
    seen->is_closed = true;
}

berth_status berth_seen_extents_note(berth_seen_extents *seen, uint32_t scope, const char *name,
                                     berth_tfn *fn, berth_seen_change *out_change) {
    note_job job = {seen, scope, name, fn, NULL};
    const uint32_t count = count_loops(fn);
    for (seen_function *f = seen->functions; f && !job.found; f = f->next)
        if (f->scope == scope && f->count == count && strcmp(f->name, name) == 0) job.found = f;
    if (!job.found) BERTH_TRY(berth_arena_try(seen->arena, add, &job));
    if (job.found->size_count == 0 || !seen->is_closed) add_size(job.found, fn);
    compare(job.found, fn);
    mark_loops(job.found, fn, seen->is_closed);
    *out_change = change_of(job.found, fn);
    return BERTH_OK;
}
