// Buffers of the SPIR-V generator: bindings, variables, loads and stores.
#include <string.h>

#include "artifact/kernel_abi.h"
#include "compiler/codegen/lanes.h"
#include "compiler/codegen/spirv_math.h"
#include "compiler/codegen/spirv_matrix.h"
#include "compiler/codegen/spirv_printer.h"

berth_spirv_type berth_spirv_value_type(berth_dtype dtype) {
    if (dtype == BERTH_DTYPE_BOOL) return SPIRV_TYPE_BOOL;
    if (dtype == BERTH_DTYPE_F64) return SPIRV_TYPE_F64;
    if (berth_dtype_is_float(dtype)) return SPIRV_TYPE_F32;
    return berth_dtype_size_bytes(dtype) == 8 ? SPIRV_TYPE_U64 : SPIRV_TYPE_U32;
}

berth_spirv_type berth_spirv_memory_type(const berth_spirv_printer *p, berth_dtype dtype) {
    if (dtype == BERTH_DTYPE_F16 && p->float16) return SPIRV_TYPE_F16;
    if (dtype == BERTH_DTYPE_F32) return SPIRV_TYPE_F32;
    if (dtype == BERTH_DTYPE_F64) return SPIRV_TYPE_F64;
    switch (berth_dtype_size_bytes(dtype)) {
    case 1: return SPIRV_TYPE_U8;
    case 2: return SPIRV_TYPE_U16;
    case 4: return SPIRV_TYPE_U32;
    default: return SPIRV_TYPE_U64;
    }
}

static uint32_t type_bytes(berth_spirv_type type) {
    switch (type) {
    case SPIRV_TYPE_U8: return 1;
    case SPIRV_TYPE_U16:
    case SPIRV_TYPE_F16: return 2;
    case SPIRV_TYPE_U64:
    case SPIRV_TYPE_F64: return 8;
    default: return 4;
    }
}

// ---- bindings -----------------------------------------------------------------------------------

// struct { element at[]; }, as a buffer's memory is seen.
static uint32_t memory_struct(berth_spirv_printer *p, berth_spirv_type type, bool written) {
    berth_spirv *m = p->m;
    if (!p->arrays[type]) {
        uint32_t element = berth_spirv_type_id(m, type);
        p->arrays[type] = berth_spirv_new_type(m, SPIRV_TypeRuntimeArray, &element, 1);
        berth_spirv_decorate_with(m, p->arrays[type], SPIRV_DECORATION_ARRAY_STRIDE,
                                  type_bytes(type));
    }
    uint32_t id = berth_spirv_new_type(m, SPIRV_TypeStruct, &p->arrays[type], 1);
    berth_spirv_decorate(m, id, SPIRV_DECORATION_BLOCK);
    berth_spirv_decorate_member(m, id, 0, SPIRV_DECORATION_OFFSET, 0);
    if (!written) berth_spirv_decorate_member(m, id, 0, SPIRV_DECORATION_NON_WRITABLE, -1);
    return id;
}

// Addresses are pairs of 32-bit words, which needs no 64-bit integers: a structure of `count` pairs.
static uint32_t table_struct(berth_spirv_printer *p, uint32_t pair, uint32_t count) {
    uint32_t *members = berth_arena_new_array(p->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) members[i] = pair;
    uint32_t id = berth_spirv_new_type(p->m, SPIRV_TypeStruct, members, count);
    berth_spirv_decorate(p->m, id, SPIRV_DECORATION_BLOCK);
    for (uint32_t i = 0; i < count; ++i)
        berth_spirv_decorate_member(p->m, id, i, SPIRV_DECORATION_OFFSET, 8 * (int64_t)i);
    return id;
}

