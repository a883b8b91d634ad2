// C99 without extensions: kernels of programs that are sources (executor aot). A kernel is a static
// function that takes its buffers one by one and runs its whole grid; nothing is allocated, and large
// private buffers lie in one static array (BERTH_PLAIN_SCRATCH).
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/c_plain_helpers.h"
#include "compiler/codegen/c_plain_products.h"
#include "compiler/codegen/c_plain_vectors.h"
#include "compiler/codegen/kernel_facts.h"

static const char *parameter(berth_c_printer *p, const berth_kernel_source *kernel, uint32_t i) {
    berth_buf buf = kernel->buffers[i];
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    return berth_arena_printf(
        p->arena, "%s%s%s *%sb%u", i ? ", " : "", kernel->written[i] ? "" : "const ",
        berth_c_storage_type(p, info->dtype), info->may_alias ? "" : "restrict ", buf);
}

static void open_one(berth_c_printer *p, berth_var var, int64_t extent) {
    const char *type = p->language->index_type, *name = berth_c_var_name(p, var);
    if (extent == 1) {
        berth_c_line(p, "{");
        berth_c_line(p, "    const %s %s = 0;", type, name);
        berth_c_line(p, "    (void)%s;", name);
    } else {
        berth_c_line(p, "for (%s %s = 0; %s < %lld; ++%s) {", type, name, name, (long long)extent,
                     name);
    }
}

static void open_kernel(berth_c_printer *p, const berth_kernel_source *kernel,
                        const berth_stmt *grid, int grid_count) {
    berth_strbuf parameters = berth_strbuf_make(p->arena);
    for (uint32_t i = 0; i < kernel->buffer_count; ++i)
        berth_strbuf_add(&parameters, parameter(p, kernel, i));
    berth_c_line(p, "static void %s(%s) {", kernel->entry,
                 kernel->buffer_count ? berth_strbuf_text(&parameters) : "void");
    p->depth = 1;
    for (int i = 0; i < grid_count; ++i) {
        const berth_stmt_node *loop = &p->fn->stmts.data[grid[i]];
        open_one(p, loop->var, berth_kernel_extent(p->fn, grid[i]));
        p->depth++;
    }
}

static void close_kernel(berth_c_printer *p) {
    while (p->depth > 0) {
        p->depth--;
        berth_c_line(p, "}");
    }
    berth_strbuf_add(&p->out, "\n");
}

static void declare_kernel(berth_c_printer *p, const char *entry, const char *declaration) {
    (void)p, (void)entry, (void)declaration;  // nobody loads it
}

static bool open_loop(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent) {
    if (loop->loop_kind >= BERTH_LOOP_GROUP_X)
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "loops over work-groups in C"));
    if (extent != 1) return false;
    open_one(p, loop->var, extent);
    return true;
}

static void declare_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           int64_t scratch_offset) {
    const berth_buf_info *info = &p->fn->bufs.data[buf];
    const char *type = berth_c_storage_type(p, info->dtype);
    if (info->scope == BERTH_SCOPE_REGISTER && info->rank == 0)
        berth_c_line(p, "%s b%u;", type, buf);
    else if (scratch_offset >= 0)
        berth_c_line(p, "%s *restrict b%u = (%s *)(void *)(" BERTH_PLAIN_SCRATCH " + %lld);", type,
                     buf, type, (long long)scratch_offset);
    else if (berth_dtype_size_bytes(info->dtype) == 2) {  // read in pairs: from a word on
        berth_c_line(p, "union { %s at[%lld]; int32_t alignment; } b%u_at;", type,
                     (long long)(element_count ? element_count : 1), buf);
        berth_c_line(p, "%s *const b%u = b%u_at.at;", type, buf, buf);
    } else
        berth_c_line(p, "%s b%u[%lld];", type, buf, (long long)(element_count ? element_count : 1));
}

// ---- vectors, of which there are none -----------------------------------------------------------

