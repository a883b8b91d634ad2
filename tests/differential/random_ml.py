#!/usr/bin/env python3
"""Operators of ai.onnx.ml with random attributes, in Berth and in ONNX Runtime.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_ml.py [--seed 1] [--count 200] [--only NAME[,NAME]] [--target cpu] [--keep FOLDER]

Every transform of scores, one score for two classes, trees of every mode and aggregate, with NaN and in doubles, machines with support vectors and
without, labels and categories of each type; as random_fused.py otherwise, whose words on what it compares hold here, too. What differs on
purpose is not drawn (README.md). Not in the test run.
"""
import numpy as np
from onnx import TensorProto, helper

from draws import F32, I32, I64, main

F64 = np.float64
ML = 'ai.onnx.ml'
CASES = {}
POSTS = ('NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO', 'PROBIT')


def case(function):
    CASES[function.__name__] = function
    return function


def ml(d, op, inputs, outputs=1, version=3, **attrs):
    d.domains = {ML: version}
    return d.node(op, inputs, outputs, ML, **attrs)

def floats(d, n, low=-1, high=1):
    return [float(F32(v)) for v in d.rng.uniform(low, high, n)]

def numbers(d, *dims):
    k = d.choice(F32, F32, F64, I64, I32)
    return d.input(*dims, dtype=k, low=-3, high=3)


@case
def scaler(d):
    x = numbers(d, 'b', 6)
    n = d.choice(1, 6)
    return ml(d, 'Scaler', [x], offset=floats(d, n), scale=floats(d, n))


@case
def normalizer(d):
    x = numbers(d, *d.choice(('b', 6), (6,), ('b', 's', 4)))
    return ml(d, 'Normalizer', [x], norm=d.choice('MAX', 'L1', 'L2'))


@case
def binarizer(d):
    x = d.input(*d.choice(('b', 6), ('b', 's', 2)), dtype=d.choice(F32,F32,F64,I64,I32), low=-3, high=3)
    return ml(d, 'Binarizer', [x], **d.some(threshold=0.5))


@case
def imputer(d):
    n = d.choice(1, 5)
    if d.chance(0.4):
        x = d.input('b', 5, dtype=I64, low=-2, high=2)
        return ml(d, 'Imputer', [x], imputed_value_int64s=[int(v) for v in d.rng.integers(-9, 9, n)], **d.some(replaced_value_int64=1))
    nan = d.chance()
    def made(size):
        a = d.rng.integers(-2, 3, (size['b'], 5)).astype(F32)
        a[d.rng.random(a.shape) < 0.3] = np.nan
        return a
    x = d.input('b', 5, made=made)
    return ml(d, 'Imputer', [x], imputed_value_floats=floats(d, n), replaced_value_float=float('nan') if nan else 1.0)


@case
def extractor(d):
    x = numbers(d, *d.choice(('b', 6), (6,), ('b', 's', 6)))
    return ml(d, 'ArrayFeatureExtractor', [x, d.weight(3, dtype=I64, low=0, high=5) if d.chance() else d.input('t', dtype=I64, low=0, high=5)])


@case
def feature_vectorizer(d):
    k = d.choice(F32, F64, I64, I32)
    xs = [d.input('b', n, dtype=k, low=-3, high=3) for n in (2, 4, 1)]
    return ml(d, 'FeatureVectorizer', xs, inputdimensions=d.choice([2, 4, 1], [2, 3, 1], [3,4,1], [1,1,1]))


@case
def linear_regressor(d):
    x = numbers(d, 'b', 5)
    t = d.choice(1, 3)
    return ml(d, 'LinearRegressor', [x], 1, 1, coefficients=floats(d, 5 * t), **d.some(intercepts=floats(d, t)),
        **({'targets': t} if t > 1 or d.chance() else {}), post_transform=d.choice(*POSTS))


