// Fuzzes the JSON form of modules. What is read must be written, read back as an equal module, and
// written as the same bytes; what verifies has a text form, too.
#include "tests/fuzz/ir_forms.h"

#include <string.h>

#include "ir/json.h"
#include "ir/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static berth_status print(void *user) {
    printing *p = user;
    return berth_module_to_text(p->module, NULL, &p->out);
}

static void check_text(berth_module *module, berth_arena *arena) {
    printing text = {module, berth_strbuf_make(arena)};
    berth_module *again = NULL;
    check_status(berth_arena_try(arena, print, &text), "print");
    check_status(
        berth_module_parse(arena, berth_strbuf_text(&text.out), text.out.length, "printed", &again),
        "parse what was printed");
    check_equal(module, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 65536) return 0;
    berth_arena *arena = NULL;
    check(!berth_arena_create(berth_allocator_system(), &arena), "out of memory");
    berth_module *module = NULL;
    berth_status status =
        berth_module_from_json_text(arena, (const char *)data, size, "fuzz", NULL, &module);
    check(!status == (module != NULL), "a status and a module, or neither");
    if (module && verifies(module)) {
        const char *first = NULL;
        const char *second = NULL;
        berth_module *again = NULL;
        check_status(berth_module_to_json_text(arena, module, 0, &first), "write");
        check_status(
            berth_module_from_json_text(arena, first, strlen(first), "written", NULL, &again),
            "read what was written");
        check_equal(module, again);
        check_status(berth_module_to_json_text(arena, again, 0, &second), "write again");
        check(strcmp(first, second) == 0, "written differently");
        check_text(module, arena);
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
