// Text for people: results on stdout, messages on stderr. Names in models, targets and files are
// any bytes; what could steer a terminal is shown as its number.
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "tools/cli.h"

static void put_shown(FILE *out, const char *text, const char *end, const char *also_plain) {
    char character[20];
    while (text < end) {
        if (*text && strchr(also_plain, *text)) {
            fputc(*text++, out);
            continue;
        }
        berth_shown_character(&text, character);
        fputs(character, out);
    }
}

void berth_cli_print(const char *format, ...) {
    // A line break inside would be escaped like one in a name.
    assert(format[strcspn(format, "\n") + strspn(format + strcspn(format, "\n"), "\n")] == 0);
    char buffer[512];
    char *text = buffer;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof(buffer)) {
        text = malloc((size_t)length + 1);
        va_start(arguments, format);
        if (text) vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    if (length < 0 || !text) berth_cli_end_without_memory();
    size_t breaks = strlen(format) - strcspn(format, "\n");
    put_shown(stdout, text, text + (size_t)length - breaks, "");
    fputs(format + strcspn(format, "\n"), stdout);
    if (text != buffer) free(text);
}

void berth_cli_message(const char *level, const char *message) {
    fprintf(stderr, "berth: %s: ", level);
    put_shown(stderr, message, message + strlen(message), "\n\t");
    fputc('\n', stderr);
}

// A word of a shell.
static void put_quoted(FILE *out, const char *text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+@%";
    if (*text && text[strspn(text, plain)] == 0) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; ++text) {
        const char *end = text + strcspn(text, "'");
        put_shown(out, text, end, "");
        if (!*(text = end)) break;
        fputs("'\\''", out);
    }
    fputc('\'', out);
}

// What the command has for somebody who is to look at `name`.
static const struct {
    const char *name, *words;
} looks[] = {{"tags", "`berth target list` shows all tags"},
             {"operations", "`berth inspect` lists them"},
             {"plan", "`berth plan` plans without code"},
             {"simulation", "`berth simulate` shows its schedule"}};

static void put_look(const char *name) {
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); ++i)
        if (strcmp(looks[i].name, name) == 0) fprintf(stderr, "; %s", looks[i].words);
}

void berth_cli_error(berth_status status) {
    const char *message = berth_status_message(status);
    size_t count = berth_status_remedy_count(status), shown = 0;
    fprintf(stderr, "berth: error: ");
    put_shown(stderr, message, message + strlen(message), "\n\t");
    for (size_t i = 0; i < count; ++i) {
        berth_remedy remedy = berth_status_remedy(status, i);
        bool dimension = remedy.kind == BERTH_REMEDY_DIMENSION;
        if (remedy.kind == BERTH_REMEDY_LOOK) put_look(remedy.name);
        if (!dimension && remedy.kind != BERTH_REMEDY_INPUT) continue;
        fputs(shown++ ? " " : ", as in ", stderr);
        fputs(dimension ? "--dim " : "--input ", stderr);
        put_quoted(stderr, remedy.name);
        fputs(dimension ? "=1" : "=FILE", stderr);
    }
    fputc('\n', stderr);
}

void berth_cli_wrong_usage(struct argp_state *state, const char *format, ...) {
    char message[1024], shown[4096] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    size_t length = 0;
    for (const char *at = message; *at && length + 20 < sizeof(shown);)
        length += berth_shown_character(&at, shown + length);
    argp_error(state, "%s", shown);
}

void berth_cli_end_without_memory(void) {
    berth_cli_message("error", "out of memory");
    exit(1);
}

void berth_cli_close_results(void) {
    if (!ferror(stdout) && fflush(stdout) == 0) return;
    berth_cli_message("error", "cannot write the result to standard output");
    _exit(1);
}
