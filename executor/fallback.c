// Plans of a program that take over where a device is not here or is lost.
//
// A session runs one plan. When a run fails because a device is gone, a session of a later plan is
// opened, the run is done again there on the same inputs, and so are all later ones; the first session
// stays, since its inputs and outputs are what the caller holds. Of sessions that share devices (one of
// them is the base of the others) the first that notices has the base's `spare` opened, once; each of the
// others then opens its own, which shares with that.
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "executor/session_private.h"
#include "target/virtual_device.h"

static berth_session *base_of(berth_session *session) {
    return session->options.base ? session->options.base : session;
}

static berth_session *spare_of(berth_session *base) {
    pthread_mutex_lock(&base->lock);
    berth_session *spare = base->spare;
    pthread_mutex_unlock(&base->lock);
    return spare;
}

berth_session *berth_executor__newest(berth_session *base) {
    for (berth_session *spare; (spare = spare_of(base));) base = spare;
    return base;
}

berth_session *berth_executor__in_use(const berth_session *session) {
    union {
        const berth_session *constant;
        berth_session *pointer;
    } found = {.constant = session};
    while (found.constant->next) found.constant = found.constant->next;
    return found.pointer;
}

// ---- which plan ---------------------------------------------------------------------------------

static const char *devices_text(berth_arena *arena, const berth_program *plan) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t d = 0; d < plan->device_count; ++d)
        berth_strbuf_addf(&text, "%s%s", d ? ", " : "", plan->devices[d].name);
    return berth_strbuf_text(&text);
}

typedef struct plan_message {
    berth_arena *arena;
    const berth_session *session;
} plan_message;

static berth_status say(void *user) {
    const plan_message *m = user;
    const berth_session *session = m->session;
    session->options.on_message(
        session->options.message_user,
        berth_arena_printf(m->arena, "fallback %u of the program (%s) is in use instead: %s",
                           session->plan, devices_text(m->arena, session->program),
                           berth_status_message(session->why)));
    return BERTH_OK;
}

static void say_plan(const berth_session *session) {
    plan_message message = {.session = session};
    if (!session->options.on_message || session->plan == 0) return;
    if (berth_status_code(berth_arena_create(session->allocator, &message.arena))) return;
    berth_status_ignore(berth_arena_try(message.arena, say, &message));
    berth_arena_destroy(message.arena);
}

// Whether a plan needs a device that is lost. A host that fails is no reason to do without it.
static bool needs(const berth_program *plan, const berth_program_device *lost) {
    if (!lost || berth_device_kind_is_host(berth_device_kind_from_name(lost->kind))) return false;
    for (uint32_t d = 0; d < plan->device_count; ++d)
        if (strcmp(plan->devices[d].kind, lost->kind) == 0 &&
            plan->devices[d].virtual_id == lost->virtual_id && berth_executor__is_used(plan, d))
            return true;
    return false;
}

berth_status berth_executor__open_first(berth_allocator allocator, const berth_program *program,
                                        const berth_session_options *options, uint32_t plan,
                                        const berth_program_device *lost, berth_status why,
                                        berth_session **out_session) {
    *out_session = NULL;
    for (; plan <= program->fallback_count; ++plan) {
        if (needs(berth_program_plan(program, plan), lost)) continue;
        berth_status status =
            berth_executor__open_plan(allocator, program, plan, options, out_session);
        if (!status) {
            (*out_session)->why = why;
            say_plan(*out_session);
            return BERTH_OK;
        }
        if (berth_status_code(status) != BERTH_UNAVAILABLE || options->first_plan_only) {
            berth_status_free(why);
            return status;
        }
        if (why) {
            berth_status both =
                berth_status_make(BERTH_UNAVAILABLE, "%s; fallback %u: %s",
                                  berth_status_message(why), plan, berth_status_message(status));
            berth_status_free(why);
            berth_status_free(status);
            status = both;
        }
        why = status;
    }
    return why;
}

// ---- taking over --------------------------------------------------------------------------------

static bool begin_opening(berth_session *base) {
    pthread_mutex_lock(&base->lock);
    while (base->opening) pthread_cond_wait(&base->opened, &base->lock);
    bool opens = base->spare == NULL;
    base->opening = opens;
    pthread_mutex_unlock(&base->lock);
    return opens;
}

static void end_opening(berth_session *base, berth_session *spare) {
    pthread_mutex_lock(&base->lock);
    base->opening = false;
    base->spare = spare;
    pthread_cond_broadcast(&base->opened);
    pthread_mutex_unlock(&base->lock);
}

// Sees to it that the base has a spare; `why` is taken over, and comes back where there is none.
static berth_status open_spare(berth_session *base, const berth_program_device *lost,
                               berth_status why) {
    if (!begin_opening(base)) {
        berth_status_free(why);
        return BERTH_OK;
    }
    berth_session_options options = base->options;
    berth_session *spare = NULL;
    berth_status status = berth_executor__open_first(base->allocator, base->whole, &options,
                                                     base->plan + 1, lost, why, &spare);
    end_opening(base, spare);
    return status;
}

