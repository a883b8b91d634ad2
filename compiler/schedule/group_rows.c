// Sums and rows of a work-group: see work_groups.h.
#include <string.h>

#include "compiler/schedule/group_own.h"
#include "compiler/schedule/tensorize.h"
#include "compiler/schedule/work_groups.h"

#define LEAST_SUM 32          // terms below which one work-item adds them up
#define MOST_ITEMS 256        // of a group, unless a sum is very long
#define MOST_REDUCTIONS 8     // of one loop
#define MOST_STATEMENTS 16    // of one loop's body
#define WARP_ITEMS 32         // that put the last elements of a sum together at once
#define MOST_GROUPS 65535     // along an axis: what every device takes
#define ITEMS_FOR_A_UNIT 128  // work-items that keep a compute unit busy, about
#define TERMS_IN_FLIGHT 8     // of a work-item: what printers unroll
#define COLUMN_ITEMS 8        // that share the sum of a column, at least

// acc = op(acc, term), over a loop.
typedef struct group_sum {
    berth_stmt store;
    berth_buf acc;
    berth_binary op;
    berth_buf part;    // of a work-item
    berth_buf shared;  // of all, [items]
} group_sum;

// Loops in a row: the statements of the innermost.
typedef struct group_loop {
    berth_nest nest;
    int64_t extent;
    berth_stmt body[MOST_STATEMENTS];
    int count;
    group_sum sums[MOST_REDUCTIONS];
    int sum_count;
    bool own;  // iterations work alone, with loops of their own
} group_loop;

typedef struct group_plan {
    berth_tfn *fn;
    const berth_nest *nest;
    const berth_target *target;  // whose instructions there are; NULL = none
    uint32_t buf_count;
    bool *is_scalar;  // by buffer: allocated in the nest, one element in registers
    bool *is_array;   // allocated in the nest, with several: shared by the group
    int64_t array_bytes;
    int64_t sum_bytes;  // of all sums, for a work-item
    int64_t longest;    // loop of the body
    bool has_sum, in_order;
    bool has_own;        // loops whose iterations have loops of their own
    int loops_together;  // around what is looked at: loops that all work-items run
    bool across;         // neighbours along the nest's last loop are neighbours in memory
    int64_t items;
    bool together;  // the last elements of a sum by an instruction, where there is one for it
    berth_var item;
    int64_t columns;               // iterations of the nest's last loop that a group does at once
    berth_expr column;             // which of them, 0 to columns - 1; 0 where there is one
    berth_expr is_in;              // the iteration exists; 0: all do
    BERTH_VEC(berth_stmt) allocs;  // of the group
    BERTH_VEC(berth_stmt) out;     // of a work-item
} group_plan;

static void emit(group_plan *p, berth_stmt stmt) {
    berth_vec_push(p->fn->module->arena, &p->out, stmt);
}

// ---- what the body does -------------------------------------------------------------------------

typedef struct load_query {
    berth_buf buf;
    const berth_expr *indices;  // NULL: any
    int count;                  // of loads of `buf`
    bool elsewhere;             // one of them has other indices
} load_query;

static berth_expr note_load(berth_tfn *fn, berth_expr load, void *user) {
    load_query *query = user;
    const berth_expr_node node = fn->exprs.data[load];
    if (node.load.buf != query->buf) return 0;
    query->count++;
    const berth_expr *indices = berth_tfn_load_indices(fn, load);
    for (int i = 0; query->indices && i < node.index_count; ++i)
        query->elsewhere |= !berth_tfn_expr_equal(fn, indices[i], query->indices[i]);
    return 0;
}

// Loads of a buffer in all that a statement (a store or a let) reads.
static load_query loads_in(berth_tfn *fn, berth_stmt stmt, berth_buf buf,
                           const berth_expr *indices) {
    load_query query = {.buf = buf, .indices = indices};
    const berth_stmt_node node = fn->stmts.data[stmt];
    berth_replace_loads(fn, node.value, note_load, &query);
    for (uint32_t i = 0; node.kind == BERTH_STMT_STORE && i < node.index_count; ++i)
        berth_replace_loads(fn, berth_tfn_store_indices(fn, stmt)[i], note_load, &query);
    return query;
}

