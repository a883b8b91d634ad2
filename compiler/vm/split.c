// Dividing a segment by what changes from one run to the next.
#include <string.h>

#include "base/str.h"
#include "compiler/passes/fold.h"
#include "compiler/vm/emitter.h"

// A part costs copies of its inputs and outputs and a start, which less than this many operations on
// average do not make up for.
enum { least_ops_per_part = 3 };
// Of the operations, that keep their shapes: else what is compiled anew hardly shrinks, and the parts lose
// what is fused across them (the gates of a convolutional network, whose image changes).
enum { least_kept_percent = 30 };

typedef struct splitter {
    berth_module *module;
    const berth_graph *graph;
    const berth_vm_segment *segment;
    berth_arena *arena;
    bool *changes;      // per value of the graph that the segment sees
    bool *is_inside;    // per value: an operation of the segment makes it
    bool *op_changes;   // per operation of the segment
    uint32_t *part_of;  // per operation of the segment
    uint32_t *made_in;  // per value: part + 1, while parts are being found; 0 = none yet
    uint32_t *slots;    // per value: + 1
    uint32_t part_count;
} splitter;

static const berth_op *op_at(const splitter *s, uint32_t index) {
    return &s->graph->ops.data[s->segment->ops[index]];
}

// ---- what changes -------------------------------------------------------------------------------

// The segment for inputs of certain shapes, with all that it computes as results, types inferred and
// constants folded.
typedef struct sample {
    berth_module *module;
    const berth_graph *graph;
    const berth_value_id *results;
} sample;

static berth_status take_sample(const splitter *s, const berth_value_id *values, uint32_t count,
                                const berth_tensor *inputs, berth_arena *arena, sample *out) {
    berth_vm_segment all = *s->segment;
    all.outputs = values;
    all.output_count = count;
    out->module = berth_vm_segment_module(s->module, &all, "sample", inputs, arena);
    berth_func_id main = berth_module_find_function(out->module, "main");
    berth_fold_options options = {.keep_quantized = true};
    BERTH_TRY(berth_pass_fold(out->module, main, &options));
    out->graph = berth_graph_get(out->module, main);
    out->results = out->graph->regions.data[0].results.data;
    return BERTH_OK;
}

static bool is_same_tensor(const berth_tensor *a, const berth_tensor *b) {
    if (!a || !b) return a == b;
    size_t size = berth_tensor_size_bytes(a);
    return size == berth_tensor_size_bytes(b) && (size == 0 || memcmp(a->data, b->data, size) == 0);
}

// Types come from different modules.
static bool is_same_value(const sample *a, const sample *b, uint32_t index) {
    const berth_type *x = berth_type_get(a->module, a->graph->values.data[a->results[index]].type);
    const berth_type *y = berth_type_get(b->module, b->graph->values.data[b->results[index]].type);
    if (x->kind != BERTH_TYPE_TENSOR || y->kind != BERTH_TYPE_TENSOR || x->dtype != y->dtype ||
        x->rank != y->rank || !berth_type_is_static(x) || !berth_type_is_static(y))
        return false;
    for (int d = 0; d < x->rank; ++d)
        if (x->dims[d] != y->dims[d]) return false;
    return is_same_tensor(berth_graph_raw_constant_of(a->module, a->graph, a->results[index]),
                          berth_graph_raw_constant_of(b->module, b->graph, b->results[index]));
}

static bool is_same_input(const splitter *s, uint32_t index, const berth_tensor *before,
                          const berth_tensor *now) {
    if (before->dtype != now->dtype || before->rank != now->rank) return false;
    for (int d = 0; d < now->rank; ++d)
        if (before->dims[d] != now->dims[d]) return false;
    return !s->segment->known[index] || is_same_tensor(before, now);
}

