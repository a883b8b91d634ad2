// Models that are wrong in one way each: a clear status with the file and the node, never a crash.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compiler/onnx/import.h"
#include "tests/check.h"
#include "tests/onnx/model_writer.h"

static const int64_t four[1] = {4};

static pb small_graph(void) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 1, four);
    return graph;
}

// Imports and expects `code` and every word of `wanted` (separated by '|') in the message.
static void expect(const pb *model, berth_code code, const char *wanted) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = berth_onnx_import_memory(arena, model->data, model->size, "model.onnx",
                                                   NULL, NULL, &module);
    cr_expect_eq(berth_status_code(status), code, "%s: %s",
                 berth_code_name(berth_status_code(status)), berth_status_message(status));
    cr_expect((module == NULL) == (code != BERTH_CODE_OK));
    char words[256];
    snprintf(words, sizeof(words), "%s", wanted);
    for (char *word = strtok(words, "|"); word; word = strtok(NULL, "|"))
        cr_expect(strstr(berth_status_message(status), word), "no \"%s\" in: %s", word,
                  berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(arena);
}

static void expect_graph(const pb *graph, berth_code code, const char *wanted) {
    pb model = model_of(graph, 13);
    expect(&model, code, wanted);
}

Test(bad_input, a_good_model_is_imported) {
    pb graph = small_graph();
    graph_floats(&graph, "w", 4, 16);
    graph_node1(&graph, "Add", "add", "x", "w", "y");
    expect_graph(&graph, BERTH_CODE_OK, "");
}

Test(bad_input, unsorted_nodes_are_sorted) {
    pb graph = small_graph();
    graph_node1(&graph, "Add", "second", "x", "h", "y");
    graph_node1(&graph, "Mul", "first", "x", "x", "h");
    expect_graph(&graph, BERTH_CODE_OK, "");
}

Test(bad_input, files) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = berth_onnx_import(arena, "/nowhere/model.onnx", NULL, &module);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    berth_status_free(status);
    status = berth_onnx_import(arena, "/tmp", NULL, &module);
    cr_expect(status, "a folder is not a model");
    berth_status_free(status);
    berth_arena_destroy(arena);
    pb empty = {.size = 0};
    expect(&empty, BERTH_INVALID_ARGUMENT, "model.onnx|empty");
}

Test(bad_input, truncated_anywhere) {
    pb graph = small_graph();
    graph_floats(&graph, "w", 4, 16);
    graph_node1(&graph, "Add", "add", "x", "w", "y");
    pb whole = model_of(&graph, 13);
    for (size_t size = 1; size < whole.size; ++size) {
        pb part = whole;
        part.size = size;
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
        berth_status status =
            berth_onnx_import_memory(arena, part.data, part.size, "cut.onnx", NULL, NULL, &module);
        cr_expect(status, "the first %zu bytes pass for a model", size);
        cr_expect(strstr(berth_status_message(status), "cut.onnx"), "%s",
                  berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}

Test(bad_input, random_bytes) {
    uint64_t state = 1;
    for (int round = 0; round < 200; ++round) {
        pb model = {.size = 0};
        for (model.size = 0; model.size < 200; ++model.size) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            model.data[model.size] = (uint8_t)(state >> 56);
        }
        expect(&model, BERTH_INVALID_ARGUMENT, "model.onnx");
    }
}

Test(bad_input, cycle) {
    pb graph = small_graph();
    graph_node1(&graph, "Add", "left", "x", "b", "a");
    graph_node1(&graph, "Add", "right", "x", "a", "b");
    graph_node1(&graph, "Add", "end", "a", "b", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "model.onnx|cycle|left|right");
}

Test(bad_input, missing_values) {
    pb graph = small_graph();
    graph_node1(&graph, "Add", "add", "x", "weights", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "model.onnx|add|weights");
    graph = small_graph();
    graph_node1(&graph, "Add", "add", "x", "x", "z");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "model.onnx|output|y");
}

Test(bad_input, duplicate_names) {
    pb graph = small_graph();
    graph_node1(&graph, "Add", "one", "x", "x", "y");
    graph_node1(&graph, "Mul", "two", "x", "x", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "model.onnx|\"y\"|one|two");
    graph = small_graph();
    graph_floats(&graph, "w", 4, 16);
    graph_floats(&graph, "w", 4, 16);
    graph_node1(&graph, "Add", "add", "x", "w", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "initializer|w|twice");
    graph = small_graph();
    graph_input(&graph, "x", 1, four);
    graph_node1(&graph, "Add", "add", "x", "x", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "input|x|twice");
    graph = small_graph();
    graph_node1(&graph, "Add", "add", "x", "x", "x");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "\"x\"|add");
}

