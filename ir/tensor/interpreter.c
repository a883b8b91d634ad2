#include "ir/tensor/interpreter.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "ir/tensor/interpreter_call.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tensor/scalar.h"

// What a work-item owns: variables and the storage of buffers. Without LOCAL loops there is one
// item.
typedef struct item {
    berth_lanes *vars;
    unsigned char **storage;  // by buffer
} item;

typedef struct interp {
    const berth_tfn *fn;
    berth_arena *arena;
    berth_layout *layouts;    // by buffer
    int64_t *element_counts;  // by buffer, in elements of `lanes` scalars
    uint8_t *has_barrier;     // by statement: 0 unknown, 1 no, 2 yes
    berth_lanes **memo;       // by expression: value in `memo_epoch[id]`
    uint64_t *memo_epoch;
    uint64_t epoch;
    const berth_tfn *references[BERTH_INTRINSIC_END];  // of those met so far
    bool wide;  // an operand of an intrinsic is computed in parts of BERTH_TFN_INTERP_MAX_LANES,
    uint16_t from;  // this one from here on
} interp;

static berth_status eval(interp *in, item *me, berth_expr id, berth_lanes *out);

static const char *buffer_name(const interp *in, berth_buf buf) {
    return berth_module_str(in->fn->module, in->fn->bufs.data[buf].name);
}

// ---- storage ------------------------------------------------------------------------------------

static berth_lane read_lane(berth_dtype dtype, const unsigned char *at) {
    berth_tensor scalar = {.dtype = dtype, .rank = 0};
    unsigned char bytes[8];
    memcpy(bytes, at, berth_dtype_size_bytes(dtype));
    scalar.data = bytes;
    berth_lane result;
    if (berth_dtype_is_float(dtype))
        result.f = berth_tensor_get_f64(&scalar, 0);
    else
        result.i = berth_tensor_get_i64(&scalar, 0);
    return result;
}

static void write_lane(berth_dtype dtype, unsigned char *at, berth_lane what) {
    unsigned char bytes[8];
    berth_tensor scalar = {.dtype = dtype, .rank = 0, .data = bytes};
    if (berth_dtype_is_float(dtype))
        berth_tensor_set_f64(&scalar, 0, what.f);
    else
        berth_tensor_set_i64(&scalar, 0, what.i);
    memcpy(at, bytes, berth_dtype_size_bytes(dtype));
}

static berth_status locate(interp *in, berth_buf buf, const berth_lanes *indices, int count,
                           int which, int64_t *out_offset) {
    const berth_buf_info *info = &in->fn->bufs.data[buf];
    if (count != info->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s has %d dimensions, accessed with %d indices",
                                 buffer_name(in, buf), info->rank, count);
    int64_t at[BERTH_MAX_RANK];
    for (int d = 0; d < count; ++d) {
        at[d] = indices[d].at[indices[d].lanes > 1 ? which : 0].i;
        int64_t block = in->layouts[buf].total_block[d];
        int64_t limit = (info->dims[d] + block - 1) / block * block;
        if (at[d] < 0 || at[d] >= limit)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%s: index %lld of dimension %d is outside [0, %lld)",
                                     buffer_name(in, buf), (long long)at[d], d, (long long)limit);
    }
    *out_offset = berth_layout_offset(&in->layouts[buf], info->dims, at);
    return BERTH_OK;
}

// Evaluates the indices of an access; gives the number of positions (1, or the lanes of a ramp).
static berth_status eval_indices(interp *in, item *me, const berth_expr *ids, int count,
                                 berth_lanes *indices, int *out_positions) {
    *out_positions = 1;
    for (int d = 0; d < count; ++d) {
        BERTH_TRY(eval(in, me, ids[d], &indices[d]));
        if (indices[d].lanes > 1) *out_positions = indices[d].lanes;
    }
    return BERTH_OK;
}

static berth_status storage_of(interp *in, const item *me, berth_buf buf,
                               unsigned char **out_data) {
    *out_data = me->storage[buf];
    if (*out_data || in->element_counts[buf] == 0) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s is used where it is not allocated",
                             buffer_name(in, buf));
}

