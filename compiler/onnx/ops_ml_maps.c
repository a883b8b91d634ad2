// Operators of ai.onnx.ml on maps, and CategoryMapper.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

static berth_value_id looked_up(onnx_compose *c, berth_value_id x, berth_value_id keys,
                                berth_value_id values, berth_value_id absent) {
    berth_value_id operands[4] = {x, keys, values, absent};
    return onnx_make(c, BERTH_OP_LOOKUP, operands, 4);
}

berth_status onnx_build_ml_category_mapper(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    const onnx_attr *numbers = onnx_call_attr(call, "cats_int64s");
    const onnx_attr *words = onnx_call_attr(call, "cats_strings");
    berth_value_id x = onnx_compose_input(&c, 0);
    if (!numbers || !words || numbers->ints.count != words->strings.count)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "as many cats_int64s as cats_strings are needed");
    if (c.status) return c.status;
    berth_value_id ints = onnx_int_list(&c, numbers->ints.data, numbers->ints.count);
    berth_value_id strings = onnx_string_list(&c, words);
    berth_dtype dtype = onnx_compose_dtype(&c, x);
    if (dtype != BERTH_DTYPE_STRING && dtype != BERTH_DTYPE_I64)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "the input is %s; i64 or string is expected",
                          berth_dtype_name(dtype));
    if (dtype == BERTH_DTYPE_STRING)
        x = looked_up(
            &c, x, strings, ints,
            onnx_scalar(&c, BERTH_DTYPE_I64, (double)onnx_call_int(call, "default_int64", -1)));
    else
        x = looked_up(&c, x, ints, strings,
                      onnx_ml_text(&c, onnx_call_string(call, "default_string", "_Unused")));
    onnx_compose_output(&c, 0, x);
    return c.status;
}

// ---- maps ----

// A map for each row of scores.
berth_status onnx_build_ml_zip_map(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t count = 0;
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id keys =
        onnx_ml_class_names(&c, "classlabels_int64s", "classlabels_strings", &count);
    onnx_compose_want_rank(&c, x, "the input", 1, 2);
    if (c.status) return c.status;
    onnx_made made = onnx_start(&c, BERTH_OP_ZIP_MAP, &x, 1, 1);
    onnx_set_tensor(made, "keys", onnx_call_constant(call, keys));
    onnx_compose_output(&c, 0, onnx_finish(made));
    return c.status;
}

// The values of the vocabulary's keys, as one row; 0 or nothing where the map lacks one. What the map
// holds is only known in the run, so the model's declared output says it: f32 where it says nothing.
berth_status onnx_build_ml_dict_vectorizer(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t count = 0;
    berth_value_id map = onnx_compose_input(&c, 0);
    berth_value_id wanted =
        onnx_ml_class_names(&c, "int64_vocabulary", "string_vocabulary", &count);
    berth_value_id keys = onnx_make1(&c, BERTH_OP_MAP_KEYS, map);
    berth_value_id values = onnx_make1(&c, BERTH_OP_MAP_VALUES, map);
    values = onnx_cast_to(&c, values, BERTH_DTYPE_F32);
    berth_value_id row = looked_up(&c, wanted, keys, values, onnx_scalar(&c, BERTH_DTYPE_F32, 0));
    onnx_compose_output(&c, 0, onnx_unsqueezed(&c, row, 0));
    return c.status;
}

berth_status onnx_build_ml_cast_map(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    static const struct {
        const char *name;
        berth_dtype dtype;
    } types[] = {{"TO_FLOAT", BERTH_DTYPE_F32},
                 {"TO_STRING", BERTH_DTYPE_STRING},
                 {"TO_INT64", BERTH_DTYPE_I64}};
    const char *to = onnx_call_string(call, "cast_to", "TO_FLOAT");
    const char *form = onnx_call_string(call, "map_form", "DENSE");
    int64_t most = onnx_call_int(call, "max_map", 1);
    berth_dtype dtype = BERTH_DTYPE_NONE;
    for (int i = 0; i < 3; ++i)
        if (strcmp(to, types[i].name) == 0) dtype = types[i].dtype;
    bool sparse = strcmp(form, "SPARSE") == 0;
    if (!dtype || (!sparse && strcmp(form, "DENSE") != 0))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "cast_to \"%.40s\", map_form \"%.40s\"", to,
                          form);
    if (sparse && (most < 1 || most > 1 << 20))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "max_map is %lld", (long long)most);
    berth_value_id map = onnx_compose_input(&c, 0);
    berth_value_id row = onnx_make1(&c, BERTH_OP_MAP_VALUES, map);
    row = onnx_cast_to(&c, row, dtype);
    if (sparse && !c.status) {
        berth_value_id keys = onnx_make1(&c, BERTH_OP_MAP_KEYS, map);
        berth_value_id places = onnx_counting(&c, onnx_scalar(&c, BERTH_DTYPE_I64, (double)most));
        berth_value_id absent =
            dtype == BERTH_DTYPE_STRING ? onnx_ml_text(&c, "") : onnx_scalar(&c, dtype, 0);
        row = looked_up(&c, places, keys, row, absent);
    }
    onnx_compose_output(&c, 0, onnx_unsqueezed(&c, row, 0));
    return c.status;
}