static bool is_load_of(const berth_tfn *fn, berth_expr id, berth_buf buf) {
    const berth_expr_node *node = &fn->exprs.data[id];
    return node->kind == BERTH_EXPR_LOAD && node->load.buf == buf;
}

// Operations whose terms may come in any order and number of pieces.
static bool parse_sum(const berth_tfn *fn, berth_stmt store, group_sum *out) {
    const berth_stmt_node *node = &fn->stmts.data[store];
    const berth_expr_node *value = &fn->exprs.data[node->value];
    berth_dtype dtype = fn->bufs.data[node->buf].dtype;
    *out = (group_sum){.store = store, .acc = node->buf, .op = BERTH_BINARY_ADD};
    if (!berth_dtype_is_float(dtype) && dtype != BERTH_DTYPE_I32 && dtype != BERTH_DTYPE_I64)
        return false;
    if (value->kind == BERTH_EXPR_FMA) return is_load_of(fn, value->c, node->buf);
    if (value->kind != BERTH_EXPR_BINARY) return false;
    out->op = (berth_binary)value->op;
    bool known = out->op == BERTH_BINARY_ADD || out->op == BERTH_BINARY_MUL ||
                 out->op == BERTH_BINARY_MIN || out->op == BERTH_BINARY_MAX;
    return known && (is_load_of(fn, value->a, node->buf) || is_load_of(fn, value->b, node->buf));
}

static bool flatten(const berth_tfn *fn, berth_stmt stmt, group_loop *loop) {
    const berth_stmt_node *node = &fn->stmts.data[stmt];
    if (node->kind == BERTH_STMT_SEQ) {
        for (uint32_t i = 0; i < node->count; ++i)
            if (!flatten(fn, fn->lists.data[node->first + i], loop)) return false;
        return true;
    }
    if (node->kind != BERTH_STMT_STORE && node->kind != BERTH_STMT_LET) return false;
    if (loop->count == MOST_STATEMENTS) return false;
    loop->body[loop->count++] = stmt;
    return true;
}

// No iteration reads what another one makes.
static bool is_free_of(group_plan *p, const group_loop *loop, int at) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node made = fn->stmts.data[loop->body[at]];
    if (made.kind != BERTH_STMT_STORE) return true;
    bool is_sum = p->is_scalar[made.buf];
    const berth_expr *indices = is_sum ? NULL : berth_tfn_store_indices(fn, loop->body[at]);
    for (int i = 0; i < loop->count; ++i) {
        const berth_stmt_node other = fn->stmts.data[loop->body[i]];
        if (i != at && other.kind == BERTH_STMT_STORE && other.buf == made.buf) return false;
        load_query query = loads_in(fn, loop->body[i], made.buf, indices);
        if (is_sum ? query.count != (i == at) : query.elsewhere) return false;
    }
    return true;
}

