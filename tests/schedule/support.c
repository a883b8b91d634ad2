#include "tests/schedule/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynlib.h"
#include "ir/text.h"

bench_case support_case_create(void) {
    bench_case c = {0};
    berth_status_ignore(berth_arena_create(berth_allocator_system(), &c.arena));
    c.module = berth_module_create(c.arena, "test");
    c.fn = berth_tfn_get(c.module, berth_tfn_create(c.module, "f", 0));
    return c;
}

static void allocate(bench_case *c, berth_buf buf) {
    const berth_buf_info *info = &c->fn->bufs.data[buf];
    berth_layout layout;
    berth_status_ignore(
        berth_layout_parse(berth_module_str(c->module, info->layout), info->rank, &layout));
    c->element_counts[buf] = berth_layout_element_count(&layout, info->dims);
    c->buffers[buf] = berth_arena_alloc_aligned(c->arena, support_buffer_bytes(c, buf) + 64, 128);
}

bench_case support_case_parse(const char *text) {
    bench_case c = {0};
    berth_status_ignore(berth_arena_create(berth_allocator_system(), &c.arena));
    berth_status status = berth_module_parse(c.arena, text, strlen(text), "test", &c.module);
    if (status) {
        fprintf(stderr, "%s\n", berth_status_message(status));
        abort();
    }
    c.fn = berth_tfn_get(c.module, 0);
    for (berth_buf b = 0; b < c.fn->param_count; ++b) allocate(&c, b);
    return c;
}

size_t support_buffer_bytes(const bench_case *c, berth_buf buf) {
    return (size_t)c->element_counts[buf] * berth_dtype_size_bytes(c->fn->bufs.data[buf].dtype);
}

void support_case_destroy(bench_case *c) {
    berth_arena_destroy(c->arena);
}

berth_buf support_param(bench_case *c, const char *name, int rank, const int64_t *dims,
                        const char *layout, berth_buf_role role) {
    berth_type_id type = berth_type_tensor_layout(c->module, BERTH_DTYPE_F32, rank, dims,
                                                  berth_module_intern(c->module, layout));
    berth_buf buf = berth_tfn_param(c->fn, name, type, role);
    allocate(c, buf);
    return buf;
}

// Small integers as base/tensor.h makes them, stretched to the type's range.
static void widen_integers(berth_tensor *tensor, uint64_t seed) {
    if (!berth_dtype_is_integer(tensor->dtype) || berth_dtype_size_bytes(tensor->dtype) > 2) return;
    int bits = (int)berth_dtype_size_bytes(tensor->dtype) * 8;
    int64_t low = berth_dtype_is_signed(tensor->dtype) ? -((int64_t)1 << (bits - 1)) : 0;
    int64_t range = (int64_t)1 << bits;
    uint64_t state = seed * 2 + 1;
    for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int64_t value = low + (int64_t)((state >> 33) % (uint64_t)range);
        if (state >> 61 == 0) value = low;
        if (state >> 61 == 1) value = low + range - 1;
        berth_tensor_set_i64(tensor, i, value);
    }
}

void support_fill(bench_case *c, uint64_t seed) {
    for (uint32_t b = 0; b < c->fn->param_count; ++b) {
        const berth_buf_info *info = &c->fn->bufs.data[b];
        if (info->role != BERTH_ROLE_IN) {
            memset(c->buffers[b], 0xff, support_buffer_bytes(c, b));
            continue;
        }
        // Random in logical positions, zero in the padding, as packing leaves it.
        berth_tensor tensor = berth_tensor_create(c->arena, info->dtype, info->rank, info->dims);
        berth_tensor_fill_random(&tensor, seed + b);
        widen_integers(&tensor, seed + b);
        berth_layout layout;
        berth_status_ignore(
            berth_layout_parse(berth_module_str(c->module, info->layout), info->rank, &layout));
        berth_layout_pack(&layout, &tensor, c->buffers[b]);
    }
}

static berth_expr mul_add(berth_tfn *fn, berth_expr a, int64_t k, berth_expr b) {
    return berth_tfn_binary(fn, BERTH_BINARY_ADD,
                            berth_tfn_binary(fn, BERTH_BINARY_MUL, a, berth_tfn_index(fn, k)), b);
}

static berth_expr ref(berth_tfn *fn, berth_var var) {
    return berth_tfn_var_ref(fn, var);
}

static berth_stmt loop(berth_tfn *fn, berth_var var, int64_t extent, berth_loop_kind kind,
                       berth_stmt body) {
    if (extent < 0) extent = 0;
    return berth_tfn_for(fn, var, berth_tfn_index(fn, extent), kind, body);
}

static berth_stmt reduction_body(berth_tfn *fn, berth_buf acc, berth_stmt loops, berth_stmt store) {
    berth_stmt items[] = {
        berth_tfn_alloc(fn, acc),
        berth_tfn_store(fn, acc, NULL, 0, berth_tfn_float(fn, BERTH_DTYPE_F32, 0)), loops, store};
    return berth_tfn_seq(fn, items, 4);
}

