// Executables of a program, one per device target: the CPU's kernels compiled by the system's C
// compiler and linked to a shared object; OpenCL's as one source program.
#include <string.h>

#include "compiler/pipeline.h"
#include "compiler/toolchain.h"

typedef struct image_builder {
    berth_module *module;
    berth_pipeline *pipeline;
    BERTH_VEC(berth_executable_image) images;
    BERTH_VEC(berth_program_attachment) attachments;
} image_builder;

static const berth_target *target_of(const image_builder *b, const berth_unit *unit) {
    return b->pipeline->options->target->devices[unit->device].target;
}

static void report_progress(void *user, uint32_t done, uint32_t total) {
    const berth_compile_options *options = user;
    options->progress(options->progress_user, "compiling kernels", done, total);
}

static void keep_source(image_builder *b, const berth_toolchain_unit *unit, bool foreign) {
    if (!unit->source) return;  // an object file
    berth_arena *arena = b->module->arena;
    berth_program_attachment source = {
        .name = berth_arena_printf(arena, "source/%u/%s.c", b->images.count,
                                   foreign ? "external" : unit->label),
        .data = unit->source,
        .size_bytes = strlen(unit->source)};
    berth_vec_push(arena, &b->attachments, source);
}

// Compiles and links sources to one shared object, which becomes the image of `members`.
static berth_status compile_image(image_builder *b, const berth_target *target,
                                  berth_toolchain_unit *sources, const uint32_t *members,
                                  uint32_t count, bool foreign) {
    const berth_compile_options *options = b->pipeline->options;
    berth_arena *arena = b->module->arena;
    union {
        const berth_compile_options *constant;
        void *mutable_pointer;
    } user = {.constant = options};
    berth_toolchain_options toolchain = {.target = target,
                                         .c_compiler = options->c_compiler,
                                         .cache_folder = options->cache_folder,
                                         .cache_limit_bytes = options->cache_limit_bytes,
                                         .search_path = options->search_path,
                                         .jobs = options->jobs,
                                         .time_limit_ns = options->compiler_time_limit_ns,
                                         .foreign = foreign,
                                         .log = options->log,
                                         .progress = options->progress ? report_progress : NULL,
                                         .progress_user = user.mutable_pointer,
                                         .temporary_folder = options->temporary_folder,
                                         .interrupt = options->interrupt};
    berth_toolchain_image code;
    BERTH_TRY(berth_toolchain_compile(&toolchain, arena, sources, count, &code));
    for (uint32_t i = 0; options->keep_source && i < count; ++i)
        keep_source(b, &sources[i], foreign);
    for (uint32_t i = 0; i < count; ++i)
        b->pipeline->units.data[members[i]].executable = b->images.count;
    berth_executable_image image = {.device_kind = berth_device_kind_name(target->kind),
                                    .format = BERTH_FORMAT_CPU_ELF,
                                    .options = berth_toolchain_needs(target, arena),
                                    .data = code.data,
                                    .size_bytes = code.size_bytes,
                                    .external = ""};
    berth_vec_push(arena, &b->images, image);
    return BERTH_OK;
}

// All units of one cpu target that have no executable yet, the first being `first`.
static berth_status compile_c(image_builder *b, uint32_t first) {
    berth_arena *arena = b->module->arena;
    berth_unit *units = b->pipeline->units.data;
    const berth_target *target = target_of(b, &units[first]);
    BERTH_VEC(berth_toolchain_unit) sources = {0};
    BERTH_VEC(uint32_t) members = {0};
    for (uint32_t i = first; i < b->pipeline->units.count; ++i) {
        if (units[i].executable != BERTH_NO_INDEX || !units[i].used || units[i].external ||
            target_of(b, &units[i]) != target)
            continue;
        berth_vec_push(
            arena, &sources,
            (berth_toolchain_unit){.label = units[i].prefix, .source = units[i].code.source});
        berth_vec_push(arena, &members, i);
    }
    return compile_image(b, target, sources.data, members.data, members.count, false);
}

