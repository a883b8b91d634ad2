// Byte code of functions: which operation goes where.
#include <stdio.h>
#include <string.h>

#include "compiler/passes/fold.h"
#include "compiler/vm/counted.h"
#include "compiler/vm/emitter.h"
#include "compiler/vm/states.h"
#include "ir/dim.h"
#include "ir/eval.h"

enum { few_elements = 64 };

// ---- what is known before a run -----------------------------------------------------------------

static const berth_type *type_of(const vm_emitter *e, berth_value_id value) {
    return berth_type_get(e->module, e->graph->values.data[value].type);
}

static bool is_integer(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_BOOL || berth_dtype_is_integer(dtype);
}

// A few integers, whose number is known.
static bool is_few_integers(const vm_emitter *e, berth_value_id value) {
    const berth_type *type = type_of(e, value);
    int64_t count = 1;
    if (type->kind != BERTH_TYPE_TENSOR || !berth_type_is_static(type) || !is_integer(type->dtype))
        return false;
    for (int d = 0; d < type->rank; ++d) {
        if (type->dims[d] > few_elements) return false;
        count *= type->dims[d];
    }
    return count <= few_elements;
}

static uint8_t known_of(const vm_emitter *e, berth_value_id value) {
    if (value == BERTH_NONE || vm_is_constant(e, value)) return KNOWN_ALWAYS;
    return e->known[value];
}

static uint8_t known_result(const vm_emitter *e, const berth_op *op) {
    uint8_t known = KNOWN_ALWAYS;
    if (op->kind == BERTH_OP_SHAPE_OF || op->kind == BERTH_OP_SIZE_OF) return KNOWN_FROM_SHAPES;
    if (!berth_eval_supports(op->kind) ||
        berth_op_has(op->kind, BERTH_TRAIT_RANDOM | BERTH_TRAIT_DATA_DEPENDENT))
        return KNOWN_NOT;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (known_of(e, op->inputs[i]) < known) known = known_of(e, op->inputs[i]);
    return known == KNOWN_ALWAYS ? KNOWN_FROM_SHAPES : known;
}

// ---- where an operation runs --------------------------------------------------------------------

// Operations that read or move as many elements as they write: the host does them at the speed of
// memory, nearly, where their parameters change from run to run.
static bool moves(const berth_op *op) {
    return berth_op_has(op->kind, BERTH_TRAIT_INJECTIVE) && op->kind != BERTH_OP_RESIZE &&
           op->kind != BERTH_OP_GRID_SAMPLE;
}

// The parameters that decide shapes: known well enough to compile for them.
static bool parameters_are_known(const vm_emitter *e, const berth_op *op) {
    uint32_t host = berth_op_facts_get(op->kind)->host_operands;
    for (uint32_t i = 0; i < op->input_count && i < 32; ++i) {
        if (!(host >> i & 1u)) continue;
        uint8_t known = known_of(e, op->inputs[i]);
        if (known == KNOWN_NOT || (known == KNOWN_FROM_INPUTS && moves(op))) return false;
    }
    return true;
}

static bool is_small_arithmetic(const vm_emitter *e, const berth_op *op) {
    if (!berth_eval_supports(op->kind) || berth_op_has(op->kind, BERTH_TRAIT_RANDOM)) return false;
    bool sees_shapes_only = op->kind == BERTH_OP_SHAPE_OF || op->kind == BERTH_OP_SIZE_OF;
    for (uint32_t i = 0; i < op->input_count && !sees_shapes_only; ++i)
        if (op->inputs[i] != BERTH_NONE && !is_few_integers(e, op->inputs[i])) return false;
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (!is_few_integers(e, op->outputs[i])) return false;
    return true;
}

static bool is_string(const vm_emitter *e, berth_value_id value) {
    return value != BERTH_NONE && type_of(e, value)->dtype == BERTH_DTYPE_STRING;
}

static bool has_strings(const vm_emitter *e, const berth_op *op) {
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (is_string(e, op->inputs[i])) return true;
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (is_string(e, op->outputs[i])) return true;
    return false;
}

