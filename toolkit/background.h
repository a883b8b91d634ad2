// Work that nobody waits for: one thing after another, on a thread of low priority that lives while there is some.
//
//   berth_background *work = NULL;
//   BERTH_TRY(berth_background_create(&work));
//   berth_background_add(work, run, drop, job);     // run(job) on the thread, then drop(job)
//   ...
//   berth_background_destroy(work);                 // what runs is asked to end, what waits is dropped
//
// Thread-compatible: one thread creates, adds, waits and destroys.
#ifndef BERTH_TOOLKIT_BACKGROUND_H_
#define BERTH_TOOLKIT_BACKGROUND_H_

#include <stdbool.h>

#include "base/status.h"

typedef struct berth_background berth_background;

BERTH_MUST_USE berth_status berth_background_create(berth_background **out_background);
// Waits for what runs, which sees berth_background_ends before. NULL is fine.
void berth_background_destroy(berth_background *background);

// Takes `job`, which drop() gets on whatever thread once it ran or will not; it is dropped at once where there is no
// memory or no thread.
void berth_background_add(berth_background *background, void (*run)(void *job),
                          void (*drop)(void *job), void *job);
// Whether what runs is to end soon. Any thread.
bool berth_background_ends(const berth_background *background);
// Until all that was added ran. NULL is fine.
void berth_background_wait(berth_background *background);

#endif  // BERTH_TOOLKIT_BACKGROUND_H_
