// Public sessions (<berth/session.h>): opening, closing, times of steps. What else is declared there
// is the executor's.
#include "api/run/session.h"

#include <berth/session.h>
#include <string.h>

#include "executor/turns.h"

enum { most_choices = 64 };

// The settings that the caller's version of the struct has; the rest are defaults.
static berth_status read_settings(const berth_session_settings *given,
                                  berth_session_settings *out_settings) {
    memset(out_settings, 0, sizeof(*out_settings));
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*out_settings))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_session_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_session_settings), %zu in this version",
                                 given->size_bytes, sizeof(*out_settings));
    memcpy(out_settings, given, given->size_bytes);
    const berth_caller_threads *threads = out_settings->threads;
    if (threads && (threads->size_bytes != sizeof(*threads) || !threads->parallel_for ||
                    threads->thread_count == 0))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "berth_caller_threads: size_bytes is to be %zu, thread_count at least "
            "1, and parallel_for a function",
            sizeof(*threads));
    uint64_t rows = (uint64_t)out_settings->device_count + out_settings->queue_count +
                    out_settings->device_word_count;
    if (rows <= most_choices) return BERTH_OK;
    return berth_status_make(
        BERTH_OUT_OF_RANGE,
        "%u choices of devices, %u queues and words for %u devices; at most %d "
        "in all",
        out_settings->device_count, out_settings->queue_count, out_settings->device_word_count,
        most_choices);
}

// What the executor takes; `bindings` has room for most_choices.
static berth_session_options options_of(const berth_session_settings *wanted,
                                        berth_session_binding *bindings) {
    uint32_t count = 0;  // the first of a name is taken
    for (uint32_t i = 0; i < wanted->queue_count; ++i)
        bindings[count++] = (berth_session_binding){.name = wanted->queues[i].device,
                                                    .queue = wanted->queues[i].queue};
    for (uint32_t i = 0; i < wanted->device_count; ++i)
        bindings[count++] = (berth_session_binding){.name = wanted->devices[i].device,
                                                    .ordinal = wanted->devices[i].ordinal};
    for (uint32_t i = 0; i < wanted->device_word_count; ++i)
        bindings[count++] = (berth_session_binding){.name = wanted->device_words[i].device,
                                                    .attributes = wanted->device_words[i].words};
    return (berth_session_options){.bindings = bindings,
                                   .binding_count = count,
                                   .thread_count = wanted->thread_count,
                                   .profile = wanted->profile != 0,
                                   .cache_folder = wanted->cache_folder,
                                   .threads = wanted->threads,
                                   .on_message = wanted->on_message,
                                   .message_user = wanted->message_user,
                                   .first_plan_only = wanted->first_plan_only != 0,
                                   .base = wanted->share};
}

static berth_allocator allocator_of(const berth_session_settings *wanted) {
    return wanted->allocator ? *wanted->allocator : berth_allocator_system();
}

berth_status berth_api__session_open(const berth_program *program,
                                     const berth_session_settings *settings, berth_session *base,
                                     berth_session **out_session) {
    *out_session = NULL;
    berth_session_settings wanted;
    BERTH_TRY(read_settings(settings, &wanted));
    if (base) wanted.share = base;
    berth_session_binding bindings[most_choices];
    const berth_session_options options = options_of(&wanted, bindings);
    return berth_session_open(allocator_of(&wanted), program, &options, out_session);
}

berth_status berth_session_create(berth_program *program, const berth_session_settings *settings,
                                  berth_session **out_session) {
    BERTH_TRY(berth_api__session_open(program, settings, NULL, out_session));
    berth_program_retain(program);
    return BERTH_OK;
}

berth_status berth_session_create_together(berth_program *const *programs, uint32_t program_count,
                                           const berth_session_settings *settings,
                                           berth_session **out_sessions) {
    for (uint32_t i = 0; i < program_count; ++i) out_sessions[i] = NULL;
    berth_session_settings wanted;
    BERTH_TRY(read_settings(settings, &wanted));
    berth_session_binding bindings[most_choices];
    const berth_session_options options = options_of(&wanted, bindings);
    BERTH_TRY(berth_turns_open(allocator_of(&wanted), (const berth_program *const *)programs,
                               program_count, &options, out_sessions));
    for (uint32_t i = 0; i < program_count; ++i) berth_program_retain(programs[i]);
    return BERTH_OK;
}

