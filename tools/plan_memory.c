// Memory in what `berth plan` shows: per pool its size, bound and what is live at the peak; and how
// intermediate values came to share bytes.
#include "tools/plan_memory.h"

#include "base/str.h"
#include "tools/cli.h"

// ", shared with a, b", or nothing.
static void print_sharers(const berth_planned_pool *pool) {
    for (uint32_t i = 0; i < pool->shared_with_count; ++i)
        berth_cli_print("%s%s", i ? ", " : ", shared with ", pool->shared_with[i]);
}

static json_t *sharers_json(const berth_planned_pool *pool) {
    json_t *names = json_array();
    for (uint32_t i = 0; i < pool->shared_with_count; ++i)
        json_array_append_new(names, berth_cli_json_text(pool->shared_with[i]));
    return names;
}

static double gap_percent(const berth_planned_pool *pool) {
    if (pool->lower_bound_bytes == 0) return 0;
    return 100.0 * (double)(pool->size_bytes - pool->lower_bound_bytes) /
           (double)pool->lower_bound_bytes;
}

// Whether nothing runs while constants are read.
static bool kernels_wait(const berth_planned_stream *s) {
    return s->run_ns - s->whole_ns >= 0.999 * s->load_ns;
}

// Constants that budgets have no room for.
static void print_streamed(const berth_plan_info *plan) {
    char bytes[4][32];
    for (uint32_t i = 0; i < berth_plan_info_stream_count(plan); ++i) {
        const berth_planned_stream *s = berth_plan_info_stream(plan, i);
        berth_format_bytes(s->budget_bytes, bytes[0]);
        berth_format_bytes(s->constant_bytes, bytes[1]);
        berth_format_bytes(s->resident_bytes, bytes[2]);
        berth_format_bytes(s->loaded_bytes, bytes[3]);
        if (!s->constant_bytes)
            berth_cli_print("budget       %s: %s; the run takes %.3f ms instead of %.3f\n",
                            s->memory, bytes[0], s->run_ns / 1e6, s->whole_ns / 1e6);
        else
            berth_cli_print(
                "budget       %s: %s; of constants of %s stay %s; %u are read in each run: "
                "%u reads, %s, %.3f ms, %s; the run takes %.3f ms instead of %.3f\n",
                s->memory, bytes[0], bytes[1], bytes[2], s->constant_count, s->load_count, bytes[3],
                s->load_ns / 1e6, kernels_wait(s) ? "for which kernels wait" : "beside kernels",
                s->run_ns / 1e6, s->whole_ns / 1e6);
        berth_format_bytes(s->spilled_bytes, bytes[0]);
        if (s->spilled_count)
            berth_cli_print("  moved      %u values, %s, to host memory and back in each run\n",
                            s->spilled_count, bytes[0]);
        berth_format_bytes(s->recomputed_bytes, bytes[0]);
        if (s->recomputed_count)
            berth_cli_print(
                "  again      %u values, %s, are not kept but computed again: %u steps, "
                "%.3f ms\n",
                s->recomputed_count, bytes[0], s->recomputed_steps, s->recompute_ns / 1e6);
        for (uint32_t k = 0; k < s->load_count; ++k) {
            berth_format_bytes(s->loads[k].size_bytes, bytes[0]);
            berth_cli_print("  read       %-10s %s, from %s on, for %s\n", bytes[0],
                            s->loads[k].name, s->loads[k].from_step, s->loads[k].first_step);
        }
    }
}

json_t *berth_plan_streamed_json(const berth_plan_info *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_plan_info_stream_count(plan); ++i) {
        const berth_planned_stream *s = berth_plan_info_stream(plan, i);
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
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, "
                      "s:f, s:o}",
                      "memory", s->memory, "device", s->device, "budget_bytes",
                      (json_int_t)s->budget_bytes, "constant_bytes", (json_int_t)s->constant_bytes,
                      "resident_bytes", (json_int_t)s->resident_bytes, "constants",
                      (json_int_t)s->constant_count, "loaded_bytes", (json_int_t)s->loaded_bytes,
                      "values_moved", (json_int_t)s->spilled_count, "moved_bytes",
                      (json_int_t)s->spilled_bytes, "values_recomputed",
                      (json_int_t)s->recomputed_count, "recomputed_bytes",
                      (json_int_t)s->recomputed_bytes, "recomputed_steps",
                      (json_int_t)s->recomputed_steps, "recompute_ms", s->recompute_ns / 1e6,
                      "load_ms", s->load_ns / 1e6, "run_ms", s->run_ns / 1e6, "unlimited_ms",
                      s->whole_ns / 1e6, "loads", loads));
    }
    return list;
}

// Of a model for all extents within bounds.
static void print_shapes(const berth_plan_info *plan) {
    for (uint32_t i = 0; i < berth_plan_info_workspace_count(plan); ++i) {
        const berth_planned_workspace *w = berth_plan_info_workspace(plan, i);
        char bytes[2][32];
        berth_format_bytes(w->least_bytes, bytes[0]);
        berth_format_bytes(w->most_bytes, bytes[1]);
        berth_cli_print("shapes       %s (%s) %s\n", w->nodes, w->ops, w->shapes);
        berth_cli_print("  workspace  on %s: %s at the least, %s at the most", w->device, bytes[0],
                        bytes[1]);
        berth_cli_print(w->expression ? "; %s bytes\n" : "\n", w->expression);
    }
}

