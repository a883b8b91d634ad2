#include "toolkit/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

typedef struct asker {
    berth_arena *arena;
    const berth_what_if_options *options;
    const berth_multi_target *target;
    const berth_plan *plan;
    berth_what_if_report *report;
    BERTH_VEC(berth_what_if_item) items;
} asker;

// ---- what is tried ------------------------------------------------------------------------------

static void add(asker *a, berth_target_change change, const char *what) {
    berth_target_change *kept = berth_arena_copy(a->arena, &change, sizeof(change));
    berth_vec_push(a->arena, &a->items, (berth_what_if_item){.what = what, .change = kept});
}

// "gpu0 and 3 like it".
static const char *and_others(const asker *a, const char *name, uint32_t count) {
    if (count == 1) return name;
    return berth_arena_printf(a->arena, "%s and %u like it", name, count - 1);
}

static void ask_pins(asker *a) {
    for (uint32_t i = 0; i < a->target->pin_count; ++i) {
        const berth_target_pin *pin = &a->target->pins[i];
        add(a, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_PIN, .index = i},
            berth_arena_printf(a->arena, "without the pin %s=%s", pin->match,
                               a->target->devices[pin->device].name));
    }
}

// Of the same target, in memories that are alike.
static bool devices_alike(const berth_multi_target *target, uint32_t a, uint32_t b) {
    const berth_target_device *x = &target->devices[a];
    const berth_target_device *y = &target->devices[b];
    return !x->host_only && !y->host_only &&
           berth_hash128_equal(x->target->hash, y->target->hash) &&
           berth_multi_target_memories_alike(target, x->own_memory, y->own_memory);
}

static double busy_ns(const asker *a, uint32_t device) {
    double sum = 0;
    for (uint32_t i = 0; i < a->plan->entry_count; ++i)
        if (a->plan->entries[i].device == device) sum += a->plan->entries[i].time_ns;
    return sum;
}

static void ask_devices(asker *a) {
    const berth_multi_target *target = a->target;
    uint32_t computing = 0;
    for (uint32_t d = 0; d < target->device_count; ++d) computing += !target->devices[d].host_only;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        uint32_t first = 0, count = 0, busiest = d;
        while (first < d && !devices_alike(target, first, d)) ++first;
        if (first < d || target->devices[d].host_only) continue;
        for (uint32_t k = d; k < target->device_count; ++k) {
            if (!devices_alike(target, d, k)) continue;
            ++count;
            if (busy_ns(a, k) > busy_ns(a, busiest)) busiest = k;
        }
        const char *name = target->devices[d].name;
        add(a, (berth_target_change){.kind = BERTH_CHANGE_TWIN, .index = d},
            berth_arena_printf(a->arena, "one more device like %s", name));
        if (computing > 1)
            add(a, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_DEVICE, .index = busiest},
                berth_arena_printf(a->arena, "without %s%s", target->devices[busiest].name,
                                   count > 1 ? ", the busiest of its like" : ""));
    }
}

static void ask_links(asker *a) {
    const berth_multi_target *target = a->target;
    for (uint32_t i = 0; i < target->link_count; ++i) {
        uint32_t first = 0, count = 0;
        while (first < i && !berth_multi_target_links_alike(target, first, i)) ++first;
        if (first < i) continue;
        for (uint32_t k = i; k < target->link_count; ++k)
            count += berth_multi_target_links_alike(target, i, k);
        const berth_target_link *link = &target->links[i];
        const char *name = berth_arena_printf(a->arena, "%s-%s", target->memories[link->from].name,
                                              target->memories[link->to].name);
        add(a, (berth_target_change){.kind = BERTH_CHANGE_LINKS, .index = i, .factor = 2},
            berth_arena_printf(a->arena, "link %s twice as fast", and_others(a, name, count)));
    }
}

static const char *bytes_text(const asker *a, uint64_t bytes) {
    char text[32];
    berth_format_bytes(bytes, text);
    return berth_arena_strdup(a->arena, text);
}

static void ask_capacity(asker *a, uint32_t memory, const char *name) {
    uint64_t bytes = a->target->memories[memory].budget_bytes;
    if (bytes == 0) return;  // not known
    add(a, (berth_target_change){.kind = BERTH_CHANGE_CAPACITY, .index = memory, .factor = 2},
        berth_arena_printf(a->arena, "%s more in memory %s", bytes_text(a, bytes), name));
    add(a, (berth_target_change){.kind = BERTH_CHANGE_CAPACITY, .index = memory, .factor = 0.5},
        berth_arena_printf(a->arena, "%s less in memory %s", bytes_text(a, bytes / 2), name));
}

