// What a driver keeps on disk from one run to the next (compiled kernels), in a folder of its own in
// the kernel cache. Compilers and drivers want to be given what they gave before, and nothing else: a
// file is taken only where it is the user's own and its header and hash are right. What cannot be
// read or written is not there: the files save time and nothing else. Private to devices.
//
//   int folder = berth_kept_folder_open(options->cache_folder, "cuda");
//   void *data = berth_kept_file_read(folder, name, identity, allocator, &size_bytes);
#ifndef BERTH_DEVICES_KEPT_FILE_H_
#define BERTH_DEVICES_KEPT_FILE_H_

#include "base/alloc.h"
#include "base/hash.h"

// The folder `name` in `cache_folder`, made where it is missing; -1: none that may be used, or
// cache_folder is NULL. The caller closes it.
int berth_kept_folder_open(const char *cache_folder, const char *name);
// What was written under that name for the same identity, in `allocator`; NULL: nothing to use.
// Nothing is read where folder is -1.
void *berth_kept_file_read(int folder, const char *name, berth_hash128 identity,
                           berth_allocator allocator, size_t *out_bytes);
void berth_kept_file_write(int folder, const char *name, berth_hash128 identity, const void *data,
                           size_t size_bytes);

#endif  // BERTH_DEVICES_KEPT_FILE_H_
