// CUDA C: kernels of cuda devices. Loops over groups and work-items (GROUP_*, LOCAL_*) become blocks
// and threads; a nest without them gets one thread per iteration of its parallel loops.
#include <math.h>
#include <string.h>

#include "compiler/codegen/c_groups.h"
#include "compiler/codegen/c_preamble.h"
#include "compiler/codegen/cuda_bulk.h"
#include "compiler/codegen/cuda_fragments.h"
#include "compiler/codegen/cuda_groups.h"
#include "compiler/codegen/kernel_facts.h"
#include "ir/tensor/copies.h"

// Most blocks along y and z, and along x (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability").
enum { most_blocks_yz = 65535, most_blocks_x = 2147483647 };

enum { MOST_WHOLE_LOOP = 16, SOME_OF_LOOP = 8 };  // iterations that are unrolled

static const berth_c_group_words common_words = {
    .global = "",
    .restrict_word = "__restrict__",
    .local = "__shared__ __align__(16) ",
    .local_end = "",
    .array_end = " __attribute__((aligned(16)))",
    .item = "blockIdx.x * blockDim.x + threadIdx.x",
    .flat_group_size = 128,
};

// ---- grids --------------------------------------------------------------------------------------

// Sets the axes of the loops over groups and work-items below a statement.
static void measure(berth_c_printer *p, berth_stmt id, berth_kernel_source *shape) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    if (!id) return;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node.count; ++i)
            measure(p, p->fn->lists.data[node.first + i], shape);
    if (node.kind == BERTH_STMT_FOR && node.loop_kind >= BERTH_LOOP_GROUP_X) {
        bool local = false;
        int axis = 0;
        berth_status status =
            berth_kernel_set_axis(shape, &node, berth_kernel_extent(p->fn, id), &local, &axis);
        if (status) berth_c_fail(p, status);
    }
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        measure(p, node.body, shape);
        measure(p, node.other, shape);
    }
}

static berth_kernel_source shape_of(berth_c_printer *p) {
    berth_kernel_source shape = {.groups = {1, 1, 1}, .group_size = {1, 1, 1}};
    measure(p, p->nest, &shape);
    return shape;
}

// Grids that have too many blocks along y or z are laid along x.
static bool lies_along_x(const berth_kernel_source *shape) {
    return shape->groups[1] > most_blocks_yz || shape->groups[2] > most_blocks_yz;
}

static const char *block_index(berth_c_printer *p, const berth_kernel_source *shape, int axis) {
    static const char *const names[] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
    if (!lies_along_x(shape)) return names[axis];
    uint32_t x = shape->groups[0], y = shape->groups[1];
    if (axis == 0) return berth_arena_printf(p->arena, "(blockIdx.x %% %uu)", x);
    if (axis == 1) return berth_arena_printf(p->arena, "(blockIdx.x / %uu %% %uu)", x, y);
    return berth_arena_printf(p->arena, "(blockIdx.x / %uu / %uu)", x, y);
}

// An emulation on the processor has its own.
static const char shared_line[] = "BERTH_SHARED;";
static const char shared_macro[] =
    "#ifndef BERTH_SHARED\n"
    "#define BERTH_SHARED extern __shared__ __align__(1024) unsigned char berth_shared[]\n"
    "#endif\n";

// Shared memory that the launch gives; 0: all is declared.
static int64_t launched_bytes(const berth_c_printer *p) {
    int64_t bytes = berth_c_groups_local_bytes(p->fn, p->nest) + berth_cuda_bulk_bytes(p);
    return bytes > BERTH_CUDA_DECLARED_LOCAL_BYTES ? bytes : 0;
}

static void declare_kernel(berth_c_printer *p, const char *entry, const char *declaration) {
    berth_c_groups_declare(p, entry, declaration);
    int64_t bytes = launched_bytes(p);
    if (bytes > 0)
        berth_c_groups_declare(p,
                               berth_arena_printf(p->arena, "%s" BERTH_CUDA_SHARED_SUFFIX, entry),
                               berth_arena_printf(p->arena, "%lld", (long long)bytes));
}

