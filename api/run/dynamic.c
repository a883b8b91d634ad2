// Models of the virtual machine (<berth/dynamic.h>).
#include "api/run/dynamic.h"

#include <string.h>

#include "api/run/program.h"

struct berth_results {
    uint32_t count;
    berth_vm_value **values;
};

berth_status berth_api__dynamic_make(const berth_api__dynamic_ops *ops, void *state,
                                     const berth_vm_program *code, berth_dynamic **out_dynamic) {
    berth_dynamic *dynamic = berth_calloc(berth_allocator_system(), 1, sizeof(*dynamic));
    *out_dynamic = dynamic;
    if (!dynamic) {
        ops->destroy(state);
        return berth_status_oom();
    }
    *dynamic = (berth_dynamic){.ops = ops, .state = state, .code = code};
    return BERTH_OK;
}

void berth_dynamic_destroy(berth_dynamic *dynamic) {
    if (!dynamic) return;
    dynamic->ops->destroy(dynamic->state);
    berth_free(berth_allocator_system(), dynamic, sizeof(*dynamic));
}

// ---- programs -----------------------------------------------------------------------------------

typedef struct loaded {
    berth_program *program;
    berth_vm_runner *runner;
} loaded;

static berth_status run_loaded(void *state, berth_vm_value *const *inputs,
                               berth_vm_value **outputs) {
    const loaded *held = state;
    return berth_vm_runner_run(held->runner, inputs, outputs);
}

static void cancel_loaded(void *state) {
    const loaded *held = state;
    berth_vm_runner_cancel(held->runner);
}

static void destroy_loaded(void *state) {
    loaded *held = state;
    berth_vm_runner_close(held->runner);
    berth_program_release(held->program);
    berth_free(berth_allocator_system(), held, sizeof(*held));
}

static berth_vm_runner *runner_of_loaded(void *state) {
    const loaded *held = state;
    return held->runner;
}

static void watch_loaded(void *state, berth_vm_watch watch) {
    const loaded *held = state;
    berth_vm_runner_watch(held->runner, watch);
}

static berth_pool *pool_of_loaded(void *state) {
    const loaded *held = state;
    return berth_vm_runner_pool(held->runner);
}

berth_status berth_program_load_dynamic(berth_program *program, uint32_t thread_count,
                                        berth_dynamic **out_dynamic) {
    static const berth_api__dynamic_ops ops = {run_loaded,       cancel_loaded, destroy_loaded,
                                               runner_of_loaded, watch_loaded,  pool_of_loaded};
    const berth_vm_runner_options options = {.thread_count = thread_count};
    *out_dynamic = NULL;
    loaded *held = berth_calloc(berth_allocator_system(), 1, sizeof(*held));
    if (!held) return berth_status_oom();
    berth_status status = berth_vm_runner_open(program, &options, &held->runner);
    if (status) {
        berth_free(berth_allocator_system(), held, sizeof(*held));
        return status;
    }
    held->program = program;
    berth_program_retain(program);
    return berth_api__dynamic_make(&ops, held, program->vm->code, out_dynamic);
}

// ---- names --------------------------------------------------------------------------------------

uint32_t berth_dynamic_input_count(const berth_dynamic *dynamic) {
    return dynamic->code->input_count;
}

uint32_t berth_dynamic_output_count(const berth_dynamic *dynamic) {
    return dynamic->code->output_count;
}

const char *berth_dynamic_input_name(const berth_dynamic *dynamic, uint32_t index) {
    return index < dynamic->code->input_count ? dynamic->code->inputs[index].name : NULL;
}

const char *berth_dynamic_output_name(const berth_dynamic *dynamic, uint32_t index) {
    return index < dynamic->code->output_count ? dynamic->code->outputs[index].name : NULL;
}

// ---- running ------------------------------------------------------------------------------------

