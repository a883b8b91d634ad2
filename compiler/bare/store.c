// Constants that are not in the processor's address space.
#include <string.h>

#include "compiler/bare/printer.h"

uint64_t berth_bare__store_bytes(const berth_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == BERTH_POOL_STORE) bytes = program->pools[i].size_bytes;
    return bytes;
}

berth_bare_file berth_bare__store(const berth_bare_printer *p) {
    const berth_program *program = p->program;
    char *bytes = berth_arena_alloc(p->arena, (size_t)p->store_bytes);  // zeros between constants
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[program->constants[i].tensor];
        if (program->pools[tensor->pool].usage == BERTH_POOL_STORE && tensor->size_bytes)
            memcpy(bytes + tensor->offset_bytes, program->constants[i].data, tensor->size_bytes);
    }
    return (berth_bare_file){.name = berth_arena_printf(p->arena, "%s_store.bin", p->name),
                             .text = bytes,
                             .size_bytes = (size_t)p->store_bytes};
}

void berth_bare__add_store(const berth_bare_printer *p, berth_strbuf *out) {
    if (!p->store_bytes) return;
    berth_strbuf_addf(
        out,
        "/* Constants that are not in flash: the bytes of %s_store.bin, which lie in storage of "
        "the "
        "board. The\n   application defines this function; %s_run calls it before an operation "
        "that "
        "needs some of them, in the\n   order of the operations, to have `bytes` bytes from "
        "`offset` "
        "on in `to`, which is aligned to %d bytes. It\n   returns 0, or something else when they "
        "could not be read. */\n"
        "#define %s_STORE_BYTES %llu\n"
        "int %s_read_store(void *to, uint32_t offset, uint32_t bytes);\n",
        p->name, p->name, BERTH_PLAIN_ALIGNMENT_BYTES, p->upper, (unsigned long long)p->store_bytes,
        p->name);
}
