// Under AddressSanitizer, bytes of an allocator's memory that nobody may touch (private to memory/). What is
// hidden may be given back to the system as it is.
#ifndef BERTH_MEMORY_HIDE_H_
#define BERTH_MEMORY_HIDE_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BERTH_MEMORY_CHECKED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BERTH_MEMORY_CHECKED
#endif

#ifdef BERTH_MEMORY_CHECKED
#include <sanitizer/asan_interface.h>
#define BERTH_MEMORY_HIDE(bytes, size) __asan_poison_memory_region((bytes), (size))
#define BERTH_MEMORY_SHOW(bytes, size) __asan_unpoison_memory_region((bytes), (size))
#else
#define BERTH_MEMORY_HIDE(bytes, size) ((void)0)
#define BERTH_MEMORY_SHOW(bytes, size) ((void)0)
#endif

#endif  // BERTH_MEMORY_HIDE_H_
