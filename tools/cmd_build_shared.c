#include "tools/cmd_build_shared.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

#define SUFFIX "_weights.h"

// The name of the model's functions, from the file that declares its constants.
static berth_status find_name(berth_arena *arena, const char *path, const char **out_name) {
    DIR *folder = opendir(path);
    if (!folder)
        return berth_status_make(BERTH_IO, "cannot read \"%s\": %s", path, strerror(errno));
    *out_name = NULL;
    for (const struct dirent *entry; !*out_name && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name), tail = strlen(SUFFIX);
        if (length <= tail || strcmp(entry->d_name + length - tail, SUFFIX) != 0) continue;
        char *name = berth_arena_strdup(arena, entry->d_name);
        name[length - tail] = 0;
        *out_name = name;
    }
    closedir(folder);
    return *out_name ? BERTH_OK
                     : berth_status_make(BERTH_IO, "no sources of a model in \"%s\"", path);
}

static const char *upper_of(berth_arena *arena, const char *name) {
    char *upper = berth_arena_strdup(arena, name);
    for (char *at = upper; *at; ++at) *at = (char)toupper((unsigned char)*at);
    return upper;
}

static berth_status write_text(berth_arena *arena, const char *folder, const char *name,
                               const char *text) {
    return berth_file_write(berth_arena_printf(arena, "%s/%s", folder, name), text, strlen(text));
}

enum { MOST_MEMORIES = 32 };

// What the models share in one memory of the target.
typedef struct shared_memory {
    const char *name;    // in C and upper case; "" = the device's own
    berth_strbuf sizes;  // members of the union of all models' arrays
} shared_memory;

typedef struct workspace {
    berth_arena *arena;
    shared_memory memories[MOST_MEMORIES];
    uint32_t memory_count;
    berth_strbuf includes, objects, flags, rules;
} workspace;

static berth_status find_memory(workspace *w, const char *name, shared_memory **out) {
    for (uint32_t i = 0; i < w->memory_count; ++i) {
        *out = &w->memories[i];
        if (strcmp(w->memories[i].name, name) == 0) return BERTH_OK;
    }
    if (w->memory_count == MOST_MEMORIES)
        return berth_status_make(BERTH_UNSUPPORTED, "models in more than %d memories",
                                 MOST_MEMORIES);
    *out = &w->memories[w->memory_count++];
    **out = (shared_memory){.name = name, .sizes = berth_strbuf_make(w->arena)};
    return BERTH_OK;
}

// "berth_workspace", "berth_workspace_dtcm"
static const char *array_of(workspace *w, const shared_memory *memory) {
    char *name = berth_arena_strdup(w->arena, memory->name);
    for (char *at = name; *at; ++at) *at = (char)tolower((unsigned char)*at);
    return berth_arena_printf(w->arena, "berth_workspace%s%s", *name ? "_" : "", name);
}

// A model's array of one memory, which its header says the bytes of as MACRO_BYTES.
static berth_status add_array(workspace *w, const char *name, const char *memory,
                              const char *macro) {
    shared_memory *shared = NULL;
    BERTH_TRY(find_memory(w, memory, &shared));
    berth_strbuf_addf(&shared->sizes, "    unsigned char of_%s[%s_BYTES ? %s_BYTES : 1];\n", name,
                      macro, macro);
    berth_strbuf_addf(&w->flags, " -D%s=%s", macro, array_of(w, shared));
    return BERTH_OK;
}

// The arrays that the model's header names: UPPER_MEMORY_BYTES, and UPPER_IN_NAME_MEMORY_BYTES of further memories.
static berth_status add_arrays(workspace *w, const char *path, const char *name,
                               const char *upper) {
    enum { most_bytes = 1 << 20 };
    static const char tail[] = "_MEMORY_BYTES ";
    char *text = NULL;
    size_t size = 0;
    BERTH_TRY(berth_file_read(w->arena, path, most_bytes, &text, &size));
    BERTH_TRY(add_array(w, name, "", berth_arena_printf(w->arena, "%s_MEMORY", upper)));
    const char *head = berth_arena_printf(w->arena, "#define %s_IN_", upper);
    for (const char *at = text; (at = strstr(at, head)); at += strlen(head)) {
        const char *memory = at + strlen(head), *end = strstr(memory, tail);
        if (!end || end > memory + strcspn(memory, "\n")) continue;
        memory = berth_arena_strndup(w->arena, memory, (size_t)(end - memory));
        BERTH_TRY(add_array(w, name, memory,
                            berth_arena_printf(w->arena, "%s_IN_%s_MEMORY", upper, memory)));
    }
    return BERTH_OK;
}

