#include "target/virtual_device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static bool same_scope(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_target(berth_virtual_device a, berth_virtual_device b) {
    return a.has_target == b.has_target &&
           (!a.has_target || berth_hash128_equal(a.target, b.target));
}

bool berth_virtual_device_equal(berth_virtual_device a, berth_virtual_device b) {
    return a.device_type == b.device_type && a.virtual_id == b.virtual_id && same_target(a, b) &&
           same_scope(a.memory_scope, b.memory_scope);
}

bool berth_virtual_device_is_free(berth_virtual_device device) {
    return berth_virtual_device_equal(device, BERTH_VIRTUAL_DEVICE_FREE);
}

bool berth_virtual_device_is_complete(berth_virtual_device device) {
    return device.device_type != BERTH_DEVICE_FREE && device.virtual_id != BERTH_VIRTUAL_ID_FREE &&
           device.has_target && device.memory_scope;
}

const char *berth_virtual_device_clash(berth_virtual_device a, berth_virtual_device b) {
    if (a.device_type != b.device_type && a.device_type != BERTH_DEVICE_FREE &&
        b.device_type != BERTH_DEVICE_FREE)
        return "device type";
    if (a.virtual_id != b.virtual_id && a.virtual_id != BERTH_VIRTUAL_ID_FREE &&
        b.virtual_id != BERTH_VIRTUAL_ID_FREE)
        return "virtual id";
    if (a.has_target && b.has_target && !berth_hash128_equal(a.target, b.target)) return "target";
    if (a.memory_scope && b.memory_scope && !same_scope(a.memory_scope, b.memory_scope))
        return "memory scope";
    return NULL;
}

// a's parts where set, else b's.
static berth_virtual_device overlay(berth_virtual_device a, berth_virtual_device b) {
    if (a.device_type == BERTH_DEVICE_FREE) a.device_type = b.device_type;
    if (a.virtual_id == BERTH_VIRTUAL_ID_FREE) a.virtual_id = b.virtual_id;
    if (!a.has_target) {
        a.has_target = b.has_target;
        a.target = b.target;
    }
    if (!a.memory_scope) a.memory_scope = b.memory_scope;
    return a;
}

bool berth_virtual_device_join(berth_virtual_device a, berth_virtual_device b,
                               berth_virtual_device *out) {
    if (berth_virtual_device_clash(a, b)) return false;
    *out = overlay(a, b);
    return true;
}

berth_virtual_device berth_virtual_device_default(berth_virtual_device a, berth_virtual_device b) {
    berth_device_kind resulting =
        a.device_type == BERTH_DEVICE_FREE ? b.device_type : a.device_type;
    return b.device_type == resulting ? overlay(a, b) : a;
}

// ------------------------------------------------------------------------------------------------
// names

const char *berth_virtual_device_name(berth_arena *arena, berth_virtual_device device) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_add(&out, berth_device_kind_name(device.device_type));
    if (device.virtual_id != BERTH_VIRTUAL_ID_FREE)
        berth_strbuf_addf(&out, ":%d", device.virtual_id);
    if (device.memory_scope) berth_strbuf_addf(&out, "@%s", device.memory_scope);
    if (device.has_target) {
        char digits[33];
        berth_hash128_hex(device.target, digits);
        berth_strbuf_addf(&out, "#%s", digits);
    }
    return berth_strbuf_text(&out);
}

static bool read_hex(const char *text, berth_hash128 *out) {
    uint64_t halves[2] = {0};
    for (int i = 0; i < 32; ++i) {
        char c = text[i];
        uint64_t digit = 0;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint64_t)(c - 'a') + 10;
        else
            return false;
        halves[i / 16] = halves[i / 16] << 4 | digit;
    }
    *out = (berth_hash128){.high = halves[0], .low = halves[1]};
    return text[32] == 0;
}

static bool read_id(const char **at, int32_t *out) {
    if (!isdigit((unsigned char)**at)) return false;
    char *end = NULL;
    long long value = strtoll(*at, &end, 10);
    if (value > 65535) return false;
    *out = (int32_t)value;
    *at = end;
    return true;
}

static bool read_scope(berth_arena *arena, const char **at, const char **out) {
    size_t length = 0;
    while (isalnum((unsigned char)(*at)[length]) || ((*at)[length] && strchr("_.-", (*at)[length])))
        length++;
    if (length == 0 || **at == '-') return false;  // the text of modules begins no name with it
    *out = berth_arena_strndup(arena, *at, length);
    *at += length;
    return true;
}

static berth_status name_error(berth_arena *arena, const char *name) {
    berth_strbuf kinds = berth_strbuf_make(arena);
    for (const char *const *kind = berth_device_kind_names(); *kind; ++kind)
        berth_strbuf_addf(&kinds, "%s%s", kinds.length ? ", " : "", *kind);
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "'%s' is not a virtual device; it is written KIND[:N][@SCOPE][#TARGET] "
        "with KIND one of %s, or *",
        name, berth_strbuf_text(&kinds));
}

