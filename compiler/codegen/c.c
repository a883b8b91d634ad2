// C with GCC/Clang vector types: kernels of the cpu device (artifact/kernel_abi.h).
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/c_lookup.h"
#include "compiler/codegen/c_moves.h"
#include "compiler/codegen/c_preamble.h"
#include "compiler/codegen/c_units.h"
#include "compiler/codegen/template.h"
#include "compiler/compile.h"
#include "compiler/toolchain/toolchain.h"

#define BEGIN_TILES "berth_tiles_begin();"  // in front of what uses a matrix unit

static bool is_output(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    return info->scope != BERTH_SCOPE_PARAM || info->role != BERTH_ROLE_IN;
}

static int64_t extent_of(const berth_tfn *fn, berth_stmt loop) {
    int64_t extent = 1;
    berth_tfn_const_value(fn, fn->stmts.data[loop].value, &extent);
    return extent;
}

// Whether the loops' variables count on from group to group. Sizes that are arguments would be divided by for every
// group, which takes as long as a tile of a depthwise convolution.
static bool counts_on(const berth_c_printer *p, int grid_count) {
    return p->marks_numbers && grid_count > 1;
}

// Of group `group`, by division.
static void declare_grid(berth_c_printer *p, const berth_stmt *grid, int grid_count,
                         const char *qualifier, const char *group) {
    for (int i = 0; i < grid_count; ++i) {
        int64_t inner = 1;
        for (int k = i + 1; k < grid_count; ++k) inner *= extent_of(p->fn, grid[k]);
        const char *var = berth_c_var_name(p, p->fn->stmts.data[grid[i]].var);
        const char *quotient =
            inner == 1 ? group
                       : berth_arena_printf(p->arena, "%s / %s", group, berth_c_number(p, inner));
        if (i == 0)
            berth_c_line(p, "%sint64_t %s = %s;", qualifier, var, quotient);
        else
            berth_c_line(p, "%sint64_t %s = %s %% %s;", qualifier, var, quotient,
                         berth_c_number(p, extent_of(p->fn, grid[i])));
        berth_c_line(p, "(void)%s;", var);
    }
}

// BERTH_NO_MASKS, or nothing. A kernel for several sizes, some of which need it, has it: 0, 1 or what stands for hints that differ
// follows the name.
static const char *masks_of(berth_c_printer *p, const berth_kernel_source *kernel) {
    if (!p->marks_numbers) return kernel->avoids_masks ? "BERTH_NO_MASKS " : "";
    return berth_arena_printf(p->arena, "BERTH_MASKS_%s ",
                              berth_c_hint(p, kernel->avoids_masks ? 1 : 0));
}

static void open_kernel(berth_c_printer *p, const berth_kernel_source *kernel,
                        const berth_stmt *grid, int grid_count) {
    berth_c_line(p,
                 "void %s(void *const *buffers, const int64_t *constants, int64_t begin, int64_t "
                 "end, void *scratch);",
                 kernel->entry);
    berth_c_line(p,
                 "%s%svoid %s(void *const *buffers, const int64_t *constants, int64_t begin, "
                 "int64_t end, void *scratch) {",
                 masks_of(p, kernel), kernel->gathers ? "BERTH_GATHERS " : "", kernel->entry);
    p->depth = 1;
    berth_c_line(p, "(void)constants, (void)scratch;");
    if (p->marks_numbers) berth_strbuf_add(&p->out, BERTH_TEMPLATE_LINES);
    for (uint32_t i = 0; i < kernel->buffer_count; ++i) {
        berth_buf buf = kernel->buffers[i];
        const char *type = berth_c_storage_type(p, p->fn->bufs.data[buf].dtype);
        const char *constant = is_output(p->fn, buf) ? "" : "const ";
        const char *alone = p->fn->bufs.data[buf].may_alias ? "" : "restrict ";
        berth_c_line(p, "%s%s *%sb%u = (%s%s *)buffers[%u];", constant, type, alone, buf, constant,
                     type, i);
    }
    const bool on = counts_on(p, grid_count);
    if (on) declare_grid(p, grid, grid_count, "", "begin");
    if (berth_c_uses_unit(p->fn, p->nest)) berth_c_line(p, BEGIN_TILES);
    berth_c_line(p, "for (int64_t group = begin; group < end; ++group) {");
    p->depth = 2;
    if (!on) declare_grid(p, grid, grid_count, "const ", "group");
}

