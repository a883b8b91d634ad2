#include "toolkit/vm_prepare.h"

#include <pthread.h>
#include <string.h>

#include "compiler/kernels/generic_kernels.h"
#include "toolkit/background.h"
#include "toolkit/vm_probe.h"

// What is known of a segment that is compiled for several sizes.
typedef struct general_segment {
    uint32_t compilations;  // 2 = or more
    uint64_t moving;        // symbols that can have other extents, as berth_vm_probe_what.symbols
} general_segment;

struct berth_vm_prepare {
    const berth_module *module;
    pthread_mutex_t module_lock;
    general_segment *general;  // per segment
    uint32_t general_count;
    berth_background *background;
};

// What other shapes are asked for; in the background all of it is the job's own.
typedef struct asking {
    berth_vm_prepare *prepare;
    berth_arena *arena;
    uint32_t index;
    berth_vm_segment segment;
    const char *name;
    berth_tensor *inputs;  // without data
    berth_vm_symbols symbols;
    berth_compile_options options;
    uint64_t moving;
    const berth_vm_prepare_what *what;  // while it is made
} asking;

// ---- one other shape ----------------------------------------------------------------------------

typedef struct probe_job {
    const asking *asked;
    berth_vm_probe_what what;
    berth_arena *arena;    // of the compiler
    berth_module *module;  // NULL: there is no such shape
} probe_job;

static berth_status make_probe(void *user) {
    probe_job *job = user;
    const asking *a = job->asked;
    const berth_module *module = a->prepare->module;
    const berth_tensor *inputs =
        berth_vm_probe(module, &a->segment, a->inputs, &a->symbols, &job->what, job->arena);
    if (inputs)
        job->module = berth_vm_segment_module(module, &a->segment, a->name, inputs, job->arena);
    return BERTH_OK;
}

// Compiles for another shape, or only asks for the numbers of its kernels. What it would be is only asked: where
// the model does not allow it, it is left out. False: it was.
static bool try_other(const asking *a, berth_vm_probe_what what, bool only_numbers) {
    probe_job job = {.asked = a, .what = what};
    berth_compile_options options = a->options;
    berth_compile_result none;
    options.note_sizes = only_numbers;
    berth_status status = berth_arena_create(berth_allocator_system(), &job.arena);
    if (!status) {
        berth_vm_prepare_lock(a->prepare);
        status = berth_arena_try(job.arena, make_probe, &job);
        berth_vm_prepare_unlock(a->prepare);
        if (!status && job.module) status = berth_compile(job.module, &options, &none);
        berth_arena_destroy(job.arena);
    }
    bool was = !status && job.module;
    berth_status_ignore(status);
    return was;
}

// Asks for the numbers of kernels for one other shape. True: some of its kernels have a form that none had.
static bool note_other(const asking *a, berth_vm_probe_what what) {
    berth_generic_report before, after;
    berth_generic_kernels_get_report(a->options.generic_kernels, &before);
    (void)try_other(a, what, true);
    berth_generic_kernels_get_report(a->options.generic_kernels, &after);
    return after.noted_form_count > before.noted_form_count;
}

// ---- all of them --------------------------------------------------------------------------------

// Of all other shapes together: the larger a segment, the longer the compiler's passes take for each.
enum { most_asked_ops = 20000 };

static uint32_t probe_count(const asking *a, uint32_t wanted) {
    const uint32_t ops = a->segment.op_count;
    if (ops <= most_asked_ops / wanted) return wanted;
    return ops < most_asked_ops ? most_asked_ops / ops : 1;
}

static bool ends(const asking *a) {
    return berth_interrupt_pending(a->options.interrupt);
}

// A model may name dimensions that it has only one extent for.
static void find_moving(asking *a) {
    for (uint32_t i = 0; i < BERTH_VM_PROBE_SYMBOLS && i < a->symbols.count; ++i) {
        berth_vm_probe_what what = {.symbols = UINT64_C(1) << i};
        if (try_other(a, what, true)) a->moving |= what.symbols;
    }
}

static void note_first(const asking *a) {
    berth_vm_probe_what what = {.symbols = a->moving};
    const uint32_t count = probe_count(a, BERTH_VM_FIRST_PROBES);
    for (what.which = 0; what.which < count; ++what.which) {
        what.is_sibling = false;
        (void)note_other(a, what);
        what.is_sibling = true;
        (void)try_other(a, what, true);
    }
}

// Kernels of the forms that others need.
static void compile_others(void *user) {
    const asking *a = user;
    berth_vm_probe_what what = {.symbols = a->moving};
    bool is_wanted[BERTH_VM_PROBES] = {false};
    const uint32_t count = probe_count(a, BERTH_VM_PROBES);
    for (what.which = 0; what.which < count && !ends(a); ++what.which) {
        what.is_sibling = false;
        bool is_new = note_other(a, what);
        what.is_sibling = true;
        is_wanted[what.which] = note_other(a, what) || is_new;
    }
    what.is_sibling = false;
    for (what.which = 0; what.which < count && !ends(a); ++what.which)
        if (is_wanted[what.which]) (void)try_other(a, what, false);
}

