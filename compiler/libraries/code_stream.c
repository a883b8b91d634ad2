// What calls of a GPU's libraries have in common: C that the host runs when a queue is filled (docs/external.md, cuda-host).
// The library has another file name in each of NVIDIA's versions, so that the code looks for it itself.
#include <string.h>

#include "compiler/libraries/code.h"

static const char *next(const char *text) {
    return text + strlen(text) + 1;
}

static void add_opening(const berth_library_loading *l, berth_strbuf *out) {
    berth_strbuf_add(out, "static const char *load(void) {\n"
                          "    void *(*open_file)(const char *, int) =\n"
                          "        (void *(*)(const char *, int))berth_imports[0].address;\n"
                          "    void *(*find)(void *, const char *) =\n"
                          "        (void *(*)(void *, const char *))berth_imports[1].address;\n"
                          "    void *library = 0;\n");
    for (const char *file = l->files; *file; file = next(file))
        berth_strbuf_addf(out, "    if (!library) library = open_file(\"%s\", 2); /* RTLD_NOW */\n",
                          file);
    berth_strbuf_addf(out, "    if (!library) return \"%s is not here:", l->name);
    for (const char *file = l->files; *file; file = next(file))
        berth_strbuf_addf(out, "%s %s", file == l->files ? "" : ",", file);
    berth_strbuf_add(out, "\";\n");
    for (const char *name = l->functions; *name; name = next(name))
        berth_strbuf_addf(out,
                          "    %s = (__typeof__(%s))find(library, \"%s\");\n"
                          "    if (!%s) return \"%s has no %s\";\n",
                          name, name, name, name, l->name, name);
    berth_strbuf_add(out, "    return 0;\n}\n");
}

void berth_library__add_loading(const berth_library_loading *l, berth_strbuf *out) {
    berth_strbuf_add(out, "#include <stddef.h>\n#include <stdint.h>\n");
    berth_strbuf_add(out, l->declarations);
    add_opening(l, out);
    berth_strbuf_add(out, "static const char *said(int status) {\n");
    if (l->status_text) {
        berth_strbuf_addf(out, "    return status ? %s(status) : 0;\n}\n", l->status_text);
        return;
    }
    berth_strbuf_add(out, "    switch (status) {\n    case 0: return 0;\n");
    for (const char *status = l->statuses; *status; status = next(status)) {
        int digits = (int)strcspn(status, " ");
        berth_strbuf_addf(out, "    case %.*s: return \"%s says %s%s\";\n", digits, status, l->name,
                          l->status_start, status + digits + 1);
    }
    berth_strbuf_addf(out, "    }\n    return \"%s failed\";\n}\n", l->name);
}

// Both are found there before and since glibc 2.34, which has them itself.
static const char *const loader[] = {"libdl.so.2", "dlopen", "libdl.so.2", "dlsym"};

berth_library_code berth_library__stream_code(const berth_library_use *use, const char *element,
                                              berth_strbuf *out) {
    const char *names[4] = {"a", "b"};
    uint32_t count = 2;
    if (use->bias) names[count++] = "bias";
    if (use->sum) names[count++] = "sum";
    for (int i = 0; i < 2; ++i) {
        berth_strbuf_add(out, "const char *" BERTH_LIBRARY_SYMBOL "(void *stream");
        for (uint32_t k = 0; k < count; ++k)
            berth_strbuf_addf(out, ", const %s *%s", element, names[k]);
        berth_strbuf_addf(out, ", %s *y, uint8_t *workspace)%s", element, i ? " {\n" : ";\n");
    }
    berth_strbuf_addf(out, "    return run(stream, a, b, %s, %s, y, workspace);\n}\n",
                      use->bias ? "bias" : "0", use->sum ? "sum" : "0");
    return (berth_library_code){.source = berth_strbuf_text(out),
                                .imports = loader,
                                .import_count = sizeof(loader) / sizeof(loader[0]),
                                .language = "cuda-host"};
}
