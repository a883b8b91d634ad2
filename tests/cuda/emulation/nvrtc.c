// A libnvrtc for tests on machines without a GPU: compiles CUDA C for the processor with the C++
// compiler and emulated.h. What it gives as a cubin is "berth emulated", the size in 8 bytes, and a
// shared library; only libcuda.c beside it runs that. BERTH_EMULATION_SOURCES=FOLDER keeps each source there, by a hash;
// BERTH_EMULATION_FAIL makes functions fail (fault.h).
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/cuda/cuda_types.h"
#include "tests/cuda/emulation/fault.h"
#include "tests/cuda/emulation/image.h"

struct _nvrtcProgram {
    char *source;
    char *code;
    size_t code_bytes;
    char log[16384];
};

#define NVRTC(name, parameters) nvrtc_result name parameters;
#include "devices/cuda/cuda_symbols.def"

#define BEGIN()                                                                                    \
    do {                                                                                           \
        nvrtc_result fault = emulated_fault(__func__);                                             \
        if (fault) return fault;                                                                   \
    } while (0)

nvrtc_result nvrtcVersion(int *major, int *minor) {
    *major = 0;
    *minor = 1;
    return 0;
}

nvrtc_result nvrtcGetNumSupportedArchs(int *count) {
    BEGIN();
    *count = 2;
    return 0;
}

nvrtc_result nvrtcGetSupportedArchs(int *values) {
    BEGIN();
    values[0] = 75;
    values[1] = 90;
    return 0;
}

nvrtc_result nvrtcCreateProgram(nvrtc_program *out, const char *source, const char *name,
                                int header_count, const char *const *headers,
                                const char *const *names) {
    BEGIN();
    (void)name, (void)header_count, (void)headers, (void)names;
    *out = calloc(1, sizeof(**out));
    (*out)->source = strdup(source);
    return 0;
}