static bool belongs_on_host(const vm_emitter *e, const berth_op *op) {
    if (berth_op_has(op->kind, BERTH_TRAIT_INTERPRETED) || has_strings(e, op)) return true;
    if (berth_op_has(op->kind, BERTH_TRAIT_DATA_DEPENDENT)) return true;
    if (!parameters_are_known(e, op) && !e->builder->compile_parameters) return true;
    if (berth_attrs_find(e->module, &op->attrs, BERTH_ATTR_COUNTED)) return false;
    return is_small_arithmetic(e, op) && !vm_reads_open(e, op);
}

// ---- instructions -------------------------------------------------------------------------------

static void emit_host(vm_emitter *e, berth_region_id region, berth_op_id id) {
    const berth_op *op = &e->graph->ops.data[id];
    vm_builder *b = e->builder;
    uint32_t *sources = berth_arena_new_array(e->arena, uint32_t, op->input_count + 1);
    for (uint32_t i = 0; i < op->input_count; ++i)
        sources[i] = op->inputs[i] == BERTH_NONE ? BERTH_VM_NONE : vm_source(e, op->inputs[i]);
    berth_vm_piece piece = {.name = berth_loc_describe(e->module, op->loc, e->arena),
                            .op = berth_op_facts_get(op->kind)->name,
                            .input_count = op->input_count,
                            .output_count = op->output_count,
                            .is_arithmetic = is_small_arithmetic(e, op)};
    berth_vec_push(e->arena, &b->host_pieces, piece);
    berth_vec_push(e->arena, &b->host_operations,
                   (berth_vm_host_operation){.function = e->function, .op = id});
    vm_begin(e, BERTH_VM_HOST);
    vm_word(e, b->host_operations.count - 1);
    vm_word(e, op->output_count);
    for (uint32_t i = 0; i < op->output_count; ++i) vm_word(e, vm_register_of(e, op->outputs[i]));
    vm_word(e, op->input_count);
    for (uint32_t i = 0; i < op->input_count; ++i) vm_word(e, sources[i]);
    vm_end(e);
    for (uint32_t i = 0; i < op->input_count; ++i) vm_consume(e, op->inputs[i]);
    vm_flush_drops(e, region);
}

static berth_status emit_op(vm_emitter *e, berth_region_id region, berth_op_id id) {
    const berth_op *op = &e->graph->ops.data[id];
    if (op->kind == BERTH_OP_CONSTANT) return BERTH_OK;
    if (op->kind == BERTH_OP_IDENTITY && !vm_reads_open(e, op)) {  // of any kind of value
        e->known[op->outputs[0]] = known_of(e, op->inputs[0]);
        return vm_emit_structure(e, region, id);
    }
    if (vm_is_structure(e->module, op)) {
        vm_close_segment(e, region);
        return vm_emit_structure(e, region, id);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) e->known[op->outputs[i]] = known_result(e, op);
    if (!belongs_on_host(e, op)) {
        // What only the run knows is looked at between segments.
        if (!parameters_are_known(e, op) && vm_reads_open(e, op)) vm_close_segment(e, region);
        vm_add_to_segment(e, id);
        return BERTH_OK;
    }
    if (!berth_eval_supports(op->kind))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s: its shape depends on values that only the run knows, and the "
                                 "host cannot compute it",
                                 berth_loc_describe(e->module, op->loc, e->arena));
    if (vm_reads_open(e, op)) vm_close_segment(e, region);
    emit_host(e, region, id);
    return BERTH_OK;
}

berth_status vm_emit_region(vm_emitter *e, berth_region_id region) {
    uint32_t count = e->graph->regions.data[region].ops.count;
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(emit_op(e, region, e->graph->regions.data[region].ops.data[i]));
    vm_close_segment(e, region);
    return BERTH_OK;
}

// ---- functions ----------------------------------------------------------------------------------

