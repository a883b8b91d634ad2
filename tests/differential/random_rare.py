#!/usr/bin/env python3
"""Operators of com.microsoft with attributes and operands that few models have, in Berth and in ONNX Runtime.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_rare.py [--seed 1] [--count 200] [--only NAME[,NAME]] [--target cpu] [--keep FOLDER]

As random_fused.py, whose words on what is compared hold here, too. Not in the test run.
"""
import numpy as np
from onnx import TensorProto, helper

from draws import F32, I8, I32, I64, U8, main
from random_fused import angles, eight, point, token_mask

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def matmul_bits(d):
    bits, block, inner, columns = d.choice(4, 4, 8, 2), d.choice(16, 32, 128), d.choice(16, 40, 128), d.choice(8, 24, 33)
    blocks, packed = -(-inner // block), block * bits // 8
    w = d.weight(columns, blocks, packed, dtype=U8, low=0, high=255)
    shape = d.choice((columns * blocks,), (columns, blocks))
    scales = d.const(d.rng.uniform(0.01, 0.1, shape).astype(F32))
    form = d.choice('', 'packed', 'float')
    if form == 'packed':
        row = -(-blocks * bits // 8)
        zeros = d.weight(*d.choice((columns * row,), (columns, row)), dtype=U8, low=0, high=255)
    elif form == 'float':
        zeros = d.const(d.rng.uniform(0, 8, shape).astype(F32))
    else:
        zeros = ''
    gidx = ''
    if d.chance(0.3) and form == '' and bits == 4:  # with zero points ONNX Runtime takes others
        rows = np.arange(blocks * block) // block
        gidx = d.const((d.rng.permutation(rows) if d.chance() else rows)[:inner].astype(I32))
    bias = d.weight(columns) if d.chance(0.3) else ''
    x = d.input(*d.choice(('b', 's', inner), ('b', inner), ('b', 2, 's', inner)))
    return d.node('MatMulNBits', [x, w, scales, zeros, gidx, bias], K=inner, N=columns, bits=bits, block_size=block, **d.some(accuracy_level=1))


@case
def rotary(d):
    heads, size = d.choice((2, 8), (4, 16))
    part = d.choice(0, 0, size // 2)
    cos, sin = angles(d, part or size)
    four = d.chance()
    x = d.input('b', heads, 's', size) if four else d.input('b', 's', heads * size)
    if d.chance():
        places = d.input(1, dtype=I64, made=lambda size: np.array([3], I64))
    else:
        places = d.input('b', 's', dtype=I64, low=0, high=63)
    attrs = d.some(interleaved=1, scale=2.0)
    if part:
        attrs.update(rotary_embedding_dim=part, num_heads=heads)
    return d.node('RotaryEmbedding', [x, places, cos, sin], **attrs, **({} if part or (four and d.chance()) else dict(num_heads=heads)))


@case
def attention(d):
    heads, size, inner = d.choice((2, 8, 12), (4, 4, 16))
    vs = d.choice(size, size, 6)
    past = d.chance(0.3) and vs == size
    operands = [d.input('b', 's', inner), d.weight(inner, heads * (2 * size + vs)), d.weight(heads * (2 * size + vs)) if d.chance(0.8) else '']
    total = lambda z: z['s'] + (z['p'] if past else 0)
    mask = d.choice('', 'lengths', 'tokens', 'ends', 'three')
    if mask == 'lengths':
        operands.append(d.input('b', dtype=I32, made=lambda z: d.rng.integers(1, total(z) + 1, z['b']).astype(I32)))
    elif mask == 'tokens':
        operands.append(d.input('b', 'p+s' if past else 's', dtype=I32, made=token_mask(d, total)))
    elif mask == 'ends' and not past:
        def made(z):
            end = d.rng.integers(1, total(z) + 1, z['b'])
            start = np.minimum(d.rng.integers(0, 2, z['b']), end - 1)
            return np.concatenate([end, start]).astype(I32)
        operands.append(d.input('n2', dtype=I32, made=made))
    elif mask == 'three':
        def made(z):
            m = d.rng.integers(0, 2, (z['b'], z['s'], total(z))).astype(I32); m[..., 0] = 1
            return m
        operands.append(d.input('b', 's', 'p+s' if past else 's', dtype=I32, made=made))
    else:
        operands.append('')
    operands.append(d.input(2, 'b', heads, 'p', size) if past else '')
    operands.append(d.input(d.choice('b', 1), d.choice(heads, 1), 's', 'p+s' if past else 's') if d.chance(0.3) else '')
    attrs = d.some(unidirectional=1, scale=0.3, mask_filter_value=-500.0)
    if vs != size:
        attrs['qkv_hidden_sizes'] = [heads * size, heads * size, heads * vs]
    return d.node('Attention', operands, 2 if past or (vs == size and d.chance(0.3)) else 1, num_heads=heads, **attrs)


@case
def skip_norm(d):
    wide = d.choice(8, 33)
    simple = d.chance()
    rest = [d.weight(wide)] + ([] if simple else [d.weight(wide) if d.chance() else '']) + [d.weight(wide) if d.chance() else '']
    x = d.input('b', 's', wide)
    y = d.input(*d.choice(('b', 's', wide), (1, 's', wide), ('s', wide)))
    return d.node('SkipSimplifiedLayerNormalization' if simple else 'SkipLayerNormalization', [x, y] + rest, 1, **d.some(epsilon=1e-3))


@case
def simplified(d):
    wide = d.choice(8, 33)
    ax = d.choice(-1, 2, 1)
    x = d.input('b', 4, wide)
    w = d.weight(wide) if ax != 1 else d.weight(4, wide)
    d.domains = {}
    return d.node('SimplifiedLayerNormalization', [x, w], 1, '', axis=ax, **d.some(epsilon=1e-3, stash_type=1))


@case
def layer_norm_main(d):
    wide = d.choice(8, 33)
    d.opset = d.choice(17, 21)
    ax = d.choice(-1, 2, 1)
    x = d.input('b', 4, wide)
    sh = (wide,) if ax != 1 else (4, wide)
    return d.node('LayerNormalization', [x, d.weight(*sh)] + ([d.weight(*sh)] if d.chance() else []), d.choice(1, 2, 3), '', axis=ax, **d.some(epsilon=1e-3))


@case
def embed(d):
    wide, voc = 8, 12
    seg = d.chance()
    ids = d.input('b', 's', dtype=I32, low=0, high=voc - 1)
    ops = [ids, d.input('b', 's', dtype=I32, low=0, high=1) if seg else '', d.weight(voc, wide), d.weight(16, wide), d.weight(2, wide) if seg else '',
        d.weight(wide), d.weight(wide)]
    if d.chance():
        def made(z):
            m = np.zeros((z['b'], z['s']), I32)
            for r in range(z['b']): m[r, :d.rng.integers(1, z['s'] + 1)] = 1
            return m
        ops.append(d.input('b', 's', dtype=I32, made=made))
    else:
        ops.append('')
    if d.chance(0.4):
        ops.append(d.input('b', 's', dtype=I32, low=0, high=15))
    n = d.choice(1, 2, 3)
    return d.node('EmbedLayerNormalization', ops, n, **d.some(epsilon=1e-3, mask_index_type=1))


@case
def fused_gemm(d):
    ta, tb = d.choice(0, 1), d.choice(0, 1)
    a = d.input(*((6, 's') if ta else ('s', 6)))
    b = d.weight(*((5, 6) if tb else (6, 5)))
    act, more = d.choice(('Relu', {}), ('LeakyRelu', dict(activation_alpha=0.2)), ('Tanh', {}), ('Sigmoid', {}), ('HardSigmoid',
        dict(activation_alpha=0.3, activation_beta=0.4)), ('Elu', dict(activation_alpha=0.7)),
                         ('Selu', dict(activation_alpha=1.1, activation_gamma=1.2)), ('Softplus', {}), ('Softsign', {}), ('ThresholdedRelu',
                             dict(activation_alpha=0.4)))
    c = [d.weight(*d.choice((5,), (1, 5), (1,), ()))] if d.chance() else []
    return d.node('FusedGemm', [a, b] + c, activation=act, transA=ta, transB=tb, **more, **d.some(alpha=0.5, beta=2.0))


@case
def gather_bits(d):
    bits, block = d.choice(4, 8), d.choice(16, 32)
    wide = block * d.choice(1, 3)
    rows = 7
    kind = d.choice('u8', 'int4', 'uint4')
    idx = d.input(*d.choice(('b',), ('b', 's')), dtype=d.choice(I64, I32), low=0, high=rows - 1)
    sc = d.const(d.rng.uniform(0.01, 0.1, (rows, wide // block)).astype(F32))
    if kind == 'u8':
        w = d.weight(rows, wide * bits // 8, dtype=U8, low=0, high=255)
        z = [d.weight(rows, -(-(wide // block) * bits // 8), dtype=U8, low=0, high=255)] if d.chance() else []
        return d.node('GatherBlockQuantized', [w, idx, sc] + z, gather_axis=0, quantize_axis=1, block_size=block, bits=bits)
    t = getattr(TensorProto, kind.upper())
    lo = -8 if kind == 'int4' else 0
    axis = d.choice(1, 0)
    gaxis = 1 - axis
    if axis == 0:
        rows, wide = block * 2, 6
        shs = (2, 6)
        sc = d.const(d.rng.uniform(0.01, 0.1, shs).astype(F32))
    else:
        shs = (rows, wide // block)
    d.constants['gw'] = helper.make_tensor('gw', t, [rows, wide], d.rng.integers(lo, lo + 16, rows * wide))
    z = []
    if d.chance():
        d.constants['gz'] = helper.make_tensor('gz', t, list(shs), d.rng.integers(lo, lo + 16, shs[0] * shs[1])); z = ['gz']
    idx = d.input('b', dtype=I64, low=0, high=5)
    return d.node('GatherBlockQuantized', ['gw', idx, sc] + z, gather_axis=gaxis, quantize_axis=axis, block_size=block)


@case
def qattention(d):
    heads, size, inner = 2, 8, 12
    kind = d.choice(U8, I8)
    past = d.chance(0.3)
    x = eight(d, 'b', 's', inner)
    w = d.weight(inner, 3 * heads * size, dtype=kind, low=np.iinfo(kind).min // 2, high=np.iinfo(kind).max // 2)
    per = d.chance(0.3)
    ws = d.const(d.rng.uniform(0.005, 0.02, (3 * heads * size,) if per else ()).astype(F32))
    ops = [x, w, d.weight(3 * heads * size), d.const(F32(0.02)), ws]
    total = lambda z: z['s'] + (z['p'] if past else 0)
    ops.append(d.input('b', dtype=I32, made=lambda z: d.rng.integers(1, total(z) + 1, z['b']).astype(I32)) if d.chance() else '')
    ops.append(d.const(U8(130)) if d.chance() else '')
    ops.append(d.const(np.full((3 * heads * size,) if per else (), 2, kind)) if d.chance() else '')
    if past:
        ops.append(d.input(2, 'b', heads, 'p', size))
    return d.node('QAttention', ops, 2 if past else 1, num_heads=heads, **d.some(unidirectional=1, scale=0.3))


@case
def qpool(d):
    dtype = d.choice(U8, I8)
    last = d.choice(0, 1)
    op = d.choice('QLinearAveragePool', 'QLinearGlobalAveragePool')
    x = eight(d, *(('b', 's', 9, 4) if last else ('b', 4, 's', 9)), dtype=dtype)
    pts = [*point(d, dtype), *point(d, dtype)]
    if op == 'QLinearGlobalAveragePool':
        return d.node(op, [x, *pts], channels_last=last)
    return d.node(op, [x, *pts], kernel_shape=[1, 3], channels_last=last, **d.some(pads=[0, 1, 0, 1], strides=[1, 2], count_include_pad=1, ceil_mode=1))


@case
def qsoftmax(d):
    dtype = d.choice(U8, I8)
    p = point(d, dtype)
    out = [d.const(F32(1 / 256)), d.const(np.array(0 if dtype == U8 else -128, dtype))]
    return d.node('QLinearSoftmax', [eight(d, 'b', 's', 7, dtype=dtype), *p, *out], opset=d.choice(12, 13), **d.some(axis=d.choice(1, -1, 2)))


@case
def qwhere(d):
    dtype = d.choice(U8, I8)
    c = d.input(*d.choice(('b', 's', 6), (6,), ('s', 1)), dtype=np.bool_)
    return d.node('QLinearWhere', [c, eight(d, 'b', 's', 6, dtype=dtype), *point(d, dtype), eight(d, *d.choice((6,), ('s', 6), (1,)), dtype=dtype),
        *point(d, dtype), *point(d, dtype)])


@case
def quick_gelu(d):
    return d.node('QuickGelu', [d.input('b', 's', 6)], **d.some(alpha=1.0))


@case
def fused_matmul(d):
    form = d.choice('plain', 'ta', 'batchA', 'batchB', 'both')
    attrs = d.some(alpha=0.3)
    if form == 'plain':
        return d.node('FusedMatMul', [d.input('b', 6), d.weight(6, 5)], **attrs)
    if form == 'ta':
        return d.node('FusedMatMul', [d.input('b', 6, 's'), d.input('b', 6, 5)], transA=1, **attrs)
    a = d.input('s', 'b', 6) if form in ('batchA', 'both') else d.input('b', 's', 6)
    b = d.input(6, 'b', 5) if form in ('batchB', 'both') else d.input('b', 6, 5)
    if form in ('batchA', 'both'):
        attrs['transBatchA'] = 1
    if form in ('batchB', 'both'):
        attrs['transBatchB'] = 1
    return d.node('FusedMatMul', [a, b], **attrs)


@case
def gqa(d):
    heads, groups, size = d.choice((4, 2, 8), (6, 3, 16))
    form = d.choice('prompt', 'step', 'step')
    operands = [d.input('b', 's' if form == 'prompt' else 1, heads * size), d.input('b', 's' if form == 'prompt' else 1, groups * size), d.input('b',
        's' if form == 'prompt' else 1, groups * size)]
    if form == 'prompt':
        operands += ['', '']
        lens = d.input('b', dtype=I32, made=lambda z: np.full(z['b'], z['s'] - 1, I32))
        total = d.input(dtype=I32, made=lambda z: np.asarray(z['s'], I32))
    else:
        operands += [d.input('b', groups, 'p', size), d.input('b', groups, 'p', size)]
        lens = d.input('b', dtype=I32, made=lambda z: np.full(z['b'], z['p'], I32))
        total = d.input(dtype=I32, made=lambda z: np.asarray(z['p'] + 1, I32))
    operands += [lens, total]
    attrs = d.some(local_window_size=2, softcap=2.0, scale=0.3, smooth_softmax=1)
    rot = d.chance()
    if rot:
        attrs['do_rotary'] = 1
    operands += list(angles(d, size)) if rot else ['', '']
    operands.append('')  # position ids
    operands.append('')
    operands.append(d.weight(heads) if d.chance(0.3) else '')
    return d.node('GroupQueryAttention', operands, 3, num_heads=heads, kv_num_heads=groups, **attrs)


@case
def gelu_more(d):
    return d.node(d.choice('Gelu', 'FastGelu'), [d.input('b', 's', 6)])


@case
def fused_conv_add(d):
    act, more = d.choice(('Relu', []), ('LeakyRelu', [0.1]), ('Clip', [-0.5, 0.7]), ('Sigmoid', []))
    x, w = d.input('b', 3, 't', 9), d.weight(8, 3, 3, 3)
    return d.node('FusedConv', [x, w, d.weight(8) if d.chance() else '', d.input('b', 8, 't', 9)], activation=act, pads=[1, 1, 1, 1],
        **({'activation_params': more} if more else {}))


@case
def conv1d(d):
    return d.node('FusedConv', [d.input('b', 4, 't'), d.weight(8, 2, 3), d.weight(8)], activation='Relu', group=2, auto_pad='SAME_UPPER',
        dilations=[1], strides=[d.choice(1, 2)])


@case
def dynamic_matmul_batch(d):
    return d.node('DynamicQuantizeMatMul', [d.input(*d.choice(('b', 's', 16), ('s', 16), ('b', 2, 's', 16))), d.weight(16, 5, dtype=d.choice(U8, I8),
        low=-60, high=60), d.const(F32(0.01)), '', ''])


@case
def qlinear_rare(d):
    dtype = d.choice(U8, I8)
    op = d.choice('QLinearAdd', 'QLinearMul', 'QLinearSigmoid', 'QLinearLeakyRelu', 'QLinearConcat')
    if op in ('QLinearSigmoid', 'QLinearLeakyRelu'):
        return d.node(op, [eight(d, 'b', 's', 7, dtype=dtype), d.const(F32(0.05)), '' if d.chance() else point(d, dtype)[1], d.const(F32(0.04)),
            point(d, dtype)[1]], **(dict(alpha=0.2) if 'Leaky' in op else {}))
    if op == 'QLinearConcat':
        ops = [*point(d, dtype)]
        for e in (3, 1): ops += [eight(d, 'b', e, dtype=dtype), *point(d, dtype)]
        return d.node(op, ops, axis=-1)
    z = '' if d.chance() else point(d, dtype)[1]
    return d.node(op, [eight(d, 'b', 's', 6, dtype=dtype), d.const(F32(0.05)), z, d.weight(6, dtype=dtype, low=np.iinfo(dtype).min,
        high=np.iinfo(dtype).max), d.const(F32(0.03)), '', d.const(F32(0.1)), ''])


@case
def qconv_rare(d):
    """per channel weight zero points, u8 weights, auto_pad, dilations, ConvInteger groups."""
    dtype, wt = d.choice(U8, I8), d.choice(U8, I8)
    x = eight(d, 'b', 4, 't', 9, dtype=dtype)
    g = d.choice(1, 2, 4)
    w = d.weight(8, 4 // g, 1, 3, dtype=wt, low=np.iinfo(wt).min // 2, high=np.iinfo(wt).max // 2)
    z = d.const(wt(3) if d.chance() else wt(0))
    return d.node('QLinearConv', [x, *point(d, dtype), w, d.const(F32(0.01)), z, *point(d, dtype)], 1, '', group=g, **d.choice({},
        dict(auto_pad='SAME_LOWER'), dict(dilations=[1, 2]), dict(pads=[0, 2, 0, 1])))

if __name__ == '__main__':
    main(CASES, __doc__, 'berth_random_rare')
