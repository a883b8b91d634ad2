#include "compiler/codegen/c_plain_products.h"

#include <string.h>

#include "compiler/codegen/c_plain_mve.h"
#include "compiler/codegen/c_plain_vectors.h"
#include "compiler/codegen/kernel_facts.h"
#include "compiler/schedule/plain_columns.h"

#define MAX_LOOPS 12

// sums[...] += x[...] * w[...] in the loops of the sum; then those over results, which set it to 0 first.
typedef struct products {
    berth_c_printer *p;
    const berth_stmt_node *loops[MAX_LOOPS];
    int64_t extents[MAX_LOOPS];
    int count;
    berth_stmt clear;
    berth_expr_node x, w;  // loads
    berth_linear at[3];    // of sums, x and w
    berth_buf bufs[3];
    int64_t strides[3][MAX_LOOPS];
} products;

enum { SUMS, X, W };

// ---- reading ------------------------------------------------------------------------------------

static berth_stmt only_one(const berth_tfn *fn, berth_stmt id) {
    while (id && fn->stmts.data[id].kind == BERTH_STMT_SEQ && fn->stmts.data[id].count == 1)
        id = fn->lists.data[fn->stmts.data[id].first];
    return id;
}

// The loops [0, results) last.
static void results_last(products *s, int results) {
    const berth_stmt_node *loops[MAX_LOOPS];
    int64_t extents[MAX_LOOPS];
    for (int i = 0; i < s->count; ++i) {
        int to = (i + s->count - results) % s->count;
        loops[to] = s->loops[i];
        extents[to] = s->extents[i];
    }
    memcpy(s->loops, loops, (size_t)s->count * sizeof(loops[0]));
    memcpy(s->extents, extents, (size_t)s->count * sizeof(extents[0]));
}

// The store inside of loops of constant extents; 0: there is more, or nothing is set to 0 first.
static berth_stmt take_loops(products *s, const berth_stmt_node *loop) {
    berth_tfn *fn = s->p->fn;
    int results = 0;
    for (;;) {
        int64_t extent = 0;
        if (s->count == MAX_LOOPS || loop->loop_kind != BERTH_LOOP_SERIAL ||
            !berth_tfn_const_value(fn, loop->value, &extent))
            return 0;
        s->loops[s->count] = loop;
        s->extents[s->count++] = extent;
        berth_stmt body = only_one(fn, loop->body);
        const berth_stmt_node *node = &fn->stmts.data[body];
        if (!body) return 0;
        if (!s->clear && node->kind == BERTH_STMT_SEQ && node->count == 2) {
            s->clear = fn->lists.data[node->first];
            results = s->count;
            node = &fn->stmts.data[fn->lists.data[node->first + 1]];
        }
        if (results == 2 && node->kind == BERTH_STMT_STORE) {
            results_last(s, results);
            return body;
        }
        if (node->kind != BERTH_STMT_FOR) return 0;
        loop = node;
    }
}

// The load that is cast to i32.
static bool take_load(const products *s, berth_expr id, berth_expr *out) {
    const berth_expr_node *node = &s->p->fn->exprs.data[id];
    if (node->kind != BERTH_EXPR_CAST || node->dtype != BERTH_DTYPE_I32) return false;
    *out = node->a;
    return s->p->fn->exprs.data[node->a].kind == BERTH_EXPR_LOAD;
}

static void place(products *s, int which, berth_buf buf, const berth_expr *indices, int count) {
    s->bufs[which] = buf;
    s->at[which] = berth_linear_access(s->p->fn, &s->p->ranges, buf, indices, count);
}

// Whether it stores to where the sums are.
static bool same_place(const products *s, berth_stmt id) {
    berth_tfn *fn = s->p->fn;
    const berth_stmt_node store = fn->stmts.data[id];
    if (store.kind != BERTH_STMT_STORE || store.buf != s->bufs[SUMS]) return false;
    berth_linear to = berth_linear_access(fn, &s->p->ranges, store.buf,
                                          berth_tfn_store_indices(fn, id), store.index_count);
    return berth_tfn_expr_equal(fn, berth_linear_expr(fn, &to),
                                berth_linear_expr(fn, &s->at[SUMS]));
}

