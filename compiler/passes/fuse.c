#include "compiler/passes/fuse.h"

#include <string.h>

#include "compiler/lower/attention.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/attention.h"
#include "compiler/passes/bindings.h"
#include "compiler/passes/check.h"
#include "compiler/passes/concat.h"
#include "compiler/passes/outline.h"
#include "compiler/passes/producer.h"
#include "compiler/rules.h"
#include "compiler/schedule/work_groups.h"
#include "ir/graph/op_params.h"
#include "planner/planner.h"

enum { max_group_ops = 24 };

typedef struct group {
    BERTH_VEC(berth_op_id) ops;  // in order; the last one's results are the group's
    bool has_reduction;
    bool elementwise_only;
    bool
        sum_first;  // a product that can be computed where it is read, and elementwise operations after it
    bool closed;  // several results, or nothing may follow
    berth_producer_work work;
} group;

typedef struct fuser {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    berth_arena *scratch;
    bool fuse, small;
    uint32_t *uses;          // per value
    berth_op_id *only_user;  // per value: an operation that uses it, the only one where uses is 1
    uint32_t *group_of;      // per op; BERTH_NONE = not grouped
    berth_op_id
        *attention;  // per op: the product that ends the attention of which it is; BERTH_NONE
    BERTH_VEC(group) groups;
} fuser;

static bool groupable(const berth_op *op) {
    return !berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_VIEW);
}

static bool same_shape_and_layout(const berth_module *module, const berth_graph *graph,
                                  berth_value_id a, berth_value_id b) {
    const berth_type *x = berth_type_get(module, graph->values.data[a].type);
    const berth_type *y = berth_type_get(module, graph->values.data[b].type);
    if (x->rank != y->rank || x->layout != y->layout) return false;
    for (int i = 0; i < x->rank; ++i)
        if (x->dims[i] != y->dims[i]) return false;
    return true;
}

// Whether each element of the result is one of a table, at the index that the second operand has in its place.
static bool looks_up_elements(const fuser *f, const berth_op *op) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    if (op->kind != BERTH_OP_GATHER && op->kind != BERTH_OP_GATHER_ELEMENTS) return false;
    const berth_type *table = berth_type_get(f->module, graph->values.data[op->inputs[0]].type);
    return (op->kind == BERTH_OP_GATHER_ELEMENTS || table->rank == 1) &&
           same_shape_and_layout(f->module, graph, op->inputs[1], op->outputs[0]);
}

static bool moves_cheaply(berth_op_kind kind) {
    return kind == BERTH_OP_TRANSPOSE || kind == BERTH_OP_SLICE || kind == BERTH_OP_PAD ||
           kind == BERTH_OP_DEPTH_TO_SPACE || kind == BERTH_OP_SPACE_TO_DEPTH ||
           kind == BERTH_OP_RELAYOUT;
}

// A pool whose windows do not overlap.
static bool pools_once(const fuser *f, const berth_op *op) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_type *x = berth_type_get(f->module, graph->values.data[op->inputs[0]].type);
    berth_window w;
    if (op->kind != BERTH_OP_AVERAGE_POOL && op->kind != BERTH_OP_MAX_POOL) return false;
    berth_status status = berth_window_resolve(f->module, op, x->dims, x->rank, NULL, &w);
    bool once = !status;
    for (int i = 0; once && i < w.spatial; ++i) once = w.strides[i] >= w.kernel[i];
    berth_status_ignore(status);
    return once;
}

// Where memory is what counts, such pools read integers in place of the floats that they stand for.
static bool reads_operand_once(const fuser *f, const berth_op *op) {
    bool small = f->target && f->target->executor == BERTH_EXECUTOR_AOT;
    if (berth_lower_has_sum(op) && !f->small) return false;  // has tiles, which read more than once
    return berth_lower_reads_once(f->module, berth_graph_get(f->module, f->main), op) ||
           (small && op->output_count == 1 && pools_once(f, op));
}

