// Public programs (<berth/program.h>).
#include "api/run/program.h"

#include <stdatomic.h>
#include <string.h>

#include "artifact/file.h"
#include "artifact/sign.h"
#include "artifact/vm.h"

typedef struct counted_program {
    berth_program record;            // first: its address is the public one
    struct counted_program *parent;  // of a fallback: whose references are counted
    atomic_uint references;
    berth_arena *arena;  // of this struct
    void (*destroy)(void *owner);
    void *owner;
    uint32_t input_count, output_count;
    berth_port *inputs;
    berth_port *outputs;
    berth_placement *placements;
} counted_program;

static const counted_program *counted(const berth_program *program) {
    return (const counted_program *)program;
}

static berth_port *make_ports(berth_arena *arena, const berth_program *record,
                              const berth_program_io *list, uint32_t count) {
    berth_port *ports = berth_arena_new_array(arena, berth_port, count);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &record->tensors[list[i].tensor];
        ports[i].name = list[i].name;
        ports[i].type.dtype = tensor->dtype;
        ports[i].type.rank = tensor->rank;
        memcpy(ports[i].type.dims, tensor->dims, sizeof(tensor->dims));
    }
    return ports;
}

static berth_port *make_vm_ports(berth_arena *arena, const berth_vm_port *list, uint32_t count) {
    berth_port *ports = berth_arena_new_array(arena, berth_port, count);
    for (uint32_t i = 0; i < count; ++i) {
        ports[i].name = list[i].name;
        ports[i].type.dtype = list[i].dtype;
        ports[i].type.rank = list[i].rank;
        memcpy(ports[i].type.dims, list[i].dims, sizeof(list[i].dims));
        ports[i].least = list[i].least;
        ports[i].most = list[i].most;
    }
    return ports;
}

static counted_program *make_program(berth_arena *arena, const berth_program *record) {
    counted_program *program = berth_arena_new(arena, counted_program);
    program->record = *record;
    atomic_init(&program->references, 1);
    program->input_count = record->input_count;
    program->output_count = record->output_count;
    program->inputs = make_ports(arena, record, record->inputs, record->input_count);
    program->outputs = make_ports(arena, record, record->outputs, record->output_count);
    if (record->vm) {
        const berth_vm_program *code = record->vm->code;
        program->input_count = code->input_count;
        program->output_count = code->output_count;
        program->inputs = make_vm_ports(arena, code->inputs, code->input_count);
        program->outputs = make_vm_ports(arena, code->outputs, code->output_count);
    }
    program->placements = berth_arena_new_array(arena, berth_placement, record->placement_count);
    for (uint32_t i = 0; i < record->placement_count; ++i) {
        const berth_program_placement *placement = &record->placements[i];
        program->placements[i] =
            (berth_placement){.node = placement->node,
                              .op = placement->op,
                              .device = record->devices[placement->device].name,
                              .reason = placement->reason};
    }
    return program;
}

typedef struct adoption {
    berth_arena *arena;
    const berth_program *record;
    counted_program *program;
} adoption;

static berth_status make(void *user) {
    adoption *job = user;
    const berth_program *record = job->record;
    counted_program *program = make_program(job->arena, record);
    program->arena = job->arena;
    const berth_program **fallbacks =
        berth_arena_array(job->arena, record->fallback_count, sizeof(const berth_program *));
    for (uint32_t i = 0; i < record->fallback_count; ++i) {
        counted_program *fallback = make_program(job->arena, record->fallbacks[i]);
        fallback->parent = program;
        fallbacks[i] = &fallback->record;
    }
    program->record.fallbacks = fallbacks;
    job->program = program;
    return BERTH_OK;
}

berth_status berth_api__program_adopt(const berth_program *record, void (*destroy)(void *owner),
                                      void *owner, berth_program **out_program) {
    *out_program = NULL;
    adoption job = {.record = record};
    berth_status status = berth_program_verify(record);
    if (!status) status = berth_arena_make(make, &job, &job.arena);
    if (status) {
        destroy(owner);
        return status;
    }
    job.program->destroy = destroy;
    job.program->owner = owner;
    *out_program = &job.program->record;
    return BERTH_OK;
}

void *berth_api__program_owner(const berth_program *program, void (*destroy)(void *owner)) {
    const counted_program *held = counted(program);
    if (held->parent) held = held->parent;
    return held->destroy == destroy ? held->owner : NULL;
}

