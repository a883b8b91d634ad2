#include "drivers/vta/driver/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/vta/isa.h"

static berth_status set_number(berth_vta_device_options *o, const char *name, const char *text) {
    const struct {
        const char *name;
        uint64_t *value;
        uint64_t most;
    } numbers[] = {{"memory_bytes", &o->memory_bytes, UINT32_MAX},
                   {"memory_base", &o->memory_base, UINT32_MAX},
                   {"registers_at", &o->registers_at, INT64_MAX},
                   {"memory_at", &o->memory_at, INT64_MAX},
                   {"timeout_ms", &o->timeout_ms, 86400000}};
    char *end = NULL;
    errno = 0;
    uint64_t value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 0) : 0;
    if (!end || *end || errno)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s=%s is no number", name, text);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        if (strcmp(name, numbers[i].name) != 0) continue;
        if (value > numbers[i].most)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "%s=%s is too much", name, text);
        *numbers[i].value = value;
        return BERTH_OK;
    }
    berth_status status = berth_vta_config_set(&o->config, name, value < 64 ? (uint32_t)value : 63);
    if (!status) return BERTH_OK;
    berth_status_free(status);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "a VTA has no attribute %s", name);
}

static berth_status set(berth_vta_device_options *o, const char *name, const char *value) {
    bool registers = strcmp(name, "registers") == 0;
    if (strcmp(name, "transport") == 0) {
        o->registers = strcmp(value, "registers") == 0;
        if (o->registers || strcmp(value, "sim") == 0) return BERTH_OK;
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "transport=%s: a VTA is reached by sim or registers", value);
    }
    if (registers || strcmp(name, "memory") == 0) {
        snprintf(registers ? o->registers_file : o->memory_file, BERTH_VTA_PATH_BYTES, "%s", value);
        return BERTH_OK;
    }
    return set_number(o, name, value);
}

static berth_status check(const berth_vta_device_options *o) {
    berth_vta_shape shape;
    berth_vta_isa isa;
    BERTH_TRY(berth_vta_shape_make(&o->config, &shape));
    BERTH_TRY(berth_vta_isa_make(&shape, &isa));
    if (o->memory_base % 4096 != 0 || o->memory_base == 0 || o->memory_bytes < 8192 ||
        o->memory_base + o->memory_bytes > (uint64_t)UINT32_MAX + 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "memory_base=0x%llx, memory_bytes=%llu: memory begins at a page "
                                 "after 0, is two pages at least and ends within 32 bits",
                                 (unsigned long long)o->memory_base,
                                 (unsigned long long)o->memory_bytes);
    if (o->registers && !*o->memory_file)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "transport=registers needs memory=FILE and memory_base=ADDRESS: "
                                 "the board's contiguous memory");
    return BERTH_OK;
}

berth_status berth_vta_device_options_parse(const char *attributes,
                                            berth_vta_device_options *out_options) {
    *out_options = (berth_vta_device_options){.config = berth_vta_config_default(),
                                              .memory_bytes = (uint64_t)256 << 20,
                                              .memory_base = 0x10000,
                                              .registers_at = 0x43C00000,
                                              .timeout_ms = 10000,
                                              .registers_file = "/dev/mem"};
    for (const char *at = attributes ? attributes : ""; *at;) {
        size_t length = strcspn(at, " ");
        char word[BERTH_VTA_PATH_BYTES];
        if (length >= sizeof(word))
            return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%.40s...\" is too long", at);
        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        at += length + strspn(at + length, " ");
        if (!*word) continue;
        char *equals = strchr(word, '=');
        if (!equals)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" is no NAME=VALUE", word);
        *equals = 0;
        BERTH_TRY(set(out_options, word, equals + 1));
    }
    return check(out_options);
}
