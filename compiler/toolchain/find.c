#include "compiler/toolchain/find.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

// ---- flags --------------------------------------------------------------------------------------

static const char *host_arch(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "";
#endif
}

// Features of a target that compilers take as -m<name>, by the name the target has for them.
static const char *const x86_features[][2] = {
    {"sse3", "sse3"},
    {"ssse3", "ssse3"},
    {"sse4.1", "sse4.1"},
    {"sse4.2", "sse4.2"},
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"f16c", "f16c"},
    {"bmi2", "bmi2"},
    {"popcnt", "popcnt"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512cd", "avx512cd"},
    {"avx512vnni", "avx512vnni"},
    {"avx512vbmi", "avx512vbmi"},
    {"avxvnni", "avxvnni"},
    {"amx-tile", "amx-tile"},
    {"amx-int8", "amx-int8"},
};

// Those before sse4.2 are in every processor that has it; the facts of a machine do not name them.
enum { x86_first_fact = 3 };

const char *berth_toolchain_flags(const berth_target *target, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text,
                     "-std=c17 -O3 -fPIC -w -fno-math-errno -fno-trapping-math -ffp-contract=fast");
    if (strcmp(target->arch, "x86_64") == 0) {
        for (size_t i = 0; i < sizeof(x86_features) / sizeof(x86_features[0]); ++i)
            if (berth_target_has_feature(target, x86_features[i][0]))
                berth_strbuf_addf(&text, " -m%s", x86_features[i][1]);
        // Generic tuning on purpose: tuning for one processor folds loads into every multiply-add.
        if (berth_target_has_feature(target, "avx512f"))
            berth_strbuf_addf(&text, " -mprefer-vector-width=%d",
                              target->vector_bits >= 512 ? 512 : 256);
    } else if (strcmp(target->arch, "aarch64") == 0) {
        berth_strbuf_add(&text, " -march=armv8-a");
        if (berth_target_has_feature(target, "dotprod")) berth_strbuf_add(&text, "+dotprod");
        if (berth_target_has_feature(target, "fp16")) berth_strbuf_add(&text, "+fp16");
    }
    return berth_strbuf_text(&text);
}

const char *berth_toolchain_needs(const berth_target *target, bool matrix_unit,
                                  berth_arena *arena) {
    static const char *const arm_features[] = {"dotprod", "fp16"};
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, *target->arch ? target->arch : host_arch());
    if (strcmp(target->arch, "x86_64") == 0)
        for (size_t i = x86_first_fact; i < sizeof(x86_features) / sizeof(x86_features[0]); ++i) {
            bool of_unit = strncmp(x86_features[i][0], "amx-", 4) == 0;
            if (berth_target_has_feature(target, x86_features[i][0]) && (matrix_unit || !of_unit))
                berth_strbuf_addf(&text, " %s", x86_features[i][0]);
        }
    for (size_t i = 0; i < 2 && strcmp(target->arch, "aarch64") == 0; ++i)
        if (berth_target_has_feature(target, arm_features[i]))
            berth_strbuf_addf(&text, " %s", arm_features[i]);
    return berth_strbuf_text(&text);
}

// ---- finding the compiler -----------------------------------------------------------------------

