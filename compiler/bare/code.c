// The header and the code: where tensors are, and the calls in their order.
#include <string.h>

#include "compiler/bare/printer.h"
#include "compiler/codegen/codegen.h"

// ---- header -------------------------------------------------------------------------------------

static void add_members(const berth_bare_printer *p, bool outputs, berth_strbuf *out) {
    const berth_program_io *list = outputs ? p->program->outputs : p->program->inputs;
    uint32_t count = outputs ? p->program->output_count : p->program->input_count;
    const char *const *names = outputs ? p->outputs : p->inputs;
    const char *what = outputs ? "outputs" : "inputs";
    berth_strbuf_addf(out, "typedef struct %s_%s {\n", p->name, what);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &p->program->tensors[list[i].tensor];
        berth_strbuf_addf(
            out, "    %s%s *%s; /* %s, %llu bytes: \"%s\" */\n", outputs ? "" : "const ",
            berth_codegen_c_type(tensor->dtype), names[i], berth_bare__shape(p->arena, tensor),
            (unsigned long long)tensor->size_bytes, berth_bare__comment(p->arena, list[i].name));
    }
    if (count == 0) berth_strbuf_add(out, "    char none;\n");
    berth_strbuf_addf(out, "} %s_%s;\n\n", p->name, what);
}

static void add_counts(const berth_bare_printer *p, bool outputs, berth_strbuf *out) {
    const berth_program_io *list = outputs ? p->program->outputs : p->program->inputs;
    uint32_t count = outputs ? p->program->output_count : p->program->input_count;
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(
            out, "#define %s_%s_%s_COUNT %llu\n", p->upper, outputs ? "OUTPUT" : "INPUT",
            outputs ? p->outputs[i] : p->inputs[i],
            (unsigned long long)berth_bare__elements(&p->program->tensors[list[i].tensor]));
}

// What the planner proved of a pool.
static const char *proof(const berth_bare_printer *p, uint32_t index) {
    const berth_program_pool *pool = &p->program->pools[index];
    unsigned long long size = pool->size_bytes, bound = pool->lower_bound_bytes;
    if (size <= bound)
        return berth_arena_printf(p->arena,
                                  "proven optimal: in this order of operations no placement of "
                                  "the values\n   needs fewer than %llu bytes",
                                  size);
    return berth_arena_printf(p->arena,
                              "no placement of the values needs fewer than %llu bytes in this "
                              "order of operations;\n   whether %llu is the least is not proven",
                              bound, size);
}

// Of the order, over all pools: what the report of the same compilation says.
static const char *order_proof(const berth_bare_printer *p) {
    const berth_memory_report *m = p->memory;
    if (!m || m->order_bound_bytes == 0) return "";
    if (m->ordered_bytes <= m->order_bound_bytes)
        return ".\n   The order, too: no other order of the operations has less live at once";
    return berth_arena_printf(p->arena,
                              ".\n   No other order of the operations has less than %llu bytes "
                              "live at once (this one: %llu)",
                              (unsigned long long)m->order_bound_bytes,
                              (unsigned long long)m->ordered_bytes);
}

uint64_t berth_bare__aligned(uint64_t bytes) {
    return (bytes + BERTH_PLAIN_ALIGNMENT_BYTES - 1) / BERTH_PLAIN_ALIGNMENT_BYTES *
           BERTH_PLAIN_ALIGNMENT_BYTES;
}

// Where there are several memories: how much of what operations move is moved in each.
static void add_shares(const berth_bare_printer *p, berth_strbuf *out) {
    const berth_memory_report *m = p->memory;
    if (!m || m->share_count < 2) return;
    double all = 0;
    for (uint32_t i = 0; i < m->share_count; ++i) all += m->shares[i].moved_bytes;
    berth_strbuf_add(out, "/* Of the bytes that operations move in static memory, a run moves");
    for (uint32_t i = 0; i < m->share_count; ++i)
        berth_strbuf_addf(out, "%s %.1f %% in \"%s\"", i ? "," : "",
                          all > 0 ? 100 * m->shares[i].moved_bytes / all : 0,
                          berth_bare__comment(p->arena, m->shares[i].memory));
    berth_strbuf_addf(
        out, "%s%s. */\n",
        m->shares_proven ? ":\n   no other division of the values has less to wait for"
                         : ";\n   whether another division is faster is not proven",
        m->ordered_for_memories
            ? ".\n   The operations are in an order that allows it, not in that of the least peak"
            : "");
}

