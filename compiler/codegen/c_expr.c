// Expressions of the C-family printer.
#include <math.h>
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/template.h"

static const berth_expr_node *node_of(const berth_c_printer *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

// ---- values -------------------------------------------------------------------------------------

// "f32", "f32x8": the suffix of helper functions.
static const char *suffix(berth_c_printer *p, berth_dtype dtype, int lanes) {
    const char *name = berth_dtype_name(berth_c_compute_type(dtype));
    if (lanes == 1) return name;
    berth_c_value_type(p, dtype, lanes);
    return berth_arena_printf(p->arena, "%sx%d", name, lanes);
}

static const char *float_literal(berth_c_printer *p, berth_dtype dtype, double x) {
    bool wide = dtype == BERTH_DTYPE_F64;
    if (isnan(x)) return wide ? "BERTH_NAN_F64" : "BERTH_NAN_F32";
    if (isinf(x))
        return berth_arena_printf(p->arena, "(%sBERTH_INF_F%s)", x < 0 ? "-" : "",
                                  wide ? "64" : "32");
    if (p->marks_numbers && !wide && x >= 2 && x <= 1 << 24 && x == floor(x))
        return berth_arena_printf(p->arena,
                                  BERTH_TEMPLATE_FLOAT_BEGIN "%lld" BERTH_TEMPLATE_NUMBER_END,
                                  (long long)x);  // the number of elements of a mean, say
    char digits[32];
    if (wide)
        berth_format_f64(x, digits);
    else
        berth_format_f32((float)x, digits);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    const char *tail = wide ? p->language->f64_suffix : "f";
    return berth_arena_printf(p->arena, x < 0 || (x == 0 && signbit(x)) ? "(%s%s%s)" : "%s%s%s",
                              digits, point, tail);
}

static const char *int_literal(berth_c_printer *p, berth_dtype dtype, int64_t x) {
    if (dtype == BERTH_DTYPE_BOOL) return x ? "1" : "0";
    bool is_unsigned = !berth_dtype_is_signed(dtype);
    bool wide = berth_dtype_size_bytes(dtype) == 8;
    if (is_unsigned)
        return berth_arena_printf(p->arena, "%llu%s", (unsigned long long)x, wide ? "ul" : "u");
    if (x == INT64_MIN) return "(-9223372036854775807l - 1)";
    if (!wide && x == INT32_MIN) return "(-2147483647 - 1)";
    return berth_arena_printf(p->arena, x < 0 ? "(%lld%s)" : "%lld%s", (long long)x,
                              wide ? "l" : "");
}

const char *berth_c_splat(berth_c_printer *p, berth_dtype dtype, const char *scalar, int lanes) {
    const char *texts[64];
    for (int i = 0; i < lanes && i < 64; ++i) texts[i] = scalar;
    return p->language->vector_literal(p, dtype, texts, lanes);
}

const char *berth_c_temporary(berth_c_printer *p, berth_dtype dtype, int lanes, const char *text) {
    const char *name = berth_arena_printf(p->arena, "t%u", p->next_temporary++);
    berth_c_line(p, "const %s %s = %s;", berth_c_value_type(p, dtype, lanes), name, text);
    return name;
}

static const char *call(berth_c_printer *p, const char *op, berth_dtype dtype, int lanes,
                        const char *arguments) {
    return berth_arena_printf(p->arena, "berth_%s_%s(%s)", op, suffix(p, dtype, lanes), arguments);
}

static const char *unary(berth_c_printer *p, berth_expr_node node) {
    static const char *const names[] = {
#define NAME(id, text) text,
        BERTH_TFN_UNARY(NAME)
#undef NAME
    };
    berth_dtype from = (berth_dtype)node_of(p, node.a)->dtype;
    const char *a = berth_c_value(p, node.a);
    bool is_float = berth_dtype_is_float(from);
    switch ((berth_unary)node.op) {
    case BERTH_UNARY_NEG:
        if (is_float || node.lanes > 1) return berth_arena_printf(p->arena, "(-%s)", a);
        return berth_arena_printf(p->arena, "(%s)(0u - (%s)%s)", berth_c_value_type(p, from, 1),
                                  berth_dtype_size_bytes(from) == 8 ? "uint64_t" : "uint32_t", a);
    case BERTH_UNARY_NOT:
        return berth_arena_printf(p->arena, node.lanes > 1 ? "(~%s)" : "(!%s)", a);
    case BERTH_UNARY_BIT_NOT:
        return berth_arena_printf(p->arena, "(%s)(~%s)", berth_c_value_type(p, from, node.lanes),
                                  a);
    case BERTH_UNARY_FLOOR:
    case BERTH_UNARY_CEIL:
    case BERTH_UNARY_ROUND:
    case BERTH_UNARY_TRUNC:
        if (!is_float) return a;
        break;
    case BERTH_UNARY_IS_NAN:
    case BERTH_UNARY_IS_INF:
        if (!is_float) return "0";
        break;
    default: break;
    }
    return call(p, names[node.op], from, node.lanes, a);
}

static bool is_plain_float_const(const berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (node->kind == BERTH_EXPR_BROADCAST) node = node_of(p, node->a);
    return node->kind == BERTH_EXPR_FLOAT && !isnan(node->f);
}

static bool is_infinity(const berth_c_printer *p, berth_expr id, bool negative) {
    const berth_expr_node *node = node_of(p, id);
    if (node->kind == BERTH_EXPR_BROADCAST) node = node_of(p, node->a);
    return node->kind == BERTH_EXPR_FLOAT && isinf(node->f) && (node->f < 0) == negative;
}

// x, where `id` is x with the neutral value of the operation instead of NaN; else 0. A function that was
// read may have x twice.
static berth_expr without_nan(const berth_c_printer *p, berth_expr id, bool maximum) {
    const berth_expr_node *node = node_of(p, id);
    if (node->kind != BERTH_EXPR_SELECT || !is_infinity(p, node->b, maximum)) return 0;
    const berth_expr_node *asked = node_of(p, node->a);
    bool is_nan = asked->kind == BERTH_EXPR_UNARY && asked->op == BERTH_UNARY_IS_NAN;
    return is_nan && berth_tfn_expr_equal(p->fn, asked->a, node->c) ? node->c : 0;
}

// min and max with a constant need no care for NaN in the second operand: one instruction.
// Nor do they where NaN in it is skipped, as windows do: those instructions keep the first operand then.
static const char *min_max(berth_c_printer *p, berth_expr_node node, berth_dtype from) {
    const char *op = node.op == BERTH_BINARY_MIN ? "min" : "max";
    bool is_float = berth_dtype_is_float(from);
    berth_expr x = is_float ? without_nan(p, node.b, node.op == BERTH_BINARY_MAX) : 0;
    const char *a = berth_c_value(p, node.a);
    const char *b = berth_c_value(p, x ? x : node.b);
    if (x)
        return call(p, node.op == BERTH_BINARY_MIN ? "min_const" : "max_const", from, node.lanes,
                    berth_arena_printf(p->arena, "%s, %s", a, b));
    const char *ab = berth_arena_printf(p->arena, "%s, %s", a, b);
    if (!is_float) return call(p, op, from, node.lanes, ab);
    if (is_plain_float_const(p, node.b))
        return call(p, node.op == BERTH_BINARY_MIN ? "min_const" : "max_const", from, node.lanes,
                    ab);
    if (is_plain_float_const(p, node.a))
        return call(p, node.op == BERTH_BINARY_MIN ? "min_const" : "max_const", from, node.lanes,
                    berth_arena_printf(p->arena, "%s, %s", b, a));
    return call(p, op, from, node.lanes, ab);
}

static const char *integer_binary(berth_c_printer *p, berth_expr_node node, berth_dtype from,
                                  const char *a, const char *b) {
    const char *type = berth_c_value_type(p, from, 1);
    const char *wide = berth_dtype_size_bytes(from) == 8 ? "uint64_t" : "uint32_t";
    const char *ab = berth_arena_printf(p->arena, "%s, %s", a, b);
    const char *sign = NULL;
    switch ((berth_binary)node.op) {
    case BERTH_BINARY_ADD: sign = "+"; break;
    case BERTH_BINARY_SUB: sign = "-"; break;
    case BERTH_BINARY_MUL: sign = "*"; break;
    case BERTH_BINARY_BIT_AND: sign = "&"; break;
    case BERTH_BINARY_BIT_OR: sign = "|"; break;
    case BERTH_BINARY_BIT_XOR: sign = "^"; break;
    case BERTH_BINARY_DIV: return call(p, "div", from, 1, ab);
    case BERTH_BINARY_MOD: return call(p, "mod", from, 1, ab);
    case BERTH_BINARY_SHL: return call(p, "shl", from, 1, ab);
    case BERTH_BINARY_SHR:
        if (node.lanes == 1) return call(p, "shr", from, 1, ab);
        sign = ">>";  // by a constant within the type (schedule/vectorize.c)
        break;
    case BERTH_BINARY_POW: return call(p, "pow", from, 1, ab);
    default:
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "operator %d of integers", node.op));
        return "0";
    }
    if (node.lanes > 1) return berth_arena_printf(p->arena, "(%s %s %s)", a, sign, b);
    return berth_arena_printf(p->arena, "(%s)((%s)%s %s (%s)%s)", type, wide, a, sign, wide, b);
}