nvrtc_result nvrtcDestroyProgram(nvrtc_program *program) {
    free((*program)->source);
    free((*program)->code);
    free(*program);
    *program = NULL;
    return 0;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// BERTH_EMULATED_KERNEL(name) for every kernel: the last word before the first '(' behind __global__
// that is no attribute's.
static void write_entries(FILE *file, const char *source) {
    static const char word[] = "__global__", bounds[] = "__launch_bounds__";
    for (const char *at = source; (at = strstr(at, word));) {
        at += sizeof(word) - 1;
        const char *paren = strchr(at, '(');
        if (!paren) return;
        const char *attribute = strstr(at, bounds);
        if (attribute && attribute < paren) paren = strchr(strchr(paren, ')'), '(');
        if (!paren) return;
        const char *end = paren;
        while (end > at && !is_word(end[-1])) --end;
        const char *first = end;
        while (first > at && is_word(first[-1])) --first;
        fprintf(file, "BERTH_EMULATED_KERNEL(%.*s)\n", (int)(end - first), first);
    }
}

static bool read_whole(const char *path, char *out, size_t limit, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    *out_bytes = fread(out, 1, limit, file);
    return fclose(file) == 0;
}

static bool take_library(nvrtc_program program, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return false;
    uint64_t size = (uint64_t)ftell(file);
    rewind(file);
    program->code_bytes = EMULATED_HEADER_BYTES + size;
    program->code = malloc(program->code_bytes);
    memcpy(program->code, EMULATED_MAGIC, EMULATED_MAGIC_BYTES);
    memcpy(program->code + EMULATED_MAGIC_BYTES, &size, sizeof(size));
    bool ok = fread(program->code + EMULATED_HEADER_BYTES, 1, size, file) == size;
    fclose(file);
    return ok;
}

// FNV-1a, by 64 bits.
static uint64_t hash_of(const char *text, size_t bytes, uint64_t hash) {
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static const uint64_t start = 14695981039346656037u;

// What NVIDIA's compiler may look at later (tests/cuda/model_kernels.py).
static void keep_source(const char *source) {
    const char *kept = getenv("BERTH_EMULATION_SOURCES");
    char path[4096];
    if (!kept) return;
    snprintf(path, sizeof(path), "%s/%016llx.cu", kept,
             (unsigned long long)hash_of(source, strlen(source), start));
    FILE *file = fopen(path, "w");
    if (!file) return;
    fputs(source, file);
    fclose(file);
}

// Of the headers that kernels are compiled with. False: they are not there.
static bool hash_headers(uint64_t *hash) {
    static const char *const names[] = {"emulated.h", "bulk.h", "warpgroups.h"};
    static char text[1 << 20];
    int folder = (int)(strrchr(EMULATED_HEADER, '/') - EMULATED_HEADER);
    for (int i = 0; i < 3; ++i) {
        char path[1024];
        size_t bytes = 0;
        snprintf(path, sizeof(path), "%.*s/%s", folder, EMULATED_HEADER, names[i]);
        if (!read_whole(path, text, sizeof(text), &bytes)) return false;
        *hash = hash_of(text, bytes, *hash);
    }
    return true;
}

// Where what is compiled is kept for other processes (tests/cuda/emulation.sh). False: nowhere.
static bool kept_library(const char *source, char *out_path, size_t path_bytes) {
    const char *kept = getenv("BERTH_EMULATION_KERNELS");
    uint64_t hash = start;
    if (!kept || !hash_headers(&hash)) return false;
    hash = hash_of(source, strlen(source), hash);
    return (size_t)snprintf(out_path, path_bytes, "%s/%016llx.so", kept, (unsigned long long)hash) <
           path_bytes;
}

static bool build_library(nvrtc_program program, const char *path, const char *kept) {
    char command[4096];
    bool ok = take_library(program, path);
    if (!ok || !kept) return ok;
    snprintf(command, sizeof(command), "mv %s %s.%d && mv %s.%d %s", path, kept, (int)getpid(),
             kept, (int)getpid(), kept);
    return system(command) == 0;
}

nvrtc_result nvrtcCompileProgram(nvrtc_program program, int option_count,
                                 const char *const *options) {
    char folder[] = "/tmp/berth-emulation-XXXXXX", path[64], command[1024], kept[1024];
    BEGIN();
    for (int i = 0; i < option_count; ++i)
        if (strncmp(options[i], "--", 2) != 0) return BERTH_NVRTC_ERROR_INVALID_OPTION;
    keep_source(program->source);
    bool keeps = kept_library(program->source, kept, sizeof(kept));
    if (keeps && take_library(program, kept)) return 0;
    if (!mkdtemp(folder)) return BERTH_NVRTC_ERROR_COMPILATION;
    snprintf(path, sizeof(path), "%s/k.cpp", folder);
    FILE *file = fopen(path, "w");
    fputs("#include \"" EMULATED_HEADER "\"\n", file);
    fputs(program->source, file);
    fputs("\n", file);
    write_entries(file, program->source);
    fclose(file);
    // Sums wrap around and types are read through others as on the GPU; nothing is contracted, so
    // that results do not depend on this processor.
    snprintf(command, sizeof(command),
             "c++ -std=c++17 -O1 -w -fPIC -shared -fwrapv -fno-strict-aliasing -ffp-contract=off "
             "-ftls-model=global-dynamic -o %s/k.so %s/k.cpp 2>%s/log",
             folder, folder, folder);
    bool built = system(command) == 0;
    size_t log_bytes = 0;
    snprintf(path, sizeof(path), "%s/log", folder);
    if (!read_whole(path, program->log, sizeof(program->log) - 1, &log_bytes)) log_bytes = 0;
    program->log[log_bytes] = '\0';
    snprintf(path, sizeof(path), "%s/k.so", folder);
    built = built && build_library(program, path, keeps ? kept : NULL);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 && built ? 0 : BERTH_NVRTC_ERROR_COMPILATION;
}

nvrtc_result nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes) {
    BEGIN();
    *bytes = program->code_bytes;
    return 0;
}

nvrtc_result nvrtcGetCUBIN(nvrtc_program program, char *data) {
    BEGIN();
    memcpy(data, program->code, program->code_bytes);
    return 0;
}

nvrtc_result nvrtcGetPTXSize(nvrtc_program program, size_t *bytes) {
    return nvrtcGetCUBINSize(program, bytes);
}

nvrtc_result nvrtcGetPTX(nvrtc_program program, char *data) {
    return nvrtcGetCUBIN(program, data);
}

nvrtc_result nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes) {
    *bytes = strlen(program->log) + 1;
    return 0;
}

nvrtc_result nvrtcGetProgramLog(nvrtc_program program, char *text) {
    strcpy(text, program->log);
    return 0;
}
