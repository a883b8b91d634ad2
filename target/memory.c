// Memories, links and budgets of a MultiTarget: what is declared, then what is implied, then
// whether all is connected.
#include <string.h>

#include "base/str.h"
#include "target/memory_builder.h"

static const char *const memory_fields[] = {"name",           "scope",
                                            "capacity_bytes", "bandwidth_bytes_per_s",
                                            "latency_ns",     "alignment_bytes",
                                            "reached_by",     "implied",
                                            "holds",          NULL};
static const char *const held[] = {"everything", "constants", NULL};
static const char *const link_fields[] = {
    "from", "to", "bandwidth_bytes_per_s", "latency_ns", "duplex", "bus", NULL};

static const double default_link_bandwidth = 1.2e10;  // PCI Express 3.0 x16 in practice, bytes/s
static const double default_scope_bandwidth = 1e11;   // on-chip memories, bytes/s
static const double network_bandwidth = 1.25e9;       // 10 Gbit/s, between machines

static bool is_global(const berth_target_memory *memory) {
    return strcmp(memory->scope, "global") == 0;
}

uint32_t berth_target__memory_named(const berth_multi_target *multi, const char *name) {
    for (uint32_t i = 0; i < multi->memory_count; ++i)
        if (multi->memories[i].name && strcmp(multi->memories[i].name, name) == 0) return i;
    return BERTH_NO_INDEX;
}

static bool read_memory_name(berth_target__memory_builder *b, const json *object, const char *key,
                             uint32_t *out) {
    const json *value = berth_target__json_get(object, key);
    if (!value) {
        berth_target__error(b->parse, berth_target__below(b->parse, object, key), "is missing");
        return false;
    }
    const char *name = NULL;
    if (!berth_target__read_string(b->parse, value, &name)) return false;
    *out = berth_target__memory_named(b->multi, name);
    if (*out != BERTH_NO_INDEX) return true;
    const char **names =
        berth_arena_new_array(b->parse->scratch, const char *, b->multi->memory_count + 1);
    for (uint32_t i = 0; i < b->multi->memory_count; ++i)
        names[i] = b->multi->memories[i].name ? b->multi->memories[i].name : "?";
    berth_target__error(b->parse, value->path, "there is no memory '%s'; memories are %s%s", name,
                        berth_target__join(b->parse->scratch, names),
                        berth_target__hint(b->parse, name, names));
    return false;
}

// ------------------------------------------------------------------------------------------------
// declared

// Of the devices' own memories, the largest: buffers there serve each of them.
static uint32_t alignment_for(const berth_multi_target *multi, berth_bits devices) {
    uint32_t alignment_bytes = 1;
    for (uint32_t i = berth_bits_first(devices); i != BERTH_BITS_END;
         i = berth_bits_next(devices, i)) {
        const berth_target *target = multi->devices[i].target;
        uint32_t own = berth_device_kind_is_host(target->kind)
                           ? berth_target__memory_defaults_of(target).alignment_bytes
                           : (uint32_t)target->memory_alignment_bytes;
        if (own > alignment_bytes) alignment_bytes = own;
    }
    return alignment_bytes;
}

static void read_reach(berth_target__memory_builder *b, const json *object,
                       berth_target_memory *memory) {
    const json *value = berth_target__json_get(object, "reached_by");
    if (!value || value->type != JSON_TYPE_ARRAY || value->items.count == 0) {
        berth_target__error(
            b->parse, value ? value->path : berth_target__below(b->parse, object, "reached_by"),
            "a list of at least one device is wanted here: a memory that no device "
            "reaches is of no use");
        return;
    }
    uint32_t word_count = berth_bits_word_count(b->multi->device_count);
    uint64_t *words = berth_arena_new_array(b->parse->scratch, uint64_t, word_count);
    for (uint32_t i = 0; i < value->items.count; ++i) {
        uint32_t device = 0;
        if (berth_target__read_device(b->parse, b->multi, value->items.data[i], &device))
            words[device / 64] |= (uint64_t)1 << device % 64;
    }
    memory->reached_by = berth_bits_from_words(b->parse->arena, words, word_count);
}

