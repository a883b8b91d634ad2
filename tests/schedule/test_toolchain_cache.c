// The cache of compiled kernels: what is taken from it, what never, what goes by itself.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/schedule/toolchain_case.h"

static toolchain_case open_with_cache(void) {
    toolchain_case c = toolchain_case_open();
    c.options.cache_folder = toolchain_case_path(&c, "cache", false);
    return c;
}

Test(toolchain_cache, second_time_comes_from_the_cache) {
    toolchain_case c = open_with_cache();
    static const char source[] = "int answer(void); int answer(void) { return 42; }\n";
    for (int round = 0; round < 2; ++round) {
        berth_toolchain_unit units[] = {{.label = "a", .source = source},
                                        {.label = "b", .source = source}};
        berth_toolchain_image image;
        berth_status status = berth_toolchain_compile(&c.options, c.arena, units, 2, &image);
        cr_assert(!status, "%s", berth_status_message(status));
        cr_expect_eq(image.cached, round == 1);
        cr_expect_eq(units[0].cached, round == 1);
        cr_expect_eq(units[1].cached, round == 1);
        cr_expect(memcmp(image.data, "\177ELF", 4) == 0);
    }
    berth_cache_stats stats;
    cr_expect_eq(toolchain_case_entries(&c, NULL), 1, "equal sources are compiled once");
    cr_assert(!berth_toolchain_cache_clear(c.options.cache_folder, &stats));
    cr_assert(!berth_toolchain_cache_stats(c.options.cache_folder, &stats));
    cr_expect_eq(stats.entry_count, 0);
    toolchain_case_close(&c);
}

// Another set of sources is linked anew, but only what is new in it is compiled.
Test(toolchain_cache, parts_are_cached_too) {
    toolchain_case c = open_with_cache();
    berth_toolchain_unit units[3];
    berth_toolchain_image image;
    cr_assert(!toolchain_case_compile(&c, 2, units, &image));
    cr_expect_not(units[0].cached || units[1].cached);
    cr_assert(!toolchain_case_compile(&c, 3, units, &image));
    cr_expect(units[0].cached && units[1].cached && !units[2].cached && !image.cached);
    cr_assert(!toolchain_case_compile(&c, 3, units, &image));
    cr_expect(units[2].cached && image.cached);
    toolchain_case_close(&c);
}

Test(toolchain_cache, eviction_keeps_the_limit) {
    toolchain_case c = open_with_cache();
    c.options.cache_limit_bytes = 1;
    toolchain_case_cached(&c);
    cr_expect_eq(toolchain_case_entries(&c, NULL), 0);
    toolchain_case_close(&c);
}

// A compiler behind the same path, of the same size and time of change, that says another version.
Test(toolchain_cache, key_has_the_version_of_the_compiler) {
    toolchain_case c = open_with_cache();
    char *version = toolchain_case_path(&c, "version", false);
    char *script = toolchain_case_path(&c, "cc", false);
    toolchain_case_script(
        &c, script,
        berth_arena_printf(c.arena,
                           "#!/bin/sh\ncase \"$1\" in --version) cat %s;; *) exec gcc \"$@\";; "
                           "esac\n",
                           version));
    c.options.c_compiler = script;
    toolchain_case_write(&c, version, "cc 1.0\n");
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect(toolchain_case_cached(&c));
    toolchain_case_write(&c, version, "cc 2.0\n");
    cr_expect_not(toolchain_case_cached(&c), "the other version's kernels were used");
    toolchain_case_write(&c, version, "cc 1.0\n");
    cr_expect(toolchain_case_cached(&c));
    toolchain_case_close(&c);
}

// A compiler that is a program of its own: it writes a line into `asked` whenever it is asked for its
// version, which is the text of `says`, and leaves the rest to gcc.
static char *make_compiler(toolchain_case *c, const char *name) {
    char *source = toolchain_case_path(c, "compiler.c", false);
    char *program = toolchain_case_path(c, name, false);
    toolchain_case_write(
        c, source,
        berth_arena_printf(c->arena,
                           "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
                           "int main(int argc, char **argv) {\n"
                           "if (argc < 2 || strcmp(argv[1], \"--version\") != 0)\n"
                           "return execvp(argv[0] = \"gcc\", argv);\n"
                           "FILE *asked = fopen(\"%s/asked\", \"a\");\n"
                           "fputs(\"x\\n\", asked); fclose(asked);\n"
                           "return execlp(\"cat\", \"cat\", \"%s/says\", (char *)0); }\n",
                           c->folder, c->folder));
    cr_assert_eq(system(berth_arena_printf(c->arena, "gcc -o '%s' '%s'", program, source)), 0);
    toolchain_case_write(c, toolchain_case_path(c, "says", false), "cc 1.0\n");
    return program;
}

