// The frame of a program file, and its sections of records and numbers.
#include <string.h>

#include "artifact/file_reader.h"
#include "base/hash.h"

#define BAD BERTH_ARTIFACT__BAD

// ---- frame ----

static berth_status read_header(berth_file_reader *r) {
    berth_file_header header;
    if (r->size_bytes < sizeof(header) ||
        memcmp(r->data, BERTH_PROGRAM_MAGIC, sizeof(header.magic)) != 0)
        return BAD("not a Berth program file");
    memcpy(&header, r->data, sizeof(header));
    if (header.version < BERTH_PROGRAM_OLDEST || header.version > BERTH_PROGRAM_VERSION)
        return BAD(
            "the program file has version %u; this version of Berth reads %u to %u: build it again",
            header.version, BERTH_PROGRAM_OLDEST, BERTH_PROGRAM_VERSION);
    if (header.section_count > BERTH_SECTION_KINDS)
        return BAD("the program file has %u sections; at most %d", header.section_count,
                   BERTH_SECTION_KINDS);
    size_t table_bytes = header.section_count * sizeof(*r->table);
    if (header.file_size_bytes != r->size_bytes || r->size_bytes < sizeof(header) + table_bytes)
        return BAD("the program file is truncated: %zu bytes of %llu", r->size_bytes,
                   (unsigned long long)header.file_size_bytes);
    memcpy(r->table, r->data + sizeof(header), table_bytes);
    r->section_count = header.section_count;
    if (r->check_sums && berth_artifact__header_checksum(&header, r->table) != header.checksum)
        return BAD("the program file is damaged: the checksum of its header differs");
    return BERTH_OK;
}

bool berth_artifact__all_zero(const uint8_t *data, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; ++i)
        if (data[i]) return false;
    return true;
}

// A section that this version knows, or may leave out.
static berth_status take_section(berth_file_reader *r, const berth_file_section *section) {
    uint32_t kind = section->kind & ~BERTH_SECTION_OPTIONAL;
    bool optional = false;
    if (!berth_artifact__section_known(kind, &optional)) {
        if (section->kind & BERTH_SECTION_OPTIONAL) return BERTH_OK;
        return BAD("the program file has a section of kind %u, which a newer Berth knows: build it "
                   "again, or take that Berth",
                   kind);
    }
    if (kind == BERTH_SECTION_SIGNATURE && (section->checksum != 0 || section->record_count != 0 ||
                                            section->size_bytes != sizeof(berth_file_signature)))
        return BAD("the signature of the program file is none");
    if (kind == BERTH_SECTION_FALLBACKS && r->surrounding)
        return BAD("a fallback has fallbacks of its own");
    if (kind == BERTH_SECTION_VM_PROGRAMS && r->surrounding)
        return BAD("a program of byte code has byte code of its own");
    r->sections[kind] = *section;
    return BERTH_OK;
}

static berth_status read_section(berth_file_reader *r, uint32_t i, uint64_t *end,
                                 uint32_t *least_kind) {
    const berth_file_section *section = &r->table[i];
    uint32_t kind = section->kind & ~BERTH_SECTION_OPTIONAL;
    if (kind < *least_kind || kind > BERTH_SECTION_SIGNATURE)
        return BAD("section %u of the program file has kind %u", i, kind);
    *least_kind = kind + 1;
    if (section->offset_bytes != berth_artifact__padded(*end) ||
        section->offset_bytes > r->size_bytes ||
        section->size_bytes > r->size_bytes - section->offset_bytes)
        return BAD("section %u of the program file lies outside of it", i);
    if (!berth_artifact__all_zero(r->data + *end, (size_t)(section->offset_bytes - *end)))
        return BAD("the program file is damaged before section %u", i);
    *end = section->offset_bytes + section->size_bytes;
    if (r->check_sums && kind < BERTH_SECTION_VM_PROGRAMS &&
        berth_hash64(r->data + section->offset_bytes, (size_t)section->size_bytes, 0) !=
            section->checksum)
        return BAD("the program file is damaged: the checksum of section %u differs", i);
    return take_section(r, section);
}

static berth_status read_sections(berth_file_reader *r) {
    uint64_t end = sizeof(berth_file_header) + r->section_count * sizeof(*r->table);
    uint32_t least_kind = 0;
    for (uint32_t i = 0; i < r->section_count; ++i)
        BERTH_TRY(read_section(r, i, &end, &least_kind));
    if (end != r->size_bytes)
        return BAD("the program file has %zu bytes behind its end", r->size_bytes - (size_t)end);
    for (uint32_t kind = 0; kind < BERTH_SECTION_KINDS; ++kind) {
        bool optional = false;
        if (berth_artifact__section_known(kind, &optional) && !optional &&
            r->sections[kind].offset_bytes == 0)
            return BAD("the program file has no section of kind %u", kind);
    }
    return BERTH_OK;
}

berth_status berth_artifact__read_frame(berth_file_reader *r) {
    BERTH_TRY(read_header(r));
    return read_sections(r);
}

// ---- records ----

