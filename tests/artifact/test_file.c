#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/file.h"
#include "artifact/file_form.h"
#include "base/file.h"
#include "tests/artifact/random_program.h"
#include "tests/check.h"

static berth_arena *arena;
static char path[64];

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    strcpy(path, "/tmp/berth-artifact-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void teardown(void) {
    berth_arena_destroy(arena);
    unlink(path);
}

TestSuite(artifact_file, .init = setup, .fini = teardown);

static uint8_t *write_and_load(const berth_program *program, size_t *out_size_bytes) {
    assert_ok(berth_program_write(program, path));
    char *data = NULL;
    cr_assert_null(berth_file_read(arena, path, (size_t)1 << 24, &data, out_size_bytes));
    return berth_arena_copy(arena, data, *out_size_bytes);
}

Test(artifact_file, round_trip_of_random_programs) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const berth_program *program = random_program(arena, seed);
        assert_ok(berth_program_verify(program));
        size_t first_bytes = 0;
        uint8_t *first = write_and_load(program, &first_bytes);
        const berth_program *back = NULL;
        assert_ok(berth_program_read(arena, path, NULL, &back));
        const char *difference = program_difference(program, back);
        cr_assert_null(difference, "seed %llu: %s differs", (unsigned long long)seed, difference);
        size_t second_bytes = 0;
        uint8_t *second = write_and_load(back, &second_bytes);
        cr_assert(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0,
                  "seed %llu: the same program gave other bytes", (unsigned long long)seed);
        assert_ok(berth_program_file_check(berth_allocator_system(), path, NULL));
    }
}

// Programs without a store are written as before there were any: older readers take them.
Test(artifact_file, a_file_has_the_oldest_version_that_reads_it) {
    bool seen[2] = {false, false};
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        const berth_program *program = random_program(arena, seed);
        bool store = false;
        for (uint32_t i = 0; i < program->pool_count; ++i)
            store |= program->pools[i].usage == BERTH_POOL_STORE;
        size_t size_bytes = 0;
        const uint8_t *data = write_and_load(program, &size_bytes);
        uint32_t version = 0;
        memcpy(&version, data + 8, sizeof(version));
        cr_expect_eq(version, store ? 6 : 5, "seed %llu", (unsigned long long)seed);
        seen[store] = true;
    }
    cr_assert(seen[0] && seen[1]);
}

// The file stays open beside the mapping, for who reads constants piece by piece.
Test(artifact_file, a_program_has_its_file) {
    const berth_program *back = NULL;
    assert_ok(berth_program_write(random_program(arena, 3), path));
    assert_ok(berth_program_read(arena, path, NULL, &back));
    cr_assert_not_null(back->file);
    char head[8] = "";
    assert_ok(berth_file_read_range(back->file->fd, 0, head, sizeof(head)));
    cr_expect_arr_eq(head, back->file->data, sizeof(head));
    berth_status status =
        berth_file_read_range(back->file->fd, back->file->size_bytes - 4, head, sizeof(head));
    cr_expect_eq(berth_status_code(status), BERTH_IO);
    berth_status_free(status);
}

Test(artifact_file, constants_and_images_are_used_in_place_and_aligned) {
    int seen = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
        assert_ok(berth_program_write(random_program(arena, seed), path));
        berth_mapping mapping;
        assert_ok(berth_file_map(path, &mapping));
        const berth_program *back = NULL;
        assert_ok(berth_program_parse(arena, mapping.data, mapping.size_bytes, &back));
        for (uint32_t i = 0; i < back->constant_count; ++i, ++seen) {
            const uint8_t *data = back->constants[i].data;
            cr_assert(data >= mapping.data && data <= mapping.data + mapping.size_bytes);
            cr_assert_eq((uintptr_t)data % 64, 0);
        }
        for (uint32_t i = 0; i < back->executable_count; ++i, ++seen) {
            const uint8_t *data = back->executables[i].data;
            cr_assert(data >= mapping.data && data < mapping.data + mapping.size_bytes);
            cr_assert_eq((uintptr_t)data % 64, 0);
        }
        berth_file_unmap(mapping);
    }
    cr_assert_gt(seen, 20);
}

Test(artifact_file, recognises_program_files) {
    assert_ok(berth_program_write(random_program(arena, 3), path));
    cr_assert(berth_program_is_file(path));
    cr_assert_null(berth_file_write(path, "ONNX", 4));
    cr_assert_not(berth_program_is_file(path));
    cr_assert_not(berth_program_is_file("/nonexistent/file"));
    const berth_program *program = NULL;
    berth_status status = berth_program_read(arena, "/nonexistent/file", NULL, &program);
    cr_assert_eq(berth_status_code(status), BERTH_NOT_FOUND);
    cr_assert_null(program);
    berth_status_free(status);
    status = berth_program_read(arena, path, NULL, &program);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert(strstr(berth_status_message(status), path), "%s", berth_status_message(status));
    berth_status_free(status);
}

