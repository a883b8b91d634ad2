#include "tools/target_detect.h"

#include <berth/target.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tools/cli_compiler.h"

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

berth_status berth_cli_detect(berth_cli_model *cli, const berth_cli_detection *detection) {
    const berth_detect_settings settings = {.size_bytes = sizeof(settings),
                                            .name = detection->name,
                                            .topology = detection->topology,
                                            .no_measure = detection->no_measure,
                                            .cache_folder = berth_cli_driver_cache(cli),
                                            .on_begin = show_progress,
                                            .on_message = berth_cli_level_message,
                                            .user = cli};
    berth_target_description *description = NULL;
    BERTH_TRY(berth_target_detect(&settings, &description));
    berth_status status = write_text(detection, berth_target_description_json(description));
    berth_target_description_free(description);
    return status;
}
