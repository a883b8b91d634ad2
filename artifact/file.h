// The one-file form of a program (berth_program): versioned, little endian, checked before anything
// in it is used. Constants and images are used in place from the mapping. The format may still
// change between versions.
#ifndef BERTH_ARTIFACT_FILE_H_
#define BERTH_ARTIFACT_FILE_H_

#include "artifact/program.h"
#include "base/limits.h"

// Writes the program to `path` (complete or not at all). The same program gives the same bytes.
BERTH_MUST_USE berth_status berth_program_write(const berth_program *program, const char *path);

// The bytes of such a file in memory, in `arena`. Inside berth_arena_try of it or not.
BERTH_MUST_USE berth_status berth_program_to_memory(const berth_program *program,
                                                    berth_arena *arena, const void **out_data,
                                                    size_t *out_size_bytes);

// Opens a program file; everything, the mapping included, belongs to `arena`. The file stays mapped
// and its constants are used where they are: it must not be written over or cut while in use, or
// the process gets SIGBUS or reads other constants (berth_program_write puts a new file in its
// place, which is fine). `limits`: of the file's bytes, of records of its tables (items) and of time;
// NULL = none. Errors: NOT_FOUND, IO, INVALID_ARGUMENT (not a program file, truncated, wrong version,
// checks failed), OUT_OF_RANGE (a limit).
BERTH_MUST_USE berth_status berth_program_read(berth_arena *arena, const char *path,
                                               const berth_limits *limits,
                                               const berth_program **out_program);

// The same from memory that outlives `arena` (fuzzing, embedding).
BERTH_MUST_USE berth_status berth_program_parse(berth_arena *arena, const void *data,
                                                size_t size_bytes,
                                                const berth_program **out_program);

// The same with the content of constants checked, within limits (as above); `data` is aligned to
// BERTH_PROGRAM_FILE_ALIGNMENT. `name` is that of the limits' messages.
BERTH_MUST_USE berth_status berth_program_parse_checked(berth_arena *arena, const void *data,
                                                        size_t size_bytes, const char *name,
                                                        const berth_limits *limits,
                                                        const berth_program **out_program);

// Reads the whole file and checks everything, the content of constants too, which opening leaves
// unread so that it takes no time however large they are. Errors: as berth_program_read.
BERTH_MUST_USE berth_status berth_program_file_check(berth_allocator allocator, const char *path,
                                                     const berth_limits *limits);

// True when the file starts as a program file does (so that `berth run` takes either a model or a
// program).
bool berth_program_is_file(const char *path);

#endif  // BERTH_ARTIFACT_FILE_H_
