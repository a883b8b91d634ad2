#include "tools/plan_report.h"

#include <math.h>
#include <string.h>

#include "compiler/tuning/kernel_choice.h"
#include "toolkit/plan_picture.h"
#include "tools/cli_model.h"

double berth_plan_shown(const char *unit, double value) {
    return strcmp(unit, "ns") == 0 ? value / 1e6 : value;
}

const char *berth_plan_shown_unit(const char *unit) {
    return strcmp(unit, "ns") == 0 ? "ms" : unit;
}

void berth_plan_print_value(berth_arena *arena, const berth_plan *plan) {
    berth_cli_print("predicted    %.3f ms\n", plan->predicted_ns / 1e6);
    for (uint32_t i = 0; i < plan->note_count; ++i)
        berth_cli_print("note         %s\n", plan->notes[i]);
    if (!plan->valued) return;
    berth_cli_print("objective    %s; found by %s, %llu search nodes%s\n",
                    berth_plan_value_text(arena, plan), plan->found_by,
                    (unsigned long long)plan->search_nodes,
                    plan->reproducible ? "" : "; cut off by the time budget, not reproducible");
}

const char *berth_plan_operation_name(berth_arena *arena, const berth_model *model,
                                      uint32_t entry) {
    const berth_program_placement *p = &berth_model_program(model)->placements[entry];
    berth_loc_id loc = berth_model_plan(model)->entries[entry].loc;
    if (*p->node) return berth_arena_printf(arena, "%s (%s)", p->node, p->op);
    return loc ? berth_loc_describe(berth_model_module(model), loc, arena) : "an operation";
}

const char *berth_plan_memory_of(const berth_model *model, uint32_t entry) {
    const berth_multi_target *target = berth_model_target(model);
    const berth_plan *plan = berth_model_plan(model);
    return target->memories[target->devices[plan->entries[entry].device].own_memory].name;
}

static json_t *rejected_json(const berth_plan *plan, const berth_multi_target *target,
                             const berth_plan_entry *entry) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < entry->rejected_count; ++i) {
        const berth_plan_rejected *r = &entry->rejected[i];
        json_t *item = json_pack("{s:s, s:o}", "device", target->devices[r->device].name, "reason",
                                 berth_cli_json_text(r->reason));
        if (!isnan(r->delta))
            json_object_set_new(item, "delta", json_real(berth_plan_shown(plan->unit, r->delta)));
        json_array_append_new(list, item);
    }
    return list;
}

json_t *berth_plan_objective_json(const berth_plan *plan) {
    json_t *notes = json_array();
    for (uint32_t i = 0; i < plan->note_count; ++i)
        json_array_append_new(notes, berth_cli_json_text(plan->notes[i]));
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:b, s:I}", "name", plan->objective, "found_by", plan->found_by,
                  "notes", notes, "reproducible", (int)plan->reproducible, "search_nodes",
                  (json_int_t)plan->search_nodes);
    if (!plan->valued) return json;
    json_t *value =
        json_pack("{s:s, s:f, s:f, s:f, s:b}", "unit", berth_plan_shown_unit(plan->unit), "value",
                  berth_plan_shown(plan->unit, plan->value), "lower_bound",
                  berth_plan_shown(plan->unit, plan->lower_bound), "gap", plan->gap, "proven",
                  (int)plan->proven);
    json_object_update(json, value);
    json_decref(value);
    return json;
}

static json_t *texts_json(const char *const *texts, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, berth_cli_json_text(texts[i]));
    return list;
}

void berth_plan_print_buffers(const berth_multi_target *target, const berth_plan_entry *entry,
                              int indent) {
    char bytes[2][32];
    for (uint32_t i = 0; i < entry->buffer_count; ++i) {
        const berth_target_memory *memory = &target->memories[entry->buffers[i].memory];
        berth_format_bytes(entry->buffers[i].used_bytes, bytes[0]);
        berth_format_bytes(memory->capacity_bytes, bytes[1]);
        berth_cli_print("%*s%s%s %s of %s", i ? 0 : indent, "",
                        i ? ", " : "on the chip: ", memory->scope, bytes[0], bytes[1]);
    }
    if (entry->buffer_count) berth_cli_print("\n");
}

static json_t *buffers_json(const berth_multi_target *target, const berth_plan_entry *entry) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < entry->buffer_count; ++i) {
        const berth_target_memory *memory = &target->memories[entry->buffers[i].memory];
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:I, s:I}", "memory", berth_cli_json_text(memory->name),
                            "scope", berth_cli_json_text(memory->scope), "used_bytes",
                            (json_int_t)entry->buffers[i].used_bytes, "capacity_bytes",
                            (json_int_t)memory->capacity_bytes));
    }
    return list;
}

// Times that were not measured are left out.
static json_t *libraries_json(const berth_plan_entry *entry) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < entry->library_count; ++i) {
        const berth_plan_library *l = &entry->libraries[i];
        json_t *item =
            json_pack("{s:s, s:o, s:b, s:o, s:f}", "name", l->name, "computes",
                      berth_cli_json_text(l->computes), "chosen", (int)l->chosen, "reason",
                      berth_cli_json_text(l->reason), "extra_us", l->extra_ns / 1e3);
        if (l->time_ns >= 0) json_object_set_new(item, "time_us", json_real(l->time_ns / 1e3));
        if (l->own_ns >= 0) json_object_set_new(item, "own_us", json_real(l->own_ns / 1e3));
        json_array_append_new(list, item);
    }
    return list;
}