static berth_status find_changes(splitter *s, const berth_tensor *before, const berth_tensor *now) {
    berth_arena *arena = berth_arena_create_child(s->arena);
    BERTH_VEC(berth_value_id) values = {0};
    for (uint32_t i = 0; i < s->segment->op_count; ++i)
        for (uint32_t k = 0; k < op_at(s, i)->output_count; ++k)
            berth_vec_push(arena, &values, op_at(s, i)->outputs[k]);
    sample a, b;
    BERTH_TRY(take_sample(s, values.data, values.count, before, arena, &a));
    BERTH_TRY(take_sample(s, values.data, values.count, now, arena, &b));
    for (uint32_t i = 0; i < values.count; ++i) {
        s->changes[values.data[i]] = !is_same_value(&a, &b, i);
        s->is_inside[values.data[i]] = true;
    }
    for (uint32_t i = 0; i < s->segment->input_count; ++i)
        s->changes[s->segment->inputs[i]] = !is_same_input(s, i, &before[i], &now[i]);
    for (uint32_t i = 0; i < s->segment->op_count; ++i) {
        const berth_op *op = op_at(s, i);
        for (uint32_t k = 0; k < op->input_count; ++k)
            s->op_changes[i] |= op->inputs[k] != BERTH_NONE && s->changes[op->inputs[k]];
        for (uint32_t k = 0; k < op->output_count; ++k)
            s->op_changes[i] |= s->changes[op->outputs[k]];
    }
    berth_arena_destroy(arena);
    return BERTH_OK;
}

// ---- parts --------------------------------------------------------------------------------------

// Whether all operands are there: from outside, or from operations that have a part.
static bool is_ready(const splitter *s, const berth_op *op) {
    for (uint32_t k = 0; k < op->input_count; ++k)
        if (op->inputs[k] != BERTH_NONE && s->is_inside[op->inputs[k]] &&
            !s->made_in[op->inputs[k]])
            return false;
    return true;
}

// As many operations as possible of one kind, then of the other. Returns the number of parts.
static uint32_t find_parts(splitter *s, bool first_changes) {
    uint32_t left = s->segment->op_count, part = 0;
    memset(s->made_in, 0, (s->graph->values.count + 1) * sizeof(uint32_t));
    memset(s->part_of, 0xff, (s->segment->op_count + 1) * sizeof(uint32_t));
    for (bool changing = first_changes; left > 0; changing = !changing) {
        uint32_t before = left;
        for (uint32_t i = 0; i < s->segment->op_count; ++i) {
            const berth_op *op = op_at(s, i);
            if (s->part_of[i] != UINT32_MAX || s->op_changes[i] != changing || !is_ready(s, op))
                continue;
            s->part_of[i] = part;
            for (uint32_t k = 0; k < op->output_count; ++k) s->made_in[op->outputs[k]] = part + 1;
            left--;
        }
        part += left < before;
    }
    return part;
}

// The last part in which an operation that changes can be: that of the first that reads it, or, where
// that one does not change, the part before.
static uint32_t latest_part(const berth_op *op, const uint32_t *read_in) {
    uint32_t latest = UINT32_MAX;
    for (uint32_t k = 0; k < op->output_count; ++k)
        if (read_in[op->outputs[k]] < latest) latest = read_in[op->outputs[k]];
    return latest;
}

// Operations that change go as late as possible, next to what needs them: what is done to one layer's
// cache (a transposition) belongs to that layer, not to the first part that could have it. Equal layers
// are then equal parts, and one of them is compiled.
static void delay_changing(splitter *s) {
    berth_arena *arena = berth_arena_create_child(s->arena);
    uint32_t values = s->graph->values.count + 1;
    uint32_t *read_in =
        berth_arena_new_array(arena, uint32_t, values);  // the last part for a value
    memset(read_in, 0xff, values * sizeof(uint32_t));
    for (uint32_t i = s->segment->op_count; i-- > 0;) {
        const berth_op *op = op_at(s, i);
        uint32_t latest = s->op_changes[i] ? latest_part(op, read_in) : UINT32_MAX;
        if (latest != UINT32_MAX) s->part_of[i] = latest;
        for (uint32_t k = 0; k < op->output_count; ++k)
            s->made_in[op->outputs[k]] = s->part_of[i] + 1;
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_value_id value = op->inputs[k];
            if (value == BERTH_NONE || !s->is_inside[value]) continue;
            uint32_t here = s->part_of[i] - !s->op_changes[i];
            if (here < read_in[value]) read_in[value] = here;
        }
    }
    berth_arena_destroy(arena);
}

