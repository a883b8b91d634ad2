#include "compiler/codegen/kernel_facts.h"

#include <string.h>

#include "compiler/schedule/linear.h"
#include "ir/external.h"
#include "ir/tensor/range.h"

berth_tfn *berth_kernel_copy_fn(const berth_tfn *fn, berth_arena *arena) {
    berth_tfn *copy = berth_arena_copy(arena, fn, sizeof(*fn));
#define COPY(list)                                                                                 \
    copy->list.data =                                                                              \
        berth_arena_copy(arena, fn->list.data, fn->list.capacity * sizeof(*fn->list.data))
    COPY(exprs);
    COPY(stmts);
    COPY(lists);
    COPY(regions);
    COPY(bufs);
    COPY(vars);
#undef COPY
    return copy;
}

berth_status berth_kernel_nests(const berth_tfn *fn, berth_arena *arena, berth_stmt **out_nests,
                                uint32_t *out_count) {
    BERTH_TRY(berth_tfn_check_static(fn));
    const berth_stmt_node body = fn->stmts.data[fn->body];
    bool sequence = fn->body && body.kind == BERTH_STMT_SEQ;
    *out_count = !fn->body ? 0 : sequence ? body.count : 1;
    *out_nests = berth_arena_new_array(arena, berth_stmt, *out_count + 1);
    for (uint32_t i = 0; i < *out_count; ++i)
        (*out_nests)[i] = sequence ? fn->lists.data[body.first + i] : fn->body;
    return BERTH_OK;
}

int64_t berth_kernel_elements(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    int64_t count = 1;
    for (int d = 0; d < info->rank; ++d) count *= info->dims[d] < 0 ? 1 : info->dims[d];
    return count;
}

int64_t berth_kernel_extent(const berth_tfn *fn, berth_stmt loop) {
    int64_t extent = 1;
    (void)berth_tfn_const_value(fn, fn->stmts.data[loop].value, &extent);
    return extent;
}

bool berth_kernel_has_group_loops(const berth_tfn *fn, berth_stmt nest) {
    const berth_stmt_node *node = &fn->stmts.data[nest];
    if (!nest) return false;
    if (node->kind == BERTH_STMT_FOR)
        return node->loop_kind >= BERTH_LOOP_GROUP_X ||
               berth_kernel_has_group_loops(fn, node->body);
    if (node->kind == BERTH_STMT_IF)
        return berth_kernel_has_group_loops(fn, node->body) ||
               berth_kernel_has_group_loops(fn, node->other);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        if (berth_kernel_has_group_loops(fn, fn->lists.data[node->first + i])) return true;
    return false;
}

berth_status berth_kernel_set_axis(berth_kernel_source *kernel, const berth_stmt_node *loop,
                                   int64_t extent, bool *out_local, int *out_axis) {
    *out_local = loop->loop_kind >= BERTH_LOOP_LOCAL_X;
    *out_axis = loop->loop_kind - (*out_local ? BERTH_LOOP_LOCAL_X : BERTH_LOOP_GROUP_X);
    uint32_t *size = *out_local ? &kernel->group_size[*out_axis] : &kernel->groups[*out_axis];
    if (extent < 1 || extent > UINT32_MAX || (*size != 1 && *size != (uint32_t)extent))
        return berth_status_make(BERTH_UNSUPPORTED, "loops of %s %d with different extents",
                                 *out_local ? "work-items" : "work-groups", *out_axis);
    *size = (uint32_t)extent;
    return BERTH_OK;
}

bool berth_kernel_fits_narrow(const berth_tfn *fn) {
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        int64_t count = 1;
        for (int d = 0; d < fn->bufs.data[b].rank; ++d) {
            int64_t dim = fn->bufs.data[b].dims[d];
            if (dim > 0 && __builtin_mul_overflow(count, dim, &count)) return false;
        }
        if (count > INT32_MAX / 2) return false;
    }
    return true;
}

// ---- facts --------------------------------------------------------------------------------------

typedef struct fact_walk {
    const berth_tfn *fn;
    uint32_t *access;     // by buffer, 0 = not used
    double *moved_bytes;  // by buffer
    double times;         // that the statement at hand runs
    berth_ranges ranges;  // of loop variables, once a loop asks for them
    berth_arena *arena;
    uint32_t *seen;  // by expression: the last statement that has it
    uint32_t statement;
    bool chooses_loads;
    bool guards;          // the statement reads what is read under a condition alone
    uint32_t guarded;     // such statements in a turn of the loop around, as compilers unroll loops
    bool guards_several;  // of any loop
    bool in_place;        // of a load
    bool gathers;         // loads at places that are loaded
    bool vectors;         // loads of several elements
} fact_walk;

