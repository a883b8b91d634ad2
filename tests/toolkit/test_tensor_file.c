// Tensor files: round trips, damaged files, and agreement with NumPy and python3-onnx where they
// are installed.
#include <criterion/criterion.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/check.h"
#include "toolkit/tensor_file.h"

static berth_arena *arena;
static char folder[] = "/tmp/berth-tensors-XXXXXX";

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void) {
    const char *argv[] = {"rm", "-rf", folder, NULL};
    char *arguments[4];
    memcpy(arguments, argv, sizeof(arguments));
    pid_t child = 0;
    if (posix_spawnp(&child, "rm", NULL, NULL, arguments, NULL) == 0) waitpid(child, NULL, 0);
    berth_arena_destroy(arena);
}

TestSuite(tensor_file, .init = setup, .fini = teardown, .timeout = 60);

static const char *path_of(const char *name) {
    return berth_arena_printf(arena, "%s/%s", folder, name);
}

static berth_tensor sample(berth_dtype dtype, int rank, uint64_t seed) {
    const int64_t dims[] = {3, 1, 5, 2};
    berth_tensor tensor = berth_tensor_create(arena, dtype, rank, dims);
    berth_tensor_fill_random(&tensor, seed);
    return tensor;
}

static void assert_same(const berth_tensor *a, const berth_tensor *b) {
    cr_assert_eq(a->dtype, b->dtype);
    cr_assert(berth_tensor_same_shape(a, b));
    size_t size_bytes = berth_tensor_size_bytes(a);
    cr_assert(size_bytes == 0 || memcmp(a->data, b->data, size_bytes) == 0);
}

Test(tensor_file, round_trip_of_every_type_and_rank) {
    for (int dtype = 1; dtype < BERTH_DTYPE_COUNT; ++dtype) {
        for (int rank = 0; rank <= 4; ++rank) {
            for (int npy = 0; npy < 2; ++npy) {
                berth_tensor tensor = sample((berth_dtype)dtype, rank, (uint64_t)dtype), back;
                const char *path = path_of(npy ? "t.npy" : "t.pb"), *name = NULL;
                if (npy && dtype == BERTH_DTYPE_BF16) {
                    assert_fails(berth_tensor_file_write(path, NULL, &tensor), BERTH_UNSUPPORTED,
                                 "bf16");
                    continue;
                }
                assert_ok(berth_tensor_file_write(path, "weights", &tensor));
                assert_ok(berth_tensor_file_read(arena, path, &back, &name));
                assert_same(&tensor, &back);
                cr_assert_str_eq(name, npy ? "" : "weights");
                cr_assert_eq((uintptr_t)back.data % 64, 0);
            }
        }
    }
}

Test(tensor_file, strings) {
    int64_t dims[1] = {3};
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_STRING, 1, dims), back;
    berth_string *strings = tensor.data;
    strings[0] = berth_string_of("a b");
    strings[2] = (berth_string){"\xff\0", 2};
    const char *name = NULL;
    assert_ok(berth_tensor_file_write(path_of("s.pb"), "words", &tensor));
    assert_ok(berth_tensor_file_read(arena, path_of("s.pb"), &back, &name));
    cr_assert_str_eq(name, "words");
    cr_assert(back.dtype == BERTH_DTYPE_STRING && berth_tensor_same_shape(&tensor, &back));
    for (int i = 0; i < 3; ++i)
        cr_assert(berth_string_equal(berth_tensor_strings(&back)[i], strings[i]));
    assert_fails(berth_tensor_file_write(path_of("s.npy"), NULL, &tensor), BERTH_UNSUPPORTED,
                 "write a .pb file");
}

// As numpy.save writes ["a\u00fc", "\U0001f600", ""]: characters of 4 bytes, two each.
Test(tensor_file, text_of_numpy) {
    static const char header[] = "{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }";
    static const char data[24] = "a\0\0\0\xfc\0\0\0\0\xf6\x01";
    char file[256];
    size_t length = sizeof(header) - 1;
    memcpy(file, "\x93NUMPY\x01", 8);
    file[8] = (char)length;
    file[9] = 0;
    memcpy(file + 10, header, length);
    memcpy(file + 10 + length, data, sizeof(data));
    berth_tensor tensor;
    assert_ok(berth_tensor_file_parse(arena, file, 10 + length + sizeof(data), &tensor, NULL));
    cr_assert(tensor.dtype == BERTH_DTYPE_STRING && tensor.rank == 1 && tensor.dims[0] == 3);
    const berth_string *strings = berth_tensor_strings(&tensor);
    cr_assert(berth_string_equal(strings[0], berth_string_of("a\xc3\xbc")));
    cr_assert(berth_string_equal(strings[1], berth_string_of("\xf0\x9f\x98\x80")));
    cr_assert_eq(strings[2].length, 0);
    assert_fails(berth_tensor_file_parse(arena, file, 10 + length + 23, &tensor, NULL),
                 BERTH_INVALID_ARGUMENT, "23 bytes of text; its shape needs 24");
    file[10 + length + 3] = 1;
    assert_fails(berth_tensor_file_parse(arena, file, 10 + length + 24, &tensor, NULL),
                 BERTH_INVALID_ARGUMENT, "a character of number 16777313");
}

