// Devices as callers see them: every argument is checked here, then the driver works. The executor
// and the toolkit include this; drivers include devices/driver.h.
//
//   BERTH_TRY(berth_driver_open("cpu", allocator, &driver));            // devices/registry.h
//   BERTH_TRY(berth_device_open(driver, 0, NULL, &device));
//   BERTH_TRY(berth_buffer_allocate(device, 0, pool_bytes, &pool));
//   BERTH_TRY(berth_buffer_view(pool, tensor->offset_bytes, tensor->size_bytes, &tensor_buffer));
//   BERTH_TRY(berth_executable_load(device, image, &executable));
//   BERTH_TRY(berth_executable_find(executable, &program->kernels[k], &kernel));
//   BERTH_TRY(berth_queue_open(device, BERTH_QUEUE_COMPUTE, &queue));
//   BERTH_TRY(berth_queue_submit(queue, &(berth_submission){.commands = commands, ...}));
//   BERTH_TRY(berth_semaphore_wait(done, 1, -1));
//
// Lifetimes: a driver outlives its devices, a device its buffers, executables and queues. Buffers
// and executables may be freed while submitted work uses them; they go when that work is done.
// Destroying a queue waits for its work. Threads: everything is thread-safe except that one object
// must not be destroyed twice or used after, and executable_find must not run beside a submit of
// the same executable.
#ifndef BERTH_DEVICES_DEVICE_H_
#define BERTH_DEVICES_DEVICE_H_

#include "devices/driver.h"

// ---- device ----

// Opens device `ordinal` (0 .. berth_driver_device_count - 1). `options` NULL = all defaults.
// Allocates through the driver's allocator.
// Errors: NOT_FOUND no such ordinal; UNAVAILABLE the device does not open (reason in the message).
BERTH_MUST_USE berth_status berth_device_open(berth_driver *driver, uint32_t ordinal,
                                              const berth_device_options *options,
                                              berth_device **out_device);
void berth_device_close(berth_device *device);  // NULL is fine

const berth_device_info *berth_device_get_info(const berth_device *device);
const char *berth_device_kind_text(const berth_device *device);  // "cpu"

// Whether berth_device_open_peer will do for two devices of the driver, as far as that is known before
// they are open. False for a device and itself.
bool berth_driver_reaches(berth_driver *driver, uint32_t ordinal, uint32_t peer);

// From now on queues of `device` copy between its buffers and those of `peer` directly. Both are of
// one driver and opened with options.peers. Needs no counterpart: the queues of `peer` copy once it
// is called the other way round. Again for the same two, for a device and itself, or where the memory of
// `peer` is host-visible: nothing.
//   errors:  UNSUPPORTED there is no direct way between them (names both, and says why)
//   threads: thread-safe; not beside the closing of either
BERTH_MUST_USE berth_status berth_device_open_peer(berth_device *device, berth_device *peer);

// Bytes that the device has allocated at most at any one time since it was opened: buffers, and what
// its kernels keep for threads; not the driver's own records, and no memory that others lend it
// (views, imports). Thread-safe.
uint64_t berth_device_peak_bytes(const berth_device *device);

// Index of the memory with this scope ("global"). Errors: NOT_FOUND listing the scopes there are.
BERTH_MUST_USE berth_status berth_device_find_memory(const berth_device *device, const char *scope,
                                                     uint32_t *out_memory);

// ---- buffers ----

// Content is undefined. size_bytes may be 0. Errors: OUT_OF_RANGE no such memory; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_buffer_allocate(berth_device *device, uint32_t memory,
                                                  uint64_t size_bytes, berth_buffer **out_buffer);

// The range [offset, +size) of `parent` as a buffer of its own; views of views are fine.
//   shapes/units: offset a multiple of the memory's alignment_bytes (size need not be)
//   ownership:    the view keeps the parent's memory alive
//   errors:       OUT_OF_RANGE range exceeds the parent; INVALID_ARGUMENT offset not aligned
BERTH_MUST_USE berth_status berth_buffer_view(berth_buffer *parent, uint64_t offset_bytes,
                                              uint64_t size_bytes, berth_buffer **out_view);

// A buffer of memory 0 whose bytes host and device share: berth_buffer_host gives their one
// address, which never changes. The host has it at first; a queue of the device hands it (or views
// of it that do not overlap) over with BERTH_COMMAND_TO_DEVICE and back with BERTH_COMMAND_TO_HOST.
// Only who has the bytes may touch them. Where memory 0 is host-visible all may always touch them,
// and the commands do nothing. What it contains at first is undefined.
//   errors: UNSUPPORTED the device does not work in host memory (says why); OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_buffer_share(berth_device *device, uint64_t size_bytes,
                                               berth_buffer **out_buffer);

// Host memory of the caller as a buffer of memory 0, without a copy: a mapped file's constants, a
// user's input, memory that another device shares. As with berth_buffer_share, the host has it at
// first. `data` must be aligned as the caller's kernels need and outlive the buffer and all work
// that uses it. Errors: UNSUPPORTED by this device; INVALID_ARGUMENT the device needs another
// alignment.
BERTH_MUST_USE berth_status berth_buffer_import(berth_device *device, void *data,
                                                uint64_t size_bytes, berth_buffer **out_buffer);