static bool parse_statements(group_plan *p, group_loop *loop) {
    if (!flatten(p->fn, loop->nest.body, loop)) return false;
    for (int i = 0; i < loop->count; ++i) {
        const berth_stmt_node node = p->fn->stmts.data[loop->body[i]];
        if (!is_free_of(p, loop, i)) return false;
        if (node.kind == BERTH_STMT_LET) continue;
        if (p->is_scalar[node.buf]) {
            if (loop->sum_count == MOST_REDUCTIONS ||
                !parse_sum(p->fn, loop->body[i], &loop->sums[loop->sum_count++]))
                return false;
        } else if (!berth_group_own__is_own_element(p->fn, &loop->nest, loop->body[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_loop(group_plan *p, berth_stmt stmt, group_loop *loop) {
    memset(loop, 0, sizeof(*loop));
    loop->extent = 1;
    if (!berth_nest_parse(p->fn, stmt, &loop->nest)) return false;
    for (int i = 0; i < loop->nest.count; ++i) {
        const berth_nest_loop *one = &loop->nest.loops[i];
        if (one->extent <= 0 || one->extent > INT32_MAX / loop->extent) return false;
        loop->extent *= one->extent;
    }
    if (parse_statements(p, loop)) return true;
    loop->count = loop->sum_count = 0;
    loop->own = berth_group_own__is_independent(p->fn, &loop->nest);
    return loop->own;
}

// Whether neighbours along a loop are neighbours in memory, in all that is read inside of `loop`.
static bool is_in_order(group_plan *p, const group_loop *loop, const berth_nest_loop *last) {
    if (last->extent < LEAST_SUM / 4) return false;
    berth_ranges ranges = berth_ranges_collect(p->fn);
    ranges = berth_ranges_with(p->fn, &ranges, p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &loop->nest);
    for (int i = 0; i < loop->count; ++i)
        if (!berth_loads_are_contiguous(p->fn, &ranges, p->fn->stmts.data[loop->body[i]].value,
                                        last->var))
            return false;
    return true;
}

static bool note_buffer(group_plan *p, berth_buf buf) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    int64_t elements = 1;
    if (info->lanes > 1 || buf >= p->buf_count) return false;
    for (int d = 0; d < info->rank; ++d) elements *= info->dims[d];
    if (elements <= 0 || elements > 1 << 20) return false;
    *(info->rank == 0 ? &p->is_scalar[buf] : &p->is_array[buf]) = true;
    if (info->rank > 0) p->array_bytes += elements * (int64_t)berth_dtype_size_bytes(info->dtype);
    return true;
}

static bool is_counted(const berth_tfn *fn, const berth_stmt_node *loop) {
    int64_t extent = 0;
    return loop->loop_kind == BERTH_LOOP_SERIAL &&
           berth_tfn_const_value(fn, loop->value, &extent) && extent > 0;
}

static bool examine_loop(group_plan *p, berth_stmt stmt) {
    group_loop loop;
    if (!parse_loop(p, stmt, &loop)) return false;
    if (loop.extent > p->longest) p->longest = loop.extent;
    p->has_own |= loop.own;
    if (loop.own) return true;
    p->has_sum |= loop.sum_count > 0;
    for (int i = 0; i < loop.sum_count; ++i)
        p->sum_bytes += (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[loop.sums[i].acc].dtype);
    p->in_order &= is_in_order(p, &loop, &loop.nest.loops[loop.nest.count - 1]);
    p->across &= is_in_order(p, &loop, &p->nest->loops[p->nest->count - 1]);
    return true;
}

// True: every statement has a form for a group. What comes once is computed by every work-item; a loop whose body has
// such statements is run by all of them together.
static bool examine(group_plan *p, berth_stmt stmt) {
    const berth_stmt_node node = p->fn->stmts.data[stmt];
    switch (node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!examine(p, p->fn->lists.data[node.first + i])) return false;
        return true;
    case BERTH_STMT_ALLOC: return note_buffer(p, node.buf);
    case BERTH_STMT_LET: return true;
    case BERTH_STMT_STORE:
        return p->is_scalar[node.buf] || (!p->is_array[node.buf] && p->loops_together == 0);
    case BERTH_STMT_FOR:
        if (examine_loop(p, stmt)) return true;
        p->loops_together++;
        bool fits = is_counted(p->fn, &node) && examine(p, node.body);
        p->loops_together--;
        return fits;
    default: return false;
    }
}

// ---- what becomes of it -------------------------------------------------------------------------

// Element `at` of what the group adds up for this column.
static berth_expr load_shared(const group_plan *p, const group_sum *sum, berth_expr at) {
    return berth_tfn_load(p->fn, sum->shared, (berth_expr[]){at, p->column}, p->column ? 2 : 1);
}

static berth_stmt store_shared(const group_plan *p, const group_sum *sum, berth_expr value) {
    berth_expr at[] = {berth_tfn_var_ref(p->fn, p->item), p->column};
    return berth_tfn_store(p->fn, sum->shared, at, p->column ? 2 : 1, value);
}

typedef struct acc_query {
    const group_sum *sums;
    int count;
} acc_query;

static berth_expr take_part(berth_tfn *fn, berth_expr load, void *user) {
    const acc_query *query = user;
    for (int i = 0; i < query->count; ++i)
        if (fn->exprs.data[load].load.buf == query->sums[i].acc)
            return berth_tfn_load(fn, query->sums[i].part, NULL, 0);
    return 0;
}

static void begin_sum(group_plan *p, group_sum *sum) {
    berth_tfn *fn = p->fn;
    berth_dtype dtype = fn->bufs.data[sum->acc].dtype;
    sum->part = berth_tfn_buffer(fn, "part", dtype, 0, NULL, BERTH_SCOPE_REGISTER);
    int64_t dims[] = {p->items, p->columns};
    sum->shared = berth_tfn_buffer(fn, "shared", dtype, p->column ? 2 : 1, dims, BERTH_SCOPE_LOCAL);
    berth_vec_push(fn->module->arena, &p->allocs, berth_tfn_alloc(fn, sum->shared));
    emit(p, berth_tfn_alloc(fn, sum->part));
    // What leaves a sum as it is; of a maximum, what it is so far does.
    berth_expr first = sum->op == BERTH_BINARY_ADD   ? berth_tfn_const(fn, dtype, 0)
                       : sum->op == BERTH_BINARY_MUL ? berth_tfn_const(fn, dtype, 1)
                                                     : berth_tfn_load(fn, sum->acc, NULL, 0);
    emit(p, berth_tfn_store(fn, sum->part, NULL, 0, first));
}

// What puts together the last elements, one for each work-item of a warp, in all of them at once.
// BERTH_INTRINSIC_COUNT: the device has no such instruction.
static berth_intrinsic warp_intrinsic(const group_plan *p, berth_binary op, berth_dtype dtype) {
    static const struct {
        berth_binary op;
        berth_intrinsic id;
    } known[] = {{BERTH_BINARY_ADD, BERTH_INTRINSIC_WARP_ADD_F32},
                 {BERTH_BINARY_MAX, BERTH_INTRINSIC_WARP_MAX_F32},
                 {BERTH_BINARY_MIN, BERTH_INTRINSIC_WARP_MIN_F32},
                 {BERTH_BINARY_ADD, BERTH_INTRINSIC_WARP_ADD_F64},
                 {BERTH_BINARY_MAX, BERTH_INTRINSIC_WARP_MAX_F64},
                 {BERTH_BINARY_MIN, BERTH_INTRINSIC_WARP_MIN_F64},
                 {BERTH_BINARY_ADD, BERTH_INTRINSIC_WARP_ADD_I64},
                 {BERTH_BINARY_ADD, BERTH_INTRINSIC_WARP_ADD_I32},
                 {BERTH_BINARY_MAX, BERTH_INTRINSIC_WARP_MAX_I32},
                 {BERTH_BINARY_MIN, BERTH_INTRINSIC_WARP_MIN_I32}};
    if (!p->target || p->columns > 1 || p->items < WARP_ITEMS) return BERTH_INTRINSIC_COUNT;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
        if (known[i].op == op && berth_intrinsic_serves(known[i].id, p->target) &&
            berth_intrinsic_get(known[i].id)->operands[0].dtype == dtype)
            return known[i].id;
    return BERTH_INTRINSIC_COUNT;
}

// Halves are put together until one element is left: pairs at a distance that is halved each time.
static void end_sum(group_plan *p, const group_sum *sum) {
    berth_tfn *fn = p->fn;
    berth_expr item = berth_tfn_var_ref(fn, p->item);
    emit(p, store_shared(p, sum, berth_tfn_load(fn, sum->part, NULL, 0)));
    emit(p, berth_tfn_barrier(fn));
    berth_intrinsic together = BERTH_INTRINSIC_COUNT;
    if (p->together) together = warp_intrinsic(p, sum->op, fn->bufs.data[sum->acc].dtype);
    int64_t least = together == BERTH_INTRINSIC_COUNT ? 1 : WARP_ITEMS;
    for (int64_t half = p->items / 2; half >= least; half /= 2) {
        berth_expr other = berth_tfn_binary(fn, BERTH_BINARY_ADD, item, berth_tfn_index(fn, half));
        berth_expr both =
            berth_tfn_binary(fn, sum->op, load_shared(p, sum, item), load_shared(p, sum, other));
        berth_expr is_first =
            berth_tfn_binary(fn, BERTH_BINARY_LT, item, berth_tfn_index(fn, half));
        emit(p, berth_tfn_if(fn, is_first, store_shared(p, sum, both), 0));
        emit(p, berth_tfn_barrier(fn));
    }
    berth_expr all = load_shared(p, sum, berth_tfn_index(fn, 0));
    if (together != BERTH_INTRINSIC_COUNT) {
        berth_expr ramp = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), WARP_ITEMS);
        all = berth_tfn_intrinsic(fn, together, berth_tfn_load(fn, sum->acc, NULL, 0),
                                  load_shared(p, sum, ramp), 0);
    } else if (sum->op == BERTH_BINARY_ADD || sum->op == BERTH_BINARY_MUL)
        all = berth_tfn_binary(fn, sum->op, berth_tfn_load(fn, sum->acc, NULL, 0), all);
    emit(p, berth_tfn_store(fn, sum->acc, NULL, 0, all));
}

// An iteration: sums go to the work-item's part, and loops' variables follow from the position `at`.
static berth_stmt iteration(group_plan *p, const group_loop *loop, berth_expr at) {
    berth_tfn *fn = p->fn;
    uint32_t map_count = fn->vars.count;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, map_count + 1);
    int64_t inner = 1;
    for (int i = loop->nest.count - 1; i >= 0; --i) {
        const berth_nest_loop *one = &loop->nest.loops[i];
        berth_expr value = berth_tfn_binary(fn, BERTH_BINARY_DIV, at, berth_tfn_index(fn, inner));
        if (i > 0)
            value = berth_tfn_binary(fn, BERTH_BINARY_MOD, value, berth_tfn_index(fn, one->extent));
        map[one->var] = value;
        inner *= one->extent;
    }
    if (loop->own) return berth_tfn_substitute_stmt(fn, loop->nest.body, map, map_count);
    acc_query query = {loop->sums, loop->sum_count};
    berth_stmt made[MOST_STATEMENTS];
    for (int i = 0, sum = 0; i < loop->count; ++i) {
        berth_stmt stmt = loop->body[i];
        if (sum < loop->sum_count && loop->sums[sum].store == stmt) {
            berth_expr value =
                berth_replace_loads(fn, fn->stmts.data[stmt].value, take_part, &query);
            stmt = berth_tfn_store(fn, loop->sums[sum++].part, NULL, 0, value);
        }
        made[i] = berth_tfn_substitute_stmt(fn, stmt, map, map_count);
    }
    return berth_tfn_seq(fn, made, (uint32_t)loop->count);
}

