#include "tests/schedule/opencl_run.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "devices/device.h"
#include "devices/registry.h"

bool device_is_here(const char *kind) {
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open(kind, berth_allocator_system(), &driver);
    bool here = !status && berth_driver_device_count(driver) > 0;
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    if (!here && required && strstr(required, kind))
        cr_assert_fail("%s is required: %s", kind, status ? berth_status_message(status) : "none");
    berth_driver_close(driver);
    berth_status_free(status);
    return here;
}

enum { RUN_MAX_BUFFERS = 64 };  // of a function, those that it allocates itself among them

typedef struct runner {
    bench_case *c;
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_executable *executable;
    berth_buffer *buffers[RUN_MAX_BUFFERS];
} runner;

static berth_status copy(runner *r, berth_buf b, bool back) {
    size_t bytes = support_buffer_bytes(r->c, b);
    void *mapped = NULL;
    BERTH_TRY(berth_buffer_map(r->buffers[b], 0, bytes, !back, &mapped));
    memcpy(back ? r->c->buffers[b] : mapped, back ? mapped : r->c->buffers[b], bytes);
    return berth_buffer_unmap(r->buffers[b], mapped);
}

static berth_status dispatch(runner *r, const berth_kernel_source *kernel) {
    berth_buffer *bound[RUN_MAX_BUFFERS];
    for (uint32_t i = 0; i < kernel->buffer_count; ++i) bound[i] = r->buffers[kernel->buffers[i]];
    berth_program_kernel facts = berth_kernel_source_record(kernel);
    berth_command command = {.kind = BERTH_COMMAND_DISPATCH,
                             .dispatch = {.executable = r->executable,
                                          .buffers = bound,
                                          .buffer_count = kernel->buffer_count}};
    memcpy(command.dispatch.groups, kernel->groups, sizeof(kernel->groups));
    memcpy(command.dispatch.group_size, kernel->group_size, sizeof(kernel->group_size));
    BERTH_TRY(berth_executable_find(r->executable, &facts, &command.dispatch.kernel));
    return berth_queue_run(r->queue, &command, 1);
}

static uint64_t workspace_bytes(const berth_tfn *fn, berth_buf b) {
    const berth_buf_info *info = &fn->bufs.data[b];
    uint64_t bytes = berth_dtype_size_bytes(info->dtype);
    for (int d = 0; d < info->rank; ++d) bytes *= (uint64_t)info->dims[d];
    return bytes;
}

static berth_status run(runner *r, const berth_codegen *codegen) {
    bench_case *c = r->c;
    berth_codegen_result code;
    BERTH_TRY(codegen->print(c->fn, NULL, "k", c->arena, &code));
    berth_codegen_unit unit = {.label = "k", .code = &code};
    berth_codegen_job job = {.units = &unit, .count = 1, .arena = c->arena};
    berth_codegen_bytes built;
    BERTH_TRY(codegen->finish(&job, &built));
    BERTH_TRY(berth_driver_open(codegen->kind, berth_allocator_system(), &r->driver));
    BERTH_TRY(berth_device_open(r->driver, 0, NULL, &r->device));
    BERTH_TRY(berth_queue_open(r->device, BERTH_QUEUE_COMPUTE, &r->queue));
    berth_executable_image image = {.device_kind = codegen->kind,
                                    .format = codegen->format,
                                    .options = "",
                                    .data = built.data,
                                    .size_bytes = built.size_bytes};
    BERTH_TRY(berth_executable_load(r->device, &image, &r->executable));
    for (berth_buf b = 0; b < c->fn->param_count; ++b) {
        uint64_t bytes = support_buffer_bytes(c, b);
        if (c->fn->bufs.data[b].role != BERTH_ROLE_IN) {
            c->buffers[b] = berth_arena_alloc_aligned(c->arena, bytes, 128);
            memset(c->buffers[b], 0xff, bytes);
        }
        BERTH_TRY(berth_buffer_allocate(r->device, 0, bytes, &r->buffers[b]));
        BERTH_TRY(copy(r, b, false));
    }
    for (berth_buf b = c->fn->param_count; b < c->fn->bufs.count; ++b)
        if (c->fn->bufs.data[b].scope == BERTH_SCOPE_WORKSPACE)
            BERTH_TRY(
                berth_buffer_allocate(r->device, 0, workspace_bytes(c->fn, b), &r->buffers[b]));
    for (uint32_t k = 0; k < code.kernel_count; ++k) BERTH_TRY(dispatch(r, &code.kernels[k]));
    for (berth_buf b = 0; b < c->fn->param_count; ++b)
        if (c->fn->bufs.data[b].role != BERTH_ROLE_IN) BERTH_TRY(copy(r, b, true));
    return BERTH_OK;
}

berth_status device_run(bench_case *c, const berth_codegen *codegen) {
    runner r = {.c = c};
    if (c->fn->bufs.count > RUN_MAX_BUFFERS)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%u buffers", c->fn->bufs.count);
    berth_status status = run(&r, codegen);
    for (int b = 0; b < RUN_MAX_BUFFERS; ++b) berth_buffer_free(r.buffers[b]);
    berth_executable_destroy(r.executable);
    berth_queue_destroy(r.queue);
    berth_device_close(r.device);
    berth_driver_close(r.driver);
    return status;
}

bool opencl_is_here(void) {
    return device_is_here("opencl");
}

berth_status opencl_run(bench_case *c) {
    return device_run(c, &berth_codegen_opencl);
}
