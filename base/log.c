#include "base/log.h"

#include <stdio.h>

void berth_log_message(berth_log log, berth_log_level level, const char *format, ...) {
    if (!log.write) return;
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    log.write(log.state, level, message);
}
