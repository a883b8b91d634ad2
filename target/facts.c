// Planning facts of a MultiTarget: devices by name, memories, sharing, routes.
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

uint32_t berth_multi_target_device(const berth_multi_target *target, const char *name) {
    return berth_target__device_named(target, name);
}

uint32_t berth_multi_target_device_of(const berth_multi_target *target, berth_device_kind kind,
                                      uint32_t virtual_id) {
    for (uint32_t i = 0; i < target->device_count; ++i)
        if (target->devices[i].target->kind == kind && target->devices[i].virtual_id == virtual_id)
            return i;
    return BERTH_NO_INDEX;
}

uint32_t berth_multi_target_memory(const berth_multi_target *target, const char *name) {
    for (uint32_t i = 0; i < target->memory_count; ++i)
        if (strcmp(target->memories[i].name, name) == 0) return i;
    return BERTH_NO_INDEX;
}

uint32_t berth_multi_target_memory_meant(const berth_multi_target *target, const char *name) {
    uint32_t memory = berth_multi_target_memory(target, name), found = BERTH_NO_INDEX, count = 0;
    if (memory != BERTH_NO_INDEX) return memory;
    uint32_t device = berth_multi_target_device(target, name);
    if (device != BERTH_NO_INDEX) return target->devices[device].own_memory;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        if (strcmp(berth_device_kind_name(target->devices[d].target->kind), name) != 0) continue;
        found = target->devices[d].own_memory;
        count++;
    }
    return count == 1 ? found : BERTH_NO_INDEX;
}

berth_virtual_device berth_multi_target_virtual_device(const berth_multi_target *target,
                                                       uint32_t device) {
    const berth_target_device *d = &target->devices[device];
    return (berth_virtual_device){
        .device_type = d->target->kind,
        .virtual_id = (int32_t)d->virtual_id,
        .has_target = true,
        .target = d->target->hash,
    };
}

uint32_t berth_multi_target_resolve(const berth_multi_target *target, berth_virtual_device device) {
    if (device.device_type == BERTH_DEVICE_FREE) return BERTH_NO_INDEX;
    device.memory_scope = NULL;
    for (uint32_t i = 0; i < target->device_count; ++i) {
        const berth_target_device *d = &target->devices[i];
        bool other =
            d->target->kind != device.device_type || (device.virtual_id != BERTH_VIRTUAL_ID_FREE &&
                                                      device.virtual_id != (int32_t)d->virtual_id);
        if (!other &&
            !berth_virtual_device_clash(device, berth_multi_target_virtual_device(target, i)))
            return i;
    }
    return BERTH_NO_INDEX;
}

uint32_t berth_multi_target_memory_of(const berth_multi_target *target, uint32_t device,
                                      const char *scope) {
    if (strcmp(scope, "global") == 0) return target->devices[device].own_memory;
    for (uint32_t i = 0; i < target->memory_count; ++i)
        if (berth_bits_has(target->memories[i].reached_by, device) &&
            strcmp(target->memories[i].scope, scope) == 0)
            return i;
    return BERTH_NO_INDEX;
}

static const char *resource_of(const berth_multi_target *target, uint32_t device) {
    const char *own = target->devices[device].target->resource;
    uint32_t host = target->machines[target->devices[device].machine].host;
    return device == host && !*own ? "host" : own;
}

uint32_t berth_multi_target_resource_of(const berth_multi_target *target, uint32_t device) {
    const char *own = resource_of(target, device);
    for (uint32_t d = 0; d < device && *own; ++d)
        if (target->devices[d].machine == target->devices[device].machine &&
            strcmp(resource_of(target, d), own) == 0)
            return d;
    return device;
}

uint32_t berth_multi_target_link_way(const berth_multi_target *target, uint32_t link, bool forth) {
    const berth_target_link *links = target->links;
    uint32_t first = link;
    for (uint32_t i = 0; i < link && *links[link].bus; ++i)
        if (strcmp(links[i].bus, links[link].bus) == 0) {
            first = i;
            break;
        }
    bool apart = first == link && links[link].duplex && !forth;
    return 2 * first + apart;
}

