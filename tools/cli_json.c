// JSON that commands print.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"

// Length of the UTF-8 character at `text`; 0 when there is none. JSON takes no surrogates and
// nothing above U+10FFFF (RFC 3629, section 4).
static size_t character_length(const unsigned char *text) {
    if (text[0] < 0x80) return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool outside = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

json_t *berth_cli_json_text(const char *text) {
    static const char replacement[] = "\xef\xbf\xbd";
    if (!text) return json_null();
    json_t *json = json_string(text);
    if (json) return json;
    char *clean = malloc(strlen(text) * 3 + 1);
    size_t length = 0;
    if (!clean) return NULL;
    while (*text) {
        size_t valid = character_length((const unsigned char *)text);
        memcpy(clean + length, valid ? text : replacement, valid ? valid : 3);
        length += valid ? valid : 3;
        text += valid ? valid : 1;
    }
    json = json_stringn(clean, length);
    free(clean);
    return json;
}

int berth_cli_print_json(json_t *json) {
    int failed = !json || json_dumpf(json, stdout, JSON_INDENT(2) | JSON_SORT_KEYS) != 0 ||
                 putchar('\n') == EOF || fflush(stdout) != 0;
    if (!json) fputs("berth: error: no memory for the result's JSON\n", stderr);
    json_decref(json);
    return failed;  // of stdout, the end of main says it
}
