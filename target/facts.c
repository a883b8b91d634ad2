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
    for (uint32_t i = 0; i < target->device_count; ++i)
        if (!berth_virtual_device_clash(device, berth_multi_target_virtual_device(target, i)))
            return i;
    return BERTH_NO_INDEX;
}

uint32_t berth_multi_target_memory_of(const berth_multi_target *target, uint32_t device,
                                      const char *scope) {
    if (strcmp(scope, "global") == 0) return target->devices[device].own_memory;
    for (uint32_t i = 0; i < target->memory_count; ++i)
        if ((target->memories[i].reached_by >> device & 1) &&
            strcmp(target->memories[i].scope, scope) == 0)
            return i;
    return BERTH_NO_INDEX;
}

uint64_t berth_multi_target_memories_of(const berth_multi_target *target, uint32_t device) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < target->memory_count; ++i)
        if (target->memories[i].reached_by >> device & 1) mask |= (uint64_t)1 << i;
    return mask;
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

bool berth_multi_target_share_memory(const berth_multi_target *target, uint32_t a, uint32_t b,
                                     uint32_t *out_memory) {
    uint64_t both = (uint64_t)1 << a | (uint64_t)1 << b;
    uint32_t owns[] = {target->devices[a].own_memory, target->devices[b].own_memory};
    for (int i = 0; i < 2; ++i) {
        if ((target->memories[owns[i]].reached_by & both) != both) continue;
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

// The best single hop between two memories: a link, or the first device that reaches both.
static bool best_hop(const berth_multi_target *target, uint32_t from, uint32_t to,
                     uint64_t size_bytes, berth_target_hop *out) {
    bool found = false;
    for (uint32_t i = 0; i < target->link_count; ++i) {
        const berth_target_link *link = &target->links[i];
        bool here =
            (link->from == from && link->to == to) || (link->from == to && link->to == from);
        if (!here) continue;
        berth_target_hop hop = {
            from, to, i, BERTH_NO_INDEX, link->bandwidth_bytes_per_s, link->latency_ns};
        if (found && hop_ns(&hop, size_bytes) >= hop_ns(out, size_bytes)) continue;
        *out = hop;
        found = true;
    }
    const berth_target_memory *a = &target->memories[from];
    const berth_target_memory *b = &target->memories[to];
    uint64_t devices = a->reached_by & b->reached_by;
    if (!devices) return found;
    double slower = a->bandwidth_bytes_per_s < b->bandwidth_bytes_per_s ? a->bandwidth_bytes_per_s
                                                                        : b->bandwidth_bytes_per_s;
    berth_target_hop hop = {from,           to,
                            BERTH_NO_INDEX, (uint32_t)__builtin_ctzll(devices),
                            slower,         a->latency_ns + b->latency_ns};
    if (found && hop_ns(&hop, size_bytes) >= hop_ns(out, size_bytes)) return true;
    *out = hop;
    return true;
}

typedef struct state {
    double time_ns;
    uint32_t hops;
    uint32_t previous;  // BERTH_NO_INDEX at the start
    bool reached, done;
    berth_target_hop hop;  // into this memory
} state;

static bool better(const state *old, double time_ns, uint32_t hops) {
    if (!old->reached) return true;
    if (time_ns < old->time_ns) return true;
    return !(time_ns > old->time_ns) && hops < old->hops;
}

static uint32_t closest(const state *states, uint32_t count) {
    uint32_t best = BERTH_NO_INDEX;
    for (uint32_t i = 0; i < count; ++i) {
        if (!states[i].reached || states[i].done) continue;
        if (best == BERTH_NO_INDEX || better(&states[best], states[i].time_ns, states[i].hops))
            best = i;
    }
    return best;
}

bool berth_multi_target_route(const berth_multi_target *target, uint32_t from, uint32_t to,
                              uint64_t size_bytes, berth_target_route *out_route) {
    *out_route = (berth_target_route){0};
    state states[BERTH_TARGET_MAX_MEMORIES] = {0};
    states[from] = (state){.reached = true, .previous = BERTH_NO_INDEX};
    for (uint32_t at; (at = closest(states, target->memory_count)) != BERTH_NO_INDEX;) {
        states[at].done = true;
        if (at == to) break;
        if (at != from && strcmp(target->memories[at].scope, "global") != 0) continue;
        if (states[at].hops == BERTH_TARGET_MAX_HOPS) continue;
        for (uint32_t next = 0; next < target->memory_count; ++next) {
            berth_target_hop hop;
            if (states[next].done || !best_hop(target, at, next, size_bytes, &hop)) continue;
            double time_ns = states[at].time_ns + hop_ns(&hop, size_bytes);
            if (!better(&states[next], time_ns, states[at].hops + 1)) continue;
            states[next] = (state){.time_ns = time_ns,
                                   .hops = states[at].hops + 1,
                                   .previous = at,
                                   .reached = true,
                                   .hop = hop};
        }
    }
    if (!states[to].done) return false;
    out_route->time_ns = states[to].time_ns;
    out_route->hop_count = states[to].hops;
    for (uint32_t at = to, i = states[to].hops; i-- > 0; at = states[at].previous)
        out_route->hops[i] = states[at].hop;
    return true;
}