static berth_expr relu_of_biased(berth_tfn *fn, berth_buf acc, berth_buf bias, berth_expr at) {
    berth_expr value = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_load(fn, acc, NULL, 0),
                                        berth_tfn_load(fn, bias, &at, 1));
    return berth_tfn_binary(fn, BERTH_BINARY_MAX, value, berth_tfn_float(fn, BERTH_DTYPE_F32, 0));
}

void support_build_matmul(bench_case *c, int64_t m, int64_t k, int64_t n, const char *w_layout) {
    berth_tfn *fn = c->fn;
    berth_buf x = support_param(c, "x", 2, (int64_t[]){m, k}, "", BERTH_ROLE_IN);
    berth_buf w = support_param(c, "w", 2, (int64_t[]){k, n}, w_layout, BERTH_ROLE_IN);
    berth_buf bias = support_param(c, "bias", 1, &n, "", BERTH_ROLE_IN);
    berth_buf y = support_param(c, "y", 2, (int64_t[]){m, n}, "", BERTH_ROLE_OUT);
    berth_buf acc = berth_tfn_buffer(fn, "acc", BERTH_DTYPE_F32, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_var i = berth_tfn_var(fn, "i");
    berth_var j = berth_tfn_var(fn, "j");
    berth_var kk = berth_tfn_var(fn, "k");
    berth_expr product =
        berth_tfn_fma(fn, berth_tfn_load(fn, x, (berth_expr[]){ref(fn, i), ref(fn, kk)}, 2),
                      berth_tfn_load(fn, w, (berth_expr[]){ref(fn, kk), ref(fn, j)}, 2),
                      berth_tfn_load(fn, acc, NULL, 0));
    berth_stmt update =
        loop(fn, kk, k, BERTH_LOOP_SERIAL, berth_tfn_store(fn, acc, NULL, 0, product));
    berth_stmt store = berth_tfn_store(fn, y, (berth_expr[]){ref(fn, i), ref(fn, j)}, 2,
                                       relu_of_biased(fn, acc, bias, ref(fn, j)));
    berth_stmt body = reduction_body(fn, acc, update, store);
    body = loop(fn, j, n, BERTH_LOOP_SERIAL, body);
    body = loop(fn, i, m, BERTH_LOOP_PARALLEL, body);
    fn->body = berth_tfn_seq(fn, &body, 1);
}

// Output loops in the order of y's layout: "" or "aBcd<k>b".
void support_build_conv(bench_case *c, const conv_shape *s) {
    berth_tfn *fn = c->fn;
    int64_t ih = (s->oh - 1) * s->stride + s->kh;
    int64_t iw = (s->ow - 1) * s->stride + s->kw;
    int64_t block = 1;
    sscanf(s->y_layout, "aBcd%ldb", &block);
    berth_buf x =
        support_param(c, "x", 4, (int64_t[]){1, s->ic, ih, iw}, s->x_layout, BERTH_ROLE_IN);
    berth_buf w =
        support_param(c, "w", 4, (int64_t[]){s->oc, s->depthwise ? 1 : s->ic, s->kh, s->kw},
                      s->w_layout, BERTH_ROLE_IN);
    char bias_layout[8] = "";
    if (block > 1) snprintf(bias_layout, sizeof(bias_layout), "A%da", (int)block);
    berth_buf bias = support_param(c, "bias", 1, &s->oc, bias_layout, BERTH_ROLE_IN);
    berth_buf y =
        support_param(c, "y", 4, (int64_t[]){1, s->oc, s->oh, s->ow}, s->y_layout, BERTH_ROLE_OUT);
    berth_buf acc = berth_tfn_buffer(fn, "acc", BERTH_DTYPE_F32, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_var v[8];
    const char *names[] = {"oc_o", "oh", "ow", "oc_i", "ic", "kh", "kw"};
    for (int i = 0; i < 7; ++i) v[i] = berth_tfn_var(fn, names[i]);
    berth_expr zero = berth_tfn_index(fn, 0);
    berth_expr oc = block > 1 ? mul_add(fn, ref(fn, v[0]), block, ref(fn, v[3])) : ref(fn, v[0]);
    berth_expr ic = s->depthwise ? oc : ref(fn, v[4]);
    berth_expr x_at[] = {zero, ic, mul_add(fn, ref(fn, v[1]), s->stride, ref(fn, v[5])),
                         mul_add(fn, ref(fn, v[2]), s->stride, ref(fn, v[6]))};
    berth_expr w_at[] = {oc, s->depthwise ? zero : ic, ref(fn, v[5]), ref(fn, v[6])};
    berth_expr product =
        berth_tfn_fma(fn, berth_tfn_load(fn, x, x_at, 4), berth_tfn_load(fn, w, w_at, 4),
                      berth_tfn_load(fn, acc, NULL, 0));
    berth_stmt update = berth_tfn_store(fn, acc, NULL, 0, product);
    update = loop(fn, v[6], s->kw, BERTH_LOOP_SERIAL, update);
    update = loop(fn, v[5], s->kh, BERTH_LOOP_SERIAL, update);
    if (!s->depthwise) update = loop(fn, v[4], s->ic, BERTH_LOOP_SERIAL, update);
    berth_expr y_at[] = {zero, oc, ref(fn, v[1]), ref(fn, v[2])};
    berth_stmt body = reduction_body(
        fn, acc, update, berth_tfn_store(fn, y, y_at, 4, relu_of_biased(fn, acc, bias, oc)));
    if (block > 1) body = loop(fn, v[3], block, BERTH_LOOP_SERIAL, body);
    body = loop(fn, v[2], s->ow, BERTH_LOOP_SERIAL, body);
    body = loop(fn, v[1], s->oh, BERTH_LOOP_PARALLEL, body);
    body = loop(fn, v[0], (s->oc + block - 1) / block, BERTH_LOOP_PARALLEL, body);
    fn->body = berth_tfn_seq(fn, &body, 1);
}

static void reset_outputs(bench_case *c) {
    for (uint32_t b = 0; b < c->fn->param_count; ++b)
        if (c->fn->bufs.data[b].role != BERTH_ROLE_IN) {
            size_t bytes = support_buffer_bytes(c, b);
            c->buffers[b] = berth_arena_alloc_aligned(c->arena, bytes + 64, 128);
            memset(c->buffers[b], 0xff, bytes);
        }
}

berth_status support_interpret(bench_case *c) {
    reset_outputs(c);
    return berth_tfn_interpret(c->fn, c->buffers, c->arena);
}

static berth_status call_kernels(bench_case *c, const berth_codegen_result *code,
                                 berth_dynlib *library) {
    void *workspace[64] = {0};
    for (uint32_t i = 0; i < code->kernel_count; ++i) {
        const berth_kernel_source *kernel = &code->kernels[i];
        union {
            void *object;
            berth_cpu_kernel function;
        } symbol = {.object = berth_dynlib_symbol(library, kernel->entry)};
        if (!symbol.object) return berth_status_make(BERTH_NOT_FOUND, "%s", kernel->entry);
        void *bound[64];
        for (uint32_t b = 0; b < kernel->buffer_count; ++b) {
            berth_buf buf = kernel->buffers[b];
            const berth_buf_info *info = &c->fn->bufs.data[buf];
            int64_t count = 1;
            for (int d = 0; d < info->rank; ++d) count *= info->dims[d];
            if (buf >= c->fn->param_count && !workspace[buf])
                workspace[buf] = berth_arena_alloc_aligned(c->arena, (size_t)count * 8 + 64, 128);
            bound[b] = buf < c->fn->param_count ? c->buffers[buf] : workspace[buf];
        }
        void *scratch = berth_arena_alloc_aligned(c->arena, kernel->scratch_bytes + 64, 64);
        int64_t middle = kernel->groups[0] / 3;
        symbol.function(bound, NULL, middle, kernel->groups[0], scratch);
        symbol.function(bound, NULL, 0, middle, scratch);
    }
    return BERTH_OK;
}

berth_status support_run_compiled(bench_case *c, const berth_target *target, bool strict) {
    berth_codegen_result code;
    BERTH_TRY(berth_codegen_c.print(c->fn, NULL, "k", c->arena, &code));
    const char *source = berth_codegen_c.source(&code, c->arena);
    if (strict)
        source = berth_arena_printf(
            c->arena, "%s%s",
            "#pragma GCC diagnostic error \"-Wall\"\n#pragma GCC diagnostic error \"-Wextra\"\n",
            source);
    berth_toolchain_options options = {.target = target, .cache_folder = getenv("BERTH_CACHE_DIR")};
    berth_toolchain_unit unit = {.label = "test", .source = source};
    berth_toolchain_image image;
    BERTH_TRY(berth_toolchain_compile(&options, c->arena, &unit, 1, &image));
    berth_dynlib *library = NULL;
    BERTH_TRY(berth_dynlib_open_memory(image.data, image.size_bytes, "test", &library));
    reset_outputs(c);
    berth_status status = call_kernels(c, &code, library);
    berth_dynlib_close(library);
    return status;
}

const berth_target *support_target(berth_arena *arena, const char *text) {
    berth_machine_facts facts = {0};
    berth_multi_target *target = NULL;
    berth_status_ignore(berth_machine_facts_host(arena, &facts));
    berth_target_options options = {.machine = &facts};
    berth_status status = berth_target_parse(arena, text, &options, &target);
    if (status) {
        fprintf(stderr, "%s\n", berth_status_message(status));
        berth_status_free(status);
        abort();
    }
    return target->devices[target->default_device].target;
}

double support_difference(const float *a, const float *b, int64_t count) {
    double worst = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        if (isnan(a[i]) || isnan(b[i])) return INFINITY;
        double scale = fabs((double)b[i]) > 1 ? fabs((double)b[i]) : 1;
        double difference = fabs((double)a[i] - (double)b[i]) / scale;
        if (difference > worst) worst = difference;
    }
    return worst;
}