uint64_t berth_session_common_workspace_bytes(berth_session *session) {
    return berth_turns_workspace_bytes(session);
}

void berth_session_destroy(berth_session *session) {
    if (!session) return;
    union {
        const berth_program *constant;
        berth_program *counted;
    } program = {.constant = berth_session_program(session)};  // what create was given
    berth_session_close(session);
    berth_program_release(program.counted);
}

uint32_t berth_session_step_count(const berth_session *session) {
    return berth_session_program_in_use(session)->step_count;
}

// What a step writes, without data.
static berth_tensor result_of(const berth_program *program, const berth_program_step *step) {
    berth_tensor result = {.rank = -1};
    const berth_program_kernel *kernel =
        step->kind == BERTH_STEP_DISPATCH ? &program->kernels[step->kernel] : NULL;
    uint32_t at = kernel ? 0 : 1;  // of a copy the destination
    while (kernel && at < kernel->binding_count &&
           !(kernel->bindings[at].access & BERTH_ACCESS_WRITE))
        ++at;
    if (kernel && at == kernel->binding_count) return result;
    const berth_program_tensor *tensor = &program->tensors[step->bindings[at]];
    result.dtype = tensor->dtype;
    result.rank = tensor->rank;
    memcpy(result.dims, tensor->dims, sizeof(result.dims));
    return result;
}

berth_status berth_session_get_step(berth_session *session, uint32_t index,
                                    berth_step_facts *out_facts, size_t size_bytes) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    if (index >= report.step_count)
        return berth_status_make(BERTH_OUT_OF_RANGE, "step %u of %u", index, report.step_count);
    const berth_session_step_report *step = &report.steps[index];
    const berth_program *program = berth_session_program_in_use(session);
    const berth_program_step *planned = &program->steps[index];
    const berth_program_kernel *kernel = step->is_copy ? NULL : &program->kernels[planned->kernel];
    const berth_step_facts facts = {.name = step->name,
                                    .op = step->op,
                                    .device = report.devices[step->device].name,
                                    .copied_bytes = step->copied_bytes,
                                    .start_ns =
                                        step->start_ns ? step->start_ns - report.run_start_ns : 0,
                                    .duration_ns = step->end_ns - step->start_ns,
                                    .is_copy = step->is_copy,
                                    .flops = kernel ? kernel->flops : 0,
                                    .bytes = kernel ? kernel->bytes : (double)step->copied_bytes,
                                    .result = result_of(program, planned)};
    if (size_bytes < sizeof(facts.name) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a step's facts have %zu bytes in this version, not %zu",
                                 sizeof(facts), size_bytes);
    memcpy(out_facts, &facts, size_bytes);
    return BERTH_OK;
}

int64_t berth_session_run_ns(berth_session *session) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    return report.run_end_ns - report.run_start_ns;
}

uint32_t berth_session_device_count(berth_session *session) {
    return berth_session_program_in_use(session)->device_count;
}

berth_status berth_session_get_device(berth_session *session, uint32_t index,
                                      berth_session_device_facts *out_facts, size_t size_bytes) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    if (index >= report.device_count)
        return berth_status_make(BERTH_OUT_OF_RANGE, "device %u of %u", index, report.device_count);
    const berth_session_device_report *device = &report.devices[index];
    const berth_session_device_facts facts = {.device = device->name,
                                              .physical_name = device->physical_name,
                                              .kernel_count = device->kernel_count,
                                              .copy_count = device->copy_count,
                                              .busy_ns = device->busy_ns,
                                              .memory_bytes = device->memory_bytes,
                                              .peak_bytes = device->peak_bytes};
    if (size_bytes < sizeof(facts.device) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a device's facts have %zu bytes in this version, not %zu",
                                 sizeof(facts), size_bytes);
    memcpy(out_facts, &facts, size_bytes);
    return BERTH_OK;
}
