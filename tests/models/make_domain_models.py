#!/usr/bin/env python3
"""Writes node models of operators of com.microsoft and ai.onnx.ml, with what ONNX Runtime computes for them, to
tests/models/domains: model.onnx and test_data_set_0 each, for `node_models --data`. Needs onnx, onnxruntime, ml_dtypes and numpy.
Usage: make_domain_models.py [FOLDER]"""
import pathlib
import shutil
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

random = np.random.default_rng(7)
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "domains")
MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"


def floats(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def numbers(low, high, shape, dtype):
    return random.integers(low, high, shape).astype(dtype)


def case(name, op_type, inputs, outputs, domain=MICROSOFT, constants=(), open_dims=False, main_opset=18, ml_opset=3, **attributes):
    """inputs: arrays, None = left out; constants: indices of those that are initializers; outputs: their count, or
    indices of the wanted ones; open_dims: the dimensions of inputs
    (True), or the first so many, have names in place of extents."""
    wanted = list(range(outputs)) if isinstance(outputs, int) else outputs
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    results = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    node = helper.make_node(op_type, names, results, domain=domain, **attributes)
    given = [i for i, value in enumerate(inputs) if value is not None]
    free = [i for i in given if i not in constants]
    opened = lambda i: inputs[i].ndim if open_dims is True else int(open_dims)
    dims = lambda i: [f"{names[i]}_{axis}" if axis < opened(i) else extent for axis, extent in enumerate(inputs[i].shape)]
    info = lambda i: helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(inputs[i].dtype), dims(i))
    kept = [numpy_helper.from_array(inputs[i], names[i]) for i in constants]
    shown = [onnx.ValueInfoProto(name=name) for name in results if name]
    opsets = [helper.make_opsetid("", main_opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid(ML, ml_opset)]
    graph = helper.make_graph([node], name, [info(i) for i in free], shown, kept)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="make_domain_models.py")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {names[i]: inputs[i] for i in free})
    del model.graph.output[:]
    for output, value in zip([name for name in results if name], expected):
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        model.graph.output.append(helper.make_tensor_value_info(output, kind, value.shape))
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(model.SerializeToString())
    for at, i in enumerate(free):
        (data / f"input_{at}.pb").write_bytes(numpy_helper.from_array(inputs[i], names[i]).SerializeToString())
    for at, value in enumerate(expected):
        (data / f"output_{at}.pb").write_bytes(numpy_helper.from_array(value, f"y{wanted[at]}").SerializeToString())


