#include "compiler/passes/layout.h"

#include <stdio.h>
#include <string.h>

#include "compiler/libraries/use.h"
#include "compiler/passes/layout_private.h"
#include "ir/graph/op_params.h"
#include "ir/layout.h"
#include "planner/planner.h"

#define BLOCK BERTH_LAYOUT_BLOCK
#define WIDE_BLOCK BERTH_LAYOUT_WIDE_BLOCK

typedef berth_layout_pass pass;

void berth_layout__set(pass *p, berth_value_id value, berth_str_id layout) {
    const berth_type type = *type_of(p, value);
    graph_of(p)->values.data[value].type =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
}

const berth_target *berth_layout__target(const pass *p, berth_op_id id) {
    uint32_t device = berth_plan_device_of(p->module, p->target, graph_of(p)->ops.data[id].device);
    return device == BERTH_NO_INDEX ? NULL : p->target->devices[device].target;
}

// Processor cores, also behind OpenCL (where no work-items run in step beside each other).
static bool on_cpu(const pass *p, berth_op_id id) {
    const berth_target *target = berth_layout__target(p, id);
    return target && berth_target_is_cores(target);
}

int64_t berth_layout__lanes(const pass *p, berth_op_id id) {
    const berth_target *target = berth_layout__target(p, id);
    bool wide = target && berth_device_kind_is_host(target->kind) && target->vector_bits >= 512;
    return wide ? WIDE_BLOCK : BLOCK;
}

// Channels per block of a value that operation `id` reads or makes. Blocks of 16 would leave half a
// register empty, and half a block of memory, for what is a multiple of 8 only.
int64_t berth_layout__block_for(const pass *p, berth_op_id id, int64_t channels) {
    bool fills = channels % WIDE_BLOCK == 0 || channels % BLOCK != 0;
    return fills && channels > BLOCK ? berth_layout__lanes(p, id) : BLOCK;
}

// Per value that the pass begins with: the operation that uses it, BERTH_LAYOUT_MANY_USERS, or BERTH_NONE.
static berth_op_id *find_only_users(const berth_graph *graph, berth_arena *scratch) {
    berth_op_id *users = berth_arena_new_array(scratch, berth_op_id, graph->values.count + 1);
    memset(users, 0xff, graph->values.count * sizeof(*users));
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
        berth_op_id id = graph->regions.data[0].ops.data[i];
        const berth_op *op = &graph->ops.data[id];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            berth_op_id *user = &users[op->inputs[k]];
            *user = *user == BERTH_NONE || *user == id ? id : BERTH_LAYOUT_MANY_USERS;
        }
    }
    return users;
}

berth_str_id berth_layout__blocked(const pass *p, int rank, int64_t block) {
    return block == WIDE_BLOCK ? p->blocked_wide[rank] : p->blocked[rank];
}

// "aBcd8b": channels in blocks; from rank 3 on.
static void name_blocks(pass *p) {
    for (int rank = 3; rank <= BERTH_MAX_RANK; ++rank) {
        char tag[BERTH_MAX_RANK + 8] = "aB";
        for (int d = 2; d < rank; ++d) tag[d] = (char)('a' + d);
        snprintf(tag + rank, sizeof(tag) - (size_t)rank, "%db", BLOCK);
        p->blocked[rank] = berth_module_intern(p->module, tag);
        snprintf(tag + rank, sizeof(tag) - (size_t)rank, "%db", WIDE_BLOCK);
        p->blocked_wide[rank] = berth_module_intern(p->module, tag);
    }
}

int64_t berth_layout__block(const pass *p, berth_value_id value) {
    if (value == BERTH_NONE || type_of(p, value)->layout == 0) return 0;
    const berth_type *type = type_of(p, value);
    if (type->layout == p->blocked[type->rank]) return BLOCK;
    return type->layout == p->blocked_wide[type->rank] ? WIDE_BLOCK : 0;
}

// Pools and concatenations work on blocks of whatever has vectors.
bool berth_layout__has_blocks(const pass *p, berth_value_id value) {
    berth_dtype dtype = type_of(p, value)->dtype;
    return berth_type_is_static(type_of(p, value)) &&
           (dtype == BERTH_DTYPE_F32 || dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I8);
}