// Member `index` of a table, as a pointer of type `type`.
static uint32_t load_pointer(berth_spirv_printer *p, uint32_t storage, uint32_t table,
                             uint32_t pair, uint32_t index, uint32_t type) {
    berth_spirv *m = p->m;
    uint32_t member = berth_spirv_int(m, SPIRV_TYPE_U32, index);
    uint32_t at = berth_spirv_emit(m, SPIRV_AccessChain, berth_spirv_pointer(m, storage, pair),
                                   (uint32_t[]){table, member}, 2);
    bool pushed = storage == SPIRV_STORAGE_PUSH_CONSTANT;
    uint32_t words = berth_spirv_emit(m, SPIRV_Load, pair,
                                      (uint32_t[]){at, SPIRV_MEMORY_ALIGNED, 8}, pushed ? 1 : 3);
    return berth_spirv_emit(m, SPIRV_Bitcast, type, &words, 1);
}

void berth_spirv_bind(berth_spirv_printer *p) {
    berth_spirv *m = p->m;
    uint32_t count = p->kernel->buffer_count;
    uint32_t *pointers = berth_arena_new_array(p->arena, uint32_t, count + 1);
    berth_spirv_capability(m, SPIRV_CAPABILITY_PHYSICAL);
    for (uint32_t i = 0; i < count; ++i) {
        berth_buf buf = p->kernel->buffers[i];
        berth_spirv_type type = berth_spirv_memory_type(p, p->fn->bufs.data[buf].dtype);
        uint32_t structure = memory_struct(p, type, p->kernel->written[i]);
        berth_spirv_name(m, structure, berth_arena_printf(p->arena, "b%u", buf));
        pointers[i] = berth_spirv_pointer(m, SPIRV_STORAGE_PHYSICAL, structure);
        p->buffers[buf] =
            (berth_spirv_buffer){.kind = SPIRV_BUF_MEMORY,
                                 .type = type,
                                 .pointer = berth_spirv_pointer(m, SPIRV_STORAGE_PHYSICAL,
                                                                berth_spirv_type_id(m, type))};
    }
    if (count == 0) return;
    bool direct = count <= BERTH_SPIRV_PUSHED_MAX;
    uint32_t pair = berth_spirv_new_type(
        m, SPIRV_TypeVector, (uint32_t[]){berth_spirv_type_id(m, SPIRV_TYPE_U32), 2}, 2);
    uint32_t pushed = table_struct(p, pair, direct ? count : 1);
    uint32_t storage = SPIRV_STORAGE_PUSH_CONSTANT;
    uint32_t table = berth_spirv_global(m, berth_spirv_pointer(m, storage, pushed), storage);
    if (!direct) {
        uint32_t far = berth_spirv_pointer(m, SPIRV_STORAGE_PHYSICAL, table_struct(p, pair, count));
        table = load_pointer(p, storage, table, pair, 0, far);
        storage = SPIRV_STORAGE_PHYSICAL;
    }
    for (uint32_t i = 0; i < count; ++i)
        p->buffers[p->kernel->buffers[i]].base =
            load_pointer(p, storage, table, pair, i, pointers[i]);
}

// ---- variables ----------------------------------------------------------------------------------

void berth_spirv_declare(berth_spirv_printer *p, berth_buf buf) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    berth_spirv_buffer *buffer = &p->buffers[buf];
    if (buffer->kind != SPIRV_BUF_UNKNOWN) return;  // in a loop that is unrolled
    berth_spirv_type type = berth_spirv_value_type(info->dtype);
    if (type == SPIRV_TYPE_BOOL) type = SPIRV_TYPE_U32;
    if (info->dtype == BERTH_DTYPE_F16 && p->float16) type = SPIRV_TYPE_F16;
    // Matrices are loaded from elements of their own type.
    if (info->scope == BERTH_SCOPE_LOCAL && berth_spirv_matrix_is_operand(p, info->dtype))
        type = berth_spirv_memory_type(p, info->dtype);
    uint32_t element = berth_spirv_type_id(p->m, type);
    uint32_t count = (uint32_t)berth_kernel_elements(p->fn, buf) * info->lanes;
    *buffer = (berth_spirv_buffer){.kind = SPIRV_BUF_ARRAY, .type = type};
    if (info->scope == BERTH_SCOPE_LOCAL) {
        uint32_t array = berth_spirv_array(p->m, element, count ? count : 1);
        buffer->pointer = berth_spirv_pointer(p->m, SPIRV_STORAGE_WORKGROUP, element);
        buffer->base =
            berth_spirv_global(p->m, berth_spirv_pointer(p->m, SPIRV_STORAGE_WORKGROUP, array),
                               SPIRV_STORAGE_WORKGROUP);
    } else if (info->rank == 0) {
        uint32_t *scalars = berth_arena_new_array(p->arena, uint32_t, info->lanes);
        for (int l = 0; l < info->lanes; ++l) scalars[l] = berth_spirv_local(p->m, element);
        buffer->kind = SPIRV_BUF_SCALARS;
        buffer->scalars = scalars;
        return;
    } else {
        uint32_t array = berth_spirv_array(p->m, element, count ? count : 1);
        buffer->pointer = berth_spirv_pointer(p->m, SPIRV_STORAGE_FUNCTION, element);
        buffer->base = berth_spirv_local(p->m, array);
    }
    berth_spirv_name(p->m, buffer->base, berth_arena_printf(p->arena, "b%u", buf));
}

