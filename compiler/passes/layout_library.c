// Operations that a library of the target computes (their attribute "library", compiler/libraries):
// the last operation of such a use becomes a call of an external function, on operands in the layouts
// that the library has kernels for. What the call takes the place of has no users then.
#include <stdio.h>
#include <string.h>

#include "compiler/libraries/choose.h"
#include "compiler/libraries/use.h"
#include "compiler/passes/layout_private.h"
#include "ir/external.h"

typedef berth_layout_pass pass;

bool berth_layout__has_libraries(const pass *p) {
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (p->target->devices[d].target->libs.count > 0) return true;
    return false;
}

// ---- operands -----------------------------------------------------------------------------------

static const char *weights_tag(const berth_library_convolution *c) {
    bool wide = c->block == BERTH_LAYOUT_WIDE_BLOCK;
    if (c->depthwise) return wide ? "Abcd16a" : "Abcd8a";
    if (c->plain_input) return wide ? "Acdb16a" : "Acdb8a";
    return wide ? "ABcd16b16a" : "ABcd8b8a";
}

static berth_str_id blocked(const pass *p, int64_t block) {
    return berth_layout__blocked(p, 4, block);
}

// The operands in the layouts of the call, made before operation `at`. False: a constant that no
// layout takes.
static bool convert_operands(pass *p, const berth_library_use *use, berth_op_id at,
                             berth_value_id operands[4]) {
    const berth_library_convolution *c = &use->convolution;
    bool conv = use->kind == BERTH_OP_CONV && c->block > 1;  // in blocks of channels
    for (uint32_t i = 0; i < use->operand_count; ++i) operands[i] = use->operands[i];
    berth_str_id layout = conv && !c->plain_input ? blocked(p, c->block) : 0;
    operands[0] = berth_layout__convert(p, operands[0], layout, at, at);
    if (use->sum) {
        berth_value_id *sum = &operands[use->operand_count - 1];
        *sum = berth_layout__convert(p, *sum, conv ? blocked(p, c->block) : 0, at, at);
    }
    if (!conv) {
        operands[1] = berth_layout__convert(p, operands[1], 0, at, at);
        return true;
    }
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), use->operands[1]);
    operands[1] = berth_layout__packed_constant(p, weights, weights_tag(c), at);
    return operands[1] != BERTH_NONE;
}

// ---- the function -------------------------------------------------------------------------------

static berth_func_id find_function(const berth_module *module, const char *key,
                                   berth_type_id type) {
    for (berth_func_id i = 0; i < module->functions.count; ++i) {
        const berth_external *external = berth_external_get(module, i);
        const berth_attrs *attrs = &module->functions.data[i].attrs;
        if (external && external->type == type &&
            strcmp(berth_attrs_string(module, attrs, "computes", ""), key) == 0)
            return i;
    }
    return BERTH_NONE;
}

static void set_imports(berth_module *module, berth_attrs *attrs, const berth_library_code *code) {
    berth_str_id *names = berth_arena_new_array(module->arena, berth_str_id, code->import_count);
    for (uint32_t i = 0; i < code->import_count; ++i)
        names[i] = berth_module_intern(module, code->imports[i]);
    berth_attrs_set(
        module, attrs, "imports",
        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = code->import_count, .strings = names});
}

// One function for all calls that compute the same of equal types.
static berth_func_id function_for(pass *p, const berth_library_use *use, berth_type_id type,
                                  const char *const *layouts, int64_t parts) {
    berth_module *module = p->module;
    const berth_library_facts *facts = berth_library_facts_get(use->library);
    const char *cost_key = berth_arena_printf(module->arena, "%s: %s", facts->name,
                                              berth_library_key(use, module->arena));
    const char *computes =
        berth_arena_printf(module->arena, "%s, in %lld parts at most, %lld bytes of workspace",
                           cost_key, (long long)parts, (long long)use->workspace_bytes);
    berth_func_id found = find_function(module, computes, type);
    if (found != BERTH_NONE) return found;
    berth_library_code code = berth_library_code_of(use, layouts, parts, module->arena);
    berth_external external = {.language = berth_module_intern(module, code.language),
                               .symbol = berth_module_intern(module, BERTH_LIBRARY_SYMBOL),
                               .code = (const uint8_t *)code.source,
                               .code_size_bytes = strlen(code.source),
                               .is_text = true,
                               .type = type};
    const char *name = berth_arena_printf(module->arena, "%s_%s", facts->name,
                                          use->kind == BERTH_OP_CONV ? "conv" : "matmul");
    found = berth_external_create(module, name, external, graph_of(p)->ops.data[use->op].loc);
    berth_attrs *attrs = &berth_module_function(module, found)->attrs;
    berth_attrs_set_string(
        module, attrs, "calls",
        berth_arena_printf(module->arena, "%s of %s (%s)", use->what, facts->name, facts->file));
    berth_attrs_set_string(module, attrs, "library", facts->name);
    berth_attrs_set_string(module, attrs, "computes", computes);
    berth_attrs_set_string(module, attrs, BERTH_LIBRARY_COST_KEY, cost_key);
    berth_attrs_set_string(
        module, attrs, "imports_note",
        berth_arena_printf(module->arena,
                           "install %s, or build the program for a target without -libs=%s",
                           facts->package, facts->name));
    berth_attrs_set_float(module, attrs, "flops", use->flops);
    if (code.groups) berth_attrs_set_ints(module, attrs, "groups", &code.groups, 1);
    set_imports(module, attrs, &code);
    return found;
}