bool berth_layout__is_f32(const pass *p, berth_value_id value, int rank) {
    if (value == BERTH_NONE) return false;
    const berth_type *type = type_of(p, value);
    return berth_type_is_static(type) && type->dtype == BERTH_DTYPE_F32 &&
           (rank < 0 || type->rank == rank);
}

// ---- new operations
// -------------------------------------------------------------------------------------------------

// A value of the given type made by a new operation before `position` (BERTH_NONE: at the end).
berth_value_id berth_layout__insert(pass *p, berth_op_id position, berth_op_kind kind,
                                    const berth_value_id *inputs, uint32_t input_count,
                                    berth_type_id type, berth_op_id like) {
    berth_op model = graph_of(p)->ops.data[like];
    berth_op_id made =
        position == BERTH_NONE
            ? berth_graph_add_op(p->module, p->main, 0, kind, inputs, input_count, 1, model.loc)
            : berth_graph_insert_op(p->module, p->main, position, kind, inputs, input_count, 1,
                                    model.loc);
    berth_graph *graph = graph_of(p);
    berth_value_id result = graph->ops.data[made].outputs[0];
    graph->ops.data[made].device = model.device;
    graph->values.data[result].type = type;
    graph->values.data[result].device = graph->values.data[model.outputs[0]].device;
    return result;
}

static berth_value_id relayout(pass *p, berth_value_id value, berth_str_id layout,
                               berth_op_id position, berth_op_id like) {
    const berth_type type = *type_of(p, value);
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
    berth_value_id result =
        berth_layout__insert(p, position, BERTH_OP_RELAYOUT, &value, 1, wanted, like);
    berth_op_id made = graph_of(p)->values.data[result].op;
    berth_attrs attrs = {0};
    berth_attrs_set_string(p->module, &attrs, "layout", berth_module_str(p->module, layout));
    graph_of(p)->ops.data[made].attrs = attrs;
    berth_graph *graph = graph_of(p);
    berth_op_id producer = graph->values.data[value].op;
    if (graph->ops.data[like].kind == BERTH_OP_DEVICE_COPY && producer != BERTH_NONE) {
        // Before the copy, on the device that it copies from.
        graph->ops.data[made].device = graph->ops.data[producer].device;
        graph->values.data[result].device = graph->values.data[value].device;
    }
    return result;
}

// `value` in a layout, for the operation at `position`: itself, or a conversion shared by all who
// want it.
berth_value_id berth_layout__convert(pass *p, berth_value_id value, berth_str_id layout,
                                     berth_op_id position, berth_op_id like) {
    if (type_of(p, value)->layout == layout) return value;
    if (value >= p->value_count) return relayout(p, value, layout, position, like);
    if (p->other[value] == BERTH_NONE || type_of(p, p->other[value])->layout != layout)
        p->other[value] = relayout(p, value, layout, position, like);
    return p->other[value];
}

// ---- what stays blocked
// ---------------------------------------------------------------------------------------------

static bool same_dims(const berth_type *a, const berth_type *b) {
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

void berth_layout__fill_up_constant(pass *p, berth_op_id id, uint32_t i, const berth_type *out,
                                    int64_t block) {
    berth_value_id value = graph_of(p)->ops.data[id].inputs[i];
    const berth_tensor *held = berth_graph_raw_constant_of(p->module, graph_of(p), value);
    int channels = held ? 1 - (out->rank - held->rank) : -1;
    if (channels < 0 || type_of(p, value)->layout || out->dims[1] % block == 0 ||
        held->dims[channels] != out->dims[1] || berth_tensor_element_count(held) != out->dims[1])
        return;
    char tag[BERTH_MAX_RANK + 8];
    for (int d = 0; d < held->rank; ++d) tag[d] = (char)((d == channels ? 'A' : 'a') + d);
    snprintf(tag + held->rank, sizeof(tag) - (size_t)held->rank, "%d%c", (int)block,
             'a' + channels);
    berth_value_id packed = berth_layout__packed_constant(p, held, tag, id);
    if (packed != BERTH_NONE) berth_layout__set_input(p, id, i, packed);
}

bool berth_layout__elementwise(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    if (op.output_count != 1) return false;
    const berth_type out = *type_of(p, op.outputs[0]);
    int64_t block = 0;  // the largest
    if (!berth_type_is_static(&out) || out.rank < 3) return false;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (op.inputs[i] == BERTH_NONE) continue;
        bool full = same_dims(type_of(p, op.inputs[i]), &out);
        int64_t own = berth_layout__block(p, op.inputs[i]);
        if (own && !full) return false;
        if (own > block) block = own;
    }
    if (!block) return false;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (op.inputs[i] == BERTH_NONE) continue;
        if (same_dims(type_of(p, op.inputs[i]), &out))
            berth_layout__set_input(p, id, i,
                                    berth_layout__convert(p, op.inputs[i],
                                                          berth_layout__blocked(p, out.rank, block),
                                                          id, id));
        else
            berth_layout__fill_up_constant(p, id, i, &out, block);
    }
    berth_layout__set(p, op.outputs[0], berth_layout__blocked(p, out.rank, block));
    return true;
}