static void count_on(berth_c_printer *p) {
    p->depth = 2;
    for (int i = p->grid_count - 1; i > 0; --i) {
        const char *var = berth_c_var_name(p, p->fn->stmts.data[p->grid[i]].var);
        berth_c_line(p, "if (++%s == %s) {", var, berth_c_number(p, extent_of(p->fn, p->grid[i])));
        p->depth++;
        berth_c_line(p, "%s = 0;", var);
    }
    berth_c_line(p, "++%s;", berth_c_var_name(p, p->fn->stmts.data[p->grid[0]].var));
    while (--p->depth >= 2) berth_c_line(p, "}");
}

static void close_kernel(berth_c_printer *p) {
    if (counts_on(p, p->grid_count)) count_on(p);
    berth_strbuf_add(&p->out, "    }\n");
    p->depth = 1;
    if (berth_c_uses_unit(p->fn, p->nest)) berth_c_line(p, "berth_tiles_end();");
    berth_strbuf_add(&p->out, "}\n\n");
    p->depth = 0;
}

static void declare_kernel(berth_c_printer *p, const char *entry, const char *declaration) {
    berth_c_line(p, "extern const char " BERTH_DECLARATION_PREFIX "%s[];", entry);
    berth_c_line(p, "const char " BERTH_DECLARATION_PREFIX "%s[] = \"%s\";", entry, declaration);
}

// How often a loop is unrolled: whole, or by a divisor that keeps the copies at a number of
// statements that compilers take in their stride (their time grows faster than the copies; measured
// with gcc 12: 420 statements on vectors of 16 take 17 s, 210 a fifth of a second). What is left of a
// loop that is unrolled whole is one block with all around it, in which gcc's combiner takes longer:
// 450 statements on vectors of 8 took 14 s, 224 on vectors of 16 2.2 s, half of them a loop of two
// rounds a twentieth of a second.
static int64_t unroll_count(const berth_tfn *fn, const berth_stmt_node *body, int64_t extent) {
    static const int64_t most_statements = 512, most_wide_statements = 256, most_wide_whole = 128;
    int64_t statements = body->kind == BERTH_STMT_SEQ ? body->count : 1, count = extent;
    int64_t most = most_statements, most_whole = most_statements;
    for (uint32_t i = 0; body->kind == BERTH_STMT_SEQ && i < body->count; ++i) {
        const berth_stmt_node *part = &fn->stmts.data[fn->lists.data[body->first + i]];
        if (part->kind != BERTH_STMT_STORE || fn->bufs.data[part->buf].lanes < 8) continue;
        most = most_wide_statements;
        most_whole = most_wide_whole;
    }
    if (count > 1 && count * statements > most_whole) --count;
    while (count > 1 && (count * statements > most || extent % count)) --count;
    return count;
}

static bool open_loop(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent) {
    if (loop->loop_kind >= BERTH_LOOP_GROUP_X)
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "loops over work-groups in C"));
    if (loop->loop_kind == BERTH_LOOP_SIMD && extent != 1)
        berth_strbuf_add(&p->out, "BERTH_SIMD\n");
    // A register tile is unrolled enough: more copies would keep too many loads in registers.
    const berth_stmt_node *body = &p->fn->stmts.data[loop->body];
    const bool repeats = extent > 1 || p->marks_numbers;  // for other sizes, too
    if (loop->loop_kind == BERTH_LOOP_SERIAL && repeats && body->kind == BERTH_STMT_SEQ &&
        body->count >= 12)
        berth_strbuf_add(&p->out, "BERTH_UNROLL(1)\n");
    if (loop->loop_kind == BERTH_LOOP_UNROLL && extent > 1 && extent <= 64)
        berth_strbuf_addf(&p->out, "BERTH_UNROLL(%s)\n",
                          berth_c_hint(p, unroll_count(p->fn, body, extent)));
    return false;
}