// ---- the call -----------------------------------------------------------------------------------

// One more result, which nobody reads: memory of the device that the call may use.
static berth_value_id add_workspace(pass *p, const berth_library_use *use) {
    berth_graph *graph = graph_of(p);
    berth_op *last = &graph->ops.data[use->last];
    berth_value_id *outputs = berth_arena_new_array(p->module->arena, berth_value_id, 2);
    berth_value made = graph->values.data[last->outputs[0]];
    made.type = berth_type_tensor(p->module, BERTH_DTYPE_U8, 1, &use->workspace_bytes);
    made.name = 0;
    made.index = 1;
    outputs[0] = last->outputs[0];
    outputs[1] = graph->values.count;
    berth_vec_push(p->module->arena, &graph->values, made);
    last->outputs = outputs;
    last->output_count = 2;
    return outputs[1];
}

static void become_call(pass *p, const berth_library_use *use, const berth_value_id *operands,
                        int64_t parts) {
    berth_module *module = p->module;
    berth_value_id result = graph_of(p)->ops.data[use->last].outputs[0];
    bool in_blocks = use->kind == BERTH_OP_CONV && use->convolution.block > 1;
    berth_str_id layout = in_blocks ? blocked(p, use->convolution.block) : 0;
    const char *layouts[5];
    berth_type_id types[6];
    uint32_t result_count = 1;
    berth_layout__set(p, result, layout);
    for (uint32_t i = 0; i <= use->operand_count; ++i) {
        berth_value_id value = i < use->operand_count ? operands[i] : result;
        types[i] = graph_of(p)->values.data[value].type;
        layouts[i] = berth_module_str(module, berth_type_get(module, types[i])->layout);
    }
    if (use->workspace_bytes)
        types[use->operand_count + result_count++] =
            graph_of(p)->values.data[add_workspace(p, use)].type;
    berth_type_id type = berth_type_function(module, types, use->operand_count,
                                             types + use->operand_count, result_count);
    berth_func_id function = function_for(p, use, type, layouts, parts);
    berth_op *last = &graph_of(p)->ops.data[use->last];
    berth_loc_id locs[2] = {graph_of(p)->ops.data[use->op].loc, last->loc};
    last->loc = use->op == use->last ? last->loc : berth_loc_fuse(module, locs, 2);
    last->kind = BERTH_OP_CALL;
    last->inputs = berth_arena_new_array(module->arena, berth_value_id, use->operand_count);
    memcpy(last->inputs, operands, use->operand_count * sizeof(*operands));
    last->input_count = use->operand_count;
    last->attrs = (berth_attrs){0};
    berth_attrs_set(module, &last->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = function});
}

bool berth_layout__library(pass *p, berth_op_id id) {
    berth_graph *graph = graph_of(p);
    if (graph->ops.data[id].kind == BERTH_OP_CALL)  // the end of a use, reached by now
        return berth_external_get(
                   p->module,
                   berth_attrs_find(p->module, &graph->ops.data[id].attrs, "callee")->function) !=
                   NULL &&
               p->library_users != NULL;
    const char *name =
        berth_attrs_string(p->module, &graph->ops.data[id].attrs, BERTH_ATTR_LIBRARY, "");
    const berth_target *target = berth_layout__target(p, id);
    berth_library_id library;
    berth_library_use use;
    if (!*name || !target || !p->library_users ||
        !berth_library_from_name(name, target->kind, &library) ||
        !berth_library_find(p->module, p->main, p->library_users, p->value_count, id, library,
                            target, &use))
        return false;
    berth_value_id operands[4] = {0};
    if (!convert_operands(p, &use, use.last, operands)) return false;
    become_call(p, &use, operands, target->cores);
    return true;
}
