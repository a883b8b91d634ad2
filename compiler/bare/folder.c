// The folder that the sources go to: all of it appears at once.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/bare/bare.h"

static berth_status io_error(const char *what, const char *path) {
    return berth_status_make(BERTH_IO, "cannot %s \"%s\": %s", what, path, strerror(errno));
}

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

// Whether an earlier run may have written it: those sources and nothing that a build left.
static bool is_ours(const char *name) {
    return strcmp(name, "main.c") == 0 || strcmp(name, "Makefile") == 0 ||
           strcmp(name, "CMakeLists.txt") == 0 || ends_with(name, ".c") || ends_with(name, ".h") ||
           ends_with(name, "_store.bin") ||
           (strncmp(name, "lib", 3) == 0 && ends_with(name, ".so"));
}

typedef struct listing {
    BERTH_VEC(const char *) names;
    bool has_model;  // NAME_weights.h, which only this writes
} listing;

// What is in a folder. Errors: ALREADY_EXISTS naming what this did not write.
static berth_status list_folder(berth_arena *arena, const char *folder, listing *out) {
    DIR *open = opendir(folder);
    if (!open) return io_error("read the folder", folder);
    const char *foreign = NULL;
    for (const struct dirent *entry; (entry = readdir(open));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        char text[512];
        snprintf(text, sizeof(text), "%s", name);
        if (!is_ours(name)) foreign = berth_arena_strdup(arena, text);
        out->has_model |= ends_with(name, "_weights.h");
        berth_vec_push(arena, &out->names, berth_arena_strdup(arena, text));
    }
    closedir(open);
    if (out->names.count && !out->has_model && !foreign) foreign = out->names.data[0];
    if (!foreign) return BERTH_OK;
    return berth_status_make(
        BERTH_ALREADY_EXISTS,
        "the folder \"%s\" holds \"%s\", which is not of an earlier build: give "
        "a new folder, or empty this one",
        folder, foreign);
}

static void remove_folder(berth_arena *arena, const char *folder, const listing *held) {
    for (uint32_t i = 0; i < held->names.count; ++i)
        unlink(berth_arena_printf(arena, "%s/%s", folder, held->names.data[i]));
    rmdir(folder);
}

static berth_status write_files(berth_arena *arena, const char *folder,
                                const berth_bare_file *files, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(berth_file_write(berth_arena_printf(arena, "%s/%s", folder, files[i].name),
                                   files[i].text, files[i].size_bytes));
    return BERTH_OK;
}

// The finished folder takes the place of what is there.
static berth_status move_there(berth_arena *arena, const char *made, const char *folder,
                               const listing *old, bool there) {
    const char *aside = berth_arena_printf(arena, "%s.old", made);
    if (there && rename(folder, aside) != 0) return io_error("replace the folder", folder);
    if (rename(made, folder) != 0) {
        berth_status status = io_error("make the folder", folder);
        if (there && rename(aside, folder) != 0) return status;
        return status;
    }
    if (there) remove_folder(arena, aside, old);
    return BERTH_OK;
}

// A new folder beside the one that it will become, with the mode that the process gives.
static berth_status make_beside(berth_arena *arena, const char *folder, const char **out_made) {
    enum { attempts = 100 };
    for (int i = 0; i < attempts; ++i) {
        *out_made = berth_arena_printf(arena, "%s.new-%ld-%d", folder, (long)getpid(), i);
        if (mkdir(*out_made, 0777) == 0) return BERTH_OK;
        if (errno != EEXIST) break;
    }
    return io_error("make the folder", *out_made);
}

typedef struct write_call {
    berth_arena *arena;
    const char *folder;
    const berth_bare_file *files;
    uint32_t count;
} write_call;

static berth_status write_body(void *user) {
    write_call *call = user;
    berth_arena *arena = call->arena;
    listing old = {0}, made = {0};
    struct stat facts;
    char *folder = berth_arena_strdup(arena, call->folder);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/';) folder[--end] = 0;
    bool there = lstat(folder, &facts) == 0;
    if (there && !S_ISDIR(facts.st_mode))
        return berth_status_make(BERTH_ALREADY_EXISTS, "\"%s\" is there and is no folder", folder);
    if (there) BERTH_TRY(list_folder(arena, folder, &old));
    for (uint32_t i = 0; i < call->count; ++i)
        berth_vec_push(arena, &made.names, call->files[i].name);
    const char *temporary = NULL;
    BERTH_TRY(make_beside(arena, folder, &temporary));
    berth_status status = write_files(arena, temporary, call->files, call->count);
    if (!status) status = move_there(arena, temporary, folder, &old, there);
    if (status) remove_folder(arena, temporary, &made);
    return status;
}

berth_status berth_bare_write(const berth_program *program, const berth_bare_options *options,
                              const char *folder) {
    write_call call = {.folder = folder};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &call.arena));
    berth_status status = berth_bare_print(program, options, call.arena, &call.files, &call.count);
    if (!status) status = berth_arena_try(call.arena, write_body, &call);
    berth_arena_destroy(call.arena);
    return status;
}
