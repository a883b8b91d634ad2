// Tags: names of real platforms and devices, built in (tags.def) or from a folder of JSON files.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "target/internal.h"

// A library that only runs programs has none (CMake's BERTH_RUN_ONLY): programs carry targets as
// canonical JSON, which names no tags.
static const berth_target_tag built_in[] = {
#ifndef BERTH_NO_BUILT_IN_TAGS
#define TAG(name, description, sources, ...) {name, description, #__VA_ARGS__, sources, false},
#include "target/tags.def"
#endif
    {0},  // the end
};

static const size_t tag_limit_bytes = (size_t)1 << 20;

// ------------------------------------------------------------------------------------------------
// users' tags

// One component of a tag's name: nothing that could leave the folder.
static bool safe_component(const char *text, size_t length) {
    if (length == 0 || length > 64 || text[0] == '.') return false;
    for (size_t i = 0; i < length; ++i) {
        char c = text[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '.' || c == '+';
        if (!fine) return false;
    }
    return true;
}

static bool safe_name(const char *name) {
    size_t vendor = strcspn(name, "/");
    return name[vendor] == '/' && safe_component(name, vendor) &&
           safe_component(name + vendor + 1, strlen(name + vendor + 1));
}

// *out_found is false where there is no such file.
static berth_status read_user_tag(berth_arena *arena, const char *folder, const char *name,
                                  berth_target_tag *out, bool *out_found) {
    *out_found = false;
    if (!folder || !safe_name(name)) return BERTH_OK;
    const char *path = berth_arena_printf(arena, "%s/%s.json", folder, name);
    if (!berth_file_exists(path)) return BERTH_OK;
    char *data = NULL;
    size_t size_bytes = 0;
    BERTH_TRY(berth_file_read(arena, path, tag_limit_bytes, &data, &size_bytes));
    const char *error = NULL;
    berth_arena *scratch = berth_arena_create_child(arena);
    const json *value = berth_target__json_read(scratch, scratch, data, size_bytes, &error);
    *out = (berth_target_tag){
        .name = berth_arena_strdup(arena, name),
        .description =
            berth_arena_strdup(arena, (value ? berth_target__text_of(value, "description") : "")),
        .json = data,
        .sources =
            berth_arena_strdup(arena, (value ? berth_target__text_of(value, "sources") : "")),
        .user = true,
    };
    berth_arena_destroy(scratch);
    *out_found = true;
    return BERTH_OK;
}

static void close_folder(void *folder) {
    (void)closedir(folder);
}

typedef struct names {
    berth_arena *arena;
    BERTH_VEC(const char *) list;
} names;

// Names of entries of a folder, without those that start with a dot.
static berth_status read_folder(names *out, const char *path) {
    DIR *folder = opendir(path);
    if (!folder)
        return berth_status_make(errno == ENOENT || errno == ENOTDIR ? BERTH_NOT_FOUND : BERTH_IO,
                                 "tag folder '%s': %s", path, strerror(errno));
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_arena_defer(scratch, close_folder, folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            berth_vec_push(out->arena, &out->list, berth_arena_strdup(out->arena, entry->d_name));
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

typedef struct tag_list {
    berth_arena *arena;
    const char *folder;
    BERTH_VEC(berth_target_tag) tags;
} tag_list;

static berth_status list_vendor(tag_list *list, const char *vendor) {
    const char *path = berth_arena_printf(list->arena, "%s/%s", list->folder, vendor);
    if (!is_folder(path)) return BERTH_OK;
    names files = {.arena = list->arena};
    BERTH_TRY(read_folder(&files, path));
    for (uint32_t i = 0; i < files.list.count; ++i) {
        const char *file = files.list.data[i];
        size_t length = strlen(file);
        if (length <= 5 || strcmp(file + length - 5, ".json") != 0) continue;
        const char *name =
            berth_arena_printf(list->arena, "%s/%.*s", vendor, (int)(length - 5), file);
        berth_target_tag tag;
        bool found = false;
        BERTH_TRY(read_user_tag(list->arena, list->folder, name, &tag, &found));
        if (found) berth_vec_push(list->arena, &list->tags, tag);
    }
    return BERTH_OK;
}

static berth_status list_user_tags(tag_list *list) {
    names vendors = {.arena = list->arena};
    BERTH_TRY(read_folder(&vendors, list->folder));
    for (uint32_t i = 0; i < vendors.list.count; ++i)
        BERTH_TRY(list_vendor(list, vendors.list.data[i]));
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// list, find

static int by_name(const void *a, const void *b) {
    return strcmp(((const berth_target_tag *)a)->name, ((const berth_target_tag *)b)->name);
}

static berth_status list_body(void *user) {
    tag_list *list = user;
    if (list->folder) BERTH_TRY(list_user_tags(list));
    uint32_t user_count = list->tags.count;
    for (const berth_target_tag *tag = built_in; tag->name; ++tag) {
        bool hidden = false;
        for (uint32_t k = 0; k < user_count && !hidden; ++k)
            hidden = strcmp(list->tags.data[k].name, tag->name) == 0;
        if (!hidden) berth_vec_push(list->arena, &list->tags, *tag);
    }
    qsort(list->tags.data, list->tags.count, sizeof(berth_target_tag), by_name);
    return BERTH_OK;
}

berth_status berth_target_list_tags(berth_arena *arena, const char *tag_folder,
                                    berth_target_tag **out_tags, uint32_t *out_count) {
    *out_tags = NULL;
    *out_count = 0;
    tag_list list = {.arena = arena, .folder = tag_folder};
    BERTH_TRY(berth_arena_try(arena, list_body, &list));
    *out_tags = list.tags.data;
    *out_count = list.tags.count;
    return BERTH_OK;
}

static berth_status no_such_tag(berth_arena *arena, const char *folder, const char *name) {
    tag_list list = {.arena = arena, .folder = folder};
    berth_status_ignore(list_body(&list));  // only for the hint
    const char **all = berth_arena_new_array(arena, const char *, list.tags.count + 1);
    for (uint32_t i = 0; i < list.tags.count; ++i) all[i] = list.tags.data[i].name;
    const char *closest = berth_closest(name, all);
    const berth_remedy tags = {BERTH_REMEDY_LOOK, "tags"};
    return berth_status_with_remedies(
        berth_status_make(BERTH_NOT_FOUND, "there is no tag or file '%s'%s%s%s", name,
                          closest ? "; did you mean '" : "", closest ? closest : "",
                          closest ? "'?" : ""),
        &tags, 1);
}

static berth_status find_tag(berth_arena *arena, const char *folder, const char *name,
                             berth_target_tag *out) {
    bool found = false;
    BERTH_TRY(read_user_tag(arena, folder, name, out, &found));
    if (found) return BERTH_OK;
    for (const berth_target_tag *tag = built_in; tag->name; ++tag) {
        if (strcmp(tag->name, name) != 0) continue;
        *out = *tag;
        return BERTH_OK;
    }
    return no_such_tag(arena, folder, name);
}

typedef struct find_request {
    berth_arena *arena;
    const char *folder;
    const char *name;
    berth_target_tag *out;
} find_request;

static berth_status find_body(void *user) {
    find_request *r = user;
    return find_tag(r->arena, r->folder, r->name, r->out);
}

berth_status berth_target_find_tag(berth_arena *arena, const char *tag_folder, const char *name,
                                   berth_target_tag *out_tag) {
    *out_tag = (berth_target_tag){0};
    find_request r = {arena, tag_folder, name, out_tag};
    return berth_arena_try(arena, find_body, &r);
}

// ------------------------------------------------------------------------------------------------
// selectors

// What a device entry of a tag may be called: its name, its kind, or KIND:N.
static bool selected(const json *device, const char *selector, const uint32_t *kind_counts) {
    const json *name = berth_target__json_get(device, "name");
    if (name && name->type == JSON_TYPE_STRING && strcmp(name->string, selector) == 0) return true;
    const json *target = berth_target__json_get(device, "target");
    const char *kind = target ? berth_target__text_of(target, "kind") : "";
    size_t length = strlen(kind);
    if (length == 0 || strncmp(selector, kind, length) != 0) return false;
    if (selector[length] == 0) return true;
    berth_device_kind index = berth_device_kind_from_name(kind);
    char id[16];
    snprintf(id, sizeof(id), "%u", kind_counts[index]);
    return selector[length] == ':' && strcmp(selector + length + 1, id) == 0;
}

// Narrows a platform to one compute device: its host stays as such, other devices go, and with them
// the memories that only they reach, and links, pins and budgets of what went.
static json *narrow(berth_target__parse *parse, json *multi, const char *selector,
                    const char *path) {
    json *devices = berth_target__json_get(multi, "devices");
    uint32_t counts[BERTH_DEVICE_KIND_COUNT] = {0};
    uint32_t chosen = BERTH_NO_INDEX;
    for (uint32_t i = 0; i < devices->items.count; ++i) {
        const json *target = berth_target__json_get(devices->items.data[i], "target");
        if (chosen == BERTH_NO_INDEX && selected(devices->items.data[i], selector, counts))
            chosen = i;
        counts[berth_device_kind_from_name(target ? berth_target__text_of(target, "kind") : "")]++;
    }
    if (chosen == BERTH_NO_INDEX) {
        berth_target__error(parse, path, "this platform has no device '%s'", selector);
        return NULL;
    }
    return berth_target__keep_device(parse, multi, chosen);
}

berth_status berth_target__tag_source(berth_target__parse *parse, const char *name,
                                      const char *selector, const char *path, json **out) {
    *out = NULL;
    berth_target_tag tag;
    BERTH_TRY(find_tag(parse->scratch, parse->options->no_files ? NULL : parse->options->tag_folder,
                       name, &tag));
    const char *error = NULL;
    json *value =
        berth_target__json_read(parse->scratch, parse->scratch, tag.json, strlen(tag.json), &error);
    if (!value || value->type != JSON_TYPE_OBJECT) {
        berth_target__error(parse, path, "tag '%s': %s", name,
                            value ? "a target is an object {...}" : error);
        return BERTH_OK;
    }
    berth_target__json_set(parse->scratch, value, "description", NULL);
    berth_target__json_set(parse->scratch, value, "sources", NULL);
    *out = value;
    if (!selector) return BERTH_OK;
    const json *devices = berth_target__json_get(value, "devices");
    if (devices && devices->type == JSON_TYPE_ARRAY) {
        berth_target__json_locate(parse->scratch, value, path);
        BERTH_TRY(berth_target__expand(parse, value));  // selectors go by kind, too
        *out = narrow(parse, value, selector, path);
    } else if (berth_target__json_get(value, "machines")) {
        *out = NULL;
        berth_target__error(parse, path,
                            "tag '%s' has several machines; a device is picked of the tag of one",
                            name);
    } else if (strcmp(berth_target__text_of(value, "kind"), selector) != 0) {
        json *host = berth_target__json_get(value, "host");
        bool is_host = host && host->type == JSON_TYPE_OBJECT &&
                       strcmp(berth_target__text_of(host, "kind"), selector) == 0;
        *out = is_host ? host : NULL;
        if (!is_host)
            berth_target__error(parse, path, "tag '%s' has no device '%s'; it has %s", name,
                                selector, berth_target__text_of(value, "kind"));
    }
    return BERTH_OK;
}
