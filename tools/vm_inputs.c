#include "tools/vm_inputs.h"

#include <berth/inspect.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"

// ---- dimensions by name -------------------------------------------------------------------------

// Dimension `axis` of a type's text, "f32[1,past+1,16]": a name, and what is added to it. False: it is something else.
static bool read_dimension(const char *type, int axis, berth_vm_feed_symbol *out_symbol) {
    const char *at = strchr(type, '[');
    for (int d = 0; at && d < axis; ++d) at = strchr(at + 1, ',');
    if (!at) return false;
    at++;
    out_symbol->name = at;
    out_symbol->length = strcspn(at, "+-*/(),]");
    const char *end = at + out_symbol->length;
    char *after = NULL;
    out_symbol->value = 0;
    if (!out_symbol->length || (*at >= '0' && *at <= '9') || *at == '?') return false;
    if (*end == '+') out_symbol->value = strtoll(end + 1, &after, 10);
    if (after) end = after;
    return *end == ',' || *end == ']';
}

static berth_vm_feed_symbol *find_symbol(berth_vm_feed *feed, const berth_vm_feed_symbol *wanted) {
    for (uint32_t i = 0; i < feed->symbol_count; ++i)
        if (feed->symbols[i].length == wanted->length &&
            memcmp(feed->symbols[i].name, wanted->name, wanted->length) == 0)
            return &feed->symbols[i];
    return NULL;
}

// The extent of a dimension that follows a state's; -1: it does not.
static int64_t following(berth_vm_feed *feed, const berth_dynamic_port *port, int axis) {
    berth_vm_feed_symbol read;
    if (!feed->symbol_count || !read_dimension(port->type, axis, &read)) return -1;
    const berth_vm_feed_symbol *symbol = find_symbol(feed, &read);
    return symbol ? symbol->value + read.value : -1;
}

// What open dimensions are for an input of this shape; others follow. As bounds say: where they are not known
// otherwise, and there are any.
static void note_symbols(berth_vm_feed *feed, const berth_dynamic_port *port, const int64_t *dims,
                         bool as_bounds_say) {
    for (int d = 0; d < port->rank; ++d) {
        berth_vm_feed_symbol read;
        if (port->dims[d] >= 0 || !read_dimension(port->type, d, &read)) continue;
        berth_vm_feed_symbol *symbol = find_symbol(feed, &read);
        if (as_bounds_say && (symbol || !port->most[d])) continue;
        if (!symbol && feed->symbol_count == BERTH_VM_FEED_SYMBOLS) continue;
        if (!symbol) symbol = &feed->symbols[feed->symbol_count++];
        *symbol = (berth_vm_feed_symbol){read.name, read.length, dims[d] - read.value};
    }
}

// ---- inputs -------------------------------------------------------------------------------------

static const berth_tensor *given_input(const berth_vm_feed *feed, const char *name) {
    const berth_cli_values *given = feed->values;
    for (uint32_t i = 0; i < given->input_count; ++i)
        if (strcmp(given->inputs[i].name, name) == 0) return &given->inputs[i].tensor;
    return NULL;
}

static berth_status check_given(const berth_vm_feed *feed) {
    const berth_cli_values *given = feed->values;
    for (uint32_t i = 0; i < given->input_count; ++i) {
        bool found = false;
        for (uint32_t k = 0; k < berth_dynamic_input_count(feed->model); ++k)
            found |= strcmp(berth_dynamic_input_name(feed->model, k), given->inputs[i].name) == 0;
        if (!found)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "the model has no input \"%s\"",
                                     given->inputs[i].name);
    }
    return BERTH_OK;
}

static void note(const berth_vm_feed *feed, const char *text) {
    if (feed->is_first) berth_cli_level_message(feed->cli, BERTH_MESSAGE_NOTE, text);
}

