// Plans that take over where a device is not here or is lost, and steps that fail in one request beside
// others: with a driver that has faults (tests/faults/flaky_driver.c). Programs are made by hand.
#include <berth/device.h>
#include <berth/request.h>
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/run/program.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

enum { count = 96 };

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

// y = 6 * x on `kind`, its first or second device.
static berth_program *make_plan(const char *kind, int64_t first_factor) {
    berth_arena *arena = NULL;
    berth_program *program = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, kind);
    uint32_t cpu = builder_device(b, "cpu", 0), device = cpu;
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    if (strcmp(kind, "cpu") == 0) {
        uint32_t part = builder_tensor(b, cpu, count);
        builder_dispatch(b, cpu, "scale", (uint32_t[]){x, part}, 2, first_factor);
        builder_dispatch(b, cpu, "scale", (uint32_t[]){part, y}, 2, 6 / first_factor);
    } else {
        device = builder_device(b, kind, 0);
        uint32_t there = builder_tensor(b, device, count), part = builder_tensor(b, device, count);
        uint32_t result = builder_tensor(b, device, count);
        builder_copy(b, device, x, there);
        builder_dispatch(b, device, "scale", (uint32_t[]){there, part}, 2, first_factor);
        builder_dispatch(b, device, "scale", (uint32_t[]){part, result}, 2, 6 / first_factor);
        builder_copy(b, device, result, y);
    }
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &program));
    return program;
}

// On opencl; else in another way on opencl; else on the cpu.
static berth_program *make_program(void) {
    berth_program *first = make_plan("opencl", 2), *whole = NULL;
    berth_program *fallbacks[] = {make_plan("opencl", 3), make_plan("cpu", 2)};
    assert_ok(berth_program_with_fallbacks(first, fallbacks, 2, &whole));
    berth_program_release(first);
    for (int i = 0; i < 2; ++i) berth_program_release(fallbacks[i]);
    return whole;
}

typedef struct notes {
    atomic_int calls;
    char text[512];
} notes;

static void take_note(void *user, const char *message) {
    notes *n = user;
    if (atomic_fetch_add(&n->calls, 1) == 0)
        strncpy(n->text, message, sizeof(n->text) - 1);  // the rest is 0
}

static berth_session_settings settings_of(notes *n) {
    return (berth_session_settings){.size_bytes = sizeof(berth_session_settings),
                                    .thread_count = 1,
                                    .on_message = take_note,
                                    .message_user = n};
}

// Loads the driver of devices of `kind` that has faults; false: there is none here to wrap.
static bool load(const char *library, const char *fault, const char *value) {
    const char *kind = NULL;
    if (fault) setenv(fault, value, 1);
    assert_ok(berth_driver_load(library, &kind));
    berth_device_list *list = NULL;
    assert_ok(berth_device_list_create(&list));
    bool found = fault && strcmp(fault, "FLAKY_ABSENT") == 0;
    for (uint32_t i = 0; i < berth_device_list_count(list); ++i)
        found |= strcmp(berth_device_list_at(list, i)->kind, kind) == 0;
    berth_device_list_free(list);
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    cr_assert(found || !required || !strstr(required, kind), "no %s device", kind);
    return found;
}

static void fill(const berth_tensor *x, float first) {
    for (int i = 0; i < count; ++i) ((float *)x->data)[i] = first + (float)i;
}

static void check(const berth_tensor *y, float first) {
    for (int i = 0; i < count; ++i)
        cr_assert_eq(((const float *)y->data)[i], 6 * (first + (float)i), "element %d", i);
}

TestSuite(fallback, .timeout = 120);

Test(fallback, a_device_that_is_not_here) {
    if (!load(FLAKY_OPENCL, "FLAKY_ABSENT", "1")) cr_skip("no opencl");
    berth_program *program = make_program();
    berth_session *session = NULL;
    const char *reason = NULL;
    notes n = {0};
    berth_session_settings settings = settings_of(&n);
    assert_ok(berth_session_create(program, &settings, &session));
    cr_assert_eq(berth_session_plan(session, &reason), 2);
    cr_assert(strstr(reason, "no device") && strstr(reason, "fallback 1"), "%s", reason);
    cr_assert_eq(atomic_load(&n.calls), 1);
    cr_assert(strstr(n.text, "fallback 2") && strstr(n.text, "cpu:0") &&
                  strstr(n.text, "no device"),
              "%s", n.text);
    fill(berth_session_input(session, 0), 5);
    assert_ok(berth_session_run(session, -1));
    check(berth_session_output(session, 0), 5);
    cr_assert_eq(berth_session_step_count(session), 2);
    berth_session_destroy(session);
    settings.first_plan_only = 1;
    berth_status status = berth_session_create(program, &settings, &session);
    cr_assert_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    berth_status_free(status);
    cr_assert_null(session);
    berth_program_release(program);
}