// ---- elements -----------------------------------------------------------------------------------

static bool is_half(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F16 || dtype == BERTH_DTYPE_BF16;
}

static uint32_t element_at(berth_spirv_printer *p, const berth_spirv_buffer *buffer, uint32_t at) {
    uint32_t operands[] = {buffer->base, at, at};
    if (buffer->kind == SPIRV_BUF_ARRAY)
        return berth_spirv_emit(p->m, SPIRV_AccessChain, buffer->pointer, operands, 2);
    operands[1] = berth_spirv_int(p->m, SPIRV_TYPE_U32, 0);
    return berth_spirv_emit(p->m, SPIRV_AccessChain, buffer->pointer, operands, 3);
}

// From memory to what is computed with.
static uint32_t widen(berth_spirv_printer *p, berth_dtype dtype, const berth_spirv_buffer *buffer,
                      uint32_t raw) {
    berth_spirv *m = p->m;
    if (buffer->type == SPIRV_TYPE_F16) return berth_spirv_from_f16(m, raw);
    bool narrow = buffer->type == SPIRV_TYPE_U8 || buffer->type == SPIRV_TYPE_U16;
    if (narrow) {
        bool is_signed = berth_dtype_is_signed(dtype) && !is_half(dtype);
        raw =
            berth_spirv_unary(m, is_signed ? SPIRV_SConvert : SPIRV_UConvert, SPIRV_TYPE_U32, raw);
    }
    if (is_half(dtype) && narrow) return berth_spirv_half_to_float(m, dtype, raw);
    if (dtype == BERTH_DTYPE_BOOL)
        return berth_spirv_binary(m, SPIRV_INotEqual, SPIRV_TYPE_BOOL, raw,
                                  berth_spirv_int(m, SPIRV_TYPE_U32, 0));
    return raw;
}

static uint32_t narrow(berth_spirv_printer *p, berth_dtype dtype, const berth_spirv_buffer *buffer,
                       uint32_t value) {
    berth_spirv *m = p->m;
    if (buffer->type == SPIRV_TYPE_F16) return value;  // berth_spirv_half has been there
    bool in_memory = buffer->kind == SPIRV_BUF_MEMORY;
    if (dtype == BERTH_DTYPE_BOOL)
        value = berth_spirv_select(m, SPIRV_TYPE_U32, value, berth_spirv_int(m, SPIRV_TYPE_U32, 1),
                                   berth_spirv_int(m, SPIRV_TYPE_U32, 0));
    if (is_half(dtype)) {
        value = berth_spirv_float_to_half(m, dtype, value);
        if (!in_memory) return berth_spirv_half_to_float(m, dtype, value);
    }
    if (buffer->type == SPIRV_TYPE_U8 || buffer->type == SPIRV_TYPE_U16)
        return berth_spirv_unary(m, SPIRV_UConvert, buffer->type, value);
    return value;
}

uint32_t berth_spirv_element(berth_spirv_printer *p, berth_buf buf, uint32_t at) {
    return element_at(p, &p->buffers[buf], at);
}

