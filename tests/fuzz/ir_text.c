// Fuzzes the text form of modules. What parses must print, read back as an equal module, and print
// as the same bytes.
#include "tests/fuzz/ir_forms.h"

#include <string.h>

#include "ir/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static berth_status print(void *user) {
    printing *p = user;
    return berth_module_to_text(p->module, NULL, &p->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 65536) return 0;
    berth_arena *arena = NULL;
    check(!berth_arena_create(berth_allocator_system(), &arena), "out of memory");
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, (const char *)data, size, "fuzz", &module);
    check(!status == (module != NULL), "a status and a module, or neither");
    if (module && verifies(module)) {
        printing first = {module, berth_strbuf_make(arena)};
        check_status(berth_arena_try(arena, print, &first), "print");
        berth_module *again = NULL;
        check_status(berth_module_parse(arena, berth_strbuf_text(&first.out), first.out.length,
                                        "printed", &again),
                     "parse what was printed");
        check_equal(module, again);
        printing second = {again, berth_strbuf_make(arena)};
        check_status(berth_arena_try(arena, print, &second), "print again");
        check(strcmp(berth_strbuf_text(&first.out), berth_strbuf_text(&second.out)) == 0,
              "printed differently");
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