// Blocks that a multiprocessor is to hold at once; 0: what comes. Where a thread has more than 32 accumulators, and up to 64, what it
// needs fits 128 registers, but nvcc takes one or two more where it is not told what that costs: the second block of 256 threads.
// Of smaller blocks three leave room for 168.
static uint32_t least_blocks(const berth_c_printer *p, uint32_t threads) {
    static const uint32_t registers_of_unit = 65536, two_blocks = 256;
    int64_t accumulators = berth_c_groups_register_bytes(p->fn, p->nest) / 4;
    if (accumulators <= 32 || accumulators > 64) return 0;
    return registers_of_unit / (threads < two_blocks ? 168 : 128) / threads;
}

static void open_kernel(berth_c_printer *p, const berth_kernel_source *kernel,
                        const berth_stmt *grid, int grid_count) {
    berth_c_group_words words = common_words;
    berth_kernel_source shape = shape_of(p);
    bool flat = grid_count > 0 || !berth_kernel_has_group_loops(p->fn, p->nest);
    uint32_t threads = flat ? words.flat_group_size
                            : shape.group_size[0] * shape.group_size[1] * shape.group_size[2];
    p->copies_async = berth_tfn_has_pending(p->fn, p->nest);
    berth_cuda_groups_open(p);
    berth_cuda_bulk_open(p);
    if (p->is_swizzled) words.local = "__shared__ __align__(1024) ";
    if (launched_bytes(p) > 0) words.launched = shared_line;
    uint32_t blocks = least_blocks(p, threads);
    const char *least = blocks > 1 ? berth_arena_printf(p->arena, ", %u", blocks) : "";
    words.kernel = berth_arena_printf(
        p->arena, "extern \"C\" __global__ void __launch_bounds__(%u%s)", threads, least);
    berth_c_groups_open(p, kernel, grid, grid_count, &words);
    int64_t tiles = berth_c_groups_local_bytes(p->fn, p->nest);
    berth_cuda_bulk_begin(
        p, words.launched ? berth_arena_printf(p->arena, "berth_shared + %lld", (long long)tiles)
                          : NULL);
}

static void close_kernel(berth_c_printer *p) {
    berth_kernel_source shape = shape_of(p);
    if (lies_along_x(&shape)) {
        double blocks = (double)shape.groups[0] * shape.groups[1] * shape.groups[2];
        if (blocks > most_blocks_x)
            berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                              "a grid of %.0f blocks (CUDA has up to %d)", blocks,
                                              most_blocks_x));
        p->kernel->groups[0] *= p->kernel->groups[1] * p->kernel->groups[2];
        p->kernel->groups[1] = p->kernel->groups[2] = 1;
    }
    berth_c_groups_close(p);
}

static bool has_unrolled(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            if (has_unrolled(fn, berth_tfn_seq_items(fn, id)[i])) return true;
    if (node->kind == BERTH_STMT_FOR && node->loop_kind == BERTH_LOOP_UNROLL) return true;
    if (node->kind != BERTH_STMT_FOR && node->kind != BERTH_STMT_IF) return false;
    return has_unrolled(fn, node->body) || has_unrolled(fn, node->other);
}

// Says how often nvcc unrolls a serial loop: it unrolls what it can whole, and keeps all that it loads in registers. Where
// products go on from step to step they hold most of these, and addresses of several steps would not fit beside them. A loop over
// steps whose terms are unrolled is unrolled by the number of tiles in turns: the place of each tile is a constant then.
static void hint_serial(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent) {
    if (berth_tfn_has_products(p->fn, loop->body)) {
        berth_c_line(p, "#pragma unroll 1");
    } else if (loop->loop_kind == BERTH_LOOP_SERIAL && extent > MOST_WHOLE_LOOP) {
        bool has_terms =
            berth_tfn_has_pending(p->fn, loop->body) && has_unrolled(p->fn, loop->body);
        int turns = has_terms ? berth_tfn_most_pending(p->fn, loop->body) + 2 : SOME_OF_LOOP;
        berth_c_line(p, "#pragma unroll %d", turns);
    }
}