static bool number(berth_target__memory_builder *b, const json *object, const char *key, bool sizes,
                   double least, double most, int64_t *out) {
    const json *value = berth_target__json_get(object, key);
    return value && berth_target__read_int(b->parse, value, sizes, least, most, out);
}

static uint32_t first_device(berth_bits devices) {
    return berth_bits_is_empty(devices) ? 0 : berth_bits_first(devices);
}

static void read_memory(berth_target__memory_builder *b, const json *value, uint32_t index) {
    berth_target__parse *parse = b->parse;
    berth_target_memory *memory = &b->multi->memories[index];
    if (!berth_target__is_object(parse, value, "a memory")) return;
    berth_target__check_fields(parse, value, memory_fields, "a memory");
    const json *name = berth_target__json_get(value, "name");
    if (!name)
        berth_target__error(parse, berth_target__below(parse, value, "name"), "is missing");
    else if (berth_target__read_name(parse, name, &memory->name))
        for (uint32_t k = 0; k < index; ++k)
            if (b->multi->memories[k].name && strcmp(b->multi->memories[k].name, memory->name) == 0)
                berth_target__error(parse, name->path, "the name '%s' is already that of memory %u",
                                    memory->name, k);
    memory->scope = "global";
    const json *scope = berth_target__json_get(value, "scope");
    if (scope) berth_target__read_name(parse, scope, &memory->scope);
    read_reach(b, value, memory);
    int64_t integer = 0;
    if (!berth_target__json_get(value, "capacity_bytes"))
        berth_target__error(parse, berth_target__below(parse, value, "capacity_bytes"),
                            "is missing");
    if (number(b, value, "capacity_bytes", true, 1, 1e18, &integer))
        memory->capacity_bytes = (uint64_t)integer;
    memory->budget_bytes = memory->capacity_bytes;
    const berth_target *owner = b->multi->devices[first_device(memory->reached_by)].target;
    berth_target__memory_defaults defaults = berth_target__memory_defaults_of(owner);
    memory->latency_ns = is_global(memory) ? defaults.latency_ns : 10;
    if (number(b, value, "latency_ns", false, 0, 1e12, &integer))
        memory->latency_ns = (uint64_t)integer;
    memory->alignment_bytes = alignment_for(b->multi, memory->reached_by);
    const json *alignment = berth_target__json_get(value, "alignment_bytes");
    if (number(b, value, "alignment_bytes", true, 1, 1 << 30, &integer)) {
        if (integer & (integer - 1))
            berth_target__error(parse, alignment->path, "%lld is not a power of two",
                                (long long)integer);
        memory->alignment_bytes = (uint32_t)integer;
    }
    memory->bandwidth_bytes_per_s =
        is_global(memory) ? owner->memory_bandwidth_bytes_per_s : default_scope_bandwidth;
    const json *bandwidth = berth_target__json_get(value, "bandwidth_bytes_per_s");
    if (bandwidth)
        berth_target__read_real(parse, bandwidth, 1, 1e18, &memory->bandwidth_bytes_per_s);
    const json *holds = berth_target__json_get(value, "holds");
    uint32_t held_index = 0;
    if (holds && berth_target__read_choice(parse, holds, held, "what it holds", &held_index))
        memory->holds_constants = held_index == 1;
    if (memory->holds_constants && !is_global(memory))
        berth_target__error(parse, holds->path,
                            "a memory that holds constants has the scope global, not '%s'",
                            memory->scope);
    const json *implied = berth_target__json_get(value, "implied");
    if (implied) berth_target__read_bool(parse, implied, &memory->implied);
}