// What an array of the application in place of a memory's static arrays must have.
static void add_arrays(const berth_bare_printer *p, berth_strbuf *out) {
    for (uint32_t i = 0; i < p->memory_count; ++i) {
        const berth_bare_memory *memory = &p->memories[i];
        if (*memory->name)
            berth_strbuf_addf(out, "/* The same of the memory \"%s\", -D%s=array. */\n",
                              berth_bare__comment(p->arena, memory->name), memory->array);
        else
            berth_strbuf_addf(out,
                              "/* Of an array of the application in place of that memory, named by "
                              "-D%s=array and aligned\n   like it: models that do not run at the "
                              "same time may share one. */\n",
                              memory->array);
        berth_strbuf_addf(out, "#define %s_BYTES %llu\n", memory->array,
                          (unsigned long long)memory->array_bytes);
    }
    berth_strbuf_add(out, "\n");
}

static void add_sizes(const berth_bare_printer *p, berth_strbuf *out) {
    for (uint32_t i = 0; i < p->program->pool_count; ++i) {
        if (!p->pools[i]) continue;
        const berth_program_pool *pool = &p->program->pools[i];
        berth_strbuf_addf(out, "/* Pool \"%s\": %s%s. */\n",
                          berth_bare__comment(p->arena, pool->scope), proof(p, i), order_proof(p));
        berth_strbuf_addf(out, "#define %s %llu\n", p->sizes[i],
                          (unsigned long long)pool->size_bytes);
    }
    if (p->scratch_bytes)
        berth_strbuf_addf(out,
                          "/* Private to one operation at a time. */\n"
                          "#define %s_SCRATCH_BYTES %u\n",
                          p->upper, p->scratch_bytes);
    berth_bare__add_store(p, out);
    add_shares(p, out);
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->memory_count; ++i) total += p->memories[i].array_bytes;
    berth_strbuf_addf(out,
                      "/* All static memory that is written, aligned to %d bytes, and all that is "
                      "only read. */\n"
                      "#define %s_RAM_BYTES %llu\n#define %s_CONSTANT_BYTES %llu\n",
                      BERTH_PLAIN_ALIGNMENT_BYTES, p->upper, (unsigned long long)total, p->upper,
                      (unsigned long long)p->constant_bytes);
    add_arrays(p, out);
}

const char *berth_bare__header(const berth_bare_printer *p) {
    berth_strbuf out = berth_strbuf_make(p->arena);
    berth_strbuf_addf(
        &out,
        "/* The model %s as C99, made by Berth: one function, no heap, no threads, no state "
        "between "
        "calls.\n\n"
        "       static float y[...];\n"
        "       %s_inputs inputs = {x};\n"
        "       %s_outputs outputs = {y};\n"
        "       int wrong = %s_run(&inputs, &outputs);\n\n"
        "   Inputs and outputs are the caller's, row-major, aligned as their elements; no two may "
        "share\n"
        "   bytes. Outputs hold intermediate values until the call ends. The static memory serves "
        "one call at a time. */\n"
        "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
        p->name, p->name, p->name, p->name, p->upper, p->upper);
    add_sizes(p, &out);
    add_counts(p, false, &out);
    add_counts(p, true, &out);
    berth_strbuf_add(&out, "\n");
    add_members(p, false, &out);
    add_members(p, true, &out);
    berth_strbuf_addf(&out,
                      "/* Computes all outputs. Returns 0, or 1 when a pointer is missing (then "
                      "nothing is done)%s. */\n"
                      "int %s_run(const %s_inputs *inputs, %s_outputs *outputs);\n\n"
                      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
                      p->store_bytes ? ", 2 when the store could not be read" : "", p->name,
                      p->name, p->name);
    return berth_strbuf_text(&out);
}

// ---- tensors ------------------------------------------------------------------------------------

static bool holds(const berth_program *program, uint32_t whole, const berth_program_tensor *part) {
    const berth_program_tensor *w = &program->tensors[whole];
    return part->size_bytes && w->pool == part->pool && w->offset_bytes <= part->offset_bytes &&
           part->offset_bytes + part->size_bytes <= w->offset_bytes + w->size_bytes;
}

// What an array or pointer is called, and how far behind its start the tensor is; `same_type`: they
// have elements of one type.
static const char *at_offset(const berth_bare_printer *p, const char *array, uint64_t offset,
                             bool same_type, bool written) {
    const char *constant = written ? "" : "const ";
    if (offset == 0 && same_type) return array;
    if (offset == 0) return berth_arena_printf(p->arena, "(%svoid *)%s", constant, array);
    return berth_arena_printf(p->arena, "(%svoid *)((%sunsigned char *)%s + %llu)", constant,
                              constant, array, (unsigned long long)offset);
}