// What other changing parts need, too (a mask that all layers share), becomes a part before the rest of
// its own, so that the first of equal layers is like the others. Returns the number of parts.
static uint32_t part_what_is_shared(splitter *s, uint32_t part_count) {
    berth_arena *arena = berth_arena_create_child(s->arena);
    bool *wanted = berth_arena_new_array(arena, bool, s->graph->values.count + 1);
    uint32_t *number = berth_arena_new_array(arena, uint32_t, 2 * (size_t)part_count + 2);
    for (uint32_t i = s->segment->op_count; i-- > 0;) {
        const berth_op *op = op_at(s, i);
        bool is_early = false;
        for (uint32_t k = 0; k < op->output_count; ++k) is_early |= wanted[op->outputs[k]];
        is_early &= s->op_changes[i];
        for (uint32_t k = 0; k < op->input_count && s->op_changes[i]; ++k) {
            berth_value_id value = op->inputs[k];
            if (value == BERTH_NONE || !s->is_inside[value]) continue;
            bool from_other = s->made_in[value] != s->part_of[i] + 1;
            wanted[value] |= from_other || is_early;
        }
        s->part_of[i] = 2 * s->part_of[i] + !is_early;
        number[s->part_of[i]] = 1;
    }
    uint32_t count = 0;
    for (uint32_t p = 0; p < 2 * part_count; ++p) number[p] = number[p] ? count++ : 0;
    for (uint32_t i = 0; i < s->segment->op_count; ++i) s->part_of[i] = number[s->part_of[i]];
    berth_arena_destroy(arena);
    return count;
}

// ---- what two parts have in common --------------------------------------------------------------

static void add(berth_strbuf *text, const void *data, size_t size_bytes) {
    berth_strbuf_add_n(text, data, size_bytes);
}

static void add_number(berth_strbuf *text, int64_t number) {
    add(text, &number, sizeof(number));
}

// Small constants by their content, others by their place in the model.
static void add_tensor(berth_strbuf *text, const berth_tensor *tensor) {
    enum { small_bytes = 256 };
    size_t size = berth_tensor_size_bytes(tensor);
    add_number(text, tensor->dtype);
    add_number(text, tensor->rank);
    add(text, tensor->dims, (size_t)tensor->rank * sizeof(*tensor->dims));
    if (size > small_bytes)
        add_number(text, (int64_t)(uintptr_t)tensor->data);
    else if (size)
        add(text, tensor->data, size);
}

static void add_attr(berth_strbuf *text, const berth_attr *attr) {
    add_number(text, attr->name);
    add_number(text, attr->kind);
    switch (attr->kind) {
    case BERTH_ATTR_INT: add_number(text, attr->i); break;
    case BERTH_ATTR_FLOAT: add(text, &attr->f, sizeof(attr->f)); break;
    case BERTH_ATTR_STRING: add_number(text, attr->s); break;
    case BERTH_ATTR_INTS: add(text, attr->ints, attr->count * sizeof(*attr->ints)); break;
    case BERTH_ATTR_FLOATS: add(text, attr->floats, attr->count * sizeof(*attr->floats)); break;
    case BERTH_ATTR_STRINGS: add(text, attr->strings, attr->count * sizeof(*attr->strings)); break;
    case BERTH_ATTR_DTYPE: add_number(text, attr->dtype); break;
    case BERTH_ATTR_TENSOR: add_tensor(text, attr->tensor); break;
    case BERTH_ATTR_FUNCTION: add_number(text, attr->function); break;
    case BERTH_ATTR_DEVICE: add_number(text, attr->device); break;
    case BERTH_ATTR_TYPE: add_number(text, attr->type); break;
    case BERTH_ATTR_OPAQUE: add_number(text, (int64_t)(uintptr_t)attr); break;
    }
    add_number(text, attr->count);
}

