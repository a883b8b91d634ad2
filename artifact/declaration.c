#include "artifact/program.h"
#include "base/str.h"

const char *berth_kernel_declaration(berth_arena *arena, const berth_program_kernel *kernel) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text, "groups %u %u %u of %u %u %u, scratch %u, constants %u, buffers",
                      kernel->groups[0], kernel->groups[1], kernel->groups[2],
                      kernel->group_size[0], kernel->group_size[1], kernel->group_size[2],
                      kernel->scratch_bytes, kernel->constant_count);
    for (uint32_t i = 0; i < kernel->binding_count; ++i) {
        const berth_kernel_binding *binding = &kernel->bindings[i];
        berth_strbuf_addf(&text, " %llu%s%s%s", (unsigned long long)binding->size_bytes,
                          binding->access & BERTH_ACCESS_READ ? "r" : "",
                          binding->access & BERTH_ACCESS_WRITE ? "w" : "",
                          binding->access & BERTH_ACCESS_ALIAS ? "a" : "");
    }
    return berth_strbuf_text(&text);
}
