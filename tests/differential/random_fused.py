#!/usr/bin/env python3
"""Single operators as optimisers and quantisers write them, with random attributes and left-out operands, in Berth and in ONNX Runtime.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_fused.py [--seed 1] [--count 200] [--only NAME[,NAME]] [--target cpu] [--keep FOLDER]

Attention in its forms, operators on 8-bit and 4-bit numbers, normalisations and recurrent layers of com.microsoft and of newer opsets: batches and
lengths are open, and Berth loads a model once and runs it at three sizes and the first again. What ONNX Runtime refuses is left out. Ends
with 1 when anything differed or was refused. Not in the test run, which has no ONNX Runtime: see README.md beside this file.
"""
import numpy as np

from draws import F32, I8, I32, I64, U8, main

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


# -- attention
def angles(d, size, positions=64):
    t = np.outer(np.arange(positions), 1 / 100 ** (np.arange(size // 2) / (size // 2)))
    return d.const(np.cos(t).astype(F32)), d.const(np.sin(t).astype(F32))


@case
def group_query_attention(d):
    heads, groups, size = d.choice((4, 2, 8), (4, 1, 16), (2, 2, 8), (6, 3, 32))
    past = d.chance()
    if d.chance(0.3):
        operands = [d.input('b', 's', (heads + 2 * groups) * size), '', '']
    else:
        operands = [d.input('b', 's', heads * size), d.input('b', 's', groups * size), d.input('b', 's', groups * size)]
    operands += [d.input('b', groups, 'p', size), d.input('b', groups, 'p', size)] if past else ['', '']
    total = lambda size: size['s'] + (size['p'] if past else 0)
    operands += [d.input('b', dtype=I32, made=lambda size: np.full(size['b'], total(size) - 1, I32)),
                 d.input(dtype=I32, made=lambda size: np.asarray(total(size), I32))]
    attrs = d.some(local_window_size=d.choice(2, 4, 100), softcap=2.0, scale=0.3)
    if d.chance():
        operands += list(angles(d, size))
        attrs.update(do_rotary=1, **d.some(rotary_interleaved=1))
    return d.node('GroupQueryAttention', operands, 3, num_heads=heads, kv_num_heads=groups, **attrs)


def token_mask(d, keys):
    """Of each sequence of the batch some of its `keys(size)` keys, the first one always."""
    def made(size):
        mask = d.rng.integers(0, 2, (size['b'], keys(size))).astype(I32)
        mask[:, 0] = 1
        return mask
    return made


@case
def multi_head_attention(d):
    heads, size = d.choice((2, 8), (4, 16), (3, 4))
    wide, form = heads * size, d.choice('self', 'cross', 'heads', 'past', 'packed', 'packed_kv')
    keys = {'self': 's', 'past': 's', 'packed': 's'}.get(form, 't')
    everything = 'p+s' if form == 'past' else keys
    if form == 'packed':
        operands = [d.input('b', 's', heads, 3, size), '', '']
    elif form == 'packed_kv':
        operands = [d.input('b', 's', wide), d.input('b', 't', heads, 2, size), '']
    elif form == 'heads':
        operands = [d.input('b', 's', wide), d.input('b', heads, 't', size), d.input('b', heads, 't', size)]
    else:
        operands = [d.input('b', 's', wide), d.input('b', keys, wide), d.input('b', keys, wide)]
    operands.append(d.weight(3 * wide) if form in ('self', 'cross', 'past') and d.chance() else '')
    mask = d.choice('', '', 'lengths', 'tokens')
    extent = lambda size: sum(size[part] for part in everything.split('+'))
    if mask == 'lengths':
        operands.append(d.input('b', dtype=I32, made=lambda size: d.rng.integers(1, extent(size) + 1, size['b']).astype(I32)))
    elif mask == 'tokens':
        operands.append(d.input('b', everything, dtype=I32, made=token_mask(d, extent)))
    else:
        operands.append('')
    operands.append(d.input(d.choice('b', 1), d.choice(heads, 1), 's', everything) if d.chance(0.4) else '')
    if form == 'past':
        operands += [d.input('b', heads, 'p', size), d.input('b', heads, 'p', size)]
    attrs = d.some(unidirectional=1, scale=0.3, mask_filter_value=-1000.0)
    if keys == 't':
        attrs.pop('unidirectional', None)  # ONNX Runtime hides no key of the last query
    # Without the results for the next call ONNX Runtime takes no past into account.
    caches = form == 'past' or (form in ('self', 'cross') and d.chance(0.7))
    return d.node('MultiHeadAttention', operands, 3 if caches else 1, num_heads=heads, **attrs)


@case
def attention(d):
    heads, size, inner = d.choice((2, 8, 12), (4, 4, 16))
    wide = heads * size
    past = d.chance(0.4)
    operands = [d.input('b', 's', inner), d.weight(inner, 3 * wide), d.weight(3 * wide)]
    total = lambda size: size['s'] + (size['p'] if past else 0)
    mask = d.choice('', 'lengths', 'tokens')
    if mask == 'lengths':
        operands.append(d.input('b', dtype=I32, made=lambda size: d.rng.integers(1, total(size) + 1, size['b']).astype(I32)))
    elif mask == 'tokens':
        operands.append(d.input('b', 'p+s' if past else 's', dtype=I32, made=token_mask(d, total)))
    else:
        operands.append('')
    operands.append(d.input(2, 'b', heads, 'p', size) if past else '')
    operands.append(d.input(d.choice('b', 1), d.choice(heads, 1), 's', 'p+s' if past else 's') if d.chance(0.3) else '')
    return d.node('Attention', operands, 2 if past else 1, num_heads=heads, **d.some(unidirectional=1, scale=0.3))


@case
def attention_23(d):
    d.opset = d.choice(23, 24)
    heads, groups, size, of_values = d.choice((4, 2, 8, 8), (3, 3, 4, 6), (4, 1, 16, 16))
    past, attrs = d.chance(0.4), d.some(is_causal=1, softcap=1.5, scale=0.4)
    t = 's' if past and 'is_causal' in attrs else 't'  # of one query, ONNX Runtime hides no key that comes after it
    everything = 'p+' + t if past else t
    if d.chance():
        operands = [d.input('b', heads, 's', size), d.input('b', groups, t, size), d.input('b', groups, t, of_values)]
    else:
        operands = [d.input('b', 's', heads * size), d.input('b', t, groups * size), d.input('b', t, groups * of_values)]
        attrs.update(q_num_heads=heads, kv_num_heads=groups)
    mask = d.choice('', 'numbers', 'truth')
    dims = d.choice(('s', everything), (1, 's', everything), ('b', 1, 's', everything), ('b', heads, 's', everything))
    extent = lambda dim, size: dim if isinstance(dim, int) else sum(size[part] for part in dim.split('+'))
    if mask == 'truth':
        def truth(size):
            m = d.rng.random([extent(dim, size) for dim in dims]) < 0.7
            m[..., 0] = True
            return m
        operands.append(d.input(*dims, dtype=np.bool_, made=truth))
    else:
        operands.append(d.input(*dims) if mask else '')
    operands += [d.input('b', groups, 'p', size), d.input('b', groups, 'p', of_values)] if past else []
    return d.node('Attention', operands, 3 if past else 1, '', **attrs)


@case
def rotary(d):
    heads, size = d.choice((2, 8), (4, 16))
    cos, sin = angles(d, size)
    four = d.chance()
    x = d.input('b', heads, 's', size) if four else d.input('b', 's', heads * size)
    if d.chance():
        places = d.input(1, dtype=I64, made=lambda size: np.array([3], I64))
    else:
        places = d.input('b', 's', dtype=I64, low=0, high=63)
    attrs = d.some(interleaved=1)
    return d.node('RotaryEmbedding', [x, places, cos, sin], **attrs, **({} if four and d.chance() else dict(num_heads=heads)))


# -- normalisations
@case
def skip_normalisation(d):
    wide = d.choice(8, 24, 33)
    simple = d.chance()
    rest = [d.weight(wide)] + ([] if simple else [d.weight(wide) if d.chance() else '']) + [d.weight(wide) if d.chance() else '']
    x, y = d.input('b', 's', wide), d.input('b', 's', wide)
    names = d.node('SkipSimplifiedLayerNormalization' if simple else 'SkipLayerNormalization', [x, y] + rest, 4 if d.chance() else 1, epsilon=1e-4)
    if len(names) == 4:
        d.nodes[-1].output[1] = d.nodes[-1].output[2] = ''
    return [n for n in d.nodes[-1].output if n]


@case
def bias_gelu(d):
    wide = d.choice(8, 30)
    return d.node(d.choice('BiasGelu', 'FastGelu'), [d.input('b', 's', wide), d.weight(wide)])


@case
def rms_23(d):
    d.opset = 23
    wide = d.choice(8, 30)
    return d.node('RMSNormalization', [d.input('b', 's', wide), d.weight(wide)], 1, '', **d.some(epsilon=1e-3, axis=-1))


# -- quantised
def point(d, dtype, zero=None):
    low, high = (100, 150) if dtype == U8 else (-20, 20)
    return d.const(np.float32(d.rng.uniform(0.01, 0.1))), d.const(np.array(d.rng.integers(low, high) if zero is None else zero, dtype))


def eight(d, *dims, dtype=U8):
    return d.input(*dims, dtype=dtype, low=np.iinfo(dtype).min, high=np.iinfo(dtype).max)


@case
def qlinear_binary(d):
    dtype = d.choice(U8, I8)
    y = d.choice(('b', 's', 6), (6,), ('s', 1), (1,))
    return d.node(d.choice('QLinearAdd', 'QLinearMul'), [eight(d, 'b', 's', 6, dtype=dtype), *point(d, dtype), eight(d, *y, dtype=dtype), *point(d, dtype),
                                                         *point(d, dtype)])


@case
def qlinear_one(d):
    dtype = d.choice(U8, I8)
    op = d.choice('QLinearSigmoid', 'QLinearLeakyRelu')
    return d.node(op, [eight(d, 'b', 's', 7, dtype=dtype), *point(d, dtype), *point(d, dtype)], **(d.some(alpha=0.2) if op == 'QLinearLeakyRelu' else {}))


@case
def qlinear_concat(d):
    dtype = d.choice(U8, I8)
    operands = [*point(d, dtype)]
    for extent in (3, 's', 5)[:d.choice(2, 3)]:
        operands += [eight(d, 'b', extent, 4, dtype=dtype), *point(d, dtype)]
    return d.node('QLinearConcat', operands, axis=1)


@case
def qlinear_pool(d):
    dtype = d.choice(U8, I8)
    x = eight(d, 'b', d.choice(4, 9, 16), 's', 't', dtype=dtype)
    return d.node('QLinearGlobalAveragePool', [x, *point(d, dtype), *point(d, dtype)])


@case
def qlinear_conv(d):
    dtype, inputs, outputs = d.choice(U8, I8), d.choice(3, 8, 16), d.choice(4, 16, 24)
    group = d.choice(1, 1, inputs) if outputs % inputs == 0 else 1
    kernel = d.choice((1, 1), (3, 3), (1, 3))
    weights = d.weight(outputs, inputs // group, *kernel, dtype=I8, low=-64, high=63)
    scale = d.const(d.rng.uniform(0.001, 0.01, outputs if d.chance() else ()).astype(F32))
    zero = d.const(np.zeros(d.constants[scale].shape, I8))
    bias = [d.weight(outputs, dtype=I32, low=-500, high=500)] if d.chance() else []
    x = eight(d, 'b', inputs, 't', 11, dtype=dtype)
    return d.node('QLinearConv', [x, *point(d, dtype), weights, scale, zero, *point(d, dtype), *bias], 1, '', group=group,
                  pads=[kernel[0] // 2, kernel[1] // 2] * 2, **d.some(strides=[2, 1]))


@case
def qlinear_matmul(d):
    dtype, inner, columns = d.choice(U8, I8), d.choice(5, 16, 40), d.choice(3, 16, 33)
    kind = d.choice(U8, I8)
    scale = d.const(d.rng.uniform(0.001, 0.01, columns if d.chance() else ()).astype(F32))
    zero = d.const(d.array(kind, d.constants[scale].shape, 0, 4))
    w = d.weight(inner, columns, dtype=kind, low=np.iinfo(kind).min // 2, high=np.iinfo(kind).max // 2)
    return d.node('QLinearMatMul', [eight(d, 'b', 's', inner, dtype=dtype), *point(d, dtype), w, scale, zero, *point(d, dtype)], 1, '')


@case
def dynamic_quantize_matmul(d):
    inner, columns, kind = d.choice(5, 16, 40), d.choice(3, 16, 33), d.choice(U8, I8)
    scale = d.const(d.rng.uniform(0.001, 0.01, columns if d.chance() else (1,)).astype(F32))
    zero = d.const(d.array(kind, d.constants[scale].shape, 0, 4)) if d.chance() else ''
    w = d.weight(inner, columns, dtype=kind, low=np.iinfo(kind).min // 2, high=np.iinfo(kind).max // 2)
    return d.node('DynamicQuantizeMatMul', [d.input('b', 's', inner), w, scale, zero, d.weight(columns) if d.chance() else ''])


@case
def matmul_integer_to_float(d):
    inner, columns, kind, dtype = d.choice(5, 16), d.choice(3, 16, 33), d.choice(U8, I8), d.choice(U8, I8)
    scale = d.const(d.rng.uniform(0.001, 0.01, columns if d.chance() else (1,)).astype(F32))
    zeros = [d.const(np.array([3], dtype)) if d.chance() else '', d.const(d.array(kind, d.constants[scale].shape, 0, 4)) if d.chance() else '']
    w = d.weight(inner, columns, dtype=kind, low=np.iinfo(kind).min // 2, high=np.iinfo(kind).max // 2)
    return d.node('MatMulIntegerToFloat', [eight(d, 'b', 's', inner, dtype=dtype), w, d.const(np.array([0.02], F32)), scale, *zeros,
                                           d.weight(columns) if d.chance() else ''])


@case
def matmul_bits(d):
    bits, block, inner, columns = d.choice(4, 4, 8), d.choice(16, 32, 64), d.choice(16, 40, 128), d.choice(8, 24, 33)
    blocks, packed = -(-inner // block), block * bits // 8
    w = d.weight(columns, blocks, packed, dtype=U8, low=0, high=255)
    scales = d.const(d.rng.uniform(0.01, 0.1, columns * blocks).astype(F32))
    zeros = d.weight(columns * -(-blocks * bits // 8), dtype=U8, low=0, high=255) if d.chance() else ''
    bias = d.weight(columns) if d.chance(0.3) else ''
    return d.node('MatMulNBits', [d.input('b', 's', inner), w, scales, zeros, '', bias], K=inner, N=columns, bits=bits, block_size=block)


@case
def qgemm(d):
    dtype, inner, columns = d.choice(U8, I8), d.choice(5, 16), d.choice(3, 16)
    turned = d.chance()
    scale = d.const(d.rng.uniform(0.001, 0.01, columns if d.chance() else ()).astype(F32))
    w = d.weight(*((columns, inner) if turned else (inner, columns)), dtype=I8, low=-64, high=63)
    end = [*point(d, dtype)] if d.chance() else []
    bias = d.weight(columns, dtype=I32, low=-99, high=99) if d.chance() else ''
    return d.node('QGemm', [eight(d, 's', inner, dtype=dtype), *point(d, dtype), w, scale, d.const(np.zeros(d.constants[scale].shape, I8)), bias, *end],
                  transB=int(turned), **d.some(alpha=0.5))


@case
def blocks_of_numbers(d):
    """QuantizeLinear and DequantizeLinear of opset 21: per tensor, along an axis, in blocks."""
    form, kind = d.choice('tensor', 'axis', 'blocks'), d.choice(U8, I8, np.uint16, np.int16)
    x = d.input('b', 's', 12, low=-4.0, high=4.0)
    if form == 'blocks':
        return None  # needs as many rows of scales as x has
    scale = d.const(d.rng.uniform(0.02, 0.1, () if form == 'tensor' else 12).astype(F32))
    zero = d.const(d.array(kind, d.constants[scale].shape, 0, 4))
    q, = d.node('QuantizeLinear', [x, scale, zero], 1, '', axis=2)
    return d.node('DequantizeLinear', [q, scale, zero], 1, '', axis=2) + [q]


# -- others
@case
def fused_matmul(d):
    turned = d.chance()
    w = d.input(*(('b', 5, 6) if turned else ('b', 6, 5))) if d.chance() else d.weight(*((5, 6) if turned else (6, 5)))
    return d.node('FusedMatMul', [d.input('b', 's', 6), w], transB=int(turned), **d.some(alpha=0.3))


@case
def fused_conv(d):
    act, more = d.choice(('Relu', []), ('LeakyRelu', [0.1]), ('Clip', [-0.5, 0.7]), ('Sigmoid', []), ('Tanh', []), ('HardSigmoid', [0.3, 0.4]))
    bias = [d.weight(8)] if d.chance() else ['']
    added = []
    return d.node('FusedConv', [d.input('b', 3, 't', 9), d.weight(8, 3, 3, 3), *bias, *added], activation=act, pads=[1, 1, 1, 1],
                  **({'activation_params': more} if more else {}))


if __name__ == '__main__':
    main(CASES, __doc__, 'berth_random_fused')
