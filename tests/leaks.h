// Leaving a test out of the search for leaks (lsan_parent.c).
#ifndef BERTH_TESTS_LEAKS_H_
#define BERTH_TESTS_LEAKS_H_

#ifdef __SANITIZE_ADDRESS__
void leave_leaks(void);
#else
static inline void leave_leaks(void) {
}
#endif

#endif  // BERTH_TESTS_LEAKS_H_
