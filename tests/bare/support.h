// Compiles modules to C sources and these with a C compiler, as a user would.
#ifndef BERTH_TESTS_BARE_SUPPORT_H_
#define BERTH_TESTS_BARE_SUPPORT_H_

#include "compiler/bare/bare.h"

// Everything that generated C must pass.
#define BARE_WARNINGS "-std=c99 -Wall -Wextra -Werror -pedantic"

// The program of a module for the executor aot; `small`: for few bytes of code.
berth_status bare_compile(berth_module *module, const char *target_text, bool small,
                          const berth_program **out_program,
                          const berth_memory_report **out_memory);

#define BARE_CORTEX_M4 "cpu -arch=armv7e-m -cpu=cortex-m4"
#define BARE_CORTEX_M55 "cpu -arch=armv8.1-m.main -cpu=cortex-m55 -features=mve"

// A module as sources, until bare_end.
typedef struct bare_built {
    berth_arena *arena;
    const berth_program *program;
    const berth_memory_report *memory;
    const berth_bare_file *files;
    uint32_t count;
} bare_built;

// The sources of a module in text, named `name`. After an error, too, bare_end is due.
berth_status bare_build(bare_built *built, const char *text, const char *target, const char *name);
void bare_end(bare_built *built);
const char *bare_text_of(const bare_built *built, const char *file);

// A new folder; removed with all that is in it by remove_tree.
void make_folder(char path[64]);
void remove_tree(const char *path);

void write_files(const char *folder, const berth_bare_file *files, uint32_t count);
void write_bytes(const char *path, const void *data, size_t size_bytes);

// Runs a command in the shell, which must end with 0.
void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Its exit status; output is thrown away.
int shell_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif  // BERTH_TESTS_BARE_SUPPORT_H_
