#include "compiler/codegen/cuda_groups.h"

#include <stdio.h>
#include <string.h>

#include "compiler/codegen/kernel_facts.h"

enum { line_bytes = 128, block_lines = 64, stride_bytes = 8 * line_bytes };
enum { piece_bytes = 16, piece_stride_bytes = 8 * piece_bytes };  // of lines in a panel

// ---- helper functions ---------------------------------------------------------------------------

// clang-format off
// A descriptor: bits 0-13 where the operand begins, 16-29 and 32-45 distances, all in 16 bytes, 62-63 the swizzle
// (1: 128 bytes). Along the sum (ACROSS false) a line has terms and the second distance is that from 8 lines
// to the next; across it has 64 rows or columns, the first distance is that to the next 64, the second that from 8 terms to
// the next. In panels (no swizzle) the first distance is that to the next 16 bytes of the sum, the second that from 8 lines to the
// next. `from` is where a work-item's own part begins, STEP the elements from a row (column) to the next.
static const char helpers[] =
    "#if !defined(BERTH_EMULATED) && defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
    "#error \"kernels with wgmma need a device of compute capability 9.0 and NVRTC 12.0 or newer: build the program for this device, or for -arch=sm_80\"\n"
    "#endif\n"
    "template <bool ACROSS> struct berth_tile { uint64_t bits; };\n"
    "template <bool ACROSS> BERTH_FN berth_tile<ACROSS> berth_tile_at(const void *from, int distance) {\n"
    "    return {(uint64_t)(berth_shared_place(from) >> 4 & 0x3fff) | (uint64_t)(distance >> 4) << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62}; }\n"
    "template <bool ACROSS, int STEP, int DISTANCE, typename T> BERTH_FN berth_tile<ACROSS> berth_group_rows(const T *from) {\n"
    "    return berth_tile_at<ACROSS>(from - ((int)threadIdx.x / 4 + (int)threadIdx.y % 4 * 16) * STEP, DISTANCE); }\n"
    "template <bool ACROSS, int STEP, int DISTANCE, typename T> BERTH_FN berth_tile<ACROSS> berth_group_columns(const T *from) {\n"
    "    return berth_tile_at<ACROSS>(from - (int)threadIdx.x % 4 * 2 * STEP, DISTANCE); }\n"
    "BERTH_FN berth_tile<false> berth_panel_at(const void *from, int distance) {\n"
    "    return {(uint64_t)(berth_shared_place(from) >> 4 & 0x3fff) | (uint64_t)(distance >> 4) << 16 | (uint64_t)8 << 32}; }\n"
    "template <int STEP, int DISTANCE, typename T> BERTH_FN berth_tile<false> berth_panel_rows(const T *from) {\n"
    "    return berth_panel_at(from - ((int)threadIdx.x / 4 + (int)threadIdx.y % 4 * 16) * STEP, DISTANCE); }\n"
    "template <int STEP, int DISTANCE, typename T> BERTH_FN berth_tile<false> berth_panel_columns(const T *from) {\n"
    "    return berth_panel_at(from - (int)threadIdx.x % 4 * 2 * STEP, DISTANCE); }\n"
    "template <int SIZE> BERTH_FN int berth_swizzled(int at) { return at ^ (at / 8 & 112 / SIZE); }\n"
    "#ifndef BERTH_EMULATED\n"
    "BERTH_FN void berth_keep(float &x) { asm volatile(\"\" : \"+f\"(x) :: \"memory\"); }\n"
    "BERTH_FN void berth_keep(int32_t &x) { asm volatile(\"\" : \"+r\"(x) :: \"memory\"); }\n"
    "template <int LEFT, typename T, int N, int COUNT> BERTH_FN void berth_units_wait(berth_vec<T, N> (&sums)[COUNT]) {\n"
    "    asm volatile(\"wgmma.commit_group.sync.aligned;\\n\\twgmma.wait_group.sync.aligned %0;\" :: \"n\"(LEFT) : \"memory\");\n"
    "    if (LEFT == 0) _Pragma(\"unroll\") for (int v = 0; v < COUNT; ++v)\n"
    "        BERTH_LANES(N) berth_keep(sums[v].at[i]); }\n"
    "template <typename T, int N, int COUNT> BERTH_FN void berth_units_begin(berth_vec<T, N> (&sums)[COUNT]) {\n"
    "    _Pragma(\"unroll\") for (int v = 0; v < COUNT; ++v)\n"
    "        BERTH_LANES(N) berth_keep(sums[v].at[i]);\n"
    "    asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"
    "BERTH_FN void berth_units_see() { asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); }\n"
    "#endif\n";
