#!/usr/bin/python3
"""What --input, --shape, --layout, --mean and --std make of files, against NumPy and Pillow; and damaged files: a clear error each.

Usage: check_inputs.py BERTH     (with Debian's python3-numpy, python3-onnx and python3-pil)
"""
import os
import random
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

BERTH = sys.argv.pop(1)


def model(path, inputs):
    """Every output is its input."""
    values = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    results = [helper.make_tensor_value_info('out_' + n, t, s) for n, t, s in inputs]
    nodes = [helper.make_node('Identity', [n], ['out_' + n]) for n, _, _ in inputs]
    graph = helper.make_graph(nodes, 'inputs', values, results)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)


class Inputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rng = np.random.default_rng(7)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def write(self, name, data):
        with open(self.path(name), 'wb') as file:
            file.write(data)

    def berth(self, *arguments):
        return subprocess.run([BERTH, 'run', *arguments, '--quiet'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors='replace', timeout=60)

    def run_model(self, inputs, *arguments, outputs=None):
        """The outputs, by the input's name."""
        model(self.path('m.onnx'), inputs)
        names = outputs or [n for n, _, _ in inputs]
        asked = [word for n in names for word in ('-o', 'out_%s=%s' % (n, self.path(n + '_out.npy')))]
        done = self.berth(self.path('m.onnx'), *asked, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {n: np.load(self.path(n + '_out.npy')) for n in names}

    def fails(self, part, inputs, *arguments, status=1):
        model(self.path('m.onnx'), inputs)
        done = self.berth(self.path('m.onnx'), *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(part, done.stderr)

    def picture(self, name, shape, **options):
        pixels = self.rng.integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(self.path(name), **options)
        return pixels

    def test_positions_and_names(self):
        a, b = self.rng.random((2, 3), dtype=np.float32), self.rng.integers(0, 99, 4)
        np.save(self.path('a.npy'), a)
        np.save(self.path('b.npy'), b)
        inputs = [('a', TensorProto.FLOAT, [2, 3]), ('b', TensorProto.INT64, [4])]
        for arguments in ([self.path('a.npy'), self.path('b.npy')], ['b=' + self.path('b.npy'), self.path('a.npy')]):
            got = self.run_model(inputs, *[word for file in arguments for word in ('--input', file)])
            np.testing.assert_array_equal(got['a'], a)
            np.testing.assert_array_equal(got['b'], b)
        self.fails('3 files without a name', inputs, *['--input', self.path('a.npy'), '--input', self.path('b.npy')],
                   '--input', self.path('a.npy'))
        self.fails('given twice', inputs, '--input', self.path('a.npy'), '--input', 'a=' + self.path('a.npy'))
        self.fails('NAME=FILE', inputs, '--input', '=x', status=2)

    def test_npz(self):
        a, b = self.rng.random((2, 3), dtype=np.float32), self.rng.integers(0, 99, 4)
        inputs = [('a', TensorProto.FLOAT, [2, 3]), ('b', TensorProto.INT64, [4])]
        for save in (np.savez, np.savez_compressed):
            save(self.path('both.npz'), a=a, b=b)
            got = self.run_model(inputs, '--input', self.path('both.npz'))
            np.testing.assert_array_equal(got['a'], a)
            np.testing.assert_array_equal(got['b'], b)
        got = self.run_model(inputs, '--input', 'b=' + self.path('both.npz'))
        np.testing.assert_array_equal(got['b'], b)
        np.savez(self.path('one.npz'), a)  # arr_0: the only one needs no name
        got = self.run_model(inputs, '--input', 'a=' + self.path('one.npz'))
        np.testing.assert_array_equal(got['a'], a)
        self.fails('none of its 2 arrays is named "c"', inputs, '--input', 'c=' + self.path('both.npz'))
        self.fails('arr_0', inputs, '--input', self.path('one.npz'))

    def test_raw(self):
        a = self.rng.random((2, 3), dtype=np.float32)
        a.tofile(self.path('a.raw'))
        got = self.run_model([('a', TensorProto.FLOAT, [2, 3])], '--input', self.path('a.raw'))
        np.testing.assert_array_equal(got['a'], a)
        got = self.run_model([('a', TensorProto.FLOAT, ['n', 'm'])], '--input', 'a=' + self.path('a.raw'), '--shape', 'a=2x3')
        np.testing.assert_array_equal(got['a'], a)
        self.fails('24 raw bytes, but input "a" needs 28', [('a', TensorProto.FLOAT, [7])], '--input', self.path('a.raw'))
        self.fails('is open', [('a', TensorProto.FLOAT, ['n', 'm'])], '--input', self.path('a.raw'))

    def test_raw_of_open_dimensions(self):
        """What --dim says, by name or by place, and the one that is left from the number of bytes."""
        a = self.rng.random((2, 3), dtype=np.float32)
        a.tofile(self.path('a.raw'))
        for dims in (['--dim', 'n=2', '--dim', 'm=3'], ['--dim', 'm=3'], ['--dim', 'a.0=2']):
            got = self.run_model([('a', TensorProto.FLOAT, ['n', 'm'])], '--input', self.path('a.raw'), *dims)
            np.testing.assert_array_equal(got['a'], a)
        got = self.run_model([('a', TensorProto.FLOAT, [None, 3])], '--input', self.path('a.raw'))
        np.testing.assert_array_equal(got['a'], a)
        self.fails('24 raw bytes, but input "a" needs 16', [('a', TensorProto.FLOAT, ['n', 4])], '--input', self.path('a.raw'))
        self.fails('24 raw bytes, but input "a" needs 12', [('a', TensorProto.FLOAT, ['n', 3])], '--input', self.path('a.raw'), '--dim', 'n=1')

    def test_bytes_for_floats(self):
        """u8 for an input of f32, from every kind of array: as pixels of pictures."""
        inputs = [('a', TensorProto.FLOAT, [2, 3, 4, 5])]
        pixels = self.rng.integers(0, 256, (2, 3, 4, 5), dtype=np.uint8)
        np.save(self.path('a.npy'), pixels)
        np.savez(self.path('a.npz'), a=pixels)
        pixels.tofile(self.path('a.raw'))
        mean, deviation = np.float64([123.675, 116.28, 103.53]), np.float64([58.395, 57.12, 57.375])
        many = ['--mean', '123.675,116.28,103.53', '--std', '58.395,57.12,57.375']
        for file in ('a.npy', 'a.npz', 'a.raw'):
            got = self.run_model(inputs, '--input', self.path(file))['a']
            np.testing.assert_array_equal(got, pixels.astype(np.float32))
            got = self.run_model(inputs, '--input', self.path(file), '--mean', '128', '--std', '255')['a']
            np.testing.assert_array_equal(got, ((pixels - 128.) / 255).astype(np.float32))
            got = self.run_model(inputs, '--input', self.path(file), *many)['a']
            wanted = (pixels - mean[:, None, None]) / deviation[:, None, None]
            np.testing.assert_array_equal(got, wanted.astype(np.float32))
        np.save(self.path('last.npy'), np.moveaxis(pixels, 1, -1))
        got = self.run_model([('a', TensorProto.FLOAT, [2, 4, 5, 3])], '--input', self.path('last.npy'), '--layout', 'nhwc', *many)['a']
        np.testing.assert_array_equal(got, np.moveaxis(wanted, 1, -1).astype(np.float32))
        got = self.run_model([('a', TensorProto.UINT8, [2, 3, 4, 5])], '--input', self.path('a.npy'))['a']
        np.testing.assert_array_equal(got, pixels)
        self.fails('no dimension of as many channels', inputs, '--input', self.path('a.npy'), '--std', '1,2')

    def test_shape(self):
        inputs = [('a', TensorProto.FLOAT, ['n', 3, 'h', 'w'])]
        self.assertEqual(self.run_model(inputs, '--shape', 'a=2x3x4x5')['a'].shape, (2, 3, 4, 5))
        self.assertEqual(self.run_model(inputs, '--shape', '2x3x4x5')['a'].shape, (2, 3, 4, 5))
        self.fails('dimension 1 of input "a" is 3', inputs, '--shape', 'a=2x4x4x5')
        self.fails('has 2 dimensions', inputs, '--shape', 'a=2x3')
        self.fails('no input "b"', inputs, '--shape', 'b=2x3')
        for text in ('a=', 'a=2x', 'a=x2', 'a=2x-1', '=2x3', 'a=1x1x1x1x1x1x1x1x1', 'a=99999999999'):
            self.fails('--shape takes', inputs, '--shape', text, status=2)

    def test_pictures(self):
        chw = [('a', TensorProto.FLOAT, [1, 3, 5, 7])]
        pixels = self.picture('p.png', (5, 7, 3))
        expected = pixels.transpose(2, 0, 1)[None].astype(np.float32)
        np.testing.assert_array_equal(self.run_model(chw, '--input', self.path('p.png'))['a'], expected)
        mean, deviation = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
        got = self.run_model(chw, '--input', self.path('p.png'), '--mean', '123.675,116.28,103.53', '--std', '58.395,57.12,57.375')
        np.testing.assert_allclose(got['a'], ((pixels - mean) / deviation).transpose(2, 0, 1)[None], rtol=1e-6)
        got = self.run_model(chw, '--input', self.path('p.png'), '--std', '255')['a']
        np.testing.assert_allclose(got, expected / 255, rtol=1e-6)
        got = self.run_model([('a', TensorProto.UINT8, ['n', 'h', 'w', 3])], '--input', 'a=' + self.path('p.png'), '--layout', 'NHWC')
        np.testing.assert_array_equal(got['a'], pixels[None])
        got = self.run_model([('a', TensorProto.UINT8, [5, 7, 3])], '--input', self.path('p.png'), '--layout', 'HWC')
        np.testing.assert_array_equal(got['a'], pixels)
        # Colours for a grey input, and grey for a coloured one, as Pillow has them.
        grey = np.asarray(Image.open(self.path('p.png')).convert('L'))
        got = self.run_model([('a', TensorProto.UINT8, [1, 1, 5, 7])], '--input', self.path('p.png'))['a']
        np.testing.assert_allclose(got[0, 0].astype(int), grey.astype(int), atol=1)
        flat = self.picture('grey.png', (5, 7))
        np.testing.assert_array_equal(self.run_model(chw, '--input', self.path('grey.png'))['a'][0], np.stack([flat] * 3))
        got = self.run_model([('a', TensorProto.UINT8, [5, 7])], '--input', self.path('grey.png'))['a']
        np.testing.assert_array_equal(got, flat)

    def test_forms_of_pictures(self):
        chw = [('a', TensorProto.UINT8, [1, 3, 16, 24])]
        pixels = self.picture('p.ppm', (16, 24, 3))
        np.testing.assert_array_equal(self.run_model(chw, '--input', self.path('p.ppm'))['a'][0], pixels.transpose(2, 0, 1))
        flat = self.picture('p.pgm', (16, 24))
        np.testing.assert_array_equal(self.run_model(chw, '--input', self.path('p.pgm'))['a'][0], np.stack([flat] * 3))
        for options in ({'quality': 90}, {'progressive': True}, {'subsampling': 0}):
            self.picture('p.jpg', (16, 24, 3), **options)
            expected = np.asarray(Image.open(self.path('p.jpg')))  # through the same library
            np.testing.assert_array_equal(self.run_model(chw, '--input', self.path('p.jpg'))['a'][0], expected.transpose(2, 0, 1))
        for mode in ('RGBA', 'P', 'LA', '1', 'I;16'):
            image = Image.fromarray(self.rng.integers(0, 256, (16, 24, 3), dtype=np.uint8))
            if mode == 'I;16':
                wide = self.rng.integers(0, 65536, (16, 24), dtype=np.uint16)
                Image.fromarray(wide).save(self.path('m.png'))
                expected = np.stack([np.rint(wide / 257)] * 3)
            else:
                image = image.convert(mode)
                if mode == 'RGBA':
                    image.putalpha(Image.fromarray(self.rng.integers(0, 256, (16, 24), dtype=np.uint8)))
                image.save(self.path('m.png'))
                expected = np.asarray(Image.open(self.path('m.png')).convert('RGB')).transpose(2, 0, 1)
            got = self.run_model(chw, '--input', self.path('m.png'))['a'][0]
            np.testing.assert_allclose(got.astype(int), expected, atol=1 if mode == 'I;16' else 0, err_msg=mode)

    def test_pictures_refused(self):
        self.picture('p.png', (5, 7, 3))
        chw = [('a', TensorProto.FLOAT, [1, 3, 5, 8])]
        self.fails('dimension 3 is 8, the tensor given has 7', chw, '--input', self.path('p.png'))
        self.fails('is u8 or f32', [('a', TensorProto.INT64, [1, 3, 5, 7])], '--input', self.path('p.png'))
        self.fails('--mean and --std', [('a', TensorProto.UINT8, [1, 3, 5, 7])], '--input', self.path('p.png'), '--mean', '1')
        self.fails('has 2 numbers', chw, '--input', self.path('p.png'), '--std', '1,2')
        self.fails('--mean takes', chw, '--mean', 'a', status=2)
        self.fails('not by 0', chw, '--std', '1,0,1', status=2)
        self.fails('--layout takes', chw, '--layout', 'WHC', status=2)
        self.write('big.ppm', b'P6 99999 99999 255\n')
        self.fails('99999 x 99999 pixels', chw, '--input', self.path('big.ppm'))
        header = bytearray(self.read('p.png'))
        header[16:24] = b'\0\1\0\0\0\1\0\0'  # 65536 x 65536, with a wrong checksum
        self.write('big.png', header)
        self.fails('PNG', chw, '--input', self.path('big.png'))

    def test_damaged_files(self):
        """Cut and changed files give an error or a picture, never a crash or a half answer."""
        rng = random.Random(5)
        self.picture('p.png', (16, 24, 3))
        self.picture('p.jpg', (16, 24, 3))
        self.picture('p.ppm', (16, 24, 3))
        np.savez_compressed(self.path('p.npz'), a=np.zeros((1, 3, 16, 24), np.float32))
        inputs = [('a', TensorProto.FLOAT, [1, 3, 16, 24])]
        model(self.path('m.onnx'), inputs)
        for name in ('p.png', 'p.jpg', 'p.ppm', 'p.npz'):
            data = self.read(name)
            for i in range(25):
                cut = i < 8
                changed = bytearray(data[:rng.randrange(4, len(data) - 1)] if cut else data)
                for _ in range(0 if cut else 3):
                    changed[rng.randrange(4, len(changed))] = rng.randrange(256)
                self.write('changed', changed)
                done = self.berth(self.path('m.onnx'), '--input', 'a=' + self.path('changed'))
                self.assertIn(done.returncode, (0, 1), (name, i, done.stderr))
                if cut:
                    self.assertEqual(done.returncode, 1, (name, i))
                if done.returncode:
                    self.assertIn('berth: error: ', done.stderr)

    def test_npz_that_grows(self):
        """A small file that unpacks to much: read where it is honest and fits, else refused."""
        with zipfile.ZipFile(self.path('z.npz'), 'w', zipfile.ZIP_DEFLATED) as file:
            file.writestr('a.npy', b'\0' * (1 << 26))
        self.fails('array "a"', [('a', TensorProto.FLOAT, [1])], '--input', 'a=' + self.path('z.npz'))
        data = bytearray(self.read('z.npz'))
        at = data.rindex(b'PK\1\2')
        data[at + 24:at + 28] = b'\xff\xff\xff\xf0'  # says it is 4 GB
        self.write('z.npz', data)
        self.fails('.npz', [('a', TensorProto.FLOAT, [1])], '--input', 'a=' + self.path('z.npz'))


if __name__ == '__main__':
    unittest.main()
