#include "drivers/vta/run.h"

#include <string.h>

#include <stdio.h>

enum { most_instructions = 1 << 21 };  // 32 MiB of them, upstream's largest buffer
enum { counter_count = 4 };

// A token that was given: when, and what is ordered before it.
typedef struct token {
    uint64_t time;
    berth_vta_clock clock;
} token;

// From one unit to a neighbour. The n-th token taken is the n-th given.
typedef struct counter {
    token *tokens;
    uint32_t given, taken;
    uint32_t capacity;  // tokens that the whole stream gives
} counter;

typedef struct unit {
    uint32_t *queue;  // indices in the stream
    uint32_t count, done;
    berth_vta_clock clock;  // ordered before its next instruction
    uint64_t free_at;
} unit;

typedef struct run {
    berth_vta_model *model;
    const berth_vta_dram *dram;
    const berth_vta_run_options *options;
    berth_vta_report *report;
    const uint8_t *stream;
    uint32_t count;
    uint8_t *copy;
    uint32_t *indices;
    unit units[BERTH_VTA_UNIT_COUNT];
    counter counters[counter_count];
    uint32_t finish_count;
    uint64_t port_free_at[BERTH_VTA_UNIT_COUNT];
    berth_vta_timing timing;
    uint64_t random;
} run;

static const char *const order_names[] = {"program",     "load-first", "compute-first",
                                          "store-first", "random",     "time"};

const char *berth_vta_order_name(berth_vta_order order) {
    return order_names[order];
}

// Counters: 0 load to compute, 1 compute to load, 2 compute to store, 3 store to compute.
static counter *given_to_next(run *r, berth_vta_unit u) {
    return &r->counters[u == BERTH_VTA_UNIT_LOAD ? 0 : 2];
}
static counter *given_to_prev(run *r, berth_vta_unit u) {
    return &r->counters[u == BERTH_VTA_UNIT_COMPUTE ? 1 : 3];
}
static counter *taken_from_prev(run *r, berth_vta_unit u) {
    return &r->counters[u == BERTH_VTA_UNIT_COMPUTE ? 0 : 2];
}
static counter *taken_from_next(run *r, berth_vta_unit u) {
    return &r->counters[u == BERTH_VTA_UNIT_LOAD ? 1 : 3];
}

// ---- fetching ----

static berth_status at_instruction(berth_status status, run *r, uint32_t index) {
    if (!status) return BERTH_OK;
    berth_vta_instruction i =
        berth_vta_decode(&r->model->isa, r->stream + (size_t)index * BERTH_VTA_INSTRUCTION_BYTES);
    r->report->instruction = index;
    r->report->fault = r->model->fault;
    return berth_status_prefix(status, "instruction %u (%s)", index,
                               berth_vta_opcode_name(i.opcode));
}

static berth_status check_stream(run *r, uint64_t address, uint64_t count) {
    const berth_vta_dram *dram = r->dram;
    berth_vta_fault *fault = &r->report->fault;
    if (count > most_instructions)
        return berth_vta_fail(fault, BERTH_VTA_FAULT_BAD_ADDRESS,
                              "%llu instructions; a run has at most %d", (unsigned long long)count,
                              most_instructions);
    if (r->options->stream) return BERTH_OK;
    if (address % BERTH_VTA_INSTRUCTION_BYTES != 0)
        return berth_vta_fail(fault, BERTH_VTA_FAULT_BAD_ADDRESS,
                              "the stream at 0x%llx is not aligned to %d bytes",
                              (unsigned long long)address, BERTH_VTA_INSTRUCTION_BYTES);
    if (address < dram->base || address - dram->base > dram->size_bytes ||
        count * BERTH_VTA_INSTRUCTION_BYTES > dram->size_bytes - (address - dram->base))
        return berth_vta_fail(fault, BERTH_VTA_FAULT_BAD_ADDRESS,
                              "%llu instructions at 0x%llx; the device has 0x%llx to 0x%llx",
                              (unsigned long long)count, (unsigned long long)address,
                              (unsigned long long)dram->base,
                              (unsigned long long)(dram->base + dram->size_bytes));
    return BERTH_OK;
}

static berth_vta_instruction decoded(const run *r, uint32_t index) {
    return berth_vta_decode(&r->model->isa,
                            r->stream + (size_t)index * BERTH_VTA_INSTRUCTION_BYTES);
}

