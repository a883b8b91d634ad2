// From any spelling to one located JSON object: `local`, JSON, a file, a tag (with selector and
// overrides) or a short form; and the expansion of the spellings that may stand inside it.
#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "target/describe.h"
#include "target/internal.h"

enum { nesting_limit = 4 };

static const size_t file_limit_bytes = (size_t)16 << 20;

static bool ends_with(const char *text, const char *tail) {
    size_t length = strlen(text), tail_length = strlen(tail);
    return length > tail_length && strcmp(text + length - tail_length, tail) == 0;
}

// An export of hwloc: another machine.
static berth_status from_export(berth_target__parse *parse, const char *name, const char *data,
                                size_t size_bytes, json **out) {
    berth_machine_description description = {0};
    berth_topology *topology = NULL;
    berth_status status = berth_topology_read(parse->scratch, data, size_bytes, &topology);
    if (status) return berth_status_prefix(status, "\"%s\"", name);
    description.topology = topology;
    *out = berth_target__machine(parse->scratch, &description, NULL);
    return BERTH_OK;
}

static berth_status from_file(berth_target__parse *parse, const char *name, const char *path,
                              json **out) {
    char *data = NULL;
    size_t size_bytes = 0;
    BERTH_TRY(berth_file_read(parse->scratch, name, file_limit_bytes, &data, &size_bytes));
    if (berth_topology_is_xml(data, size_bytes))
        return from_export(parse, name, data, size_bytes, out);
    *out = berth_target__source_json(parse, data, size_bytes, path);
    return BERTH_OK;
}

// NAME[:SELECTOR][{OVERRIDES}]
static berth_status from_tag(berth_target__parse *parse, const char *text, const char *path,
                             json **out) {
    size_t head = strcspn(text, "{");
    const char *patch_text = text[head] ? text + head : NULL;
    while (head > 0 && isspace((unsigned char)text[head - 1])) head--;
    char *name = berth_arena_strndup(parse->scratch, text, head);
    char *selector = strchr(name, ':');
    if (selector) *selector++ = 0;
    json *value = NULL;
    BERTH_TRY(berth_target__tag_source(parse, name, selector, path, &value));
    if (value && patch_text) {
        json *patch = berth_target__source_json(parse, patch_text, strlen(patch_text), path);
        value = patch ? berth_target__json_merge(parse->scratch, value, patch) : NULL;
    }
    if (value) berth_target__json_locate(parse->scratch, value, path);
    *out = value;
    return BERTH_OK;
}

berth_status berth_target__named(berth_target__parse *parse, const char *text, const char *path,
                                 int depth, json **out) {
    bool files = depth == 0 && !parse->options->no_files;
    if (files && (ends_with(text, ".json") || ends_with(text, ".xml") || berth_file_exists(text)))
        return from_file(parse, text, path, out);
    return from_tag(parse, text, path, out);
}

static berth_status from_local(berth_target__parse *parse, const char *path, json **out) {
    if (!parse->options->machine)
        return berth_status_make(BERTH_UNAVAILABLE,
                                 "target 'local': nothing is known about this machine here");
    *out = berth_target__machine_local(parse->scratch, parse->options->machine);
    berth_target__json_locate(parse->scratch, *out, path);
    return BERTH_OK;
}

berth_status berth_target__source(berth_target__parse *parse, const char *text, bool resolve,
                                  const char *path, int depth, json **out) {
    *out = NULL;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    const char *trimmed = berth_arena_strndup(parse->scratch, text, length);
    if (!berth_target__is_utf8(trimmed)) {
        berth_target__error(parse, path, "this text is not UTF-8");
        return BERTH_OK;
    }
    if (length == 0) {
        berth_target__error(
            parse, path, "the target is empty; a tag, a kind, JSON, a file or 'local' is wanted");
        return BERTH_OK;
    }
    if (*trimmed == '{') {
        *out = berth_target__source_json(parse, trimmed, length, path);
        return BERTH_OK;
    }
    if (depth == 0 && strcmp(trimmed, "local") == 0) return from_local(parse, path, out);
    if (depth == 0 && !parse->options->no_files && berth_file_exists(trimmed) &&
        (ends_with(trimmed, ".json") || ends_with(trimmed, ".xml") || strchr(trimmed, '/')))
        return from_file(parse, trimmed, path, out);
    BERTH_TRY(berth_target__short_form(parse, trimmed, resolve, path, depth, out));
    if (*out) berth_target__json_locate(parse->scratch, *out, path);
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// expansion

// Replaces a string by the object it spells.
berth_status berth_target__expand_string(berth_target__parse *parse, json *object,
                                         const char *key) {
    json *value = berth_target__json_get(object, key);
    if (!value || value->type != JSON_TYPE_STRING) return BERTH_OK;
    if (parse->nesting == nesting_limit) {
        berth_target__error(parse, value->path, "'%s': targets refer to one another too deeply",
                            value->string);
        return BERTH_OK;
    }
    json *spelt = NULL;
    parse->nesting++;
    berth_status status = berth_target__source(parse, value->string, false, value->path, 1, &spelt);
    parse->nesting--;
    BERTH_TRY(status);
    // After a diagnostic the string stays, and later stages are not reached.
    if (spelt) berth_target__json_set(parse->scratch, object, key, spelt);
    return BERTH_OK;
}

berth_status berth_target__expand_entry(berth_target__parse *parse, json *devices, uint32_t index) {
    json *entry = devices->items.data[index];
    if (entry->type == JSON_TYPE_STRING) {
        json *object = berth_target__json_object(parse->scratch);
        object->path = entry->path;
        berth_target__json_set(parse->scratch, object, "target", entry);
        devices->items.data[index] = entry = object;
    }
    if (entry->type != JSON_TYPE_OBJECT) return BERTH_OK;
    return berth_target__expand_string(parse, entry, "target");
}

bool berth_target__spells_target(berth_arena *arena, const char *text) {
    const char *word = berth_arena_strndup(arena, text, strcspn(text, " \t{"));
    return *text == '{' || strchr(text, '/') ||
           berth_device_kind_from_name(word) != BERTH_DEVICE_FREE;
}

// "host": "cpu" where no device is called so is a target, not a name.
static berth_status expand_multi_host(berth_target__parse *parse, json *root) {
    const json *host = berth_target__json_get(root, "host");
    if (!host || host->type != JSON_TYPE_STRING ||
        !berth_target__spells_target(parse->scratch, host->string))
        return BERTH_OK;
    const json *devices = berth_target__json_get(root, "devices");
    for (uint32_t i = 0; devices && i < devices->items.count; ++i) {
        const json *name = berth_target__json_get(devices->items.data[i], "name");
        if (name && name->type == JSON_TYPE_STRING && strcmp(name->string, host->string) == 0)
            return BERTH_OK;
    }
    return berth_target__expand_string(parse, root, "host");
}

berth_status berth_target__expand(berth_target__parse *parse, json *root) {
    json *devices = berth_target__json_get(root, "devices");
    for (uint32_t i = 0; devices && i < devices->items.count; ++i) {
        BERTH_TRY(berth_target__expand_entry(parse, devices, i));
        json *target = berth_target__json_get(devices->items.data[i], "target");
        if (target && target->type == JSON_TYPE_OBJECT)
            BERTH_TRY(berth_target__expand_string(parse, target, "host"));
    }
    return expand_multi_host(parse, root);
}