berth_status berth_virtual_device_from_name(berth_arena *arena, const char *name,
                                            berth_virtual_device *out_device) {
    *out_device = BERTH_VIRTUAL_DEVICE_FREE;
    berth_virtual_device device = BERTH_VIRTUAL_DEVICE_FREE;
    size_t length = strcspn(name, ":@#");
    const char *kind = berth_arena_strndup(arena, name, length);
    device.device_type = berth_device_kind_from_name(kind);
    if (device.device_type == BERTH_DEVICE_FREE && strcmp(kind, "*") != 0)
        return name_error(arena, name);
    const char *at = name + length;
    bool fine = true;
    if (*at == ':') {
        at++;
        fine = read_id(&at, &device.virtual_id);
    }
    if (fine && *at == '@') {
        at++;
        fine = read_scope(arena, &at, &device.memory_scope);
    }
    if (fine && *at == '#') {
        at++;
        device.has_target = true;
        fine = strlen(at) == 32 && read_hex(at, &device.target);
        at += fine ? 32 : 0;
    }
    if (!fine || *at) return name_error(arena, name);
    *out_device = device;
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// table

struct berth_virtual_device_table {
    berth_arena *arena;
    berth_interner *scopes;
    BERTH_VEC(berth_virtual_device) devices;
    uint32_t *slots;  // id + 1, 0 = free; open addressing
    uint32_t slot_count;
};

berth_virtual_device_table *berth_virtual_device_table_create(berth_arena *arena) {
    berth_virtual_device_table *table = berth_arena_new(arena, berth_virtual_device_table);
    table->arena = arena;
    table->scopes = berth_interner_create(arena);
    table->slot_count = 32;
    table->slots = berth_arena_new_array(arena, uint32_t, table->slot_count);
    (void)berth_virtual_device_intern(table, BERTH_VIRTUAL_DEVICE_FREE);
    return table;
}

berth_virtual_device_table *
berth_virtual_device_table_copy(berth_arena *arena, const berth_virtual_device_table *source) {
    berth_virtual_device_table *table = berth_arena_copy(arena, source, sizeof(*table));
    table->arena = arena;
    table->scopes = berth_interner_copy(arena, source->scopes);
    berth_vec_own(arena, &table->devices);
    table->slots =
        berth_arena_copy(arena, source->slots, source->slot_count * sizeof(*source->slots));
    return table;
}

static uint32_t *find_slot(const berth_virtual_device_table *table, berth_virtual_device device) {
    uint64_t parts[4] = {(uint64_t)device.device_type, (uint64_t)(uint32_t)device.virtual_id, 0, 0};
    if (device.has_target) {
        parts[2] = device.target.high;
        parts[3] = device.target.low;
    }
    uint64_t hash = berth_hash64(parts, sizeof(parts), device.has_target);
    if (device.memory_scope)
        hash = berth_hash64(device.memory_scope, strlen(device.memory_scope), hash);
    uint32_t mask = table->slot_count - 1;
    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &table->slots[at];
        if (*slot == 0 || berth_virtual_device_equal(table->devices.data[*slot - 1], device))
            return slot;
    }
}

static void grow_slots(berth_virtual_device_table *table) {
    table->slot_count *= 2;
    table->slots = berth_arena_new_array(table->arena, uint32_t, table->slot_count);
    for (uint32_t i = 0; i < table->devices.count; ++i)
        *find_slot(table, table->devices.data[i]) = i + 1;
}

berth_device_id berth_virtual_device_intern(berth_virtual_device_table *table,
                                            berth_virtual_device device) {
    uint32_t *slot = find_slot(table, device);
    if (*slot) return *slot - 1;
    if (device.memory_scope)
        device.memory_scope =
            berth_interned(table->scopes, berth_intern(table->scopes, device.memory_scope));
    berth_vec_push(table->arena, &table->devices, device);
    *slot = table->devices.count;
    if (table->devices.count * 2 > table->slot_count) grow_slots(table);
    return table->devices.count - 1;
}

berth_virtual_device berth_virtual_device_get(const berth_virtual_device_table *table,
                                              berth_device_id id) {
    return table->devices.data[id];
}

uint32_t berth_virtual_device_count(const berth_virtual_device_table *table) {
    return table->devices.count;
}

bool berth_virtual_device_join_ids(berth_virtual_device_table *table, berth_device_id a,
                                   berth_device_id b, berth_device_id *out) {
    if (a == b || b == 0 || a == 0) {  // the fully free device is neutral
        *out = a ? a : b;
        return true;
    }
    berth_virtual_device joined;
    if (!berth_virtual_device_join(table->devices.data[a], table->devices.data[b], &joined))
        return false;
    *out = berth_virtual_device_intern(table, joined);
    return true;
}

berth_device_id berth_virtual_device_default_ids(berth_virtual_device_table *table,
                                                 berth_device_id a, berth_device_id b) {
    return berth_virtual_device_intern(
        table, berth_virtual_device_default(table->devices.data[a], table->devices.data[b]));
}

berth_status berth_virtual_device_parse(berth_virtual_device_table *table, const char *name,
                                        berth_device_id *out_id) {
    *out_id = 0;
    berth_virtual_device device;
    BERTH_TRY(berth_virtual_device_from_name(table->arena, name, &device));
    *out_id = berth_virtual_device_intern(table, device);
    return BERTH_OK;
}

const char *berth_virtual_device_print(berth_virtual_device_table *table, berth_device_id id) {
    return berth_virtual_device_name(table->arena, table->devices.data[id]);
}
