// What every command does before it looks at its command line.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli.h"

// Files must not become standard streams: where one of these is closed, writing to it fails.
static bool hold_standard_streams(void) {
    int fd = 0;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
    return fd >= 0;
}

bool berth_cli_begin(void) {
    if (!hold_standard_streams() || atexit(berth_cli_close_results) != 0) return false;
    signal(SIGPIPE,
           SIG_IGN);  // a reader that leaves early is an error of writing, like a full disk
    berth_cli_begin_json();
    berth_cli_watch_files();
    return true;
}