// A list of tensors with names; a part of one of them has its bytes.
typedef struct named {
    const berth_program_io *list;
    uint32_t count;
    const char *structure;
    const char *const *names;
} named;

static const char *find_io(const berth_bare_printer *p, named io, uint32_t index, bool written) {
    const berth_program_tensor *tensor = &p->program->tensors[index];
    for (uint32_t i = 0; i < io.count; ++i) {
        const berth_program_tensor *whole = &p->program->tensors[io.list[i].tensor];
        if (io.list[i].tensor != index && !holds(p->program, io.list[i].tensor, tensor)) continue;
        return at_offset(p, berth_arena_printf(p->arena, "%s->%s", io.structure, io.names[i]),
                         tensor->offset_bytes - whole->offset_bytes, tensor->dtype == whole->dtype,
                         written);
    }
    return NULL;
}

static const char *io_place(const berth_bare_printer *p, uint32_t index, bool written) {
    named inputs = {p->program->inputs, p->program->input_count, "inputs", p->inputs};
    named outputs = {p->program->outputs, p->program->output_count, "outputs", p->outputs};
    const char *text = written ? NULL : find_io(p, inputs, index, false);
    return text ? text : find_io(p, outputs, index, written);
}

static const char *constant_place(const berth_bare_printer *p, uint32_t index) {
    const berth_program *program = p->program;
    const berth_program_tensor *tensor = &program->tensors[index];
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        uint32_t whole = program->constants[i].tensor;
        if (whole == index || holds(program, whole, tensor))
            return at_offset(p, berth_arena_printf(p->arena, "%s_c%u", p->name, i),
                             tensor->offset_bytes - program->tensors[whole].offset_bytes,
                             tensor->dtype == program->tensors[whole].dtype, false);
    }
    return NULL;
}

// The text of a pointer to a tensor; NULL when it is nowhere, or may not be written.
static const char *place(const berth_bare_printer *p, uint32_t index, bool written) {
    const berth_program_tensor *tensor = &p->program->tensors[index];
    switch (p->program->pools[tensor->pool].usage) {
    case BERTH_POOL_WORKSPACE:
        return berth_arena_printf(p->arena, "(void *)(%s.bytes + %llu)", p->pools[tensor->pool],
                                  (unsigned long long)tensor->offset_bytes);
    case BERTH_POOL_IO: return io_place(p, index, written);
    case BERTH_POOL_CONSTANT: return written ? NULL : constant_place(p, index);
    case BERTH_POOL_STORE: return NULL;  // copies read from it
    }
    return NULL;
}

// ---- code ---------------------------------------------------------------------------------------

// A static array, or its part of the application's from byte *from on.
static void add_static(const berth_bare_memory *memory, const char *name, uint64_t size,
                       uint64_t *from, berth_strbuf *out) {
    berth_strbuf_addf(out,
                      "typedef union {\n    double alignment;\n    int64_t alignment_too;\n"
                      "    unsigned char bytes[%llu];\n} %s_memory;\n"
                      "#ifdef %s\n#define %s (*(%s_memory *)(void *)(%s + %llu))\n"
                      "#else\nstatic %s %s_memory %s;\n#endif\n\n",
                      (unsigned long long)(size ? size : 1), name, memory->array, name, name,
                      memory->array, (unsigned long long)*from, memory->attribute, name, name);
    *from += berth_bare__aligned(size);
}

static bool has_text(const char *text, const char *what) {
    return strstr(text, what) != NULL;
}

