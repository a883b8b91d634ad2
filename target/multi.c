// Several devices: names, virtual ids, the hosts, executor, runtime and pins. Memories and links
// are in memory.c.
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

static const char *const multi_fields[] = {
    "kind",  "name",     "devices", "default_device", "host",    "machines", "memories",
    "links", "executor", "runtime", "pins",           "budgets", NULL};
static const char *const device_fields[] = {"name", "target", "host_only", "machine", NULL};
static const char *const pin_fields[] = {"match", "device", NULL};
static const char *const kind_only[] = {"kind", NULL};
static const char *const machine_fields[] = {"name", "host", NULL};

typedef struct builder {
    berth_target__parse *parse;
    berth_multi_target *multi;
    const json *root;
    const json **host_json;  // "host" of each device's target
    uint32_t room;           // devices that there is room for: those listed and a host per machine
} builder;

// Whether the text is the number, written as numbers are.
static bool is_number(const char *text, uint32_t number) {
    uint64_t value = 0;
    if (*text == '0' || !*text) return number == 0 && strcmp(text, "0") == 0;
    for (; *text >= '0' && *text <= '9' && value <= number; ++text)
        value = 10 * value + (uint64_t)(*text - '0');
    return !*text && value == number;
}

uint32_t berth_target__device_named(const berth_multi_target *multi, const char *name) {
    for (uint32_t i = 0; i < multi->device_count; ++i)
        if (multi->devices[i].name && strcmp(multi->devices[i].name, name) == 0) return i;
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        if (!multi->devices[i].target) continue;
        const char *kind = berth_device_kind_name(multi->devices[i].target->kind);
        size_t length = strlen(kind);
        if (strncmp(name, kind, length) != 0 || name[length] != ':') continue;
        if (is_number(name + length + 1, multi->devices[i].virtual_id)) return i;
    }
    return BERTH_NO_INDEX;
}

bool berth_target__read_device(berth_target__parse *parse, const berth_multi_target *multi,
                               const json *value, uint32_t *out_device) {
    const char *name = NULL;
    if (!berth_target__read_string(parse, value, &name)) return false;
    *out_device = berth_target__device_named(multi, name);
    if (*out_device != BERTH_NO_INDEX) return true;
    const char **names =
        berth_arena_new_array(parse->scratch, const char *, multi->device_count + 1);
    for (uint32_t i = 0; i < multi->device_count; ++i)
        names[i] = multi->devices[i].name ? multi->devices[i].name : "?";
    berth_target__error(parse, value->path, "there is no device '%s'; devices are %s%s", name,
                        berth_target__join(parse->scratch, names),
                        berth_target__hint(parse, name, names));
    return false;
}

// ------------------------------------------------------------------------------------------------
// devices

static void read_one_device(builder *b, const json *value, uint32_t index) {
    berth_target__parse *parse = b->parse;
    berth_target_device *device = &b->multi->devices[index];
    if (!berth_target__is_object(parse, value, "a device")) return;
    berth_target__check_fields(parse, value, device_fields, "a device");
    const json *name = berth_target__json_get(value, "name");
    if (name) berth_target__read_name(parse, name, &device->name);
    const json *host_only = berth_target__json_get(value, "host_only");
    if (host_only) berth_target__read_bool(parse, host_only, &device->host_only);
    const json *target = berth_target__json_get(value, "target");
    if (!target)
        berth_target__error(parse, berth_target__below(parse, value, "target"), "is missing");
    else
        device->target = berth_target__device(parse, target, &b->host_json[index]);
}

// Virtual ids in order, then names: given, or KIND:N.
static void name_devices(builder *b) {
    uint32_t next_id[BERTH_DEVICE_KIND_COUNT] = {0};
    berth_multi_target *multi = b->multi;
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        berth_target_device *device = &multi->devices[i];
        if (!device->target) continue;
        device->virtual_id = next_id[device->target->kind]++;
        if (!device->name)
            device->name = berth_arena_printf(b->parse->arena, "%s:%u",
                                              berth_device_kind_name(device->target->kind),
                                              device->virtual_id);
    }
}

