#include "ir/tensor/call.h"

#include "ir/external.h"
#include "ir/tensor/type.h"

// ---- parameters ---------------------------------------------------------------------------------

static bool param_of_type(const berth_type *type, bool result, berth_buf_info *out) {
    if (type->kind != BERTH_TYPE_TENSOR || type->rank < 0 || !type->dtype) return false;
    *out = (berth_buf_info){.dtype = type->dtype,
                            .lanes = 1,
                            .rank = type->rank,
                            .layout = type->layout,
                            .scope = BERTH_SCOPE_PARAM,
                            .role = result ? BERTH_ROLE_OUT : BERTH_ROLE_IN};
    for (int d = 0; d < type->rank; ++d) out->dims[d] = type->dims[d];
    return true;
}

bool berth_tfn_callee_params(const berth_module *module, berth_func_id callee, berth_arena *arena,
                             const berth_buf_info **out_params, uint32_t *out_count) {
    const berth_tfn *fn = berth_tfn_get(module, callee);
    const berth_external *external = berth_external_get(module, callee);
    *out_count = 0;
    *out_params = NULL;
    if (fn) {
        *out_params = fn->bufs.data;
        *out_count = fn->param_count;
        return true;
    }
    const berth_type *type = external ? berth_type_get(module, external->type) : NULL;
    if (!type || type->kind != BERTH_TYPE_FUNCTION) return false;
    berth_buf_info *params = berth_arena_new_array(arena, berth_buf_info, type->field_count + 1);
    for (uint32_t i = 0; i < type->field_count; ++i)
        if (!param_of_type(berth_type_get(module, type->fields[i]), i >= type->param_count,
                           &params[i]))
            return false;
    *out_params = params;
    *out_count = type->field_count;
    return true;
}

// ---- one call -----------------------------------------------------------------------------------

// Indices that nest deeper are not followed: what they come to is not known.
enum { most_index_depth = 12 };

typedef struct boundary {
    const berth_tfn *fn;
    berth_arena *arena;
    const char *callee;
    const berth_buf_info *params;
    const berth_tfn_region *regions;
    uint32_t count;
    berth_range *starts;                  // BERTH_MAX_RANK per region
    int64_t symbols[BERTH_MAX_RANK * 4];  // of an external function's type: the symbol, its extent
    uint32_t symbol_count;
} boundary;

static const char *name_of(const boundary *b, berth_buf buf) {
    return berth_module_str(b->fn->module, b->fn->bufs.data[buf].name);
}

static berth_range range_of_start(const boundary *b, uint32_t i, int d) {
    return b->starts[i * BERTH_MAX_RANK + (uint32_t)d];
}

static void find_starts(boundary *b, const berth_ranges *ranges) {
    b->starts = berth_arena_new_array(b->arena, berth_range, b->count * BERTH_MAX_RANK + 1);
    for (uint32_t i = 0; i < b->count; ++i)
        for (int d = 0; d < b->fn->bufs.data[b->regions[i].buf].rank; ++d) {
            berth_expr start = b->regions[i].starts[d];
            bool deep = b->fn->exprs.data[start].depth > most_index_depth;
            b->starts[i * BERTH_MAX_RANK + (uint32_t)d] =
                deep ? BERTH_RANGE_UNKNOWN : berth_range_of(b->fn, ranges, start);
        }
}

static int64_t extent_of(const berth_tfn_region *region, int d) {
    return region->extents[d] == BERTH_REGION_POINT ? 1 : region->extents[d];
}

// In its buffer, for all values of the loops around it.
static const char *bounds_problem(const boundary *b, uint32_t i) {
    const berth_tfn_region *region = &b->regions[i];
    const berth_buf_info *buf = &b->fn->bufs.data[region->buf];
    for (int d = 0; d < buf->rank; ++d) {
        int64_t extent = extent_of(region, d), last = 0;
        berth_range start = range_of_start(b, i, d);
        if (buf->dims[d] < 0)
            return berth_arena_printf(b->arena, "buffer \"%s\" has dimensions without extents",
                                      name_of(b, region->buf));
        if (start.low >= 0 && extent >= 0 && start.high < BERTH_RANGE_UNKNOWN.high &&
            !__builtin_add_overflow(start.high, extent, &last) && last <= buf->dims[d])
            continue;
        if (!berth_range_is_known(start))
            return berth_arena_printf(
                b->arena,
                "where argument %u begins in dimension %d of \"%s\" cannot be told: use loops of "
                "constant extents, and min and max or %% around anything else",
                i, d, name_of(b, region->buf));
        return berth_arena_printf(b->arena,
                                  "argument %u goes from %lld to %lld in dimension %d of \"%s\", "
                                  "which has %lld",
                                  i, (long long)start.low, (long long)(start.high + extent), d,
                                  name_of(b, region->buf), (long long)buf->dims[d]);
    }
    return NULL;
}

