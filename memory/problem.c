#include "memory/problem.h"

#include <string.h>

#include "base/file.h"

typedef enum column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_POOL,
    COLUMN_OFFSET,
    COLUMN_COUNT
} column;

static const char *const column_names[COLUMN_COUNT + 1] = {"id",        "lower", "upper",  "size",
                                                           "alignment", "pool",  "offset", NULL};
enum { FIRST_OPTIONAL = COLUMN_ALIGNMENT, POOL_NAME_LIMIT = 4096 };

typedef struct field {
    const char *text;  // quotes removed
    size_t length;
    uint32_t column;  // 1-based byte column of its first character in the file
} field;

typedef struct parser {
    berth_arena *arena;
    const char *name;
    const char *at;
    const char *end;
    const char *line_start;
    uint32_t line;
    int position[COLUMN_COUNT];  // field index of each column; -1 = absent
    uint32_t field_count;        // fields per row
    field fields[COLUMN_COUNT];
    berth_interner *ids;
    uint32_t id_count;
    berth_interner *pool_ids;
    uint64_t total_bytes;
    BERTH_VEC(const char *) id_texts;
    BERTH_VEC(berth_memory_interval) intervals;
    BERTH_VEC(uint32_t) pools;
    BERTH_VEC(uint64_t) offsets;
    BERTH_VEC(const char *) pool_names;
    berth_memory_problem **out_problem;
    berth_limit_watch watch;  // of rows
} parser;

#define fail_at(parser_, column_, code_, ...)                                                      \
    berth_status_prefix(berth_status_make((code_), __VA_ARGS__), "%s:%u:%u", (parser_)->name,      \
                        (parser_)->line, (column_))