def activations():
    case("gelu", "Gelu", [floats(3, 5) * 3], 1)
    case("bias_gelu", "BiasGelu", [floats(3, 5), floats(5)], 1)
    case("fast_gelu", "FastGelu", [floats(3, 5), floats(5)], 1)
    case("quick_gelu", "QuickGelu", [floats(3, 5)], 1, alpha=1.5)
    image, weights = floats(1, 4, 5, 5), floats(3, 4, 3, 3)
    for activation, params in (("Relu", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        case(f"fused_conv_{activation.lower()}", "FusedConv", [image, weights, floats(3)], 1, activation=activation,
             pads=[1, 1, 1, 1], **more)
    case("fused_conv_sum", "FusedConv", [image, weights, floats(3), floats(1, 3, 3, 3)], 1, activation="Relu")
    case("fused_gemm", "FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], 1, activation="LeakyRelu", transB=1,
         activation_alpha=0.2)
    case("fused_matmul", "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], 1, transA=1, transB=1, alpha=0.5)


def normalisations():
    x, skip, scale, shift, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    case("skip_layer_norm", "SkipLayerNormalization", [x, skip, scale, shift, bias], [0, 3], epsilon=1e-5)
    case("skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, scale], 1)
    case("simplified_norm", "SimplifiedLayerNormalization", [x, scale], 1, domain="", epsilon=1e-5)
    case("skip_simplified_norm", "SkipSimplifiedLayerNormalization", [x, skip, scale, bias], [0, 3], epsilon=1e-5)
    ids, segments = numbers(0, 9, (2, 3), np.int32), numbers(0, 2, (2, 3), np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    tables = [floats(9, 8), floats(5, 8), floats(2, 8)]
    case("embed_layer_norm", "EmbedLayerNormalization", [ids, segments, *tables, scale, shift, mask], [0, 1], epsilon=1e-5)


def quantised():
    a, b = numbers(0, 256, (3, 4), np.uint8), numbers(0, 256, (3, 4), np.uint8)
    s = lambda value: np.array(value, np.float32)
    z = lambda value: np.array(value, np.uint8)
    case("qlinear_add", "QLinearAdd", [a, s(0.1), z(120), b, s(0.05), z(100), s(0.15), z(128)], 1)
    case("qlinear_mul", "QLinearMul", [a, s(0.1), z(120), b, s(0.05), z(100), s(0.7), z(128)], 1)
    case("qlinear_concat", "QLinearConcat", [s(0.1), z(128), a, s(0.1), z(120), b, s(0.05), z(100)], 1, axis=1)
    image = numbers(0, 256, (1, 3, 4, 4), np.uint8)
    case("qlinear_global_average_pool", "QLinearGlobalAveragePool", [image, s(0.1), z(120), s(0.03), z(128)], 1)
    case("qlinear_average_pool", "QLinearAveragePool", [image, s(0.1), z(120), s(0.07), z(128)], 1, kernel_shape=[2, 2])
    case("qlinear_leaky_relu", "QLinearLeakyRelu", [a, s(0.1), z(120), s(0.08), z(20)], 1, alpha=0.2)
    case("qlinear_sigmoid", "QLinearSigmoid", [a, s(0.05), z(120), s(1 / 256), z(0)], 1)
    case("qlinear_softmax", "QLinearSoftmax", [a, s(0.02), z(120), s(1 / 256), z(0)], 1, axis=-1, opset=13)
    x, weights = floats(3, 8), numbers(-127, 128, (8, 5), np.int8)
    case("dynamic_quantize_matmul", "DynamicQuantizeMatMul",
         [x, weights, np.abs(floats(5)) + 0.1, np.zeros(5, np.int8), floats(5)], 1)
    case("matmul_integer_to_float", "MatMulIntegerToFloat",
         [numbers(0, 256, (3, 8), np.uint8), weights, s(0.1), s(0.02), z(128), np.array(0, np.int8), floats(5)], 1)
    case("ms_quantize", "QuantizeLinear", [x, s(0.02), z(100)], 1)
    case("ms_dequantize", "DequantizeLinear", [a, s(0.02), z(100)], 1)
    n, k, block = 6, 40, 16
    groups = -(-k // block)
    packed = numbers(0, 256, (n, groups, block // 2), np.uint8)
    scales, zeros = floats(n * groups), numbers(0, 256, (n * ((groups + 1) // 2),), np.uint8)
    case("matmul_nbits", "MatMulNBits", [floats(3, k), packed, scales], 1, constants=(1, 2), K=k, N=n, bits=4, block_size=block)
    case("matmul_nbits_zeros", "MatMulNBits", [floats(3, k), packed, scales, zeros], 1, constants=(1, 2, 3), K=k, N=n, bits=4,
         block_size=block)


def attention():
    batch, queries, heads, size = 2, 3, 2, 4
    hidden = heads * size
    q, k, v = floats(batch, queries, hidden), floats(batch, 5, hidden), floats(batch, 5, hidden)
    case("multi_head_attention", "MultiHeadAttention", [q, k, v], 1, num_heads=heads)
    case("multi_head_attention_bias", "MultiHeadAttention", [q, k, v, floats(3 * hidden)], 1, num_heads=heads, scale=0.3)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    case("multi_head_attention_mask", "MultiHeadAttention", [q, k, v, None, mask, floats(1, heads, queries, 5)], 1,
         num_heads=heads)
    past = floats(batch, heads, 2, size), floats(batch, heads, 2, size)
    new = floats(batch, queries, hidden), floats(batch, queries, hidden)
    case("multi_head_attention_past", "MultiHeadAttention", [q, *new, None, None, None, *past], 3, num_heads=heads,
         unidirectional=1)
    x, weights, bias = floats(batch, queries, 6), floats(6, 3 * hidden), floats(3 * hidden)
    case("ms_attention", "Attention", [x, weights, bias], 1, constants=(1, 2), num_heads=heads)
    rows = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    case("ms_attention_mask", "Attention", [x, weights, bias, rows], 1, constants=(1, 2), num_heads=heads)
    case("ms_attention_counts", "Attention", [x, weights, bias, np.array([2, 3], np.int32)], 1, constants=(1, 2),
         num_heads=heads)
    case("ms_attention_past", "Attention", [x, weights, bias, None, floats(2, batch, heads, 2, size)], 2, constants=(1, 2),
         num_heads=heads, unidirectional=1)
    quantised_weights = numbers(-127, 128, (6, 3 * hidden), np.int8)
    case("qattention", "QAttention",
         [numbers(0, 256, (batch, queries, 6), np.uint8), quantised_weights, bias, np.array(0.02, np.float32),
          np.array(0.01, np.float32), None, np.array(128, np.uint8), np.array(0, np.int8)], 1, constants=(1, 2),
         num_heads=heads)
    angles = np.outer(np.arange(16), [1.0, 0.1]).astype(np.float32)
    tables = np.cos(angles), np.sin(angles)
    case("ms_rotary_embedding", "RotaryEmbedding", [q, np.array([[3, 4, 5], [0, 1, 2]], np.int64), *tables], 1)
    case("ms_rotary_embedding_first", "RotaryEmbedding", [floats(batch, heads, 3, size), np.array([3], np.int64), *tables], 1,
         interleaved=1)
    size, hidden = 16, 16 * heads  # what its kernel wants
    angles = np.outer(np.arange(16), 0.7 ** np.arange(8)).astype(np.float32)
    tables, q = (np.cos(angles), np.sin(angles)), floats(batch, queries, hidden)
    total = np.array([queries - 1] * batch, np.int32), np.array(queries, np.int32)
    k, v = floats(batch, queries, size), floats(batch, queries, size)
    case("group_query_attention", "GroupQueryAttention", [q, k, v, None, None, *total], 3, constants=(6,), num_heads=heads,
         kv_num_heads=1)
    case("group_query_attention_rotary", "GroupQueryAttention", [q, k, v, None, None, *total, *tables], 3, constants=(6,),
         num_heads=heads, kv_num_heads=1, do_rotary=1)
    one = floats(batch, 1, hidden), floats(batch, 1, size), floats(batch, 1, size)
    total = np.array([5, 5], np.int32), np.array(6, np.int32)
    past = floats(batch, 1, 5, size), floats(batch, 1, 5, size)
    case("group_query_attention_past", "GroupQueryAttention", [*one, *past, *total, *tables], 3, constants=(6,),
         num_heads=heads, kv_num_heads=1, do_rotary=1, local_window_size=4)


def trees(prefix, count, features, targets, depth, modes):
    """Attributes of full binary trees whose leaves have a weight for one or two targets."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for node in range(2 ** (depth + 1) - 1):
            inner = node < 2**depth - 1
            entry = (tree, node, int(random.integers(features)) if inner else 0,
                     modes[node % len(modes)] if inner else "LEAF", float(random.integers(-4, 5)) / 4 if inner else 0.0,
                     2 * node + 1 if inner else 0, 2 * node + 2 if inner else 0)
            for key, value in zip(nodes, entry):
                nodes[key].append(value)
            for target in () if inner else sorted({node % targets, (node + tree) % targets}):
                for key, value in zip(leaves, (tree, node, target, float(random.uniform(-1, 1)))):
                    leaves[key].append(value)
    return {f"nodes_{key}": value for key, value in nodes.items()} | {f"{prefix}_{key}": value for key, value in leaves.items()}


def machine_learning():
    x = np.round(floats(5, 4) * 4) / 4
    ml = lambda name, op_type, inputs, outputs, **attributes: case(name, op_type, inputs, outputs, domain=ML, **attributes)
    ml("scaler", "Scaler", [x], 1, offset=[0.5, 0.1, 0.2, 0.3], scale=[2.0, 1.0, 0.5, 4.0])
    ml("scaler_one", "Scaler", [numbers(-5, 5, (3, 2), np.int64)], 1, offset=[0.5], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        ml(f"normalizer_{norm.lower()}", "Normalizer", [np.abs(x)], 1, norm=norm)
    ml("imputer", "Imputer", [np.array([[1, np.nan], [np.nan, 4]], np.float32)], 1, imputed_value_floats=[7.0, 8.0],
       replaced_value_float=float("nan"))
    ml("feature_vectorizer", "FeatureVectorizer", [floats(3, 2), floats(3, 1)], 1, inputdimensions=[2, 1])
    ml("one_hot_encoder", "OneHotEncoder", [np.array([3, 1, 9], np.int64)], 1, cats_int64s=[1, 2, 3], zeros=1)
    ml("label_encoder", "LabelEncoder", [np.array([[3, 1, 9]], np.int64)], 1, keys_int64s=[1, 2, 3], values_floats=[0.5, 1.5, 2.5],
       default_float=-7.0)
    ml("linear_regressor", "LinearRegressor", [x], 1, coefficients=[float(v) for v in floats(8)], intercepts=[0.5, -0.5], targets=2)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        ml(f"linear_classifier_{transform.lower()}", "LinearClassifier", [x], 2, coefficients=[float(v) for v in floats(12)],
           intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 8, 9], post_transform=transform)
    every = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    ml("tree_regressor", "TreeEnsembleRegressor", [x], 1, n_targets=2, base_values=[0.5, 1.5],
       **trees("target", 3, 4, 2, 3, ["BRANCH_LEQ"]))
    ml("tree_regressor_modes", "TreeEnsembleRegressor", [x], 1, n_targets=2, **trees("target", 2, 4, 2, 3, every))
    for how in ("AVERAGE", "MIN", "MAX"):
        ml(f"tree_regressor_{how.lower()}", "TreeEnsembleRegressor", [x], 1, n_targets=1, aggregate_function=how,
           **trees("target", 3, 4, 1, 2, ["BRANCH_LT"]))
    ml("tree_classifier", "TreeEnsembleClassifier", [x], 2, classlabels_int64s=[4, 5, 6], post_transform="SOFTMAX",
       **trees("class", 4, 4, 3, 3, ["BRANCH_LEQ"]))
    holes = trees("class", 4, 4, 3, 3, ["BRANCH_LEQ"])
    holes["nodes_missing_value_tracks_true"] = [node % 2 for node in holes["nodes_nodeids"]]
    x = x.copy()
    x[::2, ::2] = np.nan
    ml("tree_classifier_missing", "TreeEnsembleClassifier", [x], 2, classlabels_int64s=[4, 5, 6], **holes)


def recurrent():
    """One step of values and a state that 8 bits hold exactly, so that it does not matter who quantises them."""
    batch, size, hidden = 2, 3, 4
    for name, directions, channels in (("dynamic_quantize_lstm", 1, False), ("dynamic_quantize_lstm_channels", 2, True)):
        scales = (directions, 4 * hidden) if channels else (directions,)
        x = (numbers(0, 256, (1, batch, size), np.float32) - 128) / 128
        x[0, 0, 0], x[0, 1, 2] = -1, 127 / 128
        state = numbers(0, 256, (directions, batch, hidden), np.float32)
        state[:, :, 0], state[:, :, 1] = 0, 255  # each row by itself: threads share the rows out
        zero = np.zeros(scales, np.int8) if channels else numbers(-9, 9, scales, np.int8)
        weights = [numbers(-127, 128, (directions, inputs, 4 * hidden), np.int8) for inputs in (size, hidden)]
        case(name, "DynamicQuantizeLSTM",
             [x, *weights, floats(directions, 8 * hidden), None, state / np.float32(255),
              floats(directions, batch, hidden), None, np.abs(floats(*scales)) / 100 + np.float32(0.001), zero,
              np.abs(floats(*scales)) / 100 + np.float32(0.001), zero], 3, constants=(1, 2, 8, 9, 10, 11), hidden_size=hidden,
             direction="bidirectional" if directions == 2 else "forward")


def quantised_layers():
    """As ONNX Runtime's tool writes them for QOperator."""
    s = lambda *values: np.array(values if len(values) > 1 else values[0], np.float32)
    z = lambda value, dtype=np.uint8: np.array(value, dtype)
    a, w = numbers(0, 256, (3, 8), np.uint8), numbers(-63, 64, (8, 5), np.int8)  # in 7 bits: ONNX Runtime saturates sums with AVX2
    bias = numbers(-999, 999, (5,), np.int32)
    scales, zeros = s(0.02, 0.01, 0.03, 0.015, 0.025), np.zeros(5, np.int8)
    case("qgemm", "QGemm", [a, s(0.1), z(120), w, s(0.02), z(3, np.int8), bias, s(0.3), z(100)], 1, constants=(3, 4, 5, 6))
    case("qgemm_columns", "QGemm", [a, s(0.1), z(120), np.ascontiguousarray(w.T), scales, zeros, bias, s(0.3), z(100)], 1,
         constants=(3, 4, 5, 6), transB=1, alpha=0.5)
    case("qgemm_real", "QGemm", [np.ascontiguousarray(a.T), s(0.1), z(120), w, s(0.02), z(0, np.int8), bias], 1, constants=(3, 4, 5),
         transA=1, alpha=0.25)
    case("qgemm_plain", "QGemm", [a, s(0.1), z(120), w, scales, zeros, None, s(0.3), z(100)], 1)
    chosen = numbers(0, 2, (3, 8), bool)
    case("qlinear_where", "QLinearWhere", [chosen, a, s(0.1), z(120), a[:1], s(0.05), z(100), s(0.12), z(90)], 1)


def images():
    """Where ONNX Runtime and PyTorch agree, ONNX's reference does not; and dimensions that only the run knows."""
    case("grid_sample_cubic_border", "GridSample", [floats(1, 2, 4, 5), floats(1, 3, 5, 2) * np.float32(1.5)], 1, domain="", mode="bicubic",
         padding_mode="border")
    x, weights, mask = floats(2, 4, 5, 6), floats(4, 2, 3, 2), np.abs(floats(2, 12, 3, 3))
    case("deform_conv_open", "DeformConv", [x, weights, floats(2, 24, 3, 3), floats(4), mask], 1, domain="", constants=(1, 3), main_opset=19,
         open_dims=True, group=2, offset_group=2, pads=[1, 0, 1, 2], strides=[2, 2], dilations=[1, 2])


def strings():
    """Strings in, out or as classes; and classifiers of two classes, whose one score has two sides."""
    ml = lambda name, op_type, inputs, outputs, **attributes: case(name, op_type, inputs, outputs, domain=ML, **attributes)
    words = np.array([["b", "", "z"], ["a", "\u00e4", "b"]], object)
    x = np.round(floats(6, 4) * 4) / 4
    ml("label_encoder_words", "LabelEncoder", [words], 1, keys_strings=["a", "b", "\u00e4"], values_int64s=[5, 6, 7], default_int64=-2)
    ml("label_encoder_to_words", "LabelEncoder", [np.array([3, 1, 9], np.int64)], 1, keys_int64s=[1, 3], values_strings=["one", "three"],
       default_string="none")
    ml("label_encoder_words_to_floats", "LabelEncoder", [words], 1, keys_strings=["a", "b"], values_floats=[0.5, 1.5], default_float=-7.0)
    ml("category_mapper", "CategoryMapper", [words], 1, cats_strings=["a", "b"], cats_int64s=[4, 9], default_int64=-3)
    ml("category_mapper_to_words", "CategoryMapper", [np.array([9, 4, 0], np.int64)], 1, cats_strings=["a", "b"], cats_int64s=[4, 9],
       default_string="?")
    ml("one_hot_encoder_words", "OneHotEncoder", [words], 1, cats_strings=["a", "b"], zeros=1)
    ml("linear_classifier_words", "LinearClassifier", [x], 2, coefficients=[float(v) for v in floats(12)], intercepts=[0.1, 0.2, 0.3],
       classlabels_strings=["p", "q", "r"], post_transform="SOFTMAX")
    ml("tree_classifier_words", "TreeEnsembleClassifier", [x], 2, classlabels_strings=["p", "q", "r"],
       **trees("class", 4, 4, 3, 3, ["BRANCH_LEQ"]))
    for name, sign in (("shares", 1), ("sides", -1)):
        one = trees("class", 4, 4, 2, 3, ["BRANCH_LEQ"])
        one["class_ids"] = [0] * len(one["class_ids"])
        one["class_weights"] = [abs(w) if sign > 0 else w for w in one["class_weights"]]
        ml(f"tree_classifier_{name}", "TreeEnsembleClassifier", [x], 2, classlabels_strings=["no", "yes"],
           post_transform="NONE" if sign > 0 else "LOGISTIC", **one)
    for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID"):
        machine = dict(kernel_type=kernel, kernel_params=[0.5, 0.25, 3.0], support_vectors=[float(v) for v in floats(24)])
        ml(f"svm_classifier_{kernel.lower()}", "SVMClassifier", [x], 2, classlabels_strings=["p", "q", "r"], vectors_per_class=[1, 3, 2],
           coefficients=[float(v) for v in floats(12)], rho=[0.1, -0.2, 0.05], **machine)
        ml(f"svm_regressor_{kernel.lower()}", "SVMRegressor", [x], 1, n_supports=6, coefficients=[float(v) for v in floats(6)],
           rho=[0.25], **machine)
    two = dict(kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], support_vectors=[float(v) for v in floats(24)], vectors_per_class=[2, 4],
               classlabels_ints=[3, 8], coefficients=[float(v) for v in floats(6)], rho=[0.1])
    ml("svm_classifier_two", "SVMClassifier", [x], 2, **two)


def columns():
    """Col2Im where shapes are constants: strides above, at and below the window, dilations, pads that differ, one to three dimensions."""
    ints = lambda *values: np.array(values, np.int64)
    def fold(name, batch, channels, image, block, open_dims=False, **attributes):
        sizes = zip(image, block, attributes.get("strides", [1] * len(image)), attributes.get("dilations", [1] * len(image)),
                    np.reshape(attributes.get("pads", [0] * 2 * len(image)), (2, -1)).sum(0))
        windows = [(i + p - d * (k - 1) - 1) // s + 1 for i, k, s, d, p in sizes]
        x = floats(batch, channels * int(np.prod(block)), int(np.prod(windows)))
        case(f"col2im_{name}", "Col2Im", [x, ints(*image), ints(*block)], 1, domain="", constants=(1, 2), open_dims=open_dims, **attributes)
    fold("one_by_one", 2, 3, (5, 6), (3, 2), pads=[1, 0, 1, 2])
    fold("strides", 2, 2, (10, 9), (4, 3), strides=[3, 2], pads=[2, 0, 1, 2], open_dims=True)
    fold("gaps", 1, 3, (8, 7), (2, 1), strides=[3, 2])
    fold("patches", 2, 3, (6, 8), (3, 4), strides=[3, 4])
    fold("dilations", 1, 2, (9, 8), (3, 2), dilations=[2, 3], pads=[2, 1, 0, 3])
    fold("strides_and_dilations", 1, 2, (9, 12), (3, 3), strides=[2, 2], dilations=[2, 4])
    fold("dilations_between", 1, 2, (9, 8), (3, 3), strides=[2, 1], dilations=[3, 1])
    fold("line", 2, 2, (23,), (8,), strides=[2], pads=[3, 1])
    fold("volume", 1, 2, (4, 5, 6), (2, 3, 2), strides=[1, 2, 2], pads=[0, 1, 1, 1, 0, 1])


def regions():
    """Of 16 channels, which lie in blocks; some reach beyond the image."""
    corners = np.sort(random.uniform(-2, 13, (9, 2, 2)), 1).reshape(9, 4).astype(np.float32)
    for name, attributes in (("average", dict(mode="avg", sampling_ratio=0)), ("largest", dict(mode="max", sampling_ratio=2))):
        case(f"roi_align_{name}", "RoiAlign", [floats(2, 16, 12, 11), corners, numbers(0, 2, (9,), np.int64)], 1, domain="", output_height=5,
             output_width=4, spatial_scale=0.9, **attributes)


def rows_of_blocks():
    """GatherBlockQuantized: bytes of 2, 4 and 8 bits, int4 and uint4, blocks that an axis does not fill, indices out of range."""
    scales = lambda *shape: np.abs(floats(*shape)) + np.float32(0.01)
    ids = np.array([[5, -1, 0], [11, -12, 40]], np.int64)
    for bits in (2, 4, 8):
        data = numbers(0, 256, (12, 48 * bits // 8), np.uint8)
        case(f"gather_block_{bits}_bits", "GatherBlockQuantized", [data, ids, scales(12, 3)], 1, constants=(0, 2), bits=bits, block_size=16,
             gather_axis=0, quantize_axis=1)
        zero = numbers(0, 256, (12, -(-3 * bits // 8)), np.uint8)
        case(f"gather_block_{bits}_bits_zero", "GatherBlockQuantized", [data, ids[0].astype(np.int32), scales(12, 3), zero], 1, constants=(0, 2, 3),
             bits=bits, block_size=16, gather_axis=0, quantize_axis=-1)
    for name, dtype, low in (("int4", ml_dtypes.int4, -8), ("uint4", ml_dtypes.uint4, 0)):
        data, zero = numbers(low, low + 16, (3, 20, 4), dtype), numbers(low, low + 16, (3, 2, 4), dtype)
        case(f"gather_block_{name}", "GatherBlockQuantized", [data, ids[0] % 4, scales(3, 2, 4), zero], 1, constants=(0, 2, 3), main_opset=21,
             block_size=16, gather_axis=2, quantize_axis=1)
    case("gather_block_half", "GatherBlockQuantized", [numbers(-8, 8, (6, 32), ml_dtypes.int4), ids % 6, scales(6, 1).astype(np.float16)], 1,
         constants=(0, 2), main_opset=21, block_size=32)


def weights_of_the_run():
    case("conv_weights_of_the_run", "Conv", [floats(2, 16, 9, 8), floats(32, 16, 3, 2)], 1, domain="", strides=[2, 1], pads=[1, 0, 1, 2])


def regions_of_odd_channels():
    corners = np.sort(random.uniform(-2, 13, (9, 2, 2)), 1).reshape(9, 4).astype(np.float32)
    for mode in ("avg", "max"):
        case(f"roi_align_odd_channels_{mode}", "RoiAlign", [floats(2, 13, 12, 11), corners, numbers(0, 2, (9,), np.int64)], 1, domain="", mode=mode,
             output_height=5, output_width=4, sampling_ratio=2)


def grown_trees(count, features, most, modes, splits):
    """Attributes of trees of unequal depths, which grow at one leaf or another; NaN goes either way."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        ways = {0: None}
        for _ in range(int(random.integers(0, most))):
            open_ends = [node for node, way in ways.items() if way is None]
            grown = open_ends[-1] if random.integers(3) else open_ends[0]  # more often deeper
            ways[grown] = (len(ways), len(ways) + 1)
            ways |= {len(ways): None, len(ways) + 1: None}
        for node, way in ways.items():
            entry = (tree, node, int(random.integers(features)), modes[int(random.integers(len(modes)))] if way else "LEAF",
                     float(random.choice(splits)), *(way or (0, 0)), int(random.integers(2)))
            for key, value in zip(nodes, entry):
                nodes[key].append(value)
            if not way:
                for key, value in zip(leaves, (tree, node, 0, float(random.integers(-64, 65)) / 64)):
                    leaves[key].append(value)
    return {f"nodes_{key}": value for key, value in nodes.items()} | {f"target_{key}": value for key, value in leaves.items()}


def deep_trees():
    largest = np.finfo(np.float32).max
    x = random.choice(np.array([-np.inf, -largest, -1, 0, 0.5, 1, largest, np.inf, np.nan], np.float32), (40, 6))
    plain, infinite = [-1.0, 0.0, 0.5, 1.0], [-1.0, 0.0, 0.5, float("inf"), float("-inf")]
    for name, modes, splits in (("leq", ["LEQ"], plain), ("leq_infinite", ["LEQ", "GT"], infinite), ("lt", ["LT"], plain), ("gte_lt", ["GTE", "LT"], plain),
                                ("lt_infinite", ["LT"], infinite), ("gt_largest", ["GT"], infinite + [float(largest)]), ("leq_lt", ["LEQ", "LT"], plain)):
        case(f"tree_regressor_deep_{name}", "TreeEnsembleRegressor", [x], 1, domain=ML, n_targets=1,
             **grown_trees(80, 6, 9, [f"BRANCH_{mode}" for mode in modes], splits))


def transforms_along_an_axis_of_the_run():
    for name, axis, length, parts, attributes in (("first", 0, None, 2, {}), ("from_the_end", -2, np.array(9), 1, dict(onesided=1)),
                                                  ("middle", 1, np.array(4), 2, dict(inverse=1))):
        case(f"dft_axis_{name}", "DFT", [floats(3, 5, 6, parts), length, np.array(axis)], 1, domain="", main_opset=20, open_dims=True, **attributes)


def counts_of_keys_for_open_batches():
    batch, length, heads, size = 3, 5, 2, 4
    q, k, v = (floats(batch, n, heads * size) for n in (length, 7, 7))
    case("multi_head_attention_open_counts", "MultiHeadAttention", [q, k, v, None, np.array([7, 2, 4], np.int32)], 1, open_dims=2, num_heads=heads)
    case("attention_open_counts", "Attention", [q, floats(heads * size, 3 * heads * size), floats(3 * heads * size), np.array([5, 1, 3], np.int32)], 1,
         open_dims=2, constants=(1, 2), num_heads=heads)


def taken_out_of_onnx():
    x = floats(2, 3, 6, 7)
    for name, op_type, attributes in (("affine", "Affine", dict(alpha=0.7, beta=0.4)), ("image_scaler", "ImageScaler", dict(scale=0.5, bias=[0.1, -0.2, 0.3])),
                                      ("scaled_tanh", "ScaledTanh", dict(alpha=1.7159, beta=0.6667)), ("crop", "Crop", dict(border=[1, 0, 2, 3])),
                                      ("parametric_softplus", "ParametricSoftplus", dict(alpha=0.7, beta=2.0)),
                                      ("crop_to_a_size", "Crop", dict(border=[2, 1, 0, 0], scale=[3, 4]))):
        case(name, op_type, [x], 1, domain="", main_opset=8, open_dims=1, **attributes)


def recurrent_in_integers():
    """Several steps of one row: its own range is all that ONNX Runtime sees when it quantises the state."""
    steps, size, hidden = 6, 5, 20
    for name, directions, dtype in (("dynamic_quantize_lstm_steps", 1, np.int8), ("dynamic_quantize_lstm_bytes", 2, np.uint8)):
        zero = np.zeros(directions, dtype) if dtype == np.int8 else numbers(30, 33, (directions,), dtype)
        low = -63 if dtype == np.int8 else 0  # in 7 bits: ONNX Runtime saturates sums with AVX2
        weights = [numbers(low, low + 127, (directions, inputs, 4 * hidden), dtype) for inputs in (size, hidden)]
        scale = np.full(directions, 0.01, np.float32)
        case(name, "DynamicQuantizeLSTM",
             [floats(steps, 1, size), *weights, floats(directions, 8 * hidden), None, None, None, floats(directions, 3 * hidden), scale, zero, scale, zero],
             3, constants=(1, 2, 3, 7, 8, 9, 10, 11), hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")


def scores():
    """What comes after the sums of ai.onnx.ml's models: every transform, one result or several, one score for two classes; parts of a given width."""
    ml = lambda name, op_type, inputs, outputs, **attributes: case(name, op_type, inputs, outputs, domain=ML, **attributes)
    x = np.round(floats(6, 4) * 4) / 4
    shares = lambda count: [float(v) for v in np.abs(floats(count)) * 0.2]
    for transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        of = transform.lower()
        for targets in (1, 2):
            several = trees("target", 2, 4, targets, 2, ["BRANCH_LEQ"])
            several["target_weights"] = [abs(w) * 0.2 for w in several["target_weights"]]
            ml(f"tree_regressor_{of}_{targets}", "TreeEnsembleRegressor", [x], 1, n_targets=targets, base_values=[0.3] * targets, post_transform=transform, **several)
        ml(f"linear_regressor_{of}_1", "LinearRegressor", [np.abs(x)], 1, coefficients=shares(4), intercepts=[0.1], post_transform=transform)
        ml(f"linear_classifier_{of}_3", "LinearClassifier", [np.abs(x)], 2, coefficients=shares(12), intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 8, 9],
           post_transform=transform)
        machine = dict(kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], support_vectors=[float(v) for v in floats(24)], rho=[0.1])
        ml(f"svm_regressor_{of}", "SVMRegressor", [x], 1, n_supports=6, coefficients=[float(v) for v in floats(6)], post_transform=transform, **machine)
        if transform == "PROBIT":
            continue
        two = dict(classlabels_ints=[3, 8], coefficients=[float(v) for v in floats(6)], vectors_per_class=[2, 4], **machine)
        ml(f"svm_classifier_two_{of}", "SVMClassifier", [x], 2, post_transform=transform, **two)
        ml(f"linear_classifier_one_{of}", "LinearClassifier", [x], 2, coefficients=[float(v) for v in floats(4)], intercepts=[0.1], classlabels_strings=["no", "yes"],
           post_transform=transform)
        for name, class_id, sign in (("shares", 0, 1), ("sides", 0, -1), ("second", 1, 1)):
            one = trees("class", 2, 4, 2, 2, ["BRANCH_LEQ"])
            one["class_ids"] = [class_id] * len(one["class_ids"])
            one["class_weights"] = [abs(w) if sign > 0 else w for w in one["class_weights"]]
            ml(f"tree_classifier_{name}_{of}", "TreeEnsembleClassifier", [x], 2, classlabels_int64s=[4, 9], post_transform=transform, **one)
    ml("svm_regressor_without_vectors", "SVMRegressor", [x], 1, coefficients=[float(v) for v in floats(4)], kernel_params=[0.5, 0.25, 3.0], rho=[0.25])
    ml("svm_classifier_without_vectors", "SVMClassifier", [x], 2, coefficients=[float(v) for v in floats(12)], kernel_params=[0.5, 0.25, 3.0], rho=[0.25],
       classlabels_ints=[3, 8, 5], post_transform="SOFTMAX")
    few = trees("target", 2, 4, 1, 2, ["BRANCH_LEQ"])
    for how in ("MIN", "MAX"):  # the second target is of no leaf
        ml(f"tree_regressor_{how.lower()}_of_none", "TreeEnsembleRegressor", [x], 1, n_targets=2, aggregate_function=how, **few)
    exact = trees("target", 3, 4, 1, 3, ["BRANCH_LEQ"])
    for attribute in ("nodes_values", "target_weights"):
        values = exact.pop(attribute)
        exact[attribute + "_as_tensor"] = helper.make_tensor(attribute, onnx.TensorProto.DOUBLE, [len(values)], values)
    ml("tree_regressor_doubles", "TreeEnsembleRegressor", [x.astype(np.float64)], 1, n_targets=1, **exact)
    ml("feature_vectorizer_widths", "FeatureVectorizer", [floats(3, 2), floats(3, 4), floats(3, 3)], 1, open_dims=1, inputdimensions=[4, 4, 1])
    keys = dict(keys_floats=[0.5, float("nan"), 2.0], values_int64s=[4, 6, -2], default_int64=77)
    ml("label_encoder_nan", "LabelEncoder", [np.array([np.nan, 2.0, 7.0], np.float32)], 1, ml_opset=4, **keys)


def rare_forms():
    """Attributes and operands of com.microsoft that few models have."""
    a, b = floats(3, 2, 4), floats(4, 2, 5)
    case("fused_matmul_batch_a", "FusedMatMul", [a, floats(2, 4, 5)], 1, open_dims=True, transBatchA=1)
    case("fused_matmul_batch_b", "FusedMatMul", [floats(2, 3, 4), b], 1, open_dims=True, transBatchB=1, alpha=0.5)
    case("fused_matmul_batch_both", "FusedMatMul", [floats(4, 2, 3), floats(5, 2, 4)], 1, transBatchA=1, transA=1, transBatchB=1, transB=1)
    for activation, params in (("Elu", dict(activation_alpha=0.5)), ("Selu", dict(activation_alpha=1.5, activation_gamma=0.7)), ("Softplus", {}),
                               ("Softsign", {}), ("ThresholdedRelu", dict(activation_alpha=0.3))):
        case(f"fused_gemm_{activation.lower()}", "FusedGemm", [floats(3, 4), floats(4, 5), floats(5)], 1, activation=activation, **params)
    points = [np.float32(1 / 32), np.uint8(120), np.float32(1 / 32), np.uint8(110)]
    image = numbers(0, 256, (2, 5, 6, 3), np.uint8)
    case("qlinear_average_pool_last", "QLinearAveragePool", [image, *points], 1, constants=(1, 2, 3, 4), kernel_shape=[2, 2], strides=[2, 1],
         channels_last=1)
    case("qlinear_global_average_pool_last", "QLinearGlobalAveragePool", [image, *points], 1, constants=(1, 2, 3, 4), open_dims=1, channels_last=1)
    groups = np.array([1, 0] * 16, np.int32)
    nibbles = [numbers(0, 256, (8, 2, 8), np.uint8), floats(16), None]
    case("matmul_nbits_groups", "MatMulNBits", [floats(3, 32), *nibbles, groups], 1, constants=(1, 2, 4), K=32, N=8, bits=4, block_size=16)
    batch, length, heads, size = 2, 4, 2, 4
    packed = [floats(batch, length, 8), floats(8, 3 * heads * size), floats(3 * heads * size)]
    ends = np.array([4, 3, 1, 0], np.int32)
    for name, opened in (("", False), ("_open", 2)):
        case(f"attention_ends_and_beginnings{name}", "Attention", [*packed, ends], 1, constants=(1, 2), open_dims=opened, num_heads=heads)
    size = 8
    q, k, v = floats(batch, 1, 4 * size), floats(batch, 1, 2 * size), floats(batch, 1, 2 * size)
    past = [floats(batch, 2, 5, size), floats(batch, 2, 5, size)]
    counts = [np.full(batch, 5, np.int32), np.array(6, np.int32)]
    case("group_query_smooth", "GroupQueryAttention", [q, k, v, *past, *counts], 3, open_dims=1, num_heads=4, kv_num_heads=2, smooth_softmax=1)
    case("group_query_sinks", "GroupQueryAttention", [q, k, v, *past, *counts, None, None, None, None, floats(4)], 3, num_heads=4, kv_num_heads=2,
         local_window_size=3)
    x, tables = floats(1, 2, 3, 8), [floats(16, 4), floats(16, 4)]
    case("rotary_embedding_scale", "RotaryEmbedding", [x, np.array([[3, 1, 7]], np.int64), *tables], 1, scale=2.0)


def sets_of_trees():
    """Nodes that ask for membership of a set, beside others, and which way NaN goes; categories that are all known."""
    ways = dict(tree_roots=[0, 3], nodes_featureids=[0, 1, 2, 2, 0], nodes_truenodeids=[1, 0, 2, 4, 5], nodes_falsenodeids=[2, 1, 3, 4, 6],
                nodes_trueleafs=[0, 1, 1, 0, 1], nodes_falseleafs=[0, 1, 1, 1, 1], nodes_missing_value_tracks_true=[0, 1, 1, 0, 0],
                leaf_targetids=[0, 1, 0, 1, 1, 0, 1], n_targets=2)
    for dtype, end in ((np.float32, []), (np.float64, [np.nan])):
        table = lambda values, of=dtype: numpy_helper.from_array(np.array(values, of))
        x = random.integers(-3, 5, (30, 3)).astype(dtype)
        x[::7, 2] = np.nan
        case(f"tree_ensemble_sets_{np.dtype(dtype).name}", "TreeEnsemble", [x], 1, domain=ML, ml_opset=5, open_dims=1, **ways, nodes_modes=table([6, 0, 6, 4, 6], np.uint8),
             nodes_splits=table([0, 1, 0, 2, 0]), leaf_weights=table([1, 2, -3, 4, 0.5, 0.25, 8]),
             membership_values=table([1, 3, -2, np.nan, 0, np.nan, 2, 4, 1, 0, *end]))
    case("one_hot_encoder_known", "OneHotEncoder", [np.array([3, 1, 2], np.int64)], 1, domain=ML, cats_int64s=[1, 2, 3], zeros=0)


def buffers_of_keys():
    """A past in a buffer that each row of the batch fills in part. The rest of it is zeros, which ONNX Runtime leaves in a
    present that is another buffer."""
    def filled(*counts):
        buffer = floats(len(counts), 2, 7, 16)
        for row, count in zip(buffer, counts):
            row[:, count:] = 0
        return buffer
    tables = floats(8, 8), floats(8, 8)
    news = lambda batch, count: (floats(batch, count, 64), floats(batch, count, 32), floats(batch, count, 32))
    lengths = lambda total, *keys: (np.array([count - 1 for count in keys], np.int32), np.array(total, np.int32))
    heads = dict(num_heads=4, kv_num_heads=2)
    case("group_query_buffer", "GroupQueryAttention", [*news(3, 1), filled(4, 0, 2), filled(4, 0, 2), *lengths(5, 5, 1, 3), *tables], 3,
         constants=(6,), do_rotary=1, **heads)
    case("group_query_buffer_given", "GroupQueryAttention", [*news(2, 1), filled(3, 6), filled(3, 6), *lengths(7, 4, 7), *tables], 3,
         do_rotary=1, rotary_interleaved=1, local_window_size=3, **heads)
    case("group_query_buffer_first", "GroupQueryAttention", [*news(1, 3), filled(0), filled(0), *lengths(3, 3), *tables], 3, do_rotary=1, **heads)
    case("group_query_buffer_more", "GroupQueryAttention", [*news(1, 2), filled(4), filled(4), *lengths(6, 6), *tables], 3, do_rotary=1,
         softcap=2.0, **heads)


def main():
    shutil.rmtree(folder, ignore_errors=True)
    for part in (activations, normalisations, quantised, attention, machine_learning, recurrent, quantised_layers, images, strings, columns, regions, rows_of_blocks,
                 weights_of_the_run, regions_of_odd_channels, deep_trees, transforms_along_an_axis_of_the_run,
                 counts_of_keys_for_open_batches, taken_out_of_onnx, recurrent_in_integers, scores, rare_forms, sets_of_trees, buffers_of_keys):
        part()
    print(f"{len(list(folder.iterdir()))} models in {folder}")


main()