static bool sets_zero(const berth_tfn *fn, berth_stmt store) {
    const berth_expr_node *value = &fn->exprs.data[fn->stmts.data[store].value];
    return value->kind == BERTH_EXPR_INT && value->i == 0;
}

static bool take_store(products *s, berth_stmt id) {
    berth_tfn *fn = s->p->fn;
    const berth_stmt_node store = fn->stmts.data[id];
    const berth_expr_node sum = fn->exprs.data[store.value];
    berth_expr x = 0, w = 0;
    if (sum.kind != BERTH_EXPR_BINARY || sum.op != BERTH_BINARY_ADD || sum.dtype != BERTH_DTYPE_I32)
        return false;
    const berth_expr_node from = fn->exprs.data[sum.a], product = fn->exprs.data[sum.b];
    if (from.kind != BERTH_EXPR_LOAD || from.load.buf != store.buf) return false;
    if (product.kind != BERTH_EXPR_BINARY || product.op != BERTH_BINARY_MUL) return false;
    if (!take_load(s, product.a, &x) || !take_load(s, product.b, &w)) return false;
    if (fn->exprs.data[w].dtype != BERTH_DTYPE_I8) {
        berth_expr other = x;
        x = w;
        w = other;
    }
    s->x = fn->exprs.data[x];
    s->w = fn->exprs.data[w];
    if (s->w.dtype != BERTH_DTYPE_I8 || store.buf == s->x.load.buf) return false;
    place(s, X, s->x.load.buf, berth_tfn_load_indices(fn, x), s->x.index_count);
    place(s, W, s->w.load.buf, berth_tfn_load_indices(fn, w), s->w.index_count);
    place(s, SUMS, store.buf, berth_tfn_load_indices(fn, sum.a), from.index_count);
    return same_place(s, id) && same_place(s, s->clear) && sets_zero(fn, s->clear);
}

// How every access moves along every loop, which leaves its place at the loops' beginning.
static bool take_strides(products *s) {
    for (int which = SUMS; which <= W; ++which) {
        for (int i = 0; i < s->count; ++i) {
            bool linear = false;
            s->strides[which][i] =
                berth_linear_stride(s->p->fn, &s->at[which], s->loops[i]->var, &linear);
            if (!linear) return false;
        }
        berth_linear *at = &s->at[which];
        int kept = 0;
        for (int t = 0; t < at->count; ++t) {
            const berth_expr_node *atom = &s->p->fn->exprs.data[at->terms[t].atom];
            bool own = false;
            for (int i = 0; i < s->count; ++i)
                own |= atom->kind == BERTH_EXPR_VAR && atom->var == s->loops[i]->var;
            if (!own) at->terms[kept++] = at->terms[t];
        }
        at->count = kept;
    }
    return true;
}

// Whether the loops [0, count) go on over `which` without a gap in steps of `step`.
static bool runs_on(const products *s, int which, int count, int64_t step) {
    for (int i = count - 1; i >= 0; --i) {
        if (s->extents[i] != 1 && s->strides[which][i] != step) return false;
        step *= s->extents[i];
    }
    return true;
}

static int64_t depth_of(const products *s, int count) {
    int64_t depth = 1;
    for (int i = 0; i < count; ++i) {
        depth *= s->extents[i];
        if (s->extents[i] != 1 && s->strides[SUMS][i]) return 0;
        if (depth > INT32_MAX / (255 * 128)) return 0;  // sums of what 16 bits hold
    }
    return depth;
}

// ---- printing -----------------------------------------------------------------------------------

static const char *pointer(const products *s, int which) {
    berth_c_printer *p = s->p;
    const berth_linear *at = &s->at[which];
    const char *name = berth_c_buffer_name(p, s->bufs[which]);
    if (at->count == 0 && at->constant == 0) return name;
    return berth_arena_printf(p->arena, "%s + %s", name, berth_c_linear(p, *at));
}

