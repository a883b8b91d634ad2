// One device: from JSON to berth_target, checked against the attribute schema.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"
#include "target/topology.h"

static bool ends_with(const char *text, const char *tail) {
    size_t length = strlen(text), tail_length = strlen(tail);
    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

static const char *const *names_for(berth_target__parse *parse, berth_device_kind kind) {
    uint32_t count = 0, used = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    const char **names = berth_arena_new_array(parse->scratch, const char *, count + 3);
    names[used++] = "kind";
    names[used++] = "host";
    for (uint32_t i = 0; i < count; ++i)
        if (table[i].kinds & (1u << kind)) names[used++] = table[i].name;
    return names;
}

static void unknown_attribute(berth_target__parse *parse, const json *value, const char *key,
                              berth_device_kind kind) {
    const char *kind_name = berth_device_kind_name(kind);
    const berth_target_attribute_facts *facts = berth_target__attribute(key);
    const char *const *names = names_for(parse, kind);
    if (facts) {
        berth_strbuf owners = berth_strbuf_make(parse->scratch);
        for (uint32_t k = 1; k < BERTH_DEVICE_KIND_COUNT; ++k)
            if (facts->kinds & (1u << k))
                berth_strbuf_addf(&owners, "%s%s", owners.length ? ", " : "",
                                  berth_device_kind_name((berth_device_kind)k));
        berth_target__error(parse, value->path, "'%s' belongs to %s, not to %s", key,
                            berth_strbuf_text(&owners), kind_name);
        return;
    }
    berth_target__error(parse, value->path,
                        "unknown field '%s' of a %s target; its fields are %s%s", key, kind_name,
                        berth_target__join(parse->scratch, names),
                        berth_target__hint(parse, key, names));
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Words. Lists are sets (features: sorted) or preferences (libs: order kept); both without
// repetitions.
static void read_list(berth_target__parse *parse, const json *value, bool sorted,
                      berth_string_list *out) {
    if (value->type != JSON_TYPE_ARRAY) {
        berth_target__error(parse, value->path, "a list of words is wanted here, not %s",
                            berth_target__json_type_name(value));
        return;
    }
    uint32_t count = value->items.count;
    const char **texts = berth_arena_new_array(parse->arena, const char *, count + 1);
    berth_string_list list = {texts, 0};
    for (uint32_t i = 0; i < count; ++i) {
        const char *text = NULL;
        if (!berth_target__read_text(parse, value->items.data[i], BERTH_TARGET__WORD, &text))
            continue;
        if (!berth_target__list_has(list, text)) texts[list.count++] = text;
    }
    if (sorted && list.count > 1) qsort(texts, list.count, sizeof(texts[0]), by_text);
    *out = list;
}

// Words of processors; and no more of them than could be told to a driver. They are all the threads
// that there are where nothing else is said.
static void check_cpuset(berth_target__parse *parse, const json *value, berth_target *target) {
    const berth_string_list cpuset = target->cpuset;
    const json *list = berth_target__json_get(value, "cpuset");
    berth_processor_set set = {{0}};
    char text[512];
    for (uint32_t i = 0; i < cpuset.count; ++i)
        if (!berth_processor_set_add_word(&set, cpuset.data[i]))
            berth_target__error(parse, list->path,
                                "'%s' is no number of a hardware thread below %d and no range of "
                                "them (0-3)",
                                cpuset.data[i], BERTH_TOPOLOGY_MAX_PROCESSORS);
    if (!berth_processor_set_print(&set, text, sizeof(text)))
        berth_target__error(parse, list->path, "these are too many ranges for one device");
    int64_t count = berth_processor_set_count(&set);
    if (count && target->cores < 0 && target->threads < 0) target->threads = count;
}

static void read_flops(berth_target__parse *parse, const json *value, double least, double most,
                       double *out) {
    if (!berth_target__is_object(parse, value, "peak_flops")) return;
    const char *names[BERTH_DTYPE_COUNT] = {NULL};
    for (uint32_t d = 1; d < BERTH_DTYPE_COUNT; ++d)
        names[d - 1] = berth_dtype_name((berth_dtype)d);
    for (uint32_t i = 0; i < value->members.count; ++i) {
        const berth_target__member *member = &value->members.data[i];
        berth_dtype dtype = berth_dtype_from_name(member->key);
        if (dtype == BERTH_DTYPE_NONE || dtype >= BERTH_DTYPE_COUNT)
            berth_target__error(parse, member->value->path,
                                "'%s' is not an element type; allowed are %s", member->key,
                                berth_target__join(parse->scratch, names));
        else
            berth_target__read_real(parse, member->value, least, most, &out[dtype]);
    }
}

static void read_text(berth_target__parse *parse, const json *value, const char **out) {
    const char *text = NULL;
    if (!berth_target__read_string(parse, value, &text)) return;
    if (strlen(text) > 256)
        berth_target__error(parse, value->path, "at most 256 characters are allowed here");
    else
        *out = berth_arena_strdup(parse->arena, text);
}

static void add_extra(berth_target__parse *parse, berth_target *target, const char *name,
                      int64_t value) {
    berth_target_extra *grown =
        berth_arena_new_array(parse->arena, berth_target_extra, target->extra_count + 1);
    if (target->extra_count) memcpy(grown, target->extras, target->extra_count * sizeof(*grown));
    grown[target->extra_count++] = (berth_target_extra){name, value};
    target->extras = grown;
}

static void read_attribute(berth_target__parse *parse, const berth_target_attribute_facts *facts,
                           const json *value, berth_target *target) {
    size_t offset = berth_target__attribute_offset(facts);
    char *member = (char *)target + (offset == BERTH_TARGET__NO_MEMBER ? 0 : offset);
    switch (facts->type) {
    case BERTH_TARGET_STRING: read_text(parse, value, (const char **)(void *)member); break;
    case BERTH_TARGET_WORD:
        berth_target__read_text(parse, value, BERTH_TARGET__WORD, (const char **)(void *)member);
        break;
    case BERTH_TARGET_LIST:
        read_list(parse, value, strcmp(facts->name, "features") == 0,
                  (berth_string_list *)(void *)member);
        break;
    case BERTH_TARGET_INT: {
        int64_t number = 0;
        if (!berth_target__read_int(parse, value, ends_with(facts->name, "_bytes"), facts->least,
                                    facts->most, &number))
            break;
        if (offset == BERTH_TARGET__NO_MEMBER)
            add_extra(parse, target, facts->name, number);
        else
            *(int64_t *)(void *)member = number;
        break;
    }
    case BERTH_TARGET_FLOAT:
        berth_target__read_real(parse, value, facts->least, facts->most, (double *)(void *)member);
        break;
    case BERTH_TARGET_BOOL: berth_target__read_bool(parse, value, (bool *)(void *)member); break;
    case BERTH_TARGET_FLOPS:
        read_flops(parse, value, facts->least, facts->most, (double *)(void *)member);
        break;
    }
}

// The kind, or FREE with a diagnostic.
static berth_device_kind read_kind(berth_target__parse *parse, const json *value) {
    const char *const *names = berth_device_kind_names();
    const json *kind = berth_target__json_get(value, "kind");
    if (!kind) {
        berth_target__error(parse, berth_target__below(parse, value, "kind"),
                            "is missing; kinds are %s", berth_target__join(parse->scratch, names));
        return BERTH_DEVICE_FREE;
    }
    if (kind->type == JSON_TYPE_STRING && strcmp(kind->string, "multi") == 0) {
        berth_target__error(parse, kind->path,
                            "a MultiTarget cannot be one device of another; kinds are %s",
                            berth_target__join(parse->scratch, names));
        return BERTH_DEVICE_FREE;
    }
    uint32_t index = 0;
    if (!berth_target__read_choice(parse, kind, names, "a target kind", &index))
        return BERTH_DEVICE_FREE;
    return (berth_device_kind)(index + 1);
}

berth_target *berth_target__device(berth_target__parse *parse, const json *value,
                                   const json **out_host) {
    *out_host = NULL;
    if (!berth_target__is_object(parse, value, "a target")) return NULL;
    uint32_t diagnostics_before = parse->diagnostics.count;
    berth_device_kind kind = read_kind(parse, value);
    if (kind == BERTH_DEVICE_FREE) return NULL;
    berth_target *target = berth_arena_new(parse->arena, berth_target);
    target->kind = kind;
    target->arch = target->cpu = target->model = target->resource = target->transport = "";
    target->libs_policy = "";
    uint32_t count = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    for (uint32_t i = 0; i < count; ++i) {
        int64_t *number = berth_target__int_member(target, &table[i]);
        if (number) *number = -1;  // not given
    }
    for (uint32_t i = 0; i < value->members.count; ++i) {
        const char *key = value->members.data[i].key;
        const json *member = value->members.data[i].value;
        if (strcmp(key, "kind") == 0) continue;
        if (strcmp(key, "host") == 0) {
            *out_host = member;
            continue;
        }
        const berth_target_attribute_facts *facts = berth_target__attribute(key);
        if (facts && (facts->kinds & (1u << kind)))
            read_attribute(parse, facts, member, target);
        else
            unknown_attribute(parse, member, key, kind);
    }
    if (target->threads > 0 && target->threads < target->cores)
        berth_target__error(parse, berth_target__below(parse, value, "threads"),
                            "%lld hardware threads are fewer than %lld cores",
                            (long long)target->threads, (long long)target->cores);
    check_cpuset(parse, value, target);
    int64_t alignment = target->memory_alignment_bytes;
    if (alignment > 0 && (alignment & (alignment - 1)))
        berth_target__error(parse, berth_target__below(parse, value, "memory_alignment_bytes"),
                            "%lld is not a power of two", (long long)alignment);
    if (parse->diagnostics.count != diagnostics_before) return NULL;
    target->capacity_is_assumed = target->memory_capacity_bytes < 0;
    target->arch = berth_target__arch_of(target->arch);
    berth_target__fill_defaults(parse->arena, target);
    berth_target__canonicalise_device(parse->arena, target);
    return target;
}
