// What the dialects' printers share: they write a document (ir/doc.h) and name large values and
// locations, whose definitions follow at the end of the text. Included by printers of dialects.
#ifndef BERTH_IR_TEXT_PRINTER_H_
#define BERTH_IR_TEXT_PRINTER_H_

#include "ir/dialect.h"
#include "ir/doc.h"
#include "ir/text.h"

// Names of values in a text: the name itself for the first value that has it, name~1, name~2, ...
// for further ones; 0, 1, ... for values without a name.
typedef struct berth_text_labels {
    berth_interner *names;
    BERTH_VEC(uint32_t) counts;  // per name: labels given and not released
} berth_text_labels;

typedef struct berth_text_meta {
    char kind;  // 't' tensor, 'b' bytes, 's' text
    const berth_tensor *tensor;
    const char *data;
    size_t size_bytes;
} berth_text_meta;

typedef struct berth_text_printer {
    const berth_module *module;
    berth_arena *scratch;
    berth_doc *doc;
    berth_strbuf quoted;  // scratch
    berth_text_options options;
    berth_interner *locs;   // definitions of locations; their ids are the numbers in the text
    uint32_t *loc_numbers;  // per location of the module: 0 = none yet
    const char **types;     // per type of the module: its text; NULL = not yet made
    const char **devices;   // per virtual device of the module: the same
    berth_interner *meta_keys;
    BERTH_VEC(berth_text_meta) metas;
    berth_status status;  // first failure
    void *user;           // of the dialect, from its signature to its body
} berth_text_printer;

uint32_t berth_text_label_take(berth_text_printer *printer, berth_text_labels *labels,
                               const char *name);
void berth_text_label_release(berth_text_printer *printer, berth_text_labels *labels,
                              const char *name);
// "%name", "%name~2", "%7".
void berth_text_print_label(berth_text_printer *printer, const char *name, uint32_t index);

void berth_text_print_name(berth_text_printer *printer, const char *name);  // bare or in quotes
void berth_text_print_string(berth_text_printer *printer, const char *text);
void berth_text_print_type(berth_text_printer *printer, berth_type_id type);
void berth_text_print_on_device(berth_text_printer *printer, berth_device_id device);  // " on X"
void berth_text_print_loc(berth_text_printer *printer, berth_loc_id loc);              // " #3"
// " {a = 1, b = 2}" from the attribute `first` on, nothing when there are none.
void berth_text_print_attrs(berth_text_printer *printer, const berth_attrs *attrs, uint32_t first);
// "meta(m3)" for code or other data that lives at least as long as the printer.
void berth_text_print_data(berth_text_printer *printer, const void *data, size_t size_bytes,
                           bool is_text);
void berth_text_print_function_ref(berth_text_printer *printer, berth_func_id function);

// Whether two locations print as the same one.
bool berth_text__same_loc(berth_text_printer *printer, berth_loc_id a, berth_loc_id b);

// text.c: the state for one module or function; the scratch arena must outlive it.
berth_text_printer berth_text__printer_make(const berth_module *module, berth_arena *scratch,
                                            const berth_text_options *options);
// Locations and large values named so far.
void berth_text__print_locations(berth_text_printer *printer, berth_strbuf *out);
void berth_text__print_metas(berth_text_printer *printer, berth_strbuf *out);

#endif  // BERTH_IR_TEXT_PRINTER_H_