static void begin_function(vm_emitter *e, const berth_region *root) {
    uint32_t count = e->graph->values.count + 1;
    e->registers = berth_arena_new_array(e->arena, uint32_t, count);
    e->known = berth_arena_new_array(e->arena, uint8_t, count);
    e->in_open = berth_arena_new_array(e->arena, bool, count);
    e->marks = berth_arena_new_array(e->arena, vm_mark, count);
    e->uses = berth_graph_count_uses(e->graph, e->arena);
    for (uint32_t i = 0; i < count; ++i) e->registers[i] = BERTH_NONE;
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id value = root->params.data[i];
        vm_register_of(e, value);
        if (e->is_main && is_few_integers(e, value)) e->known[value] = KNOWN_FROM_INPUTS;
    }
}

static berth_status emit_function(vm_emitter *e, uint32_t index) {
    const berth_region *root = &e->graph->regions.data[0];
    begin_function(e, root);
    BERTH_TRY(vm_emit_region(e, 0));
    uint32_t *results = berth_arena_new_array(e->arena, uint32_t, root->results.count + 1);
    for (uint32_t i = 0; i < root->results.count; ++i)
        results[i] = vm_source(e, root->results.data[i]);
    vm_begin(e, BERTH_VM_RETURN);
    vm_word(e, root->results.count);
    for (uint32_t i = 0; i < root->results.count; ++i) vm_word(e, results[i]);
    vm_end(e);
    berth_vm_function *function = &e->builder->functions.data[index];
    function->code = e->code.data;
    function->code_count = e->code.count;
    function->register_count = e->register_count;
    return BERTH_OK;
}

berth_status vm_function_index(vm_builder *builder, berth_func_id function, uint32_t *out_index) {
    for (*out_index = 0; *out_index < builder->sources.count; ++*out_index)
        if (builder->sources.data[*out_index] == function) return BERTH_OK;
    const char *name =
        berth_module_str(builder->module, berth_module_function(builder->module, function)->name);
    const berth_graph *graph = berth_graph_get(builder->module, function);
    if (!graph)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "@%s: the virtual machine calls graph functions only", name);
    const berth_region *root = &graph->regions.data[0];
    berth_vm_function entry = {
        .name = name, .parameter_count = root->params.count, .result_count = root->results.count};
    berth_vec_push(builder->arena, &builder->functions, entry);
    berth_vec_push(builder->arena, &builder->sources, function);
    vm_emitter e = {.builder = builder,
                    .module = builder->module,
                    .arena = builder->arena,
                    .function = function,
                    .graph = graph,
                    .is_main = *out_index == 0};
    if (builder->depth == BERTH_MAX_NESTING)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "@%s: functions call each other more than %d deep", name,
                                 BERTH_MAX_NESTING);
    builder->depth++;
    BERTH_TRY(emit_function(&e, *out_index));
    builder->depth--;
    return BERTH_OK;
}

// ---- the program --------------------------------------------------------------------------------

// Of a dimension, as attribute "bounds" of @main has them: "N=1..512,seq=1..128"; also of one that is a number
// times a symbol that has bounds.
static void set_bounds(const berth_module *module, const char *all, const berth_type *type, int d,
                       berth_vm_port *port) {
    berth_dim_linear linear = {
        .symbol = berth_module_str(module, berth_dim_symbol_name(type->dims[d])), .factor = 1};
    long long least = 0, most = 0;
    if (berth_dim_is_expression(module, type->dims[d]) &&
        !berth_dim_read_linear(module, type->dims[d], module->arena, &linear))
        return;
    const size_t length = strlen(linear.symbol);
    for (const char *at = all; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, linear.symbol, length) != 0 || at[length] != '=') continue;
        if (sscanf(at + length + 1, "%lld..%lld", &least, &most) != 2) continue;
        int64_t low = 0, high = 0;
        if (__builtin_mul_overflow(least, linear.factor, &low) ||
            __builtin_mul_overflow(most, linear.factor, &high) ||
            __builtin_add_overflow(low, linear.summand, &port->least[d]) ||
            __builtin_add_overflow(high, linear.summand, &port->most[d]))
            port->least[d] = port->most[d] = 0;
    }
}

