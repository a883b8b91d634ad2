#include "compiler/schedule/matrix_tile.h"

#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/tensorize.h"
#include "ir/tensor/copies.h"

enum { depth_bytes = 64, most_sums = 128 };  // the latter of a work-item

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// ---- choices ------------------------------------------------------------------------------------

// The intrinsic that multiplies such operands. BERTH_INTRINSIC_COUNT: none of the target's.
static berth_intrinsic find_intrinsic(const berth_target *target, berth_dtype sum,
                                      berth_dtype row_side, berth_dtype column_side) {
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        bool of_warp = facts->cuda && facts->operands[2].lanes > 0 &&  // not a sum of a warp
                       !berth_intrinsic_is_of_warpgroup(facts);
        if ((of_warp || berth_intrinsic_is_of_subgroup(facts)) && facts->operands[0].dtype == sum &&
            facts->operands[1].dtype == row_side && facts->operands[2].dtype == column_side &&
            berth_intrinsic_serves((berth_intrinsic)i, target))
            return (berth_intrinsic)i;
    }
    return BERTH_INTRINSIC_COUNT;
}

bool berth_matrix_units_take(const berth_target *target, berth_dtype x, berth_dtype weights) {
    berth_dtype sum = berth_dtype_is_float(x) ? BERTH_DTYPE_F32 : BERTH_DTYPE_I32;
    return target && find_intrinsic(target, sum, x, weights) != BERTH_INTRINSIC_COUNT;
}

static bool operands_of(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    if (!berth_matrix__narrow(p->fn, p->row_value, &m->row_side) ||
        !berth_matrix__narrow(p->fn, p->column_value, &m->column_side))
        return false;
    m->row_side.lines = &p->rows;
    m->column_side.lines = &p->columns;
    m->terms = 32 / (int64_t)berth_dtype_size_bytes(m->row_side.dtype);
    m->beside = 2;
    return true;
}

int64_t berth_matrix__tile_rows(const berth_matrix_plan *m) {
    return m->warp_rows * m->rows * BERTH_MATRIX_ROWS;
}

int64_t berth_matrix__fragment_columns(const berth_matrix_plan *m) {
    return BERTH_MATRIX_ACROSS * m->beside;
}

int64_t berth_matrix__tile_columns(const berth_matrix_plan *m) {
    return m->warp_columns * m->columns * berth_matrix__fragment_columns(m);
}

// Memory of a group through which sums of a subgroup come to its work-items: a fragment of each.
static int64_t sums_bytes(const berth_matrix_plan *m) {
    if (!berth_intrinsic_is_of_subgroup(berth_intrinsic_get(m->id))) return 0;
    return m->warp_rows * m->warp_columns * BERTH_MATRIX_ROWS * berth_matrix__fragment_columns(m) *
           4;
}

int64_t berth_matrix__group_count(const berth_matrix_plan *m) {
    return ceil_div(m->p.rows.extent, berth_matrix__tile_rows(m)) *
           ceil_div(m->p.columns.extent, berth_matrix__tile_columns(m)) * m->p.batch.extent;
}

// Halves a size of the tile along rows or columns: fragments of a warp first, down to two.
static bool halve(int64_t *fragments, int64_t *warps) {
    int64_t *which = *fragments > 2 ? fragments : *warps > 1 ? warps : fragments;
    if (*which == 1) return false;
    *which /= 2;
    return true;
}

static bool halve_longer(berth_matrix_plan *m) {
    bool wide = berth_matrix__tile_columns(m) >= berth_matrix__tile_rows(m);
    return wide ? halve(&m->columns, &m->warp_columns) : halve(&m->rows, &m->warp_rows);
}

// 128 x 128 results by 8 warps; less where there are fewer, where units would be idle, and where a group has too
// little memory.
static void choose_tile(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    enum { padding_bytes = 16 };
    m->rows = m->warp_columns = 4;
    m->columns = 32 / berth_matrix__fragment_columns(m);
    m->warp_rows = 2;
    while (berth_matrix__tile_rows(m) / 2 >= m->p.rows.extent && halve(&m->rows, &m->warp_rows))
        continue;
    while (berth_matrix__tile_columns(m) / 2 >= m->p.columns.extent &&
           halve(&m->columns, &m->warp_columns))
        continue;
    while (berth_matrix__group_count(m) < limits->compute_units &&
           berth_matrix__tile_rows(m) * berth_matrix__tile_columns(m) > 64 * 64 && halve_longer(m))
        continue;
    while ((berth_matrix__tile_rows(m) + berth_matrix__tile_columns(m)) *
                       (depth_bytes + padding_bytes) +
                   sums_bytes(m) >
               limits->local_memory_bytes &&
           halve_longer(m))
        continue;
}

