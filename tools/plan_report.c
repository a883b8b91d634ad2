#include "tools/plan_report.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli.h"

double berth_plan_shown(const char *unit, double value) {
    return strcmp(unit, "ns") == 0 ? value / 1e6 : value;
}

const char *berth_plan_shown_unit(const char *unit) {
    return strcmp(unit, "ns") == 0 ? "ms" : unit;
}

void berth_plan_print_value(const berth_plan_info *plan) {
    const berth_plan_facts *facts = berth_plan_info_facts(plan);
    berth_cli_print("predicted    %.3f ms\n", facts->predicted_ns / 1e6);
    for (uint32_t i = 0; i < facts->note_count; ++i)
        berth_cli_print("note         %s\n", facts->notes[i]);
    if (!facts->is_valued) return;
    berth_cli_print("objective    %s; found by %s, %llu search nodes%s\n", facts->value_text,
                    facts->found_by, (unsigned long long)facts->search_nodes,
                    facts->is_reproducible ? "" : "; cut off by the time budget, not reproducible");
}

static json_t *rejected_json(const char *unit, const berth_planned_operation *operation) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < operation->rejection_count; ++i) {
        const berth_planned_rejection *r = &operation->rejections[i];
        json_t *item =
            json_pack("{s:s, s:o}", "device", r->device, "reason", berth_cli_json_text(r->reason));
        if (!isnan(r->delta))
            json_object_set_new(item, "delta", json_real(berth_plan_shown(unit, r->delta)));
        json_array_append_new(list, item);
    }
    return list;
}

json_t *berth_plan_objective_json(const berth_plan_info *plan) {
    const berth_plan_facts *facts = berth_plan_info_facts(plan);
    json_t *notes = json_array();
    for (uint32_t i = 0; i < facts->note_count; ++i)
        json_array_append_new(notes, berth_cli_json_text(facts->notes[i]));
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:b, s:I}", "name", facts->objective, "found_by",
                  facts->found_by, "notes", notes, "reproducible", facts->is_reproducible,
                  "search_nodes", (json_int_t)facts->search_nodes);
    if (!facts->is_valued) return json;
    json_t *value =
        json_pack("{s:s, s:f, s:f, s:f, s:b}", "unit", berth_plan_shown_unit(facts->unit), "value",
                  berth_plan_shown(facts->unit, facts->value), "lower_bound",
                  berth_plan_shown(facts->unit, facts->lower_bound), "gap", facts->gap, "proven",
                  facts->is_proven);
    json_object_update(json, value);
    json_decref(value);
    return json;
}

static json_t *texts_json(const char *const *texts, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, berth_cli_json_text(texts[i]));
    return list;
}

void berth_plan_print_buffers(const berth_planned_operation *operation, int indent) {
    char bytes[2][32];
    for (uint32_t i = 0; i < operation->buffer_count; ++i) {
        const berth_planned_buffer *buffer = &operation->buffers[i];
        berth_format_bytes(buffer->used_bytes, bytes[0]);
        berth_format_bytes(buffer->capacity_bytes, bytes[1]);
        berth_cli_print("%*s%s%s %s of %s", i ? 0 : indent, "",
                        i ? ", " : "on the chip: ", buffer->scope, bytes[0], bytes[1]);
    }
    if (operation->buffer_count) berth_cli_print("\n");
}

static json_t *buffers_json(const berth_planned_operation *operation) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < operation->buffer_count; ++i) {
        const berth_planned_buffer *buffer = &operation->buffers[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:I}", "memory",
                                              berth_cli_json_text(buffer->memory), "scope",
                                              berth_cli_json_text(buffer->scope), "used_bytes",
                                              (json_int_t)buffer->used_bytes, "capacity_bytes",
                                              (json_int_t)buffer->capacity_bytes));
    }
    return list;
}

// Times that were not measured are left out.
static json_t *libraries_json(const berth_planned_operation *operation) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < operation->library_count; ++i) {
        const berth_planned_library *l = &operation->libraries[i];
        json_t *item = json_pack("{s:s, s:o, s:b, s:o, s:f}", "name", l->name, "computes",
                                 berth_cli_json_text(l->computes), "chosen", l->is_chosen, "reason",
                                 berth_cli_json_text(l->reason), "extra_us", l->extra_ns / 1e3);
        if (l->time_ns >= 0) json_object_set_new(item, "time_us", json_real(l->time_ns / 1e3));
        if (l->own_ns >= 0) json_object_set_new(item, "own_us", json_real(l->own_ns / 1e3));
        json_array_append_new(list, item);
    }
    return list;
}

