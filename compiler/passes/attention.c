#include "compiler/passes/attention.h"

#include "planner/planner.h"

#define TILE_ROWS 64          // of a product, that share what is read
#define CACHE_OVER_MEMORY 4   // bytes per second
#define USUAL_EFFICIENCY 0.5  // of the peak, where operands come from the cache
#define USUAL_BANDWIDTH 20e9  // bytes per second, where the target does not say
#define ACCESSES 4  // of a score: written, read by the softmax, written, read by the product

typedef struct estimate {
    double bandwidth;   // bytes per second
    double peak;        // operations per second: of f32
    double peak_apart;  // and of the products by themselves
    double dispatch_s;
} estimate;

// Seconds in one kernel, less those in three.
static double difference(const berth_attention *a, double element_bytes, const estimate *e) {
    double batch = (double)a->batch, rows = (double)a->rows, keys = (double)a->keys;
    double flops = 2 * batch * rows * keys * (double)(a->depth + a->columns);
    double operand_bytes = batch * keys * (double)(a->depth + a->columns) * element_bytes;
    int64_t block_rows = berth_attention_block_rows(a);
    int64_t again = (a->rows + block_rows - 1) / block_rows - (a->rows + TILE_ROWS - 1) / TILE_ROWS;
    double spent = (double)again * operand_bytes / (e->bandwidth * CACHE_OVER_MEMORY);
    double slower =
        flops / (e->peak * USUAL_EFFICIENCY) - flops / (e->peak_apart * USUAL_EFFICIENCY);
    double saved =
        ACCESSES * batch * rows * keys * element_bytes / e->bandwidth + 2 * e->dispatch_s;
    return spent + (slower > 0 ? slower : 0) - saved;
}

bool berth_attention_pays(const berth_module *module, const berth_graph *graph,
                          const berth_multi_target *target, const berth_attention *attention) {
    const berth_op *op = &graph->ops.data[attention->ops[attention->count - 1]];
    uint32_t device = target ? berth_plan_device_of(module, target, op->device) : BERTH_NO_INDEX;
    if (device == BERTH_NO_INDEX) return false;
    const berth_target *on = target->devices[device].target;
    if (!berth_target_has_groups(on)) return false;
    berth_dtype dtype = berth_type_get(module, graph->values.data[op->inputs[1]].type)->dtype;
    double element_bytes = (double)berth_dtype_size_bytes(dtype);
    int64_t block_rows = berth_attention_block_rows(attention);
    int64_t held = block_rows * (berth_attention_block_keys(attention) + attention->columns + 4);
    int64_t sum_bytes = dtype == BERTH_DTYPE_F64 ? 8 : 4;
    if (held * sum_bytes > berth_target_declared_local_bytes(on) / 2) return false;
    estimate e = {.bandwidth =
                      target->memories[target->devices[device].own_memory].bandwidth_bytes_per_s,
                  .peak = berth_target_peak(on, sum_bytes == 8 ? BERTH_DTYPE_F64 : BERTH_DTYPE_F32),
                  .peak_apart = berth_target_peak(on, dtype),
                  .dispatch_s = (double)on->dispatch_ns * 1e-9};
    if (e.bandwidth <= 0) e.bandwidth = USUAL_BANDWIDTH;
    return e.peak > 0 && e.peak_apart > 0 && difference(attention, element_bytes, &e) < 0;
}