json_t *berth_plan_operation_json(const berth_model *model, uint32_t entry) {
    const berth_program *program = berth_model_program(model);
    const berth_plan *plan = berth_model_plan(model);
    const berth_program_placement *p = &program->placements[entry];
    const berth_plan_entry *e = &plan->entries[entry];
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:f, s:f, s:s, s:b}", "node", berth_cli_json_text(p->node),
        "op", berth_cli_json_text(p->op), "device", program->devices[p->device].name, "memory",
        berth_plan_memory_of(model, entry), "reason", berth_cli_json_text(p->reason), "chain",
        texts_json(e->chain, e->chain_count), "start_us", e->start_ns / 1e3, "time_us",
        e->time_ns / 1e3, "cost", berth_cost_figure_name(e->figure), "host_operation",
        (int)p->host_operation);
    json_object_set_new(json, "buffers", buffers_json(berth_model_target(model), e));
    json_object_set_new(json, "libraries", libraries_json(e));
    json_object_set_new(json, "rejected", rejected_json(plan, berth_model_target(model), e));
    return json;
}

json_t *berth_plan_copies_json(const berth_model *model) {
    const berth_plan *plan = berth_model_plan(model);
    const berth_multi_target *target = berth_model_target(model);
    json_t *copies = json_array();
    for (uint32_t i = 0; i < plan->copy_count; ++i) {
        const berth_plan_copy *copy = &plan->copies[i];
        json_array_append_new(
            copies,
            json_pack("{s:s, s:s, s:o, s:o, s:I, s:f}", "from", target->devices[copy->from].name,
                      "to", target->devices[copy->to].name, "value",
                      berth_cli_json_text(copy->value), "reason", berth_cli_json_text(copy->reason),
                      "bytes", (json_int_t)copy->size_bytes, "time_us", copy->time_ns / 1e3));
    }
    return copies;
}

// ---- kernels ------------------------------------------------------------------------------------

static const char *chooser_name(berth_kernel_chooser by) {
    switch (by) {
    case BERTH_CHOSEN_BY_MODULE: return "module";
    case BERTH_CHOSEN_BY_TUNING: return "tuned";
    case BERTH_CHOSEN_BY_POLICY: break;
    }
    return "policy";
}

static void print_alternative(const berth_alternative *a) {
    if (a->cost > 0)
        berth_cli_print("%14snot %s: %.2f times as long by an estimate; %s\n", "", a->what, a->cost,
                        a->why);
    else
        berth_cli_print("%14snot %s: %s\n", "", a->what, a->why);
}

void berth_plan_print_kernels(berth_arena *arena, const berth_model *model) {
    uint32_t count = 0;
    const berth_kernel_choice *choices = berth_model_choices(model, &count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_cli_print("kernel       %s, decided by: %s\n", choices[i].name,
                        chooser_name(choices[i].by));
        for (uint32_t n = 0; n < choices[i].decisions->nest_count; ++n) {
            const berth_nest_decisions *nest = &choices[i].decisions->nests[n];
            berth_cli_print("%12s nest %u: %s\n", "", n, berth_decisions_print(arena, nest, false));
            for (uint32_t a = 0; a < nest->alternatives.count; ++a)
                print_alternative(&nest->alternatives.data[a]);
        }
    }
}

static json_t *nest_json(berth_arena *arena, const berth_nest_decisions *nest) {
    json_t *alternatives = json_array();
    for (uint32_t a = 0; a < nest->alternatives.count; ++a) {
        const berth_alternative *other = &nest->alternatives.data[a];
        json_t *json = json_pack("{s:o, s:o}", "decisions", berth_cli_json_text(other->what),
                                 "reason", berth_cli_json_text(other->why));
        if (other->cost > 0) json_object_set_new(json, "estimate", json_real(other->cost));
        json_array_append_new(alternatives, json);
    }
    return json_pack("{s:o, s:o}", "decisions",
                     berth_cli_json_text(berth_decisions_print(arena, nest, false)), "alternatives",
                     alternatives);
}

json_t *berth_plan_kernels_json(berth_arena *arena, const berth_model *model) {
    uint32_t count = 0;
    const berth_kernel_choice *choices = berth_model_choices(model, &count);
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < count; ++i) {
        char hash[33];
        berth_hash128_hex(choices[i].function, hash);
        json_t *nests = json_array();
        for (uint32_t n = 0; n < choices[i].decisions->nest_count; ++n)
            json_array_append_new(nests, nest_json(arena, &choices[i].decisions->nests[n]));
        json_array_append_new(kernels,
                              json_pack("{s:o, s:s, s:s, s:o}", "name",
                                        berth_cli_json_text(choices[i].name), "function", hash,
                                        "by", chooser_name(choices[i].by), "nests", nests));
    }
    return kernels;
}
