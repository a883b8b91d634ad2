// Asking a library that does not survive everything (memory that runs out inside of it, say): a
// child process asks, and only its answer comes back. A child that crashes or hangs is an error.
#ifndef BERTH_BASE_HELPER_H_
#define BERTH_BASE_HELPER_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Runs body(user, answer) in a fork of this process, with at most `time_limit_ns` of time, and
// copies the `answer_bytes` at `answer` back, where body filled them in. Nothing else of what body
// does is seen here: its memory is the child's own, its messages go nowhere. `what` is for messages:
// "this machine's topology". Allocates nothing.
//   errors:  UNAVAILABLE the child crashed or took too long; OUT_OF_MEMORY there is no child
//   threads: thread-safe. Only the calling thread is in the child, so body must not wait for others
BERTH_MUST_USE berth_status berth_helper_ask(const char *what,
                                             void (*body)(const void *user, void *answer),
                                             const void *user, void *answer, size_t answer_bytes,
                                             int64_t time_limit_ns);

#endif  // BERTH_BASE_HELPER_H_
