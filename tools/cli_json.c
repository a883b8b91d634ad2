// JSON that commands print.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli.h"

static void *allocate(size_t size_bytes) {
    void *memory = malloc(size_bytes);
    if (!memory) berth_cli_end_without_memory();
    return memory;
}

void berth_cli_begin_json(void) {
    json_set_alloc_funcs(allocate, free);
}

json_t *berth_cli_json_text(const char *text) {
    static const char replacement[] = "\xef\xbf\xbd";
    if (!text) return json_null();
    json_t *json = json_string(text);
    if (json) return json;
    char *clean = malloc(strlen(text) * 3 + 1);
    size_t length = 0;
    if (!clean) berth_cli_end_without_memory();
    while (*text) {
        size_t valid = berth_utf8_length(text);
        memcpy(clean + length, valid ? text : replacement, valid ? valid : 3);
        length += valid ? valid : 3;
        text += valid ? valid : 1;
    }
    json = json_stringn(clean, length);
    free(clean);
    return json;
}

// Outside ASCII, JSON has only characters of strings: what could steer a terminal is escaped there.
void berth_cli_put_json(const char *text) {
    while (*text) {
        size_t plain = strcspn(text, "\x7f\xc2\xd8\xe2");  // where such characters begin
        fwrite(text, 1, plain, stdout);
        text += plain;
        if (!*text) break;
        char shown[20];
        const char *begin = text;
        const unsigned char *at = (const unsigned char *)text;
        size_t length = berth_utf8_length(text);
        if (berth_shown_character(&text, shown) == length && length)
            fwrite(begin, 1, length, stdout);
        else if (length == 3)
            printf("\\u%04x", (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu));
        else if (length == 2)
            printf("\\u%04x", (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu));
        else
            printf("\\u%04x", (unsigned)at[0]);
    }
}

void berth_cli_print_json(json_t *json) {
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    if (!text) berth_cli_end_without_memory();
    berth_cli_put_json(text);
    putchar('\n');
    free(text);
    json_decref(json);
}
