#include "compiler/codegen/c_family.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void berth_c_line(berth_c_printer *p, const char *format, ...) {
    for (int i = 0; i < p->depth; ++i) berth_strbuf_add(&p->out, "    ");
    va_list arguments;
    va_start(arguments, format);
    char small[512];
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof(small)) {
        char *text = berth_arena_alloc(p->arena, (size_t)length + 1);
        vsnprintf(text, (size_t)length + 1, format, again);
        berth_strbuf_add(&p->out, text);
    } else if (length > 0)
        berth_strbuf_add(&p->out, small);
    va_end(again);
    berth_strbuf_add(&p->out, "\n");
}

void berth_c_fail(berth_c_printer *p, berth_status status) {
    if (p->status)
        berth_status_free(status);
    else
        p->status = status;
}

const char *berth_c_buffer_name(berth_c_printer *p, berth_buf buf) {
    return berth_arena_printf(p->arena, "b%u", buf);
}

const char *berth_c_var_name(berth_c_printer *p, berth_var var) {
    return berth_arena_printf(p->arena, "i%u", var);
}

const char *berth_c_storage_type(berth_c_printer *p, berth_dtype dtype) {
    const char *type = p->language->storage_types[dtype];
    if (type) return type;
    berth_c_fail(
        p, berth_status_make(BERTH_UNSUPPORTED, "elements of type %s", berth_dtype_name(dtype)));
    return "int";
}

const char *berth_c_value_type(berth_c_printer *p, berth_dtype dtype, int lanes) {
    const char *scalar = p->language->value_types[dtype];
    if (!scalar) {
        berth_c_fail(
            p, berth_status_make(BERTH_UNSUPPORTED, "values of type %s", berth_dtype_name(dtype)));
        return "int";
    }
    if (lanes == 1) return scalar;
    dtype = berth_c_compute_type(dtype);
    if (dtype == BERTH_DTYPE_BOOL) dtype = BERTH_DTYPE_I32;
    if (dtype != BERTH_DTYPE_F32 && dtype != BERTH_DTYPE_I32 && !berth_c_is_narrow(dtype))
        berth_c_fail(
            p, berth_status_make(BERTH_UNSUPPORTED, "vectors of %s", berth_dtype_name(dtype)));
    uint32_t key = (uint32_t)dtype << 16 | (uint32_t)lanes;
    bool known = false;
    for (uint32_t i = 0; i < p->vector_types.count; ++i) known |= p->vector_types.data[i] == key;
    if (!known) berth_vec_push(p->arena, &p->vector_types, key);
    return berth_arena_printf(p->arena, "berth_%sx%d", berth_dtype_name(dtype), lanes);
}

void berth_c_add_intrinsics(const berth_c_printer *p, berth_strbuf *out) {
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        if (!p->intrinsics[i]) continue;
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        berth_strbuf_addf(out, "#ifndef berth_%s_\n#define berth_%s_\n%s#endif\n", facts->name,
                          facts->name, p->language->intrinsic_text(facts));
    }
}

// ---- statements ---------------------------------------------------------------------------------

static void print_stmt(berth_c_printer *p, berth_stmt id, int64_t *scratch_bytes,
                       int64_t *stack_bytes);

static int64_t buffer_elements(const berth_c_printer *p, berth_buf buf) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    int64_t count = 1;
    for (int d = 0; d < info->rank; ++d) count *= info->dims[d] < 0 ? 1 : info->dims[d];
    return count;
}

static void print_alloc(berth_c_printer *p, berth_buf buf, int64_t *scratch_bytes,
                        int64_t *stack_bytes) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    int64_t count = buffer_elements(p, buf);
    int64_t bytes = count * info->lanes * (int64_t)berth_dtype_size_bytes(info->dtype);
    int64_t offset = -1;
    bool large = *stack_bytes + bytes > (int64_t)p->language->stack_limit_bytes;
    if (info->scope == BERTH_SCOPE_PRIVATE && p->language->stack_limit_bytes && large) {
        offset = *scratch_bytes;
        *scratch_bytes = (*scratch_bytes + bytes + 63) / 64 * 64;
    } else
        *stack_bytes += bytes;
    p->language->declare_buffer(p, buf, count, offset);
}