// Which dimension of an earlier input, or of this one, is the same symbol, or follows from symbols in the same way. Inputs
// that nothing reads are not compared: the shape of such a one is of no account.
static void set_same(const berth_module *module, const berth_graph *graph, const uint32_t *uses,
                     const berth_value_id *values, uint32_t input, int axis, berth_vm_port *port) {
    const int64_t dim = berth_type_get(module, graph->values.data[values[input]].type)->dims[axis];
    for (uint32_t i = 0; i <= input && dim != BERTH_DIM_UNKNOWN; ++i) {
        const berth_type *type = berth_type_get(module, graph->values.data[values[i]].type);
        const int rank = type->kind != BERTH_TYPE_TENSOR || uses[values[i]] == 0 ? 0
                         : i == input                                            ? axis
                                                                                 : type->rank;
        for (int d = 0; d < rank; ++d) {
            if (type->dims[d] != dim) continue;
            port->same_as[axis] = 1 + i * BERTH_MAX_RANK + (uint32_t)d;
            return;
        }
    }
}

static berth_vm_port *ports_of(const berth_module *module, const berth_graph *graph,
                               const berth_value_id *values, uint32_t count, const char *kinds) {
    uint32_t kind_count = 0;
    berth_func_id main = berth_module_find_function(module, "main");
    const int64_t *held =
        berth_attrs_ints(module, &module->functions.data[main].attrs, kinds, &kind_count);
    const char *bounds =
        berth_attrs_string(module, &module->functions.data[main].attrs, "bounds", NULL);
    const uint32_t *uses = berth_graph_count_uses(graph, module->arena);
    const bool is_input = values == graph->regions.data[0].params.data;
    berth_vm_port *ports = berth_arena_new_array(module->arena, berth_vm_port, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_value *value = &graph->values.data[values[i]];
        const berth_type *type = berth_type_get(module, value->type);
        berth_strbuf text = berth_strbuf_make(module->arena);
        if (type->kind == BERTH_TYPE_TENSOR)
            berth_type_print(module, value->type, &text);
        else
            berth_strbuf_add(&text, "a sequence or an optional value");
        ports[i] = (berth_vm_port){.name = berth_module_str(module, value->name),
                                   .type = berth_strbuf_text(&text),
                                   .dtype = type->dtype,
                                   .rank = type->kind == BERTH_TYPE_TENSOR ? type->rank : -1,
                                   .is_tensor = type->kind == BERTH_TYPE_TENSOR};
        if (held && kind_count == count) ports[i].kind = (uint32_t)held[i];
        for (int d = 0; d < ports[i].rank; ++d) {
            ports[i].dims[d] = berth_dim_is_symbol(type->dims[d]) ? -1 : type->dims[d];
            if (ports[i].dims[d] >= 0) continue;
            set_bounds(module, bounds, type, d, &ports[i]);
            if (is_input && uses[values[i]]) set_same(module, graph, uses, values, i, d, &ports[i]);
        }
    }
    return ports;
}

static void set_states(const berth_module *module, berth_func_id main, berth_vm_port *inputs,
                       uint32_t count) {
    uint32_t held = 0;
    const int64_t *outputs = berth_attrs_ints(module, &module->functions.data[main].attrs,
                                              BERTH_ATTR_STATE_OUTPUTS, &held);
    for (uint32_t i = 0; outputs && i < count && i < held; ++i)
        inputs[i].state = (uint32_t)outputs[i];
}

typedef struct emit_job {
    berth_module *module;
    berth_log log;
    bool compile_parameters;
    bool counts_extents;
    berth_vm_code *code;
} emit_job;

// What the devices do not do, although it is not arithmetic on shapes and counters.
static void note_host_work(const vm_builder *b, berth_log log) {
    enum { most_named = 3 };
    uint32_t count = 0;
    berth_strbuf text = berth_strbuf_make(b->arena);
    for (uint32_t i = 0; i < b->host_pieces.count; ++i) {
        const berth_vm_piece *piece = &b->host_pieces.data[i];
        if (piece->is_arithmetic || count++ >= most_named) continue;
        berth_strbuf_addf(&text, "%s%s at %s", count > 1 ? ", " : "", piece->op, piece->name);
    }
    if (count > 0)
        berth_log_message(
            log, BERTH_LOG_INFO,
            "%u operations on strings, or whose results' shapes only a run knows, are computed on "
            "the host, by the reference interpreter: %s%s",
            count, berth_strbuf_text(&text), count > most_named ? ", ..." : "");
}

