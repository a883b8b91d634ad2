// How names, strings, numbers and tensor elements are written in the text form (private to ir/).
#ifndef BERTH_IR_TEXT_LITERAL_H_
#define BERTH_IR_TEXT_LITERAL_H_

#include "base/str.h"
#include "base/tensor.h"

// Letters, digits, '_' and '.', not starting with a digit or '.': written without quotes.
bool berth_text__is_name(const char *text, size_t length);

// Adds "..." with \" \\ \n \t and \xHH (control characters, bytes that are not UTF-8).
void berth_text__add_string(berth_strbuf *out, const char *text, size_t length);
// Adds a name bare where it is one, quoted otherwise.
void berth_text__add_name(berth_strbuf *out, const char *name);
// Undoes the escapes of a string (without its quotes) into `out`. Offset of a wrong escape, or -1.
ptrdiff_t berth_text__unescape(const char *text, size_t length, berth_strbuf *out);

// Shortest form that reads back, always with '.', 'e', "inf" or "nan" in it: "1.0", "-0.0".
void berth_text__format_float(double value, char out[40]);

// Element `index` as text that berth_text__parse_element reads back bit by bit, else false (a NaN
// that is not the plain one, a bool that is neither 0 nor 1).
bool berth_text__format_element(const berth_tensor *tensor, int64_t index, char out[40]);
// Sets element `index` from a number's text ("-3", "1.5", "nan", "true"). False when it is none of
// the tensor's type.
bool berth_text__parse_element(berth_tensor *tensor, int64_t index, const char *text);

#endif  // BERTH_IR_TEXT_LITERAL_H_
