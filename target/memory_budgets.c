// Budgets of memories, and what a board has beside its RAM: they are there for those who give them a budget.
#include <string.h>

#include "target/memory_builder.h"

// Its bytes follow from a device's attributes: there is nothing to save.
static bool refuse_on_chip(berth_target__memory_builder *b, uint32_t memory, const char *path) {
    const berth_target_memory *refused = &b->multi->memories[memory];
    const char *scope = NULL;
    for (uint32_t d = 0; d < b->multi->device_count; ++d)
        for (uint32_t i = 0; berth_bits_has(refused->reached_by, d); ++i) {
            berth_target__on_chip(b->multi->devices[d].target, i, &scope);
            if (!scope) break;
            if (strcmp(scope, refused->scope) != 0) continue;
            berth_target__error(b->parse, path,
                                "'%s' is on the chip of '%s' and as large as its attributes say: "
                                "it takes no budget",
                                refused->name, b->multi->devices[d].name);
            return true;
        }
    return false;
}

// Whether the option sets a budget of that name.
static bool has_budget(const berth_target__memory_builder *b, const char *name) {
    size_t length = strlen(name);
    for (const char *at = b->parse->options->budgets; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && at[length] == '=') return true;
    }
    return false;
}

// Bare, with one device whose own memory nobody declared.
static bool is_board(const berth_multi_target *multi) {
    return multi->runtime == BERTH_RUNTIME_BARE && multi->device_count == 1 &&
           multi->memories[multi->devices[0].own_memory].implied;
}

static const uint64_t most_addressed_bytes = UINT64_C(1) << 32;  // addresses of 32 bits

// What a board may have beside its RAM, of which nobody has to say more than the size.
typedef struct board_memory {
    const char *name;
    bool holds_constants;
    double speed;  // of the RAM's
    const char *scope;
} board_memory;

static const board_memory board_memories[] = {{"flash", true, 1, "global"},
                                              {"dtcm", false, 4, "global"},
                                              {"ccm", false, 4, "global"},
                                              {"external", false, 0.25, "global"},
                                              {"store", false, 1.0 / 16, BERTH_TARGET_SCOPE_STORE}};

_Static_assert(sizeof(board_memories) / sizeof(board_memories[0]) == BERTH_TARGET__BOARD_MEMORIES,
               "a name for each");

// A board has a RAM ("sram"), which is its own memory, and others by name; only budgets limit the size of these, and of
// a RAM whose size nobody gave. They are there for those who name them.
void berth_target__imply_board(berth_target__memory_builder *b) {
    berth_multi_target *multi = b->multi;
    if (!is_board(multi)) return;
    berth_target_memory *own = &multi->memories[multi->devices[0].own_memory];
    if (has_budget(b, "sram")) {
        own->name = "sram";
        if (multi->devices[0].target->capacity_is_assumed)
            own->capacity_bytes = own->budget_bytes = most_addressed_bytes;
    }
    for (uint32_t i = 0; i < BERTH_TARGET__BOARD_MEMORIES; ++i) {
        const board_memory *wanted = &board_memories[i];
        if (!has_budget(b, wanted->name) ||
            berth_target__memory_named(multi, wanted->name) != BERTH_NO_INDEX)
            continue;
        berth_target_memory *memory =
            &multi->memories[berth_target__add_memory(b, 0, wanted->name)];
        memory->capacity_bytes = memory->budget_bytes = most_addressed_bytes;
        memory->bandwidth_bytes_per_s *= wanted->speed;
        memory->latency_ns = (uint64_t)((double)memory->latency_ns / wanted->speed);
        memory->holds_constants = wanted->holds_constants;
        memory->scope = wanted->scope;
        memory->implied = false;
    }
}

