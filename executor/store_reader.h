// Reads of constants from a program's file, or from memory, by two threads: the one that asks, and one more that
// waits for such reads, since one core copies half of what a machine's memory takes. Pieces are taken in turn,
// so that a read never waits for a thread that is busy with something else.
//
//   berth_store_reader *reader = NULL;
//   berth_store_reader_create(allocator, &reader);
//   berth_store_reader_read(reader, fd, offset_bytes, data, size_bytes);
//   berth_store_reader_destroy(reader);
#ifndef BERTH_EXECUTOR_STORE_READER_H_
#define BERTH_EXECUTOR_STORE_READER_H_

#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

typedef struct berth_store_reader berth_store_reader;

// Errors: OUT_OF_MEMORY; UNAVAILABLE the thread does not start.
BERTH_MUST_USE berth_status berth_store_reader_create(berth_allocator allocator,
                                                      berth_store_reader **out_reader);
// NULL is fine. No read may go on.
void berth_store_reader_destroy(berth_store_reader *reader);

// [offset_bytes, +size_bytes) of the file into `data`. Where a read goes on already, or the reader is NULL, the
// caller reads alone. Allocates nothing.
//   errors:  IO (the file is shorter, or cannot be read); `data` then holds parts
//   threads: thread-safe
BERTH_MUST_USE berth_status berth_store_reader_read(berth_store_reader *reader, int fd,
                                                    uint64_t offset_bytes, void *data,
                                                    uint64_t size_bytes);

// The same from memory: size_bytes at `source` to `data`; they must not overlap. Allocates nothing, cannot fail.
//   threads: thread-safe
void berth_store_reader_copy(berth_store_reader *reader, const void *source, void *data,
                             uint64_t size_bytes);

#endif  // BERTH_EXECUTOR_STORE_READER_H_
