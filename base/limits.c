#include "base/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { MOST_DEPTH = 500, CLOCK_EVERY = 64 };

bool berth_parse_bytes(const char *text, uint64_t *out_bytes) {
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {{"", 0},     {"B", 0},  {"K", 10},   {"KiB", 10}, {"M", 20},
                 {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};
    if (*text < '0' || *text > '9') return false;
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0) return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        if (strcmp(end, units[i].suffix) != 0) continue;
        if (number > UINT64_MAX >> units[i].shift) return false;
        *out_bytes = number << units[i].shift;
        return true;
    }
    return false;
}

bool berth_parse_time(const char *text, int64_t *out_ns) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    double value = strtod(text, &end);
    double unit = strcmp(end, "ms") == 0           ? 1e6
                  : strcmp(end, "s") == 0 || !*end ? 1e9
                  : strcmp(end, "m") == 0          ? 6e10
                                                   : 0;
    if (unit == 0 || !(value > 0) || !(value * unit < 9e17)) return false;
    *out_ns = (int64_t)(value * unit);
    return true;
}

// ---- limits -------------------------------------------------------------------------------------

static bool parse_count(const char *text, uint64_t most, uint64_t *out) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == 0 && *out > 0 && *out <= most;
}

// One "NAME=VALUE"; `seen` has a bit per name.
static berth_status parse_limit(char *item, unsigned *seen, berth_limits *limits) {
    static const char *const names[] = {"bytes", "items", "depth", "time"};
    static const char *const values[] = {"bytes from 1, such as 64MiB", "a number from 1",
                                         "a number from 1 to 500", "a time such as 500ms, 10s, 2m"};
    char *value = strchr(item, '=');
    unsigned name = 0;
    if (value) *value++ = 0;
    while (name < 4 && strcmp(item, names[name]) != 0) name++;
    if (name == 4 || !value)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "limits are bytes=, items=, depth= and time=, separated by "
                                 "commas, not \"%s\"",
                                 item);
    if (*seen & 1u << name)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "limit %s is given twice", item);
    *seen |= 1u << name;
    bool fine = name == 0   ? berth_parse_bytes(value, &limits->bytes) && limits->bytes > 0
                : name == 1 ? parse_count(value, UINT64_MAX, &limits->items)
                : name == 2 ? parse_count(value, MOST_DEPTH, &limits->depth)
                            : berth_parse_time(value, &limits->time_ns);
    if (fine) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "limit %s takes %s, not \"%s\"", item,
                             values[name], value);
}

berth_status berth_limits_parse(const char *text, berth_limits *out_limits) {
    char copy[256];
    unsigned seen = 0;
    *out_limits = (berth_limits){0};
    if (!text || !*text) return BERTH_OK;
    if (strlen(text) >= sizeof(copy))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "limits of more than %zu characters",
                                 sizeof(copy) - 1);
    memcpy(copy, text, strlen(text) + 1);
    for (char *item = copy; item;) {
        char *comma = strchr(item, ',');
        if (comma) *comma++ = 0;
        BERTH_TRY(parse_limit(item, &seen, out_limits));
        item = comma;
    }
    return BERTH_OK;
}

berth_status berth_limits_check_bytes(const berth_limits *limits, const char *file,
                                      uint64_t size_bytes, uint64_t own) {
    uint64_t most = limits && limits->bytes ? limits->bytes : own;
    if (most == 0 || size_bytes <= most) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "%s: %llu bytes, and the limit is bytes=%llu; raise it for a file "
                             "that you trust",
                             file, (unsigned long long)size_bytes, (unsigned long long)most);
}

berth_limit_watch berth_limits_watch(const berth_limits *limits, const char *file, const char *what,
                                     uint64_t own) {
    int64_t time_ns = limits && limits->time_ns ? limits->time_ns : BERTH_LIMITS_TIME_NS;
    return (berth_limit_watch){.file = file,
                               .what = what,
                               .most = limits && limits->items ? limits->items
                                       : own                   ? own
                                                               : UINT64_MAX,
                               .time_ns = time_ns,
                               .deadline_ns = berth_clock_deadline_ns(berth_clock_ns(), time_ns)};
}

berth_status berth_limit_items(berth_limit_watch *watch, uint64_t count) {
    uint64_t before = watch->items;
    watch->items += count;
    if (watch->items > watch->most)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "%s: more than %llu %s, and the limit is items=%llu; raise it for "
                                 "a file that you trust",
                                 watch->file, (unsigned long long)watch->most, watch->what,
                                 (unsigned long long)watch->most);
    bool looks = before / CLOCK_EVERY != watch->items / CLOCK_EVERY;
    if (!looks || berth_clock_ns() < watch->deadline_ns) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "%s: reading takes longer than the limit time=%gs (%llu %s are read); "
                             "raise it for a file that you trust",
                             watch->file, (double)watch->time_ns * 1e-9,
                             (unsigned long long)watch->items, watch->what);
}

berth_status berth_limit_item(berth_limit_watch *watch) {
    return berth_limit_items(watch, 1);
}