static const char *binary(berth_c_printer *p, berth_expr_node node) {
    static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    berth_dtype from = (berth_dtype)node_of(p, node.a)->dtype;
    if (node.op == BERTH_BINARY_MIN || node.op == BERTH_BINARY_MAX) return min_max(p, node, from);
    const char *narrow = p->language->narrow_sum ? p->language->narrow_sum(p, node) : NULL;
    if (narrow) return narrow;
    const char *a = berth_c_value(p, node.a);
    const char *b = berth_c_value(p, node.b);
    bool vector = node.lanes > 1;
    if (node.op >= BERTH_BINARY_EQ && node.op <= BERTH_BINARY_GE) {
        const char *text = berth_arena_printf(p->arena, "(%s %s %s)", a,
                                              comparisons[node.op - BERTH_BINARY_EQ], b);
        return vector && berth_c_is_narrow(from) ? call(p, "mask", from, node.lanes, text) : text;
    }
    switch ((berth_binary)node.op) {
    case BERTH_BINARY_AND:
        return berth_arena_printf(p->arena, vector ? "(%s & %s)" : "(%s && %s)", a, b);
    case BERTH_BINARY_OR:
        return berth_arena_printf(p->arena, vector ? "(%s | %s)" : "(%s || %s)", a, b);
    case BERTH_BINARY_XOR:
        return berth_arena_printf(p->arena, vector ? "(%s ^ %s)" : "(!%s != !%s)", a, b);
    default: break;
    }
    if (!berth_dtype_is_float(from)) return integer_binary(p, node, from, a, b);
    const char *ab = berth_arena_printf(p->arena, "%s, %s", a, b);
    switch ((berth_binary)node.op) {
    case BERTH_BINARY_ADD: return berth_arena_printf(p->arena, "(%s + %s)", a, b);
    case BERTH_BINARY_SUB: return berth_arena_printf(p->arena, "(%s - %s)", a, b);
    case BERTH_BINARY_MUL: return berth_arena_printf(p->arena, "(%s * %s)", a, b);
    case BERTH_BINARY_DIV: return berth_arena_printf(p->arena, "(%s / %s)", a, b);
    case BERTH_BINARY_MOD: return call(p, "mod", from, node.lanes, ab);
    case BERTH_BINARY_POW: return call(p, "pow", from, node.lanes, ab);
    case BERTH_BINARY_ATAN2: return call(p, "atan2", from, node.lanes, ab);
    default:
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "operator %d of floats", node.op));
        return "0";
    }
}