// ---- what is asked ------------------------------------------------------------------------------

static bool background_ends(void *state) {
    return berth_background_ends(state);
}

static berth_status fill(void *user) {
    asking *a = user;
    const berth_vm_prepare_what *what = a->what;
    const uint32_t count = what->segment->input_count;
    a->index = what->index;
    a->segment = *what->segment;
    a->name = berth_arena_strdup(a->arena, what->name);
    a->inputs = berth_arena_new_array(a->arena, berth_tensor, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        a->inputs[i] = what->inputs[i];
        a->inputs[i].data = NULL;
    }
    a->symbols = berth_vm_symbols_of(a->prepare->module, what->run_inputs, a->arena);
    a->options = *what->options;
    a->options.log = (berth_log){0};
    return BERTH_OK;
}

static void drop(void *user) {
    asking *a = user;
    berth_arena_destroy(a->arena);
    berth_free(berth_allocator_system(), a, sizeof(*a));
}

// NULL without memory.
static asking *make(berth_vm_prepare *prepare, const berth_vm_prepare_what *what) {
    asking *a = berth_calloc(berth_allocator_system(), 1, sizeof(*a));
    if (!a) return NULL;
    a->prepare = prepare;
    a->what = what;
    berth_status status = berth_arena_create(berth_allocator_system(), &a->arena);
    if (!status) status = berth_arena_try(a->arena, fill, a);
    if (!status) return a;
    berth_status_ignore(status);
    drop(a);
    return NULL;
}

// Packed constants are the session's, and one thread's: in the background they are packed again, for nobody.
static void set_background(asking *a) {
    a->options.packed_store = NULL;
    a->options.jobs = 1;
    a->options.interrupt =
        (berth_interrupt){.pending = background_ends, .state = a->prepare->background};
}

// Without memory for the list: NULL.
static general_segment *general_at(berth_vm_prepare *p, uint32_t segment) {
    if (segment >= p->general_count) {
        uint32_t count = 2 * segment + 16;
        general_segment *grown = berth_calloc(berth_allocator_system(), count, sizeof(*grown));
        if (!grown) return NULL;
        if (p->general_count) memcpy(grown, p->general, p->general_count * sizeof(*grown));
        berth_free(berth_allocator_system(), p->general, p->general_count * sizeof(*p->general));
        p->general = grown;
        p->general_count = count;
    }
    return &p->general[segment];
}

// The first kernels of a segment for several sizes are preceded by the question which numbers change. With the
// second, shapes are seen to come that nobody foresees: kernels of the forms that others need are compiled.
void berth_vm_prepare_for(berth_vm_prepare *prepare, const berth_vm_prepare_what *what) {
    general_segment *general = general_at(prepare, what->index);
    if (!general || general->compilations == 2) return;
    bool is_first = general->compilations++ == 0;
    if (!is_first && !general->moving) return;
    asking *a = make(prepare, what);
    if (!a) return;
    a->moving = general->moving;
    if (is_first) {
        find_moving(a);
        general->moving = a->moving;
        if (a->moving) note_first(a);
    } else if (what->at_once) {
        compile_others(a);
    } else {
        set_background(a);
        berth_background_add(prepare->background, compile_others, drop, a);
        return;
    }
    drop(a);
}

// ---- lifetime -----------------------------------------------------------------------------------

berth_status berth_vm_prepare_open(const berth_module *module, berth_vm_prepare **out_prepare) {
    berth_vm_prepare *p = berth_calloc(berth_allocator_system(), 1, sizeof(*p));
    *out_prepare = NULL;
    if (!p) return berth_status_oom();
    p->module = module;
    berth_status status = berth_background_create(&p->background);
    if (status) {
        berth_free(berth_allocator_system(), p, sizeof(*p));
        return status;
    }
    pthread_mutex_init(&p->module_lock, NULL);
    *out_prepare = p;
    return BERTH_OK;
}

void berth_vm_prepare_close(berth_vm_prepare *prepare) {
    if (!prepare) return;
    berth_background_destroy(prepare->background);
    pthread_mutex_destroy(&prepare->module_lock);
    berth_free(berth_allocator_system(), prepare->general,
               prepare->general_count * sizeof(*prepare->general));
    berth_free(berth_allocator_system(), prepare, sizeof(*prepare));
}

void berth_vm_prepare_lock(berth_vm_prepare *prepare) {
    pthread_mutex_lock(&prepare->module_lock);
}

void berth_vm_prepare_unlock(berth_vm_prepare *prepare) {
    pthread_mutex_unlock(&prepare->module_lock);
}

void berth_vm_prepare_wait(berth_vm_prepare *prepare) {
    berth_background_wait(prepare->background);
}