static void decide_tile(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    berth_tfn *fn = m->p.fn;
    m->rows = berth_decide(fn, BERTH_DECISION_ROWS, m->rows, 1, 8, "fragments of a warp");
    m->columns = berth_decide(fn, BERTH_DECISION_COLUMNS, m->columns, 1,
                              most_sums / (2 * m->beside) / m->rows, "fragments of a warp");
    int64_t most = limits->group_size / BERTH_MATRIX_WARP;
    if (most < 1) most = 1;
    if (m->warp_columns > most) m->warp_columns = most;
    m->warp_columns = berth_decide(fn, BERTH_DECISION_GROUP_COLUMNS, m->warp_columns, 1, most,
                                   "warps of a group");
    most /= m->warp_columns;
    if (m->warp_rows > most) m->warp_rows = most;
    m->warp_rows = berth_decide(fn, BERTH_DECISION_GROUP_ROWS, m->warp_rows, 1, most,
                                "warps of a group beside its columns");
}

// 16 bytes more for each line: the eight rows that an instruction loads lie in different banks.
static int64_t padded(int64_t extent, berth_dtype dtype) {
    return extent + 16 / (int64_t)berth_dtype_size_bytes(dtype);
}

static int64_t side_bytes(const berth_matrix_plan *m, const berth_matrix_side *s) {
    int64_t inner = s->across ? s->tile_lines : m->depth;
    int64_t outer = s->across ? m->depth : s->tile_lines;
    if (!m->piece) inner = padded(inner, s->dtype);
    return outer * inner * (int64_t)berth_dtype_size_bytes(s->dtype);
}

// Registers of a work-item: sums, operands, and for addresses about what nvcc takes (docs/cuda.md,
// Counted from the code).
static int64_t registers_of(const berth_matrix_plan *m) {
    enum {
        addresses = 28,
        of_warpgroup = 20
    };  // the second: descriptors, operands are in no registers
    if (m->piece) return 4 * m->rows * m->columns + addresses + of_warpgroup;
    return 4 * m->rows * m->columns + 4 * m->rows + 2 * m->columns + addresses;
}

// Tiles in turns: as many as the memory that all groups have holds; of devices that give a group more, also as
// many as leave a compute unit the groups at once that its registers allow.
static int64_t wanted_stages(const berth_matrix_plan *m, const berth_local_tile_limits *limits,
                             int64_t bytes) {
    int64_t stages = (limits->local_memory_bytes - sums_bytes(m)) / bytes;
    int64_t items = BERTH_MATRIX_WARP * m->warp_rows * m->warp_columns;
    int64_t wanted =
        limits->copy_stages + (m->piece && limits->copy_stages > 0);  // one of products
    int64_t groups = limits->unit_registers / (registers_of(m) * items);
    if (groups < 1) groups = 1;
    while (stages < wanted && (stages + 1) * bytes <= limits->most_memory_bytes &&
           groups *
                   ((stages + 1) * bytes + limits->unit_memory_bytes - limits->most_memory_bytes) <=
               limits->unit_memory_bytes)
        ++stages;
    return stages < wanted ? stages : wanted;
}

static bool choose_stages(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    berth_tfn *fn = m->p.fn;
    int64_t whole = ceil_div(m->p.sum.extent, m->terms) * m->terms;
    int64_t line = BERTH_MATRIX_LINE_BYTES / (int64_t)berth_dtype_size_bytes(m->row_side.dtype);
    m->depth = depth_bytes / (int64_t)berth_dtype_size_bytes(m->row_side.dtype);
    if (m->depth > whole) m->depth = whole;
    m->depth = m->piece
                   ? berth_decide(fn, BERTH_DECISION_DEPTH, line, line, line, "128 bytes")
                   : berth_decide(fn, BERTH_DECISION_DEPTH, m->depth, m->terms, whole, "the sum");
    if (m->depth % m->terms) {
        berth_decision_wrong(fn, BERTH_DECISION_DEPTH, "an instruction takes whole terms of it");
        m->depth = m->terms;
    }
    int64_t bytes = side_bytes(m, &m->row_side) + side_bytes(m, &m->column_side);
    int64_t memory_bytes = limits->most_memory_bytes > limits->local_memory_bytes
                               ? limits->most_memory_bytes
                               : limits->local_memory_bytes;
    int64_t most = (memory_bytes - sums_bytes(m)) / bytes, wanted = wanted_stages(m, limits, bytes);
    int64_t steps = ceil_div(m->p.sum.extent, m->depth);
    if (most > BERTH_TFN_MOST_PENDING) most = BERTH_TFN_MOST_PENDING;
    if (most > steps) most = steps;
    if (wanted > most) wanted = most;
    m->stages = berth_decide(fn, BERTH_DECISION_STAGES, wanted < 1 ? 1 : wanted, 1,
                             most < 1 ? 1 : most, "the memory of a group, and steps of the sum");
    if (most >= 1) return true;
    berth_decisions_refuse(
        fn, berth_status_make(BERTH_FAILED_PRECONDITION,
                              "schedule: matrix tile: a step of the sum takes %lld bytes, and a "
                              "group has %lld",
                              (long long)(bytes + sums_bytes(m)), (long long)memory_bytes));
    return false;
}

