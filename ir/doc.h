// Documents: what printers write, and how they become lines of text. A document is a tree of text,
// possible line breaks, groups and indentation, kept as a flat list in order. A group is laid out
// on one line when it fits, otherwise every line break directly inside it is taken.
//
//   berth_doc *doc = berth_doc_create(arena);
//   berth_doc_text(doc, "f(");
//   berth_doc_open(doc, 4);  // a group, its lines indented by 4
//   berth_doc_text(doc, "x,");
//   berth_doc_line(doc);     // a space, or a line break
//   berth_doc_text(doc, "y)");
//   berth_doc_close(doc);
//   berth_doc_render(doc, 100, &out);
//
// The layout is that of Wadler, "A prettier printer" (2003), found in linear time from prefix sums
// of widths as in Oppen, "Prettyprinting" (TOPLAS 1980). Widths are bytes. Lives in its arena;
// thread-compatible; functions are called inside berth_arena_try.
#ifndef BERTH_IR_DOC_H_
#define BERTH_IR_DOC_H_

#include "base/str.h"

typedef struct berth_doc berth_doc;

berth_doc *berth_doc_create(berth_arena *arena);
// From now on, lines that are complete go to `out` as they come, so that the document stays small
// whatever its text is long. berth_doc_render writes the rest, with the same width to the same
// text. Both live as long as the document is written.
void berth_doc_stream(berth_doc *doc, int width, berth_strbuf *out);
void berth_doc_text(berth_doc *doc, const char *text);  // copied; no line breaks in it
void berth_doc_textf(berth_doc *doc, const char *format, ...) BERTH_PRINTF(2, 3);
void berth_doc_line(berth_doc *doc);       // a space, or a line break when the group is broken
void berth_doc_soft_line(berth_doc *doc);  // nothing, or a line break
// A space; in a broken group a line break when what follows up to the next break does not fit.
void berth_doc_fill_line(berth_doc *doc);
void berth_doc_hard_line(berth_doc *doc);  // a line break; breaks every group around it
// Groups nest; lines broken between open and close are indented by `indent` more columns.
void berth_doc_open(berth_doc *doc, int indent);
void berth_doc_close(berth_doc *doc);
// Indents lines that follow by `columns` more (or less, when negative).
void berth_doc_indent(berth_doc *doc, int columns);

// Appends the document's text with lines of at most `width` bytes where groups allow that.
// Indentation is written before text only, never on empty lines. The document is empty then. O(size
// of the document).
void berth_doc_render(berth_doc *doc, int width, berth_strbuf *out);

#endif  // BERTH_IR_DOC_H_
