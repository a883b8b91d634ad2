#include "compiler/schedule/cpu_panel.h"

static bool has_load(const berth_tfn *fn, berth_expr id) {
    if (!id) return false;
    const berth_expr_node *node = &fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_VAR: return false;
    case BERTH_EXPR_LOAD: return true;
    default: return has_load(fn, node->a) || has_load(fn, node->b) || has_load(fn, node->c);
    }
}

static bool moves_with(const berth_tfn *fn, berth_expr id, berth_var var) {
    return var != BERTH_NONE && berth_tfn_uses_var(fn, id, var);
}

berth_cpu_panel berth_cpu__panel_of(const berth_tfn *fn, const berth_reduction *reduction,
                                    berth_nest_loop row, berth_var lane, berth_var column) {
    berth_cpu_panel panel = {.row = row, .sum = reduction->loops, .depth = 1};
    const berth_expr_node *update = &fn->exprs.data[reduction->update];
    if (update->kind != BERTH_EXPR_FMA) return panel;
    const berth_expr sides[2] = {update->a, update->b};
    for (int i = 0; i < 2; ++i) {
        bool moves = moves_with(fn, sides[i], lane) || moves_with(fn, sides[i], column);
        bool others_move = moves_with(fn, sides[1 - i], lane);
        bool plain = fn->exprs.data[sides[i]].kind == BERTH_EXPR_LOAD;
        if (!moves && others_move && !plain && has_load(fn, sides[i]) &&
            moves_with(fn, sides[i], row.var))
            panel.value = sides[i];
    }
    for (int i = 0; i < panel.sum.count; ++i) panel.depth *= panel.sum.loops[i].extent;
    // Whole vectors, and no rows a multiple of 4 KiB apart (they would share a set of the cache).
    panel.pitch = (panel.depth + 15) / 16 * 16;
    if (panel.pitch % 1024 == 0) panel.pitch += 16;
    panel.bytes_per_row = panel.pitch * (int64_t)sizeof(float);
    return panel;
}

// Position in the sum, with the loops' own variables.
static berth_expr position(berth_tfn *fn, const berth_nest *sum) {
    berth_expr at = berth_tfn_index(fn, 0);
    for (int i = 0; i < sum->count; ++i) {
        berth_expr extent = berth_tfn_index(fn, sum->loops[i].extent);
        at = berth_tfn_binary(fn, BERTH_BINARY_MUL, at, extent);
        at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_var_ref(fn, sum->loops[i].var));
    }
    return at;
}

berth_expr berth_cpu__panel_read(berth_tfn *fn, const berth_cpu_panel *panel, berth_buf buf,
                                 berth_expr first, berth_expr update) {
    const berth_expr_node node = fn->exprs.data[update];
    berth_expr row = berth_tfn_var_ref(fn, panel->row.var);
    berth_expr at[2] = {berth_tfn_binary(fn, BERTH_BINARY_SUB, row, first),
                        position(fn, &panel->sum)};
    berth_expr load = berth_tfn_load(fn, buf, at, 2);
    berth_expr weights = node.a == panel->value ? node.b : node.a;
    return berth_tfn_fma(fn, load, weights, node.c);
}

berth_stmt berth_cpu__panel_fill(berth_tfn *fn, const berth_cpu_panel *panel, berth_buf buf,
                                 berth_expr first, int64_t count) {
    berth_var row = berth_tfn_var(fn, "panel_row");
    berth_nest sum = panel->sum;
    for (int i = 0; i < sum.count; ++i) {
        sum.loops[i].var = berth_tfn_var(fn, "k");
        sum.loops[i].kind = i + 1 < sum.count ? BERTH_LOOP_SERIAL : BERTH_LOOP_SIMD;
    }
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    berth_expr at_row = berth_tfn_var_ref(fn, row);
    map[panel->row.var] = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, at_row);
    for (int i = 0; i < sum.count; ++i)
        map[panel->sum.loops[i].var] = berth_tfn_var_ref(fn, sum.loops[i].var);
    berth_expr value = berth_tfn_substitute(fn, panel->value, map, fn->vars.count);
    berth_expr at[2] = {at_row, position(fn, &sum)};
    sum.body = berth_tfn_store(fn, buf, at, 2, value);
    berth_expr left =
        berth_tfn_binary(fn, BERTH_BINARY_SUB, berth_tfn_index(fn, panel->row.extent), first);
    berth_expr limit = berth_tfn_binary(fn, BERTH_BINARY_MIN, berth_tfn_index(fn, count), left);
    return berth_tfn_for(fn, row, limit, BERTH_LOOP_SERIAL, berth_nest_emit(fn, &sum));
}