// sums[c][2] = x[c][k] * w[k][2]
static bool print_pairs(const products *s) {
    int c = s->count - 2, r = s->count - 1;
    int64_t depth = depth_of(s, c);
    bool pairs = s->extents[r] == 2 && s->strides[SUMS][r] == 1 && s->strides[X][r] == 0 &&
                 s->strides[W][r] == 1;
    bool columns = s->extents[c] == 1 || (s->strides[SUMS][c] == 2 && s->strides[W][c] == 0);
    bool bytes = s->x.dtype == BERTH_DTYPE_I8;
    if (!depth || !pairs || !columns || !(bytes || s->x.dtype == BERTH_DTYPE_I16)) return false;
    if (!runs_on(s, X, c, 1) || !runs_on(s, W, c, 2)) return false;
    if (bytes) {
        berth_c_line(s->p, "berth_sum_bytes(%s, %s, %lld, %lld, %s, %lld);", pointer(s, SUMS),
                     pointer(s, X), (long long)(s->extents[c] == 1 ? 0 : s->strides[X][c]),
                     (long long)s->extents[c], pointer(s, W), (long long)depth);
        return true;
    }
    berth_c_line(s->p, "berth_sum_pairs(%s, %s, %lld, %lld, %s, %lld);", pointer(s, SUMS),
                 pointer(s, X), (long long)(s->extents[c] == 1 ? 0 : s->strides[X][c]),
                 (long long)s->extents[c], pointer(s, W), (long long)depth);
    return true;
}

// sums[r] = x[k] * w[r][k]
static bool print_rows(const products *s) {
    int c = s->count - 2, r = s->count - 1;
    int64_t depth = depth_of(s, c);
    bool rows = s->strides[SUMS][r] == 1 && s->strides[X][r] == 0 && s->strides[W][r] == depth;
    if (!depth || !rows || s->extents[c] != 1 || s->x.dtype != BERTH_DTYPE_U8) return false;
    if (!runs_on(s, X, c, 1) || !runs_on(s, W, c, 1)) return false;
    berth_c_line(s->p, "berth_sum_rows(%s, %s, %s, %lld, %lld);", pointer(s, SUMS), pointer(s, X),
                 pointer(s, W), (long long)s->extents[r], (long long)depth);
    return true;
}

// sums[r][c] = x[r * s + h][c * s + k] * w[h][k]
static bool print_windows(const products *s) {
    enum { height, width, r, c, loops };
    if (s->count != loops || s->x.dtype != BERTH_DTYPE_U8) return false;
    const int64_t *sums = s->strides[SUMS], *x = s->strides[X], *w = s->strides[W];
    bool fits = w[width] == 1 && w[height] == s->extents[width] && x[width] == 1 && sums[c] == 1 &&
                sums[height] == 0 && sums[width] == 0 && w[r] == 0 && w[c] == 0 &&
                (s->extents[r] == 1 || sums[r] == s->extents[c]);
    // What lies behind the last window is read, too.
    int64_t last = s->at[X].constant + BERTH_PLAIN_WINDOW_SPARE_BYTES;
    for (int i = 0; i < loops; ++i) last += x[i] * (s->extents[i] - 1);
    berth_range rest = {0, 0};
    berth_linear outer = s->at[X];
    outer.constant = 0;
    rest = berth_linear_range(s->p->fn, &s->p->ranges, &outer);
    bool spare = last + rest.high < berth_kernel_elements(s->p->fn, s->bufs[X]);
    if (!fits || !spare || s->extents[height] * s->extents[width] > 1024) return false;
    berth_c_line(s->p, "berth_sum_windows(%s, %s, %lld, %lld, %lld, %lld, %lld, %s, %lld, %lld);",
                 pointer(s, SUMS), pointer(s, X), (long long)x[height], (long long)x[c],
                 (long long)x[r], (long long)s->extents[r], (long long)s->extents[c], pointer(s, W),
                 (long long)s->extents[height], (long long)s->extents[width]);
    return true;
}

bool berth_c_plain_print_products(berth_c_printer *p, const berth_stmt_node *loop) {
    products s = {.p = p};
    if (p->language->index_bits != 32) return false;
    berth_stmt store = take_loops(&s, loop);
    if (!store || s.count < 3 || !take_store(&s, store) || !take_strides(&s)) return false;
    return print_pairs(&s) || print_rows(&s) || print_windows(&s);
}

// ---- functions ----------------------------------------------------------------------------------