static void print_for(berth_c_printer *p, const berth_stmt_node *node, int64_t *scratch_bytes,
                      int64_t *stack_bytes) {
    int64_t extent = -1;
    const char *type = p->language->index_type;
    const char *var = berth_c_var_name(p, node->var);
    berth_tfn_const_value(p->fn, node->value, &extent);
    p->loop_depth[node->var] = ++p->open_loops;
    if (node->loop_kind == BERTH_LOOP_VECTOR)
        berth_c_fail(p, berth_status_make(BERTH_INTERNAL, "a vector loop was left to the printer"));
    if (!p->language->open_loop || !p->language->open_loop(p, node, extent)) {
        const char *limit = berth_c_index(p, node->value);
        if (extent == 1) {
            berth_c_line(p, "{");
            berth_c_line(p, "    const %s %s = 0;", type, var);
        } else
            berth_c_line(p, "for (%s %s = 0; %s < %s; ++%s) {", type, var, var, limit, var);
    }
    p->depth++;
    print_stmt(p, node->body, scratch_bytes, stack_bytes);
    p->depth--;
    berth_c_line(p, "}");
    p->open_loops--;
}

static void print_let(berth_c_printer *p, const berth_stmt_node *node) {
    const berth_var_info *info = &p->fn->vars.data[node->var];
    const char *name = berth_c_var_name(p, node->var);
    const berth_expr_node value = p->fn->exprs.data[node->value];
    p->loop_depth[node->var] = p->open_loops;
    berth_c_begin_statement(p, &node->value, 1);
    if (info->is_index) {
        berth_c_line(p, "const %s %s = %s;", p->language->index_type, name,
                     berth_c_index(p, node->value));
    } else {
        const char *text = berth_c_value(p, node->value);
        bool keep =
            value.kind == BERTH_EXPR_LOAD && value.lanes > 1 && p->language->after_vector_let;
        berth_c_line(p, "%s%s %s = %s;", keep ? "" : "const ",
                     berth_c_value_type(p, info->dtype, info->lanes), name, text);
        if (keep)
            p->language->after_vector_let(
                p, name,
                value.lanes * (int)berth_dtype_size_bytes(berth_c_compute_type(info->dtype)));
    }
    berth_c_end_statement(p);
}

static void print_if(berth_c_printer *p, const berth_stmt_node *node, int64_t *scratch_bytes,
                     int64_t *stack_bytes) {
    berth_c_begin_statement(p, &node->value, 1);
    const char *condition = berth_c_condition(p, node->value);
    berth_c_end_statement(p);
    if (strcmp(condition, "0") == 0) {
        if (node->other) print_stmt(p, node->other, scratch_bytes, stack_bytes);
        return;
    }
    if (strcmp(condition, "1") == 0) {
        print_stmt(p, node->body, scratch_bytes, stack_bytes);
        return;
    }
    berth_c_line(p, "if (%s) {", condition);
    p->depth++;
    print_stmt(p, node->body, scratch_bytes, stack_bytes);
    p->depth--;
    if (node->other) {
        berth_c_line(p, "} else {");
        p->depth++;
        print_stmt(p, node->other, scratch_bytes, stack_bytes);
        p->depth--;
    }
    berth_c_line(p, "}");
}

static void print_stmt(berth_c_printer *p, berth_stmt id, int64_t *scratch_bytes,
                       int64_t *stack_bytes) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            print_stmt(p, p->fn->lists.data[node.first + i], scratch_bytes, stack_bytes);
        break;
    case BERTH_STMT_FOR: print_for(p, &node, scratch_bytes, stack_bytes); break;
    case BERTH_STMT_STORE: berth_c_store(p, id); break;
    case BERTH_STMT_LET: print_let(p, &node); break;
    case BERTH_STMT_IF: print_if(p, &node, scratch_bytes, stack_bytes); break;
    case BERTH_STMT_ALLOC: print_alloc(p, node.buf, scratch_bytes, stack_bytes); break;
    case BERTH_STMT_BARRIER:
        if (p->language->barrier)
            berth_c_line(p, "%s", p->language->barrier);
        else
            berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "a barrier"));
        break;
    case BERTH_STMT_NONE: break;
    }
}

// ---- facts --------------------------------------------------------------------------------------