const char *berth_multi_target_bus(const berth_multi_target *target, uint32_t link) {
    const char *bus = target->links[link].bus;
    for (uint32_t i = 0; i < target->link_count && *bus; ++i)
        if (i != link && strcmp(target->links[i].bus, bus) == 0) return bus;
    return "";
}

bool berth_multi_target_share_memory(const berth_multi_target *target, uint32_t a, uint32_t b,
                                     uint32_t *out_memory) {
    uint32_t owns[] = {target->devices[a].own_memory, target->devices[b].own_memory};
    for (int i = 0; i < 2; ++i) {
        berth_bits reached_by = target->memories[owns[i]].reached_by;
        if (!berth_bits_has(reached_by, a) || !berth_bits_has(reached_by, b)) continue;
        if (out_memory) *out_memory = owns[i];
        return true;
    }
    return false;
}

// ------------------------------------------------------------------------------------------------
// routes

static double hop_ns(const berth_target_hop *hop, uint64_t size_bytes) {
    return (double)hop->latency_ns + (double)size_bytes / hop->bandwidth_bytes_per_s * 1e9;
}

static berth_target_hop hop_over(const berth_multi_target *target, uint32_t from, uint32_t link) {
    const berth_target_link *l = &target->links[link];
    return (berth_target_hop){.from = from,
                              .to = l->from == from ? l->to : l->from,
                              .link = link,
                              .device = BERTH_NO_INDEX,
                              .bandwidth_bytes_per_s = l->bandwidth_bytes_per_s,
                              .latency_ns = l->latency_ns};
}

// By a device that reaches both.
static berth_target_hop hop_by(const berth_multi_target *target, uint32_t from, uint32_t to,
                               uint32_t device) {
    const berth_target_memory *a = &target->memories[from];
    const berth_target_memory *b = &target->memories[to];
    return (berth_target_hop){.from = from,
                              .to = to,
                              .link = BERTH_NO_INDEX,
                              .device = device,
                              .bandwidth_bytes_per_s =
                                  a->bandwidth_bytes_per_s < b->bandwidth_bytes_per_s
                                      ? a->bandwidth_bytes_per_s
                                      : b->bandwidth_bytes_per_s,
                              .latency_ns = a->latency_ns + b->latency_ns};
}

// What is known of the way to a memory.
typedef struct state {
    double time_ns;
    uint32_t previous;      // the memory before it
    uint32_t link, device;  // of the hop into it
    uint32_t heap_at;       // while it waits
    uint8_t hops;
    bool reached, done;
} state;

// Dijkstra (1959) with a binary heap of the memories that are reached and not done. `states` and
// `heap` have an entry per memory.
typedef struct berth_target_routes {
    const berth_multi_target *target;
    uint64_t size_bytes;
    state *states;
    uint32_t *heap;
    uint32_t count;
} search;

// Which of two memories is taken first.
static bool is_before(const search *s, uint32_t a, uint32_t b) {
    const state *x = &s->states[a], *y = &s->states[b];
    if (x->time_ns < y->time_ns || x->time_ns > y->time_ns) return x->time_ns < y->time_ns;
    return x->hops != y->hops ? x->hops < y->hops : a < b;
}

static void put(search *s, uint32_t at, uint32_t memory) {
    s->heap[at] = memory;
    s->states[memory].heap_at = at;
}

