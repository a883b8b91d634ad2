#include "tests/planner/support.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>

#include "ir/pass.h"
#include "ir/text.h"

const char *const target_gch = "{\"kind\": \"multi\", \"host\": \"h\", \"devices\": ["
                               "{\"name\": \"g\", \"target\": {\"kind\": \"opencl\"}},"
                               "{\"name\": \"c\", \"target\": {\"kind\": \"cpu\"}},"
                               "{\"name\": \"h\", \"target\": {\"kind\": \"cpu\"}}]}";

berth_arena *new_arena(void) {
    berth_arena *arena = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

void require(berth_status status) {
    cr_assert(!status, "%s", berth_status_message(status));
}

berth_module *parse_module(berth_arena *arena, const char *body) {
    berth_module *module = NULL;
    const char *text = berth_arena_printf(arena, "module \"m\" %s", body);
    require(berth_module_parse(arena, text, strlen(text), "case", &module));
    return module;
}

const char *print_module(const berth_module *module) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    require(berth_module_to_text(module, NULL, &out));
    return berth_strbuf_text(&out);
}

berth_multi_target *parse_target(berth_arena *arena, const char *text) {
    berth_multi_target *target = NULL;
    require(berth_target_parse(arena, text, NULL, &target));
    return target;
}

typedef struct job {
    berth_module *module;
    const berth_plan_options *options;
    berth_plan *plan;
} job;

static berth_status run(void *user) {
    job *j = user;
    return berth_plan_module(j->module, j->options, &j->plan);
}

berth_status plan_with(berth_module *module, const berth_plan_options *options,
                       berth_plan **out_plan) {
    job j = {.module = module, .options = options};
    berth_status status = berth_arena_try(module->arena, run, &j);
    *out_plan = j.plan;
    return status;
}

berth_status plan_on(berth_module *module, const char *target, berth_plan **out_plan) {
    berth_plan_options options = {.target = parse_target(module->arena, target)};
    return plan_with(module, &options, out_plan);
}

const char *plan_twice(berth_module *module, const berth_plan_options *options) {
    berth_plan *plan = NULL;
    require(plan_with(module, options, &plan));
    return plan_again(module, options);
}

const char *plan_again(berth_module *module, const berth_plan_options *options) {
    berth_plan *plan = NULL;
    berth_status status = berth_module_verify(module);
    cr_assert(!status, "%s in\n%s", berth_status_message(status), print_module(module));
    const char *text = print_module(module);
    require(plan_with(module, options, &plan));
    cr_assert_str_eq(print_module(module), text, "planned again:\n%s\nbefore:\n%s",
                     print_module(module), text);
    berth_module *again = NULL;
    require(berth_module_parse(module->arena, text, strlen(text), "case", &again));
    require(plan_with(again, options, &plan));
    cr_assert_str_eq(print_module(again), text, "planned after print and parse:\n%s\nbefore:\n%s",
                     print_module(again), text);
    return text;
}

// ---- showing ------------------------------------------------------------------------------------

typedef struct shower {
    const berth_module *module;
    const berth_multi_target *target;
    const berth_graph *graph;
    berth_strbuf *out;
} shower;

static const char *place(const shower *s, berth_device_id id) {
    uint32_t index = berth_plan_device_of(s->module, s->target, id);
    if (!id) return "-";
    if (index == BERTH_NO_INDEX) return "?";
    char *name = berth_arena_strdup(s->module->arena, s->target->devices[index].name);
    for (char *at = name; *at; ++at) *at = (char)toupper((unsigned char)*at);
    const char *scope = berth_virtual_device_get(s->module->devices, id).memory_scope;
    return scope ? berth_arena_printf(s->module->arena, "%s@%s", name, scope) : name;
}

static void show_value(const shower *s, berth_value_id id, const char *mark) {
    const berth_value *value = &s->graph->values.data[id];
    bool first = berth_strbuf_text(s->out)[s->out->length - 1] == '{';
    berth_strbuf_addf(s->out, "%s%s%s%s", first ? "" : " ",
                      berth_module_str(s->module, value->name), mark, place(s, value->device));
}

static void show_region(const shower *s, berth_region_id id);

static void show_op(const shower *s, const berth_op *op) {
    cr_assert_neq(op->kind, BERTH_OP_ON_DEVICE);
    for (uint32_t k = 0; k < op->output_count; ++k)
        show_value(s, op->outputs[k], op->kind == BERTH_OP_DEVICE_COPY ? ">" : ":");
    for (uint32_t r = 0; r < op->region_count; ++r) {
        berth_strbuf_add(s->out, " {");
        show_region(s, op->regions[r]);
        const berth_region *region = &s->graph->regions.data[op->regions[r]];
        for (uint32_t i = 0; i < region->results.count; ++i)
            berth_strbuf_addf(
                s->out, " =%s",
                berth_module_str(s->module, s->graph->values.data[region->results.data[i]].name));
        berth_strbuf_add(s->out, "}");
    }
}

// Recursive over regions; the tests' modules nest a few.
static void show_region(const shower *s, berth_region_id id) {
    const berth_region *region = &s->graph->regions.data[id];
    for (uint32_t i = 0; i < region->params.count; ++i) show_value(s, region->params.data[i], ":");
    for (uint32_t i = 0; i < region->ops.count; ++i)
        show_op(s, &s->graph->ops.data[region->ops.data[i]]);
}

const char *show_module(const berth_module *module, const berth_multi_target *target) {
    berth_strbuf out = berth_strbuf_make(module->arena);
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        const berth_graph *graph = berth_graph_get(module, f);
        if (!graph || module->functions.data[f].removed) continue;
        shower s = {module, target, graph, &out};
        berth_strbuf_addf(&out, "@%s", berth_module_str(module, module->functions.data[f].name));
        show_region(&s, 0);
        const berth_region *root = &graph->regions.data[0];
        for (uint32_t i = 0; i < root->results.count; ++i)
            berth_strbuf_addf(&out, " R:%s",
                              place(&s, graph->values.data[root->results.data[i]].device));
        berth_strbuf_add(&out, "\n");
    }
    return berth_strbuf_text(&out);
}