// How often it was asked so far.
static int times_asked(toolchain_case *c) {
    int count = 0;
    FILE *asked = fopen(toolchain_case_path(c, "asked", false), "r");
    while (asked && fgetc(asked) != EOF) ++count;
    if (asked) fclose(asked);
    return count / 2;
}

static char *version_entry(toolchain_case *c) {
    char *list = berth_arena_printf(c->arena, "ls %s/*.version", c->options.cache_folder);
    FILE *pipe = popen(list, "r");
    char line[4096] = "";
    cr_assert(pipe && fgets(line, sizeof(line), pipe));
    line[strcspn(line, "\n")] = 0;
    cr_assert_eq(pclose(pipe), 0);
    return berth_arena_strdup(c->arena, line);
}

// What a compiler says of itself stays known until its file changes in any way.
Test(toolchain_cache, compilers_are_asked_once) {
    toolchain_case c = open_with_cache();
    char *compiler = make_compiler(&c, "a-gcc-12");
    c.options.c_compiler = compiler;
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect(toolchain_case_cached(&c));
    cr_expect(toolchain_case_cached(&c));
    cr_expect_eq(times_asked(&c), 1);
    // The same content put there again.
    cr_assert_eq(system(berth_arena_printf(c.arena, "cd '%s' && cp -p a-gcc-12 b && mv b a-gcc-12",
                                           c.folder)),
                 0);
    cr_expect(toolchain_case_cached(&c), "the same version, size and time of change");
    cr_expect_eq(times_asked(&c), 2);
    toolchain_case_write(&c, toolchain_case_path(&c, "says", false), "cc 2.0\n");
    cr_assert_eq(system(berth_arena_printf(c.arena, "touch '%s'", compiler)), 0);
    cr_expect_not(toolchain_case_cached(&c), "the other version's kernels were used");
    cr_expect_eq(times_asked(&c), 3);
    toolchain_case_close(&c);
}

// A program by any other name may hand on to a compiler that has changed.
Test(toolchain_cache, wrappers_are_asked_every_time) {
    toolchain_case c = open_with_cache();
    char *wrapper = make_compiler(&c, "wrapper");
    char *link = toolchain_case_path(&c, "gcc", false);
    cr_assert_eq(symlink(wrapper, link), 0);
    c.options.c_compiler = link;
    cr_expect_not(toolchain_case_cached(&c));
    toolchain_case_write(&c, toolchain_case_path(&c, "says", false), "cc 2.0\n");
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect_eq(times_asked(&c), 2);
    toolchain_case_close(&c);
}

Test(toolchain_cache, damaged_versions_are_asked_again) {
    toolchain_case c = open_with_cache();
    c.options.c_compiler = make_compiler(&c, "gcc");
    cr_expect_not(toolchain_case_cached(&c));
    char *entry = version_entry(&c);
    FILE *file = fopen(entry, "r+");
    cr_assert(file && fputs("cc 9", file) >= 0);
    fclose(file);
    cr_expect(toolchain_case_cached(&c));
    cr_expect_eq(times_asked(&c), 2);
    cr_assert_eq(chmod(entry, 0622), 0);
    cr_expect(toolchain_case_cached(&c));
    cr_expect_eq(times_asked(&c), 3);
    toolchain_case_close(&c);
}

// ---- entries that may not be used ---------------------------------------------------------------

static void cut(const char *path) {
    cr_assert_eq(truncate(path, 8), 0);
}
static void empty(const char *path) {
    cr_assert_eq(truncate(path, 0), 0);
}
static void damage(const char *path) {
    FILE *file = fopen(path, "r+");
    cr_assert(file && fseek(file, 100, SEEK_SET) == 0 && fputs("xyz", file) >= 0);
    fclose(file);
}
static void enlarge(const char *path) {  // sparse: reading it would take 1 TB of memory
    cr_assert_eq(truncate(path, (off_t)1 << 40), 0);
}
static void open_to_others(const char *path) {
    cr_assert_eq(chmod(path, 0622), 0);
}
static void link_away(const char *path) {
    char target[4096];
    snprintf(target, sizeof(target), "%s.away", path);
    cr_assert_eq(rename(path, target), 0);
    cr_assert_eq(symlink(target, path), 0);
}
static void make_folder(const char *path) {
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
}
static void give_away(const char *path) {
    cr_assert_eq(chown(path, 12345, 12345), 0);
}