static berth_status eval_load(interp *in, item *me, const berth_expr_node *node,
                              const berth_expr *ids, berth_lanes *out) {
    const berth_buf_info *info = &in->fn->bufs.data[node->load.buf];
    berth_lanes indices[BERTH_MAX_RANK];
    int positions = 1;
    unsigned char *data = NULL;
    BERTH_TRY(eval_indices(in, me, ids, node->index_count, indices, &positions));
    BERTH_TRY(storage_of(in, me, node->load.buf, &data));
    int width = info->lanes > 1 ? info->lanes : 1;
    if (positions * width > BERTH_TFN_INTERP_MAX_LANES)
        return berth_status_make(BERTH_UNSUPPORTED, "a load of too many lanes");
    size_t size = berth_dtype_size_bytes(info->dtype);
    out->lanes = (uint16_t)(positions * width);
    for (int p = 0; p < positions; ++p) {
        int64_t offset = 0;
        BERTH_TRY(locate(in, node->load.buf, indices, node->index_count, p, &offset));
        for (int l = 0; l < width; ++l)
            out->at[p * width + l] =
                read_lane(info->dtype, data + (size_t)(offset * width + l) * size);
    }
    return BERTH_OK;
}

static berth_status exec_store(interp *in, item *me, const berth_stmt_node *node,
                               const berth_expr *ids) {
    const berth_buf_info *info = &in->fn->bufs.data[node->buf];
    berth_lanes indices[BERTH_MAX_RANK];
    berth_lanes what;
    int positions = 1;
    unsigned char *data = NULL;
    BERTH_TRY(eval_indices(in, me, ids, node->index_count, indices, &positions));
    BERTH_TRY(eval(in, me, node->value, &what));
    BERTH_TRY(storage_of(in, me, node->buf, &data));
    int width = info->lanes > 1 ? info->lanes : 1;
    if (what.lanes != 1 && what.lanes != positions * width)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: a value of %d lanes stored to %d",
                                 buffer_name(in, node->buf), what.lanes, positions * width);
    size_t size = berth_dtype_size_bytes(info->dtype);
    for (int p = 0; p < positions; ++p) {
        int64_t offset = 0;
        BERTH_TRY(locate(in, node->buf, indices, node->index_count, p, &offset));
        for (int l = 0; l < width; ++l)
            write_lane(info->dtype, data + (size_t)(offset * width + l) * size,
                       what.at[what.lanes == 1 ? 0 : p * width + l]);
    }
    return BERTH_OK;
}

// ---- expressions --------------------------------------------------------------------------------

// How many lanes of a vector are computed now.
static uint16_t lanes_now(const interp *in, uint16_t lanes) {
    if (!in->wide || lanes <= BERTH_TFN_INTERP_MAX_LANES) return lanes;
    int left = lanes - in->from;
    return (uint16_t)(left < BERTH_TFN_INTERP_MAX_LANES ? left : BERTH_TFN_INTERP_MAX_LANES);
}

static berth_status eval_select(interp *in, item *me, const berth_expr_node *node,
                                berth_lanes *out) {
    berth_lanes condition;
    BERTH_TRY(eval(in, me, node->a, &condition));
    bool any_true = false;
    bool any_false = false;
    for (int l = 0; l < condition.lanes; ++l) *(condition.at[l].i ? &any_true : &any_false) = true;
    berth_lanes if_true = {0};
    berth_lanes if_false = {0};
    if (any_true) BERTH_TRY(eval(in, me, node->b, &if_true));
    if (any_false) BERTH_TRY(eval(in, me, node->c, &if_false));
    out->lanes = node->lanes ? lanes_now(in, node->lanes) : 1;
    for (int l = 0; l < out->lanes; ++l) {
        const berth_lanes *side =
            condition.at[condition.lanes > 1 ? l : 0].i ? &if_true : &if_false;
        out->at[l] = side->at[side->lanes > 1 ? l : 0];
    }
    return BERTH_OK;
}