static void emit_all(group_plan *p, berth_stmt stmt);

// A loop that all work-items run together.
static void emit_together(group_plan *p, const berth_stmt_node *loop) {
    berth_tfn *fn = p->fn;
    uint32_t first = p->out.count;
    emit_all(p, loop->body);
    berth_stmt body = berth_tfn_seq(fn, p->out.data + first, p->out.count - first);
    p->out.count = first;
    emit(p, berth_tfn_for(fn, loop->var, loop->value, BERTH_LOOP_SERIAL, body));
}

static void emit_loop(group_plan *p, berth_stmt stmt) {
    berth_tfn *fn = p->fn;
    group_loop loop;
    const berth_stmt_node node = fn->stmts.data[stmt];
    if (!parse_loop(p, stmt, &loop)) {  // examine() has seen what it is
        emit_together(p, &node);
        return;
    }
    for (int i = 0; i < loop.sum_count; ++i) begin_sum(p, &loop.sums[i]);
    berth_var step = berth_tfn_var(fn, "step");
    berth_expr at = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, step),
                                     berth_tfn_index(fn, p->items));
    at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_var_ref(fn, p->item));
    berth_stmt body = iteration(p, &loop, at);
    berth_expr is_in = p->is_in;
    if (loop.extent % p->items) {
        berth_expr here =
            berth_tfn_binary(fn, BERTH_BINARY_LT, at, berth_tfn_index(fn, loop.extent));
        is_in = is_in ? berth_tfn_binary(fn, BERTH_BINARY_AND, here, is_in) : here;
    }
    if (is_in) body = berth_tfn_if(fn, is_in, body, 0);
    int64_t steps = (loop.extent + p->items - 1) / p->items;
    emit(p, berth_tfn_for(fn, step, berth_tfn_index(fn, steps), BERTH_LOOP_SERIAL, body));
    for (int i = 0; i < loop.sum_count; ++i) end_sum(p, &loop.sums[i]);
    if (loop.sum_count == 0) emit(p, berth_tfn_barrier(fn));  // what was written is there for all
}

