#include "executor/session.h"

#include <string.h>

#include "artifact/family.h"
#include "base/str.h"
#include "executor/session_private.h"

// What later plans are opened with.
static void keep_options(berth_session *session) {
    berth_session_options *options = &session->options;
    if (session->whole->fallback_count == 0) return;
    berth_session_binding *bindings =
        berth_arena_new_array(session->arena, berth_session_binding, options->binding_count);
    for (uint32_t i = 0; i < options->binding_count; ++i) {
        bindings[i] = options->bindings[i];
        bindings[i].name = berth_arena_strdup(session->arena, bindings[i].name);
    }
    options->bindings = bindings;
    if (options->threads)
        options->threads =
            berth_arena_copy(session->arena, options->threads, sizeof(*options->threads));
    if (options->cache_folder)
        options->cache_folder = berth_arena_strdup(session->arena, options->cache_folder);
}

static berth_status open_body(void *user) {
    berth_session *session = user;
    keep_options(session);
    BERTH_TRY(berth_executor__open_devices(session));
    session->schedule = berth_schedule_make(session->arena, session->program);
    BERTH_TRY(berth_executor__open_queues(session));
    BERTH_TRY(berth_executor__allocate(session));
    BERTH_TRY(berth_executor__load_code(session));
    BERTH_TRY(berth_executor__share_segments(session));
    BERTH_TRY(berth_executor__find_bounds(session));
    berth_executor__make_commands(session);
    berth_executor__make_reports(session);
    BERTH_TRY(berth_executor__start_reader(session));
    return berth_executor__prepare_lists(session);
}

static berth_status make_lock(berth_session *session) {
    if (pthread_mutex_init(&session->lock, NULL) != 0)
        return berth_status_make(BERTH_OUT_OF_MEMORY, "the system gives no mutex");
    pthread_cond_init(&session->opened, NULL);
    session->lock_made = true;
    return BERTH_OK;
}

berth_status berth_session_open(berth_allocator allocator, const berth_program *program,
                                const berth_session_options *options, berth_session **out_session) {
    *out_session = NULL;
    berth_session_options given = {0};
    if (options) given = *options;
    if (!given.verified) BERTH_TRY(berth_program_verify(program));
    if (program->vm)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "opening \"%s\": it needs the virtual machine, that is "
                                 "berth_program_load_dynamic",
                                 program->name);
    if (strcmp(program->executor, "graph") != 0)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "opening \"%s\": it is for executor \"%s\", whose build writes sources for a C "
            "compiler; here runs \"graph\"",
            program->name, program->executor);
    if (!given.base)
        return berth_executor__open_first(allocator, program, &given, 0, NULL, BERTH_OK,
                                          out_session);
    if (given.base->whole != program && !berth_vm_family_shares_code(given.base->whole, program))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "opening \"%s\": the session that it shares with is of another "
                                 "program",
                                 program->name);
    given.base = berth_executor__newest(given.base);
    berth_status status =
        berth_executor__open_plan(allocator, program, given.base->plan, &given, out_session);
    if (!status) (*out_session)->why = berth_status_clone(given.base->why);
    return status;
}

berth_status berth_executor__open_plan(berth_allocator allocator, const berth_program *program,
                                       uint32_t plan, const berth_session_options *options,
                                       berth_session **out_session) {
    *out_session = NULL;
    berth_session *session = berth_calloc(allocator, 1, sizeof(*session));
    if (!session) return berth_status_oom();
    session->allocator = allocator;
    session->whole = program;
    session->program = berth_program_plan(program, plan);
    session->plan = plan;
    session->lost_device = BERTH_NO_INDEX;
    session->options = *options;
    if (options->turns) berth_turns__retain(options->turns);
    if (session->options.base) session->options.profile = session->options.base->options.profile;
    berth_status status = berth_arena_create(allocator, &session->arena);
    if (!status) status = make_lock(session);
    if (!status) status = berth_arena_try(session->arena, open_body, session);
    if (status) {
        berth_session_close(session);
        return berth_status_prefix(status, "opening \"%s\"", program->name);
    }
    *out_session = session;
    return BERTH_OK;
}

