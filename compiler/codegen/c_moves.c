#include "compiler/codegen/c_moves.h"

#include <string.h>

#include "compiler/schedule/nest.h"

// clang-format off
// Lanes of two registers in turn, of their lower and of their upper halves: log2(side) rounds of that
// transpose a block (perfect shuffles; Stone, "Parallel Processing with the Perfect Shuffle", 1971). What the next blocks
// write, 128 bytes on in every row, is fetched ahead: rows lie too far apart for the processor to foresee it.
const char berth_c_preamble_moves[] =
    "#if defined(__clang__)\n"
    "#define BERTH_TURNS(M, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
    "#else\n"
    "#define BERTH_TURNS(M, a, b, ...) __builtin_shuffle(a, b, (M){__VA_ARGS__})\n"
    "#endif\n"
    "#define BERTH_LOW_4(M, a, b) BERTH_TURNS(M, a, b, 0, 4, 1, 5)\n"
    "#define BERTH_HIGH_4(M, a, b) BERTH_TURNS(M, a, b, 2, 6, 3, 7)\n"
    "#define BERTH_LOW_8(M, a, b) BERTH_TURNS(M, a, b, 0, 8, 1, 9, 2, 10, 3, 11)\n"
    "#define BERTH_HIGH_8(M, a, b) BERTH_TURNS(M, a, b, 4, 12, 5, 13, 6, 14, 7, 15)\n"
    "#define BERTH_LOW_16(M, a, b) BERTH_TURNS(M, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)\n"
    "#define BERTH_HIGH_16(M, a, b) BERTH_TURNS(M, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)\n"
    "#define BERTH_TRANSPOSE(S, N) \\\n"
    "typedef S##_t berth_row_##S##x##N __attribute__((vector_size(sizeof(S##_t) * N))); \\\n"
    "BERTH_FN void berth_transpose_##S##x##N(void *to, int64_t to_step, const void *from, int64_t from_step) { \\\n"
    "    berth_row_##S##x##N r[N], z[N]; \\\n"
    "    BERTH_UNROLL(16) \\\n"
    "    for (int i = 0; i < N; ++i) __builtin_memcpy(&r[i], (const S##_t *)from + i * from_step, sizeof(r[i])); \\\n"
    "    BERTH_UNROLL(4) \\\n"
    "    for (int round = 1; round < N; round *= 2) { \\\n"
    "        BERTH_UNROLL(8) \\\n"
    "        for (int i = 0; i < N / 2; ++i) { \\\n"
    "            z[2 * i] = BERTH_LOW_##N(berth_row_##S##x##N, r[i], r[i + N / 2]); \\\n"
    "            z[2 * i + 1] = BERTH_HIGH_##N(berth_row_##S##x##N, r[i], r[i + N / 2]); \\\n"
    "        } \\\n"
    "        BERTH_UNROLL(16) \\\n"
    "        for (int i = 0; i < N; ++i) r[i] = z[i]; \\\n"
    "    } \\\n"
    "    BERTH_UNROLL(16) \\\n"
    "    for (int i = 0; i < N; ++i) { \\\n"
    "        __builtin_memcpy((S##_t *)to + i * to_step, &r[i], sizeof(r[i])); \\\n"
    "        __builtin_prefetch((const char *)((S##_t *)to + i * to_step) + 128, 1); \\\n"
    "    } \\\n"
    "}\n"
    "/* Every other element, of two rows of which the second begins with the last one of the first: nothing is read beyond. */\n"
    "#define BERTH_EVENS_4(M, a, b) BERTH_TURNS(M, a, b, 0, 2, 5, 7)\n"
    "#define BERTH_EVENS_8(M, a, b) BERTH_TURNS(M, a, b, 0, 2, 4, 6, 9, 11, 13, 15)\n"
    "#define BERTH_EVENS_16(M, a, b) BERTH_TURNS(M, a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)\n"
    "#define BERTH_EVENS(B, N) \\\n"
    "typedef uint##B##_t berth_evens##B##x##N __attribute__((vector_size(B / 8 * N))); \\\n"
    "BERTH_FN berth_evens##B##x##N berth_evens_uint##B##x##N(const void *from) { \\\n"
    "    berth_evens##B##x##N a, b; \\\n"
    "    __builtin_memcpy(&a, from, sizeof(a)); \\\n"
    "    __builtin_memcpy(&b, (const uint##B##_t *)from + N - 1, sizeof(b)); \\\n"
    "    return BERTH_EVENS_##N(berth_evens##B##x##N, a, b); }\n"
    "BERTH_EVENS(8, 4) BERTH_EVENS(8, 8) BERTH_EVENS(8, 16) BERTH_EVENS(16, 4) BERTH_EVENS(16, 8) BERTH_EVENS(16, 16)\n"
    "BERTH_EVENS(32, 4) BERTH_EVENS(32, 8) BERTH_EVENS(32, 16)\n"
    "/* Elements that lie `step` apart: one by one they took 1.8 times as long with AVX-512, and loads behind such stores wait. */\n"
    "typedef float berth_steps_f32 __attribute__((vector_size(64)));\n"
    "typedef int32_t berth_steps_i32 __attribute__((vector_size(64)));\n"
    "#define BERTH_STEPS (berth_steps_i32){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}\n"
    "BERTH_FN berth_steps_f32 berth_load_steps_f32x16(const float *from, int32_t step) {\n"
    "#ifdef __AVX512F__\n"
    "    uint16_t all = (uint16_t)-1;\n"
    "    __asm__(\"\" : \"+Yk\"(all)); /* GCC 12.2 clears nothing for a mask that it knows, and the register waits for what was in it */\n"
    "    return __builtin_ia32_gathersiv16sf((berth_steps_f32){0}, from, BERTH_STEPS * step, all, 4);\n"
    "#else\n"
    "    union { float at[16]; berth_steps_f32 v; } u;\n"
    "    for (int i = 0; i < 16; ++i) u.at[i] = from[i * step];\n"
    "    return u.v;\n"
    "#endif\n"
    "}\n"
    "BERTH_FN void berth_store_steps_f32x16(float *to, int32_t step, berth_steps_f32 v) {\n"
    "#ifdef __AVX512F__\n"
    "    __builtin_ia32_scattersiv16sf(to, (uint16_t)-1, BERTH_STEPS * step, v, 4);\n"
    "#else\n"
    "    for (int i = 0; i < 16; ++i) to[i * step] = v[i];\n"
    "#endif\n"
    "}\n"
    "BERTH_TRANSPOSE(uint8, 16)\n"
    "BERTH_TRANSPOSE(uint8, 8)\n"
    "BERTH_TRANSPOSE(uint16, 8)\n"
    "BERTH_TRANSPOSE(uint32, 16)\n"
    "BERTH_TRANSPOSE(uint32, 8)\n"
    "BERTH_TRANSPOSE(uint64, 8)\n"
    "BERTH_TRANSPOSE(uint64, 4)\n";

