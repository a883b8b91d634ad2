#include "compiler/codegen/c_plain_vectors.h"

#include <string.h>

#define WORDS 4  // lanes of a vector
#define HALVES 8
#define BYTES 16
#define MIN_EXTENT 3
#define MAX_DEPTH 32  // of an expression
#define MAX_SAME 8

const char berth_c_plain_vector_functions[] =
    "#if BERTH_MVE\n"
    "/* 0, step, 2 step, 3 step */\n"
    "static inline __attribute__((unused)) uint32x4_t berth_steps(int32_t step) {\n"
    "    return vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)step);\n"
    "}\n"
    "/* The nearest number to x, half to even, plus zero, not below low nor above high; NaN is "
    "low. */\n"
    "static inline __attribute__((unused)) int32x4_t berth_nearest(float32x4_t x, int32_t zero, "
    "int32_t low,\n"
    "                                                              int32_t high) {\n"
    "    x = vmaxnmq_f32(x, vdupq_n_f32((float)(low - zero)));\n"
    "    x = vminnmq_f32(x, vdupq_n_f32((float)(high - zero)));\n"
    "    return zero ? vaddq_n_s32(vcvtnq_s32_f32(x), zero) : vcvtnq_s32_f32(x);\n"
    "}\n"
    "#endif\n\n";

typedef struct vectors {
    berth_c_printer *p;
    berth_var var;
    int lanes;                   // WORDS; HALVES or BYTES where all are bytes (take_bytes)
    bool masked;                 // "some" says which lanes are meant
    bool gathers;                // the statement loads with steps between lanes
    berth_buf to;                // what is stored to
    const char *same[MAX_SAME];  // loads of one number for all lanes, before the loop: same0, ...
    berth_dtype same_dtypes[MAX_SAME];
    int same_count;
} vectors;

// A value: the same in all lanes ("scalar"), or a vector of i32 or f32.
typedef struct value {
    const char *text;
    berth_dtype dtype;
    bool scalar;
} value;

// function(text)
static value call(vectors *v, const char *function, berth_dtype dtype, const char *text) {
    return (value){berth_arena_printf(v->p->arena, "%s(%s)", function, text), dtype, false};
}

static bool is_byte(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I8;
}

// The place of an access at the loop's first iteration, and how far it moves. False: not evenly.
static bool take_place(vectors *v, berth_buf buf, const berth_expr *indices, int count,
                       const char **out_pointer, int64_t *out_step) {
    berth_c_printer *p = v->p;
    bool linear = false;
    berth_linear at = berth_linear_access(p->fn, &p->ranges, buf, indices, count);
    *out_step = berth_linear_stride(p->fn, &at, v->var, &linear);
    if (!linear || *out_step < 0 || *out_step > INT32_MAX / 64) return false;
    *out_pointer =
        berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, buf), berth_c_linear(p, at));
    return true;
}

// ---- loads and stores ---------------------------------------------------------------------------

static bool take_load(vectors *v, berth_expr id, value *out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    const char *pointer = NULL, *mask = v->masked ? "_z" : "", *some = v->masked ? ", some" : "";
    int64_t step = 0;
    berth_dtype dtype = (berth_dtype)node.dtype;
    if (!is_byte(dtype) && dtype != BERTH_DTYPE_I32 && dtype != BERTH_DTYPE_F32) return false;
    if (!take_place(v, node.load.buf, berth_tfn_load_indices(p->fn, id), node.index_count, &pointer,
                    &step))
        return false;
    const char *type = dtype == BERTH_DTYPE_U8 ? "u32" : dtype == BERTH_DTYPE_F32 ? "f32" : "s32";
    const char *unit = is_byte(dtype) ? "b" : "w", *shifted = is_byte(dtype) ? "" : "shifted_";
    if (step != 1) v->gathers = true;
    const char *text =
        step == 1
            ? berth_arena_printf(p->arena, "vldr%sq%s_%s(%s%s)", unit, mask, type, pointer, some)
            : berth_arena_printf(p->arena, "vldr%sq_gather_%soffset%s_%s(%s, berth_steps(%lld)%s)",
                                 unit, shifted, mask, type, pointer, (long long)step, some);
    if (dtype == BERTH_DTYPE_U8)
        text = berth_arena_printf(p->arena, "vreinterpretq_s32_u32(%s)", text);
    *out = (value){text, dtype == BERTH_DTYPE_F32 ? dtype : BERTH_DTYPE_I32, false};
    return true;
}

