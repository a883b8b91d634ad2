// Sequences, optional values, and loops over them: Scan and SequenceMap become Loop.
#include "compiler/onnx/ops.h"

static berth_type_kind kind_of(const onnx_call *call, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(call->im->module, call->im->function);
    return berth_type_get(call->im->module, graph->values.data[value].type)->kind;
}

// ---- values -------------------------------------------------------------------------------------

berth_status onnx_build_sequence_empty(onnx_call *call) {
    return onnx_call_finish(call, BERTH_OP_SEQUENCE_CONSTRUCT, NULL, 0);
}

static bool makes_sequence(const onnx_call *call, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(call->im->module, call->im->function);
    const berth_op_id op = value ? graph->values.data[value].op : BERTH_NONE;
    if (op == BERTH_NONE) return false;
    const berth_op_kind kind = graph->ops.data[op].kind;
    return kind == BERTH_OP_SEQUENCE_CONSTRUCT || kind == BERTH_OP_SEQUENCE_INSERT ||
           kind == BERTH_OP_SEQUENCE_ERASE || kind == BERTH_OP_SPLIT_TO_SEQUENCE ||
           kind == BERTH_OP_ZIP_MAP;
}

// Elements from operand `first` on. What a sequence holds is known where an operation of the graph makes it; elsewhere the run
// refuses it.
static berth_status check_elements(onnx_call *call, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end && i < call->input_count; ++i)
        if (makes_sequence(call, call->inputs[i]))
            return onnx_call_fail(call, BERTH_UNSUPPORTED,
                                  "input %u is a sequence, and sequences of sequences are not "
                                  "supported: a sequence holds tensors or maps",
                                  i);
    return BERTH_OK;
}

berth_status onnx_build_sequence_construct(onnx_call *call) {
    BERTH_TRY(check_elements(call, 0, call->input_count));
    return onnx_build_plain(call);
}

berth_status onnx_build_sequence_insert(onnx_call *call) {
    BERTH_TRY(check_elements(call, 1, 2));
    return onnx_build_plain(call);
}

// A full optional value is what it holds.
berth_status onnx_build_optional(onnx_call *call) {
    if (!onnx_call_has(call, 0)) return onnx_call_finish(call, BERTH_OP_OPTIONAL_EMPTY, NULL, 0);
    if (call->output_count) call->outputs[0] = call->inputs[0];
    return BERTH_OK;
}

berth_status onnx_build_optional_get(onnx_call *call) {
    if (!onnx_call_has(call, 0))
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input 0 is missing");
    if (kind_of(call, call->inputs[0]) != BERTH_TYPE_TENSOR)
        return onnx_call_finish(call, BERTH_OP_OPTIONAL_GET_ELEMENT, call->inputs, 1);
    if (call->output_count) call->outputs[0] = call->inputs[0];
    return BERTH_OK;
}

// ---- a loop that the importer writes ------------------------------------------------------------

typedef struct written_loop {
    berth_op_id op;
    berth_region_id region, outer;
    berth_value_id iteration;
    berth_value_id *carried;  // parameters of the region
} written_loop;

// Operations made from here on are the body's.
static void begin_loop(onnx_call *call, berth_value_id trips, const berth_value_id *carried,
                       uint32_t carried_count, uint32_t result_count, written_loop *loop) {
    onnx_importer *im = call->im;
    berth_value_id *inputs = berth_arena_new_array(im->scratch, berth_value_id, carried_count + 2);
    inputs[0] = trips;
    inputs[1] = BERTH_NONE;
    for (uint32_t i = 0; i < carried_count; ++i) inputs[2 + i] = carried[i];
    loop->op = berth_graph_add_op(im->module, im->function, im->region, BERTH_OP_LOOP, inputs,
                                  carried_count + 2, result_count, call->loc);
    loop->region = berth_graph_add_region(im->module, im->function, loop->op);
    loop->carried = berth_arena_new_array(im->scratch, berth_value_id, carried_count + 1);
    berth_type_id number = berth_type_tensor(im->module, BERTH_DTYPE_I64, 0, NULL);
    berth_type_id truth = berth_type_tensor(im->module, BERTH_DTYPE_BOOL, 0, NULL);
    loop->iteration =
        berth_graph_add_region_param(im->module, im->function, loop->region, "", number);
    berth_graph_add_region_param(im->module, im->function, loop->region, "", truth);
    for (uint32_t i = 0; i < carried_count; ++i) {
        const berth_graph *graph = berth_graph_get(im->module, im->function);
        loop->carried[i] = berth_graph_add_region_param(im->module, im->function, loop->region, "",
                                                        graph->values.data[carried[i]].type);
    }
    loop->outer = im->region;
    im->region = loop->region;
}

