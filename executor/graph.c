// The graph executor: command lists made when a session opens, replayed by every run.
//
// Within run r a queue's timeline goes from r * n to (r + 1) * n, n being its number of batches. So
// the waits and signals of a batch are known but for one product, and a run is a loop of submits
// and one wait per queue.
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "executor/session_private.h"
#include "target/virtual_device.h"

// A bound tensor as the step's device sees it.
static berth_buffer *bound_buffer(const berth_session *session, const berth_program_step *step,
                                  uint32_t binding) {
    uint32_t tensor = step->bindings[binding];
    if (!berth_executor__shares(session, session->program->tensors[tensor].pool, step->device))
        return session->tensors[tensor];
    return session->devices[berth_executor__home(session, step->device)].tensors[tensor];
}

// ---- stores ----

// A constant that is read into memory which the host can write: from the program's file, or from where the
// program has it.
typedef struct store_read {
    berth_session *session;
    const berth_program_file *file;  // NULL: from `data`
    const uint8_t *data;
    uint64_t size_bytes;
    berth_buffer *destination;
} store_read;

static berth_status read_into(const store_read *read, void *data) {
    berth_store_reader *reader = read->session->store_reader;
    if (!read->file) {
        berth_store_reader_copy(reader, read->data, data, read->size_bytes);
        return BERTH_OK;
    }
    uint64_t offset_bytes = (uintptr_t)read->data - (uintptr_t)read->file->data;
    return berth_status_prefix(
        berth_store_reader_read(reader, read->file->fd, offset_bytes, data, read->size_bytes),
        "reading a constant from the program's file");
}

static berth_status read_store(void *user) {
    const store_read *read = user;
    void *data = NULL;
    BERTH_TRY(berth_buffer_map(read->destination, 0, read->size_bytes, true, &data));
    berth_status status = read_into(read, data);
    berth_status end = berth_buffer_unmap(read->destination, data);
    if (!status) return end;
    berth_status_ignore(end);
    return status;
}

static const uint8_t *constant_data(const berth_program *program, uint32_t tensor) {
    for (uint32_t i = 0; i < program->constant_count; ++i)
        if (program->constants[i].tensor == tensor) return program->constants[i].data;
    return NULL;
}

static bool is_of_file(const berth_program_file *file, const uint8_t *data, uint64_t size_bytes) {
    uintptr_t begin = (uintptr_t)data, first = (uintptr_t)(file ? file->data : NULL);
    return file && begin >= first && begin - first <= file->size_bytes &&
           size_bytes <= file->size_bytes - (begin - first);
}

// Whether memory of the device is the host's, and no other device has a part of it.
static bool is_in_host_memory(const berth_session *session, uint32_t device, uint32_t pool) {
    if (berth_executor__shares(session, pool, device)) return false;
    const berth_device_info *info = berth_device_get_info(session->devices[device].device);
    return info->unified || (info->is_cpu && info->memories[0].host_visible);
}

// Where the device's memory is the host's, the session's threads bring constants of a store there, without a stop
// in between. Those of a file are read on host devices, not copied from the mapping, whose pages would become
// the process's; others, whose budgets are not the host's, get them from the mapping, which takes half of the
// time. False: the device copies.
static bool make_store_read(berth_session *session, const berth_program_step *step,
                            berth_command *command) {
    const berth_program *program = session->program;
    const berth_program_tensor *source = &program->tensors[step->bindings[0]];
    if (program->pools[source->pool].usage != BERTH_POOL_STORE) return false;
    bool on_host =
        berth_device_kind_is_host(berth_device_kind_from_name(program->devices[step->device].kind));
    uint32_t pool = program->tensors[step->bindings[1]].pool;
    if (!on_host && !is_in_host_memory(session, step->device, pool)) return false;
    const uint8_t *data = constant_data(program, step->bindings[0]);
    if (!data || source->size_bytes == 0) return false;
    store_read *read = berth_arena_new(session->arena, store_read);
    *read = (store_read){session, NULL, data, source->size_bytes, bound_buffer(session, step, 1)};
    if (on_host && is_of_file(program->file, data, source->size_bytes)) read->file = program->file;
    command->kind = BERTH_COMMAND_HOST_CALL;
    command->host_call.call = read_store;
    command->host_call.user = read;
    return true;
}