Test(tensor_file, empty_tensors) {
    berth_tensor tensor = {.dtype = BERTH_DTYPE_F32, .rank = 2, .dims = {0, 7}}, back;
    static const char *const names[] = {"e.pb", "e.npy"};
    for (int i = 0; i < 2; ++i) {
        assert_ok(berth_tensor_file_write(path_of(names[i]), NULL, &tensor));
        assert_ok(berth_tensor_file_read(arena, path_of(names[i]), &back, NULL));
        assert_same(&tensor, &back);
    }
}

Test(tensor_file, bad_paths_and_files) {
    berth_tensor tensor = sample(BERTH_DTYPE_F32, 1, 1), back;
    assert_fails(berth_tensor_file_write(path_of("t.txt"), NULL, &tensor), BERTH_INVALID_ARGUMENT,
                 "t.txt");
    assert_fails(berth_tensor_file_read(arena, path_of("missing.pb"), &back, NULL), BERTH_NOT_FOUND,
                 "missing.pb");
    assert_ok(berth_file_write(path_of("empty.pb"), "", 0));
    assert_fails(berth_tensor_file_read(arena, path_of("empty.pb"), &back, NULL),
                 BERTH_INVALID_ARGUMENT, "empty");
    assert_ok(berth_file_write(path_of("text.npy"), "hello, world", 12));
    assert_fails(berth_tensor_file_read(arena, path_of("text.npy"), &back, NULL),
                 BERTH_INVALID_ARGUMENT, "neither a .npy nor a readable TensorProto");
}

// Messages written byte by byte: dims 2 (tag 08), type (tag 10), then the data in question.
static void assert_message_fails(const char *bytes, size_t size_bytes, berth_code code,
                                 const char *part) {
    berth_tensor tensor;
    assert_fails(berth_tensor_file_parse(arena, bytes, size_bytes, &tensor, NULL), code, part);
}
#define FAILS(text, code, part) assert_message_fails(text, sizeof(text) - 1, code, part)

Test(tensor_file, wrong_messages_are_explained) {
    FAILS("\x08\x02\x10\x08", BERTH_INVALID_ARGUMENT, "holds 0 strings; its shape needs 2");
    FAILS("\x08\x02\x10\x63", BERTH_UNSUPPORTED, "element type 99");
    FAILS("\x08\x02\x10\x01", BERTH_INVALID_ARGUMENT, "holds 0 elements; its shape needs 2");
    FAILS("\x08\x02\x10\x01\x4a\x04\x01\x02\x03\x04", BERTH_INVALID_ARGUMENT,
          "raw data has 4 bytes; the shape needs 8");
    FAILS("\x08\x02\x10\x02\x2a\x03\x01\xac\x02", BERTH_INVALID_ARGUMENT,
          "element 1 does not fit u8");
    FAILS("\x08\x02\x10\x06\x2a\x03\x01\x02", BERTH_INVALID_ARGUMENT, "longer than the message");
    FAILS("\x08\x02\x10\x01\x22\x05\x01\x02\x03\x04\x05", BERTH_INVALID_ARGUMENT,
          "in the middle of one");
    FAILS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01", BERTH_OUT_OF_RANGE, "negative");
    FAILS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x02\x10\x01", BERTH_OUT_OF_RANGE, "");
    FAILS("\x0a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01\x10\x01", BERTH_INVALID_ARGUMENT,
          "more than 8 dimensions");
    FAILS("\x10\x01\x70\x01", BERTH_UNSUPPORTED, "another file");
    FAILS("\x0b", BERTH_INVALID_ARGUMENT, "unknown wire type");
    FAILS("\x07", BERTH_INVALID_ARGUMENT, "field number");
}

