#include "compiler/toolchain/join.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"

typedef struct joiner {
    berth_arena *arena;
    const berth_toolchain_unit *given;
    berth_joined *joined;
    size_t limit_bytes;  // of one text
    // The text that is open.
    berth_strbuf text;
    uint32_t first, last, member_count;  // given units
} joiner;

static berth_hash128 hash_of(const berth_toolchain_unit *unit, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, unit->source);
    for (uint32_t i = 0; i < unit->object_count; ++i)
        berth_strbuf_add_n(&text, unit->objects[i].data, (size_t)unit->objects[i].size_bytes);
    return berth_hash128_of(text.data, text.length);
}

// same_as[i]: the first unit equal to i.
static uint32_t *find_equal(const berth_toolchain_unit *units, uint32_t count, berth_arena *arena) {
    uint32_t *same_as = berth_arena_new_array(arena, uint32_t, count + 1);
    berth_hash128 *hashes = berth_arena_new_array(arena, berth_hash128, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        hashes[i] = hash_of(&units[i], arena);
        same_as[i] = i;
        for (uint32_t k = 0; k < i && same_as[i] == i; ++k)
            if (berth_hash128_equal(hashes[k], hashes[i])) same_as[i] = k;
    }
    return same_as;
}

static bool may_join(const berth_toolchain_unit *unit) {
    return unit->is_part && unit->object_count == 0;
}

static size_t limit_of(const berth_toolchain_unit *units, const uint32_t *same_as, uint32_t count) {
    size_t total = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (same_as[i] == i && may_join(&units[i])) total += strlen(units[i].source);
    size_t part = total / BERTH_JOINED_PARTS;
    return part < BERTH_JOINED_MIN_BYTES   ? BERTH_JOINED_MIN_BYTES
           : part > BERTH_JOINED_MAX_BYTES ? BERTH_JOINED_MAX_BYTES
                                           : part;
}

static void close_text(joiner *j) {
    if (j->member_count == 0) return;
    berth_toolchain_unit *unit = &j->joined->units[j->joined->count];
    *unit = j->given[j->first];
    if (j->member_count > 1) {
        unit->label =
            berth_arena_printf(j->arena, "%s to %s", unit->label, j->given[j->last].label);
        unit->source = berth_strbuf_text(&j->text);
    }
    j->joined->members[j->joined->count++] = j->member_count;
    j->member_count = 0;
}

static void add_unit(joiner *j, uint32_t index) {
    const berth_toolchain_unit *unit = &j->given[index];
    bool fits = j->member_count > 0 && may_join(unit) && may_join(&j->given[j->first]) &&
                j->text.length + strlen(unit->source) <= j->limit_bytes;
    if (!fits) {
        close_text(j);
        j->first = index;
        j->text = berth_strbuf_make(j->arena);
    }
    berth_strbuf_add(&j->text, unit->source);
    j->last = index;
    j->member_count++;
    j->joined->of[index] = j->joined->count;
}

berth_joined berth_toolchain__join(const berth_toolchain_unit *units, uint32_t count,
                                   berth_arena *arena) {
    berth_joined joined = {.units = berth_arena_new_array(arena, berth_toolchain_unit, count + 1),
                           .members = berth_arena_new_array(arena, uint32_t, count + 1),
                           .of = berth_arena_new_array(arena, uint32_t, count + 1)};
    const uint32_t *same_as = find_equal(units, count, arena);
    joiner j = {.arena = arena,
                .given = units,
                .joined = &joined,
                .limit_bytes = limit_of(units, same_as, count)};
    for (uint32_t i = 0; i < count; ++i)
        if (same_as[i] == i) add_unit(&j, i);
    close_text(&j);
    for (uint32_t i = 0; i < count; ++i) {
        joined.of[i] = joined.of[same_as[i]];
        if (same_as[i] != i) joined.members[joined.of[i]]++;
    }
    return joined;
}
