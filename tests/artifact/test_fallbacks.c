// Programs with fallbacks in the file form (artifact/file_form.h): what is read back, what is written
// once, what older readers do, and that no damaged byte is taken.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/file_form.h"
#include "base/file.h"
#include "base/hash.h"
#include "tests/artifact/random_program.h"
#include "tests/check.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(artifact_fallbacks, .init = setup, .fini = teardown);

enum { fallback_count = 2 };

static uint64_t constant_bytes(const berth_program *p) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->constant_count; ++i)
        total += p->tensors[p->constants[i].tensor].size_bytes;
    return total;
}

static const berth_program *some_program(void) {
    for (uint64_t seed = 1;; ++seed) {
        const berth_program *p = random_program(arena, seed);
        if (p->step_count && p->attachment_count && p->input_count && p->output_count &&
            p->constant_count > 1 && constant_bytes(p) > 256)
            return p;
    }
}

// The same program under another name; where `index` is not 0, with other constants.
static const berth_program *make_fallback(const berth_program *p, uint32_t index) {
    berth_program *copy = berth_arena_new(arena, berth_program);
    *copy = *p;
    copy->name = berth_arena_printf(arena, "fallback %u", index);
    copy->predicted_ns = 1000.0 + index;
    if (index == 0) return copy;
    berth_program_constant *constants =
        berth_arena_new_array(arena, berth_program_constant, p->constant_count);
    for (uint32_t i = 0; i < p->constant_count; ++i) {
        size_t size_bytes = (size_t)p->tensors[p->constants[i].tensor].size_bytes;
        uint8_t *data = berth_arena_alloc(arena, size_bytes + 1);
        if (size_bytes) memcpy(data, p->constants[i].data, size_bytes);
        if (size_bytes) data[0] ^= 1;
        constants[i] = (berth_program_constant){p->constants[i].tensor, data};
    }
    copy->constants = constants;
    return copy;
}

static berth_program *with_fallbacks(const berth_program *p) {
    berth_program *whole = berth_arena_new(arena, berth_program);
    const berth_program **list =
        berth_arena_array(arena, fallback_count, sizeof(const berth_program *));
    for (uint32_t i = 0; i < fallback_count; ++i) list[i] = make_fallback(p, i);
    *whole = *p;
    whole->fallbacks = list;
    whole->fallback_count = fallback_count;
    return whole;
}

static uint8_t *to_file(const berth_program *p, size_t *out_size_bytes) {
    const void *data = NULL;
    assert_ok(berth_program_to_memory(p, arena, &data, out_size_bytes));
    uint8_t *aligned =
        berth_arena_alloc_aligned(arena, *out_size_bytes, BERTH_PROGRAM_FILE_ALIGNMENT);
    return memcpy(aligned, data, *out_size_bytes);
}

static void assert_same(const berth_program *expected, const berth_program *found) {
    const char *difference = program_difference(expected, found);
    cr_assert_null(difference, "%s differs", difference);
}

