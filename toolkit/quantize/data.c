#include "toolkit/quantize/data.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "toolkit/tensor_file.h"

enum { MOST_LABEL_BYTES = 1 << 28 };

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), ending_length = strlen(ending);
    return length > ending_length && strcmp(text + length - ending_length, ending) == 0;
}

static bool is_tensor_file(const char *name) {
    return ends_with(name, ".npy") || ends_with(name, ".pb");
}

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

// ---- names in folders ---------------------------------------------------------------------------

// "input_10" after "input_9": runs of digits by their number.
static int compare_names(const void *left, const void *right) {
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t zeros_a = strspn(a, "0"), zeros_b = strspn(b, "0");
            size_t digits_a = strspn(a + zeros_a, "0123456789");
            size_t digits_b = strspn(b + zeros_b, "0123456789");
            if (digits_a != digits_b) return digits_a < digits_b ? -1 : 1;
            int order = strncmp(a + zeros_a, b + zeros_b, digits_a);
            if (order) return order;
            a += zeros_a + digits_a;
            b += zeros_b + digits_b;
            continue;
        }
        if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        ++a, ++b;
    }
    return *a ? 1 : *b ? -1 : strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void close_folder(void *pointer) {
    closedir(pointer);
}

// Names of what is in a folder, sorted; hidden ones are left out.
static berth_status list_folder(berth_arena *parent, const char *path, berth_onnx_names *out) {
    berth_arena *scratch = berth_arena_create_child(parent);
    DIR *folder = opendir(path);
    if (!folder) {
        berth_status status =
            berth_status_make(errno == ENOENT ? BERTH_NOT_FOUND : BERTH_IO,
                              "cannot open the folder \"%s\": %s", path, strerror(errno));
        berth_arena_destroy(scratch);
        return status;
    }
    berth_arena_defer(scratch, close_folder, folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            berth_vec_push(parent, out, berth_arena_strdup(parent, entry->d_name));
    berth_arena_destroy(scratch);
    if (out->count) qsort(out->data, out->count, sizeof(out->data[0]), compare_names);
    return BERTH_OK;
}

// ---- sets ---------------------------------------------------------------------------------------

static bool same_stem(const char *file, size_t length, const char *name) {
    if (strlen(name) != length) return false;
    for (size_t i = 0; i < length; ++i) {
        bool plain = isalnum((unsigned char)name[i]) || name[i] == '.' || name[i] == '-';
        if (file[i] != name[i] && (plain || file[i] != '_')) return false;
    }
    return true;
}

// Which input a file is for: by its name, or "input_0"; -1 = none.
static int input_of(const berth_quantize__data *data, const char *file) {
    size_t length = (size_t)(strrchr(file, '.') - file);
    for (uint32_t i = 0; i < data->input_count; ++i)
        if (same_stem(file, length, data->inputs[i])) return (int)i;
    if (strncmp(file, "input_", 6) != 0 || length < 7) return -1;
    char *end = NULL;
    unsigned long index = strtoul(file + 6, &end, 10);
    return end == file + length && index < data->input_count ? (int)index : -1;
}

static berth_status read_set_folder(berth_arena *arena, const berth_quantize__data *data,
                                    const char *path, const char ***out_files) {
    berth_onnx_names names = {0};
    const char **files = berth_arena_new_array(arena, const char *, data->input_count);
    BERTH_TRY(list_folder(arena, path, &names));
    for (uint32_t i = 0; i < names.count; ++i) {
        const char *name = names.data[i];
        if (!is_tensor_file(name) || strncmp(name, "output_", 7) == 0) continue;
        int input = input_of(data, name);
        if (input < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "\"%s/%s\": the model has no input of this name (\"%s\"%s); "
                                     "input_0, input_1, ... name them by their order",
                                     path, name, data->inputs[0],
                                     data->input_count > 1 ? ", ..." : "");
        files[input] = berth_arena_printf(arena, "%s/%s", path, name);
    }
    for (uint32_t i = 0; i < data->input_count; ++i)
        if (!files[i])
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "\"%s\" has no file for input \"%s\": input_%u.pb or .npy",
                                     path, data->inputs[i], i);
    *out_files = files;
    return BERTH_OK;
}

typedef BERTH_VEC(berth_quantize__set) set_list;

static void add_file(berth_arena *arena, const char *name, const char *path, set_list *sets) {
    const char **files = berth_arena_new_array(arena, const char *, 1);
    files[0] = path;
    berth_vec_push(arena, sets, (berth_quantize__set){.name = name, .files = files});
}

