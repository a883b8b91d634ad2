#include "ir/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum node_kind {
    TEXT,
    LINE,
    SOFT_LINE,
    FILL_LINE,
    HARD_LINE,
    OPEN,
    CLOSE,
    INDENT
} node_kind;

typedef struct node {
    node_kind kind;
    int value;      // OPEN, INDENT: columns; CLOSE: the same, taken back
    size_t start;   // TEXT: in `text`
    size_t length;  // TEXT
} node;

// Where the text that was rendered so far ends.
typedef struct position {
    int64_t column;
    int indent;
    int line_indent;  // of the line at hand
    bool line_start;  // the indentation is still to be written
} position;

struct berth_doc {
    berth_arena *arena;
    berth_strbuf text;
    BERTH_VEC(node) nodes;
    BERTH_VEC(int) open;  // indentation of the groups that are open
    position at;
    berth_strbuf *stream;  // (optional) where complete lines go
    int stream_width;
};

enum { STREAM_NODES = 4096 };  // that are kept before complete lines are rendered

berth_doc *berth_doc_create(berth_arena *arena) {
    berth_doc *doc = berth_arena_new(arena, berth_doc);
    doc->arena = arena;
    doc->text = berth_strbuf_make(arena);
    return doc;
}

void berth_doc_stream(berth_doc *doc, int width, berth_strbuf *out) {
    doc->stream = out;
    doc->stream_width = width;
}

static void push(berth_doc *doc, node_kind kind, int value) {
    berth_vec_push(doc->arena, &doc->nodes, (node){.kind = kind, .value = value});
}

// Makes the text added since `start` a node, or a part of the text node before it.
static void push_text(berth_doc *doc, size_t start) {
    size_t length = doc->text.length - start;
    node *last = doc->nodes.count ? &doc->nodes.data[doc->nodes.count - 1] : NULL;
    if (last && last->kind == TEXT) {
        last->length += length;
        return;
    }
    berth_vec_push(doc->arena, &doc->nodes, (node){.kind = TEXT, .start = start, .length = length});
}

void berth_doc_text(berth_doc *doc, const char *text) {
    size_t start = doc->text.length;
    berth_strbuf_add(&doc->text, text);
    push_text(doc, start);
}