// ---- building -----------------------------------------------------------------------------------

static void declare_side(berth_matrix_plan *m, berth_matrix_side *s, const char *name) {
    int64_t inner = s->across ? s->tile_lines : m->depth;
    int64_t terms = BERTH_MATRIX_PANEL_BYTES / (int64_t)berth_dtype_size_bytes(s->dtype);
    int64_t panels[] = {m->stages, m->depth / terms, s->tile_lines, terms};
    int64_t blocks[] = {m->stages, s->tile_lines / BERTH_MATRIX_BLOCK,
                        s->across ? m->depth : BERTH_MATRIX_BLOCK,
                        s->across ? BERTH_MATRIX_BLOCK : m->depth};
    if (m->piece) {
        s->panels = berth_matrix__in_panels(m, s);
        s->tile = berth_tfn_buffer(m->p.fn, name, s->dtype, 4, s->panels ? panels : blocks,
                                   BERTH_SCOPE_LOCAL);
        return;
    }
    int64_t dims[] = {m->stages, s->across ? m->depth : s->tile_lines, padded(inner, s->dtype)};
    s->tile = berth_tfn_buffer(m->p.fn, name, s->dtype, 3, dims, BERTH_SCOPE_LOCAL);
}

// Of the sums of a work-item.
static int64_t vectors_of(const berth_matrix_plan *m) {
    return m->rows * m->columns / (m->piece ? m->piece : 1);
}

static void declare(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    berth_dtype dtype = fn->bufs.data[p->reduction.acc].dtype;
    int64_t elements = 2 * m->beside * m->rows * m->columns, vectors = vectors_of(m);
    declare_side(m, &m->row_side, "row_tile");
    declare_side(m, &m->column_side, "column_tile");
    m->acc = berth_tfn_buffer(fn, "acc", dtype, 1, &vectors, BERTH_SCOPE_REGISTER);
    fn->bufs.data[m->acc].lanes = (uint16_t)(elements / vectors);
    m->sums = berth_tfn_buffer(fn, "sums", dtype, 1, &elements, BERTH_SCOPE_PRIVATE);
    m->row_side.group = p->group_y = berth_tfn_var(fn, "group_row");
    m->column_side.group = p->group_x = berth_tfn_var(fn, "group_column");
    m->warp_row = berth_tfn_var(fn, "warp_row");
    m->warp_column = berth_tfn_var(fn, "warp_column");
    m->lane = berth_tfn_var(fn, "lane");
}

// Two rows, 8 apart, or columns beside each other of one fragment, as an operand.
static berth_expr fragment(berth_matrix_plan *m, const berth_matrix_side *s, berth_expr line,
                           int64_t apart, berth_expr term, berth_expr slot) {
    berth_tfn *fn = m->p.fn;
    int64_t lines = s == &m->row_side ? 2 : m->beside;
    berth_expr places = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), (uint16_t)(lines * m->terms));
    berth_expr terms = berth_tfn_index(fn, m->terms);
    berth_expr which = berth_tfn_binary(fn, BERTH_BINARY_DIV, places, terms);
    if (apart > 1)
        which = berth_tfn_binary(fn, BERTH_BINARY_MUL, which, berth_tfn_index(fn, apart));
    line = berth_tfn_binary(fn, BERTH_BINARY_ADD, line, which);
    term = berth_tfn_binary(fn, BERTH_BINARY_ADD, term,
                            berth_tfn_binary(fn, BERTH_BINARY_MOD, places, terms));
    berth_expr indices[] = {slot, s->across ? term : line, s->across ? line : term};
    return berth_tfn_load(fn, s->tile, indices, 3);
}

