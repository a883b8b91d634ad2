// How program files of other versions of Berth are read (artifact/file_form.h): a file is changed
// into what an older or a newer writer would have made.
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

TestSuite(artifact_evolution, .init = setup, .fini = teardown);

// A file taken apart.
typedef struct parts {
    berth_file_header header;
    berth_file_section sections[BERTH_SECTION_KINDS];
    const uint8_t *contents[BERTH_SECTION_KINDS];
} parts;

static parts take_apart(const berth_program *program) {
    char path[] = "/tmp/berth-evolution-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    assert_ok(berth_program_write(program, path));
    char *data = NULL;
    size_t size_bytes = 0;
    assert_ok(berth_file_read(arena, path, (size_t)1 << 24, &data, &size_bytes));
    unlink(path);
    parts p;
    memcpy(&p.header, data, sizeof(p.header));
    memcpy(p.sections, data + sizeof(p.header), p.header.section_count * sizeof(*p.sections));
    for (uint32_t i = 0; i < p.header.section_count; ++i)
        p.contents[i] = (const uint8_t *)data + p.sections[i].offset_bytes;
    return p;
}

static uint32_t find(const parts *p, uint32_t kind) {
    uint32_t i = 0;
    while ((p->sections[i].kind & ~BERTH_SECTION_OPTIONAL) != kind)
        cr_assert_lt(++i, p->header.section_count);
    return i;
}

// A section of this kind and content, after those of lower kinds.
static void insert(parts *p, uint32_t kind, const void *content, uint64_t size_bytes) {
    uint32_t at = p->header.section_count++;
    for (; at > 0 &&
           (p->sections[at - 1].kind & ~BERTH_SECTION_OPTIONAL) > (kind & ~BERTH_SECTION_OPTIONAL);
         --at) {
        p->sections[at] = p->sections[at - 1];
        p->contents[at] = p->contents[at - 1];
    }
    p->sections[at] = (berth_file_section){.kind = kind, .size_bytes = size_bytes};
    p->contents[at] = content;
}

static void drop(parts *p, uint32_t kind) {
    uint32_t count = --p->header.section_count;
    for (uint32_t i = find(p, kind); i < count; ++i) {
        p->sections[i] = p->sections[i + 1];
        p->contents[i] = p->contents[i + 1];
    }
}

// Every record with bytes added after it, or (less than 0) cut from its end.
static void change_records(parts *p, uint32_t kind, int64_t more_bytes) {
    berth_file_section *section = &p->sections[find(p, kind)];
    const uint8_t **content = &p->contents[find(p, kind)];
    uint64_t old_bytes = section->size_bytes / section->record_count;
    uint64_t new_bytes = (uint64_t)((int64_t)old_bytes + more_bytes);
    uint8_t *changed = berth_arena_alloc(arena, new_bytes * section->record_count);
    memset(changed, 0x5a, new_bytes * section->record_count);
    for (uint32_t i = 0; i < section->record_count; ++i)
        memcpy(changed + i * new_bytes, *content + i * old_bytes,
               new_bytes < old_bytes ? new_bytes : old_bytes);
    *content = changed;
    section->size_bytes = new_bytes * section->record_count;
}

static berth_status read_again(parts *p, const berth_program **out_program) {
    uint64_t offset = sizeof(p->header) + p->header.section_count * sizeof(*p->sections);
    for (uint32_t i = 0; i < p->header.section_count; ++i) {
        berth_file_section *section = &p->sections[i];
        section->offset_bytes = berth_artifact__padded(offset);
        offset = section->offset_bytes + section->size_bytes;
        if (section->kind != BERTH_SECTION_CONSTANT_DATA)
            section->checksum = berth_hash64(p->contents[i], (size_t)section->size_bytes, 0);
    }
    p->header.file_size_bytes = offset;
    p->header.checksum = berth_artifact__header_checksum(&p->header, p->sections);
    uint8_t *data = berth_arena_alloc_aligned(arena, offset, BERTH_PROGRAM_FILE_ALIGNMENT);
    memset(data, 0, offset);
    memcpy(data, &p->header, sizeof(p->header));
    memcpy(data + sizeof(p->header), p->sections, p->header.section_count * sizeof(*p->sections));
    for (uint32_t i = 0; i < p->header.section_count; ++i)
        if (p->sections[i].size_bytes)
            memcpy(data + p->sections[i].offset_bytes, p->contents[i], p->sections[i].size_bytes);
    return berth_program_parse(arena, data, offset, out_program);
}