Test(bad_input, wrong_types) {
    pb graph = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_value(&graph, 11, "i", 7, 1, four);
    graph_output(&graph, "y", 1, four);
    graph_node1(&graph, "Add", "mixed", "x", "i", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "mixed|Add|i64|f32");
    graph = (pb){.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_value(&graph, 12, "y", 7, 1, four);
    graph_node1(&graph, "Add", "add", "x", "x", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "output|y|i64|f32");
    graph = small_graph();
    graph_value(&graph, 11, "s", 14, 1, four);
    graph_node1(&graph, "Add", "add", "x", "x", "y");
    expect_graph(&graph, BERTH_UNSUPPORTED, "model.onnx|\"s\"|complex64");
    graph = small_graph();
    graph_value(&graph, 11, "s", 8, 1, four);
    graph_node1(&graph, "Add", "text", "s", "s", "y");
    expect_graph(&graph, BERTH_UNSUPPORTED, "model.onnx|text|operand 0 is strings");
}

Test(bad_input, dimensions) {
    const int64_t huge[3] = {INT64_MAX / 2, 4, 4};
    const int64_t other[1] = {5};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 3, huge);
    graph_output(&graph, "y", 1, four);
    graph_node1(&graph, "Add", "add", "x", "x", "y");
    expect_graph(&graph, BERTH_OUT_OF_RANGE, "model.onnx|\"x\"");
    graph = small_graph();
    graph_input(&graph, "z", 1, other);
    graph_node1(&graph, "Add", "add", "x", "z", "y");
    expect_graph(&graph, BERTH_INCOMPATIBLE, "model.onnx|add|4|5");
    graph = small_graph();
    graph_floats(&graph, "w", 4, 12);
    graph_node1(&graph, "Add", "add", "x", "w", "y");
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "model.onnx|\"w\"");
}

Test(bad_input, attributes) {
    const char *inputs[] = {"x", NULL};
    const char *outputs[] = {"y", NULL};
    const int64_t ints[1] = {1};
    pb graph = small_graph();
    pb attr = attr_int("colour", 3);
    graph_node(&graph, "Softmax", "soft", inputs, outputs, &attr, 1);
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "soft|colour");
    graph = small_graph();
    attr = attr_ints("axis", ints, 1);
    graph_node(&graph, "Softmax", "soft", inputs, outputs, &attr, 1);
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "soft|axis|type");
    graph = small_graph();
    attr = attr_int("axis", 7);
    graph_node(&graph, "Softmax", "soft", inputs, outputs, &attr, 1);
    expect_graph(&graph, BERTH_OUT_OF_RANGE, "soft|axis|7");
    graph = small_graph();
    graph_node(&graph, "Concat", "join", inputs, outputs, NULL, 0);
    expect_graph(&graph, BERTH_INVALID_ARGUMENT, "join|axis|missing");
}

// An axis at the end of the numbers must not be counted past (the axis of old softmax is where the
// rest of the shape begins).
Test(bad_input, softmax_axes) {
    static const int64_t axes[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, 5};
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); ++i) {
        pb graph = small_graph();
        pb axis = attr_int("axis", axes[i]);
        const char *inputs[] = {"x", NULL}, *outputs[] = {"y", NULL};
        graph_node(&graph, "Softmax", "soft", inputs, outputs, &axis, 1);
        pb old = model_of(&graph, 11), current = model_of(&graph, 13);
        expect(&old, BERTH_OUT_OF_RANGE, "model.onnx|soft|axis");
        expect(&current, BERTH_OUT_OF_RANGE, "model.onnx|soft|axis");
    }
}

