// Changes of a MultiTarget: in the tree of its canonical form, which then becomes a target on the same
// way as one that was read.
#include "target/change.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

// ---- what is alike ------------------------------------------------------------------------------

// Whether the same number of devices of each target reach both: devices that share a target count
// for each other.
static bool reached_alike(const berth_multi_target *target, berth_bits a, berth_bits b) {
    if (berth_bits_equal(a, b)) return true;
    for (uint32_t i = 0; i < target->device_count; ++i) {
        int balance = 0;
        const berth_hash128 hash = target->devices[i].target->hash;
        for (uint32_t k = 0; k < target->device_count; ++k)
            if (berth_hash128_equal(target->devices[k].target->hash, hash))
                balance += (int)berth_bits_has(a, k) - (int)berth_bits_has(b, k);
        if (balance != 0) return false;
    }
    return true;
}

bool berth_multi_target_memories_alike(const berth_multi_target *target, uint32_t a, uint32_t b) {
    const berth_target_memory *x = &target->memories[a];
    const berth_target_memory *y = &target->memories[b];
    return strcmp(x->scope, y->scope) == 0 && x->capacity_bytes == y->capacity_bytes &&
           x->budget_bytes == y->budget_bytes &&
           x->bandwidth_bytes_per_s == y->bandwidth_bytes_per_s && x->latency_ns == y->latency_ns &&
           x->holds_constants == y->holds_constants &&
           reached_alike(target, x->reached_by, y->reached_by);
}

bool berth_multi_target_links_alike(const berth_multi_target *target, uint32_t a, uint32_t b) {
    const berth_target_link *x = &target->links[a];
    const berth_target_link *y = &target->links[b];
    if (x->bandwidth_bytes_per_s != y->bandwidth_bytes_per_s || x->latency_ns != y->latency_ns ||
        x->duplex != y->duplex)
        return false;
    return (berth_multi_target_memories_alike(target, x->from, y->from) &&
            berth_multi_target_memories_alike(target, x->to, y->to)) ||
           (berth_multi_target_memories_alike(target, x->from, y->to) &&
            berth_multi_target_memories_alike(target, x->to, y->from));
}

// ---- the changes --------------------------------------------------------------------------------

typedef struct changer {
    berth_arena *arena;  // of the result
    const berth_multi_target *target;
    const berth_target_change *change;
    berth_target__parse parse;
    json *root;
    berth_multi_target *result;
} changer;

static json *item(const changer *c, const char *list, uint32_t index) {
    return berth_target__json_get(c->root, list)->items.data[index];
}

static void scale_real(const changer *c, json *object, double factor) {
    static const char key[] = "bandwidth_bytes_per_s";
    double value = berth_target__json_get(object, key)->real * factor;
    berth_target__json_set(c->parse.scratch, object, key,
                           berth_target__json_real(c->parse.scratch, value));
}

static void scale_links(const changer *c) {
    for (uint32_t i = 0; i < c->target->link_count; ++i)
        if (berth_multi_target_links_alike(c->target, c->change->index, i))
            scale_real(c, item(c, "links", i), c->change->factor);
}

static void scale_bandwidth(const changer *c) {
    for (uint32_t i = 0; i < c->target->memory_count; ++i)
        if (berth_multi_target_memories_alike(c->target, c->change->index, i))
            scale_real(c, item(c, "memories", i), c->change->factor);
}

// At least one alignment, at most what a target may say (memory.c).
static int64_t scaled_bytes(uint64_t bytes, double factor, uint32_t alignment_bytes) {
    double blocks = fmin((double)bytes * factor / alignment_bytes, 1e18);
    double aligned = (double)(int64_t)blocks * alignment_bytes;
    return (int64_t)fmin(fmax(aligned, alignment_bytes), 1e18);
}

static void scale_capacity(const changer *c) {
    berth_arena *arena = c->parse.scratch;
    json *budgets = berth_target__json_get(c->root, "budgets");
    for (uint32_t i = 0; i < c->target->memory_count; ++i) {
        const berth_target_memory *memory = &c->target->memories[i];
        if (!berth_multi_target_memories_alike(c->target, c->change->index, i)) continue;
        int64_t bytes =
            scaled_bytes(memory->capacity_bytes, c->change->factor, memory->alignment_bytes);
        int64_t budget =
            scaled_bytes(memory->budget_bytes, c->change->factor, memory->alignment_bytes);
        berth_target__json_set(arena, item(c, "memories", i), "capacity_bytes",
                               berth_target__json_int(arena, bytes));
        if (memory->budget_bytes != memory->capacity_bytes)
            berth_target__json_set(arena, budgets, memory->name,
                                   berth_target__json_int(arena, budget));
    }
}