typedef struct fact_walk {
    berth_c_printer *p;
    uint32_t *access;  // by buffer, 0 = not used
    uint8_t *seen;     // by expression, within a statement
} fact_walk;

static double walk_expr(fact_walk *w, berth_expr id) {
    if (!id || w->seen[id]) return 0;
    w->seen[id] = 1;
    const berth_tfn *fn = w->p->fn;
    const berth_expr_node *node = &fn->exprs.data[id];
    double flops = 0;
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return 0;
    if (node->kind == BERTH_EXPR_LOAD) {
        w->access[node->load.buf] |= BERTH_ACCESS_READ;
        for (int i = 0; i < node->index_count; ++i)
            flops += walk_expr(w, berth_tfn_load_indices(fn, id)[i]);
        return flops;
    }
    if (!node->is_index && berth_dtype_is_float((berth_dtype)node->dtype)) {
        if (node->kind == BERTH_EXPR_UNARY || node->kind == BERTH_EXPR_BINARY) flops = node->lanes;
        if (node->kind == BERTH_EXPR_FMA) flops = 2.0 * node->lanes;
    }
    return flops + walk_expr(w, node->a) + walk_expr(w, node->b) + walk_expr(w, node->c);
}

static double walk_stmt(fact_walk *w, berth_stmt id) {
    if (!id) return 0;
    const berth_tfn *fn = w->p->fn;
    const berth_stmt_node *node = &fn->stmts.data[id];
    double flops = 0;
    int64_t extent = 1;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            flops += walk_stmt(w, fn->lists.data[node->first + i]);
        return flops;
    case BERTH_STMT_FOR:
        memset(w->seen, 0, fn->exprs.count);
        walk_expr(w, node->value);
        berth_tfn_const_value(fn, node->value, &extent);
        return (double)extent * walk_stmt(w, node->body);
    case BERTH_STMT_IF:
        memset(w->seen, 0, fn->exprs.count);
        walk_expr(w, node->value);
        return walk_stmt(w, node->body) + walk_stmt(w, node->other);
    case BERTH_STMT_STORE:
        w->access[node->buf] |= BERTH_ACCESS_WRITE;
        for (int i = 0; i < node->index_count; ++i)
            walk_expr(w, berth_tfn_store_indices(fn, id)[i]);
        return walk_expr(w, node->value);
    case BERTH_STMT_LET: return walk_expr(w, node->value);
    default: return 0;
    }
}

static void collect_facts(berth_c_printer *p, berth_stmt nest, berth_kernel_source *kernel) {
    const berth_tfn *fn = p->fn;
    fact_walk w = {.p = p,
                   .access = berth_arena_new_array(p->arena, uint32_t, fn->bufs.count + 1),
                   .seen = berth_arena_new_array(p->arena, uint8_t, fn->exprs.count + 1)};
    kernel->flops = walk_stmt(&w, nest);
    berth_buf *list = berth_arena_new_array(p->arena, berth_buf, fn->bufs.count + 1);
    bool *written = berth_arena_new_array(p->arena, bool, fn->bufs.count + 1);
    berth_kernel_binding *bindings =
        berth_arena_new_array(p->arena, berth_kernel_binding, fn->bufs.count + 1);
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        bool bound = info->scope == BERTH_SCOPE_PARAM || info->scope == BERTH_SCOPE_WORKSPACE;
        if (!w.access[b] || !bound) continue;
        berth_type_id type =
            berth_type_tensor_layout(fn->module, info->dtype, info->rank, info->dims, info->layout);
        bindings[kernel->buffer_count] = (berth_kernel_binding){
            .size_bytes = berth_type_size_bytes(fn->module, type),
            .access = w.access[b] | (info->may_alias ? BERTH_ACCESS_ALIAS : 0u)};
        written[kernel->buffer_count] = w.access[b] & BERTH_ACCESS_WRITE;
        list[kernel->buffer_count++] = b;
        kernel->bytes +=
            (double)buffer_elements(p, b) * (double)berth_dtype_size_bytes(info->dtype);
    }
    kernel->buffers = list;
    kernel->written = written;
    kernel->bindings = bindings;
}

// ---- kernels ------------------------------------------------------------------------------------

