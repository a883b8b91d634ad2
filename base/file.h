// Files: read-only mappings, whole-file reads, and writes that are complete or not there at all.
#ifndef BERTH_BASE_FILE_H_
#define BERTH_BASE_FILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct berth_mapping {
    const uint8_t *data;  // NULL for an empty file
    size_t size_bytes;
} berth_mapping;

// Maps a regular file read-only. Errors: NOT_FOUND, IO (the message names the path and the system's
// reason).
BERTH_MUST_USE berth_status berth_file_map(const char *path, berth_mapping *out_mapping);
// The same, with the file kept open for pread; who calls closes *out_fd (-1 after an error).
BERTH_MUST_USE berth_status berth_file_map_open(const char *path, berth_mapping *out_mapping,
                                                int *out_fd);
// Reads [offset, +size) of an open file. Errors: IO. Thread-safe.
BERTH_MUST_USE berth_status berth_file_read_range(int fd, uint64_t offset_bytes, void *data,
                                                  size_t size_bytes);
void berth_file_unmap(berth_mapping mapping);
// Gives the mapping's pages in memory back to the system; they are read again from the file when
// touched.
void berth_file_drop_pages(berth_mapping mapping);
// The same for the whole pages of [data, +size_bytes); nothing happens when those are not of the
// mapping. Thread-safe, also beside readers.
void berth_file_drop_range(berth_mapping mapping, const void *data, size_t size_bytes);

// Reads a whole file of at most `limit_bytes` into the arena, aligned to 128 bytes and
// NUL-terminated after the data.
// Errors: NOT_FOUND, IO, OUT_OF_RANGE (larger than the limit).
BERTH_MUST_USE berth_status berth_file_read(berth_arena *arena, const char *path,
                                            size_t limit_bytes, char **out_data,
                                            size_t *out_size_bytes);

// The same from a descriptor, which stays open; `name` is for messages. An arena without memory
// gives OUT_OF_MEMORY and no jump: the descriptor can be closed.
BERTH_MUST_USE berth_status berth_file_read_fd(berth_arena *arena, int fd, const char *name,
                                               size_t limit_bytes, char **out_data,
                                               size_t *out_size_bytes);

// Writes to a temporary file beside `path`, syncs and renames: readers see the old content or the
// new, never a part.
// "-" writes to stdout.
BERTH_MUST_USE berth_status berth_file_write(const char *path, const void *data, size_t size_bytes);

// The same from several pieces, written one after another (large files without one large copy).
typedef struct berth_file_part {
    const void *data;
    size_t size_bytes;
} berth_file_part;
BERTH_MUST_USE berth_status berth_file_write_parts(const char *path, const berth_file_part *parts,
                                                   size_t count);
// The same with a name relative to an open folder (AT_FDCWD: the current one), and the mode of the
// new file before umask.
BERTH_MUST_USE berth_status berth_file_write_parts_at(int folder_fd, const char *name,
                                                      unsigned mode, const berth_file_part *parts,
                                                      size_t count);
// All parts to a descriptor; `name` is for messages.
BERTH_MUST_USE berth_status berth_file_write_fd(int fd, const char *name,
                                                const berth_file_part *parts, size_t count);

// Creates the folder and its parents (mode 0700 for those created).
BERTH_MUST_USE berth_status berth_file_make_folders(const char *path);
bool berth_file_exists(const char *path);

// The path of a file that another file names (`what` it is, for messages: "external data"), in the
// arena. It must lie below `folder`: a relative path without "..", no part of it a symbolic link.
// Errors: INVALID_ARGUMENT, NOT_FOUND.
BERTH_MUST_USE berth_status berth_file_below(berth_arena *arena, const char *folder,
                                             const char *location, const char *what,
                                             const char **out_path);

#endif  // BERTH_BASE_FILE_H_