// An operand whose shape does not fit the others' would be read beyond its end.
Test(bad_input, recurrent_shapes) {
    // X, W, R, B, first state of a GRU with 2 steps, batch 3, input 4, hidden 5: each wrong once.
    static const struct {
        const char *name;
        int rank;
        int64_t dims[3];
    } good[] = {{"x", 3, {2, 3, 4}},
                {"w", 3, {1, 15, 4}},
                {"r", 3, {1, 15, 5}},
                {"b", 2, {1, 30}},
                {"h", 3, {1, 3, 5}}};
    static const char *const says[] = {"input weights", "input weights", "recurrence weights",
                                       "bias", "initial hidden state"};
    for (int wrong = -1; wrong < 5; ++wrong) {
        pb graph = {.size = 0};
        for (int i = 0; i < 5; ++i) {
            int64_t dims[3] = {good[i].dims[0], good[i].dims[1], good[i].dims[2]};
            dims[good[i].rank - 1] += i == wrong;
            graph_input(&graph, good[i].name, good[i].rank, dims);
        }
        const int64_t y[4] = {2, 1, 3, 5};
        graph_output(&graph, "y", 4, y);
        const char *inputs[] = {"x", "w", "r", "b", "", "h", NULL}, *outputs[] = {"y", NULL};
        pb hidden = attr_int("hidden_size", 5);
        graph_node(&graph, "GRU", "cell", inputs, outputs, &hidden, 1);
        expect_graph(&graph, wrong < 0 ? BERTH_CODE_OK : BERTH_INVALID_ARGUMENT,
                     wrong < 0    ? ""
                     : wrong == 2 ? "hidden"
                                  : says[wrong]);
        pb ranks = {.size = 0};
        for (int i = 0; i < 5; ++i)
            graph_input(&ranks, good[i].name, i == wrong ? 1 : good[i].rank, good[i].dims);
        graph_output(&ranks, "y", 4, y);
        graph_node(&ranks, "GRU", "cell", inputs, outputs, &hidden, 1);
        expect_graph(&ranks, wrong < 0 ? BERTH_CODE_OK : BERTH_INVALID_ARGUMENT,
                     wrong < 0 ? "" : "cell");
    }
}

Test(bad_input, unknown_operators_come_together) {
    pb graph = small_graph();
    graph_node1(&graph, "Frobnicate", "f1", "x", "x", "a");
    graph_node1(&graph, "Frobnicate", "f2", "x", "a", "b");
    graph_node1(&graph, "Transmogrify", "t1", "x", "b", "y");
    expect_graph(&graph, BERTH_UNSUPPORTED,
                 "model.onnx|Frobnicate x2|f1|f2|Transmogrify x1|t1|unknown operator");
}

Test(bad_input, opsets) {
    pb graph = small_graph();
    graph_node1(&graph, "Add", "add", "x", "x", "y");
    pb model = model_of(&graph, 99);
    expect(&model, BERTH_UNSUPPORTED, "model.onnx|opset 99");
    model = model_of(&graph, -1);
    expect(&model, BERTH_UNSUPPORTED, "opset -1");
    graph = small_graph();
    graph_node1(&graph, "Mod", "rest", "x", "x", "y");
    model = model_of(&graph, 2);
    expect(&model, BERTH_UNSUPPORTED, "rest|Mod of opset 2");
}

Test(bad_input, graphs_nested_too_deeply) {
    pb inner = {.size = 0};
    for (int depth = 0; depth < 12; ++depth) {
        const char *inputs[] = {"c", NULL};
        const char *outputs[] = {"y", NULL};
        pb graph = {.size = 0};
        pb attr = attr_graph("then_branch", &inner);
        graph_node(&graph, "If", "if", inputs, outputs, &attr, 1);
        inner = graph;
    }
    expect_graph(&inner, BERTH_INVALID_ARGUMENT, "model.onnx|nested");
}

// ---- external data ----

static pb external_graph(const char *location, const char *offset) {
    pb graph = small_graph();
    pb tensor = {.size = 0};
    const char *entries[2][2] = {{"location", location}, {"offset", offset}};
    pb_int(&tensor, 1, 4);
    pb_int(&tensor, 2, 1);
    pb_text(&tensor, 8, "w");
    pb_int(&tensor, 14, 1);
    for (int i = 0; i < 2; ++i) {
        pb entry = {.size = 0};
        pb_text(&entry, 1, entries[i][0]);
        pb_text(&entry, 2, entries[i][1]);
        pb_message(&tensor, 13, &entry);
    }
    pb_message(&graph, 5, &tensor);
    graph_node1(&graph, "Add", "add", "x", "w", "y");
    return graph;
}