static counted_program *holder(berth_program *program) {
    counted_program *held = (counted_program *)program;
    return held && held->parent ? held->parent : held;
}

void berth_program_retain(berth_program *program) {
    atomic_fetch_add_explicit(&holder(program)->references, 1, memory_order_relaxed);
}

void berth_program_release(berth_program *program) {
    counted_program *held = holder(program);
    if (!held || atomic_fetch_sub_explicit(&held->references, 1, memory_order_acq_rel) != 1) return;
    held->destroy(held->owner);
    berth_arena_destroy(held->arena);
}

// ---- files --------------------------------------------------------------------------------------

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

static berth_status read_file(berth_arena *arena, const char *path, const char *key_path,
                              const berth_limits *limits, const berth_program **out_record) {
    if (key_path) {
        berth_public_key key;
        BERTH_TRY(berth_public_key_read(key_path, &key));
        return berth_program_read_signed(arena, path, &key, limits, out_record);
    }
    // All of the file, constants too: a damaged weight would give results that are only wrong.
    BERTH_TRY(berth_program_file_check(berth_allocator_system(), path, limits));
    return berth_program_read(arena, path, limits, out_record);
}

static berth_status open_file(const char *path, const char *key_path, const berth_limits *limits,
                              berth_program **out_program) {
    *out_program = NULL;
    berth_arena *arena = NULL;
    const berth_program *record = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = read_file(arena, path, key_path, limits, &record);
    if (!status) return berth_api__program_adopt(record, destroy_arena, arena, out_program);
    berth_arena_destroy(arena);
    return status;
}

berth_status berth_program_open(const char *path, berth_program **out_program) {
    return open_file(path, NULL, NULL, out_program);
}

berth_status berth_program_open_limited(const char *path, const char *key_path,
                                        const char *limits_text, berth_program **out_program) {
    berth_limits limits;
    *out_program = NULL;
    BERTH_TRY(berth_limits_parse(limits_text, &limits));
    return open_file(path, key_path, &limits, out_program);
}

berth_status berth_program_open_signed(const char *path, const char *key_path,
                                       berth_program **out_program) {
    return open_file(path, key_path, NULL, out_program);
}

typedef struct copy_job {
    berth_arena *arena;
    const void *data;
    size_t size_bytes;
    const berth_public_key *key;  // NULL = signed or not
    const berth_limits *limits;
    const berth_program *record;
} copy_job;

static berth_status parse_copy(void *user) {
    enum { file_alignment_bytes = 128 };  // as a mapping has it: constants are used in place
    static const char name[] = "the program in memory";
    copy_job *job = user;
    BERTH_TRY(berth_limits_check_bytes(job->limits, name, job->size_bytes, 0));
    void *copy = berth_arena_alloc_unset(job->arena, job->size_bytes + 1, file_alignment_bytes);
    if (job->size_bytes) memcpy(copy, job->data, job->size_bytes);
    if (job->key)
        return berth_program_parse_signed(job->arena, copy, job->size_bytes, job->key,
                                          &job->record);
    return berth_program_parse_checked(job->arena, copy, job->size_bytes, name, job->limits,
                                       &job->record);
}

static berth_status open_copy(copy_job job, berth_program **out_program) {
    BERTH_TRY(berth_arena_make(parse_copy, &job, &job.arena));
    return berth_api__program_adopt(job.record, destroy_arena, job.arena, out_program);
}

berth_status berth_program_open_memory(const void *data, size_t size_bytes,
                                       berth_program **out_program) {
    *out_program = NULL;
    return open_copy((copy_job){.data = data, .size_bytes = size_bytes}, out_program);
}

berth_status berth_program_open_memory_limited(const void *data, size_t size_bytes,
                                               const char *key_path, const char *limits_text,
                                               berth_program **out_program) {
    berth_public_key key;
    berth_limits limits = {.bytes = 0};
    *out_program = NULL;
    if (key_path) BERTH_TRY(berth_public_key_read(key_path, &key));
    if (limits_text) BERTH_TRY(berth_limits_parse(limits_text, &limits));
    const copy_job job = {
        .data = data, .size_bytes = size_bytes, .key = key_path ? &key : NULL, .limits = &limits};
    return open_copy(job, out_program);
}

int berth_program_file_is(const char *path) {
    return berth_program_is_file(path);
}

berth_status berth_program_save(const berth_program *program, const char *path) {
    return berth_program_write(program, path);
}

// ---- fallbacks ----------------------------------------------------------------------------------

