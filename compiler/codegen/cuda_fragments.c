#include "compiler/codegen/cuda_fragments.h"

#include <string.h>

#include "compiler/codegen/c_together.h"
#include "compiler/codegen/cuda_groups.h"
#include "compiler/codegen/kernel_facts.h"

// ---- helper functions ---------------------------------------------------------------------------

// clang-format off
// In PTX; an emulation on the processor has its own (BERTH_EMULATED).
static const char instructions[] =
    "struct berth_rows { uint32_t at[4]; };\n"
    "struct berth_columns { uint32_t at[2]; };\n"
    "#ifndef BERTH_EMULATED\n"
    "BERTH_FN uint32_t berth_shared_place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }\n"
    "#define BERTH_LDMATRIX_4(NAME, WORD) BERTH_FN void NAME(uint32_t *r, const void *row) { \\\n"
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4\" WORD \".shared.b16 {%0, %1, %2, %3}, [%4];\" \\\n"
    "        : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(berth_shared_place(row)) : \"memory\"); }\n"
    "#define BERTH_LDMATRIX_2(NAME, WORD) BERTH_FN void NAME(uint32_t *r, const void *row) { \\\n"
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x2\" WORD \".shared.b16 {%0, %1}, [%2];\" \\\n"
    "        : \"=r\"(r[0]), \"=r\"(r[1]) : \"r\"(berth_shared_place(row)) : \"memory\"); }\n"
    "BERTH_LDMATRIX_4(berth_warp_load_4, \"\") BERTH_LDMATRIX_4(berth_warp_load_4_across, \".trans\")\n"
    "BERTH_LDMATRIX_2(berth_warp_load_2, \"\") BERTH_LDMATRIX_2(berth_warp_load_2_across, \".trans\")\n"
    "#define BERTH_MMA(NAME, SUM, T, LETTER, SHAPE) BERTH_FN void NAME(T *c, const uint32_t *a, const uint32_t *b) { \\\n"
    "    asm volatile(\"mma.sync.aligned.\" SHAPE \" {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\\n"
    "        : LETTER(c[0]), LETTER(c[1]), LETTER(c[2]), LETTER(c[3]) \\\n"
    "        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1])); }\n"
    "BERTH_MMA(berth_warp_mma_f16_f16, f32, float, \"+f\", \"m16n8k16.row.col.f32.f16.f16.f32\")\n"
    "BERTH_MMA(berth_warp_mma_bf16_bf16, f32, float, \"+f\", \"m16n8k16.row.col.f32.bf16.bf16.f32\")\n"
    "BERTH_MMA(berth_warp_mma_f32_f32, f32, float, \"+f\", \"m16n8k8.row.col.f32.tf32.tf32.f32\")\n"
    "BERTH_MMA(berth_warp_mma_i8_i8, i32, int32_t, \"+r\", \"m16n8k32.row.col.s32.s8.s8.s32\")\n"
    "BERTH_MMA(berth_warp_mma_u8_u8, i32, int32_t, \"+r\", \"m16n8k32.row.col.s32.u8.u8.s32\")\n"
    "BERTH_MMA(berth_warp_mma_u8_i8, i32, int32_t, \"+r\", \"m16n8k32.row.col.s32.u8.s8.s32\")\n"
    "BERTH_MMA(berth_warp_mma_i8_u8, i32, int32_t, \"+r\", \"m16n8k32.row.col.s32.s8.u8.s32\")\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800\n"
    "template <int BYTES> BERTH_FN void berth_copy_async(void *to, const void *from) {\n"
    "    if (BYTES == 16) *(int4 *)to = *(const int4 *)from;\n"
    "    else if (BYTES == 8) *(int2 *)to = *(const int2 *)from;\n"
    "    else *(int *)to = *(const int *)from; }\n"
    "template <int BYTES> BERTH_FN void berth_copy_where(void *to, const void *from, bool where) {\n"
    "    *(int *)to = where ? *(const int *)from : 0; }\n"
    "template <int LEFT> BERTH_FN void berth_copies_wait() {}\n"
    "#else\n"
    "template <int BYTES> BERTH_FN void berth_copy_async(void *to, const void *from) {\n"
    "    if (BYTES == 16)\n"
    "        asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \"r\"(berth_shared_place(to)), \"l\"(__cvta_generic_to_global(from)) : \"memory\");\n"
    "    else\n"
    "        asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2;\" :: \"r\"(berth_shared_place(to)), \"l\"(__cvta_generic_to_global(from)), \"n\"(BYTES) : \"memory\"); }\n"
    // Zeros behind the bytes that are read: none where not.
    "template <int BYTES> BERTH_FN void berth_copy_where(void *to, const void *from, bool where) {\n"
    "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\" :: \"r\"(berth_shared_place(to)), \"l\"(__cvta_generic_to_global(from)), \"n\"(BYTES), \"r\"(where ? BYTES : 0) : \"memory\"); }\n"
    "template <int LEFT> BERTH_FN void berth_copies_wait() {\n"
    "    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
    "    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(LEFT) : \"memory\"); }\n"
    "#endif\n"
    "#endif\n"
    // What is a multiple of PIECE alone, in as many pieces.
    "template <int BYTES, int PIECE, typename T> BERTH_FN void berth_copy_async(T *to, const T *from) {\n"
    "    #pragma unroll\n"
    "    for (int i = 0; i < BYTES / PIECE; ++i)\n"
    "        berth_copy_async<PIECE>(to + i * (PIECE / (int)sizeof(T)), from + i * (PIECE / (int)sizeof(T))); }\n";

