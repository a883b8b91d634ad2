// Simulated schedules whose ends can be told by hand.
#include <criterion/criterion.h>

#include "planner/simulate.h"
#include "tests/check.h"

static const uint32_t after_first[] = {0};

// A task of 3 on one queue and resource, one of 4 on another that waits for it or not.
static berth_sim_result simulate(berth_arena *arena, bool waits, bool one_resource,
                                 berth_sim_load load) {
    berth_sim_task tasks[] = {{.queue = 0, .resource = 0, .ns = 3},
                              {.queue = 1,
                               .resource = !one_resource,
                               .ns = 4,
                               .waits = after_first,
                               .wait_count = waits}};
    berth_sim_schedule schedule = {tasks, 2, 2, 2};
    berth_sim_result result;
    assert_ok(berth_simulate(arena, &schedule, &load, &result));
    return result;
}

Test(simulate, one_request) {
    berth_arena *arena = NULL;
    berth_sim_load one = {.requests = 1, .streams = 1};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    cr_expect_eq(simulate(arena, false, false, one).end_ns, 4);  // side by side
    cr_expect_eq(simulate(arena, true, false, one).end_ns, 7);   // one after the other
    cr_expect_eq(simulate(arena, false, true, one).end_ns, 7);   // in turn
    berth_arena_destroy(arena);
}

Test(simulate, requests_queue_and_streams_overlap) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    // One session: one request after the other. The last of three waits for two.
    berth_sim_result r =
        simulate(arena, true, false, (berth_sim_load){.requests = 3, .streams = 1});
    cr_expect_eq(r.end_ns, 21);
    cr_expect_eq(r.latency_ns[2], 21);
    cr_expect_eq(r.busy_ns[0], 9);
    cr_expect_eq(r.busy_ns[1], 12);
    // Two: the second request's first task beside the first one's second; the pace is the longest.
    r = simulate(arena, true, false, (berth_sim_load){.requests = 3, .streams = 2});
    cr_expect_eq(r.end_ns, 3 + 3 * 4);
    // Arrivals further apart than a request takes: nobody waits.
    r = simulate(arena, true, false,
                 (berth_sim_load){.requests = 3, .streams = 1, .interval_ns = 10});
    cr_expect_eq(r.end_ns, 27);
    for (int i = 0; i < 3; ++i) cr_expect_eq(r.latency_ns[i], 7);
    // Closer: each waits 2 more than the one before.
    r = simulate(arena, true, false,
                 (berth_sim_load){.requests = 3, .streams = 1, .interval_ns = 5});
    for (int i = 0; i < 3; ++i) cr_expect_eq(r.latency_ns[i], 7 + 2 * i);
    berth_arena_destroy(arena);
}

// The second queue begins 2 after what it waits for; the first goes on 1 after it.
Test(simulate, handing_over_takes_time_of_both) {
    berth_arena *arena = NULL;
    berth_sim_load one = {.requests = 1, .streams = 1};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const berth_sim_task tasks[] = {
        {.queue = 0, .resource = 0, .ns = 3, .waking_ns = 1},
        {.queue = 1, .resource = 1, .ns = 4, .waits = after_first, .wait_count = 1, .woken_ns = 2},
        {.queue = 0, .resource = 0, .ns = 1}};
    berth_sim_schedule schedule = {tasks, 3, 2, 2};
    berth_sim_result result;
    assert_ok(berth_simulate(arena, &schedule, &one, &result));
    cr_expect_eq(result.events[1].start_ns, 5);
    cr_expect_eq(result.events[2].start_ns, 4);
    cr_expect_eq(result.end_ns, 9);
    berth_arena_destroy(arena);
}

// Stages of two tasks each: what a request does on a device is done in one piece, so the stages of two requests overlap.
Test(simulate, stages_of_several_tasks_overlap) {
    static const uint32_t after_stage[] = {1};
    const berth_sim_task tasks[] = {
        {.queue = 0, .resource = 0, .ns = 1},
        {.queue = 0, .resource = 0, .ns = 1},
        {.queue = 1, .resource = 1, .ns = 2, .waits = after_stage, .wait_count = 1},
        {.queue = 1, .resource = 1, .ns = 2}};
    const berth_sim_schedule schedule = {tasks, 4, 2, 2};
    const berth_sim_load load = {.requests = 4, .streams = 2};
    berth_arena *arena = NULL;
    berth_sim_result r;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_simulate(arena, &schedule, &load, &r));
    cr_expect_eq(r.end_ns, 2 + 4 * 4);          // the second stage never waits
    cr_expect_eq(r.events[4 + 2].start_ns, 6);  // the second request's, after the first one's
    berth_arena_destroy(arena);
}

