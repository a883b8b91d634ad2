// Leaving a test out of the search for leaks (lsan_parent.c).
#ifndef BERTH_TESTS_LEAKS_H_
#define BERTH_TESTS_LEAKS_H_

#if defined(__has_feature)  // Clang's word for it
#if __has_feature(address_sanitizer)
#define BERTH_TESTS_SEEK_LEAKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(BERTH_TESTS_SEEK_LEAKS)
void leave_leaks(void);
#else
static inline void leave_leaks(void) {
}
#endif

#endif  // BERTH_TESTS_LEAKS_H_
