// berth devices: what drivers and devices are here, and what is missing and why.
#include <berth/device.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct devices_command {
    berth_cli_model cli;
    berth_device_list *list;
} devices_command;

static const struct argp_option options[] = {
    {"format", BERTH_CLI_KEY_FORMAT, "text|json", 0, "Output (default: text)", 0},
    {0},
};

static const struct argp_child children[] = {{&berth_cli_driver_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    berth_cli_model *cli = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = cli; return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(cli, arg, state); return 0;
    case ARGP_KEY_ARG: berth_cli_wrong_usage(state, "unexpected argument \"%s\"", arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static json_t *memory_json(const berth_memory_facts *memory) {
    return json_pack("{s:o, s:I, s:I, s:b}", "scope", berth_cli_json_text(memory->scope),
                     "capacity_bytes", (json_int_t)memory->capacity_bytes, "alignment_bytes",
                     (json_int_t)memory->alignment_bytes, "host_visible", memory->host_visible);
}

static json_t *device_json(const berth_device_facts *device) {
    json_t *memories = json_array();
    for (uint32_t i = 0; i < device->memory_count; ++i)
        json_array_append_new(memories, memory_json(device->memories[i]));
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:[I, I, I], s:b, s:o}", "device",
        device->device, "name", berth_cli_json_text(device->name), "vendor",
        berth_cli_json_text(device->vendor), "driver_version",
        berth_cli_json_text(device->driver_version), "features",
        berth_cli_json_text(device->features), "compute_units", (json_int_t)device->compute_units,
        "max_group_size", (json_int_t)device->max_group_size, "local_memory_bytes",
        (json_int_t)device->local_memory_bytes, "max_bindings", (json_int_t)device->max_bindings,
        "cache_bytes", (json_int_t)device->cache_bytes[0], (json_int_t)device->cache_bytes[1],
        (json_int_t)device->cache_bytes[2], "shares_host_memory", device->shares_host_memory,
        "memories", memories);
}

// The device at `index` if it is one of the driver's.
static const berth_device_facts *device_of(const berth_device_list *list, uint32_t index,
                                           const berth_driver_facts *driver) {
    const berth_device_facts *device = berth_device_list_at(list, index);
    return strcmp(device->kind, driver->kind) == 0 ? device : NULL;
}

static json_t *report_json(const berth_device_list *list) {
    json_t *drivers = json_array();
    for (uint32_t i = 0; i < berth_device_list_driver_count(list); ++i) {
        const berth_driver_facts *driver = berth_device_list_driver_at(list, i);
        json_t *devices = json_array();
        for (uint32_t d = 0; d < berth_device_list_count(list); ++d)
            if (device_of(list, d, driver))
                json_array_append_new(devices, device_json(device_of(list, d, driver)));
        json_array_append_new(
            drivers, json_pack("{s:s, s:o, s:o, s:b, s:o, s:o, s:o}", "kind", driver->kind,
                               "description", berth_cli_json_text(driver->description), "library",
                               berth_cli_json_text(driver->library), "available", !*driver->missing,
                               "reason", berth_cli_json_text(driver->missing), "lacking",
                               berth_cli_json_text(driver->lacking), "devices", devices));
    }
    return json_pack("{s:o}", "drivers", drivers);
}

static void print_device(const berth_device_facts *device) {
    berth_cli_print("  %s  %s\n", device->device, device->name);
    berth_cli_print("      %s%s%s, %u compute unit%s", device->vendor, *device->vendor ? ", " : "",
                    device->driver_version, device->compute_units,
                    device->compute_units == 1 ? "" : "s");
    char bytes[32];
    if (device->local_memory_bytes) {
        berth_format_bytes(device->local_memory_bytes, bytes);
        berth_cli_print(", groups of up to %llu with %s of local memory",
                        (unsigned long long)device->max_group_size, bytes);
    }
    berth_cli_print("\n");
    if (*device->features) berth_cli_print("      %s\n", device->features);
    for (int level = 0; level < 3; ++level) {
        if (!device->cache_bytes[level]) continue;
        berth_format_bytes(device->cache_bytes[level], bytes);
        berth_cli_print("%s L%d %s", level ? "," : "      caches of a core:", level + 1, bytes);
    }
    if (device->cache_bytes[0]) berth_cli_print("\n");
    for (uint32_t i = 0; i < device->memory_count; ++i) {
        const berth_memory_facts *memory = device->memories[i];
        berth_format_bytes(memory->capacity_bytes, bytes);
        berth_cli_print("      memory %s: %s, aligned to %u%s\n", memory->scope,
                        memory->capacity_bytes ? bytes : "capacity unknown",
                        memory->alignment_bytes,
                        memory->host_visible                   ? ", host memory"
                        : i == 0 && device->shares_host_memory ? ", can be shared with the host"
                                                               : "");
    }
}

static void print_report(const berth_device_list *list) {
    for (uint32_t i = 0; i < berth_device_list_driver_count(list); ++i) {
        const berth_driver_facts *driver = berth_device_list_driver_at(list, i);
        berth_cli_print("%s: %s\n", driver->kind, driver->description);
        if (*driver->library) berth_cli_print("  loaded from %s\n", driver->library);
        if (*driver->missing) berth_cli_print("  not available: %s\n", driver->missing);
        if (*driver->lacking) berth_cli_print("  lacking: %s\n", driver->lacking);
        for (uint32_t d = 0; d < berth_device_list_count(list); ++d)
            if (device_of(list, d, driver)) print_device(device_of(list, d, driver));
    }
}

static berth_status show_devices(void *state) {
    devices_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    BERTH_TRY(berth_device_list_create(&command->list));
    if (json)
        berth_cli_print_json(report_json(command->list));
    else
        print_report(command->list);
    return BERTH_OK;
}

static void end(void *state) {
    berth_device_list_free(((devices_command *)state)->list);
}

int berth_cmd_devices(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse, "",
                 "Shows the drivers that are built in or loaded, the devices they find on this "
                 "machine, and what is missing and why.",
                 children, NULL, NULL},
        .run = show_devices,
        .end = end};
    devices_command state = {.list = NULL};
    return berth_cli_run(&command, &state, argc, argv);
}