typedef struct joined_programs {
    uint32_t count;
    berth_program *held[];
} joined_programs;

static size_t joined_bytes(uint32_t count) {
    return sizeof(joined_programs) + count * sizeof(berth_program *);
}

static void release_joined(void *owner) {
    joined_programs *joined = owner;
    for (uint32_t i = 0; i < joined->count; ++i) berth_program_release(joined->held[i]);
    berth_free(berth_allocator_system(), joined, joined_bytes(joined->count));
}

berth_status berth_program_with_fallbacks(berth_program *program, berth_program *const *fallbacks,
                                          uint32_t fallback_count, berth_program **out_program) {
    *out_program = NULL;
    berth_program record = *program;
    const berth_program **list =
        berth_calloc(berth_allocator_system(), fallback_count + 1, sizeof(const berth_program *));
    joined_programs *joined =
        berth_calloc(berth_allocator_system(), 1, joined_bytes(fallback_count + 1));
    berth_status status = list && joined ? BERTH_OK : berth_status_oom();
    if (joined) joined->count = fallback_count + 1;
    for (uint32_t i = 0; !status && i <= fallback_count; ++i) {
        berth_program *held = i ? fallbacks[i - 1] : program;
        if (!held)
            status = berth_status_make(BERTH_INVALID_ARGUMENT, "fallback %u is NULL", i - 1);
        else
            berth_program_retain(joined->held[i] = held);
        list[i] = held;
    }
    record.fallbacks = list ? list + 1 : NULL;
    record.fallback_count = fallback_count;
    if (!status)
        status = berth_api__program_adopt(&record, release_joined, joined, out_program);
    else if (joined)
        release_joined(joined);
    berth_free(berth_allocator_system(), list,
               (fallback_count + 1) * sizeof(const berth_program *));
    return status;
}

uint32_t berth_program_fallback_count(const berth_program *program) {
    return program->fallback_count;
}

berth_program *berth_program_fallback(const berth_program *program, uint32_t index) {
    union {
        const berth_program *constant;
        berth_program *counted;
    } fallback = {.constant = index < program->fallback_count ? program->fallbacks[index] : NULL};
    return fallback.counted;
}

// ---- facts --------------------------------------------------------------------------------------

const char *berth_program_name(const berth_program *program) {
    return program->name;
}

static uint64_t constant_bytes(const berth_program *program) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->constant_count; ++i)
        total += program->tensors[program->constants[i].tensor].size_bytes;
    return total;
}

berth_status berth_program_get_facts(const berth_program *program, berth_program_facts *out_facts,
                                     size_t size_bytes) {
    berth_program_facts facts = {.kernel_count = program->kernel_count,
                                 .step_count = program->step_count,
                                 .constant_bytes = constant_bytes(program),
                                 .executor = program->executor};
    for (uint32_t i = 0; program->vm && i < program->vm->variant_count; ++i) {
        const berth_program *variant = program->vm->variants[i].program;
        facts.kernel_count += variant ? variant->kernel_count : 0;
        facts.step_count += variant ? variant->step_count : 0;
    }
    if (size_bytes < sizeof(facts.kernel_count) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a program's facts have %zu bytes in this version, not %zu",
                                 sizeof(facts), size_bytes);
    memcpy(out_facts, &facts, size_bytes);
    return BERTH_OK;
}

const char *berth_program_target(const berth_program *program) {
    return program->target_json;
}

double berth_program_predicted_ns(const berth_program *program) {
    return program->predicted_ns;
}

uint32_t berth_program_input_count(const berth_program *program) {
    return counted(program)->input_count;
}

uint32_t berth_program_output_count(const berth_program *program) {
    return counted(program)->output_count;
}

const berth_port *berth_program_input(const berth_program *program, uint32_t index) {
    return index < counted(program)->input_count ? &counted(program)->inputs[index] : NULL;
}

const berth_port *berth_program_output(const berth_program *program, uint32_t index) {
    return index < counted(program)->output_count ? &counted(program)->outputs[index] : NULL;
}

uint32_t berth_program_device_count(const berth_program *program) {
    return program->device_count;
}

const char *berth_program_device_name(const berth_program *program, uint32_t index) {
    return index < program->device_count ? program->devices[index].name : NULL;
}

uint32_t berth_program_placement_count(const berth_program *program) {
    return program->placement_count;
}

const berth_placement *berth_program_placement_at(const berth_program *program, uint32_t index) {
    return index < program->placement_count ? &counted(program)->placements[index] : NULL;
}