// All that its programs follow from, but for the names of its nodes. Values are numbered in the order
// in which they first come.
static berth_hash128 key_of(const splitter *s, const berth_vm_segment *part) {
    berth_arena *arena = berth_arena_create_child(s->arena);
    berth_strbuf text = berth_strbuf_make(arena);
    uint32_t *number = berth_arena_new_array(arena, uint32_t, s->graph->values.count + 1);
    uint32_t next = 0;
    for (uint32_t i = 0; i < part->input_count; ++i) {
        number[part->inputs[i]] = ++next;
        add_number(&text, part->known[i]);
    }
    for (uint32_t i = 0; i < part->op_count; ++i) {
        const berth_op *op = &s->graph->ops.data[part->ops[i]];
        add_number(&text, op->kind);
        add_number(&text, op->input_count);
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_value_id value = op->inputs[k];
            add_number(&text, value == BERTH_NONE ? -1 : (int64_t)number[value]);
            if (value == BERTH_NONE || number[value]) continue;
            const berth_tensor *held = berth_graph_raw_constant_of(s->module, s->graph, value);
            if (held) add_tensor(&text, held);
        }
        add_number(&text, op->output_count);
        for (uint32_t k = 0; k < op->output_count; ++k) number[op->outputs[k]] = ++next;
        add_number(&text, op->attrs.items.count);
        for (uint32_t k = 0; k < op->attrs.items.count; ++k)
            add_attr(&text, &op->attrs.items.data[k]);
    }
    for (uint32_t i = 0; i < part->output_count; ++i) add_number(&text, number[part->outputs[i]]);
    berth_hash128 hash = berth_hash128_of(text.data, text.length);
    berth_arena_destroy(arena);
    return hash;
}

// ---- steps --------------------------------------------------------------------------------------

static uint32_t slot_of(splitter *s, berth_value_id value, uint32_t *next) {
    if (!s->slots[value]) s->slots[value] = ++*next;
    return s->slots[value] - 1;
}

static const uint32_t *slots_of(splitter *s, const berth_value_id *values, uint32_t count,
                                uint32_t *next) {
    uint32_t *slots = berth_arena_new_array(s->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) slots[i] = slot_of(s, values[i], next);
    return slots;
}

// Slots that a step is the last to see, but for the segment's own inputs and outputs.
static void find_last(splitter *s, berth_vm_split_step *steps, const berth_vm_split *split) {
    bool *seen = berth_arena_new_array(s->arena, bool, split->slot_count + 1);
    for (uint32_t i = 0; i < s->segment->input_count; ++i) seen[i] = true;
    for (uint32_t i = 0; i < s->segment->output_count; ++i)
        seen[s->slots[s->segment->outputs[i]] - 1] = true;
    for (uint32_t p = split->step_count; p-- > 0;) {
        const berth_vm_segment *part = &steps[p].segment;
        uint32_t *last =
            berth_arena_new_array(s->arena, uint32_t, part->input_count + part->output_count + 1);
        for (uint32_t i = 0; i < part->input_count + part->output_count; ++i) {
            uint32_t slot = i < part->input_count ? steps[p].inputs[i]
                                                  : steps[p].outputs[i - part->input_count];
            if (!seen[slot]) last[steps[p].last_count++] = slot;
            seen[slot] = true;
        }
        steps[p].last = last;
    }
}

