#include "compiler/external.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "ir/dim.h"
#include "ir/tensor/call.h"

typedef enum external_language {
    LANGUAGE_C,
    LANGUAGE_OBJECT,
    LANGUAGE_LIBRARY,
    LANGUAGE_OPENCL,
    LANGUAGE_CUDA_HOST,  // C that the host runs, which puts work into a stream
    LANGUAGE_COUNT
} external_language;

static const struct {
    const char *name;
    berth_device_kind kind;
} languages[LANGUAGE_COUNT] = {[LANGUAGE_C] = {"c", BERTH_DEVICE_CPU},
                               [LANGUAGE_OBJECT] = {"object", BERTH_DEVICE_CPU},
                               [LANGUAGE_LIBRARY] = {"library", BERTH_DEVICE_CPU},
                               [LANGUAGE_OPENCL] = {"opencl-c", BERTH_DEVICE_OPENCL},
                               [LANGUAGE_CUDA_HOST] = {"cuda-host", BERTH_DEVICE_CUDA}};

static external_language language_of(const berth_module *module, berth_func_id function) {
    const char *name = berth_module_str(module, berth_external_get(module, function)->language);
    int i = 0;
    while (i < LANGUAGE_COUNT && strcmp(languages[i].name, name) != 0) i++;
    return (external_language)i;
}

static const char *name_of(const berth_module *module, berth_func_id function) {
    return berth_module_str(module, berth_module_function(module, function)->name);
}

static const char *label_of(const berth_module *module, berth_func_id function,
                            berth_arena *arena) {
    const berth_external *external = berth_external_get(module, function);
    const char *calls =
        berth_attrs_string(module, &berth_module_function(module, function)->attrs, "calls", "");
    return berth_arena_printf(arena, "@%s, language \"%s\"%s%s", name_of(module, function),
                              berth_module_str(module, external->language),
                              *calls ? ", calls " : "", calls);
}

const char *berth_external_refusal(const berth_module *module, berth_func_id function,
                                   berth_device_kind kind, berth_arena *arena) {
    external_language language = language_of(module, function);
    const char *label = label_of(module, function, arena);
    if (language == LANGUAGE_COUNT)
        return berth_arena_printf(arena,
                                  "no device runs external code of this language (%s): use c, "
                                  "object, library, opencl-c or cuda-host",
                                  label);
    if (languages[language].kind == kind) return NULL;
    return berth_arena_printf(arena, "devices of kind %s do not run external code for %s (%s)",
                              berth_device_kind_name(kind),
                              berth_device_kind_name(languages[language].kind), label);
}

berth_func_id berth_external_called(const berth_module *module, const berth_op *op) {
    if (op->kind != BERTH_OP_CALL) return BERTH_NONE;
    const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
    bool external = callee && callee->kind == BERTH_ATTR_FUNCTION &&
                    berth_external_get(module, callee->function);
    return external ? callee->function : BERTH_NONE;
}

const char *berth_external_operators(const berth_module *module, const berth_op *op,
                                     berth_arena *arena) {
    berth_func_id function = berth_external_called(module, op);
    const char *names = berth_loc_names(module, op->loc, true, arena);
    if (function == BERTH_NONE) return names;
    const char *library =
        berth_attrs_string(module, &berth_module_function(module, function)->attrs, "library", "");
    return *library ? berth_arena_printf(arena, "%s by %s", names, library) : names;
}

// ---- cost ---------------------------------------------------------------------------------------

static double hint(const berth_module *module, const berth_attrs *attrs, const char *name,
                   double otherwise) {
    static const double most = 1e30;
    double value = berth_attrs_float(module, attrs, name, -1);
    return value >= 0 && value <= most ? value : otherwise;
}

void berth_external_cost(const berth_module *module, berth_func_id function, double *flops,
                         double *bytes, double *time_ns) {
    const berth_attrs *attrs = &berth_module_function(module, function)->attrs;
    *flops = hint(module, attrs, "flops", *flops);
    *bytes = hint(module, attrs, "bytes", *bytes);
    *time_ns = hint(module, attrs, "time_ns", *time_ns);
}