static uint32_t column_of(const parser *p, const char *at) {
    size_t number = (size_t)(at - p->line_start) + 1;
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

// Text of a message: a field may be megabytes long.
static int shown(const field *f) {
    return f->length < 40 ? (int)f->length : 40;
}

static berth_status quoted_field(parser *p, field *out) {
    uint32_t number = column_of(p, p->at);
    const char *start = ++p->at;
    bool doubled = false;
    for (; p->at < p->end && *p->at != '\n'; ++p->at) {
        if (*p->at != '"') continue;
        if (p->at + 1 == p->end || p->at[1] != '"') break;
        doubled = true;
        ++p->at;
    }
    if (p->at == p->end || *p->at != '"')
        return fail_at(p, number, BERTH_INVALID_ARGUMENT, "the quote is not closed on this line");
    *out = (field){start, (size_t)(p->at - start), number};
    ++p->at;
    if (!doubled) return BERTH_OK;
    char *copy = berth_arena_strndup(p->arena, start, out->length);
    size_t length = 0;
    for (size_t i = 0; i < out->length; ++i, ++length) {
        copy[length] = copy[i];
        if (copy[i] == '"') ++i;
    }
    copy[length] = 0;
    out->text = copy;
    out->length = length;
    return BERTH_OK;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// Reads up to `limit` fields of the current line and moves to the next. *out_count = fields of the
// line.
static berth_status read_line(parser *p, field *fields, uint32_t limit, uint32_t *out_count) {
    uint32_t count = 0;
    for (;;) {
        while (p->at < p->end && is_blank(*p->at)) ++p->at;
        field f = {p->at, 0, column_of(p, p->at)};
        if (p->at < p->end && *p->at == '"') {
            BERTH_TRY(quoted_field(p, &f));
            while (p->at < p->end && is_blank(*p->at)) ++p->at;
            if (p->at < p->end && *p->at != ',' && *p->at != '\n')
                return fail_at(p, column_of(p, p->at), BERTH_INVALID_ARGUMENT,
                               "expected a comma or the end of the line after a quoted field");
        } else {
            while (p->at < p->end && *p->at != ',' && *p->at != '\n') ++p->at;
            f.length = (size_t)(p->at - f.text);
            while (f.length > 0 && is_blank(f.text[f.length - 1])) --f.length;
        }
        if (count == limit)
            return fail_at(p, f.column, BERTH_INVALID_ARGUMENT,
                           "more than the %u fields that the header names", limit);
        fields[count++] = f;
        if (p->at == p->end || *p->at == '\n') break;
        ++p->at;
    }
    *out_count = count;
    return BERTH_OK;
}

static void next_line(parser *p) {
    if (p->at < p->end) ++p->at;
    p->line_start = p->at;
    p->line++;
}

static bool line_is_blank(const parser *p) {
    const char *at = p->at;
    while (at < p->end && is_blank(*at)) ++at;
    return at == p->end || *at == '\n';
}

static berth_status header_field(parser *p, const field *f, uint32_t index) {
    for (int c = 0; c < COLUMN_COUNT; ++c) {
        if (strlen(column_names[c]) != f->length ||
            memcmp(column_names[c], f->text, f->length) != 0)
            continue;
        if (p->position[c] >= 0)
            return fail_at(p, f->column, BERTH_INVALID_ARGUMENT, "column \"%s\" is named twice",
                           column_names[c]);
        p->position[c] = (int)index;
        return BERTH_OK;
    }
    char text[41] = {0};
    memcpy(text, f->text, (size_t)shown(f));
    const char *close = berth_closest(text, column_names);
    return fail_at(p, f->column, BERTH_INVALID_ARGUMENT,
                   "unknown column \"%s\"%s%s%s; the columns are id, lower, upper, size, and "
                   "optionally alignment, "
                   "pool, offset",
                   text, close ? " (did you mean \"" : "", close ? close : "", close ? "\"?)" : "");
}

static berth_status parse_header(parser *p) {
    for (int c = 0; c < COLUMN_COUNT; ++c) p->position[c] = -1;
    if (line_is_blank(p))
        return fail_at(p, 1u, BERTH_INVALID_ARGUMENT,
                       "expected a header line: id,lower,upper,size[,alignment][,pool]");
    BERTH_TRY(read_line(p, p->fields, COLUMN_COUNT, &p->field_count));
    for (uint32_t i = 0; i < p->field_count; ++i) BERTH_TRY(header_field(p, &p->fields[i], i));
    for (int c = 0; c < FIRST_OPTIONAL; ++c)
        if (p->position[c] < 0)
            return fail_at(p, 1u, BERTH_INVALID_ARGUMENT, "the header lacks the column \"%s\"",
                           column_names[c]);
    next_line(p);
    return BERTH_OK;
}

// Reads digits of one number, no sign. False when it is not a number; *out_overflow when it is
// beyond `limit`.
static bool parse_digits(const char *text, size_t length, uint64_t limit, uint64_t *out,
                         bool *out_overflow) {
    uint64_t value = 0;
    *out_overflow = false;
    if (length == 0) return false;
    for (size_t i = 0; i < length; ++i) {
        if (text[i] < '0' || text[i] > '9') return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (limit - digit) / 10)
            *out_overflow = true;
        else
            value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static berth_status parse_u64(const parser *p, column c, uint64_t *out) {
    const field *f = &p->fields[p->position[c]];
    bool overflow = false;
    if (!parse_digits(f->text, f->length, INT64_MAX, out, &overflow))
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT,
                       "%s must be a whole number that is not negative, not \"%.*s\"",
                       column_names[c], shown(f), f->text);
    if (overflow)
        return fail_at(p, f->column, BERTH_OUT_OF_RANGE, "%s %.*s does not fit 63 bits",
                       column_names[c], shown(f), f->text);
    return BERTH_OK;
}

static berth_status parse_time(const parser *p, column c, int64_t *out) {
    const field *f = &p->fields[p->position[c]];
    bool negative = f->length > 0 && f->text[0] == '-';
    bool overflow = false;
    uint64_t magnitude = 0;
    if (!parse_digits(f->text + negative, f->length - negative, INT64_MAX, &magnitude, &overflow))
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT,
                       "%s must be a whole number, not \"%.*s\"", column_names[c], shown(f),
                       f->text);
    if (overflow)
        return fail_at(p, f->column, BERTH_OUT_OF_RANGE, "%s %.*s does not fit 64 bits",
                       column_names[c], shown(f), f->text);
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return BERTH_OK;
}

static berth_status parse_interval(parser *p, berth_memory_interval *out) {
    BERTH_TRY(parse_time(p, COLUMN_LOWER, &out->lower));
    BERTH_TRY(parse_time(p, COLUMN_UPPER, &out->upper));
    if (out->lower >= out->upper)
        return fail_at(p, p->fields[p->position[COLUMN_UPPER]].column, BERTH_INVALID_ARGUMENT,
                       "upper %lld must be greater than lower %lld", (long long)out->upper,
                       (long long)out->lower);
    BERTH_TRY(parse_u64(p, COLUMN_SIZE, &out->size_bytes));
    if (out->size_bytes == 0)
        return fail_at(p, p->fields[p->position[COLUMN_SIZE]].column, BERTH_INVALID_ARGUMENT,
                       "size must not be 0");
    out->alignment_bytes = 1;
    if (p->position[COLUMN_ALIGNMENT] >= 0) {
        BERTH_TRY(parse_u64(p, COLUMN_ALIGNMENT, &out->alignment_bytes));
        if (out->alignment_bytes == 0 || (out->alignment_bytes & (out->alignment_bytes - 1)) != 0)
            return fail_at(p, p->fields[p->position[COLUMN_ALIGNMENT]].column,
                           BERTH_INVALID_ARGUMENT, "alignment must be a power of two, not %llu",
                           (unsigned long long)out->alignment_bytes);
    }
    uint64_t total = berth_memory_total(out, 1);
    if (total > BERTH_MEMORY_TOTAL_LIMIT_BYTES - p->total_bytes)
        return fail_at(p, p->fields[p->position[COLUMN_SIZE]].column, BERTH_OUT_OF_RANGE,
                       "the sum of sizes and alignments up to this row is above %llu",
                       (unsigned long long)BERTH_MEMORY_TOTAL_LIMIT_BYTES);
    p->total_bytes += total;
    return BERTH_OK;
}

static berth_status parse_id(parser *p) {
    const field *f = &p->fields[p->position[COLUMN_ID]];
    if (f->length == 0) return fail_at(p, f->column, BERTH_INVALID_ARGUMENT, "the id is empty");
    if (memchr(f->text, 0, f->length))
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT, "the id has a NUL byte");
    uint32_t id = berth_intern_n(p->ids, f->text, f->length);
    if (id <= p->id_count)
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT,
                       "id \"%.*s\" is already that of row %u", shown(f), f->text, id);
    p->id_count = id;
    berth_vec_push(p->arena, &p->id_texts, berth_interned(p->ids, id));
    return BERTH_OK;
}

