// What stays in a memory and what is read in each run (compiler/package/stream.h), on random problems:
// the room is kept at every step, loads are in order, and the time is that of a simulation of its own.
#include <criterion/criterion.h>
#include <math.h>

#include "compiler/package/stream.h"
#include "tests/check.h"

enum { steps = 24, weight_count = 10, problem_count = 400 };

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t draw(dice *d, uint32_t bound) {
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % bound;
}

typedef struct sample {
    berth_stream_problem problem;
    uint64_t live[steps];
    double step_ns[steps];
    berth_stream_weight weights[weight_count];
    berth_stream_load loads[2 * weight_count];
} sample;

static int by_first(const void *left, const void *right) {
    const berth_stream_load *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static void make_sample(sample *s, berth_arena *arena, uint64_t seed) {
    dice d = {seed * 31 + 7};
    *s = (sample){0};
    s->problem = (berth_stream_problem){.arena = arena,
                                        .step_count = steps,
                                        .live = s->live,
                                        .step_ns = s->step_ns,
                                        .weights = s->weights,
                                        .weight_count = weight_count,
                                        .loads = s->loads,
                                        .burden = draw(&d, 2) ? 0 : 0.5};
    for (int i = 0; i < steps; ++i) {
        s->live[i] = 64 * draw(&d, 20);
        s->step_ns[i] = draw(&d, 100);
    }
    for (uint32_t w = 0; w < weight_count; ++w) {
        s->weights[w] = (berth_stream_weight){
            .size_bytes = 64 * (1 + draw(&d, 30)), .first = draw(&d, 12), .load_ns = draw(&d, 200)};
        uint32_t first = s->weights[w].first;
        s->weights[w].load_count = 1 + draw(&d, 2);
        for (uint32_t k = 0; k < s->weights[w].load_count; ++k) {
            uint32_t last = first + draw(&d, 3);
            s->loads[s->problem.load_count++] = (berth_stream_load){w, first, last, first};
            first = last + 4;
        }
    }
    qsort(s->loads, s->problem.load_count, sizeof(*s->loads), by_first);
}

// The most bytes at any step.
static uint64_t needed(const sample *s) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < steps; ++i) {
        uint64_t bytes = s->live[i];
        for (uint32_t w = 0; w < weight_count; ++w)
            if (s->weights[w].resident) bytes += s->weights[w].size_bytes;
        for (uint32_t k = 0; k < s->problem.load_count; ++k) {
            const berth_stream_load *load = &s->loads[k];
            if (!s->weights[load->weight].resident && load->start <= i && i <= load->last)
                bytes += s->weights[load->weight].size_bytes;
        }
        if (bytes > most) most = bytes;
    }
    return most;
}

// Two queues in order: a load begins when the one before is done and the step before its place is; a
// step when the one before is done and all its loads are.
static double simulate(const sample *s) {
    double ends[steps] = {0}, load_end = 0, burden = 0, now = 0;
    double ready[2 * weight_count] = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < steps; ++i) {
        for (; next < s->problem.load_count; ++next) {
            const berth_stream_load *load = &s->loads[next];
            if (s->weights[load->weight].resident) continue;
            if (load->start > i) break;
            load_end = fmax(load_end, i ? ends[i - 1] : 0) + s->weights[load->weight].load_ns;
            burden += s->problem.burden * s->weights[load->weight].load_ns;
            ready[next] = load_end;
        }
        for (uint32_t k = 0; k < next; ++k)
            if (s->loads[k].first == i) now = fmax(now, ready[k]);
        ends[i] = now += s->step_ns[i];
    }
    return now + burden;
}

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(stream, .init = setup, .fini = teardown);

Test(stream, random_problems) {
    uint32_t refused = 0, partly = 0;
    for (uint64_t seed = 0; seed < problem_count; ++seed) {
        sample s;
        make_sample(&s, arena, seed);
        s.problem.room_bytes = UINT64_MAX;
        double least_ns = berth_stream_choose_least(&s.problem);
        uint64_t least = needed(&s);
        cr_expect_float_eq(least_ns, simulate(&s), 1e-6, "seed %llu", (unsigned long long)seed);
        dice d = {seed + 99};
        for (int i = 0; i < 4; ++i) {
            double ns = -1;
            s.problem.room_bytes = least - 64 + 64 * draw(&d, i ? 100 : 2);
            bool done = berth_stream_choose(&s.problem, &ns);
            cr_assert_eq(done, s.problem.room_bytes >= least);
            refused += !done;
            if (!done) continue;
            cr_expect_leq(needed(&s), s.problem.room_bytes, "seed %llu", (unsigned long long)seed);
            cr_expect_float_eq(ns, simulate(&s), 1e-6, "seed %llu", (unsigned long long)seed);
            cr_expect_leq(ns, least_ns * (1 + 1e-9));
            uint32_t stay = 0;
            for (uint32_t w = 0; w < weight_count; ++w) stay += s.weights[w].resident;
            partly += stay > 0 && stay < weight_count;
        }
    }
    cr_expect_gt(refused, 0);
    cr_expect_gt(partly, problem_count / 2);
}

// Three constants of 100 bytes, 100 ns to read, for a kernel of 100 ns each. With room for one, reads
// and kernels take turns; with room for two, every read but the first is beside a kernel (or as good: one
// stays); with room for three nothing is read.
Test(stream, a_second_buffer_hides_loads) {
    static const struct {
        uint64_t room_bytes;
        double ns;
    } cases[] = {{100, 600}, {199, 600}, {200, 400}, {299, 400}, {300, 300}};
    static const uint64_t live[3] = {0};
    static const double step_ns[3] = {100, 100, 100};
    berth_stream_weight weights[3];
    berth_stream_load loads[3];
    for (uint32_t i = 0; i < 3; ++i) {
        weights[i] =
            (berth_stream_weight){.size_bytes = 100, .first = i, .load_count = 1, .load_ns = 100};
        loads[i] = (berth_stream_load){i, i, i, i};
    }
    berth_stream_problem problem = {.arena = arena,
                                    .step_count = 3,
                                    .live = live,
                                    .step_ns = step_ns,
                                    .weights = weights,
                                    .weight_count = 3,
                                    .loads = loads,
                                    .load_count = 3};
    double ns = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        problem.room_bytes = cases[i].room_bytes;
        cr_assert(berth_stream_choose(&problem, &ns));
        cr_expect_float_eq(ns, cases[i].ns, 1e-9, "%llu", (unsigned long long)cases[i].room_bytes);
    }
    problem.room_bytes = 99;
    cr_expect_not(berth_stream_choose(&problem, &ns));
}
