// Operators that are written as several: what is wrong in a node is an error that names it, and narrow
// element types are what their formats say.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/narrow.h"
#include "compiler/onnx/import.h"
#include "tests/onnx/model_writer.h"

static const int64_t cube[] = {2, 3, 8};
static const int64_t image[] = {1, 4, 5, 5};
static const int64_t matrix[] = {2, 3};

typedef struct row {
    const char *op_type;
    const char *const *inputs;
    const pb *attributes;
    int attribute_count;
    const char *what;  // the error has this
} row;

#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static pb attr_text(const char *name, const char *text) {
    pb attribute = {.size = 0};
    pb_text(&attribute, 1, name);
    pb_text(&attribute, 4, text);
    pb_int(&attribute, 20, 3);
    return attribute;
}

// An initializer of i64[1].
static void graph_number(pb *graph, const char *name, int64_t value) {
    pb tensor = {.size = 0};
    pb_int(&tensor, 1, 1);
    pb_int(&tensor, 2, 7);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, &value, sizeof(value));
    pb_message(graph, 5, &tensor);
}

static void expect(const row *r, const char *domain) {
    pb graph = {.size = 0}, model = {.size = 0}, node = {.size = 0};
    graph_input(&graph, "cube", 3, cube);
    graph_input(&graph, "image", 4, image);
    graph_input(&graph, "matrix", 2, matrix);
    graph_input(&graph, "one", 0, NULL);
    graph_value(&graph, 11, "ids", 7, 1, cube);
    graph_value(&graph, 11, "code", 17, 1, cube);
    graph_value(&graph, 11, "nibble", 22, 1, cube);
    graph_value(&graph, 11, "nibbles", 22, 3, cube);
    graph_number(&graph, "two", 2);
    graph_number(&graph, "three", 3);
    graph_number(&graph, "eight", 8);
    graph_output(&graph, "y", 0, NULL);
    for (const char *const *in = r->inputs; *in; ++in) pb_text(&node, 1, *in);
    pb_text(&node, 2, "y");
    pb_text(&node, 3, "THE_NODE");
    pb_text(&node, 4, r->op_type);
    for (int i = 0; i < r->attribute_count; ++i) pb_message(&node, 5, &r->attributes[i]);
    if (*domain) pb_text(&node, 7, domain);
    pb_message(&graph, 1, &node);
    model = model_of(&graph, 28);
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status =
        berth_onnx_import_memory(arena, model.data, model.size, "model.onnx", NULL, NULL, &module);
    cr_expect_not_null(status, "%s: no error that says %s", r->op_type, r->what);
    if (status) {
        const char *message = berth_status_message(status);
        cr_expect(strstr(message, r->what) && strstr(message, "THE_NODE"), "%s: %s", r->op_type,
                  message);
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
}

Test(compositions, wrong_attributes_of_attention) {
    const row rows[] = {
        {"Attention", INPUTS("cube", "cube", "cube"), NULL, 0, "in 0 heads"},
        {"Attention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("q_num_heads", 3), attr_int("kv_num_heads", 3)}, 2, "in 3 heads"},
        {"Attention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("q_num_heads", INT64_MIN), attr_int("kv_num_heads", 2)}, 2, "heads"},
        {"Attention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("q_num_heads", 2), attr_int("kv_num_heads", 4)}, 2, "share"},
        {"Attention", INPUTS("image", "image", "image"),
         (pb[]){attr_int("qk_matmul_output_mode", 9)}, 1, "mode is 9"},
        {"Attention", INPUTS("image", "image", "image"), (pb[]){attr_int("left_window_size", -5)},
         1, "window"},
        {"Attention", INPUTS("image", "image", "image"), (pb[]){attr_int("softmax_precision", 7)},
         1, "floating-point"},
        {"Attention", INPUTS("image", "image"), NULL, 0, "input 2 is missing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "");
}

Test(compositions, wrong_attributes_of_layers) {
    const row rows[] = {
        {"RMSNormalization", INPUTS("cube", "cube"), (pb[]){attr_int("axis", 3)}, 1, "axis"},
        {"RotaryEmbedding", INPUTS("cube", "cube", "cube"), (pb[]){attr_int("num_heads", 3)}, 1,
         "heads"},
        {"RotaryEmbedding", INPUTS("image", "cube", "cube"),
         (pb[]){attr_int("rotary_embedding_dim", 3)}, 1, "rotation of 3"},
        {"CausalConvWithState", INPUTS("cube", "cube"), (pb[]){attr_text("activation", "tanh")}, 1,
         "activation"},
        {"TensorScatter", INPUTS("cube", "cube"), (pb[]){attr_int("axis", 0)}, 1, "axis"},
        {"LinearAttention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("q_num_heads", 2), attr_int("kv_num_heads", 0),
                attr_text("update_rule", "linear")},
         3, "share"},
        {"LinearAttention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("q_num_heads", 2), attr_int("kv_num_heads", 2)}, 2, "decay or beta"},
        {"NegativeLogLikelihoodLoss", INPUTS("cube", "ids"), (pb[]){attr_text("reduction", "most")},
         1, "reduction"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "");
}

Test(compositions, wrong_attributes_of_images) {
    const int64_t twice[] = {0, 0}, far[] = {9}, three[] = {1, 1, 1};
    const row rows[] = {
        {"CenterCropPad", INPUTS("cube", "ids"), (pb[]){attr_ints("axes", twice, 2)}, 1, "twice"},
        {"CenterCropPad", INPUTS("cube", "ids"), (pb[]){attr_ints("axes", far, 1)}, 1, "axes[0]"},
        {"AffineGrid", INPUTS("cube", "ids"), NULL, 0, "3 x 8"},
        {"DeformConv", INPUTS("image", "image", "image"), (pb[]){attr_int("group", 0)}, 1, "group"},
        {"DeformConv", INPUTS("image", "image", "image"), (pb[]){attr_ints("strides", three, 3)}, 1,
         "strides"},
        {"DeformConv", INPUTS("cube", "cube", "cube"), NULL, 0, "two spatial"},
        {"Col2Im", INPUTS("image", "ids", "ids"), NULL, 0, "expected 3"},
        {"Col2Im", INPUTS("cube", "ids", "ids"), (pb[]){attr_ints("strides", three, 3)}, 1,
         "strides"},
        {"Col2Im", INPUTS("cube", "ids", "ids"), (pb[]){attr_ints("dilations", twice, 2)}, 1,
         "dilation 0"},
        {"Col2Im", INPUTS("cube", "eight", "two"), NULL, 0, "3 x 8 do not fit 2 taps"},
        {"Col2Im", INPUTS("cube", "eight", "three"), NULL, 0, "3 taps and 6 windows"},
        {"Col2Im", INPUTS("cube", "two", "eight"), NULL, 0, "no window of 8 taps"},
        {"RandomUniform", INPUTS(""), (pb[]){attr_ints("shape", (int64_t[]){-1}, 1)}, 1,
         "negative"},
        {"Multinomial", INPUTS("matrix"), (pb[]){attr_int("sample_size", 0)}, 1, "0 samples"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "");
}

Test(compositions, wrong_element_types) {
    const row rows[] = {
        {"QuantizeLinear", INPUTS("cube", "one"), (pb[]){attr_int("block_size", -2)}, 1,
         "block_size"},
        {"QuantizeLinear", INPUTS("cube", "cube"),
         (pb[]){attr_int("block_size", 2), attr_int("axis", 2)}, 2, "blocks"},
        {"DequantizeLinear", INPUTS("code", "one", "ids"), NULL, 0, "element type"},
        {"Cast", INPUTS("cube"), (pb[]){attr_int("to", 99)}, 1, "99"},
        {"Cast", INPUTS("cube"), (pb[]){attr_int("to", 24), attr_text("round_mode", "odd")}, 2,
         "round_mode"},
        {"BitCast", INPUTS("nibble"), (pb[]){attr_int("to", 2)}, 1, "int4"},
        {"BitCast", INPUTS("cube"), (pb[]){attr_int("to", 7)}, 1, "another size"},
        {"Add", INPUTS("code", "code"), NULL, 0, "float8e4m3fn"},
        {"MatMul", INPUTS("nibble", "nibble"), NULL, 0, "int4"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "");
}

Test(compositions, wrong_attributes_of_microsoft) {
    const row rows[] = {
        {"MatMulNBits", INPUTS("matrix", "ids", "cube"),
         (pb[]){attr_int("K", 3), attr_int("N", INT64_MAX), attr_int("block_size", 16)}, 3,
         "N 9223372036854775807"},
        {"MatMulNBits", INPUTS("matrix", "ids", "cube"),
         (pb[]){attr_int("K", 3), attr_int("N", 4), attr_int("block_size", 16),
                attr_int("bits", 3)},
         4, "3 bits"},
        {"MultiHeadAttention", INPUTS("cube", "cube", "cube"), (pb[]){attr_int("num_heads", -1)}, 1,
         "heads"},
        {"GroupQueryAttention", INPUTS("cube", "cube", "cube"),
         (pb[]){attr_int("num_heads", 2), attr_int("kv_num_heads", 0)}, 2, "kv_num_heads"},
        {"Attention", INPUTS("cube", "matrix"), (pb[]){attr_int("num_heads", 2)}, 1, "THE_NODE"},
        {"FusedConv", INPUTS("image", "image"), (pb[]){attr_text("activation", "Sin")}, 1, "Sin"},
        {"QLinearAdd", INPUTS("ids", "one"), NULL, 0, "input 3 is missing"},
        {"GatherBlockQuantized", INPUTS("cube", "ids", "cube"), NULL, 0, "other types than int4"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "cube"),
         (pb[]){attr_int("gather_axis", 3)}, 1, "gather_axis 3 of 3"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "cube"),
         (pb[]){attr_int("block_size", 24)}, 1, "blocks of 24"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "cube"),
         (pb[]){attr_int("quantize_axis", 0)}, 1, "along axis 0, gathered along 0"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "cube"),
         (pb[]){attr_int("block_size", 16)}, 1, "3 blocks of 16 do not make an axis of 3"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "matrix"), NULL, 0, "scales"},
        {"GatherBlockQuantized", INPUTS("nibbles", "ids", "cube", "cube"), NULL, 0,
         "zero points have another"},
        {"SkipLayerNormalization", INPUTS("cube", "cube"), NULL, 0, "input 2 is missing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "com.microsoft");
}

Test(compositions, wrong_attributes_of_ml) {
    const int64_t zero[] = {0}, one[] = {1}, root_twice[] = {0, 0};
    const float weight[] = {1};
    const row rows[] = {
        {"TreeEnsembleRegressor", INPUTS("matrix"), NULL, 0, "0 nodes"},
        {"TreeEnsembleRegressor", INPUTS("matrix"),
         (pb[]){attr_ints("nodes_nodeids", zero, 1), attr_ints("nodes_treeids", root_twice, 2)}, 2,
         "nodes_treeids has 2"},
        {"TreeEnsembleRegressor", INPUTS("matrix"),
         (pb[]){attr_ints("nodes_nodeids", zero, 1), attr_int("n_targets", INT64_MAX)}, 2,
         "targets"},
        {"LinearRegressor", INPUTS("matrix"),
         (pb[]){attr_floats("coefficients", weight, 1), attr_int("targets", 0)}, 2, "THE_NODE"},
        {"LinearClassifier", INPUTS("matrix"), (pb[]){attr_ints("classlabels_ints", one, 1)}, 1,
         "intercept"},
        {"LabelEncoder", INPUTS("ids"), (pb[]){attr_ints("keys_int64s", one, 1)}, 1, "values"},
        {"Normalizer", INPUTS("matrix"), (pb[]){attr_text("norm", "L3")}, 1, "L3"},
        {"Imputer", INPUTS("matrix"), NULL, 0, "imputed"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) expect(&rows[i], "ai.onnx.ml");
}

// Values of codes that the papers and the OCP specification give.
Test(narrow, values_of_codes) {
    static const struct {
        int element, code;
        double value;
    } rows[] = {
        {17, 0x00, 0},         {17, 0x01, 0x1p-9},  {17, 0x08, 0x1p-6},  {17, 0x38, 1},
        {17, 0x7e, 448},       {17, 0xfe, -448},    {17, 0x7f, NAN},     {18, 0x80, NAN},
        {18, 0x7f, 240},       {18, 0x01, 0x1p-10}, {19, 0x7b, 57344},   {19, 0x7c, INFINITY},
        {19, 0xfc, -INFINITY}, {19, 0x7d, NAN},     {19, 0x01, 0x1p-16}, {20, 0x7f, 57344},
        {20, 0x80, NAN},       {20, 0x01, 0x1p-17}, {23, 0x7, 6},        {23, 0x1, 0.5},
        {23, 0xf, -6},         {23, 0x3, 1.5},      {24, 0x7f, 1},       {24, 0x00, 0x1p-127},
        {24, 0xfe, 0x1p127},   {24, 0xff, NAN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        double value = berth_narrow_value(berth_narrow_type_of(rows[i].element), rows[i].code);
        bool same = isnan(rows[i].value) ? isnan(value) : value == rows[i].value;
        cr_expect(same, "element type %d, code 0x%x: %g, expected %g", rows[i].element,
                  rows[i].code, value, rows[i].value);
    }
}

Test(narrow, unpacking) {
    static const uint8_t packed[] = {0xf8, 0x07};
    uint8_t out[8] = {0};
    berth_narrow_unpack(berth_narrow_type_of(22), packed, 3, out);
    cr_expect((int8_t)out[0] == -8 && (int8_t)out[1] == -1 && (int8_t)out[2] == 7 && out[3] == 0);
    berth_narrow_unpack(berth_narrow_type_of(21), packed, 3, out);
    cr_expect(out[0] == 8 && out[1] == 15 && out[2] == 7);
    berth_narrow_unpack(berth_narrow_type_of(26), packed, 5, out);  // 00 10 11 11 11
    cr_expect((int8_t)out[0] == 0 && (int8_t)out[1] == -2 && (int8_t)out[2] == -1 &&
              (int8_t)out[4] == -1);
}