// Whether a group's one reduction is of those that store wherever they are told to
// (compiler/lower), and `op` adds a constant border in space after it.
static bool pads_result(const fuser *f, const berth_op *op, const group *g) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t convolutions = 0;
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < g->ops.count; ++i) {
        berth_op_kind kind = graph->ops.data[g->ops.data[i]].kind;
        reductions += berth_op_has(kind, BERTH_TRAIT_REDUCTION);
        convolutions += kind == BERTH_OP_CONV || kind == BERTH_OP_CONV_TRANSPOSE ||
                        kind == BERTH_OP_WINOGRAD_OUTPUT || kind == BERTH_OP_WINOGRAD_CONV;
    }
    if (op->kind != BERTH_OP_PAD || convolutions != 1 || reductions != 1 || op->input_count > 3 ||
        strcmp(berth_attrs_string(f->module, &op->attrs, "mode", "constant"), "constant") != 0)
        return false;
    const berth_tensor *pads = berth_graph_raw_constant_of(f->module, graph, op->inputs[1]);
    int64_t count = pads ? berth_tensor_element_count(pads) : 0;
    for (int64_t i = 0; i < count; ++i) {
        bool space = i % (count / 2) >= 2;  // after batch and channels
        int64_t amount = berth_tensor_get_i64(pads, i);
        if (amount < 0 || (amount > 0 && !space)) return false;
    }
    return count > 0;
}

// Where a matrix unit multiplies integers, a constant border is put around the operand while its tile is staged
// (schedule/matrix_stage.c): zero points of padding cost no map of their own.
static bool pads_operand(const fuser *f, const berth_op *op, const group *g) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *pad = &graph->ops.data[g->ops.data[0]];
    uint32_t device =
        f->target ? berth_plan_device_of(f->module, f->target, op->device) : BERTH_NO_INDEX;
    if (device == BERTH_NO_INDEX || op->kind != BERTH_OP_CONV_INTEGER || op->input_count > 2 ||
        g->ops.count != 1 || pad->kind != BERTH_OP_PAD || pad->input_count > 3 ||
        berth_attrs_int(f->module, &op->attrs, "group", 1) != 1 ||
        strcmp(berth_attrs_string(f->module, &pad->attrs, "mode", "constant"), "constant") != 0 ||
        !berth_matrix_units_take(
            f->target->devices[device].target,
            berth_type_get(f->module, graph->values.data[op->inputs[0]].type)->dtype,
            BERTH_DTYPE_I8))
        return false;
    return pad->input_count < 3 || pad->inputs[2] == BERTH_NONE ||
           berth_graph_raw_constant_of(f->module, graph, pad->inputs[2]);
}

static bool device_lets_join(const fuser *f, berth_op_id id, berth_op_id producer) {
    berth_rules_question question;
    const berth_kind_rules *rules =
        berth_rules_of(f->module, f->main, id, f->target, f->scratch, &question);
    return !rules || !rules->follows || rules->follows(&question, producer);
}

// What takes a part of a model's input and quantises it, or does one of both.
static bool is_input_window(const berth_graph *graph, const group *g) {
    const berth_op *first = &graph->ops.data[g->ops.data[0]];
    for (uint32_t i = 0; i < g->ops.count; ++i) {
        berth_op_kind kind = graph->ops.data[g->ops.data[i]].kind;
        if (kind != BERTH_OP_QUANTIZE_LINEAR && (kind != BERTH_OP_SLICE || i > 0)) return false;
    }
    return g->ops.count <= 2 && graph->values.data[first->inputs[0]].op == BERTH_NONE;
}

// Where memory is what counts: a model's input is quantised as a convolution of bytes copies it
// (schedule/plain_columns.h: once per strip, not once per product), when it is larger than the result;
// and a patch, whatever the convolution is of, reads its rows where they are.
static bool quantises_input(const fuser *f, const berth_op *op, const group *g) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    bool slices = graph->ops.data[g->ops.data[0]].kind == BERTH_OP_SLICE;
    if (!f->target || f->target->executor != BERTH_EXECUTOR_AOT ||
        (op->kind != BERTH_OP_CONV_INTEGER && op->kind != BERTH_OP_CONV) ||
        !is_input_window(graph, g))
        return false;
    if (slices && g->ops.count == 1) return true;
    if (op->kind != BERTH_OP_CONV_INTEGER) return false;
    const berth_type *x = berth_type_get(f->module, graph->values.data[op->inputs[0]].type);
    const berth_type *y = berth_type_get(f->module, graph->values.data[op->outputs[0]].type);
    const berth_type *w = berth_type_get(f->module, graph->values.data[op->inputs[1]].type);
    int64_t read = 1, made = 1;
    for (int i = 0; i < x->rank; ++i) read *= x->dims[i];
    for (int i = 0; i < y->rank; ++i) made *= y->dims[i];
    return w->layout && (read > made || slices) &&
           berth_attrs_int(f->module, &op->attrs, "group", 1) == 1;
}