// Counts what each unit and counter gets, and checks every instruction by itself.
static berth_status survey(run *r) {
    for (uint32_t i = 0; i < r->count; ++i) {
        berth_vta_instruction decoded_i = decoded(r, i);
        BERTH_TRY(at_instruction(berth_vta_model_check(r->model, &decoded_i), r, i));
        berth_vta_unit u = berth_vta_unit_of(&decoded_i);
        r->units[u].count++;
        if (decoded_i.push_next) given_to_next(r, u)->capacity++;
        if (decoded_i.push_prev) given_to_prev(r, u)->capacity++;
        r->finish_count += decoded_i.opcode == BERTH_VTA_FINISH;
    }
    if (r->finish_count == 0)
        return berth_vta_fail(&r->report->fault, BERTH_VTA_FAULT_NO_FINISH,
                              "none of the %u instructions is FINISH: the run would never be done",
                              r->count);
    return BERTH_OK;
}

static berth_status fetch(run *r, uint64_t address, uint64_t count) {
    BERTH_TRY(check_stream(r, address, count));
    berth_allocator allocator = r->model->allocator;
    // A copy: a stream that writes over itself has been fetched before.
    size_t bytes = (size_t)count * BERTH_VTA_INSTRUCTION_BYTES;
    r->count = (uint32_t)count;
    r->copy = berth_alloc(allocator, bytes + 1);
    r->indices = berth_calloc(allocator, count + 1, sizeof(*r->indices));
    if (!r->copy || !r->indices) return berth_status_oom();
    const uint8_t *given = r->options->stream;
    if (bytes) memcpy(r->copy, given ? given : r->dram->data + (address - r->dram->base), bytes);
    r->stream = r->copy;
    BERTH_TRY(survey(r));
    uint32_t *at = r->indices;
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        r->units[u].queue = at;
        at += r->units[u].count;
        r->units[u].count = 0;
    }
    for (uint32_t i = 0; i < r->count; ++i) {
        berth_vta_instruction decoded_i = decoded(r, i);
        unit *u = &r->units[berth_vta_unit_of(&decoded_i)];
        u->queue[u->count++] = i;
    }
    for (int c = 0; c < counter_count; ++c) {
        r->counters[c].tokens = berth_calloc(allocator, r->counters[c].capacity + 1, sizeof(token));
        if (!r->counters[c].tokens) return berth_status_oom();
    }
    return BERTH_OK;
}

static void release(run *r) {
    berth_allocator allocator = r->model->allocator;
    berth_free(allocator, r->copy, (size_t)r->count * BERTH_VTA_INSTRUCTION_BYTES + 1);
    berth_free(allocator, r->indices, ((size_t)r->count + 1) * sizeof(*r->indices));
    for (int c = 0; c < counter_count; ++c)
        berth_free(allocator, r->counters[c].tokens,
                   ((size_t)r->counters[c].capacity + 1) * sizeof(token));
}

// ---- choosing ----

// The next instruction of a unit, if its tokens are there; and the time when it can start.
typedef struct candidate {
    bool ready;
    uint32_t index;
    uint64_t start;
    bool finish;
} candidate;

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool has_token(const counter *c, uint64_t *inout_start) {
    if (c->taken == c->given) return false;
    *inout_start = later(*inout_start, c->tokens[c->taken].time);
    return true;
}

static candidate look_at(run *r, berth_vta_unit u) {
    unit *unit_u = &r->units[u];
    candidate c = {.start = unit_u->free_at};
    if (unit_u->done == unit_u->count) return c;
    c.index = unit_u->queue[unit_u->done];
    berth_vta_instruction i = decoded(r, c.index);
    c.finish = i.opcode == BERTH_VTA_FINISH;
    c.ready = (!i.pop_prev || has_token(taken_from_prev(r, u), &c.start)) &&
              (!i.pop_next || has_token(taken_from_next(r, u), &c.start));
    return c;
}

static uint64_t next_random(run *r) {  // xorshift, as in model.c
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random;
}

// Smaller is sooner.
static uint64_t rank(run *r, berth_vta_unit u, const candidate *c) {
    if (c->finish) return UINT64_MAX;
    switch (r->options->order) {
    case BERTH_VTA_ORDER_PROGRAM: return c->index;
    case BERTH_VTA_ORDER_LOAD_FIRST: return (uint64_t)u;
    case BERTH_VTA_ORDER_COMPUTE_FIRST: return (uint64_t)(u + 2) % 3;
    case BERTH_VTA_ORDER_STORE_FIRST: return (uint64_t)(u + 1) % 3;
    case BERTH_VTA_ORDER_RANDOM: return next_random(r) >> 1;
    default: return c->start;
    }
}