static berth_status read_text(const berth_file_reader *r, uint64_t offset, const char **out_text) {
    if (offset >= r->sections[BERTH_SECTION_TEXTS].size_bytes)
        return BAD("a text at %llu is outside of the texts", (unsigned long long)offset);
    *out_text = (const char *)berth_artifact__content(r, BERTH_SECTION_TEXTS) + offset;
    return BERTH_OK;
}

// The end is checked with the size, when the record is complete.
static berth_status read_image(const berth_file_reader *r, uint64_t offset, const void **out) {
    if (offset & BERTH_IMAGE_SURROUNDING) r = r->surrounding;
    offset &= ~BERTH_IMAGE_SURROUNDING;
    if (!r || offset > r->sections[BERTH_SECTION_IMAGES].size_bytes)
        return BAD("an image at %llu is outside of the images", (unsigned long long)offset);
    *out = (const uint8_t *)berth_artifact__content(r, BERTH_SECTION_IMAGES) + offset;
    return BERTH_OK;
}

static berth_status read_field(const berth_file_reader *r, const berth_file_field *field,
                               const uint8_t *in, uint8_t *member) {
    uint64_t offset = 0;
    uint32_t flag = 0;
    const char *text = NULL;
    const void *image = NULL;
    switch ((berth_field_type)field->type) {
    case BERTH_FIELD_TEXT:
        memcpy(&offset, in, sizeof(offset));
        BERTH_TRY(read_text(r, offset, &text));
        memcpy(member, &text, sizeof(text));
        break;
    case BERTH_FIELD_IMAGE:
        memcpy(&offset, in, sizeof(offset));
        BERTH_TRY(read_image(r, offset, &image));
        memcpy(member, &image, sizeof(image));
        break;
    case BERTH_FIELD_BOOL:
        memcpy(&flag, in, sizeof(flag));
        if (flag > 1) return BAD("a flag is %u", flag);
        *(bool *)member = flag == 1;
        break;
    case BERTH_FIELD_U32:
    case BERTH_FIELD_64: memcpy(member, in, berth_artifact__field_bytes(field)); break;
    }
    return BERTH_OK;
}

// How many fields of a record the file has, from the bytes of one: all that are known, or those that
// an older writer knew.
static berth_status known_fields(const berth_file_record_form *form, uint64_t record_bytes,
                                 uint32_t *out_count) {
    uint32_t count = form->field_count;
    while (count > form->required_count && berth_artifact__record_bytes(form, count) > record_bytes)
        --count;
    uint32_t known_bytes = berth_artifact__record_bytes(form, count);
    if (known_bytes > record_bytes || (count < form->field_count && known_bytes != record_bytes))
        return BAD("%s: records of %llu bytes", form->name, (unsigned long long)record_bytes);
    *out_count = count;
    return BERTH_OK;
}

static berth_status read_record(const berth_file_reader *r, const berth_file_record_form *form,
                                uint32_t field_count, const uint8_t *in, uint8_t *record) {
    for (uint32_t f = 0; f < form->field_count; ++f) {
        const berth_file_field *field = &form->fields[f];
        const char *none = "";
        if (f < field_count) {
            BERTH_TRY(read_field(r, field, in, record + field->offset_bytes));
            in += berth_artifact__field_bytes(field);
        } else if (field->type == BERTH_FIELD_TEXT) {
            memcpy(record + field->offset_bytes, &none, sizeof(none));
        }
    }
    return BERTH_OK;
}

berth_status berth_artifact__read_records(const berth_file_reader *r, berth_file_section_kind kind,
                                          const void **out_records, uint32_t *out_count) {
    const berth_file_record_form *form = berth_artifact__record_form(kind);
    const berth_file_section *section = &r->sections[kind];
    uint32_t count = section->record_count;
    uint64_t record_bytes = count ? section->size_bytes / count : 0;
    if (section->size_bytes != count * record_bytes)
        return BAD("%s: %u records in %llu bytes", form->name, count,
                   (unsigned long long)section->size_bytes);
    uint32_t field_count = 0;
    if (count) BERTH_TRY(known_fields(form, record_bytes, &field_count));
    if (r->watch) BERTH_TRY(berth_limit_items(r->watch, count));
    uint8_t *records = berth_arena_array(r->arena, count, form->struct_bytes);
    const uint8_t *in = berth_artifact__content(r, kind);
    for (uint32_t i = 0; i < count; ++i) {
        berth_status status = read_record(r, form, field_count, in + i * record_bytes,
                                          records + (size_t)i * form->struct_bytes);
        if (status) return berth_status_prefix(status, "%s[%u]", form->name, i);
    }
    *out_records = records;
    *out_count = count;
    return BERTH_OK;
}

berth_status berth_artifact__read_numbers(const berth_file_reader *r, berth_file_section_kind kind,
                                          size_t number_bytes, uint64_t first, uint32_t count,
                                          const void **out_numbers) {
    uint64_t total = r->sections[kind].size_bytes / number_bytes;
    if (first > total || count > total - first)
        return BAD("numbers [%llu, +%u) of %llu", (unsigned long long)first, count,
                   (unsigned long long)total);
    *out_numbers =
        count ? (const uint8_t *)berth_artifact__content(r, kind) + first * number_bytes : NULL;
    return BERTH_OK;
}