static void eval_fma(berth_dtype dtype, const berth_lanes *a, const berth_lanes *b,
                     const berth_lanes *c, berth_lanes *out) {
    out->lanes = a->lanes > b->lanes ? a->lanes : b->lanes;
    if (c->lanes > out->lanes) out->lanes = c->lanes;
    for (int l = 0; l < out->lanes; ++l) {
        berth_lane x = a->at[a->lanes > 1 ? l : 0];
        berth_lane y = b->at[b->lanes > 1 ? l : 0];
        berth_lane z = c->at[c->lanes > 1 ? l : 0];
        if (dtype == BERTH_DTYPE_F32)
            out->at[l].f = (double)fmaf((float)x.f, (float)y.f, (float)z.f);
        else if (berth_dtype_is_float(dtype))
            out->at[l].f = berth_ir__round(dtype, fma(x.f, y.f, z.f));
        else
            out->at[l].i = berth_ir__wrap(dtype, (uint64_t)x.i * (uint64_t)y.i + (uint64_t)z.i);
    }
}

static void eval_reduce_add(const berth_expr_node *node, const berth_lanes *a, berth_lanes *out) {
    out->lanes = 1;
    bool is_float = berth_dtype_is_float((berth_dtype)node->dtype);
    berth_lane sum = a->at[0];
    for (int l = 1; l < a->lanes; ++l) {
        if (is_float)
            sum.f = berth_ir__round((berth_dtype)node->dtype, sum.f + a->at[l].f);
        else
            sum.i =
                berth_ir__wrap((berth_dtype)node->dtype, (uint64_t)sum.i + (uint64_t)a->at[l].i);
    }
    out->at[0] = sum;
}

static berth_status eval_widen(const interp *in, const berth_expr_node *node, const berth_lanes *a,
                               berth_lanes *out) {
    out->lanes = lanes_now(in, node->lanes);
    if (out->lanes > BERTH_TFN_INTERP_MAX_LANES)
        return berth_status_make(BERTH_UNSUPPORTED, "vectors of more than %d lanes",
                                 BERTH_TFN_INTERP_MAX_LANES);
    int64_t first = out->lanes < node->lanes ? in->from : 0;
    for (int l = 0; l < out->lanes; ++l) {
        out->at[l] = a->at[0];
        if (node->kind == BERTH_EXPR_RAMP) out->at[l].i += first + l;
    }
    return BERTH_OK;
}

static void to_memory(berth_dtype dtype, const berth_lanes *value, unsigned char *to) {
    size_t size = berth_dtype_size_bytes(dtype);
    for (int l = 0; l < value->lanes; ++l) write_lane(dtype, to + (size_t)l * size, value->at[l]);
}

// An operand to memory, row by row: in parts where it has more lanes than a value here can have.
static berth_status eval_operand(interp *in, item *me, const berth_intrinsic_facts *facts,
                                 int which, berth_expr id, unsigned char *to) {
    const berth_intrinsic_operand *operand = &facts->operands[which];
    size_t size = berth_dtype_size_bytes(operand->dtype);
    bool wide = operand->lanes > BERTH_TFN_INTERP_MAX_LANES;
    if (wide && (in->wide || which == 0))
        return berth_status_make(BERTH_UNSUPPORTED, "operand %d of %s has more than %d lanes",
                                 which, facts->name, BERTH_TFN_INTERP_MAX_LANES);
    berth_status status = BERTH_OK;
    for (uint32_t at = 0; !status && at < operand->lanes;) {
        berth_lanes value;
        uint32_t wanted = operand->lanes;
        if (wide) {
            in->epoch++;  // values computed so far are of other lanes
            in->wide = true;
            in->from = (uint16_t)at;
            wanted = lanes_now(in, operand->lanes);
        }
        status = eval(in, me, id, &value);
        if (!status && value.lanes != wanted)
            status = berth_status_make(BERTH_INVALID_ARGUMENT, "operand %d of %s has %d lanes",
                                       which, facts->name, value.lanes);
        if (!status) to_memory(operand->dtype, &value, to + at * size);
        at += wanted;
    }
    if (wide) {
        in->epoch++;
        in->wide = false;
    }
    return status;
}