Test(tensor_file, numpy_headers_are_checked) {
#define NPY(version, length, dict) "\x93NUMPY" version length dict
    FAILS("\x93NUMPY", BERTH_INVALID_ARGUMENT, "ends in its header");
    FAILS(NPY("\x09\x00", "\x02\x00", "{}"), BERTH_UNSUPPORTED, "version 9");
    FAILS(NPY("\x01\x00", "\xff\xff", "{}"), BERTH_INVALID_ARGUMENT, "header of 65535 bytes");
    FAILS(NPY("\x01\x00", "\x02\x00", "{}"), BERTH_INVALID_ARGUMENT, "lacks descr");
    FAILS(NPY("\x01\x00", "\x10\x00", "{'descr': '>f4'}"), BERTH_UNSUPPORTED, "\">f4\"");
    FAILS(NPY("\x01\x00", "\x0e\x00", "{'shape': (2, "), BERTH_INVALID_ARGUMENT, "shape");
    FAILS(NPY("\x01\x00", "\x3b\x00",
              "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }  1234"),
          BERTH_INVALID_ARGUMENT, "holds 4 bytes of data; its shape needs 12");
    FAILS(NPY("\x01\x00", "\x0a\x00", "{'sha': 1}"), BERTH_INVALID_ARGUMENT, "unexpected \"sha\"");
}

Test(tensor_file, truncated_files_are_errors) {
    static const char *const names[] = {"t.pb", "t.npy"};
    for (int i = 0; i < 2; ++i) {
        berth_tensor tensor = sample(BERTH_DTYPE_F32, 3, 5), back;
        assert_ok(berth_tensor_file_write(path_of(names[i]), "w", &tensor));
        char *data = NULL;
        size_t size_bytes = 0;
        assert_ok(berth_file_read(arena, path_of(names[i]), 1 << 20, &data, &size_bytes));
        for (size_t length = 0; length < size_bytes; ++length) {
            char *cut =
                malloc(length ? length : 1);  // so that the sanitizer sees a read after the end
            memcpy(cut, data, length);
            berth_status status = berth_tensor_file_parse(arena, cut, length, &back, NULL);
            cr_assert_not_null(status, "%s cut to %zu bytes was accepted", names[i], length);
            berth_status_free(status);
            free(cut);
        }
    }
}

// ---- against NumPy and python3-onnx ----

static bool run_python(const char *script) {
    char *arguments[] = {berth_arena_strdup(arena, "python3"), berth_arena_strdup(arena, "-c"),
                         berth_arena_strdup(arena, script), berth_arena_strdup(arena, folder),
                         NULL};
    pid_t child = 0;
    int exit_status = 1;
    return posix_spawn(&child, "/usr/bin/python3", NULL, NULL, arguments, NULL) == 0 &&
           waitpid(child, &exit_status, 0) == child && WIFEXITED(exit_status) &&
           WEXITSTATUS(exit_status) == 0;
}

// Element i of the tensors the scripts make: distinct, in the range of every type.
static double expected_value(berth_dtype dtype, int64_t i) {
    if (dtype == BERTH_DTYPE_BOOL) return (double)(i % 3 == 0);
    if (berth_dtype_is_float(dtype)) return (double)(i * 2 - 9) / 4;
    return berth_dtype_is_signed(dtype) ? (double)(i * 5 - 60) : (double)(i * 7);
}

static void check_values(const char *name, berth_dtype dtype) {
    berth_tensor tensor;
    assert_ok(berth_tensor_file_read(arena, path_of(name), &tensor, NULL));
    cr_assert_eq(tensor.dtype, dtype, "%s", name);
    cr_assert(tensor.rank == 3 && tensor.dims[0] == 2 && tensor.dims[1] == 3 && tensor.dims[2] == 4,
              "%s", name);
    for (int64_t i = 0; i < 24; ++i)
        cr_assert_eq(berth_tensor_get_f64(&tensor, i), expected_value(dtype, i), "%s element %d",
                     name, (int)i);
}

static const struct {
    berth_dtype dtype;
    const char *numpy;
} numpy_types[] = {
    {BERTH_DTYPE_F32, "float32"}, {BERTH_DTYPE_F64, "float64"}, {BERTH_DTYPE_F16, "float16"},
    {BERTH_DTYPE_I8, "int8"},     {BERTH_DTYPE_I16, "int16"},   {BERTH_DTYPE_I32, "int32"},
    {BERTH_DTYPE_I64, "int64"},   {BERTH_DTYPE_U8, "uint8"},    {BERTH_DTYPE_U16, "uint16"},
    {BERTH_DTYPE_U32, "uint32"},  {BERTH_DTYPE_U64, "uint64"},  {BERTH_DTYPE_BOOL, "bool"},
};
enum { numpy_type_count = sizeof(numpy_types) / sizeof(numpy_types[0]) };