@case
def linear_classifier(d):
    x = numbers(d, 'b', 5)
    t = d.choice(1, 2, 3, 4)
    labels = dict(classlabels_ints=list(range(3, 3 + max(t, 2)))) if d.chance() else dict(classlabels_strings=['l%d' % i for i in range(max(t, 2))])
    return ml(d, 'LinearClassifier', [x], 2, 1, coefficients=floats(d, 5 * t), intercepts=floats(d, t), multi_class=d.choice(0, 1),
        post_transform=d.choice(*POSTS[:4] if t == 1 else POSTS), **labels)

def tree(d, features, depth, modes, tid, out):
    """Appends nodes of one tree to out; returns leaf ids."""
    leaves = []
    counter = [0]
    def make(level):
        me = counter[0]
        counter[0] += 1
        leaf = level == 0 or (level < depth and d.chance(0.2))
        row = dict(tree=tid, node=me, mode='LEAF' if leaf else modes[d.rng.integers(len(modes))], feature=int(d.rng.integers(features)),
            value=float(F32(d.rng.integers(-4, 5) / 2)), t=0, f=0, miss=int(d.rng.integers(2)))
        out.append(row)
        if leaf:
            leaves.append(me)
        else:
            row['t'] = make(level - 1)
            row['f'] = make(level - 1)
        return me
    make(depth)
    return leaves

def nodes_of(rows, d):
    a = dict(nodes_treeids=[r['tree'] for r in rows], nodes_nodeids=[r['node'] for r in rows], nodes_modes=[r['mode'] for r in rows],
        nodes_featureids=[r['feature'] for r in rows],
             nodes_truenodeids=[r['t'] for r in rows], nodes_falsenodeids=[r['f'] for r in rows])
    if d.chance():
        a['nodes_missing_value_tracks_true'] = [r['miss'] for r in rows]
    if d.chance():
        a['nodes_hitrates'] = [1.0] * len(rows)
    return a

MODES = ('BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ')

def samples(d, k, features):
    def made(size):
        a = d.rng.integers(-5, 6, (size['b'], features)) / 2
        a = a.astype(k)
        if np.dtype(k).kind == 'f':
            a[d.rng.random(a.shape) < 0.15] = np.nan
        return a
    return d.input('b', features, dtype=k, made=made)


@case
def tree_regressor(d):
    k = d.choice(F32, F32, F64, I64, I32)
    as_tensor = k == F64
    rows, targets = [], d.choice(1, 1, 2, 3)
    leaves = [(t, l) for t in range(d.choice(1, 3, 12)) for l in tree(d, 5, d.choice(1, 3, 5), MODES if d.chance() else [MODES[d.rng.integers(6)]], t, rows)]
    w = [(t, l, c) for t, l in leaves for c in range(targets)]
    attrs = nodes_of(rows, d)
    values, weights = [r['value'] for r in rows], floats(d, len(w))
    base = floats(d, targets) if d.chance() else None
    if as_tensor:
        tens = lambda n, v: helper.make_tensor(n, TensorProto.DOUBLE, [len(v)], v)
        attrs.update(nodes_values_as_tensor=tens('v', values), target_weights_as_tensor=tens('w', weights))
        attrs.pop('nodes_hitrates', None)
        if base:
            attrs['base_values_as_tensor'] = tens('b', base)
    else:
        attrs.update(nodes_values=values, target_weights=weights)
        if base:
            attrs['base_values'] = base
    return ml(d, 'TreeEnsembleRegressor', [samples(d, k, 5)], 1, 3, n_targets=targets, aggregate_function=d.choice('SUM', 'AVERAGE', 'MIN', 'MAX'),
        post_transform=d.choice(*POSTS),
              target_treeids=[t for t, _, _ in w], target_nodeids=[l for _, l, _ in w], target_ids=[c for _, _, c in w], **attrs)


