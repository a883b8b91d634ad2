// Text of tensor functions, as in the example of tensor_fn.h.
#include <math.h>
#include <string.h>

#include "ir/tensor/copies.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tensor/type.h"
#include "ir/text/hooks.h"
#include "ir/text/literal.h"
#include "ir/text/printer.h"

// Statements whose expressions are larger than this when shared parts are written out name the
// shared parts: "$0 = ..." in front of the statement.
enum { most_nodes = 64 };

typedef struct scope_entry {
    bool is_buf;
    uint32_t id;
    uint32_t outer;  // label that it hides
} scope_entry;

typedef struct tfn_printer {
    berth_text_printer *p;
    const berth_tfn *fn;
    berth_text_labels labels;
    uint32_t *var_label;  // index of the name + 1; 0 = not visible
    uint32_t *buf_label;
    BERTH_VEC(scope_entry) scope;
    // Sharing in the statement at hand, per expression; valid where stamp is the current one.
    uint32_t *stamp;
    uint32_t *references;
    uint64_t *size;
    uint32_t *number;  // of "$3", + 1
    uint32_t current;
    uint32_t next_number;
    BERTH_VEC(berth_expr) order;  // expressions of the statement, operands first
} tfn_printer;

// ---- names --------------------------------------------------------------------------------------

static const char *var_name(const tfn_printer *t, berth_var var) {
    return berth_module_str(t->p->module, t->fn->vars.data[var].name);
}

static const char *buf_name(const tfn_printer *t, berth_buf buf) {
    return berth_module_str(t->p->module, t->fn->bufs.data[buf].name);
}

static void bring_into_scope(tfn_printer *t, bool is_buf, uint32_t id) {
    uint32_t *label = is_buf ? &t->buf_label[id] : &t->var_label[id];
    berth_vec_push(t->p->scratch, &t->scope, (scope_entry){is_buf, id, *label});
    *label =
        berth_text_label_take(t->p, &t->labels, is_buf ? buf_name(t, id) : var_name(t, id)) + 1;
}

static void leave_scope(tfn_printer *t, uint32_t mark) {
    while (t->scope.count > mark) {
        scope_entry entry = t->scope.data[--t->scope.count];
        *(entry.is_buf ? &t->buf_label[entry.id] : &t->var_label[entry.id]) = entry.outer;
        berth_text_label_release(t->p, &t->labels,
                                 entry.is_buf ? buf_name(t, entry.id) : var_name(t, entry.id));
    }
}

// What is not in scope is printed as such; the verifier refuses it.
static void print_var(tfn_printer *t, berth_var var) {
    if (var < t->fn->vars.count && t->var_label[var])
        berth_text_print_label(t->p, var_name(t, var), t->var_label[var] - 1);
    else
        berth_doc_textf(t->p->doc, "%%undefined_var~%u", var);
}

static void print_buf(tfn_printer *t, berth_buf buf) {
    if (buf < t->fn->bufs.count && t->buf_label[buf])
        berth_text_print_label(t->p, buf_name(t, buf), t->buf_label[buf] - 1);
    else
        berth_doc_textf(t->p->doc, "%%undefined_buffer~%u", buf);
}

// ---- expressions --------------------------------------------------------------------------------

// `strength` is twice the precedence of the operator around it, and one more on its right side; an
// expression of a weaker operator needs parentheses. 0 = none around it.
static void print_expr(tfn_printer *t, berth_expr id, int strength);

static void print_arguments(tfn_printer *t, const berth_expr *arguments, int count) {
    berth_doc_open(t->p->doc, 4);
    for (int i = 0; i < count; ++i) {
        if (i) {
            berth_doc_text(t->p->doc, ",");
            berth_doc_line(t->p->doc);
        }
        print_expr(t, arguments[i], 0);
    }
    berth_doc_close(t->p->doc);
}

static void print_call(tfn_printer *t, const char *name, const berth_expr *arguments, int count) {
    berth_doc_textf(t->p->doc, "%s(", name);
    print_arguments(t, arguments, count);
    berth_doc_text(t->p->doc, ")");
}