// Operands go to memory and the reference runs on them.
static berth_status eval_intrinsic(interp *in, item *me, const berth_expr_node *node,
                                   berth_lanes *out) {
    const berth_expr operands[BERTH_INTRINSIC_OPERANDS_MAX] = {node->a, node->b, node->c};
    void *buffers[BERTH_INTRINSIC_OPERANDS_MAX];
    const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)node->op);
    if (!facts)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "intrinsic %d does not exist", node->op);
    const berth_tfn **reference = &in->references[node->op];
    if (!*reference)
        BERTH_TRY(berth_intrinsic_reference(in->arena, (berth_intrinsic)node->op, reference));
    berth_arena *scratch = berth_arena_create_child(in->arena);
    berth_status status = BERTH_OK;
    for (int i = 0; !status && i < berth_intrinsic_operand_count(facts); ++i) {
        buffers[i] =
            berth_arena_alloc(scratch, (size_t)facts->operands[i].lanes *
                                           berth_dtype_size_bytes(facts->operands[i].dtype));
        status = eval_operand(in, me, facts, i, operands[i], buffers[i]);
    }
    if (!status) status = berth_tfn_interpret(*reference, buffers, scratch);
    if (!status) {
        const unsigned char *result = buffers[0];
        berth_dtype dtype = facts->operands[0].dtype;
        out->lanes = facts->operands[0].lanes;
        for (int l = 0; l < out->lanes; ++l)
            out->at[l] = read_lane(dtype, result + (size_t)l * berth_dtype_size_bytes(dtype));
    }
    berth_arena_destroy(scratch);
    return status;
}

static berth_status eval_node(interp *in, item *me, berth_expr id, berth_lanes *out) {
    const berth_tfn *fn = in->fn;
    const berth_expr_node *node = berth_tfn_expr(fn, id);
    berth_lanes a;
    berth_lanes b;
    berth_lanes c;
    out->lanes = 1;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT: out->at[0].i = node->i; return BERTH_OK;
    case BERTH_EXPR_SYMBOL:  // a parameter has it then: prepare_buffers refuses that
        return berth_status_make(BERTH_UNSUPPORTED, "a symbol has no extent");
    case BERTH_EXPR_FLOAT:
        out->at[0].f = berth_ir__round((berth_dtype)node->dtype, node->f);
        return BERTH_OK;
    case BERTH_EXPR_VAR:
        if (!me->vars[node->var].lanes)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "variable %s is used outside its scope",
                                     berth_module_str(fn->module, fn->vars.data[node->var].name));
        *out = me->vars[node->var];
        return BERTH_OK;
    case BERTH_EXPR_LOAD: return eval_load(in, me, node, berth_tfn_load_indices(fn, id), out);
    case BERTH_EXPR_SELECT: return eval_select(in, me, node, out);
    case BERTH_EXPR_UNARY:
        BERTH_TRY(eval(in, me, node->a, &a));
        return berth_ir__eval_unary(node, (berth_dtype)berth_tfn_expr(fn, node->a)->dtype, &a, out);
    case BERTH_EXPR_BINARY: {
        BERTH_TRY(eval(in, me, node->a, &a));
        bool decides = node->lanes <= 1 && ((node->op == BERTH_BINARY_AND && !a.at[0].i) ||
                                            (node->op == BERTH_BINARY_OR && a.at[0].i));
        if (decides && !berth_dtype_is_float((berth_dtype)berth_tfn_expr(fn, node->a)->dtype)) {
            out->at[0].i = a.at[0].i != 0;
            return BERTH_OK;
        }
        BERTH_TRY(eval(in, me, node->b, &b));
        return berth_ir__eval_binary(node, (berth_dtype)berth_tfn_expr(fn, node->a)->dtype, &a, &b,
                                     out);
    }
    case BERTH_EXPR_FMA:
        BERTH_TRY(eval(in, me, node->a, &a));
        BERTH_TRY(eval(in, me, node->b, &b));
        BERTH_TRY(eval(in, me, node->c, &c));
        eval_fma((berth_dtype)node->dtype, &a, &b, &c, out);
        return BERTH_OK;
    case BERTH_EXPR_CAST:
        BERTH_TRY(eval(in, me, node->a, &a));
        berth_ir__eval_cast((berth_dtype)berth_tfn_expr(fn, node->a)->dtype,
                            (berth_dtype)node->dtype, &a, out);
        return BERTH_OK;
    case BERTH_EXPR_BROADCAST:
    case BERTH_EXPR_RAMP:
        BERTH_TRY(eval(in, me, node->a, &a));
        return eval_widen(in, node, &a, out);
    case BERTH_EXPR_REDUCE_ADD:
        if (berth_tfn_expr(fn, node->a)->lanes > BERTH_TFN_INTERP_MAX_LANES)
            return berth_status_make(BERTH_UNSUPPORTED, "a sum of more than %d lanes",
                                     BERTH_TFN_INTERP_MAX_LANES);
        BERTH_TRY(eval(in, me, node->a, &a));
        eval_reduce_add(node, &a, out);
        return BERTH_OK;
    case BERTH_EXPR_INTRINSIC: return eval_intrinsic(in, me, node, out);
    case BERTH_EXPR_NONE: break;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "expression %u is missing", id);
}

