// Modules compiled to C sources, run here and on boards, and compared with the reference interpreter.
#ifndef BERTH_TESTS_BARE_SOURCES_H_
#define BERTH_TESTS_BARE_SOURCES_H_

#include "compiler/bare/bare.h"
#include "compiler/fit/fit.h"
#include "ir/graph/graph.h"

typedef struct sources {
    berth_arena *arena;
    berth_module *module;
    const char *text;
    berth_tensor input, expected;
    const berth_bare_file *files;
    uint32_t file_count;
    const char *patches;  // of berth_compile_options
    bool small;           // small code
    bool fit;  // compiled until it fits (fit/fit.h), into `fitted`, which is to be released
    berth_fitted fitted;
} sources;

// What the interpreter computes from a random input of full range.
berth_status sources_expect(sources *s, berth_func_id function);
const char *sources_code(const sources *s);
// Parses the text, compiles it for plain C. Errors: those of both.
berth_status sources_compile(sources *s, const char *target_text, const berth_program **program,
                             const berth_memory_report **memory);
// Writes the program's sources and its input into a folder.
void sources_print(sources *s, const berth_program *program, const berth_memory_report *memory,
                   const char *folder);
// Compile what is in the folder, run it, compare.
void sources_run_natively(const sources *s, const char *folder);
void sources_run_on_board(const sources *s, const char *folder, const char *flags,
                          const char *board, const char *machine);

// A constant of the dimensions given, of seeded values.
void sources_add_constant(berth_strbuf *out, const char *name, const char *type, int64_t count,
                          int64_t *seed);

// Bytes of intermediate values; the sources compute what the interpreter does, here, and in patches on boards.
uint64_t sources_bytes(sources s, const char *target);
uint64_t sources_patched_bytes(const char *text, const char *target, const char *patches);
uint64_t sources_arena_bytes(const char *text, const char *target);

#endif  // BERTH_TESTS_BARE_SOURCES_H_