static berth_var let_fragment(berth_matrix_plan *m, const berth_matrix_side *s, const char *name,
                              berth_expr value) {
    uint16_t lanes = m->p.fn->exprs.data[value].lanes;
    berth_var var = berth_tfn_let_var(m->p.fn, name, s->dtype, lanes, false);
    berth_local__emit(&m->p, berth_tfn_let(m->p.fn, var, value));
    return var;
}

// The first line of a warp's fragment `number`, for this work-item.
static berth_expr line_of(const berth_matrix_plan *m, berth_var warp, int64_t fragments,
                          int64_t number, int64_t lines, berth_expr of_lane) {
    const berth_local_plan *p = &m->p;
    berth_expr at = berth_local__scale(p, berth_local__ref(p, warp), fragments * lines);
    at = berth_local__add(p, at, berth_tfn_index(p->fn, number * lines));
    return berth_local__add(p, at, of_lane);
}

// All products of a tile.
static berth_stmt products(berth_matrix_plan *m, berth_expr slot) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    berth_var rows[8], columns[most_sums / 4], k = berth_tfn_var(fn, "k");
    berth_expr term = berth_local__scale(p, berth_local__ref(p, k), m->terms);
    berth_expr lane = berth_local__ref(p, m->lane);
    berth_expr across = berth_tfn_index(fn, BERTH_MATRIX_ACROSS);
    berth_expr row = berth_tfn_binary(fn, BERTH_BINARY_DIV, lane, across);
    berth_expr column =
        berth_local__scale(p, berth_tfn_binary(fn, BERTH_BINARY_MOD, lane, across), m->beside);
    uint32_t first = p->out.count;
    for (int64_t i = 0; i < m->rows; ++i) {
        berth_expr line = line_of(m, m->warp_row, m->rows, i, BERTH_MATRIX_ROWS, row);
        rows[i] =
            let_fragment(m, &m->row_side, "a", fragment(m, &m->row_side, line, 8, term, slot));
    }
    for (int64_t j = 0; j < m->columns; ++j) {
        berth_expr line =
            line_of(m, m->warp_column, m->columns, j, berth_matrix__fragment_columns(m), column);
        columns[j] = let_fragment(m, &m->column_side, "b",
                                  fragment(m, &m->column_side, line, 1, term, slot));
    }
    for (int64_t i = 0; i < m->rows; ++i)
        for (int64_t j = 0; j < m->columns; ++j) {
            berth_expr at = berth_tfn_index(fn, i * m->columns + j);
            berth_expr sum =
                berth_tfn_intrinsic(fn, m->id, berth_tfn_load(fn, m->acc, &at, 1),
                                    berth_local__ref(p, rows[i]), berth_local__ref(p, columns[j]));
            berth_local__emit(p, berth_tfn_store(fn, m->acc, &at, 1, sum));
        }
    return berth_tfn_for(fn, k, berth_tfn_index(fn, m->depth / m->terms), BERTH_LOOP_UNROLL,
                         berth_local__take(p, first));
}

static void stage_step(void *user, berth_expr step, berth_expr slot) {
    berth_matrix_plan *m = user;
    berth_local__emit(&m->p, berth_matrix__stage(m, &m->row_side, step, slot));
    berth_local__emit(&m->p, berth_matrix__stage(m, &m->column_side, step, slot));
}

static void update_step(void *user, berth_expr slot) {
    berth_matrix_plan *m = user;
    if (m->piece)
        berth_matrix__group_products(m, slot);
    else
        berth_local__emit(&m->p, products(m, slot));
}

static berth_stmt work_item(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    berth_expr warp = berth_local__add(
        p, berth_local__scale(p, berth_local__ref(p, m->warp_column), m->warp_rows),
        berth_local__ref(p, m->warp_row));
    m->item = berth_local__add(p, berth_local__scale(p, warp, BERTH_MATRIX_WARP),
                               berth_local__ref(p, m->lane));
    berth_local__emit(p, berth_tfn_alloc(fn, m->acc));
    berth_var number = berth_tfn_var(fn, "fragment");
    berth_expr at = berth_local__ref(p, number);
    berth_expr zero = berth_tfn_broadcast(fn, p->reduction.init, fn->bufs.data[m->acc].lanes);
    berth_stmt clear = berth_tfn_store(fn, m->acc, &at, 1, zero);
    berth_local__emit(
        p, berth_tfn_for(fn, number, berth_tfn_index(fn, vectors_of(m)), BERTH_LOOP_UNROLL, clear));
    berth_local__steps(p, &(berth_local_steps){.count = ceil_div(p->sum.extent, m->depth),
                                               .stages = m->stages,
                                               .copies = true,
                                               .update_first = m->piece != 0,
                                               .stage = stage_step,
                                               .update = update_step,
                                               .user = m});
    berth_matrix__epilogue(m);
    return berth_local__take(p, 0);
}