bool berth_c_rounds(const berth_c_printer *p, berth_expr id, berth_dtype to, berth_expr *out_x,
                    int *out_zero) {
    const berth_expr_node *node = node_of(p, id);
    *out_zero = 0;
    if (node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_ADD) {
        const berth_expr_node *zero = node_of(p, node->b);
        if (zero->kind == BERTH_EXPR_BROADCAST) zero = node_of(p, zero->a);
        int bits = 8 * (int)berth_dtype_size_bytes(to) - (berth_dtype_is_signed(to) ? 1 : 0);
        if (zero->kind != BERTH_EXPR_FLOAT || zero->f != rint(zero->f)) return false;
        if (zero->f < (berth_dtype_is_signed(to) ? -ldexp(1, bits) : 0)) return false;
        if (zero->f >= ldexp(1, bits)) return false;
        *out_zero = (int)zero->f;
        node = node_of(p, node->a);
    }
    *out_x = node->a;
    return node->kind == BERTH_EXPR_UNARY && node->op == BERTH_UNARY_ROUND &&
           node->dtype == BERTH_DTYPE_F32;
}

// What quantisation ends with, as one function: rounding, the zero point, saturation. NULL: it is
// something else.
static const char *nearest(berth_c_printer *p, berth_expr_node node) {
    berth_dtype to = (berth_dtype)node.dtype;
    berth_expr x = 0;
    int zero = 0;
    if (!berth_c_is_narrow(to) || node.is_index || !berth_c_rounds(p, node.a, to, &x, &zero))
        return NULL;
    berth_c_value_type(p, to, node.lanes);
    const char *op = berth_arena_printf(p->arena, "nearest_%s", berth_dtype_name(to));
    return call(p, op, BERTH_DTYPE_F32, node.lanes,
                berth_arena_printf(p->arena, "%s, %d", berth_c_value(p, x), zero));
}

