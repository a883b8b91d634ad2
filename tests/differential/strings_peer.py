#!/usr/bin/env python3
"""Compares operators on strings with ONNX Runtime, through both Python APIs, on random strings.
Usage: strings_peer.py [--count N] [--seed N]   (needs PyPI's onnxruntime and onnx; BERTH_LIBRARY_DIR as for the package)
With skl2onnx and scikit-learn at hand, it compares pipelines that skl2onnx writes as well. Not in the test run, which has no
ONNX Runtime."""
import argparse
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper

import berth

ML = "ai.onnx.ml"
WORDS = ["", " ", "a", "b", "ab", "a b", " a  b ", "a,b,,c", ",", "12", "-7", "1.5", "x y z", "Monday", "MONDAY", "tuesday", "\t", "\n",
         "é", "日本", "0", "1e3", "aaa", "aXbXc", "\0", "a\0b", "longer than the others", "x" * 300]
KINDS = {T.STRING: object, T.FLOAT: np.float32, T.DOUBLE: np.float64, T.INT64: np.int64, T.INT32: np.int32, T.INT8: np.int8,
         T.UINT8: np.uint8, T.BOOL: np.bool_, T.FLOAT16: np.float16}


class Case:
    """One node, its inputs, and how many outputs it has."""

    def __init__(self, op, arrays, outputs=1, domain="", **attrs):
        self.arrays, self.op, self.attrs = arrays, op, attrs
        names = [f"x{i}" for i in range(len(arrays))]
        results = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, results, domain=domain, **attrs)
        kinds = [next(k for k, t in KINDS.items() if np.dtype(t) == a.dtype) for a in arrays]
        one_row = op == "StringNormalizer" and arrays[0].ndim == 2  # which ONNX Runtime wants declared
        inputs = [helper.make_tensor_value_info(n, k, [1, None] if one_row else [None] * a.ndim) for n, k, a in zip(names, kinds, arrays)]
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in results])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 4)])
        self.bytes = model.SerializeToString()
        self.feed = dict(zip(names, arrays))


def strings(rng, *shape, words=WORDS):
    array = np.empty(int(np.prod(shape)), object)
    for i in range(array.size):
        array[i] = rng.choice(words)
    return array.reshape(shape)


def numbers(rng, kind, count):
    if kind == T.BOOL:
        return np.array([rng.random() < 0.5 for _ in range(count)])
    if kind in (T.FLOAT, T.DOUBLE, T.FLOAT16):
        special = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, 0.1, 1e10, 1.5e-7, 123456.789]
        return np.array([rng.choice(special + [rng.uniform(-100, 100), rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30)])
                         for _ in range(count)], np.float64).astype(KINDS[kind])
    info = np.iinfo(KINDS[kind])
    return np.array([rng.randint(int(info.min), int(info.max)) for _ in range(count)], KINDS[kind])


def labels(rng, kind, count):
    if kind == "strings":
        return [f"w{i}" for i in rng.sample(range(50), count)]
    if kind == "int64s":
        return rng.sample(range(-20, 30), count)
    return [float(i) for i in rng.sample(range(-20, 30), count)]


def label_encoder(rng):
    key, value = rng.choice(["strings", "int64s", "floats"]), rng.choice(["strings", "int64s", "floats"])
    count = rng.randint(1, 8)
    keys = labels(rng, key, count)
    attrs = {f"keys_{key}": keys, f"values_{value}": labels(rng, value, count)}
    attrs.update({"strings": {"default_string": "none"}, "int64s": {"default_int64": -9}, "floats": {"default_float": 0.5}}[value])
    others = labels(rng, key, 3)
    kind = {"strings": object, "int64s": np.int64, "floats": np.float32}[key]
    return Case("LabelEncoder", [np.array([rng.choice(keys + others) for _ in range(6)], kind).reshape(2, 3)], domain=ML, **attrs)


def tf_idf(rng):
    alphabet = ["a", "b", "c", "d"] if rng.random() < 0.5 else [1, 2, 3, 4]
    text = isinstance(alphabet[0], str)
    pool, starts, grams = [], [], []
    for size in (1, 2, 3):
        starts.append(len(pool))
        seen = {tuple(rng.choice(alphabet) for _ in range(size)) for _ in range(rng.randint(1, 4))}
        for gram in sorted(seen):
            pool += gram
            grams.append(gram)
    columns = rng.sample(range(len(grams)), len(grams))
    least = rng.randint(1, 3)
    attrs = dict(mode=rng.choice(["TF", "IDF", "TFIDF"]), min_gram_length=least, max_gram_length=rng.randint(least, 3),
                 max_skip_count=rng.randint(0, 4), ngram_counts=starts, ngram_indexes=columns)
    attrs["pool_strings" if text else "pool_int64s"] = pool
    if rng.random() < 0.5:
        attrs["weights"] = [rng.uniform(0.1, 3) for _ in grams]
    shape = rng.choice([(7,), (3, 5), (1, 1)])
    x = np.array([rng.choice(alphabet) for _ in range(int(np.prod(shape)))], object if text else np.int64).reshape(shape)
    return Case("TfIdfVectorizer", [x], **attrs)


