// Text of tensor functions, as in the example of tensor_fn.h.
#include "ir/tensor_fn.h"

static const char *const unary_names[] = {
#define NAME(id, text) text,
    BERTH_TFN_UNARY(NAME)};
static const char *const binary_names[] = {BERTH_TFN_BINARY(NAME)
#undef NAME
};
static const char *const loop_names[] = {"for",     "parallel", "unroll",  "vector",
                                         "simd",    "group.x",  "group.y", "group.z",
                                         "local.x", "local.y",  "local.z"};
static const char *const scope_names[] = {"param", "workspace", "register", "private", "local"};
static const char *const role_names[] = {"in", "out", "inout", ""};

typedef struct printer {
    const berth_tfn *fn;
    berth_strbuf *out;
    int depth;
} printer;

static void print_expr(printer *p, berth_expr id);

static void print_buf_name(printer *p, berth_buf buf) {
    const char *name = berth_module_str(p->fn->module, p->fn->bufs.data[buf].name);
    berth_strbuf_addf(p->out, "%%%s.b%u", name, buf);
}

static void print_var_name(printer *p, berth_var var) {
    const char *name = berth_module_str(p->fn->module, p->fn->vars.data[var].name);
    berth_strbuf_addf(p->out, "%%%s.%u", name, var);
}

static void print_indices(printer *p, const berth_expr *indices, int count) {
    berth_strbuf_add(p->out, "[");
    for (int i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(p->out, ", ");
        print_expr(p, indices[i]);
    }
    berth_strbuf_add(p->out, "]");
}

static void print_call(printer *p, const char *name, const berth_expr *arguments, int count) {
    berth_strbuf_addf(p->out, "%s(", name);
    for (int i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(p->out, ", ");
        print_expr(p, arguments[i]);
    }
    berth_strbuf_add(p->out, ")");
}

static void print_binary(printer *p, const berth_expr_node *node) {
    berth_binary op = (berth_binary)node->op;
    if (op == BERTH_BINARY_MIN || op == BERTH_BINARY_MAX || op == BERTH_BINARY_POW ||
        op == BERTH_BINARY_ATAN2) {
        print_call(p, binary_names[op], (berth_expr[]){node->a, node->b}, 2);
        return;
    }
    berth_strbuf_add(p->out, "(");
    print_expr(p, node->a);
    berth_strbuf_addf(p->out, " %s ", binary_names[op]);
    print_expr(p, node->b);
    berth_strbuf_add(p->out, ")");
}

static void print_typed_call(printer *p, const char *name, const berth_expr_node *node) {
    const char *type = node->is_index ? "index" : berth_dtype_name((berth_dtype)node->dtype);
    berth_strbuf_addf(p->out, "%s.%s", name, type);
    if (node->lanes > 1) berth_strbuf_addf(p->out, "x%u", node->lanes);
    print_call(p, "", &node->a, 1);
}

static void print_literal(printer *p, const berth_expr_node *node) {
    char text[32];
    if (node->kind == BERTH_EXPR_INT) {
        berth_strbuf_addf(p->out, "%lld", (long long)node->i);
    } else {
        berth_format_f64(node->f, text);
        berth_strbuf_add(p->out, text);
    }
    if (!node->is_index)
        berth_strbuf_addf(p->out, ":%s", berth_dtype_name((berth_dtype)node->dtype));
}

static void print_expr(printer *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_NONE: berth_strbuf_add(p->out, "<none>"); break;
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT: print_literal(p, node); break;
    case BERTH_EXPR_VAR: print_var_name(p, node->var); break;
    case BERTH_EXPR_LOAD:
        print_buf_name(p, node->load.buf);
        print_indices(p, berth_tfn_load_indices(p->fn, id), node->index_count);
        break;
    case BERTH_EXPR_UNARY: print_call(p, unary_names[node->op], &node->a, 1); break;
    case BERTH_EXPR_BINARY: print_binary(p, node); break;
    case BERTH_EXPR_FMA: print_call(p, "fma", (berth_expr[]){node->a, node->b, node->c}, 3); break;
    case BERTH_EXPR_SELECT:
        print_call(p, "select", (berth_expr[]){node->a, node->b, node->c}, 3);
        break;
    case BERTH_EXPR_CAST: print_typed_call(p, "cast", node); break;
    case BERTH_EXPR_BROADCAST: print_typed_call(p, "broadcast", node); break;
    case BERTH_EXPR_RAMP: print_typed_call(p, "ramp", node); break;
    case BERTH_EXPR_REDUCE_ADD: print_call(p, "reduce_add", &node->a, 1); break;
    }
}