// ---- a call -------------------------------------------------------------------------------------

// A symbol of a shared library that code calls.
typedef struct external_import {
    const char *library;
    const char *symbol;
} external_import;

typedef struct external_call {
    const berth_module *module;
    const berth_graph *graph;
    const berth_op *op;
    berth_func_id function;
    const berth_external *external;
    external_language language;
    const char *symbol;
    const berth_type **types;  // operands, then results
    uint32_t count;
    BERTH_VEC(int64_t) symbols;  // of the function's type, in order
    BERTH_VEC(int64_t) extents;  // of these in the call
    berth_arena *arena;
} external_call;

static bool is_identifier(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_') return false;
    while (isalnum((unsigned char)*text) || *text == '_') text++;
    return !*text;
}

// Extents that the code is told: those of the symbols in the function's type, each once.
static void bind_symbols(external_call *c, const berth_type *wanted, const berth_type *given) {
    for (int d = 0; wanted->kind == BERTH_TYPE_TENSOR && d < wanted->rank; ++d) {
        int64_t symbol = wanted->dims[d];
        bool known = !berth_dim_is_symbol(symbol) || symbol == BERTH_DIM_UNKNOWN ||
                     berth_dim_is_expression(c->module, symbol);
        for (uint32_t i = 0; i < c->symbols.count && !known; ++i)
            known = c->symbols.data[i] == symbol;
        if (known) continue;
        berth_vec_push(c->arena, &c->symbols, symbol);
        berth_vec_push(c->arena, &c->extents, given->dims[d]);
    }
}

static berth_status gather_types(external_call *c) {
    const berth_type *type = berth_type_get(c->module, c->external->type);
    c->count = c->op->input_count + c->op->output_count;
    c->types = berth_arena_new_array(c->arena, const berth_type *, c->count + 1);
    if (type->kind != BERTH_TYPE_FUNCTION || type->param_count != c->op->input_count ||
        type->field_count != c->count || c->op->output_count == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the call does not fit the function's type, or has no result");
    for (uint32_t i = 0; i < c->count; ++i) {
        bool operand = i < c->op->input_count;
        berth_value_id value = operand ? c->op->inputs[i] : c->op->outputs[i - c->op->input_count];
        const berth_type *given =
            berth_type_get(c->module, value == BERTH_NONE ? 0 : c->graph->values.data[value].type);
        if (given->kind != BERTH_TYPE_TENSOR || !berth_type_is_static(given) ||
            !berth_codegen_c_type(given->dtype))
            return berth_status_make(
                BERTH_UNSUPPORTED,
                "%s %u of the call is no tensor of static shape and an element "
                "type that C has",
                operand ? "argument" : "result", operand ? i : i - c->op->input_count);
        c->types[i] = given;
        bind_symbols(c, berth_type_get(c->module, type->fields[i]), given);
    }
    return BERTH_OK;
}

static berth_status check_imports(const external_call *c) {
    const berth_attr *names = berth_attrs_find(
        c->module, &berth_module_function(c->module, c->function)->attrs, "imports");
    if (!names) return BERTH_OK;
    bool compiled = c->language == LANGUAGE_C || c->language == LANGUAGE_CUDA_HOST;
    bool good =
        compiled && names->kind == BERTH_ATTR_STRINGS && names->count > 0 && names->count % 2 == 0;
    for (uint32_t i = 0; good && i < names->count; i += 2)
        good = *berth_module_str(c->module, names->strings[i]) &&
               is_identifier(berth_module_str(c->module, names->strings[i + 1]));
    if (good) return BERTH_OK;
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "its attribute imports is for languages \"c\" and \"cuda-host\", a list of "
        "libraries each with a symbol: [\"libm.so.6\", \"cbrt\"]");
}