static const char make_array[] =
    "import sys, numpy as np\n"
    "types = 'float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool'\n"
    "def make(t):\n"
    "    i = np.arange(24)\n"
    "    d = np.dtype(t)\n"
    "    v = i % 3 == 0 if t == 'bool' else (i * 2 - 9) / 4 if d.kind == 'f' else "
    "i * 5 - 60 if d.kind == 'i' else i * 7\n"
    "    return v.astype(d).reshape(2, 3, 4)\n";

Test(tensor_file, reads_what_numpy_writes) {
    if (!run_python("import numpy")) cr_skip("skipped: python3-numpy is not installed");
    cr_assert(run_python(berth_arena_printf(
        arena, "%s%s", make_array,
        "from numpy.lib import format\n"
        "for t in types.split():\n"
        "    np.save(f'{sys.argv[1]}/{t}.npy', make(t))\n"
        "    np.save(f'{sys.argv[1]}/{t}_fortran.npy', np.asfortranarray(make(t)))\n"
        "    with open(f'{sys.argv[1]}/{t}_v2.npy', 'wb') as f: format.write_array(f, make(t), "
        "version=(2, 0))\n")));
    for (int i = 0; i < numpy_type_count; ++i) {
        static const char *const forms[] = {"", "_fortran", "_v2"};
        for (int form = 0; form < 3; ++form)
            check_values(berth_arena_printf(arena, "%s%s.npy", numpy_types[i].numpy, forms[form]),
                         numpy_types[i].dtype);
    }
}

Test(tensor_file, numpy_reads_what_we_write) {
    if (!run_python("import numpy")) cr_skip("skipped: python3-numpy is not installed");
    for (int i = 0; i < numpy_type_count; ++i) {
        berth_tensor tensor =
            berth_tensor_create(arena, numpy_types[i].dtype, 3, (int64_t[]){2, 3, 4});
        for (int64_t e = 0; e < 24; ++e)
            berth_tensor_set_f64(&tensor, e, expected_value(tensor.dtype, e));
        assert_ok(berth_tensor_file_write(
            path_of(berth_arena_printf(arena, "%s.npy", numpy_types[i].numpy)), NULL, &tensor));
    }
    cr_assert(run_python(
        berth_arena_printf(arena, "%s%s", make_array,
                           "for t in types.split():\n"
                           "    a = np.load(f'{sys.argv[1]}/{t}.npy')\n"
                           "    assert a.dtype == np.dtype(t) and (a == make(t)).all(), t\n")));
}

Test(tensor_file, agrees_with_onnx_in_raw_and_typed_fields) {
    if (!run_python("import onnx")) cr_skip("skipped: python3-onnx is not installed");
    cr_assert(run_python(berth_arena_printf(
        arena, "%s%s", make_array,
        "from onnx import helper, numpy_helper\n"
        "from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE as number\n"
        "for t in types.split():\n"
        "    a = make(t)\n"
        "    raw = numpy_helper.from_array(a, t)\n"
        "    typed = helper.make_tensor(t, number[a.dtype], a.shape, a.flatten().tolist())\n"
        "    open(f'{sys.argv[1]}/{t}_raw.pb', 'wb').write(raw.SerializeToString())\n"
        "    open(f'{sys.argv[1]}/{t}_typed.pb', 'wb').write(typed.SerializeToString())\n")));
    for (int i = 0; i < numpy_type_count; ++i) {
        check_values(berth_arena_printf(arena, "%s_raw.pb", numpy_types[i].numpy),
                     numpy_types[i].dtype);
        check_values(berth_arena_printf(arena, "%s_typed.pb", numpy_types[i].numpy),
                     numpy_types[i].dtype);
        berth_tensor tensor;
        assert_ok(berth_tensor_file_read(
            arena, path_of(berth_arena_printf(arena, "%s_raw.pb", numpy_types[i].numpy)), &tensor,
            NULL));
        assert_ok(berth_tensor_file_write(
            path_of(berth_arena_printf(arena, "%s_ours.pb", numpy_types[i].numpy)),
            numpy_types[i].numpy, &tensor));
    }
    cr_assert(
        run_python(berth_arena_printf(arena, "%s%s", make_array,
                                      "import onnx\n"
                                      "from onnx import numpy_helper\n"
                                      "for t in types.split():\n"
                                      "    p = onnx.load_tensor(f'{sys.argv[1]}/{t}_ours.pb')\n"
                                      "    a = numpy_helper.to_array(p)\n"
                                      "    assert p.name == t and a.dtype == np.dtype(t), t\n"
                                      "    assert (a == make(t)).all(), t\n")));
}
