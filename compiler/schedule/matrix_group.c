// Matrix products by instructions of four warps (wgmma): operands are read where they lie in the memory of
// the group, in blocks of 64 lines (matrix_tile.h).
#include "compiler/schedule/matrix_tile.h"
#include "compiler/schedule/tensorize.h"

// Fragments of a work-item, of an instruction.
enum { most_columns = 32, most_piece = 16, fragment_columns = 8 };

// The instruction for such operands with as many fragments along columns. BERTH_INTRINSIC_COUNT: none
// of the target's.
static berth_intrinsic find_intrinsic(const berth_matrix_plan *m, int64_t piece,
                                      const berth_target *target) {
    berth_dtype sum = m->p.fn->bufs.data[m->p.reduction.acc].dtype;
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        if (berth_intrinsic_is_of_warpgroup(facts) && facts->operands[0].lanes == 4 * piece &&
            facts->operands[0].dtype == sum && facts->operands[1].dtype == m->row_side.dtype &&
            facts->operands[2].dtype == m->column_side.dtype &&
            berth_intrinsic_serves((berth_intrinsic)i, target))
            return (berth_intrinsic)i;
    }
    return BERTH_INTRINSIC_COUNT;
}

// What the busiest unit reads, in lines of both operands: its tiles one after the other.
static int64_t lines_of_unit(const berth_matrix_plan *m, int64_t units) {
    int64_t rounds = (berth_matrix__group_count(m) + units - 1) / units;
    return rounds * (berth_matrix__tile_rows(m) + berth_matrix__tile_columns(m));
}

// A warpgroup has 64 rows, up to 256 columns. 128 x 256 results of two; less where there are fewer, and
// where the busiest unit reads less then: halves of a tile read more together, but more units share them.
static void choose_tile(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    enum { least_columns = BERTH_MATRIX_BLOCK / fragment_columns };
    m->rows = m->warp_columns = 1;
    m->columns = most_columns;
    m->warp_rows = 2 * BERTH_MATRIX_GROUP;
    if (berth_matrix__tile_rows(m) / 2 >= m->p.rows.extent) m->warp_rows = BERTH_MATRIX_GROUP;
    while (berth_matrix__tile_columns(m) / 2 >= m->p.columns.extent && m->columns > least_columns)
        m->columns /= 2;
    if (limits->compute_units <= 0) return;
    berth_matrix_plan smaller = *m;
    for (;;) {
        bool wide = berth_matrix__tile_columns(&smaller) >= berth_matrix__tile_rows(&smaller);
        if (wide && smaller.columns > least_columns)
            smaller.columns /= 2;
        else if (smaller.warp_rows > BERTH_MATRIX_GROUP)
            smaller.warp_rows = BERTH_MATRIX_GROUP;
        else
            break;
        if (lines_of_unit(&smaller, limits->compute_units) <
            lines_of_unit(m, limits->compute_units)) {
            m->columns = smaller.columns;
            m->warp_rows = smaller.warp_rows;
        }
    }
}

// False: a group has too few work-items, or what was given is no multiple of what warpgroups take.
static bool decide_tile(berth_matrix_plan *m, const berth_local_tile_limits *limits) {
    berth_tfn *fn = m->p.fn;
    int64_t most = limits->group_size / BERTH_MATRIX_WARP;
    if (most < BERTH_MATRIX_GROUP) return false;
    if (m->warp_rows > most) m->warp_rows = BERTH_MATRIX_GROUP;
    berth_decide(fn, BERTH_DECISION_ROWS, 1, 1, 1, "fragments of a warp of a warpgroup");
    m->columns = berth_decide(fn, BERTH_DECISION_COLUMNS, m->columns, 8, most_columns,
                              "fragments of a warp of a warpgroup");
    if (m->columns % 8) {
        berth_decision_wrong(fn, BERTH_DECISION_COLUMNS, "instructions have 8 or 16 of them");
        m->columns = 8;
    }
    m->piece = m->columns % most_piece ? most_piece / 2 : most_piece;
    m->warp_columns =
        berth_decide(fn, BERTH_DECISION_GROUP_COLUMNS, 1, 1, most / m->warp_rows, "warpgroups");
    m->warp_rows =
        berth_decide(fn, BERTH_DECISION_GROUP_ROWS, m->warp_rows, BERTH_MATRIX_GROUP,
                     most / m->warp_columns / BERTH_MATRIX_GROUP * BERTH_MATRIX_GROUP, "warps");
    if (m->warp_rows % BERTH_MATRIX_GROUP) {
        berth_decision_wrong(fn, BERTH_DECISION_GROUP_ROWS, "a warpgroup has four of them");
        m->warp_rows = BERTH_MATRIX_GROUP;
    }
    return true;
}

bool berth_matrix__choose_groups(berth_matrix_plan *m, berth_tfn *fn, const berth_nest *nest,
                                 const berth_local_tile_limits *limits) {
    if (!limits->target || !berth_matrix__analyse(m, fn, nest) ||
        find_intrinsic(m, most_piece, limits->target) == BERTH_INTRINSIC_COUNT)
        return false;
    int64_t step = BERTH_MATRIX_LINE_BYTES / (int64_t)berth_dtype_size_bytes(m->row_side.dtype);
    if (m->p.rows.extent <= BERTH_MATRIX_BLOCK / 2 ||
        m->p.columns.extent <= BERTH_MATRIX_BLOCK / 2 || m->p.sum.extent <= step / 2)
        return false;
    choose_tile(m, limits);
    return true;
}