static const char *code_of(workspace *w) {
    berth_strbuf code = berth_strbuf_make(w->arena);
    berth_strbuf_addf(
        &code,
        "/* Made by Berth: the static memory of the models here, of which one runs "
        "at a time. */\n%s"
        "\n#if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(8)))\n#else\n"
        "#define ALIGNED _Alignas(8) /* C11 */\n#endif\n",
        berth_strbuf_text(&w->includes));
    for (uint32_t i = 0; i < w->memory_count; ++i) {
        const shared_memory *memory = &w->memories[i];
        const char *array = array_of(w, memory);
        const char *attribute =
            berth_arena_printf(w->arena, "%s_ATTRIBUTE", upper_of(w->arena, array));
        berth_strbuf_addf(&code,
                          "#ifndef %s\n#define %s\n#endif\n\n"
                          "union largest%s%s {\n%s};\n\n"
                          "extern unsigned char %s[];\n"
                          "ALIGNED %s unsigned char %s[sizeof(union largest%s%s)];\n",
                          attribute, attribute, *memory->name ? "_" : "", memory->name,
                          berth_strbuf_text(&w->memories[i].sizes), array, attribute, array,
                          *memory->name ? "_" : "", memory->name);
    }
    return berth_strbuf_text(&code);
}

static const char *makefile_of(workspace *w) {
    return berth_arena_printf(w->arena,
                              "# Made by Berth.\n"
                              "# make CC=arm-none-eabi-gcc CFLAGS='-Os -mcpu=cortex-m4 ...'\n"
                              "CFLAGS ?= -O2\n\n"
                              "objects = workspace.o%s\n"
                              "compile = $(CC) -std=c99 $(CFLAGS)%s -c -o $@ $<\n\n"
                              "libmodels.a: $(objects)\n\t$(AR) rcs $@ $(objects)\n\n"
                              "workspace.o: workspace.c\n\t$(compile)\n%s\n"
                              "clean:\n\trm -f $(objects) libmodels.a\n\n.PHONY: clean\n",
                              berth_strbuf_text(&w->objects), berth_strbuf_text(&w->flags),
                              berth_strbuf_text(&w->rules));
}

berth_status berth_cli_write_workspace(berth_arena *arena, const char *folder,
                                       const char *const *models, uint32_t count) {
    workspace w = {.arena = arena,
                   .includes = berth_strbuf_make(arena),
                   .objects = berth_strbuf_make(arena),
                   .flags = berth_strbuf_make(arena),
                   .rules = berth_strbuf_make(arena)};
    const char **uppers = berth_arena_array(arena, count, sizeof(const char *));
    for (uint32_t i = 0; i < count; ++i) {
        const char *name = NULL, *model = models[i];
        BERTH_TRY(find_name(arena, berth_arena_printf(arena, "%s/%s", folder, model), &name));
        const char *upper = uppers[i] = upper_of(arena, name);
        for (uint32_t k = 0; k < i; ++k)
            if (strcmp(uppers[k], upper) == 0)
                return berth_status_make(
                    BERTH_INVALID_ARGUMENT,
                    "the models \"%s\" and \"%s\" would both be called %s in C; "
                    "rename one",
                    models[k], model, upper);
        berth_strbuf_addf(&w.includes, "#include \"%s/%s.h\"\n", model, name);
        berth_strbuf_addf(&w.objects, " %s.o %s_weights.o", name, name);
        // Objects apart from those of the model's own Makefile, which has memory of its own.
        berth_strbuf_addf(
            &w.rules, "%s.o: %s/%s.c\n\t$(compile)\n%s_weights.o: %s/%s_weights.c\n\t$(compile)\n",
            name, model, name, name, model, name);
        BERTH_TRY(add_arrays(&w, berth_arena_printf(arena, "%s/%s/%s.h", folder, model, name), name,
                             upper));
    }
    const char *code = code_of(&w), *makefile = makefile_of(&w);
    BERTH_TRY(write_text(arena, folder, "workspace.c", code));
    return write_text(arena, folder, "Makefile", makefile);
}
