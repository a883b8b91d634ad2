#include "compiler/bare/bare.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "compiler/bare/printer.h"

static const char *upper_of(berth_arena *arena, const char *name) {
    char *upper = berth_arena_strdup(arena, name);
    for (char *at = upper; *at; ++at) *at = (char)toupper((unsigned char)*at);
    return upper;
}

// The memory of that name, "" = the device's own; a new one where there is none.
static uint32_t find_memory(berth_bare_printer *p, const char *name) {
    for (uint32_t i = 0; i < p->memory_count; ++i)
        if (strcmp(p->memories[i].name, name) == 0) return i;
    const char *given = berth_bare_name(p->arena, name), *plain = given;
    for (uint32_t i = 1, next = 2; i < p->memory_count; ++i) {  // names that differ, but not in C
        if (strcasecmp(p->memories[i].plain, plain) != 0) continue;
        plain = berth_arena_printf(p->arena, "%s_%u", given, next++);
        i = 0;  // from the start: the new name may be another's
    }
    const char *upper = upper_of(p->arena, plain);
    berth_bare_memory *memory = &p->memories[p->memory_count++];
    if (*name)
        *memory = (berth_bare_memory){
            .name = name,
            .plain = plain,
            .attribute = berth_arena_printf(p->arena, "%s_IN_%s_ATTRIBUTE", p->upper, upper),
            .array = berth_arena_printf(p->arena, "%s_IN_%s_MEMORY", p->upper, upper),
            .arena = berth_arena_printf(p->arena, "%s_arena_%s", p->name, plain)};
    else
        *memory = (berth_bare_memory){
            .name = name,
            .plain = plain,
            .attribute = berth_arena_printf(p->arena, "%s_RAM_ATTRIBUTE", p->upper),
            .array = berth_arena_printf(p->arena, "%s_MEMORY", p->upper),
            .arena = berth_arena_printf(p->arena, "%s_arena", p->name)};
    return p->memory_count - 1;
}

// Arenas have the names of their memories where there are several.
static void name_pools(berth_bare_printer *p) {
    const berth_program *program = p->program;
    uint32_t count = program->pool_count;
    p->pools = berth_arena_new_array(p->arena, const char *, count + 1);
    p->sizes = berth_arena_new_array(p->arena, const char *, count + 1);
    p->memory_of = berth_arena_new_array(p->arena, uint32_t, count + 1);
    p->memories = berth_arena_new_array(p->arena, berth_bare_memory, count + 2);
    find_memory(p, "");
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        if (pool->usage != BERTH_POOL_WORKSPACE) continue;
        p->memory_of[i] = find_memory(p, strcmp(pool->scope, "global") == 0 ? "" : pool->scope);
        p->pools[i] = p->memories[p->memory_of[i]].arena;
        p->sizes[i] = berth_arena_printf(p->arena, "%s_BYTES", upper_of(p->arena, p->pools[i]));
    }
    for (uint32_t i = 0; p->memory && i < p->memory->share_count; ++i)
        if (p->memory->shares[i].has_scratch && !p->memory->shares[i].is_own)
            p->scratch_memory = find_memory(p, p->memory->shares[i].memory);
}

// Constants that a step reads, whole or in part.
static berth_status find_constants(berth_bare_printer *p) {
    const berth_program *program = p->program;
    bool *bound = berth_arena_new_array(p->arena, bool, program->tensor_count + 1);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        uint32_t count =
            step->kind == BERTH_STEP_DISPATCH ? program->kernels[step->kernel].binding_count : 2;
        for (uint32_t b = 0; b < count; ++b) bound[step->bindings[b]] = true;
    }
    p->used_constants = berth_arena_new_array(p->arena, bool, program->constant_count + 1);
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_tensor *whole = &program->tensors[program->constants[i].tensor];
        bool used = bound[program->constants[i].tensor];
        for (uint32_t t = 0; t < program->tensor_count && !used; ++t)
            used = bound[t] && berth_program_tensors_overlap(whole, &program->tensors[t]);
        used = used && program->pools[whole->pool].usage != BERTH_POOL_STORE;
        p->used_constants[i] = used;
        if (used) p->constant_bytes += whole->size_bytes;
    }
    p->store_bytes = berth_bare__store_bytes(program);
    if (p->constant_bytes <= BERTH_BARE_MAX_CONSTANT_BYTES) return BERTH_OK;
    char bytes[32];
    berth_format_bytes(p->constant_bytes, bytes);
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "the constants are %s, too much for C sources (at most 256 MiB); build "
        "for the executor \"graph\"",
        bytes);
}