// Nobody has loaded what such devices need.
Test(fallback, a_driver_that_is_not_here) {
    berth_arena *arena = NULL;
    berth_program *first = NULL, *fallback = make_plan("cpu", 2), *whole = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "npu");
    uint32_t cpu = builder_device(b, "cpu", 0), npu = builder_device(b, "npu9", 0);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t there = builder_tensor(b, npu, count);
    builder_copy(b, npu, x, there);
    builder_copy(b, npu, there, y);
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &first));
    assert_ok(berth_program_with_fallbacks(first, &fallback, 1, &whole));
    berth_program_release(first);
    berth_program_release(fallback);
    berth_session *session = NULL;
    const char *reason = NULL;
    assert_ok(berth_session_create(whole, NULL, &session));
    cr_assert_eq(berth_session_plan(session, &reason), 1);
    cr_assert(strstr(reason, "no driver for npu9 devices"), "%s", reason);
    fill(berth_session_input(session, 0), 3);
    assert_ok(berth_session_run(session, -1));
    check(berth_session_output(session, 0), 3);
    berth_session_destroy(session);
    berth_program_release(whole);
}

// The run that meets the loss has its result, from the inputs that were there; so have all later ones.
Test(fallback, a_device_that_is_lost) {
    if (!load(FLAKY_OPENCL, "FLAKY_LOSE_AFTER", "3")) cr_skip("no opencl");
    berth_program *program = make_program();
    berth_session *session = NULL;
    const char *reason = NULL;
    notes n = {0};
    berth_session_settings settings = settings_of(&n);
    assert_ok(berth_session_create(program, &settings, &session));
    const berth_tensor *x = berth_session_input(session, 0), *y = berth_session_output(session, 0);
    _Alignas(128) float own_x[count], own_y[count + 1];
    berth_tensor in = *x, out = *y;
    in.data = own_x;
    for (int run = 0; run < 8; ++run) {
        bool own = run % 2;
        out.data = own_y + (run % 4 == 3);  // in place, or not
        fill(own ? &in : x, (float)run);
        assert_ok(own ? berth_session_run_with(session, &in, 1, &out, 1, -1)
                      : berth_session_run(session, -1));
        check(own ? &out : y, (float)run);
        cr_assert_eq(berth_session_plan(session, &reason), run < 2 ? 0 : 2);
        cr_assert_eq(*reason != 0, run >= 2);
    }
    // The first fallback was not tried: it needs the same device.
    cr_assert(strstr(reason, "device lost") && !strstr(reason, "fallback"), "%s", reason);
    cr_assert_eq(atomic_load(&n.calls), 1);
    berth_step_facts facts;
    assert_ok(berth_session_get_step(session, 1, &facts, sizeof(facts)));
    cr_assert_str_eq(facts.device, "cpu:0");
    // A cancel goes to the plan in use: it ends the next run, and no other.
    berth_session_cancel(session);
    berth_status status = berth_session_run(session, -1);
    cr_assert_eq(berth_status_code(status), BERTH_CANCELLED);
    berth_status_free(status);
    assert_ok(berth_session_run(session, -1));
    berth_session_destroy(session);
    berth_program_release(program);
}

Test(fallback, a_loss_without_a_fallback_is_an_error) {
    if (!load(FLAKY_OPENCL, "FLAKY_LOSE_AFTER", "2")) cr_skip("no opencl");
    berth_program *program = make_program();
    berth_session *session = NULL;
    berth_session_settings settings = settings_of(&(notes){0});
    settings.first_plan_only = 1;
    assert_ok(berth_session_create(program, &settings, &session));
    fill(berth_session_input(session, 0), 1);
    assert_ok(berth_session_run(session, -1));
    for (int run = 0; run < 2; ++run) {
        berth_status status = berth_session_run(session, -1);
        cr_assert_eq(berth_status_code(status), BERTH_UNAVAILABLE);
        berth_status_free(status);
    }
    berth_session_destroy(session);
    berth_program_release(program);
}