static void read_link(berth_target__memory_builder *b, const json *value) {
    berth_target__parse *parse = b->parse;
    berth_multi_target *multi = b->multi;
    if (!berth_target__is_object(parse, value, "a link")) return;
    berth_target__check_fields(parse, value, link_fields, "a link");
    berth_target_link link = {.bandwidth_bytes_per_s = default_link_bandwidth, .duplex = true};
    bool ends = read_memory_name(b, value, "from", &link.from);
    ends = read_memory_name(b, value, "to", &link.to) && ends;
    if (!ends) return;
    if (link.from == link.to) {
        berth_target__error(parse, value->path, "links the memory '%s' to itself",
                            multi->memories[link.from].name);
        return;
    }
    uint32_t device_from = first_device(multi->memories[link.from].reached_by);
    uint32_t device_to = first_device(multi->memories[link.to].reached_by);
    if (multi->devices[device_from].machine != multi->devices[device_to].machine)
        link.bandwidth_bytes_per_s = network_bandwidth;
    const json *bandwidth = berth_target__json_get(value, "bandwidth_bytes_per_s");
    if (bandwidth) berth_target__read_real(parse, bandwidth, 1, 1e18, &link.bandwidth_bytes_per_s);
    int64_t latency_ns = 10000;
    number(b, value, "latency_ns", false, 0, 1e12, &latency_ns);
    link.latency_ns = (uint64_t)latency_ns;
    const json *duplex = berth_target__json_get(value, "duplex");
    if (duplex) berth_target__read_bool(parse, duplex, &link.duplex);
    const json *bus = berth_target__json_get(value, "bus");
    if (bus) berth_target__read_name(parse, bus, &link.bus);
    if (!link.bus)
        link.bus = berth_arena_printf(parse->arena, "%s-%s", multi->memories[link.from].name,
                                      multi->memories[link.to].name);
    multi->links[multi->link_count++] = link;
}

// The items of an optional list.
static const json *list(berth_target__memory_builder *b, const char *key, uint32_t most) {
    const json *value = berth_target__json_get(b->root, key);
    if (!value) return NULL;
    if (value->type != JSON_TYPE_ARRAY) {
        berth_target__error(b->parse, value->path, "a list is wanted here, not %s",
                            berth_target__json_type_name(value));
        return NULL;
    }
    if (value->items.count <= most) return value;
    berth_target__error(b->parse, value->path, "at most %u entries are possible, not %u", most,
                        value->items.count);
    return NULL;
}

// ------------------------------------------------------------------------------------------------
// implied

// A name that no memory has: the wanted one, or with a number after it.
static const char *free_name(berth_target__memory_builder *b, const char *wanted) {
    const char *name = berth_arena_strdup(b->parse->arena, wanted);
    for (uint32_t i = 1; berth_target__memory_named(b->multi, name) != BERTH_NO_INDEX; ++i)
        name = berth_arena_printf(b->parse->arena, "%s_%u", wanted, i);
    return name;
}

static uint32_t own_declared(const berth_multi_target *multi, uint32_t device) {
    for (uint32_t i = 0; i < multi->memory_count; ++i)
        if (is_global(&multi->memories[i]) && !multi->memories[i].holds_constants &&
            berth_bits_has(multi->memories[i].reached_by, device))
            return i;
    return BERTH_NO_INDEX;
}

uint32_t berth_target__add_memory(berth_target__memory_builder *b, uint32_t device,
                                  const char *name) {
    berth_multi_target *multi = b->multi;
    if (multi->memory_count >= b->memory_room) {
        berth_target__error(b->parse, "memories",
                            "at most %d memories are possible, implied ones included",
                            BERTH_TARGET_MAX_MEMORIES);
        return 0;
    }
    const berth_target *target = multi->devices[device].target;
    berth_target__memory_defaults defaults = berth_target__memory_defaults_of(target);
    uint32_t index = multi->memory_count++;
    multi->memories[index] = (berth_target_memory){
        .name = free_name(b, name),
        .scope = "global",
        .capacity_bytes = (uint64_t)target->memory_capacity_bytes,
        .budget_bytes = (uint64_t)target->memory_capacity_bytes,
        .bandwidth_bytes_per_s = target->memory_bandwidth_bytes_per_s,
        .latency_ns = defaults.latency_ns,
        .alignment_bytes = alignment_for(multi, berth_bits_of(b->parse->arena, device)),
        .reached_by = berth_bits_of(b->parse->arena, device),
        .implied = true,
    };
    return index;
}

