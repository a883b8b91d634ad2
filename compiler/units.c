// Distinct tensor functions: equal ones (structural hash) on equal device targets are scheduled and
// printed once.
#include <string.h>

#include "compiler/pipeline.h"
#include "compiler/schedule/schedule.h"

typedef struct unit_key {
    berth_hash128 function;
    berth_hash128 target;
} unit_key;

typedef struct unit_table {
    berth_module *module;
    berth_pipeline *pipeline;
    BERTH_VEC(unit_key) keys;  // parallel to pipeline->units
    uint32_t *slots;           // open addressing, index + 1
    uint32_t mask;
} unit_table;

static uint32_t *find_slot(unit_table *table, const unit_key *key) {
    for (uint32_t at = (uint32_t)key->function.low & table->mask;; at = (at + 1) & table->mask) {
        uint32_t *slot = &table->slots[at];
        if (*slot == 0 || memcmp(&table->keys.data[*slot - 1], key, sizeof(*key)) == 0) return slot;
    }
}

static uint32_t count_nests(const berth_tfn *fn) {
    if (!fn->body) return 0;
    const berth_stmt_node *body = &fn->stmts.data[fn->body];
    return body->kind == BERTH_STMT_SEQ ? body->count : 1;
}

static berth_status make_unit(unit_table *table, berth_tfn *fn, uint32_t device, const char *name) {
    berth_arena *arena = table->module->arena;
    const berth_target *target = table->pipeline->options->target->devices[device].target;
    const char *kind = berth_device_kind_name(target->kind);
    const berth_codegen *codegen = berth_codegen_find(kind);
    if (!codegen)
        return berth_status_make(BERTH_UNSUPPORTED, "no code generator for devices of kind %s",
                                 kind);
    berth_unit unit = {.fn = fn, .device = device, .executable = BERTH_NO_INDEX};
    unit.prefix = berth_arena_printf(arena, "u%u", table->pipeline->units.count);
    unit.in_place_count = berth_in_place_find(fn, &unit.in_place);
    uint32_t nests = count_nests(fn);
    BERTH_TRY(
        berth_status_prefix(berth_schedule_apply(fn, target), "scheduling %s for %s", name, kind));
    BERTH_TRY(berth_status_prefix(codegen->print(fn, unit.prefix, arena, &unit.code),
                                  "printing %s for %s", name, kind));
    if (unit.code.kernel_count != nests) unit.in_place_count = 0;  // pairs are numbered by nests
    berth_vec_push(arena, &table->pipeline->units, unit);
    return BERTH_OK;
}

static berth_status unit_for_call(unit_table *table, const berth_op *call, uint32_t *out_unit) {
    berth_module *module = table->module;
    const berth_attr *callee = berth_attrs_find(module, &call->attrs, "callee");
    berth_tfn *fn = callee ? berth_tfn_get(module, callee->function) : NULL;
    if (!fn)
        return berth_status_make(BERTH_INTERNAL,
                                 "a call of main is not lowered to a tensor function");
    const berth_multi_target *target = table->pipeline->options->target;
    uint32_t device = berth_plan_device_of(module, target, call->device);
    if (device == BERTH_NO_INDEX)
        return berth_status_make(BERTH_INTERNAL, "a call of main has no device");
    unit_key key = {.function = berth_tfn_hash(fn), .target = target->devices[device].target->hash};
    uint32_t *slot = find_slot(table, &key);
    if (*slot == 0) {
        const char *name =
            berth_module_str(module, berth_module_function(module, callee->function)->name);
        BERTH_TRY(make_unit(table, fn, device, name));
        berth_vec_push(module->arena, &table->keys, key);
        *slot = table->keys.count;
    }
    *out_unit = *slot - 1;
    return BERTH_OK;
}

berth_status berth_pipeline__make_units(berth_module *module, berth_func_id main,
                                        berth_pipeline *pipeline) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    unit_table table = {.module = module, .pipeline = pipeline, .mask = 63};
    while (table.mask < root->ops.count * 2) table.mask = table.mask * 2 + 1;
    table.slots = berth_arena_new_array(module->arena, uint32_t, table.mask + 1);
    pipeline->unit_of_op = berth_arena_new_array(module->arena, uint32_t, graph->ops.count);
    memset(pipeline->unit_of_op, 0xff, graph->ops.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        if (graph->ops.data[id].kind == BERTH_OP_CALL)
            BERTH_TRY(unit_for_call(&table, &graph->ops.data[id], &pipeline->unit_of_op[id]));
    }
    return BERTH_OK;
}