bool berth_layout__concat(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    int64_t axis = berth_attrs_int(p->module, &op.attrs, "axis", 0);
    int rank = type_of(p, op.outputs[0])->rank;
    bool fits = berth_layout__has_units(p, id) ? berth_type_is_static(type_of(p, op.outputs[0]))
                                               : berth_layout__has_blocks(p, op.outputs[0]);
    if (rank < 3 || (axis != 1 && axis != 1 - rank) || !fits) return false;
    uint32_t blocked = 0;
    int64_t block = WIDE_BLOCK;  // the largest that all parts fill, and that one of them has
    int64_t largest = 0;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        int64_t channels = type_of(p, op.inputs[i])->dims[1];
        int64_t own = berth_layout__block(p, op.inputs[i]);
        if (channels % BLOCK) return false;
        if (channels % WIDE_BLOCK) block = BLOCK;
        if (own > largest) largest = own;
        blocked += own != 0;
    }
    if (blocked * 2 < op.input_count) return false;
    if (block > largest) block = largest;
    for (uint32_t i = 0; i < op.input_count; ++i)
        berth_layout__set_input(
            p, id, i,
            berth_layout__convert(p, op.inputs[i], berth_layout__blocked(p, rank, block), id, id));
    berth_layout__set(p, op.outputs[0], berth_layout__blocked(p, rank, block));
    return true;
}

// What goes from one device of processor cores to another stays in the blocks that both have;
// what the graph ends with, and what others read, is plain. Blocks wider than the reader's become
// narrow ones before the copy.
static bool convert_copy(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    berth_op_id producer = graph_of(p)->values.data[op.inputs[0]].op;
    int64_t block = berth_layout__block(p, op.inputs[0]);
    int rank = type_of(p, op.inputs[0])->rank;
    if (!block || producer == BERTH_NONE || !on_cpu(p, producer) ||
        p->only_user[op.outputs[0]] == BERTH_NONE)
        return false;
    if (block > berth_layout__lanes(p, id)) block = BLOCK;
    berth_str_id layout = berth_layout__blocked(p, rank, block);
    berth_layout__set_input(p, id, 0, berth_layout__convert(p, op.inputs[0], layout, id, id));
    berth_layout__set(p, op.outputs[0], layout);
    return true;
}

// ---- matrices
// -------------------------------------------------------------------------------------------------------

void berth_layout__matrix(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]);
    if (!weights || weights->dtype != BERTH_DTYPE_F32 || weights->rank != 2 ||
        type_of(p, op.inputs[1])->layout)
        return;
    bool transposed =
        op.kind == BERTH_OP_GEMM && berth_attrs_int(p->module, &op.attrs, "transB", 0) != 0;
    int64_t columns = weights->dims[transposed ? 0 : 1];
    if (columns < BLOCK || !berth_layout__is_f32(p, op.inputs[0], -1)) return;
    berth_value_id packed =
        berth_layout__packed_constant(p, weights, transposed ? "Ab16a" : "Ba16b", id);
    if (packed != BERTH_NONE) berth_layout__set_input(p, id, 1, packed);
}