// The first request's last task waits for a copy until 2.5, when the second one's first task runs; it comes before the
// rest of that, though the device could have begun with the rest long before.
Test(simulate, the_oldest_request_goes_first) {
    static const uint32_t after_copy[] = {1};
    const berth_sim_task tasks[] = {
        {.queue = 0, .resource = 0, .ns = 1},
        {.queue = 1, .resource = 1, .ns = 1.5, .waits = after_first, .wait_count = 1},
        {.queue = 0, .resource = 0, .ns = 1},
        {.queue = 0, .resource = 0, .ns = 1, .waits = after_copy, .wait_count = 1}};
    const berth_sim_schedule schedule = {tasks, 4, 2, 2};
    const berth_sim_load load = {.requests = 2, .streams = 2};
    berth_arena *arena = NULL;
    berth_sim_result r;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_simulate(arena, &schedule, &load, &r));
    cr_expect_eq(r.events[4].start_ns, 2);
    cr_expect_eq(r.events[3].start_ns, 3);
    cr_expect_eq(r.events[4 + 2].start_ns, 4);
    berth_arena_destroy(arena);
}

// Three tasks side by side of 4, 4 and 10. Two that want all of one memory have half each; one that wants a fifth has that.
Test(simulate, memories_serve_only_so_much_at_once) {
    static const struct {
        double part[3];      // of the memory's bandwidth
        uint32_t memory[3];  // that it is
        double end_ns[3];
    } cases[] = {
        {{1, 1, 0}, {0, 0, 0}, {8, 8, 10}},
        {{1, 1, 0}, {0, 1, 0}, {4, 4, 10}},
        {{0.5, 0.5, 0}, {1, 1, 0}, {4, 4, 10}},
        {{1, 1, 0.2}, {0, 0, 0}, {10, 10, 10}},  // two fifths each, until all are done at 10
        // Half each until the first is done at 8; what is left of the last, 6, at its own pace.
        {{1, 0, 1}, {0, 0, 0}, {8, 4, 14}},
    };
    berth_arena *arena = NULL;
    berth_sim_load one = {.requests = 1, .streams = 1};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
        static const double alone_ns[] = {4, 4, 10};
        berth_sim_task tasks[3] = {{0}};
        for (uint32_t t = 0; t < 3; ++t)
            tasks[t] =
                (berth_sim_task){.queue = t,
                                 .resource = t,
                                 .ns = alone_ns[t],
                                 .uses = {{cases[c].memory[t], cases[c].part[t] * alone_ns[t]}}};
        berth_sim_schedule schedule = {tasks, 3, 3, 3};
        berth_sim_result r;
        assert_ok(berth_simulate(arena, &schedule, &one, &r));
        for (uint32_t t = 0; t < 3; ++t)
            cr_expect_float_eq(r.events[t].end_ns, cases[c].end_ns[t], 1e-9, "case %zu, %u: %g", c,
                               t, r.events[t].end_ns);
        cr_expect_float_eq(r.busy_ns[0], cases[c].end_ns[0], 1e-9);
    }
    berth_arena_destroy(arena);
}

// A copy that wants all of one memory and half of another, beside a task in either: by half in the scarcer one. A task that wants
// a tenth there is not slowed down.
Test(simulate, copies_take_their_part_of_both_memories) {
    static const struct {
        double part;  // of memory 1 that the second task wants
        double end_ns[3];
    } cases[] = {{0, {8, 4, 8}}, {0.1, {8, 4, 8}}, {1, {8, 8, 8}}};
    berth_arena *arena = NULL;
    berth_sim_load one = {.requests = 1, .streams = 1};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
        const berth_sim_task tasks[] = {
            {.queue = 0, .resource = 0, .ns = 4, .uses = {{0, 4}, {1, 2}}},
            {.queue = 1, .resource = 1, .ns = 4, .uses = {{1, 4 * cases[c].part}}},
            {.queue = 2, .resource = 2, .ns = 4, .uses = {{0, 4}}}};
        berth_sim_schedule schedule = {tasks, 3, 3, 3};
        berth_sim_result r;
        assert_ok(berth_simulate(arena, &schedule, &one, &r));
        for (uint32_t t = 0; t < 3; ++t)
            cr_expect_float_eq(r.events[t].end_ns, cases[c].end_ns[t], 1e-9, "case %zu, %u: %g", c,
                               t, r.events[t].end_ns);
    }
    berth_arena_destroy(arena);
}

Test(simulate, what_cannot_be_is_refused) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    static const uint32_t itself[] = {0};
    berth_sim_task task = {.ns = 1, .waits = itself, .wait_count = 1};
    berth_sim_schedule schedule = {&task, 1, 1, 1};
    berth_sim_result result;
    berth_sim_load load = {.requests = 1, .streams = 1};
    berth_status status = berth_simulate(arena, &schedule, &load, &result);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
    task.wait_count = 0;
    load.requests = BERTH_SIM_EVENT_LIMIT + 1;
    status = berth_simulate(arena, &schedule, &load, &result);
    cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_RANGE);
    berth_status_free(status);
    berth_arena_destroy(arena);
}
