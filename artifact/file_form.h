// Layout of a program file, shared by the writer and the reader of this folder.
//
//   header         64 bytes: magic, version, section count, file size, checksum of header and table
//   section table  one entry per section: kind, record count, offset, size, checksum of the content
//   sections       each starts at a multiple of 128; little endian; gaps are zero
//
// A fallback is a file of the same form inside of the file. Its constants that the surrounding one has
// too are there alone. So is a program of byte code, and the images that several of these have are in the surrounding file.
//
// A section of records holds packed records of one kind, described by a table of fields below, from
// which both writer and reader work. Texts are offsets into the section of texts; lists of numbers
// are ranges of a section of numbers and, like images and constants, used in place.
//
// How the form changes (docs/program.md, Versions; tests/artifact/test_evolution.c):
// - A field that may be missing is added at the end of its table; the form's required_count stays.
//   An older reader ignores it, a newer one takes zero (a text: "") where a file does not have it.
// - A section that may be missing gets a number of its own and BERTH_SECTION_OPTIONAL: who does not
//   know it leaves it out.
// - Anything else, and what an older reader must not overlook, raises BERTH_PROGRAM_VERSION.
//   BERTH_PROGRAM_OLDEST is the oldest version that is still read.
// A file says the oldest version that reads it: programs without what a later one brought are
// written as before.
// Numbers of sections and places of fields are never used again for something else.
#ifndef BERTH_ARTIFACT_FILE_FORM_H_
#define BERTH_ARTIFACT_FILE_FORM_H_

#include "artifact/file.h"
#include "artifact/sign.h"
#include "base/file.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "program files are little endian and used in place"
#endif

#define BERTH_PROGRAM_MAGIC "BERTHPRG"
// 6: stores (BERTH_POOL_STORE); with them, byte code. 7: families whose checks differ. 8: images that programs of byte
// code share
#define BERTH_PROGRAM_VERSION 8u
#define BERTH_PROGRAM_WITH_CHECKS 7u
#define BERTH_PROGRAM_WITH_STORES 6u
#define BERTH_PROGRAM_OLDEST 5u
#define BERTH_PROGRAM_FILE_ALIGNMENT 128u

typedef struct berth_file_header {
    char magic[8];
    uint32_t version;
    uint32_t section_count;
    uint64_t file_size_bytes;
    uint64_t checksum;  // XXH3 of the header, with this field zero, and the section table after it
    uint64_t reserved[4];
} berth_file_header;

typedef struct berth_file_section {
    uint32_t kind;  // berth_file_section_kind, with BERTH_SECTION_OPTIONAL where it is
    uint32_t record_count;
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint64_t checksum;  // XXH3 of the content. CONSTANT_DATA: of each constant, then the gap after
                        // it, each with the hash so far as seed; checked only by
                        // berth_program_file_check. SIGNATURE: 0
} berth_file_section;