// Weights of few bits, and what their blocks have, in blocks of columns.
static void bits_matrix(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    for (uint32_t i = 1; i < op.input_count; ++i) {
        const berth_tensor *held =
            op.inputs[i] == BERTH_NONE
                ? NULL
                : berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[i]);
        if (!held || held->rank != 2 || held->dims[1] < BLOCK || type_of(p, op.inputs[i])->layout)
            continue;
        berth_value_id packed = berth_layout__packed_constant(p, held, "Ba16b", id);
        if (packed != BERTH_NONE) berth_layout__set_input(p, id, i, packed);
    }
}

// In blocks of any kind, and no constant (those are packed for who reads them).
static bool has_layout(const pass *p, berth_value_id value) {
    return value != BERTH_NONE && type_of(p, value)->layout != 0 &&
           !berth_graph_raw_constant_of(p->module, graph_of(p), value);
}

static void make_plain(pass *p, berth_op_id id) {
    for (uint32_t i = 0; i < graph_of(p)->ops.data[id].input_count; ++i) {
        berth_value_id value = graph_of(p)->ops.data[id].inputs[i];
        if (has_layout(p, value))
            berth_layout__set_input(p, id, i, berth_layout__convert(p, value, 0, id, id));
    }
}

// The weights of recurrent cells, of inputs and of states, in panels of rows: (d, rows, k).
static bool convert_recurrent(pass *p, berth_op_id id) {
    make_plain(p, id);
    for (uint32_t i = 1; i <= 2; ++i) {
        const berth_op op = graph_of(p)->ops.data[id];
        const berth_tensor *weights =
            berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[i]);
        if (!weights || weights->dtype != BERTH_DTYPE_F32 || weights->rank != 3 ||
            weights->dims[1] < BLOCK || type_of(p, op.inputs[i])->layout)
            continue;
        berth_value_id packed = berth_layout__packed_constant(p, weights, "aBc16b", id);
        if (packed != BERTH_NONE) berth_layout__set_input(p, id, i, packed);
    }
    return true;
}

// Recurrence weights of integers (d, rows, k): in blocks of the target's dot products of u8 and i8, else as f32 in panels
// of rows, whose products are these integers' up to 2^24.
static bool convert_integer_recurrent(pass *p, berth_op_id id) {
    make_plain(p, id);
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[2]);
    if (!weights || weights->dtype != BERTH_DTYPE_I8 || weights->rank != 3 ||
        weights->dims[1] < BLOCK || type_of(p, op.inputs[2])->layout)
        return true;
    berth_layout_dot form;
    char tag[32] = "aBc16b";
    berth_tensor real;
    bool dot = berth_layout__choose_dot(p, id, BERTH_DTYPE_U8, weights->dims[1], &form) &&
               berth_intrinsic_get(form.intrinsic)->operands[1].dtype == BERTH_DTYPE_U8 &&
               weights->dims[2] % form.depth == 0;
    if (dot) {
        snprintf(tag, sizeof(tag), "aBC%db%dc", (int)form.lanes, (int)form.depth);
    } else {
        real = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 3, weights->dims);
        int64_t count = berth_tensor_element_count(weights);
        for (int64_t i = 0; i < count; ++i)
            berth_tensor_set_f64(&real, i, berth_tensor_get_f64(weights, i));
        weights = &real;
    }
    berth_value_id packed = berth_layout__packed_constant(p, weights, tag, id);
    if (packed != BERTH_NONE) berth_layout__set_input(p, id, 2, packed);
    return true;
}

// ---- pass
// -----------------------------------------------------------------------------------------------------------

