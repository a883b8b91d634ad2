// Targets, read and described (<berth/target.h>).
#include <berth/target.h>

#include "api/compile/compiler.h"
#include "base/hash.h"
#include "toolkit/machine_picture.h"

struct berth_target_info {
    berth_arena *arena;  // of this struct
    berth_target_problem *problems;
    uint32_t problem_count;
    const berth_multi_target *target;  // NULL = not valid
    berth_target_facts facts;
    berth_target_device_facts *devices;
    berth_target_memory_facts *memories;
    berth_target_link_facts *links;
    berth_target_pin_facts *pins;
    const char *json, *svg;
};

typedef struct read_job {
    berth_arena *arena;
    const char *text;
    berth_target_options options;
    bool lists_problems;
    berth_target_info *info;
} read_job;

static berth_target_device_facts device_facts(const berth_target_device *device) {
    const berth_target *t = device->target;
    return (berth_target_device_facts){.name = device->name,
                                       .kind = berth_device_kind_name(t->kind),
                                       .arch = t->arch,
                                       .cpu = t->cpu,
                                       .cores = t->cores,
                                       .compute_units = t->compute_units,
                                       .clock_hz = t->clock_hz,
                                       .f32_flops = t->peak_flops[BERTH_DTYPE_F32],
                                       .memory = device->own_memory,
                                       .constant_memory = device->constant_memory,
                                       .host_only = device->host_only};
}

static berth_target_memory_facts memory_facts(const berth_target_memory *memory) {
    return (berth_target_memory_facts){.name = memory->name,
                                       .scope = memory->scope,
                                       .capacity_bytes = memory->capacity_bytes,
                                       .budget_bytes = memory->budget_bytes,
                                       .bandwidth_bytes_per_s = memory->bandwidth_bytes_per_s,
                                       .latency_ns = memory->latency_ns,
                                       .holds_constants = memory->holds_constants,
                                       .is_implied = memory->implied};
}

static void take_parts(berth_target_info *info) {
    const berth_multi_target *target = info->target;
    berth_arena *arena = info->arena;
    info->devices = berth_arena_new_array(arena, berth_target_device_facts, target->device_count);
    info->memories = berth_arena_new_array(arena, berth_target_memory_facts, target->memory_count);
    info->links = berth_arena_new_array(arena, berth_target_link_facts, target->link_count);
    info->pins = berth_arena_new_array(arena, berth_target_pin_facts, target->pin_count);
    for (uint32_t i = 0; i < target->device_count; ++i)
        info->devices[i] = device_facts(&target->devices[i]);
    for (uint32_t i = 0; i < target->memory_count; ++i)
        info->memories[i] = memory_facts(&target->memories[i]);
    for (uint32_t i = 0; i < target->link_count; ++i) {
        const berth_target_link *link = &target->links[i];
        info->links[i] =
            (berth_target_link_facts){.from = link->from,
                                      .to = link->to,
                                      .is_duplex = link->duplex,
                                      .bandwidth_bytes_per_s = link->bandwidth_bytes_per_s,
                                      .latency_ns = link->latency_ns,
                                      .bus = link->bus};
    }
    for (uint32_t i = 0; i < target->pin_count; ++i)
        info->pins[i] = (berth_target_pin_facts){target->pins[i].match, target->pins[i].device};
}

static void take_target(berth_target_info *info) {
    const berth_multi_target *target = info->target;
    char hash[33];
    berth_hash128_hex(target->hash, hash);
    info->facts = (berth_target_facts){.hash = berth_arena_strdup(info->arena, hash),
                                       .executor = berth_executor_kind_name(target->executor),
                                       .runtime = berth_runtime_kind_name(target->runtime),
                                       .default_device = target->default_device,
                                       .host = target->host};
    take_parts(info);
    berth_strbuf svg = berth_strbuf_make(info->arena);
    berth_machine_picture_svg(target, &svg);
    info->svg = berth_strbuf_text(&svg);
    info->json = berth_target_print_json(info->arena, target, 2);
}

