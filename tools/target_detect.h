// berth target detect: this machine, or one of an hwloc export, as a target file.
#ifndef BERTH_TOOLS_TARGET_DETECT_H_
#define BERTH_TOOLS_TARGET_DETECT_H_

#include "tools/cli.h"

typedef struct berth_cli_detection {
    const char *output;    // NULL or "-" = stdout
    const char *name;      // of the target; NULL = made up
    const char *topology;  // file of another machine; NULL = this one
    bool no_measure;
} berth_cli_detection;

BERTH_MUST_USE berth_status berth_cli_detect(berth_cli_model *cli,
                                             const berth_cli_detection *detection);

#endif  // BERTH_TOOLS_TARGET_DETECT_H_
