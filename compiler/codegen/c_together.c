#include "compiler/codegen/c_together.h"

#include <string.h>

#include "compiler/codegen/kernel_facts.h"

// Whether a value (as it is stored: schedules put nothing around it) is computed by a warp together, or
// by its matrix units.
static bool is_together(const berth_tfn *fn, berth_expr id, bool matrices) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind != BERTH_EXPR_INTRINSIC) return false;
    const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)node->op);
    return facts->cuda && (!matrices || berth_intrinsic_operand_count(facts) == 3);
}

bool berth_c_has_together(const berth_tfn *fn, berth_stmt id, bool matrices) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            if (berth_c_has_together(fn, fn->lists.data[node->first + i], matrices)) return true;
        return false;
    case BERTH_STMT_FOR:
    case BERTH_STMT_IF:
        return berth_c_has_together(fn, node->body, matrices) ||
               berth_c_has_together(fn, node->other, matrices);
    case BERTH_STMT_STORE:
    case BERTH_STMT_LET: return is_together(fn, node->value, matrices);
    default: return false;
    }
}

// Whether all work-items come by every such intrinsic equally often: only loops of constant extents are
// around them. Sets the loop along which warps lie.
static bool all_come_by(const berth_tfn *fn, berth_stmt id, berth_stmt *warp) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int64_t extent = 0;
    if (!berth_c_has_together(fn, id, false)) return true;
    if (node->kind == BERTH_STMT_IF) return false;
    if (node->kind == BERTH_STMT_FOR) {
        if (!berth_tfn_const_value(fn, node->value, &extent)) return false;
        if (node->loop_kind == BERTH_LOOP_LOCAL_X && extent % 32) return false;
        if (node->loop_kind == BERTH_LOOP_LOCAL_X) *warp = id;
        return all_come_by(fn, node->body, warp);
    }
    if (node->kind != BERTH_STMT_SEQ) return true;
    for (uint32_t i = 0; i < node->count; ++i)
        if (!all_come_by(fn, fn->lists.data[node->first + i], warp)) return false;
    return true;
}

bool berth_c_all_come_by(berth_c_printer *p, berth_stmt *out_items) {
    *out_items = 0;
    if (all_come_by(p->fn, p->nest, out_items) && *out_items) return true;
    berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                      "an instruction of a warp that not all work-items of "
                                      "whole warps come by"));
    return false;
}

const char *berth_c_part(berth_c_printer *p, berth_expr id, berth_var warp) {
    int64_t places[32];
    berth_linear first;
    berth_expr indices[BERTH_MAX_RANK];
    const berth_expr_node copy = p->fn->exprs.data[id], *load = &copy;
    memcpy(indices, berth_tfn_load_indices(p->fn, id), load->index_count * sizeof(berth_expr));
    if (load->lanes != 32 ||
        !berth_c_lane_places(p, load->load.buf, indices, load->index_count, 32, &first, places))
        return NULL;
    for (int l = 0; l < 32; ++l)
        if (places[l] != l) return NULL;
    for (int i = 0; i < first.count; ++i)
        if (berth_tfn_uses_var(p->fn, first.terms[i].atom, warp)) return NULL;
    return berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, load->load.buf),
                              berth_c_offset(p, load->load.buf, indices, load->index_count));
}