// A product, with what follows it, whose sums a product of one column takes one after the other: they need no
// place. Larger tiles of sums would be faster, so small code alone does it.
static bool computed_inside(const fuser *f, const berth_op *op, const group *g) {
    return f->small && g->sum_first && berth_lower_has_sum(op);
}

// What a kernel with operation `id` may bind, less what lowering may add.
static uint32_t most_bindings(const fuser *f, berth_op_id id) {
    enum { added = 2 };  // workspace of a reduction's parts
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t device = f->target
                          ? berth_plan_device_of(f->module, f->target, graph->ops.data[id].device)
                          : BERTH_NO_INDEX;
    uint32_t most = device == BERTH_NO_INDEX
                        ? berth_bindings_least(f->target)
                        : berth_target_max_bindings(f->target->devices[device].target);
    return most > added ? most - added : 0;
}

// Whether a kernel of the group, of another one (or NULL) and of `id` after both binds no more buffers
// than its device takes, beside those that lowering may add.
static bool bindings_suffice(const fuser *f, const group *g, const group *other, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t most = most_bindings(f, id);
    berth_op_id ops[2 * max_group_ops + 1];
    uint32_t count = 0, upper = 0;
    const group *all[] = {g, other};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); ++k)
        for (uint32_t i = 0; all[k] && i < all[k]->ops.count; ++i)
            ops[count++] = all[k]->ops.data[i];
    ops[count++] = id;
    for (uint32_t i = 0; i < count; ++i) upper += graph->ops.data[ops[i]].input_count;
    if (upper + graph->ops.data[id].output_count <= most) return true;
    return berth_bindings_suffice(f->module, graph, ops, count, most);
}

// Whether a group only computes elements where it reads them, along rows. What looks elements up does, as far as
// its indices go.
static bool follows_rows(const fuser *f, const group *g) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    for (uint32_t i = 0; i < g->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[g->ops.data[i]];
        if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) && op->kind != BERTH_OP_CONCAT &&
            op->kind != BERTH_OP_SLICE && !looks_up_elements(f, op))
            return false;
    }
    return true;
}

// Whether op may join the group that makes operand `value`.
static bool may_join(const fuser *f, berth_op_id id, berth_value_id value, uint32_t *out_group) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *op = &graph->ops.data[id];
    if (value == BERTH_NONE || f->uses[value] != 1) return false;
    berth_op_id producer = graph->values.data[value].op;
    if (producer == BERTH_NONE || f->group_of[producer] == BERTH_NONE) return false;
    const group *g = &f->groups.data[f->group_of[producer]];
    if (g->closed || g->ops.count >= max_group_ops || g->ops.count == 0 ||
        g->ops.data[g->ops.count - 1] != producer)
        return false;
    if (graph->ops.data[producer].device != op->device || !device_lets_join(f, id, producer) ||
        !bindings_suffice(f, g, NULL, id))
        return false;
    *out_group = f->group_of[producer];
    if (g->ops.count == 1 && berth_producer_reads_across(f->module, graph, f->target, id, producer))
        return true;
    if (reads_operand_once(f, op))
        return op->inputs[0] == value && (g->elementwise_only || computed_inside(f, op, g));
    if (op->inputs[0] == value && (quantises_input(f, op, g) || pads_operand(f, op, g)))
        return true;
    if (op->inputs[0] == value && g->elementwise_only &&
        berth_producer_pays(f->module, graph, f->target, id, &g->work))
        return true;
    if (berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE))
        return same_shape_and_layout(f->module, graph, value, op->outputs[0]);
    if (g->has_reduction) return pads_result(f, op, g);
    if (looks_up_elements(f, op) && op->inputs[0] != value) return follows_rows(f, g);
    return moves_cheaply(op->kind);
}

