#include "tools/cli_inputs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/tensor.h"
#include "image/image.h"
#include "tools/cli_tensor.h"
#include "tools/npz.h"

// ---- options ------------------------------------------------------------------------------------

void berth_cli_take_input(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    if (!*arg || (strchr(arg, '=') && !berth_cli_names_file(arg)))
        berth_cli_wrong_usage(state, "--input takes FILE or NAME=FILE, not \"%s\"", arg);
    berth_cli_push(cli, &cli->inputs, arg);
}

// "1x3x640x640"; the count of dimensions, -1 where it is none.
static int parse_shape(const char *text, int64_t dims[BERTH_MAX_RANK]) {
    for (int rank = 0; rank < BERTH_MAX_RANK;) {
        char *end = NULL;
        if (*text < '0' || *text > '9') return -1;
        errno = 0;
        dims[rank++] = strtoll(text, &end, 10);
        if (errno || dims[rank - 1] > INT32_MAX) return -1;
        if (!*end) return rank;
        if (*end != 'x') return -1;
        text = end + 1;
    }
    return -1;
}

void berth_cli_take_shape(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    const char *equals = strrchr(arg, '=');
    int64_t dims[BERTH_MAX_RANK];
    if (equals == arg || parse_shape(equals ? equals + 1 : arg, dims) < 0)
        berth_cli_wrong_usage(
            state,
            "--shape takes NAME=SHAPE such as image=1x3x640x640, at most %d numbers, not "
            "\"%s\"",
            BERTH_MAX_RANK, arg);
    berth_cli_push(cli, &cli->shapes, arg);
}

void berth_cli_take_layout(berth_cli_model *cli, int key, const char *arg,
                           struct argp_state *state) {
    char *layout = berth_arena_strdup(cli->arena, arg);
    for (char *at = layout; *at; ++at) *at = (char)toupper((unsigned char)*at);
    berth_cli_choose_value(state, key, layout);
    cli->layout = layout;
}

void berth_cli_take_divisors(berth_cli_numbers *out, const char *option, const char *arg,
                             struct argp_state *state) {
    berth_cli_take_numbers(out, option, arg, state);
    for (uint32_t i = 0; i < out->count; ++i)
        if (out->values[i] == 0)
            berth_cli_wrong_usage(state, "%s \"%s\": elements are divided by it, so not by 0",
                                  option, arg);
}

void berth_cli_take_numbers(berth_cli_numbers *out, const char *option, const char *arg,
                            struct argp_state *state) {
    const char *at = arg;
    for (out->count = 0; out->count < BERTH_CLI_MOST_CHANNELS;) {
        char *end = NULL;
        double value = strtod(at, &end);
        if (end == at || !isfinite(value)) break;
        out->values[out->count++] = value;
        if (!*end) return;
        if (*end != ',') break;
        at = end + 1;
    }
    berth_cli_wrong_usage(state,
                          "%s takes a number, or one for each of %d channels such as "
                          "123.7,116.3,103.5, not \"%s\"",
                          option, BERTH_CLI_MOST_CHANNELS, arg);
}

// ---- what the model takes -----------------------------------------------------------------------

// Read from the model only where something needs it.
typedef struct inputs_job {
    berth_cli_model *cli;
    const berth_cli_port *ports;
    uint32_t port_count;
    bool known;
    BERTH_VEC(berth_cli_input) inputs;
    BERTH_VEC(berth_cli_dim) dims;
    uint32_t position;  // of the next FILE without a name
} inputs_job;

static berth_status know_ports(inputs_job *job) {
    if (job->known) return BERTH_OK;
    job->known = true;
    return berth_cli_ports(job->cli, &job->ports, &job->port_count);
}

static berth_status find_port(inputs_job *job, const char *name, const berth_cli_port **out_port) {
    BERTH_TRY(know_ports(job));
    berth_strbuf names = berth_strbuf_make(job->cli->arena);
    for (uint32_t i = 0; i < job->port_count; ++i) {
        *out_port = &job->ports[i];
        if (strcmp(job->ports[i].name, name) == 0) return BERTH_OK;
        if (i < 20) berth_strbuf_addf(&names, "%s\"%s\"", i ? ", " : "", job->ports[i].name);
    }
    *out_port = NULL;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has no input \"%s\"; its inputs are: %s",
                             job->cli->model, name, berth_strbuf_text(&names));
}

