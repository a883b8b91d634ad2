// Prints the driver x group matrix when all tests are done.
#include <criterion/event.h>
#include <criterion/hooks.h>
#include <criterion/logging.h>
#include <stdio.h>

#include "tests/conformance/conformance.h"

#define MAX_GROUPS 32
#define MAX_NAME 32

typedef struct cell {
    int passed, failed, expected, unsupported, unavailable;
} cell;

typedef struct matrix {
    char groups[MAX_GROUPS][MAX_NAME];
    int group_count;
    cell cells[MAX_GROUPS][CONFORMANCE_DRIVER_COUNT];
} matrix;

static int group_of(matrix *m, const char *test) {
    const char *end = strstr(test, "__");
    size_t length = end ? (size_t)(end - test) : strlen(test);
    for (int i = 0; i < m->group_count; ++i)
        if (strlen(m->groups[i]) == length && strncmp(m->groups[i], test, length) == 0) return i;
    if (m->group_count == MAX_GROUPS) return MAX_GROUPS - 1;
    snprintf(m->groups[m->group_count], MAX_NAME, "%.*s", (int)length, test);
    return m->group_count++;
}

static void count_test(matrix *m, int driver, const struct criterion_test_stats *stats) {
    const conformance_driver *row = &conformance_drivers[driver];
    const char *name = stats->test->name;
    if (stats->test->data->disabled) return;  // filtered out
    cell *at = &m->cells[group_of(m, name)][driver];
    if (stats->test_status == CR_STATUS_SKIPPED) {
        if (conformance_find(row->unsupported, name))
            ++at->unsupported;
        else
            ++at->unavailable;
    } else if (stats->test_status == CR_STATUS_FAILED || stats->crashed || stats->timed_out) {
        ++at->failed;
    } else if (conformance_find(row->expected_failures, name)) {
        ++at->expected;
    } else {
        ++at->passed;
    }
}

static void collect(matrix *m, const struct criterion_global_stats *stats) {
    for (const struct criterion_suite_stats *suite = stats->suites; suite; suite = suite->next)
        for (int driver = 0; driver < CONFORMANCE_DRIVER_COUNT; ++driver) {
            if (strcmp(suite->suite->name, conformance_drivers[driver].name) != 0) continue;
            for (const struct criterion_test_stats *test = suite->tests; test; test = test->next)
                count_test(m, driver, test);
        }
}

static void format_cell(const cell *at, char out[MAX_NAME]) {
    int done = at->passed + at->failed;
    if (done + at->unavailable + at->unsupported + at->expected == 0)
        snprintf(out, MAX_NAME, "-");
    else if (at->failed)
        snprintf(out, MAX_NAME, "%d of %d FAIL", at->failed, done);
    else if (at->unavailable)
        snprintf(out, MAX_NAME, "unavailable");
    else if (at->unsupported || at->expected)
        snprintf(out, MAX_NAME, "%d ok, %d not", at->passed, at->unsupported + at->expected);
    else
        snprintf(out, MAX_NAME, "%d ok", at->passed);
}

static void print_exceptions(const char *what, const conformance_driver *row,
                             const conformance_exception *list) {
    for (; list->pattern; ++list)
        printf("  %s: %s %s: %s\n", row->name, what, list->pattern, list->reason);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats) {
    static matrix m;
    collect(&m, stats);
    printf("\n%-12s", "");
    for (int driver = 0; driver < CONFORMANCE_DRIVER_COUNT; ++driver)
        printf(" %-14s", conformance_drivers[driver].name);
    printf("\n");
    for (int group = 0; group < m.group_count; ++group) {
        printf("%-12s", m.groups[group]);
        for (int driver = 0; driver < CONFORMANCE_DRIVER_COUNT; ++driver) {
            char text[MAX_NAME];
            format_cell(&m.cells[group][driver], text);
            printf(" %-14s", text);
        }
        printf("\n");
    }
    for (int driver = 0; driver < CONFORMANCE_DRIVER_COUNT; ++driver) {
        const conformance_driver *row = &conformance_drivers[driver];
        print_exceptions("does not support", row, row->unsupported);
        print_exceptions("is expected to fail", row, row->expected_failures);
    }
    fflush(stdout);
}