static berth_status check_code(const external_call *c) {
    BERTH_TRY(check_imports(c));
    const char *language = languages[c->language].name;
    if (!is_identifier(c->symbol))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "its symbol \"%s\" is no name in C",
                                 c->symbol);
    if (c->language == LANGUAGE_LIBRARY) {
        if (c->external->file && *berth_module_str(c->module, c->external->file)) return BERTH_OK;
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "language \"library\" needs the library's name: file \"libm.so.6\"");
    }
    if (c->external->file)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "its file \"%s\" has not been read: load the module from its own "
                                 "file, or carry the code in it",
                                 berth_module_str(c->module, c->external->file));
    if (c->external->code_size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "language \"%s\" needs code", language);
    if (c->language == LANGUAGE_OBJECT)
        return c->external->code_size_bytes > 4 && memcmp(c->external->code, "\177ELF", 4) == 0
                   ? BERTH_OK
                   : berth_status_make(BERTH_INVALID_ARGUMENT, "its code is no object file (ELF)");
    return memchr(c->external->code, 0, (size_t)c->external->code_size_bytes)
               ? berth_status_make(BERTH_INVALID_ARGUMENT, "its source holds a zero byte")
               : BERTH_OK;
}

// ---- calls inside kernels -----------------------------------------------------------------------

static const char *attribute_for_graphs(const berth_module *module, berth_func_id function) {
    static const char *const names[] = {"imports", "groups", "group_size"};
    const berth_attrs *attrs = &berth_module_function(module, function)->attrs;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (berth_attrs_find(module, attrs, names[i])) return names[i];
    return NULL;
}

static const char *refusal_of_code(const berth_module *module, berth_func_id function,
                                   berth_arena *arena) {
    external_call c = {.module = module,
                       .function = function,
                       .external = berth_external_get(module, function),
                       .language = language_of(module, function),
                       .arena = arena};
    c.symbol = berth_module_str(module, c.external->symbol);
    if (c.language == LANGUAGE_CUDA_HOST)
        return "code of language cuda-host is run by the host, for calls from a graph";
    const char *attribute = attribute_for_graphs(module, function);
    if (attribute)
        return berth_arena_printf(arena, "its attribute %s is for calls from a graph", attribute);
    berth_status status = check_code(&c);
    if (!status) return NULL;
    const char *text = berth_arena_strdup(arena, berth_status_message(status));
    berth_status_free(status);
    return text;
}

// `seen`: functions that were looked at.
static const char *refusal_of_calls(const berth_module *module, berth_func_id function,
                                    berth_device_kind kind, bool *seen, berth_arena *arena) {
    const berth_tfn *fn = berth_tfn_get(module, function);
    const char *why = NULL;
    if (seen[function]) return NULL;
    seen[function] = true;
    if (berth_external_get(module, function)) {
        why = berth_external_refusal(module, function, kind, arena);
        return why ? why : refusal_of_code(module, function, arena);
    }
    for (uint32_t i = 0; fn && i < fn->stmts.count && !why; ++i)
        if (fn->stmts.data[i].kind == BERTH_STMT_CALL)
            why = refusal_of_calls(module, fn->stmts.data[i].callee, kind, seen, arena);
    return why;
}

const char *berth_external_call_refusal(const berth_module *module, berth_func_id function,
                                        berth_device_kind kind, berth_arena *arena) {
    bool *seen = berth_arena_new_array(arena, bool, module->functions.count + 1);
    return refusal_of_calls(module, function, kind, seen, arena);
}

const char *berth_external_label_of_calls(const berth_module *module, const berth_tfn *fn,
                                          berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    bool *seen = berth_arena_new_array(arena, bool, module->functions.count + 1);
    for (uint32_t i = 0; i < fn->stmts.count; ++i) {
        const berth_stmt_node *node = &fn->stmts.data[i];
        if (node->kind != BERTH_STMT_CALL || seen[node->callee] ||
            !berth_external_get(module, node->callee))
            continue;
        seen[node->callee] = true;
        berth_strbuf_addf(&text, "%s%s", text.length ? "; " : "",
                          label_of(module, node->callee, arena));
    }
    return text.length ? berth_strbuf_text(&text) : NULL;
}

// ---- the grid -----------------------------------------------------------------------------------

