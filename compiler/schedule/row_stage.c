#include "compiler/schedule/row_stage.h"

#include <string.h>

enum { image_rank = 4 };

typedef struct walk {
    berth_tfn *fn;
    berth_ranges ranges;
    berth_var row;  // BERTH_NONE = not found yet
    berth_nest *nest;
    berth_row_reads *reads;  // per parameter
    bool *seen;              // per expression
    uint32_t seen_count;
    bool failed;
} walk;

static bool is_image(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    return info->rank == image_rank && info->dims[0] == 1 && info->layout == 0;
}

// `index` as coefficient * row + something in [low, high]. False: it is something else.
static bool rows_of(walk *w, berth_expr index, int64_t *out_step, berth_range *out_rest) {
    if (w->fn->exprs.data[index].lanes != 1) return false;
    berth_linear form = berth_linear_of(w->fn, &w->ranges, index);
    berth_linear rest = {.constant = form.constant};
    *out_step = 0;
    for (int i = 0; i < form.count; ++i) {
        const berth_expr_node *atom = &w->fn->exprs.data[form.terms[i].atom];
        if (atom->kind == BERTH_EXPR_VAR && atom->var == w->row)
            *out_step = form.terms[i].coefficient;
        else if (berth_tfn_uses_var(w->fn, form.terms[i].atom, w->row))
            return false;
        else
            rest.terms[rest.count++] = form.terms[i];
    }
    *out_rest = berth_linear_range(w->fn, &w->ranges, &rest);
    return berth_range_is_known(*out_rest);
}

// ---- loads --------------------------------------------------------------------------------------

static void note_load(walk *w, berth_expr id) {
    berth_buf buf = w->fn->exprs.data[id].load.buf;
    if (buf >= w->fn->param_count) return;
    if (w->fn->bufs.data[buf].role != BERTH_ROLE_IN) w->failed = true;
    berth_row_reads *reads = &w->reads[buf];
    if (!reads->by_rows) return;
    int64_t step = 0;
    berth_range rest = {0};
    if (!rows_of(w, berth_tfn_load_indices(w->fn, id)[BERTH_ROW_DIM], &step, &rest) || step < 1 ||
        (reads->step && reads->step != step)) {
        reads->by_rows = false;
        return;
    }
    bool first = reads->step == 0;
    if (first || rest.low < reads->low) reads->low = rest.low;
    if (first || rest.high > reads->high) reads->high = rest.high;
    reads->step = step;
}

// Expressions that looking at others adds are not met.
static void walk_expr(walk *w, berth_expr id) {
    if (!id || id >= w->seen_count || w->seen[id]) return;
    w->seen[id] = true;
    const berth_expr_node node = w->fn->exprs.data[id];
    if (node.kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node.index_count; ++i)
            walk_expr(w, berth_tfn_load_indices(w->fn, id)[i]);
        note_load(w, id);
        return;
    }
    walk_expr(w, node.a);
    walk_expr(w, node.b);
    walk_expr(w, node.c);
}

// ---- stores -------------------------------------------------------------------------------------

// The loop whose variable is the row that a store writes; what else is in the index must be 0.
static void find_row(walk *w, berth_expr index) {
    berth_linear form = berth_linear_of(w->fn, &w->ranges, index);
    for (int i = 0; i < form.count; ++i) {
        const berth_expr_node *atom = &w->fn->exprs.data[form.terms[i].atom];
        for (int k = 0; atom->kind == BERTH_EXPR_VAR && k < w->nest->count; ++k)
            if (w->nest->loops[k].var == atom->var) w->row = atom->var;
    }
}

static bool writes_row(walk *w, berth_stmt id) {
    berth_buf buf = w->fn->stmts.data[id].buf;
    if (buf >= w->fn->param_count) return true;
    berth_expr index = 0;
    if (w->fn->bufs.data[buf].role != BERTH_ROLE_OUT || !is_image(w->fn, buf)) return false;
    index = berth_tfn_store_indices(w->fn, id)[BERTH_ROW_DIM];
    if (w->row == BERTH_NONE) find_row(w, index);
    if (w->row == BERTH_NONE) return false;
    int64_t step = 0;
    berth_range rest = {0};
    return rows_of(w, index, &step, &rest) && step == 1 && rest.low == 0 && rest.high == 0;
}