// select(is_nan(x), c, x), where x counts once, also in functions that were read and have it twice.
static bool asks_of_itself(const berth_tfn *fn, const berth_expr_node *select) {
    if (select->kind != BERTH_EXPR_SELECT) return false;
    const berth_expr_node *asked = &fn->exprs.data[select->a];
    return asked->kind == BERTH_EXPR_UNARY && asked->op == BERTH_UNARY_IS_NAN &&
           berth_tfn_expr_equal(fn, asked->a, select->c);
}

// What an expression reads, in which one part of it may be met from several.
typedef struct read_list {
    berth_expr loads[16];
    uint32_t count;
    uint32_t met;   // expressions so far
    bool too_many;  // to be told apart
} read_list;

static void list_reads(const berth_tfn *fn, berth_expr id, read_list *out) {
    enum { most_met = 256 };
    if (!id || out->too_many) return;
    const berth_expr_node *node = &fn->exprs.data[id];
    if (++out->met > most_met) out->too_many = true;
    if (node->kind != BERTH_EXPR_LOAD) {
        list_reads(fn, node->a, out);
        list_reads(fn, node->b, out);
        list_reads(fn, node->c, out);
        return;
    }
    if (out->count == sizeof(out->loads) / sizeof(out->loads[0]))
        out->too_many = true;
    else
        out->loads[out->count++] = id;
}

static bool reads_nothing(const read_list *list) {
    return list->count == 0 && !list->too_many;
}

static bool is_listed(const berth_tfn *fn, const read_list *list, berth_expr load) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (berth_tfn_expr_equal(fn, list->loads[i], load)) return true;
    return false;
}

// Whether `list` has a read that neither of the others has: it is made under a condition then.
static bool has_its_own(const berth_tfn *fn, const read_list *list, const read_list *other,
                        const read_list *another) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (!is_listed(fn, other, list->loads[i]) && !is_listed(fn, another, list->loads[i]))
            return true;
    return false;
}

// Whether the condition chooses between what is read in two places, as joined tensors have it, or whether there is
// a read at one, as padding has it. What is read on both sides (x < 0 ? 0.1 * x : x), or by the condition itself,
// is read in any case.
static void look_at_choice(fact_walk *w, const berth_expr_node *select) {
    read_list asked = {0}, first = {0}, second = {0};
    list_reads(w->fn, select->b, &first);
    list_reads(w->fn, select->c, &second);
    if (reads_nothing(&first) && reads_nothing(&second)) return;
    list_reads(w->fn, select->a, &asked);
    bool unknown = asked.too_many || first.too_many || second.too_many;
    bool one = unknown || has_its_own(w->fn, &first, &second, &asked);
    bool other = unknown || has_its_own(w->fn, &second, &first, &asked);
    w->guards |= one || other;
    w->chooses_loads |= one && other && !reads_nothing(&first) && !reads_nothing(&second);
}

// What an unrolled loop does in a turn of the one around it. GCC unrolls no more turns than that before it makes
// vectors of the loop around.
static uint32_t guarded_in_loop(fact_walk *w, int64_t extent) {
    enum { most_turns = 16, most_counted = 1 << 16 };
    w->guards_several |= w->guarded > 1;
    if (extent < 1 || extent > most_turns) return 0;
    return w->guarded > most_counted ? w->guarded : w->guarded * (uint32_t)extent;
}

static void count_move(fact_walk *w, berth_buf buf, int lanes) {
    size_t size = berth_dtype_size_bytes(w->fn->bufs.data[buf].dtype);
    w->moved_bytes[buf] += w->times * (double)size * (lanes > 1 ? lanes : 1);
}

