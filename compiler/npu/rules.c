// Devices of kind npu: what their attributes say that they run, and how long the tiles take that fit
// the memory inside (npu_tiles.h). There is no code generator for them.
#include <math.h>
#include <string.h>

#include "compiler/npu/tiles.h"
#include "compiler/rules.h"
#include "ir/graph/op_params.h"

typedef berth_rules_question question;

static bool is_constant(const question *q, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    return berth_graph_raw_constant_of(q->module, graph, value) != NULL;
}

static bool listed(berth_string_list list, const char *name) {
    for (uint32_t i = 0; i < list.count; ++i)
        if (strcmp(list.data[i], name) == 0) return true;
    return false;
}

static const char *joined(const question *q, berth_string_list list) {
    berth_strbuf text = berth_strbuf_make(q->arena);
    for (uint32_t i = 0; i < list.count; ++i)
        berth_strbuf_addf(&text, "%s%s", i ? ", " : "", list.data[i]);
    return berth_strbuf_text(&text);
}

static bool follows(const question *q, berth_op_id previous) {
    berth_op_kind kind = berth_rules_op(q)->kind;
    berth_op_kind before = berth_graph_get(q->module, q->function)->ops.data[previous].kind;
    return (kind == BERTH_OP_RELU || kind == BERTH_OP_CLIP) &&
           (before == BERTH_OP_QLINEAR_CONV || before == BERTH_OP_QLINEAR_ADD);
}

// ---- what it takes ------------------------------------------------------------------------------

static const char *check_type(const question *q, berth_value_id value) {
    const berth_type *type = berth_rules_type(q, value);
    if (!berth_type_is_static(type)) return "its shapes are not known";
    if (listed(q->target->element_types, berth_dtype_name(type->dtype))) return NULL;
    return berth_arena_printf(q->arena, "%s of %s: the device takes %s",
                              berth_op_facts_get(berth_rules_op(q)->kind)->name,
                              berth_dtype_name(type->dtype), joined(q, q->target->element_types));
}

static const char *check_operands(const question *q) {
    const berth_op *op = berth_rules_op(q);
    const char *why = NULL;
    for (uint32_t i = 0; i < op->input_count && !why; ++i) {
        if (op->inputs[i] == BERTH_NONE || is_constant(q, op->inputs[i])) continue;
        why = i == 0 || op->kind == BERTH_OP_QLINEAR_ADD
                  ? check_type(q, op->inputs[i])
                  : "its weights, scales, zero points or bounds are no constants";
    }
    for (uint32_t i = 0; i < op->output_count && !why; ++i) why = check_type(q, op->outputs[i]);
    return why;
}

static berth_npu npu_of(const question *q) {
    const berth_target_device *device = &q->machine->devices[q->device];
    const berth_target_memory *values = &q->machine->memories[device->own_memory];
    const berth_target_memory *constants = &q->machine->memories[device->constant_memory];
    return (berth_npu){.inputs = berth_target_extra_get(q->target, "mac_inputs", 1),
                       .outputs = berth_target_extra_get(q->target, "mac_outputs", 1),
                       .results = berth_target_extra_get(q->target, "mac_results", 1),
                       .elements = berth_target_extra_get(q->target, "elements_per_cycle", 1),
                       .sram_bytes = (uint64_t)berth_target_extra_get(q->target, "sram_bytes", 1),
                       .clock_hz = (double)q->target->clock_hz,
                       .value_bytes_per_s = values->bandwidth_bytes_per_s,
                       .constant_bytes_per_s = constants->bandwidth_bytes_per_s,
                       .latency_s = (double)values->latency_ns / 1e9,
                       .apart = values != constants};
}

// ---- operations as work -------------------------------------------------------------------------

static int64_t bytes_of(const question *q, berth_value_id value) {
    return (int64_t)berth_dtype_size_bytes(berth_rules_type(q, value)->dtype);
}

// A convolution or a pooling: its window over maps of two dimensions, or one.
static const char *windowed(const question *q, const berth_type *weights, berth_npu_work *out) {
    const berth_op *op = berth_rules_op(q);
    const berth_type *x = berth_rules_type(q, op->inputs[0]),
                     *y = berth_rules_type(q, op->outputs[0]);
    berth_window window;
    if (x->rank < 3 || x->rank > 4 || (weights && weights->rank != x->rank))
        return "its maps have neither one dimension nor two";
    berth_status status = berth_window_resolve(q->module, op, x->dims, x->rank,
                                               weights ? weights->dims + 2 : NULL, &window);
    berth_status_ignore(status);
    if (status) return "its window is none";
    int last = window.spatial - 1;
    bool flat = window.spatial == 1;
    *out =
        (berth_npu_work){.images = x->dims[0],
                         .channels = y->dims[1],
                         .rows = flat ? 1 : y->dims[2],
                         .columns = y->dims[x->rank - 1],
                         .groups = weights ? window.group : x->dims[1],
                         .depth = weights ? weights->dims[1] : 1,
                         .kernel_rows = 1,
                         .kernel_columns = (window.kernel[last] - 1) * window.dilations[last] + 1,
                         .stride_rows = 1,
                         .stride_columns = window.strides[last],
                         .operands = 1,
                         .element_bytes = bytes_of(q, op->inputs[0]),
                         .weight_bytes = weights ? bytes_of(q, op->inputs[3]) : 0};
    if (!flat) {
        out->kernel_rows = (window.kernel[0] - 1) * window.dilations[0] + 1;
        out->stride_rows = window.strides[0];
    }
    if (out->rows * out->columns == 1 && out->kernel_rows * out->kernel_columns == 1) {
        out->rows = out->images;  // a dense layer: one row of results per image
        out->images = 1;
    }
    return NULL;
}

