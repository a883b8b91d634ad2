// Random modules survive the text and JSON forms, and parsers every failing allocation.
#include <criterion/criterion.h>
#include <string.h>

#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/ir/random_module.h"
#include "tests/ir/round_trip.h"

typedef struct job {
    berth_arena *arena;
    uint64_t seed;
    berth_module *module;
    berth_strbuf text;
} job;

static berth_status make(void *user) {
    job *j = user;
    j->module = random_module(j->arena, j->seed);
    BERTH_TRY(berth_module_verify(j->module));
    j->text = berth_strbuf_make(j->arena);
    return berth_module_to_text(j->module, NULL, &j->text);
}

static job begin(uint64_t seed) {
    job j = {.seed = seed};
    cr_assert_null(berth_arena_create(berth_allocator_system(), &j.arena));
    berth_status status = berth_arena_try(j.arena, make, &j);
    cr_assert_null(status, "seed %d: %s", (int)seed, berth_status_message(status));
    return j;
}

Test(random, round_trips) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        job j = begin(seed);
        const char *problem = round_trip(j.module, j.arena, true);
        cr_assert_null(problem, "seed %d: %s\n%s", (int)seed, problem, berth_strbuf_text(&j.text));
        berth_arena_destroy(j.arena);
    }
}

typedef berth_status (*read_function)(berth_arena *arena, const char *text, size_t length,
                                      berth_module **out_module);

static berth_status read_text(berth_arena *arena, const char *text, size_t length,
                              berth_module **out_module) {
    return berth_module_parse(arena, text, length, "t", out_module);
}

static berth_status read_json(berth_arena *arena, const char *text, size_t length,
                              berth_module **out_module) {
    return berth_module_from_json_text(arena, text, length, "t", NULL, out_module);
}

// Fails the first, second, ... allocation until reading succeeds: a clear status, nothing leaked.
static void fail_at_every_allocation(const char *text, read_function read) {
    bool done = false;
    for (int64_t at = 1; !done; ++at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = at;
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        if (!status) status = read(arena, text, strlen(text), &module);
        done = !status;
        cr_assert(done || berth_status_code(status) == BERTH_OUT_OF_MEMORY, "allocation %d: %s",
                  (int)at, berth_status_message(status));
        cr_assert(done == (module != NULL));
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(counting.live_count, 0);
    }
}

Test(random, allocation_failures) {
    for (uint64_t seed = 1; seed < 4; ++seed) {
        job j = begin(seed);
        const char *json = NULL;
        cr_assert_null(berth_module_to_json_text(j.arena, j.module, 0, &json));
        fail_at_every_allocation(berth_strbuf_text(&j.text), read_text);
        fail_at_every_allocation(json, read_json);
        berth_arena_destroy(j.arena);
    }
}