static void declare_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           int64_t scratch_offset) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    if (berth_c_is_unit_sum(info)) return;  // registers of their own
    const char *type = info->lanes > 1 ? berth_c_value_type(p, info->dtype, info->lanes)
                                       : berth_c_storage_type(p, info->dtype);
    if (info->scope == BERTH_SCOPE_REGISTER && info->rank == 0)
        berth_c_line(p, "%s b%u;", type, buf);
    else if (scratch_offset >= 0)
        berth_c_line(p, "%s *restrict b%u = (%s *)((char *)scratch + %s);", type, buf, type,
                     berth_c_number(p, scratch_offset));
    else
        berth_c_line(p, "%s b%u[%lld] __attribute__((aligned(64)));", type, buf,
                     (long long)berth_c_array_size(p, buf, element_count));
}

static bool is_half(const berth_c_printer *p, berth_buf buf) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    return dtype == BERTH_DTYPE_F16 || dtype == BERTH_DTYPE_BF16;
}

static const char *vector_load(berth_c_printer *p, berth_buf buf, const char *offset, int lanes) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    const char *type = berth_c_value_type(p, dtype, lanes);
    if (is_half(p, buf))
        return berth_arena_printf(p->arena, "berth_load_%sx%d(b%u + %s)", berth_dtype_name(dtype),
                                  lanes, buf, offset);
    return berth_arena_printf(p->arena, "*(const %s_u *)(b%u + %s)", type, buf, offset);
}

// Lanes that lie further apart than pairs do, in memory that 32 bits count.
static bool has_steps(const berth_c_printer *p, berth_buf buf, int64_t step, int lanes) {
    enum { most_step = 1 << 26 };
    return step > 2 && step <= most_step && lanes == 16 &&
           p->fn->bufs.data[buf].dtype == BERTH_DTYPE_F32;
}

static const char *steps_load(berth_c_printer *p, berth_buf buf, const char *offset, int64_t step,
                              int lanes) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    if (has_steps(p, buf, step, lanes))
        return berth_arena_printf(p->arena, "((%s)berth_load_steps_f32x16(b%u + %s, %d))",
                                  berth_c_value_type(p, dtype, lanes), buf, offset, (int)step);
    if (step != 2) return NULL;
    int bits = 8 * (int)berth_dtype_size_bytes(dtype);
    if ((lanes != 4 && lanes != 8 && lanes != 16) || bits > 32 || dtype == BERTH_DTYPE_BOOL)
        return NULL;
    const char *type = berth_c_value_type(p, dtype, lanes);
    const char *row =
        berth_arena_printf(p->arena, "berth_evens_uint%dx%d(b%u + %s)", bits, lanes, buf, offset);
    if (!is_half(p, buf)) return berth_arena_printf(p->arena, "((%s)%s)", type, row);
    return berth_arena_printf(p->arena,
                              "berth_load_%sx%d((const uint16_t *)(berth_evens16x%d[1]){%s})",
                              berth_dtype_name(dtype), lanes, lanes, row);
}

static bool steps_store(berth_c_printer *p, berth_buf buf, const char *offset, int64_t step,
                        int lanes, const char *value) {
    if (!has_steps(p, buf, step, lanes)) return false;
    berth_c_line(p, "berth_store_steps_f32x16(b%u + %s, %d, (berth_steps_f32)%s);", buf, offset,
                 (int)step, value);
    return true;
}

// An integer of 32 bits that is one of 16 bits, or of 8.
static bool is_narrow(const berth_c_printer *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_BROADCAST) node = &p->fn->exprs.data[node->a];
    if (node->kind != BERTH_EXPR_CAST || node->dtype != BERTH_DTYPE_I32) return false;
    const berth_expr_node *from = &p->fn->exprs.data[node->a];
    return !from->is_index && (from->dtype == BERTH_DTYPE_I8 || from->dtype == BERTH_DTYPE_U8 ||
                               from->dtype == BERTH_DTYPE_I16);
}

