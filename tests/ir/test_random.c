// Random modules survive the text and JSON forms, and parsers every failing allocation.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/tensor/function.h"
#include "ir/text.h"
#include "tests/ir/random_module.h"
#include "tests/ir/round_trip.h"

typedef struct job {
    berth_arena *arena;
    uint64_t seed;
    berth_module *module;
    berth_strbuf text;
} job;

static berth_status make(void *user) {
    job *j = user;
    j->module = random_module(j->arena, j->seed);
    BERTH_TRY(berth_module_verify(j->module));
    j->text = berth_strbuf_make(j->arena);
    return berth_module_to_text(j->module, NULL, &j->text);
}

static job begin(uint64_t seed) {
    job j = {.seed = seed};
    cr_assert_null(berth_arena_create(berth_allocator_system(), &j.arena));
    berth_status status = berth_arena_try(j.arena, make, &j);
    cr_assert_null(status, "seed %d: %s", (int)seed, berth_status_message(status));
    return j;
}

Test(random, round_trips) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        job j = begin(seed);
        const char *problem = round_trip(j.module, j.arena, true);
        cr_assert_null(problem, "seed %d: %s\n%s", (int)seed, problem, berth_strbuf_text(&j.text));
        berth_arena_destroy(j.arena);
    }
}

// Every part of a graph that a pass may write to.
static void spoil(berth_module *module, berth_graph *graph) {
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        berth_op *op = &graph->ops.data[i];
        for (uint32_t k = 0; k < op->input_count; ++k) op->inputs[k] = 0;
        for (uint32_t k = 0; k < op->output_count; ++k) op->outputs[k] = 0;
        for (uint32_t k = 0; k < op->region_count; ++k) op->regions[k] = 0;
        for (uint32_t k = 0; k < op->attrs.items.count; ++k) op->attrs.items.data[k].name = 0;
        op->device = 0;
    }
    for (uint32_t i = 0; i < graph->values.count; ++i) graph->values.data[i].type = 0;
    for (uint32_t i = 0; i < graph->regions.count; ++i) {
        berth_region *region = &graph->regions.data[i];
        for (uint32_t k = 0; k < region->params.count; ++k) region->params.data[k] = 0;
        for (uint32_t k = 0; k < region->ops.count; ++k) region->ops.data[k] = 0;
        for (uint32_t k = 0; k < region->results.count; ++k) region->results.data[k] = 0;
        berth_vec_push(module->arena, &region->results, 0);
    }
}

static berth_status spoil_copy(void *user) {
    berth_module *module = user;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        berth_function *function = &module->functions.data[i];
        berth_graph *graph = berth_graph_get(module, i);
        berth_tfn *fn = berth_tfn_get(module, i);
        berth_external *external = berth_external_get(module, i);
        if (graph) spoil(module, graph);
        if (external) external->code_size_bytes = 0;
        for (uint32_t k = 0; fn && k < fn->stmts.count; ++k)
            fn->stmts.data[k] = (berth_stmt_node){0};
        for (uint32_t k = 0; fn && k < fn->bufs.count; ++k) fn->bufs.data[k].name = 0;
        for (uint32_t k = 0; k < function->attrs.items.count; ++k)
            function->attrs.items.data[k].name = 0;
        function->removed = true;
    }
    for (uint32_t i = 1; i < module->types.count; ++i) module->types.data[i].rank = 0;
    for (uint32_t i = 1; i < module->locs.count; ++i) module->locs.data[i].line = 7;
    for (int i = 0; i < 100; ++i) {  // ids that the source has for other texts, or not at all
        char name[16];
        snprintf(name, sizeof(name), "new%d", i);
        (void)berth_module_intern(module, name);
    }
    return BERTH_OK;
}

static berth_status copy(void *user) {
    job *to = user;
    to->module = berth_module_copy(to->arena, to->module);
    to->text = berth_strbuf_make(to->arena);
    return berth_module_to_text(to->module, NULL, &to->text);
}

Test(random, copies_are_equal_and_apart) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
        job j = begin(seed), other = {.module = j.module};
        cr_assert_null(berth_arena_create(berth_allocator_system(), &other.arena));
        cr_assert_null(berth_arena_try(other.arena, copy, &other));
        cr_assert_str_eq(berth_strbuf_text(&other.text), berth_strbuf_text(&j.text));
        const char *problem = round_trip(other.module, other.arena, true);
        cr_assert_null(problem, "seed %d: %s", (int)seed, problem);
        cr_assert_null(berth_arena_try(other.arena, spoil_copy, other.module));
        job again = {.arena = j.arena, .module = j.module, .text = berth_strbuf_make(j.arena)};
        cr_assert_null(berth_module_to_text(again.module, NULL, &again.text));
        cr_assert_str_eq(berth_strbuf_text(&again.text), berth_strbuf_text(&j.text));
        berth_arena_destroy(other.arena);
        berth_arena_destroy(j.arena);
    }
}

typedef berth_status (*read_function)(berth_arena *arena, const char *text, size_t length,
                                      berth_module **out_module);

static berth_status read_text(berth_arena *arena, const char *text, size_t length,
                              berth_module **out_module) {
    return berth_module_parse(arena, text, length, "t", out_module);
}

static berth_status read_json(berth_arena *arena, const char *text, size_t length,
                              berth_module **out_module) {
    return berth_module_from_json_text(arena, text, length, "t", NULL, out_module);
}

// Fails the first, second, ... allocation until reading succeeds: a clear status, nothing leaked.
static void fail_at_every_allocation(const char *text, read_function read) {
    bool done = false;
    for (int64_t at = 1; !done; ++at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = at;
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        if (!status) status = read(arena, text, strlen(text), &module);
        done = !status;
        cr_assert(done || berth_status_code(status) == BERTH_OUT_OF_MEMORY, "allocation %d: %s",
                  (int)at, berth_status_message(status));
        cr_assert(done == (module != NULL));
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(counting.live_count, 0);
    }
}

Test(random, allocation_failures) {
    for (uint64_t seed = 1; seed < 4; ++seed) {
        job j = begin(seed);
        const char *json = NULL;
        cr_assert_null(berth_module_to_json_text(j.arena, j.module, 0, &json));
        fail_at_every_allocation(berth_strbuf_text(&j.text), read_text);
        fail_at_every_allocation(json, read_json);
        berth_arena_destroy(j.arena);
    }
}