static const char *cast_vector(berth_c_printer *p, berth_expr_node node, berth_dtype from,
                               const char *a) {
    berth_dtype to = (berth_dtype)node.dtype;
    bool to_half = to != berth_c_compute_type(to);
    bool known =
        (from == BERTH_DTYPE_F32 || from == BERTH_DTYPE_I32 || berth_c_is_narrow(from) ||
         from != berth_c_compute_type(from)) &&
        (to == BERTH_DTYPE_F32 || to == BERTH_DTYPE_I32 || berth_c_is_narrow(to) || to_half);
    if (!known || node.is_index) {
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "a cast of vectors of %s to %s",
                                          berth_dtype_name(from), berth_dtype_name(to)));
        return a;
    }
    berth_c_value_type(p, from, node.lanes);
    berth_c_value_type(p, to, node.lanes);
    from = berth_c_compute_type(from);
    if (from != berth_c_compute_type(to)) {
        const char *op =
            berth_arena_printf(p->arena, "cast_%s", berth_dtype_name(berth_c_compute_type(to)));
        a = call(p, op, from, node.lanes, a);
    }
    return to_half ? berth_arena_printf(p->arena, "berth_round_%s_f32x%d(%s)", berth_dtype_name(to),
                                        node.lanes, a)
                   : a;
}

// The indices of a ramp as numbers.
static const char *numbers_of_ramp(berth_c_printer *p, berth_expr_node ramp, berth_dtype to) {
    const char *first = berth_c_index(p, ramp.a);
    const char *texts[64];
    for (int l = 0; l < ramp.lanes && l < 64; ++l)
        texts[l] = berth_arena_printf(p->arena, "%s + %d", first, l);
    return p->language->vector_literal(p, to, texts, ramp.lanes);
}