// clang-format on

static bool is_used(const berth_codegen_job *job, const char *text) {
    for (uint32_t i = 0; i < job->count; ++i)
        if (strstr(job->units[i].code->source, text)) return true;
    return false;
}

static const char *ptx_type(berth_dtype dtype) {
    switch (dtype) {
    case BERTH_DTYPE_F16: return "f16";
    case BERTH_DTYPE_BF16: return "bf16";
    case BERTH_DTYPE_I8: return "s8";
    case BERTH_DTYPE_U8: return "u8";
    case BERTH_DTYPE_I32: return "s32";
    default: return "f32";
    }
}

// berth_unit_<name>: the instruction, whose sums are operands 0 .. lanes - 1.
static void add_instruction(berth_strbuf *out, const berth_intrinsic_facts *facts) {
    int lanes = facts->operands[0].lanes, columns = 2 * lanes;
    bool is_float = facts->operands[0].dtype == BERTH_DTYPE_F32;
    size_t depth = 32 / berth_dtype_size_bytes(facts->operands[1].dtype);
    berth_strbuf_addf(out,
                      "template <bool A, bool B> BERTH_FN void berth_unit_%s(%s *c, uint64_t a, "
                      "uint64_t b) {\n    asm volatile(\"{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, "
                      "%%%d, 0;\\n\\twgmma.mma_async.sync.aligned.m64n%dk%zu.%s.%s.%s {",
                      facts->name, is_float ? "float" : "int32_t", lanes + 2, columns, depth,
                      ptx_type(facts->operands[0].dtype), ptx_type(facts->operands[1].dtype),
                      ptx_type(facts->operands[2].dtype));
    for (int i = 0; i < lanes; ++i) berth_strbuf_addf(out, i ? ", %%%d" : "%%%d", i);
    berth_strbuf_addf(out, "}, %%%d, %%%d, p", lanes, lanes + 1);
    if (is_float) berth_strbuf_addf(out, ", 1, 1, %%%d, %%%d", lanes + 3, lanes + 4);
    berth_strbuf_add(out, ";\\n\\t}\"\n        : ");
    for (int i = 0; i < lanes; ++i)
        berth_strbuf_addf(out, "%s\"+%s\"(c[%d])", i ? ", " : "", is_float ? "f" : "r", i);
    berth_strbuf_addf(out, "\n        : \"l\"(a), \"l\"(b), \"r\"(1)%s : \"memory\"); }\n",
                      is_float ? ", \"n\"(A), \"n\"(B)" : "");
}

void berth_cuda_groups_preamble(berth_strbuf *out, const berth_codegen_job *job) {
    if (!is_used(job, "berth_tile<")) return;
    berth_strbuf_add(out, helpers);
    berth_strbuf_add(out, "#ifndef BERTH_EMULATED\n");
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        const berth_intrinsic_facts *facts = berth_intrinsic_get((berth_intrinsic)i);
        char name[64];
        (void)snprintf(name, sizeof(name), "berth_unit_%s<", facts->name);
        if (berth_intrinsic_is_of_warpgroup(facts) && is_used(job, name))
            add_instruction(out, facts);
    }
    berth_strbuf_add(out, "#endif\n");
}

// ---- the nest -----------------------------------------------------------------------------------

// Calls `visit` for every store of what warpgroups compute.
static void each_product(berth_c_printer *p, berth_stmt id,
                         void (*visit)(berth_c_printer *p, const berth_stmt_node *store)) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    if (!id) return;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node.count; ++i)
            each_product(p, p->fn->lists.data[node.first + i], visit);
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        each_product(p, node.body, visit);
        each_product(p, node.other, visit);
    }
    if (node.kind != BERTH_STMT_STORE) return;
    const berth_expr_node *value = &p->fn->exprs.data[node.value];
    if (value->kind == BERTH_EXPR_INTRINSIC &&
        berth_intrinsic_is_of_warpgroup(berth_intrinsic_get((berth_intrinsic)value->op)))
        visit(p, &node);
}