static berth_status read_text(read_job *job, berth_target_info *info) {
    berth_machine_facts facts;
    berth_target_diagnostics diagnostics = {.count = 0};
    berth_multi_target *target = NULL;
    BERTH_TRY(berth_machine_facts_for(job->arena, job->text, &facts));
    job->options.machine = &facts;
    if (job->lists_problems)
        BERTH_TRY(
            berth_target_validate(job->arena, job->text, &job->options, &diagnostics, &target));
    else
        BERTH_TRY(berth_target_parse(job->arena, job->text, &job->options, &target));
    info->target = target;
    info->problem_count = diagnostics.count;
    info->problems = berth_arena_new_array(job->arena, berth_target_problem, diagnostics.count);
    for (uint32_t i = 0; i < diagnostics.count; ++i)
        info->problems[i] =
            (berth_target_problem){diagnostics.data[i].path, diagnostics.data[i].message};
    return BERTH_OK;
}

static berth_status make_info(void *user) {
    read_job *job = user;
    berth_target_info *info = berth_arena_new(job->arena, berth_target_info);
    info->arena = job->arena;
    info->json = info->svg = "";
    BERTH_TRY(read_text(job, info));
    if (info->target) take_target(info);
    job->info = info;
    return BERTH_OK;
}

static berth_status read_target(berth_compiler *compiler, const char *text, bool lists_problems,
                                berth_target_info **out_target) {
    *out_target = NULL;
    berth_model_options options;
    BERTH_TRY(berth_api__compiler_options(compiler, &options));
    if (!text) text = options.target ? options.target : "cpu";
    read_job job = {
        .text = text, .options = options.target_options, .lists_problems = lists_problems};
    BERTH_TRY(berth_arena_make(make_info, &job, &job.arena));
    *out_target = job.info;
    return BERTH_OK;
}

berth_status berth_compiler_read_target(berth_compiler *compiler, const char *text,
                                        berth_target_info **out_target) {
    return read_target(compiler, text, false, out_target);
}

berth_status berth_compiler_check_target(berth_compiler *compiler, const char *text,
                                         berth_target_info **out_target) {
    return read_target(compiler, text, true, out_target);
}

void berth_target_info_free(berth_target_info *target) {
    if (target) berth_arena_destroy(target->arena);
}

// ---- facts --------------------------------------------------------------------------------------

uint32_t berth_target_info_problem_count(const berth_target_info *target) {
    return target->problem_count;
}

const berth_target_problem *berth_target_info_problem(const berth_target_info *target,
                                                      uint32_t index) {
    return index < target->problem_count ? &target->problems[index] : NULL;
}

const berth_target_facts *berth_target_info_facts(const berth_target_info *target) {
    return target->target ? &target->facts : NULL;
}

uint32_t berth_target_info_device_count(const berth_target_info *target) {
    return target->target ? target->target->device_count : 0;
}

uint32_t berth_target_info_memory_count(const berth_target_info *target) {
    return target->target ? target->target->memory_count : 0;
}

uint32_t berth_target_info_link_count(const berth_target_info *target) {
    return target->target ? target->target->link_count : 0;
}

uint32_t berth_target_info_pin_count(const berth_target_info *target) {
    return target->target ? target->target->pin_count : 0;
}

const berth_target_device_facts *berth_target_info_device(const berth_target_info *target,
                                                          uint32_t index) {
    return index < berth_target_info_device_count(target) ? &target->devices[index] : NULL;
}

const berth_target_memory_facts *berth_target_info_memory(const berth_target_info *target,
                                                          uint32_t index) {
    return index < berth_target_info_memory_count(target) ? &target->memories[index] : NULL;
}

int berth_target_info_reaches(const berth_target_info *target, uint32_t memory, uint32_t device) {
    const berth_multi_target *held = target->target;
    return held && memory < held->memory_count && device < held->device_count &&
           berth_bits_has(held->memories[memory].reached_by, device);
}

const berth_target_link_facts *berth_target_info_link(const berth_target_info *target,
                                                      uint32_t index) {
    return index < berth_target_info_link_count(target) ? &target->links[index] : NULL;
}

const berth_target_pin_facts *berth_target_info_pin(const berth_target_info *target,
                                                    uint32_t index) {
    return index < berth_target_info_pin_count(target) ? &target->pins[index] : NULL;
}

const char *berth_target_info_json(const berth_target_info *target) {
    return target->json;
}

const char *berth_target_info_svg(const berth_target_info *target) {
    return target->svg;
}