static void elementwise(const question *q, int64_t operands, berth_npu_work *out) {
    const berth_type *y = berth_rules_type(q, berth_rules_op(q)->outputs[0]);
    int64_t count = 1;
    for (int d = 0; d < y->rank; ++d) count *= y->dims[d];
    *out = (berth_npu_work){.images = 1,
                            .channels = 1,
                            .rows = count,
                            .columns = 1,
                            .groups = 1,
                            .depth = 1,
                            .kernel_rows = 1,
                            .kernel_columns = 1,
                            .stride_rows = 1,
                            .stride_columns = 1,
                            .operands = operands,
                            .element_bytes = bytes_of(q, berth_rules_op(q)->outputs[0])};
}

static bool has_elements(const berth_npu_work *w) {
    return w->images > 0 && w->channels > 0 && w->rows > 0 && w->columns > 0 && w->depth > 0 &&
           w->groups > 0;
}

// The operation as work, with its tiles; or why the device does not run it.
static const char *read_op(const question *q, berth_npu_tiles *out_tiles) {
    const berth_op *op = berth_rules_op(q);
    berth_npu_work work;
    const char *name = berth_op_facts_get(op->kind)->name;
    if (!listed(q->target->operators, name))
        return berth_arena_printf(q->arena, "%s is not among its operators: %s", name,
                                  joined(q, q->target->operators));
    const char *why = check_operands(q);
    if (why) return why;
    if (op->kind == BERTH_OP_QLINEAR_CONV)
        why = windowed(q, berth_rules_type(q, op->inputs[3]), &work);
    else if (op->kind == BERTH_OP_MAX_POOL)
        why = op->output_count == 1 ? windowed(q, NULL, &work) : "its indices are asked for";
    else if (op->kind == BERTH_OP_QLINEAR_AVERAGE_POOL)
        why = windowed(q, NULL, &work);
    else if (op->kind == BERTH_OP_QLINEAR_ADD || op->kind == BERTH_OP_RELU ||
             op->kind == BERTH_OP_CLIP)
        elementwise(q, op->kind == BERTH_OP_QLINEAR_ADD ? 2 : 1, &work);
    else
        why = "nothing is known of how long it takes there";
    if (why) return why;
    if (!has_elements(&work)) return "it has no elements";
    const berth_npu npu = npu_of(q);
    if (berth_npu_choose_tiles(&npu, &work, out_tiles)) return NULL;
    return berth_arena_printf(q->arena,
                              "does not fit npu.sram: the smallest tile, %lld x %lld results of "
                              "%lld channels, takes %llu "
                              "bytes, and there are %llu",
                              (long long)out_tiles->rows, (long long)out_tiles->columns,
                              (long long)out_tiles->channels, (unsigned long long)out_tiles->bytes,
                              (unsigned long long)npu.sram_bytes);
}

// ---- the rules ----------------------------------------------------------------------------------

static const char *unsupported(const question *q) {
    const berth_op *op = berth_rules_op(q);
    berth_npu_tiles tiles;
    if (op->kind == BERTH_OP_CONSTANT) return NULL;
    if (berth_op_has(op->kind, BERTH_TRAIT_VIEW)) return check_type(q, op->outputs[0]);
    return read_op(q, &tiles);
}

// What follows in one function is computed on the way.
static bool on_the_way(const question *q) {
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    berth_op_id before = graph->values.data[berth_rules_op(q)->inputs[0]].op;
    return before != BERTH_NONE && follows(q, before);
}

static double time_ns(const question *q) {
    const berth_op *op = berth_rules_op(q);
    berth_npu_tiles tiles;
    if (op->kind == BERTH_OP_CONSTANT || berth_op_has(op->kind, BERTH_TRAIT_VIEW)) return 0;
    if (op->input_count > 0 && on_the_way(q)) return 0;
    if (read_op(q, &tiles)) return -1;
    return tiles.cycles * 1e9 / (double)q->target->clock_hz + (double)q->target->dispatch_ns;
}

static uint32_t buffers(const question *q, berth_rules_buffer *out) {
    const berth_op *op = berth_rules_op(q);
    berth_npu_tiles tiles;
    if (op->kind == BERTH_OP_CONSTANT || berth_op_has(op->kind, BERTH_TRAIT_VIEW) ||
        (op->input_count > 0 && on_the_way(q)) || read_op(q, &tiles))
        return 0;
    out[0] = (berth_rules_buffer){"npu.sram", tiles.bytes};
    return 1;
}

const berth_kind_rules berth_npu_rules = {.kind = "npu",
                                          .described = true,
                                          .whole_quantized = true,
                                          .unsupported = unsupported,
                                          .time_ns = time_ns,
                                          .follows = follows,
                                          .buffers = buffers};