static void mark_operand(berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    if (node->kind != BERTH_EXPR_LOAD) return;
    const berth_buf_info *info = &p->fn->bufs.data[node->load.buf];
    int64_t line = info->dims[info->rank - 1] * (int64_t)berth_dtype_size_bytes(info->dtype);
    (line == piece_bytes ? p->is_panel : p->is_swizzled)[node->load.buf] = true;
}

static void mark_operands(berth_c_printer *p, const berth_stmt_node *store) {
    const berth_expr_node *value = &p->fn->exprs.data[store->value];
    if (!p->is_swizzled) {
        p->is_swizzled = berth_arena_new_array(p->arena, bool, p->fn->bufs.count);
        p->is_panel = berth_arena_new_array(p->arena, bool, p->fn->bufs.count);
    }
    mark_operand(p, value->b);
    mark_operand(p, value->c);
}

void berth_cuda_groups_open(berth_c_printer *p) {
    p->is_swizzled = p->is_panel = NULL;
    each_product(p, p->nest, mark_operands);
}

bool berth_cuda_groups_reads(const berth_c_printer *p, berth_buf buf) {
    return p->is_swizzled && (p->is_swizzled[buf] || p->is_panel[buf]);
}

const char *berth_cuda_groups_place(berth_c_printer *p, berth_buf buf, const char *offset) {
    if (!p->is_swizzled || !p->is_swizzled[buf]) return offset;
    return berth_arena_printf(p->arena, "berth_swizzled<%zu>(%s)",
                              berth_dtype_size_bytes(p->fn->bufs.data[buf].dtype), offset);
}

// The sums of the nest: the first buffer that products are stored to.
static const char *sums_of(berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    const char *found = NULL;
    if (!id) return NULL;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; !found && i < node.count; ++i)
            found = sums_of(p, p->fn->lists.data[node.first + i]);
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        found = sums_of(p, node.body);
        if (!found) found = sums_of(p, node.other);
    }
    if (node.kind != BERTH_STMT_STORE) return found;
    const berth_expr_node *value = &p->fn->exprs.data[node.value];
    bool is_product =
        value->kind == BERTH_EXPR_INTRINSIC &&
        berth_intrinsic_is_of_warpgroup(berth_intrinsic_get((berth_intrinsic)value->op));
    return is_product ? berth_c_buffer_name(p, node.buf) : NULL;
}

void berth_cuda_groups_before_barrier(berth_c_printer *p, int products) {
    if (p->is_swizzled) berth_c_line(p, "berth_units_wait<%d>(%s);", products, sums_of(p, p->nest));
}

void berth_cuda_groups_after_barrier(berth_c_printer *p) {
    if (p->is_swizzled) berth_c_line(p, "berth_units_begin(%s);", sums_of(p, p->nest));
}

// ---- operands -----------------------------------------------------------------------------------

// The loop over warps along y, where warpgroups lie along it whole; 0: they do not.
static berth_stmt warps_of(const berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    berth_stmt found = 0;
    if (!id) return 0;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; !found && i < node.count; ++i)
            found = warps_of(p, p->fn->lists.data[node.first + i]);
    if (node.kind != BERTH_STMT_FOR) return found;
    if (node.loop_kind == BERTH_LOOP_LOCAL_Y)
        return berth_kernel_extent(p->fn, id) % 4 == 0 ? id : 0;
    return warps_of(p, node.body);
}

// Where lane `l` of an operand lies, from its first one.
typedef struct form {
    bool rows, across, panel;
    int64_t depth, line, distance;  // in elements
} form;

// What a term of an address moves with.
typedef enum part { SAME, LANE_DIV_4, LANE_MOD_4, WARP_MOD_4, OTHER } part;

// `by_warp`: bytes from a warp's rows to the next one's.
static part part_of(const berth_c_printer *p, berth_expr atom, berth_var lane, berth_var warp,
                    int64_t by_warp) {
    const berth_expr_node node = p->fn->exprs.data[atom];
    bool with_lane = berth_tfn_uses_var(p->fn, atom, lane);
    bool with_warp = berth_tfn_uses_var(p->fn, atom, warp);
    int64_t by = 0;
    if (!with_lane && !with_warp) return SAME;
    // The number of a warp is that in its warpgroup, but for whole warpgroups in front of it.
    if (node.kind == BERTH_EXPR_VAR && with_warp)
        return berth_range_of(p->fn, &p->ranges, atom).high < 4 || 4 * by_warp % stride_bytes == 0
                   ? WARP_MOD_4
                   : OTHER;
    if (node.kind != BERTH_EXPR_BINARY || p->fn->exprs.data[node.a].kind != BERTH_EXPR_VAR ||
        !berth_tfn_const_value(p->fn, node.b, &by) || by != 4)
        return OTHER;
    if (node.op == BERTH_BINARY_DIV) return with_lane ? LANE_DIV_4 : SAME;
    if (node.op == BERTH_BINARY_MOD) return with_lane ? LANE_MOD_4 : WARP_MOD_4;
    return OTHER;
}

