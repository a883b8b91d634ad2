// The innermost loops of a nest, each rewritten by itself.
#include "compiler/schedule/policy_cpu.h"

// `outermost`: what a statement becomes must be loops again, each a kernel.
static berth_stmt inside(berth_cpu__innermost *w, berth_stmt id, bool outermost) {
    berth_tfn *fn = w->fn;
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_SEQ) {
        berth_stmt *items = berth_arena_new_array(fn->module->arena, berth_stmt, node.count + 1);
        bool changed = false;
        for (uint32_t i = 0; i < node.count; ++i) {
            berth_stmt old = fn->lists.data[node.first + i];
            items[i] = inside(w, old, outermost);
            changed |= items[i] != old;
        }
        return changed ? berth_tfn_seq(fn, items, node.count) : id;
    }
    int64_t extent = 0;
    if (node.kind != BERTH_STMT_FOR) return id;
    bool known =
        berth_tfn_const_value(fn, node.value, &extent) && w->loops.count < BERTH_NEST_MAX_LOOPS;
    if (!known && !w->any_extent) return id;
    if (known)
        w->loops.loops[w->loops.count++] = (berth_nest_loop){
            .var = node.var, .extent = extent, .kind = (berth_loop_kind)node.loop_kind};
    berth_stmt body = inside(w, node.body, false);
    berth_stmt result = id;
    if (body != node.body)
        result = berth_tfn_for(fn, node.var, node.value, (berth_loop_kind)node.loop_kind, body);
    else if (node.loop_kind != BERTH_LOOP_PARALLEL || (w->with_parallel && outermost))
        result = w->rewrite(w->user, id, &w->loops);
    w->loops.count -= known;
    if (result == id || body != node.body || !outermost) return result;
    return berth_tfn_for(fn, berth_tfn_var(fn, "group"), berth_tfn_index(fn, 1),
                         BERTH_LOOP_PARALLEL, result);
}

berth_stmt berth_cpu__each_innermost(berth_cpu__innermost *walk, berth_stmt nest) {
    walk->loops = (berth_nest){0};
    return inside(walk, nest, true);
}