static berth_status convert(pass *p, berth_op_id id) {
    berth_op_kind kind = graph_of(p)->ops.data[id].kind;
    bool done = false;
    if (kind == BERTH_OP_CONSTANT) return BERTH_OK;
    if (berth_layout__by_rules(p, id)) return BERTH_OK;
    if (p->library_users && berth_layout__library(p, id)) return BERTH_OK;
    if (berth_layout__has_units(p, id)) BERTH_TRY(berth_layout__on_units(p, id, &done));
    if (berth_layout__is_half(p, id)) {
        BERTH_TRY(convert(p, berth_layout__widen(p, id)));
        kind = graph_of(p)->ops.data[id].kind;
    }
    if (on_cpu(p, id)) {
        if (kind == BERTH_OP_CONV_INTEGER) {
            BERTH_TRY(berth_layout__conv_dot(p, id, &done));
            if (done) return BERTH_OK;
            BERTH_TRY(berth_layout__conv_integer(p, id));
            kind = graph_of(p)->ops.data[id].kind;
        }
        if (kind == BERTH_OP_MATMUL_INTEGER) {
            make_plain(p, id);
            bool constant = berth_layout__matmul_dot(p, id);
            done = !constant && berth_layout__matmul_dot_fed(p, id);
            if (!constant && !done) berth_layout__matmul_integer(p, id);
        }
        if (kind == BERTH_OP_CONV)
            BERTH_TRY(berth_layout__conv(p, id, &done));
        else if (kind == BERTH_OP_CONV_TRANSPOSE)
            BERTH_TRY(berth_layout__conv_transpose(p, id, &done));
        else if (kind == BERTH_OP_MAX_POOL || kind == BERTH_OP_AVERAGE_POOL ||
                 kind == BERTH_OP_GLOBAL_AVERAGE_POOL || kind == BERTH_OP_GLOBAL_MAX_POOL)
            BERTH_TRY(berth_layout__pool(p, id, &done));
        else if (kind == BERTH_OP_ROI_ALIGN)
            BERTH_TRY(berth_layout__roi_align(p, id, &done));
        else if (kind == BERTH_OP_CONCAT)
            done = berth_layout__concat(p, id);
        else if (kind == BERTH_OP_DEVICE_COPY)
            done = convert_copy(p, id);
        else if (berth_op_has(kind, BERTH_TRAIT_ELEMENTWISE))
            done = berth_layout__elementwise(p, id);
        else if (kind == BERTH_OP_MATMUL || kind == BERTH_OP_GEMM)
            berth_layout__matrix(p, id);
        else if (kind == BERTH_OP_MATMUL_BITS)
            bits_matrix(p, id);
        else if (kind == BERTH_OP_RNN || kind == BERTH_OP_GRU || kind == BERTH_OP_LSTM)
            done = convert_recurrent(p, id);
        else if (kind == BERTH_OP_LSTM_INTEGER)
            done = convert_integer_recurrent(p, id);
    }
    if (!done) make_plain(p, id);
    return BERTH_OK;
}

berth_status berth_pass_layout_cpu(berth_module *module, berth_func_id main,
                                   const berth_multi_target *target, bool winograd,
                                   berth_packing *packing) {
    berth_graph *graph = berth_graph_get(module, main);
    pass p = {.module = module,
              .main = main,
              .target = target,
              .scratch = berth_arena_create_child(module->arena)};
    p.winograd = winograd;
    p.packing = packing;
    name_blocks(&p);
    p.value_count = graph->values.count;
    p.only_user = find_only_users(graph, p.scratch);
    if (berth_layout__has_libraries(&p)) p.library_users = berth_library_users(graph, p.scratch);
    p.other = berth_arena_new_array(p.scratch, berth_value_id, p.value_count + 1);
    memset(p.other, 0xff, p.value_count * sizeof(*p.other));
    uint32_t op_count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_new_array(p.scratch, berth_op_id, op_count + 1);
    if (op_count) memcpy(ops, graph->regions.data[0].ops.data, op_count * sizeof(*ops));
    berth_status status = BERTH_OK;
    berth_graph_begin_edit(graph);
    for (uint32_t i = 0; i < op_count && !status; ++i) status = convert(&p, ops[i]);
    berth_graph_end_edit(graph_of(&p));
    uint32_t results = graph_of(&p)->regions.data[0].results.count;
    for (uint32_t i = 0; i < results && !status; ++i) {
        berth_value_id value = graph_of(&p)->regions.data[0].results.data[i];
        if (!has_layout(&p, value)) continue;
        berth_value_id plain =
            berth_layout__convert(&p, value, 0, BERTH_NONE, graph_of(&p)->values.data[value].op);
        graph_of(&p)->values.data[plain].name = graph_of(&p)->values.data[value].name;
        graph_of(&p)->regions.data[0].results.data[i] = plain;
    }
    berth_arena_destroy(p.scratch);
    if (!status) berth_graph_remove_dead(module, main);
    return status;
}
