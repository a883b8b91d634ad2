// What a plan needs for other extents within bounds (<berth/plan.h>).
#include <string.h>

#include "api/compile/plan.h"
#include "base/str.h"
#include "compiler/vm/families.h"
#include "compiler/vm/workspace.h"

// The shapes that a variant and its family are for, without the line's indent and end.
static const char *shapes_of(berth_arena *arena, const berth_vm_family *family) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_vm_family_print(family, false, &text);
    const char *line = berth_strbuf_text(&text) + 2;
    return berth_arena_printf(arena, "%.*s", (int)strcspn(line, "\n"), line);
}

// Of a variant that serves no other shapes.
static const char *shape_of(berth_arena *arena, const berth_vm_body *body,
                            const berth_vm_variant *variant) {
    const berth_vm_piece *piece = berth_vm_piece_at(body->code, variant->piece);
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < piece->input_count; ++i) {
        char shape[192];
        if (variant->inputs[i].dtype == BERTH_DTYPE_NONE) continue;
        berth_tensor_format_shape(&variant->inputs[i], shape);
        berth_strbuf_addf(&text, "%s%s", text.length ? ", " : "for ", shape);
    }
    return berth_strbuf_text(&text);
}

static berth_vm_workspace *single_workspaces(berth_arena *arena, const berth_program *program,
                                             uint32_t *out_count) {
    berth_vm_workspace *all =
        berth_arena_new_array(arena, berth_vm_workspace, program->pool_count + 1);
    *out_count = 0;
    for (uint32_t p = 0; p < program->pool_count; ++p) {
        const berth_program_pool *pool = &program->pools[p];
        if (pool->usage != BERTH_POOL_WORKSPACE) continue;
        all[(*out_count)++] = (berth_vm_workspace){
            .device = program->devices[pool->device].name,
            .least_bytes = pool->size_bytes,
            .most_bytes = pool->size_bytes,
            .expression = berth_arena_printf(arena, "%llu", (unsigned long long)pool->size_bytes)};
    }
    return all;
}

// `family` NULL: the variant is for its own shapes alone.
static void add_workspaces(berth_plan_info *info, const berth_vm_body *body,
                           const berth_vm_variant *variant, const berth_vm_family *family) {
    uint32_t count = 0;
    const berth_vm_piece *piece = berth_vm_piece_at(body->code, variant->piece);
    if (!variant->program) return;
    const berth_vm_workspace *found =
        family ? berth_vm_family_workspaces(body, family, info->arena, &count)
               : single_workspaces(info->arena, variant->program, &count);
    const char *shapes =
        family ? shapes_of(info->arena, family) : shape_of(info->arena, body, variant);
    for (uint32_t i = 0; i < count; ++i)
        info->workspaces[info->workspace_count++] =
            (berth_planned_workspace){.nodes = berth_arena_strdup(info->arena, piece->name),
                                      .ops = berth_arena_strdup(info->arena, piece->op),
                                      .shapes = shapes,
                                      .device = berth_arena_strdup(info->arena, found[i].device),
                                      .least_bytes = found[i].least_bytes,
                                      .most_bytes = found[i].most_bytes,
                                      .expression = found[i].expression};
}

void berth_api__plan_shapes(berth_plan_info *info, const berth_program *program) {
    const berth_vm_body *body = program->vm;
    uint32_t most = 0;
    for (uint32_t i = 0; i < body->variant_count; ++i)
        most += body->variants[i].program ? body->variants[i].program->pool_count : 0;
    info->workspaces = berth_arena_new_array(info->arena, berth_planned_workspace, most + 1);
    for (uint32_t i = 0; i < body->variant_count; ++i) {
        const berth_vm_family *family = NULL;
        for (uint32_t k = 0; k < body->family_count; ++k)
            if (body->families[k].variant == i) family = &body->families[k];
        add_workspaces(info, body, &body->variants[i], family);
    }
}

uint32_t berth_plan_info_workspace_count(const berth_plan_info *plan) {
    return plan->workspace_count;
}

const berth_planned_workspace *berth_plan_info_workspace(const berth_plan_info *plan,
                                                         uint32_t index) {
    return index < plan->workspace_count ? &plan->workspaces[index] : NULL;
}