// `results`: carried and scanned values; after it, operations go where the loop stands.
static berth_status end_loop(onnx_call *call, const written_loop *loop,
                             const berth_value_id *results, uint32_t count) {
    onnx_importer *im = call->im;
    berth_value_id *all = berth_arena_new_array(im->scratch, berth_value_id, count + 1);
    all[0] = onnx_call_number(call, BERTH_DTYPE_BOOL, 1);
    for (uint32_t i = 0; i < count; ++i) all[1 + i] = results[i];
    berth_graph_set_region_results(im->module, im->function, loop->region, all, count + 1);
    im->region = loop->outer;
    return onnx_call_infer(call, loop->op);
}

// One operation of one result with an attribute "axis".
static berth_status op_along(onnx_call *call, berth_op_kind kind, const berth_value_id *inputs,
                             uint32_t count, int64_t axis, berth_value_id *out) {
    berth_op_id op = onnx_call_op(call, kind, inputs, count, 1);
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, op), "axis", axis);
    *out = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

// ---- Scan ---------------------------------------------------------------------------------------

typedef struct scan {
    const onnx_graph *body;
    const berth_value_id *inputs;  // states, then what is scanned
    uint32_t state_count, input_count, output_count;
    const onnx_attr *input_axes, *input_directions, *output_axes, *output_directions;
} scan;

static int64_t entry(const onnx_attr *attr, uint32_t index) {
    return attr && index < attr->ints.count ? attr->ints.data[index] : 0;
}

// `skipped`: inputs before the states.
static berth_status read_scan(onnx_call *call, uint32_t skipped, scan *s) {
    *s = (scan){.body = onnx_call_attr(call, "body")->graph, .inputs = call->inputs + skipped};
    uint32_t given = call->input_count - skipped;
    int64_t inputs = onnx_call_int(call, "num_scan_inputs", 0);
    if (inputs < 1 || inputs > (int64_t)given)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "num_scan_inputs is %lld of %u inputs",
                              (long long)inputs, given);
    s->input_count = (uint32_t)inputs;
    s->state_count = given - s->input_count;
    for (uint32_t i = skipped; i < call->input_count; ++i)
        if (!onnx_call_has(call, i))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
    if (s->body->inputs.count != given || s->body->outputs.count < s->state_count ||
        s->body->outputs.count != call->node->outputs.count)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "the body has %u inputs and %u outputs, the node %u and %u",
                              s->body->inputs.count, s->body->outputs.count, given,
                              call->node->outputs.count);
    s->output_count = s->body->outputs.count - s->state_count;
    s->input_axes = onnx_call_attr(call, "scan_input_axes");
    s->input_directions = onnx_call_attr(call, skipped ? "directions" : "scan_input_directions");
    s->output_axes = onnx_call_attr(call, "scan_output_axes");
    s->output_directions = onnx_call_attr(call, "scan_output_directions");
    return BERTH_OK;
}

// Extent of an axis as a number.
static berth_status extent_of(onnx_call *call, berth_value_id value, int64_t axis,
                              berth_value_id *out) {
    berth_value_id inputs[2] = {BERTH_NONE, onnx_call_number(call, BERTH_DTYPE_I64, (double)axis)};
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SHAPE_OF, &value, 1, &inputs[0]));
    return op_along(call, BERTH_OP_GATHER, inputs, 2, 0, out);
}