// The shape of random values: the most of bounds, else 1 for what looks like the batch.
static berth_status choose_shape(berth_vm_feed *feed, const berth_dynamic_port *port,
                                 int64_t *out_dims) {
    bool known = port->is_tensor && port->dtype && port->rank >= 0;
    bool by_bounds = false, assumed = false;
    for (int d = 0; known && d < port->rank; ++d) {
        out_dims[d] = port->dims[d] >= 0 ? port->dims[d] : following(feed, port, d);
        by_bounds |= port->dims[d] < 0 && !feed->keeps_states && port->most[d];
        if (out_dims[d] >= 0) continue;
        out_dims[d] = port->most[d] ? port->most[d] : d == 0 && port->rank > 1 ? 1 : -1;
        known = out_dims[d] >= 0;
        by_bounds |= port->most[d] != 0;
        assumed |= !port->most[d];
    }
    if (!port->is_tensor)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "input \"%s\" is %s, which cannot be given here yet (`berth verify` "
            "reads it)",
            port->name, port->type);
    if (!known)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" is %s: give it (--input %s=FILE), or its dimensions "
                                 "(--dim NAME=EXTENT)",
                                 port->name, port->type, port->name);
    if (by_bounds)
        note(feed,
             berth_arena_printf(feed->arena,
                                "input \"%s\" (%s): run with the most of its bounds; --input gives "
                                "others",
                                port->name, port->type));
    else if (assumed)
        note(feed, berth_arena_printf(
                       feed->arena, "input \"%s\" (%s): run with a batch of 1; %s gives others",
                       port->name, port->type,
                       berth_program_file_is(feed->cli->model) ? "--input" : "--input or --dim"));
    return BERTH_OK;
}

// As in the run before where its shape is the same; where it grew, in the same memory if that has room.
static berth_status random_input(berth_vm_feed *feed, const berth_dynamic_port *port,
                                 uint32_t index) {
    int64_t dims[BERTH_MAX_RANK] = {0};
    BERTH_TRY(choose_shape(feed, port, dims));
    berth_tensor *input = &feed->inputs[index];
    berth_tensor wanted = {.dtype = port->dtype, .rank = port->rank, .data = input->data};
    memcpy(wanted.dims, dims, sizeof(dims));
    if (input->data && berth_tensor_same_shape(input, &wanted)) return BERTH_OK;
    BERTH_TRY(berth_shape_size_bytes(wanted.dtype, wanted.rank, wanted.dims, NULL, NULL));
    const size_t size_bytes = berth_tensor_size_bytes(&wanted);
    if (!wanted.data || size_bytes > feed->room_bytes[index]) {
        feed->room_bytes[index] = feed->is_first ? size_bytes : 2 * size_bytes;
        wanted.data = berth_arena_alloc_aligned(feed->arena, feed->room_bytes[index] + 1, 128);
    }
    *input = wanted;
    berth_tensor_fill_random(input, feed->seed + index);
    return BERTH_OK;
}

static bool is_state(const berth_vm_feed *feed, uint32_t index) {
    return feed->keeps_states && berth_dynamic_state_output(feed->model, index) != UINT32_MAX;
}

static berth_status make_inputs(berth_vm_feed *feed) {
    for (uint32_t i = 0; i < berth_dynamic_input_count(feed->model); ++i) {
        berth_dynamic_port port;
        if (is_state(feed, i)) continue;
        BERTH_TRY(berth_dynamic_get_input(feed->model, i, &port, sizeof(port)));
        const berth_tensor *given = given_input(feed, port.name);
        if (given)
            feed->inputs[i] = *given;
        else
            BERTH_TRY(random_input(feed, &port, i));
    }
    return BERTH_OK;
}

// ---- states -------------------------------------------------------------------------------------

// Without states: dimensions of what is given, else the most of bounds.
static berth_status begin_stateless(berth_vm_feed *feed) {
    for (int by_bounds = 0; by_bounds < 2; ++by_bounds)
        for (uint32_t i = 0; i < berth_dynamic_input_count(feed->model); ++i) {
            berth_dynamic_port port;
            BERTH_TRY(berth_dynamic_get_input(feed->model, i, &port, sizeof(port)));
            const berth_tensor *given = given_input(feed, port.name);
            if (by_bounds && !given) note_symbols(feed, &port, port.most, true);
            if (!by_bounds && given && given->rank == port.rank)
                note_symbols(feed, &port, given->dims, false);
        }
    return BERTH_OK;
}