// ---- memory that runs out -----------------------------------------------------------------------

// Fails once `left` allocations have been given.
typedef struct limited {
    atomic_int left, alive;
} limited;

static void *resize(void *state, void *pointer, size_t old_bytes, size_t new_bytes) {
    limited *l = state;
    (void)old_bytes;
    if (new_bytes == 0) {
        if (pointer) atomic_fetch_sub(&l->alive, 1);
        free(pointer);
        return NULL;
    }
    if (atomic_fetch_sub(&l->left, 1) <= 0) return NULL;
    void *made = realloc(pointer, new_bytes);
    if (!pointer) atomic_fetch_add(&l->alive, 1);
    return made;
}

// At every allocation, of opening the first plan (which is not here), of the fallback, and of what takes
// over: an error that says so, never another plan, and nothing is left behind.
static void run_out(const char *fault, const char *value, int most_runs) {
    if (!load(FLAKY_OPENCL, fault, value)) cr_skip("no opencl");
    berth_program *program = make_program();
    bool passed = false;
    for (int limit = 0; limit < 4000 && !passed; ++limit) {
        limited l = {limit, 0};
        const berth_allocator allocator = {resize, &l};
        notes n = {0};
        berth_session_settings settings = settings_of(&n);
        settings.allocator = &allocator;
        berth_session *session = NULL;
        berth_status status = berth_session_create(program, &settings, &session);
        for (int run = 0; run < most_runs && !status; ++run) {
            fill(berth_session_input(session, 0), (float)run);
            status = berth_session_run(session, -1);
            if (!status) check(berth_session_output(session, 0), (float)run);
        }
        passed = !status;
        if (passed)
            cr_assert_eq(berth_session_plan(session, NULL), 2);
        else
            cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                         berth_status_message(status));
        berth_status_free(status);
        berth_session_destroy(session);
        cr_assert_eq(atomic_load(&l.alive), 0, "limit %d: %d are left", limit,
                     atomic_load(&l.alive));
    }
    cr_assert(passed);
    berth_program_release(program);
}

Test(fallback, memory_runs_out_while_opening) {
    run_out("FLAKY_ABSENT", "1", 1);
}

Test(fallback, memory_runs_out_while_taking_over) {
    run_out("FLAKY_LOSE_AFTER", "2", 3);
}

// ---- requests -----------------------------------------------------------------------------------

enum { request_count = 60 };

typedef struct jobs {
    _Alignas(128) float x[request_count][128];  // rows stay aligned
    _Alignas(128) float y[request_count][128];
    berth_tensor in[request_count], out[request_count];
    berth_request *requests[request_count];
} jobs;

static jobs *submit_all(berth_runner *runner) {
    jobs *j = aligned_alloc(128, sizeof(jobs));
    for (int i = 0; i < request_count; ++i) {
        j->in[i] = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->x[i]};
        j->out[i] = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->y[i]};
        fill(&j->in[i], (float)i);
        const berth_request_call call = {.size_bytes = sizeof(call),
                                         .inputs = &j->in[i],
                                         .input_count = 1,
                                         .outputs = &j->out[i],
                                         .output_count = 1};
        assert_ok(berth_runner_submit(runner, &call, &j->requests[i]));
    }
    return j;
}

static berth_runner *open_runner(berth_program *program, notes *n) {
    const berth_session_settings session = settings_of(n);
    const berth_runner_settings settings = {
        .size_bytes = sizeof(settings), .at_once = 3, .session = &session};
    berth_runner *runner = NULL;
    assert_ok(berth_runner_create(program, &settings, &runner));
    berth_program_release(program);
    return runner;
}