static void remove_pin(const changer *c) {
    json *pins = berth_target__json_get(c->root, "pins");
    for (uint32_t i = c->change->index; i + 1 < pins->items.count; ++i)
        pins->items.data[i] = pins->items.data[i + 1];
    pins->items.count--;
}

static bool drives(const berth_multi_target *target, uint32_t device) {
    for (uint32_t m = 0; m < target->machine_count; ++m)
        if (target->machines[m].host == device) return true;
    return false;
}

static void remove_device(changer *c) {
    uint32_t count = c->target->device_count;
    bool *kept = berth_arena_new_array(c->parse.scratch, bool, count);
    for (uint32_t i = 0; i < count; ++i) kept[i] = i != c->change->index;
    berth_target__drop_pins(c->root, kept);
    if (drives(c->target, c->change->index)) {
        berth_target__json_set(c->parse.scratch, item(c, "devices", c->change->index), "host_only",
                               berth_target__json_bool(c->parse.scratch, true));
        kept[c->change->index] = true;
    }
    if (c->target->default_device == c->change->index)
        berth_target__json_set(c->parse.scratch, c->root, "default_device", NULL);
    berth_target__keep_devices(&c->parse, c->root, kept);
}

static void keep_machine(changer *c) {
    berth_arena *arena = c->parse.scratch;
    const berth_multi_target *target = c->target;
    bool *kept = berth_arena_new_array(arena, bool, target->device_count);
    for (uint32_t i = 0; i < target->device_count; ++i) {
        kept[i] = target->devices[i].machine == c->change->index;
        berth_target__json_set(arena, item(c, "devices", i), "machine", NULL);
    }
    const char *host = target->devices[target->machines[c->change->index].host].name;
    berth_target__json_set(arena, c->root, "machines", NULL);
    berth_target__json_set(arena, c->root, "host", berth_target__json_string(arena, host));
    if (!kept[target->default_device])
        berth_target__json_set(arena, c->root, "default_device", NULL);
    berth_target__keep_devices(&c->parse, c->root, kept);
}

// ---- one more -----------------------------------------------------------------------------------

// NAME_2, NAME_3, ...: the first that no item of the list has.
static const char *free_name(const changer *c, const char *list, const char *name) {
    const json *items = berth_target__json_get(c->root, list);
    for (uint32_t number = 2;; ++number) {
        const char *wanted = berth_arena_printf(c->parse.scratch, "%s_%u", name, number);
        uint32_t i = 0;
        while (i < items->items.count &&
               strcmp(berth_target__text_of(items->items.data[i], "name"), wanted) != 0)
            ++i;
        if (i == items->items.count) return wanted;
    }
}

static void set_text(const changer *c, json *object, const char *key, const char *text) {
    berth_target__json_set(c->parse.scratch, object, key,
                           berth_target__json_string(c->parse.scratch, text));
}

// KIND:N where the device is called so, else a name of its own.
static const char *twin_name(const changer *c) {
    const berth_target_device *device = &c->target->devices[c->change->index];
    const char *kind = berth_device_kind_name(device->target->kind);
    const char *own = berth_arena_printf(c->parse.scratch, "%s:%u", kind, device->virtual_id);
    if (strcmp(own, device->name) != 0) return free_name(c, "devices", device->name);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->target->device_count; ++i)
        count += c->target->devices[i].target->kind == device->target->kind;
    return berth_arena_printf(c->parse.scratch, "%s:%u", kind, count);
}

// A bus that is called after the ends of its link is one of its own.
static void link_twin(const changer *c, const json *link, const char *from, const char *to) {
    berth_arena *arena = c->parse.scratch;
    json *copy = berth_target__json_clone(arena, link);
    const char *own = berth_arena_printf(arena, "%s-%s", berth_target__text_of(link, "from"),
                                         berth_target__text_of(link, "to"));
    if (strcmp(berth_target__text_of(link, "bus"), own) == 0)
        set_text(c, copy, "bus", berth_arena_printf(arena, "%s-%s", from, to));
    set_text(c, copy, "from", from);
    set_text(c, copy, "to", to);
    berth_target__json_push(arena, berth_target__json_get(c->root, "links"), copy);
}