@case
def tree_classifier(d):
    k = d.choice(F32, F32, F64, I64, I32)
    as_tensor = k == F64
    rows, classes = [], d.choice(2, 2, 3, 4)
    one = classes == 2 and d.chance(0.7)
    leaves = [(t, l) for t in range(d.choice(1, 3, 12)) for l in tree(d, 5, d.choice(1, 3, 5), MODES if d.chance() else [MODES[d.rng.integers(6)]], t, rows)]
    which = d.choice(0, 1) if one else None
    w = [(t, l, c) for t, l in leaves for c in ([which] if one else range(classes))]
    attrs = nodes_of(rows, d)
    low = 0 if d.chance() else -1
    values, weights = [r['value'] for r in rows], floats(d, len(w), low)
    base = floats(d, 1 if one else classes) if d.chance() and (one or classes > 2) else None
    if as_tensor:
        tens = lambda n, v: helper.make_tensor(n, TensorProto.DOUBLE, [len(v)], v)
        attrs.update(nodes_values_as_tensor=tens('v', values), class_weights_as_tensor=tens('w', weights))
        attrs.pop('nodes_hitrates', None)
        if base:
            attrs['base_values_as_tensor'] = tens('b', base)
    else:
        attrs.update(nodes_values=values, class_weights=weights)
        if base:
            attrs['base_values'] = base
    labels = dict(classlabels_int64s=[7, 3, 9, 1][:classes]) if d.chance() else dict(classlabels_strings=['l%d' % i for i in range(classes)])
    return ml(d, 'TreeEnsembleClassifier', [samples(d, k, 5)], 2, 3, post_transform=d.choice(*POSTS[:4] if classes == 2 else POSTS),
              class_treeids=[t for t, _, _ in w], class_nodeids=[l for _, l, _ in w], class_ids=[c for _, _, c in w], **labels, **attrs)


@case
def svm_regressor(d):
    x = d.input('b', 4)
    n = d.choice(3, 7)
    kernel = d.choice('LINEAR', 'POLY', 'RBF', 'SIGMOID')
    if d.chance(0.25):
        return ml(d, 'SVMRegressor', [x], 1, 1, coefficients=floats(d, 4), kernel_type='LINEAR', kernel_params=[0.3, 0.2, 2.0], rho=floats(d, 1),
            n_supports=0, post_transform=d.choice(*POSTS), **d.some(one_class=1))
    return ml(d, 'SVMRegressor', [x], 1, 1, coefficients=floats(d, n), support_vectors=floats(d, 4 * n), kernel_type=kernel, kernel_params=[0.3, 0.2,
        2.0], rho=floats(d, 1), n_supports=n,
              post_transform=d.choice(*POSTS), **d.some(one_class=1))


@case
def svm_classifier(d):
    x = d.input('b', 4)
    c = d.choice(2, 3)
    post = d.choice(*POSTS[:4] if c == 2 else POSTS)
    kernel = d.choice('LINEAR', 'POLY', 'RBF', 'SIGMOID')
    labels = dict(classlabels_ints=[5, 2, 8][:c]) if d.chance() else dict(classlabels_strings=['l%d' % i for i in range(c)])
    if c > 2 and d.chance(0.25):
        return ml(d, 'SVMClassifier', [x], 2, 1, coefficients=floats(d, 4 * c), kernel_type='LINEAR', kernel_params=[0.3, 0.2, 2.0], rho=floats(d,
            1 if d.chance() else c), post_transform=post, **labels)
    per = [int(v) for v in d.rng.integers(1, 4, c)]
    n, pairs = sum(per), c * (c - 1) // 2
    return ml(d, 'SVMClassifier', [x], 2, 1, coefficients=floats(d, n * (c - 1)), support_vectors=floats(d, 4 * n), vectors_per_class=per,
        kernel_type=kernel, kernel_params=[0.3, 0.2, 2.0],
              rho=floats(d, pairs), post_transform=post, **labels)