static void add_link(berth_target__memory_builder *b, uint32_t device, uint32_t host_memory) {
    berth_multi_target *multi = b->multi;
    const berth_target *target = multi->devices[device].target;
    uint32_t own = multi->devices[device].own_memory;
    multi->links[multi->link_count++] = (berth_target_link){
        .from = host_memory,
        .to = own,
        .bandwidth_bytes_per_s = target->link_bandwidth_bytes_per_s,
        .latency_ns = berth_target__memory_defaults_of(target).link_latency_ns,
        .duplex = true,
        .bus = berth_arena_printf(b->parse->arena, "%s-%s", multi->memories[host_memory].name,
                                  multi->memories[own].name),
    };
}

// A device without a global memory: a CPU (or one that says so) shares its machine's host memory;
// any other gets one of its own and a link to the host's.
static void imply(berth_target__memory_builder *b) {
    berth_multi_target *multi = b->multi;
    for (uint32_t m = 0; m < multi->machine_count; ++m) {
        uint32_t host = multi->machines[m].host;
        uint32_t host_memory = own_declared(multi, host);
        if (host_memory == BERTH_NO_INDEX) {
            const char *name = "host";
            if (multi->machine_count > 1)
                name = berth_arena_printf(b->parse->scratch, "%s.host", multi->machines[m].name);
            host_memory = berth_target__add_memory(b, host, name);
        }
        for (uint32_t i = 0; i < multi->device_count; ++i) {
            berth_target_device *device = &multi->devices[i];
            if (device->machine != m) continue;
            device->own_memory = own_declared(multi, i);
            if (device->own_memory != BERTH_NO_INDEX) continue;
            if (berth_device_kind_is_host(device->target->kind) ||
                device->target->shares_host_memory) {
                berth_target_memory *memory = &multi->memories[host_memory];
                memory->reached_by = berth_bits_with(b->parse->arena, memory->reached_by, i);
                device->own_memory = host_memory;
                if (memory->implied)
                    memory->alignment_bytes = alignment_for(multi, memory->reached_by);
                continue;
            }
            device->own_memory = berth_target__add_memory(b, i, device->name);
            add_link(b, i, host_memory);
        }
    }
}

static uint32_t declared_of_scope(const berth_multi_target *multi, uint32_t device,
                                  const char *scope) {
    for (uint32_t i = 0; i < multi->memory_count; ++i)
        if (strcmp(multi->memories[i].scope, scope) == 0 &&
            berth_bits_has(multi->memories[i].reached_by, device))
            return i;
    return BERTH_NO_INDEX;
}

// What a device has on its chip: as large as its attributes say, whoever declares it.
static void imply_on_chip(berth_target__memory_builder *b, uint32_t device, const json *declared) {
    berth_multi_target *multi = b->multi;
    const char *scope = NULL;
    for (uint32_t i = 0;; ++i) {
        uint64_t bytes = berth_target__on_chip(multi->devices[device].target, i, &scope);
        if (!scope) return;
        uint32_t index = declared_of_scope(multi, device, scope);
        if (index == BERTH_NO_INDEX) {
            const char *last = strrchr(scope, '.') + 1;
            index = berth_target__add_memory(
                b, device,
                berth_arena_printf(b->parse->scratch, "%s.%s", multi->devices[device].name, last));
            berth_target_memory *memory = &multi->memories[index];
            memory->scope = scope;
            memory->bandwidth_bytes_per_s = default_scope_bandwidth;
            memory->latency_ns = 10;
            memory->alignment_bytes = 1;
        } else if (!multi->memories[index].implied &&
                   multi->memories[index].capacity_bytes != bytes) {
            berth_target__error(b->parse, declared->items.data[index]->path,
                                "the attributes of '%s' give %llu bytes for %s, not %llu",
                                multi->devices[device].name, (unsigned long long)bytes, scope,
                                (unsigned long long)multi->memories[index].capacity_bytes);
        }
        multi->memories[index].capacity_bytes = multi->memories[index].budget_bytes = bytes;
    }
}