// What follows the pointer, and the value, of an access: the number of words in `out`.
static uint32_t memory_operands(const berth_spirv_printer *p, berth_buf buf, uint32_t *out) {
    const berth_spirv_buffer *buffer = &p->buffers[buf];
    bool shared = p->matrices && p->fn->bufs.data[buf].scope == BERTH_SCOPE_LOCAL;
    out[0] = shared ? SPIRV_MEMORY_NON_PRIVATE : SPIRV_MEMORY_ALIGNED;
    out[1] = type_bytes(buffer->type);
    return shared ? 1 : buffer->kind == SPIRV_BUF_MEMORY ? 2 : 0;
}

static uint32_t load_one(berth_spirv_printer *p, berth_buf buf, uint32_t at) {
    const berth_spirv_buffer *buffer = &p->buffers[buf];
    uint32_t type = berth_spirv_type_id(p->m, buffer->type);
    uint32_t operands[3] = {element_at(p, buffer, at)};
    uint32_t count = 1 + memory_operands(p, buf, operands + 1);
    uint32_t raw = berth_spirv_emit(p->m, SPIRV_Load, type, operands, count);
    return widen(p, p->fn->bufs.data[buf].dtype, buffer, raw);
}

static void store_one(berth_spirv_printer *p, berth_buf buf, uint32_t at, uint32_t value) {
    const berth_spirv_buffer *buffer = &p->buffers[buf];
    value = narrow(p, p->fn->bufs.data[buf].dtype, buffer, value);
    uint32_t operands[4] = {element_at(p, buffer, at), value};
    uint32_t count = 2 + memory_operands(p, buf, operands + 2);
    berth_spirv_plain(p->m, SPIRV_Store, operands, count);
}

// ---- accesses -----------------------------------------------------------------------------------

static berth_linear lane_access(berth_spirv_printer *p, berth_buf buf, const berth_expr *indices,
                                int count, int lane) {
    return berth_lane_access(p->fn, &p->ranges, buf, indices, count, lane, &p->status);
}

static uint32_t position(berth_spirv_printer *p, berth_buf buf, const berth_expr *indices,
                         int count, int lane) {
    return berth_spirv_linear(p, lane_access(p, buf, indices, count, lane));
}

bool berth_spirv_lane_places(berth_spirv_printer *p, berth_expr load, berth_linear *out_first,
                             int64_t *out_places) {
    const berth_expr_node node = p->fn->exprs.data[load];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(p->fn, load), node.index_count * sizeof(berth_expr));
    return berth_lane_places(p->fn, &p->ranges, node.load.buf, indices, node.index_count,
                             node.lanes, out_first, out_places, &p->status);
}

static uint32_t vector_position(berth_spirv_printer *p, uint32_t at, int lanes, int lane) {
    uint64_t known = 0;
    if (berth_spirv_int_value(p->m, at, &known))
        return berth_spirv_index_int(p, (int64_t)known * lanes + lane);
    at = berth_spirv_binary(p->m, SPIRV_IMul, p->index, at, berth_spirv_index_int(p, lanes));
    return lane ? berth_spirv_binary(p->m, SPIRV_IAdd, p->index, at, berth_spirv_index_int(p, lane))
                : at;
}

static bool check_known(berth_spirv_printer *p, berth_buf buf) {
    if (p->buffers[buf].kind != SPIRV_BUF_UNKNOWN) return true;
    berth_spirv_fail(p, berth_status_make(BERTH_INTERNAL, "buffer %u is not declared", buf));
    return false;
}