static bool same_extent(boundary *b, int64_t wanted, int64_t given) {
    const uint32_t most = sizeof(b->symbols) / sizeof(b->symbols[0]) / 2;
    if (!berth_dim_is_symbol(wanted)) return wanted == given;
    for (uint32_t i = 0; i < b->symbol_count; ++i)
        if (b->symbols[2 * i] == wanted) return b->symbols[2 * i + 1] == given;
    if (b->symbol_count == most || wanted == BERTH_DIM_UNKNOWN) return false;
    b->symbols[2 * b->symbol_count] = wanted;
    b->symbols[2 * b->symbol_count++ + 1] = given;
    return true;
}

static void print_shape(const boundary *b, const berth_buf_info *buf, int rank, const int64_t *dims,
                        berth_strbuf *out) {
    char element[24];
    berth_tfn_type_format((berth_tfn_type){buf->dtype, false, buf->lanes}, element);
    berth_strbuf_add(out, element);
    berth_shape_print(b->fn->module, rank, dims, buf->layout, out);
}

static const char *type_problem(boundary *b, uint32_t i) {
    const berth_tfn_region *region = &b->regions[i];
    const berth_buf_info *buf = &b->fn->bufs.data[region->buf];
    const berth_buf_info *param = &b->params[i];
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < buf->rank; ++d)
        if (region->extents[d] != BERTH_REGION_POINT) dims[rank++] = region->extents[d];
    bool same = buf->dtype == param->dtype && buf->lanes == param->lanes && rank == param->rank &&
                buf->layout == param->layout;
    for (int d = 0; same && d < rank; ++d) same = same_extent(b, param->dims[d], dims[d]);
    if (!same) {
        berth_strbuf text = berth_strbuf_make(b->arena);
        berth_strbuf_addf(&text, "argument %u is ", i);
        print_shape(b, buf, rank, dims, &text);
        berth_strbuf_add(&text, ", it takes ");
        print_shape(b, param, param->rank, param->dims, &text);
        return berth_strbuf_text(&text);
    }
    if (buf->memory_scope == param->memory_scope || !param->memory_scope) return NULL;
    return berth_arena_printf(b->arena,
                              "argument %u has to lie in the memory scope \"%s\": give \"%s\" that "
                              "scope",
                              i, berth_module_str(b->fn->module, param->memory_scope),
                              name_of(b, region->buf));
}

static bool divides(const berth_tfn *fn, berth_expr id, int64_t k) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT) return node->i % k == 0;
    if (node->kind != BERTH_EXPR_BINARY || node->depth > most_index_depth) return false;
    bool a = divides(fn, node->a, k), b = divides(fn, node->b, k);
    if (node->op == BERTH_BINARY_MUL) return a || b;
    return (node->op == BERTH_BINARY_ADD || node->op == BERTH_BINARY_SUB) && a && b;
}

// With blocks of channels or the like, a region is made of whole blocks.
static const char *layout_problem(const boundary *b, uint32_t i) {
    const berth_tfn_region *region = &b->regions[i];
    const berth_buf_info *buf = &b->fn->bufs.data[region->buf];
    berth_layout layout;
    if (!buf->layout) return NULL;
    berth_status status =
        berth_layout_parse(berth_module_str(b->fn->module, buf->layout), buf->rank, &layout);
    if (status) {
        berth_status_free(status);
        return berth_arena_printf(b->arena, "argument %u has no proper layout", i);
    }
    for (int d = 0; d < buf->rank; ++d) {
        int64_t block = layout.total_block[d], start = -1;
        bool all = region->extents[d] == buf->dims[d] &&
                   berth_tfn_const_value(b->fn, region->starts[d], &start) && start == 0;
        if (all || block == 1) continue;
        if (region->extents[d] > 0 && region->extents[d] % block == 0 &&
            divides(b->fn, region->starts[d], block))
            continue;
        return berth_arena_printf(b->arena,
                                  "argument %u cuts blocks of %lld in dimension %d of \"%s\" apart",
                                  i, (long long)block, d, name_of(b, region->buf));
    }
    return NULL;
}

// External code has no strides: from the first dimension of several elements on, all of each.
static const char *density_problem(const boundary *b, uint32_t i) {
    const berth_tfn_region *region = &b->regions[i];
    const berth_buf_info *buf = &b->fn->bufs.data[region->buf];
    bool several = false, dense = true;
    for (int d = 0; d < buf->rank; ++d) {
        bool all = region->extents[d] == buf->dims[d];
        dense = dense && (all || (!several && !buf->layout));
        several = several || extent_of(region, d) != 1;
    }
    if (dense) return NULL;
    return berth_arena_printf(
        b->arena,
        "argument %u lies in parts in \"%s\", and external code takes elements "
        "in a row",
        i, name_of(b, region->buf));
}

static bool writes(const berth_buf_info *param) {
    return param->role != BERTH_ROLE_IN;
}