@case
def one_hot_encoder(d):
    zeros = d.some(zeros=1)
    dims = d.choice(('b',), ('b', 's'), ('b', 1))
    if d.chance():
        name = 'x0'
        W = np.array(['a', 'b', 'c', 'zz'], object)
        d.inputs[name] = (object, dims, 0, 0, lambda size: W[d.rng.integers(0, len(W), [size.get(i, i) for i in dims])])
        return ml(d, 'OneHotEncoder', [name], 1, 1, cats_strings=['b', 'c', 'a'], **zeros)
    x = d.input(*dims, dtype=d.choice(I64, I32, F32, F64), low=0, high=4)
    return ml(d, 'OneHotEncoder', [x], 1, 1, cats_int64s=[2, 0, 1], **zeros)


@case
def label_encoder(d):
    v = d.choice(2, 4)  # NaN is a key from version 4 on
    def part(kind, which):
        return {which + '_' + kind: {'floats': [0.5, float('nan'), 2.0], 'int64s': [4, 0, -2], 'strings': ['a', 'b', '']}[kind]}
    a, b = d.choice('floats', 'int64s', 'strings'), d.choice('floats', 'int64s', 'strings')
    vals = {'floats': np.array([0.5, np.nan if v == 4 else 3, 2, 7], F32), 'int64s': np.array([4, 0, -2, 5], I64), 'strings': np.array(['a', 'b', '',
        'q'], object)}[a]
    dims = d.choice(('b',), ('b', 's'))
    d.inputs['x0'] = ({'floats': F32, 'int64s': I64, 'strings': object}[a], dims, 0, 0, lambda size: vals[d.rng.integers(0, 4, [size[i] for i in dims])])
    dflt = {'floats': dict(default_float=9.5), 'int64s': dict(default_int64=77), 'strings': dict(default_string='none')}[b]
    return ml(d, 'LabelEncoder', ['x0'], 1, v, **part(a, 'keys'), **part(b, 'values'), **(dflt if d.chance() else {}))


@case
def tree_ensemble_5(d):
    k = d.choice(F32, F64)
    t = TensorProto.DOUBLE if k == F64 else TensorProto.FLOAT
    feats, modes, splits, tn, fn, tl, fl, miss, roots = [], [], [], [], [], [], [], [], []
    lids, lw = [], []
    targets = d.choice(1, 2, 3)
    def leaf():
        lids.append(int(d.rng.integers(targets)))
        lw.append(float(F32(d.rng.uniform(-1, 1))))
        return len(lids) - 1
    def make(level):
        me = len(feats)
        m = int(d.rng.integers(6))
        feats.append(int(d.rng.integers(5)))
        modes.append(m)
        splits.append(float(d.rng.integers(-4, 5) / 2))
        miss.append(int(d.rng.integers(2)))
        for made in (tn, fn, tl, fl):
            made.append(0)
        for nn, ll in ((tn, tl), (fn, fl)):
            if level <= 1 or d.chance(0.25):
                nn[me], ll[me] = leaf(), 1
            else:
                nn[me] = make(level - 1)
        return me
    for _ in range(d.choice(1, 3, 8)):
        roots.append(make(d.choice(1, 2, 4)))
    tens = lambda n, v, ty=t: helper.make_tensor(n, ty, [len(v)], v)
    attrs = dict(n_targets=targets, aggregate_function=d.choice(0, 1, 2, 3), post_transform=d.choice(0, 3, 4), tree_roots=roots, nodes_featureids=feats,
                 nodes_modes=tens('m', modes, TensorProto.UINT8), nodes_splits=tens('s',
                     splits), nodes_truenodeids=tn, nodes_falsenodeids=fn, nodes_trueleafs=tl, nodes_falseleafs=fl,
                 leaf_targetids=lids, leaf_weights=tens('w', lw))
    if d.chance():
        attrs['nodes_missing_value_tracks_true'] = miss
    d.opset = 21
    return ml(d, 'TreeEnsemble', [samples(d, k, 5)], 1, 5, **attrs)

if __name__ == '__main__':
    main(CASES, __doc__, 'berth_random_ml')
