// The public functions of devices, buffers and executables: checks, lifetimes, dispatch to drivers.
#include "devices/device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "devices/internal.h"

#define BAD(code, ...) berth_status_make(BERTH_##code, __VA_ARGS__)

// ---- device ----

berth_status berth_device_open(berth_driver *driver, uint32_t ordinal,
                               const berth_device_options *options, berth_device **out_device) {
    *out_device = NULL;
    uint32_t count = driver->ops->device_count(driver);
    if (ordinal >= count)
        return BAD(NOT_FOUND, "there is no %s device %u: this machine has %u", driver->ops->kind,
                   ordinal, count);
    berth_device_options all_default = {0};
    if (!options) options = &all_default;
    if (options->queue && !driver->ops->takes_queue)
        return berth_status_make(BERTH_UNSUPPORTED, "%s devices take no queue of the application",
                                 driver->ops->kind);
    berth_device *device = NULL;
    BERTH_TRY(driver->ops->device_open(driver, ordinal, options, &device));
    device->driver = driver;
    device->allocator = driver->allocator;
    device->options = *options;
    device->options.attributes = NULL;  // borrowed until now
    device->options.threads = NULL;
    device->options.queue = NULL;
    *out_device = device;
    return BERTH_OK;
}

void berth_device_close(berth_device *device) {
    if (device) device->ops->destroy(device);
}

const berth_device_info *berth_device_get_info(const berth_device *device) {
    return &device->info;
}

const char *berth_device_kind_text(const berth_device *device) {
    return device->driver->ops->kind;
}

berth_status berth_device_find_memory(const berth_device *device, const char *scope,
                                      uint32_t *out_memory) {
    const berth_device_info *info = &device->info;
    char scopes[BERTH_DEVICE_MAX_MEMORIES * (sizeof(info->memories[0].scope) + 2)] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < info->memory_count; ++i) {
        if (strcmp(info->memories[i].scope, scope) == 0) {
            *out_memory = i;
            return BERTH_OK;
        }
        int put = snprintf(scopes + used, sizeof(scopes) - used, "%s%s", i ? ", " : "",
                           info->memories[i].scope);
        used += put > 0 ? (size_t)put : 0;
    }
    return BAD(NOT_FOUND, "%s device %u has no memory of scope \"%s\"; it has: %s",
               berth_device_kind_text(device), info->ordinal, scope, scopes);
}

// ---- peers ----

bool berth_driver_reaches(berth_driver *driver, uint32_t ordinal, uint32_t peer) {
    uint32_t count = driver->ops->device_count(driver);
    return driver->ops->device_reaches && ordinal != peer && ordinal < count && peer < count &&
           driver->ops->device_reaches(driver, ordinal, peer);
}

bool berth_devices__is_peer(const berth_device *device, const berth_device *peer) {
    if (device->driver->ops != peer->driver->ops || peer->info.ordinal >= 64) return false;
    unsigned long long peers = atomic_load_explicit(&device->peers, memory_order_acquire);
    return peers >> peer->info.ordinal & 1;
}

static berth_status open_peer(berth_device *device, berth_device *peer) {
    if (device->driver->ops != peer->driver->ops)
        return BAD(UNSUPPORTED, "they are of two drivers");
    if (!device->options.peers || !peer->options.peers)
        return BAD(UNSUPPORTED, "they were not opened as peers (berth_device_options.peers)");
    if (!device->ops->peer_open)
        return BAD(UNSUPPORTED, "the %s driver copies by way of the host only",
                   device->driver->ops->kind);
    if (peer->info.ordinal >= 64) return BAD(UNSUPPORTED, "peers are among the first 64 devices");
    return device->ops->peer_open(device, peer);
}

berth_status berth_device_open_peer(berth_device *device, berth_device *peer) {
    bool is_host = peer->info.memories[0].host_visible;  // reached anyway
    if (device == peer || is_host || berth_devices__is_peer(device, peer)) return BERTH_OK;
    berth_status status = open_peer(device, peer);
    if (status)
        return berth_status_prefix(status, "%s device %u copies nothing directly to %s device %u",
                                   berth_device_kind_text(device), device->info.ordinal,
                                   berth_device_kind_text(peer), peer->info.ordinal);
    atomic_fetch_or_explicit(&device->peers, 1ULL << peer->info.ordinal, memory_order_release);
    return BERTH_OK;
}