json_t *berth_plan_shapes_json(const berth_plan_info *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_plan_info_workspace_count(plan); ++i) {
        const berth_planned_workspace *w = berth_plan_info_workspace(plan, i);
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:s, s:I, s:I, s:o}", "nodes", berth_cli_json_text(w->nodes),
                      "ops", berth_cli_json_text(w->ops), "shapes", berth_cli_json_text(w->shapes),
                      "device", w->device, "least_bytes", (json_int_t)w->least_bytes, "most_bytes",
                      (json_int_t)w->most_bytes, "expression",
                      w->expression ? berth_cli_json_text(w->expression) : json_null()));
    }
    return list;
}

// Where a workspace is fullest, and how the intermediate values came to share it.
void berth_plan_memory_print(const berth_plan_info *plan) {
    const berth_planned_sharing *sharing = berth_plan_info_sharing(plan);
    char bytes[4][32];
    for (uint32_t i = 0; i < berth_plan_info_pool_count(plan); ++i) {
        const berth_planned_pool *pool = berth_plan_info_pool(plan, i);
        berth_format_bytes(pool->size_bytes, bytes[0]);
        berth_format_bytes(pool->lower_bound_bytes, bytes[1]);
        berth_cli_print("memory       %s", pool->device);
        print_sharers(pool);
        berth_cli_print(", in %s, scope %s, %s: %s (lower bound %s, gap %.2f%%)\n", pool->memory,
                        pool->scope, pool->usage, bytes[0], bytes[1], gap_percent(pool));
        for (uint32_t k = 0; k < pool->value_count; ++k) {
            berth_format_bytes(pool->values[k].size_bytes, bytes[0]);
            if (k == 0)
                berth_cli_print("  peak       at %s, placed by %s\n", pool->peak_step,
                                pool->strategy);
            berth_cli_print("  live       %-10s %s, from %s to %s\n", bytes[0],
                            pool->values[k].name, pool->values[k].first_step,
                            pool->values[k].last_step);
        }
        if (pool->made_bytes + pool->padding_bytes > 0) {
            berth_format_bytes(pool->made_bytes, bytes[0]);
            berth_format_bytes(pool->padding_bytes, bytes[1]);
            berth_cli_print("  layouts    %s in values that the model does not have (borders, "
                            "relayouts, transforms), %s in padding of blocks\n",
                            bytes[0], bytes[1]);
        }
    }
    print_streamed(plan);
    print_shapes(plan);
    berth_format_bytes(sharing->thread_bytes, bytes[0]);
    if (sharing->thread_bytes)
        berth_cli_print("scratch      at most %s for each thread, beside the workspace\n",
                        bytes[0]);
    berth_format_bytes(sharing->plain_bytes, bytes[0]);
    berth_format_bytes(sharing->in_place_bytes, bytes[1]);
    berth_format_bytes(sharing->views_bytes, bytes[2]);
    berth_format_bytes(sharing->ordered_bytes, bytes[3]);
    berth_cli_print(
        "live sum     %s; results over operands: %s (%u); parts in wholes: %s (%u steps less); "
        "order: %s\n",
        bytes[0], bytes[1], sharing->in_place_count, bytes[2], sharing->removed_steps, bytes[3]);
}

json_t *berth_plan_memory_json(const berth_plan_info *plan) {
    json_t *pools = json_array();
    for (uint32_t i = 0; i < berth_plan_info_pool_count(plan); ++i) {
        const berth_planned_pool *pool = berth_plan_info_pool(plan, i);
        json_t *item =
            json_pack("{s:s, s:s, s:o, s:s, s:s, s:I, s:I}", "device", pool->device, "memory",
                      pool->memory, "shared_with", sharers_json(pool), "scope", pool->scope,
                      "usage", pool->usage, "peak_bytes", (json_int_t)pool->size_bytes,
                      "lower_bound_bytes", (json_int_t)pool->lower_bound_bytes);
        json_array_append_new(pools, item);
        if (!pool->is_workspace_known) continue;
        json_t *values = json_array();
        for (uint32_t k = 0; k < pool->value_count; ++k)
            json_array_append_new(
                values,
                json_pack("{s:o, s:I, s:o, s:o}", "name", berth_cli_json_text(pool->values[k].name),
                          "bytes", (json_int_t)pool->values[k].size_bytes, "first_step",
                          berth_cli_json_text(pool->values[k].first_step), "last_step",
                          berth_cli_json_text(pool->values[k].last_step)));
        json_object_set_new(item, "live_bytes", json_integer((json_int_t)pool->live_bytes));
        json_object_set_new(item, "made_bytes", json_integer((json_int_t)pool->made_bytes));
        json_object_set_new(item, "padding_bytes", json_integer((json_int_t)pool->padding_bytes));
        json_object_set_new(item, "peak_step", berth_cli_json_text(pool->peak_step));
        json_object_set_new(item, "strategy", berth_cli_json_text(pool->strategy));
        json_object_set_new(item, "peak_values", values);
    }
    return pools;
}

json_t *berth_plan_sharing_json(const berth_plan_info *plan) {
    const berth_planned_sharing *sharing = berth_plan_info_sharing(plan);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "scratch_bytes_per_thread",
        (json_int_t)sharing->thread_bytes, "plain_bytes", (json_int_t)sharing->plain_bytes,
        "in_place_bytes", (json_int_t)sharing->in_place_bytes, "views_bytes",
        (json_int_t)sharing->views_bytes, "ordered_bytes", (json_int_t)sharing->ordered_bytes,
        "order_bound_bytes", (json_int_t)sharing->order_bound_bytes, "order_states",
        (json_int_t)sharing->order_states, "in_place_count", (json_int_t)sharing->in_place_count,
        "removed_steps", (json_int_t)sharing->removed_steps, "removed_bytes",
        (json_int_t)sharing->removed_bytes);
}