// An imported buffer of a device whose memory 0 is host-visible is over other memory of the same size
// from now on. Call when no submitted work uses it.
void berth_buffer_move(berth_buffer *buffer, void *data);

// Gives up the caller's reference; submitted work and views keep the memory until they are done.
void berth_buffer_free(berth_buffer *buffer);  // NULL is fine

// Host access to [offset, +size), until unmap with the same pointer. Call when no submitted work
// touches the range. `write_only`: all of it will be written, old content need not be there.
// Without a copy where the memory is host-visible. Errors: OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_buffer_map(berth_buffer *buffer, uint64_t offset_bytes,
                                             uint64_t size_bytes, bool write_only, void **out_data);
// Ends the access; what was written is in the buffer when this returns.
BERTH_MUST_USE berth_status berth_buffer_unmap(berth_buffer *buffer, void *data);

uint64_t berth_buffer_size_bytes(const berth_buffer *buffer);
void *berth_buffer_host(const berth_buffer *buffer);  // the bytes themselves when host-visible
berth_device *berth_buffer_device(const berth_buffer *buffer);

// ---- executables ----

// Loads or builds the image. It may be gone when this returns.
// Errors: INCOMPATIBLE the image is for another kind of device or format; INVALID_ARGUMENT it does
// not build or load (with the build log).
BERTH_MUST_USE berth_status berth_executable_load(berth_device *device,
                                                  const berth_executable_image *image,
                                                  berth_executable **out_executable);

// Index of the kernel for dispatch commands, whose counts are checked against `kernel` from then
// on. Errors: NOT_FOUND no such entry; OUT_OF_RANGE more bindings than the device takes.
BERTH_MUST_USE berth_status berth_executable_find(berth_executable *executable,
                                                  const berth_program_kernel *kernel,
                                                  uint32_t *out_kernel);
void berth_executable_destroy(berth_executable *executable);  // NULL is fine

// ---- queues ----

// A device may have several queues, which run at the same time. TRANSFER ones take no dispatches and
// no hand-overs of shared memory.
BERTH_MUST_USE berth_status berth_queue_open(berth_device *device, berth_queue_kind kind,
                                             berth_queue **out_queue);

// Hands over one batch. Submissions of one queue run in the order of submit. Never blocks on the
// waits; on a synchronous driver (cpu, null) a batch that could start at once runs inside submit
// unless `asynchronous` is set. A failing command fails all signals; a failed wait fails them too,
// and the commands do not run. Later submissions run regardless, unless they wait on what failed.
//   errors: what can be known before running: INVALID_ARGUMENT, OUT_OF_RANGE (ranges, kernel
//           index), INCOMPATIBLE (no path between the memories; buffer of another device;
//           wrong binding count). Then nothing was submitted and no signal will come.
BERTH_MUST_USE berth_status berth_queue_submit(berth_queue *queue,
                                               const berth_submission *submission);
BERTH_MUST_USE berth_status berth_queue_flush(berth_queue *queue);
// Waits for a point that the queue will signal, as berth_semaphore_wait does, and looks before it sleeps for as
// long as suits the queue and the core that the caller is on.
BERTH_MUST_USE berth_status berth_queue_wait(berth_queue *queue, berth_semaphore_point point,
                                             int64_t timeout_ns);

// Checks commands and makes them ready for submissions with `list` set. The commands and what they point to
// (buffers arrays, constants, timing, labels) stay valid and as they are until the list is destroyed; the list
// keeps their buffers and executables alive.
//   errors: those of berth_queue_submit for the commands; OUT_OF_MEMORY; what the driver failed with
BERTH_MUST_USE berth_status berth_queue_prepare(berth_queue *queue, const berth_command *commands,
                                                uint32_t command_count,
                                                berth_command_list **out_list);
// Call after berth_buffer_move of buffers that the list binds, while no submission of it is in flight.
void berth_command_list_update(berth_command_list *list);
// Call after commands of the list bind other buffers, which the caller keeps alive, while no submission of it is in
// flight. With a driver that cannot set them in what it prepared, the list runs like new commands from here on.
void berth_command_list_rebind(berth_command_list *list);
// When no submission of it is in flight; also after its queue has gone. NULL is fine.
void berth_command_list_destroy(berth_command_list *list);

// Makes room, so that from now on submit allocates nothing while at most `submission_count` are in
// flight with at most `command_count` commands and `point_count` waits and signals together each.
// Without it, submit makes room as needed and keeps it. Call while the queue is idle. Errors:
// OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_queue_reserve(berth_queue *queue, uint32_t submission_count,
                                                uint32_t command_count, uint32_t point_count);

// Submits `commands` and waits for them. For set-up work: it makes a semaphore each time.
BERTH_MUST_USE berth_status berth_queue_run(berth_queue *queue, const berth_command *commands,
                                            uint32_t command_count);
// Waits for submitted work. NULL is fine. Work that waits for a semaphore that is never signalled
// makes this wait forever: fail the semaphore first.
void berth_queue_destroy(berth_queue *queue);

#endif  // BERTH_DEVICES_DEVICE_H_