// Steps of four products of each sum, for pairs with the loop around them, are one piece of assembly: all
// registers of the core are in use, and the compiler would put some of its choice on the stack. 13
// operands are what is left beside a frame pointer.
static const char dsp[] =
    "/* Armv7E-M's and Armv8-M's instructions on pairs of 16 bits, where the compiler has them\n"
    "   (-DBERTH_DSP=0: without). */\n"
    "#ifndef BERTH_DSP\n"
    "#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__) && \\\n"
    "    defined(__OPTIMIZE__) && !defined(__ARM_BIG_ENDIAN)\n"
    "#define BERTH_DSP 1\n"
    "#else\n"
    "#define BERTH_DSP 0\n"
    "#endif\n"
    "#endif\n"
    "#if BERTH_DSP && defined(__ARM_FEATURE_MVE)\n"
    "#include <arm_mve.h>\n"
    "#define BERTH_MVE 1\n"
    "#else\n"
    "#define BERTH_MVE 0\n"
    "#endif\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "/* To GCC 12.2 a gather reads one vector at its first place, and a store with a mask writes "
    "all of it:\n"
    "   stores to what is read, or not written, went missing. */\n"
    "#define BERTH_MVE_BARRIER __asm__ volatile(\"\" ::: \"memory\")\n"
    "#define BERTH_MVE_LOOPS BERTH_MVE\n"
    "#else\n"
    "/* Clang 14 has no registers for the large loops in assembly beside its frame pointer. */\n"
    "#define BERTH_MVE_BARRIER ((void)0)\n"
    "#define BERTH_MVE_LOOPS 0\n"
    "#endif\n"
    "#if BERTH_DSP && defined(__ARM_FP) && (__ARM_FP & 4)\n"
    "#define BERTH_DSP_ROUND 1\n"
    "#else\n"
    "#define BERTH_DSP_ROUND 0\n"
    "#endif\n\n";

#define PAIR_STEP(x)                                                                               \
    "                    \"ldr %[y], [%[b]], #4\\n\\t\"\n"                                         \
    "                    \"ldr %[odd], [%[at]], #4\\n\\t\"\n"                                      \
    "                    \"sxtb16 %[even], %[odd]\\n\\t\"\n"                                       \
    "                    \"sxtb16 %[odd], %[odd], ror #8\\n\\t\"\n"                                \
    "                    \"smlad %[a0], %[" x "], %[even], %[a0]\\n\\t\"\n"                        \
    "                    \"smlad %[b0], %[y], %[even], %[b0]\\n\\t\"\n"                            \
    "                    \"smlad %[a1], %[" x "], %[odd], %[a1]\\n\\t\"\n"                         \
    "                    \"smlad %[b1], %[y], %[odd], %[b1]\\n\\t\"\n"