const char berth_c_preamble_rows[] =
    "/* A row that ends within a register: its last one begins before its end. One by one its last bytes took most of the time. */\n"
    "#define BERTH_PIECE(N) \\\n"
    "typedef uint8_t berth_piece_##N __attribute__((vector_size(N))); \\\n"
    "BERTH_FN void berth_piece_copy_##N(char *to, const char *from) { \\\n"
    "    berth_piece_##N x; __builtin_memcpy(&x, from, N); __builtin_memcpy(to, &x, N); }\n"
    "BERTH_PIECE(64) BERTH_PIECE(32) BERTH_PIECE(16) BERTH_PIECE(8)\n"
    "BERTH_FN void berth_copy_row(void *to, const void *from, int64_t bytes) {\n"
    "    char *t = (char *)to; const char *f = (const char *)from; int64_t left = bytes % 64;\n"
    "    for (int64_t i = 0; i + 64 <= bytes; i += 64) berth_piece_copy_64(t + i, f + i);\n"
    "    t += bytes - left; f += bytes - left;\n"
    "    if (left >= 32) { berth_piece_copy_32(t, f); berth_piece_copy_32(t + left - 32, f + left - 32); }\n"
    "    else if (left >= 16) { berth_piece_copy_16(t, f); berth_piece_copy_16(t + left - 16, f + left - 16); }\n"
    "    else if (left >= 8) { berth_piece_copy_8(t, f); berth_piece_copy_8(t + left - 8, f + left - 8); }\n"
    "    else for (int64_t i = 0; i < left; ++i) t[i] = f[i];\n"
    "}\n";
// clang-format on

bool berth_transpose_block_serves(int64_t side, size_t size_bytes) {
    switch (size_bytes) {
    case 1:
    case 4: return side == 16 || side == 8;
    case 2: return side == 8;
    case 8: return side == 8 || side == 4;
    default: return false;
    }
}

typedef struct access {
    berth_buf buf;
    const berth_expr *indices;
    int count;
} access;