static berth_status read_counts(const external_call *c, const char *name, uint32_t counts[3],
                                bool *out_given) {
    const berth_attrs *attrs = &berth_module_function(c->module, c->function)->attrs;
    const berth_attr *attr = berth_attrs_find(c->module, attrs, name);
    uint32_t count = 0;
    *out_given = attr != NULL;
    for (int i = 0; i < 3; ++i) counts[i] = 1;
    if (!attr) return BERTH_OK;
    const int64_t *values = berth_attrs_ints(c->module, attrs, name, &count);
    uint32_t most = c->language == LANGUAGE_OPENCL ? 3 : 1;
    bool good = attr->kind == BERTH_ATTR_INTS && count >= 1 && count <= most;
    for (uint32_t i = 0; good && i < count; ++i) {
        good = values[i] >= 1 && values[i] <= INT32_MAX;
        counts[i] = (uint32_t)values[i];
    }
    if (good) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "its attribute %s is no list of 1 to %u counts from 1 on", name, most);
}

// OpenCL: as many work-items as the first result has elements, unless the function says otherwise.
static berth_status set_grid(const external_call *c, berth_kernel_source *kernel, bool *out_parts) {
    bool groups = false, size = false;
    BERTH_TRY(read_counts(c, "groups", kernel->groups, &groups));
    BERTH_TRY(read_counts(c, "group_size", kernel->group_size, &size));
    *out_parts = groups;
    if (c->language == LANGUAGE_CUDA_HOST && groups)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "groups is not for language cuda-host: its function is called once");
    if (c->language != LANGUAGE_OPENCL && size)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "group_size is for OpenCL C alone");
    if (groups || c->language != LANGUAGE_OPENCL) return BERTH_OK;
    uint64_t elements = 1, in_group = 1;
    const berth_type *result = c->types[c->op->input_count];
    for (int d = 0; d < result->rank; ++d)
        if (__builtin_mul_overflow(elements, (uint64_t)result->dims[d], &elements))
            elements = UINT64_MAX;
    for (int i = 0; i < 3; ++i) in_group *= kernel->group_size[i];
    uint64_t count = elements / in_group + (elements % in_group != 0);
    if (count > INT32_MAX)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%llu work-groups: give the attributes groups and group_size",
                                 (unsigned long long)count);
    kernel->groups[0] = count ? (uint32_t)count : 1;
    return BERTH_OK;
}

// ---- source -------------------------------------------------------------------------------------

static void add_types(const external_call *c, bool parts, berth_strbuf *out) {
    for (uint32_t i = 0; i < c->count; ++i)
        berth_strbuf_addf(out, "%s%s%s *", i ? ", " : "", i < c->op->input_count ? "const " : "",
                          berth_codegen_c_type(c->types[i]->dtype));
    for (uint32_t i = 0; i < c->symbols.count; ++i) berth_strbuf_add(out, ", int64_t");
    if (parts) berth_strbuf_add(out, ", int64_t, int64_t");
}

// The kernel: one call. What it returns is ignored.
static void add_kernel(const external_call *c, const char *entry, const char *callee, bool parts,
                       berth_strbuf *out) {
    static const char parameters[] =
        "(void *const *buffers, const int64_t *constants, int64_t begin, int64_t end, "
        "void *scratch)";
    bool streams = c->language == LANGUAGE_CUDA_HOST;
    berth_strbuf_addf(out, "void %s%s;\nvoid %s%s {\n    (void)constants, (void)scratch;\n", entry,
                      parameters, entry, parameters);
    if (streams)  // berth_stream_call (artifact/kernel_abi.h)
        berth_strbuf_add(out, "    struct stream_call {\n        void *stream;\n        "
                              "const char *failure;\n    } *call = scratch;\n");
    berth_strbuf_addf(out, parts ? "    %s%s(%s" : "    if (begin < end) %s%s(%s",
                      streams ? "call->failure = " : "", callee, streams ? "call->stream, " : "");
    for (uint32_t i = 0; i < c->count; ++i)
        berth_strbuf_addf(out, "%s(%s *)buffers[%u]", i ? ", " : "",
                          berth_codegen_c_type(c->types[i]->dtype), i);
    for (uint32_t i = 0; i < c->symbols.count; ++i) berth_strbuf_addf(out, ", constants[%u]", i);
    berth_strbuf_add(out, parts ? ", begin, end);\n}\n" : ");\n}\n");
}