// clang-format off
static const char pairs[] =
    "/* sums[c][r] = the sum of x[c * step + k] * w[k][r], c < count, k < depth, r < 2. */\n"
    "static void berth_sum_pairs(int32_t *sums, const int16_t *x, int32_t step, int32_t count,\n"
    "                            const int8_t *w, int32_t depth) {\n"
    "    for (; count > 0; count -= 2, sums += 4, x += 2 * step) {\n"
    "        const int16_t *a = x, *b = count > 1 ? x + step : x;\n"
    "        const int8_t *at = w;\n"
    "        int32_t k = depth, a0 = 0, a1 = 0, b0 = 0, b1 = 0;\n"
    "#if BERTH_DSP\n"
    "        int32_t rest;\n"
    "#endif\n"
    "#if BERTH_MVE\n"
    "        for (; k >= 16; k -= 16, a += 16, b += 16, at += 32) {\n"
    "            /* GCC 12 steps from row to row in VLD2's own address, which the instruction cannot. */\n"
    "            __asm__(\"\" : \"+r\"(a), \"+r\"(b));\n"
    "            const int8x16x2_t weights = vld2q_s8(at);\n"
    "            const int16x8x2_t left = vld2q_s16(a), right = vld2q_s16(b);\n"
    "            const int16x8_t even0 = vmovlbq_s8(weights.val[0]), odd0 = vmovltq_s8(weights.val[0]);\n"
    "            const int16x8_t even1 = vmovlbq_s8(weights.val[1]), odd1 = vmovltq_s8(weights.val[1]);\n"
    "            a0 = vmladavaq_s16(vmladavaq_s16(a0, left.val[0], even0), left.val[1], odd0);\n"
    "            a1 = vmladavaq_s16(vmladavaq_s16(a1, left.val[0], even1), left.val[1], odd1);\n"
    "            b0 = vmladavaq_s16(vmladavaq_s16(b0, right.val[0], even0), right.val[1], odd0);\n"
    "            b1 = vmladavaq_s16(vmladavaq_s16(b1, right.val[0], even1), right.val[1], odd1);\n"
    "        }\n"
    "#endif\n"
    "#if BERTH_DSP\n"
    "        rest = k & 3;\n"
    "        k >>= 2;\n"
    "        if (k) {\n"
    "            int32_t x0, x1, y, even, odd;\n"
    "            __asm__(\"1:\\n\\t\"\n"
    "                    \"ldrd %[x0], %[x1], [%[a]], #8\\n\\t\"\n"
    PAIR_STEP("x0") PAIR_STEP("x1")
    "                    \"subs %[k], %[k], #1\\n\\t\"\n"
    "                    \"bne 1b\"\n"
    "                    : [a0] \"+r\"(a0), [a1] \"+r\"(a1), [b0] \"+r\"(b0), [b1] \"+r\"(b1), [a] \"+r\"(a),\n"
    "                      [b] \"+r\"(b), [at] \"+r\"(at), [k] \"+r\"(k), [x0] \"=&r\"(x0), [x1] \"=&r\"(x1),\n"
    "                      [y] \"=&r\"(y), [even] \"=&r\"(even), [odd] \"=&r\"(odd)\n"
    "                    :\n"
    "                    : \"cc\", \"memory\");\n"
    "        }\n"
    "        k = rest;\n"
    "#endif\n"
    "        for (; k > 0; --k, ++a, ++b, at += 2) {\n"
    "            a0 += *a * at[0];\n"
    "            a1 += *a * at[1];\n"
    "            b0 += *b * at[0];\n"
    "            b1 += *b * at[1];\n"
    "        }\n"
    "        sums[0] = a0;\n"
    "        sums[1] = a1;\n"
    "        if (count == 1) return;\n"
    "        sums[2] = b0;\n"
    "        sums[3] = b1;\n"
    "    }\n"
    "}\n\n";

// clang-format on

// Helium multiplies bytes of one sign. A row's are made unsigned, 128 more than what they are, and 128
// times the sum of x comes off: 15 instructions for 64 products, and the loop masks its own tail.
#define BYTES_ROW(sum, w)                                                                          \
    "                    \"vldrb.8 q1, [%[" w "]], #16\\n\\t\"\n"                                  \
    "                    \"veor q1, q1, q2\\n\\t\"\n"                                              \
    "                    \"vmladava.u8 %[" sum "], q0, q1\\n\\t\"\n"

// clang-format off
static const char rows_mve[] =
    "/* sums[r] = the sum of x[k] * w[r][k], r < rows, k < depth. */\n"
    "#if BERTH_MVE\n"
    "__attribute__((noinline)) /* the assembly needs nearly all registers */\n"
    "#endif\n"
    "static void berth_sum_rows(int32_t *sums, const uint8_t *x, const int8_t *w, int32_t rows,\n"
    "                           int32_t depth) {\n"
    "#if BERTH_MVE\n"
    "    for (; rows >= 4; rows -= 4, sums += 4, w += 4 * depth) {\n"
    "        const uint8_t *at = x;\n"
    "        const int8_t *w0 = w, *w1 = w0 + depth, *w2 = w1 + depth, *w3 = w2 + depth;\n"
    "        uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, all = 0;\n"
    "        __asm__(\"vmov.i8 q2, #128\\n\\t\"\n"
    "                    \"ldr lr, %[depth]\\n\\t\"\n"
    "                    \"dlstp.8 lr, lr\\n\"\n"
    "                    \"1:\\n\\t\"\n"
    "                    \"vldrb.8 q0, [%[at]], #16\\n\\t\"\n"
    BYTES_ROW("s0", "w0") BYTES_ROW("s1", "w1") BYTES_ROW("s2", "w2") BYTES_ROW("s3", "w3")
    "                    \"vaddva.u8 %[all], q0\\n\\t\"\n"
    "                    \"letp lr, 1b\"\n"
    "                    : [s0] \"+Te\"(s0), [s1] \"+Te\"(s1), [s2] \"+Te\"(s2), [s3] \"+Te\"(s3), [all] \"+Te\"(all),\n"
    "                      [at] \"+r\"(at), [w0] \"+r\"(w0), [w1] \"+r\"(w1), [w2] \"+r\"(w2), [w3] \"+r\"(w3)\n"
    "                    : [depth] \"m\"(depth)\n"
    "                    : \"lr\", \"q0\", \"q1\", \"q2\", \"memory\");\n"
    "        all *= 128;\n"
    "        sums[0] = (int32_t)(s0 - all);\n"
    "        sums[1] = (int32_t)(s1 - all);\n"
    "        sums[2] = (int32_t)(s2 - all);\n"
    "        sums[3] = (int32_t)(s3 - all);\n"
    "    }\n";
