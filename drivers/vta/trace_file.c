#include "drivers/vta/trace_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    berth_arena *arena;
    const char *name;
    const char *at, *end;  // what is left
    uint32_t line_number;
    char *line;  // without its end
    berth_vta_trace *trace;
} reader;

#define FAIL(r, ...) fail_at(r, berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__))

static berth_status fail_at(const reader *r, berth_status status) {
    return berth_status_prefix(status, "%s:%u", r->name, r->line_number);
}

// The next line, in the arena; false at the end.
static bool next_line(reader *r) {
    if (r->at == r->end) return false;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *after = stop ? stop + 1 : r->end;
    if (!stop) stop = r->end;
    r->line = berth_arena_strndup(r->arena, r->at, (size_t)(stop - r->at));
    r->at = after;
    r->line_number++;
    return true;
}

// The next word of a line, or NULL.
static char *next_word(char **inout_rest) {
    char *word = *inout_rest + strspn(*inout_rest, " ");
    if (!*word) return NULL;
    char *end = word + strcspn(word, " ");
    *inout_rest = *end ? end + 1 : end;
    *end = 0;
    return word;
}

static bool parse_number(const char *text, int base, uint64_t *out_value) {
    if (!text || strlen(text) > 16 ||
        text[strspn(text, base == 16 ? "0123456789abcdefABCDEF" : "0123456789")] || !*text)
        return false;
    *out_value = strtoull(text, NULL, base);
    return true;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Two digits of a byte; -1 where they are none.
static int byte_at(const char *text) {
    int high = digit(text[0]), low = high < 0 ? -1 : digit(text[1]);
    return low < 0 ? -1 : high * 16 + low;
}

// ---- the lines that are followed by others ----

static berth_status check_range(const reader *r, const char *what, uint64_t address,
                                uint64_t size_bytes) {
    const berth_vta_trace *t = r->trace;
    if (t->before && address >= t->base && address - t->base <= t->size_bytes &&
        size_bytes <= t->size_bytes - (address - t->base))
        return BERTH_OK;
    return FAIL(r, "%s lies outside of the arena, or comes before it", what);
}

static berth_status read_bytes(reader *r, uint8_t *out, uint64_t size_bytes) {
    for (uint64_t done = 0; done < size_bytes;) {
        if (!next_line(r)) return FAIL(r, "the file ends inside of a region");
        uint64_t wanted = size_bytes - done < 32 ? size_bytes - done : 32;
        if (strlen(r->line) != 2 * wanted)
            return FAIL(r, "%llu hex digits, not %zu", (unsigned long long)(2 * wanted),
                        strlen(r->line));
        for (uint64_t i = 0; i < wanted; ++i) {
            int byte = byte_at(r->line + 2 * i);
            if (byte < 0) return FAIL(r, "no hex digits");
            out[done + i] = (uint8_t)byte;
        }
        done += wanted;
    }
    return BERTH_OK;
}

static berth_status read_region(reader *r, char *rest, bool expected) {
    const char *name = next_word(&rest);
    uint64_t address = 0, size_bytes = 0;
    if (!name || !parse_number(next_word(&rest), 16, &address) ||
        !parse_number(next_word(&rest), 10, &size_bytes))
        return FAIL(r, "a region has a name, an address and a size");
    BERTH_TRY(check_range(r, name, address, size_bytes));
    uint8_t *data = r->trace->before + (address - r->trace->base);
    if (expected) data = berth_arena_alloc(r->arena, size_bytes + 1);
    if (expected)
        berth_vec_push(r->arena, &r->trace->expected,
                       (berth_vta_trace_region){name, address, size_bytes, data});
    return read_bytes(r, data, size_bytes);
}

static berth_status read_run(reader *r, char *rest) {
    uint64_t address = 0, count = 0;
    if (!parse_number(next_word(&rest), 16, &address) ||
        !parse_number(next_word(&rest), 10, &count) || count > BERTH_VTA_TRACE_MOST_BYTES / 16)
        return FAIL(r, "a run has an address and a number of instructions");
    BERTH_TRY(check_range(r, "the run", address, count * 16));
    berth_vec_push(r->arena, &r->trace->runs, (berth_vta_trace_run){address, (uint32_t)count});
    for (uint64_t i = 0; i < count; ++i) {
        if (!next_line(r)) return FAIL(r, "the file ends inside of a run");
        if (strlen(r->line) != 32) return FAIL(r, "an instruction has 32 hex digits");
        uint8_t *to = r->trace->before + (address - r->trace->base) + 16 * i;
        for (int b = 0; b < 16; ++b) {
            int byte = byte_at(r->line + 30 - 2 * b);
            if (byte < 0) return FAIL(r, "no hex digits");
            to[b] = (uint8_t)byte;
        }
    }
    return BERTH_OK;
}

// ---- the other lines ----

static berth_status set_config(reader *r, const char *key, uint64_t value) {
    berth_vta_config *c = &r->trace->config;
    uint32_t number = value < 64 ? (uint32_t)value : 63;
    if (strcmp(key, "log_block_out") == 0 && number != c->log_block)
        return FAIL(r, "log_block_out differs from log_block_in");
    if (strcmp(key, "log_out_width") == 0 && number != c->log_inp_width)
        return FAIL(r, "log_out_width differs from log_inp_width");
#define LOG(name, standard, trace_name)                                                            \
    if (strcmp(key, trace_name) == 0) c->name = number;
#include "drivers/vta/config.def"
    return BERTH_OK;
}

static void set_stat(reader *r, const char *key, uint64_t value) {
    r->trace->stats.given = true;
#define STAT(name)                                                                                 \
    if (strcmp(key, #name) == 0) r->trace->stats.name = value;
    STAT(inp_load_nbytes)
    STAT(wgt_load_nbytes)
    STAT(acc_load_nbytes)
    STAT(uop_load_nbytes)
    STAT(out_store_nbytes)
    STAT(gemm_counter)
    STAT(alu_counter)
#undef STAT
}

static berth_status read_pairs(reader *r, char *rest, bool config) {
    for (char *word; (word = next_word(&rest));) {
        char *equals = strchr(word, '=');
        uint64_t value = 0;
        if (!equals || !parse_number(equals + 1, 10, &value))
            return FAIL(r, "\"%.40s\" is no KEY=NUMBER", word);
        *equals = 0;
        if (config)
            BERTH_TRY(set_config(r, word, value));
        else
            set_stat(r, word, value);
    }
    return BERTH_OK;
}

static berth_status read_arena(reader *r, char *rest) {
    berth_vta_trace *t = r->trace;
    if (t->before) return FAIL(r, "a second arena");
    if (!parse_number(next_word(&rest), 16, &t->base) ||
        !parse_number(next_word(&rest), 16, &t->size_bytes))
        return FAIL(r, "an arena has a base and a size");
    if (t->size_bytes > BERTH_VTA_TRACE_MOST_BYTES || t->base > 0xffffffffu ||
        t->base + t->size_bytes > (uint64_t)1 << 32)
        return fail_at(r,
                       berth_status_make(BERTH_OUT_OF_RANGE,
                                         "an arena of %llu bytes at 0x%llx; addresses have 32 "
                                         "bits, and %d bytes are the limit",
                                         (unsigned long long)t->size_bytes,
                                         (unsigned long long)t->base, BERTH_VTA_TRACE_MOST_BYTES));
    t->before = berth_arena_alloc(r->arena, t->size_bytes + 1);
    return BERTH_OK;
}

static berth_status read_fill(reader *r, char *rest) {
    uint64_t value = 0;
    if (!r->trace->before || !parse_number(next_word(&rest), 16, &value) || value > 255)
        return FAIL(r, "fill has a byte, and comes after the arena");
    memset(r->trace->before, (int)value, r->trace->size_bytes);
    return BERTH_OK;
}

static berth_status read_line(reader *r, bool *out_end) {
    char *rest = r->line;
    const char *word = next_word(&rest);
    if (!word) return FAIL(r, "an empty line");
    if (strcmp(word, "name") == 0)
        r->trace->name = rest;
    else if (strcmp(word, "desc") == 0)
        r->trace->description = rest;
    else if (strcmp(word, "hw_portable") == 0) {
        r->trace->portable = strcmp(rest, "yes") == 0;
        r->trace->portability = strncmp(rest, "no: ", 4) == 0 ? rest + 4 : "";
    } else if (strcmp(word, "config") == 0)
        return read_pairs(r, rest, true);
    else if (strcmp(word, "stats") == 0)
        return read_pairs(r, rest, false);
    else if (strcmp(word, "arena") == 0)
        return read_arena(r, rest);
    else if (strcmp(word, "fill") == 0)
        return read_fill(r, rest);
    else if (strcmp(word, "region") == 0)
        return read_region(r, rest, false);
    else if (strcmp(word, "expect") == 0)
        return read_region(r, rest, true);
    else if (strcmp(word, "run") == 0)
        return read_run(r, rest);
    else if (strcmp(word, "end") == 0)
        *out_end = true;
    else
        return FAIL(r, "\"%.40s\" is not known here", word);
    return BERTH_OK;
}

berth_status berth_vta_trace_parse(berth_arena *arena, const char *name, const char *text,
                                   size_t length, berth_vta_trace *out_trace) {
    memset(out_trace, 0, sizeof(*out_trace));
    *out_trace = (berth_vta_trace){.name = "", .description = "", .portability = ""};
    out_trace->config = berth_vta_config_default();
    reader r = {arena, name, text, text + length, 0, NULL, out_trace};
    if (!next_line(&r) || strcmp(r.line, "VTA-GOLDEN 1") != 0)
        return FAIL(&r, "no recorded program: the first line is not \"VTA-GOLDEN 1\"");
    bool ended = false;
    while (!ended) {
        if (!next_line(&r)) return FAIL(&r, "the file has no \"end\": it was cut");
        BERTH_TRY(read_line(&r, &ended));
    }
    if (r.at != r.end) return FAIL(&r, "something follows \"end\"");
    if (!out_trace->before || out_trace->runs.count == 0)
        return FAIL(&r, "a program needs an arena and a run");
    return BERTH_OK;
}

// ---- replaying ----

static bool counters_agree(const berth_vta_trace *t, const berth_vta_counters *c) {
    return !t->stats.given ||
           (t->stats.inp_load_nbytes == c->load_bytes[BERTH_VTA_INP] &&
            t->stats.wgt_load_nbytes == c->load_bytes[BERTH_VTA_WGT] &&
            t->stats.acc_load_nbytes == c->load_bytes[BERTH_VTA_ACC] &&
            t->stats.uop_load_nbytes == c->load_bytes[BERTH_VTA_UOP] &&
            t->stats.out_store_nbytes == c->store_bytes &&
            t->stats.gemm_counter == c->gemm_micro_ops && t->stats.alu_counter == c->alu_micro_ops);
}

// `wanted` becomes what DRAM must hold in the end.
static void compare(const berth_vta_trace *t, const uint8_t *dram, uint8_t *wanted,
                    berth_vta_replay *out) {
    memcpy(wanted, t->before, t->size_bytes);
    for (uint32_t e = 0; e < t->expected.count; ++e)
        memcpy(wanted + (t->expected.data[e].address - t->base), t->expected.data[e].data,
               t->expected.data[e].size_bytes);
    for (uint64_t i = 0; i < t->size_bytes; ++i) {
        if (dram[i] == wanted[i]) continue;
        if (out->wrong_bytes++ == 0) out->first_wrong = t->base + i;
    }
    out->reproduced = out->wrong_bytes == 0;
}

berth_status berth_vta_trace_replay(const berth_vta_trace *trace, berth_allocator allocator,
                                    const berth_vta_run_options *options,
                                    berth_vta_replay *out_replay) {
    memset(out_replay, 0, sizeof(*out_replay));
    berth_vta_model *model = NULL;
    uint8_t *dram = berth_alloc(allocator, trace->size_bytes + 1);
    uint8_t *wanted = berth_alloc(allocator, trace->size_bytes + 1);
    berth_status status = dram && wanted ? berth_vta_model_create(allocator, &trace->config, &model)
                                         : berth_status_oom();
    if (!status) {
        berth_vta_model_scramble(model, options->seed);
        memcpy(dram, trace->before, trace->size_bytes);
    }
    berth_vta_dram memory = {dram, trace->base, trace->size_bytes};
    for (uint32_t i = 0; !status && i < trace->runs.count; ++i)
        status = berth_vta_run(model, &memory, trace->runs.data[i].address,
                               trace->runs.data[i].count, options, &out_replay->report);
    if (!status) {
        out_replay->counters = model->counters;
        out_replay->counted = counters_agree(trace, &model->counters);
        compare(trace, dram, wanted, out_replay);
    }
    berth_vta_model_destroy(model);
    berth_free(allocator, wanted, trace->size_bytes + 1);
    berth_free(allocator, dram, trace->size_bytes + 1);
    return status;
}