static void add_declaration(const external_call *c, const berth_kernel_source *kernel,
                            berth_strbuf *out) {
    berth_program_kernel record = berth_kernel_source_record(kernel);
    const char *text = berth_kernel_declaration(c->arena, &record);
    if (c->language == LANGUAGE_OPENCL)
        berth_strbuf_addf(out, "\n// " BERTH_DECLARATION_PREFIX "%s: %s\n", kernel->entry, text);
    else
        berth_strbuf_addf(out,
                          "extern const char " BERTH_DECLARATION_PREFIX
                          "%s[];\nconst char " BERTH_DECLARATION_PREFIX "%s[] = \"%s\";\n",
                          kernel->entry, kernel->entry, text);
}

static void add_quoted(berth_strbuf *out, const char *text) {
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            berth_strbuf_addf(out, "\\%03o", (unsigned)(unsigned char)*text);
        else
            berth_strbuf_add_n(out, text, 1);
    }
}

static void add_text_constant(const char *name, const char *text, berth_strbuf *out) {
    berth_strbuf_addf(out, "extern const char %s[];\nconst char %s[] = \"", name, name);
    add_quoted(out, text);
    berth_strbuf_add(out, "\";\n");
}

// The array that the driver fills (artifact/kernel_abi.h): pairs of a library and a symbol.
static void add_imports(const external_import *imports, uint32_t count, berth_strbuf *out) {
    berth_strbuf_add(out, "struct import {\n    const char *library;\n    const char *symbol;\n"
                          "    void *address;\n};\nextern struct import " BERTH_IMPORTS_SYMBOL
                          "[];\nstruct import " BERTH_IMPORTS_SYMBOL "[] = {\n");
    for (uint32_t i = 0; i < count; ++i) {
        berth_strbuf_add(out, "    {\"");
        add_quoted(out, imports[i].library);
        berth_strbuf_addf(out, "\", \"%s\", 0},\n", imports[i].symbol);
    }
    berth_strbuf_add(out, "    {0, 0, 0}};\n");
}

// What C code calls in shared libraries, by its attributes: imports = ["libm.so.6", "cbrt", ...].
static void add_imports_of_code(const external_call *c, berth_strbuf *out) {
    const berth_attrs *attrs = &berth_module_function(c->module, c->function)->attrs;
    const char *note = berth_attrs_string(c->module, attrs, "imports_note", "");
    const berth_attr *names = berth_attrs_find(c->module, attrs, "imports");
    if (!names) return;
    external_import *imports =
        berth_arena_new_array(c->arena, external_import, names->count / 2 + 1);
    for (uint32_t i = 0; i < names->count / 2; ++i)
        imports[i] = (external_import){berth_module_str(c->module, names->strings[2 * i]),
                                       berth_module_str(c->module, names->strings[2 * i + 1])};
    add_imports(imports, names->count / 2, out);
    if (*note) add_text_constant(BERTH_IMPORTS_NOTE_SYMBOL, note, out);
}

// The compiler's messages speak of the function's source, or of its call.
static void begin_source(const external_call *c, const char *what, berth_strbuf *out) {
    berth_strbuf_addf(out, "\n#line 1 \"%s", what);
    const char *name = name_of(c->module, c->function);
    if (is_identifier(name)) berth_strbuf_addf(out, "@%s", name);
    berth_strbuf_add(out, "\"\n");
}

