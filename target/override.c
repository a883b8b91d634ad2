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

static const char *item_names(berth_arena *arena, const json *array, bool devices) {
    const char **names = berth_arena_new_array(arena, const char *, array->items.count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < array->items.count; ++i) {
        const char *name = berth_target__text_of(array->items.data[i], "name");
        if (*name || devices)
            names[count++] = *name ? name : berth_target__entry_name(arena, array, i);
    }
    if (count == 0) return "";
    return berth_arena_printf(arena, ": %s", berth_target__join(arena, names));
}

// Index of the item called or numbered `name`; BERTH_NO_INDEX with a diagnostic.
static uint32_t find_item(cursor *c, const json *array, const char *name, bool devices) {
    char *end = NULL;
    unsigned long long index = strtoull(name, &end, 10);
    if (*name && *end == 0 && index < array->items.count) return (uint32_t)index;
    if (devices) {
        uint32_t named = berth_target__entry_named(array, name);
        if (named != BERTH_NO_INDEX) return named;
    }
    for (uint32_t i = 0; i < array->items.count; ++i)
        if (*name && strcmp(berth_target__text_of(array->items.data[i], "name"), name) == 0)
            return i;
    berth_target__error(c->parse, c->text, "there is no entry [%s]; the list has %u entries%s",
                        name, array->items.count, item_names(c->parse->scratch, array, devices));
    return BERTH_NO_INDEX;
}

// Below the item of a list: *inout_value becomes it, NULL with a diagnostic. Entries of "devices"
// are also called KIND:N, so what they spell is read first.
static berth_status step_into_item(cursor *c, const char *list, json **inout_value) {
    json *array = *inout_value;
    *inout_value = NULL;
    size_t length = strcspn(++c->at, "]");
    if (c->at[length] != ']') {
        berth_target__error(c->parse, c->text, "a ']' is missing");
        return BERTH_OK;
    }
    const char *name = berth_arena_strndup(c->parse->scratch, c->at, length);
    c->at += length + 1;
    if (array->type != JSON_TYPE_ARRAY) {
        berth_target__error(c->parse, c->text, "[%s] wants a list, but there is %s", name,
                            berth_target__json_type_name(array));
        return BERTH_OK;
    }
    bool devices = strcmp(list, "devices") == 0;
    for (uint32_t i = 0; devices && i < array->items.count; ++i)
        BERTH_TRY(berth_target__expand_entry(c->parse, array, i));
    uint32_t index = find_item(c, array, name, devices);
    if (index != BERTH_NO_INDEX) *inout_value = array->items.data[index];
    return BERTH_OK;
}

static json *parse_value(berth_target__parse *parse, const char *text) {
    const char *error = NULL;
    json *value =
        berth_target__json_read(parse->scratch, parse->scratch, text, strlen(text), &error);
    return value ? value : berth_target__json_string(parse->scratch, text);
}

// The field `key` of an object, below which the path goes on; NULL with a diagnostic. A target that
// is spelt as text becomes what it spells; what is missing becomes an object.
static berth_status step_into_field(cursor *c, const json *root, json *value, const char *key,
                                    json **out) {
    *out = NULL;
    if (strcmp(key, "target") == 0 || strcmp(key, "host") == 0) {
        json *devices = berth_target__json_get(root, "devices");
        const char *spelt = berth_target__text_of(value, key);
        if (value == root && devices && *spelt &&
            berth_target__entry_named(devices, spelt) != BERTH_NO_INDEX) {
            berth_target__error(c->parse, c->text,
                                "the host is the device '%s'; its fields are devices[%s].target...",
                                spelt, spelt);
            return BERTH_OK;
        }
        BERTH_TRY(berth_target__expand_string(c->parse, value, key));
    }
    json *next = berth_target__json_get(value, key);
    if (!next && *c->at == '.') {
        next = berth_target__json_object(c->parse->scratch);
        berth_target__json_set(c->parse->scratch, value, key, next);
    }
    if (!next)
        berth_target__error(c->parse, c->text, "there is no list '%s'%s", key,
                            value == root && strcmp(key, "devices") == 0
                                ? ": a target of one device takes its fields alone, as cores=2"
                                : "");
    *out = next;
    return BERTH_OK;
}

berth_status berth_target__override(berth_target__parse *parse, json *root, const char *text) {
    cursor c = {parse, text, text};
    json *value = root;
    const char *key = "";
    for (;;) {
        if (*c.at == '[') {
            BERTH_TRY(step_into_item(&c, key, &value));
            if (!value) return BERTH_OK;
            if (*c.at == '.') c.at++;
            continue;
        }
        size_t length = strcspn(c.at, ".[=");
        key = berth_arena_strndup(parse->scratch, c.at, length);
        c.at += length;
        if (length == 0 || *c.at == 0) {
            berth_target__error(parse, text,
                                "an override is PATH=VALUE, as in devices[0].target.cores=2");
            return BERTH_OK;
        }
        if (value->type != JSON_TYPE_OBJECT) {
            berth_target__error(parse, text, "'%s' wants an object, but there is %s", key,
                                berth_target__json_type_name(value));
            return BERTH_OK;
        }
        if (*c.at == '=') {
            berth_target__json_set(parse->scratch, value, key, parse_value(parse, c.at + 1));
            return BERTH_OK;
        }
        BERTH_TRY(step_into_field(&c, root, value, key, &value));
        if (!value) return BERTH_OK;
        if (*c.at == '.') c.at++;
    }
}
