// What programs consist of (<berth/inspect.h>).
#include <berth/inspect.h>
#include <string.h>

#include "artifact/file.h"
#include "artifact/program.h"
#include "artifact/vm.h"
#include "base/str.h"
#include "base/tensor.h"
#include "compiler/vm/families.h"
#include "compiler/vm/workspace.h"

struct berth_contents {
    berth_arena *arena;  // of this struct
    berth_program *program;
    berth_content_device *devices;
    berth_content_pool *pools;
    berth_content_variant *variants;
    berth_content_file *files;
    const char **externals;
    const char **input_types, **output_types;
    uint32_t device_count, pool_count, variant_count, file_count, external_count, input_count,
        output_count;
};

berth_status berth_program_file_check_all(const char *path) {
    return berth_program_file_check(berth_allocator_system(), path, NULL);
}

static const char *image_suffix(const char *format) {
    static const struct {
        const char *format, *suffix;
    } all[] = {
        {BERTH_FORMAT_CUDA_C, "cu"}, {BERTH_FORMAT_OPENCL_C, "cl"}, {BERTH_FORMAT_SPIRV, "spirv"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
        if (strcmp(format, all[i].format) == 0) return all[i].suffix;
    return "so";
}

static uint32_t file_count_of(const berth_program *program) {
    return program->executable_count + program->attachment_count;
}

// All that a program and, of byte code, its variants may have.
static uint32_t most_files(const berth_program *program) {
    uint32_t count = file_count_of(program);
    for (uint32_t i = 0; program->vm && i < program->vm->variant_count; ++i)
        if (program->vm->variants[i].program)
            count += file_count_of(program->vm->variants[i].program);
    return count;
}

static void add_image(berth_contents *c, const char *folder, uint32_t index,
                      const berth_executable_image *image) {
    const char *suffix = image_suffix(image->format);
    const bool text = suffix[0] == 'c';  // with a NUL at its end
    c->files[c->file_count++] = (berth_content_file){
        .name = berth_arena_printf(c->arena, "%simage/%u.%s", folder, index, suffix),
        .data = image->data,
        .size_bytes = image->size_bytes - (text && image->size_bytes > 0)};
    if (*image->external) c->externals[c->external_count++] = image->external;
}

// The verifier has seen that names of attachments stay in a folder. `folder` ends with a slash, or is empty.
static void add_files_of(berth_contents *c, const berth_program *program, const char *folder) {
    for (uint32_t i = 0; i < program->executable_count; ++i)
        add_image(c, folder, i, &program->executables[i]);
    for (uint32_t i = 0; i < program->attachment_count; ++i) {
        const berth_program_attachment *attached = &program->attachments[i];
        c->files[c->file_count++] =
            (berth_content_file){berth_arena_printf(c->arena, "%s%s", folder, attached->name),
                                 attached->data, attached->size_bytes, 1};
    }
}

static void add_files(berth_contents *c) {
    const berth_vm_body *vm = c->program->vm;
    const uint32_t most = most_files(c->program);
    c->files = berth_arena_new_array(c->arena, berth_content_file, most + 1);
    c->externals = berth_arena_new_array(c->arena, const char *, most + 1);
    add_files_of(c, c->program, "");
    for (uint32_t i = 0; vm && i < vm->variant_count; ++i)
        if (vm->variants[i].program)
            add_files_of(c, vm->variants[i].program,
                         berth_arena_printf(c->arena, "variant/%u/", i));
}

static void add_pools(berth_contents *c) {
    static const char *const usages[] = {"workspace", "constants", "io", "store"};
    const berth_program *program = c->program;
    c->device_count = program->device_count;
    c->devices = berth_arena_new_array(c->arena, berth_content_device, program->device_count + 1);
    for (uint32_t i = 0; i < program->device_count; ++i)
        c->devices[i] =
            (berth_content_device){program->devices[i].name, program->devices[i].host_only};
    c->pool_count = program->pool_count;
    c->pools = berth_arena_new_array(c->arena, berth_content_pool, program->pool_count + 1);
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        c->pools[i] = (berth_content_pool){program->devices[pool->device].name, pool->scope,
                                           usages[pool->usage], pool->size_bytes};
    }
}

static berth_content_variant variant_of(const berth_contents *c, const berth_vm_variant *variant) {
    const berth_vm_program *code = c->program->vm->code;
    const berth_vm_piece *piece = berth_vm_piece_at(code, variant->piece);
    const bool host = variant->piece >= code->segment_count;
    const char **inputs = berth_arena_new_array(c->arena, const char *, piece->input_count + 1);
    uint32_t count = 0;
    for (uint32_t k = 0; k < piece->input_count; ++k) {
        char shape[192];
        if (variant->inputs[k].dtype == BERTH_DTYPE_NONE) continue;
        berth_tensor_format_shape(&variant->inputs[k], shape);
        inputs[count++] = berth_arena_printf(c->arena, "%s%s", shape,
                                             variant->inputs[k].data ? " of one value" : "");
    }
    return (berth_content_variant){
        .piece = berth_arena_printf(c->arena, "%c%u", host ? 'h' : 's',
                                    host ? variant->piece - code->segment_count : variant->piece),
        .op = piece->op,
        .is_results = variant->program == NULL,
        .inputs = inputs,
        .input_count = count,
        .is_any_run = piece->input_count == 0};
}

static const char *family_text(const berth_contents *c, const berth_vm_family *family) {
    berth_strbuf text = berth_strbuf_make(c->arena), whole = berth_strbuf_make(c->arena);
    uint32_t count = 0;
    berth_vm_family_print(family, false, &text);
    // Without the line's indent and end.
    berth_strbuf_addf(&whole, "%.*s", (int)strcspn(berth_strbuf_text(&text) + 2, "\n"),
                      berth_strbuf_text(&text) + 2);
    const berth_vm_workspace *all =
        berth_vm_family_workspaces(c->program->vm, family, c->arena, &count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_strbuf_add(&whole, "; ");
        berth_vm_workspace_print(&all[i], &whole);
    }
    return berth_strbuf_text(&whole);
}

static const char **types_of(berth_arena *arena, const berth_program *program,
                             const berth_program_io *ports, uint32_t count) {
    const char **types = berth_arena_new_array(arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[ports[i].tensor];
        berth_tensor shape = {.dtype = tensor->dtype, .rank = tensor->rank};
        char text[192];
        memcpy(shape.dims, tensor->dims, sizeof(tensor->dims));
        berth_tensor_format_shape(&shape, text);
        types[i] = berth_arena_strdup(arena, text);
    }
    return types;
}

static const char **vm_types_of(berth_arena *arena, const berth_vm_port *ports, uint32_t count) {
    const char **types = berth_arena_new_array(arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_strbuf text = berth_strbuf_make(arena);
        berth_strbuf_add(&text, ports[i].type);
        for (int d = 0; d < ports[i].rank; ++d)
            if (ports[i].least[d] || ports[i].most[d])
                berth_strbuf_addf(&text, ", dimension %d within %lld..%lld", d,
                                  (long long)ports[i].least[d], (long long)ports[i].most[d]);
        types[i] = berth_strbuf_text(&text);
    }
    return types;
}

static void add_ports(berth_contents *c) {
    const berth_program *program = c->program;
    const berth_vm_body *vm = program->vm;
    c->input_count = vm ? vm->code->input_count : program->input_count;
    c->output_count = vm ? vm->code->output_count : program->output_count;
    if (!vm) {
        c->input_types = types_of(c->arena, program, program->inputs, c->input_count);
        c->output_types = types_of(c->arena, program, program->outputs, c->output_count);
        return;
    }
    c->input_types = vm_types_of(c->arena, vm->code->inputs, c->input_count);
    c->output_types = vm_types_of(c->arena, vm->code->outputs, c->output_count);
    c->variant_count = vm->variant_count;
    c->variants = berth_arena_new_array(c->arena, berth_content_variant, vm->variant_count + 1);
    for (uint32_t i = 0; i < vm->variant_count; ++i)
        c->variants[i] = variant_of(c, &vm->variants[i]);
    for (uint32_t i = 0; i < vm->family_count; ++i)
        c->variants[vm->families[i].variant].family = family_text(c, &vm->families[i]);
}

typedef struct read_job {
    berth_arena *arena;
    berth_program *program;
    berth_contents *contents;
} read_job;

static berth_status make(void *user) {
    read_job *job = user;
    berth_contents *c = job->contents = berth_arena_new(job->arena, berth_contents);
    c->arena = job->arena;
    c->program = job->program;
    add_pools(c);
    add_files(c);
    add_ports(c);
    return BERTH_OK;
}

berth_status berth_contents_read(berth_program *program, berth_contents **out_contents) {
    read_job job = {.program = program};
    *out_contents = NULL;
    BERTH_TRY(berth_arena_make(make, &job, &job.arena));
    berth_program_retain(program);
    *out_contents = job.contents;
    return BERTH_OK;
}

void berth_contents_free(berth_contents *contents) {
    if (!contents) return;
    berth_program *program = contents->program;
    berth_arena_destroy(contents->arena);
    berth_program_release(program);
}

// ---- records ------------------------------------------------------------------------------------

uint32_t berth_contents_device_count(const berth_contents *contents) {
    return contents->device_count;
}

const berth_content_device *berth_contents_device(const berth_contents *contents, uint32_t index) {
    return index < contents->device_count ? &contents->devices[index] : NULL;
}

uint32_t berth_contents_pool_count(const berth_contents *contents) {
    return contents->pool_count;
}

const berth_content_pool *berth_contents_pool(const berth_contents *contents, uint32_t index) {
    return index < contents->pool_count ? &contents->pools[index] : NULL;
}

uint32_t berth_contents_variant_count(const berth_contents *contents) {
    return contents->variant_count;
}

const berth_content_variant *berth_contents_variant(const berth_contents *contents,
                                                    uint32_t index) {
    return index < contents->variant_count ? &contents->variants[index] : NULL;
}

uint32_t berth_contents_file_count(const berth_contents *contents) {
    return contents->file_count;
}

const berth_content_file *berth_contents_file(const berth_contents *contents, uint32_t index) {
    return index < contents->file_count ? &contents->files[index] : NULL;
}

uint32_t berth_contents_external_count(const berth_contents *contents) {
    return contents->external_count;
}

const char *berth_contents_external(const berth_contents *contents, uint32_t index) {
    return index < contents->external_count ? contents->externals[index] : NULL;
}

const char *berth_contents_input_type(const berth_contents *contents, uint32_t index) {
    return index < contents->input_count ? contents->input_types[index] : NULL;
}

const char *berth_contents_output_type(const berth_contents *contents, uint32_t index) {
    return index < contents->output_count ? contents->output_types[index] : NULL;
}
