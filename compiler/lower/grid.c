// Loops over the elements of a buffer, in the order in which they lie in memory.
#include "compiler/lower/context.h"

#include <string.h>

static const char *const default_names[BERTH_MAX_RANK] = {"i0", "i1", "i2", "i3",
                                                          "i4", "i5", "i6", "i7"};

typedef enum loop_role {
    LOOP_WHOLE,
    LOOP_GROUP,
    LOOP_BLOCK,
    LOOP_QUOTIENT,
    LOOP_REMAINDER
} loop_role;

typedef struct physical_loop {
    int dim;
    int64_t extent;
    const char *name;
    loop_role role;
} physical_loop;

typedef struct grid_plan {
    physical_loop loops[2 * BERTH_MAX_RANK + BERTH_LAYOUT_MAX_BLOCKS + 1];
    int count;
} grid_plan;

static const char *suffixed(berth_lower *c, const char *name, const char *suffix) {
    return berth_arena_printf(c->scratch, "%s%s", name, suffix);
}

// The remainder goes outside in the last dimension where the innermost loop is the longer one so.
static void plan_part(berth_lower *c, grid_plan *plan, int d, const char *name,
                      const berth_lower_grid_part *part, bool remainder_outside) {
    physical_loop loops[2] = {{d, part->count, name, LOOP_QUOTIENT},
                              {d, part->run, suffixed(c, name, "_r"), LOOP_REMAINDER}};
    plan->loops[plan->count++] = loops[remainder_outside];
    plan->loops[plan->count++] = loops[!remainder_outside];
}

static grid_plan plan_loops(berth_lower *c, const berth_buf_info *info, const berth_layout *layout,
                            const berth_lower_grid_options *options) {
    grid_plan plan = {0};
    const char *const *names = options->names ? options->names : default_names;
    for (int i = 0; i < layout->rank; ++i) {
        int d = layout->outer[i];
        int64_t block = layout->total_block[d];
        int64_t extent = (info->dims[d] + block - 1) / block;
        const char *name = block > 1 ? suffixed(c, names[d], "_o") : names[d];
        if (d == 1 && options->groups > 1) {
            int64_t in_group = info->dims[1] / options->groups;
            if (in_group % block == 0) {  // a block never crosses groups
                plan.loops[plan.count++] = (physical_loop){d, options->groups, "g", LOOP_GROUP};
                extent = in_group / block;
            }
        }
        const berth_lower_grid_part *part = options->parts ? &options->parts[d] : NULL;
        if (part && part->step)
            plan_part(c, &plan, d, name, part, i + 1 == layout->rank && part->run <= part->count);
        else
            plan.loops[plan.count++] = (physical_loop){d, extent, name, LOOP_WHOLE};
    }
    for (int i = 0; i < layout->block_count; ++i) {
        int d = layout->block_dim[i];
        plan.loops[plan.count++] =
            (physical_loop){d, layout->block_size[i], suffixed(c, names[d], "_i"), LOOP_BLOCK};
    }
    return plan;
}

// Loops of more than one iteration that may be parallel: all but the innermost `serial` ones, at
// least one.
static int parallel_count(const grid_plan *plan, int serial) {
    int real = 0;
    for (int i = 0; i < plan->count; ++i) real += plan->loops[i].extent != 1;
    return real - serial > 1 ? real - serial : 1;
}

// Index of a dimension in parts, once both of its loops are there.
static void set_part(berth_lower *c, berth_lower_grid *grid, const physical_loop *loop,
                     const berth_lower_grid_part *part, berth_expr var) {
    int d = loop->dim;
    if (loop->role == LOOP_QUOTIENT) grid->quotient[d] = var;
    if (loop->role == LOOP_REMAINDER) grid->remainder[d] = var;
    if (!grid->quotient[d] || !grid->remainder[d]) return;
    berth_expr at = x_add(c, x_muli(c, grid->quotient[d], part->step), grid->remainder[d]);
    grid->at[d] = x_addi(c, at, part->first);
}

static void open_loops(berth_lower *c, berth_buf_info info, const berth_lower_grid_options *options,
                       berth_lower_grid *grid) {
    berth_layout layout;
    memset(grid, 0, sizeof(*grid));
    berth_status status =
        berth_layout_parse(berth_module_str(c->module, info.layout), info.rank, &layout);
    if (status) {
        if (c->failure)
            berth_status_ignore(status);
        else
            c->failure = status;
        return;
    }
    grid_plan plan = plan_loops(c, &info, &layout, options);
    int serial = (options->serial ? options->serial : 1) + layout.block_count;
    int parallel = parallel_count(&plan, serial);
    for (int i = 0; i < plan.count; ++i) {
        const physical_loop loop = plan.loops[i];
        berth_loop_kind kind = parallel > 0 ? BERTH_LOOP_PARALLEL : BERTH_LOOP_SERIAL;
        berth_expr var = berth_lower__loop(c, loop.name, loop.extent, kind);
        parallel -= loop.extent != 1;
        grid->loops++;
        if (loop.role == LOOP_GROUP) grid->group = var;
        if (loop.role == LOOP_QUOTIENT || loop.role == LOOP_REMAINDER) {
            set_part(c, grid, &loop, &options->parts[loop.dim], var);
            continue;
        }
        berth_expr before = grid->at[loop.dim];
        grid->at[loop.dim] = before ? x_add(c, x_muli(c, before, loop.extent), var) : var;
        bool padded = info.dims[loop.dim] % layout.total_block[loop.dim] != 0;
        if (padded && loop.extent != 1)
            berth_vec_push(c->scratch, &c->lane_vars, c->fn->exprs.data[var].var);
    }
    for (int d = 0; d < info.rank; ++d)
        if (info.dims[d] % layout.total_block[d] != 0)
            c->valid = x_and(c, c->valid, x_lt(c, grid->at[d], ix(c, info.dims[d])));
    if (options->groups > 1 && !grid->group)
        grid->group = x_div(c, grid->at[1], ix(c, info.dims[1] / options->groups));
}

