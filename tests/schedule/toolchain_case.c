#define _GNU_SOURCE  // nftw
#include "tests/schedule/toolchain_case.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

toolchain_case toolchain_case_open(void) {
    toolchain_case c = {.base = support_case_create()};
    c.arena = c.base.arena;
    c.folder = berth_arena_strdup(c.arena, "/tmp/berth-test-XXXXXX");
    cr_assert(mkdtemp(c.folder));
    c.options.target = support_target(c.arena, "cpu");
    return c;
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *state) {
    (void)info, (void)flag, (void)state;
    return remove(path);
}

void toolchain_case_close(toolchain_case *c) {
    nftw(c->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    support_case_destroy(&c->base);
}

char *toolchain_case_path(toolchain_case *c, const char *name, bool make) {
    char *path = berth_arena_printf(c->arena, "%s/%s", c->folder, name);
    if (make) cr_assert_eq(mkdir(path, 0700), 0);
    return path;
}

void toolchain_case_write(toolchain_case *c, const char *path, const char *text) {
    (void)c;
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

void toolchain_case_script(toolchain_case *c, const char *path, const char *text) {
    toolchain_case_write(c, path, text);
    cr_assert_eq(chmod(path, 0700), 0);
}

uint32_t toolchain_case_entries(toolchain_case *c, char **out_first) {
    uint32_t count = 0;
    DIR *dir = opendir(c->options.cache_folder);
    cr_assert(dir);
    for (struct dirent *at = readdir(dir); at; at = readdir(dir)) {
        if (at->d_name[0] == '.' || strstr(at->d_name, ".version")) continue;
        if (out_first && count == 0)
            *out_first = berth_arena_printf(c->arena, "%s/%s", c->options.cache_folder, at->d_name);
        count++;
    }
    closedir(dir);
    return count;
}

berth_status toolchain_case_compile(toolchain_case *c, uint32_t count, berth_toolchain_unit *units,
                                    berth_toolchain_image *out_image) {
    for (uint32_t i = 0; i < count; ++i)
        units[i] = (berth_toolchain_unit){
            .label = berth_arena_printf(c->arena, "f%u", i),
            .source = berth_arena_printf(c->arena, "int f%u(void); int f%u(void) { return %u; }\n",
                                         i, i, 42 + i)};
    return berth_toolchain_compile(&c->options, c->arena, units, count, out_image);
}

bool toolchain_case_cached(toolchain_case *c) {
    berth_toolchain_unit unit;
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(c, 1, &unit, &image);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect(memcmp(image.data, "\177ELF", 4) == 0);
    return image.cached;
}