// In a file, sections are in this order. Optional ones may be missing.
typedef enum berth_file_section_kind {
    BERTH_SECTION_PROGRAM = 0,
    BERTH_SECTION_DEVICES = 1,
    BERTH_SECTION_QUEUES = 2,
    BERTH_SECTION_POOLS = 3,
    BERTH_SECTION_TENSORS = 4,
    BERTH_SECTION_CONSTANTS = 5,
    BERTH_SECTION_INPUTS = 6,
    BERTH_SECTION_OUTPUTS = 7,
    BERTH_SECTION_EXECUTABLES = 8,
    BERTH_SECTION_KERNELS = 9,
    BERTH_SECTION_STEPS = 10,
    BERTH_SECTION_KERNEL_BINDINGS = 11,  // of the first kernel, then of the second, ...
    BERTH_SECTION_PLACEMENTS = 12,       // optional
    BERTH_SECTION_ATTACHMENTS = 13,      // optional
    // Where pools are shared with devices from number 64 on. Files may lack it, but who does not know it
    // must refuse the file: it is not marked BERTH_SECTION_OPTIONAL.
    BERTH_SECTION_SHARERS = 14,
    // Byte code, and what it runs (artifact/vm.h): of programs of the executor "vm", which have all of
    // these that have records. As with sharers, who does not know them must refuse the file.
    BERTH_SECTION_VM_CODE = 15,
    BERTH_SECTION_VM_FUNCTIONS = 16,
    BERTH_SECTION_VM_PIECES = 17,  // segments, then host operations
    BERTH_SECTION_VM_PORTS = 18,   // inputs, then outputs
    BERTH_SECTION_VM_MESSAGES = 19,
    BERTH_SECTION_VM_TENSORS = 20,  // constants; of each variant, its inputs, then its results
    BERTH_SECTION_VM_VARIANTS = 21,
    // Optional: variants that serve more shapes than their own (artifact/family.h). Who does not know it
    // has the variants.
    BERTH_SECTION_VM_FAMILIES = 22,
    BERTH_SECTION_CHECKS = 23,      // optional: who does not know it takes all indices
    BERTH_SECTION_RECORD_KINDS,     // those before it hold records
    BERTH_SECTION_TEXTS = 32,       // NUL-terminated texts
    BERTH_SECTION_NUMBERS_32 = 33,  // bindings, waits
    BERTH_SECTION_NUMBERS_64 = 34,  // dispatch constants
    BERTH_SECTION_IMAGES = 35,      // code, and content of attachments
    // Programs of variants, and
    BERTH_SECTION_VM_PROGRAMS = 60,
    // optional: fallbacks. Files in a row, each at a multiple of 128; gaps between them are zero. Those who know it
    // check the sums of each, not that of all: their constants stay unread when a file is opened.
    BERTH_SECTION_FALLBACKS = 61,
    BERTH_SECTION_CONSTANT_DATA = 62,  // content of constant tensors
    BERTH_SECTION_SIGNATURE = 63,      // optional; a berth_file_signature of all before it
    BERTH_SECTION_KINDS = 64,
} berth_file_section_kind;
#define BERTH_SECTION_OPTIONAL 0x80000000u
#define BERTH_IMAGE_SURROUNDING                                                                    \
    (UINT64_C(1) << 63)  // in an offset: into the surrounding file's IMAGES

typedef enum berth_field_type {
    BERTH_FIELD_TEXT,   // const char *         as u64 offset into TEXTS
    BERTH_FIELD_U32,    // uint32_t, int, enum  as u32; `count` of them in a row
    BERTH_FIELD_64,     // 64-bit integer or double, `count` of them in a row
    BERTH_FIELD_BOOL,   // bool                 as u32
    BERTH_FIELD_IMAGE,  // const void *         as u64 offset into IMAGES, of the surrounding file
                        // with BERTH_IMAGE_SURROUNDING; the size is a field of
                        // its own
} berth_field_type;

typedef struct berth_file_field {
    uint8_t type;
    uint8_t count;
    uint16_t offset_bytes;  // in the record's struct
} berth_file_field;

typedef struct berth_file_record_form {
    const char *name;
    const berth_file_field *fields;
    uint32_t field_count;
    uint32_t required_count;  // of the first fields: every file has them
    uint32_t struct_bytes;    // of a record in memory
} berth_file_record_form;

