#!/usr/bin/env python3
"""Trains the small convolutional network of the digits example and exports it to ONNX.

    python3 -m pip install numpy scikit-learn onnx
    python3 examples/digits/train.py            # writes digits.onnx, test_images.npy, test_labels.npy beside itself

Data: scikit-learn's copy of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine Learning
Repository, 1998, CC BY 4.0), 1,797 images of 8x8 pixels. The last 360 are the test set.
Everything is seeded and computed in float64; weights are rounded to multiples of 1/4096, so that the last bits of a
machine's BLAS do not show: the same files come out again.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = (16, 32)
EPOCHS, BATCH, RATE = 30, 32, 2e-3


def columns(x):
    """3x3 patches with zero padding: [n,c,h,w] -> [n,h,w,c*9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.stack([padded[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)], axis=2)
    return patches.reshape(n, c * 9, h, w).transpose(0, 2, 3, 1)


def uncolumns(g, shape):
    """Transpose of columns()."""
    n, c, h, w = shape
    patches = g.transpose(0, 3, 1, 2).reshape(n, c, 9, h, w)
    padded = np.zeros((n, c, h + 2, w + 2))
    for k in range(9):
        padded[:, :, k // 3:k // 3 + h, k % 3:k % 3 + w] += patches[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def unpool(g, x):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    mask = blocks == blocks.max(axis=(3, 5), keepdims=True)
    mask = mask / mask.sum(axis=(3, 5), keepdims=True)
    return (mask * g[:, :, :, None, :, None]).reshape(x.shape)


def forward(p, x):
    a1 = columns(x) @ p['w1'] + p['b1']
    z1 = np.maximum(a1, 0).transpose(0, 3, 1, 2)
    q1 = pool(z1)
    a2 = columns(q1) @ p['w2'] + p['b2']
    z2 = np.maximum(a2, 0).transpose(0, 3, 1, 2)
    q2 = pool(z2)
    return a1, z1, q1, a2, z2, q2, q2.reshape(len(x), -1) @ p['w3'] + p['b3']


def gradients(p, x, labels):
    a1, z1, q1, a2, z2, q2, logits = forward(p, x)
    soft = np.exp(logits - logits.max(axis=1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    soft[np.arange(len(x)), labels] -= 1
    soft /= len(x)
    g = {'w3': q2.reshape(len(x), -1).T @ soft, 'b3': soft.sum(axis=0)}
    d = unpool((soft @ p['w3'].T).reshape(q2.shape), z2).transpose(0, 2, 3, 1) * (a2 > 0)
    c = columns(q1)
    g['w2'], g['b2'] = c.reshape(-1, c.shape[-1]).T @ d.reshape(-1, d.shape[-1]), d.sum(axis=(0, 1, 2))
    d = unpool(uncolumns(d @ p['w2'].T, q1.shape), z1).transpose(0, 2, 3, 1) * (a1 > 0)
    c = columns(x)
    g['w1'], g['b1'] = c.reshape(-1, c.shape[-1]).T @ d.reshape(-1, d.shape[-1]), d.sum(axis=(0, 1, 2))
    return g


def train(images, labels):
    rng = np.random.RandomState(1)
    c1, c2 = CHANNELS
    shapes = {'w1': (9, c1), 'b1': (c1,), 'w2': (9 * c1, c2), 'b2': (c2,), 'w3': (4 * c2, 10), 'b3': (10,)}
    p = {k: rng.standard_normal(s) * (2.0 / s[0]) ** 0.5 if len(s) == 2 else np.zeros(s) for k, s in shapes.items()}
    m, v, step = {k: np.zeros(s) for k, s in shapes.items()}, {k: np.zeros(s) for k, s in shapes.items()}, 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for at in range(0, len(images) - BATCH + 1, BATCH):
            g = gradients(p, images[order[at:at + BATCH]], labels[order[at:at + BATCH]])
            step += 1
            for k in p:  # Adam (Kingma and Ba 2015)
                m[k] = 0.9 * m[k] + 0.1 * g[k]
                v[k] = 0.999 * v[k] + 0.001 * g[k] ** 2
                p[k] -= RATE * (m[k] / (1 - 0.9 ** step)) / (np.sqrt(v[k] / (1 - 0.999 ** step)) + 1e-8)
    return {k: (np.round(a * 4096) / 4096).astype(np.float32) for k, a in p.items()}


def export(p, path):
    c1, c2 = CHANNELS
    weights = {'conv1.weight': p['w1'].T.reshape(c1, 1, 3, 3), 'conv1.bias': p['b1'],
               'conv2.weight': p['w2'].T.reshape(c2, c1, 3, 3), 'conv2.bias': p['b2'],
               'fc.weight': p['w3'], 'fc.bias': p['b3']}
    node = helper.make_node
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    half = dict(kernel_shape=[2, 2], strides=[2, 2])
    nodes = [node('Conv', ['image', 'conv1.weight', 'conv1.bias'], ['c1'], name='conv1', **conv),
             node('Relu', ['c1'], ['r1'], name='relu1'),
             node('MaxPool', ['r1'], ['p1'], name='pool1', **half),
             node('Conv', ['p1', 'conv2.weight', 'conv2.bias'], ['c2'], name='conv2', **conv),
             node('Relu', ['c2'], ['r2'], name='relu2'),
             node('MaxPool', ['r2'], ['p2'], name='pool2', **half),
             node('Flatten', ['p2'], ['f'], name='flatten'),
             node('Gemm', ['f', 'fc.weight', 'fc.bias'], ['logits'], name='fc'),
             node('Softmax', ['logits'], ['probabilities'], name='softmax', axis=-1)]
    graph = helper.make_graph(nodes, 'digits',
                              [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['batch', 1, 8, 8])],
                              [helper.make_tensor_value_info('probabilities', TensorProto.FLOAT, ['batch', 10])],
                              [numpy_helper.from_array(np.ascontiguousarray(a), k) for k, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], producer_name='berth-digits')
    model.ir_version = 8
    onnx.checker.check_model(model)
    with open(path, 'wb') as file:
        file.write(model.SerializeToString())


def main():
    digits = load_digits()
    images = (digits.images / 16.0)[:, None]
    split = len(images) - 360
    p = train(images[:split], digits.target[:split])
    logits = forward({k: a.astype(np.float64) for k, a in p.items()}, images[split:])[-1]
    print('test accuracy %.4f' % np.mean(logits.argmax(axis=1) == digits.target[split:]))
    export(p, os.path.join(HERE, 'digits.onnx'))
    np.save(os.path.join(HERE, 'test_images.npy'), images[split:].astype(np.float32))
    np.save(os.path.join(HERE, 'test_labels.npy'), digits.target[split:].astype(np.int64))


if __name__ == '__main__':
    main()