// What an operation alone reads and is computed in its group: a dequantize_linear, whatever else the group does, as
// reading integers moves fewer bytes than the floats that they stand for; a slice, which only says where to read; and
// where both are operations on elements, a whole group.
static bool is_taken(const fuser *f, const group *from, const group *into) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_op_kind first = graph->ops.data[from->ops.data[0]].kind;
    if (from->ops.count == 1 && first == BERTH_OP_DEQUANTIZE_LINEAR) return true;
    return follows_rows(f, from) && follows_rows(f, into);
}

// Whether `op` reads operand i in the group that makes it: where it writes its result, element by element, or as a part
// of what it joins, which a slice is.
static bool reads_inside(const fuser *f, berth_op_id id, uint32_t i, uint32_t *out_from) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *op = &graph->ops.data[id];
    if (berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE))
        return may_join(f, id, op->inputs[i], out_from);
    if (op->kind != BERTH_OP_CONCAT || f->uses[op->inputs[i]] != 1) return false;
    berth_op_id producer = graph->values.data[op->inputs[i]].op;
    if (producer == BERTH_NONE || f->group_of[producer] == BERTH_NONE) return false;
    *out_from = f->group_of[producer];
    return graph->ops.data[producer].kind == BERTH_OP_SLICE &&
           f->groups.data[*out_from].ops.count == 1 &&
           graph->ops.data[producer].device == op->device && device_lets_join(f, id, producer);
}

static void take_operands(fuser *f, berth_op_id id, uint32_t into) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *op = &graph->ops.data[id];
    if (op->output_count != 1 || f->groups.data[into].closed) return;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        uint32_t from = BERTH_NONE;
        group *to = &f->groups.data[into];
        if (!reads_inside(f, id, i, &from) || from == into) continue;
        group *taken = &f->groups.data[from];
        uint32_t count = taken->ops.count;
        if (!is_taken(f, taken, to) || to->ops.count + count >= max_group_ops ||
            !bindings_suffice(f, taken, to, id))
            continue;
        for (uint32_t k = 0; k < count; ++k) {
            berth_vec_push(f->scratch, &to->ops, taken->ops.data[k]);
            f->group_of[taken->ops.data[k]] = into;
        }
        memmove(to->ops.data + count, to->ops.data,
                (to->ops.count - count) * sizeof(to->ops.data[0]));
        memcpy(to->ops.data, taken->ops.data, count * sizeof(to->ops.data[0]));
        to->elementwise_only &= taken->elementwise_only;
        taken->ops.count = 0;
    }
}

// A dequantize_linear for one operation that takes several operands is not yet after the group
// that makes its integers: where another operand is better off in the operation's group, this one
// would be stored as floats. Nor is one for an operation that reads every integer once, where memory
// is what counts.
static bool waits_for_user(const fuser *f, const berth_op *op) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    if (op->kind != BERTH_OP_DEQUANTIZE_LINEAR || f->uses[op->outputs[0]] != 1) return false;
    berth_op_id user = f->only_user[op->outputs[0]];
    if (user == BERTH_NONE) return false;
    const berth_op *next = &graph->ops.data[user];
    bool small = f->target && f->target->executor == BERTH_EXECUTOR_AOT;
    if (small && next->device == op->device && reads_operand_once(f, next)) return true;
    return berth_op_has(next->kind, BERTH_TRAIT_ELEMENTWISE) && next->input_count > 1 &&
           next->output_count == 1 && next->device == op->device &&
           same_shape_and_layout(f->module, graph, op->outputs[0], next->outputs[0]);
}

// The operand of an operation that is read after the group that makes its integers: of those that
// could be, one after a reduction, the last.
static void place_waiting(fuser *f, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *op = &graph->ops.data[id];
    berth_op_id moved = BERTH_NONE;
    uint32_t best = BERTH_NONE;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        uint32_t single = BERTH_NONE;
        uint32_t candidate = BERTH_NONE;
        if (!may_join(f, id, op->inputs[i], &single)) continue;
        const group *g = &f->groups.data[single];
        const berth_op *first = &graph->ops.data[g->ops.data[0]];
        if (g->ops.count != 1 || !waits_for_user(f, first) ||
            !may_join(f, g->ops.data[0], first->inputs[0], &candidate))
            continue;
        if (!f->groups.data[candidate].has_reduction || (best != BERTH_NONE && candidate < best))
            continue;
        best = candidate;
        moved = g->ops.data[0];
    }
    if (best == BERTH_NONE) return;
    f->groups.data[f->group_of[moved]].ops.count = 0;
    berth_vec_push(f->scratch, &f->groups.data[best].ops, moved);
    f->group_of[moved] = best;
}