static void check_names(builder *b, const json *devices) {
    berth_multi_target *multi = b->multi;
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        const char *name = multi->devices[i].name;
        if (!name) continue;
        const char *path = berth_target__below(b->parse, devices->items.data[i], "name");
        for (uint32_t k = 0; k < i; ++k)
            if (multi->devices[k].name && strcmp(multi->devices[k].name, name) == 0)
                berth_target__error(b->parse, path, "the name '%s' is already that of device %u",
                                    name, k);
        // A given name of the form KIND:N must be the device's own, or it would name two.
        const char *colon = strchr(name, ':');
        if (!colon || !multi->devices[i].target) continue;
        const char *own = berth_arena_printf(b->parse->scratch, "%s:%u",
                                             berth_device_kind_name(multi->devices[i].target->kind),
                                             multi->devices[i].virtual_id);
        const char *kind = berth_arena_strndup(b->parse->scratch, name, (size_t)(colon - name));
        if (berth_device_kind_from_name(kind) != BERTH_DEVICE_FREE && strcmp(own, name) != 0)
            berth_target__error(b->parse, path, "this device is '%s'; '%s' would name another one",
                                own, name);
    }
}

static bool read_devices(builder *b) {
    berth_target__parse *parse = b->parse;
    const json *devices = berth_target__json_get(b->root, "devices");
    if (!devices || devices->type != JSON_TYPE_ARRAY || devices->items.count == 0) {
        berth_target__error(
            parse, devices ? devices->path : berth_target__below(parse, b->root, "devices"),
            "a list of at least one device {\"name\": …, \"target\": {…}} is "
            "wanted here");
        return false;
    }
    if (devices->items.count >= BERTH_TARGET_MAX_DEVICES) {
        berth_target__error(parse, devices->path, "at most %d devices are possible, not %u",
                            BERTH_TARGET_MAX_DEVICES - 1, devices->items.count);
        return false;
    }
    uint32_t before = parse->diagnostics.count;
    const json *machines = berth_target__json_get(b->root, "machines");
    bool several = machines && machines->type == JSON_TYPE_ARRAY;
    if (several && machines->items.count > BERTH_TARGET_MAX_DEVICES) {
        berth_target__error(parse, machines->path, "at most %d machines are possible, not %u",
                            BERTH_TARGET_MAX_DEVICES, machines->items.count);
        return false;
    }
    b->room = devices->items.count + (several ? machines->items.count : 1) + 1;
    b->host_json = berth_arena_new_array(parse->scratch, const json *, b->room);
    b->multi->devices = berth_arena_new_array(parse->arena, berth_target_device, b->room);
    b->multi->device_count = devices->items.count;
    for (uint32_t i = 0; i < devices->items.count; ++i)
        read_one_device(b, devices->items.data[i], i);
    name_devices(b);
    check_names(b, devices);
    return parse->diagnostics.count == before;
}

// ------------------------------------------------------------------------------------------------
// machines

static void read_machines(builder *b) {
    berth_target__parse *parse = b->parse;
    berth_multi_target *multi = b->multi;
    const json *machines = berth_target__json_get(b->root, "machines");
    const json *devices = berth_target__json_get(b->root, "devices");
    uint32_t count = 1;
    if (machines) {
        if (machines->type != JSON_TYPE_ARRAY || machines->items.count == 0) {
            berth_target__error(parse, machines->path,
                                "a list of machines {\"name\": …, "
                                "\"target\": {…}} is wanted here");
            machines = NULL;
        } else {
            count = machines->items.count;
        }
    }
    multi->machines = berth_arena_new_array(parse->arena, berth_target_machine, count);
    multi->machine_count = count;
    const char **names = berth_arena_new_array(parse->scratch, const char *, count + 1);
    uint32_t named = 0;
    for (uint32_t i = 0; i < count; ++i) {
        multi->machines[i] = (berth_target_machine){.name = "", .host = BERTH_NO_INDEX};
        names[i] = "?";
        if (!machines) continue;
        const json *value = machines->items.data[i];
        if (!berth_target__is_object(parse, value, "a machine")) continue;
        berth_target__check_fields(parse, value, machine_fields, "a machine");
        const json *name = berth_target__json_get(value, "name");
        if (!name)
            berth_target__error(parse, berth_target__below(parse, value, "name"), "is missing");
        else if (berth_target__read_name(parse, name, &multi->machines[i].name))
            names[i] = multi->machines[i].name, ++named;
        for (uint32_t k = 0; k < i; ++k)
            if (name && strcmp(names[k], names[i]) == 0)
                berth_target__error(parse, name->path,
                                    "the name '%s' is already that of machine %u", names[i], k);
        const json *host = berth_target__json_get(value, "host");
        if (host) berth_target__read_device(parse, multi, host, &multi->machines[i].host);
    }
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        const json *entry = devices->items.data[i];
        const json *machine = berth_target__json_get(entry, "machine");
        if (machine && named < count) continue;  // of which machines there are, enough is said
        if (machine) {
            berth_target__read_choice(parse, machine, names, "a machine",
                                      &multi->devices[i].machine);
        } else if (machines) {
            berth_target__error(parse, berth_target__below(parse, entry, "machine"),
                                "is missing; machines are %s",
                                berth_target__join(parse->scratch, names));
        }
    }
}

