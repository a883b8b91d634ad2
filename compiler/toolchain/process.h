// Compilers as processes (private to compiler/): in a temporary folder of their own, without a
// shell, with a time limit, ended with their children.
//
// The folder is known by its descriptor and the processes start inside it: no path of ours reaches
// a command line, so it may hold spaces, newlines or begin with a dash, and whoever moves or
// replaces the path changes nothing.
#ifndef BERTH_COMPILER_TOOLCHAIN_PROCESS_H_
#define BERTH_COMPILER_TOOLCHAIN_PROCESS_H_

#include <sys/types.h>

#include "base/arena.h"
#include "base/interrupt.h"

typedef struct berth_work_folder {
    char *path;  // NULL = not made
    int fd;
} berth_work_folder;

// A new folder in `base` that only this user can enter. Errors: IO.
BERTH_MUST_USE berth_status berth_work_folder__make(berth_arena *arena, const char *base,
                                                    berth_work_folder *out_folder);
// Removes it with the files in it. Allocates nothing. Nothing was made: nothing
// happens.
void berth_work_folder__remove(berth_work_folder *folder);
// Files in it, by name.
BERTH_MUST_USE berth_status berth_work_folder__write(const berth_work_folder *folder,
                                                     const char *name, const void *data,
                                                     size_t size_bytes);
BERTH_MUST_USE berth_status berth_work_folder__read(const berth_work_folder *folder,
                                                    berth_arena *arena, const char *name,
                                                    size_t limit_bytes, char **out_data,
                                                    size_t *out_size_bytes);

typedef struct berth_command_line {
    const char *program;     // absolute path
    char *const *arguments;  // the first is the program's own name; NULL-terminated
    const char *search_path;
} berth_command_line;

// Starts it in the folder, with a fresh environment (PATH, TMPDIR, LC_ALL) and a process group of
// its own; stdout and stderr go to the files of these names in it, NULL = nowhere. Errors:
// UNAVAILABLE.
BERTH_MUST_USE berth_status berth_process__start(const berth_work_folder *folder,
                                                 const berth_command_line *line,
                                                 const char *stdout_name, const char *stderr_name,
                                                 berth_arena *arena, pid_t *out_pid);
// Whether the process has ended; *out_status is that of wait. Errors: IO.
BERTH_MUST_USE berth_status berth_process__poll(pid_t pid, bool *out_ended, int *out_status);
// Asks the process and its children to end, and makes them when they do not at once. Returns when
// it is gone.
void berth_process__end(pid_t pid);

#endif  // BERTH_COMPILER_TOOLCHAIN_PROCESS_H_
