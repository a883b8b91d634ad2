#include "compiler/codegen/c_lookup.h"

#include "compiler/schedule/nest.h"

// clang-format off
const char berth_c_preamble_lookup[] =
    "/* to[i] = table[from[i] ^ flip]; to = from, or apart. With AVX-512 VBMI the table is in four registers: one instruction\n"
    "   looks up in two of them, and the highest bit chooses between the two results. */\n"
    "#if defined(__AVX512VBMI__) && !defined(__clang__)\n"
    "typedef char berth_bytes64 __attribute__((vector_size(64)));\n"
    "typedef char berth_bytes64_u __attribute__((vector_size(64), aligned(1), may_alias));\n"
    "BERTH_FN berth_bytes64 berth_lookup_64(berth_bytes64 x, const berth_bytes64 t[4]) {\n"
    "    const berth_bytes64 low = __builtin_shuffle(t[0], t[1], x), high = __builtin_shuffle(t[2], t[3], x), is_high = x < 0;\n"
    "    return (is_high & high) | (~is_high & low); }\n"
    "BERTH_FN void berth_lookup(void *to, const void *from, int64_t count, const void *table, int flip) {\n"
    "    const berth_bytes64_u *at = table;\n"
    "    const berth_bytes64 t[4] = {at[0], at[1], at[2], at[3]}, flips = (berth_bytes64){0} + (char)flip;\n"
    "    int64_t i = 0;\n"
    "    for (; i + 64 <= count; i += 64)\n"
    "        *(berth_bytes64_u *)((char *)to + i) = berth_lookup_64(*(const berth_bytes64_u *)((const char *)from + i) ^ flips, t);\n"
    "    if (i == count) return;\n"
    "    const uint64_t rest = ~(uint64_t)0 >> (64 - (count - i));\n"
    "    const berth_bytes64 x = __builtin_ia32_loaddquqi512_mask((const char *)from + i, (berth_bytes64){0}, rest);\n"
    "    __builtin_ia32_storedquqi512_mask((char *)to + i, berth_lookup_64(x ^ flips, t), rest); }\n"
    "#else\n"
    "BERTH_FN void berth_lookup(void *to, const void *from, int64_t count, const void *table, int flip) {\n"
    "    for (int64_t i = 0; i < count; ++i)\n"
    "        ((uint8_t *)to)[i] = ((const uint8_t *)table)[((const uint8_t *)from)[i] ^ flip]; }\n"
    "#endif\n";
// clang-format on

enum { entries = 256 };

static bool has_8_bits(const berth_c_printer *p, berth_buf buf) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    return info->lanes == 1 && (info->dtype == BERTH_DTYPE_U8 || info->dtype == BERTH_DTYPE_I8);
}

static bool goes_along(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                       berth_var var) {
    bool linear = false;
    berth_linear at = berth_linear_access(p->fn, &p->ranges, buf, indices, count);
    return berth_linear_stride(p->fn, &at, var, &linear) == 1 && linear;
}

// The first element of an access.
static const char *address(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                           berth_var var) {
    berth_expr first[BERTH_MAX_RANK];
    for (int i = 0; i < count; ++i)
        first[i] = berth_replace_var(p->fn, indices[i], var, berth_tfn_index(p->fn, 0));
    return berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, buf),
                              berth_c_offset(p, buf, first, count));
}

// The element that says where to look, where a load reads table[x] or table[x + 128]; 0: it is another load.
static berth_expr place_of(const berth_c_printer *p, berth_expr load) {
    berth_tfn *fn = p->fn;
    const berth_expr_node node = fn->exprs.data[load];
    int64_t distance = 0;
    if (node.kind != BERTH_EXPR_LOAD || node.lanes > 1 || node.index_count != 1 ||
        fn->bufs.data[node.load.buf].dims[0] != entries || !has_8_bits(p, node.load.buf))
        return 0;
    berth_expr_node place = fn->exprs.data[berth_tfn_load_indices(fn, load)[0]];
    if (place.kind == BERTH_EXPR_BINARY && place.op == BERTH_BINARY_ADD &&
        berth_tfn_const_value(fn, place.b, &distance))
        place = fn->exprs.data[place.a];
    if (place.kind != BERTH_EXPR_CAST) return 0;
    const berth_expr_node *from = &fn->exprs.data[place.a];
    bool is_signed = from->dtype == BERTH_DTYPE_I8;
    return from->kind == BERTH_EXPR_LOAD && has_8_bits(p, from->load.buf) &&
                   distance == (is_signed ? entries / 2 : 0)
               ? place.a
               : 0;
}

bool berth_c_print_lookups(berth_c_printer *p, const berth_stmt_node *loop) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node store = fn->stmts.data[loop->body];
    if (loop->loop_kind != BERTH_LOOP_SIMD || store.kind != BERTH_STMT_STORE ||
        !has_8_bits(p, store.buf))
        return false;
    berth_expr place = place_of(p, store.value);
    if (!place) return false;
    const berth_expr_node from = fn->exprs.data[place];
    berth_expr indices[2][BERTH_MAX_RANK];
    for (int i = 0; i < store.index_count; ++i)
        indices[0][i] = berth_tfn_store_indices(fn, loop->body)[i];
    for (int i = 0; i < from.index_count; ++i) indices[1][i] = berth_tfn_load_indices(fn, place)[i];
    if (!goes_along(p, store.buf, indices[0], store.index_count, loop->var) ||
        !goes_along(p, from.load.buf, indices[1], from.index_count, loop->var))
        return false;
    berth_c_line(p, "berth_lookup(%s, %s, %s, %s, %d);",
                 address(p, store.buf, indices[0], store.index_count, loop->var),
                 address(p, from.load.buf, indices[1], from.index_count, loop->var),
                 berth_c_index(p, loop->value),
                 berth_c_buffer_name(p, fn->exprs.data[store.value].load.buf),
                 from.dtype == BERTH_DTYPE_I8 ? entries / 2 : 0);
    return true;
}
