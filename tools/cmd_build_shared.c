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
                               berth_strbuf *text) {
    return berth_file_write(berth_arena_printf(arena, "%s/%s", folder, name),
                            berth_strbuf_text(text), text->length);
}

berth_status berth_cli_write_workspace(berth_arena *arena, const char *folder,
                                       const char *const *models, uint32_t count) {
    berth_strbuf code = berth_strbuf_make(arena), sizes = berth_strbuf_make(arena),
                 make = berth_strbuf_make(arena), flags = berth_strbuf_make(arena),
                 rules = berth_strbuf_make(arena);
    const char **uppers = berth_arena_array(arena, count, sizeof(const char *));
    berth_strbuf_add(&code,
                     "/* Made by Berth: the static memory of the models here, of which one runs "
                     "at a time. */\n");
    berth_strbuf_add(&make, "# Made by Berth.\n"
                            "# make CC=arm-none-eabi-gcc CFLAGS='-Os -mcpu=cortex-m4 ...'\n"
                            "CFLAGS ?= -O2\n\n"
                            "objects = workspace.o");
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
        berth_strbuf_addf(&code, "#include \"%s/%s.h\"\n", model, name);
        berth_strbuf_addf(&sizes,
                          "    unsigned char of_%s[%s_MEMORY_BYTES ? %s_MEMORY_BYTES : 1];\n", name,
                          upper, upper);
        berth_strbuf_addf(&make, " %s.o %s_weights.o", name, name);
        // Objects apart from those of the model's own Makefile, which has memory of its own.
        berth_strbuf_addf(
            &rules, "%s.o: %s/%s.c\n\t$(compile)\n%s_weights.o: %s/%s_weights.c\n\t$(compile)\n",
            name, model, name, name, model, name);
        berth_strbuf_addf(&flags, " -D%s_MEMORY=berth_workspace", upper);
    }
    berth_strbuf_addf(
        &code,
        "\n#if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(8)))\n#else\n"
        "#define ALIGNED _Alignas(8) /* C11 */\n#endif\n"
        "#ifndef BERTH_WORKSPACE_ATTRIBUTE\n#define BERTH_WORKSPACE_ATTRIBUTE\n#endif\n\n"
        "union largest {\n%s};\n\n"
        "extern unsigned char berth_workspace[];\n"
        "ALIGNED BERTH_WORKSPACE_ATTRIBUTE unsigned char "
        "berth_workspace[sizeof(union largest)];\n",
        berth_strbuf_text(&sizes));
    berth_strbuf_addf(&make,
                      "\ncompile = $(CC) -std=c99 $(CFLAGS)%s -c -o $@ $<\n\n"
                      "libmodels.a: $(objects)\n\t$(AR) rcs $@ $(objects)\n\n"
                      "workspace.o: workspace.c\n\t$(compile)\n%s\n"
                      "clean:\n\trm -f $(objects) libmodels.a\n\n.PHONY: clean\n",
                      berth_strbuf_text(&flags), berth_strbuf_text(&rules));
    BERTH_TRY(write_text(arena, folder, "workspace.c", &code));
    return write_text(arena, folder, "Makefile", &make);
}