static void assign(fuser *f, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_op *op = &graph->ops.data[id];
    uint32_t best = BERTH_NONE;
    bool joins = f->fuse && op->output_count == 1 && !waits_for_user(f, op);
    if (joins && op->input_count > 1 && berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE))
        place_waiting(f, id);
    for (uint32_t i = 0; joins && i < op->input_count; ++i) {
        uint32_t candidate = BERTH_NONE;
        if (!may_join(f, id, op->inputs[i], &candidate)) continue;
        bool better =
            best == BERTH_NONE ||
            (f->groups.data[candidate].has_reduction && !f->groups.data[best].has_reduction) ||
            (f->groups.data[candidate].has_reduction == f->groups.data[best].has_reduction &&
             candidate > best);  // the later one: its value is still in cache
        if (better) best = candidate;
    }
    if (best == BERTH_NONE) {
        bool alone = f->fuse && op->kind == BERTH_OP_CONCAT &&
                     berth_concat_is_free(f->module, graph, op, f->scratch);
        group fresh = {.closed = alone || op->output_count != 1, .elementwise_only = true};
        berth_vec_push(f->scratch, &f->groups, fresh);
        best = f->groups.count - 1;
    }
    if (f->fuse) take_operands(f, id, best);
    group *g = &f->groups.data[best];
    berth_vec_push(f->scratch, &g->ops, id);
    g->closed |= op->kind == BERTH_OP_PAD && g->has_reduction;
    g->sum_first = g->ops.count == 1
                       ? berth_lower_has_sum(op)
                       : g->sum_first && berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE);
    g->has_reduction |= berth_op_has(op->kind, BERTH_TRAIT_REDUCTION);
    g->elementwise_only &= berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE);
    if (g->elementwise_only) berth_producer_add_work(&g->work, f->module, graph, op);
    f->group_of[id] = best;
}

// ---- attention ----------------------------------------------------------------------------------

// Marks what one kernel computes of it.
static void find_attention(fuser *f, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_attention found;
    if (!berth_attention_find(f->module, graph, f->uses, id, &found)) return;
    for (uint32_t i = 0; i < found.count; ++i)
        if (graph->ops.data[found.ops[i]].device != graph->ops.data[id].device ||
            f->attention[found.ops[i]] != BERTH_NONE)
            return;
    bool binds =
        berth_bindings_suffice(f->module, graph, found.ops, found.count, most_bindings(f, id));
    if (!binds || !berth_attention_pays(f->module, graph, f->target, &found)) return;
    for (uint32_t i = 0; i < found.count; ++i) f->attention[found.ops[i]] = id;
}

// An operation of an attention: all of it is one group, which operations after it may join.
static void assign_attention(fuser *f, berth_op_id id) {
    berth_op_id last = f->attention[id];
    uint32_t into = f->group_of[last];
    if (into == BERTH_NONE) {
        group fresh = {.has_reduction = true};
        berth_vec_push(f->scratch, &f->groups, fresh);
        into = f->group_of[last] = f->groups.count - 1;
    }
    berth_vec_push(f->scratch, &f->groups.data[into].ops, id);
    f->group_of[id] = into;
}

// ---- moving a group into its function -----------------------------------------------------------

static const char *group_name(const fuser *f, const group *g, uint32_t index) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_strbuf name = berth_strbuf_make(f->scratch);
    berth_strbuf_addf(&name, "k%u", index);
    for (uint32_t i = 0, words = 0; i < g->ops.count && words < 4; ++i) {
        berth_op_id id = g->ops.data[i];
        bool attends = f->attention[id] != BERTH_NONE;
        if (attends && f->attention[id] != id) continue;  // all of it has one name
        const char *word = berth_op_facts_get(graph->ops.data[id].kind)->name;
        berth_strbuf_addf(&name, "_%s", attends ? "attention" : word);
        words++;
    }
    return berth_strbuf_text(&name);
}