static void walk_stmt(walk *w, berth_stmt id, bool stores) {
    const berth_stmt_node node = w->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_NONE:
    case BERTH_STMT_ALLOC: return;
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            walk_stmt(w, berth_tfn_seq_items(w->fn, id)[i], stores);
        return;
    case BERTH_STMT_STORE:
        if (stores && !writes_row(w, id)) w->failed = true;
        for (int i = 0; !stores && i < node.index_count; ++i)
            walk_expr(w, berth_tfn_store_indices(w->fn, id)[i]);
        break;
    case BERTH_STMT_FOR:
        if (node.loop_kind >= BERTH_LOOP_GROUP_X) w->failed = true;
        break;
    case BERTH_STMT_LET:
    case BERTH_STMT_IF: break;
    case BERTH_STMT_BARRIER:
    case BERTH_STMT_CALL: w->failed = true; return;
    }
    if (!stores) walk_expr(w, node.value);
    if (node.kind != BERTH_STMT_FOR && node.kind != BERTH_STMT_IF) return;
    walk_stmt(w, node.body, stores);
    walk_stmt(w, node.other, stores);
}

// ---- the stage ----------------------------------------------------------------------------------

// The results: of one height, which is that of the loop.
static bool writes_all_rows(const berth_tfn *fn, const berth_row_stage *stage) {
    uint32_t results = 0;
    for (berth_buf b = 0; b < fn->param_count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        if (info->role == BERTH_ROLE_IN) continue;
        if (info->role != BERTH_ROLE_OUT || !is_image(fn, b) ||
            info->dims[BERTH_ROW_DIM] != berth_row_stage_rows(stage))
            return false;
        ++results;
    }
    return results > 0;
}

// The statements of the function: the last one is the nest. False: there are too many.
static bool find_nest(const berth_tfn *fn, berth_stmt id, berth_stmt *out_nest,
                      berth_row_stage *out) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind != BERTH_STMT_SEQ) {
        if (*out_nest && out->before_count == BERTH_ROW_STAGE_MAX_BEFORE) return false;
        if (*out_nest) out->before[out->before_count++] = *out_nest;
        *out_nest = id;
        return true;
    }
    for (uint32_t i = 0; i < node->count; ++i)
        if (!find_nest(fn, berth_tfn_seq_items(fn, id)[i], out_nest, out)) return false;
    return true;
}

static void walk_all(walk *w, const berth_row_stage *stage, bool stores) {
    for (uint32_t i = 0; i < stage->before_count; ++i) walk_stmt(w, stage->before[i], stores);
    walk_stmt(w, stage->nest.body, stores);
}

static bool has_workspace(const berth_tfn *fn) {
    for (berth_buf b = fn->param_count; b < fn->bufs.count; ++b)
        if (fn->bufs.data[b].scope == BERTH_SCOPE_WORKSPACE) return true;
    return false;
}

bool berth_row_stage_find(berth_tfn *fn, berth_row_stage *out) {
    berth_arena *arena = fn->module->arena;
    memset(out, 0, sizeof(*out));
    berth_stmt only = 0;
    if (has_workspace(fn) || !find_nest(fn, fn->body, &only, out) || !only ||
        !berth_nest_parse(fn, only, &out->nest))
        return false;
    walk w = {.fn = fn,
              .ranges = berth_ranges_collect(fn),
              .row = BERTH_NONE,
              .nest = &out->nest,
              .reads = berth_arena_new_array(arena, berth_row_reads, fn->param_count + 1),
              .seen = berth_arena_new_array(arena, bool, fn->exprs.count + 1),
              .seen_count = fn->exprs.count};
    for (berth_buf b = 0; b < fn->param_count; ++b) w.reads[b].by_rows = is_image(fn, b);
    walk_all(&w, out, true);
    if (w.failed || w.row == BERTH_NONE) return false;
    walk_all(&w, out, false);
    for (int i = 0; i < out->nest.count; ++i)
        if (out->nest.loops[i].var == w.row) out->loop = i;
    for (berth_buf b = 0; b < fn->param_count; ++b) w.reads[b].by_rows &= w.reads[b].step > 0;
    out->reads = w.reads;
    bool moves = out->loop > 0;  // outside of the others
    return !w.failed && writes_all_rows(fn, out) &&
           out->nest.loops[out->loop].kind == BERTH_LOOP_PARALLEL &&
           (!moves || berth_nest_is_independent(fn, &out->nest));
}

berth_stmt berth_row_stage_emit(berth_tfn *fn, const berth_row_stage *stage) {
    berth_nest one = stage->nest;
    one.count = 0;
    for (int i = 0; i < stage->nest.count; ++i) {
        if (i == stage->loop) continue;
        one.loops[one.count] = stage->nest.loops[i];
        if (one.loops[one.count].kind == BERTH_LOOP_PARALLEL)
            one.loops[one.count].kind = BERTH_LOOP_SERIAL;
        one.count++;
    }
    berth_stmt items[BERTH_ROW_STAGE_MAX_BEFORE + 1];
    memcpy(items, stage->before, sizeof(stage->before));
    items[stage->before_count] = berth_nest_emit(fn, &one);
    return berth_tfn_seq(fn, items, stage->before_count + 1);
}