// Whether a statement that comes once reads what work-items share: none may go on to change it before all have.
static bool reads_array(const group_plan *p, berth_stmt stmt) {
    for (berth_buf buf = 0; buf < p->buf_count; ++buf)
        if (p->is_array[buf] && loads_in(p->fn, stmt, buf, NULL).count > 0) return true;
    return false;
}

static void emit_all(group_plan *p, berth_stmt stmt) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node node = fn->stmts.data[stmt];
    berth_expr is_first = 0;
    switch (node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i) emit_all(p, fn->lists.data[node.first + i]);
        return;
    case BERTH_STMT_FOR: emit_loop(p, stmt); return;
    case BERTH_STMT_ALLOC:
        if (p->is_scalar[node.buf]) break;
        fn->bufs.data[node.buf].scope = BERTH_SCOPE_LOCAL;
        berth_vec_push(fn->module->arena, &p->allocs, stmt);
        return;
    case BERTH_STMT_STORE:
        if (p->is_scalar[node.buf]) break;
        is_first = berth_tfn_binary(fn, BERTH_BINARY_EQ, berth_tfn_var_ref(fn, p->item),
                                    berth_tfn_index(fn, 0));
        if (p->is_in) is_first = berth_tfn_binary(fn, BERTH_BINARY_AND, is_first, p->is_in);
        emit(p, berth_tfn_if(fn, is_first, stmt, 0));
        if (reads_array(p, stmt)) emit(p, berth_tfn_barrier(fn));
        return;
    default: break;
    }
    emit(p, stmt);
    if (node.kind != BERTH_STMT_ALLOC && reads_array(p, stmt)) emit(p, berth_tfn_barrier(fn));
}