json_t *berth_plan_operation_json(const berth_plan_info *plan, uint32_t index) {
    const berth_planned_operation *o = berth_plan_info_operation(plan, index);
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:f, s:f, s:s, s:b}", "node",
                  berth_cli_json_text(o->node), "op", berth_cli_json_text(o->op), "device",
                  o->device, "memory", o->memory, "reason", berth_cli_json_text(o->reason), "chain",
                  texts_json(o->chain, o->chain_count), "start_us", o->start_ns / 1e3, "time_us",
                  o->time_ns / 1e3, "cost", o->cost, "host_operation", o->is_on_host);
    json_object_set_new(json, "buffers", buffers_json(o));
    json_object_set_new(json, "libraries", libraries_json(o));
    json_object_set_new(json, "rejected", rejected_json(berth_plan_info_facts(plan)->unit, o));
    return json;
}

void berth_plan_print_copy_way(const berth_planned_copy *copy) {
    if (copy->bandwidth_bytes_per_s > 0)
        berth_cli_print(", %.4g GB/s at most%s%s", copy->bandwidth_bytes_per_s / 1e9,
                        *copy->bus ? ", bus " : "", copy->bus);
}

json_t *berth_plan_copies_json(const berth_plan_info *plan) {
    json_t *copies = json_array();
    for (uint32_t i = 0; i < berth_plan_info_copy_count(plan); ++i) {
        const berth_planned_copy *copy = berth_plan_info_copy(plan, i);
        json_array_append_new(
            copies,
            json_pack("{s:s, s:s, s:o, s:o, s:I, s:f, s:f, s:o}", "from", copy->from, "to",
                      copy->to, "value", berth_cli_json_text(copy->value), "reason",
                      berth_cli_json_text(copy->reason), "bytes", (json_int_t)copy->size_bytes,
                      "time_us", copy->time_ns / 1e3, "bandwidth_bytes_per_s",
                      copy->bandwidth_bytes_per_s, "bus", berth_cli_json_text(copy->bus)));
    }
    return copies;
}

// ---- kernels ------------------------------------------------------------------------------------

static void print_alternative(const berth_planned_alternative *a) {
    if (a->cost > 0)
        berth_cli_print("%14snot %s: %.2f times as long by an estimate; %s\n", "", a->what, a->cost,
                        a->why);
    else
        berth_cli_print("%14snot %s: %s\n", "", a->what, a->why);
}

void berth_plan_print_kernels(const berth_plan_info *plan) {
    for (uint32_t i = 0; i < berth_plan_info_kernel_count(plan); ++i) {
        const berth_planned_kernel *kernel = berth_plan_info_kernel(plan, i);
        berth_cli_print("kernel       %s, decided by: %s\n", kernel->name, kernel->chosen_by);
        for (uint32_t n = 0; n < kernel->nest_count; ++n) {
            const berth_planned_nest *nest = &kernel->nests[n];
            berth_cli_print("%12s nest %u: %s\n", "", n, nest->decisions);
            for (uint32_t a = 0; a < nest->alternative_count; ++a)
                print_alternative(&nest->alternatives[a]);
        }
    }
}

static json_t *nest_json(const berth_planned_nest *nest) {
    json_t *alternatives = json_array();
    for (uint32_t a = 0; a < nest->alternative_count; ++a) {
        const berth_planned_alternative *other = &nest->alternatives[a];
        json_t *json = json_pack("{s:o, s:o}", "decisions", berth_cli_json_text(other->what),
                                 "reason", berth_cli_json_text(other->why));
        if (other->cost > 0) json_object_set_new(json, "estimate", json_real(other->cost));
        json_array_append_new(alternatives, json);
    }
    return json_pack("{s:o, s:o}", "decisions", berth_cli_json_text(nest->decisions),
                     "alternatives", alternatives);
}

json_t *berth_plan_kernels_json(const berth_plan_info *plan) {
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < berth_plan_info_kernel_count(plan); ++i) {
        const berth_planned_kernel *kernel = berth_plan_info_kernel(plan, i);
        json_t *nests = json_array();
        for (uint32_t n = 0; n < kernel->nest_count; ++n)
            json_array_append_new(nests, nest_json(&kernel->nests[n]));
        json_array_append_new(kernels,
                              json_pack("{s:o, s:s, s:s, s:o}", "name",
                                        berth_cli_json_text(kernel->name), "function",
                                        kernel->function, "by", kernel->chosen_by, "nests", nests));
    }
    return kernels;
}