// The session's own one of the spare that its base has.
static berth_status join(berth_session *session) {
    berth_session *base = base_of(session), *next = berth_executor__newest(base);
    if (base == session) {
        next = spare_of(base);
    } else {
        berth_session_options options = session->options;
        options.base = next;
        BERTH_TRY(berth_executor__open_plan(session->allocator, session->whole, next->plan,
                                            &options, &next));
        next->why = berth_status_clone(next->options.base->why);
    }
    pthread_mutex_lock(&session->lock);
    session->next = next;
    bool cancelled = session->cancelled;
    session->cancelled = false;
    pthread_mutex_unlock(&session->lock);
    if (cancelled) berth_session_cancel(next);
    return BERTH_OK;
}

// After a run that failed because a device is gone: BERTH_OK where it can be done again on another plan.
static berth_status take_over(berth_session *session, berth_status why) {
    const berth_program *plan = session->program;
    const berth_program_device *lost =
        session->lost_device == BERTH_NO_INDEX ? NULL : &plan->devices[session->lost_device];
    // Nothing of the old plan touches inputs and outputs any more, and the host has all bytes that it
    // shared, as far as a device that is gone can still give them back.
    berth_status_ignore(berth_session_recover(session));
    berth_executor__close_queues(session);
    BERTH_TRY(open_spare(base_of(session), lost, why));
    return join(session);
}

static bool may_take_over(const berth_session *session, berth_status status) {
    return berth_status_code(status) == BERTH_UNAVAILABLE && !session->options.first_plan_only &&
           session->plan < session->whole->fallback_count;
}

// Another session of the same base has noticed.
static berth_status follow(berth_session *session) {
    if (session->whole->fallback_count == 0 || session->next || !spare_of(base_of(session)))
        return BERTH_OK;
    return join(session);
}

// ---- running ------------------------------------------------------------------------------------

static int64_t left_of(int64_t start_ns, int64_t timeout_ns) {
    if (timeout_ns < 0) return timeout_ns;
    int64_t left_ns = berth_clock_deadline_ns(start_ns, timeout_ns) - berth_clock_ns();
    return left_ns > 0 ? left_ns : 0;
}

// What a run works on.
typedef struct run_buffers {
    bool own;  // the session's; else:
    const berth_tensor *inputs;
    const berth_tensor *outputs;
} run_buffers;

static berth_status run(berth_session *session, run_buffers on, int64_t timeout_ns) {
    int64_t start_ns = berth_clock_ns();
    BERTH_TRY(follow(session));
    berth_session *now = berth_executor__in_use(session);
    if (now != session) {
        if (on.own) on = (run_buffers){.inputs = session->inputs, .outputs = session->outputs};
        return run(now, on, left_of(start_ns, timeout_ns));
    }
    berth_status status =
        on.own ? berth_executor__run_once(session, timeout_ns)
               : berth_executor__run_with_once(session, on.inputs, on.outputs, timeout_ns);
    if (!may_take_over(session, status)) return status;
    BERTH_TRY(take_over(session, status));
    return run(session, on, left_of(start_ns, timeout_ns));
}

// Of sessions with one workspace, one at a time.
static berth_status run_in_turn(berth_session *session, run_buffers on, int64_t timeout_ns) {
    struct berth_turns *turns = session->options.turns;
    if (!turns) return run(session, on, timeout_ns);
    int64_t start_ns = berth_clock_ns();
    BERTH_TRY(berth_turns__begin(turns, session, timeout_ns));
    berth_status status = run(session, on, left_of(start_ns, timeout_ns));
    berth_turns__end(turns);
    return status;
}

berth_status berth_session_run(berth_session *session, int64_t timeout_ns) {
    return run_in_turn(session, (run_buffers){.own = true}, timeout_ns);
}

berth_status berth_session_run_with(berth_session *session, const berth_tensor *inputs,
                                    uint32_t input_count, const berth_tensor *outputs,
                                    uint32_t output_count, int64_t timeout_ns) {
    BERTH_TRY(berth_session_check_buffers(session, inputs, input_count, outputs, output_count));
    return run_in_turn(session, (run_buffers){.inputs = inputs, .outputs = outputs}, timeout_ns);
}

void berth_session_cancel(berth_session *session) {
    pthread_mutex_lock(&session->lock);
    berth_session *next = session->next;
    session->cancelled = !next;
    pthread_mutex_unlock(&session->lock);
    if (next)
        berth_session_cancel(next);
    else
        berth_executor__fail_timelines(session, "the run was cancelled");
}

uint32_t berth_session_plan(berth_session *session, const char **out_reason) {
    const berth_session *newest = berth_executor__newest(base_of(session));
    if (out_reason) *out_reason = berth_status_message(newest->why);
    return newest->plan;
}
