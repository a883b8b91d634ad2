#include "tools/target_detect.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "toolkit/measure.h"

static void show_progress(void *user, const char *what) {
    const berth_cli_model *cli = user;
    if (!cli->quiet) fprintf(stderr, "berth: measuring %s\n", what);
}

static berth_status write_text(const berth_cli_detection *detection, const char *text) {
    if (detection->output && strcmp(detection->output, "-") != 0)
        return berth_file_write(detection->output, text, strlen(text));
    berth_cli_put_json(text);
    return BERTH_OK;
}

static berth_status detect_other(berth_cli_model *cli, const berth_cli_detection *detection) {
    const size_t limit_bytes = (size_t)16 << 20;
    char *data = NULL;
    size_t size_bytes = 0;
    BERTH_TRY(berth_file_read(cli->arena, detection->topology, limit_bytes, &data, &size_bytes));
    berth_topology *topology = NULL;
    berth_status status = berth_topology_read(cli->arena, data, size_bytes, &topology);
    if (status) return berth_status_prefix(status, "\"%s\"", detection->topology);
    const berth_machine_description description = {.name = detection->name, .topology = topology};
    const char *text = NULL;
    BERTH_TRY(berth_machine_describe(cli->arena, &description, &text));
    return write_text(detection, text);
}

// Devices that work in the host's memory need no memory of their own and no copies.
static void share_memory(berth_arena *arena, berth_machine_facts *facts) {
    berth_machine_device *devices =
        berth_arena_new_array(arena, berth_machine_device, facts->device_count);
    for (uint32_t i = 0; i < facts->device_count; ++i) {
        devices[i] = facts->devices[i];
        devices[i].shares_host_memory = devices[i].in_host_memory;
    }
    facts->devices = devices;
}

berth_status berth_cli_detect(berth_cli_model *cli, const berth_cli_detection *detection) {
    if (detection->topology) return detect_other(cli, detection);
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_local(cli->arena, &facts));
    share_memory(cli->arena, &facts);
    berth_topology *topology = berth_arena_new(cli->arena, berth_topology);
    BERTH_TRY(berth_topology_here(false, topology));
    berth_machine_description description = {
        .name = detection->name, .topology = topology, .facts = &facts};
    const berth_measure_options options = {.cache_folder = berth_cli_driver_cache(cli),
                                           .progress = show_progress,
                                           .user = cli,
                                           .log = berth_cli_log(cli)};
    if (!detection->no_measure)
        BERTH_TRY(berth_measure_machine(cli->arena, &options, &description));
    const char *text = NULL;
    BERTH_TRY(berth_machine_describe(cli->arena, &description, &text));
    return write_text(detection, text);
}