// `from` is where a work-item's own part begins; a warp's begins where that of its first work-item does.
// Rows of 16 bytes each are handed to the instruction by the work-items in their order. STEP: elements
// from a row (a column) to the next, or where these lie across, from a term of the sum to the next.
static const char loads[] =
    "template <typename T, int STEP> BERTH_FN berth_rows berth_rows_of(const T *from) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    berth_rows r;\n"
    "    berth_warp_load_4(r.at, from - lane / 4 * STEP + lane % 16 * STEP + lane / 16 * (int)(16 / sizeof(T)));\n"
    "    return r; }\n"
    "template <typename T, int STEP> BERTH_FN berth_rows berth_rows_across(const T *from) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    berth_rows r;\n"
    "    berth_warp_load_4_across(r.at, from - lane / 4 + (lane % 8 + lane / 16 * 8) * STEP + lane / 8 % 2 * 8);\n"
    "    return r; }\n"
    "template <typename T, int STEP> BERTH_FN berth_columns berth_columns_of(const T *from) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    berth_columns r;\n"
    "    berth_warp_load_2(r.at, from - lane % 4 * 2 * STEP + lane % 8 * STEP + lane / 8 % 2 * (int)(16 / sizeof(T)));\n"
    "    return r; }\n"
    "template <typename T, int STEP> BERTH_FN berth_columns berth_columns_across(const T *from) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    berth_columns r;\n"
    "    berth_warp_load_2_across(r.at, from - lane % 4 * 2 + lane % 16 * STEP);\n"
    "    return r; }\n";
// clang-format on

void berth_cuda_fragments_preamble(berth_strbuf *out) {
    berth_strbuf_add(out, instructions);
    berth_strbuf_add(out, loads);
}

// ---- fragments ----------------------------------------------------------------------------------

typedef struct fragment {
    int64_t across;  // elements from a row to the one 8 below it, or from a column to the next
    int64_t along;   // from a term of the sum to the next
    bool rows;
} fragment;

// The form of a load of two rows or columns.
static bool form_of(berth_c_printer *p, const berth_expr_node *load, const berth_expr *indices,
                    berth_var warp, fragment *out) {
    enum { most = 64 };
    int64_t places[most];
    const berth_buf_info *info = &p->fn->bufs.data[load->load.buf];
    int64_t size = (int64_t)berth_dtype_size_bytes(info->dtype), depth = 32 / size;
    berth_linear first;
    if (load->lanes != 2 * depth || load->lanes > most || info->layout ||
        !berth_c_lane_places(p, load->load.buf, indices, load->index_count, load->lanes, &first,
                             places))
        return false;
    out->across = places[depth];
    out->along = places[1];
    for (int l = 0; l < load->lanes; ++l)
        if (places[l] != l / depth * out->across + l % depth * out->along) return false;
    out->rows = berth_kernel_moves_by(p->fn, &first, warp, BERTH_BINARY_DIV, 4, out->across / 8);
    if (out->rows) return out->across % 8 == 0;
    return berth_kernel_moves_by(p->fn, &first, warp, BERTH_BINARY_MOD, 4, 2 * out->across);
}

const char *berth_cuda_fragment(berth_c_printer *p, berth_expr id) {
    const berth_expr_node load = p->fn->exprs.data[id];
    const berth_buf_info *info = &p->fn->bufs.data[load.load.buf];
    berth_stmt warp = 0;
    fragment f = {0};
    if (info->scope != BERTH_SCOPE_LOCAL || load.lanes < 16 ||
        !berth_c_has_together(p->fn, p->nest, false))
        return NULL;
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_load_indices(p->fn, id), load.index_count * sizeof(berth_expr));
    if (!berth_c_all_come_by(p, &warp)) return NULL;
    const berth_stmt_node loop = p->fn->stmts.data[warp];
    int64_t items = berth_kernel_extent(p->fn, warp);
    if (!berth_c_has_together(p->fn, p->nest, true)) return berth_c_part(p, id, loop.var);
    if (berth_cuda_groups_reads(p, load.load.buf))
        return items == 32 ? berth_cuda_group_operand(p, &load, indices, loop.var) : NULL;
    if (items != 32 || !form_of(p, &load, indices, loop.var, &f)) return NULL;
    int64_t unit = f.rows ? f.across / 8 : f.across;
    int64_t size = (int64_t)berth_dtype_size_bytes(info->dtype);
    bool across = f.along != 1;
    int64_t step = across ? f.along : unit;
    if ((across && (unit != 1 || size != 2)) || step * size % 16 != 0) return NULL;
    return berth_arena_printf(p->arena, "berth_%s_%s<%s, %lld>(%s + %s)",
                              f.rows ? "rows" : "columns", across ? "across" : "of",
                              berth_c_storage_type(p, info->dtype), (long long)step,
                              berth_c_buffer_name(p, load.load.buf),
                              berth_c_offset(p, load.load.buf, indices, load.index_count));
}