// ------------------------------------------------------------------------------------------------
// hosts

// {"kind": "cpu"} and nothing else: any CPU will do.
static bool any_cpu(const json *value) {
    return value->members.count == 1 && berth_target__json_get(value, "kind");
}

static bool is_cpu(berth_target__parse *parse, const char *path, const berth_target *target) {
    if (berth_device_kind_is_host(target->kind)) return true;
    berth_target__error(parse, path, "a host is a cpu, not a %s device",
                        berth_device_kind_name(target->kind));
    return false;
}

static uint32_t append_host(builder *b, berth_target *target, uint32_t machine) {
    berth_multi_target *multi = b->multi;
    if (multi->device_count >= BERTH_TARGET_MAX_DEVICES || multi->device_count >= b->room) {
        berth_target__error(b->parse, "devices", "at most %d devices are possible, hosts included",
                            BERTH_TARGET_MAX_DEVICES);
        return 0;
    }
    uint32_t id = 0;
    for (uint32_t i = 0; i < multi->device_count; ++i)
        id += multi->devices[i].target->kind == BERTH_DEVICE_CPU;
    uint32_t index = multi->device_count++;
    multi->devices[index] = (berth_target_device){
        .name = berth_arena_printf(b->parse->arena, "cpu:%u", id),
        .target = target,
        .virtual_id = id,
        .machine = machine,
        .host_only = true,
    };
    return index;
}

// A host written as a target: a device of the machine that is the same, or (a bare cpu) its first
// CPU, or a new one.
static uint32_t host_from_target(builder *b, const json *value, uint32_t machine) {
    berth_target__parse *parse = b->parse;
    const json *inner = NULL;
    berth_target *target = berth_target__device(parse, value, &inner);
    if (!target || !is_cpu(parse, value->path, target)) return BERTH_NO_INDEX;
    if (inner) berth_target__error(parse, inner->path, "a host has no host of its own");
    for (uint32_t i = 0; i < b->multi->device_count; ++i) {
        const berth_target_device *device = &b->multi->devices[i];
        if (device->machine != machine || !berth_device_kind_is_host(device->target->kind))
            continue;
        if (any_cpu(value) || berth_hash128_equal(device->target->hash, target->hash)) return i;
    }
    return append_host(b, target, machine);
}

static berth_target *generic_cpu(builder *b) {
    json *value = berth_target__json_object(b->parse->scratch);
    berth_target__json_set(b->parse->scratch, value, "kind",
                           berth_target__json_string(b->parse->scratch, "cpu"));
    const json *host = NULL;
    return berth_target__device(b->parse, value, &host);
}

// The machine's host: as told, else from the first device that names one, else the first CPU, else
// a generic CPU.
static uint32_t find_host(builder *b, uint32_t machine, uint32_t told, const char **out_why) {
    berth_multi_target *multi = b->multi;
    if (told != BERTH_NO_INDEX) return told;
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        if (multi->devices[i].machine != machine || !b->host_json[i]) continue;
        *out_why = b->host_json[i]->path;
        return host_from_target(b, b->host_json[i], machine);
    }
    for (uint32_t i = 0; i < multi->device_count; ++i)
        if (multi->devices[i].machine == machine && multi->devices[i].host_only) return i;
    for (uint32_t i = 0; i < multi->device_count; ++i)
        if (multi->devices[i].machine == machine &&
            berth_device_kind_is_host(multi->devices[i].target->kind))
            return i;
    return append_host(b, generic_cpu(b), machine);
}