berth_stmt berth_group_matrix_tile(berth_tfn *fn, const berth_nest *nest,
                                   const berth_local_tile_limits *limits) {
    berth_matrix_plan m;
    if (!berth_matrix__choose_groups(&m, fn, nest, limits)) return 0;
    berth_matrix__choose_copies(&m, &m.row_side);
    berth_matrix__choose_copies(&m, &m.column_side);
    if (!decide_tile(&m, limits)) return 0;
    m.id = find_intrinsic(&m, m.piece, limits->target);
    berth_decide(fn, BERTH_DECISION_INTRINSIC, m.id, m.id, m.id, "that takes these types");
    return berth_matrix__build(&m, limits);
}

// ---- products -----------------------------------------------------------------------------------

static berth_expr index_of(const berth_matrix_plan *m, int64_t value) {
    return berth_tfn_index(m->p.fn, value);
}

static berth_expr quotient(const berth_matrix_plan *m, berth_expr a, int64_t k) {
    return berth_tfn_binary(m->p.fn, BERTH_BINARY_DIV, a, index_of(m, k));
}

static berth_expr modulo(const berth_matrix_plan *m, berth_expr a, int64_t k) {
    return berth_tfn_binary(m->p.fn, BERTH_BINARY_MOD, a, index_of(m, k));
}

// Line `line` of block `block` of an operand's tile.
static berth_expr load(const berth_matrix_plan *m, const berth_matrix_side *s, berth_expr slot,
                       berth_expr block, berth_expr line, berth_expr term) {
    berth_expr blocks[] = {slot, block, s->across ? term : line, s->across ? line : term};
    if (!s->panels) return berth_tfn_load(m->p.fn, s->tile, blocks, 4);
    int64_t terms = BERTH_MATRIX_PANEL_BYTES / (int64_t)berth_dtype_size_bytes(s->dtype);
    line = berth_local__add(&m->p, berth_local__scale(&m->p, block, BERTH_MATRIX_BLOCK), line);
    berth_expr pieces[] = {slot, quotient(m, term, terms), line, modulo(m, term, terms)};
    return berth_tfn_load(m->p.fn, s->tile, pieces, 4);
}

// Two rows of a work-item, 8 apart; `first` is the first term.
static berth_expr rows_of(berth_matrix_plan *m, berth_expr slot, berth_expr first) {
    berth_local_plan *p = &m->p;
    berth_expr ramp = berth_tfn_ramp(p->fn, index_of(m, 0), (uint16_t)(2 * m->terms));
    berth_expr warp = berth_local__ref(p, m->warp_row), lane = berth_local__ref(p, m->lane);
    berth_expr line = berth_local__add(
        p, berth_local__scale(p, modulo(m, warp, BERTH_MATRIX_GROUP), BERTH_MATRIX_ROWS),
        quotient(m, lane, 4));
    line = berth_local__add(p, line, berth_local__scale(p, quotient(m, ramp, m->terms), 8));
    berth_expr term = berth_local__add(p, first, modulo(m, ramp, m->terms));
    return load(m, &m->row_side, slot, quotient(m, warp, BERTH_MATRIX_GROUP), line, term);
}

// Two columns beside each other of each fragment of instruction `number`.
static berth_expr columns_of(berth_matrix_plan *m, berth_expr slot, berth_expr first,
                             int64_t number) {
    enum { fragments = BERTH_MATRIX_BLOCK / fragment_columns };  // of a block
    berth_local_plan *p = &m->p;
    berth_expr ramp = berth_tfn_ramp(p->fn, index_of(m, 0), (uint16_t)(2 * m->terms * m->piece));
    berth_expr fragment = quotient(m, ramp, 2 * m->terms), lane = berth_local__ref(p, m->lane);
    berth_expr block =
        berth_local__scale(p, berth_local__ref(p, m->warp_column), m->columns / fragments);
    block = berth_local__add(p, block, index_of(m, number * m->piece / fragments));
    block = berth_local__add(p, block, quotient(m, fragment, fragments));
    berth_expr line = berth_local__add(p, berth_local__scale(p, modulo(m, fragment, fragments), 8),
                                       berth_local__scale(p, modulo(m, lane, 4), 2));
    line = berth_local__add(p, line, modulo(m, quotient(m, ramp, m->terms), 2));
    berth_expr term = berth_local__add(p, first, modulo(m, ramp, m->terms));
    return load(m, &m->column_side, slot, block, line, term);
}

void berth_matrix__group_products(berth_matrix_plan *m, berth_expr slot) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    berth_var k = berth_tfn_var(fn, "k");
    berth_expr first = berth_local__scale(p, berth_local__ref(p, k), m->terms);
    uint32_t before = p->out.count;
    for (int64_t i = 0; i < m->columns / m->piece; ++i) {
        berth_expr at = index_of(m, i);
        berth_expr sum =
            berth_tfn_intrinsic(fn, m->id, berth_tfn_load(fn, m->acc, &at, 1),
                                rows_of(m, slot, first), columns_of(m, slot, first, i));
        berth_local__emit(p, berth_tfn_store(fn, m->acc, &at, 1, sum));
    }
    berth_stmt body = berth_local__take(p, before);
    berth_local__emit(
        p, berth_tfn_for(fn, k, index_of(m, m->depth / m->terms), BERTH_LOOP_UNROLL, body));
}