static berth_status bind_inputs(const berth_dynamic *dynamic, const berth_tensor *inputs,
                                uint32_t count, berth_vm_value **values) {
    const berth_allocator allocator = berth_pool_allocator(dynamic->ops->pool(dynamic->state));
    for (uint32_t i = 0; i < count; ++i) {
        bool left_out = inputs[i].dtype == BERTH_DTYPE_NONE && !inputs[i].data;
        if (dynamic->keeper && left_out) continue;
        BERTH_TRY(berth_status_prefix(berth_tensor_check(&inputs[i]), "input \"%s\"",
                                      berth_dynamic_input_name(dynamic, i)));
        BERTH_TRY(berth_vm_value_borrow(allocator, &inputs[i], &values[i]));
    }
    return BERTH_OK;
}

static berth_status make_results(uint32_t count, berth_results **out_results) {
    berth_results *results = berth_calloc(berth_allocator_system(), 1, sizeof(*results));
    *out_results = results;
    if (!results) return berth_status_oom();
    results->count = count;
    results->values =
        berth_calloc(berth_allocator_system(), (size_t)count + 1, sizeof(*results->values));
    return results->values ? BERTH_OK : berth_status_oom();
}

static berth_status run(berth_dynamic *dynamic, const berth_tensor *inputs, uint32_t count,
                        berth_results *results) {
    size_t size = ((size_t)count + 1) * sizeof(berth_vm_value *);
    berth_vm_value **values = berth_calloc(berth_allocator_system(), 1, size);
    if (!values) return berth_status_oom();
    berth_status status = bind_inputs(dynamic, inputs, count, values);
    if (!status) status = dynamic->ops->run(dynamic->state, values, results->values);
    for (uint32_t i = 0; i < count; ++i) berth_vm_value_release(values[i]);
    berth_free(berth_allocator_system(), values, size);
    return status;
}

// Results may be an input or a constant of the model, unchanged.
static berth_status own_values(berth_results *results) {
    for (uint32_t i = 0; i < results->count; ++i)
        if (results->values[i]) BERTH_TRY(berth_vm_value_own(&results->values[i]));
    return BERTH_OK;
}

berth_status berth_dynamic_run(berth_dynamic *dynamic, const berth_tensor *inputs,
                               uint32_t input_count, berth_results **out_results) {
    *out_results = NULL;
    uint32_t wanted = berth_dynamic_input_count(dynamic);
    if (input_count != wanted)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u inputs were given, the model has %u",
                                 input_count, wanted);
    berth_results *results = NULL;
    berth_status status = make_results(berth_dynamic_output_count(dynamic), &results);
    if (!status) status = run(dynamic, inputs, input_count, results);
    if (!status) status = own_values(results);
    status = berth_pool_say_refusal(dynamic->ops->pool(dynamic->state), status);
    if (status)
        berth_results_free(results);
    else
        *out_results = results;
    return status;
}

// ---- state --------------------------------------------------------------------------------------

uint32_t berth_dynamic_state_output(const berth_dynamic *dynamic, uint32_t index) {
    return index < dynamic->code->input_count ? dynamic->code->inputs[index].state - 1 : UINT32_MAX;
}

// Of a compiled program; NULL: it compiles as it runs.
static berth_vm_runner *runner_of(const berth_dynamic *dynamic) {
    return dynamic->ops->runner ? dynamic->ops->runner(dynamic->state) : NULL;
}

berth_status berth_dynamic_keep_states(berth_dynamic *dynamic) {
    berth_vm_runner *runner = runner_of(dynamic);
    if (!runner) return berth_status_make(BERTH_UNSUPPORTED, "only a compiled program keeps state");
    BERTH_TRY(berth_vm_runner_keep_states(runner));
    dynamic->keeper = runner;
    return BERTH_OK;
}

void berth_dynamic_reset_states(berth_dynamic *dynamic) {
    if (dynamic->keeper) berth_vm_runner_reset_states(dynamic->keeper);
}

berth_status berth_dynamic_get_state(const berth_dynamic *dynamic, uint32_t index,
                                     berth_results **out_results) {
    berth_status status = make_results(1, out_results);
    if (!status && dynamic->keeper)
        status = berth_vm_runner_get_state(dynamic->keeper, index, (*out_results)->values);
    if (!status) status = own_values(*out_results);
    if (!status) return BERTH_OK;
    berth_results_free(*out_results);
    *out_results = NULL;
    return status;
}