// How far apart elements are along a loop; -1: not evenly.
static int64_t step_of(berth_c_printer *p, const access *a, berth_var var) {
    bool linear = false;
    berth_linear at = berth_linear_access(p->fn, &p->ranges, a->buf, a->indices, a->count);
    int64_t step = berth_linear_stride(p->fn, &at, var, &linear);
    return linear && step >= 0 ? step : -1;
}

// The first element of the block.
static const char *address(berth_c_printer *p, const access *a, berth_var along, berth_var across) {
    berth_expr zero = berth_tfn_index(p->fn, 0);
    berth_expr first[BERTH_MAX_RANK];
    for (int i = 0; i < a->count; ++i)
        first[i] = berth_replace_var(p->fn, berth_replace_var(p->fn, a->indices[i], along, zero),
                                     across, zero);
    return berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, a->buf),
                              berth_c_offset(p, a->buf, first, a->count));
}

static bool in_memory(const berth_c_printer *p, berth_buf buf) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    return info->lanes == 1 &&
           (info->scope == BERTH_SCOPE_PARAM || info->scope == BERTH_SCOPE_WORKSPACE ||
            info->scope == BERTH_SCOPE_LOCAL);
}

// What a store writes, and a load reads. `indices` gets a copy: looking at them adds expressions.
static access stored(const berth_tfn *fn, berth_stmt id, berth_expr *indices) {
    const berth_stmt_node *store = &fn->stmts.data[id];
    memcpy(indices, berth_tfn_store_indices(fn, id), (size_t)store->index_count * sizeof(*indices));
    return (access){store->buf, indices, store->index_count};
}

static access loaded(const berth_tfn *fn, berth_expr id, berth_expr *indices) {
    const berth_expr_node *load = &fn->exprs.data[id];
    memcpy(indices, berth_tfn_load_indices(fn, id), (size_t)load->index_count * sizeof(*indices));
    return (access){load->load.buf, indices, load->index_count};
}

bool berth_c_print_moves(berth_c_printer *p, const berth_stmt_node *loop) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node outer = *loop;
    const berth_stmt_node inner = fn->stmts.data[outer.body];
    int64_t side = 0;
    int64_t other = 0;
    if (outer.loop_kind != BERTH_LOOP_UNROLL || inner.kind != BERTH_STMT_FOR ||
        inner.loop_kind != BERTH_LOOP_UNROLL || !berth_tfn_const_value(fn, outer.value, &side) ||
        !berth_tfn_const_value(fn, inner.value, &other) || side != other)
        return false;
    const berth_stmt_node store = fn->stmts.data[inner.body];
    if (store.kind != BERTH_STMT_STORE) return false;
    berth_dtype dtype = fn->bufs.data[store.buf].dtype;
    berth_expr load = berth_tfn_moved(fn, dtype, store.value);
    size_t size_bytes = berth_dtype_size_bytes(dtype);
    if (!load || !berth_transpose_block_serves(side, size_bytes)) return false;
    berth_expr indices[2][BERTH_MAX_RANK];
    access to = stored(fn, inner.body, indices[0]), from = loaded(fn, load, indices[1]);
    int64_t to_step = step_of(p, &to, inner.var);
    int64_t from_step = step_of(p, &from, outer.var);
    if (!in_memory(p, to.buf) || !in_memory(p, from.buf) || to_step < 0 || from_step < 0 ||
        step_of(p, &to, outer.var) != 1 || step_of(p, &from, inner.var) != 1)
        return false;
    berth_c_line(p, "berth_transpose_uint%dx%d(%s, %s, %s, %s);", 8 * (int)size_bytes, (int)side,
                 address(p, &to, outer.var, inner.var),
                 berth_c_linear(p, (berth_linear){.constant = to_step}),
                 address(p, &from, outer.var, inner.var),
                 berth_c_linear(p, (berth_linear){.constant = from_step}));
    return true;
}

