// Index arithmetic and conditions of the C-family printer.
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/template.h"

static const berth_expr_node *node_of(const berth_c_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

// What follows from the sizes of buffers is marked where a kernel may serve several sizes.
const char *berth_c_number(berth_c_printer *p, int64_t value) {
    return berth_arena_printf(
        p->arena,
        p->marks_numbers ? BERTH_TEMPLATE_NUMBER_BEGIN "%lld" BERTH_TEMPLATE_NUMBER_END : "%lld",
        (long long)value);
}

const char *berth_c_hint(berth_c_printer *p, int64_t value) {
    return berth_arena_printf(
        p->arena,
        p->marks_numbers ? BERTH_TEMPLATE_HINT_BEGIN "%lld" BERTH_TEMPLATE_NUMBER_END : "%lld",
        (long long)value);
}

int64_t berth_c_array_size(const berth_c_printer *p, berth_buf buf, int64_t count) {
    enum { least = 16, least_row = 512 };  // of a row that may have many lengths
    int64_t size = count > least ? least_row : least;
    if (!p->marks_numbers || p->fn->bufs.data[buf].scope != BERTH_SCOPE_PRIVATE)
        return count ? count : 1;
    while (size < count) size *= 2;
    return size;
}

// ---- indices ------------------------------------------------------------------------------------

static uint32_t depth_of(const berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT) return 0;
    if (node->kind == BERTH_EXPR_VAR) return p->loop_depth[node->var];
    if (node->kind == BERTH_EXPR_LOAD) return p->open_loops;
    uint32_t depth = depth_of(p, node->a);
    uint32_t b = depth_of(p, node->b);
    uint32_t c = depth_of(p, node->c);
    if (b > depth) depth = b;
    return c > depth ? c : depth;
}

// Helper functions for 32 bits where the index type and both operands allow it: many devices have
// no 64-bit integer unit.
static const char *helper_bits(const berth_c_printer *p, berth_expr_node node) {
    const berth_range a = berth_range_of(p->fn, &p->ranges, node.a);
    const berth_range b = berth_range_of(p->fn, &p->ranges, node.b);
    bool fits = p->language->index_bits == 32 && a.low >= INT32_MIN && b.low >= INT32_MIN &&
                a.high <= INT32_MAX && b.high <= INT32_MAX;
    return fits ? "i32" : "i64";
}

static const char *atom_binary(berth_c_printer *p, berth_expr_node node) {
    const char *a = berth_c_index(p, node.a);
    const char *b = berth_c_index(p, node.b);
    switch ((berth_binary)node.op) {
    case BERTH_BINARY_ADD: return berth_arena_printf(p->arena, "(%s + %s)", a, b);
    case BERTH_BINARY_SUB: return berth_arena_printf(p->arena, "(%s - %s)", a, b);
    case BERTH_BINARY_MUL: return berth_arena_printf(p->arena, "(%s * %s)", a, b);
    case BERTH_BINARY_MIN:
        return berth_arena_printf(p->arena, "berth_min_%s(%s, %s)", helper_bits(p, node), a, b);
    case BERTH_BINARY_MAX:
        return berth_arena_printf(p->arena, "berth_max_%s(%s, %s)", helper_bits(p, node), a, b);
    case BERTH_BINARY_DIV:
    case BERTH_BINARY_MOD: {
        bool modulo = node.op == BERTH_BINARY_MOD;
        if (berth_range_of(p->fn, &p->ranges, node.a).low >= 0)
            return berth_arena_printf(p->arena, "(%s %s %s)", a, modulo ? "%" : "/", b);
        return berth_arena_printf(p->arena, "berth_floor_%s_%s(%s, %s)", modulo ? "mod" : "div",
                                  helper_bits(p, node), a, b);
    }
    default:
        berth_c_fail(
            p, berth_status_make(BERTH_UNSUPPORTED, "operator %d of index arithmetic", node.op));
        return "0";
    }
}

static const char *atom(berth_c_printer *p, berth_expr id) {
    const berth_expr_node node = *node_of(p, id);
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_INT: return berth_c_number(p, node.i);
    case BERTH_EXPR_VAR: return berth_c_var_name(p, node.var);
    case BERTH_EXPR_BINARY: return atom_binary(p, node);
    case BERTH_EXPR_UNARY:
        if (node.op == BERTH_UNARY_NEG)
            return berth_arena_printf(p->arena, "(-%s)", berth_c_index(p, node.a));
        break;
    case BERTH_EXPR_SELECT:
        return berth_arena_printf(p->arena, "(%s ? %s : %s)", berth_c_condition(p, node.a),
                                  berth_c_index(p, node.b), berth_c_index(p, node.c));
    case BERTH_EXPR_CAST: {
        berth_dtype from = (berth_dtype)node_of(p, node.a)->dtype;
        const char *value = berth_c_value(p, node.a);
        if (berth_dtype_is_float(from))
            return berth_arena_printf(p->arena, "berth_cast_%s_i64(%s)",
                                      from == BERTH_DTYPE_F64 ? "f64" : "f32", value);
        return berth_arena_printf(p->arena, "(%s)%s", p->language->index_type, value);
    }
    case BERTH_EXPR_LOAD:
        return berth_arena_printf(p->arena, "(%s)%s", p->language->index_type,
                                  berth_c_value(p, id));
    default: break;
    }
    berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "index expression of kind %d", node.kind));
    return "0";
}

