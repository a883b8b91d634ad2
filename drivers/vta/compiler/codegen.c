// Streams of tensor functions. Printing reads a nest back (nest.h); tiles and instructions follow in
// `finish`, which knows the configuration.
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/kernel_facts.h"
#include "drivers/vta/compiler/compiler.h"

berth_vta_config berth_vta_config_of(const berth_target *target) {
    berth_vta_config config = berth_vta_config_default();
#define LOG(name, value, trace_name)                                                               \
    config.name = (uint32_t)berth_target_extra_get(target, #name, (int64_t)config.name);
#include "drivers/vta/config.def"
    return config;
}

static uint32_t filled_up(int64_t count, uint32_t log_block) {
    uint32_t block = 1u << log_block;
    return ((uint32_t)count + block - 1) / block * block;
}

static berth_status unsupported(const char *why) {
    return berth_status_make(BERTH_UNSUPPORTED, "%s", why);
}

// What is left to do about scales: shifts for products, factors and divisors for sums.
static berth_status set_scale(const berth_vta_nest *n, berth_vta_conv *conv) {
    bool products = n->form == BERTH_VTA_PRODUCTS;
    bool power = (n->divisor & (n->divisor - 1)) == 0;
    if (n->form == BERTH_VTA_MAXIMA && (n->factors[0] != 1 || n->divisor != 1))
        return unsupported("a maximum with a scale");
    if (products && (!power || n->factors[0] != 1))
        return unsupported("a scale that is no power of two, or above 1");
    if (n->factors[0] > 64 || n->factors[1] > 64)
        return unsupported("scales that ask for a factor above 64");
    if (n->divisor > 32768) return unsupported("scales that ask for a divisor above 32768");
    conv->sources = n->second == BERTH_NONE ? 1 : 2;
    conv->factors[0] = (uint32_t)n->factors[0];
    conv->factors[1] = (uint32_t)n->factors[1];
    conv->divisor = (uint32_t)n->divisor;
    while (products && 1u << conv->shift < conv->divisor) conv->shift++;
    conv->to_even = conv->shift > 0;
    return BERTH_OK;
}

static berth_status set_parts(const berth_vta_nest *n, const berth_vta_config *config,
                              berth_vta_conv *conv) {
    conv->parts = n->part_count;
    for (uint32_t i = 0; i < n->part_count; ++i) {
        if (i + 1 < n->part_count && n->part_channels[i] % ((int64_t)1 << config->log_block))
            return unsupported("tensors side by side whose channels fill no blocks");
        conv->part_blocks[i] =
            filled_up(n->part_channels[i], config->log_block) >> config->log_block;
    }
    return BERTH_OK;
}

// Whole blocks; what fills up the last one is 0 only where the input's channels end there.
static berth_status set_slice(const berth_vta_nest *n, const berth_vta_config *config,
                              berth_vta_conv *conv) {
    int64_t block = (int64_t)1 << config->log_block;
    if (n->form == BERTH_VTA_PRODUCTS || n->part_count || n->in_channels == n->out_channels)
        return BERTH_OK;
    if (n->first_channel % block ||
        (n->out_channels % block && n->first_channel + n->out_channels < n->in_channels))
        return unsupported("a slice that begins or ends within a block of channels");
    conv->map_blocks = conv->in_channels >> config->log_block;
    conv->first_block = (uint32_t)n->first_channel >> config->log_block;
    conv->in_channels = conv->out_channels;
    return BERTH_OK;
}

berth_status berth_vta_conv_of(const berth_vta_nest *nest, const berth_vta_config *config,
                               berth_vta_conv *out_conv) {
    enum { most = 16383 };
    const berth_vta_nest *n = nest;
    const int64_t extents[] = {n->images,    n->in_channels, n->out_channels, n->height,
                               n->width,     n->kernel_h,    n->kernel_w,     n->stride_h,
                               n->stride_w,  n->out_height,  n->out_width,    n->pad_h + 1,
                               n->pad_w + 1, n->dilation_h,  n->dilation_w};
    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); ++i)
        if (extents[i] < 1 || extents[i] > most)
            return unsupported("an extent of 0, or above 16383");
    if (n->groups > 1 && (n->in_channels % (n->groups << config->log_block) ||
                          n->out_channels % (n->groups << config->log_block)))
        return unsupported("groups whose channels fill no blocks");
    *out_conv = (berth_vta_conv){.images = (uint32_t)n->images,
                                 .height = (uint32_t)n->height,
                                 .width = (uint32_t)n->width,
                                 .in_channels = filled_up(n->in_channels, config->log_block),
                                 .out_channels = filled_up(n->out_channels, config->log_block),
                                 .kernel_h = (uint32_t)n->kernel_h,
                                 .kernel_w = (uint32_t)n->kernel_w,
                                 .stride_h = (uint32_t)n->stride_h,
                                 .stride_w = (uint32_t)n->stride_w,
                                 .dilation_h = (uint32_t)n->dilation_h,
                                 .dilation_w = (uint32_t)n->dilation_w,
                                 .pad_h = (uint32_t)n->pad_h,
                                 .pad_w = (uint32_t)n->pad_w,
                                 .out_height = (uint32_t)n->out_height,
                                 .out_width = (uint32_t)n->out_width,
                                 .low = n->low,
                                 .high = n->high,
                                 .no_bias = n->bias == BERTH_NONE,
                                 .form = n->form,
                                 .groups = (uint32_t)n->groups};
    if (n->has_steps) {
        out_conv->work = &n->steps;
        out_conv->sources = n->second == BERTH_NONE ? 1 : 2;
        out_conv->factors[0] = out_conv->factors[1] = out_conv->divisor = 1;
    } else {
        BERTH_TRY(set_scale(n, out_conv));
    }
    BERTH_TRY(set_parts(n, config, out_conv));
    BERTH_TRY(set_slice(n, config, out_conv));
    berth_vta_shape shape;
    BERTH_TRY(berth_vta_shape_make(config, &shape));
    berth_vta_conv_stack(&shape, out_conv);
    return BERTH_OK;
}