static void print_access(tfn_printer *t, berth_buf buf, const berth_expr *indices, int count) {
    print_buf(t, buf);
    berth_doc_text(t->p->doc, "[");
    print_arguments(t, indices, count);
    berth_doc_text(t->p->doc, "]");
}

static void print_binary(tfn_printer *t, const berth_expr_node *node) {
    berth_binary op = (berth_binary)node->op;
    if (!berth_binary_is_infix(op)) {
        print_call(t, berth_binary_name(op), (berth_expr[]){node->a, node->b}, 2);
        return;
    }
    int strength = 2 * berth_binary_precedence(op);
    print_expr(t, node->a, strength);
    berth_doc_textf(t->p->doc, " %s", berth_binary_name(op));
    berth_doc_fill_line(t->p->doc);
    print_expr(t, node->b, strength + 1);
}

static void print_wide(tfn_printer *t, const char *name, const berth_expr_node *node) {
    berth_doc_textf(t->p->doc, "%s(", name);
    print_arguments(t, &node->a, 1);
    berth_doc_textf(t->p->doc, ", %u)", node->lanes);
}

// As in a shape; in quotes also where the word would be read as a number.
static void print_symbol(tfn_printer *t, int64_t symbol) {
    const char *name = berth_module_str(t->p->module, berth_dim_symbol_name(symbol));
    berth_strbuf text = berth_strbuf_make(t->p->module->arena);
    if (!strcmp(name, "nan") || !strcmp(name, "inf"))
        berth_strbuf_addf(&text, "\"%s\"", name);
    else
        berth_text__add_name(&text, name);
    berth_doc_text(t->p->doc, berth_strbuf_text(&text));
}

static void print_node(tfn_printer *t, berth_expr id, const berth_expr_node *node) {
    char text[40];
    berth_tfn_type scalar = {(berth_dtype)node->dtype, node->is_index, 1};
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_NONE: berth_doc_text(t->p->doc, "no_expression"); break;
    case BERTH_EXPR_INT: berth_doc_textf(t->p->doc, "%lld", (long long)node->i); break;
    case BERTH_EXPR_SYMBOL: print_symbol(t, node->i); break;
    case BERTH_EXPR_FLOAT:
        berth_text__format_float(node->f, text);
        berth_doc_text(t->p->doc, text);
        break;
    case BERTH_EXPR_VAR: print_var(t, node->var); break;
    case BERTH_EXPR_LOAD:
        print_access(t, node->load.buf, berth_tfn_load_indices(t->fn, id), node->index_count);
        break;
    case BERTH_EXPR_UNARY:
        print_call(t, berth_unary_name((berth_unary)node->op), &node->a, 1);
        break;
    case BERTH_EXPR_BINARY: print_binary(t, node); break;
    case BERTH_EXPR_FMA: print_call(t, "fma", (berth_expr[]){node->a, node->b, node->c}, 3); break;
    case BERTH_EXPR_SELECT:
        print_call(t, "select", (berth_expr[]){node->a, node->b, node->c}, 3);
        break;
    case BERTH_EXPR_CAST:
        berth_tfn_type_format(scalar, text);
        print_call(t, text, &node->a, 1);
        break;
    case BERTH_EXPR_BROADCAST: print_wide(t, "broadcast", node); break;
    case BERTH_EXPR_RAMP: print_wide(t, "ramp", node); break;
    case BERTH_EXPR_REDUCE_ADD: print_call(t, "reduce_add", &node->a, 1); break;
    case BERTH_EXPR_INTRINSIC:
        print_call(t, berth_intrinsic_get((berth_intrinsic)node->op)->name,
                   (berth_expr[]){node->a, node->b, node->c}, node->c ? 3 : 2);
        break;
    }
}

