// Executables of a program, one per device target and external function: the code generators' images
// of the printed units.
#include <string.h>

#include "compiler/kernels/later_code.h"
#include "compiler/pipeline.h"

typedef struct image_builder {
    berth_module *module;
    berth_pipeline *pipeline;
    BERTH_VEC(berth_executable_image) images;
    BERTH_VEC(berth_program_attachment) attachments;
} image_builder;

static const berth_target *target_of(const image_builder *b, const berth_unit *unit) {
    return b->pipeline->options->target->devices[unit->device].target;
}

// Of code that the host runs for the device: its own.
static const berth_target *code_target_of(const image_builder *b, const berth_unit *unit) {
    const berth_multi_target *target = b->pipeline->options->target;
    bool of_host = unit->external && unit->external->of_host;
    return of_host ? target->devices[target->host].target : target_of(b, unit);
}

static const berth_codegen *codegen_of(const image_builder *b, const berth_unit *unit) {
    if (unit->external && unit->external->of_host) return &berth_codegen_c;
    return berth_pipeline__codegen(b->pipeline, unit->device);
}

static bool is_alone(const berth_unit *unit) {
    return unit->external || unit->calls;
}

static const char *label_of(const berth_unit *unit) {
    return unit->external ? unit->external->label : unit->calls ? unit->calls : "";
}

// NULL: it is not wanted, or there is none (an object file). Code that people wrote is kept as it is.
static const char *source_of(const image_builder *b, const berth_codegen *codegen,
                             const berth_codegen_result *code, bool external) {
    if (!b->pipeline->options->keep_source || !codegen->source_suffix) return NULL;
    return codegen->source && !external ? codegen->source(code, b->module->arena) : code->source;
}

// Of an image; a text that is attached to it already stays there once.
static void attach_source(image_builder *b, const berth_codegen *codegen, uint32_t image,
                          const char *label, const char *text) {
    if (!text) return;
    for (uint32_t i = 0; i < b->attachments.count; ++i)
        if (b->attachments.data[i].data == text) return;
    berth_program_attachment source = {.name =
                                           berth_arena_printf(b->module->arena, "source/%u/%s.%s",
                                                              image, label, codegen->source_suffix),
                                       .data = text,
                                       .size_bytes = strlen(text)};
    berth_vec_push(b->module->arena, &b->attachments, source);
}

// Units that are made to serve several sizes are kept for later compilations; the program has the kept bytes, too, as
// programs have that find these kernels later.
static berth_status keep_generic(const image_builder *b, const berth_codegen *codegen,
                                 const uint32_t *members, uint32_t count,
                                 berth_executable_image *image) {
    const berth_compile_options *options = b->pipeline->options;
    berth_arena *arena = b->module->arena;
    if (!options->generic_kernels) return BERTH_OK;
    berth_generic_kernel **made = berth_arena_new_array(arena, berth_generic_kernel *, count);
    const char **sources = berth_arena_new_array(arena, const char *, count);
    uint32_t made_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_unit *unit = &b->pipeline->units.data[members[i]];
        if (!unit->generic) continue;
        sources[made_count] = source_of(b, codegen, &unit->code, false);
        made[made_count++] = unit->generic;
    }
    const bool later = berth_later_code_is_mark(options->later_code, image->data);
    BERTH_TRY(berth_generic_kernels_keep(options->generic_kernels, made, sources, made_count, image,
                                         !later));
    if (made_count) image->data = berth_generic_kernel_image(made[0])->data;
    return BERTH_OK;
}

// Of an image whose bytes may be the program's already.
static uint32_t index_of_image(image_builder *b, const berth_executable_image *image) {
    for (uint32_t i = 0; i < b->images.count; ++i)
        if (b->images.data[i].data == image->data) return i;
    berth_vec_push(b->module->arena, &b->images, *image);
    return b->images.count - 1;
}

// The code of units of one device target, or what stands for it until it is compiled.
static berth_status finish_code(const image_builder *b, const berth_codegen *codegen,
                                const berth_target *target, const berth_codegen_unit *parts,
                                uint32_t count, const berth_unit *first,
                                berth_executable_image *out_image) {
    const berth_compile_options *options = b->pipeline->options;
    const bool alone = is_alone(first);
    *out_image =
        (berth_executable_image){.device_kind = berth_device_kind_name(target_of(b, first)->kind),
                                 .format = codegen->format,
                                 .external = label_of(first)};
    if (options->later_code && codegen->compiles && !alone)
        return berth_later_code_add(options->later_code, codegen, target, parts, count, out_image);
    const berth_codegen_job job = {.target = target,
                                   .units = parts,
                                   .count = count,
                                   .foreign = first->external != NULL,
                                   .options = options,
                                   .arena = b->module->arena};
    berth_codegen_bytes bytes = {.options = ""};
    berth_status status = codegen->finish(&job, &bytes);
    BERTH_TRY(alone ? berth_status_prefix(status, "external function") : status);
    out_image->options = bytes.options;
    out_image->data = bytes.data;
    out_image->size_bytes = bytes.size_bytes;
    return BERTH_OK;
}

