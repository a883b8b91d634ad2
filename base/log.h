// Messages for people while work goes on (warnings, progress). Results never go here. The sink is
// passed by value; a zero sink drops everything. Thread-safety is that of the sink.
#ifndef BERTH_BASE_LOG_H_
#define BERTH_BASE_LOG_H_

#include "base/status.h"

typedef enum berth_log_level {
    BERTH_LOG_ERROR,
    BERTH_LOG_WARNING,
    BERTH_LOG_INFO,
    BERTH_LOG_DEBUG
} berth_log_level;

typedef struct berth_log {
    void (*write)(void *state, berth_log_level level, const char *message);
    void *state;
} berth_log;

void berth_log_message(berth_log log, berth_log_level level, const char *format, ...)
    BERTH_PRINTF(3, 4);

#endif  // BERTH_BASE_LOG_H_