// The node itself, with its type where that is not the one that follows from its parts.
static void print_whole(tfn_printer *t, berth_expr id, int strength) {
    const berth_expr_node *node = &t->fn->exprs.data[id];
    const berth_expr *indices =
        node->kind == BERTH_EXPR_LOAD ? berth_tfn_load_indices(t->fn, id) : NULL;
    berth_tfn_type type = berth_tfn_type_of(t->fn, id);
    bool typed = node->kind != BERTH_EXPR_NONE &&
                 !berth_tfn_type_equal(type, berth_tfn_derive_type(t->fn, node, indices));
    bool infix = node->kind == BERTH_EXPR_BINARY && berth_binary_is_infix((berth_binary)node->op);
    int own = infix ? 2 * berth_binary_precedence((berth_binary)node->op) : 0;
    bool closed = infix && (typed || own < strength);
    bool chained = infix && !closed && own == strength;  // a + b in a + b + c: one group
    if (closed) berth_doc_text(t->p->doc, "(");
    if (infix && !chained) berth_doc_open(t->p->doc, 4);
    print_node(t, id, node);
    if (infix && !chained) berth_doc_close(t->p->doc);
    if (closed) berth_doc_text(t->p->doc, ")");
    if (typed) {
        char text[24];
        berth_tfn_type_format(type, text);
        berth_doc_textf(t->p->doc, ":%s", text);
    }
}

static void print_expr(tfn_printer *t, berth_expr id, int strength) {
    if (t->stamp[id] == t->current && t->number[id])
        berth_doc_textf(t->p->doc, "$%u", t->number[id] - 1);
    else
        print_whole(t, id, strength);
}

// ---- sharing ------------------------------------------------------------------------------------

static bool is_leaf(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
           node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_NONE;
}

// Number of nodes of the tree below id with shared parts written out; saturates.
static uint64_t measure(tfn_printer *t, berth_expr id) {
    const berth_expr_node *node = &t->fn->exprs.data[id];
    if (t->stamp[id] == t->current) {
        t->references[id]++;
        return t->size[id];
    }
    uint64_t size = 1;
    const berth_expr operands[] = {node->a, node->b, node->c};
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            size += measure(t, berth_tfn_load_indices(t->fn, id)[i]);
    } else if (!is_leaf(node)) {
        for (int i = 0; i < 3; ++i)
            if (operands[i]) size += measure(t, operands[i]);
    }
    if (size > UINT32_MAX) size = UINT32_MAX;
    t->stamp[id] = t->current;
    t->references[id] = 1;
    t->number[id] = 0;
    t->size[id] = size;
    berth_vec_push(t->p->scratch, &t->order, id);
    return size;
}

static int rank_of(const tfn_printer *t, berth_buf buf) {
    return buf < t->fn->bufs.count ? t->fn->bufs.data[buf].rank : 0;
}

// Names and prints what a large statement shares. Linear in its DAG.
static void print_shared(tfn_printer *t, berth_stmt id) {
    const berth_stmt_node *node = &t->fn->stmts.data[id];
    uint64_t size = 0;
    t->current++;
    t->order.count = 0;
    if (node->kind == BERTH_STMT_STORE)
        for (int i = 0; i < node->index_count; ++i)
            size += measure(t, berth_tfn_store_indices(t->fn, id)[i]);
    for (uint32_t i = 0; node->kind == BERTH_STMT_CALL && i < node->count; ++i) {
        const berth_tfn_region *region = &t->fn->regions.data[node->first + i];
        for (int d = 0; d < rank_of(t, region->buf); ++d)
            if (region->starts[d]) size += measure(t, region->starts[d]);
    }
    if (node->value) size += measure(t, node->value);
    if (size <= most_nodes) return;
    for (uint32_t i = 0; i < t->order.count; ++i) {
        berth_expr expr = t->order.data[i];
        if (t->references[expr] < 2 || is_leaf(&t->fn->exprs.data[expr])) continue;
        berth_doc_hard_line(t->p->doc);
        berth_doc_open(t->p->doc, 4);
        berth_doc_textf(t->p->doc, "$%u = ", t->next_number);
        print_whole(t, expr, 0);
        berth_doc_close(t->p->doc);
        t->number[expr] = ++t->next_number;
    }
}