static void ask_memories(asker *a) {
    const berth_multi_target *target = a->target;
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        uint32_t first = 0, count = 0;
        if (strcmp(target->memories[m].scope, "global") != 0)
            continue;  // of a chip that is as it is
        while (first < m && !berth_multi_target_memories_alike(target, first, m)) ++first;
        if (first < m) continue;
        for (uint32_t k = m; k < target->memory_count; ++k)
            count += berth_multi_target_memories_alike(target, m, k);
        const char *name = and_others(a, target->memories[m].name, count);
        add(a, (berth_target_change){.kind = BERTH_CHANGE_BANDWIDTH, .index = m, .factor = 2},
            berth_arena_printf(a->arena, "memory %s twice as fast", name));
        ask_capacity(a, m, name);
    }
}

static void ask_strategy(asker *a) {
    if (strcmp(a->plan->strategy, "default") != 0) return;
    berth_vec_push(a->arena, &a->items, (berth_what_if_item){.what = "the strategy auto"});
}

// ---- the plans ----------------------------------------------------------------------------------

static double value_of(const berth_plan *plan) {
    return plan->valued ? plan->value : plan->predicted_ns;
}

// Whether every plan for the target as it is one for the changed target, too, and no slower.
static bool only_better(const berth_target_change *change) {
    if (!change) return false;
    return change->kind != BERTH_CHANGE_WITHOUT_DEVICE &&
           (change->kind < BERTH_CHANGE_LINKS || change->factor >= 1);
}

static berth_status load(const asker *a, const berth_what_if_item *item, berth_arena *scratch,
                         berth_model **out_model) {
    berth_multi_target *changed = NULL;
    berth_model_options options = *a->options->model;
    options.multi_target = a->target;
    options.compile.log = (berth_log){NULL, NULL};
    options.compile.progress = NULL;
    if (item->change) {
        BERTH_TRY(berth_multi_target_change(scratch, a->target, item->change, &changed));
        options.multi_target = changed;
    } else {
        options.compile.strategy = "auto";
    }
    return berth_model_load(a->options->path, &options, out_model);
}

static const char *first_line(const asker *a, const char *text) {
    return berth_arena_strndup(a->arena, text, strcspn(text, "\n"));
}

// Whether an error says that the changed machine cannot do it. A memory of the target that is too small
// is no lack of memory here, and a file that cannot be read says nothing of the machine.
static bool about_machine(berth_status status) {
    switch (berth_status_code(status)) {
    case BERTH_OUT_OF_MEMORY: return status != berth_status_oom();
    case BERTH_INVALID_ARGUMENT:
    case BERTH_FAILED_PRECONDITION:
    case BERTH_OUT_OF_RANGE:
    case BERTH_UNSUPPORTED: return true;
    default: return false;
    }
}

static berth_status plan(asker *a, berth_what_if_item *item) {
    berth_model *model = NULL;
    berth_arena *scratch = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &scratch));
    berth_status status = load(a, item, scratch, &model);
    if (status && about_machine(status)) {
        item->problem = first_line(a, berth_status_message(status));
        item->gain = -INFINITY;
        berth_status_free(status);
        status = BERTH_OK;
    }
    if (model) {
        const berth_plan *changed = berth_model_plan(model);
        bool searched = strcmp(changed->strategy, "default") != 0;
        item->value = value_of(changed);
        item->gain = a->report->before > 0 ? 1 - item->value / a->report->before : 0;
        if (searched && only_better(item->change)) item->gain = fmax(item->gain, 0);
    }
    berth_model_destroy(model);
    berth_arena_destroy(scratch);
    return status;
}

static int by_gain(const void *a, const void *b) {
    const berth_what_if_item *x = a;
    const berth_what_if_item *y = b;
    if (x->gain != y->gain) return x->gain < y->gain ? 1 : -1;
    return strcmp(x->what, y->what);
}

static berth_status ask(void *user) {
    asker *a = user;
    int64_t limit_ns = a->options->time_limit_ns > 0 ? a->options->time_limit_ns : -1;
    int64_t deadline_ns = berth_clock_deadline_ns(berth_clock_ns(), limit_ns);
    ask_strategy(a);
    ask_pins(a);
    ask_devices(a);
    ask_links(a);
    ask_memories(a);
    uint32_t done = 0;
    for (; done < a->items.count && berth_clock_ns() < deadline_ns; ++done) {
        if (a->options->progress)
            a->options->progress(a->options->progress_user, a->items.data[done].what, done,
                                 a->items.count);
        BERTH_TRY(plan(a, &a->items.data[done]));
    }
    a->report->items = a->items.data;
    a->report->count = done;
    a->report->left_out = a->items.count - done;
    if (done) qsort(a->items.data, done, sizeof(*a->items.data), by_gain);
    return BERTH_OK;
}

berth_status berth_what_if(berth_arena *arena, const berth_what_if_options *options,
                           berth_what_if_report *out_report) {
    const berth_plan *before = berth_model_plan(options->before);
    *out_report = (berth_what_if_report){.before = value_of(before),
                                         .unit = before->valued ? before->unit : "ns"};
    asker a = {.arena = arena,
               .options = options,
               .target = berth_model_target(options->before),
               .plan = before,
               .report = out_report};
    return berth_arena_try(arena, ask, &a);
}