// Requests on their way when the device is lost, those that wait, and those that come later: all have their
// results, and one plan took over for all.
Test(fallback, requests_go_on) {
    if (!load(FLAKY_OPENCL, "FLAKY_LOSE_AFTER", "20")) cr_skip("no opencl");
    notes n = {0};
    const char *reason = NULL;
    berth_runner *runner = open_runner(make_program(), &n);
    cr_assert_eq(berth_runner_plan(runner, &reason), 0);
    cr_assert_str_eq(reason, "");
    for (int round = 0; round < 2; ++round) {
        jobs *j = submit_all(runner);
        for (int i = 0; i < request_count; ++i) {
            assert_ok(berth_request_wait(j->requests[i], -1));
            cr_assert_eq(berth_request_code(j->requests[i]), BERTH_CODE_OK, "%s",
                         berth_request_message(j->requests[i]));
            check(&j->out[i], (float)i);
            berth_request_release(j->requests[i]);
        }
        cr_assert_eq(berth_runner_plan(runner, &reason), 2);
        cr_assert(strstr(reason, "device lost"), "%s", reason);
        free(j);
    }
    cr_assert_eq(atomic_load(&n.calls), 1);
    berth_runner_destroy(runner);
}

// Every 7th batch fails: that request says so, the others have their results, and the runner goes on.
static void fail_beside_others(const char *library, berth_program *program) {
    notes n = {0};
    berth_runner *runner = open_runner(program, &n);
    for (int round = 0; round < 2; ++round) {
        jobs *j = submit_all(runner);
        int failed = 0;
        for (int i = 0; i < request_count; ++i) {
            assert_ok(berth_request_wait(j->requests[i], -1));
            berth_code code = berth_request_code(j->requests[i]);
            if (code == BERTH_CODE_OK)
                check(&j->out[i], (float)i);
            else {
                cr_assert_eq(code, BERTH_IO);
                const char *message = berth_request_message(j->requests[i]);
                cr_assert(strstr(message, "step") && strstr(message, "the kernel fails"), "%s",
                          message);
                failed++;
            }
            berth_request_release(j->requests[i]);
        }
        // One batch with kernels a request.
        cr_assert(failed == request_count / 7 || failed == request_count / 7 + 1, "%d", failed);
        free(j);
    }
    cr_assert_eq(berth_runner_plan(runner, NULL), 0, "%s", library);
    cr_assert_eq(atomic_load(&n.calls), 0);
    berth_runner_destroy(runner);
}

Test(fallback, a_kernel_that_fails_beside_others_on_opencl) {
    if (!load(FLAKY_OPENCL, "FLAKY_FAIL_EVERY", "7")) cr_skip("no opencl");
    fail_beside_others(FLAKY_OPENCL, make_program());
}

Test(fallback, a_kernel_that_fails_beside_others_on_the_cpu) {
    cr_assert(load(FLAKY_CPU, "FLAKY_FAIL_EVERY", "7"));
    fail_beside_others(FLAKY_CPU, make_plan("cpu", 3));
}

// ---- programs with fallbacks --------------------------------------------------------------------

Test(fallback, programs_keep_what_they_fall_back_to) {
    berth_program *program = make_program(), *opened = NULL;
    char path[] = "/tmp/berth-fallback-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_program_save(program, path));
    berth_program_release(program);
    assert_ok(berth_program_open(path, &opened));
    cr_assert_eq(berth_program_fallback_count(opened), 2);
    cr_assert_null(berth_program_fallback(opened, 2));
    berth_program *last = berth_program_fallback(opened, 1);
    cr_assert_eq(berth_program_device_count(last), 1);
    cr_assert_str_eq(berth_program_input(last, 0)->name, "x");
    // A session of the fallback alone keeps all of the program.
    berth_session *session = NULL;
    assert_ok(berth_session_create(last, NULL, &session));
    berth_program_release(opened);
    fill(berth_session_input(session, 0), 2);
    assert_ok(berth_session_run(session, -1));
    check(berth_session_output(session, 0), 2);
    berth_session_destroy(session);
    unlink(path);
}

Test(fallback, other_inputs_are_refused) {
    berth_arena *arena = NULL;
    berth_program *other = NULL, *whole = NULL, *first = make_plan("cpu", 2);
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "other");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t x = builder_input(b, cpu, "x", count + 1), y = builder_output(b, cpu, "y", count + 1);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, y}, 2, 6);
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &other));
    berth_status status = berth_program_with_fallbacks(first, &other, 1, &whole);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert(strstr(berth_status_message(status), "inputs[0]"), "%s",
              berth_status_message(status));
    berth_status_free(status);
    cr_assert_null(whole);
    berth_program_release(other);
    berth_program_release(first);
}