// ---- statements ---------------------------------------------------------------------------------

static void print_buf_declaration(tfn_printer *t, berth_buf id) {
    const berth_buf_info *buf = &t->fn->bufs.data[id];
    char element[24];
    berth_strbuf shape = berth_strbuf_make(t->p->scratch);
    berth_tfn_type_format((berth_tfn_type){buf->dtype, false, buf->lanes}, element);
    berth_shape_print(t->p->module, buf->rank, buf->dims, buf->layout, &shape);
    bring_into_scope(t, true, id);
    print_buf(t, id);
    berth_doc_textf(t->p->doc, ": %s%s", element, berth_strbuf_text(&shape));
    if (buf->role != BERTH_ROLE_NONE)
        berth_doc_textf(t->p->doc, " %s", berth_buf_role_name(buf->role));
    if (!buf->memory_scope) return;
    berth_doc_text(t->p->doc, " scope ");
    berth_text_print_string(t->p, berth_module_str(t->p->module, buf->memory_scope));
}

static void print_stmt(tfn_printer *t, berth_stmt id);

// The statements between braces. A sequence of exactly one statement gets braces of its own, since
// braces around one statement are just that statement.
static void print_block(tfn_printer *t, berth_stmt id) {
    const berth_stmt_node *node = &t->fn->stmts.data[id];
    uint32_t mark = t->scope.count;
    berth_doc_text(t->p->doc, " {");
    berth_doc_indent(t->p->doc, 2);
    if (node->kind == BERTH_STMT_SEQ && node->count != 1) {
        for (uint32_t i = 0; i < node->count; ++i) print_stmt(t, berth_tfn_seq_items(t->fn, id)[i]);
    } else {
        print_stmt(t, id);
    }
    leave_scope(t, mark);
    berth_doc_indent(t->p->doc, -2);
    berth_doc_hard_line(t->p->doc);
    berth_doc_text(t->p->doc, "}");
}

static void print_seq(tfn_printer *t, berth_stmt id) {
    const berth_stmt_node *node = &t->fn->stmts.data[id];
    uint32_t mark = t->scope.count;
    berth_doc_text(t->p->doc, "{");
    berth_doc_indent(t->p->doc, 2);
    for (uint32_t i = 0; i < node->count; ++i) print_stmt(t, berth_tfn_seq_items(t->fn, id)[i]);
    leave_scope(t, mark);
    berth_doc_indent(t->p->doc, -2);
    berth_doc_hard_line(t->p->doc);
    berth_doc_text(t->p->doc, "}");
}

// ": type" where the variable's type is not the expected one.
static void print_var_type(tfn_printer *t, berth_var var, berth_tfn_type expected) {
    berth_tfn_type type = berth_tfn_type_of_var(t->fn, var);
    char text[24];
    if (berth_tfn_type_equal(type, expected)) return;
    berth_tfn_type_format(type, text);
    berth_doc_textf(t->p->doc, ": %s", text);
}

static void print_grouped(tfn_printer *t, berth_expr id) {
    berth_doc_open(t->p->doc, 4);
    print_expr(t, id, 0);
    berth_doc_close(t->p->doc);
}

static void print_for(tfn_printer *t, const berth_stmt_node *node) {
    uint32_t mark = t->scope.count;
    berth_doc_textf(t->p->doc, "%s ", berth_loop_name((berth_loop_kind)node->loop_kind));
    bring_into_scope(t, false, node->var);
    print_var(t, node->var);
    print_var_type(t, node->var, (berth_tfn_type){BERTH_DTYPE_I64, true, 1});
    berth_doc_text(t->p->doc, " in ");
    print_grouped(t, node->value);
    print_block(t, node->body);
    leave_scope(t, mark);
}