static void add_head(const berth_bare_printer *p, const char *kernels, berth_strbuf *out) {
    uint64_t *from = berth_arena_new_array(p->arena, uint64_t, p->memory_count);
    berth_strbuf_addf(out,
                      "/* Made by Berth. %s_RAM_ATTRIBUTE puts the static memory into a section of "
                      "your choice, as\n   -D%s_RAM_ATTRIBUTE='__attribute__((section(\".ccm\")))'",
                      p->upper, p->upper);
    for (uint32_t i = 1; i < p->memory_count; ++i)
        berth_strbuf_addf(out, ";\n   %s what is in the memory \"%s\"", p->memories[i].attribute,
                          berth_bare__comment(p->arena, p->memories[i].name));
    berth_strbuf_addf(out,
                      ". */\n#include \"%s.h\"\n\n#include <math.h>\n#include <string.h>\n\n"
                      "#include \"%s_weights.h\"\n\n",
                      p->name, p->name);
    for (uint32_t i = 0; i < p->memory_count; ++i)
        berth_strbuf_addf(out,
                          "#ifndef %s\n#define %s\n#endif\n"
                          "#ifdef %s\nextern unsigned char %s[];\n#endif\n\n",
                          p->memories[i].attribute, p->memories[i].attribute, p->memories[i].array,
                          p->memories[i].array);
    for (uint32_t i = 0; i < p->program->pool_count; ++i)
        if (p->pools[i])
            add_static(&p->memories[p->memory_of[i]], p->pools[i], p->program->pools[i].size_bytes,
                       &from[p->memory_of[i]], out);
    if (!has_text(kernels, BERTH_PLAIN_SCRATCH)) return;
    add_static(&p->memories[p->scratch_memory], BERTH_PLAIN_SCRATCH "_", p->scratch_bytes,
               &from[p->scratch_memory], out);
    berth_strbuf_add(out, "#define " BERTH_PLAIN_SCRATCH " " BERTH_PLAIN_SCRATCH "_.bytes\n\n");
}

static berth_status add_dispatch(const berth_bare_printer *p, const berth_program_step *step,
                                 berth_strbuf *out) {
    const berth_program_kernel *kernel = &p->program->kernels[step->kernel];
    berth_strbuf_addf(out, "    %s(", kernel->entry);
    for (uint32_t i = 0; i < kernel->binding_count; ++i) {
        bool written = kernel->bindings[i].access & BERTH_ACCESS_WRITE;
        const char *text = place(p, step->bindings[i], written);
        if (!text)
            return berth_status_make(BERTH_INTERNAL, "step \"%s\": its tensor %u is nowhere",
                                     step->name, step->bindings[i]);
        berth_strbuf_addf(out, "%s%s", i ? ", " : "", text);
    }
    berth_strbuf_add(out, ");\n");
    return BERTH_OK;
}

static berth_status add_copy(const berth_bare_printer *p, const berth_program_step *step,
                             berth_strbuf *out) {
    unsigned long long size = p->program->tensors[step->bindings[1]].size_bytes;
    const berth_program_tensor *source = &p->program->tensors[step->bindings[0]];
    if (size == 0) return BERTH_OK;
    const char *from = place(p, step->bindings[0], false);
    const char *to = place(p, step->bindings[1], true);
    if (to && p->program->pools[source->pool].usage == BERTH_POOL_STORE) {
        berth_strbuf_addf(out, "    if (%s_read_store(%s, %lluu, %lluu)) return 2;\n", p->name, to,
                          (unsigned long long)source->offset_bytes, size);
        return BERTH_OK;
    }
    if (!from || !to)
        return berth_status_make(BERTH_INTERNAL, "the copy \"%s\" has no ends", step->name);
    berth_strbuf_addf(out, "    memcpy(%s, %s, %llu);\n", to, from, size);
    return BERTH_OK;
}

static void add_checks(const berth_bare_printer *p, berth_strbuf *out) {
    berth_strbuf_add(out, "    if (!inputs || !outputs) return 1;\n");
    for (uint32_t i = 0; i < p->program->input_count; ++i)
        berth_strbuf_addf(out, "    if (!inputs->%s) return 1;\n", p->inputs[i]);
    for (uint32_t i = 0; i < p->program->output_count; ++i)
        berth_strbuf_addf(out, "    if (!outputs->%s) return 1;\n", p->outputs[i]);
}

berth_status berth_bare__code(const berth_bare_printer *p, const char **out_text) {
    berth_strbuf out = berth_strbuf_make(p->arena);
    const berth_program *program = p->program;
    const char *kernels = program->executable_count ? program->executables[0].data : "";
    add_head(p, kernels, &out);
    berth_strbuf_add(&out, kernels);
    berth_strbuf_addf(&out, "int %s_run(const %s_inputs *inputs, %s_outputs *outputs) {\n", p->name,
                      p->name, p->name);
    add_checks(p, &out);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        const char *name = berth_bare__comment(p->arena, step->name);
        if (*name && (i == 0 || strcmp(step->name, program->steps[i - 1].name) != 0))
            berth_strbuf_addf(&out, "    /* %s: %s */\n", berth_bare__comment(p->arena, step->op),
                              name);
        BERTH_TRY(step->kind == BERTH_STEP_COPY ? add_copy(p, step, &out)
                                                : add_dispatch(p, step, &out));
    }
    berth_strbuf_add(&out, "    return 0;\n}\n");
    *out_text = berth_strbuf_text(&out);
    return BERTH_OK;
}