// Nodes are shared: each is computed once per statement.
static berth_status eval(interp *in, item *me, berth_expr id, berth_lanes *out) {
    if (id >= in->fn->exprs.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "expression %u does not exist", id);
    if (in->memo_epoch[id] != in->epoch) {
        berth_lanes result;
        BERTH_TRY(eval_node(in, me, id, &result));
        if (!in->memo[id])
            in->memo[id] =
                berth_arena_alloc(in->arena, offsetof(berth_lanes, at) +
                                                 sizeof(berth_lane) * BERTH_TFN_INTERP_MAX_LANES);
        memcpy(in->memo[id], &result,
               offsetof(berth_lanes, at) + sizeof(berth_lane) * result.lanes);
        in->memo_epoch[id] = in->epoch;
    }
    memcpy(out, in->memo[id], offsetof(berth_lanes, at) + sizeof(berth_lane) * in->memo[id]->lanes);
    return BERTH_OK;
}

// ---- statements ---------------------------------------------------------------------------------

static bool has_barrier(interp *in, berth_stmt id) {
    if (!id) return false;
    if (in->has_barrier[id]) return in->has_barrier[id] == 2;
    const berth_stmt_node *node = berth_tfn_stmt(in->fn, id);
    bool found = node->kind == BERTH_STMT_BARRIER;
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            found = has_barrier(in, in->fn->lists.data[node->first + i]) || found;
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        found = has_barrier(in, node->body) || has_barrier(in, node->other) || found;
    in->has_barrier[id] = found ? 2 : 1;
    return found;
}

static berth_status exec(interp *in, item *items, uint32_t count, berth_stmt id);

static berth_status eval_scalar(interp *in, item *me, berth_expr id, int64_t *out) {
    berth_lanes result;
    in->epoch++;
    BERTH_TRY(eval(in, me, id, &result));
    *out = result.at[0].i;
    return BERTH_OK;
}

static void set_index(item *me, berth_var var, int64_t i) {
    me->vars[var].lanes = 1;
    me->vars[var].at[0].i = i;
}

static item copy_item(interp *in, const item *from) {
    item copy;
    copy.vars =
        berth_arena_copy(in->arena, from->vars, in->fn->vars.count * sizeof(berth_lanes) + 1);
    copy.storage =
        berth_arena_copy(in->arena, from->storage, in->fn->bufs.count * sizeof(void *) + 1);
    return copy;
}