// ---- choice -------------------------------------------------------------------------------------

static int64_t group_bytes(const group_plan *p, int64_t items) {
    return p->array_bytes + p->sum_bytes * items * p->columns;
}

static int64_t iterations(const berth_nest *nest) {
    int64_t all = 1;
    for (int i = 0; i < nest->count; ++i) all *= nest->loops[i].extent;
    return all;
}

// Of columns that lie beside each other: more while the device has more work-items at once than there are, so that enough
// loads are in flight for its memory's bandwidth (J. D. C. Little, "A proof for the queuing formula L = lambda W", 1961).
static int64_t column_items(const group_plan *p, const berth_local_tile_limits *limits) {
    int64_t items = COLUMN_ITEMS, wanted = limits->unit_items * limits->compute_units;
    while (2 * items * p->columns <= limits->group_size && iterations(p->nest) * items < wanted &&
           2 * items * TERMS_IN_FLIGHT <= p->longest)
        items *= 2;
    return items;
}

// Work-items that share a sum.
static int64_t work_items(const group_plan *p, const berth_local_tile_limits *limits) {
    int64_t items = 1;
    int64_t most = p->longest >= 64 * MOST_ITEMS ? 4 * MOST_ITEMS : MOST_ITEMS;
    int64_t turns = p->has_own ? 1 : 8;  // of a work-item, at most where there are enough of these
    while (items < 32 || (items < most && items * turns < p->longest)) items *= 2;
    if (p->columns > 1) items = column_items(p, limits);
    while (items * p->columns > limits->group_size && items > 1) items /= 2;
    while (items > 32 && group_bytes(p, items) > limits->local_memory_bytes) items /= 2;
    return items;
}