// Whether the operand begins, for all work-items of a warpgroup alike, where descriptors may: at a multiple of 8 lines, or
// of 32 bytes within the first of them (in panels, which have no more of a line, at the former).
static bool begins_well(const berth_c_printer *p, const berth_linear *at, berth_var lane,
                        berth_var warp, const form *f, int64_t step, int64_t size) {
    int found[OTHER] = {0};
    int64_t lines = f->panel ? piece_stride_bytes : stride_bytes;
    int64_t within = at->constant * size % lines;
    if (f->panel ? within : within % 32 || within >= line_bytes) return false;
    for (int i = 0; i < at->count; ++i) {
        part which = part_of(p, at->terms[i].atom, lane, warp, 16 * step * size);
        int64_t by = at->terms[i].coefficient;
        if (which == SAME && by * size % lines && (f->panel || by * size != 32)) return false;
        if (which == OTHER || (which == LANE_DIV_4 && by != step) ||
            (which == LANE_MOD_4 && by != 2 * step) || (which == WARP_MOD_4 && by != 16 * step))
            return false;
        found[which]++;
    }
    return found[LANE_DIV_4] == f->rows && found[WARP_MOD_4] == f->rows &&
           found[LANE_MOD_4] == !f->rows;
}

static int64_t place_of(const form *f, int64_t l) {
    int64_t term = l % f->depth, which = l / f->depth;
    int64_t line = f->rows ? 8 * which : which / 2 * 8 + which % 2;
    if (f->panel) return line * f->line + term / f->line * f->distance + term % f->line;
    int64_t block = line / block_lines * f->distance;
    line %= block_lines;
    return block + (f->across ? line + term * f->line : line * f->line + term);
}

const char *berth_cuda_group_operand(berth_c_printer *p, const berth_expr_node *load,
                                     const berth_expr *indices, berth_var warp) {
    const berth_buf_info *info = &p->fn->bufs.data[load->load.buf];
    int64_t size = (int64_t)berth_dtype_size_bytes(info->dtype);
    int64_t *places = berth_arena_new_array(p->arena, int64_t, load->lanes);
    berth_stmt warps = warps_of(p, p->nest);
    berth_linear first;
    form f = {.depth = 32 / size, .line = line_bytes / size};
    if (!warps || info->layout || load->lanes < 2 * f.depth ||
        !berth_c_lane_places(p, load->load.buf, indices, load->index_count, load->lanes, &first,
                             places))
        return NULL;
    f.rows = load->lanes == 2 * f.depth;
    f.panel = p->is_panel[load->load.buf];
    f.across = !f.panel && places[1] != 1;
    if (f.panel) f.line = piece_bytes / size;
    int64_t within = f.panel ? f.line : 16 * f.depth;  // the first lane that is `distance` away
    f.distance = load->lanes > within ? places[within] : block_lines * f.line;
    if ((f.across && size != 2) || (!f.across && !f.panel && f.distance != block_lines * f.line) ||
        f.distance * size % stride_bytes || f.distance * size >> 4 > 0x3fff)
        return NULL;
    for (int64_t l = 0; l < load->lanes; ++l)
        if (places[l] != place_of(&f, l)) return NULL;
    int64_t step = f.across ? 1 : f.line;
    if (!begins_well(p, &first, warp, p->fn->stmts.data[warps].var, &f, step, size)) return NULL;
    const char *which = f.rows ? "rows" : "columns";
    const char *across = f.panel ? "" : f.across ? "true, " : "false, ";
    return berth_arena_printf(p->arena, "berth_%s_%s<%s%lld, %lld>(%s + %s)",
                              f.panel ? "panel" : "group", which, across, (long long)step,
                              (long long)(f.distance * size),
                              berth_c_buffer_name(p, load->load.buf), berth_c_linear(p, first));
}