static const char *narrow_sum(berth_c_printer *p, berth_expr_node node) {
    const berth_expr_node *nodes = p->fn->exprs.data;
    const berth_expr_node product = nodes[node.b];
    bool sum = node.op == BERTH_BINARY_ADD && node.dtype == BERTH_DTYPE_I32 && !node.is_index &&
               (node.lanes == 16 || node.lanes == 8);
    if (!sum || product.kind != BERTH_EXPR_BINARY || product.op != BERTH_BINARY_MUL ||
        !is_narrow(p, product.a) || !is_narrow(p, product.b))
        return NULL;
    bool first = nodes[product.a].kind == BERTH_EXPR_BROADCAST;
    berth_expr all = first ? product.a : product.b;
    if (nodes[all].kind != BERTH_EXPR_BROADCAST) return NULL;
    const char *type = berth_c_value_type(p, BERTH_DTYPE_I32, node.lanes);
    const char *to = berth_c_value(p, node.a);
    const char *x = berth_c_value(p, nodes[all].a);
    const char *w = berth_c_value(p, first ? product.b : product.a);
    return berth_arena_printf(
        p->arena, "((%s)berth_add_narrow_x%d((berth_narrow_x%d)%s, %s, (berth_narrow_x%d)%s))",
        type, node.lanes, node.lanes, to, x, node.lanes, w);
}

static void vector_store(berth_c_printer *p, berth_buf buf, const char *offset, int lanes,
                         const char *value) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    const char *type = berth_c_value_type(p, dtype, lanes);
    if (is_half(p, buf))
        berth_c_line(p, "berth_store_%sx%d(b%u + %s, %s);", berth_dtype_name(dtype), lanes, buf,
                     offset, value);
    else
        berth_c_line(p, "*(%s_u *)(b%u + %s) = %s;", type, buf, offset, value);
}

static const char *vector_literal(berth_c_printer *p, berth_dtype dtype, const char *const *lanes,
                                  int count) {
    berth_strbuf text = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&text, "(%s){", berth_c_value_type(p, dtype, count));
    for (int i = 0; i < count; ++i) berth_strbuf_addf(&text, i ? ", %s" : "%s", lanes[i]);
    berth_strbuf_add(&text, "}");
    return berth_strbuf_text(&text);
}

static const char *vector_lane(berth_c_printer *p, const char *name, int lane) {
    return berth_arena_printf(p->arena, "%s[%d]", name, lane);
}

static void after_vector_let(berth_c_printer *p, const char *name, int bytes) {
    berth_c_line(p, "BERTH_KEEP_%d(%s);", bytes, name);
}

static const char *number_lines(uint32_t count, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&text, "    const int64_t n%u = constants[%u];\n", i, i);
    return berth_strbuf_text(&text);
}

static const char *intrinsic_text(const berth_intrinsic_facts *facts) {
    return facts->c;
}

static bool print_loop(berth_c_printer *p, const berth_stmt_node *loop) {
    return berth_c_print_moves(p, loop) || berth_c_print_row(p, loop) ||
           berth_c_print_lookups(p, loop);
}

static const berth_c_language language = {
    .kind = BERTH_DEVICE_CPU,
    .index_type = "int64_t",
    .index_bits = 64,
    BERTH_C_TYPES,
    .global_pointer = "",
    .restrict_word = "restrict",
    .f64_suffix = "",
    .open_kernel = open_kernel,
    .close_kernel = close_kernel,
    .declare_kernel = declare_kernel,
    .open_loop = open_loop,
    .declare_buffer = declare_buffer,
    .vector_load = vector_load,
    .steps_load = steps_load,
    .steps_store = steps_store,
    .narrow_sum = narrow_sum,
    .vector_store = vector_store,
    .vector_literal = vector_literal,
    .vector_lane = vector_lane,
    .after_vector_let = after_vector_let,
    .unit_store = berth_c_unit_store,
    .half_vectors = true,
    .f64_vectors = true,
    .half_bits = true,
    .print_loop = print_loop,
    .intrinsic_text = intrinsic_text,
    .stack_limit_bytes = 32768,
    .scratch_alignment_bytes = 64,
};

const char *berth_codegen_c_type(berth_dtype dtype) {
    size_t count = sizeof(language.storage_types) / sizeof(language.storage_types[0]);
    return (size_t)dtype < count ? language.storage_types[dtype] : NULL;
}