static berth_status import_in(berth_arena *arena, const char *folder, const char *location,
                              const char *offset, berth_module **out_module) {
    pb graph = external_graph(location, offset);
    pb model = model_of(&graph, 13);
    return berth_onnx_import_memory(arena, model.data, model.size, "model.onnx", folder, NULL,
                                    out_module);
}

Test(bad_input, external_data_stays_in_the_folder) {
    char folder[] = "/tmp/berth_onnx_XXXXXX";
    char path[256];
    cr_assert(mkdtemp(folder));
    static const struct {
        const char *location;
        const char *offset;
        berth_code code;
    } cases[] = {
        {"weights.bin", "16", BERTH_CODE_OK},
        {"weights.bin", "3", BERTH_CODE_OK},
        {"weights.bin", "32", BERTH_INVALID_ARGUMENT},
        {"weights.bin", "99999999999", BERTH_INVALID_ARGUMENT},
        {"weights.bin", "-4", BERTH_INVALID_ARGUMENT},
        {"/etc/passwd", "0", BERTH_INVALID_ARGUMENT},
        {"../weights.bin", "0", BERTH_INVALID_ARGUMENT},
        {"a/../../b", "0", BERTH_INVALID_ARGUMENT},
        {"", "0", BERTH_INVALID_ARGUMENT},
        {"link.bin", "0", BERTH_INVALID_ARGUMENT},
        {"up/passwd", "0", BERTH_INVALID_ARGUMENT},
        {"absent.bin", "0", BERTH_NOT_FOUND},
    };
    snprintf(path, sizeof(path), "%s/weights.bin", folder);
    FILE *file = fopen(path, "wb");
    const float values[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    cr_assert(file && fwrite(values, 1, 40, file) == 40);
    fclose(file);
    char link_path[256];
    char up_path[256];
    snprintf(link_path, sizeof(link_path), "%s/link.bin", folder);
    snprintf(up_path, sizeof(up_path), "%s/up", folder);
    cr_assert(symlink("/etc/passwd", link_path) == 0 && symlink("/etc", up_path) == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        cr_assert(!berth_arena_create(berth_allocator_system(), &arena));
        berth_status status = import_in(arena, folder, cases[i].location, cases[i].offset, &module);
        cr_expect_eq(berth_status_code(status), cases[i].code, "\"%s\" at %s: %s",
                     cases[i].location, cases[i].offset, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
    cr_expect(unlink(path) == 0 && unlink(link_path) == 0 && unlink(up_path) == 0 &&
              rmdir(folder) == 0);
}

// ---- out of memory ----

Test(bad_input, every_allocation_may_fail) {
    pb graph = small_graph();
    graph_floats(&graph, "w", 4, 16);
    graph_node1(&graph, "Add", "add", "x", "w", "h");
    graph_node1(&graph, "Mul", "mul", "h", "h", "y");
    pb model = model_of(&graph, 13);
    bool done = false;
    for (int64_t at = 1; !done; ++at) {
        cr_assert_lt(at, 10000);
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        if (!status)
            status = berth_onnx_import_memory(arena, model.data, model.size, "model.onnx", NULL,
                                              NULL, &module);
        atomic_store(&counting.fail_at, 0);
        done = status == BERTH_OK;
        if (!done)
            cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                         berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_expect_eq(atomic_load(&counting.live_bytes), 0, "failing allocation %lld leaks",
                     (long long)at);
    }
}

static berth_status import_within(berth_arena *arena, const pb *model, const berth_limits *limits) {
    berth_import_options options = {.limits = limits};
    berth_module *module = NULL;
    return berth_onnx_import_memory(arena, model->data, model->size, "m.onnx", NULL, &options,
                                    &module);
}

Test(bad_input, limits_of_nodes_and_bytes) {
    pb graph = small_graph();
    graph_node1(&graph, "Mul", "first", "x", "x", "h");
    graph_node1(&graph, "Add", "second", "x", "h", "y");
    pb model = model_of(&graph, 13);
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_limits limits = {.items = 2, .bytes = model.size};
    assert_ok(import_within(arena, &model, &limits));
    limits.items = 1;
    assert_fails(import_within(arena, &model, &limits), BERTH_OUT_OF_RANGE,
                 "m.onnx: more than 1 nodes");
    limits = (berth_limits){.bytes = model.size - 1};
    assert_fails(import_within(arena, &model, &limits), BERTH_OUT_OF_RANGE, "m.onnx: ");
    berth_arena_destroy(arena);
}
