#include "toolkit/memory_picture.h"

#include "memory/plot.h"

static uint32_t count_places(const berth_memory_report *report) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->pool_count; ++i) count += report->pools[i].place_count;
    return count;
}

// The pools as one problem, with its solution.
static void fill(berth_arena *arena, const berth_model *model, berth_memory_problem *out) {
    const berth_memory_report *report = berth_model_memory(model);
    const berth_program *program = berth_model_program(model);
    const uint32_t count = count_places(report);
    *out = (berth_memory_problem){
        .ids = berth_arena_new_array(arena, const char *, count),
        .intervals = berth_arena_new_array(arena, berth_memory_interval, count),
        .pools = berth_arena_new_array(arena, uint32_t, count),
        .offsets = berth_arena_new_array(arena, uint64_t, count),
        .pool_count = report->pool_count,
        .pool_names = berth_arena_new_array(arena, const char *, report->pool_count)};
    for (uint32_t i = 0; i < report->pool_count; ++i) {
        const berth_memory_report_pool *pool = &report->pools[i];
        const berth_program_pool *planned = &program->pools[pool->pool];
        out->pool_names[i] = berth_arena_printf(
            arena, "%s, %s", program->devices[planned->device].name, planned->scope);
        for (uint32_t k = 0; k < pool->place_count; ++k) {
            const berth_memory_place *place = &pool->places[k];
            const uint32_t at = out->buffer_count++;
            out->ids[at] = place->name;
            out->pools[at] = i;
            out->offsets[at] = place->offset_bytes;
            out->intervals[at] = (berth_memory_interval){.lower = place->first_step,
                                                         .upper = (int64_t)place->last_step + 1,
                                                         .size_bytes = place->size_bytes};
        }
    }
}

berth_status berth_memory_picture_svg(const berth_model *model, berth_strbuf *out) {
    const berth_memory_report *report = berth_model_memory(model);
    const berth_program *program = berth_model_program(model);
    if (count_places(report) == 0)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "model \"%s\" has no memory plan to draw: no value lies between "
                                 "its inputs and its outputs",
                                 program->name);
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_memory_problem problem;
    fill(scratch, model, &problem);
    const berth_memory_plot_options options = {.title = program->name,
                                               .time_names = report->pools[0].step_names,
                                               .time_name_count = report->pools[0].step_count};
    berth_memory_plot(&problem, problem.offsets, &options, out);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}