static berth_status port_at(inputs_job *job, uint32_t position, const berth_cli_port **out_port) {
    BERTH_TRY(know_ports(job));
    *out_port = position < job->port_count ? &job->ports[position] : NULL;
    if (*out_port) return BERTH_OK;
    return berth_status_make(
        BERTH_INVALID_ARGUMENT, "--input has %u files without a name, but %s has %u input%s",
        position + 1, job->cli->model, job->port_count, job->port_count == 1 ? "" : "s");
}

// ---- files --------------------------------------------------------------------------------------

static double number_of(const berth_cli_numbers *numbers, uint32_t channel, double otherwise) {
    if (numbers->count == 0) return otherwise;
    return numbers->values[numbers->count == 1 ? 0 : channel];
}

// The dimension that several numbers of --mean and --std are of: C of --layout, else as of pictures. -1: none.
static int channel_dim(const berth_cli_model *cli, int rank) {
    const char *channel = cli->layout ? strchr(cli->layout, 'C') : NULL;
    if (!cli->layout) return rank >= 3 ? rank - 3 : -1;
    return channel && (int)strlen(cli->layout) == rank ? (int)(channel - cli->layout) : -1;
}

static berth_status check_channels(const berth_cli_numbers *numbers, const char *option,
                                   const berth_tensor *tensor, int dim) {
    if (numbers->count <= 1 || (dim >= 0 && tensor->dims[dim] == numbers->count)) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s has %u numbers, but the array has no dimension of as many "
                             "channels (--layout says which it is)",
                             option, numbers->count);
}

// Bytes for an input of f32: numbers, less --mean, over --std, as of pictures.
static berth_status widen(const berth_cli_model *cli, berth_tensor *tensor) {
    int dim = channel_dim(cli, tensor->rank);
    BERTH_TRY(check_channels(&cli->mean, "--mean", tensor, dim));
    BERTH_TRY(check_channels(&cli->deviation, "--std", tensor, dim));
    berth_tensor wide =
        berth_tensor_create(cli->arena, BERTH_DTYPE_F32, tensor->rank, tensor->dims);
    int64_t inner = 1, channels = dim >= 0 ? tensor->dims[dim] : 1;
    for (int d = dim + 1; dim >= 0 && d < tensor->rank; ++d) inner *= tensor->dims[d];
    for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i) {
        uint32_t channel = (uint32_t)(i / inner % channels);
        double value = berth_tensor_get_f64(tensor, i) - number_of(&cli->mean, channel, 0);
        ((float *)wide.data)[i] = (float)(value / number_of(&cli->deviation, channel, 1));
    }
    *tensor = wide;
    return BERTH_OK;
}

static bool takes_f32(inputs_job *job, const char *name) {
    for (uint32_t i = 0; i < job->port_count; ++i)
        if (strcmp(job->ports[i].name, name) == 0) return job->ports[i].dtype == BERTH_DTYPE_F32;
    return false;
}

static berth_status add_input(inputs_job *job, const char *name, const berth_tensor *tensor) {
    for (uint32_t j = 0; j < job->inputs.count; ++j)
        if (strcmp(job->inputs.data[j].name, name) == 0)
            return berth_status_make(BERTH_ALREADY_EXISTS, "--input %s is given twice", name);
    berth_cli_input input = {.name = name, .tensor = *tensor};
    if (tensor->dtype == BERTH_DTYPE_U8) {
        BERTH_TRY(know_ports(job));
        if (takes_f32(job, name)) BERTH_TRY(widen(job->cli, &input.tensor));
    }
    berth_vec_push(job->cli->arena, &job->inputs, input);
    return BERTH_OK;
}

// What --dim and --shape say of an open dimension; -1 = nothing.
static int64_t given_extent(const inputs_job *job, const berth_cli_port *port, int d) {
    const char *place = berth_arena_printf(job->cli->arena, "%s.%d", port->name, d);
    for (uint32_t k = 0; k < job->dims.count; ++k) {
        const berth_cli_dim *dim = &job->dims.data[k];
        bool named = port->dim_names[d] && strcmp(dim->name, port->dim_names[d]) == 0;
        if (named || strcmp(dim->name, place) == 0) return dim->extent;
    }
    return -1;
}