static const char *store_text(vectors *v, const berth_stmt_node *store, berth_stmt id, value x) {
    berth_c_printer *p = v->p;
    const char *pointer = NULL, *mask = v->masked ? "_p" : "", *some = v->masked ? ", some" : "";
    int64_t step = 0;
    berth_dtype dtype = p->fn->bufs.data[store->buf].dtype;
    if (!is_byte(dtype) && dtype != BERTH_DTYPE_I32 && dtype != BERTH_DTYPE_F32) return NULL;
    if (!take_place(v, store->buf, berth_tfn_store_indices(p->fn, id), store->index_count, &pointer,
                    &step) ||
        step == 0)
        return NULL;
    const char *type = dtype == BERTH_DTYPE_U8 ? "u32" : dtype == BERTH_DTYPE_F32 ? "f32" : "s32";
    const char *unit = is_byte(dtype) ? "b" : "w", *shifted = is_byte(dtype) ? "" : "shifted_";
    if (dtype == BERTH_DTYPE_U8)
        x.text = berth_arena_printf(p->arena, "vreinterpretq_u32_s32(%s)", x.text);
    if (step == 1)
        return berth_arena_printf(p->arena, "vstr%sq%s_%s(%s, %s%s);", unit, mask, type, pointer,
                                  x.text, some);
    return berth_arena_printf(p->arena,
                              "vstr%sq_scatter_%soffset%s_%s(%s, berth_steps(%lld), %s%s);", unit,
                              shifted, mask, type, pointer, (long long)step, x.text, some);
}

// ---- values -------------------------------------------------------------------------------------

static bool take(vectors *v, berth_expr id, int depth, value *out);

// A vector of it, whatever it is.
static value spread(vectors *v, value x) {
    if (!x.scalar) return x;
    return call(v, x.dtype == BERTH_DTYPE_F32 ? "vdupq_n_f32" : "vdupq_n_s32", x.dtype, x.text);
}

static bool take_binary(vectors *v, const berth_expr_node *node, int depth, value *out) {
    static const char *const names[] = {[BERTH_BINARY_ADD] = "add",
                                        [BERTH_BINARY_SUB] = "sub",
                                        [BERTH_BINARY_MUL] = "mul",
                                        [BERTH_BINARY_MIN] = "min",
                                        [BERTH_BINARY_MAX] = "max"};
    value a, b;
    if (node->op >= sizeof(names) / sizeof(names[0]) || !names[node->op]) return false;
    bool extreme = node->op == BERTH_BINARY_MIN || node->op == BERTH_BINARY_MAX;
    if (!take(v, node->a, depth, &a) || !take(v, node->b, depth, &b)) return false;
    bool floats = a.dtype == BERTH_DTYPE_F32;
    if (a.dtype != b.dtype || (extreme && floats)) return false;  // NaN counts otherwise there
    bool swaps = node->op == BERTH_BINARY_ADD || node->op == BERTH_BINARY_MUL;
    if (a.scalar && swaps) {
        value other = a;
        a = b;
        b = other;
    }
    bool by_scalar = b.scalar && !extreme;
    a = spread(v, a);
    if (!by_scalar) b = spread(v, b);
    *out =
        (value){berth_arena_printf(v->p->arena, "v%sq%s_%s(%s, %s)", names[node->op],
                                   by_scalar ? "_n" : "", floats ? "f32" : "s32", a.text, b.text),
                a.dtype, false};
    return true;
}

