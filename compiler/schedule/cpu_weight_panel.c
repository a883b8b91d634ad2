#include "compiler/schedule/cpu_weight_panel.h"

// A load, or one in another type: no more than an instruction.
static bool is_load(const berth_tfn *fn, berth_expr id) {
    while (fn->exprs.data[id].kind == BERTH_EXPR_CAST) id = fn->exprs.data[id].a;
    return fn->exprs.data[id].kind == BERTH_EXPR_LOAD;
}

// What a product of the chain has that is shared by rows; 0 = neither side is, or it is a load.
static berth_expr weight_of(const berth_tfn *fn, const berth_expr_node *product, berth_var row,
                            berth_var lane) {
    const berth_expr sides[2] = {product->a, product->b};
    for (int i = 0; i < 2; ++i)
        if (berth_tfn_uses_var(fn, sides[i], lane) && !berth_tfn_uses_var(fn, sides[i], row) &&
            !berth_tfn_uses_var(fn, sides[1 - i], lane) && !is_load(fn, sides[i]))
            return sides[i];
    return 0;
}

berth_cpu_weight_panel berth_cpu__weight_panel_of(const berth_tfn *fn,
                                                  const berth_reduction *reduction, berth_var row,
                                                  berth_var lane, int64_t width) {
    berth_cpu_weight_panel panel = {.lane = lane, .sum = reduction->loops, .width = width};
    berth_expr at = reduction->update;
    int count = 0;
    for (; fn->exprs.data[at].kind == BERTH_EXPR_FMA; at = fn->exprs.data[at].c) {
        berth_expr value = weight_of(fn, &fn->exprs.data[at], row, lane);
        if (!value || count == BERTH_CPU_MOST_WEIGHTS) return panel;
        panel.values[count++] = value;
    }
    const berth_expr_node *last = &fn->exprs.data[at];
    if (last->kind != BERTH_EXPR_LOAD || last->load.buf != reduction->acc) return panel;
    panel.count = count;
    panel.depth = count;
    for (int i = 0; i < panel.sum.count; ++i) panel.depth *= panel.sum.loops[i].extent;
    return panel;
}

berth_buf berth_cpu__weight_panel_buffer(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                         int64_t tiles) {
    int64_t dims[3] = {tiles, panel->depth, panel->width};
    return berth_tfn_buffer(fn, "weights", BERTH_DTYPE_F32, 3, dims, BERTH_SCOPE_PRIVATE);
}

// Place of value `i` of a step in a column, with the loops' own variables.
static berth_expr position(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                           const berth_nest *sum, int i) {
    berth_expr at = berth_tfn_index(fn, 0);
    for (int k = 0; k < sum->count; ++k) {
        berth_expr extent = berth_tfn_index(fn, sum->loops[k].extent);
        at = berth_tfn_binary(fn, BERTH_BINARY_MUL, at, extent);
        at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_var_ref(fn, sum->loops[k].var));
    }
    at = berth_tfn_binary(fn, BERTH_BINARY_MUL, at, berth_tfn_index(fn, panel->count));
    return berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_index(fn, i));
}

// The chain from its product `i` on.
static berth_expr read_from(berth_tfn *fn, const berth_cpu_weight_panel *panel, berth_buf buf,
                            berth_expr *at, berth_expr update, int i) {
    if (i == panel->count) return update;
    const berth_expr_node node = fn->exprs.data[update];
    berth_expr sum = read_from(fn, panel, buf, at, node.c, i + 1);
    at[1] = position(fn, panel, &panel->sum, panel->count - 1 - i);
    berth_expr load = berth_tfn_load(fn, buf, at, 3);
    return berth_tfn_fma(fn, node.a == panel->values[i] ? node.b : node.a, load, sum);
}

berth_expr berth_cpu__weight_panel_read(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                        berth_buf buf, berth_expr tile, berth_expr first,
                                        berth_expr update) {
    berth_expr column = berth_tfn_var_ref(fn, panel->lane);
    berth_expr at[3] = {tile, 0, berth_tfn_binary(fn, BERTH_BINARY_SUB, column, first)};
    return read_from(fn, panel, buf, at, update, 0);
}

berth_stmt berth_cpu__weight_panel_fill(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                        berth_buf buf, berth_expr tile, berth_expr first,
                                        int64_t columns, int64_t lanes) {
    berth_nest nest = panel->sum;
    for (int i = 0; i < nest.count; ++i) {
        nest.loops[i].var = berth_tfn_var(fn, "k");
        nest.loops[i].kind = BERTH_LOOP_SERIAL;
    }
    berth_nest_loop vector = {berth_tfn_var(fn, "vector"), columns / lanes, BERTH_LOOP_SERIAL};
    berth_nest_loop lane = {berth_tfn_var(fn, "lane"), lanes, BERTH_LOOP_SERIAL};
    berth_expr column = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, vector.var),
                                         berth_tfn_index(fn, lanes));
    column = berth_tfn_binary(fn, BERTH_BINARY_ADD, column, berth_tfn_var_ref(fn, lane.var));
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    map[panel->lane] = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, column);
    for (int i = 0; i < nest.count; ++i)
        map[panel->sum.loops[i].var] = berth_tfn_var_ref(fn, nest.loops[i].var);
    berth_stmt stores[BERTH_CPU_MOST_WEIGHTS];
    for (int i = 0; i < panel->count; ++i) {
        berth_expr at[3] = {tile, position(fn, panel, &nest, i), column};
        berth_expr value = panel->values[panel->count - 1 - i];
        value = berth_tfn_substitute(fn, value, map, fn->vars.count);
        stores[i] = berth_tfn_store(fn, buf, at, 3, value);
    }
    nest.body = berth_tfn_seq(fn, stores, (uint32_t)panel->count);
    nest.loops[nest.count++] = vector;
    nest.loops[nest.count++] = lane;
    if (lanes > 1) {
        berth_status status = berth_schedule_vectorize(fn, &nest);
        if (status) berth_decisions_refuse(fn, status);
    }
    return berth_nest_emit(fn, &nest);
}