static berth_status parse_pool(parser *p) {
    if (p->position[COLUMN_POOL] < 0) {
        berth_vec_push(p->arena, &p->pools, 0);
        return BERTH_OK;
    }
    const field *f = &p->fields[p->position[COLUMN_POOL]];
    if (memchr(f->text, 0, f->length))
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT, "the pool has a NUL byte");
    if (f->length > POOL_NAME_LIMIT)
        return fail_at(p, f->column, BERTH_INVALID_ARGUMENT,
                       "the pool's name is longer than %d bytes", POOL_NAME_LIMIT);
    if (p->pools.count > 0) {  // mostly the pool of the row above
        uint32_t last = p->pools.data[p->pools.count - 1];
        if (strlen(p->pool_names.data[last]) == f->length &&
            memcmp(p->pool_names.data[last], f->text, f->length) == 0) {
            berth_vec_push(p->arena, &p->pools, last);
            return BERTH_OK;
        }
    }
    // The interner's id 0 is "", which need not be the first pool: pools are numbered by first
    // appearance.
    const char *text = berth_arena_printf(p->arena, "=%.*s", (int)f->length, f->text);
    uint32_t id = berth_intern(p->pool_ids, text) - 1;
    if (id == p->pool_names.count) berth_vec_push(p->arena, &p->pool_names, text + 1);
    berth_vec_push(p->arena, &p->pools, id);
    return BERTH_OK;
}

static berth_status parse_row(parser *p) {
    uint32_t count = 0;
    BERTH_TRY(read_line(p, p->fields, p->field_count, &count));
    if (count < p->field_count)
        return fail_at(p, column_of(p, p->at), BERTH_INVALID_ARGUMENT,
                       "%u of %u fields; the header names %u", count, p->field_count,
                       p->field_count);
    BERTH_TRY(berth_limit_item(&p->watch));
    BERTH_TRY(parse_id(p));
    berth_memory_interval interval;
    BERTH_TRY(parse_interval(p, &interval));
    berth_vec_push(p->arena, &p->intervals, interval);
    BERTH_TRY(parse_pool(p));
    if (p->position[COLUMN_OFFSET] >= 0) {
        uint64_t offset = 0;
        BERTH_TRY(parse_u64(p, COLUMN_OFFSET, &offset));
        berth_vec_push(p->arena, &p->offsets, offset);
    }
    return BERTH_OK;
}