static void print_let(tfn_printer *t, const berth_stmt_node *node) {
    berth_doc_text(t->p->doc, "let ");
    berth_doc_open(t->p->doc, 4);
    bring_into_scope(t, false, node->var);
    print_var(t, node->var);
    print_var_type(t, node->var, berth_tfn_type_of(t->fn, node->value));
    berth_doc_text(t->p->doc, " =");
    berth_doc_line(t->p->doc);
    print_expr(t, node->value, 0);
    berth_doc_close(t->p->doc);
}

// "%x[%i, %j for 4]": of dimensions that are handed over, where they begin and how long they are. All
// of a buffer is its name alone.
static void print_region(tfn_printer *t, const berth_tfn_region *region) {
    bool whole = true;
    print_buf(t, region->buf);
    for (int d = 0; d < rank_of(t, region->buf); ++d) {
        const berth_expr_node *start = &t->fn->exprs.data[region->starts[d]];
        berth_tfn_type index = {BERTH_DTYPE_I64, true, 1};
        whole &= start->kind == BERTH_EXPR_INT && start->i == 0 &&
                 berth_tfn_type_equal(berth_tfn_type_of(t->fn, region->starts[d]), index) &&
                 region->extents[d] == t->fn->bufs.data[region->buf].dims[d];
    }
    if (whole) return;
    berth_doc_text(t->p->doc, "[");
    for (int d = 0; d < rank_of(t, region->buf); ++d) {
        if (d) berth_doc_text(t->p->doc, ", ");
        print_expr(t, region->starts[d], 0);
        if (region->extents[d] != BERTH_REGION_POINT)
            berth_doc_textf(t->p->doc, " for %lld", (long long)region->extents[d]);
    }
    berth_doc_text(t->p->doc, "]");
}

static void print_call_stmt(tfn_printer *t, const berth_stmt_node *node) {
    berth_doc_text(t->p->doc, "call ");
    berth_text_print_function_ref(t->p, node->callee);
    berth_doc_text(t->p->doc, "(");
    berth_doc_open(t->p->doc, 4);
    for (uint32_t i = 0; i < node->count; ++i) {
        if (i) {
            berth_doc_text(t->p->doc, ",");
            berth_doc_fill_line(t->p->doc);
        }
        print_region(t, &t->fn->regions.data[node->first + i]);
    }
    berth_doc_close(t->p->doc);
    berth_doc_text(t->p->doc, ")");
}

static void print_stmt(tfn_printer *t, berth_stmt id) {
    const berth_stmt_node *node = &t->fn->stmts.data[id];
    if (id == 0) return;
    if (node->kind != BERTH_STMT_SEQ) print_shared(t, id);
    berth_doc_hard_line(t->p->doc);
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ: print_seq(t, id); break;
    case BERTH_STMT_FOR: print_for(t, node); break;
    case BERTH_STMT_STORE:
        berth_doc_open(t->p->doc, 4);
        print_access(t, node->buf, berth_tfn_store_indices(t->fn, id), node->index_count);
        berth_doc_text(t->p->doc, " =");
        berth_doc_line(t->p->doc);
        print_expr(t, node->value, 0);
        berth_doc_close(t->p->doc);
        break;
    case BERTH_STMT_LET: print_let(t, node); break;
    case BERTH_STMT_IF:
        berth_doc_text(t->p->doc, "if ");
        print_grouped(t, node->value);
        print_block(t, node->body);
        if (!node->other) break;
        berth_doc_text(t->p->doc, " else");
        print_block(t, node->other);
        break;
    case BERTH_STMT_ALLOC:
        berth_doc_textf(t->p->doc, "%s ", berth_buf_scope_name(t->fn->bufs.data[node->buf].scope));
        print_buf_declaration(t, node->buf);
        break;
    case BERTH_STMT_BARRIER:
        berth_doc_text(t->p->doc, "barrier");
        if (berth_tfn_pending_of(node) >= 0)
            berth_doc_textf(t->p->doc, " pending %d", berth_tfn_pending_of(node));
        if (berth_tfn_products_of(node) > 0)
            berth_doc_textf(t->p->doc, " products %d", berth_tfn_products_of(node));
        break;
    case BERTH_STMT_CALL: print_call_stmt(t, node); break;
    default: break;
    }
}