// clang-format on

#define ROW(sum, from)                                                                             \
    "                    \"ldr %[b], " from "\\n\\t\"\n"                                           \
    "                    \"sxtb16 %[a], %[b]\\n\\t\"\n"                                            \
    "                    \"sxtb16 %[b], %[b], ror #8\\n\\t\"\n"                                    \
    "                    \"smlad %[" sum "], %[even], %[a], %[" sum "]\\n\\t\"\n"                  \
    "                    \"smlad %[" sum "], %[odd], %[b], %[" sum "]\\n\\t\"\n"

// clang-format off
static const char rows_dsp[] =
    "#elif BERTH_DSP\n"
    "    for (; rows >= 4; rows -= 4, sums += 4, w += 3 * depth) {\n"
    "        const uint8_t *at = x;\n"
    "        const int8_t *v = w + 2 * depth;\n"
    "        int32_t k = depth, s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n"
    "        int32_t rest = k & 3;\n"
    "        k >>= 2;\n"
    "        if (k) {\n"
    "            int32_t even, odd, a, b;\n"
    "            __asm__(\"1:\\n\\t\"\n"
    "                    \"ldr %[odd], [%[at]], #4\\n\\t\"\n"
    "                    \"uxtb16 %[even], %[odd]\\n\\t\"\n"
    "                    \"uxtb16 %[odd], %[odd], ror #8\\n\\t\"\n"
    ROW("s1", "[%[w], %[depth]]") ROW("s0", "[%[w]], #4")
    ROW("s3", "[%[v], %[depth]]") ROW("s2", "[%[v]], #4")
    "                    \"subs %[k], %[k], #1\\n\\t\"\n"
    "                    \"bne 1b\"\n"
    "                    : [s0] \"+r\"(s0), [s1] \"+r\"(s1), [s2] \"+r\"(s2), [s3] \"+r\"(s3), [at] \"+r\"(at),\n"
    "                      [w] \"+r\"(w), [v] \"+r\"(v), [k] \"+r\"(k), [even] \"=&r\"(even), [odd] \"=&r\"(odd),\n"
    "                      [a] \"=&r\"(a), [b] \"=&r\"(b)\n"
    "                    : [depth] \"r\"(depth)\n"
    "                    : \"cc\", \"memory\");\n"
    "        }\n"
    "        for (k = rest; k > 0; --k, ++at, ++w, ++v) {\n"
    "            s0 += *at * *w;\n"
    "            s1 += *at * w[depth];\n"
    "            s2 += *at * *v;\n"
    "            s3 += *at * v[depth];\n"
    "        }\n"
    "        sums[0] = s0;\n"
    "        sums[1] = s1;\n"
    "        sums[2] = s2;\n"
    "        sums[3] = s3;\n"
    "    }\n"
    "#endif\n"
    "    for (; rows > 0; --rows, ++sums) {\n"
    "        const uint8_t *at = x;\n"
    "        int32_t k = depth, sum = 0;\n"
    "        for (; k > 0; --k) sum += *at++ * *w++;\n"
    "        *sums = sum;\n"
    "    }\n"
    "}\n\n";
// clang-format on

#define WINDOW_ROW(from, w, b, m)                                                                  \
    "                        \"ldr %[odd], " from "\\n\\t\"\n"                                     \
    "                        \"uxtb16 %[even], %[odd]\\n\\t\"\n"                                   \
    "                        \"uxtb16 %[odd], %[odd], ror #8\\n\\t\"\n"                            \
    "                        \"smlad %[a], %[even], %[" w "], %[a]\\n\\t\"\n"                      \
    "                        \"smlab" b " %[a], %[odd], %[" m "], %[a]\\n\\t\"\n"                  \
    "                        \"smlad %[b], %[odd], %[" w "], %[b]\\n\\t\"\n"                       \
    "                        \"smlat" b " %[b], %[even], %[" m "], %[b]\\n\\t\"\n"