static void assert_refused(berth_status status, const char *why) {
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert(strstr(berth_status_message(status), why), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(artifact_fallbacks, are_read_as_they_were_written) {
    const berth_program *p = some_program(), *back = NULL;
    berth_program *whole = with_fallbacks(p);
    size_t size_bytes = 0;
    const uint8_t *data = to_file(whole, &size_bytes);
    assert_ok(berth_program_parse(arena, data, size_bytes, &back));
    assert_same(p, back);
    cr_assert_eq(back->fallback_count, fallback_count);
    for (uint32_t i = 0; i < fallback_count; ++i) {
        assert_same(whole->fallbacks[i], back->fallbacks[i]);
        cr_assert_str_eq(back->fallbacks[i]->name, whole->fallbacks[i]->name);
        cr_assert_eq(berth_program_plan(back, i + 1), back->fallbacks[i]);
    }
    cr_assert_null(berth_program_plan(back, fallback_count + 1));
    size_t again_bytes = 0;
    const uint8_t *again = to_file(back, &again_bytes);
    cr_assert(again_bytes == size_bytes && memcmp(again, data, size_bytes) == 0);
}

// The first fallback has the program's constants, the second one others.
Test(artifact_fallbacks, constants_that_are_the_same_are_there_once) {
    const berth_program *p = some_program(), *back = NULL;
    berth_program *whole = with_fallbacks(p);
    size_t alone_bytes = 0, size_bytes = 0, unshared_bytes = 0;
    to_file(p, &alone_bytes);
    whole->fallback_count = 1;
    const uint8_t *data = to_file(whole, &size_bytes);
    assert_ok(berth_program_parse(arena, data, size_bytes, &back));
    for (uint32_t i = 0; i < p->constant_count; ++i)
        if (p->tensors[p->constants[i].tensor].size_bytes) {
            const void *own = back->constants[i].data;
            size_t bytes = (size_t)p->tensors[p->constants[i].tensor].size_bytes;
            cr_assert_eq(memcmp(back->fallbacks[0]->constants[i].data, own, bytes), 0);
        }
    const berth_program *other = make_fallback(p, 1);
    whole->fallbacks = &other;
    to_file(whole, &unshared_bytes);
    cr_assert_geq(unshared_bytes, size_bytes + constant_bytes(p));
    cr_assert_lt(size_bytes, 2 * alone_bytes);
}

// A reader that does not know the section: its number becomes one that nobody knows. The sum over the
// section is as it was written, and that reader checks it.
Test(artifact_fallbacks, older_readers_leave_them_out) {
    const berth_program *p = some_program(), *back = NULL;
    size_t size_bytes = 0;
    uint8_t *data = to_file(with_fallbacks(p), &size_bytes);
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    cr_assert_eq(header.version, BERTH_PROGRAM_OLDEST);
    berth_file_section *table = (berth_file_section *)(void *)(data + sizeof(header));
    uint32_t at = 0;
    while ((table[at].kind & ~BERTH_SECTION_OPTIONAL) != BERTH_SECTION_FALLBACKS) ++at;
    cr_assert_eq(table[at].checksum,
                 berth_hash64(data + table[at].offset_bytes, (size_t)table[at].size_bytes, 0));
    table[at].kind = (BERTH_SECTION_VM_PROGRAMS - 1) | BERTH_SECTION_OPTIONAL;
    header.checksum = berth_artifact__header_checksum(&header, table);
    memcpy(data, &header, sizeof(header));
    assert_ok(berth_program_parse(arena, data, size_bytes, &back));
    assert_same(p, back);
    cr_assert_eq(back->fallback_count, 0);
}

Test(artifact_fallbacks, every_damaged_byte_is_found) {
    size_t size_bytes = 0;
    uint8_t *data = to_file(with_fallbacks(some_program()), &size_bytes);
    char path[] = "/tmp/berth-fallbacks-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, data, size_bytes, 0), (ssize_t)size_bytes);
    assert_ok(berth_program_file_check(berth_allocator_system(), path, NULL));
    for (size_t i = 0; i < size_bytes; ++i) {
        uint8_t damaged = data[i] ^ 0x10;
        cr_assert_eq(pwrite(fd, &damaged, 1, (off_t)i), 1);
        berth_status status = berth_program_file_check(berth_allocator_system(), path, NULL);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "byte %zu", i);
        berth_status_free(status);
        cr_assert_eq(pwrite(fd, &data[i], 1, (off_t)i), 1);
    }
    close(fd);
    unlink(path);
}

Test(artifact_fallbacks, are_for_the_same_inputs_and_outputs) {
    const berth_program *p = some_program();
    berth_program *whole = with_fallbacks(p), changed = *whole->fallbacks[0];
    const berth_program *list[] = {&changed};
    berth_program_io input = p->inputs[0];
    whole->fallbacks = list;
    whole->fallback_count = 1;
    assert_ok(berth_program_verify(whole));
    input.name = "another";
    if (p->input_count == 1)
        changed.inputs = &input;
    else
        changed.input_count--;
    assert_refused(berth_program_verify(whole), "fallbacks[0]: ");
    changed = *with_fallbacks(p);
    assert_refused(berth_program_verify(whole), "fallbacks of its own");
    list[0] = NULL;
    assert_refused(berth_program_verify(whole), "missing");
}

// Outside of a fallback there is no surrounding file.
Test(artifact_fallbacks, constants_of_a_surrounding_file_need_one) {
    const berth_program *back = NULL;
    size_t size_bytes = 0;
    uint8_t *data = to_file(some_program(), &size_bytes);
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    berth_file_section *table = (berth_file_section *)(void *)(data + sizeof(header));
    uint32_t at = 0;
    while (table[at].kind != BERTH_SECTION_CONSTANTS) ++at;
    const berth_file_record_form *form = berth_artifact__record_form(BERTH_SECTION_CONSTANTS);
    uint32_t record_bytes = berth_artifact__record_bytes(form, form->field_count);
    data[table[at].offset_bytes + record_bytes - 4] = 1;  // its last field
    assert_refused(berth_artifact__parse(arena, data, size_bytes, false, &back),
                   "surrounding file");
}