def regex(rng):
    pattern = rng.choice([r"a+", r"[a-c ]*", r"(?i)monday", r".*", r"\d+", r"-?\d+(\.\d+)?", r"(a|b)*", r"\w+", r"[^,]*", r"^a$", r"a|ab",
                          r"(?:a|b){1,3}", r"\pL+", r"x{300}", r"(?s).*", r"[[:alpha:]]+", r"\Qa,b\E.*", r"a?b?c?", r"[]a]+", r"\s*"])
    return Case("RegexFullMatch", [strings(rng, 9)], pattern=pattern)


def slice_case(rng):
    x = strings(rng, 4, 3)
    return Case("Slice", [x, np.array([rng.randint(0, 2)], np.int64), np.array([4], np.int64), np.array([0], np.int64)])


def make(rng):
    x = strings(rng, 3, 4)
    tidy = [w for w in WORDS if "\0" not in w]
    makers = [
        lambda: Case("Cast", [numbers(rng, rng.choice([k for k in KINDS if k != T.STRING]), 8)], to=T.STRING),
        lambda: Case("Cast", [strings(rng, 6, words=["12", "-7", " 5", "0", "+3", "99", "1e1", "7x", "0.5"])],
                     to=rng.choice([T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.INT8, T.UINT8, T.BOOL, T.FLOAT16])),
        lambda: Case("Equal", [x, strings(rng, *rng.choice([(4,), (3, 1), (1,)]))]),
        lambda: Case("Where", [numbers(rng, T.BOOL, 4), x, strings(rng, 3, 1)]),
        # Along the last axis: along others ONNX Runtime 1.32 leaves all but the first string of a row empty.
        lambda: Case("Gather", [x, np.array([rng.randint(0, 2), -1], np.int64)], axis=1),
        lambda: Case("GatherElements", [x, np.array([[0, 2, 1, 0]], np.int64)], axis=0),
        lambda: Case("GatherND", [x, np.array([[0, 2], [2, 1]], np.int64)]),
        lambda: Case("ScatterElements", [x, np.array([[0, 2, 1, 0]], np.int64), strings(rng, 1, 4)], axis=0),
        lambda: Case("ScatterND", [x, np.array([[1], [2]], np.int64), strings(rng, 2, 4)]),
        lambda: Case("Concat", [x, strings(rng, 3, 1)], axis=1),
        lambda: Case("Split", [x], 2, axis=1, num_outputs=2),
        lambda: Case("Reshape", [x, np.array([2, -1], np.int64)]),
        lambda: Case("Flatten", [x], axis=1),
        lambda: Case("Identity", [x]),
        lambda: Case("Shape", [x]),
        lambda: Case("Size", [x]),
        lambda: Case("Squeeze", [strings(rng, 1, 3, 1)]),
        lambda: Case("Unsqueeze", [x, np.array([1], np.int64)]),
        lambda: Case("Transpose", [x], perm=[1, 0]),
        lambda: Case("Expand", [strings(rng, 3, 1), np.array([2, 3, 4], np.int64)]),
        lambda: Case("Tile", [x, np.array([2, 1], np.int64)]),
        lambda: Case("Compress", [x, numbers(rng, T.BOOL, 4)], axis=1),
        lambda: Case("Unique", [strings(rng, 9, words=["a", "b", "c", ""])], 4, sorted=rng.randint(0, 1)),
        lambda: Case("OneHot", [np.array([0, 2, 1], np.int64), np.array([3], np.int64), strings(rng, 2)]),
        lambda: Case("SequenceConstruct", [x, strings(rng, 2)]),
        lambda: Case("SplitToSequence", [x], axis=0),
        lambda: Case("StringConcat", [x, strings(rng, *rng.choice([(4,), (3, 1), (3, 4)]))]),
        lambda: Case("StringSplit", [x], 2, **{**rng.choice([{}, {"delimiter": ","}, {"delimiter": "X"}, {"delimiter": "ab"}]),
                                              **rng.choice([{}, {"maxsplit": rng.randint(0, 3)}])}),
        lambda: Case("StringNormalizer", [strings(rng, *rng.choice([(5,), (1, 5)]), words=tidy)], is_case_sensitive=1,
                     case_change_action="NONE", stopwords=rng.sample(["a", "Monday", "é", "12"], 2)),
        lambda: regex(rng),
        lambda: tf_idf(rng),
        lambda: label_encoder(rng),
        lambda: slice_case(rng),
        lambda: Case("OneHotEncoder", [strings(rng, 3, words=["a", "b", "c"])], domain=ML, cats_strings=["c", "a"], zeros=1),
        lambda: Case("CategoryMapper", [strings(rng, 5, words=["a", "b", "z"])], domain=ML, cats_strings=["a", "b"],
                     cats_int64s=[5, -3], default_int64=7),
        lambda: Case("CategoryMapper", [np.array([5, -3, 1], np.int64)], domain=ML, cats_strings=["a", "b"],
                     cats_int64s=[5, -3], default_string="none"),
        lambda: Case("ZipMap", [numbers(rng, T.FLOAT, 6).reshape(2, 3)], domain=ML,
                     **rng.choice([{"classlabels_strings": ["p", "q", "r"]}, {"classlabels_int64s": [4, 2, 9]}])),
    ]
    return rng.choice(makers)()