// Parses damaged bytes in a heap block of their own, so that the sanitizer sees any read outside of
// it.
static berth_status parse_copy(const uint8_t *data, size_t size_bytes, bool check_sums) {
    uint8_t *copy = malloc(size_bytes ? size_bytes : 1);
    memcpy(copy, data, size_bytes);
    berth_arena *scratch = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &scratch));
    const berth_program *program = NULL;
    berth_status status = berth_artifact__parse(scratch, copy, size_bytes, check_sums, &program);
    if (!status)
        assert_ok(berth_program_verify(program));
    else
        cr_assert_null(program);
    berth_arena_destroy(scratch);
    free(copy);
    return status;
}

Test(artifact_file, every_truncation_is_an_error) {
    size_t size_bytes = 0;
    uint8_t *data = write_and_load(random_program(arena, 7), &size_bytes);
    for (size_t length = 0; length < size_bytes; ++length) {
        for (int sums = 0; sums < 2; ++sums) {
            berth_status status = parse_copy(data, length, sums);
            cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "length %zu", length);
            berth_status_free(status);
        }
    }
}

Test(artifact_file, every_byte_flip_is_noticed) {
    size_t size_bytes = 0;
    uint8_t *data = write_and_load(random_program(arena, 7), &size_bytes);
    berth_file_section constants;
    const uint8_t *table = data + sizeof(berth_file_header);
    do memcpy(&constants, table, sizeof(constants));
    while (table += sizeof(constants), constants.kind != BERTH_SECTION_CONSTANT_DATA);
    cr_assert_gt(constants.size_bytes, 0);
    for (size_t at = 0; at < size_bytes; ++at) {
        data[at] ^= 0x41;
        berth_status status = parse_copy(data, size_bytes, true);
        if (at < constants.offset_bytes) {
            cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "byte %zu", at);
            berth_status_free(status);
        } else {  // constants are left unread when a file is opened; the full check sees them
            assert_ok(status);
            cr_assert_null(berth_file_write(path, data, size_bytes));
            status = berth_program_file_check(berth_allocator_system(), path, NULL);
            cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "byte %zu", at);
            berth_status_free(status);
            if (at > constants.offset_bytes + 300)
                break;  // each of these writes a file and syncs it
        }
        data[at] ^= 0x41;
    }
}

// Without checksums each flip must still give an error or a program that verifies (parse_copy
// asserts it).
Test(artifact_file, flips_behind_the_checksums_do_no_harm) {
    int rejected = 0, accepted = 0;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        size_t size_bytes = 0;
        uint8_t *data = write_and_load(random_program(arena, seed), &size_bytes);
        static const uint8_t flips[] = {0x01, 0x80, 0xff};
        for (size_t at = 0; at < size_bytes; ++at) {
            for (size_t f = 0; f < sizeof(flips); ++f) {
                data[at] ^= flips[f];
                berth_status status = parse_copy(data, size_bytes, false);
                if (status)
                    rejected++;
                else
                    accepted++;
                berth_code code = berth_status_code(status);
                cr_assert(!status || code == BERTH_INVALID_ARGUMENT || code == BERTH_OUT_OF_RANGE ||
                              code == BERTH_UNSUPPORTED,
                          "%s", berth_status_message(status));
                berth_status_free(status);
                data[at] ^= flips[f];
            }
        }
    }
    cr_assert_gt(rejected, 100);
    cr_assert_gt(accepted, 100);
}

Test(artifact_file, every_failed_allocation_of_reading_is_clean) {
    assert_ok(berth_program_write(random_program(arena, 5), path));
    for (int64_t at = 1;; ++at) {
        cr_assert_lt(at, 1000);
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_arena *scratch = NULL;
        const berth_program *program = NULL;
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &scratch);
        if (!status) status = berth_program_read(scratch, path, NULL, &program);
        berth_code code = berth_status_code(status);
        berth_status_free(status);
        berth_arena_destroy(scratch);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
        if (code == BERTH_CODE_OK) break;
        cr_assert_eq(code, BERTH_OUT_OF_MEMORY);
    }
}

Test(artifact_file, nothing_is_written_for_a_program_that_breaks_the_rules) {
    berth_program *program = random_program(arena, 5);
    program->executor = "mystery";
    unlink(path);
    berth_status status = berth_program_write(program, path);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    berth_status_free(status);
    cr_assert_not(berth_file_exists(path));
}