// A program with records of every kind.
static const berth_program *full_program(void) {
    for (uint64_t seed = 1;; ++seed) {
        const berth_program *p = random_program(arena, seed);
        if (p->step_count && p->placement_count && p->attachment_count && p->constant_count)
            return p;
    }
}

static void assert_reads_as(parts *p, const berth_program *expected) {
    const berth_program *back = NULL;
    assert_ok(read_again(p, &back));
    const char *difference = program_difference(expected, back);
    cr_assert_null(difference, "%s differs", difference);
}

static void assert_refused(parts *p, const char *why) {
    const berth_program *back = NULL;
    berth_status status = read_again(p, &back);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert(strstr(berth_status_message(status), why), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(artifact_evolution, a_file_taken_apart_and_put_together_is_the_same) {
    const berth_program *program = full_program();
    parts p = take_apart(program);
    assert_reads_as(&p, program);
}

Test(artifact_evolution, fields_of_a_newer_writer_are_left_out) {
    const berth_program *program = full_program();
    for (uint32_t kind = 0; kind < BERTH_SECTION_RECORD_KINDS; ++kind) {
        parts p = take_apart(program);
        bool has = false;
        for (uint32_t i = 0; i < p.header.section_count; ++i)
            has |= (p.sections[i].kind & ~BERTH_SECTION_OPTIONAL) == kind &&
                   p.sections[i].record_count;
        if (!has) continue;
        change_records(&p, kind, 12);
        assert_reads_as(&p, program);
    }
}

Test(artifact_evolution, records_without_a_required_field_are_refused) {
    parts p = take_apart(full_program());
    change_records(&p, BERTH_SECTION_TENSORS, -4);
    assert_refused(&p, "tensors: records of");
}

Test(artifact_evolution, optional_sections_may_be_unknown_or_missing) {
    const berth_program *program = full_program();
    parts p = take_apart(program);
    insert(&p, 28 | BERTH_SECTION_OPTIONAL, "what a later version adds", 25);
    assert_reads_as(&p, program);
    p = take_apart(program);
    drop(&p, BERTH_SECTION_PLACEMENTS);
    drop(&p, BERTH_SECTION_ATTACHMENTS);
    berth_program less = *program;
    less.placement_count = less.attachment_count = 0;
    assert_reads_as(&p, &less);
}

Test(artifact_evolution, what_must_not_be_overlooked_is_refused) {
    parts p = take_apart(full_program());
    insert(&p, 28, "more code", 9);
    assert_refused(&p, "a section of kind 28, which a newer Berth knows");
    p = take_apart(full_program());
    drop(&p, BERTH_SECTION_KERNELS);
    assert_refused(&p, "no section of kind 9");
    p = take_apart(full_program());
    p.header.version = BERTH_PROGRAM_VERSION + 1;
    assert_refused(&p, "this version of Berth reads");
    p = take_apart(full_program());
    p.header.version = BERTH_PROGRAM_OLDEST - 1;
    assert_refused(&p, "this version of Berth reads");
}

// A program of 100 devices; its first workspace is also that of devices 3, 64 and 99.
static const berth_program *wide_program(void) {
    const berth_program *small = full_program();
    berth_program *wide = berth_arena_copy(arena, small, sizeof(*small));
    berth_program_device *devices = berth_arena_new_array(arena, berth_program_device, 100);
    memcpy(devices, small->devices, small->device_count * sizeof(*devices));
    for (uint32_t d = small->device_count; d < 100; ++d)
        devices[d] = (berth_program_device){.name = berth_arena_printf(arena, "wide%u", d),
                                            .kind = "cpu",
                                            .target_json = "{}",
                                            .virtual_id = d};
    berth_program_pool *pools =
        berth_arena_copy(arena, small->pools, small->pool_count * sizeof(*pools));
    uint32_t at = 0;
    while (pools[at].usage != BERTH_POOL_WORKSPACE) ++at;
    static const uint32_t sharers[] = {3, 64, 99};
    for (int i = 0; i < 3; ++i)
        if (pools[at].device != sharers[i])
            pools[at].shared_with = berth_bits_with(arena, pools[at].shared_with, sharers[i]);
    wide->devices = devices;
    wide->device_count = 100;
    wide->pools = pools;
    return wide;
}

// Devices from 64 on are in a section of their own, which who does not know it must not overlook.
Test(artifact_evolution, many_devices_share_a_pool) {
    const berth_program *program = wide_program();
    assert_ok(berth_program_verify(program));
    parts p = take_apart(program);
    cr_assert_eq(p.sections[find(&p, BERTH_SECTION_SHARERS)].kind, BERTH_SECTION_SHARERS,
                 "not optional");
    assert_reads_as(&p, program);
    p = take_apart(full_program());
    for (uint32_t i = 0; i < p.header.section_count; ++i)
        cr_expect_neq(p.sections[i].kind & ~BERTH_SECTION_OPTIONAL, BERTH_SECTION_SHARERS);
}

Test(artifact_evolution, sharers_are_checked) {
    static const struct {
        berth_file_sharer records[3];
        const char *why;
    } cases[] = {
        {{{0, 64}, {0, 64}, {0, 99}}, "sharers[1]: device 64 in pool 0, out of order"},
        {{{0, 99}, {0, 64}, {0, 98}}, "sharers[1]: device 64 in pool 0, out of order"},
        {{{0, 63}, {0, 64}, {0, 98}}, "sharers[0]: device 63"},
        {{{0, 64}, {0, 65}, {0, 100}}, "sharers[2]: device 100 in pool 0"},
        {{{1, 64}, {0, 65}, {0, 99}}, "sharers[1]: device 65 in pool 0"},
        {{{0, 64}, {0, 65}, {1000, 65}}, "sharers[2]: device 65 in pool 1000"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        parts p = take_apart(wide_program());
        uint32_t at = find(&p, BERTH_SECTION_SHARERS);
        p.contents[at] = (const uint8_t *)cases[i].records;
        p.sections[at].size_bytes = sizeof(cases[i].records);
        p.sections[at].record_count = 3;
        assert_refused(&p, cases[i].why);
    }
}

Test(artifact_evolution, more_devices_than_can_be_are_refused) {
    parts p = take_apart(full_program());
    berth_file_section *section = &p.sections[find(&p, BERTH_SECTION_DEVICES)];
    uint64_t bytes = section->size_bytes / section->record_count;
    uint8_t *content = berth_arena_alloc(arena, 5000 * bytes);
    for (uint64_t i = 0; i < 5000; ++i)
        memcpy(content + i * bytes, p.contents[find(&p, BERTH_SECTION_DEVICES)], bytes);
    p.contents[find(&p, BERTH_SECTION_DEVICES)] = content;
    section->record_count = 5000;
    section->size_bytes = 5000 * bytes;
    assert_refused(&p, "devices: 5000, at most 4096 are possible");
}

// Sections out of order, or twice.
Test(artifact_evolution, the_table_has_one_order) {
    parts p = take_apart(full_program());
    berth_file_section first = p.sections[0];
    p.sections[0] = p.sections[1];
    p.sections[1] = first;
    assert_refused(&p, "section 1 of the program file has kind 0");
    p = take_apart(full_program());
    insert(&p, BERTH_SECTION_TEXTS, "", 1);
    assert_refused(&p, "has kind 32");
}

// What version 5 wrote is read as long as these stay.
Test(artifact_evolution, numbers_of_sections_and_sizes_of_records_stay) {
    static const struct {
        uint32_t kind, record_bytes;
    } version_5[] = {{BERTH_SECTION_PROGRAM, 32},        {BERTH_SECTION_DEVICES, 32},
                     {BERTH_SECTION_QUEUES, 8},          {BERTH_SECTION_POOLS, 44},
                     {BERTH_SECTION_CONSTANTS, 16},      {BERTH_SECTION_INPUTS, 12},
                     {BERTH_SECTION_OUTPUTS, 12},        {BERTH_SECTION_EXECUTABLES, 48},
                     {BERTH_SECTION_KERNELS, 64},        {BERTH_SECTION_STEPS, 64},
                     {BERTH_SECTION_PLACEMENTS, 32},     {BERTH_SECTION_ATTACHMENTS, 24},
                     {BERTH_SECTION_KERNEL_BINDINGS, 12}};
    for (size_t i = 0; i < sizeof(version_5) / sizeof(version_5[0]); ++i) {
        const berth_file_record_form *form = berth_artifact__record_form(version_5[i].kind);
        cr_assert_eq(berth_artifact__record_bytes(form, form->required_count),
                     version_5[i].record_bytes, "%s", form->name);
    }
}
