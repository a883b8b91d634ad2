// Memory in what `berth plan` shows: per pool its size, bound and what is live at the peak; and how
// intermediate values came to share bytes.
#include "tools/plan_memory.h"

#include <string.h>

#include "tools/cli_model.h"

static const char *usage_name(berth_pool_usage usage) {
    static const char *const names[] = {"workspace", "constants", "io", "store"};
    return names[usage];
}

static const berth_memory_report_pool *pool_report(const berth_model *model, uint32_t pool) {
    const berth_memory_report *memory = berth_model_memory(model);
    for (uint32_t i = 0; i < memory->pool_count; ++i)
        if (memory->pools[i].pool == pool) return &memory->pools[i];
    return NULL;
}

// ", shared with a, b", or nothing.
static void print_sharers(const berth_program *program, const berth_program_pool *pool) {
    for (uint32_t d = 0, count = 0; d < program->device_count; ++d)
        if (d != pool->device && berth_program_pool_reached(pool, d))
            berth_cli_print("%s%s", count++ ? ", " : ", shared with ", program->devices[d].name);
}

static json_t *sharers_json(const berth_program *program, const berth_program_pool *pool) {
    json_t *names = json_array();
    for (uint32_t d = 0; d < program->device_count; ++d)
        if (d != pool->device && berth_program_pool_reached(pool, d))
            json_array_append_new(names, berth_cli_json_text(program->devices[d].name));
    return names;
}

// The target's memory that a pool lies in.
static uint32_t memory_of(const berth_model *model, const berth_program_pool *pool) {
    const berth_multi_target *target = berth_model_target(model);
    const berth_target_device *device = &target->devices[pool->device];
    uint32_t memory = device->own_memory;
    if (strcmp(pool->scope, target->memories[memory].scope) != 0)
        memory = berth_multi_target_memory_of(target, pool->device, pool->scope);
    else if (pool->usage == BERTH_POOL_CONSTANT)
        memory = device->constant_memory;
    return memory;
}

static const char *memory_name(const berth_model *model, const berth_program_pool *pool) {
    return berth_model_target(model)->memories[memory_of(model, pool)].name;
}

void berth_plan_memory_use(const berth_model *model, uint64_t *out_bytes) {
    const berth_program *program = berth_model_program(model);
    for (uint32_t m = 0; m < berth_model_target(model)->memory_count; ++m) out_bytes[m] = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        out_bytes[memory_of(model, &program->pools[i])] += program->pools[i].size_bytes;
}

static double gap_percent(const berth_program_pool *pool) {
    if (pool->lower_bound_bytes == 0) return 0;
    return 100.0 * (double)(pool->size_bytes - pool->lower_bound_bytes) /
           (double)pool->lower_bound_bytes;
}

// Of the kernel that takes most.
static uint64_t thread_bytes(const berth_program *program) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > most) most = program->kernels[i].scratch_bytes;
    return most;
}

// Constants that budgets have no room for.
static void print_streamed(const berth_model *model) {
    const berth_memory_report *memory = berth_model_memory(model);
    char bytes[4][32];
    for (uint32_t i = 0; i < memory->streamed_count; ++i) {
        const berth_memory_streamed *s = &memory->streamed[i];
        berth_format_bytes(s->budget_bytes, bytes[0]);
        berth_format_bytes(s->constant_bytes, bytes[1]);
        berth_format_bytes(s->resident_bytes, bytes[2]);
        berth_format_bytes(s->loaded_bytes, bytes[3]);
        berth_cli_print("budget       %s: %s; of constants of %s stay %s; %u are read in each run: "
                        "%u reads, %s, %.3f ms, beside kernels; the run takes %.3f ms instead of "
                        "%.3f\n",
                        s->memory, bytes[0], bytes[1], bytes[2], s->constant_count, s->load_count,
                        bytes[3], s->load_ns / 1e6, s->run_ns / 1e6, s->whole_ns / 1e6);
        berth_format_bytes(s->spilled_bytes, bytes[0]);
        if (s->spilled_count)
            berth_cli_print("  moved      %u values, %s, to host memory and back in each run\n",
                            s->spilled_count, bytes[0]);
        for (uint32_t k = 0; k < s->load_count; ++k) {
            berth_format_bytes(s->loads[k].size_bytes, bytes[0]);
            berth_cli_print("  read       %-10s %s, from %s on, for %s\n", bytes[0],
                            s->loads[k].name, s->loads[k].from_step, s->loads[k].first_step);
        }
    }
}

json_t *berth_plan_streamed_json(const berth_model *model) {
    const berth_memory_report *memory = berth_model_memory(model);
    json_t *list = json_array();
    for (uint32_t i = 0; i < memory->streamed_count; ++i) {
        const berth_memory_streamed *s = &memory->streamed[i];
        json_t *loads = json_array();
        for (uint32_t k = 0; k < s->load_count; ++k)
            json_array_append_new(
                loads, json_pack("{s:o, s:I, s:o, s:o, s:o}", "name",
                                 berth_cli_json_text(s->loads[k].name), "bytes",
                                 (json_int_t)s->loads[k].size_bytes, "from_step",
                                 berth_cli_json_text(s->loads[k].from_step), "first_step",
                                 berth_cli_json_text(s->loads[k].first_step), "last_step",
                                 berth_cli_json_text(s->loads[k].last_step)));
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o}", "memory",
                      s->memory, "device", berth_model_program(model)->devices[s->device].name,
                      "budget_bytes", (json_int_t)s->budget_bytes, "constant_bytes",
                      (json_int_t)s->constant_bytes, "resident_bytes",
                      (json_int_t)s->resident_bytes, "constants", (json_int_t)s->constant_count,
                      "loaded_bytes", (json_int_t)s->loaded_bytes, "values_moved",
                      (json_int_t)s->spilled_count, "moved_bytes", (json_int_t)s->spilled_bytes,
                      "load_ms", s->load_ns / 1e6, "run_ms", s->run_ns / 1e6, "unlimited_ms",
                      s->whole_ns / 1e6, "loads", loads));
    }
    return list;
}