bool berth_c_print_row(berth_c_printer *p, const berth_stmt_node *loop) {
    // What compilers leave of rows after whole registers and half ones they move one by one.
    enum { piece_bytes = 32, most_bytes = 512, most_size = 2, least_rest = 8 };
    berth_tfn *fn = p->fn;
    const berth_stmt_node outer = *loop;
    const berth_stmt_node store = fn->stmts.data[outer.body];
    int64_t extent = 0;
    if (p->marks_numbers || outer.loop_kind != BERTH_LOOP_SIMD || store.kind != BERTH_STMT_STORE ||
        !berth_tfn_const_value(fn, outer.value, &extent))
        return false;
    const berth_buf_info info = fn->bufs.data[store.buf];
    berth_expr load = berth_tfn_moved(fn, info.dtype, store.value);
    int64_t size_bytes = (int64_t)berth_dtype_size_bytes(info.dtype), bytes = extent * size_bytes;
    if (!load || size_bytes > most_size || bytes > most_bytes ||
        bytes % piece_bytes < least_rest * size_bytes)
        return false;
    berth_expr indices[2][BERTH_MAX_RANK];
    access to = stored(fn, outer.body, indices[0]), from = loaded(fn, load, indices[1]);
    const berth_buf_info from_info = fn->bufs.data[from.buf];
    bool same = to.buf == from.buf || (info.may_alias && from_info.may_alias);
    if (same || !in_memory(p, to.buf) || !in_memory(p, from.buf) ||
        step_of(p, &to, outer.var) != 1 || step_of(p, &from, outer.var) != 1)
        return false;
    berth_c_line(p, "berth_copy_row(%s, %s, %lld);", address(p, &to, outer.var, outer.var),
                 address(p, &from, outer.var, outer.var), (long long)bytes);
    return true;
}

// The element that a load reads, as its bits.
static const char *bits_of_load(berth_c_printer *p, berth_expr load) {
    const berth_expr_node from = p->fn->exprs.data[load];
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < from.index_count; ++i) indices[i] = berth_tfn_load_indices(p->fn, load)[i];
    return berth_arena_printf(p->arena, "%s[%s]", berth_c_buffer_name(p, from.load.buf),
                              berth_c_offset(p, from.load.buf, indices, from.index_count));
}

static const char *bits_of(berth_c_printer *p, berth_dtype dtype, berth_expr value) {
    const berth_expr_node node = p->fn->exprs.data[berth_tfn_unrounded(p->fn, dtype, value)];
    if (node.kind == BERTH_EXPR_FLOAT) return "0";
    if (node.kind != BERTH_EXPR_SELECT)
        return bits_of_load(p, berth_tfn_moved(p->fn, dtype, value));
    const char *condition = berth_c_condition(p, node.a);
    const char *sides[2] = {bits_of(p, dtype, node.b), bits_of(p, dtype, node.c)};
    for (int i = 0; i < 2 && berth_c_computes_both(p, &node); ++i) {
        const char *name = berth_arena_printf(p->arena, "t%u", p->next_temporary++);
        berth_c_line(p, "const uint16_t %s = %s;", name, sides[i]);
        sides[i] = name;
    }
    return berth_arena_printf(p->arena, "(%s ? %s : %s)", condition, sides[0], sides[1]);
}

// Whether all that is read, and the conditions, are single elements in memory.
static bool has_bits(const berth_c_printer *p, berth_dtype dtype, berth_expr value) {
    const berth_expr_node *node = &p->fn->exprs.data[berth_tfn_unrounded(p->fn, dtype, value)];
    if (node->kind == BERTH_EXPR_FLOAT) return true;
    if (node->kind == BERTH_EXPR_SELECT)
        return node->lanes == 1 && has_bits(p, dtype, node->b) && has_bits(p, dtype, node->c);
    return in_memory(p, p->fn->exprs.data[berth_tfn_moved(p->fn, dtype, value)].load.buf);
}

bool berth_c_store_bits(berth_c_printer *p, berth_stmt store) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node node = fn->stmts.data[store];
    berth_dtype dtype = fn->bufs.data[node.buf].dtype;
    if (dtype == berth_c_compute_type(dtype) ||
        fn->exprs.data[node.value].kind == BERTH_EXPR_FLOAT ||
        !berth_tfn_only_moves(fn, dtype, node.value) || !in_memory(p, node.buf) ||
        !has_bits(p, dtype, node.value))
        return false;
    berth_expr indices[BERTH_MAX_RANK + 1];
    for (int i = 0; i < node.index_count; ++i) indices[i] = berth_tfn_store_indices(fn, store)[i];
    indices[node.index_count] = node.value;
    berth_c_begin_statement(p, indices, node.index_count + 1);
    const char *to = berth_c_offset(p, node.buf, indices, node.index_count);
    const char *bits = bits_of(p, dtype, node.value);
    berth_c_line(p, "%s[%s] = %s;", berth_c_buffer_name(p, node.buf), to, bits);
    berth_c_end_statement(p);
    return true;
}