// ---- printing -----------------------------------------------------------------------------------

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    const berth_tfn *copy = berth_kernel_copy_fn(fn, arena);
    memset(out_result, 0, sizeof(*out_result));
    BERTH_TRY(berth_kernel_nests(copy, arena, &nests, &count));
    berth_kernel_source *kernels = berth_arena_new_array(arena, berth_kernel_source, count + 1);
    berth_vta_nest *read = berth_arena_new_array(arena, berth_vta_nest, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        BERTH_TRY(berth_vta_nest_read_scheduled(copy, nests[i], &read[i]));
        kernels[i].entry = berth_arena_printf(arena, "%s_%u", prefix, i);
        berth_kernel_collect_facts(copy, arena, nests[i], &kernels[i]);
        for (int d = 0; d < 3; ++d) kernels[i].groups[d] = kernels[i].group_size[d] = 1;
    }
    out_result->code = read;
    out_result->code_bytes = count * sizeof(*read);
    out_result->kernels = kernels;
    out_result->kernel_count = count;
    return BERTH_OK;
}

// ---- the image ----------------------------------------------------------------------------------

// Buffers of the stream become the kernel's bindings.
static berth_status rebind(berth_arena *arena, const berth_kernel_source *source,
                           const berth_buf *order, berth_vta_kernel *kernel) {
    uint32_t place[BERTH_VTA_MOST_PARTS + 1] = {0};
    for (uint32_t b = 0; b < kernel->binding_count; ++b) {
        uint32_t at = 0;
        while (at < source->buffer_count && source->buffers[at] != order[b]) at++;
        if (at == source->buffer_count)
            return berth_status_make(BERTH_INTERNAL, "kernel %s lacks a buffer", source->entry);
        if (kernel->bindings[b].size_bytes > source->bindings[at].size_bytes)
            return berth_status_make(
                BERTH_INTERNAL, "kernel %s: buffer %u has %llu bytes, the stream uses %llu",
                source->entry, at, (unsigned long long)source->bindings[at].size_bytes,
                (unsigned long long)kernel->bindings[b].size_bytes);
        place[b] = at;
    }
    berth_vta_relocation *relocations = berth_arena_copy(
        arena, kernel->relocations, kernel->relocation_count * sizeof(*relocations));
    for (uint32_t i = 0; i < kernel->relocation_count; ++i)
        if (relocations[i].buffer != BERTH_VTA_CONSTANTS)
            relocations[i].buffer = place[relocations[i].buffer];
    kernel->relocations = relocations;
    kernel->bindings = source->bindings;
    kernel->binding_count = source->buffer_count;
    return BERTH_OK;
}

static berth_status emit(const berth_codegen_job *job, const berth_vta_config *config,
                         const berth_kernel_source *source, const berth_vta_nest *nest,
                         berth_vta_kernel *out_kernel) {
    berth_vta_timing timing = berth_vta_timing_default();
    berth_vta_conv conv;
    berth_vta_conv_tiles tiles;
    BERTH_TRY(berth_vta_conv_of(nest, config, &conv));
    BERTH_TRY(berth_vta_emit_best_conv(job->arena, config, &conv, &timing, &tiles, out_kernel));
    const berth_buf products[4] = {nest->input, nest->weights,
                                   conv.no_bias ? nest->output : nest->bias, nest->output};
    const berth_buf own[3] = {nest->input, conv.sources == 2 ? nest->second : nest->output,
                              nest->output};
    berth_buf parts[BERTH_VTA_MOST_PARTS + 1];
    for (uint32_t i = 0; i < conv.parts; ++i) parts[i] = nest->parts[i];
    parts[conv.parts] = nest->output;
    const berth_buf *order = conv.form == BERTH_VTA_PRODUCTS ? products : conv.parts ? parts : own;
    BERTH_TRY(rebind(job->arena, source, order, out_kernel));
    snprintf(out_kernel->name, sizeof(out_kernel->name), "%s", source->entry);
    return berth_vta_kernel_check(berth_allocator_system(), config, out_kernel, true);
}

static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    berth_vta_config config = berth_vta_config_of(job->target);
    uint32_t count = 0;
    uint8_t *data = NULL;
    size_t size_bytes = 0;
    for (uint32_t i = 0; i < job->count; ++i) count += job->units[i].code->kernel_count;
    berth_vta_kernel *kernels = berth_arena_new_array(job->arena, berth_vta_kernel, count + 1);
    uint32_t at = 0;
    for (uint32_t i = 0; i < job->count; ++i) {
        const berth_codegen_result *code = job->units[i].code;
        const berth_vta_nest *nests = code->code;
        if (job->foreign)
            return berth_status_make(BERTH_UNSUPPORTED, "external functions on a VTA");
        for (uint32_t k = 0; k < code->kernel_count; ++k)
            BERTH_TRY(berth_status_prefix(
                emit(job, &config, &code->kernels[k], &nests[k], &kernels[at++]), "kernel %s",
                code->kernels[k].entry));
    }
    BERTH_TRY(berth_vta_image_write(job->arena, &config, kernels, count, &data, &size_bytes));
    *out_bytes = (berth_codegen_bytes){.data = data, .size_bytes = size_bytes, .options = ""};
    return BERTH_OK;
}

const berth_codegen berth_vta_codegen = {
    .kind = "vta", .format = BERTH_VTA_FORMAT, .print = print, .finish = finish};
