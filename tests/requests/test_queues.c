// Work in a queue that the application has made (berth_caller_queue): an OpenCL one.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <berth/session.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/run/program.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

enum { count = 100 };

// What an application that uses OpenCL has linked.
#define FUNCTIONS(F)                                                                               \
    F(clGetPlatformIDs)                                                                            \
    F(clGetDeviceIDs)                                                                              \
    F(clCreateContext)                                                                             \
    F(clReleaseContext)                                                                            \
    F(clCreateCommandQueue)                                                                        \
    F(clReleaseCommandQueue)                                                                       \
    F(clCreateUserEvent)                                                                           \
    F(clSetUserEventStatus)                                                                        \
    F(clReleaseEvent)                                                                              \
    F(clEnqueueMarkerWithWaitList)                                                                 \
    F(clGetCommandQueueInfo)
#define POINTER(name) static __typeof__(&name) p_##name;
FUNCTIONS(POINTER)

static cl_context context;
static cl_device_id device;

static bool open_opencl(void) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    cl_platform_id platform = NULL;
    cl_uint found = 0;
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    bool must = required && strstr(required, "opencl");
    if (library) {
        void *symbol = NULL;
#define LOOK_UP(name)                                                                              \
    symbol = dlsym(library, #name);                                                                \
    cr_assert_not_null(symbol);                                                                    \
    memcpy(&p_##name, &symbol, sizeof(symbol));
        FUNCTIONS(LOOK_UP)
        if (p_clGetPlatformIDs(1, &platform, &found) != CL_SUCCESS) found = 0;
        if (found && p_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &found)) found = 0;
    }
    cr_assert(found || !must, "no opencl device");
    if (!found) return false;
    context = p_clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cr_assert_not_null(context);
    return true;
}

static cl_command_queue make_queue(cl_command_queue_properties properties) {
    cl_command_queue queue = p_clCreateCommandQueue(context, device, properties, NULL);
    cr_assert_not_null(queue);
    return queue;
}

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

// y = 6 * x on opencl:0.
static berth_program *make_program(void) {
    berth_arena *arena = NULL;
    berth_program *program = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "queues");
    uint32_t cpu = builder_device(b, "cpu", 0), opencl = builder_device(b, "opencl", 0);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t there = builder_tensor(b, opencl, count), result = builder_tensor(b, opencl, count);
    builder_copy(b, opencl, x, there);
    builder_dispatch(b, opencl, "scale", (uint32_t[]){there, result}, 2, 6);
    builder_copy(b, opencl, result, y);
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &program));
    return program;
}

static berth_status open_on(const char *name, void *handle, int profile, berth_session **out) {
    berth_program *program = make_program();
    const berth_caller_queue queue = {name, handle};
    const berth_session_settings settings = {
        .size_bytes = sizeof(settings), .profile = profile, .queues = &queue, .queue_count = 1};
    berth_status status = berth_session_create(program, &settings, out);
    berth_program_release(program);
    return status;
}

static void check_run(berth_session *session, float first) {
    float *x = berth_session_input(session, 0)->data;
    for (int i = 0; i < count; ++i) x[i] = first + (float)i;
    assert_ok(berth_session_run(session, -1));
    const float *y = berth_session_output(session, 0)->data;
    for (int i = 0; i < count; ++i) cr_assert_eq(y[i], 6 * (first + (float)i));
}

TestSuite(caller_queue, .timeout = 120);

// The application's queue is held up: so is the run that is behind.
Test(caller_queue, runs_come_behind_what_is_there) {
    if (!open_opencl()) cr_skip("no opencl");
    cl_command_queue queue = make_queue(0);
    berth_session *session = NULL;
    assert_ok(open_on("opencl:0", queue, 0, &session));
    check_run(session, 1);
    cl_event gate = p_clCreateUserEvent(context, NULL);
    cr_assert_eq(p_clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL), CL_SUCCESS);
    berth_status status = berth_session_run(session, 100000000);
    cr_assert_eq(berth_status_code(status), BERTH_DEADLINE_EXCEEDED);
    berth_status_free(status);
    cr_assert_eq(p_clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    check_run(session, 2);
    p_clReleaseEvent(gate);
    // The session keeps what it needs.
    p_clReleaseCommandQueue(queue);
    p_clReleaseContext(context);
    check_run(session, 3);
    berth_session_destroy(session);
}

Test(caller_queue, profiles) {
    if (!open_opencl()) cr_skip("no opencl");
    cl_command_queue queue = make_queue(CL_QUEUE_PROFILING_ENABLE);
    berth_session *session = NULL;
    berth_step_facts facts;
    assert_ok(open_on("opencl:0", queue, 1, &session));
    check_run(session, 5);
    assert_ok(berth_session_get_step(session, 1, &facts, sizeof(facts)));
    cr_assert_gt(facts.duration_ns, 0);
    berth_session_destroy(session);
    // PoCL's thread drops a command's own reference a little after it says that the command has ended.
    cl_uint references = 0;
    for (int waited_ms = 0; references != 1 && waited_ms < 5000; ++waited_ms) {
        if (references) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        p_clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(references), &references,
                                NULL);
    }
    cr_assert_eq(references, 1);
    p_clReleaseCommandQueue(queue);
    p_clReleaseContext(context);
}

Test(caller_queue, wrong_ones) {
    if (!open_opencl()) cr_skip("no opencl");
    cl_command_queue plain = make_queue(0);
    cl_command_queue unordered = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const struct {
        const char *name;
        cl_command_queue queue;
        int profile;
        berth_code code;
        const char *message;
    } rows[] = {{"opencl:0", unordered, 0, BERTH_INCOMPATIBLE, "in order"},
                {"opencl:0", plain, 1, BERTH_INCOMPATIBLE, "profiling"},
                {"cpu:0", plain, 0, BERTH_UNSUPPORTED, "cpu devices take no queue"},
                {"opencl:1", plain, 0, BERTH_INVALID_ARGUMENT, "opencl:1"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
        berth_session *session = NULL;
        berth_status status = open_on(rows[i].name, rows[i].queue, rows[i].profile, &session);
        cr_assert_eq(berth_status_code(status), rows[i].code, "%s", berth_status_message(status));
        cr_assert(strstr(berth_status_message(status), rows[i].message), "%s",
                  berth_status_message(status));
        berth_status_free(status);
        cr_assert_null(session);
    }
    p_clReleaseCommandQueue(plain);
    p_clReleaseCommandQueue(unordered);
    p_clReleaseContext(context);
}