// Steps and constants need more than their struct holds; in the file they are:
typedef struct berth_file_step {
    uint32_t kind, queue, kernel;
    uint32_t binding_count, wait_count, constant_count;
    uint64_t bindings, waits, constants;  // index of the first number in its section
    const char *name;
    const char *op;
} berth_file_step;
typedef struct berth_file_constant {
    uint32_t tensor;
    uint32_t surrounding;   // 1: in a fallback, a constant of the surrounding file; else 0
    uint64_t offset_bytes;  // in CONSTANT_DATA, of the surrounding file then
} berth_file_constant;
// A device from 64 on with which a pool is shared; by pool, then by device.
typedef struct berth_file_sharer {
    uint32_t pool, device;
} berth_file_sharer;
typedef struct berth_file_vm_code {
    uint32_t segment_count, constant_count, input_count;  // the first of pieces, tensors, ports
} berth_file_vm_code;
typedef struct berth_file_vm_function {
    const char *name;
    uint64_t code;  // index of the first word in NUMBERS_32
    uint32_t code_count, register_count, parameter_count, result_count;
} berth_file_vm_function;
typedef struct berth_file_vm_message {
    const char *text;
} berth_file_vm_message;
typedef struct berth_file_vm_tensor {
    uint32_t dtype;
    int rank;
    int64_t dims[BERTH_MAX_RANK];
    uint32_t constant;  // the program's constant that has its data, + 1; 0: it has none
} berth_file_vm_tensor;
typedef struct berth_file_vm_variant {
    uint32_t piece;
    uint32_t program;  // of VM_PROGRAMS, + 1; 0: it has results
} berth_file_vm_variant;
typedef struct berth_file_vm_family {
    uint32_t variant;
    uint32_t word_count;
    uint64_t words;  // index of the first in NUMBERS_64
} berth_file_vm_family;
typedef struct berth_file_signature {
    uint8_t public_key[32];
    uint8_t signature[64];
} berth_file_signature;
// The singular facts of a program.
typedef struct berth_file_program {
    const char *name;
    const char *target_json;
    const char *executor;
    double predicted_ns;
} berth_file_program;

// NULL where sections of the kind hold no records, or there is no such kind.
const berth_file_record_form *berth_artifact__record_form(uint32_t kind);

// Whether this version knows the kind (without BERTH_SECTION_OPTIONAL), and whether files may lack it.
bool berth_artifact__section_known(uint32_t kind, bool *out_optional);
// Whether who does not know the kind may leave it out: it is written with BERTH_SECTION_OPTIONAL.
bool berth_artifact__section_ignorable(uint32_t kind);

uint32_t
berth_artifact__field_bytes(const berth_file_field *field);  // in the file, all `count` of it
uint32_t berth_artifact__record_bytes(const berth_file_record_form *form, uint32_t field_count);
uint64_t
berth_artifact__padded(uint64_t size_bytes);  // up to the next multiple of the file's alignment
// `sections`: header->section_count of them.
uint64_t berth_artifact__header_checksum(const berth_file_header *header,
                                         const berth_file_section *sections);

// Signs what the parts hold, one after another (sign.c).
BERTH_MUST_USE berth_status berth_artifact__sign(const berth_file_part *parts, size_t count,
                                                 const berth_secret_key *key,
                                                 berth_file_signature *out_signature);

// A tensor of byte code, whose data are a constant of the program. The data are checked to be as large as the
// shape says; that the shape is one, by the verifier.
BERTH_MUST_USE berth_status berth_artifact__read_tensor(const berth_program *program,
                                                        const berth_file_vm_tensor *in,
                                                        berth_tensor *out);

// berth_program_parse without looking at checksums: what a fuzzer needs to get past them.
BERTH_MUST_USE berth_status berth_artifact__parse(berth_arena *arena, const void *data,
                                                  size_t size_bytes, bool check_sums,
                                                  const berth_program **out_program);

// berth_program_parse within limits, of a file called `name` in messages.
BERTH_MUST_USE berth_status berth_artifact__parse_limited(berth_arena *arena, const void *data,
                                                          size_t size_bytes, const char *name,
                                                          const berth_limits *limits,
                                                          const berth_program **out_program);
// berth_program_read, which also gives the mapping.
BERTH_MUST_USE berth_status berth_artifact__read_mapped(berth_arena *arena, const char *path,
                                                        const berth_limits *limits,
                                                        berth_mapping *out_mapping,
                                                        const berth_program **out_program);

#endif  // BERTH_ARTIFACT_FILE_FORM_H_