def peer(data, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feed)


def same(a, b, tolerance=1e-6):
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) or isinstance(b, dict):
        return isinstance(a, dict) and isinstance(b, dict) and sorted(a) == sorted(b) and all(same(a[k], b[k], tolerance) for k in a)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or (a.ndim and a.dtype != b.dtype):
        return False
    if a.dtype.kind in "OUS":
        return a.tolist() == b.tolist()
    return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(name, data, feed, tolerance=1e-6):
    """1 when they differ."""
    try:
        expected, refused = peer(data, feed), None
    except Exception as error:  # its own classes, of which there are many
        expected, refused = None, str(error)
    try:
        model = berth.load(data)
        got = list(model.run(feed).values())
    except berth.BerthError as error:
        if refused:
            return 0
        print(f"{name}: refused: {error}")
        return 1
    if refused:
        print(f"{name}: ONNX Runtime refuses it ({refused[-200:]}), Berth gives {got}")
        return 1
    if all(same(a, b, tolerance) for a, b in zip(got, expected)) and len(got) == len(expected):
        return 0
    print(f"{name}:\n  ONNX Runtime {expected}\n  Berth        {got}")
    return 1


def pipelines():
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType
        from sklearn import compose, ensemble, linear_model, naive_bayes, pipeline, preprocessing, svm, tree
    except ImportError as error:
        print(f"no pipelines: {error}")
        return 0
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(int) + (x[:, 2] > 0.5)
    names = np.array(["low", "mid", "high"], object)[y]
    colours = rng.choice(["red", "green", "blue"], size=(60, 2)).astype(object)
    bad, floats = 0, [("x", FloatTensorType([None, 4]))]
    classifiers = [linear_model.LogisticRegression(), tree.DecisionTreeClassifier(max_depth=4), svm.LinearSVC(),
                   ensemble.RandomForestClassifier(5, max_depth=4), ensemble.GradientBoostingClassifier(n_estimators=5),
                   svm.SVC(), svm.SVC(kernel="linear"), svm.SVC(kernel="poly"), svm.SVC(kernel="sigmoid"), naive_bayes.GaussianNB(),
                   pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())]
    for classifier in classifiers:
        for target in (y, names, y > 0, np.where(y > 0, "yes", "no").astype(object)):
            model = classifier.fit(x, target)
            data = to_onnx(model, initial_types=floats, target_opset={"": 21, ML: 3}).SerializeToString()
            bad += compare(f"{classifier} {np.unique(target).tolist()}", data, {"x": x}, 1e-4)
    for regressor in (svm.SVR(), svm.SVR(kernel="poly"), svm.OneClassSVM()):
        model = regressor.fit(x, x[:, 0] * 2 + x[:, 1])
        data = to_onnx(model, initial_types=floats, target_opset={"": 21, ML: 3}).SerializeToString()
        bad += compare(str(regressor), data, {"x": x}, 1e-4)
    words = [("c", StringTensorType([None, 2]))]
    for step in (preprocessing.OneHotEncoder(handle_unknown="ignore"), preprocessing.OrdinalEncoder()):
        data = to_onnx(pipeline.make_pipeline(step.fit(colours)), initial_types=words, target_opset={"": 21, ML: 3}).SerializeToString()
        bad += compare(str(step), data, {"c": colours})
    both = compose.ColumnTransformer([("n", preprocessing.StandardScaler(), ["a"]), ("c", preprocessing.OneHotEncoder(), ["b"])])
    try:
        import pandas
        frame = pandas.DataFrame({"a": x[:, 0], "b": colours[:, 0]})
        mixed = pipeline.make_pipeline(both, linear_model.LogisticRegression()).fit(frame, names)
        types = [("a", FloatTensorType([None, 1])), ("b", StringTensorType([None, 1]))]
        data = to_onnx(mixed, initial_types=types, target_opset={"": 21, ML: 3}).SerializeToString()
        bad += compare("mixed columns", data, {"a": x[:, :1], "b": colours[:, :1]}, 1e-4)
    except ImportError:
        pass
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        case = make(random.Random(seed))
        bad += compare(f"seed {seed}: {case.op} {case.attrs} of {[a.tolist() for a in case.arrays]}", case.bytes, case.feed)
    print(f"{options.count} cases, {bad} differ")
    if options.count > 1:
        differ = pipelines()
        print(f"pipelines: {differ} differ")
        bad += differ
    return bad != 0


sys.exit(main())