static bool open_loop(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent) {
    static const char *const threads[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
    const char *type = p->language->index_type;
    const char *var = berth_c_var_name(p, loop->var);
    if (loop->loop_kind < BERTH_LOOP_GROUP_X) {
        // What is indexed by an unrolled loop stays in registers.
        if (loop->loop_kind == BERTH_LOOP_UNROLL && extent > 1) berth_c_line(p, "#pragma unroll");
        hint_serial(p, loop, extent);
        return false;
    }
    bool local = false;
    int axis = 0;
    berth_status status = berth_kernel_set_axis(p->kernel, loop, extent, &local, &axis);
    if (status) berth_c_fail(p, status);
    berth_kernel_source shape = shape_of(p);
    berth_c_line(p, "{");
    berth_c_line(p, "    const %s %s = (%s)%s;", type, var, type,
                 local ? threads[axis] : block_index(p, &shape, axis));
    return true;
}

static void declare_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           int64_t scratch_offset) {
    (void)scratch_offset;
    berth_c_groups_buffer(p, buf, element_count, &common_words);
}

// ---- vectors ------------------------------------------------------------------------------------

static const char *half_name(const berth_c_printer *p, berth_buf buf) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    return dtype == berth_c_compute_type(dtype) ? NULL : berth_dtype_name(dtype);
}

// Whole vectors in one access where the address allows it. An address that is not a multiple of what
// is read at once is an error of the device's.
static bool is_aligned(const berth_c_printer *p, berth_buf buf, int lanes) {
    int64_t bytes = (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[buf].dtype);
    int64_t wanted = bytes * lanes < 16 ? bytes * lanes : 16;
    return p->access_alignment * bytes % wanted == 0;
}

// What units read where it lies is accessed by up to 16 bytes that stay together.
static void check_place(berth_c_printer *p, berth_buf buf, int lanes) {
    int64_t bytes = (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[buf].dtype) * lanes;
    if (p->is_swizzled && p->is_swizzled[buf] && (bytes > 16 || !is_aligned(p, buf, lanes)))
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                          "an access of %lld bytes, not at a multiple of as many, "
                                          "to what matrix units read where it lies",
                                          (long long)bytes));
}

static const char *vector_load(berth_c_printer *p, berth_buf buf, const char *offset, int lanes) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    const char *half = half_name(p, buf);
    check_place(p, buf, lanes);
    const char *type = half ? berth_arena_printf(p->arena, "berth_vec<uint16_t, %d>", lanes)
                            : berth_c_value_type(p, dtype, lanes);
    const char *text =
        is_aligned(p, buf, lanes)
            ? berth_arena_printf(p->arena, "*(const %s *)(b%u + %s)", type, buf, offset)
            : berth_arena_printf(p->arena, "berth_vec_load<%s, %d>(b%u + %s)", type, lanes, buf,
                                 offset);
    return half ? berth_arena_printf(p->arena, "berth_of_%sx%d(%s)", half, lanes, text) : text;
}

static void vector_store(berth_c_printer *p, berth_buf buf, const char *offset, int lanes,
                         const char *value) {
    berth_dtype dtype = p->fn->bufs.data[buf].dtype;
    const char *half = half_name(p, buf);
    check_place(p, buf, lanes);
    const char *type = half ? berth_arena_printf(p->arena, "berth_vec<uint16_t, %d>", lanes)
                            : berth_c_value_type(p, dtype, lanes);
    if (half) value = berth_arena_printf(p->arena, "berth_to_%sx%d(%s)", half, lanes, value);
    if (is_aligned(p, buf, lanes))
        berth_c_line(p, "*(%s *)(b%u + %s) = %s;", type, buf, offset, value);
    else
        berth_c_line(p, "berth_vec_store(b%u + %s, %s);", buf, offset, value);
}

