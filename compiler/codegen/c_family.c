#include "compiler/codegen/c_family.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/kernel_facts.h"
#include "ir/tensor/copies.h"

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
    bool known_type = dtype == BERTH_DTYPE_F32 || dtype == BERTH_DTYPE_I32 ||
                      berth_c_is_narrow(dtype) ||
                      (dtype == BERTH_DTYPE_F64 && p->language->f64_vectors);
    if (!known_type)
        berth_c_fail(
            p, berth_status_make(BERTH_UNSUPPORTED, "vectors of %s", berth_dtype_name(dtype)));
    return berth_arena_printf(p->arena, "berth_%sx%d", berth_dtype_name(dtype), lanes);
}

void berth_c_add_intrinsics(const berth_c_printer *p, berth_strbuf *out) {
    for (int i = 0; i < BERTH_INTRINSIC_END; ++i) {
        if (!p->intrinsics[i]) continue;
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        berth_strbuf_addf(out, "#ifndef berth_%s_\n#define berth_%s_\n%s#endif\n", facts->name,
                          facts->name, p->language->intrinsic_text(facts));
    }
}

// ---- statements ---------------------------------------------------------------------------------

// Bytes of private buffers that exist where a statement is. Those of statements side by side are the same bytes.
typedef struct private_bytes {
    int64_t scratch, stack;
    int64_t most_scratch;  // so far
} private_bytes;

static void print_stmt(berth_c_printer *p, berth_stmt id, private_bytes *bytes);

// What it allocates exists in it alone.
static void print_body(berth_c_printer *p, berth_stmt id, private_bytes *bytes) {
    private_bytes inner = *bytes;
    print_stmt(p, id, &inner);
    bytes->most_scratch = inner.most_scratch;
}

static void print_alloc(berth_c_printer *p, berth_buf buf, private_bytes *held) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    int64_t count = berth_kernel_elements(p->fn, buf);
    int64_t bytes = count * info->lanes * (int64_t)berth_dtype_size_bytes(info->dtype);
    int64_t offset = -1;
    bool large = held->stack + bytes > (int64_t)p->language->stack_limit_bytes;
    if (info->scope == BERTH_SCOPE_PRIVATE && p->language->stack_limit_bytes && large) {
        offset = held->scratch;
        int64_t unit = p->language->scratch_alignment_bytes;
        held->scratch = (held->scratch + bytes + unit - 1) / unit * unit;
        if (held->scratch > held->most_scratch) held->most_scratch = held->scratch;
    } else
        held->stack += bytes;
    p->language->declare_buffer(p, buf, count, offset);
}

static void print_for(berth_c_printer *p, const berth_stmt_node *node, private_bytes *bytes) {
    int64_t extent = -1;
    if (p->language->print_loop && p->language->print_loop(p, node)) return;
    bool vectors = p->language->open_vectors && p->language->open_vectors(p, node);
    const char *type = p->language->index_type;
    const char *var = berth_c_var_name(p, node->var);
    berth_tfn_const_value(p->fn, node->value, &extent);
    p->loop_depth[node->var] = ++p->open_loops;
    if (node->loop_kind == BERTH_LOOP_VECTOR && !p->language->open_vectors)
        berth_c_fail(p, berth_status_make(BERTH_INTERNAL, "a vector loop was left to the printer"));
    if (!p->language->open_loop || !p->language->open_loop(p, node, extent)) {
        const char *limit = berth_c_index(p, node->value);
        if (extent == 1 && !p->marks_numbers) {
            berth_c_line(p, "{");
            berth_c_line(p, "    const %s %s = 0;", type, var);
        } else
            berth_c_line(p, "for (%s %s = 0; %s < %s; ++%s) {", type, var, var, limit, var);
    }
    p->depth++;
    print_body(p, node->body, bytes);
    p->depth--;
    berth_c_line(p, "}");
    if (vectors) berth_strbuf_add(&p->out, p->language->vectors_end);
    p->open_loops--;
}