// The C type of a function that kernels call: its parameters in parentheses.
static void add_parameters(const berth_module *module, berth_func_id function, berth_arena *arena,
                           berth_strbuf *out) {
    uint32_t operands =
        berth_type_get(module, berth_external_get(module, function)->type)->param_count;
    external_call symbols = {.module = module, .arena = arena};
    const berth_buf_info *params = NULL;
    uint32_t count = 0;
    if (!berth_tfn_callee_params(module, function, arena, &params, &count)) return;
    for (uint32_t i = 0; i < count; ++i) {
        berth_strbuf_addf(out, "%s%s%s *", i ? ", " : "(", i < operands ? "const " : "",
                          berth_codegen_c_type(params[i].dtype));
        berth_type shape = {.kind = BERTH_TYPE_TENSOR, .rank = params[i].rank};
        memcpy(shape.dims, params[i].dims, sizeof(shape.dims));
        bind_symbols(&symbols, &shape, &shape);
    }
    for (uint32_t i = 0; i < symbols.symbols.count; ++i) berth_strbuf_add(out, ", int64_t");
    berth_strbuf_add(out, ")");
}

void berth_external_add_callees(const berth_module *module, const berth_func_id *functions,
                                uint32_t count, berth_arena *arena, berth_strbuf *out) {
    external_import *imports = berth_arena_new_array(arena, external_import, count + 1);
    uint32_t import_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        external_call c = {.module = module,
                           .function = functions[i],
                           .external = berth_external_get(module, functions[i]),
                           .language = language_of(module, functions[i])};
        c.symbol = berth_module_str(module, c.external->symbol);
        if (c.language == LANGUAGE_LIBRARY) {
            imports[import_count++] =
                (external_import){berth_module_str(module, c.external->file), c.symbol};
            continue;
        }
        begin_source(&c, c.language == LANGUAGE_OBJECT ? "the declaration of " : "", out);
        if (c.language == LANGUAGE_OBJECT) {
            berth_strbuf_addf(out, "void %s", c.symbol);
            add_parameters(module, functions[i], arena, out);
            berth_strbuf_add(out, ";\n");
            continue;
        }
        berth_strbuf_add_n(out, (const char *)c.external->code,
                           (size_t)c.external->code_size_bytes);
    }
    if (!import_count) return;
    berth_strbuf_add(out, "\n");
    add_imports(imports, import_count, out);
}

const char *berth_external_callee(const berth_module *module, const berth_func_id *functions,
                                  uint32_t index, berth_arena *arena) {
    if (berth_external_has_symbol(module, functions[index]))
        return berth_module_str(module, berth_external_get(module, functions[index])->symbol);
    uint32_t import = 0;
    for (uint32_t i = 0; i < index; ++i) import += !berth_external_has_symbol(module, functions[i]);
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "((void (*)");
    add_parameters(module, functions[index], arena, &text);
    berth_strbuf_addf(&text, ")" BERTH_IMPORTS_SYMBOL "[%u].address)", (unsigned)import);
    return berth_strbuf_text(&text);
}

bool berth_external_has_symbol(const berth_module *module, berth_func_id function) {
    return language_of(module, function) != LANGUAGE_LIBRARY;
}

berth_object_code berth_external_object(const berth_module *module, berth_func_id function) {
    const berth_external *external = berth_external_get(module, function);
    if (language_of(module, function) != LANGUAGE_OBJECT)
        return (berth_object_code){.size_bytes = 0};
    return (berth_object_code){external->code, external->code_size_bytes};
}

static const char *print_cpu(const external_call *c, const berth_kernel_source *kernel,
                             bool parts) {
    berth_strbuf out = berth_strbuf_make(c->arena);
    if (c->language == LANGUAGE_C || c->language == LANGUAGE_CUDA_HOST) {
        add_imports_of_code(c, &out);
        begin_source(c, "", &out);
        berth_strbuf_add_n(&out, (const char *)c->external->code,
                           (size_t)c->external->code_size_bytes);
        begin_source(c, "the call of ", &out);
    }
    berth_strbuf_add(&out, "#include <stdint.h>\n");
    const char *callee = c->symbol;
    if (c->language == LANGUAGE_OBJECT) {
        berth_strbuf_addf(&out, "void %s(", c->symbol);
        add_types(c, parts, &out);
        berth_strbuf_add(&out, ");\n");
    } else if (c->language == LANGUAGE_LIBRARY) {
        external_import import = {berth_module_str(c->module, c->external->file), c->symbol};
        add_imports(&import, 1, &out);
        berth_strbuf type = berth_strbuf_make(c->arena);
        add_types(c, parts, &type);
        callee = berth_arena_printf(c->arena, "((void (*)(%s))%s[0].address)",
                                    berth_strbuf_text(&type), BERTH_IMPORTS_SYMBOL);
    }
    add_kernel(c, kernel->entry, callee, parts, &out);
    add_declaration(c, kernel, &out);
    return berth_strbuf_text(&out);
}