static const char *vector_literal(berth_c_printer *p, berth_dtype dtype, const char *const *lanes,
                                  int count) {
    berth_strbuf text = berth_strbuf_make(p->arena);
    dtype = berth_c_compute_type(dtype);
    berth_strbuf_addf(&text, "berth_vec_of<%s, %s>(", berth_c_value_type(p, dtype, count),
                      berth_c_value_type(p, dtype, 1));
    for (int i = 0; i < count; ++i) berth_strbuf_addf(&text, i ? ", %s" : "%s", lanes[i]);
    berth_strbuf_add(&text, ")");
    return berth_strbuf_text(&text);
}

static const char *vector_lane(berth_c_printer *p, const char *name, int lane) {
    return berth_arena_printf(p->arena, "%s.at[%d]", name, lane);
}

// ---- the language -------------------------------------------------------------------------------

static const char *intrinsic_text(const berth_intrinsic_facts *facts) {
    return facts->cuda;
}

// Where an access begins; false: its lanes do not lie beside each other. *bytes: halved until the place is
// a multiple of it.
static bool copy_place(berth_c_printer *p, berth_buf buf, const berth_expr *from, int count,
                       int lanes, int64_t *bytes, const char **out) {
    berth_expr indices[BERTH_MAX_RANK];
    berth_linear first;
    int64_t places[16], size = (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[buf].dtype);
    memcpy(indices, from, (size_t)count * sizeof(berth_expr));
    if (!berth_c_lane_places(p, buf, indices, count, lanes, &first, places)) return false;
    for (int l = 0; l < lanes; ++l)
        if (places[l] != l) return false;
    int64_t aligned = berth_c_offset_alignment(p, buf, indices, count) * size;
    while (aligned % *bytes) *bytes /= 2;
    *out = berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, buf),
                              berth_c_offset(p, buf, indices, count));
    return true;
}

static bool is_zero(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT) return node->i == 0;
    return node->kind == BERTH_EXPR_FLOAT && node->f == 0 && !signbit(node->f);
}

// Comparisons of indices alone, which begin no statement of their own.
static bool is_of_indices(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT:
    case BERTH_EXPR_VAR: return true;
    case BERTH_EXPR_BINARY: return is_of_indices(fn, node->a) && is_of_indices(fn, node->b);
    default: return false;
    }
}

// What is copied where a condition holds, and 0 elsewhere: one copy, of no bytes there (src-size of cp.async).
static berth_expr copied_where(const berth_tfn *fn, berth_expr value, berth_expr *out_where) {
    const berth_expr_node *node = &fn->exprs.data[value];
    *out_where = 0;
    if (node->kind != BERTH_EXPR_SELECT || node->lanes > 1 || !is_zero(fn, node->c) ||
        !is_of_indices(fn, node->a))
        return value;
    *out_where = node->a;
    return node->b;
}

// A copy of elements of device memory to the memory of the group, as they are: 4, 8 or 16 bytes at
// once, by the copy engine of the multiprocessor (cp.async).
static bool copy_async(berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node store = p->fn->stmts.data[id];
    berth_expr where = 0, value = copied_where(p->fn, store.value, &where);
    const berth_expr_node load = p->fn->exprs.data[value];
    const berth_buf_info *to = &p->fn->bufs.data[store.buf];
    if (berth_cuda_bulk_copy(p, id)) return true;
    if (load.kind != BERTH_EXPR_LOAD || to->scope != BERTH_SCOPE_LOCAL) return false;
    const berth_buf_info *from = &p->fn->bufs.data[load.load.buf];
    bool in_device = from->scope == BERTH_SCOPE_PARAM || from->scope == BERTH_SCOPE_WORKSPACE;
    int64_t size = (int64_t)berth_dtype_size_bytes(to->dtype), all = size * load.lanes, bytes = all;
    const char *place = NULL, *source = NULL;
    if (!in_device || from->dtype != to->dtype || (all != 4 && all != 8 && all != 16) ||
        !copy_place(p, store.buf, berth_tfn_store_indices(p->fn, id), store.index_count, load.lanes,
                    &bytes, &place) ||
        !copy_place(p, load.load.buf, berth_tfn_load_indices(p->fn, value), load.index_count,
                    load.lanes, &bytes, &source) ||
        bytes < 4)
        return false;
    const char *pieces =
        bytes == all ? "" : berth_arena_printf(p->arena, ", %lld", (long long)bytes);
    if (where)
        berth_c_line(p, "berth_copy_where<%lld>(%s, %s, %s);", (long long)all, place, source,
                     berth_c_condition(p, where));
    else
        berth_c_line(p, "berth_copy_async<%lld%s>(%s, %s);", (long long)all, pieces, place, source);
    return true;
}

