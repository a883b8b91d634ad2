#include "tools/beside.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli.h"

#define PREFIX "berth-"

enum { folder_count = 2, path_bytes = 4096 };

// The folder of this program, without symbolic links; false where the system does not say.
static bool own_folder(char out[path_bytes]) {
    ssize_t length = readlink("/proc/self/exe", out, path_bytes - 1);
    if (length <= 0 || length == path_bytes - 1) return false;
    out[length] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

static bool folder_at(int index, char out[path_bytes]) {
    char own[path_bytes];
    if (!own_folder(own)) return false;
    int length =
        snprintf(out, path_bytes, "%s%s", own, index == 0 ? "" : "/" BERTH_LIBEXEC_FROM_BIN);
    return length < path_bytes;
}

// Small letters, digits and dashes: no path, nothing that a terminal does not show.
static bool is_name(const char *name) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && name[length] == 0 && length < BERTH_BESIDE_NAME_BYTES;
}

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool program_in(const char *folder, const char *name, char out[path_bytes]) {
    return snprintf(out, path_bytes, "%s/" PREFIX "%s", folder, name) < path_bytes &&
           is_program(out);
}

static void add_name(berth_beside *list, const char *name) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (strcmp(list->names[i], name) == 0) return;
    if (list->count == BERTH_BESIDE_MOST) return;
    snprintf(list->names[list->count++], BERTH_BESIDE_NAME_BYTES, "%s", name);
}

static void add_folder(berth_beside *list, const char *folder) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    char path[path_bytes];
    for (struct dirent *entry; (entry = readdir(open_folder));) {
        const char *name = entry->d_name;
        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) continue;
        name += strlen(PREFIX);
        if (is_name(name) && program_in(folder, name, path)) add_name(list, name);
    }
    closedir(open_folder);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

void berth_beside_list(berth_beside *out_list) {
    char folder[path_bytes];
    out_list->count = 0;
    for (int i = 0; i < folder_count; ++i)
        if (folder_at(i, folder)) add_folder(out_list, folder);
    qsort(out_list->names, out_list->count, sizeof(out_list->names[0]), compare_names);
}

void berth_beside_run(int argc, char **argv) {
    (void)argc;
    char folder[path_bytes], path[path_bytes], message[path_bytes + 128];
    for (int i = 0; is_name(argv[0]) && i < folder_count; ++i) {
        if (!folder_at(i, folder) || !program_in(folder, argv[0], path)) continue;
        argv[0] = path;
        execv(path, argv);
        snprintf(message, sizeof(message), "cannot start %s: %s", path, strerror(errno));
        berth_cli_message("error", message);
        exit(1);
    }
}
