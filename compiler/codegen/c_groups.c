#include "compiler/codegen/c_groups.h"

#include "compiler/codegen/kernel_facts.h"
#include "compiler/codegen/template.h"

// The flat index of a work-item is taken apart into the parallel loops' variables.
static void open_flat_grid(berth_c_printer *p, const berth_stmt *grid, int grid_count,
                           const berth_c_group_words *words) {
    berth_kernel_source *kernel = p->kernel;
    uint32_t total = kernel->groups[0], most = words->flat_group_size;
    const char *type = p->language->index_type;
    kernel->group_size[0] = total < most ? (total ? total : 1) : most;
    kernel->groups[0] = total / kernel->group_size[0] + (total % kernel->group_size[0] != 0);
    berth_c_line(p, "const %s item = (%s)%s;", type, type, words->item);
    berth_c_line(p, "if (item < %s) {", berth_c_number(p, total));
    p->depth++;
    int64_t inner = total;
    for (int i = 0; i < grid_count; ++i) {
        int64_t extent = berth_kernel_extent(p->fn, grid[i]);
        inner = extent ? inner / extent : 1;
        const char *var = berth_c_var_name(p, p->fn->stmts.data[grid[i]].var);
        const char *modulo =
            i == 0 ? "" : berth_arena_printf(p->arena, " %% %s", berth_c_number(p, extent));
        berth_c_line(p, "const %s %s = item / %s%s;", type, var,
                     berth_c_number(p, inner ? inner : 1), modulo);
    }
}

static int64_t element_count(const berth_buf_info *info) {
    int64_t count = 1;
    for (int d = 0; d < info->rank; ++d) count *= info->dims[d];
    return count ? count : 1;
}

// Calls `visit` for the arrays of a scope below a statement, with the bytes of those before.
static int64_t each_array(const berth_tfn *fn, berth_stmt id, berth_buf_scope scope, int64_t offset,
                          void (*visit)(void *user, berth_buf buf, int64_t offset), void *user) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (!id) return offset;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node.count; ++i)
            offset = each_array(fn, fn->lists.data[node.first + i], scope, offset, visit, user);
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        offset = each_array(fn, node.body, scope, offset, visit, user);
        offset = each_array(fn, node.other, scope, offset, visit, user);
    }
    if (node.kind != BERTH_STMT_ALLOC) return offset;
    const berth_buf_info *info = &fn->bufs.data[node.buf];
    if (info->scope != scope) return offset;
    if (visit) visit(user, node.buf, offset);
    int64_t lanes = info->lanes > 1 ? info->lanes : 1;
    int64_t bytes = element_count(info) * lanes * (int64_t)berth_dtype_size_bytes(info->dtype);
    return offset + (bytes + 15) / 16 * 16;
}

int64_t berth_c_groups_local_bytes(const berth_tfn *fn, berth_stmt nest) {
    return each_array(fn, nest, BERTH_SCOPE_LOCAL, 0, NULL, NULL);
}

int64_t berth_c_groups_register_bytes(const berth_tfn *fn, berth_stmt nest) {
    return each_array(fn, nest, BERTH_SCOPE_REGISTER, 0, NULL, NULL);
}

typedef struct local_printer {
    berth_c_printer *p;
    const berth_c_group_words *words;
} local_printer;

static void declare_local(void *user, berth_buf buf, int64_t offset) {
    berth_c_printer *p = ((local_printer *)user)->p;
    const berth_c_group_words *words = ((local_printer *)user)->words;
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    const char *type = berth_c_storage_type(p, info->dtype);
    if (words->launched)
        berth_c_line(p, "%s *const b%u = (%s *)(berth_shared + %lld);", type, buf, type,
                     (long long)offset);
    else
        berth_c_line(p, "%s%s b%u[%lld]%s;", words->local, type, buf,
                     (long long)element_count(info), words->local_end);
}

// Memory of a group is declared in the outermost scope of a kernel (OpenCL C 1.2, 6.5.2).
static void declare_locals(berth_c_printer *p, const berth_c_group_words *words) {
    if (words->launched) berth_c_line(p, "%s", words->launched);
    each_array(p->fn, p->nest, BERTH_SCOPE_LOCAL, 0, declare_local, &(local_printer){p, words});
}

void berth_c_groups_open(berth_c_printer *p, const berth_kernel_source *kernel,
                         const berth_stmt *grid, int grid_count, const berth_c_group_words *words) {
    berth_strbuf line = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&line, "%s %s(", words->kernel, kernel->entry);
    for (uint32_t i = 0; i < kernel->buffer_count; ++i) {
        berth_buf buf = kernel->buffers[i];
        const berth_buf_info *info = &p->fn->bufs.data[buf];
        bool constant = info->scope == BERTH_SCOPE_PARAM && info->role == BERTH_ROLE_IN;
        berth_strbuf_addf(&line, "%s%s%s%s *%s%sb%u", i ? ", " : "", words->global,
                          constant ? "const " : "", berth_c_storage_type(p, info->dtype),
                          info->may_alias ? "" : words->restrict_word, info->may_alias ? "" : " ",
                          buf);
    }
    berth_strbuf_add(&line, p->marks_numbers ? BERTH_TEMPLATE_ARGUMENTS ") {\n" : ") {\n");
    berth_strbuf_add(&p->out, berth_strbuf_text(&line));
    p->depth = 1;
    if (p->marks_numbers) {
        berth_c_line(p, "typedef %s berth_index;", p->language->index_type);
        berth_strbuf_add(&p->out, BERTH_TEMPLATE_LINES);
    }
    if (grid_count == 0 && berth_kernel_has_group_loops(p->fn, p->nest)) {
        declare_locals(p, words);
        berth_c_line(p, "{");
    } else
        open_flat_grid(p, grid, grid_count, words);
    p->depth = 2;
}

void berth_c_groups_close(berth_c_printer *p) {
    berth_strbuf_add(&p->out, "    }\n}\n\n");
    p->depth = 0;
}

void berth_c_groups_declare(berth_c_printer *p, const char *entry, const char *declaration) {
    berth_c_line(p, "// " BERTH_DECLARATION_PREFIX "%s: %s", entry, declaration);
}

void berth_c_groups_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           const berth_c_group_words *words) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    const char *type = info->lanes > 1 ? berth_c_value_type(p, info->dtype, info->lanes)
                                       : berth_c_storage_type(p, info->dtype);
    if (info->scope == BERTH_SCOPE_LOCAL) return;  // declare_local
    if (info->scope == BERTH_SCOPE_REGISTER && info->rank == 0)
        berth_c_line(p, "%s b%u;", type, buf);
    else
        berth_c_line(p, "%s b%u[%lld]%s;", type, buf,
                     (long long)berth_c_array_size(p, buf, element_count), words->array_end);
}