static void add_file(berth_bare_printer *p, berth_bare_file *file, const char *name,
                     const char *text) {
    *file = (berth_bare_file){
        .name = berth_arena_strdup(p->arena, name), .text = text, .size_bytes = strlen(text)};
}

typedef struct print_call {
    const berth_program *program;
    const berth_bare_options *options;
    berth_arena *arena;
    const berth_bare_file *files;
    uint32_t count;
} print_call;

static berth_status check_program(const berth_program *program) {
    BERTH_TRY(berth_program_verify(program));
    if (strcmp(program->executor, "aot") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the program \"%s\" is for executor \"%s\", not \"aot\"",
                                 program->name, program->executor);
    for (uint32_t i = 0; i < program->executable_count; ++i)
        if (i > 0 || strcmp(program->executables[i].format, BERTH_FORMAT_C) != 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the program \"%s\" holds code in format \"%s\", not one text "
                                     "of plain C",
                                     program->name, program->executables[i].format);
    return BERTH_OK;
}

static berth_status print_body(void *user) {
    print_call *call = user;
    const berth_program *program = call->program;
    BERTH_TRY(check_program(program));
    const char *wanted = call->options->name ? call->options->name : program->name;
    berth_bare_printer *p = berth_arena_new(call->arena, berth_bare_printer);
    p->program = program;
    p->memory = call->options->memory;
    p->arena = call->arena;
    p->name = berth_bare_name(p->arena, wanted);
    p->upper = upper_of(p->arena, p->name);
    p->inputs = berth_bare__members(p->arena, program->inputs, program->input_count);
    p->outputs = berth_bare__members(p->arena, program->outputs, program->output_count);
    name_pools(p);
    BERTH_TRY(find_constants(p));
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > p->scratch_bytes)
            p->scratch_bytes = program->kernels[i].scratch_bytes;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (p->pools[i])
            p->memories[p->memory_of[i]].array_bytes +=
                berth_bare__aligned(program->pools[i].size_bytes);
    p->memories[p->scratch_memory].array_bytes += berth_bare__aligned(p->scratch_bytes);
    const char *code = NULL;
    BERTH_TRY(berth_bare__code(p, &code));
    berth_bare_file *files = berth_arena_new_array(p->arena, berth_bare_file, BERTH_BARE_MAX_FILES);
    add_file(p, &files[BERTH_BARE_HEADER], berth_arena_printf(p->arena, "%s.h", p->name),
             berth_bare__header(p));
    add_file(p, &files[BERTH_BARE_CODE], berth_arena_printf(p->arena, "%s.c", p->name), code);
    add_file(p, &files[BERTH_BARE_WEIGHTS_HEADER],
             berth_arena_printf(p->arena, "%s_weights.h", p->name), berth_bare__weights_header(p));
    add_file(p, &files[BERTH_BARE_WEIGHTS], berth_arena_printf(p->arena, "%s_weights.c", p->name),
             berth_bare__weights(p));
    add_file(p, &files[BERTH_BARE_EXAMPLE], "main.c", berth_bare__example(p));
    add_file(p, &files[BERTH_BARE_MAKEFILE], "Makefile", berth_bare__makefile(p));
    add_file(p, &files[BERTH_BARE_CMAKE], "CMakeLists.txt", berth_bare__cmake(p));
    uint32_t count = BERTH_BARE_MORE;
    if (p->store_bytes && call->options->toolchain)
        return berth_status_make(
            BERTH_UNSUPPORTED, "a shared library has all constants inside: no memory of the scope "
                               "\"" BERTH_TARGET_SCOPE_STORE "\" is read for it");
    if (p->store_bytes) files[count++] = berth_bare__store(p);
    if (call->options->toolchain)
        BERTH_TRY(berth_bare__library(p, files, call->options->toolchain, &files[count++]));
    call->files = files;
    call->count = count;
    return BERTH_OK;
}

berth_status berth_bare_print(const berth_program *program, const berth_bare_options *options,
                              berth_arena *arena, const berth_bare_file **out_files,
                              uint32_t *out_count) {
    print_call call = {.program = program, .options = options, .arena = arena};
    berth_status status = berth_arena_try(arena, print_body, &call);
    *out_files = call.files;
    *out_count = call.count;
    return status;
}
