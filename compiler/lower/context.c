#include "compiler/lower/context.h"

#include <stdarg.h>
#include <string.h>

// ---- failures -----------------------------------------------------------------------------------

bool berth_lower__check(berth_lower *c, const berth_op *op, berth_status status) {
    if (!status) return true;
    if (c->failure) {
        berth_status_ignore(status);
        return false;
    }
    const char *where = berth_loc_describe(c->module, op->loc, c->scratch);
    c->failure = berth_status_prefix(status, "%s: %s", where, berth_op_facts_get(op->kind)->name);
    return false;
}

void berth_lower__fail(berth_lower *c, const berth_op *op, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status =
        berth_status_make_at_v(BERTH_UNSUPPORTED, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    berth_lower__check(c, op, status);
}

const berth_tensor *berth_lower__constant(berth_lower *c, const berth_op *op, uint32_t operand) {
    const berth_tensor *tensor =
        has_in(op, operand) ? berth_graph_constant_of(c->module, c->graph, op->inputs[operand])
                            : NULL;
    if (!tensor)
        berth_lower__fail(c, op, "operand %u must be a constant here (its value is data-dependent)",
                          operand);
    return tensor;
}

// ---- statements ---------------------------------------------------------------------------------

static berth_lower_frame *top(berth_lower *c) {
    return &c->frames.data[c->frames.count - 1];
}

void berth_lower__emit(berth_lower *c, berth_stmt stmt) {
    berth_vec_push(c->scratch, &top(c)->stmts, stmt);
}

static berth_expr open_loop(berth_lower *c, const char *name, berth_expr extent, berth_range range,
                            berth_loop_kind kind) {
    berth_lower_frame frame = {.kind = BERTH_LOWER_FRAME_FOR, .extent = extent, .loop_kind = kind};
    frame.var = berth_tfn_var(c->fn, name);
    berth_vec_push(c->scratch, &c->frames, frame);
    while (c->ranges.count < frame.var) berth_vec_push(c->scratch, &c->ranges, BERTH_RANGE_UNKNOWN);
    berth_vec_push(c->scratch, &c->ranges, range);
    return berth_tfn_var_ref(c->fn, frame.var);
}

berth_expr berth_lower__loop(berth_lower *c, const char *name, int64_t extent,
                             berth_loop_kind kind) {
    if (extent == 1) {
        berth_vec_push(c->scratch, &c->frames,
                       (berth_lower_frame){.kind = BERTH_LOWER_FRAME_PLAIN});
        return ix(c, 0);
    }
    berth_range range = {0, extent > 0 ? extent - 1 : 0};
    return open_loop(c, name, ix(c, extent), range, kind);
}

berth_expr berth_lower__loop_to(berth_lower *c, const char *name, berth_expr extent) {
    return open_loop(c, name, extent, (berth_range){0, BERTH_RANGE_UNKNOWN.high},
                     BERTH_LOOP_SERIAL);
}

void berth_lower__if(berth_lower *c, berth_expr condition) {
    berth_lower_frame frame = {.kind = condition ? BERTH_LOWER_FRAME_IF : BERTH_LOWER_FRAME_PLAIN,
                               .condition = condition};
    berth_vec_push(c->scratch, &c->frames, frame);
}

void berth_lower__end(berth_lower *c) {
    berth_lower_frame frame = *top(c);
    c->frames.count--;
    if (frame.kind == BERTH_LOWER_FRAME_PLAIN) {
        for (uint32_t i = 0; i < frame.stmts.count; ++i) berth_lower__emit(c, frame.stmts.data[i]);
        return;
    }
    berth_stmt body = frame.stmts.count == 1
                          ? frame.stmts.data[0]
                          : berth_tfn_seq(c->fn, frame.stmts.data, frame.stmts.count);
    if (frame.kind == BERTH_LOWER_FRAME_IF)
        berth_lower__emit(c, berth_tfn_if(c->fn, frame.condition, body, 0));
    else
        berth_lower__emit(c, berth_tfn_for(c->fn, frame.var, frame.extent, frame.loop_kind, body));
}

berth_buf berth_lower__register(berth_lower *c, const char *name, berth_dtype dtype) {
    berth_buf buf = berth_tfn_buffer(c->fn, name, dtype, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_lower__emit(c, berth_tfn_alloc(c->fn, buf));
    return buf;
}

berth_buf berth_lower__private(berth_lower *c, const char *name, berth_dtype dtype, int rank,
                               const int64_t *dims) {
    berth_buf buf = berth_tfn_buffer(c->fn, name, dtype, rank, dims, BERTH_SCOPE_PRIVATE);
    berth_lower__emit(c, berth_tfn_alloc(c->fn, buf));
    return buf;
}

void berth_lower__put(berth_lower *c, berth_buf buf, const berth_expr *at, berth_expr value) {
    const berth_buf_info *info = &c->fn->bufs.data[buf];
    int rank = info->rank;
    berth_lower__emit(c, berth_tfn_store(c->fn, buf, at, rank, x_cast(c, info->dtype, value)));
}

// ---- elements -----------------------------------------------------------------------------------

static bool uses_lane(const berth_lower *c, berth_expr index) {
    for (uint32_t i = 0; i < c->lane_vars.count; ++i)
        if (berth_tfn_uses_var(c->fn, index, c->lane_vars.data[i])) return true;
    return false;
}

// Lanes beyond a padded dimension may read only where the buffer is padded as well.
static berth_expr lane_guard(berth_lower *c, berth_buf buf, const berth_expr *at) {
    berth_expr guard = 0;
    if (c->lane_vars.count == 0) return 0;
    const berth_buf_info info = c->fn->bufs.data[buf];
    berth_layout layout = {0};
    const char *tag = berth_module_str(c->module, info.layout);
    berth_status status = berth_layout_parse(tag, info.rank, &layout);
    if (status) {
        if (c->failure)
            berth_status_ignore(status);
        else
            c->failure = status;
        return 0;
    }
    berth_ranges ranges = {c->ranges.data, c->ranges.count};
    for (int d = 0; d < info.rank; ++d) {
        int64_t block = layout.total_block[d];
        int64_t limit = (info.dims[d] + block - 1) / block * block;
        if (!uses_lane(c, at[d]) || berth_range_of(c->fn, &ranges, at[d]).high < limit) continue;
        guard = x_and(c, guard, x_lt(c, at[d], ix(c, info.dims[d])));
    }
    return guard;
}

berth_expr berth_lower__load(berth_lower *c, berth_buf buf, const berth_expr *at) {
    int rank = c->fn->bufs.data[buf].rank;
    berth_dtype compute = berth_lower_compute_dtype(c->fn->bufs.data[buf].dtype);
    berth_expr guard = lane_guard(c, buf, at);
    berth_expr load = x_cast(c, compute, berth_tfn_load(c->fn, buf, at, rank));
    return guard ? x_select(c, guard, load, num(c, compute, 0)) : load;
}

static berth_expr literal(berth_lower *c, const berth_tensor *tensor, int64_t position) {
    berth_dtype compute = berth_lower_compute_dtype(tensor->dtype);
    if (berth_dtype_is_float(tensor->dtype))
        return berth_tfn_float(c->fn, compute, berth_tensor_get_f64(tensor, position));
    return berth_tfn_int(c->fn, compute, berth_tensor_get_i64(tensor, position));
}

enum { max_inline_constant = 64 };

static berth_expr constant_element(berth_lower *c, const berth_op *op, const berth_tensor *tensor,
                                   const berth_expr *at) {
    int64_t count = berth_tensor_element_count(tensor);
    if (count == 1) return literal(c, tensor, 0);
    berth_expr position = berth_lower__linearise(c, tensor->rank, tensor->dims, at);
    int64_t known = 0;
    if (berth_tfn_const_value(c->fn, position, &known) && known >= 0 && known < count)
        return literal(c, tensor, known);
    if (count > max_inline_constant || count == 0) {
        berth_lower__fail(c, op,
                          "a constant of %lld elements inside the function: it must be a parameter",
                          (long long)count);
        return num(c, berth_lower_compute_dtype(tensor->dtype), 0);
    }
    berth_expr chain = literal(c, tensor, count - 1);
    for (int64_t i = count - 1; i-- > 0;)
        chain = x_select(c, x_eq(c, position, ix(c, i)), literal(c, tensor, i), chain);
    return chain;
}

static bool same_index(const berth_lower *c, berth_expr a, berth_expr b) {
    int64_t x = 0;
    int64_t y = 0;
    if (a == b) return true;
    return berth_tfn_const_value(c->fn, a, &x) && berth_tfn_const_value(c->fn, b, &y) && x == y;
}

static bool same_indices(const berth_lower *c, const berth_expr *a, const berth_expr *b, int rank) {
    for (int d = 0; d < rank; ++d)
        if (!same_index(c, a[d], b[d])) return false;
    return true;
}

enum { most_inlined = 256 };  // bounds the recursion; fusion makes groups of a tenth of it

static berth_expr inline_element(berth_lower *c, berth_value_id value, const berth_expr *at) {
    const berth_value *held = &c->graph->values.data[value];
    const berth_type *type = type_of(c, value);
    berth_dtype compute = berth_lower_compute_dtype(type->dtype);
    const berth_op *op = &c->graph->ops.data[held->op];
    if (op->kind == BERTH_OP_CONSTANT) {
        const berth_tensor *tensor = berth_graph_constant_of(c->module, c->graph, value);
        if (tensor) return constant_element(c, op, tensor, at);
    }
    const berth_lower_row *row = berth_lower__row(op->kind);
    berth_lower_element_fn element = row && row->element ? row->element : row ? row->sum : NULL;
    if (!element) {
        berth_lower__fail(c, op, "its value is read before it is computed");
        return num(c, compute, 0);
    }
    for (uint32_t i = 0; i < c->memo.count; ++i) {
        const berth_lower_memo *memo = &c->memo.data[i];
        if (memo->value == value && same_indices(c, memo->at, at, memo->rank)) return memo->expr;
    }
    if (c->inlined >= most_inlined) {
        berth_lower__fail(c, op, "more than %d operations in a row in one function", most_inlined);
        return num(c, compute, 0);
    }
    berth_lower_memo memo = {.value = value, .rank = type->rank};
    memcpy(memo.at, at, (size_t)type->rank * sizeof(*at));
    c->inlined++;
    memo.expr = element(c, op, held->index, at);
    c->inlined--;
    berth_vec_push(c->scratch, &c->memo, memo);
    return memo.expr;
}

berth_expr berth_lower__element(berth_lower *c, berth_value_id value, const berth_expr *at) {
    const berth_lower_binding *binding = &c->bindings[value];
    const berth_type *type = type_of(c, value);
    if (c->failure) return num(c, berth_lower_compute_dtype(type->dtype), 0);
    if (binding->kind == BERTH_LOWER_BUFFER) return berth_lower__load(c, binding->buf, at);
    if (binding->kind == BERTH_LOWER_INLINE) return inline_element(c, value, at);
    bool here = true;
    for (int d = 0; d < type->rank; ++d)
        here &= type->dims[d] == 1 || same_index(c, binding->at[d], at[d]);
    if (here) return binding->expr;
    const berth_op *op = &c->graph->ops.data[c->graph->values.data[value].op];
    berth_lower__fail(c, op, "its epilogue reads another element of it");
    return num(c, berth_lower_compute_dtype(type->dtype), 0);
}

// ---- stores -------------------------------------------------------------------------------------

bool berth_lower__wanted(const berth_lower *c, uint32_t output) {
    for (uint32_t i = 0; i < c->sinks.count; ++i)
        if (c->sinks.data[i].output == output) return true;
    return false;
}

berth_buf berth_lower__buffer(const berth_lower *c, uint32_t output) {
    for (uint32_t i = 0; i < c->sinks.count; ++i)
        if (c->sinks.data[i].output == output) return c->sinks.data[i].buf;
    return 0;
}

void berth_lower__store(berth_lower *c, const berth_op *op, uint32_t output, const berth_expr *at,
                        berth_expr value) {
    if (c->failure) return;
    berth_value_id anchor = op->outputs[output];
    const berth_type *type = type_of(c, anchor);
    value = x_cast(c, berth_lower_compute_dtype(type->dtype), value);
    berth_lower_binding *binding = &c->bindings[anchor];
    *binding = (berth_lower_binding){.kind = BERTH_LOWER_HERE, .expr = value};
    memcpy(binding->at, at, (size_t)type->rank * sizeof(*at));
    uint32_t memo_count = c->memo.count;
    for (uint32_t i = 0; i < c->sinks.count; ++i) {
        const berth_lower_sink sink = c->sinks.data[i];
        if (sink.output != output) continue;
        berth_expr result = berth_lower__element(c, sink.value, at);
        if (c->failure) return;
        bool padded = c->fn->bufs.data[sink.buf].layout != 0;
        if (c->valid && padded)
            result = x_select(c, c->valid, result, num(c, dtype_of(c, result), 0));
        berth_lower__if(c, padded ? 0 : c->valid);
        berth_expr moved[BERTH_MAX_RANK];
        for (int d = 0; d < type->rank; ++d)
            moved[d] = sink.pads[d] ? x_addi(c, at[d], sink.pads[d]) : at[d];
        berth_lower__put(c, sink.buf, moved, result);
        berth_lower__end(c);
    }
    c->memo.count = memo_count;  // elements of the epilogue belong to this store
    c->bindings[anchor].kind = BERTH_LOWER_INLINE;
}