// A constant is in one place for all devices that work in the same memory, so they all must reach
// it.
static void find_constant_memories(berth_target__memory_builder *b, const json *declared) {
    berth_multi_target *multi = b->multi;
    for (uint32_t i = 0; i < multi->device_count; ++i)
        multi->devices[i].constant_memory = multi->devices[i].own_memory;
    for (uint32_t m = multi->memory_count; m-- > 0;) {  // the first one counts
        const berth_target_memory *memory = &multi->memories[m];
        if (!memory->holds_constants) continue;
        for (uint32_t i = 0; i < multi->device_count; ++i) {
            uint32_t own = multi->devices[i].own_memory;
            uint32_t other = 0;
            if (!berth_bits_has(memory->reached_by, i)) continue;
            while (other < multi->device_count && (multi->devices[other].own_memory != own ||
                                                   berth_bits_has(memory->reached_by, other)))
                ++other;
            if (other == multi->device_count)
                multi->devices[i].constant_memory = m;
            else
                berth_target__error(
                    b->parse, declared->items.data[m]->path,
                    "'%s' holds the constants of '%s', but '%s' works in the same memory '%s' and "
                    "does not reach it",
                    memory->name, multi->devices[i].name, multi->devices[other].name,
                    multi->memories[own].name);
        }
    }
}

// ------------------------------------------------------------------------------------------------
// neighbours

// Fills in the lists of links by memory and of memories by device.
static void list_neighbours(berth_target__memory_builder *b) {
    berth_multi_target *multi = b->multi;
    uint32_t *link_start =
        berth_arena_new_array(b->parse->arena, uint32_t, multi->memory_count + 2);
    uint32_t *linked =
        berth_arena_new_array(b->parse->arena, uint32_t, 2 * (size_t)multi->link_count + 1);
    uint32_t *reach_start =
        berth_arena_new_array(b->parse->arena, uint32_t, multi->device_count + 2);
    for (uint32_t i = 0; i < multi->link_count; ++i) {
        link_start[multi->links[i].from + 2]++;
        link_start[multi->links[i].to + 2]++;
    }
    for (uint32_t m = 0; m < multi->memory_count; ++m) link_start[m + 2] += link_start[m + 1];
    for (uint32_t i = 0; i < multi->link_count;
         ++i) {  // the starts move to the ends, which are the next
        linked[link_start[multi->links[i].from + 1]++] = i;
        linked[link_start[multi->links[i].to + 1]++] = i;
    }
    uint32_t reach_count = 0;
    for (uint32_t m = 0; m < multi->memory_count; ++m) {
        berth_bits devices = multi->memories[m].reached_by;
        for (uint32_t d = berth_bits_first(devices); d != BERTH_BITS_END;
             d = berth_bits_next(devices, d), ++reach_count)
            reach_start[d + 2]++;
    }
    uint32_t *reached = berth_arena_new_array(b->parse->arena, uint32_t, reach_count + 1);
    for (uint32_t d = 0; d < multi->device_count; ++d) reach_start[d + 2] += reach_start[d + 1];
    for (uint32_t m = 0; m < multi->memory_count; ++m) {
        berth_bits devices = multi->memories[m].reached_by;
        for (uint32_t d = berth_bits_first(devices); d != BERTH_BITS_END;
             d = berth_bits_next(devices, d))
            reached[reach_start[d + 1]++] = m;
    }
    multi->link_start = link_start;
    multi->linked = linked;
    multi->reach_start = reach_start;
    multi->reached = reached;
}

// ------------------------------------------------------------------------------------------------
// checks