static bool take_cast(vectors *v, berth_expr id, int depth, value *out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    const berth_expr_node from = p->fn->exprs.data[node.a];
    berth_dtype to = (berth_dtype)node.dtype;
    berth_expr x = 0;
    int zero = 0;
    if (is_byte(to) && berth_c_rounds(p, node.a, to, &x, &zero)) {
        if (!take(v, x, depth, out)) return false;
        const char *limits = to == BERTH_DTYPE_U8 ? "0, 255" : "-128, 127";
        *out = call(v, "berth_nearest", BERTH_DTYPE_I32,
                    berth_arena_printf(p->arena, "%s, %d, %s", spread(v, *out).text, zero, limits));
        return true;
    }
    if (from.is_index || !take(v, node.a, depth, out)) return false;
    if (to == BERTH_DTYPE_F32 && from.dtype == BERTH_DTYPE_I32)
        *out = call(v, "vcvtq_f32_s32", to, spread(v, *out).text);
    else if (to != BERTH_DTYPE_I32 || !is_byte((berth_dtype)from.dtype))
        return false;
    return true;
}

// Whether the text of a value stands for itself, without lines in front of it.
static bool is_one_text(const vectors *v, berth_expr id, int depth) {
    const berth_expr_node *node = &v->p->fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_LOAD: return true;
    case BERTH_EXPR_CAST: return depth < MAX_DEPTH && is_one_text(v, node->a, depth + 1);
    case BERTH_EXPR_BINARY:
        return depth < MAX_DEPTH && is_one_text(v, node->a, depth + 1) &&
               is_one_text(v, node->b, depth + 1);
    default: return false;
    }
}

// A value that is the same in all lanes. A compiler loads it anew in each iteration where a store may have changed it.
static const char *same_text(vectors *v, berth_expr id) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    const char *text = berth_c_value(p, id);
    if (node.kind != BERTH_EXPR_LOAD || node.load.buf == v->to ||
        p->fn->bufs.data[node.load.buf].may_alias)
        return text;
    int i = 0;
    while (i < v->same_count && strcmp(v->same[i], text) != 0) ++i;
    if (i == MAX_SAME) return text;
    if (i == v->same_count) {
        v->same_dtypes[i] = (berth_dtype)node.dtype;
        v->same[v->same_count++] = text;
    }
    return berth_arena_printf(p->arena, "same%d", i);
}

static bool take(vectors *v, berth_expr id, int depth, value *out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    berth_dtype dtype = (berth_dtype)node.dtype;
    if (depth == MAX_DEPTH || node.lanes > 1) return false;
    if (!berth_tfn_uses_var(p->fn, id, v->var)) {
        if (!is_byte(dtype) && dtype != BERTH_DTYPE_I32 && dtype != BERTH_DTYPE_F32) return false;
        if (node.is_index || !is_one_text(v, id, 0)) return false;
        *out = (value){same_text(v, id),
                       dtype == BERTH_DTYPE_F32 ? BERTH_DTYPE_F32 : BERTH_DTYPE_I32, true};
        return true;
    }
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_LOAD: return take_load(v, id, out);
    case BERTH_EXPR_BINARY: return !node.is_index && take_binary(v, &node, depth + 1, out);
    case BERTH_EXPR_CAST: return take_cast(v, id, depth + 1, out);
    default: return false;
    }
}

// What is stored: a byte may be the low bits of a number.
static bool take_root(vectors *v, berth_expr id, value *out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    bool low_bits = node.kind == BERTH_EXPR_CAST && is_byte((berth_dtype)node.dtype) &&
                    p->fn->exprs.data[node.a].dtype == BERTH_DTYPE_I32;
    if (!take(v, low_bits ? node.a : id, 0, out)) return false;
    *out = spread(v, *out);
    return true;
}