// A loop over work-items: its iterations become items that run in step.
static berth_status exec_local(interp *in, item *items, uint32_t count, const berth_stmt_node *node,
                               int64_t extent) {
    if (extent > 4096) return berth_status_make(BERTH_UNSUPPORTED, "more than 4096 work-items");
    item *wider = berth_arena_new_array(in->arena, item, (size_t)count * (size_t)extent + 1);
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; ++i)
        for (int64_t w = 0; w < extent; ++w) {
            wider[total] = copy_item(in, &items[i]);
            set_index(&wider[total++], node->var, w);
        }
    return exec(in, wider, total, node->body);
}

static berth_status exec_for(interp *in, item *items, uint32_t count, const berth_stmt_node *node) {
    int64_t extent = 0;
    BERTH_TRY(eval_scalar(in, &items[0], node->value, &extent));
    bool local = node->loop_kind >= BERTH_LOOP_LOCAL_X && node->loop_kind <= BERTH_LOOP_LOCAL_Z;
    if (local && has_barrier(in, node->body)) return exec_local(in, items, count, node, extent);
    for (int64_t i = 0; i < extent; ++i) {
        for (uint32_t k = 0; k < count; ++k) set_index(&items[k], node->var, i);
        BERTH_TRY(exec(in, items, count, node->body));
    }
    for (uint32_t k = 0; k < count; ++k) items[k].vars[node->var].lanes = 0;
    return BERTH_OK;
}

// A fresh buffer, filled with NaN (all bits set); work-items of a group share LOCAL ones.
static void exec_alloc(interp *in, item *items, uint32_t count, berth_buf buf) {
    const berth_buf_info *info = &in->fn->bufs.data[buf];
    size_t bytes = (size_t)in->element_counts[buf] * (info->lanes > 1 ? info->lanes : 1) *
                   berth_dtype_size_bytes(info->dtype);
    bool shared = info->scope == BERTH_SCOPE_LOCAL;
    for (uint32_t k = 0; k < count; ++k) {
        if (shared && k)
            items[k].storage[buf] = items[0].storage[buf];
        else if (!items[k].storage[buf])
            items[k].storage[buf] = berth_arena_alloc(in->arena, bytes + 1);
        memset(items[k].storage[buf], 0xff, bytes);
    }
}

// The regions where the callee's parameters are; the rest is in interpreter_call.c.
static berth_status exec_call(interp *in, item *me, const berth_stmt_node *node) {
    berth_arena *scratch = berth_arena_create_child(in->arena);
    berth_interpreted_region *regions =
        berth_arena_new_array(scratch, berth_interpreted_region, node->count + 1);
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < node->count && !status; ++i) {
        berth_interpreted_region *region = &regions[i];
        region->is = &in->fn->regions.data[node->first + i];
        region->layout = &in->layouts[region->is->buf];
        for (int d = 0; d < in->fn->bufs.data[region->is->buf].rank && !status; ++d)
            status = eval_scalar(in, me, region->is->starts[d], &region->starts[d]);
        if (!status) status = storage_of(in, me, region->is->buf, &region->storage);
    }
    if (!status) status = berth_tfn__interpret_call(in->fn, node, regions, scratch);
    berth_arena_destroy(scratch);
    return status;
}

static berth_status exec_single(interp *in, item *me, const berth_stmt_node *node, berth_stmt id) {
    in->epoch++;
    if (node->kind == BERTH_STMT_CALL) return exec_call(in, me, node);
    if (node->kind == BERTH_STMT_STORE)
        return exec_store(in, me, node, berth_tfn_store_indices(in->fn, id));
    if (node->kind == BERTH_STMT_LET) {
        berth_lanes result;
        BERTH_TRY(eval(in, me, node->value, &result));
        me->vars[node->var] = result;
        return BERTH_OK;
    }
    int64_t condition = 0;
    BERTH_TRY(eval_scalar(in, me, node->value, &condition));
    berth_stmt branch = condition ? node->body : node->other;
    return branch ? exec(in, me, 1, branch) : BERTH_OK;
}