// Every device that names a host must name this one.
static void check_hosts(builder *b, uint32_t machine, uint32_t host, const char *why) {
    berth_multi_target *multi = b->multi;
    for (uint32_t i = 0; i < multi->device_count; ++i) {
        const json *value = b->host_json[i];
        if (multi->devices[i].machine != machine || !value) continue;
        if (strcmp(value->path, why) == 0 || any_cpu(value)) continue;
        const json *inner = NULL;
        uint32_t before = b->parse->diagnostics.count;
        berth_target *other = berth_target__device(b->parse, value, &inner);
        if (!other || b->parse->diagnostics.count != before) continue;
        if (berth_hash128_equal(other->hash, multi->devices[host].target->hash)) continue;
        berth_target__error(b->parse, value->path,
                            "disagrees with the host that %s gives; all devices of a machine have "
                            "one host: %s, not %s",
                            why, multi->devices[host].target->canonical, other->canonical);
    }
}

// Devices after the listed ones have no entry in host_json: it is zeroed.
static void resolve_hosts(builder *b) {
    berth_target__parse *parse = b->parse;
    berth_multi_target *multi = b->multi;
    const json *host = berth_target__json_get(b->root, "host");
    uint32_t told = BERTH_NO_INDEX;
    const char *why = "";
    if (host) why = host->path;
    if (host && host->type == JSON_TYPE_STRING) {
        if (!berth_target__read_device(parse, multi, host, &told) ||
            !is_cpu(parse, host->path, multi->devices[told].target))
            return;
    } else if (host) {
        told = host_from_target(b, host, 0);
        if (told == BERTH_NO_INDEX) return;
    }
    for (uint32_t m = 0; m < multi->machine_count; ++m) {
        const char *reason = m == 0 && host ? why : "";
        uint32_t given = m == 0 && host ? told : multi->machines[m].host;
        if (given != BERTH_NO_INDEX && multi->devices[given].machine != m) {
            berth_target__error(parse, host ? host->path : "machines",
                                "the host of machine %u must be one of its own devices", m);
            continue;
        }
        uint32_t found = find_host(b, m, given, &reason);
        if (found == BERTH_NO_INDEX) return;
        if (!is_cpu(parse, reason, multi->devices[found].target)) return;
        if (!*reason) reason = "the first CPU device";
        check_hosts(b, m, found, reason);
        multi->machines[m].host = found;
    }
    multi->host = multi->machines[0].host;
}

static void read_default(builder *b) {
    berth_multi_target *multi = b->multi;
    const json *value = berth_target__json_get(b->root, "default_device");
    uint32_t first = 0;
    while (first < multi->device_count && multi->devices[first].host_only) first++;
    if (first == multi->device_count) {
        berth_target__error(b->parse, "devices", "every device is host_only: none can compute");
        return;
    }
    multi->default_device = first;
    if (!value || !berth_target__read_device(b->parse, multi, value, &multi->default_device))
        return;
    if (multi->devices[multi->default_device].host_only)
        berth_target__error(b->parse, value->path,
                            "'%s' is host_only and cannot be the default device",
                            multi->devices[multi->default_device].name);
}

// ------------------------------------------------------------------------------------------------
// execution, pins

// {"kind": "graph"} or "graph".
static bool read_kind(builder *b, const char *field, const char *const *names, uint32_t *out) {
    const json *value = berth_target__json_get(b->root, field);
    if (!value) return false;
    const char *what = berth_arena_printf(b->parse->scratch, "an %s", field);
    if (*field == 'r') what = "a runtime";
    if (value->type == JSON_TYPE_STRING)
        return berth_target__read_choice(b->parse, value, names, what, out);
    if (!berth_target__is_object(b->parse, value, what)) return false;
    berth_target__check_fields(b->parse, value, kind_only, what);
    const json *kind = berth_target__json_get(value, "kind");
    if (kind) return berth_target__read_choice(b->parse, kind, names, what, out);
    berth_target__error(b->parse, berth_target__below(b->parse, value, "kind"),
                        "is missing; allowed are %s", berth_target__join(b->parse->scratch, names));
    return false;
}