// ---- bytes --------------------------------------------------------------------------------------

static const char *byte_type(const vectors *v) {
    return v->lanes == BYTES ? "u8" : "u16";
}

static bool take_byte_load(vectors *v, berth_expr id, const char **out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    const char *pointer = NULL, *mask = v->masked ? "_z" : "", *some = v->masked ? ", some" : "";
    int64_t step = 0;
    if (!is_byte((berth_dtype)node.dtype) ||
        !take_place(v, node.load.buf, berth_tfn_load_indices(p->fn, id), node.index_count, &pointer,
                    &step))
        return false;
    if (step != 1) v->gathers = true;
    if (step == 1)
        *out = berth_arena_printf(p->arena, "vldrbq%s_%s((const uint8_t *)(%s)%s)", mask,
                                  byte_type(v), pointer, some);
    else
        *out = berth_arena_printf(p->arena,
                                  "vldrbq_gather_offset%s_u16((const uint8_t *)(%s), "
                                  "vmulq_n_u16(vidupq_n_u16(0, 1), %lldu)%s)",
                                  mask, pointer, (long long)step, some);
    return step == 1 || (v->lanes == HALVES && step <= UINT16_MAX / HALVES);
}

// The low bits of a whole number that is computed from bytes: sums and differences need no other ones.
static bool take_bytes(vectors *v, berth_expr id, int depth, const char **out) {
    berth_c_printer *p = v->p;
    const berth_expr_node node = p->fn->exprs.data[id];
    const char *a = NULL, *b = NULL;
    bool whole = is_byte((berth_dtype)node.dtype) || node.dtype == BERTH_DTYPE_I32;
    if (depth == MAX_DEPTH || node.lanes > 1 || node.is_index || !whole) return false;
    if (!berth_tfn_uses_var(p->fn, id, v->var)) {
        if (!is_one_text(v, id, 0)) return false;
        *out =
            berth_arena_printf(p->arena, "vdupq_n_%s((uint8_t)%s)", byte_type(v), same_text(v, id));
        return true;
    }
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_LOAD: return take_byte_load(v, id, out);
    case BERTH_EXPR_CAST: return take_bytes(v, node.a, depth + 1, out);
    case BERTH_EXPR_BINARY:
        if ((node.op != BERTH_BINARY_ADD && node.op != BERTH_BINARY_SUB) ||
            !take_bytes(v, node.a, depth + 1, &a) || !take_bytes(v, node.b, depth + 1, &b))
            return false;
        *out = berth_arena_printf(p->arena, "v%sq_%s(%s, %s)",
                                  node.op == BERTH_BINARY_ADD ? "add" : "sub", byte_type(v), a, b);
        return true;
    default: return false;
    }
}

static const char *byte_text(vectors *v, const berth_stmt_node *store, berth_stmt id) {
    berth_c_printer *p = v->p;
    const char *pointer = NULL, *x = NULL;
    int64_t step = 0;
    if (!is_byte(p->fn->bufs.data[store->buf].dtype) || !take_bytes(v, store->value, 0, &x) ||
        !take_place(v, store->buf, berth_tfn_store_indices(p->fn, id), store->index_count, &pointer,
                    &step) ||
        step != 1)
        return NULL;
    return berth_arena_printf(p->arena, "vstrbq%s_%s((uint8_t *)(%s), %s%s);",
                              v->masked ? "_p" : "", byte_type(v), pointer, x,
                              v->masked ? ", some" : "");
}

// ---- loops --------------------------------------------------------------------------------------

// The statement for as many iterations as there are lanes, or what `some` says of them; NULL = it has none.
static const char *vector_text(vectors *v, berth_stmt body, bool masked) {
    const berth_stmt_node store = v->p->fn->stmts.data[body];
    value x;
    v->masked = masked;
    v->gathers = false;
    v->to = store.buf;
    if (store.kind == BERTH_STMT_STORE && v->lanes > WORDS) return byte_text(v, &store, body);
    if (store.kind != BERTH_STMT_STORE || !take_root(v, store.value, &x)) return NULL;
    return store_text(v, &store, body, x);
}