// From the host's memory over links and over devices that reach two memories.
static bool *connected_to_host(const berth_target__memory_builder *b) {
    const berth_multi_target *multi = b->multi;
    berth_arena *scratch = b->parse->scratch;
    bool *seen = berth_arena_new_array(scratch, bool, multi->memory_count + 1);
    bool *asked = berth_arena_new_array(scratch, bool, multi->device_count + 1);
    uint32_t *found = berth_arena_new_array(scratch, uint32_t, multi->memory_count + 1);
    uint32_t count = 0;
    found[count++] = multi->devices[multi->host].own_memory;
    seen[found[0]] = true;
    for (uint32_t at = 0; at < count; ++at) {
        uint32_t m = found[at];
        for (uint32_t i = multi->link_start[m]; i < multi->link_start[m + 1]; ++i) {
            const berth_target_link *link = &multi->links[multi->linked[i]];
            uint32_t other = link->from == m ? link->to : link->from;
            if (!seen[other]) found[count++] = other;
            seen[other] = true;
        }
        berth_bits devices = multi->memories[m].reached_by;
        for (uint32_t d = berth_bits_first(devices); d != BERTH_BITS_END;
             d = berth_bits_next(devices, d)) {
            for (uint32_t i = multi->reach_start[d]; !asked[d] && i < multi->reach_start[d + 1];
                 ++i) {
                if (!seen[multi->reached[i]]) found[count++] = multi->reached[i];
                seen[multi->reached[i]] = true;
            }
            asked[d] = true;
        }
    }
    return seen;
}

static void check_connected(berth_target__memory_builder *b, const json *declared) {
    berth_multi_target *multi = b->multi;
    const bool *seen = connected_to_host(b);
    for (uint32_t i = 0; i < multi->memory_count; ++i) {
        if (seen[i]) continue;
        const char *path =
            declared && i < declared->items.count ? declared->items.data[i]->path : "links";
        berth_target__error(b->parse, path,
                            "no way leads from the host's memory '%s' to '%s'; add it to \"links\" "
                            "or let one device reach both",
                            multi->memories[multi->devices[multi->host].own_memory].name,
                            multi->memories[i].name);
    }
}

// Declared ones, one of its own for each device, one for each host, and what is on the chips.
static uint32_t most_memories(const berth_target__memory_builder *b) {
    const berth_multi_target *multi = b->multi;
    uint64_t most = (uint64_t)multi->memory_count + multi->device_count + multi->machine_count +
                    (multi->runtime == BERTH_RUNTIME_BARE ? BERTH_TARGET__BOARD_MEMORIES : 0);
    for (uint32_t d = 0; d < multi->device_count; ++d) {
        const char *scope = NULL;
        for (uint32_t i = 0;; ++i) {
            berth_target__on_chip(multi->devices[d].target, i, &scope);
            if (!scope) break;
            most++;
        }
    }
    return most < BERTH_TARGET_MAX_MEMORIES ? (uint32_t)most : BERTH_TARGET_MAX_MEMORIES;
}

void berth_target__memories(berth_target__parse *parse, const json *root,
                            berth_multi_target *multi) {
    berth_target__memory_builder b = {.parse = parse, .multi = multi, .root = root};
    const json *memories = list(&b, "memories", BERTH_TARGET_MAX_MEMORIES);
    const json *links = list(&b, "links", BERTH_TARGET_MAX_LINKS);
    uint32_t before = parse->diagnostics.count;
    multi->memory_count = memories ? memories->items.count : 0;
    b.memory_room = most_memories(&b);
    multi->memories = berth_arena_new_array(parse->arena, berth_target_memory, b.memory_room);
    for (uint32_t i = 0; i < multi->memory_count; ++i) read_memory(&b, memories->items.data[i], i);
    if (parse->diagnostics.count != before) return;
    multi->links = berth_arena_new_array(parse->arena, berth_target_link,
                                         (links ? links->items.count : 0) + b.memory_room);
    imply(&b);
    for (uint32_t d = 0; d < multi->device_count; ++d) imply_on_chip(&b, d, memories);
    berth_target__imply_board(&b);
    find_constant_memories(&b, memories);
    if (links)
        for (uint32_t i = 0; i < links->items.count; ++i) read_link(&b, links->items.data[i]);
    if (parse->diagnostics.count != before) return;
    list_neighbours(&b);
    check_connected(&b, memories);
    berth_target__read_budgets(&b);
    berth_target__take_budgets(&b, parse->options->budgets);
}
