#include "ir/device_names.h"

#include <string.h>

#include "target/target.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f');
}
static bool is_kind(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_scope(char c) {
    return is_kind(c) || c == '.' || c == '-';
}
// What goes on with a name, so that "g" is not found in "g2" or "g/0"; a colon or an at sign may
// begin what follows the device.
static bool goes_on(char c) {
    return is_scope(c) || c == '+' || c == '/';
}

static size_t span(const char *text, size_t length, bool (*test)(char)) {
    size_t count = 0;
    while (count < length && test(text[count])) count++;
    return count;
}

// KIND:N or a star.
static size_t kind_length(const char *text, size_t length) {
    size_t word = span(text, length, is_kind);
    if (length && *text == '*') word = 1;
    bool known = word == 1 && *text == '*';
    for (const char *const *kind = berth_device_kind_names(); *kind && !known; ++kind)
        known = strlen(*kind) == word && memcmp(*kind, text, word) == 0;
    if (!known) return 0;
    if (word + 1 < length && text[word] == ':' && is_digit(text[word + 1]))
        word += 1 + span(text + word + 1, length - word - 1, is_digit);
    return word;
}

static uint32_t named(const berth_multi_target *target, const char *text, size_t length,
                      size_t *out_length) {
    uint32_t found = BERTH_NO_INDEX;
    *out_length = kind_length(text, length);
    for (uint32_t i = 0; target && i < target->device_count; ++i) {
        const char *name = target->devices[i].name;
        size_t own = strlen(name);
        if (own <= *out_length || own > length || memcmp(name, text, own) != 0) continue;
        if (own < length && goes_on(text[own])) continue;
        *out_length = own;
        found = i;
    }
    return found;
}

size_t berth_device_name_length(const berth_multi_target *target, const char *text, size_t length) {
    size_t end = 0;
    (void)named(target, text, length, &end);
    if (!end) return 0;
    if (end + 1 < length && text[end] == '@' && is_scope(text[end + 1]))
        end += 1 + span(text + end + 1, length - end - 1, is_scope);
    if (end < length && text[end] == '#' && span(text + end + 1, length - end - 1, is_hex) == 32)
        end += 33;
    return end;
}

static berth_status unknown(const berth_multi_target *target, const berth_module *module,
                            const char *name, berth_status status) {
    if (kind_length(name, strlen(name))) return status;  // a kind, and something wrong behind it
    berth_strbuf names = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; target && i < target->device_count; ++i)
        berth_strbuf_addf(&names, "%s%s", i ? ", " : "", target->devices[i].name);
    berth_code code = berth_status_code(status);
    berth_status better =
        target ? berth_status_make(code, "%s; nor is it a device of the target, which has %s",
                                   berth_status_message(status), berth_strbuf_text(&names))
               : berth_status_make(code,
                                   "%s; names of a target's devices are known where the "
                                   "target is given",
                                   berth_status_message(status));
    berth_status_free(status);
    return better;
}

berth_status berth_device_name_read(const berth_multi_target *target, berth_module *module,
                                    const char *name, berth_device_id *out_device) {
    size_t end = 0;
    uint32_t index = named(target, name, strlen(name), &end);
    *out_device = 0;
    if (index == BERTH_NO_INDEX) {
        berth_status status = berth_virtual_device_parse(module->devices, name, out_device);
        return status ? unknown(target, module, name, status) : BERTH_OK;
    }
    berth_virtual_device device = berth_multi_target_virtual_device(target, index);
    berth_virtual_device rest;  // scope, target
    BERTH_TRY(berth_virtual_device_from_name(
        module->arena, berth_arena_printf(module->arena, "*%s", name + end), &rest));
    if (!berth_virtual_device_join(device, rest, &device))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "'%s': the device called %s has another target", name,
                                 target->devices[index].name);
    *out_device = berth_virtual_device_intern(module->devices, device);
    return BERTH_OK;
}
