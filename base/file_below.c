// Files that another file names: only below that file's folder.
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

// Relative, without "..", so that it names something below the folder.
static berth_status check_location(const char *location, const char *what) {
    if (!*location) return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has no location", what);
    if (location[0] == '/' || strchr(location, '\\'))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s \"%s\" is not a path relative to the model's folder", what,
                                 location);
    for (const char *part = location; part; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || !part[2]))
            return berth_status_make(BERTH_INVALID_ARGUMENT, "%s \"%s\" leaves the model's folder",
                                     what, location);
    }
    return BERTH_OK;
}

berth_status berth_file_below(berth_arena *arena, const char *folder, const char *location,
                              const char *what, const char **out_path) {
    *out_path = NULL;
    BERTH_TRY(check_location(location, what));
    const char *end = location, *path = NULL;
    while (*end) {  // no component may be a symbolic link: it could lead anywhere
        while (*end && *end != '/') end++;
        path = berth_arena_printf(arena, "%s/%.*s", folder, (int)(end - location), location);
        struct stat info;
        if (lstat(path, &info) != 0)
            return berth_status_make(BERTH_NOT_FOUND, "%s \"%s\" is not there (looked in \"%s\")",
                                     what, location, folder);
        if (S_ISLNK(info.st_mode))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s \"%s\" is or goes through a symbolic link", what,
                                     location);
        while (*end == '/') end++;
    }
    *out_path = path;
    return BERTH_OK;
}