// Where a workspace is fullest, and how the intermediate values came to share it.
void berth_plan_memory_print(const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    const berth_memory_report *memory = berth_model_memory(model);
    char bytes[4][32];
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        const berth_memory_report_pool *report = pool_report(model, i);
        berth_format_bytes(pool->size_bytes, bytes[0]);
        berth_format_bytes(pool->lower_bound_bytes, bytes[1]);
        berth_cli_print("memory       %s", program->devices[pool->device].name);
        print_sharers(program, pool);
        berth_cli_print(", in %s, scope %s, %s: %s (lower bound %s, gap %.2f%%)\n",
                        memory_name(model, pool), pool->scope, usage_name(pool->usage), bytes[0],
                        bytes[1], gap_percent(pool));
        for (uint32_t k = 0; report && k < report->value_count; ++k) {
            berth_format_bytes(report->values[k].size_bytes, bytes[0]);
            if (k == 0)
                berth_cli_print("  peak       at %s, placed by %s\n", report->peak_step,
                                report->strategy);
            berth_cli_print("  live       %-10s %s, from %s to %s\n", bytes[0],
                            report->values[k].name, report->values[k].first_step,
                            report->values[k].last_step);
        }
        if (report && report->made_bytes + report->padding_bytes > 0) {
            berth_format_bytes(report->made_bytes, bytes[0]);
            berth_format_bytes(report->padding_bytes, bytes[1]);
            berth_cli_print("  layouts    %s in values that the model does not have (borders, "
                            "relayouts, transforms), %s in padding of blocks\n",
                            bytes[0], bytes[1]);
        }
    }
    print_streamed(model);
    berth_format_bytes(thread_bytes(program), bytes[0]);
    if (thread_bytes(program))
        berth_cli_print("scratch      at most %s for each thread, beside the workspace\n",
                        bytes[0]);
    berth_format_bytes(memory->plain_bytes, bytes[0]);
    berth_format_bytes(memory->in_place_bytes, bytes[1]);
    berth_format_bytes(memory->views_bytes, bytes[2]);
    berth_format_bytes(memory->ordered_bytes, bytes[3]);
    berth_cli_print(
        "live sum     %s; results over operands: %s (%u); parts in wholes: %s (%u steps less); "
        "order: %s\n",
        bytes[0], bytes[1], memory->in_place_count, bytes[2], memory->removed_steps, bytes[3]);
}

json_t *berth_plan_memory_json(const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    json_t *pools = json_array();
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        const berth_memory_report_pool *report = pool_report(model, i);
        json_t *item = json_pack(
            "{s:s, s:s, s:o, s:s, s:s, s:I, s:I}", "device", program->devices[pool->device].name,
            "memory", memory_name(model, pool), "shared_with", sharers_json(program, pool), "scope",
            pool->scope, "usage", usage_name(pool->usage), "peak_bytes",
            (json_int_t)pool->size_bytes, "lower_bound_bytes", (json_int_t)pool->lower_bound_bytes);
        json_array_append_new(pools, item);
        if (!report) continue;
        json_t *values = json_array();
        for (uint32_t k = 0; k < report->value_count; ++k)
            json_array_append_new(
                values, json_pack("{s:o, s:I, s:o, s:o}", "name",
                                  berth_cli_json_text(report->values[k].name), "bytes",
                                  (json_int_t)report->values[k].size_bytes, "first_step",
                                  berth_cli_json_text(report->values[k].first_step), "last_step",
                                  berth_cli_json_text(report->values[k].last_step)));
        json_object_set_new(item, "live_bytes", json_integer((json_int_t)report->live_bytes));
        json_object_set_new(item, "made_bytes", json_integer((json_int_t)report->made_bytes));
        json_object_set_new(item, "padding_bytes", json_integer((json_int_t)report->padding_bytes));
        json_object_set_new(item, "peak_step", berth_cli_json_text(report->peak_step));
        json_object_set_new(item, "strategy", berth_cli_json_text(report->strategy));
        json_object_set_new(item, "peak_values", values);
    }
    return pools;
}

json_t *berth_plan_sharing_json(const berth_model *model) {
    const berth_memory_report *memory = berth_model_memory(model);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "scratch_bytes_per_thread",
        (json_int_t)thread_bytes(berth_model_program(model)), "plain_bytes",
        (json_int_t)memory->plain_bytes, "in_place_bytes", (json_int_t)memory->in_place_bytes,
        "views_bytes", (json_int_t)memory->views_bytes, "ordered_bytes",
        (json_int_t)memory->ordered_bytes, "order_bound_bytes",
        (json_int_t)memory->order_bound_bytes, "order_states", (json_int_t)memory->order_states,
        "in_place_count", (json_int_t)memory->in_place_count, "removed_steps",
        (json_int_t)memory->removed_steps, "removed_bytes", (json_int_t)memory->removed_bytes);
}
