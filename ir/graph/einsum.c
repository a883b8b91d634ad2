#include "ir/graph/einsum.h"

#include <ctype.h>
#include <string.h>

typedef struct reader {
    berth_einsum *e;
    const char *text;
    int dots;  // dimensions of "..."
} reader;

static bool add_label(berth_einsum *e, int term, int label) {
    if (e->ranks[term] == BERTH_MAX_RANK) return false;
    e->terms[term][e->ranks[term]++] = (uint8_t)label;
    return true;
}

static int count_letters(const char *text) {
    int letters = 0;
    for (; *text && *text != ',' && *text != '-'; ++text)
        letters += isalpha((unsigned char)*text) != 0;
    return letters;
}

// One term up to ',' or '-' or the end; `rank` of the operand, -1 for the result.
static bool read_term(reader *r, int term, int rank) {
    int dots = rank < 0 ? r->dots : rank - count_letters(r->text);
    bool has_dots = false;
    for (; *r->text && *r->text != ',' && *r->text != '-'; ++r->text) {
        if (*r->text == ' ') continue;
        if (strncmp(r->text, "...", 3) == 0) {
            if (has_dots || dots < 0) return false;
            has_dots = true;
            for (int k = dots; k-- > 0;)
                if (!add_label(r->e, term, BERTH_EINSUM_DOTS + k)) return false;
            r->text += 2;
        } else if (!isalpha((unsigned char)*r->text) ||
                   !add_label(r->e, term, (unsigned char)*r->text)) {
            return false;
        }
    }
    if (has_dots && dots > r->dots) r->dots = dots;
    return rank < 0 || r->e->ranks[term] == rank;
}

static void count_uses(const berth_einsum *e, int *uses) {
    for (int k = 0; k < e->operands; ++k)
        for (int i = 0; i < e->ranks[k]; ++i) uses[e->terms[k][i]]++;
}

static bool implicit_result(reader *r, const int *uses) {
    for (int k = r->dots; k-- > 0;)
        if (!add_label(r->e, r->e->operands, BERTH_EINSUM_DOTS + k)) return false;
    for (int label = 'A'; label <= 'z'; ++label)
        if (uses[label] == 1 && !add_label(r->e, r->e->operands, label)) return false;
    return true;
}

bool berth_einsum_parse(const char *equation, int operands, const int *ranks, berth_einsum *out) {
    reader r = {.e = out, .text = equation};
    int uses[BERTH_EINSUM_MAX_LABELS] = {0};
    *out = (berth_einsum){.operands = operands};
    if (operands < 1 || operands > BERTH_EINSUM_MAX_OPERANDS) return false;
    for (int k = 0; k < operands; ++k) {
        if (ranks[k] < 0 || !read_term(&r, k, ranks[k])) return false;
        if (k + 1 < operands && *r.text++ != ',') return false;
    }
    count_uses(out, uses);
    if (!*r.text) {
        if (!implicit_result(&r, uses)) return false;
    } else {
        if (strncmp(r.text, "->", 2) != 0) return false;
        r.text += 2;
        if (!read_term(&r, operands, -1) || *r.text) return false;
    }
    bool seen[BERTH_EINSUM_MAX_LABELS] = {false};
    for (int i = 0; i < out->ranks[operands]; ++i) {
        int label = out->terms[operands][i];
        if (!uses[label] || seen[label]) return false;
        seen[label] = true;
    }
    return true;
}

bool berth_einsum_extents(const berth_einsum *e, const int64_t *const *dims,
                          int64_t extents[BERTH_EINSUM_MAX_LABELS]) {
    for (int label = 0; label < BERTH_EINSUM_MAX_LABELS; ++label) extents[label] = -1;
    for (int k = 0; k < e->operands; ++k)
        for (int i = 0; i < e->ranks[k]; ++i) {
            int64_t *extent = &extents[e->terms[k][i]];
            if (*extent == -1 || *extent == 1)
                *extent = dims[k][i];
            else if (dims[k][i] != 1 && dims[k][i] != *extent)
                return false;
        }
    return true;
}