#define WINDOW_ROW_ONE(from, w, b, m)                                                              \
    "                        \"ldr %[odd], " from "\\n\\t\"\n"                                     \
    "                        \"uxtb16 %[even], %[odd]\\n\\t\"\n"                                   \
    "                        \"uxtb16 %[odd], %[odd], ror #8\\n\\t\"\n"                            \
    "                        \"smlad %[a], %[even], %[" w "], %[a]\\n\\t\"\n"                      \
    "                        \"smlab" b " %[a], %[odd], %[" m "], %[a]\\n\\t\"\n"

static const char windows_mve[] =
    "/* sums[r][c] = the sum of x[r * row_step + h * pitch + c * step + k] * w[h][k], r < rows,\n"
    "   c < count, h < height, k < width. Bytes up to the third behind a window are read, too. */\n"
    "static void berth_sum_windows(int32_t *sums, const uint8_t *x, int32_t pitch, int32_t step, "
    "int32_t row_step,\n"
    "                              int32_t rows, int32_t count, const int8_t *w, int32_t height, "
    "int32_t width) {\n"
    "#if BERTH_MVE_LOOPS\n"
    "    if (height == 3 && width == 3 && step == 1) {\n"
    "        berth_sum_windows_3x3(sums, x, pitch, row_step, rows, count, w);\n"
    "        return;\n"
    "    }\n"
    "#endif\n"
    "    for (; rows > 0; --rows, x += row_step) {\n"
    "        const uint8_t *at = x;\n"
    "        int32_t c = count;\n"
    "#if BERTH_MVE\n"
    "        BERTH_MVE_BARRIER;\n"
    "        const uint32x4_t lanes = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)step);\n"
    "        for (; c >= 4; c -= 4, at += 4 * step, sums += 4) {\n"
    "            const int8_t *weight = w;\n"
    "            int32x4_t sum = vdupq_n_s32(0);\n"
    "            int32_t h, k;\n"
    "            for (h = 0; h < height; ++h)\n"
    "                for (k = 0; k < width; ++k) {\n"
    "                    const uint32x4_t bytes = vldrbq_gather_offset_u32(at + h * pitch + k, "
    "lanes);\n"
    "                    sum = vmlaq_n_s32(sum, vreinterpretq_s32_u32(bytes), *weight++);\n"
    "                }\n"
    "            vstrwq_s32(sums, sum);\n"
    "        }\n"
    "        BERTH_MVE_BARRIER;\n"
    "#endif\n";

static const char windows[] =
    "#if BERTH_DSP\n"
    "        if (height == 3 && width == 3) {\n"
    "            const uint32_t w0 = (uint32_t)w[2] << 16 | (uint16_t)w[0];\n"
    "            const uint32_t w1 = (uint32_t)w[5] << 16 | (uint16_t)w[3];\n"
    "            const uint32_t w2 = (uint32_t)w[8] << 16 | (uint16_t)w[6];\n"
    "            const uint32_t m0 = (uint32_t)w[4] << 16 | (uint16_t)w[1], m1 = (uint16_t)w[7];\n"
    "            int32_t even, odd, a, b;\n"
    "            if (step == 1)\n"
    "                for (; c >= 2; c -= 2, at += 2, sums += 2) {\n"
    "                    a = b = 0;\n"
    "                    __asm__(\n" WINDOW_ROW("[%[at]]", "w0", "b", "m0")
        WINDOW_ROW("[%[at], %[pitch]]", "w1", "t", "m0") WINDOW_ROW(
            "[%[at], %[pitch], lsl #1]", "w2", "b",
            "m1") "                        : [a] \"+r\"(a), [b] \"+r\"(b), [even] \"=&r\"(even), "
                  "[odd] \"=&r\"(odd)\n"
                  "                        : [at] \"r\"(at), [pitch] \"r\"(pitch), [w0] \"r\"(w0), "
                  "[w1] \"r\"(w1), "
                  "[w2] \"r\"(w2),\n"
                  "                          [m0] \"r\"(m0), [m1] \"r\"(m1)\n"
                  "                        : \"memory\");\n"
                  "                    sums[0] = a;\n"
                  "                    sums[1] = b;\n"
                  "                }\n";