// As they are before a run: as given for the first, else of the least of their bounds.
static berth_status begin_states(berth_vm_feed *feed) {
    for (uint32_t i = 0; i < berth_dynamic_input_count(feed->model); ++i) {
        berth_dynamic_port port;
        if (!is_state(feed, i)) continue;
        BERTH_TRY(berth_dynamic_get_input(feed->model, i, &port, sizeof(port)));
        const berth_tensor *given = given_input(feed, port.name);
        feed->inputs[i] = given ? *given : (berth_tensor){.dtype = BERTH_DTYPE_NONE};
        note_symbols(feed, &port, given && given->rank == port.rank ? given->dims : port.least,
                     false);
    }
    return BERTH_OK;
}

// Whether a state is longer than the next run may be given it.
static bool is_full(const berth_dynamic_port *port, const int64_t *dims) {
    for (int d = 0; d < port->rank; ++d)
        if (port->dims[d] < 0 && port->most[d] && dims[d] > port->most[d]) return true;
    return false;
}

static berth_status look_at_states(berth_vm_feed *feed, bool *out_full) {
    *out_full = false;
    for (uint32_t i = 0; i < berth_dynamic_input_count(feed->model); ++i) {
        berth_dynamic_port port;
        berth_results *held = NULL;
        if (!is_state(feed, i)) continue;
        feed->inputs[i] = (berth_tensor){.dtype = BERTH_DTYPE_NONE};
        BERTH_TRY(berth_dynamic_get_input(feed->model, i, &port, sizeof(port)));
        bool is_open = false;
        for (int d = 0; d < port.rank; ++d) is_open |= port.dims[d] < 0;
        if (!is_open) continue;
        BERTH_TRY(berth_dynamic_get_state(feed->model, i, &held));
        const berth_tensor *tensor = berth_results_item(held, 0, 0);
        if (tensor && tensor->rank == port.rank) {
            *out_full |= is_full(&port, tensor->dims);
            note_symbols(feed, &port, tensor->dims, false);
        }
        berth_results_free(held);
    }
    return BERTH_OK;
}

// Of a program file, whose states were declared when it was built: that it has such ones.
static berth_status check_declared(const berth_vm_feed *feed, const char *text) {
    const char *input = berth_arena_strndup(feed->arena, text, (size_t)(strchr(text, '=') - text));
    for (uint32_t i = 0; i < berth_dynamic_input_count(feed->model); ++i)
        if (berth_dynamic_state_output(feed->model, i) != UINT32_MAX &&
            fnmatch(input, berth_dynamic_input_name(feed->model, i), 0) == 0)
            return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND, "--state %s: the program has no such state", text);
}

static berth_status begin(void *user) {
    berth_vm_feed *feed = user;
    const uint32_t count = berth_dynamic_input_count(feed->model);
    feed->inputs = berth_arena_new_array(feed->arena, berth_tensor, count + 1);
    feed->room_bytes = berth_arena_new_array(feed->arena, size_t, count + 1);
    BERTH_TRY(check_given(feed));
    for (uint32_t i = 0; i < feed->cli->states.count; ++i)
        BERTH_TRY(check_declared(feed, feed->cli->states.data[i]));
    if (feed->keeps_states) BERTH_TRY(berth_dynamic_keep_states(feed->model));
    BERTH_TRY(feed->keeps_states ? begin_states(feed) : begin_stateless(feed));
    return make_inputs(feed);
}

berth_status berth_vm_feed_open(berth_cli_model *cli, berth_dynamic *model,
                                const berth_cli_values *values, uint64_t seed,
                                berth_vm_feed *out_feed) {
    *out_feed = (berth_vm_feed){.cli = cli,
                                .model = model,
                                .values = values,
                                .seed = seed,
                                .keeps_states = cli->states.count > 0,
                                .is_first = true};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &out_feed->arena));
    BERTH_TRY(berth_arena_try(out_feed->arena, begin, out_feed));
    out_feed->is_first = false;
    return BERTH_OK;
}

void berth_vm_feed_close(berth_vm_feed *feed) {
    berth_arena_destroy(feed->arena);
}

static berth_status go_on(void *user) {
    berth_vm_feed *feed = user;
    bool full = false;
    BERTH_TRY(look_at_states(feed, &full));
    if (full) {
        berth_dynamic_reset_states(feed->model);
        BERTH_TRY(begin_states(feed));
    }
    return make_inputs(feed);
}

berth_status berth_vm_feed_next(berth_vm_feed *feed) {
    return feed->keeps_states ? berth_arena_try(feed->arena, go_on, feed) : BERTH_OK;
}
