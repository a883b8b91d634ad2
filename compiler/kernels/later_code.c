#include "compiler/kernels/later_code.h"

#include <string.h>

// Of one target.
typedef struct later_image {
    struct later_image *next;
    const berth_codegen *codegen;
    const berth_target *target;
    BERTH_VEC(berth_codegen_unit) units;
    char mark;                     // its address stands for the code
    berth_executable_image image;  // without code at first
} later_image;

struct berth_later_code {
    berth_arena *arena;
    later_image *images;
};

berth_later_code *berth_later_code_create(berth_arena *arena) {
    berth_later_code *later = berth_arena_new(arena, berth_later_code);
    later->arena = arena;
    return later;
}

static later_image *image_for(berth_later_code *later, const berth_codegen *codegen,
                              const berth_target *target) {
    for (later_image *i = later->images; i; i = i->next)
        if (i->codegen == codegen && berth_hash128_equal(i->target->hash, target->hash)) return i;
    later_image *made = berth_arena_new(later->arena, later_image);
    made->codegen = codegen;
    made->target = target;
    made->image = (berth_executable_image){.device_kind = codegen->kind,
                                           .format = codegen->format,
                                           .options = "",
                                           .data = &made->mark,
                                           .size_bytes = sizeof(made->mark),
                                           .external = ""};
    made->next = later->images;
    later->images = made;
    return made;
}

typedef struct add_job {
    berth_later_code *later;
    const berth_codegen *codegen;
    const berth_target *target;
    const berth_codegen_unit *units;
    uint32_t count;
    later_image *image;
} add_job;

static berth_status add(void *user) {
    add_job *job = user;
    berth_arena *arena = job->later->arena;
    job->image = image_for(job->later, job->codegen, job->target);
    for (uint32_t i = 0; i < job->count; ++i) {
        const berth_codegen_unit *unit = &job->units[i];
        const berth_codegen_result code = {.source = berth_arena_strdup(arena, unit->code->source)};
        const berth_codegen_unit made = {.label = berth_arena_strdup(arena, unit->label),
                                         .code = berth_arena_copy(arena, &code, sizeof(code))};
        berth_vec_push(arena, &job->image->units, made);
    }
    return BERTH_OK;
}

berth_status berth_later_code_add(berth_later_code *later, const berth_codegen *codegen,
                                  const berth_target *target, const berth_codegen_unit *units,
                                  uint32_t count, berth_executable_image *out_image) {
    add_job job = {later, codegen, target, units, count, NULL};
    BERTH_TRY(berth_arena_try(later->arena, add, &job));
    *out_image = job.image->image;
    return BERTH_OK;
}

static const later_image *find(const berth_later_code *later, const void *data) {
    const later_image *i = later ? later->images : NULL;
    while (i && data != &i->mark) i = i->next;
    return i;
}

bool berth_later_code_is_mark(const berth_later_code *later, const void *data) {
    return find(later, data) != NULL;
}

typedef struct compile_job {
    berth_later_code *later;
    const struct berth_compile_options *options;
} compile_job;

static berth_status compile(void *user) {
    const compile_job *job = user;
    for (later_image *i = job->later->images; i; i = i->next) {
        const berth_codegen_job of = {.target = i->target,
                                      .units = i->units.data,
                                      .count = i->units.count,
                                      .options = job->options,
                                      .arena = job->later->arena};
        berth_codegen_bytes bytes = {.options = ""};
        BERTH_TRY(i->codegen->finish(&of, &bytes));
        i->image.data = bytes.data;
        i->image.size_bytes = bytes.size_bytes;
        i->image.options = bytes.options;
    }
    return BERTH_OK;
}

berth_status berth_later_code_compile(berth_later_code *later,
                                      const struct berth_compile_options *options) {
    compile_job job = {later, options};
    return berth_arena_try(later->arena, compile, &job);
}

const berth_program *berth_later_code_put(const berth_later_code *later,
                                          const berth_program *program, berth_arena *arena) {
    berth_executable_image *images =
        berth_arena_copy(arena, program->executables, program->executable_count * sizeof(*images));
    berth_program *made = berth_arena_copy(arena, program, sizeof(*program));
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        const later_image *held = find(later, images[i].data);
        if (held) images[i] = held->image;
    }
    made->executables = images;
    return made;
}