static void make_copy(berth_session *session, const berth_program_step *step,
                      berth_command *command) {
    if (make_store_read(session, step, command)) return;
    command->kind = BERTH_COMMAND_COPY;
    command->copy.source = bound_buffer(session, step, 0);
    command->copy.destination = bound_buffer(session, step, 1);
    command->copy.size_bytes = session->program->tensors[step->bindings[0]].size_bytes;
    berth_executor__note_slot(session, step->bindings[0], &command->copy.source);
    berth_executor__note_slot(session, step->bindings[1], &command->copy.destination);
}

static void make_dispatch(berth_session *session, const berth_program_step *step,
                          berth_command *command) {
    const berth_program_kernel *kernel = &session->program->kernels[step->kernel];
    berth_session_device *device = &session->devices[step->device];
    berth_buffer **buffers =
        berth_arena_new_array(session->arena, berth_buffer *, kernel->binding_count);
    for (uint32_t b = 0; b < kernel->binding_count; ++b) {
        buffers[b] = bound_buffer(session, step, b);
        berth_executor__note_slot(session, step->bindings[b], &buffers[b]);
    }
    command->kind = BERTH_COMMAND_DISPATCH;
    command->dispatch.executable = device->executables[kernel->executable];
    command->dispatch.kernel = device->kernels[step->kernel];
    command->dispatch.buffers = buffers;
    command->dispatch.buffer_count = kernel->binding_count;
    command->dispatch.constants = step->constants;
    command->dispatch.constant_count = kernel->constant_count;
    for (int axis = 0; axis < 3; ++axis) {
        command->dispatch.groups[axis] = kernel->groups[axis];
        command->dispatch.group_size[axis] = kernel->group_size[axis];
    }
}

// Shared bytes that the batch uses and others too are the device's while it runs.
static void make_hand_over(berth_session_batch *batch, berth_command_kind kind,
                           berth_command *commands) {
    if (batch->handed.count == 0) return;
    berth_command *command = &commands[batch->command_count++];
    command->kind = kind;
    command->hand_over.buffers = batch->handed.data;
    command->hand_over.buffer_count = batch->handed.count;
    command->label = "shared memory";
}

// A batch must not run inside submit while other queues could begin work that does not need it:
// then `asynchronous` is set. It is enough to look at the next batch of every other queue, since
// what follows comes after that one.
static void choose_asynchronous(berth_session *session) {
    const berth_schedule *schedule = &session->schedule;
    uint32_t queue_count = session->program->queue_count;
    const berth_schedule_batch **next =
        berth_arena_array(session->arena, queue_count, sizeof(const berth_schedule_batch *));
    for (uint32_t i = schedule->batch_count; i-- > 0;) {
        const berth_schedule_batch *batch = &schedule->batches[i];
        for (uint32_t q = 0; q < queue_count; ++q) {
            if (q == batch->queue || !next[q]) continue;
            bool needs_it = false;
            for (uint32_t w = 0; w < next[q]->wait_count && !needs_it; ++w)
                needs_it = next[q]->waits[w].queue == batch->queue &&
                           next[q]->waits[w].value >= batch->value;
            if (!needs_it) session->batches[i].asynchronous = true;
        }
        next[batch->queue] = batch;
    }
}

void berth_executor__make_commands(berth_session *session) {
    const berth_program *program = session->program;
    const berth_schedule *schedule = &session->schedule;
    if (session->options.profile)
        session->timings =
            berth_arena_new_array(session->arena, berth_command_timing, program->step_count);
    for (uint32_t i = 0; i < schedule->batch_count; ++i) {
        const berth_schedule_batch *batch = &schedule->batches[i];
        berth_session_batch *ready = &session->batches[i];
        berth_command *commands =
            berth_arena_new_array(session->arena, berth_command, batch->step_count + 2);
        make_hand_over(ready, BERTH_COMMAND_TO_DEVICE, commands);
        for (uint32_t s = 0; s < batch->step_count; ++s) {
            const berth_program_step *step = &program->steps[batch->steps[s]];
            berth_command *command = &commands[ready->command_count++];
            if (step->kind == BERTH_STEP_COPY)
                make_copy(session, step, command);
            else
                make_dispatch(session, step, command);
            command->label = step->name;
            if (session->timings) command->timing = &session->timings[batch->steps[s]];
        }
        make_hand_over(ready, BERTH_COMMAND_TO_HOST, commands);
        session->batches[i].commands = commands;
        session->batches[i].waits =
            berth_arena_new_array(session->arena, berth_semaphore_point, batch->wait_count + 1);
    }
    choose_asynchronous(session);
    berth_executor__finish_bounds(session);
}

