// What a session can say about itself: memory and work per device, times of the last run, a trace.
#include "base/trace.h"
#include "executor/session_private.h"

static void count_memory(berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        berth_session_device_report *report = &session->device_reports[pool->device];
        if (pool->usage == BERTH_POOL_STORE) continue;  // no memory of a device
        report->memory_bytes += pool->size_bytes;
        switch (pool->usage) {
        case BERTH_POOL_WORKSPACE: report->workspace_bytes += pool->size_bytes; break;
        case BERTH_POOL_CONSTANT: report->constant_bytes += pool->size_bytes; break;
        case BERTH_POOL_IO: report->io_bytes += pool->size_bytes; break;
        case BERTH_POOL_STORE: break;
        }
    }
}

void berth_executor__make_reports(berth_session *session) {
    const berth_program *program = session->program;
    session->device_reports =
        berth_arena_new_array(session->arena, berth_session_device_report, program->device_count);
    session->step_reports =
        berth_arena_new_array(session->arena, berth_session_step_report, program->step_count);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        berth_session_device_report *report = &session->device_reports[d];
        report->name = program->devices[d].name;
        report->kind = program->devices[d].kind;
        const berth_device *device = session->devices[d].device;
        report->physical_name = device ? berth_device_get_info(device)->name : "not used";
        report->borrowed_bytes = session->borrowed_bytes[d];
    }
    count_memory(session);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        bool is_copy = step->kind == BERTH_STEP_COPY;
        berth_session_device_report *report = &session->device_reports[step->device];
        if (is_copy)
            report->copy_count++;
        else
            report->kernel_count++;
        session->step_reports[i] = (berth_session_step_report){
            .name = step->name,
            .op = step->op,
            .device = step->device,
            .queue = step->queue,
            .is_copy = is_copy,
            .copied_bytes = is_copy ? program->tensors[step->bindings[0]].size_bytes : 0};
    }
}

static void take_times(berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t d = 0; d < program->device_count; ++d)
        session->device_reports[d].kernel_ns = session->device_reports[d].copy_ns = 0;
    for (uint32_t i = 0; i < program->step_count; ++i) {
        berth_session_step_report *step = &session->step_reports[i];
        berth_session_device_report *device = &session->device_reports[step->device];
        step->start_ns = session->timings[i].start_ns;
        step->end_ns = session->timings[i].end_ns;
        if (step->is_copy)
            device->copy_ns += step->end_ns - step->start_ns;
        else
            device->kernel_ns += step->end_ns - step->start_ns;
    }
    for (uint32_t d = 0; d < program->device_count; ++d)
        session->device_reports[d].busy_ns =
            session->device_reports[d].kernel_ns + session->device_reports[d].copy_ns;
}

void berth_session_get_report(berth_session *session, berth_session_report *out_report) {
    session = berth_executor__in_use(session);
    const berth_program *program = session->program;
    if (session->timings && session->run_count && !session->broken) take_times(session);
    *out_report = (berth_session_report){.devices = session->device_reports,
                                         .device_count = program->device_count,
                                         .steps = session->step_reports,
                                         .step_count = program->step_count,
                                         .run_count = session->run_count,
                                         .profiled = session->timings != NULL,
                                         .run_start_ns = session->run_start_ns,
                                         .run_end_ns = session->run_end_ns};
    for (uint32_t d = 0; d < program->device_count; ++d)
        if (session->devices[d].device)
            session->device_reports[d].peak_bytes =
                berth_device_peak_bytes(session->devices[d].device) + session->borrowed_bytes[d];
    for (uint32_t i = 0; i < program->step_count; ++i)
        out_report->copied_bytes += session->step_reports[i].copied_bytes;
}

typedef struct trace_call {
    berth_arena *arena;
    berth_session *session;
    const char *path;
} trace_call;

// A device's first queue goes by the device's name.
static const char *queue_name(berth_arena *arena, const berth_program *program, uint32_t queue) {
    const berth_program_queue *q = &program->queues[queue];
    const char *device = program->devices[q->device].name;
    uint32_t number = 0;
    for (uint32_t i = 0; i < queue; ++i) number += program->queues[i].device == q->device;
    if (number == 0) return device;
    if (q->kind == BERTH_QUEUE_TRANSFER) return berth_arena_printf(arena, "%s transfer", device);
    return berth_arena_printf(arena, "%s queue %u", device, number);
}

static berth_status trace_body(void *user) {
    trace_call *call = user;
    berth_session_report report;
    berth_session_get_report(call->session, &report);
    const berth_program *program = call->session->program;
    uint32_t run_track = program->queue_count;
    const char **tracks = berth_arena_new_array(call->arena, const char *, run_track + 1);
    berth_trace_event *events =
        berth_arena_new_array(call->arena, berth_trace_event, report.step_count + 1);
    for (uint32_t q = 0; q < run_track; ++q) tracks[q] = queue_name(call->arena, program, q);
    tracks[run_track] = "run";
    for (uint32_t i = 0; i < report.step_count; ++i) {
        const berth_session_step_report *step = &report.steps[i];
        events[i] = (berth_trace_event){.name = step->name,
                                        .category = step->is_copy ? "copy" : "kernel",
                                        .detail = step->op,
                                        .size_bytes = step->copied_bytes,
                                        .track = step->queue,
                                        .start_ns = step->start_ns,
                                        .end_ns = step->end_ns};
    }
    events[report.step_count] = (berth_trace_event){.name = program->name,
                                                    .category = "run",
                                                    .track = run_track,
                                                    .start_ns = report.run_start_ns,
                                                    .end_ns = report.run_end_ns};
    return berth_trace_write(call->path, program->name, tracks, run_track + 1, events,
                             report.step_count + 1);
}

berth_status berth_session_write_trace(berth_session *session, const char *path) {
    session = berth_executor__in_use(session);
    if (!session->timings || session->run_count == 0 || session->broken)
        return berth_status_make(
            BERTH_FAILED_PRECONDITION,
            "a trace needs a session opened with `profile` and a run that succeeded");
    trace_call call = {.session = session, .path = path};
    BERTH_TRY(berth_arena_create(session->allocator, &call.arena));
    berth_status status = berth_arena_try(call.arena, trace_body, &call);
    berth_arena_destroy(call.arena);
    return status;
}