static void move_up(search *s, uint32_t memory) {
    uint32_t at = s->states[memory].heap_at;
    for (; at > 0 && is_before(s, memory, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(s, at, s->heap[(at - 1) / 2]);
    put(s, at, memory);
}

static uint32_t take_first(search *s) {
    uint32_t first = s->heap[0], last = s->heap[--s->count], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < s->count; at = child) {
        if (child + 1 < s->count && is_before(s, s->heap[child + 1], s->heap[child])) ++child;
        if (!is_before(s, s->heap[child], last)) break;
        put(s, at, s->heap[child]);
    }
    if (s->count) put(s, at, last);
    return first;
}

static void try_hop(search *s, berth_target_hop hop) {
    const state *from = &s->states[hop.from];
    state *to = &s->states[hop.to];
    double time_ns = from->time_ns + hop_ns(&hop, s->size_bytes);
    if (to->done) return;
    if (to->reached && !(time_ns < to->time_ns) &&
        (time_ns > to->time_ns || from->hops + 1 >= to->hops))
        return;
    bool waits = to->reached;
    *to = (state){.time_ns = time_ns,
                  .previous = hop.from,
                  .link = hop.link,
                  .device = hop.device,
                  .heap_at = waits ? to->heap_at : s->count,
                  .hops = (uint8_t)(from->hops + 1),
                  .reached = true};
    s->count += !waits;
    move_up(s, hop.to);
}

static void try_hops(search *s, uint32_t from) {
    const berth_multi_target *target = s->target;
    for (uint32_t i = target->link_start[from]; i < target->link_start[from + 1]; ++i)
        try_hop(s, hop_over(target, from, target->linked[i]));
    berth_bits devices = target->memories[from].reached_by;
    for (uint32_t d = berth_bits_first(devices); d != BERTH_BITS_END;
         d = berth_bits_next(devices, d))
        for (uint32_t i = target->reach_start[d]; i < target->reach_start[d + 1]; ++i)
            if (target->reached[i] != from) try_hop(s, hop_by(target, from, target->reached[i], d));
}

// Until `to` is done; BERTH_NO_INDEX: until all are.
static void run_search(search *s, uint32_t from, uint32_t to) {
    const berth_multi_target *target = s->target;
    s->states[from].reached = true;
    s->heap[s->count++] = from;
    while (s->count && (to == BERTH_NO_INDEX || !s->states[to].done)) {
        uint32_t at = take_first(s);
        s->states[at].done = true;
        if (at != from && strcmp(target->memories[at].scope, "global") != 0) continue;
        if (at != to && s->states[at].hops < BERTH_TARGET_MAX_HOPS) try_hops(s, at);
    }
}

bool berth_target_routes_get(const berth_target_routes *s, uint32_t to,
                             berth_target_route *out_route) {
    *out_route = (berth_target_route){0};
    if (!s->states[to].done) return false;
    out_route->time_ns = s->states[to].time_ns;
    out_route->hop_count = s->states[to].hops;
    for (uint32_t at = to, i = s->states[to].hops; i-- > 0; at = s->states[at].previous) {
        const state *held = &s->states[at];
        out_route->hops[i] = held->link != BERTH_NO_INDEX
                                 ? hop_over(s->target, held->previous, held->link)
                                 : hop_by(s->target, held->previous, at, held->device);
    }
    return true;
}

const berth_target_routes *berth_multi_target_routes(const berth_multi_target *target,
                                                     berth_arena *arena, uint32_t from,
                                                     uint64_t size_bytes) {
    search *s = berth_arena_new(arena, search);
    *s = (search){.target = target,
                  .size_bytes = size_bytes,
                  .states = berth_arena_new_array(arena, state, target->memory_count),
                  .heap = berth_arena_new_array(arena, uint32_t, target->memory_count)};
    run_search(s, from, BERTH_NO_INDEX);
    return s;
}

bool berth_multi_target_route(const berth_multi_target *target, berth_arena *arena, uint32_t from,
                              uint32_t to, uint64_t size_bytes, berth_target_route *out_route) {
    enum { few = 32 };
    state few_states[few];
    uint32_t few_waiting[few], count = target->memory_count;
    search s = {target, size_bytes, few_states, few_waiting, 0};
    berth_arena *scratch = NULL;
    if (count > few) {
        scratch = berth_arena_create_child(arena);
        s.states = berth_arena_new_array(scratch, state, count);
        s.heap = berth_arena_new_array(scratch, uint32_t, count);
    } else {
        memset(few_states, 0, count * sizeof(state));
    }
    run_search(&s, from, to);
    bool found = berth_target_routes_get(&s, to, out_route);
    if (scratch) berth_arena_destroy(scratch);
    return found;
}