Test(toolchain_cache, what_may_not_be_used_is_made_anew) {
    static const struct {
        const char *name;
        void (*spoil)(const char *path);
        bool needs_root;
    } cases[] = {{"cut", cut, false},
                 {"empty", empty, false},
                 {"damaged", damage, false},
                 {"huge", enlarge, false},
                 {"others write it", open_to_others, false},
                 {"link", link_away, false},
                 {"pipe", make_folder, false},
                 {"another user's", give_away, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (cases[i].needs_root && geteuid() != 0) continue;
        toolchain_case c = open_with_cache();
        char *path = NULL;
        cr_expect_not(toolchain_case_cached(&c));
        cr_assert_eq(toolchain_case_entries(&c, &path), 1);
        cases[i].spoil(path);
        cr_expect_not(toolchain_case_cached(&c), "%s: used", cases[i].name);
        cr_expect(toolchain_case_cached(&c), "%s: not made anew", cases[i].name);
        toolchain_case_close(&c);
    }
}

// Also entries that nobody asks for.
Test(toolchain_cache, huge_entries_go) {
    toolchain_case c = open_with_cache();
    toolchain_case_cached(&c);
    char *huge = berth_arena_printf(c.arena, "%s/0123456789abcdef0123456789abcdef.so",
                                    c.options.cache_folder);
    toolchain_case_write(&c, huge, "x");
    enlarge(huge);
    berth_toolchain_unit units[2];
    berth_toolchain_image image;
    cr_assert(!toolchain_case_compile(&c, 2, units, &image));
    cr_expect(access(huge, F_OK) != 0);
    cr_expect(toolchain_case_cached(&c), "the good ones stay");
    toolchain_case_close(&c);
}

// ---- folders ------------------------------------------------------------------------------------

Test(toolchain_cache, folder_that_others_can_write_is_refused) {
    toolchain_case c = open_with_cache();
    toolchain_case_path(&c, "cache", true);
    cr_assert_eq(chmod(c.options.cache_folder, 0777), 0);
    berth_toolchain_unit unit;
    berth_toolchain_image image;
    berth_status status = toolchain_case_compile(&c, 1, &unit, &image);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect(strstr(berth_status_message(status), c.options.cache_folder));
    berth_status_free(status);
    toolchain_case_close(&c);
}

static void keep_warning(void *state, berth_log_level level, const char *message) {
    char *kept = state;
    size_t used = strlen(kept);
    if (level == BERTH_LOG_WARNING) snprintf(kept + used, 1024 - used, "%s\n", message);
}

// Where an entry should be there is a folder: what is said of it is so.
Test(toolchain_cache, a_folder_is_no_entry) {
    toolchain_case c = open_with_cache();
    char warning[1024] = "";
    cr_expect_not(toolchain_case_cached(&c));
    cr_assert_eq(system(berth_arena_printf(
                     c.arena, "cd '%s' && for f in *.so; do rm \"$f\" && mkdir \"$f\"; done",
                     c.options.cache_folder)),
                 0);
    c.options.log = (berth_log){.write = keep_warning, .state = warning};
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect(strstr(warning, "not used, and cannot be removed: it is no regular file"), "%s",
              warning);
    toolchain_case_close(&c);
}

// A folder in one that others can write can be replaced: it is not used, and the user is told. With
// the sticky bit it cannot.
Test(toolchain_cache, folders_above_are_checked) {
    toolchain_case c = toolchain_case_open();
    char warning[1024] = "";
    c.options.log = (berth_log){.write = keep_warning, .state = warning};
    char *shared = toolchain_case_path(&c, "shared", true);
    toolchain_case_path(&c, "shared/a", true);
    c.options.cache_folder = toolchain_case_path(&c, "shared/a/cache", true);
    cr_assert_eq(chmod(shared, 0777), 0);
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect(strstr(warning, "can replace") && strstr(warning, shared), "%s", warning);
    cr_expect_eq(toolchain_case_entries(&c, NULL), 0);
    warning[0] = 0;
    cr_assert_eq(chmod(shared, 01777), 0);
    cr_expect_not(toolchain_case_cached(&c));
    cr_expect(toolchain_case_cached(&c));
    cr_expect_str_eq(warning, "");
    toolchain_case_close(&c);
}

Test(toolchain_cache, folders_of_any_name) {
    toolchain_case c = toolchain_case_open();
    cr_assert_eq(chdir(c.folder), 0);
    static const char *const names[] = {"-cache", "a b", "a\nb", "x/y/z", "\"$(false)\""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        c.options.cache_folder = names[i];
        cr_expect_not(toolchain_case_cached(&c), "%s", names[i]);
        cr_expect(toolchain_case_cached(&c), "%s", names[i]);
    }
    toolchain_case_close(&c);
}