static const char *cast(berth_c_printer *p, berth_expr_node node) {
    const berth_expr_node from = *node_of(p, node.a);
    berth_dtype to = (berth_dtype)node.dtype;
    if (from.is_index && from.kind == BERTH_EXPR_RAMP) return numbers_of_ramp(p, from, to);
    const char *near = nearest(p, node);
    if (near) return near;
    const char *a = from.is_index ? berth_c_index(p, node.a) : berth_c_value(p, node.a);
    const char *type = berth_c_value_type(p, to, node.lanes);
    if (node.lanes > 1) return cast_vector(p, node, (berth_dtype)from.dtype, a);
    if (to == BERTH_DTYPE_BOOL) return berth_arena_printf(p->arena, "(%s != 0)", a);
    if (berth_dtype_is_float((berth_dtype)from.dtype) && !berth_dtype_is_float(to))
        return berth_arena_printf(p->arena, "berth_cast_%s_%s(%s)",
                                  suffix(p, (berth_dtype)from.dtype, 1), berth_dtype_name(to), a);
    if (to == BERTH_DTYPE_F16 || to == BERTH_DTYPE_BF16)
        return berth_arena_printf(p->arena, "berth_round_%s((float)%s)", berth_dtype_name(to), a);
    return berth_arena_printf(p->arena, "((%s)%s)", type, a);
}

// ---- sharing ------------------------------------------------------------------------------------

static bool is_trivial(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
           node->kind == BERTH_EXPR_VAR || node->is_index;
}

// Loads under `id`, and whether one of the nodes there would become a temporary.
static void look_inside(const berth_c_printer *p, berth_expr id, bool *has_load, bool *has_shared) {
    const berth_expr_node *node = node_of(p, id);
    if (!id || is_trivial(node) || (id < p->memo_count && p->memo[id])) return;
    if (id < p->memo_count && p->uses[id] > 1) *has_shared = true;
    if (*has_load && *has_shared) return;
    if (node->kind == BERTH_EXPR_LOAD)
        *has_load = true;
    else {
        look_inside(p, node->a, has_load, has_shared);
        look_inside(p, node->b, has_load, has_shared);
        look_inside(p, node->c, has_load, has_shared);
    }
}

// Names that a branch made are not visible after it.
static void forget_since(berth_c_printer *p, uint32_t first, const char *const *before) {
    for (uint32_t i = first; i < p->touched.count; ++i)
        p->memo[p->touched.data[i]] = before[i - first];
}

static void branch(berth_c_printer *p, berth_expr id, const char *target) {
    const char **before = berth_arena_new_array(p->arena, const char *, p->touched.count + 1);
    for (uint32_t i = 0; i < p->touched.count; ++i) before[i] = p->memo[p->touched.data[i]];
    p->depth++;
    const char *text = berth_c_value(p, id);
    berth_c_line(p, "%s = %s;", target, text);
    p->depth--;
    forget_since(p, 0, before);
}

static const char *select_value(berth_c_printer *p, berth_expr_node node) {
    const char *type = berth_c_value_type(p, (berth_dtype)node.dtype, node.lanes);
    if (node_of(p, node.a)->lanes > 1) {
        const char *mask = berth_c_value(p, node.a);
        const char *b = berth_c_value(p, node.b);
        const char *c = berth_c_value(p, node.c);
        return call(p, "select", (berth_dtype)node.dtype, node.lanes,
                    berth_arena_printf(p->arena, "%s, %s, %s", mask, b, c));
    }
    const char *condition = berth_c_condition(p, node.a);
    if (strcmp(condition, "1") == 0) return berth_c_value(p, node.b);
    if (strcmp(condition, "0") == 0) return berth_c_value(p, node.c);
    if (berth_c_computes_both(p, &node)) {
        const char *first = berth_c_value(p, node.b);
        first = berth_c_temporary(p, (berth_dtype)node.dtype, 1, first);
        const char *second = berth_c_value(p, node.c);
        second = berth_c_temporary(p, (berth_dtype)node.dtype, 1, second);
        return berth_arena_printf(p->arena, "(%s ? %s : %s)", condition, first, second);
    }
    bool has_load = false;
    bool has_shared = false;
    look_inside(p, node.b, &has_load, &has_shared);
    look_inside(p, node.c, &has_load, &has_shared);
    if (has_load && (has_shared || node.lanes > 1)) {
        const char *name = berth_arena_printf(p->arena, "t%u", p->next_temporary++);
        berth_c_line(p, "%s %s;", type, name);
        berth_c_line(p, "if (%s) {", condition);
        branch(p, node.b, name);
        berth_c_line(p, "} else {");
        branch(p, node.c, name);
        berth_c_line(p, "}");
        return name;
    }
    const char *b = berth_c_value(p, node.b);
    const char *c = berth_c_value(p, node.c);
    return berth_arena_printf(p->arena, "(%s ? %s : %s)", condition, b, c);
}