// Apart in some dimension, whatever the loops around them are at.
static bool are_apart(const boundary *b, uint32_t x, uint32_t y) {
    for (int d = 0; d < b->fn->bufs.data[b->regions[x].buf].rank; ++d) {
        berth_range p = range_of_start(b, x, d), q = range_of_start(b, y, d);
        if (!berth_range_is_known(p) || !berth_range_is_known(q)) continue;
        if (p.high + extent_of(&b->regions[x], d) <= q.low ||
            q.high + extent_of(&b->regions[y], d) <= p.low)
            return true;
    }
    return false;
}

static const char *role_problem(const boundary *b, uint32_t i) {
    const berth_tfn_region *region = &b->regions[i];
    const berth_buf_info *buf = &b->fn->bufs.data[region->buf];
    if (writes(&b->params[i]) && buf->scope == BERTH_SCOPE_PARAM && buf->role == BERTH_ROLE_IN)
        return berth_arena_printf(b->arena, "it writes argument %u, the input \"%s\"", i,
                                  name_of(b, region->buf));
    for (uint32_t k = 0; k < i; ++k)
        if (b->regions[k].buf == region->buf && (writes(&b->params[i]) || writes(&b->params[k])) &&
            !are_apart(b, i, k))
            return berth_arena_printf(b->arena,
                                      "arguments %u and %u may be the same elements of \"%s\", and "
                                      "it writes there",
                                      k, i, name_of(b, region->buf));
    return NULL;
}

const char *berth_tfn_call_problem(const berth_tfn *fn, const berth_stmt_node *call,
                                   const berth_ranges *ranges, berth_arena *arena) {
    enum { most_regions = 64 };  // each is compared with the others
    const berth_function *held = berth_module_function(fn->module, call->callee);
    if (!held || held->removed) return "a call of a function that is not there";
    boundary b = {.fn = fn,
                  .arena = arena,
                  .callee = berth_module_str(fn->module, held->name),
                  .regions = fn->regions.data + call->first};
    if (!berth_tfn_callee_params(fn->module, call->callee, arena, &b.params, &b.count))
        return berth_arena_printf(arena,
                                  "a call of @%s: tensor functions call tensor functions and "
                                  "external functions on tensors",
                                  b.callee);
    if (b.count != call->count || b.count > most_regions)
        return berth_arena_printf(arena, "a call of @%s: it takes %u arguments, not %u", b.callee,
                                  b.count, call->count);
    find_starts(&b, ranges);
    for (uint32_t i = 0; i < b.count; ++i) {
        const char *what = type_problem(&b, i);
        if (!what) what = bounds_problem(&b, i);
        if (!what) what = layout_problem(&b, i);
        if (!what && berth_external_get(fn->module, call->callee)) what = density_problem(&b, i);
        if (!what) what = role_problem(&b, i);
        if (what) return berth_arena_printf(arena, "a call of @%s: %s", b.callee, what);
    }
    return NULL;
}

// ---- who calls whom -----------------------------------------------------------------------------

typedef struct nesting {
    const berth_module *module;
    uint8_t
        *depth;  // per function: 0 not known, 255 being looked at, else 1 + the deepest callee's
} nesting;

static berth_status nesting_problem(const nesting *n, berth_func_id function, const char *what) {
    return berth_status_make(
        BERTH_INVALID_ARGUMENT, "function @%s: %s",
        berth_module_str(n->module, berth_module_function(n->module, function)->name), what);
}

// Recursion is as deep as calls may nest.
static berth_status find_depth(nesting *n, berth_func_id function, int level) {
    enum { open = 255 };
    const berth_tfn *fn = berth_tfn_get(n->module, function);
    uint8_t deepest = 0;
    if (!fn || (n->depth[function] && n->depth[function] != open)) return BERTH_OK;
    if (n->depth[function] == open)
        return nesting_problem(n, function, "it calls itself, or a function that calls it");
    if (level > BERTH_TFN_MAX_CALL_DEPTH)
        return nesting_problem(n, function, "calls nest more than 32 deep");
    n->depth[function] = open;
    for (uint32_t i = 0; i < fn->stmts.count; ++i) {
        if (fn->stmts.data[i].kind != BERTH_STMT_CALL) continue;
        berth_func_id callee = fn->stmts.data[i].callee;
        BERTH_TRY(find_depth(n, callee, level + 1));
        if (berth_tfn_get(n->module, callee) && n->depth[callee] > deepest)
            deepest = n->depth[callee];
    }
    if (deepest >= BERTH_TFN_MAX_CALL_DEPTH)
        return nesting_problem(n, function, "calls nest more than 32 deep");
    n->depth[function] = (uint8_t)(deepest + 1);
    return BERTH_OK;
}

berth_status berth_tfn_check_call_nesting(const berth_module *module) {
    berth_arena *arena = berth_arena_create_child(module->arena);
    nesting n = {.module = module,
                 .depth = berth_arena_new_array(arena, uint8_t, module->functions.count + 1)};
    berth_status status = BERTH_OK;
    for (berth_func_id f = 0; f < module->functions.count && !status; ++f)
        if (!module->functions.data[f].removed) status = find_depth(&n, f, 0);
    berth_arena_destroy(arena);
    return status;
}