// The image of `members`, units of one device target.
static berth_status finish_image(image_builder *b, const berth_codegen *codegen,
                                 const berth_target *target, const uint32_t *members,
                                 uint32_t count) {
    berth_unit *units = b->pipeline->units.data;
    const berth_external_code *external = units[members[0]].external;
    berth_codegen_unit *parts = berth_arena_new_array(b->module->arena, berth_codegen_unit, count);
    berth_executable_image image;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_unit *unit = &units[members[i]];
        parts[i] = (berth_codegen_unit){.label = external ? external->label : unit->prefix,
                                        .code = &unit->code};
    }
    BERTH_TRY(finish_code(b, codegen, target, parts, count, &units[members[0]], &image));
    if (!external) BERTH_TRY(keep_generic(b, codegen, members, count, &image));
    const uint32_t index = index_of_image(b, &image);
    for (uint32_t i = 0; i < count; ++i) {
        attach_source(b, codegen, index, external ? "external" : parts[i].label,
                      source_of(b, codegen, parts[i].code, external));
        units[members[i]].executable = index;
    }
    return BERTH_OK;
}

// Whether code for several sizes is there already: its image is one of the program's.
static bool use_generic(image_builder *b, const berth_codegen *codegen, berth_unit *unit) {
    const berth_executable_image *image =
        unit->generic ? berth_generic_kernel_image(unit->generic) : NULL;
    if (!image) return false;
    unit->executable = index_of_image(b, image);
    if (b->pipeline->options->keep_source)
        attach_source(b, codegen, unit->executable, unit->prefix,
                      berth_generic_kernel_source(unit->generic));
    return true;
}

// All units without an executable yet whose device target equals that of `first`. External code, and
// what has some in it, is an image of its own: its names are nobody else's.
static berth_status make_image(image_builder *b, uint32_t first, const berth_codegen *codegen) {
    const berth_unit *units = b->pipeline->units.data;
    const berth_target *target = code_target_of(b, &units[first]);
    BERTH_VEC(uint32_t) members = {0};
    berth_vec_push(b->module->arena, &members, first);
    for (uint32_t i = first + 1; i < b->pipeline->units.count && !is_alone(&units[first]); ++i) {
        bool done = units[i].executable != BERTH_NO_INDEX || !units[i].used ||
                    is_alone(&units[i]) ||
                    (units[i].generic && berth_generic_kernel_image(units[i].generic));
        if (done || !berth_hash128_equal(target_of(b, &units[i])->hash, target->hash)) continue;
        berth_vec_push(b->module->arena, &members, i);
    }
    return finish_image(b, codegen, target, members.data, members.count);
}

static void leave_empty(image_builder *b, uint32_t unit, const berth_codegen *codegen) {
    b->pipeline->units.data[unit].executable = b->images.count;
    const berth_target *target = target_of(b, &b->pipeline->units.data[unit]);
    berth_executable_image image = {.device_kind = berth_device_kind_name(target->kind),
                                    .format = codegen->format,
                                    .options = "",
                                    .data = "",
                                    .size_bytes = 1,
                                    .external = label_of(&b->pipeline->units.data[unit])};
    berth_vec_push(b->module->arena, &b->images, image);
}

berth_status berth_pipeline__make_images(berth_module *module, berth_pipeline *pipeline,
                                         berth_program *program) {
    image_builder b = {.module = module, .pipeline = pipeline};
    for (uint32_t i = 0; i < pipeline->units.count; ++i) {
        if (pipeline->units.data[i].executable != BERTH_NO_INDEX || !pipeline->units.data[i].used)
            continue;
        const berth_codegen *codegen = codegen_of(&b, &pipeline->units.data[i]);
        if (pipeline->options->plan_only)
            leave_empty(&b, i, codegen);
        else if (!use_generic(&b, codegen, &pipeline->units.data[i]))
            BERTH_TRY(make_image(&b, i, codegen));
    }
    program->executables = b.images.data;
    program->executable_count = b.images.count;
    program->attachments = b.attachments.data;
    program->attachment_count = b.attachments.count;
    return BERTH_OK;
}
