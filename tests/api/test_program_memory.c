// Programs from bytes in memory: all of these are checked, as those of files are, and within limits.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/leaks.h"

#define MODEL "examples/digits/digits.onnx"

static unsigned char *data;
static size_t size_bytes;

static void setup(void) {
    char path[] = "/tmp/berth_program_XXXXXX";
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    close(mkstemp(path));
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    assert_ok(berth_compiler_compile_file(compiler, MODEL, &program));
    assert_ok(berth_program_save(program, path));
    berth_program_release(program);
    berth_compiler_destroy(compiler);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    size_bytes = (size_t)ftell(file);
    rewind(file);
    data = malloc(size_bytes);
    cr_assert_eq(fread(data, 1, size_bytes, file), size_bytes);
    fclose(file);
    unlink(path);
}

static void teardown(void) {
    free(data);
}

TestSuite(program_memory, .init = setup, .fini = teardown, .timeout = 120);

Test(program_memory, limits) {
    berth_program *program = NULL;
    static const char *const enough[] = {NULL, "", "bytes=64MiB,items=100000,time=60s"};
    for (int i = 0; i < 3; ++i) {
        assert_ok(berth_program_open_memory_limited(data, size_bytes, NULL, enough[i], &program));
        cr_assert_str_eq(berth_program_output(program, 0)->name, "probabilities");
        berth_program_release(program);
    }
    assert_fails(berth_program_open_memory_limited(data, size_bytes, NULL, "bytes=100", &program),
                 BERTH_OUT_OF_RANGE, "the limit is bytes=100");
    assert_fails(berth_program_open_memory_limited(data, size_bytes, NULL, "items=1", &program),
                 BERTH_OUT_OF_RANGE, "more than 1 records");
    assert_fails(berth_program_open_memory_limited(data, size_bytes, NULL, "much", &program),
                 BERTH_INVALID_ARGUMENT, "\"much\"");
    cr_assert_null(program);
}

// A weight that is another one would give results that are only wrong.
Test(program_memory, any_changed_byte_is_refused) {
    enum { step = 61 };
    for (size_t at = 0; at < size_bytes; at += step) {
        berth_program *program = NULL;
        data[at] ^= 0x40;
        berth_status status = berth_program_open_memory(data, size_bytes, &program);
        cr_assert(status, "byte %zu of %zu", at, size_bytes);
        cr_assert_null(program);
        berth_status_free(status);
        data[at] ^= 0x40;
    }
}