static berth_status print_text(const berth_tfn *fn, const char *prefix, bool marks_numbers,
                               berth_arena *arena, berth_codegen_result *out_result) {
    berth_c_printer *p = berth_c_printer_create(fn, &language, arena);
    p->marks_numbers = marks_numbers;
    berth_kernel_source *kernels = NULL;
    memset(out_result, 0, sizeof(*out_result));
    BERTH_TRY(berth_c_printer_run(p, prefix, &kernels, &out_result->kernel_count));
    berth_strbuf whole = berth_strbuf_make(arena);
    berth_c_add_intrinsics(p, &whole);
    berth_c_add_callees(p, &whole);
    berth_c_callee_objects(p, out_result);
    berth_strbuf_add(&whole, berth_strbuf_text(&p->out));
    out_result->source = berth_strbuf_text(&whole);
    out_result->kernels = kernels;
    return BERTH_OK;
}

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    return print_text(fn, prefix, false, arena, out_result);
}

static berth_status print_template(const berth_tfn *fn, berth_arena *arena,
                                   berth_codegen_result *out_result) {
    return print_text(fn, BERTH_TEMPLATE_PREFIX, true, arena, out_result);
}

// ---- images -------------------------------------------------------------------------------------

static void report_progress(void *user, uint32_t done, uint32_t total) {
    const berth_compile_options *options = user;
    options->progress(options->progress_user, "compiling kernels", done, total);
}

berth_toolchain_options berth_codegen_toolchain(const berth_compile_options *options,
                                                const berth_target *target) {
    union {
        const berth_compile_options *constant;
        void *mutable_pointer;
    } user = {.constant = options};
    return (berth_toolchain_options){.target = target,
                                     .c_compiler = options->c_compiler,
                                     .cache_folder = options->cache_folder,
                                     .cache_limit_bytes = options->cache_limit_bytes,
                                     .search_path = options->search_path,
                                     .jobs = options->jobs,
                                     .time_limit_ns = options->compiler_time_limit_ns,
                                     .log = options->log,
                                     .progress = options->progress ? report_progress : NULL,
                                     .progress_user = user.mutable_pointer,
                                     .temporary_folder = options->temporary_folder,
                                     .interrupt = options->interrupt};
}

static const char *whole_source(const berth_codegen_result *result, berth_arena *arena) {
    return berth_c_complete(result->source, arena);
}

// Compiled by the system's C compiler and linked to a shared object.
static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    berth_toolchain_options toolchain = berth_codegen_toolchain(job->options, job->target);
    toolchain.foreign = job->foreign;
    berth_toolchain_unit *sources =
        berth_arena_new_array(job->arena, berth_toolchain_unit, job->count);
    if (!job->foreign) {
        toolchain.complete = berth_c_complete;
        toolchain.library = berth_c_library_hash(job->arena);
    }
    bool matrix_unit = job->foreign;
    for (uint32_t i = 0; i < job->count; ++i) {
        const berth_codegen_result *code = job->units[i].code;
        matrix_unit |= strstr(code->source, BEGIN_TILES) != NULL;
        sources[i] = (berth_toolchain_unit){.label = job->units[i].label,
                                            .source = code->source,
                                            .objects = code->objects,
                                            .object_count = code->object_count,
                                            .is_part = !job->foreign};
    }
    berth_toolchain_image image;
    BERTH_TRY(berth_toolchain_compile(&toolchain, job->arena, sources, job->count, &image));
    *out_bytes = (berth_codegen_bytes){
        .data = image.data,
        .size_bytes = image.size_bytes,
        .options = berth_toolchain_needs(job->target, matrix_unit, job->arena)};
    return BERTH_OK;
}

const berth_codegen berth_codegen_c = {.kind = "cpu",
                                       .format = BERTH_FORMAT_CPU_ELF,
                                       .source_suffix = "c",
                                       .print = print,
                                       .print_template = print_template,
                                       .number_lines = number_lines,
                                       .source = whole_source,
                                       .compiles = true,
                                       .finish = finish};
