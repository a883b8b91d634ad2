#define _GNU_SOURCE  // dl_iterate_phdr

#include "toolkit/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

typedef struct search {
    uintptr_t address;  // in the file that is looked for
    berth_hash128 *id;
    bool found;
} search;

static bool holds(const struct dl_phdr_info *info, uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= begin && address - begin < segment->p_memsz)
            return true;
    }
    return false;
}

// ELF notes (System V ABI): a header, a name and a description, each padded to the segment's alignment.
static void read_notes(search *s, const char *notes, size_t size_bytes, size_t alignment) {
    size_t at = 0;
    while (!s->found && size_bytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof(note));
        const size_t name = at + sizeof(note);
        const size_t description = (name + note.n_namesz + alignment - 1) / alignment * alignment;
        const size_t end = (description + note.n_descsz + alignment - 1) / alignment * alignment;
        if (end > size_bytes) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
            *s->id = berth_hash128_of(notes + description, note.n_descsz);
            s->found = true;
        }
        at = end;
    }
}

static int look_into(struct dl_phdr_info *info, size_t size_bytes, void *user) {
    search *s = user;
    (void)size_bytes;
    if (!holds(info, s->address)) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE)
            read_notes(s, (const char *)((uintptr_t)info->dlpi_addr + segment->p_vaddr),
                       segment->p_memsz, segment->p_align == 8 ? 8 : 4);
    }
    return 1;
}

bool berth_build_id(berth_hash128 *out_id) {
    search s = {.address = (uintptr_t)&berth_build_id, .id = out_id};
    dl_iterate_phdr(look_into, &s);
    return s.found;
}