static void print_let(berth_c_printer *p, const berth_stmt_node *node) {
    const berth_var_info *info = &p->fn->vars.data[node->var];
    const char *name = berth_c_var_name(p, node->var);
    const berth_expr_node value = p->fn->exprs.data[node->value];
    p->loop_depth[node->var] = p->open_loops;
    berth_c_begin_statement(p, &node->value, 1);
    const char *fragment = value.kind == BERTH_EXPR_LOAD && value.lanes > 1 && p->language->fragment
                               ? p->language->fragment(p, node->value)
                               : NULL;
    if (fragment) {
        p->is_fragment[node->var] = true;
        berth_c_line(p, "const auto %s = %s;", name, fragment);
    } else if (info->is_index) {
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

static void print_if(berth_c_printer *p, const berth_stmt_node *node, private_bytes *bytes) {
    berth_c_begin_statement(p, &node->value, 1);
    const char *condition = berth_c_condition(p, node->value);
    berth_c_end_statement(p);
    if (strcmp(condition, "0") == 0) {
        if (node->other) print_body(p, node->other, bytes);
        return;
    }
    if (strcmp(condition, "1") == 0) {
        print_body(p, node->body, bytes);
        return;
    }
    berth_c_line(p, "if (%s) {", condition);
    p->depth++;
    print_body(p, node->body, bytes);
    p->depth--;
    if (node->other) {
        berth_c_line(p, "} else {");
        p->depth++;
        print_body(p, node->other, bytes);
        p->depth--;
    }
    berth_c_line(p, "}");
}

static void print_stmt(berth_c_printer *p, berth_stmt id, private_bytes *bytes) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            print_stmt(p, p->fn->lists.data[node.first + i], bytes);
        break;
    case BERTH_STMT_FOR: print_for(p, &node, bytes); break;
    case BERTH_STMT_STORE:
        if (!p->language->unit_store || !p->language->unit_store(p, id)) berth_c_store(p, id);
        break;
    case BERTH_STMT_LET: print_let(p, &node); break;
    case BERTH_STMT_IF: print_if(p, &node, bytes); break;
    case BERTH_STMT_ALLOC: print_alloc(p, node.buf, bytes); break;
    case BERTH_STMT_BARRIER:
        if (p->copies_async) {
            int pending = berth_tfn_pending_of(&node);
            p->language->before_barrier(p, pending < 0 ? 0 : pending, berth_tfn_products_of(&node));
        }
        if (p->language->barrier)
            berth_c_line(p, "%s", p->language->barrier);
        else
            berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "a barrier"));
        if (p->language->after_barrier) p->language->after_barrier(p);
        break;
    case BERTH_STMT_CALL: berth_c_call(p, id); break;
    case BERTH_STMT_NONE: break;
    }
}

// ---- kernels ------------------------------------------------------------------------------------

static void print_kernel(berth_c_printer *p, berth_stmt nest, berth_kernel_source *kernel) {
    berth_stmt grid[BERTH_MAX_RANK];
    int64_t groups = 1;
    int grid_count = berth_kernel_find_grid(p->fn, nest, grid, &groups);
    for (int i = 0; i < 3; ++i) kernel->groups[i] = kernel->group_size[i] = 1;
    kernel->groups[0] = (uint32_t)groups;
    berth_kernel_collect_facts(p->fn, p->arena, nest, kernel);
    p->open_loops = 0;
    p->next_temporary = 0;
    for (int i = 0; i < grid_count; ++i)
        p->loop_depth[p->fn->stmts.data[grid[i]].var] = ++p->open_loops;
    private_bytes bytes = {0};
    berth_stmt body = grid_count ? p->fn->stmts.data[grid[grid_count - 1]].body : nest;
    p->kernel = kernel;
    p->nest = nest;
    p->grid = grid;
    p->grid_count = grid_count;
    p->language->open_kernel(p, kernel, grid, grid_count);
    print_stmt(p, body, &bytes);
    p->language->close_kernel(p);
    kernel->scratch_bytes = (uint32_t)bytes.most_scratch;
    berth_program_kernel record = berth_kernel_source_record(kernel);
    if (!p->marks_numbers)  // a template's record comes with every use
        p->language->declare_kernel(p, kernel->entry, berth_kernel_declaration(p->arena, &record));
}

berth_c_printer *berth_c_printer_create(const berth_tfn *fn, const berth_c_language *language,
                                        berth_arena *arena) {
    berth_c_printer *p = berth_arena_new(arena, berth_c_printer);
    p->language = language;
    p->arena = arena;
    p->fn = berth_kernel_copy_fn(fn, arena);
    p->out = berth_strbuf_make(arena);
    p->ranges = berth_ranges_collect(p->fn);
    p->loop_depth = berth_arena_new_array(arena, uint32_t, fn->vars.count + 1);
    p->is_fragment = berth_arena_new_array(arena, bool, fn->vars.count + 1);
    p->memo_count = fn->exprs.count;
    p->memo = berth_arena_new_array(arena, const char *, fn->exprs.count + 1);
    p->uses = berth_arena_new_array(arena, uint32_t, fn->exprs.count + 1);
    return p;
}

berth_status berth_c_printer_run(berth_c_printer *p, const char *prefix,
                                 berth_kernel_source **out_kernels, uint32_t *out_kernel_count) {
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_kernel_nests(p->fn, p->arena, &nests, &count));
    *out_kernels = berth_arena_new_array(p->arena, berth_kernel_source, count + 1);
    *out_kernel_count = count;
    for (uint32_t i = 0; i < count && !p->status; ++i) {
        berth_kernel_source *kernel = &(*out_kernels)[i];
        kernel->entry = berth_arena_printf(p->arena, "%s_%u", prefix, i);
        print_kernel(p, nests[i], kernel);
    }
    return p->status;
}
