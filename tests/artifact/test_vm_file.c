// Programs of byte code in the file form: what is read back, constants once, and what is refused.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifact/family.h"
#include "artifact/file_form.h"
#include "artifact/vm.h"
#include "base/file.h"
#include "tests/artifact/random_program.h"
#include "tests/artifact/vm_program.h"
#include "tests/check.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(artifact_vm_file, .init = setup, .fini = teardown);

static uint8_t *to_file(const berth_program *p, size_t *out_size_bytes) {
    const void *data = NULL;
    assert_ok(berth_program_to_memory(p, arena, &data, out_size_bytes));
    uint8_t *aligned =
        berth_arena_alloc_aligned(arena, *out_size_bytes, BERTH_PROGRAM_FILE_ALIGNMENT);
    return memcpy(aligned, data, *out_size_bytes);
}

static const berth_program *back_from(const berth_program *p) {
    size_t size_bytes = 0;
    const berth_program *back = NULL;
    uint8_t *data = to_file(p, &size_bytes);
    assert_ok(berth_program_parse(arena, data, size_bytes, &back));
    return back;
}

static void assert_same_tensors(const berth_tensor *a, const berth_tensor *b, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        cr_assert_eq(a[i].dtype, b[i].dtype);
        cr_assert(berth_tensor_same_shape(&a[i], &b[i]));
        cr_assert_eq(a[i].data == NULL, b[i].data == NULL);
        if (a[i].data) cr_assert_arr_eq(a[i].data, b[i].data, berth_tensor_size_bytes(&a[i]));
    }
}

static const char *code_text(const berth_program *p) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_vm_print(p->vm->code, &text);
    return berth_strbuf_text(&text);
}

Test(artifact_vm_file, comes_back_as_it_was) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        const berth_program *p = vm_program(arena, seed), *back = back_from(p);
        const berth_vm_body *vm = p->vm, *read = back->vm;
        cr_assert_str_eq(back->executor, "vm");
        cr_assert_str_eq(code_text(p), code_text(back));
        cr_assert_eq(read->variant_count, vm->variant_count);
        assert_same_tensors(vm->code->constants, read->code->constants, vm->code->constant_count);
        cr_assert_str_eq(read->code->inputs[0].type, vm->code->inputs[0].type);
        cr_assert_eq(read->code->inputs[0].dims[0], -1);
        cr_assert(read->code->host_operations[0].is_arithmetic);
        for (uint32_t i = 0; i < vm->variant_count; ++i) {
            const berth_vm_variant *a = &vm->variants[i], *b = &read->variants[i];
            const berth_vm_piece *piece = berth_vm_piece_at(vm->code, a->piece);
            cr_assert_eq(a->piece, b->piece);
            assert_same_tensors(a->inputs, b->inputs, piece->input_count);
            cr_assert_eq(a->program == NULL, b->program == NULL);
            if (!a->program) assert_same_tensors(a->results, b->results, piece->output_count);
            const char *difference = a->program ? program_difference(a->program, b->program) : NULL;
            cr_assert_null(difference, "%s differs", difference);
        }
    }
}

// Both segments' programs have the same constants: their bytes are those of the whole.
Test(artifact_vm_file, constants_are_there_once) {
    const berth_program *p = vm_program(arena, 3), *back = back_from(p);
    const berth_program *first = back->vm->variants[0].program;
    const berth_program *second = back->vm->variants[1].program;
    cr_assert_gt(first->constant_count, 0);
    for (uint32_t i = 0; i < first->constant_count; ++i)
        if (first->tensors[first->constants[i].tensor].size_bytes)
            cr_assert_eq(first->constants[i].data, second->constants[i].data);
    cr_assert_eq(back->constant_count, p->constant_count);
}

static uint32_t version_of(const uint8_t *file) {
    berth_file_header header;
    memcpy(&header, file, sizeof(header));
    return header.version;
}