static berth_status find_in_folder(berth_arena *arena, const berth_quantize__data *data,
                                   const char *path, set_list *sets) {
    berth_onnx_names names = {0};
    BERTH_TRY(list_folder(arena, path, &names));
    const char **files = NULL;
    for (uint32_t i = 0; i < names.count; ++i)  // the folder is a set itself
        if (is_tensor_file(names.data[i]) && strncmp(names.data[i], "input_0.", 8) == 0) {
            BERTH_TRY(read_set_folder(arena, data, path, &files));
            berth_vec_push(arena, sets, (berth_quantize__set){.name = path, .files = files});
            return BERTH_OK;
        }
    for (uint32_t i = 0; i < names.count; ++i) {
        const char *inner = berth_arena_printf(arena, "%s/%s", path, names.data[i]);
        if (is_folder(inner)) {
            BERTH_TRY(read_set_folder(arena, data, inner, &files));
            berth_vec_push(arena, sets,
                           (berth_quantize__set){.name = names.data[i], .files = files});
        } else if (is_tensor_file(names.data[i]) && data->input_count == 1) {
            add_file(arena, names.data[i], inner, sets);
        } else if (is_tensor_file(names.data[i])) {
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "\"%s\" is one file, and the model has %u inputs: give a "
                                     "folder per data set, with input_0, input_1, ...",
                                     inner, data->input_count);
        }
    }
    return BERTH_OK;
}

berth_status berth_quantize__data_find(berth_arena *arena, const berth_onnx_edit *model,
                                       const char *path, berth_quantize__data *out_data) {
    berth_onnx_names inputs = {0};
    set_list sets = {0};
    for (uint32_t i = 0; i < model->inputs.count; ++i)
        if (!berth_onnx_edit_constant(model, model->inputs.data[i].name))
            berth_vec_push(arena, &inputs, model->inputs.data[i].name);
    *out_data = (berth_quantize__data){.inputs = inputs.data, .input_count = inputs.count};
    if (inputs.count == 0)
        return berth_status_make(BERTH_UNSUPPORTED, "\"%s\" has no inputs: nothing to calibrate",
                                 model->path);
    if (is_folder(path))
        BERTH_TRY(find_in_folder(arena, out_data, path, &sets));
    else if (inputs.count == 1)
        add_file(arena, path, path, &sets);
    else
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is no folder, and the model has %u inputs: give a folder "
                                 "of folders, with input_0, input_1, ...",
                                 path, inputs.count);
    if (sets.count == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" has no data sets: .npy or .pb files, or folders of them",
                                 path);
    out_data->sets = sets.data;
    out_data->set_count = sets.count;
    return BERTH_OK;
}

// ---- reading ------------------------------------------------------------------------------------

static berth_status check_finite(const berth_tensor *tensor, const char *path) {
    if (!berth_dtype_is_float(tensor->dtype)) return BERTH_OK;
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(berth_tensor_get_f64(tensor, i)))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "\"%s\": element %lld is %g; leave this data set out", path,
                                     (long long)i, berth_tensor_get_f64(tensor, i));
    return BERTH_OK;
}

berth_status berth_quantize__data_read(berth_arena *arena, const berth_quantize__data *data,
                                       uint32_t set, berth_tensor *out_inputs) {
    for (uint32_t i = 0; i < data->input_count; ++i) {
        const char *path = data->sets[set].files[i];
        BERTH_TRY(berth_tensor_file_read(arena, path, &out_inputs[i], NULL));
        BERTH_TRY(check_finite(&out_inputs[i], path));
    }
    return BERTH_OK;
}

static berth_status parse_labels(berth_arena *arena, const char *path, const char *text,
                                 const int64_t **out_labels, uint32_t *out_count) {
    BERTH_VEC(int64_t) labels = {0};
    for (;;) {
        while (isspace((unsigned char)*text) || *text == ',') ++text;
        if (!*text) break;
        char *end = NULL;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (end == text || errno || (*end && !isspace((unsigned char)*end) && *end != ','))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "\"%s\": label %u is no integer (\"%.20s\")", path,
                                     labels.count, text);
        berth_vec_push(arena, &labels, value);
        text = end;
    }
    *out_labels = labels.data;
    *out_count = labels.count;
    return BERTH_OK;
}

berth_status berth_quantize__labels_read(berth_arena *arena, const char *path,
                                         const int64_t **out_labels, uint32_t *out_count) {
    if (!is_tensor_file(path)) {
        char *text = NULL;
        size_t size_bytes = 0;
        BERTH_TRY(berth_file_read(arena, path, MOST_LABEL_BYTES, &text, &size_bytes));
        return parse_labels(arena, path, text, out_labels, out_count);
    }
    berth_tensor tensor;
    BERTH_TRY(berth_tensor_file_read(arena, path, &tensor, NULL));
    int64_t count = berth_tensor_element_count(&tensor);
    if (!berth_dtype_is_integer(tensor.dtype) || count > UINT32_MAX)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" holds no list of integers", path);
    int64_t *labels = berth_arena_new_array(arena, int64_t, count + 1);
    for (int64_t i = 0; i < count; ++i) labels[i] = berth_tensor_get_i64(&tensor, i);
    *out_labels = labels;
    *out_count = (uint32_t)count;
    return BERTH_OK;
}
