"""Random small networks for random_nets.py: layers of f32, or of 8-bit integers in QDQ form, made node by node with the values that ONNX
Runtime gives them, so that every model is valid and scales are those of real values."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime as ort

ort.set_default_logger_severity(4)


def run_peer(model, feeds):
    """Outputs by ONNX Runtime, as the model is written, by one thread."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider']).run(None, feeds)


class Net:
    """A model that grows at its end: `value` has what each name is for the feeds."""

    def __init__(self, seed, integers):
        self.random = np.random.RandomState(seed)
        self.integers = integers
        self.nodes, self.constants, self.value, self.feeds, self.scale = [], [], {}, {}, {}

    def draw(self, *choices):
        return choices[self.random.randint(len(choices))]

    def chance(self, of):
        return self.random.rand() < of

    def model(self, outputs):
        def info(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        read = {i for n in self.nodes for i in n.input}
        graph = helper.make_graph(self.nodes, 'net', [info(k, v) for k, v in self.feeds.items()],
                                  [info(k, self.value[k]) for k in outputs], [c for c in self.constants if c.name in read])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)

    def constant(self, array):
        array = np.asarray(array)
        name = 'c%d' % len(self.constants)
        self.constants.append(numpy_helper.from_array(array, name))
        self.value[name] = array
        return name

    def node(self, kind, *inputs, **attributes):
        """The name of the result; None, and nothing is added, where ONNX Runtime refuses or the result is not a small one."""
        name = 'v%d' % len(self.nodes)
        made = helper.make_node(kind, list(inputs), [name], name='%s_%d' % (kind, len(self.nodes)), **attributes)
        feeds = {i: self.value[i] for i in inputs if i}
        graph = helper.make_graph([made], 'one', [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                                                  for k, v in feeds.items()], [onnx.ValueInfoProto(name=name)])
        try:
            value = run_peer(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), feeds)[0]
        except Exception:
            return None
        if value.size == 0 or value.size > 20000 or not np.isfinite(value.astype(np.float64)).all():
            return None
        self.nodes.append(made)
        self.value[name] = value
        return name

    # ---- 8 bits

    def requantised(self, x):
        if not self.integers or x is None:
            return x
        low, high = min(float(self.value[x].min()), 0.0), max(float(self.value[x].max()), 1e-3)
        kind = self.draw(np.uint8, np.uint8, np.int8)
        bounds = np.iinfo(kind)
        scale = np.float32((high - low) / 255)
        zero = kind(np.clip(round(bounds.min - low / float(scale)), bounds.min, bounds.max))
        s, z = self.constant(scale), self.constant(zero)
        y = self.node('DequantizeLinear', self.node('QuantizeLinear', x, s, z), s, z)
        self.scale[y] = scale
        return y

    def weights(self, shape, axis=0):
        """Weights, as their name and the scale of each output."""
        fan = max(1, int(np.prod(shape)) // shape[axis])
        if not self.integers:
            return self.constant((self.random.randn(*shape) / np.sqrt(fan)).astype(np.float32)), None
        outputs = shape[axis]
        scales = (self.random.uniform(0.5, 2, outputs) / (70 * np.sqrt(fan))).astype(np.float32)
        kind = self.draw('channels', 'channels', 'tensor', 'bytes')
        w = self.random.randint(-127, 128, shape).astype(np.int8)
        zeros, attributes = np.zeros(outputs, np.int8), {'axis': axis}
        if kind == 'tensor':
            scales, zeros, attributes = scales[0], np.int8(0), {}
        elif kind == 'bytes':
            w, scales, zeros, attributes = (w.astype(np.int16) + 128).astype(np.uint8), scales[0], np.uint8(self.draw(128, 3, 255)), {}
        return self.node('DequantizeLinear', self.constant(w), self.constant(scales), self.constant(zeros), **attributes), scales

    def bias(self, x, scales, outputs):
        if not self.integers:
            return self.constant(self.random.randn(outputs).astype(np.float32) * np.float32(0.3))
        scale = (np.float32(self.scale[x]) * np.broadcast_to(scales, outputs)).astype(np.float32)
        b = self.constant(self.random.randint(-3000, 3000, outputs).astype(np.int32))
        return self.node('DequantizeLinear', b, self.constant(scale), self.constant(np.zeros(outputs, np.int32)), axis=0)

    # ---- layers: from a name to a name, or None

    def conv(self, x):
        _, channels, height, width = self.value[x].shape
        kind = self.draw('all', 'all', 'point', 'depth', 'depth', 'groups')
        group = {'depth': channels, 'groups': self.draw(*(g for g in range(1, channels + 1) if channels % g == 0))}.get(kind, 1)
        outputs = group * self.draw(1, 1, 1, 2) if kind == 'depth' else group * self.random.randint(1, max(2, 12 // group + 1))
        kernel = [1, 1] if kind == 'point' else [self.random.randint(1, min(height, 5) + 1), self.random.randint(1, min(width, 5) + 1)]
        if self.chance(0.5) and kind != 'point' and min(height, width) >= 3:
            kernel = [3, 3]
        pads = [self.random.randint(0, k) for k in kernel * 2] if self.chance(0.5) else [k // 2 for k in kernel * 2]
        w, scales = self.weights((outputs, channels // group, *kernel))
        inputs = [x, w] + ([self.bias(x, scales, outputs)] if self.chance(0.8) else [])
        return self.node('Conv', *inputs, group=group, kernel_shape=kernel, pads=pads, strides=[self.draw(1, 1, 2), self.draw(1, 1, 2)],
                         dilations=[self.draw(1, 1, 1, 2), self.draw(1, 1, 1, 2)])

    def conv_transpose(self, x):
        channels = self.value[x].shape[1]
        w, _ = self.weights((channels, self.random.randint(1, 6), self.draw(1, 2, 3), self.draw(2, 3)), axis=1)
        return self.node('ConvTranspose', x, w, strides=[self.draw(1, 2), self.draw(1, 2)])

    def pool(self, x):
        kind = self.draw('MaxPool', 'AveragePool', 'AveragePool')
        kernel = [self.draw(1, 2, 3), self.draw(2, 3, 4)]
        attributes = {'count_include_pad': self.draw(0, 1)} if kind == 'AveragePool' else {}
        return self.node(kind, x, kernel_shape=kernel, strides=[self.draw(1, 2), self.draw(1, 2, 3)],
                         pads=[self.random.randint(0, k) for k in kernel * 2], ceil_mode=self.draw(0, 0, 1), **attributes)

    def whole_pool(self, x):
        return self.node(self.draw('GlobalAveragePool', 'GlobalMaxPool'), x)

    def together(self, x):
        others = [k for k, v in self.value.items() if k in self.kept and v.shape == self.value[x].shape]
        other = self.draw(*others)
        return self.node(self.draw('Add', 'Add', 'Mul', 'Sub', 'Max'), x, other)

    def concat(self, x):
        shape = self.value[x].shape
        axis = self.draw(1, 1, 2, 3)
        others = [k for k in self.kept if len(self.value[k].shape) == 4 and
                  all(a == b for i, (a, b) in enumerate(zip(self.value[k].shape, shape)) if i != axis)]
        return self.node('Concat', *[self.draw(*others) for _ in range(self.draw(1, 2))], x, axis=axis)

    def pad(self, x):
        mode = self.draw('constant', 'reflect', 'edge')
        pads = np.array([0, 0, *self.random.randint(0, 3, 2), 0, 0, *self.random.randint(0, 3, 2)], np.int64)
        if mode == 'constant' and self.chance(0.3):
            pads[1], pads[5] = self.draw(0, 1), self.draw(0, 2)
        return self.node('Pad', x, self.constant(pads), mode=mode)

    def activation(self, x):
        kind = self.draw('Relu', 'Relu', 'Clip', 'LeakyRelu', 'Sigmoid', 'Tanh', 'HardSwish', 'PRelu', 'Elu')
        if kind == 'Clip':
            return self.node('Clip', x, self.constant(np.float32(self.draw(0, -1))), self.constant(np.float32(self.draw(6, 1))))
        if kind == 'PRelu':
            return self.node('PRelu', x, self.constant(self.random.rand(self.value[x].shape[1], 1, 1).astype(np.float32)))
        return self.node(kind, x)

    def scaled(self, x):
        kind = self.draw('Mul', 'Add', 'Div')
        shape = self.draw((), (1, self.value[x].shape[1], 1, 1), (self.value[x].shape[-1],))
        return self.node(kind, x, self.constant(np.float32(self.random.uniform(0.5, 1.5, shape))))

    def moved(self, x):
        kind = self.draw('transpose', 'slice', 'resize', 'reshape')
        shape = self.value[x].shape
        if kind == 'transpose':
            return self.node('Transpose', x, perm=self.draw([0, 1, 3, 2], [0, 2, 3, 1], [0, 3, 1, 2]))
        if kind == 'resize':
            return self.node('Resize', x, '', self.constant(np.array([1, 1, self.draw(1, 2), 2], np.float32)), mode='nearest',
                             coordinate_transformation_mode='asymmetric', nearest_mode='floor')
        if kind == 'reshape':
            return self.node('Reshape', x, self.constant(np.array([1, -1, shape[2] * shape[3], 1], np.int64)))
        axis = self.random.randint(1, 4)
        first = self.random.randint(0, shape[axis])
        return self.node('Slice', x, *(self.constant(np.array([i], np.int64)) for i in
                                       (first, self.random.randint(first, shape[axis]) + 1, axis, self.draw(1, 1, 2))))

    def means(self, x):
        return self.node('ReduceMean', x, axes=self.draw([2, 3], [2], [3], [1]), keepdims=1)

    def product(self, x):
        """Of two values; the second one transposed."""
        return self.node('MatMul', x, self.node('Transpose', self.draw(*self.same_shape(x)), perm=[0, 1, 3, 2]))

    def same_shape(self, x):
        return [k for k in self.kept if self.value[k].shape == self.value[x].shape]

    def grow(self, layers):
        shape = (1, self.random.randint(1, 9), self.random.randint(3, 21), self.random.randint(3, 21))
        self.feeds['x'] = self.value['x'] = self.random.randn(*shape).astype(np.float32)
        self.kept = [self.requantised('x')]
        ways = [self.conv] * 6 + [self.pool] * 2 + [self.together] * 2 + [self.concat] * 2 + [self.activation] * 2 + [
            self.pad, self.scaled, self.moved, self.means, self.conv_transpose, self.product]
        for _ in range(layers):
            x = self.kept[-1] if self.chance(0.75) else self.draw(*self.kept)
            y = self.draw(*ways)(x)
            if y is not None and self.chance(0.4):
                y = self.node('Relu', y)
            y = self.requantised(y)
            if y is not None:
                self.kept.append(y)

    def head(self, x):
        """A classifier behind a value: products and a softmax, of some."""
        if self.chance(0.5) or self.value[x].size > 900:
            x = self.requantised(self.whole_pool(x))
        x = self.node('Flatten', x)
        if self.integers:
            x = self.requantised(x)
        for _ in range(self.draw(1, 2)):
            outputs, inputs = self.random.randint(1, 20), self.value[x].shape[1]
            if self.chance(0.5):
                w, scales = self.weights((outputs, inputs))
                x = self.requantised(self.node('Gemm', x, w, self.bias(x, scales, outputs), transB=1))
            else:
                w, _ = self.weights((inputs, outputs), axis=1)
                x = self.requantised(self.node('MatMul', x, w))
        return self.node('Softmax', x, axis=-1) if self.chance(0.6) else x


def attempt(seed, integers, layers):
    net = Net(seed, integers)
    net.grow(layers)
    outputs = [net.head(net.kept[-1]) if net.chance(0.6) else net.kept[-1]]
    if net.chance(0.25) and len(net.kept) > 3 and net.kept[-2] != outputs[0]:
        outputs.append(net.kept[-2])
    if outputs[0] == net.kept[0]:
        outputs = [net.node('Relu', net.kept[0])]
    model = net.model(outputs)
    onnx.checker.check_model(model)
    return model, net.feeds, dict(zip(outputs, run_peer(model, net.feeds)))


def make(seed, integers, layers):
    """(model, feeds, expected outputs); of another seed where ONNX Runtime takes every node, but not all of them together."""
    for further in range(10):
        try:
            return attempt(seed + 1000000 * further, integers, layers)
        except Exception as error:
            refused = error
    raise refused