static double walk_expr(fact_walk *w, berth_expr id) {
    if (!id || w->seen[id] == w->statement) return 0;
    w->seen[id] = w->statement;
    const berth_tfn *fn = w->fn;
    const berth_expr_node *node = &fn->exprs.data[id];
    double flops = 0;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return 0;
    if (node->kind == BERTH_EXPR_LOAD) {
        w->access[node->load.buf] |= BERTH_ACCESS_READ;
        count_move(w, node->load.buf, node->lanes);
        bool inside = w->in_place;
        w->gathers |= inside;
        w->vectors |= node->lanes > 1;
        w->in_place = true;
        for (int i = 0; i < node->index_count; ++i)
            flops += walk_expr(w, berth_tfn_load_indices(fn, id)[i]);
        w->in_place = inside;
        return flops;
    }
    if (!node->is_index && berth_dtype_is_float((berth_dtype)node->dtype)) {
        if (node->kind == BERTH_EXPR_UNARY || node->kind == BERTH_EXPR_BINARY) flops = node->lanes;
        if (node->kind == BERTH_EXPR_FMA) flops = 2.0 * node->lanes;
    }
    if (node->kind == BERTH_EXPR_SELECT && node->lanes == 1 && !(w->chooses_loads && w->guards))
        look_at_choice(w, node);
    if (!asks_of_itself(fn, node)) flops += walk_expr(w, node->a);
    return flops + walk_expr(w, node->b) + walk_expr(w, node->c);
}

// Operands of external code come first, then its results.
static void walk_call(fact_walk *w, const berth_stmt_node *node) {
    const berth_external *external = berth_external_get(w->fn->module, node->callee);
    uint32_t operands = external ? berth_type_get(w->fn->module, external->type)->param_count : 0;
    for (uint32_t i = 0; i < node->count; ++i) {
        const berth_tfn_region *region = &w->fn->regions.data[node->first + i];
        w->access[region->buf] |=
            i < operands ? BERTH_ACCESS_READ : BERTH_ACCESS_READ | BERTH_ACCESS_WRITE;
        w->moved_bytes[region->buf] +=
            (double)berth_kernel_elements(w->fn, region->buf) *
            (double)berth_dtype_size_bytes(w->fn->bufs.data[region->buf].dtype);
        for (int d = 0; d < w->fn->bufs.data[region->buf].rank; ++d)
            walk_expr(w, region->starts[d]);
    }
}

// How often a loop runs, of a window that is clipped to its input as inside of it.
static double turns_of(fact_walk *w, const berth_stmt_node *loop) {
    int64_t extent = 1;
    if (berth_tfn_const_value(w->fn, loop->value, &extent)) return (double)extent;
    if (!w->ranges.of_var) w->ranges = berth_ranges_collect_in(w->fn, w->arena);
    berth_range range = berth_range_of(w->fn, &w->ranges, loop->value);
    return berth_range_is_known(range) && range.high > 1 ? (double)range.high : 1;
}

static double walk_value(fact_walk *w, berth_expr value) {
    w->guards = false;
    double flops = walk_expr(w, value);
    w->guarded += w->guards;
    return flops;
}

static double walk_stmt(fact_walk *w, berth_stmt id) {
    if (!id) return 0;
    const berth_tfn *fn = w->fn;
    const berth_stmt_node *node = &fn->stmts.data[id];
    double flops = 0, times = w->times;
    int64_t extent = 1;
    uint32_t guarded = w->guarded;
    w->statement++;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            flops += walk_stmt(w, fn->lists.data[node->first + i]);
        return flops;
    case BERTH_STMT_FOR:
        walk_expr(w, node->value);
        berth_tfn_const_value(fn, node->value, &extent);
        w->times *= turns_of(w, node);
        w->guarded = 0;
        flops = (double)extent * walk_stmt(w, node->body);
        w->guarded = guarded + guarded_in_loop(w, extent);
        w->times = times;
        return flops;
    case BERTH_STMT_IF:
        walk_expr(w, node->value);
        return walk_stmt(w, node->body) + walk_stmt(w, node->other);
    case BERTH_STMT_STORE:
        w->access[node->buf] |= BERTH_ACCESS_WRITE;
        count_move(w, node->buf, node->value ? w->fn->exprs.data[node->value].lanes : 1);
        for (int i = 0; i < node->index_count; ++i)
            walk_expr(w, berth_tfn_store_indices(fn, id)[i]);
        return walk_value(w, node->value);
    case BERTH_STMT_LET: return walk_value(w, node->value);
    case BERTH_STMT_CALL: walk_call(w, node); return 0;
    default: return 0;
    }
}