void berth_session_close(berth_session *session) {
    if (!session) return;
    struct berth_turns *turns = session->options.turns;
    if (turns) berth_turns__forget(turns, session);
    if (session->next != session->spare) berth_session_close(session->next);
    berth_session_close(session->spare);
    berth_executor__close_queues(session);
    berth_store_reader_destroy(session->store_reader);
    berth_executor__free_memory(session);
    berth_executor__close_devices(session);
    if (session->lock_made) pthread_cond_destroy(&session->opened);
    if (session->lock_made) pthread_mutex_destroy(&session->lock);
    berth_status_free(session->why);
    berth_arena_destroy(session->arena);
    berth_free(session->allocator, session, sizeof(*session));
    if (turns) berth_turns__release(turns);
}

const berth_program *berth_session_program(const berth_session *session) {
    return session->whole;
}

const berth_program *berth_session_program_in_use(const berth_session *session) {
    return berth_executor__in_use(session)->program;
}

// ---- inputs and outputs ----

const berth_tensor *berth_session_input(const berth_session *session, uint32_t index) {
    return index < session->program->input_count ? &session->inputs[index] : NULL;
}

const berth_tensor *berth_session_output(const berth_session *session, uint32_t index) {
    return index < session->program->output_count ? &session->outputs[index] : NULL;
}

const char *berth_session_input_name(const berth_session *session, uint32_t index) {
    return index < session->program->input_count ? session->program->inputs[index].name : NULL;
}

const char *berth_session_output_name(const berth_session *session, uint32_t index) {
    return index < session->program->output_count ? session->program->outputs[index].name : NULL;
}

static berth_status find_io(const char *what, const berth_program_io *list, uint32_t count,
                            const char *name, uint32_t *out_index) {
    enum { names_capacity = 512 };
    char names[names_capacity] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(list[i].name, name) == 0) {
            *out_index = i;
            return BERTH_OK;
        }
        size_t wanted = strlen(list[i].name) + 2;
        if (length + wanted + 4 > names_capacity) {
            if (length && names[length - 1] != '.') memcpy(names + length, "...", 4), length += 3;
            continue;
        }
        if (length) memcpy(names + length, ", ", 2), length += 2;
        memcpy(names + length, list[i].name, wanted - 1);
        length += wanted - 2;
    }
    *out_index = BERTH_NO_INDEX;
    return berth_status_make(BERTH_NOT_FOUND, "no %s is named \"%s\"; there is %s", what, name,
                             count ? names : "none");
}

berth_status berth_session_find_input(const berth_session *session, const char *name,
                                      uint32_t *out_index) {
    return find_io("input", session->program->inputs, session->program->input_count, name,
                   out_index);
}

berth_status berth_session_find_output(const berth_session *session, const char *name,
                                       uint32_t *out_index) {
    return find_io("output", session->program->outputs, session->program->output_count, name,
                   out_index);
}

berth_status berth_executor__check_same(const char *what, const char *name,
                                        const berth_tensor *expected, const berth_tensor *given) {
    const bool bound =
        !expected->data && !given->data;  // has no bytes, or not in the host's memory
    berth_status status = bound ? BERTH_OK : berth_tensor_check(given);
    if (status) return berth_status_prefix(status, "%s \"%s\"", what, name);
    if (expected->dtype == given->dtype && berth_tensor_same_shape(expected, given))
        return BERTH_OK;
    char expected_text[192], given_text[192];
    berth_tensor_format_shape(expected, expected_text);
    berth_tensor_format_shape(given, given_text);
    return berth_status_make(BERTH_INCOMPATIBLE, "%s \"%s\" is %s, but %s was given", what, name,
                             expected_text, given_text);
}

berth_status berth_session_set_input(berth_session *session, const char *name,
                                     const berth_tensor *value) {
    uint32_t index = 0;
    BERTH_TRY(berth_session_find_input(session, name, &index));
    const berth_tensor *input = &session->inputs[index];
    BERTH_TRY(berth_executor__check_same("input", name, input, value));
    size_t size_bytes = berth_tensor_size_bytes(input);
    if (size_bytes) memcpy(input->data, value->data, size_bytes);
    return BERTH_OK;
}

berth_status berth_session_get_output(const berth_session *session, const char *name,
                                      berth_tensor *value) {
    uint32_t index = 0;
    BERTH_TRY(berth_session_find_output(session, name, &index));
    const berth_tensor *output = &session->outputs[index];
    BERTH_TRY(berth_executor__check_same("output", name, output, value));
    size_t size_bytes = berth_tensor_size_bytes(output);
    if (size_bytes) memcpy(value->data, output->data, size_bytes);
    return BERTH_OK;
}
