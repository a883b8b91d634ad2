#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(text, 1, size - 1, file) : 0;
    text[got] = 0;
    if (file) fclose(file);
}

const result *berth_run(const char *arguments) {
    static result r;
    char folder[] = "/tmp/berth-test-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char command[4096];
    char out[64];
    char err[64];
    snprintf(out, sizeof(out), "%s/out", folder);
    snprintf(err, sizeof(err), "%s/err", folder);
    snprintf(command, sizeof(command), "%s %s >%s 2>%s </dev/null", BERTH_COMMAND, arguments, out,
             err);
    int status = system(command);
    r.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_file(out, r.out, sizeof(r.out));
    read_file(err, r.err, sizeof(r.err));
    remove(out);
    remove(err);
    remove(folder);
    return &r;
}

json_t *berth_run_json(const char *arguments) {
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s: exit status %d\n%s", arguments, r->exit_status, r->err);
    json_error_t error;
    json_t *json = json_loads(r->out, 0, &error);
    cr_assert_not_null(json, "%s: %s", arguments, error.text);
    return json;
}

void berth_run_fails(const char *arguments, int exit_status, const char *message) {
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, exit_status, "%s: exit status %d\n%s", arguments, r->exit_status,
                 r->err);
    cr_assert(strstr(r->err, message), "%s: no \"%s\" in: %s", arguments, message, r->err);
    cr_assert_str_empty(r->out, "results on stdout in spite of an error");
}