berth_status berth_executor__start_reader(berth_session *session) {
    const berth_session_options *options = &session->options;
    bool reads = false;
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i)
        for (uint32_t k = 0; k < session->batches[i].command_count; ++k)
            reads |= session->batches[i].commands[k].kind == BERTH_COMMAND_HOST_CALL;
    if (!reads || options->thread_count == 1 || options->threads) return BERTH_OK;
    return berth_store_reader_create(session->allocator, &session->store_reader);
}

// ---- running ----

static uint64_t timeline(const berth_session *session, uint32_t queue, uint32_t value) {
    return session->submitted_runs * session->schedule.values[queue] + value;
}

static berth_status submit_batch(berth_session *session, uint32_t index, bool limited) {
    const berth_schedule_batch *batch = &session->schedule.batches[index];
    berth_session_batch *ready = &session->batches[index];
    for (uint32_t w = 0; w < batch->wait_count; ++w)
        ready->waits[w] = (berth_semaphore_point){
            session->queues[batch->waits[w].queue].semaphore,
            timeline(session, batch->waits[w].queue, batch->waits[w].value)};
    const berth_semaphore_point signal = {session->queues[batch->queue].semaphore,
                                          timeline(session, batch->queue, batch->value)};
    uint32_t wait_count = batch->wait_count;
    if (batch->value > 1)  // the queue's order is enough, but not to stop after a failure
        ready->waits[wait_count++] = (berth_semaphore_point){signal.semaphore, signal.value - 1};
    return berth_queue_submit(session->queues[batch->queue].queue,
                              &(berth_submission){.waits = ready->waits,
                                                  .wait_count = wait_count,
                                                  .list = ready->list,
                                                  .signals = &signal,
                                                  .signal_count = 1,
                                                  .asynchronous = ready->asynchronous || limited,
                                                  .age = (uint64_t)session->run_start_ns});
}

// `limited`: the run has a timeout, so nothing may run inside submit, where the clock cannot stop
// it.
static berth_status submit_all(berth_session *session, bool limited, uint32_t *out_failed_batch) {
    const berth_schedule *schedule = &session->schedule;
    for (uint32_t i = 0; i < schedule->batch_count; ++i) {
        *out_failed_batch = i;
        BERTH_TRY(submit_batch(session, i, limited));
        bool last_of_queue = i + 1 == schedule->batch_count ||
                             schedule->batches[i + 1].queue != schedule->batches[i].queue;
        if (last_of_queue)
            BERTH_TRY(berth_queue_flush(session->queues[schedule->batches[i].queue].queue));
    }
    *out_failed_batch = BERTH_NO_INDEX;
    return BERTH_OK;
}

static berth_status wait_all(berth_session *session, int64_t timeout_ns) {
    int64_t deadline_ns = berth_clock_deadline_ns(session->run_start_ns, timeout_ns);
    for (uint32_t q = 0; q < session->program->queue_count; ++q) {
        uint32_t value = session->schedule.values[q];
        if (value == 0) continue;
        int64_t left_ns = -1;
        if (deadline_ns != INT64_MAX) {
            left_ns = deadline_ns - berth_clock_ns();
            if (left_ns < 0) left_ns = 0;
        }
        berth_semaphore_point end = {session->queues[q].semaphore, timeline(session, q, value)};
        BERTH_TRY(berth_queue_wait(session->queues[q].queue, end, left_ns));
    }
    return BERTH_OK;
}

// The first batch that did not come to its end: the one that failed, since batches are in an order
// that waits respect.
static uint32_t find_failed_batch(const berth_session *session) {
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i) {
        const berth_schedule_batch *batch = &session->schedule.batches[i];
        bool failed = false;
        uint64_t value = berth_semaphore_query(session->queues[batch->queue].semaphore, &failed);
        if (failed && value < timeline(session, batch->queue, batch->value)) return i;
    }
    return BERTH_NO_INDEX;
}