static berth_stmt build(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    declare(m);
    berth_stmt item = work_item(m);
    item = berth_tfn_for(fn, m->lane, berth_tfn_index(fn, BERTH_MATRIX_WARP), BERTH_LOOP_LOCAL_X,
                         item);
    item =
        berth_tfn_for(fn, m->warp_row, berth_tfn_index(fn, m->warp_rows), BERTH_LOOP_LOCAL_Y, item);
    item = berth_tfn_for(fn, m->warp_column, berth_tfn_index(fn, m->warp_columns),
                         BERTH_LOOP_LOCAL_Z, item);
    berth_stmt group[] = {berth_tfn_alloc(fn, m->row_side.tile),
                          berth_tfn_alloc(fn, m->column_side.tile), item};
    return berth_local__groups(p, berth_tfn_seq(fn, group, 3),
                               ceil_div(p->rows.extent, berth_matrix__tile_rows(m)),
                               ceil_div(p->columns.extent, berth_matrix__tile_columns(m)));
}

// Of operands in blocks of channels: terms of a block, which lie beside each other, become the innermost of the
// sum, so that they are copied at once.
static void sum_blocks_inside(berth_tfn *fn, berth_nest *nest) {
    berth_reduction sum;
    berth_access_list loads = {0};
    if (!berth_reduction_parse(fn, nest->body, &sum)) return;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    ranges = berth_ranges_with(fn, &ranges, &sum.loops);
    berth_cpu__collect_loads(fn, &ranges, sum.update, &loads);
    if (berth_cpu__split_blocks(fn, &loads, &sum)) nest->body = berth_reduction_emit(fn, &sum);
}

bool berth_matrix__analyse(berth_matrix_plan *m, berth_tfn *fn, const berth_nest *nest) {
    *m = (berth_matrix_plan){.p = {.fn = fn, .nest = *nest}};
    if (!berth_nest_is_independent(fn, nest)) return false;
    sum_blocks_inside(fn, &m->p.nest);
    return berth_local__analyse(&m->p) && operands_of(m);
}

berth_stmt berth_matrix__build(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    m->row_side.tile_lines = berth_matrix__tile_rows(m);
    m->column_side.tile_lines = berth_matrix__tile_columns(m);
    return choose_stages(m, limits) ? build(m) : 0;
}

// Everything but what decisions may change. False: the target's units do not take it, or too little of it.
static bool choose(berth_matrix_plan *m, berth_tfn *fn, const berth_nest *nest,
                   const berth_local_tile_limits *limits) {
    if (!limits->target || !berth_matrix__analyse(m, fn, nest)) return false;
    m->id = find_intrinsic(limits->target, fn->bufs.data[m->p.reduction.acc].dtype,
                           m->row_side.dtype, m->column_side.dtype);
    // Two rows are worth a fragment of 16: what bounds so few is how their operands come, which is by copies here.
    if (m->id == BERTH_INTRINSIC_COUNT || m->p.rows.extent < 2 || m->p.columns.extent < 2)
        return false;
    m->terms = berth_intrinsic_get(m->id)->operands[1].lanes / 2;  // of two rows
    if (m->p.sum.extent < m->terms / 2) return false;
    if (berth_intrinsic_is_of_subgroup(berth_intrinsic_get(m->id))) m->beside = 4;
    choose_tile(m, limits);
    return true;
}

int64_t berth_matrix_tile_groups(berth_tfn *fn, const berth_nest *nest,
                                 const berth_local_tile_limits *limits) {
    berth_matrix_plan m;
    if (berth_matrix__choose_groups(&m, fn, nest, limits) || choose(&m, fn, nest, limits))
        return berth_matrix__group_count(&m);
    return 0;
}

berth_stmt berth_matrix_tile(berth_tfn *fn, const berth_nest *nest,
                             const berth_local_tile_limits *limits) {
    berth_matrix_plan m;
    if (!choose(&m, fn, nest, limits)) return 0;
    berth_matrix__choose_copies(&m, &m.row_side);
    berth_matrix__choose_copies(&m, &m.column_side);
    berth_decide(fn, BERTH_DECISION_INTRINSIC, m.id, m.id, m.id, "that takes these types");
    decide_tile(&m, limits);
    return berth_matrix__build(&m, limits);
}