void berth_kernel_collect_facts(const berth_tfn *fn, berth_arena *arena, berth_stmt nest,
                                berth_kernel_source *kernel) {
    fact_walk w = {.fn = fn,
                   .access = berth_arena_new_array(arena, uint32_t, fn->bufs.count + 1),
                   .moved_bytes = berth_arena_new_array(arena, double, fn->bufs.count + 1),
                   .times = 1,
                   .arena = arena,
                   .seen = berth_arena_new_array(arena, uint32_t, fn->exprs.count + 1)};
    kernel->flops = walk_stmt(&w, nest);
    kernel->avoids_masks = w.chooses_loads || w.guards_several;
    kernel->gathers = w.gathers && !w.vectors;
    berth_buf *list = berth_arena_new_array(arena, berth_buf, fn->bufs.count + 1);
    bool *written = berth_arena_new_array(arena, bool, fn->bufs.count + 1);
    berth_kernel_binding *bindings =
        berth_arena_new_array(arena, berth_kernel_binding, fn->bufs.count + 1);
    double *moved_bytes = berth_arena_new_array(arena, double, fn->bufs.count + 1);
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        if (info->scope == BERTH_SCOPE_PRIVATE) kernel->scratch_moved_bytes += w.moved_bytes[b];
        bool bound = info->scope == BERTH_SCOPE_PARAM || info->scope == BERTH_SCOPE_WORKSPACE;
        if (!w.access[b] || !bound) continue;
        berth_type_id type =
            berth_type_tensor_layout(fn->module, info->dtype, info->rank, info->dims, info->layout);
        bindings[kernel->buffer_count] = (berth_kernel_binding){
            .size_bytes = berth_type_size_bytes(fn->module, type),
            .access = w.access[b] | (info->may_alias ? BERTH_ACCESS_ALIAS : 0u)};
        moved_bytes[kernel->buffer_count] = w.moved_bytes[b];
        written[kernel->buffer_count] = w.access[b] & BERTH_ACCESS_WRITE;
        list[kernel->buffer_count++] = b;
        kernel->bytes +=
            (double)berth_kernel_elements(fn, b) * (double)berth_dtype_size_bytes(info->dtype);
    }
    kernel->buffers = list;
    kernel->written = written;
    kernel->bindings = bindings;
    kernel->moved_bytes = moved_bytes;
}

// ---- grids --------------------------------------------------------------------------------------

static berth_stmt unwrap(const berth_tfn *fn, berth_stmt id) {
    while (fn->stmts.data[id].kind == BERTH_STMT_SEQ && fn->stmts.data[id].count == 1)
        id = fn->lists.data[fn->stmts.data[id].first];
    return id;
}

// The parallel loops that become the grid: from the outside as long as each holds nothing but the
// next.
int berth_kernel_find_grid(const berth_tfn *fn, berth_stmt nest, berth_stmt grid[BERTH_MAX_RANK],
                           int64_t *out_groups) {
    int count = 0;
    *out_groups = 1;
    for (berth_stmt at = unwrap(fn, nest); count < BERTH_MAX_RANK;
         at = unwrap(fn, fn->stmts.data[at].body)) {
        const berth_stmt_node *node = &fn->stmts.data[at];
        int64_t extent = 0;
        if (node->kind != BERTH_STMT_FOR || node->loop_kind != BERTH_LOOP_PARALLEL) break;
        if (!berth_tfn_const_value(fn, node->value, &extent) ||
            extent > UINT32_MAX / (*out_groups ? *out_groups : 1))
            break;
        *out_groups *= extent;
        grid[count++] = at;
    }
    return count;
}

berth_program_kernel berth_kernel_source_record(const berth_kernel_source *source) {
    berth_program_kernel record = {.entry = source->entry,
                                   .binding_count = source->buffer_count,
                                   .bindings = source->bindings,
                                   .constant_count = source->constant_count,
                                   .scratch_bytes = source->scratch_bytes,
                                   .flops = source->flops,
                                   .bytes = source->bytes};
    memcpy(record.groups, source->groups, sizeof(record.groups));
    memcpy(record.group_size, source->group_size, sizeof(record.group_size));
    return record;
}

bool berth_kernel_moves_by(const berth_tfn *fn, const berth_linear *at, berth_var var,
                           berth_binary op, int64_t by, int64_t step) {
    int found = 0;
    for (int i = 0; i < at->count; ++i) {
        const berth_expr_node atom = fn->exprs.data[at->terms[i].atom];
        if (!berth_tfn_uses_var(fn, at->terms[i].atom, var)) continue;
        int64_t divisor = 0;
        if (atom.kind != BERTH_EXPR_BINARY || atom.op != op ||
            fn->exprs.data[atom.a].kind != BERTH_EXPR_VAR ||
            !berth_tfn_const_value(fn, atom.b, &divisor) || divisor != by ||
            at->terms[i].coefficient != step)
            return false;
        found++;
    }
    return found == 1;
}