const uint32_t *berth_spirv_load(berth_spirv_printer *p, berth_expr id) {
    const berth_expr_node node = p->fn->exprs.data[id];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(p->fn, id), node.index_count * sizeof(berth_expr));
    berth_buf buf = node.load.buf;
    if (berth_spirv_matrix_has_sums(p, buf)) return berth_spirv_matrix_sums(p, &node, indices);
    uint32_t *lanes = berth_arena_new_array(p->arena, uint32_t, node.lanes);
    const berth_spirv_buffer *buffer = &p->buffers[buf];
    if (!check_known(p, buf)) return lanes;
    bool vectors = p->fn->bufs.data[buf].lanes > 1;
    uint32_t at = vectors && buffer->kind == SPIRV_BUF_ARRAY
                      ? position(p, buf, indices, node.index_count, 0)
                      : 0;
    for (int l = 0; l < node.lanes; ++l) {
        if (buffer->kind == SPIRV_BUF_SCALARS)
            lanes[l] = widen(p, p->fn->bufs.data[buf].dtype, buffer,
                             berth_spirv_unary(p->m, SPIRV_Load, buffer->type, buffer->scalars[l]));
        else if (vectors)
            lanes[l] = load_one(p, buf, vector_position(p, at, node.lanes, l));
        else
            lanes[l] = load_one(p, buf, position(p, buf, indices, node.index_count, l));
    }
    return lanes;
}

uint32_t berth_spirv_first_place(berth_spirv_printer *p, berth_expr load) {
    const berth_expr_node node = p->fn->exprs.data[load];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(p->fn, load), node.index_count * sizeof(berth_expr));
    return position(p, node.load.buf, indices, node.index_count, 0);
}

uint32_t berth_spirv_load_place(berth_spirv_printer *p, berth_expr load, uint32_t place) {
    berth_buf buf = p->fn->exprs.data[load].load.buf;
    return check_known(p, buf) ? load_one(p, buf, place) : 0;
}

static bool has_ramp(const berth_spirv_printer *p, const berth_expr *indices, int count) {
    for (int d = 0; d < count; ++d)
        if (p->fn->exprs.data[indices[d]].lanes > 1) return true;
    return false;
}

// What a store to a half precision buffer rounds anyway needs no rounding to it before.
static berth_expr without_rounding(const berth_spirv_printer *p, berth_dtype to, berth_expr id) {
    while (is_half(to)) {
        const berth_expr_node *node = &p->fn->exprs.data[id];
        const berth_expr_node *from = &p->fn->exprs.data[node->a];
        bool rounds = node->kind == BERTH_EXPR_CAST && node->lanes <= 1 &&
                      (node->dtype == to || node->dtype == BERTH_DTYPE_F32) &&
                      (from->dtype == to || from->dtype == BERTH_DTYPE_F32);
        if (!rounds || from->is_index) return id;
        id = node->a;
    }
    return id;
}

void berth_spirv_store(berth_spirv_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    const berth_buf_info info = p->fn->bufs.data[node.buf];
    const berth_spirv_buffer *buffer = &p->buffers[node.buf];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(p->fn, id), node.index_count * sizeof(berth_expr));
    if (!check_known(p, node.buf)) return;
    berth_expr value = without_rounding(p, info.dtype, node.value);
    const uint32_t *lanes =
        buffer->type == SPIRV_TYPE_F16 ? berth_spirv_half(p, value) : berth_spirv_value(p, value);
    bool vectors = info.lanes > 1;
    int count = vectors                                  ? info.lanes
                : has_ramp(p, indices, node.index_count) ? p->fn->exprs.data[value].lanes
                                                         : 1;
    uint32_t at = vectors && buffer->kind == SPIRV_BUF_ARRAY
                      ? position(p, node.buf, indices, node.index_count, 0)
                      : 0;
    int have = p->fn->exprs.data[value].lanes;
    bool widened = p->fn->exprs.data[value].is_index && p->index == SPIRV_TYPE_U32 &&
                   berth_dtype_size_bytes(info.dtype) == 8;
    for (int l = 0; l < count; ++l) {
        uint32_t lane = lanes[have > 1 ? l : 0];
        if (widened) lane = berth_spirv_unary(p->m, SPIRV_SConvert, SPIRV_TYPE_U64, lane);
        if (buffer->kind == SPIRV_BUF_SCALARS)
            berth_spirv_plain(p->m, SPIRV_Store,
                              (uint32_t[]){buffer->scalars[l], narrow(p, info.dtype, buffer, lane)},
                              2);
        else if (vectors)
            store_one(p, node.buf, vector_position(p, at, info.lanes, l), lane);
        else
            store_one(p, node.buf, position(p, node.buf, indices, node.index_count, l), lane);
    }
}