// Folding replaces values, and with them the names of the results.
static const char **result_names(const berth_module *module, berth_func_id main) {
    uint32_t count = berth_graph_get(module, main)->regions.data[0].results.count;
    const char **names = berth_arena_new_array(module->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i)
        names[i] = berth_module_str(module, berth_graph_result_name(module, main, i));
    return names;
}

static berth_status run_emit(void *user) {
    emit_job *job = user;
    berth_module *module = job->module;
    uint32_t index = 0;
    berth_func_id main = berth_module_find_function(module, "main");
    if (main == BERTH_NONE || !berth_graph_get(module, main))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    const char **names = result_names(module, main);
    BERTH_TRY(berth_pass_fold(module, main, &(berth_fold_options){.log = job->log}));
    if (job->counts_extents) BERTH_TRY(vm_count_extents(module, main));
    BERTH_TRY(vm_declare_states(module, main, names));
    vm_builder b = {
        .module = module, .arena = module->arena, .compile_parameters = job->compile_parameters};
    BERTH_TRY(vm_function_index(&b, main, &index));
    note_host_work(&b, job->log);
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    berth_vm_port *outputs =
        ports_of(module, graph, root->results.data, root->results.count, "output_kinds");
    for (uint32_t i = 0; i < root->results.count; ++i) outputs[i].name = names[i];
    berth_vm_port *inputs =
        ports_of(module, graph, root->params.data, root->params.count, "input_kinds");
    set_states(module, main, inputs, root->params.count);
    berth_vm_program program = {.name = berth_module_str(module, module->name),
                                .functions = b.functions.data,
                                .function_count = b.functions.count,
                                .constants = b.constants.data,
                                .constant_count = b.constants.count,
                                .segments = b.segment_pieces.data,
                                .segment_count = b.segment_pieces.count,
                                .host_operations = b.host_pieces.data,
                                .host_operation_count = b.host_pieces.count,
                                .messages = b.messages.data,
                                .message_count = b.messages.count,
                                .inputs = inputs,
                                .input_count = root->params.count,
                                .outputs = outputs,
                                .output_count = root->results.count};
    *job->code =
        (berth_vm_code){.program = berth_arena_copy(module->arena, &program, sizeof(program)),
                        .segments = b.segments.data,
                        .host_operations = b.host_operations.data};
    return berth_vm_verify(job->code->program);
}

berth_status berth_vm_emit(berth_module *module, berth_log log, bool compile_parameters,
                           berth_vm_code *out_code) {
    emit_job job = {
        .module = module, .log = log, .compile_parameters = compile_parameters, .code = out_code};
    *out_code = (berth_vm_code){.program = NULL};
    return berth_arena_try(module->arena, run_emit, &job);
}

berth_status berth_vm_emit_counted(berth_module *module, berth_vm_code *out_code) {
    emit_job job = {.module = module, .counts_extents = true, .code = out_code};
    *out_code = (berth_vm_code){.program = NULL};
    return berth_arena_try(module->arena, run_emit, &job);
}

// Programs have tensors of numbers whose extents are known.
static bool is_of_programs(const berth_type *type) {
    return berth_type_is_static(type) && type->dtype != BERTH_DTYPE_STRING;
}

bool berth_vm_is_needed(const berth_module *module, berth_func_id main) {
    const berth_graph *graph = berth_graph_get(module, main);
    if (!graph) return false;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (!is_of_programs(berth_type_get(module, graph->values.data[root->params.data[i]].type)))
            return true;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->region_count || berth_op_is_of_sequences(op->kind) ||
            berth_op_has(op->kind, BERTH_TRAIT_INTERPRETED))
            return true;
        for (uint32_t k = 0; k < op->output_count; ++k) {
            const berth_type *type =
                berth_type_get(module, graph->values.data[op->outputs[k]].type);
            if (type->kind <= BERTH_TYPE_TENSOR && !is_of_programs(type)) return true;
        }
    }
    return false;
}