// The input's type and shape, and exactly so many bytes. One open dimension is as long as the bytes reach. Of f32, where
// all dimensions are known, a byte for each number does, too.
static berth_status read_raw(inputs_job *job, const berth_cli_port *port, berth_mapping file,
                             berth_tensor *out) {
    *out = (berth_tensor){.dtype = port->dtype, .rank = port->rank};
    int open_count = 0, open = 0;
    for (int d = 0; d < port->rank; ++d) {
        out->dims[d] = port->dims[d] >= 0 ? port->dims[d] : given_extent(job, port, d);
        if (out->dims[d] >= 0) continue;
        open = d;
        ++open_count;
        out->dims[d] = 1;
    }
    if (port->rank < 0 || open_count > 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "raw bytes have no shape, and that of \"%s\" is open: give it as "
                                 "--shape %s=..., or all but one of its dimensions with --dim",
                                 port->name, port->name);
    int64_t element_count = 0;
    size_t size_bytes = 0;
    BERTH_TRY(
        berth_shape_size_bytes(out->dtype, out->rank, out->dims, &element_count, &size_bytes));
    if (open_count && size_bytes && file.size_bytes % size_bytes == 0) {
        out->dims[open] = (int64_t)(file.size_bytes / size_bytes);
        size_bytes = file.size_bytes;
    }
    bool narrow =
        out->dtype == BERTH_DTYPE_F32 && !open_count && file.size_bytes == (size_t)element_count;
    if (narrow) {
        out->dtype = BERTH_DTYPE_U8;
        size_bytes = file.size_bytes;
    }
    if (size_bytes != file.size_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%zu raw bytes, but input \"%s\" needs %zu", file.size_bytes,
                                 port->name, size_bytes);
    out->data = berth_arena_alloc_aligned(job->cli->arena, size_bytes, 64);
    if (size_bytes) memcpy(out->data, file.data, size_bytes);
    return BERTH_OK;
}

static uint8_t channel_of(const berth_image *image, size_t pixel, uint32_t channel,
                          uint32_t wanted) {
    const uint8_t *p = image->pixels + pixel * image->channels;
    if (image->channels == wanted) return p[channel];
    if (image->channels == 1) return p[0];
    // Grey of a colour: ITU-R BT.601, rounded.
    return (uint8_t)((299u * p[0] + 587u * p[1] + 114u * p[2] + 500) / 1000);
}

static void fill_pixels(const berth_cli_model *cli, const berth_image *image, uint32_t channels,
                        bool channels_last, berth_tensor *out) {
    size_t count = (size_t)image->width * image->height;
    for (uint32_t c = 0; c < channels; ++c) {
        double mean = number_of(&cli->mean, c, 0), deviation = number_of(&cli->deviation, c, 1);
        for (size_t i = 0; i < count; ++i) {
            uint8_t value = channel_of(image, i, c, channels);
            size_t at = channels_last ? i * channels + c : c * count + i;
            if (out->dtype == BERTH_DTYPE_U8)
                ((uint8_t *)out->data)[at] = value;
            else
                ((float *)out->data)[at] = (float)((value - mean) / deviation);
        }
    }
}

static berth_status check_numbers(const berth_cli_model *cli, berth_dtype dtype,
                                  uint32_t channels) {
    if (dtype == BERTH_DTYPE_U8 && (cli->mean.count || cli->deviation.count))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the input takes u8: --mean and --std are for f32");
    const berth_cli_numbers *both[] = {&cli->mean, &cli->deviation};
    for (int i = 0; i < 2; ++i)
        if (both[i]->count > 1 && both[i]->count != channels)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "%s has %u numbers, but the picture has %u channel%s",
                i ? "--std" : "--mean", both[i]->count, channels, channels == 1 ? "" : "s");
    return BERTH_OK;
}

