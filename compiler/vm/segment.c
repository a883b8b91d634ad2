// Gathering operations to segments.
#include "compiler/vm/emitter.h"

bool vm_is_constant(const vm_emitter *e, berth_value_id value) {
    return berth_graph_raw_constant_of(e->module, e->graph, value) != NULL;
}

bool vm_reads_open(const vm_emitter *e, const berth_op *op) {
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && e->in_open[op->inputs[i]]) return true;
    return false;
}

void vm_add_to_segment(vm_emitter *e, berth_op_id op) {
    const berth_op *held = &e->graph->ops.data[op];
    berth_vec_push(e->arena, &e->open, op);
    for (uint32_t i = 0; i < held->output_count; ++i) e->in_open[held->outputs[i]] = true;
}

// Of values it is noted in the emitter's `marks` what they are to the segment; the marks are cleared
// again for the values that were touched, so that many segments cost no more than what is in them.
typedef vm_gathered gathered;

static const berth_op *open_op(const vm_emitter *e, uint32_t index) {
    return &e->graph->ops.data[e->open.data[index]];
}

static void gather_operands(vm_emitter *e, gathered *g) {
    for (uint32_t i = 0; i < e->open.count; ++i) {
        const berth_op *op = open_op(e, i);
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_value_id value = op->inputs[k];
            if (value == BERTH_NONE) continue;
            vm_mark *mark = &e->marks[value];
            mark->inside++;
            if (e->in_open[value] || mark->input || vm_is_constant(e, value)) continue;
            berth_vec_push(e->arena, &g->inputs, value);
            berth_vec_push(e->arena, &g->known, false);
            mark->input = g->inputs.count;
        }
    }
}

// What decides shapes must be known, back to the inputs; shapes are. Operations are visited against
// their order: what is needed of their results shows first.
static void mark_known(vm_emitter *e, gathered *g) {
    for (uint32_t i = e->open.count; i-- > 0;) {
        const berth_op *op = open_op(e, i);
        uint32_t host = berth_op_facts_get(op->kind)->host_operands;
        bool needed = false;
        for (uint32_t k = 0; k < op->output_count; ++k) needed |= e->marks[op->outputs[k]].needed;
        if (op->kind == BERTH_OP_SHAPE_OF || op->kind == BERTH_OP_SIZE_OF) needed = false;
        for (uint32_t k = 0; k < op->input_count; ++k) {
            bool decides = k < 32 && (host >> k & 1u);
            if (op->inputs[k] == BERTH_NONE || !(needed || decides)) continue;
            vm_mark *mark = &e->marks[op->inputs[k]];
            mark->needed = true;
            if (mark->input) g->known.data[mark->input - 1] = true;
        }
    }
}

static void clear_marks(vm_emitter *e) {
    for (uint32_t i = 0; i < e->open.count; ++i) {
        const berth_op *op = open_op(e, i);
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) e->marks[op->inputs[k]] = (vm_mark){.input = 0};
        for (uint32_t k = 0; k < op->output_count; ++k) {
            e->marks[op->outputs[k]] = (vm_mark){.input = 0};
            e->in_open[op->outputs[k]] = false;
        }
    }
}

static void gather_outputs(vm_emitter *e, gathered *g) {
    for (uint32_t i = 0; i < e->open.count; ++i) {
        const berth_op *op = open_op(e, i);
        for (uint32_t k = 0; k < op->output_count; ++k)
            if (e->uses[op->outputs[k]] > e->marks[op->outputs[k]].inside)
                berth_vec_push(e->arena, &g->outputs, op->outputs[k]);
    }
}

vm_gathered vm_gather(vm_emitter *e) {
    gathered g = {.inputs = {0}};
    gather_operands(e, &g);
    mark_known(e, &g);
    gather_outputs(e, &g);
    clear_marks(e);
    return g;
}

berth_vm_segment vm_gathered_segment(const vm_emitter *e, const vm_gathered *g) {
    return (berth_vm_segment){
        .function = e->function,
        .ops = berth_arena_copy(e->arena, e->open.data, e->open.count * sizeof(*e->open.data)),
        .op_count = e->open.count,
        .inputs = g->inputs.data,
        .known = g->known.data,
        .input_count = g->inputs.count,
        .outputs = g->outputs.data,
        .output_count = g->outputs.count};
}

static void emit_run(vm_emitter *e, const gathered *g, uint32_t segment) {
    uint32_t *sources = berth_arena_new_array(e->arena, uint32_t, g->inputs.count + 1);
    for (uint32_t i = 0; i < g->inputs.count; ++i) sources[i] = vm_source(e, g->inputs.data[i]);
    vm_begin(e, BERTH_VM_RUN);
    vm_word(e, segment);
    vm_word(e, g->outputs.count);
    for (uint32_t i = 0; i < g->outputs.count; ++i)
        vm_word(e, vm_register_of(e, g->outputs.data[i]));
    vm_word(e, g->inputs.count);
    for (uint32_t i = 0; i < g->inputs.count; ++i) vm_word(e, sources[i]);
    vm_end(e);
}

// Names of the first operations and how many more there are.
static berth_vm_piece describe(vm_emitter *e, const gathered *g) {
    enum { shown = 4 };
    berth_strbuf names = berth_strbuf_make(e->arena), ops = berth_strbuf_make(e->arena);
    for (uint32_t i = 0; i < e->open.count && i < shown; ++i) {
        const berth_op *op = &e->graph->ops.data[e->open.data[i]];
        berth_strbuf_addf(&names, "%s%s", i ? "+" : "",
                          berth_loc_label(e->module, op->loc, e->arena));
        berth_strbuf_addf(&ops, "%s%s", i ? "+" : "", berth_op_facts_get(op->kind)->name);
    }
    if (e->open.count > shown) {
        berth_strbuf_addf(&names, "+%u more", e->open.count - shown);
        berth_strbuf_addf(&ops, "+%u more", e->open.count - shown);
    }
    return (berth_vm_piece){.name = berth_strbuf_text(&names),
                            .op = berth_strbuf_text(&ops),
                            .input_count = g->inputs.count,
                            .output_count = g->outputs.count};
}

static void add_segment(vm_emitter *e, const gathered *g) {
    vm_builder *b = e->builder;
    berth_vec_push(e->arena, &b->segment_pieces, describe(e, g));
    berth_vec_push(e->arena, &b->segments, vm_gathered_segment(e, g));
    emit_run(e, g, b->segments.count - 1);
}

void vm_close_segment(vm_emitter *e, berth_region_id region) {
    if (e->open.count == 0) return;
    gathered g = vm_gather(e);
    if (g.outputs.count) add_segment(e, &g);
    // Values that only the segment sees have no register to empty.
    for (uint32_t i = 0; i < e->open.count; ++i) {
        const berth_op *op = open_op(e, i);
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_value_id value = op->inputs[k];
            if (value != BERTH_NONE && e->registers[value] == BERTH_NONE) continue;
            vm_consume(e, value);
        }
    }
    e->open.count = 0;
    vm_flush_drops(e, region);
}