static berth_stmt unwrap(const berth_tfn *fn, berth_stmt id) {
    while (fn->stmts.data[id].kind == BERTH_STMT_SEQ && fn->stmts.data[id].count == 1)
        id = fn->lists.data[fn->stmts.data[id].first];
    return id;
}

// The parallel loops that become the grid: from the outside as long as each holds nothing but the
// next.
static int find_grid(const berth_tfn *fn, berth_stmt nest, berth_stmt grid[BERTH_MAX_RANK],
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

static void print_kernel(berth_c_printer *p, berth_stmt nest, berth_kernel_source *kernel) {
    berth_stmt grid[BERTH_MAX_RANK];
    int64_t groups = 1;
    int grid_count = find_grid(p->fn, nest, grid, &groups);
    for (int i = 0; i < 3; ++i) kernel->groups[i] = kernel->group_size[i] = 1;
    kernel->groups[0] = (uint32_t)groups;
    collect_facts(p, nest, kernel);
    p->open_loops = 0;
    p->next_temporary = 0;
    for (int i = 0; i < grid_count; ++i)
        p->loop_depth[p->fn->stmts.data[grid[i]].var] = ++p->open_loops;
    int64_t scratch_bytes = 0;
    int64_t stack_bytes = 0;
    berth_stmt body = grid_count ? p->fn->stmts.data[grid[grid_count - 1]].body : nest;
    p->kernel = kernel;
    p->nest = nest;
    p->language->open_kernel(p, kernel, grid, grid_count);
    print_stmt(p, body, &scratch_bytes, &stack_bytes);
    p->language->close_kernel(p);
    kernel->scratch_bytes = (uint32_t)scratch_bytes;
    berth_program_kernel record = berth_kernel_source_record(kernel);
    p->language->declare_kernel(p, kernel->entry, berth_kernel_declaration(p->arena, &record));
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

berth_c_printer *berth_c_printer_create(const berth_tfn *fn, const berth_c_language *language,
                                        berth_arena *arena) {
    berth_c_printer *p = berth_arena_new(arena, berth_c_printer);
    p->language = language;
    p->arena = arena;
    p->fn = berth_arena_copy(arena, fn, sizeof(*fn));
#define COPY(list)                                                                                 \
    p->fn->list.data =                                                                             \
        berth_arena_copy(arena, fn->list.data, fn->list.capacity * sizeof(*fn->list.data))
    COPY(exprs);
    COPY(stmts);
    COPY(lists);
    COPY(bufs);
    COPY(vars);
#undef COPY
    p->out = berth_strbuf_make(arena);
    p->ranges = berth_ranges_collect(p->fn);
    p->loop_depth = berth_arena_new_array(arena, uint32_t, fn->vars.count + 1);
    p->memo_count = fn->exprs.count;
    p->memo = berth_arena_new_array(arena, const char *, fn->exprs.count + 1);
    p->uses = berth_arena_new_array(arena, uint32_t, fn->exprs.count + 1);
    return p;
}

berth_status berth_c_printer_run(berth_c_printer *p, const char *prefix,
                                 berth_kernel_source **out_kernels, uint32_t *out_kernel_count) {
    const berth_tfn *fn = p->fn;
    for (uint32_t b = 0; b < fn->bufs.count; ++b)
        for (int d = 0; d < fn->bufs.data[b].rank; ++d)
            if (fn->bufs.data[b].dims[d] < 0)
                return berth_status_make(BERTH_UNSUPPORTED,
                                         "code for symbolic dimensions: bind them with --dim");
    const berth_stmt_node body = fn->stmts.data[fn->body];
    bool sequence = fn->body && body.kind == BERTH_STMT_SEQ;
    uint32_t count = !fn->body ? 0 : sequence ? body.count : 1;
    *out_kernels = berth_arena_new_array(p->arena, berth_kernel_source, count + 1);
    *out_kernel_count = count;
    for (uint32_t i = 0; i < count && !p->status; ++i) {
        berth_kernel_source *kernel = &(*out_kernels)[i];
        kernel->entry = berth_arena_printf(p->arena, "%s_%u", prefix, i);
        print_kernel(p, sequence ? fn->lists.data[body.first + i] : fn->body, kernel);
    }
    return p->status;
}