// Both segments' programs are one: their code is in the file around them, and nowhere else.
Test(artifact_vm_file, images_are_there_once) {
    berth_program *p = vm_program(arena, 3);
    const berth_program *written = p->vm->variants[0].program, *back = back_from(p);
    const berth_program *first = back->vm->variants[0].program;
    const berth_program *second = back->vm->variants[1].program;
    cr_assert_gt(first->executable_count, 0);
    for (uint32_t i = 0; i < first->executable_count; ++i) {
        cr_assert_arr_eq(first->executables[i].data, written->executables[i].data,
                         (size_t)written->executables[i].size_bytes);
        cr_assert_eq(first->executables[i].data, second->executables[i].data);
    }
    size_t size_bytes = 0;
    uint8_t *data = to_file(p, &size_bytes);
    cr_assert_eq(version_of(data), 8, "readers before it would take other bytes for code");
    // The first program's file alone: what is around it is not there.
    size_t inner = 1;
    while (memcmp(data + inner, BERTH_PROGRAM_MAGIC, 8) != 0) inner++;
    berth_file_header header;
    memcpy(&header, data + inner, sizeof(header));
    assert_fails(berth_program_parse(arena, data + inner, (size_t)header.file_size_bytes, &back),
                 BERTH_INVALID_ARGUMENT, "outside of the images");
    // One program shares nothing, and older readers read it.
    berth_vm_body body = *p->vm;
    berth_vm_variant variants[2] = {body.variants[0], body.variants[2]};
    body.variants = variants;
    body.variant_count = 2;
    p->vm = &body;
    cr_assert_eq(version_of(to_file(p, &size_bytes)), 6);
}