static void sort_terms(const berth_c_printer *p, berth_linear *form) {
    for (int i = 1; i < form->count; ++i) {
        berth_linear_term term = form->terms[i];
        uint32_t depth = depth_of(p, term.atom);
        int j = i;
        for (; j > 0 && depth_of(p, form->terms[j - 1].atom) > depth; --j)
            form->terms[j] = form->terms[j - 1];
        form->terms[j] = term;
    }
}

// Terms from the outermost loop inwards and the constant last, so that the C compiler hoists what
// does not change.
const char *berth_c_linear(berth_c_printer *p, berth_linear form) {
    if (form.count == 0) return berth_c_number(p, form.constant);
    sort_terms(p, &form);
    berth_strbuf text = berth_strbuf_make(p->arena);
    bool single = form.count == 1 && form.constant == 0;
    if (!single) berth_strbuf_add(&text, "(");
    for (int i = 0; i < form.count; ++i) {
        int64_t c = form.terms[i].coefficient;
        if (i)
            berth_strbuf_add(&text, c < 0 ? " - " : " + ");
        else if (c < 0)
            berth_strbuf_add(&text, "-");
        int64_t magnitude = c < 0 ? -c : c;
        const char *what = atom(p, form.terms[i].atom);
        if (magnitude == 1)
            berth_strbuf_add(&text, what);
        else if (single)
            berth_strbuf_addf(&text, "(%s * %s)", what, berth_c_number(p, magnitude));
        else
            berth_strbuf_addf(&text, "%s * %s", what, berth_c_number(p, magnitude));
    }
    if (form.constant) {
        int64_t magnitude = form.constant < 0 ? -form.constant : form.constant;
        berth_strbuf_addf(&text, " %s %s", form.constant < 0 ? "-" : "+",
                          berth_c_number(p, magnitude));
    }
    if (!single) berth_strbuf_add(&text, ")");
    return berth_strbuf_text(&text);
}

const char *berth_c_index(berth_c_printer *p, berth_expr id) {
    return berth_c_linear(p, berth_linear_of(p->fn, &p->ranges, id));
}

// ---- conditions ---------------------------------------------------------------------------------

// a < b and the like over indices: known from ranges, or a text.
static const char *index_comparison(berth_c_printer *p, berth_expr_node node) {
    berth_expr difference = berth_tfn_binary(p->fn, BERTH_BINARY_SUB, node.a, node.b);
    berth_linear form = berth_linear_of(p->fn, &p->ranges, difference);
    berth_range range = berth_linear_range(p->fn, &p->ranges, &form);
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    int which = node.op - BERTH_BINARY_EQ;
    bool all[] = {range.low == 0 && range.high == 0, range.low > 0 || range.high < 0,
                  range.high<0, range.high <= 0, range.low> 0, range.low >= 0};
    bool none[] = {all[1], all[0], all[5], all[4], all[3], all[2]};
    if (all[which]) return "1";
    if (none[which]) return "0";
    return berth_arena_printf(p->arena, "(%s %s %s)", berth_c_index(p, node.a), signs[which],
                              berth_c_index(p, node.b));
}

bool berth_c_is_index_comparison(const berth_c_printer *p, const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY && node->op >= BERTH_BINARY_EQ &&
           node->op <= BERTH_BINARY_GE && node->lanes == 1 && node_of(p, node->a)->is_index;
}

const char *berth_c_condition(berth_c_printer *p, berth_expr id) {
    const berth_expr_node node = *node_of(p, id);
    if (berth_c_is_index_comparison(p, &node)) return index_comparison(p, node);
    if (node.kind == BERTH_EXPR_BINARY && node.lanes == 1 &&
        (node.op == BERTH_BINARY_AND || node.op == BERTH_BINARY_OR)) {
        bool is_and = node.op == BERTH_BINARY_AND;
        const char *a = berth_c_condition(p, node.a);
        if (strcmp(a, is_and ? "0" : "1") == 0) return a;
        const char *b = berth_c_condition(p, node.b);
        if (strcmp(a, is_and ? "1" : "0") == 0) return b;
        if (strcmp(b, is_and ? "0" : "1") == 0) return b;
        if (strcmp(b, is_and ? "1" : "0") == 0) return a;
        return berth_arena_printf(p->arena, "(%s %s %s)", a, is_and ? "&&" : "||", b);
    }
    if (node.kind == BERTH_EXPR_UNARY && node.op == BERTH_UNARY_NOT && node.lanes == 1) {
        const char *a = berth_c_condition(p, node.a);
        if (strcmp(a, "0") == 0) return "1";
        if (strcmp(a, "1") == 0) return "0";
        return berth_arena_printf(p->arena, "(!%s)", a);
    }
    return berth_c_value(p, id);
}