// One "NAME=BYTES" of the option. `taken`: per memory, whether it had one already.
static void take_budget(berth_target__memory_builder *b, const char *text, bool *taken) {
    static const char option[] = "memory";
    berth_arena *scratch = b->parse->scratch;
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text) {
        berth_target__error(b->parse, option, "takes NAME=BYTES, as in cpu=64MiB, not '%s'", text);
        return;
    }
    const char *name = berth_arena_strndup(scratch, text, (size_t)(equals - text));
    uint32_t index = berth_multi_target_memory_meant(b->multi, name);
    int64_t bytes = 0;
    if (index == BERTH_NO_INDEX) {
        const char **names = berth_arena_new_array(scratch, const char *,
                                                   b->multi->memory_count + b->multi->device_count +
                                                       BERTH_TARGET__BOARD_MEMORIES + 2);
        uint32_t count = 0;
        if (is_board(b->multi) && !has_budget(b, "sram")) names[count++] = "sram";
        for (uint32_t i = 0; i < BERTH_TARGET__BOARD_MEMORIES && is_board(b->multi); ++i)
            if (!has_budget(b, board_memories[i].name)) names[count++] = board_memories[i].name;
        for (uint32_t i = 0; i < b->multi->memory_count; ++i)
            names[count++] = b->multi->memories[i].name;
        for (uint32_t d = 0; d < b->multi->device_count; ++d)
            if (berth_target__memory_named(b->multi, b->multi->devices[d].name) == BERTH_NO_INDEX)
                names[count++] = b->multi->devices[d].name;
        berth_target__error(b->parse, option, "there is no memory or device '%s'; there are %s%s",
                            name, berth_target__join(scratch, names),
                            berth_target__hint(b->parse, name, names));
        return;
    }
    if (refuse_on_chip(b, index, option)) return;
    berth_target_memory *memory = &b->multi->memories[index];
    if (taken[index]) {
        berth_target__error(b->parse, option, "'%s' is a second budget of memory '%s'", text,
                            memory->name);
        return;
    }
    taken[index] = true;
    const char *error = NULL;  // "4096" is a number, "4KiB" a text
    json *value = berth_target__json_read(scratch, scratch, equals + 1, strlen(equals + 1), &error);
    if (!value) value = berth_target__json_string(scratch, equals + 1);
    value->path = berth_arena_printf(scratch, "%s: %s", option, name);
    if (berth_target__read_int(b->parse, value, true, 1, (double)memory->capacity_bytes, &bytes))
        memory->budget_bytes = (uint64_t)bytes;
}

void berth_target__take_budgets(berth_target__memory_builder *b, const char *list) {
    bool *taken = berth_arena_new_array(b->parse->scratch, bool, b->multi->memory_count + 1);
    for (size_t length = 0; list; list = list[length] ? list + length + 1 : NULL) {
        length = strcspn(list, ",");
        take_budget(b, berth_arena_strndup(b->parse->scratch, list, length), taken);
    }
}

void berth_target__read_budgets(berth_target__memory_builder *b) {
    const json *value = berth_target__json_get(b->root, "budgets");
    if (!value) return;
    if (!berth_target__is_object(b->parse, value, "budgets")) return;
    for (uint32_t i = 0; i < value->members.count; ++i) {
        const berth_target__member *member = &value->members.data[i];
        uint32_t index = berth_target__memory_named(b->multi, member->key);
        int64_t bytes = 0;
        if (index == BERTH_NO_INDEX) {
            const char **names =
                berth_arena_new_array(b->parse->scratch, const char *, b->multi->memory_count + 1);
            for (uint32_t k = 0; k < b->multi->memory_count; ++k)
                names[k] = b->multi->memories[k].name;
            berth_target__error(b->parse, member->value->path,
                                "there is no memory '%s'; memories are %s%s", member->key,
                                berth_target__join(b->parse->scratch, names),
                                berth_target__hint(b->parse, member->key, names));
        } else if (!refuse_on_chip(b, index, member->value->path) &&
                   berth_target__read_int(b->parse, member->value, true, 1,
                                          (double)b->multi->memories[index].capacity_bytes,
                                          &bytes)) {
            b->multi->memories[index].budget_bytes = (uint64_t)bytes;
        }
    }
}