static berth_status name_failure(berth_session *session, uint32_t batch_index,
                                 berth_status failure) {
    if (batch_index == BERTH_NO_INDEX) return failure;
    const berth_schedule_batch *batch = &session->schedule.batches[batch_index];
    const berth_program *program = session->program;
    session->lost_device = program->queues[batch->queue].device;
    const char *device = program->devices[program->queues[batch->queue].device].name;
    const char *first = program->steps[batch->steps[0]].name;
    for (uint32_t i = 0; i < batch->step_count; ++i) {
        const berth_program_step *step = &program->steps[batch->steps[i]];
        uint32_t peer = berth_program_copy_peer(program, step);
        if (peer == BERTH_NO_INDEX) continue;
        failure =
            berth_status_prefix(failure, "with the direct copy \"%s\" between \"%s\" and \"%s\"",
                                step->name, device, program->devices[peer].name);
        break;
    }
    if (batch->step_count == 1)
        return berth_status_prefix(failure, "step \"%s\" on \"%s\"", first, device);
    const char *last = program->steps[batch->steps[batch->step_count - 1]].name;
    return berth_status_prefix(failure, "steps \"%s\" to \"%s\" on \"%s\"", first, last, device);
}

berth_status berth_executor__prepare_lists(berth_session *session) {
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i) {
        berth_session_batch *batch = &session->batches[i];
        berth_status status =
            berth_queue_prepare(session->queues[session->schedule.batches[i].queue].queue,
                                batch->commands, batch->command_count, &batch->list);
        if (status) return name_failure(session, i, status);
    }
    session->moved = session->rebound = false;
    return BERTH_OK;
}

// Buffers that moved are those of the host's memory, which no other device's kernels look at.
static void update_lists(berth_session *session) {
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i) {
        const uint32_t queue = session->schedule.batches[i].queue;
        const berth_device *device =
            session->devices[session->program->queues[queue].device].device;
        if (session->rebound)
            berth_command_list_rebind(session->batches[i].list);
        else if (berth_device_get_info(device)->memories[0].host_visible)
            berth_command_list_update(session->batches[i].list);
    }
    session->moved = session->rebound = false;
}

// Queues and semaphores made anew after a failed run. The old ones go first, which waits for what
// still runs.
static berth_status repair(berth_session *session) {
    berth_executor__close_queues(session);
    berth_status status = berth_executor__open_queues(session);
    if (!status) status = berth_executor__take_back(session);
    if (!status) status = berth_executor__prepare_lists(session);
    if (!status) session->broken = false;
    return status;
}

// The run that was to be cancelled has ended.
static void forget_cancel(berth_session *session) {
    pthread_mutex_lock(&session->lock);
    session->cancelled = false;
    pthread_mutex_unlock(&session->lock);
}

berth_status berth_executor__run_once(berth_session *session, int64_t timeout_ns) {
    session->lost_device = BERTH_NO_INDEX;
    if (session->broken) BERTH_TRY(repair(session));
    if (session->moved || session->rebound) update_lists(session);
    session->run_start_ns = berth_clock_ns();
    uint32_t failed_batch = BERTH_NO_INDEX;
    berth_status status = submit_all(session, timeout_ns >= 0, &failed_batch);
    if (!status) status = wait_all(session, timeout_ns);
    session->run_end_ns = berth_clock_ns();
    if (!status) {
        session->submitted_runs++;
        session->run_count++;
        return berth_executor__check_indices(session);
    }
    session->broken = true;
    berth_code code = berth_status_code(status);
    bool ran_out = timeout_ns >= 0 && session->run_end_ns - session->run_start_ns >= timeout_ns;
    if (code == BERTH_DEADLINE_EXCEEDED && ran_out)  // a device has limits of its own
        status = berth_status_prefix(status, "the run did not end within %lld us%s",
                                     (long long)(timeout_ns / 1000),
                                     timeout_ns == 0 ? " (a limit below 0 is none)" : "");
    else if (code == BERTH_CANCELLED)
        forget_cancel(session);
    else
        status = name_failure(
            session, failed_batch == BERTH_NO_INDEX ? find_failed_batch(session) : failed_batch,
            status);
    berth_executor__fail_timelines(session, "the run has failed");  // what has not begun is dropped
    return status;
}

berth_status berth_session_recover(berth_session *session) {
    session = berth_executor__in_use(session);
    forget_cancel(session);
    session->broken = true;  // until it is repaired
    return repair(session);
}