static void read_execution(builder *b) {
    uint32_t executor = 0, runtime = 0;
    bool told = read_kind(b, "executor", berth_target__executor_names, &executor);
    if (executor > BERTH_EXECUTOR_AOT) executor = told = false;  // "auto": as if nothing were said
    read_kind(b, "runtime", berth_target__runtime_names, &runtime);
    b->multi->runtime = (berth_runtime_kind)runtime;
    if (runtime == BERTH_RUNTIME_BARE && !told) executor = BERTH_EXECUTOR_AOT;
    b->multi->executor = (berth_executor_kind)executor;
    if (runtime == BERTH_RUNTIME_BARE && executor != BERTH_EXECUTOR_AOT)
        berth_target__error(b->parse, berth_target__json_get(b->root, "executor")->path,
                            "the bare runtime has no '%s' executor; allowed is aot",
                            berth_target__executor_names[executor]);
}

static void read_pin(builder *b, const json *value) {
    berth_target__parse *parse = b->parse;
    berth_multi_target *multi = b->multi;
    if (!berth_target__is_object(parse, value, "a pin")) return;
    berth_target__check_fields(parse, value, pin_fields, "a pin");
    const json *match = berth_target__json_get(value, "match");
    const json *device = berth_target__json_get(value, "device");
    const char *text = NULL;
    if (!match || !device) {
        berth_target__error(parse, berth_target__below(parse, value, match ? "device" : "match"),
                            "is missing; a pin is {\"match\": PATTERN, \"device\": NAME}");
        return;
    }
    berth_target_pin pin = {.source = berth_arena_strdup(parse->arena, value->path)};
    if (!berth_target__read_string(parse, match, &text) ||
        !berth_target__read_device(parse, multi, device, &pin.device))
        return;
    if (!*text || strcmp(text, "op:") == 0) {
        berth_target__error(parse, match->path, "an empty pattern matches nothing");
        return;
    }
    for (uint32_t i = 0; i < multi->pin_count; ++i)
        if (strcmp(multi->pins[i].match, text) == 0 && multi->pins[i].device != pin.device)
            berth_target__error(
                parse, value->path, "contradicts %s: '%s' on %s and on %s", multi->pins[i].source,
                text, multi->devices[multi->pins[i].device].name, multi->devices[pin.device].name);
    if (multi->devices[pin.device].host_only)
        berth_target__error(parse, device->path,
                            "'%s' is host_only: no operation can be pinned to it; list it among "
                            "the devices",
                            multi->devices[pin.device].name);
    pin.match = berth_arena_strdup(parse->arena, text);
    multi->pins[multi->pin_count++] = pin;
}

static void read_pins(builder *b) {
    const json *value = berth_target__json_get(b->root, "pins");
    if (!value) return;
    if (value->type != JSON_TYPE_ARRAY) {
        berth_target__error(b->parse, value->path, "a list of pins is wanted here, not %s",
                            berth_target__json_type_name(value));
        return;
    }
    b->multi->pins = berth_arena_new_array(b->parse->arena, berth_target_pin, value->items.count);
    for (uint32_t i = 0; i < value->items.count; ++i) read_pin(b, value->items.data[i]);
}

berth_multi_target *berth_target__multi(berth_target__parse *parse, json *root) {
    berth_multi_target *multi = berth_arena_new(parse->arena, berth_multi_target);
    builder *b = berth_arena_new(parse->scratch, builder);
    *b = (builder){.parse = parse, .multi = multi, .root = root};
    multi->name = "";
    berth_target__check_fields(parse, root, multi_fields, "a MultiTarget");
    const json *name = berth_target__json_get(root, "name");
    if (name) berth_target__read_name(parse, name, &multi->name);
    read_execution(b);
    if (!read_devices(b)) return NULL;  // names and kinds are needed for everything below
    read_machines(b);
    uint32_t before = parse->diagnostics.count;
    resolve_hosts(b);
    read_default(b);
    read_pins(b);
    if (parse->diagnostics.count == before) berth_target__memories(parse, root, multi);
    if (parse->diagnostics.count) return NULL;
    berth_target__canonicalise(parse->arena, multi);
    return multi;
}