// This iteration's row of a scanned input.
static berth_status row_of(onnx_call *call, const scan *s, const written_loop *loop,
                           berth_value_id trips, uint32_t index, berth_value_id *out) {
    berth_value_id inputs[2] = {s->inputs[s->state_count + index], loop->iteration};
    if (entry(s->input_directions, index)) {
        berth_value_id last[2] = {trips, onnx_call_number(call, BERTH_DTYPE_I64, 1)};
        berth_value_id from_end[2] = {BERTH_NONE, loop->iteration};
        BERTH_TRY(onnx_call_op1(call, BERTH_OP_SUB, last, 2, &from_end[0]));
        BERTH_TRY(onnx_call_op1(call, BERTH_OP_SUB, from_end, 2, &inputs[1]));
    }
    return op_along(call, BERTH_OP_GATHER, inputs, 2, entry(s->input_axes, index), out);
}

static berth_status reverse_rows(onnx_call *call, berth_value_id *value) {
    static const int64_t start = -1, end = INT64_MIN, axis = 0, step = -1;
    berth_value_id inputs[5] = {*value, onnx_call_ints(call, &start, 1),
                                onnx_call_ints(call, &end, 1), onnx_call_ints(call, &axis, 1),
                                onnx_call_ints(call, &step, 1)};
    return onnx_call_op1(call, BERTH_OP_SLICE, inputs, 5, value);
}

// Rows stand along axis 0; they belong along `axis`.
static berth_status move_rows(onnx_call *call, int64_t axis, berth_value_id *value) {
    int rank = onnx_call_type(call, *value).rank;
    if (rank < 0)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "a scan output along axis %lld whose rank is not known",
                              (long long)axis);
    int64_t to = axis < 0 ? axis + rank : axis;
    if (to < 0 || to >= rank)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "scan output axis %lld of rank %d",
                              (long long)axis, rank);
    int64_t order[BERTH_MAX_RANK];
    for (int d = 0, next = 1; d < rank; ++d) order[d] = d == to ? 0 : next++;
    berth_op_id op = onnx_call_op(call, BERTH_OP_TRANSPOSE, value, 1, 1);
    berth_attrs_set_ints(call->im->module, onnx_call_op_attrs(call, op), "perm", order,
                         (uint32_t)rank);
    *value = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

static berth_status arrange_results(onnx_call *call, const scan *s, berth_op_id loop,
                                    berth_value_id *results) {
    for (uint32_t i = 0; i < s->body->outputs.count; ++i) {
        results[i] = onnx_call_result(call, loop, i);
        if (i < s->state_count) continue;
        uint32_t index = i - s->state_count;
        if (entry(s->output_directions, index)) BERTH_TRY(reverse_rows(call, &results[i]));
        int64_t axis = entry(s->output_axes, index);
        if (axis) BERTH_TRY(move_rows(call, axis, &results[i]));
    }
    return BERTH_OK;
}

// States and scan outputs of the node's body over all rows.
static berth_status scan_rows(onnx_call *call, const scan *s, berth_value_id *results) {
    written_loop loop;
    berth_value_id trips = BERTH_NONE;
    int64_t axis = entry(s->input_axes, 0);
    if (axis < 0) {
        int rank = onnx_call_type(call, s->inputs[s->state_count]).rank;
        if (rank < 0)
            return onnx_call_fail(call, BERTH_UNSUPPORTED,
                                  "a scanned axis from the end of an input of unknown rank");
        axis += rank;
    }
    BERTH_TRY(extent_of(call, s->inputs[s->state_count], axis, &trips));
    begin_loop(call, trips, s->inputs, s->state_count, s->body->outputs.count, &loop);
    uint32_t given_count = s->state_count + s->input_count;
    berth_value_id *given =
        berth_arena_new_array(call->im->scratch, berth_value_id, given_count + 1);
    for (uint32_t i = 0; i < s->state_count; ++i) given[i] = loop.carried[i];
    for (uint32_t i = 0; i < s->input_count; ++i)
        BERTH_TRY(row_of(call, s, &loop, trips, i, &given[s->state_count + i]));
    BERTH_TRY(
        onnx_inline_subgraph(call, s->body, given, given_count, results, s->body->outputs.count));
    BERTH_TRY(end_loop(call, &loop, results, s->body->outputs.count));
    return arrange_results(call, s, loop.op, results);
}