void berth_doc_textf(berth_doc *doc, const char *format, ...) {
    va_list arguments;
    char small[128];
    va_start(arguments, format);
    int length = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if ((size_t)length < sizeof(small)) {
        berth_doc_text(doc, small);
        return;
    }
    char *text = berth_arena_alloc(doc->arena, (size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    berth_doc_text(doc, text);
}

void berth_doc_line(berth_doc *doc) {
    push(doc, LINE, 0);
}

void berth_doc_soft_line(berth_doc *doc) {
    push(doc, SOFT_LINE, 0);
}

void berth_doc_fill_line(berth_doc *doc) {
    push(doc, FILL_LINE, 0);
}

// Nothing that follows a line break outside all groups changes how what is before it is laid out.
void berth_doc_hard_line(berth_doc *doc) {
    if (doc->stream && doc->open.count == 0 && doc->nodes.count >= STREAM_NODES)
        berth_doc_render(doc, doc->stream_width, doc->stream);
    push(doc, HARD_LINE, 0);
}

void berth_doc_open(berth_doc *doc, int indent) {
    push(doc, OPEN, indent);
    berth_vec_push(doc->arena, &doc->open, indent);
}

void berth_doc_close(berth_doc *doc) {
    int indent = doc->open.count ? doc->open.data[--doc->open.count] : 0;
    push(doc, CLOSE, indent);
}

void berth_doc_indent(berth_doc *doc, int columns) {
    push(doc, INDENT, columns);
}

// ---- layout -------------------------------------------------------------------------------------

typedef struct layout {
    const berth_doc *doc;
    int64_t *flat_end;    // per node: width of nodes [0, i) on one line
    uint32_t *next_line;  // per node: first line break at or after it
    uint32_t *group_end;  // per OPEN: its CLOSE; the OPEN itself when it holds a hard line break
} layout;

static int64_t flat_width(const node *n) {
    return n->kind == TEXT ? (int64_t)n->length : n->kind == LINE || n->kind == FILL_LINE;
}

static bool is_line(node_kind kind) {
    return kind == LINE || kind == SOFT_LINE || kind == FILL_LINE || kind == HARD_LINE;
}

static layout measure(const berth_doc *doc, berth_arena *scratch) {
    uint32_t count = doc->nodes.count;
    layout l = {.doc = doc,
                .flat_end = berth_arena_new_array(scratch, int64_t, count + 1),
                .next_line = berth_arena_new_array(scratch, uint32_t, count + 1),
                .group_end = berth_arena_new_array(scratch, uint32_t, count + 1)};
    uint32_t *opens = berth_arena_new_array(scratch, uint32_t, count + 1);
    uint32_t depth = 0;
    uint32_t hard_before = 0;  // index after the last hard line break
    for (uint32_t i = 0; i < count; ++i) {
        const node *n = &doc->nodes.data[i];
        l.flat_end[i + 1] = l.flat_end[i] + flat_width(n);
        if (n->kind == HARD_LINE) hard_before = i + 1;
        if (n->kind == OPEN) {
            l.group_end[i] = count;
            opens[depth++] = i;
        }
        if (n->kind == CLOSE && depth) {
            uint32_t open = opens[--depth];
            l.group_end[open] = hard_before > open ? open : i;
        }
    }
    l.next_line[count] = count;
    for (uint32_t i = count; i-- > 0;)
        l.next_line[i] = is_line(doc->nodes.data[i].kind) ? i : l.next_line[i + 1];
    return l;
}

// The group and the text after it up to where a line may break end within the width.
static bool fits(const layout *l, uint32_t open, int64_t column, int width) {
    uint32_t end = l->group_end[open];
    if (end == open) return false;
    return column + l->flat_end[l->next_line[end]] - l->flat_end[open] <= width;
}

static void break_line(position *at, berth_strbuf *out) {
    berth_strbuf_add_n(out, "\n", 1);
    at->line_start = true;
    at->line_indent = at->indent;
    at->column = at->indent;
}

static void put(position *at, berth_strbuf *out, const char *text, size_t length) {
    if (length == 0) return;
    if (at->line_start) {
        for (int i = 0; i < at->line_indent; ++i) berth_strbuf_add_n(out, " ", 1);
        at->line_start = false;
    }
    berth_strbuf_add_n(out, text, length);
    at->column += (int64_t)length;
}

void berth_doc_render(berth_doc *doc, int width, berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(doc->arena);
    layout l = measure(doc, scratch);
    position *at = &doc->at;
    uint32_t flat_until = 0;  // inside a group that is on one line
    for (uint32_t i = 0; i < doc->nodes.count; ++i) {
        const node *n = &doc->nodes.data[i];
        bool flat = i < flat_until;
        switch (n->kind) {
        case TEXT: put(at, out, berth_strbuf_text(&doc->text) + n->start, n->length); break;
        case LINE:
            if (flat)
                put(at, out, " ", 1);
            else
                break_line(at, out);
            break;
        case SOFT_LINE:
            if (!flat) break_line(at, out);
            break;
        case FILL_LINE:
            if (flat || at->column + l.flat_end[l.next_line[i + 1]] - l.flat_end[i] <= width)
                put(at, out, " ", 1);
            else
                break_line(at, out);
            break;
        case HARD_LINE: break_line(at, out); break;
        case OPEN:
            if (!flat && fits(&l, i, at->column, width)) flat_until = l.group_end[i];
            at->indent += n->value;
            break;
        case CLOSE: at->indent -= n->value; break;
        case INDENT: at->indent += n->value; break;
        }
    }
    doc->nodes.count = 0;
    doc->text.length = 0;
    berth_arena_destroy(scratch);
}