// False when no unit can go on.
static bool choose(run *r, berth_vta_unit *out_unit, candidate *out_candidate) {
    bool found = false;
    uint64_t best = 0;
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        candidate c = look_at(r, (berth_vta_unit)u);
        if (!c.ready) continue;
        uint64_t rank_u = rank(r, (berth_vta_unit)u, &c);
        if (found && rank_u >= best) continue;
        found = true;
        best = rank_u;
        *out_unit = (berth_vta_unit)u;
        *out_candidate = c;
    }
    return found;
}

// ---- running ----

static void join(berth_vta_clock *clock, const berth_vta_clock *other) {
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u)
        if (other->done[u] > clock->done[u]) clock->done[u] = other->done[u];
}

static void take(counter *c, berth_vta_clock *clock) {
    join(clock, &c->tokens[c->taken].clock);
    c->taken++;
}

static void give(counter *c, const berth_vta_clock *clock, uint64_t time) {
    c->tokens[c->given++] = (token){time, *clock};
}

// The times of an instruction that can start at c->start; they stay 0 without a timing model.
static void pass_time(run *r, berth_vta_unit u, const candidate *c, berth_vta_event *e) {
    if (r->options->order != BERTH_VTA_ORDER_TIME) return;
    unit *unit_u = &r->units[u];
    berth_vta_unit_report *report = &r->report->units[u];
    berth_vta_cost cost = berth_vta_cost_of(&r->timing, &e->decoded, &e->work, &r->model->shape);
    uint64_t *port = &r->port_free_at[r->timing.shared_port ? 0 : u];
    e->ready = unit_u->free_at;
    e->start = e->port = c->start;
    if (cost.port) {
        e->port = later(c->start, *port);
        *port = e->port + cost.port;
    }
    e->end = e->port + cost.port + cost.own;
    unit_u->free_at = e->end;
    report->token_stall += e->start - e->ready;
    report->port_stall += e->port - e->start;
    report->busy += e->end - e->port;
    if (e->decoded.opcode == BERTH_VTA_FINISH) r->report->cycles = e->end;
}

static berth_status note_order(run *r, berth_vta_unit u, const berth_vta_event *e) {
    unit *unit_u = &r->units[u];
    berth_vta_report *report = r->report;
    if (e->decoded.opcode == BERTH_VTA_FINISH) {
        report->unordered_finish = false;  // the last one counts
        for (int other = 0; other < BERTH_VTA_UNIT_COUNT; ++other)
            if (other != BERTH_VTA_UNIT_COMPUTE &&
                unit_u->clock.done[other] < r->units[other].count)
                report->unordered_finish = true;
        return BERTH_OK;
    }
    report->unordered_finish = report->unordered_finish || u == BERTH_VTA_UNIT_COMPUTE;
    if (!r->options->hazards) return BERTH_OK;
    berth_vta_fault fault = BERTH_VTA_FAULT_NONE;
    berth_status status =
        berth_vta_hazards_note(r->options->hazards, r->model, &e->decoded, &unit_u->clock, &fault);
    if (!status || fault == BERTH_VTA_FAULT_NONE) return status;
    bool race = fault == BERTH_VTA_FAULT_RACE;
    if (race && !report->race)
        snprintf(report->first_race, sizeof(report->first_race), "instruction %u (%s): %s",
                 e->instruction, berth_vta_opcode_name(e->decoded.opcode),
                 berth_status_message(status));
    report->race = report->race || race;
    if (r->options->refuse_unordered) {
        r->model->fault = fault;
        return status;
    }
    berth_status_free(status);
    return BERTH_OK;
}

static berth_status step(run *r, berth_vta_unit u, const candidate *c) {
    unit *unit_u = &r->units[u];
    berth_vta_event event = {.instruction = c->index, .unit = u, .decoded = decoded(r, c->index)};
    const berth_vta_instruction *i = &event.decoded;
    if (i->pop_prev) take(taken_from_prev(r, u), &unit_u->clock);
    if (i->pop_next) take(taken_from_next(r, u), &unit_u->clock);
    uint64_t most = r->options->most_micro_ops;
    BERTH_TRY(berth_vta_model_execute(
        r->model, r->dram, i, most ? most - r->report->micro_ops : UINT64_MAX, &event.work));
    r->report->micro_ops += event.work.micro_ops;
    BERTH_TRY(note_order(r, u, &event));
    pass_time(r, u, c, &event);
    unit_u->done++;
    unit_u->clock.done[u] = unit_u->done;
    uint64_t time = event.end + (i->push_prev || i->push_next ? r->timing.token_cycles : 0);
    if (i->push_prev) give(given_to_prev(r, u), &unit_u->clock, time);
    if (i->push_next) give(given_to_next(r, u), &unit_u->clock, time);
    if (r->options->observe && r->options->order == BERTH_VTA_ORDER_TIME)
        r->options->observe(r->options->user, &event);
    return BERTH_OK;
}