// Cross compilers as Debian names them.
static const struct {
    const char *arch;  // of targets
    const char *compiler;
    const char *package;
} cross_compilers[] = {
    {"x86_64", "x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu"},
    {"i686", "i686-linux-gnu-gcc", "gcc-i686-linux-gnu"},
    {"aarch64", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"},
    {"armv7", "arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"},
    {"armv7-a", "arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"},
    {"armv7l", "arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"},
    {"riscv64", "riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu"},
    {"ppc64le", "powerpc64le-linux-gnu-gcc", "gcc-powerpc64le-linux-gnu"},
    {"s390x", "s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"},
    {"loongarch64", "loongarch64-linux-gnu-gcc", "gcc-loongarch64-linux-gnu"},
};

const char *berth_toolchain__search_path(const berth_toolchain_options *options,
                                         berth_arena *arena) {
    const char *given =
        options->search_path ? options->search_path : "/usr/local/bin:/usr/bin:/bin";
    berth_strbuf text = berth_strbuf_make(arena);
    for (const char *at = given; *at;) {
        size_t length = strcspn(at, ":");
        if (*at == '/') {
            if (text.length) berth_strbuf_add(&text, ":");
            berth_strbuf_add_n(&text, at, length);
        }
        at += length + (at[length] == ':');
    }
    return berth_strbuf_text(&text);
}

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

// `name`: a path when it holds a slash; else looked up. NULL = there is none.
static const char *find_program(berth_arena *arena, const char *search_path, const char *name) {
    char real[PATH_MAX];
    if (strchr(name, '/'))
        return is_program(name) && realpath(name, real) ? berth_arena_strdup(arena, real) : NULL;
    for (const char *at = search_path; *at;) {
        size_t length = strcspn(at, ":");
        const char *path = berth_arena_printf(arena, "%.*s/%s", (int)length, at, name);
        if (is_program(path)) return path;
        at += length + (at[length] == ':');
    }
    return NULL;
}

// Whether the name of a program is that of a compiler: "x86_64-linux-gnu-gcc-12", "clang".
static bool names_compiler(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strstr(name, "gcc") || strstr(name, "clang");
}

bool berth_toolchain__identity(const char *compiler, berth_arena *arena, berth_hash128 *out_key) {
    char real[PATH_MAX];
    char magic[4] = "";
    struct stat info;
    if (!realpath(compiler, real) || !names_compiler(real)) return false;
    int fd = open(real, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool known = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                 read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
                 memcmp(magic, "\177ELF", sizeof(magic)) == 0;
    close(fd);
    if (!known) return false;
    const char *text = berth_arena_printf(
        arena, "compiler|%s|%s|%llu|%llu|%lld|%lld.%09ld|%lld.%09ld", compiler, real,
        (unsigned long long)info.st_dev, (unsigned long long)info.st_ino, (long long)info.st_size,
        (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, (long long)info.st_ctim.tv_sec,
        info.st_ctim.tv_nsec);
    *out_key = berth_hash128_of(text, strlen(text));
    return true;
}

static berth_status find_cross(berth_arena *arena, const char *search_path, const char *arch,
                               const char **out_compiler) {
    berth_strbuf known = berth_strbuf_make(arena);
    for (size_t i = 0; i < sizeof(cross_compilers) / sizeof(cross_compilers[0]); ++i) {
        berth_strbuf_addf(&known, "%s%s", i ? ", " : "", cross_compilers[i].arch);
        if (strcmp(cross_compilers[i].arch, arch) != 0) continue;
        *out_compiler = find_program(arena, search_path, cross_compilers[i].compiler);
        if (*out_compiler) return BERTH_OK;
        return berth_status_make(
            BERTH_UNAVAILABLE,
            "kernels for %s need a cross compiler, and there is no %s: install the package %s "
            "(Debian, Ubuntu)",
            arch, cross_compilers[i].compiler, cross_compilers[i].package);
    }
    return berth_status_make(BERTH_UNAVAILABLE,
                             "no compiler is known for the architecture \"%s\" of the target's "
                             "field arch; cross compilers are known for %s",
                             arch, berth_strbuf_text(&known));
}

berth_status berth_toolchain__find(const berth_toolchain_options *options, berth_arena *arena,
                                   const char **out_compiler) {
    const char *search_path = berth_toolchain__search_path(options, arena);
    const char *arch = options->target->arch;
    *out_compiler = NULL;
    if (options->c_compiler) {
        *out_compiler = find_program(arena, search_path, options->c_compiler);
        if (*out_compiler) return BERTH_OK;
        return berth_status_make(BERTH_UNAVAILABLE, "C compiler \"%s\" was not found",
                                 options->c_compiler);
    }
    if (*arch && strcmp(arch, host_arch()) != 0)
        return find_cross(arena, search_path, arch, out_compiler);
    static const char *const names[] = {"cc", "gcc", "clang"};
    for (size_t i = 0; i < 3 && !*out_compiler; ++i)
        *out_compiler = find_program(arena, search_path, names[i]);
    if (*out_compiler) return BERTH_OK;
    return berth_status_make(
        BERTH_UNAVAILABLE,
        "no C compiler (cc, gcc, clang) in %s: install one, for example the package gcc",
        *search_path ? search_path : "the absolute folders of the search path");
}