uint64_t berth_dynamic_copied_bytes(const berth_dynamic *dynamic) {
    return dynamic->keeper ? berth_vm_runner_get_report(dynamic->keeper)->copied_bytes : 0;
}

// ---- memory of values ---------------------------------------------------------------------------

berth_status berth_dynamic_get_memory(const berth_dynamic *dynamic,
                                      berth_dynamic_memory *out_memory, size_t size_bytes) {
    berth_pool_facts facts;
    berth_pool_get_facts(dynamic->ops->pool(dynamic->state), &facts);
    berth_vm_runner *runner = runner_of(dynamic);
    const berth_workspaces *blocks = runner ? berth_vm_runner_blocks(runner) : NULL;
    const berth_dynamic_memory memory = {facts.limit_bytes,
                                         facts.reserved_bytes,
                                         facts.most_reserved_bytes,
                                         facts.live_bytes,
                                         facts.most_live_bytes,
                                         facts.live_count,
                                         facts.allocation_count,
                                         facts.system_count,
                                         blocks ? blocks->reserved_bytes : 0,
                                         blocks ? blocks->made_count : 0};
    if (size_bytes < sizeof(memory.limit_bytes) || size_bytes > sizeof(memory))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "memory has %zu bytes in this version, not %zu", sizeof(memory),
                                 size_bytes);
    memcpy(out_memory, &memory, size_bytes);
    return BERTH_OK;
}

void berth_dynamic_limit_memory(berth_dynamic *dynamic, uint64_t limit_bytes) {
    berth_vm_runner *runner = runner_of(dynamic);
    berth_pool_set_limit(dynamic->ops->pool(dynamic->state), limit_bytes);
    if (runner) berth_vm_runner_blocks(runner)->limit_bytes = limit_bytes;
}

void berth_dynamic_listen(berth_dynamic *dynamic, berth_piece_listener listener, void *user) {
    dynamic->ops->watch(dynamic->state, (berth_vm_watch){listener, user});
}

void berth_dynamic_cancel(berth_dynamic *dynamic) {
    dynamic->ops->cancel(dynamic->state);
}

void berth_results_free(berth_results *results) {
    if (!results) return;
    for (uint32_t i = 0; results->values && i < results->count; ++i)
        berth_vm_value_release(results->values[i]);
    berth_free(berth_allocator_system(), results->values,
               ((size_t)results->count + 1) * sizeof(*results->values));
    berth_free(berth_allocator_system(), results, sizeof(*results));
}

static const berth_vm_value *value_at(const berth_results *results, uint32_t index) {
    return index < results->count ? results->values[index] : NULL;
}

int berth_results_is_sequence(const berth_results *results, uint32_t index) {
    const berth_vm_value *value = value_at(results, index);
    return value && value->kind == BERTH_VM_VALUE_SEQUENCE;
}

uint32_t berth_results_item_count(const berth_results *results, uint32_t index) {
    const berth_vm_value *value = value_at(results, index);
    if (!value) return 0;
    return value->kind == BERTH_VM_VALUE_SEQUENCE ? value->item_count
                                                  : value->kind != BERTH_VM_VALUE_NOTHING;
}

static const berth_vm_value *item_at(const berth_results *results, uint32_t index, uint32_t item) {
    const berth_vm_value *value = value_at(results, index);
    if (item >= berth_results_item_count(results, index)) return NULL;
    return value->kind == BERTH_VM_VALUE_SEQUENCE ? value->items[item] : value;
}

const berth_tensor *berth_results_item(const berth_results *results, uint32_t index,
                                       uint32_t item) {
    const berth_vm_value *value = item_at(results, index, item);
    if (!value) return NULL;
    return value->kind == BERTH_VM_VALUE_MAP ? &value->items[1]->tensor : &value->tensor;
}

const berth_tensor *berth_results_keys(const berth_results *results, uint32_t index,
                                       uint32_t item) {
    const berth_vm_value *value = item_at(results, index, item);
    return value && value->kind == BERTH_VM_VALUE_MAP ? &value->items[0]->tensor : NULL;
}