static berth_status parse_all(void *user) {
    parser *p = user;
    p->ids = berth_interner_create(p->arena);
    p->pool_ids = berth_interner_create(p->arena);
    if (p->end - p->at >= 3 && memcmp(p->at, "\xEF\xBB\xBF", 3) == 0) p->line_start = p->at += 3;
    BERTH_TRY(parse_header(p));
    while (p->at < p->end) {
        if (line_is_blank(p)) {
            while (p->at < p->end && *p->at != '\n') ++p->at;
        } else {
            BERTH_TRY(parse_row(p));
        }
        next_line(p);
    }
    if (p->pool_names.count == 0) berth_vec_push(p->arena, &p->pool_names, "");
    berth_memory_problem *problem = berth_arena_new(p->arena, berth_memory_problem);
    *problem = (berth_memory_problem){
        .buffer_count = p->intervals.count,
        .ids = p->id_texts.data,
        .intervals = p->intervals.data,
        .pools = p->pools.data,
        .offsets = p->position[COLUMN_OFFSET] >= 0 ? p->offsets.data : NULL,
        .pool_count = p->pool_names.count,
        .pool_names = p->pool_names.data,
        .has_alignment = p->position[COLUMN_ALIGNMENT] >= 0,
        .has_pool = p->position[COLUMN_POOL] >= 0,
    };
    *p->out_problem = problem;
    return BERTH_OK;
}

berth_status berth_memory_problem_parse(berth_arena *arena, const char *name, const char *text,
                                        size_t length, const berth_limits *limits,
                                        berth_memory_problem **out_problem) {
    *out_problem = NULL;
    BERTH_TRY(berth_limits_check_bytes(limits, name, length, 0));
    parser p = {.arena = arena,
                .name = name,
                .at = text,
                .end = text + length,
                .line_start = text,
                .line = 1,
                .watch = berth_limits_watch(limits, name, "rows", BERTH_MEMORY_BUFFER_LIMIT),
                .out_problem = out_problem};
    return berth_arena_try(arena, parse_all, &p);
}

berth_status berth_memory_problem_read(berth_arena *arena, const char *path,
                                       const berth_limits *limits,
                                       berth_memory_problem **out_problem) {
    *out_problem = NULL;
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    berth_status status =
        berth_memory_problem_parse(arena, path, mapping.data ? (const char *)mapping.data : "",
                                   mapping.size_bytes, limits, out_problem);
    berth_file_unmap(mapping);
    return status;
}

static void write_text(berth_strbuf *out, const char *text) {
    if (!strpbrk(text, ",\" \t\r\n")) {
        berth_strbuf_add(out, text);
        return;
    }
    berth_strbuf_add(out, "\"");
    for (const char *at = text; *at; ++at)
        berth_strbuf_add_n(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    berth_strbuf_add(out, "\"");
}

void berth_memory_problem_write(const berth_memory_problem *problem, const uint64_t *offsets,
                                berth_strbuf *out) {
    berth_strbuf_addf(out, "id,lower,upper,size%s%s%s\n",
                      problem->has_alignment ? ",alignment" : "", problem->has_pool ? ",pool" : "",
                      offsets ? ",offset" : "");
    for (uint32_t i = 0; i < problem->buffer_count; ++i) {
        const berth_memory_interval *interval = &problem->intervals[i];
        write_text(out, problem->ids[i]);
        berth_strbuf_addf(out, ",%lld,%lld,%llu", (long long)interval->lower,
                          (long long)interval->upper, (unsigned long long)interval->size_bytes);
        if (problem->has_alignment)
            berth_strbuf_addf(out, ",%llu", (unsigned long long)interval->alignment_bytes);
        if (problem->has_pool) {
            berth_strbuf_add(out, ",");
            write_text(out, problem->pool_names[problem->pools[i]]);
        }
        if (offsets) berth_strbuf_addf(out, ",%llu", (unsigned long long)offsets[i]);
        berth_strbuf_add(out, "\n");
    }
}

uint32_t berth_memory_problem_pool(berth_arena *arena, const berth_memory_problem *problem,
                                   uint32_t pool, berth_memory_interval **out_intervals,
                                   uint32_t **out_indices) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->buffer_count; ++i) count += problem->pools[i] == pool;
    *out_intervals = berth_arena_new_array(arena, berth_memory_interval, count);
    *out_indices = berth_arena_new_array(arena, uint32_t, count);
    count = 0;
    for (uint32_t i = 0; i < problem->buffer_count; ++i) {
        if (problem->pools[i] != pool) continue;
        (*out_intervals)[count] = problem->intervals[i];
        (*out_indices)[count++] = i;
    }
    return count;
}
