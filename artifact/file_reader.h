// What reads a program file: the parts of the reader, inside of this folder.
#ifndef BERTH_ARTIFACT_FILE_READER_H_
#define BERTH_ARTIFACT_FILE_READER_H_

#include "artifact/file_form.h"

#define BERTH_ARTIFACT__BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct berth_file_reader {
    berth_arena *arena;
    const uint8_t *data;  // aligned to BERTH_PROGRAM_FILE_ALIGNMENT
    size_t size_bytes;
    bool check_sums;
    const berth_program_file *file;               // whose mapping `data` is; NULL = none
    const struct berth_file_reader *surrounding;  // of a fallback: the file that it is in
    const berth_program **out_program;
    berth_limit_watch *watch;                       // of records; NULL = nothing is counted
    berth_file_section table[BERTH_SECTION_KINDS];  // as it stands in the file
    uint32_t section_count;
    berth_file_section sections[BERTH_SECTION_KINDS];  // by kind; empty where there is none
} berth_file_reader;

static inline const void *berth_artifact__content(const berth_file_reader *reader,
                                                  berth_file_section_kind kind) {
    return reader->data + reader->sections[kind].offset_bytes;
}

bool berth_artifact__all_zero(const uint8_t *data, size_t size_bytes);

// The header and the table of sections: checked, with the checksums of their contents where `check_sums`
// says so.
berth_status berth_artifact__read_frame(berth_file_reader *reader);

// All records of a section, as structs of the arena.
berth_status berth_artifact__read_records(const berth_file_reader *reader,
                                          berth_file_section_kind kind, const void **out_records,
                                          uint32_t *out_count);

// A range of a section of numbers, in place; NULL when empty.
berth_status berth_artifact__read_numbers(const berth_file_reader *reader,
                                          berth_file_section_kind kind, size_t number_bytes,
                                          uint64_t first, uint32_t count, const void **out_numbers);

// The program files of a section. `what`: the section's name, for errors.
berth_status berth_artifact__read_programs(const berth_file_reader *reader,
                                           berth_file_section_kind kind, const char *what,
                                           const berth_program *const **out_programs,
                                           uint32_t *out_count);

// The byte code and what it runs, where the file has any.
berth_status berth_artifact__read_vm(const berth_file_reader *reader, berth_program *program);

#endif
