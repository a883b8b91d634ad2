#include "tests/vta/validator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char message[256];

// What an instruction uses: a bit per SRAM element, and bytes of DRAM.
typedef struct uses {
    uint8_t *reads[4], *writes[4];  // by memory; acc stands for out, too
    int64_t from, row_bytes, stride_bytes, rows;
    bool writes_dram;
    int ordered[3];  // instructions of each unit that are ordered before it, itself included
    int place;       // from 1, in its unit
} uses;

typedef struct checker {
    const stream *s;
    int64_t depth[4];
    int64_t element_bytes[6];
    fields *list;
    uses *all;
    uint32_t *uop;
    uint8_t *stored_well;  // by acc element
} checker;

__attribute__((format(printf, 2, 3))) static bool wrong(int index, const char *format, ...) {
    int length = snprintf(message, sizeof(message), "instruction %d: ", index);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + length, sizeof(message) - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

static void mark(uint8_t **set, int64_t depth, int64_t index) {
    if (!*set) *set = calloc((size_t)(depth + 7) / 8, 1);
    (*set)[index / 8] |= (uint8_t)(1u << index % 8);
}

// ---- single instructions ----

static bool is_pause(const fields *f) {
    return f->opcode <= 1 && f->x_size == 0;
}

static bool check_pause(int n, const fields *f) {
    if (f->y_size || f->x_stride || f->y0 || f->y1 || f->x0 || f->x1 || f->sram || f->dram)
        return wrong(n, "a pause with fields that are not 0");
    return true;
}

static bool check_transfer(checker *c, int n, const fields *f, uses *u) {
    if (is_pause(f)) return check_pause(n, f);
    if (f->opcode == 1 && f->memory != 4) return wrong(n, "STORE of memory %d", f->memory);
    if (f->opcode == 0 && f->memory > 3) return wrong(n, "LOAD of memory %d", f->memory);
    if (f->y_size == 0) return wrong(n, "no rows");
    bool pads = f->y0 || f->y1 || f->x0 || f->x1;
    if (pads && (f->opcode == 1 || f->memory < 2)) return wrong(n, "padding");
    if (f->memory == 0 && f->y_size != 1) return wrong(n, "micro-ops in rows");
    int memory = f->opcode == 1 ? 3 : f->memory;
    int64_t elements = (int64_t)(f->x0 + f->x_size + f->x1) * (f->y0 + f->y_size + f->y1);
    if (f->sram + elements > c->depth[memory]) return wrong(n, "SRAM ends before the transfer");
    for (int64_t k = 0; k < elements; ++k)
        mark(f->opcode == 1 ? &u->reads[3] : &u->writes[memory], c->depth[memory], f->sram + k);
    int64_t bytes = c->element_bytes[f->memory];
    u->from = f->dram * bytes;
    u->row_bytes = f->x_size * bytes;
    u->stride_bytes = f->x_stride * bytes;
    u->rows = f->y_size;
    u->writes_dram = f->opcode == 1;
    int64_t end = u->from + (u->rows - 1) * u->stride_bytes + u->row_bytes;
    if (u->from < c->s->base || end > c->s->base + c->s->size) return wrong(n, "outside of DRAM");
    if (u->writes_dram && u->rows > 1 && u->stride_bytes < u->row_bytes)
        return wrong(n, "rows that overlap");
    return true;
}

static bool check_alu(int n, const fields *f) {
    if (f->alu > 3) return wrong(n, "ALU operation %d", f->alu);
    if (f->alu == 3 && f->use_imm && (f->imm < 0 || f->imm > 15))
        return wrong(n, "a shift by %d", f->imm);
    return true;
}

// Results that follow each other in the pipeline.
static bool check_distance(int n, int64_t dst, int64_t recent[2]) {
    if (dst == recent[0] || dst == recent[1])
        return wrong(n, "result %lld again within two micro-ops", (long long)dst);
    recent[1] = recent[0];
    recent[0] = dst;
    return true;
}

static bool check_micro_op(checker *c, int n, const fields *f, uop_fields m, int o, int i, uses *u,
                           int64_t recent[2]) {
    int64_t dst = m.dst + (int64_t)o * f->dst_out + (int64_t)i * f->dst_in;
    int64_t src = m.src + (int64_t)o * f->src_out + (int64_t)i * f->src_in;
    int64_t wgt = m.wgt + (int64_t)o * f->wgt_out + (int64_t)i * f->wgt_in;
    bool gemm = f->opcode == 2;
    if (dst >= c->depth[3]) return wrong(n, "result %lld", (long long)dst);
    if (src >= c->depth[gemm ? 2 : 3]) return wrong(n, "operand %lld", (long long)src);
    if (gemm && wgt >= c->depth[1]) return wrong(n, "weight %lld", (long long)wgt);
    if (!gemm && m.wgt) return wrong(n, "a micro-op of the ALU with a weight");
    mark(&u->writes[3], c->depth[3], dst);
    if (gemm && !f->reset) {
        mark(&u->reads[2], c->depth[2], src);
        mark(&u->reads[1], c->depth[1], wgt);
    }
    c->stored_well[dst] = !(gemm && f->reset);
    return check_distance(n, dst, recent);
}

static bool check_loop(checker *c, int n, const fields *f, uses *u) {
    if (f->iter_out == 0 || f->iter_in == 0 || f->uop_end <= f->uop_begin)
        return wrong(n, "a loop of nothing");
    if (f->uop_end > c->depth[0]) return wrong(n, "micro-ops up to %d", f->uop_end);
    if (f->opcode == 4 && !check_alu(n, f)) return false;
    int64_t recent[2] = {-1, -1};
    for (int o = 0; o < f->iter_out; ++o)
        for (int i = 0; i < f->iter_in; ++i)
            for (int k = f->uop_begin; k < f->uop_end; ++k)
                if (!check_micro_op(c, n, f, read_uop(&c->s->config, c->uop[k]), o, i, u, recent))
                    return false;
    return true;
}

// What the rules say of values: micro-ops become known, elements of acc stop or begin to be fit.
static bool follow(checker *c, int n, const fields *f) {
    if (f->opcode > 1 || is_pause(f)) return true;
    if (f->opcode == 0 && f->memory == 0)
        for (int k = 0; k < f->x_size; ++k) {
            const uint8_t *at = c->s->dram + (f->dram + k) * 4 - c->s->base;
            c->uop[f->sram + k] =
                at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        }
    int64_t elements = (int64_t)(f->x0 + f->x_size + f->x1) * (f->y0 + f->y_size + f->y1);
    for (int64_t k = 0; k < elements; ++k) {
        if (f->opcode == 0 && f->memory == 3) c->stored_well[f->sram + k] = 0;
        if (f->opcode == 1 && !c->stored_well[f->sram + k])
            return wrong(n, "element %lld was not written by the ALU or a GEMM",
                         (long long)(f->sram + k));
    }
    return true;
}

// ---- tokens ----

typedef struct token_list {
    int *giver;  // instructions
    int given, taken;
} token_list;

static bool take(checker *c, int n, token_list *tokens, uses *u) {
    if (tokens->taken == tokens->given)
        return wrong(n, "takes a token that nobody has given before it in the program");
    const uses *giver = &c->all[tokens->giver[tokens->taken++]];
    for (int k = 0; k < 3; ++k)
        if (giver->ordered[k] > u->ordered[k]) u->ordered[k] = giver->ordered[k];
    return true;
}

static bool give(int n, token_list *tokens) {
    tokens->giver[tokens->given++] = n;
    if (tokens->given - tokens->taken > 255) return wrong(n, "more than 255 tokens");
    return true;
}

// tokens: load to compute, compute to load, compute to store, store to compute.
static bool check_tokens(checker *c, token_list tokens[4]) {
    int last[3] = {-1, -1, -1}, places[3] = {0, 0, 0};
    for (int n = 0; n < c->s->count; ++n) {
        const fields *f = &c->list[n];
        int unit = unit_of(f);
        uses *u = &c->all[n];
        if (last[unit] >= 0) memcpy(u->ordered, c->all[last[unit]].ordered, sizeof(u->ordered));
        if ((unit == 0 && (f->pop_prev || f->push_prev)) ||
            (unit == 2 && (f->pop_next || f->push_next)))
            return wrong(n, "a token of a unit that is not there");
        if (f->pop_prev && !take(c, n, &tokens[unit == 1 ? 0 : 2], u)) return false;
        if (f->pop_next && !take(c, n, &tokens[unit == 0 ? 1 : 3], u)) return false;
        u->place = u->ordered[unit] = ++places[unit];
        last[unit] = n;
        if (f->push_next && !give(n, &tokens[unit == 0 ? 0 : 2])) return false;
        if (f->push_prev && !give(n, &tokens[unit == 1 ? 1 : 3])) return false;
    }
    for (int k = 0; k < 4; ++k)
        if (tokens[k].given != tokens[k].taken) return wrong(c->s->count, "tokens are left");
    return true;
}

static bool check_finish(checker *c) {
    int last = c->s->count - 1, counts[3] = {0, 0, 0};
    for (int n = 0; n < c->s->count; ++n) {
        counts[unit_of(&c->list[n])]++;
        if ((c->list[n].opcode == 3) != (n == last)) return wrong(n, "FINISH is last, and once");
    }
    const fields *f = &c->list[last];
    if (f->pop_prev || f->pop_next || f->push_prev || f->push_next)
        return wrong(last, "FINISH with tokens");
    for (int k = 0; k < 3; ++k)
        if (c->all[last].ordered[k] != counts[k])
            return wrong(last, "does not wait for unit %d", k);
    return true;
}

// ---- conflicts ----

static bool share(const uint8_t *a, const uint8_t *b, int64_t depth) {
    for (int64_t i = 0; a && b && i < (depth + 7) / 8; ++i)
        if (a[i] & b[i]) return true;
    return false;
}

static bool share_dram(const uses *a, const uses *b) {
    if (!a->writes_dram && !b->writes_dram) return false;
    for (int64_t i = 0; i < a->rows; ++i)
        for (int64_t k = 0; k < b->rows; ++k) {
            int64_t p = a->from + i * a->stride_bytes, q = b->from + k * b->stride_bytes;
            if (p < q + b->row_bytes && q < p + a->row_bytes) return true;
        }
    return false;
}

static bool conflict(const checker *c, const uses *a, const uses *b) {
    for (int m = 1; m < 4; ++m)
        if (share(a->writes[m], b->reads[m], c->depth[m]) ||
            share(a->reads[m], b->writes[m], c->depth[m]) ||
            share(a->writes[m], b->writes[m], c->depth[m]))
            return true;
    return share_dram(a, b);
}

static bool check_conflicts(const checker *c) {
    for (int n = 0; n < c->s->count; ++n)
        for (int k = 0; k < n; ++k) {
            int unit = unit_of(&c->list[k]);
            if (unit == unit_of(&c->list[n])) continue;
            if (c->all[n].ordered[unit] >= c->all[k].place) continue;
            if (conflict(c, &c->all[n], &c->all[k]))
                return wrong(n, "uses what instruction %d uses, unordered", k);
        }
    return true;
}

static bool check_all(checker *c, token_list tokens[4]) {
    const stream *s = c->s;
    if (s->count == 0 || s->count > 1 << 21) return wrong(0, "%d instructions", s->count);
    for (int n = 0; n < s->count; ++n) {
        c->list[n] = read_fields(&s->config, s->dram + (s->address - s->base) + 16 * (int64_t)n);
        const fields *f = &c->list[n];
        if (f->opcode > 4) return wrong(n, "opcode %d", f->opcode);
        if (f->opcode <= 1 && !check_transfer(c, n, f, &c->all[n])) return false;
        if ((f->opcode == 2 || f->opcode == 4) && !check_loop(c, n, f, &c->all[n])) return false;
        if (!follow(c, n, f)) return false;
    }
    return check_tokens(c, tokens) && check_finish(c) && check_conflicts(c);
}

const char *validate(const stream *s) {
    widths w = widths_of(&s->config);
    size_t count = (size_t)s->count + 1;
    int64_t vector = (int64_t)1 << (s->config.log_batch + s->config.log_block);
    const int64_t one = 1;
    int64_t narrow = vector << s->config.log_inp_width >> 3;
    checker c = {.s = s,
                 .depth = {one << w.uop, one << w.wgt, one << w.inp, one << w.acc},
                 .element_bytes = {4,
                                   one << (2 * s->config.log_block + s->config.log_wgt_width - 3),
                                   narrow, vector << s->config.log_acc_width >> 3, narrow, narrow},
                 .list = calloc(count, sizeof(fields)),
                 .all = calloc(count, sizeof(uses)),
                 .uop = calloc((size_t)1 << w.uop, sizeof(uint32_t)),
                 .stored_well = calloc((size_t)1 << w.acc, 1)};
    token_list tokens[4];
    for (int k = 0; k < 4; ++k) tokens[k] = (token_list){calloc(count, sizeof(int)), 0, 0};
    bool fine = check_all(&c, tokens);
    for (size_t n = 0; n < count; ++n)
        for (int m = 0; m < 4; ++m) {
            free(c.all[n].reads[m]);
            free(c.all[n].writes[m]);
        }
    for (int k = 0; k < 4; ++k) free(tokens[k].giver);
    free(c.list);
    free(c.all);
    free(c.uop);
    free(c.stored_well);
    return fine ? NULL : message;
}
