// What the files that print calls of libraries share (private to compiler/libraries).
#ifndef BERTH_COMPILER_LIBRARIES_CODE_H_
#define BERTH_COMPILER_LIBRARIES_CODE_H_

#include "base/str.h"
#include "compiler/libraries/use.h"

// The grid of a product or a convolution: one dimension of the result in `groups` parts, each of whole
// units but for the last.
typedef enum berth_library_axis {
    BERTH_LIBRARY_BATCH,  // or images
    BERTH_LIBRARY_ROWS,
    BERTH_LIBRARY_COLUMNS,  // or channels
} berth_library_axis;

typedef struct berth_library_grid {
    berth_library_axis axis;
    int64_t extent, unit;
    int64_t groups;
} berth_library_grid;

// At most `parts` groups.
berth_library_grid berth_library__grid(const berth_library_use *use, int64_t parts);
// Where part i begins; that of `groups` is the end.
int64_t berth_library__part_begin(const berth_library_grid *grid, int64_t i);

berth_library_code berth_library__openblas(const berth_library_use *use,
                                           const berth_library_grid *grid, berth_arena *arena);
// layouts: of the operands, then of the result
berth_library_code berth_library__dnnl(const berth_library_use *use, const char *const *layouts,
                                       const berth_library_grid *grid, berth_arena *arena);
// Of a GPU: one call, which puts the work into the queue's stream.
berth_library_code berth_library__cublas(const berth_library_use *use, berth_arena *arena);
berth_library_code berth_library__cudnn(const berth_library_use *use, berth_arena *arena);

// code_stream.c: what code that calls a GPU's library begins with: it finds the library where the program runs.
typedef struct berth_library_loading {
    const char *name;  // for messages: "cuBLAS"
    const char
        *files;  // of the library, one after the other, newest first: "libx.so.2\0libx.so.1\0"
    const char *declarations;  // C: a pointer "static int (*NAME)(...)" to each of the functions
    const char *functions;     // their names, as `files`
    const char *
        status_text;  // of these functions: that which gives a status' text; NULL = there is none, then:
    const char *status_start;  // of their names
    const char *statuses;      // "1 NOT_INITIALIZED\0", as `files`
} berth_library_loading;
// Functions `const char *load(void)` and `const char *said(int status)`, which give NULL or a text for people.
void berth_library__add_loading(const berth_library_loading *loading, berth_strbuf *out);
// Adds the function that the program calls, which passes its operands (of C type `element`; a bias and a sum where the use has
// them) on to `run` in what `out` has: const char *run(stream, a, b, bias, sum, y, workspace). The source is out's text.
berth_library_code berth_library__stream_code(const berth_library_use *use, const char *element,
                                              berth_strbuf *out);

#endif  // BERTH_COMPILER_LIBRARIES_CODE_H_
