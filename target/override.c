// One override, "PATH=VALUE": `cores=2`, `devices[1].target.clock_hz=1e9`,
// `devices[gpu].target.arch=sm_90`.
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

typedef struct cursor {
    berth_target__parse *parse;
    const char *text;  // the whole override, for messages
    const char *at;
} cursor;

// The item called or numbered `name`; NULL with a diagnostic.
static json *find_item(cursor *c, json *array, const char *name) {
    char *end = NULL;
    unsigned long index = strtoul(name, &end, 10);
    if (*name && *end == 0 && index < array->items.count) return array->items.data[index];
    for (uint32_t i = 0; i < array->items.count; ++i) {
        const json *given = berth_target__json_get(array->items.data[i], "name");
        if (given && given->type == JSON_TYPE_STRING && strcmp(given->string, name) == 0)
            return array->items.data[i];
    }
    berth_target__error(c->parse, c->text, "there is no entry [%s]; the list has %u entries", name,
                        array->items.count);
    return NULL;
}

static json *step_into_item(cursor *c, json *value) {
    size_t length = strcspn(++c->at, "]");
    if (c->at[length] != ']') {
        berth_target__error(c->parse, c->text, "a ']' is missing");
        return NULL;
    }
    const char *name = berth_arena_strndup(c->parse->scratch, c->at, length);
    c->at += length + 1;
    if (value->type != JSON_TYPE_ARRAY) {
        berth_target__error(c->parse, c->text, "[%s] wants a list, but there is %s", name,
                            berth_target__json_type_name(value));
        return NULL;
    }
    return find_item(c, value, name);
}

static json *parse_value(berth_target__parse *parse, const char *text) {
    const char *error = NULL;
    json *value =
        berth_target__json_read(parse->scratch, parse->scratch, text, strlen(text), &error);
    return value ? value : berth_target__json_string(parse->scratch, text);
}

void berth_target__override(berth_target__parse *parse, json *root, const char *text) {
    cursor c = {parse, text, text};
    json *value = root;
    for (;;) {
        if (*c.at == '[') {
            value = step_into_item(&c, value);
            if (!value) return;
            if (*c.at == '.') c.at++;
            continue;
        }
        size_t length = strcspn(c.at, ".[=");
        const char *key = berth_arena_strndup(parse->scratch, c.at, length);
        c.at += length;
        if (length == 0 || *c.at == 0) {
            berth_target__error(parse, text,
                                "an override is PATH=VALUE, as in devices[0].target.cores=2");
            return;
        }
        if (value->type != JSON_TYPE_OBJECT) {
            berth_target__error(parse, text, "'%s' wants an object, but there is %s", key,
                                berth_target__json_type_name(value));
            return;
        }
        if (*c.at == '=') {
            berth_target__json_set(parse->scratch, value, key, parse_value(parse, c.at + 1));
            return;
        }
        json *next = berth_target__json_get(value, key);
        if (!next && *c.at == '.') {
            next = berth_target__json_object(parse->scratch);
            berth_target__json_set(parse->scratch, value, key, next);
        }
        if (!next) {
            berth_target__error(parse, text, "there is no list '%s'%s", key,
                                value == root && strcmp(key, "devices") == 0
                                    ? ": a target of one device takes its fields alone, as cores=2"
                                    : "");
            return;
        }
        value = next;
        if (*c.at == '.') c.at++;
    }
}