static const char *fma_value(berth_c_printer *p, berth_expr_node node) {
    const char *a = berth_c_value(p, node.a);
    const char *b = berth_c_value(p, node.b);
    const char *c = berth_c_value(p, node.c);
    if (!berth_dtype_is_float((berth_dtype)node.dtype))
        return berth_arena_printf(p->arena, "(%s * %s + %s)", a, b, c);
    return call(p, "fma", (berth_dtype)node.dtype, node.lanes,
                berth_arena_printf(p->arena, "%s, %s, %s", a, b, c));
}

static const char *broadcast(berth_c_printer *p, berth_expr_node node) {
    berth_dtype dtype = (berth_dtype)node.dtype;
    const char *scalar = berth_c_value(p, node.a);
    const berth_expr_node *inner = node_of(p, node.a);
    bool simple = inner->kind == BERTH_EXPR_FLOAT || inner->kind == BERTH_EXPR_INT ||
                  inner->kind == BERTH_EXPR_VAR;
    if (!simple && scalar[0] != 't') scalar = berth_c_temporary(p, dtype, 1, scalar);
    if (dtype == BERTH_DTYPE_BOOL) scalar = berth_arena_printf(p->arena, "(%s ? -1 : 0)", scalar);
    return berth_c_splat(p, dtype == BERTH_DTYPE_BOOL ? BERTH_DTYPE_I32 : dtype, scalar,
                         node.lanes);
}

// Its text, where a language has one for an operand of intrinsics of work-items together; else NULL.
static const char *fragment_text(berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = node_of(p, id);
    if (node->kind == BERTH_EXPR_LOAD) return p->language->fragment(p, id);
    return node->kind == BERTH_EXPR_VAR && p->is_fragment[node->var] ? berth_c_value(p, id) : NULL;
}

// An intrinsic of work-items together: its operands are fragments.
static const char *together(berth_c_printer *p, berth_expr_node node,
                            const berth_intrinsic_facts *facts) {
    const char *b = fragment_text(p, node.b);
    const char *c = node.c ? fragment_text(p, node.c) : "";
    berth_c_value_type(p, facts->operands[0].dtype, facts->operands[0].lanes);
    if (!b || !c)
        berth_c_fail(p,
                     berth_status_make(BERTH_UNSUPPORTED,
                                       "operands of %s that are no parts of the memory of a group",
                                       facts->name));
    return berth_arena_printf(p->arena, "berth_%s(%s, %s%s%s)", facts->name,
                              berth_c_value(p, node.a), b, node.c ? ", " : "", c);
}

static const char *intrinsic(berth_c_printer *p, berth_expr_node node) {
    const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)node.op);
    if (!p->language->intrinsic_text(facts)) {
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "the intrinsic %s in this language",
                                          facts->name));
        return "0";
    }
    p->intrinsics[node.op] = true;
    if (p->language->fragment && facts->cuda) return together(p, node, facts);
    for (int i = 0; i < berth_intrinsic_operand_count(facts); ++i)
        berth_c_value_type(p, facts->operands[i].dtype, facts->operands[i].lanes);
    const char *a = berth_c_value(p, node.a);
    const char *b = berth_c_value(p, node.b);
    if (!node.c) return berth_arena_printf(p->arena, "berth_%s(%s, %s)", facts->name, a, b);
    const char *c = berth_c_value(p, node.c);
    return berth_arena_printf(p->arena, "berth_%s(%s, %s, %s)", facts->name, a, b, c);
}