void berth_devices__count_memory(berth_device *device, uint64_t more_bytes, uint64_t less_bytes) {
    atomic_fetch_sub_explicit(&device->live_bytes, less_bytes, memory_order_relaxed);
    unsigned long long live =
        atomic_fetch_add_explicit(&device->live_bytes, more_bytes, memory_order_relaxed) +
        more_bytes;
    unsigned long long peak = atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
    while (live > peak &&
           !atomic_compare_exchange_weak_explicit(&device->peak_bytes, &peak, live,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

uint64_t berth_device_peak_bytes(const berth_device *device) {
    return atomic_load_explicit(&device->peak_bytes, memory_order_relaxed);
}

// ---- buffers ----

void *berth_devices__reserve_one(berth_allocator allocator, void *data, uint32_t count,
                                 uint32_t *capacity, size_t element_bytes) {
    if (count < *capacity) return data;
    uint32_t wanted = *capacity ? 2 * *capacity : 16;
    void *made = berth_resize(allocator, data, *capacity * element_bytes, wanted * element_bytes);
    if (made) *capacity = wanted;
    return made;
}

berth_status berth_devices__check_range(const char *what, const berth_buffer *buffer,
                                        uint64_t offset_bytes, uint64_t size_bytes) {
    if (offset_bytes <= buffer->size_bytes && size_bytes <= buffer->size_bytes - offset_bytes)
        return BERTH_OK;
    return BAD(OUT_OF_RANGE,
               "%s: %" PRIu64 " bytes at offset %" PRIu64 " exceed the buffer of %" PRIu64 " bytes",
               what, size_bytes, offset_bytes, buffer->size_bytes);
}

static void finish_buffer(berth_buffer *buffer, berth_device *device, uint32_t memory,
                          uint64_t size_bytes) {
    buffer->device = device;
    buffer->memory = memory;
    buffer->size_bytes = size_bytes;
    atomic_init(&buffer->reference_count, 1);
}

static void count_buffer(berth_buffer *buffer) {
    buffer->counted_bytes = buffer->size_bytes;
    berth_devices__count_memory(buffer->device, buffer->counted_bytes, 0);
}

static berth_status check_capacity(const berth_device *device, uint32_t memory,
                                   uint64_t size_bytes) {
    const berth_memory_info *facts = &device->info.memories[memory];
    if (size_bytes <= INT64_MAX &&
        (facts->capacity_bytes == 0 || size_bytes <= facts->capacity_bytes))
        return BERTH_OK;
    return BAD(OUT_OF_MEMORY,
               "%" PRIu64 " bytes do not fit memory \"%s\" of %s device %u, which has %" PRIu64,
               size_bytes, facts->scope, berth_device_kind_text(device), device->info.ordinal,
               facts->capacity_bytes);
}

berth_status berth_buffer_allocate(berth_device *device, uint32_t memory, uint64_t size_bytes,
                                   berth_buffer **out_buffer) {
    *out_buffer = NULL;
    const berth_device_info *info = &device->info;
    if (memory >= info->memory_count)
        return BAD(OUT_OF_RANGE, "memory %u: %s device %u has %u", memory,
                   berth_device_kind_text(device), info->ordinal, info->memory_count);
    BERTH_TRY(check_capacity(device, memory, size_bytes));
    berth_buffer *buffer = NULL;
    BERTH_TRY(device->ops->buffer_allocate(device, memory, size_bytes ? size_bytes : 1, &buffer));
    finish_buffer(buffer, device, memory, size_bytes);
    count_buffer(buffer);
    *out_buffer = buffer;
    return BERTH_OK;
}

static void retain_buffer(berth_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->reference_count, 1, memory_order_relaxed);
}

berth_status berth_buffer_view(berth_buffer *parent, uint64_t offset_bytes, uint64_t size_bytes,
                               berth_buffer **out_view) {
    *out_view = NULL;
    BERTH_TRY(berth_devices__check_range("view", parent, offset_bytes, size_bytes));
    berth_device *device = parent->device;
    uint32_t alignment = device->info.memories[parent->memory].alignment_bytes;
    if (offset_bytes % alignment != 0)
        return BAD(INVALID_ARGUMENT,
                   "view: offset %" PRIu64 " is not a multiple of the memory's alignment of %u",
                   offset_bytes, alignment);
    berth_buffer *root = parent->root ? parent->root : parent;
    uint64_t root_offset = parent->root_offset_bytes + offset_bytes;
    // An empty view is one byte at the start, which every buffer has, that nothing may touch.
    uint64_t driver_offset = size_bytes ? root_offset : 0;
    berth_buffer *view = NULL;
    BERTH_TRY(device->ops->buffer_view(root, driver_offset, size_bytes ? size_bytes : 1, &view));
    finish_buffer(view, device, root->memory, size_bytes);
    view->root = root;
    view->root_offset_bytes = root_offset;
    retain_buffer(root);
    *out_view = view;
    return BERTH_OK;
}

berth_status berth_buffer_share(berth_device *device, uint64_t size_bytes,
                                berth_buffer **out_buffer) {
    *out_buffer = NULL;
    if (!device->ops->buffer_share) {
        if (device->info.memories[0].host_visible)
            return berth_buffer_allocate(device, 0, size_bytes, out_buffer);
        return BAD(UNSUPPORTED, "%s devices do not work on host memory",
                   berth_device_kind_text(device));
    }
    BERTH_TRY(check_capacity(device, 0, size_bytes));
    berth_buffer *buffer = NULL;
    BERTH_TRY(device->ops->buffer_share(device, size_bytes ? size_bytes : 1, &buffer));
    finish_buffer(buffer, device, 0, size_bytes);
    count_buffer(buffer);
    *out_buffer = buffer;
    return BERTH_OK;
}

berth_status berth_buffer_import(berth_device *device, void *data, uint64_t size_bytes,
                                 berth_buffer **out_buffer) {
    *out_buffer = NULL;
    if (!device->ops->buffer_import)
        return BAD(UNSUPPORTED, "%s devices do not work on host memory",
                   berth_device_kind_text(device));
    if (!data && size_bytes) return BAD(INVALID_ARGUMENT, "import: data is missing");
    berth_buffer *buffer = NULL;
    BERTH_TRY(device->ops->buffer_import(device, data, size_bytes, &buffer));
    finish_buffer(buffer, device, 0, size_bytes);
    *out_buffer = buffer;
    return BERTH_OK;
}

void berth_buffer_move(berth_buffer *buffer, void *data) {
    assert(!buffer->root && buffer->device->info.memories[0].host_visible);
    buffer->host = data;
}

void berth_buffer_free(berth_buffer *buffer) {
    if (!buffer ||
        atomic_fetch_sub_explicit(&buffer->reference_count, 1, memory_order_acq_rel) != 1)
        return;
    berth_buffer *root = buffer->root;
    berth_devices__count_memory(buffer->device, 0, buffer->counted_bytes);
    buffer->device->ops->buffer_free(buffer);
    berth_buffer_free(root);  // a root has none itself: depth 1
}

berth_status berth_buffer_map(berth_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes,
                              bool write_only, void **out_data) {
    *out_data = NULL;
    BERTH_TRY(berth_devices__check_range("map", buffer, offset_bytes, size_bytes));
    if (size_bytes == 0) return BAD(INVALID_ARGUMENT, "map: the range is empty");
    if (buffer->host) {
        *out_data = berth_devices__host_at(buffer, offset_bytes);
        return BERTH_OK;
    }
    return buffer->device->ops->buffer_map(buffer, offset_bytes, size_bytes, write_only, out_data);
}

berth_status berth_buffer_unmap(berth_buffer *buffer, void *data) {
    if (!data) return BAD(INVALID_ARGUMENT, "unmap: data is missing");
    return buffer->host ? BERTH_OK : buffer->device->ops->buffer_unmap(buffer, data);
}

uint64_t berth_buffer_size_bytes(const berth_buffer *buffer) {
    return buffer->size_bytes;
}

void *berth_buffer_host(const berth_buffer *buffer) {
    return buffer->host;
}

berth_device *berth_buffer_device(const berth_buffer *buffer) {
    return buffer->device;
}

// ---- executables ----

berth_status berth_executable_load(berth_device *device, const berth_executable_image *image,
                                   berth_executable **out_executable) {
    *out_executable = NULL;
    const char *kind = berth_device_kind_text(device);
    if (!image->device_kind || strcmp(image->device_kind, kind) != 0)
        return BAD(INCOMPATIBLE, "an executable for %s devices does not load on %s device %u",
                   image->device_kind ? image->device_kind : "(unknown)", kind,
                   device->info.ordinal);
    if (!image->format || (!image->data && image->size_bytes != 0))
        return BAD(INVALID_ARGUMENT, "the executable has no %s", image->format ? "code" : "format");
    berth_executable *executable = NULL;
    BERTH_TRY(device->ops->executable_load(device, image, &executable));
    executable->device = device;
    atomic_init(&executable->reference_count, 1);
    *out_executable = executable;
    return BERTH_OK;
}

static berth_status reserve_facts(berth_executable *executable, uint32_t count) {
    if (count <= executable->kernel_count) return BERTH_OK;
    size_t old_bytes = executable->kernel_count * sizeof(berth_kernel_facts);
    size_t new_bytes = count * sizeof(berth_kernel_facts);
    berth_kernel_facts *kernels =
        berth_resize(executable->device->allocator, executable->kernels, old_bytes, new_bytes);
    if (!kernels) return berth_status_oom();
    memset(kernels + executable->kernel_count, 0, new_bytes - old_bytes);
    executable->kernels = kernels;
    executable->kernel_count = count;
    return BERTH_OK;
}

berth_status berth_executable_find(berth_executable *executable, const berth_program_kernel *kernel,
                                   uint32_t *out_kernel) {
    *out_kernel = 0;
    berth_device *device = executable->device;
    if (!kernel->entry || !*kernel->entry)
        return BAD(INVALID_ARGUMENT, "a kernel has no entry name");
    uint32_t most = device->info.max_bindings;
    if (!most || most > BERTH_DEVICE_MAX_BINDINGS) most = BERTH_DEVICE_MAX_BINDINGS;
    if (kernel->binding_count > most)
        return BAD(
            OUT_OF_RANGE,
            "kernel %s binds %u buffers; at most %u are possible: build it for a target with "
            "max_bindings %u",
            kernel->entry, kernel->binding_count, most, most);
    uint32_t index = 0;
    BERTH_TRY(device->ops->executable_find(executable, kernel, &index));
    BERTH_TRY(reserve_facts(executable, index + 1));
    executable->kernels[index] = (berth_kernel_facts){
        .binding_count = kernel->binding_count,
        .constant_count = kernel->constant_count,
        .found = true,
    };
    *out_kernel = index;
    return BERTH_OK;
}

void berth_executable_destroy(berth_executable *executable) {
    if (!executable ||
        atomic_fetch_sub_explicit(&executable->reference_count, 1, memory_order_acq_rel) != 1)
        return;
    berth_free(executable->device->allocator, executable->kernels,
               executable->kernel_count * sizeof(berth_kernel_facts));
    executable->kernels = NULL;
    executable->device->ops->executable_destroy(executable);
}

// ---- for drivers ----

typedef struct declaration_call {
    berth_arena *arena;
    const berth_program_kernel *kernel;
    const char *text;
} declaration_call;

static berth_status declare(void *user) {
    declaration_call *call = user;
    call->text = berth_kernel_declaration(call->arena, call->kernel);
    return BERTH_OK;
}

berth_status berth_devices__check_declaration(berth_allocator allocator,
                                              const berth_program_kernel *kernel,
                                              const char *declared, size_t length) {
    if (!declared) return BERTH_OK;
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(allocator, &arena));
    declaration_call call = {arena, kernel, NULL};
    berth_status status = berth_arena_try(arena, declare, &call);
    if (!status && (strlen(call.text) != length || memcmp(call.text, declared, length) != 0))
        status = BAD(INCOMPATIBLE,
                     "kernel %s: the program says \"%s\", but its code was made for \"%.*s\"; the "
                     "program was changed after it was built",
                     kernel->entry, call.text, (int)(length < 400 ? length : 400), declared);
    berth_arena_destroy(arena);
    return status;
}

void berth_devices__retain_commands(const berth_command *commands, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_command *command = &commands[i];
        switch (command->kind) {
        case BERTH_COMMAND_COPY:
            retain_buffer(command->copy.source);
            retain_buffer(command->copy.destination);
            break;
        case BERTH_COMMAND_FILL: retain_buffer(command->fill.buffer); break;
        case BERTH_COMMAND_DISPATCH:
            atomic_fetch_add_explicit(&command->dispatch.executable->reference_count, 1,
                                      memory_order_relaxed);
            for (uint32_t b = 0; b < command->dispatch.buffer_count; ++b)
                retain_buffer(command->dispatch.buffers[b]);
            break;
        case BERTH_COMMAND_TO_DEVICE:
        case BERTH_COMMAND_TO_HOST:
            for (uint32_t b = 0; b < command->hand_over.buffer_count; ++b)
                retain_buffer(command->hand_over.buffers[b]);
            break;
        case BERTH_COMMAND_HOST_CALL: break;
        }
    }
}

void berth_devices__release_commands(const berth_command *commands, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_command *command = &commands[i];
        switch (command->kind) {
        case BERTH_COMMAND_COPY:
            berth_buffer_free(command->copy.source);
            berth_buffer_free(command->copy.destination);
            break;
        case BERTH_COMMAND_FILL: berth_buffer_free(command->fill.buffer); break;
        case BERTH_COMMAND_DISPATCH:
            berth_executable_destroy(command->dispatch.executable);
            for (uint32_t b = 0; b < command->dispatch.buffer_count; ++b)
                berth_buffer_free(command->dispatch.buffers[b]);
            break;
        case BERTH_COMMAND_TO_DEVICE:
        case BERTH_COMMAND_TO_HOST:
            for (uint32_t b = 0; b < command->hand_over.buffer_count; ++b)
                berth_buffer_free(command->hand_over.buffers[b]);
            break;
        case BERTH_COMMAND_HOST_CALL: break;
        }
    }
}