static void wait_for_copies(berth_c_printer *p, int pending, int products) {
    berth_cuda_groups_before_barrier(p, products);
    berth_c_line(p, "berth_copies_wait<%d>();", pending);
    berth_cuda_bulk_wait(p, pending);
    if (p->is_swizzled) berth_c_line(p, "berth_units_see();");
}

#define LANGUAGE(index, bits)                                                                      \
    {                                                                                              \
        .kind = BERTH_DEVICE_CUDA, .index_type = index, .index_bits = bits, BERTH_C_TYPES,         \
        .global_pointer = "", .restrict_word = "__restrict__", .f64_suffix = "",                   \
        .open_kernel = open_kernel, .close_kernel = close_kernel,                                  \
        .declare_kernel = declare_kernel, .open_loop = open_loop,                                  \
        .declare_buffer = declare_buffer, .vector_load = vector_load,                              \
        .vector_store = vector_store, .vector_literal = vector_literal,                            \
        .vector_lane = vector_lane, .intrinsic_text = intrinsic_text, .half_vectors = true,        \
        .half_bits = true, .needs_alignment = true, .barrier = "__syncthreads();",                 \
        .fragment = berth_cuda_fragment, .copy_async = copy_async,                                 \
        .before_barrier = wait_for_copies, .after_barrier = berth_cuda_groups_after_barrier,       \
        .place = berth_cuda_groups_place,                                                          \
    }
static const berth_c_language narrow = LANGUAGE("int", 32);
static const berth_c_language wide = LANGUAGE("long", 64);

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    memset(out_result, 0, sizeof(*out_result));
    berth_c_printer *p =
        berth_c_printer_create(fn, berth_kernel_fits_narrow(fn) ? &narrow : &wide, arena);
    berth_kernel_source *kernels = NULL;
    BERTH_TRY(berth_c_printer_run(p, prefix, &kernels, &out_result->kernel_count));
    berth_strbuf whole = berth_strbuf_make(arena);
    const char *kernels_text = berth_strbuf_text(&p->out);
    if (strstr(kernels_text, shared_line)) berth_strbuf_add(&whole, shared_macro);
    berth_c_add_intrinsics(p, &whole);
    berth_strbuf_add(&whole, kernels_text);
    out_result->source = berth_strbuf_text(&whole);
    out_result->kernels = kernels;
    return BERTH_OK;
}

// Source text is the image: NVRTC compiles it for the very device when the program is opened.
static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    berth_strbuf text = berth_strbuf_make(job->arena);
    if (!job->foreign) berth_cuda_preamble(&text);
    if (!job->foreign) berth_cuda_groups_preamble(&text, job);
    if (!job->foreign) berth_cuda_bulk_preamble(&text, job);
    for (uint32_t i = 0; i < job->count; ++i) berth_strbuf_add(&text, job->units[i].code->source);
    *out_bytes = (berth_codegen_bytes){
        .data = berth_strbuf_text(&text), .size_bytes = text.length + 1, .options = ""};
    return BERTH_OK;
}

const berth_codegen berth_codegen_cuda = {.kind = "cuda",
                                          .format = BERTH_FORMAT_CUDA_C,
                                          .print = print,
                                          .finish = finish,
                                          .features = "",
                                          .plain_archs = "sm_50|sm_52|sm_53|sm_60|sm_61|sm_62"};