static const char *compute(berth_c_printer *p, berth_expr id) {
    const berth_expr_node node = *node_of(p, id);
    berth_dtype dtype = (berth_dtype)node.dtype;
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_INT: return int_literal(p, dtype, node.i);
    case BERTH_EXPR_SYMBOL: return int_literal(p, dtype, 0);  // refused: berth_tfn_check_static
    case BERTH_EXPR_FLOAT: return float_literal(p, dtype, node.f);
    case BERTH_EXPR_VAR: return berth_c_var_name(p, node.var);
    case BERTH_EXPR_LOAD: return berth_c_load(p, id);
    case BERTH_EXPR_UNARY: return unary(p, node);
    case BERTH_EXPR_BINARY:
        return berth_c_is_index_comparison(p, &node) ? berth_c_condition(p, id) : binary(p, node);
    case BERTH_EXPR_FMA: return fma_value(p, node);
    case BERTH_EXPR_SELECT: return select_value(p, node);
    case BERTH_EXPR_CAST: return cast(p, node);
    case BERTH_EXPR_BROADCAST: return broadcast(p, node);
    case BERTH_EXPR_REDUCE_ADD: {
        const berth_expr_node *a = node_of(p, node.a);
        return call(p, "reduce_add", dtype, a->lanes, berth_c_value(p, node.a));
    }
    case BERTH_EXPR_INTRINSIC: return intrinsic(p, node);
    case BERTH_EXPR_RAMP:
    case BERTH_EXPR_NONE: break;
    }
    berth_c_fail(
        p, berth_status_make(BERTH_UNSUPPORTED, "expression of kind %d as a value", node.kind));
    return "0";
}

const char *berth_c_value(berth_c_printer *p, berth_expr id) {
    if (id < p->memo_count && p->memo[id]) return p->memo[id];
    const berth_expr_node node = *node_of(p, id);
    if (node.is_index && node.lanes == 1) return berth_c_index(p, id);
    const char *text = compute(p, id);
    bool shared = id < p->memo_count && p->uses[id] > 1 && !is_trivial(&node);
    if (!shared) return text;
    p->memo[id] = berth_c_temporary(p, (berth_dtype)node.dtype, node.lanes, text);
    return p->memo[id];
}

static void count_uses(berth_c_printer *p, berth_expr id) {
    if (!id || id >= p->memo_count) return;
    const berth_expr_node *node = node_of(p, id);
    if (p->uses[id]++ > 0) return;
    berth_vec_push(p->arena, &p->touched, id);
    if (node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return;
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            count_uses(p, berth_tfn_load_indices(p->fn, id)[i]);
        return;
    }
    bool maximum = node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_MAX;
    bool minimum = node->kind == BERTH_EXPR_BINARY && node->op == BERTH_BINARY_MIN;
    berth_expr x = (maximum || minimum) && node->b ? without_nan(p, node->b, maximum) : 0;
    count_uses(p, node->a);
    count_uses(p, x ? x : node->b);  // as min_max writes it
    count_uses(p, node->c);
}

void berth_c_begin_statement(berth_c_printer *p, const berth_expr *roots, int count) {
    for (int i = 0; i < count; ++i) count_uses(p, roots[i]);
}

void berth_c_end_statement(berth_c_printer *p) {
    for (uint32_t i = 0; i < p->touched.count; ++i) {
        p->uses[p->touched.data[i]] = 0;
        p->memo[p->touched.data[i]] = NULL;
    }
    p->touched.count = 0;
}