Test(artifact_vm_file, every_damaged_byte_is_found) {
    size_t size_bytes = 0;
    uint8_t *data = to_file(vm_program(arena, 3), &size_bytes);
    char path[] = "/tmp/berth-vm-file-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, data, size_bytes, 0), (ssize_t)size_bytes);
    assert_ok(berth_program_file_check(berth_allocator_system(), path, NULL));
    for (size_t i = 0; i < size_bytes; i += 1 + i % 3) {
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

// Without sums in the way: any changed byte gives an error or a program that verifies.
Test(artifact_vm_file, hostile_bytes_are_refused_or_harmless) {
    size_t size_bytes = 0;
    uint8_t *data = to_file(vm_program(arena, 3), &size_bytes);
    uint32_t refused = 0;
    for (size_t i = 0; i < size_bytes; ++i)
        for (int bit = 0; bit < 8; bit += 7) {
            berth_arena *own = NULL;
            const berth_program *back = NULL;
            assert_ok(berth_arena_create(berth_allocator_system(), &own));
            data[i] ^= (uint8_t)(1u << bit);
            berth_status status = berth_artifact__parse(own, data, size_bytes, false, &back);
            if (!status) assert_ok(berth_program_verify(back));
            refused += status != NULL;
            berth_status_free(status);
            data[i] ^= (uint8_t)(1u << bit);
            berth_arena_destroy(own);
        }
    cr_assert_gt(refused, size_bytes / 8);
}

// An older reader does not know the sections, and none of them may be left out.
Test(artifact_vm_file, older_readers_refuse_it) {
    size_t size_bytes = 0;
    uint8_t *data = to_file(vm_program(arena, 3), &size_bytes);
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    uint32_t found = 0;
    for (uint32_t i = 0; i < header.section_count; ++i) {
        berth_file_section section;
        memcpy(&section, data + sizeof(header) + i * sizeof(section), sizeof(section));
        bool vm =
            (section.kind >= BERTH_SECTION_VM_CODE && section.kind < BERTH_SECTION_VM_FAMILIES) ||
            section.kind == BERTH_SECTION_VM_PROGRAMS;
        found += vm;
        cr_assert(!vm || !(section.kind & BERTH_SECTION_OPTIONAL));
    }
    cr_assert_geq(found, 6);
}

static void assert_refused(const berth_program *p, const char *why) {
    assert_fails(berth_program_verify(p), BERTH_INVALID_ARGUMENT, why);
}

Test(artifact_vm_file, rules) {
    const berth_program *p = vm_program(arena, 3);
    assert_ok(berth_program_verify(p));
    berth_program changed = *p;
    berth_vm_body body = *p->vm;
    berth_vm_variant variants[3];
    memcpy(variants, body.variants, sizeof(variants));
    body.variants = variants;
    changed.vm = &body;
    variants[0].piece = 2;
    assert_refused(&changed, "variants[0]: piece 2 of 2");
    variants[0] = p->vm->variants[0];
    variants[0].program = NULL;
    assert_refused(&changed, "variants[0]: it has no program, and no results");
    variants[0] = p->vm->variants[0];
    berth_tensor input = variants[0].inputs[0];
    input.rank = 0;
    variants[0].inputs = &input;
    assert_refused(&changed, "is of another type");
    variants[0] = p->vm->variants[0];
    variants[0].program = p;
    assert_refused(&changed, "variants[0]: it has byte code of its own");
    changed = *p;
    changed.executor = "graph";
    assert_refused(&changed, "a program of executor \"graph\" with byte code");
    changed = *p;
    changed.vm = NULL;
    assert_refused(&changed, "a program of executor \"vm\" without byte code");
    changed = *p;
    const berth_program *list[] = {p->vm->variants[0].program};
    changed.fallbacks = list;
    changed.fallback_count = 1;
    assert_refused(&changed, "has steps, inputs, outputs, checks or fallbacks of its own");
}

// Data of byte code that the program's constants do not have is not lost silently.
Test(artifact_vm_file, data_must_be_among_the_constants) {
    berth_program changed = *vm_program(arena, 3);
    const void *data = NULL;
    size_t size_bytes = 0;
    changed.constant_count--;
    assert_fails(berth_program_to_memory(&changed, arena, &data, &size_bytes),
                 BERTH_INVALID_ARGUMENT, "none of the program's constants");
}

// ---- families -----------------------------------------------------------------------------------

// Results of "n2" for any number from 3 to 9 but 5: that number, doubled and one more.
enum { family_words = 2 + 3 + 5 * 3 + 2 * 2 + 1 };
static void add_family(berth_program *p, berth_vm_body *body, berth_vm_family *family,
                       int64_t *words) {
    const berth_vm_family_header header = {1, 5, 2, 1};
    const berth_vm_variable variable = {0, BERTH_FAMILY_ELEMENTS, 3, 9};
    const berth_vm_quantity quantities[5] = {{.kind = BERTH_QUANTITY_VARIABLE},
                                             {.kind = BERTH_QUANTITY_NUMBER, .number = 2},
                                             {.kind = BERTH_QUANTITY_PRODUCT, .a = 0, .b = 1},
                                             {.kind = BERTH_QUANTITY_QUOTIENT, .a = 1, .number = 2},
                                             {.kind = BERTH_QUANTITY_SUM, .a = 2, .b = 3}};
    const berth_vm_patch patches[2] = {{BERTH_PATCH_INPUT, 0, BERTH_FAMILY_ELEMENTS, 0},
                                       {BERTH_PATCH_RESULT, 0, BERTH_FAMILY_ELEMENTS, 4}};
    const uint64_t members = 0x7f & ~(1u << 2);
    memcpy(words, &header, sizeof(header));
    memcpy(words + 2, &variable, sizeof(variable));
    memcpy(words + 5, quantities, sizeof(quantities));
    memcpy(words + 20, patches, sizeof(patches));
    memcpy(words + 24, &members, sizeof(members));
    *body = *p->vm;
    *family = (berth_vm_family){.variant = 2, .words = words, .word_count = family_words};
    assert_ok(berth_vm_family_read(family));
    body->families = family;
    body->family_count = 1;
    p->vm = body;
}

static const berth_program *family_program(int64_t *words) {
    berth_program *p = vm_program(arena, 3);
    berth_vm_body *body = berth_arena_new(arena, berth_vm_body);
    berth_vm_family *family = berth_arena_new(arena, berth_vm_family);
    add_family(p, body, family, words);
    return p;
}

Test(artifact_vm_file, a_family_serves_its_members_and_no_others) {
    int64_t words[family_words], values[BERTH_FAMILY_VARIABLES];
    const berth_program *back = back_from(family_program(words));
    cr_assert_eq(back->vm->family_count, 1);
    const berth_vm_family *family = &back->vm->families[0];
    berth_tensor inputs[2] = {berth_tensor_create(arena, BERTH_DTYPE_I64, 0, NULL)};
    for (int64_t n = 0; n < 12; ++n) {
        berth_vm_variant made;
        berth_tensor_set_i64(&inputs[0], 0, n);
        bool is_member = n >= 3 && n <= 9 && n != 5;
        cr_assert_eq(berth_vm_family_holds(family, inputs, values), is_member, "%d", (int)n);
        if (!is_member) continue;
        assert_ok(berth_vm_family_member(back->vm, family, values, arena, &made));
        cr_assert_eq(berth_tensor_get_i64(&made.inputs[0], 0), n);
        cr_assert_eq(berth_tensor_get_i64(&made.results[0], 0), 2 * n + 1);
    }
}

// A newer file's families are in a section that an older reader leaves out.
Test(artifact_vm_file, older_readers_leave_families_out) {
    int64_t words[family_words];
    size_t size_bytes = 0;
    uint8_t *data = to_file(family_program(words), &size_bytes);
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    uint32_t found = 0;
    for (uint32_t i = 0; i < header.section_count; ++i) {
        berth_file_section section;
        memcpy(&section, data + sizeof(header) + i * sizeof(section), sizeof(section));
        found += section.kind == (BERTH_SECTION_VM_FAMILIES | BERTH_SECTION_OPTIONAL);
    }
    cr_assert_eq(found, 1);
}

// Every member of what an attacker makes of the words is refused, or is verified.
Test(artifact_vm_file, hostile_families_are_refused_or_harmless) {
    int64_t words[family_words];
    const berth_program *p = family_program(words);
    uint32_t refused = 0;
    for (size_t bit = 0; bit < sizeof(words) * 8; ++bit) {
        berth_arena *own = NULL;
        berth_vm_family family = {.variant = 2, .words = words, .word_count = family_words};
        words[bit / 64] ^= (int64_t)((uint64_t)1 << bit % 64);
        assert_ok(berth_arena_create(berth_allocator_system(), &own));
        berth_status status = berth_vm_family_read(&family);
        if (!status) status = berth_vm_family_verify(p->vm, &family);
        for (int64_t n = 0; !status && n < 12; ++n) {
            int64_t values[BERTH_FAMILY_VARIABLES];
            berth_vm_variant made;
            berth_tensor inputs[2] = {berth_tensor_create(own, BERTH_DTYPE_I64, 0, NULL)};
            berth_tensor_set_i64(&inputs[0], 0, n);
            if (!berth_vm_family_holds(&family, inputs, values)) continue;
            status = berth_vm_family_member(p->vm, &family, values, own, &made);
        }
        refused += status != NULL;
        berth_status_free(status);
        words[bit / 64] ^= (int64_t)((uint64_t)1 << bit % 64);
        berth_arena_destroy(own);
    }
    cr_assert_gt(refused, family_words);
}

Test(artifact_vm_file, family_rules) {
    int64_t words[family_words];
    const berth_program *p = family_program(words);
    const berth_vm_family held = p->vm->families[0];
    berth_vm_family changed = held;
    assert_ok(berth_program_verify(p));
    changed.variant = 3;
    assert_fails(berth_vm_family_verify(p->vm, &changed), BERTH_INVALID_ARGUMENT, "variant 3");
    changed = held;
    changed.word_count--;
    assert_fails(berth_vm_family_read(&changed), BERTH_INVALID_ARGUMENT, "another length");
    berth_vm_patch patch = held.patches[1];
    const berth_vm_patch wrong[] = {{BERTH_PATCH_RESULT, 1, 0, 0},
                                    {BERTH_PATCH_RESULT, 0, 0, 0},
                                    {BERTH_PATCH_STEP_CONSTANT, 0, 0, 0},
                                    {BERTH_PATCH_KINDS, 0, 0, 0},
                                    {BERTH_PATCH_RESULT, 0, BERTH_FAMILY_ELEMENTS, 5}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        memcpy(words + 22, &wrong[i], sizeof(patch));
        assert_fails(berth_vm_family_verify(p->vm, &held), BERTH_INVALID_ARGUMENT,
                     "patches[1] is of nothing");
    }
    memcpy(words + 22, &patch, sizeof(patch));
    words[5] = BERTH_QUANTITY_KINDS;
    assert_fails(berth_vm_family_verify(p->vm, &held), BERTH_INVALID_ARGUMENT, "quantities[0]");
}