// Where terms do not lie one after another but columns do, a group takes as many of these as lie in a line of memory.
static int64_t wanted_columns(const group_plan *p, const berth_local_tile_limits *limits) {
    int64_t columns = 32;
    if (p->in_order || !p->across || p->has_own || p->array_bytes > 0) return 1;
    while (columns > 1 && (columns > p->nest->loops[p->nest->count - 1].extent ||
                           2 * columns > limits->group_size))
        columns /= 2;
    return columns;
}

// A work-item for each row has the device idle where rows are few, and reads far apart where rows lie
// one after another.
static bool pays(const group_plan *p, const berth_local_tile_limits *limits) {
    int64_t rows = iterations(p->nest), unit_items = ITEMS_FOR_A_UNIT;
    int64_t units = limits->compute_units > 0 ? limits->compute_units : 16;
    if (rows < p->fn->whole_results) rows = p->fn->whole_results;
    if (p->has_own && p->array_bytes > 0) return p->longest >= LEAST_SUM;
    // One for each column has too few loads in flight where a unit has room for more.
    if (limits->unit_items && wanted_columns(p, limits) > 1 &&
        p->longest >= COLUMN_ITEMS * TERMS_IN_FLIGHT * 4)
        unit_items = limits->unit_items;
    return p->has_sum && p->longest >= LEAST_SUM && (p->in_order || rows < units * unit_items);
}

// The body for column `column` of a group's `columns`: what lies after the last is computed for that one, and not stored.
static berth_stmt of_column(group_plan *p, berth_nest *outer, berth_var column) {
    berth_tfn *fn = p->fn;
    berth_nest_loop *last = &outer->loops[outer->count - 1];
    berth_var group = berth_tfn_var(fn, "group");
    berth_expr at = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, group),
                                     berth_tfn_index(fn, p->columns));
    p->column = berth_tfn_var_ref(fn, column);
    at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at, p->column);
    if (last->extent % p->columns) {
        p->is_in = berth_tfn_binary(fn, BERTH_BINARY_LT, at, berth_tfn_index(fn, last->extent));
        at = berth_tfn_binary(fn, BERTH_BINARY_MIN, at, berth_tfn_index(fn, last->extent - 1));
    }
    berth_stmt body = berth_replace_var_stmt(fn, outer->body, last->var, at);
    *last = (berth_nest_loop){group, (last->extent + p->columns - 1) / p->columns, last->kind};
    return body;
}

// The loops around as groups, along three axes at most; 0: there are too many.
static berth_stmt groups(group_plan *p, const berth_nest *nest, berth_stmt body) {
    static const berth_loop_kind axes[] = {BERTH_LOOP_GROUP_X, BERTH_LOOP_GROUP_Y,
                                           BERTH_LOOP_GROUP_Z};
    berth_nest outer = *nest;
    outer.body = body;
    while (outer.count > 3) {
        berth_status status = berth_schedule_fuse(p->fn, &outer, 0);
        if (!status) continue;
        berth_decisions_refuse(p->fn, status);
        return 0;
    }
    for (int i = 0; i < outer.count; ++i) {
        if (outer.loops[i].extent > MOST_GROUPS) return 0;
        outer.loops[i].kind = axes[outer.count - 1 - i];
    }
    return berth_nest_emit(p->fn, &outer);
}