static const char *print_opencl(const external_call *c, const berth_kernel_source *kernel) {
    berth_strbuf out = berth_strbuf_make(c->arena);
    berth_strbuf_add_n(&out, (const char *)c->external->code, (size_t)c->external->code_size_bytes);
    add_declaration(c, kernel, &out);
    return berth_strbuf_text(&out);
}

// A kernel reads its operands, and does with its results what it likes.
static void set_bindings(const external_call *c, berth_kernel_source *kernel) {
    berth_buf *buffers = berth_arena_new_array(c->arena, berth_buf, c->count);
    bool *written = berth_arena_new_array(c->arena, bool, c->count);
    berth_kernel_binding *bindings =
        berth_arena_new_array(c->arena, berth_kernel_binding, c->count);
    for (uint32_t i = 0; i < c->count; ++i) {
        bool result = i >= c->op->input_count;
        berth_value_id value = result ? c->op->outputs[i - c->op->input_count] : c->op->inputs[i];
        buffers[i] = i;
        written[i] = result;
        bindings[i] = (berth_kernel_binding){
            .size_bytes = berth_type_size_bytes(c->module, c->graph->values.data[value].type),
            .access = BERTH_ACCESS_READ | (result ? BERTH_ACCESS_WRITE : 0u)};
        kernel->bytes += (double)bindings[i].size_bytes;
    }
    kernel->buffers = buffers;
    kernel->written = written;
    kernel->bindings = bindings;
    kernel->buffer_count = c->count;
}

static berth_status print(external_call *c, const char *entry, berth_external_code *out) {
    if (c->language == LANGUAGE_COUNT)
        return berth_status_make(BERTH_UNSUPPORTED, "no device runs code of its language");
    BERTH_TRY(gather_types(c));
    BERTH_TRY(check_code(c));
    berth_kernel_source *kernel = berth_arena_new(c->arena, berth_kernel_source);
    double time_ns = 0;
    bool parts = false;
    set_bindings(c, kernel);
    berth_external_cost(c->module, c->function, &kernel->flops, &kernel->bytes, &time_ns);
    BERTH_TRY(set_grid(c, kernel, &parts));
    kernel->constants = c->extents.data;
    kernel->constant_count = c->extents.count;
    kernel->entry = c->language == LANGUAGE_OPENCL ? c->symbol : entry;
    out->code = (berth_codegen_result){.kernels = kernel, .kernel_count = 1};
    out->code.source =
        c->language == LANGUAGE_OPENCL ? print_opencl(c, kernel) : print_cpu(c, kernel, parts);
    out->label = label_of(c->module, c->function, c->arena);
    out->of_host = c->language == LANGUAGE_CUDA_HOST;
    berth_object_code *object = berth_arena_new(c->arena, berth_object_code);
    *object = berth_external_object(c->module, c->function);
    out->code.objects = object;
    out->code.object_count = object->data != NULL;
    return BERTH_OK;
}

berth_status berth_external_print(const berth_module *module, const berth_graph *graph,
                                  const berth_op *call, const char *entry,
                                  berth_external_code *out_code) {
    *out_code = (berth_external_code){.label = NULL};
    external_call c = {.module = module,
                       .graph = graph,
                       .op = call,
                       .function = berth_external_called(module, call),
                       .arena = module->arena};
    c.external = berth_external_get(module, c.function);
    c.language = language_of(module, c.function);
    c.symbol = berth_module_str(module, c.external->symbol);
    return berth_status_prefix(print(&c, entry, out_code), "external function @%s",
                               name_of(module, c.function));
}