// The picture as the input takes it: by --layout, else NCHW or CHW; as many channels as the input has
// there, else as the picture.
static berth_status read_image(inputs_job *job, const berth_cli_port *port, berth_mapping file,
                               berth_tensor *out) {
    const berth_cli_model *cli = job->cli;
    berth_image image;
    BERTH_TRY(berth_image_read(cli->arena, file.data, file.size_bytes, &image));
    const char *layout = cli->layout       ? cli->layout
                         : port->rank == 3 ? "CHW"
                         : port->rank == 2 ? "HW"
                                           : "NCHW";
    const char *channel = strchr(layout, 'C');
    uint32_t channels = channel ? image.channels : 1;
    int rank = (int)strlen(layout);
    if (channel && port->rank == rank) {
        int64_t wanted = port->dims[channel - layout];
        if (wanted == 1 || wanted == 3) channels = (uint32_t)wanted;
    }
    if (port->dtype != BERTH_DTYPE_U8 && port->dtype != BERTH_DTYPE_F32)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a picture is u8 or f32, but input \"%s\" takes %s", port->name,
                                 berth_dtype_name(port->dtype));
    BERTH_TRY(check_numbers(cli, port->dtype, channels));
    *out = (berth_tensor){.dtype = port->dtype, .rank = rank};
    for (int d = 0; d < rank; ++d)
        out->dims[d] = layout[d] == 'N'   ? 1
                       : layout[d] == 'C' ? channels
                       : layout[d] == 'H' ? image.height
                                          : image.width;
    out->data = berth_arena_alloc_aligned(
        cli->arena,
        (size_t)image.width * image.height * channels * berth_dtype_size_bytes(port->dtype), 64);
    fill_pixels(cli, &image, channels, channel && !channel[1], out);
    return BERTH_OK;
}

// All arrays under their names, or the one that `name` asks for.
static berth_status read_npz(inputs_job *job, const char *name, berth_mapping file) {
    const berth_npz_array *arrays = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_npz_read(job->cli->arena, file.data, file.size_bytes, &arrays, &count));
    if (!name) {
        for (uint32_t i = 0; i < count; ++i)
            BERTH_TRY(add_input(job, arrays[i].name, &arrays[i].tensor));
        return BERTH_OK;
    }
    if (count == 1) return add_input(job, name, &arrays[0].tensor);
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(arrays[i].name, name) == 0) return add_input(job, name, &arrays[i].tensor);
    return berth_status_make(BERTH_NOT_FOUND, "none of its %u arrays is named \"%s\"", count, name);
}

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), ending_length = strlen(ending);
    return length > ending_length && strcmp(text + length - ending_length, ending) == 0;
}

static berth_status read_file(inputs_job *job, const char *name, const char *path,
                              berth_mapping file) {
    if (berth_npz_is(file.data, file.size_bytes)) return read_npz(job, name, file);
    bool raw = ends_with(path, ".raw") || ends_with(path, ".bin");
    bool image = !raw && berth_image_is(file.data, file.size_bytes);
    const berth_cli_port *port = NULL;
    if (!name) {
        BERTH_TRY(port_at(job, job->position++, &port));
        name = port->name;
    } else if (raw || image) {
        BERTH_TRY(find_port(job, name, &port));
    }
    // A vector of bytes is for models that decode pictures themselves.
    if (image && port->rank == 1 && port->dtype == BERTH_DTYPE_U8) raw = true;
    berth_tensor tensor;
    if (raw)
        BERTH_TRY(read_raw(job, port, file, &tensor));
    else if (image)
        BERTH_TRY(read_image(job, port, file, &tensor));
    else
        BERTH_TRY(berth_cli_tensor_parse(job->cli->arena, file.data, file.size_bytes, &tensor));
    return add_input(job, name, &tensor);
}

typedef struct file_call {
    inputs_job *job;
    const char *name, *path;
    berth_mapping file;
} file_call;

static berth_status read_mapped(void *user) {
    file_call *call = user;
    return read_file(call->job, call->name, call->path, call->file);
}

static berth_status read_input(inputs_job *job, const char *text) {
    const char *equals = strchr(text, '=');
    file_call call = {.job = job, .path = equals ? equals + 1 : text};
    if (equals) call.name = berth_arena_strndup(job->cli->arena, text, (size_t)(equals - text));
    BERTH_TRY(berth_file_map(call.path, &call.file));
    berth_status status = berth_arena_try(job->cli->arena, read_mapped, &call);
    berth_file_unmap(call.file);
    return berth_status_prefix(status, "\"%s\"", call.path);
}