// ---- functions ----------------------------------------------------------------------------------

static tfn_printer *make_printer(berth_text_printer *p, const berth_tfn *fn) {
    tfn_printer *t = berth_arena_new(p->scratch, tfn_printer);
    t->p = p;
    t->fn = fn;
    t->var_label = berth_arena_new_array(p->scratch, uint32_t, fn->vars.count);
    t->buf_label = berth_arena_new_array(p->scratch, uint32_t, fn->bufs.count);
    t->stamp = berth_arena_new_array(p->scratch, uint32_t, fn->exprs.count);
    t->references = berth_arena_new_array(p->scratch, uint32_t, fn->exprs.count);
    t->size = berth_arena_new_array(p->scratch, uint64_t, fn->exprs.count);
    t->number = berth_arena_new_array(p->scratch, uint32_t, fn->exprs.count);
    return t;
}

static void print_signature(tfn_printer *t) {
    berth_doc_text(t->p->doc, "(");
    berth_doc_open(t->p->doc, 4);
    for (uint32_t i = 0; i < t->fn->param_count; ++i) {
        if (i) {
            berth_doc_text(t->p->doc, ",");
            berth_doc_fill_line(t->p->doc);
        }
        print_buf_declaration(t, i);
    }
    berth_doc_close(t->p->doc);
    berth_doc_text(t->p->doc, ")");
    if (t->fn->flops == 0 && !signbit(t->fn->flops)) return;
    char text[40];
    berth_text__format_float(t->fn->flops, text);
    berth_doc_textf(t->p->doc, " flops %s", text);
}

static void print_body(tfn_printer *t) {
    for (uint32_t i = t->fn->param_count; i < t->fn->bufs.count; ++i) {
        if (t->fn->bufs.data[i].scope != BERTH_SCOPE_WORKSPACE) continue;
        berth_doc_hard_line(t->p->doc);
        berth_doc_text(t->p->doc, "workspace ");
        print_buf_declaration(t, i);
    }
    const berth_stmt_node *body = &t->fn->stmts.data[t->fn->body];
    if (body->kind != BERTH_STMT_SEQ) print_stmt(t, t->fn->body);
    for (uint32_t i = 0; body->kind == BERTH_STMT_SEQ && i < body->count; ++i)
        print_stmt(t, berth_tfn_seq_items(t->fn, t->fn->body)[i]);
}

void berth_text__print_tfn_signature(berth_text_printer *p, berth_func_id function) {
    tfn_printer *t = make_printer(p, berth_tfn_get(p->module, function));
    p->user = t;
    print_signature(t);
    berth_loc_id loc = berth_module_function(p->module, function)->loc;
    if (p->options.no_locations || berth_text__same_loc(p, t->fn->loc, loc)) return;
    berth_doc_text(p->doc, " from");
    berth_text_print_loc(p, t->fn->loc);
    if (t->fn->loc == 0) berth_doc_text(p->doc, " #0");
}

void berth_text__print_tfn_body(berth_text_printer *p, berth_func_id function) {
    (void)function;
    print_body(p->user);
}

void berth_tfn_print(const berth_tfn *fn, berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_text_options options = {.no_locations = true};
    berth_text_printer p = berth_text__printer_make(fn->module, scratch, &options);
    tfn_printer *t = make_printer(&p, fn);
    print_signature(t);
    berth_doc_text(p.doc, " {");
    berth_doc_indent(p.doc, 2);
    print_body(t);
    berth_doc_indent(p.doc, -2);
    berth_doc_hard_line(p.doc);
    berth_doc_text(p.doc, "}");
    berth_doc_hard_line(p.doc);
    berth_doc_render(p.doc, p.options.width, out);
    berth_arena_destroy(scratch);
}
