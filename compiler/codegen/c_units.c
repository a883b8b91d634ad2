// Matrix units of x86 (AMX) in C: sums are registers 0 to 3, activations 4 and 5, weights 6 and 7 of the unit's
// eight (ir/tensor/intrinsics.def has the instructions). Schedules write sums as register buffers of 256 lanes.
#include "compiler/codegen/c_units.h"

#include <string.h>

enum { sum_lanes = 256, operand_lanes = 1024, row_lanes = 16, row_bytes = 64, most_sums = 4 };

bool berth_c_is_unit_sum(const berth_buf_info *info) {
    return info->scope == BERTH_SCOPE_REGISTER && info->lanes == sum_lanes;
}

static bool is_sum(const berth_c_printer *p, berth_buf buf) {
    return berth_c_is_unit_sum(&p->fn->bufs.data[buf]);
}

static bool uses(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            if (uses(fn, fn->lists.data[node->first + i])) return true;
    if (node->kind == BERTH_STMT_STORE) return berth_c_is_unit_sum(&fn->bufs.data[node->buf]);
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        return uses(fn, node->body) || uses(fn, node->other);
    return false;
}

bool berth_c_uses_unit(const berth_tfn *fn, berth_stmt nest) {
    return uses(fn, nest);
}

static void refuse(berth_c_printer *p, const char *what) {
    berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "matrix unit: %s", what));
}

// The register of a sum.
static int sum_at(berth_c_printer *p, berth_expr index) {
    int64_t at = -1;
    if (berth_tfn_const_value(p->fn, index, &at) && at >= 0 && at < most_sums) return (int)at;
    refuse(p, "a sum that is none of four");
    return 0;
}

// Places of `lanes` elements as rows of `width` next to each other: the elements from one row to the next; -1:
// they lie in another way.
static int64_t row_step(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                        int lanes, int width) {
    int64_t places[operand_lanes];
    berth_linear first;
    if (!berth_c_lane_places(p, buf, indices, count, lanes, &first, places)) return -1;
    for (int l = 0; l < lanes; ++l)
        if (places[l] != l / width * places[width] + l % width) return -1;
    return places[width];
}

// The register that holds an operand, which is loaded where none does.
static int operand(berth_c_printer *p, berth_expr id, int first) {
    for (int i = first; i < first + 2; ++i)
        if (p->unit_holds[i] && berth_tfn_expr_equal(p->fn, p->unit_holds[i], id)) return i;
    const berth_expr_node load = p->fn->exprs.data[id];
    berth_expr indices[BERTH_MAX_RANK];
    if (load.kind != BERTH_EXPR_LOAD || load.lanes != operand_lanes) {
        refuse(p, "an operand that is no part of memory");
        return first;
    }
    memcpy(indices, berth_tfn_load_indices(p->fn, id), load.index_count * sizeof(berth_expr));
    int64_t step = row_step(p, load.load.buf, indices, load.index_count, load.lanes, row_bytes);
    if (step < 0) {
        refuse(p, "an operand whose rows of 64 bytes are not one distance apart");
        return first;
    }
    int at = p->unit_holds[first] ? first + 1 : first;
    p->unit_holds[at] = id;
    berth_c_line(p, "BERTH_TILE_LOAD(%d, %s + %s, %s);", at, berth_c_buffer_name(p, load.load.buf),
                 berth_c_offset(p, load.load.buf, indices, load.index_count),
                 berth_c_number(p, step));
    return at;
}

// sum = 0, or sum = intrinsic(sum, x, w)
static void print_sum(berth_c_printer *p, const berth_stmt_node *store, berth_expr index) {
    const berth_expr_node value = p->fn->exprs.data[store->value];
    int at = sum_at(p, index);
    int64_t number = 1;
    if (value.kind == BERTH_EXPR_BROADCAST && berth_tfn_const_value(p->fn, value.a, &number) &&
        number == 0) {
        memset(p->unit_holds, 0, sizeof(p->unit_holds));
        berth_c_line(p, "BERTH_TILE_ZERO(%d);", at);
        return;
    }
    const berth_expr_node before = p->fn->exprs.data[value.a];
    if (value.kind != BERTH_EXPR_INTRINSIC || before.kind != BERTH_EXPR_LOAD ||
        before.load.buf != store->buf ||
        sum_at(p, berth_tfn_load_indices(p->fn, value.a)[0]) != at) {
        refuse(p, "a sum of something else than itself and a product");
        return;
    }
    p->intrinsics[value.op] = true;
    int x = operand(p, value.b, 4);
    int w = operand(p, value.c, 6);
    berth_c_line(p, "BERTH_TILE_DOT(%d, %d, %d);", at, x, w);
}

bool berth_c_unit_store(berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node store = p->fn->stmts.data[id];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(p->fn, id), store.index_count * sizeof(berth_expr));
    if (is_sum(p, store.buf)) {
        print_sum(p, &store, indices[0]);
        return true;
    }
    const berth_expr_node value = p->fn->exprs.data[store.value];
    if (value.kind != BERTH_EXPR_LOAD || !is_sum(p, value.load.buf)) return false;
    int64_t step = row_step(p, store.buf, indices, store.index_count, sum_lanes, row_lanes);
    if (step < 0) {
        refuse(p, "results that do not lie in rows");
        return true;
    }
    berth_c_line(p, "BERTH_TILE_STORE(%d, %s + %s, %s);",
                 sum_at(p, berth_tfn_load_indices(p->fn, store.value)[0]),
                 berth_c_buffer_name(p, store.buf),
                 berth_c_offset(p, store.buf, indices, store.index_count),
                 berth_c_number(p, step * (int64_t)sizeof(int32_t)));
    return true;
}