// ---- dimensions ---------------------------------------------------------------------------------

// "NAME=1x3x640x640", or without NAME= for a model of one input: the dimensions that are open get these
// extents, the others must have them.
static berth_status read_shape(inputs_job *job, const char *text) {
    const char *equals = strrchr(text, '=');
    const berth_cli_port *port = NULL;
    int64_t dims[BERTH_MAX_RANK];
    int rank = parse_shape(equals ? equals + 1 : text, dims);
    if (equals)
        BERTH_TRY(find_port(
            job, berth_arena_strndup(job->cli->arena, text, (size_t)(equals - text)), &port));
    else
        BERTH_TRY(know_ports(job));
    if (!equals && job->port_count != 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "--shape %s: %s has %u inputs; say which, as NAME=%s", text,
                                 job->cli->model, job->port_count, text);
    if (!port) port = &job->ports[0];
    if (port->rank != rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "--shape %s has %d dimensions, but input \"%s\" has %d", text,
                                 rank, port->name, port->rank);
    for (int d = 0; d < rank; ++d) {
        if (port->dims[d] == dims[d]) continue;
        if (port->dims[d] >= 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "--shape %s: dimension %d of input \"%s\" is %lld", text, d,
                                     port->name, (long long)port->dims[d]);
        berth_vec_push(
            job->cli->arena, &job->dims,
            (berth_cli_dim){berth_arena_printf(job->cli->arena, "%s.%d", port->name, d), dims[d]});
    }
    return BERTH_OK;
}

// What the compiler is told last counts; a command line that says two things is wrong.
static berth_status add_dim(inputs_job *job, const char *name, int64_t extent) {
    for (uint32_t i = 0; i < job->dims.count; ++i)
        if (strcmp(job->dims.data[i].name, name) == 0 && job->dims.data[i].extent != extent)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "dimension %s is given twice, as %lld and as %lld", name,
                                     (long long)job->dims.data[i].extent, (long long)extent);
    berth_vec_push(job->cli->arena, &job->dims, (berth_cli_dim){name, extent});
    return BERTH_OK;
}

// The first dimension of every input that leaves it open.
static berth_status read_batch(inputs_job *job) {
    uint32_t before = job->dims.count;
    BERTH_TRY(know_ports(job));
    for (uint32_t i = 0; i < job->port_count; ++i)
        if (job->ports[i].rank > 0 && job->ports[i].dims[0] < 0)
            BERTH_TRY(add_dim(job, berth_arena_printf(job->cli->arena, "%s.0", job->ports[i].name),
                              job->cli->batch));
    if (job->dims.count > before) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "--batch %u: no input of %s has an open first dimension (`berth "
                             "inspect` lists them)",
                             job->cli->batch, job->cli->model);
}

berth_status berth_cli_read_values(berth_cli_model *cli, bool read_inputs, berth_cli_values *out) {
    inputs_job job = {.cli = cli};
    for (uint32_t i = 0; i < cli->dims.count; ++i) {
        const char *equals = strrchr(cli->dims.data[i], '=');
        uint64_t extent = 0;
        berth_cli_parse_u64(equals + 1, &extent);  // take_dim has checked it
        const char *name = berth_arena_strndup(cli->arena, cli->dims.data[i],
                                               (size_t)(equals - cli->dims.data[i]));
        BERTH_TRY(add_dim(&job, name, (int64_t)extent));
    }
    for (uint32_t i = 0; i < cli->shapes.count; ++i)
        BERTH_TRY(read_shape(&job, cli->shapes.data[i]));
    if (cli->batch > 0) BERTH_TRY(read_batch(&job));
    for (uint32_t i = 0; read_inputs && i < cli->inputs.count; ++i)
        BERTH_TRY(read_input(&job, cli->inputs.data[i]));
    *out = (berth_cli_values){job.dims.data, job.dims.count, job.inputs.data, job.inputs.count};
    return BERTH_OK;
}
