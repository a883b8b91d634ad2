// Files of JSON lines: measured costs (cost/table.h) and tuned decisions (tuning/table.h). An object per
// line; empty lines are skipped.
//
//   static berth_status add(void *user, const berth_json_line *line, const json_t *object) {
//       if (!json_is_string(json_object_get(object, "name")))
//           return berth_json_line_wrong(line, "\"name\" is no text");
//       ...
//   }
//   const berth_json_lines file = {.path = path, .writer = "berth calibrate", .add = add, .user = table};
//   BERTH_TRY(berth_json_lines_read(&file, arena));
#ifndef BERTH_COMPILER_JSON_LINES_H_
#define BERTH_COMPILER_JSON_LINES_H_

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef struct berth_json_lines berth_json_lines;
typedef struct berth_json_targets berth_json_targets;  // culled targets that were read, each once

typedef struct berth_json_line {
    const berth_json_lines *file;
    berth_json_targets *targets;
    uint32_t number;     // from 1
    berth_arena *arena;  // of this line: what `add` needs no longer than that
} berth_json_line;

struct berth_json_lines {
    const char *path;
    const char *writer;  // the command whose lines these are, for messages
    // For each line, in order. The object is gone when it returns.
    berth_status (*add)(void *user, const berth_json_line *line, const json_t *object);
    void *user;
};

// Reads the file, of at most 256 MiB, and stops at the first line that is wrong.
//   errors: INVALID_ARGUMENT with path and line; those of berth_file_read and of `add`
BERTH_MUST_USE berth_status berth_json_lines_read(const berth_json_lines *file, berth_arena *arena);

// "PATH:LINE: what; a line is as `WRITER` writes it".
BERTH_MUST_USE berth_status berth_json_line_wrong(const berth_json_line *line, const char *what);

// A culled target as berth_target_culled writes it now, also where an earlier version wrote it
// (berth_target_renew_culled); as it stands there where this version cannot read it: so it is kept,
// and no device has it. Lives as long as the reading; NULL = it is none.
const char *berth_json_line_target(const berth_json_line *line, const json_t *object);

// A finite number from `least` to `most`.
//   errors: INVALID_ARGUMENT as berth_json_line_wrong
BERTH_MUST_USE berth_status berth_json_line_number(const berth_json_line *line,
                                                   const json_t *object, const char *name,
                                                   double least, double most, double *out_value);

typedef struct berth_json_lines_output {
    const char *path;
    uint32_t count;  // of records
    const void *(*at)(const void *table, uint32_t index);
    int (*order)(const void *a, const void *b);          // of two records; never 0
    void (*add)(berth_strbuf *out, const void *record);  // its line
    const void *table;
} berth_json_lines_output;

// Writes every record's line, in order. `arena`: for the text.
//   errors: those of berth_file_write
BERTH_MUST_USE berth_status berth_json_lines_write(const berth_json_lines_output *file,
                                                   berth_arena *arena);

#endif  // BERTH_COMPILER_JSON_LINES_H_