// What GCC would take for less than it reads, or for more than it writes, stands between barriers.
static void print_vector(vectors *v, berth_stmt body, bool masked) {
    const char *text = vector_text(v, body, masked);
    bool guarded = masked || v->gathers;
    if (guarded) berth_c_line(v->p, "BERTH_MVE_BARRIER;");
    berth_c_line(v->p, "%s", text);
    if (guarded) berth_c_line(v->p, "BERTH_MVE_BARRIER;");
}

static void open_at(berth_c_printer *p, const char *var, int64_t at) {
    berth_c_line(p, "{");
    p->depth++;
    berth_c_line(p, "const int32_t %s = %lld;", var, (long long)at);
    berth_c_line(p, "(void)%s;", var);
}

static void close_block(berth_c_printer *p) {
    p->depth--;
    berth_c_line(p, "}");
}

// Whole vectors without a mask, which takes as many instructions as what it is for.
static void print_whole(vectors *v, berth_stmt body, int64_t extent) {
    berth_c_printer *p = v->p;
    const char *var = berth_c_var_name(p, v->var);
    if (extent == v->lanes) {
        open_at(p, var, 0);
    } else {
        berth_c_line(p, "for (int32_t %s = 0; %s < %lld; %s += %d) {", var, var, (long long)extent,
                     var, v->lanes);
        p->depth++;
    }
    print_vector(v, body, false);
    close_block(p);
}

// The iterations from `at` on, fewer than a vector has: one by itself, more in a vector with a mask.
static void print_rest(vectors *v, berth_stmt body, int64_t at, int64_t count) {
    berth_c_printer *p = v->p;
    open_at(p, berth_c_var_name(p, v->var), at);
    if (count == 1) {
        p->loop_depth[v->var] = p->open_loops + 1;
        berth_c_store(p, body);
    } else {
        berth_c_line(p, "const mve_pred16_t some = vctp%dq(%lldu);", 128 / v->lanes,
                     (long long)count);
        print_vector(v, body, true);
    }
    close_block(p);
}

bool berth_c_plain_open_vectors(berth_c_printer *p, const berth_stmt_node *loop) {
    int64_t extent = 0;
    if (loop->loop_kind != BERTH_LOOP_VECTOR || !berth_tfn_const_value(p->fn, loop->value, &extent))
        return false;
    berth_stmt body = loop->body;
    while (p->fn->stmts.data[body].kind == BERTH_STMT_SEQ && p->fn->stmts.data[body].count == 1)
        body = p->fn->lists.data[p->fn->stmts.data[body].first];
    vectors v = {.p = p, .var = loop->var};
    if (extent < MIN_EXTENT || p->language->index_bits != 32) return false;
    // One more than four takes fewer instructions by itself than a mask.
    v.lanes = extent > HALVES ? BYTES : extent > WORDS + 1 ? HALVES : WORDS;
    while (!vector_text(&v, body, false)) {
        if (v.lanes == WORDS) return false;
        v.lanes /= 2;
        v.same_count = 0;
    }
    int64_t rest = extent % v.lanes;
    berth_strbuf_add(&p->out, "#if BERTH_MVE\n");
    if (v.same_count) {
        berth_c_line(p, "{");
        p->depth++;
    }
    for (int i = 0; i < v.same_count; ++i)
        berth_c_line(p, "const %s same%d = %s;", berth_c_storage_type(p, v.same_dtypes[i]), i,
                     v.same[i]);
    if (extent >= v.lanes) print_whole(&v, body, extent - rest);
    if (rest) print_rest(&v, body, extent - rest, rest);
    if (v.same_count) close_block(p);
    berth_strbuf_add(&p->out, "#else\n");
    return true;
}
