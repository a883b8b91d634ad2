// The example and what builds it.
#include "compiler/bare/printer.h"
#include "compiler/codegen/codegen.h"

static void add_arrays(const berth_bare_printer *p, bool outputs, berth_strbuf *out) {
    const berth_program_io *list = outputs ? p->program->outputs : p->program->inputs;
    uint32_t count = outputs ? p->program->output_count : p->program->input_count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &p->program->tensors[list[i].tensor];
        unsigned long long elements = berth_bare__elements(tensor);
        berth_strbuf_addf(out, "static %s %s_%u[%llu];\n", berth_codegen_c_type(tensor->dtype),
                          outputs ? "output" : "input", i, elements ? elements : 1);
    }
}

static void add_transfers(const berth_bare_printer *p, bool outputs, berth_strbuf *out) {
    const berth_program_io *list = outputs ? p->program->outputs : p->program->inputs;
    uint32_t count = outputs ? p->program->output_count : p->program->input_count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &p->program->tensors[list[i].tensor];
        unsigned long long elements = berth_bare__elements(tensor);
        if (elements)
            berth_strbuf_addf(out, "    if (f%s(%s_%u, %u, %llu, std%s) != %llu) return 1;\n",
                              outputs ? "write" : "read", outputs ? "output" : "input", i,
                              (unsigned)berth_dtype_size_bytes(tensor->dtype), elements,
                              outputs ? "out" : "in", elements);
    }
}

static void add_pointers(const berth_bare_printer *p, bool outputs, berth_strbuf *out) {
    uint32_t count = outputs ? p->program->output_count : p->program->input_count;
    const char *what = outputs ? "output" : "input";
    berth_strbuf_addf(out, "    %s%s_%ss %ss = {", outputs ? "" : "const ", p->name, what, what);
    for (uint32_t i = 0; i < count; ++i) berth_strbuf_addf(out, "%s%s_%u", i ? ", " : "", what, i);
    berth_strbuf_add(out, count ? "};\n" : "0};\n");
}

// A file stands for the storage of a board.
static void add_store(const berth_bare_printer *p, berth_strbuf *out) {
    if (!p->store_bytes) return;
    berth_strbuf_addf(
        out,
        "/* On a board: a read of its storage, to where %s_store.bin was written. */\n"
        "int %s_read_store(void *to, uint32_t offset, uint32_t bytes) {\n"
        "    static FILE *store;\n"
        "    if (!store) store = fopen(\"%s_store.bin\", \"rb\");\n"
        "    return !store || fseek(store, (long)offset, SEEK_SET) || fread(to, 1, bytes, store) "
        "!= bytes;\n"
        "}\n\n",
        p->name, p->name, p->name);
}

const char *berth_bare__example(const berth_bare_printer *p) {
    berth_strbuf out = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&out,
                      "/* Example: reads the inputs from stdin one after another, as the bytes of "
                      "their elements, runs the\n   model and writes the outputs to stdout the "
                      "same way. */\n#include <stdio.h>\n\n#include \"%s.h\"\n\n",
                      p->name);
    add_arrays(p, false, &out);
    add_arrays(p, true, &out);
    berth_strbuf_add(&out, "\n");
    add_store(p, &out);
    berth_strbuf_add(&out, "int main(void) {\n");
    add_pointers(p, false, &out);
    add_pointers(p, true, &out);
    add_transfers(p, false, &out);
    berth_strbuf_addf(&out, "    if (%s_run(&inputs, &outputs)) return 1;\n", p->name);
    add_transfers(p, true, &out);
    berth_strbuf_add(&out, "    return fflush(stdout) ? 1 : 0;\n}\n");
    return berth_strbuf_text(&out);
}

const char *berth_bare__makefile(const berth_bare_printer *p) {
    return berth_arena_printf(
        p->arena,
        "# make CC=arm-none-eabi-gcc CFLAGS='-Os -mcpu=cortex-m4 ...' lib%s.a\n"
        "CFLAGS ?= -O2\n"
        "OBJECTS = %s.o %s_weights.o\n\n"
        "all: example\n\n"
        "lib%s.a: $(OBJECTS)\n\t$(AR) rcs $@ $(OBJECTS)\n\n"
        "example: main.o lib%s.a\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ main.o lib%s.a -lm\n\n"
        "%%.o: %%.c\n\t$(CC) -std=c99 $(CFLAGS) -c -o $@ $<\n\n"
        "$(OBJECTS) main.o: %s.h %s_weights.h\n\n"
        "clean:\n\trm -f example lib%s.a main.o $(OBJECTS)\n\n"
        ".PHONY: all clean\n",
        p->name, p->name, p->name, p->name, p->name, p->name, p->name, p->name, p->name);
}

const char *berth_bare__cmake(const berth_bare_printer *p) {
    const char *store = "";
    if (p->store_bytes)
        store = berth_arena_printf(
            p->arena, "  configure_file(%s_store.bin %s_store.bin COPYONLY)\n", p->name, p->name);
    return berth_arena_printf(
        p->arena,
        "cmake_minimum_required(VERSION 3.10)\n"
        "project(%s C)\n\n"
        "add_library(%s STATIC %s.c %s_weights.c)\n"
        "set_target_properties(%s PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)\n"
        "target_include_directories(%s PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n"
        "target_link_libraries(%s PUBLIC -lm)\n\n"
        "option(%s_EXAMPLE \"Build the example\" ON)\n"
        "if(%s_EXAMPLE)\n"
        "  add_executable(%s_example main.c)\n"
        "  target_link_libraries(%s_example PRIVATE %s)\n"
        "%s"
        "endif()\n",
        p->name, p->name, p->name, p->name, p->name, p->name, p->name, p->upper, p->upper, p->name,
        p->name, p->name, store);
}