// The form of opset 8: all inputs and outputs have a batch before everything else, which is looped
// over; rows stand along the next axis.
static berth_status scan_batches(onnx_call *call, scan *s, berth_value_id *results) {
    written_loop loop;
    berth_value_id batches = BERTH_NONE;
    uint32_t count = s->state_count + s->input_count, result_count = s->body->outputs.count;
    berth_value_id *own = berth_arena_new_array(call->im->scratch, berth_value_id, count + 1);
    BERTH_TRY(extent_of(call, s->inputs[s->state_count], 0, &batches));
    begin_loop(call, batches, NULL, 0, result_count, &loop);
    for (uint32_t i = 0; i < count; ++i) {
        berth_value_id inputs[2] = {s->inputs[i], loop.iteration};
        BERTH_TRY(op_along(call, BERTH_OP_GATHER, inputs, 2, 0, &own[i]));
    }
    s->inputs = own;
    BERTH_TRY(scan_rows(call, s, results));
    BERTH_TRY(end_loop(call, &loop, results, result_count));
    for (uint32_t i = 0; i < result_count; ++i) results[i] = onnx_call_result(call, loop.op, i);
    return BERTH_OK;
}

berth_status onnx_build_scan(onnx_call *call) {
    scan s;
    bool batched = call->im->opset < 9;
    if (batched && onnx_call_has(call, 0))
        return onnx_call_fail(call, BERTH_UNSUPPORTED, "sequences of different lengths");
    if (batched && call->input_count == 0)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "there are no inputs");
    BERTH_TRY(read_scan(call, batched, &s));
    call->output_count = call->node->outputs.count;
    return batched ? scan_batches(call, &s, call->outputs) : scan_rows(call, &s, call->outputs);
}

// ---- SequenceMap --------------------------------------------------------------------------------

// Inputs that are sequences give an element each, others are the same every time.
static berth_status elements(onnx_call *call, const written_loop *loop, berth_value_id *given) {
    for (uint32_t i = 0; i < call->input_count; ++i) {
        berth_value_id inputs[2] = {call->inputs[i], loop->iteration};
        given[i] = inputs[0];
        if (kind_of(call, inputs[0]) != BERTH_TYPE_TENSOR)
            BERTH_TRY(onnx_call_op1(call, BERTH_OP_SEQUENCE_AT, inputs, 2, &given[i]));
    }
    return BERTH_OK;
}

berth_status onnx_build_sequence_map(onnx_call *call) {
    const onnx_graph *body = onnx_call_attr(call, "body")->graph;
    uint32_t count = body->outputs.count;
    written_loop loop;
    berth_value_id trips = BERTH_NONE;
    for (uint32_t i = 0; i < call->input_count || i == 0; ++i)
        if (!onnx_call_has(call, i))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
    if (body->inputs.count != call->input_count || count != call->node->outputs.count)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "the body has %u inputs and %u outputs, the node %u and %u",
                              body->inputs.count, count, call->input_count,
                              call->node->outputs.count);
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SEQUENCE_LENGTH, call->inputs, 1, &trips));
    berth_value_id *values = berth_arena_new_array(call->im->scratch, berth_value_id, count + 1);
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(onnx_call_op1(call, BERTH_OP_SEQUENCE_CONSTRUCT, NULL, 0, &values[i]));
    begin_loop(call, trips, values, count, count, &loop);
    berth_value_id *given =
        berth_arena_new_array(call->im->scratch, berth_value_id, call->input_count + 1);
    BERTH_TRY(elements(call, &loop, given));
    BERTH_TRY(onnx_inline_subgraph(call, body, given, call->input_count, values, count));
    for (uint32_t i = 0; i < count; ++i) {
        berth_value_id inputs[2] = {loop.carried[i], values[i]};
        BERTH_TRY(onnx_call_op1(call, BERTH_OP_SEQUENCE_INSERT, inputs, 2, &values[i]));
    }
    BERTH_TRY(end_loop(call, &loop, values, count));
    call->output_count = count;
    for (uint32_t i = 0; i < count; ++i) call->outputs[i] = onnx_call_result(call, loop.op, i);
    return BERTH_OK;
}