static void print_buf_type(printer *p, const berth_buf_info *buf) {
    berth_strbuf_addf(p->out, "%s", berth_dtype_name(buf->dtype));
    if (buf->lanes > 1) berth_strbuf_addf(p->out, "x%u", buf->lanes);
    berth_strbuf_add(p->out, "[");
    for (int d = 0; d < buf->rank; ++d) {
        if (d) berth_strbuf_add(p->out, ",");
        if (berth_dim_is_symbol(buf->dims[d]))
            berth_strbuf_add(p->out,
                             berth_module_str(p->fn->module, berth_dim_symbol_name(buf->dims[d])));
        else
            berth_strbuf_addf(p->out, "%lld", (long long)buf->dims[d]);
    }
    berth_strbuf_add(p->out, "]");
    if (buf->layout)
        berth_strbuf_addf(p->out, "{%s}", berth_module_str(p->fn->module, buf->layout));
}

static void indent(printer *p) {
    for (int i = 0; i < p->depth; ++i) berth_strbuf_add(p->out, "  ");
}

static void print_stmt(printer *p, berth_stmt id);

static void print_block(printer *p, berth_stmt id) {
    berth_strbuf_add(p->out, " {\n");
    p->depth++;
    print_stmt(p, id);
    p->depth--;
    indent(p);
    berth_strbuf_add(p->out, "}");
}

static void print_alloc(printer *p, const berth_stmt_node *node) {
    const berth_buf_info *buf = &p->fn->bufs.data[node->buf];
    berth_strbuf_addf(p->out, "%s ", scope_names[buf->scope]);
    print_buf_name(p, node->buf);
    berth_strbuf_add(p->out, ": ");
    print_buf_type(p, buf);
}

static void print_stmt(printer *p, berth_stmt id) {
    const berth_stmt_node *node = &p->fn->stmts.data[id];
    if (id == 0) return;
    if (node->kind == BERTH_STMT_SEQ) {
        for (uint32_t i = 0; i < node->count; ++i) print_stmt(p, berth_tfn_seq_items(p->fn, id)[i]);
        return;
    }
    indent(p);
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_FOR:
        berth_strbuf_addf(p->out, "%s ", loop_names[node->loop_kind]);
        print_var_name(p, node->var);
        berth_strbuf_add(p->out, " in ");
        print_expr(p, node->value);
        print_block(p, node->body);
        break;
    case BERTH_STMT_STORE:
        print_buf_name(p, node->buf);
        print_indices(p, berth_tfn_store_indices(p->fn, id), node->index_count);
        berth_strbuf_add(p->out, " = ");
        print_expr(p, node->value);
        break;
    case BERTH_STMT_LET:
        berth_strbuf_add(p->out, "let ");
        print_var_name(p, node->var);
        berth_strbuf_add(p->out, " = ");
        print_expr(p, node->value);
        break;
    case BERTH_STMT_IF:
        berth_strbuf_add(p->out, "if ");
        print_expr(p, node->value);
        print_block(p, node->body);
        if (node->other) {
            berth_strbuf_add(p->out, " else");
            print_block(p, node->other);
        }
        break;
    case BERTH_STMT_ALLOC: print_alloc(p, node); break;
    case BERTH_STMT_BARRIER: berth_strbuf_add(p->out, "barrier"); break;
    default: break;
    }
    berth_strbuf_add(p->out, "\n");
}

void berth_tfn_print(const berth_tfn *fn, berth_strbuf *out) {
    printer p = {.fn = fn, .out = out, .depth = 1};
    berth_strbuf_add(out, "(");
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        if (i) berth_strbuf_add(out, ", ");
        print_buf_name(&p, i);
        berth_strbuf_add(out, ": ");
        print_buf_type(&p, &fn->bufs.data[i]);
        berth_strbuf_addf(out, " %s", role_names[fn->bufs.data[i].role]);
    }
    berth_strbuf_add(out, ") {\n");
    for (uint32_t i = fn->param_count; i < fn->bufs.count; ++i) {
        if (fn->bufs.data[i].scope != BERTH_SCOPE_WORKSPACE) continue;
        berth_strbuf_add(out, "  workspace ");
        print_buf_name(&p, i);
        berth_strbuf_add(out, ": ");
        print_buf_type(&p, &fn->bufs.data[i]);
        berth_strbuf_add(out, "\n");
    }
    print_stmt(&p, fn->body);
    berth_strbuf_add(out, "}\n");
}