static berth_loc_id group_loc(const fuser *f, const group *g) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    berth_loc_id *parts = berth_arena_new_array(f->scratch, berth_loc_id, g->ops.count);
    for (uint32_t i = 0; i < g->ops.count; ++i) parts[i] = graph->ops.data[g->ops.data[i]].loc;
    return berth_loc_fuse(f->module, parts, g->ops.count);
}

// Makes the function, puts a call in place of the group's last operation, unlinks the operations.
static void move_group(fuser *f, berth_outliner *outliner, uint32_t index) {
    berth_module *module = f->module;
    const group *g = &f->groups.data[index];
    berth_loc_id loc = group_loc(f, g);
    berth_op_id last_id = g->ops.data[g->ops.count - 1];
    berth_op last = berth_graph_get(module, f->main)->ops.data[last_id];
    berth_func_id function = berth_outline(
        outliner, group_name(f, g, index), loc,
        &(berth_outlined){g->ops.data, g->ops.count, last.outputs, last.output_count});
    berth_attrs_set_int(module, &berth_module_function(module, function)->attrs, "primitive", 1);

    // The last operation turns into the call, so that its results (and their uses) stay.
    berth_op *call = &berth_graph_get(module, f->main)->ops.data[last_id];
    call->kind = BERTH_OP_CALL;
    call->input_count = outliner->operands.count;
    call->inputs = berth_arena_copy(module->arena, outliner->operands.data,
                                    outliner->operands.count * sizeof(berth_value_id));
    call->loc = loc;
    memset(&call->attrs, 0, sizeof(call->attrs));
    berth_attrs_set(module, &call->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
    berth_graph *graph = berth_graph_get(module, f->main);
    for (uint32_t i = 0; i + 1 < g->ops.count; ++i)
        graph->ops.data[g->ops.data[i]].region = BERTH_NONE;  // unlinked from the list below
}

static void drop_unlinked(berth_region *region, const berth_graph *graph) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < region->ops.count; ++i)
        if (graph->ops.data[region->ops.data[i]].region != BERTH_NONE)
            region->ops.data[kept++] = region->ops.data[i];
    region->ops.count = kept;
}

berth_status berth_fuse(berth_module *module, berth_func_id main, const berth_multi_target *target,
                        bool fuse, bool small) {
    berth_graph *graph = berth_graph_get(module, main);
    fuser f = {.module = module,
               .main = main,
               .target = target,
               .fuse = fuse,
               .small = small,
               .scratch = berth_arena_create_child(module->arena)};
    f.uses = berth_graph_count_uses(graph, f.scratch);
    f.only_user = berth_arena_new_array(f.scratch, berth_op_id, graph->values.count + 1);
    memset(f.only_user, 0xff, graph->values.count * sizeof(*f.only_user));
    f.group_of = berth_arena_new_array(f.scratch, uint32_t, graph->ops.count);
    memset(f.group_of, 0xff, graph->ops.count * sizeof(*f.group_of));
    f.attention = berth_arena_new_array(f.scratch, berth_op_id, graph->ops.count);
    memset(f.attention, 0xff, graph->ops.count * sizeof(*f.attention));
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->region_count > 0) {
            berth_arena_destroy(f.scratch);
            return berth_refuse_control_flow(module, op);
        }
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) f.only_user[op->inputs[k]] = root->ops.data[i];
    }
    for (uint32_t i = 0; fuse && i < root->ops.count; ++i) find_attention(&f, root->ops.data[i]);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        if (f.attention[id] != BERTH_NONE)
            assign_attention(&f, id);
        else if (groupable(&graph->ops.data[id]))
            assign(&f, id);
    }
    berth_outliner outliner = berth_outliner_make(module, main, f.scratch, berth_bindings_literal);
    for (uint32_t i = 0; i < f.groups.count; ++i)
        if (f.groups.data[i].ops.count) move_group(&f, &outliner, i);
    graph = berth_graph_get(module, main);
    drop_unlinked(&graph->regions.data[0], graph);
    berth_arena_destroy(f.scratch);
    return BERTH_OK;
}