static const char *no_vectors(berth_c_printer *p) {
    berth_c_fail(p, berth_status_make(BERTH_INTERNAL, "vectors in a function for plain C"));
    return "0";
}

static const char *vector_load(berth_c_printer *p, berth_buf buf, const char *offset, int lanes) {
    (void)buf, (void)offset, (void)lanes;
    return no_vectors(p);
}

static void vector_store(berth_c_printer *p, berth_buf buf, const char *offset, int lanes,
                         const char *value) {
    (void)buf, (void)offset, (void)lanes, (void)value;
    no_vectors(p);
}

static const char *vector_literal(berth_c_printer *p, berth_dtype dtype, const char *const *lanes,
                                  int count) {
    (void)dtype, (void)lanes, (void)count;
    return no_vectors(p);
}

static const char *vector_lane(berth_c_printer *p, const char *name, int lane) {
    (void)name, (void)lane;
    return no_vectors(p);
}

static const char *intrinsic_text(const berth_intrinsic_facts *facts) {
    (void)facts;
    return NULL;
}

// Private buffers beyond this go to static memory: small cores have stacks of a few KiB.
#define STACK_LIMIT_BYTES 128

#define PLAIN(INDEX_TYPE, INDEX_BITS)                                                              \
    {                                                                                              \
        .kind = BERTH_DEVICE_CPU,                                                                  \
        .refuses_calls = "the executor aot prints no code in another language",                    \
        .index_type = INDEX_TYPE, .index_bits = INDEX_BITS, BERTH_C_TYPES, .global_pointer = "",   \
        .restrict_word = "restrict", .f64_suffix = "", .open_kernel = open_kernel,                 \
        .close_kernel = close_kernel, .declare_kernel = declare_kernel, .open_loop = open_loop,    \
        .print_loop = berth_c_plain_print_products, .open_vectors = berth_c_plain_open_vectors,    \
        .vectors_end = "#endif\n", .declare_buffer = declare_buffer, .vector_load = vector_load,   \
        .vector_store = vector_store, .vector_literal = vector_literal,                            \
        .vector_lane = vector_lane, .intrinsic_text = intrinsic_text,                              \
        .stack_limit_bytes = STACK_LIMIT_BYTES,                                                    \
        .scratch_alignment_bytes = BERTH_PLAIN_ALIGNMENT_BYTES,                                    \
    }

static const berth_c_language narrow = PLAIN("int32_t", 32);
static const berth_c_language wide = PLAIN("int64_t", 64);

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    memset(out_result, 0, sizeof(*out_result));
    berth_c_printer *p =
        berth_c_printer_create(fn, berth_kernel_fits_narrow(fn) ? &narrow : &wide, arena);
    berth_kernel_source *kernels = NULL;
    BERTH_TRY(berth_c_printer_run(p, prefix, &kernels, &out_result->kernel_count));
    out_result->source = berth_strbuf_text(&p->out);
    out_result->kernels = kernels;
    return BERTH_OK;
}

// The functions of all units behind the helpers that they use: what compiler/bare writes to a file.
static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    if (job->foreign)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s: plain C sources hold no code of others; leave the function "
                                 "out, or build for the executor \"graph\"",
                                 job->units[0].label);
    berth_strbuf code = berth_strbuf_make(job->arena);
    for (uint32_t i = 0; i < job->count; ++i) berth_strbuf_add(&code, job->units[i].code->source);
    berth_strbuf text = berth_strbuf_make(job->arena);
    berth_c_plain_add_products(berth_strbuf_text(&code), &text);
    berth_c_plain_add(berth_strbuf_text(&code), &text);
    *out_bytes = (berth_codegen_bytes){
        .data = berth_strbuf_text(&text), .size_bytes = text.length + 1, .options = ""};
    return BERTH_OK;
}

const berth_codegen berth_codegen_c_plain = {
    .kind = "cpu", .format = BERTH_FORMAT_C, .print = print, .finish = finish};