// Statements with barriers inside run for all items together (their control flow must be uniform);
// others run for one item after the other.
static berth_status exec(interp *in, item *items, uint32_t count, berth_stmt id) {
    if (id == 0 || id >= in->fn->stmts.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "statement %u does not exist", id);
    const berth_stmt_node *node = berth_tfn_stmt(in->fn, id);
    bool alone = count == 1 || has_barrier(in, id) || node->kind == BERTH_STMT_ALLOC;
    if (!alone) {
        for (uint32_t k = 0; k < count; ++k) BERTH_TRY(exec(in, &items[k], 1, id));
        return BERTH_OK;
    }
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            BERTH_TRY(exec(in, items, count, in->fn->lists.data[node->first + i]));
        return BERTH_OK;
    case BERTH_STMT_FOR: return exec_for(in, items, count, node);
    case BERTH_STMT_ALLOC: exec_alloc(in, items, count, node->buf); return BERTH_OK;
    case BERTH_STMT_BARRIER: return BERTH_OK;
    case BERTH_STMT_STORE:
    case BERTH_STMT_CALL:
    case BERTH_STMT_LET: return exec_single(in, &items[0], node, id);
    case BERTH_STMT_IF:
        if (count == 1) return exec_single(in, &items[0], node, id);
        {
            int64_t condition = 0;
            BERTH_TRY(eval_scalar(in, &items[0], node->value, &condition));
            berth_stmt branch = condition ? node->body : node->other;
            return branch ? exec(in, items, count, branch) : BERTH_OK;
        }
    case BERTH_STMT_NONE: break;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "statement %u is missing", id);
}

// ---- entry --------------------------------------------------------------------------------------

static berth_status prepare_buffers(interp *in, item *root, void *const *buffers) {
    const berth_tfn *fn = in->fn;
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        for (int d = 0; d < info->rank; ++d)
            if (info->dims[d] < 0)
                return berth_status_make(BERTH_UNSUPPORTED, "%s has a symbolic dimension",
                                         buffer_name(in, b));
        BERTH_TRY(berth_layout_parse(berth_module_str(fn->module, info->layout), info->rank,
                                     &in->layouts[b]));
        in->element_counts[b] = berth_layout_element_count(&in->layouts[b], info->dims);
        if (b < fn->param_count)
            root->storage[b] = buffers[b];
        else if (info->scope == BERTH_SCOPE_WORKSPACE)
            exec_alloc(in, root, 1, b);
    }
    return BERTH_OK;
}

typedef struct call {
    const berth_tfn *fn;
    void *const *buffers;
    berth_arena *arena;
} call;

static berth_status interpret(void *user) {
    call *c = user;
    const berth_tfn *fn = c->fn;
    berth_arena *scratch = berth_arena_create_child(c->arena);
    interp in = {.fn = fn, .arena = scratch};
    in.layouts = berth_arena_new_array(scratch, berth_layout, fn->bufs.count + 1);
    in.element_counts = berth_arena_new_array(scratch, int64_t, fn->bufs.count + 1);
    in.has_barrier = berth_arena_new_array(scratch, uint8_t, fn->stmts.count + 1);
    in.memo = berth_arena_new_array(scratch, berth_lanes *, fn->exprs.count + 1);
    in.memo_epoch = berth_arena_new_array(scratch, uint64_t, fn->exprs.count + 1);
    item root;
    root.vars = berth_arena_new_array(scratch, berth_lanes, fn->vars.count + 1);
    root.storage = berth_arena_new_array(scratch, unsigned char *, fn->bufs.count + 1);
    berth_status status = prepare_buffers(&in, &root, c->buffers);
    if (!status && fn->body) status = exec(&in, &root, 1, fn->body);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_tfn_interpret(const berth_tfn *fn, void *const *buffers, berth_arena *arena) {
    call c = {fn, buffers, arena};
    return berth_arena_try(arena, interpret, &c);
}