// Links of the doubled memory `m`, and the fastest one to another like it also between the two.
static void link_memory(const changer *c, uint32_t m, const char *twin) {
    const berth_multi_target *target = c->target;
    uint32_t between = BERTH_NO_INDEX;
    for (uint32_t i = 0; i < target->link_count; ++i) {
        const berth_target_link *link = &target->links[i];
        if (link->from != m && link->to != m) continue;
        uint32_t other = link->from == m ? link->to : link->from;
        const char *name = target->memories[other].name;
        link_twin(c, item(c, "links", i), link->from == m ? twin : name,
                  link->from == m ? name : twin);
        if (!berth_multi_target_memories_alike(target, m, other)) continue;
        if (between == BERTH_NO_INDEX ||
            link->bandwidth_bytes_per_s > target->links[between].bandwidth_bytes_per_s)
            between = i;
    }
    if (between != BERTH_NO_INDEX)
        link_twin(c, item(c, "links", between), target->memories[m].name, twin);
}

static void add_twin(const changer *c) {
    berth_arena *arena = c->parse.scratch;
    uint32_t device = c->change->index;
    const char *name = twin_name(c);
    json *copy = berth_target__json_clone(arena, item(c, "devices", device));
    set_text(c, copy, "name", name);
    berth_target__json_push(arena, berth_target__json_get(c->root, "devices"), copy);
    json *memories = berth_target__json_get(c->root, "memories");
    for (uint32_t m = 0; m < c->target->memory_count; ++m) {
        berth_bits reached_by = c->target->memories[m].reached_by;
        if (!berth_bits_has(reached_by, device)) continue;
        json *memory = memories->items.data[m];
        if (berth_bits_is_single(reached_by) && !drives(c->target, device)) {
            memory = berth_target__json_clone(arena, memory);
            const char *twin = free_name(c, "memories", c->target->memories[m].name);
            set_text(c, memory, "name", twin);
            berth_target__json_set(arena, memory, "reached_by", berth_target__json_array(arena));
            berth_target__json_push(arena, memories, memory);
            link_memory(c, m, twin);
        }
        berth_target__json_push(arena, berth_target__json_get(memory, "reached_by"),
                                berth_target__json_string(arena, name));
    }
}

// ---- the way ------------------------------------------------------------------------------------

static berth_status check(const berth_multi_target *target, const berth_target_change *change) {
    const uint32_t counts[] = {target->pin_count,     target->device_count, target->device_count,
                               target->machine_count, target->link_count,   target->memory_count,
                               target->memory_count};
    if (change->index >= counts[change->kind])
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a change of number %u, but the target has %u of these",
                                 change->index, counts[change->kind]);
    bool scales = change->kind >= BERTH_CHANGE_LINKS;
    if (scales && !(change->factor > 0 && change->factor <= 1e6))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "a change by the factor %g",
                                 change->factor);
    return BERTH_OK;
}

static berth_status run_change(void *user) {
    changer *c = user;
    static const berth_target_options none = {0};
    c->parse = (berth_target__parse){
        .arena = c->arena, .scratch = berth_arena_create_child(c->arena), .options = &none};
    c->root = berth_target__multi_json(c->parse.scratch, c->target);
    switch (c->change->kind) {
    case BERTH_CHANGE_WITHOUT_PIN: remove_pin(c); break;
    case BERTH_CHANGE_WITHOUT_DEVICE: remove_device(c); break;
    case BERTH_CHANGE_TWIN: add_twin(c); break;
    case BERTH_CHANGE_TO_MACHINE: keep_machine(c); break;
    case BERTH_CHANGE_LINKS: scale_links(c); break;
    case BERTH_CHANGE_BANDWIDTH: scale_bandwidth(c); break;
    case BERTH_CHANGE_CAPACITY: scale_capacity(c); break;
    }
    berth_target__json_locate(c->parse.scratch, c->root, "");
    c->result = berth_target__multi(&c->parse, c->root);
    berth_status status = BERTH_OK;
    if (!c->result)
        status = berth_status_make(BERTH_FAILED_PRECONDITION, "%s",
                                   c->parse.diagnostics.data[0].message);
    berth_arena_destroy(c->parse.scratch);
    return status;
}

berth_status berth_multi_target_change(berth_arena *arena, const berth_multi_target *target,
                                       const berth_target_change *change,
                                       berth_multi_target **out_target) {
    *out_target = NULL;
    BERTH_TRY(check(target, change));
    changer c = {.arena = arena, .target = target, .change = change};
    BERTH_TRY(berth_arena_try(arena, run_change, &c));
    *out_target = c.result;
    return BERTH_OK;
}