static const char windows_rest[] =
    "            for (; c > 0; --c, at += step) {\n"
    "                a = 0;\n"
    "                __asm__(\n" WINDOW_ROW_ONE("[%[at]]", "w0", "b", "m0")
        WINDOW_ROW_ONE("[%[at], %[pitch]]", "w1", "t", "m0") WINDOW_ROW_ONE(
            "[%[at], %[pitch], lsl #1]", "w2", "b",
            "m1") "                        : [a] \"+r\"(a), [even] \"=&r\"(even), "
                  "[odd] \"=&r\"(odd)\n"
                  "                        : [at] \"r\"(at), [pitch] \"r\"(pitch), "
                  "[w0] \"r\"(w0), [w1] \"r\"(w1), "
                  "[w2] \"r\"(w2),\n"
                  "                          [m0] \"r\"(m0), [m1] \"r\"(m1)\n"
                  "                        : \"memory\");\n"
                  "                *sums++ = a;\n"
                  "            }\n"
                  "        }\n"
                  "#endif\n"
                  "        for (; c > 0; --c, at += step, ++sums) {\n"
                  "            const int8_t *weight = w;\n"
                  "            int32_t h, k, sum = 0;\n"
                  "            for (h = 0; h < height; ++h)\n"
                  "                for (k = 0; k < width; ++k) sum += at[h * pitch + "
                  "k] * *weight++;\n"
                  "            *sums = sum;\n"
                  "        }\n"
                  "    }\n"
                  "}\n\n";

// Rounds to the nearest number, ties to even, as the current mode of the FPU says and as the other form
// does; saturates; NaN gives what the other form gives.
#define NEAREST(type, name, saturate)                                                              \
    "static inline " type " berth_" name "(float x, int z) {\n"                                    \
    "    int32_t n;\n"                                                                             \
    "    if (z != 0 && x != x) return 0;\n"                                                        \
    "    __asm__(\"vcvtr.s32.f32 %1, %1\\n\\tvmov %0, %1\" : \"=r\"(n), \"+t\"(x));\n"             \
    "    if (z != 0) __asm__(\"qadd %0, %0, %1\" : \"+r\"(n) : \"r\"(z));\n"                       \
    "    __asm__(\"" saturate " %0, #8, %0\" : \"+r\"(n));\n"                                      \
    "    return (" type ")n;\n"                                                                    \
    "}\n\n"

static const struct {
    const char *name, *text;
} rounding[] = {{"berth_nearest_u8_f32", NEAREST("uint8_t", "nearest_u8_f32", "usat")},
                {"berth_nearest_i8_f32", NEAREST("int8_t", "nearest_i8_f32", "ssat")}};

const char *berth_c_plain_rounding(const char *name) {
    for (size_t i = 0; i < sizeof(rounding) / sizeof(rounding[0]); ++i)
        if (strcmp(rounding[i].name, name) == 0) return rounding[i].text;
    return NULL;
}

void berth_c_plain_add_products(const char *code, berth_strbuf *out) {
    bool has_pairs = strstr(code, "berth_sum_pairs(") != NULL;
    bool has_rows = strstr(code, "berth_sum_rows(") != NULL;
    bool has_windows = strstr(code, "berth_sum_windows(") != NULL;
    bool rounds = strstr(code, "berth_nearest_") != NULL;
    bool has_bytes = strstr(code, "berth_sum_bytes(") != NULL;
    bool has_vectors = strstr(code, "#if BERTH_MVE") != NULL;
    if (has_pairs || has_bytes || has_rows || has_windows || rounds || has_vectors)
        berth_strbuf_add(out, dsp);
    if (has_vectors) berth_strbuf_add(out, berth_c_plain_vector_functions);
    if (has_pairs) berth_strbuf_add(out, pairs);
    if (has_bytes) berth_c_plain_add_sum_bytes(out);
    if (has_rows) berth_strbuf_add(out, rows_mve);
    if (has_rows) berth_strbuf_add(out, rows_dsp);
    if (has_windows) berth_c_plain_add_sum_windows_3x3(out);
    if (has_windows) berth_strbuf_add(out, windows_mve);
    if (has_windows) berth_strbuf_add(out, windows);
    if (has_windows) berth_strbuf_add(out, windows_rest);
}