void berth_lower__grid_buffer(berth_lower *c, berth_buf buf,
                              const berth_lower_grid_options *options, berth_lower_grid *grid) {
    open_loops(c, c->fn->bufs.data[buf], options, grid);
}

void berth_lower__grid(berth_lower *c, const berth_op *op, uint32_t output,
                       const berth_lower_grid_options *options, berth_lower_grid *grid) {
    berth_buf_info info = c->fn->bufs.data[berth_lower__buffer(c, output)];
    memcpy(info.dims, out_type(c, op, output)->dims, (size_t)info.rank * sizeof(info.dims[0]));
    open_loops(c, info, options, grid);
}

void berth_lower__grid_end(berth_lower *c, const berth_lower_grid *grid) {
    berth_lower__end_loops(c, grid->loops);
    berth_lower__end_lanes(c);
}

// The border of one dimension, at both ends at once where they are as wide; `parts` keeps to the
// inside of the dimensions before it.
static void fill_dimension(berth_lower *c, const berth_lower_sink *sink,
                           berth_lower_grid_part *parts, int d) {
    int64_t extent = in_type(c, sink->pad, 0)->dims[d];
    int64_t begin = sink->pads[d];
    int64_t end = sink->pads[BERTH_MAX_RANK + d];
    bool both = begin == end;
    for (int side = 0; side < 2; ++side) {
        int64_t width = side == 0 ? begin : end;
        int64_t first = side == 0 ? 0 : begin + extent;
        if (width == 0 || (both && side == 1)) continue;
        parts[d] = (berth_lower_grid_part){begin + extent, first, both ? 2 : 1, width};
        berth_lower_grid grid;
        berth_expr zeros[BERTH_MAX_RANK];
        for (int i = 0; i < BERTH_MAX_RANK; ++i) zeros[i] = ix(c, 0);
        berth_lower__next_nest(c);
        berth_lower__grid_buffer(c, sink->buf, &(berth_lower_grid_options){.parts = parts}, &grid);
        if (c->failure) return;
        berth_dtype t = out_dtype(c, sink->pad, 0);
        berth_expr value = has_in(sink->pad, 2) ? in_at(c, sink->pad, 2, zeros) : num(c, t, 0);
        if (c->valid) value = x_select(c, c->valid, value, num(c, t, 0));
        berth_lower__put(c, sink->buf, grid.at, value);
        berth_lower__grid_end(c, &grid);
    }
    parts[d] = (berth_lower_grid_part){1, begin, extent, 1};
}

void berth_lower__fill_border(berth_lower *c, const berth_lower_sink *sink) {
    berth_lower_grid_part parts[BERTH_MAX_RANK] = {0};
    for (int d = 0; d < BERTH_MAX_RANK && !c->failure; ++d)
        if (sink->pads[d] || sink->pads[BERTH_MAX_RANK + d]) fill_dimension(c, sink, parts, d);
}

void berth_lower__padded_lane(berth_lower *c, berth_expr outer, berth_expr inner, berth_expr index,
                              int64_t extent) {
    const berth_expr parts[2] = {outer, inner};
    for (int i = 0; i < 2; ++i) {
        const berth_expr_node *node = berth_tfn_expr(c->fn, parts[i]);
        if (node->kind == BERTH_EXPR_VAR) berth_vec_push(c->scratch, &c->lane_vars, node->var);
    }
    c->valid = x_and(c, c->valid, x_lt(c, index, ix(c, extent)));
}

void berth_lower__end_lanes(berth_lower *c) {
    c->lane_vars.count = 0;
    c->valid = 0;
}

int berth_lower__outer(berth_lower *c, int rank, const int64_t *dims, uint32_t skip,
                       berth_expr *at) {
    int loops = 0;
    for (int d = 0; d < rank; ++d) {
        if (skip >> d & 1u) continue;
        at[d] = berth_lower__loop(c, default_names[d], dims[d], BERTH_LOOP_PARALLEL);
        loops++;
    }
    return loops;
}

int berth_lower__inner(berth_lower *c, int rank, const int64_t *dims, uint32_t mask,
                       berth_expr *at) {
    static const char *const names[BERTH_MAX_RANK] = {"r0", "r1", "r2", "r3",
                                                      "r4", "r5", "r6", "r7"};
    int loops = 0;
    for (int d = 0; d < rank; ++d) {
        if (!(mask >> d & 1u)) continue;
        at[d] = berth_lower__loop(c, names[d], dims[d], BERTH_LOOP_SERIAL);
        loops++;
    }
    return loops;
}