// External code is an image of its own: its names are nobody else's.
static berth_status make_external(image_builder *b, uint32_t index, const berth_codegen *codegen) {
    berth_unit *unit = &b->pipeline->units.data[index];
    const berth_external_code *external = unit->external;
    if (strcmp(codegen->format, BERTH_FORMAT_CPU_ELF) == 0) {
        berth_toolchain_unit source = {.label = external->label,
                                       .source = unit->code.source,
                                       .object = external->object,
                                       .object_bytes = external->object_bytes};
        BERTH_TRY(berth_status_prefix(
            compile_image(b, target_of(b, unit), &source, &index, 1, true), "external function"));
    } else {
        unit->executable = b->images.count;
        berth_executable_image image = {.device_kind = codegen->kind,
                                        .format = codegen->format,
                                        .options = "",
                                        .data = unit->code.source,
                                        .size_bytes = strlen(unit->code.source) + 1};
        berth_vec_push(b->module->arena, &b->images, image);
    }
    b->images.data[unit->executable].external = external->label;
    return BERTH_OK;
}

// One program of all units whose device target equals that of `first`: source text is the image.
static void join_sources(image_builder *b, uint32_t first, const berth_codegen *codegen) {
    berth_arena *arena = b->module->arena;
    berth_unit *units = b->pipeline->units.data;
    const berth_target *target = target_of(b, &units[first]);
    berth_strbuf text = berth_strbuf_make(arena);
    if (codegen->preamble) berth_strbuf_add(&text, codegen->preamble(arena));
    for (uint32_t i = first; i < b->pipeline->units.count; ++i) {
        if (units[i].executable != BERTH_NO_INDEX || !units[i].used || units[i].external ||
            !berth_hash128_equal(target_of(b, &units[i])->hash, target->hash))
            continue;
        units[i].executable = b->images.count;
        berth_strbuf_add(&text, units[i].code.source);
    }
    berth_executable_image image = {.device_kind = codegen->kind,
                                    .format = codegen->format,
                                    .options = "",
                                    .data = berth_strbuf_text(&text),
                                    .size_bytes = text.length + 1,
                                    .external = ""};
    berth_vec_push(arena, &b->images, image);
}

static void leave_empty(image_builder *b, uint32_t unit, const berth_codegen *codegen) {
    const berth_external_code *external = b->pipeline->units.data[unit].external;
    b->pipeline->units.data[unit].executable = b->images.count;
    berth_executable_image image = {.device_kind = codegen->kind,
                                    .format = codegen->format,
                                    .options = "",
                                    .data = "",
                                    .size_bytes = 1,
                                    .external = external ? external->label : ""};
    berth_vec_push(b->module->arena, &b->images, image);
}

berth_status berth_pipeline__make_images(berth_module *module, berth_pipeline *pipeline,
                                         berth_program *program) {
    image_builder b = {.module = module, .pipeline = pipeline};
    for (uint32_t i = 0; i < pipeline->units.count; ++i) {
        if (pipeline->units.data[i].executable != BERTH_NO_INDEX || !pipeline->units.data[i].used)
            continue;
        const berth_target *target = target_of(&b, &pipeline->units.data[i]);
        const berth_codegen *codegen = berth_codegen_find(berth_device_kind_name(target->kind));
        if (pipeline->options->plan_only)
            leave_empty(&b, i, codegen);
        else if (pipeline->units.data[i].external)
            BERTH_TRY(make_external(&b, i, codegen));
        else if (strcmp(codegen->format, BERTH_FORMAT_CPU_ELF) == 0)
            BERTH_TRY(compile_c(&b, i));
        else
            join_sources(&b, i, codegen);
    }
    program->executables = b.images.data;
    program->executable_count = b.images.count;
    program->attachments = b.attachments.data;
    program->attachment_count = b.attachments.count;
    return BERTH_OK;
}
