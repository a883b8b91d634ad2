// Writes random modules as C (FOLDER/random_N.c, function random_N) and as text (FOLDER/random_N.txt).
#include <stdio.h>
#include <stdlib.h>

#include "ir/emit_c.h"
#include "ir/text.h"
#include "tests/ir/random_module.h"

typedef struct job {
    berth_arena *arena;
    const char *folder;
    unsigned seed;
} job;

static berth_status write_file(const job *j, const char *ending, const berth_strbuf *text) {
    const char *path = berth_arena_printf(j->arena, "%s/random_%u.%s", j->folder, j->seed, ending);
    FILE *out = fopen(path, "wb");
    if (!out) return berth_status_make(BERTH_IO, "%s: cannot be written", path);
    size_t written = fwrite(text->data, 1, text->length, out);
    if (fclose(out) != 0 || written != text->length)
        return berth_status_make(BERTH_IO, "%s: cannot be written", path);
    return BERTH_OK;
}

static berth_status write_both(void *user) {
    const job *j = user;
    berth_module *module = random_module(j->arena, j->seed);
    berth_strbuf c = berth_strbuf_make(j->arena);
    berth_strbuf text = berth_strbuf_make(j->arena);
    BERTH_TRY(berth_module_to_c(module, berth_arena_printf(j->arena, "random_%u", j->seed), &c));
    BERTH_TRY(berth_module_to_text(module, NULL, &text));
    BERTH_TRY(write_file(j, "c", &c));
    return write_file(j, "txt", &text);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    for (unsigned seed = 0; seed < (unsigned)atoi(argv[2]); ++seed) {
        job j = {.folder = argv[1], .seed = seed};
        berth_status status = berth_arena_create(berth_allocator_system(), &j.arena);
        if (!status) status = berth_arena_try(j.arena, write_both, &j);
        if (status) {
            fprintf(stderr, "random module %u: %s\n", seed, berth_status_message(status));
            return 1;
        }
        berth_arena_destroy(j.arena);
    }
    return 0;
}