// ---- the end ----

static void add_wait(run *r, berth_vta_unit u, char *text, size_t size) {
    size_t length = strlen(text);
    const unit *unit_u = &r->units[u];
    if (unit_u->done == unit_u->count) {
        snprintf(text + length, size - length, "; %s is done with its %u", berth_vta_unit_name(u),
                 unit_u->count);
        return;
    }
    uint32_t index = unit_u->queue[unit_u->done];
    berth_vta_instruction i = decoded(r, index);
    uint64_t unused = 0;
    bool prev = i.pop_prev && !has_token(taken_from_prev(r, u), &unused);
    berth_vta_unit other = (berth_vta_unit)(prev ? u - 1 : u + 1);
    snprintf(text + length, size - length, "; %s waits at instruction %u (%s) for a token from %s",
             berth_vta_unit_name(u), index, berth_vta_opcode_name(i.opcode),
             berth_vta_unit_name(other));
}

static berth_status say_deadlock(run *r) {
    char text[400] = "";
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u)
        add_wait(r, (berth_vta_unit)u, text, sizeof(text));
    return berth_vta_fail(&r->report->fault, BERTH_VTA_FAULT_DEADLOCK, "no unit can go on%s", text);
}

static berth_status check_end(run *r) {
    berth_vta_report *report = r->report;
    uint32_t left = 0;
    for (int c = 0; c < counter_count; ++c)
        left += report->tokens[c] = r->counters[c].given - r->counters[c].taken;
    if (left)
        return berth_vta_fail(&report->fault, BERTH_VTA_FAULT_TOKENS_LEFT,
                              "%u from load to compute, %u from compute to load, %u from compute "
                              "to store, %u from store to compute: the next run would take them",
                              report->tokens[0], report->tokens[1], report->tokens[2],
                              report->tokens[3]);
    if (report->unordered_finish && r->options->refuse_unordered)
        return berth_vta_fail(&report->fault, BERTH_VTA_FAULT_AFTER_FINISH,
                              "FINISH can run while load or store is still working, or is not the "
                              "last instruction of compute: wait for their tokens first");
    return BERTH_OK;
}

static void describe_units(run *r) {
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u) {
        const unit *unit_u = &r->units[u];
        berth_vta_unit_report *report = &r->report->units[u];
        report->count = unit_u->count;
        report->done = unit_u->done;
        report->current = unit_u->done < unit_u->count ? unit_u->queue[unit_u->done] : UINT32_MAX;
    }
}

static berth_status run_all(run *r) {
    for (uint32_t done = 0; done < r->count; ++done) {
        berth_vta_unit u = BERTH_VTA_UNIT_LOAD;
        candidate c;
        if (!choose(r, &u, &c)) return say_deadlock(r);
        BERTH_TRY(at_instruction(step(r, u, &c), r, c.index));
    }
    return check_end(r);
}

berth_status berth_vta_run(berth_vta_model *model, const berth_vta_dram *dram, uint64_t address,
                           uint64_t count, const berth_vta_run_options *options,
                           berth_vta_report *out_report) {
    static const berth_vta_timing unset;
    memset(out_report, 0, sizeof(*out_report));
    out_report->instruction = UINT32_MAX;
    run r = {.model = model,
             .dram = dram,
             .options = options,
             .report = out_report,
             .random = options->seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du,
             .timing = options->timing};
    if (r.random == 0) r.random = 1;
    if (memcmp(&r.timing, &unset, sizeof(unset)) == 0) r.timing = berth_vta_timing_default();
    if (options->hazards) berth_vta_hazards_begin_run(options->hazards);
    model->fault = BERTH_VTA_FAULT_NONE;
    berth_status status = fetch(&r, address, count);
    bool fetched = !status;
    if (fetched) status = run_all(&r);
    if (fetched) describe_units(&r);
    release(&r);
    return status;
}