static void make_steps(splitter *s, berth_vm_split *out_split) {
    uint32_t next = 0, values = s->graph->values.count + 1;
    vm_emitter e = {.module = s->module,
                    .arena = s->arena,
                    .function = s->segment->function,
                    .graph = s->graph};
    e.in_open = berth_arena_new_array(s->arena, bool, values);
    e.marks = berth_arena_new_array(s->arena, vm_mark, values);
    e.uses = berth_graph_count_uses(s->graph, s->arena);
    berth_vm_split_step *steps =
        berth_arena_new_array(s->arena, berth_vm_split_step, s->part_count);
    for (uint32_t i = 0; i < s->segment->input_count; ++i)
        (void)slot_of(s, s->segment->inputs[i], &next);
    for (uint32_t p = 0; p < s->part_count; ++p) {
        e.open.count = 0;
        bool changes = false;
        for (uint32_t i = 0; i < s->segment->op_count; ++i) {
            if (s->part_of[i] != p) continue;
            vm_add_to_segment(&e, s->segment->ops[i]);
            changes |= s->op_changes[i];
        }
        vm_gathered g = vm_gather(&e);
        if (g.outputs.count == 0) continue;  // nobody needs what it computes
        berth_vm_segment part = vm_gathered_segment(&e, &g);
        part.changes = changes;
        berth_vm_split_step *step = &steps[out_split->step_count++];
        *step = (berth_vm_split_step){.segment = part, .key = key_of(s, &part)};
        step->inputs = slots_of(s, part.inputs, part.input_count, &next);
        step->outputs = slots_of(s, part.outputs, part.output_count, &next);
    }
    out_split->outputs = slots_of(s, s->segment->outputs, s->segment->output_count, &next);
    out_split->slot_count = next;
    out_split->steps = steps;
    find_last(s, steps, out_split);
}

typedef struct split_job {
    splitter s;
    const berth_tensor *before, *now;
    berth_vm_split *out_split;
} split_job;

static berth_status run_split(void *user) {
    split_job *job = user;
    splitter *s = &job->s;
    uint32_t values = s->graph->values.count + 1, ops = s->segment->op_count + 1;
    s->changes = berth_arena_new_array(s->arena, bool, values);
    s->is_inside = berth_arena_new_array(s->arena, bool, values);
    s->op_changes = berth_arena_new_array(s->arena, bool, ops);
    s->part_of = berth_arena_new_array(s->arena, uint32_t, ops);
    s->made_in = berth_arena_new_array(s->arena, uint32_t, values);
    s->slots = berth_arena_new_array(s->arena, uint32_t, values);
    BERTH_TRY(find_changes(s, job->before, job->now));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->segment->op_count; ++i) kept += !s->op_changes[i];
    if ((uint64_t)kept * 100 < (uint64_t)s->segment->op_count * least_kept_percent) return BERTH_OK;
    uint32_t changing_first = find_parts(s, true);
    s->part_count = find_parts(s, false);
    if (changing_first < s->part_count) s->part_count = find_parts(s, true);
    if (s->part_count > 1) delay_changing(s);
    if (s->part_count > 1) s->part_count = part_what_is_shared(s, s->part_count);
    if (s->part_count < 2 || s->segment->op_count < s->part_count * least_ops_per_part)
        return BERTH_OK;
    make_steps(s, job->out_split);
    return BERTH_OK;
}

berth_status berth_vm_segment_split(berth_module *module, const berth_vm_segment *segment,
                                    const berth_tensor *before, const berth_tensor *now,
                                    berth_arena *arena, berth_vm_split *out_split) {
    *out_split = (berth_vm_split){0};
    split_job job = {.s = {.module = module,
                           .graph = berth_graph_get(module, segment->function),
                           .segment = segment,
                           .arena = arena},
                     .before = before,
                     .now = now,
                     .out_split = out_split};
    berth_status status = berth_arena_try(arena, run_split, &job);
    if (status) *out_split = (berth_vm_split){0};
    return status;
}