// Whether groups() has axes for the loops, of which the last goes by `columns`.
static bool has_axes(const berth_nest *nest, int64_t columns) {
    int64_t outermost = 1;
    for (int i = 0; i < nest->count; ++i) {
        int64_t extent = nest->loops[i].extent;
        if (i == nest->count - 1) extent = (extent + columns - 1) / columns;
        if (extent <= 0 || extent > MOST_GROUPS) return false;
        if (i <= nest->count - 3) outermost *= extent;
        if (outermost > MOST_GROUPS) return false;
    }
    return true;
}

berth_stmt berth_group_rows(berth_tfn *fn, const berth_nest *nest,
                            const berth_local_tile_limits *limits) {
    group_plan p = {.fn = fn,
                    .nest = nest,
                    .target = limits->target,
                    .buf_count = fn->bufs.count,
                    .in_order = true,
                    .across = true};
    p.is_scalar = berth_arena_new_array(fn->module->arena, bool, fn->bufs.count + 1);
    p.is_array = berth_arena_new_array(fn->module->arena, bool, fn->bufs.count + 1);
    if (!berth_nest_is_independent(fn, nest) || !examine(&p, nest->body) ||
        !has_axes(nest, wanted_columns(&p, limits)) || !pays(&p, limits))
        return 0;
    p.columns = berth_decide(fn, BERTH_DECISION_GROUP_COLUMNS, wanted_columns(&p, limits), 1,
                             p.array_bytes > 0 ? 1 : limits->group_size, "columns of a group");
    if (!has_axes(nest, p.columns)) {
        berth_decision_wrong(fn, BERTH_DECISION_GROUP_COLUMNS, "an axis has fewer groups");
        return 0;
    }
    p.items = berth_decide(fn, BERTH_DECISION_GROUP_ROWS, work_items(&p, limits), 1,
                           limits->group_size / p.columns, "work-items that share a sum");
    if (p.items & (p.items - 1)) {
        berth_decision_wrong(fn, BERTH_DECISION_GROUP_ROWS, "a sum is halved until one is left");
        return 0;
    }
    if (group_bytes(&p, p.items) > limits->local_memory_bytes) return 0;
    int64_t serves = warp_intrinsic(&p, BERTH_BINARY_MAX, BERTH_DTYPE_F32) != BERTH_INTRINSIC_COUNT;
    p.together = berth_decide(
        fn, BERTH_DECISION_SUBGROUP, serves, 0, serves,
        "the target has instructions for sums of a subgroup, of 32 or more work-items");
    p.item = berth_tfn_var(fn, "item");
    berth_nest outer = *nest;
    berth_var column = BERTH_NONE;
    berth_stmt body = nest->body;
    if (p.columns > 1) {
        column = berth_tfn_var(fn, "column");
        body = of_column(&p, &outer, column);
    }
    emit_all(&p, body);
    if (fn->stmts.data[p.out.data[p.out.count - 1]].kind == BERTH_STMT_BARRIER) p.out.count--;
    berth_stmt item = berth_tfn_seq(fn, p.out.data, p.out.count);
    if (p.columns > 1)
        item = berth_tfn_for(fn, column, berth_tfn_index(fn, p.columns), BERTH_LOOP_LOCAL_X, item);
    item = berth_tfn_for(fn, p.item, berth_tfn_index(fn, p.items),
                         p.columns > 1 ? BERTH_LOOP_LOCAL_Y : BERTH_LOOP_LOCAL_X, item);
    berth_vec_push(fn->module->arena, &p.allocs, item);
    return groups(&p, &outer, berth_tfn_seq(fn, p.allocs.data, p.allocs.count));
}
