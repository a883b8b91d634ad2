#include "compiler/kernels/generic_kernels.h"

#include <pthread.h>
#include <string.h>

#include "base/str.h"
#include "compiler/codegen/template.h"

struct berth_generic_kernel {
    berth_generic_kernel *next;  // of its bucket
    berth_hash128 key;           // scope, name, target, form
    berth_hash128 like;          // target, form
    berth_template held;
    berth_template_arguments arguments;
    const char *prefix;
    const char *source;  // (optional)
    const berth_executable_image *image;
};

// Numbers of a function for sizes that have not come yet.
typedef struct noted_numbers {
    struct noted_numbers *next;
    berth_hash128 key;  // as of a kernel
    berth_template held;
} noted_numbers;

// A use of a kernel that was found: the same function needs no printing to find it again.
typedef struct known_use {
    berth_hash128 key;  // {0, 0} = a free place
    berth_generic_kernel *kernel;
    berth_codegen_result code;
} known_use;

// A power of two, of which three quarters are filled at most: a decoder's functions of fixed sizes are
// some hundreds. Uses with sizes as arguments are of one size each, of which there may be ever new ones:
// fewer of them are kept.
enum { most_uses = 4096, most_sized_uses = 512, bucket_count = 256 };

struct berth_generic_kernels {
    berth_allocator allocator;
    pthread_mutex_t lock;  // of all below, but kernels that are found never change
    berth_arena *arena;
    berth_generic_kernel *buckets[bucket_count];  // by what they are like; the newest first
    noted_numbers *noted;
    known_use *uses;  // most_uses, by hash; NULL = none yet
    uint32_t use_count;
    uint32_t sized_use_count;
    bool prefers_general;
    bool is_exact;
    berth_generic_report report;
};

// ---- lifetime -----------------------------------------------------------------------------------

berth_status berth_generic_kernels_create(berth_allocator allocator,
                                          berth_generic_kernels **out_kernels) {
    *out_kernels = NULL;
    berth_generic_kernels *made = berth_calloc(allocator, 1, sizeof(*made));
    if (!made) return berth_status_oom();
    made->allocator = allocator;
    berth_status status = berth_arena_create(allocator, &made->arena);
    if (status) {
        berth_free(allocator, made, sizeof(*made));
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *out_kernels = made;
    return BERTH_OK;
}

void berth_generic_kernels_destroy(berth_generic_kernels *kernels) {
    if (!kernels) return;
    pthread_mutex_destroy(&kernels->lock);
    berth_arena_destroy(kernels->arena);
    berth_free(kernels->allocator, kernels, sizeof(*kernels));
}

void berth_generic_kernels_get_report(berth_generic_kernels *kernels,
                                      berth_generic_report *out_report) {
    pthread_mutex_lock(&kernels->lock);
    *out_report = kernels->report;
    out_report->held_bytes = berth_arena_used_bytes(kernels->arena);
    pthread_mutex_unlock(&kernels->lock);
}

// body(user) with the kernels locked; memory of `arena` that runs out fails as it does without.
static void with_lock(berth_generic_kernels *kernels, berth_arena *arena,
                      berth_status (*body)(void *user), void *user) {
    pthread_mutex_lock(&kernels->lock);
    berth_status status = berth_arena_try(arena, body, user);
    pthread_mutex_unlock(&kernels->lock);
    if (!status) return;
    berth_status_ignore(status);
    berth_arena_fail(arena);
}

void berth_generic_kernels_prefer_general(berth_generic_kernels *kernels) {
    kernels->prefers_general = true;
}

void berth_generic_kernels_stay_exact(berth_generic_kernels *kernels) {
    kernels->is_exact = true;
}

bool berth_generic_kernels_serve(const berth_generic_kernels *kernels,
                                 const berth_codegen *codegen) {
    return kernels && codegen->print_template && (!kernels->is_exact || codegen->compiles);
}

// ---- uses that are known ------------------------------------------------------------------------

static berth_hash128 use_key(const berth_generic_key *key) {
    struct {
        uint64_t scope, ordinal;
        berth_hash128 name, target, function;
    } all = {key->scope, key->ordinal, berth_hash128_of(key->name, strlen(key->name)),
             key->target->hash, key->function};
    return berth_hash128_of(&all, sizeof(all));
}

// The use, or the free place for it.
static known_use *find_use(berth_generic_kernels *kernels, berth_hash128 key) {
    static const berth_hash128 none = {0};
    for (uint64_t at = key.low;; ++at) {
        known_use *use = &kernels->uses[at % most_uses];
        if (berth_hash128_equal(use->key, key) || berth_hash128_equal(use->key, none)) return use;
    }
}

static berth_codegen_result copy_code(const berth_codegen_result *code, berth_arena *arena) {
    berth_codegen_result copy = *code;
    berth_kernel_source *list =
        berth_arena_copy(arena, code->kernels, code->kernel_count * sizeof(*list));
    for (uint32_t i = 0; i < code->kernel_count; ++i) {
        berth_kernel_source *k = &list[i];
        k->entry = berth_arena_strdup(arena, k->entry);
        k->buffers = berth_arena_copy(arena, k->buffers, k->buffer_count * sizeof(*k->buffers));
        k->written = berth_arena_copy(arena, k->written, k->buffer_count * sizeof(*k->written));
        k->bindings = berth_arena_copy(arena, k->bindings, k->buffer_count * sizeof(*k->bindings));
        k->constants =
            berth_arena_copy(arena, k->constants, k->constant_count * sizeof(*k->constants));
    }
    copy.kernels = list;
    return copy;
}

typedef struct use_job {
    berth_generic_kernels *kernels;
    berth_hash128 key;
    berth_generic_kernel *kernel;
    const berth_codegen_result *code;
} use_job;

static berth_status add_use(void *user) {
    use_job *job = user;
    berth_generic_kernels *kernels = job->kernels;
    if (!kernels->uses) kernels->uses = berth_arena_new_array(kernels->arena, known_use, most_uses);
    known_use made = {job->key, job->kernel, copy_code(job->code, kernels->arena)};
    known_use *place = find_use(kernels, job->key);
    bool is_new = memcmp(&place->key, &made.key, sizeof(made.key)) != 0;
    kernels->use_count += is_new;
    kernels->sized_use_count += is_new && made.kernel->arguments.count > 0;
    *place = made;
    return BERTH_OK;
}

// Without memory for it, the function is printed the next time.
static void know_use(berth_generic_kernels *kernels, const berth_generic_key *key,
                     berth_generic_kernel *kernel, const berth_codegen_result *code) {
    if (kernels->use_count >= most_uses / 4 * 3 ||
        (kernel->arguments.count > 0 && kernels->sized_use_count >= most_sized_uses))
        return;
    use_job job = {kernels, use_key(key), kernel, code};
    berth_status_ignore(berth_arena_try(kernels->arena, add_use, &job));
}

typedef struct call {
    berth_generic_kernels *kernels;
    const berth_generic_key *key;
    const char *source;
    berth_arena *arena;
    berth_codegen_result *code;
    berth_generic_kernel **out_kernel;
    bool found;
    berth_status status;
} call;

static berth_status recall(void *user) {
    call *c = user;
    berth_generic_kernels *kernels = c->kernels;
    known_use *use =
        kernels->uses && !kernels->prefers_general ? find_use(kernels, use_key(c->key)) : NULL;
    c->found = use && use->kernel;
    if (!c->found) return BERTH_OK;
    *c->code = copy_code(&use->code, c->arena);
    *c->out_kernel = use->kernel;
    kernels->report.reused_count++;
    return BERTH_OK;
}

bool berth_generic_kernels_recall(berth_generic_kernels *kernels, const berth_generic_key *key,
                                  berth_arena *arena, berth_codegen_result *out_code,
                                  berth_generic_kernel **out_kernel) {
    call c = {
        .kernels = kernels, .key = key, .arena = arena, .code = out_code, .out_kernel = out_kernel};
    with_lock(kernels, arena, recall, &c);
    return c.found;
}

// ---- finding ------------------------------------------------------------------------------------

static berth_generic_kernel **bucket_of(berth_generic_kernels *kernels, berth_hash128 like) {
    return &kernels->buckets[like.low % bucket_count];
}

static berth_hash128 like_of(const berth_generic_key *key, const berth_template *wanted) {
    berth_hash128 both[2] = {key->target->hash, wanted->form};
    return berth_hash128_of(both, sizeof(both));
}

static berth_hash128 key_of(const berth_generic_key *key, berth_hash128 like, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add_n(&text, (const char *)&key->scope, sizeof(key->scope));
    berth_strbuf_add_n(&text, (const char *)&key->ordinal, sizeof(key->ordinal));
    berth_strbuf_add_n(&text, (const char *)&like, sizeof(like));
    berth_strbuf_add(&text, key->name);
    return berth_hash128_of(text.data, text.length);
}

static void set_entries(berth_codegen_result *code, const char *prefix, const int64_t *values,
                        uint32_t value_count, berth_arena *arena) {
    berth_kernel_source *kernels =
        berth_arena_copy(arena, code->kernels, code->kernel_count * sizeof(*kernels));
    for (uint32_t i = 0; i < code->kernel_count; ++i) {
        kernels[i].entry = berth_arena_printf(arena, "%s_%u", prefix, i);
        kernels[i].constants = values;
        kernels[i].constant_count = value_count;
    }
    code->kernels = kernels;
}

typedef struct note_job {
    berth_generic_kernels *kernels;
    berth_hash128 key;
    const berth_template *noted;
} note_job;

static berth_status add_noted(void *user) {
    note_job *job = user;
    berth_arena *arena = job->kernels->arena;
    noted_numbers *made = berth_arena_new(arena, noted_numbers);
    made->key = job->key;
    made->held = *job->noted;
    made->held.text = NULL;  // the form says it
    made->held.numbers = berth_arena_copy(arena, job->noted->numbers,
                                          (job->noted->number_count + 1) * sizeof(int64_t));
    made->held.hints = NULL;
    made->next = job->kernels->noted;
    job->kernels->noted = made;
    return BERTH_OK;
}

// Whether a kernel has this form, or the function was noted in it.
static bool has_form(const berth_generic_kernels *kernels, berth_hash128 form, berth_hash128 key) {
    for (const noted_numbers *n = kernels->noted; n; n = n->next)
        if (berth_hash128_equal(n->key, key)) return true;
    for (const berth_generic_kernel *k = kernels->buckets[form.low % bucket_count]; k; k = k->next)
        if (berth_hash128_equal(k->like, form)) return true;
    return false;
}

static berth_status note(void *user) {
    call *c = user;
    berth_generic_kernels *kernels = c->kernels;
    berth_template noted;
    berth_template_read(c->source, c->arena, &noted);
    berth_hash128 form = like_of(c->key, &noted);
    note_job job = {kernels, key_of(c->key, form, c->arena), &noted};
    kernels->report.noted_form_count += !has_form(kernels, form, job.key);
    c->status = berth_arena_try(kernels->arena, add_noted, &job);
    return BERTH_OK;
}

berth_status berth_generic_kernels_note(berth_generic_kernels *kernels,
                                        const berth_generic_key *key, const char *source,
                                        berth_arena *arena) {
    call c = {.kernels = kernels, .key = key, .source = source, .arena = arena};
    with_lock(kernels, arena, note, &c);
    return c.status;
}

// Of the function, and of what its text has in place of each number: kernels for other sizes may be in one image with it.
static const char *prefix_of(const berth_generic_kernel *made, berth_arena *arena) {
    const uint32_t count = made->held.number_count;
    berth_strbuf text = berth_strbuf_make(arena);
    char hex[33];
    berth_strbuf_add_n(&text, (const char *)&made->key, sizeof(made->key));
    for (uint32_t i = 0; i < count; ++i) {
        const int64_t of = made->arguments.of[i];
        const int64_t both[2] = {of, of == BERTH_TEMPLATE_FIXED ? made->held.numbers[i] : 0};
        berth_strbuf_add_n(&text, (const char *)both, sizeof(both));
    }
    berth_hash128_hex(berth_hash128_of(text.data, text.length), hex);
    return berth_arena_printf(arena, "k%.16s", hex);
}

// A kernel for what no kept one serves. `like`: the newest of the same function and form, or NULL.
static berth_generic_kernel *make(const berth_generic_kernels *kernels, berth_hash128 hash,
                                  berth_hash128 form, const berth_template *wanted,
                                  const berth_generic_kernel *like, berth_arena *arena) {
    berth_generic_kernel *made = berth_arena_new(arena, berth_generic_kernel);
    if (kernels->is_exact) like = NULL;
    made->key = hash;
    made->like = form;
    made->held = *wanted;
    made->arguments = berth_template_join(like ? &like->held : wanted,
                                          like ? &like->arguments : NULL, wanted, arena);
    for (const noted_numbers *n = kernels->noted; n; n = n->next)
        if (berth_hash128_equal(n->key, hash))
            made->arguments = berth_template_join(wanted, &made->arguments, &n->held, arena);
    made->prefix = prefix_of(made, arena);
    return made;
}

static berth_status find(void *user) {
    const call *c = user;
    berth_generic_kernels *kernels = c->kernels;
    const berth_generic_key *key = c->key;
    berth_arena *arena = c->arena;
    berth_codegen_result *code = c->code;
    berth_template wanted;
    berth_template_read(code->source, arena, &wanted);
    berth_hash128 form = like_of(key, &wanted);
    berth_hash128 hash = key_of(key, form, arena);
    int64_t *values = berth_arena_new_array(arena, int64_t, wanted.number_count + 1);
    const berth_generic_kernel *like = NULL;
    berth_generic_kernel *found = NULL, *other = NULL;
    for (berth_generic_kernel *k = *bucket_of(kernels, form); k; k = k->next) {
        if (!berth_hash128_equal(k->like, form)) continue;
        bool is_own = berth_hash128_equal(k->key, hash);
        if (is_own && !like) like = k;
        if (!berth_template_fits(&k->held, &k->arguments, &wanted, values)) continue;
        berth_generic_kernel **best = is_own ? &found : &other;
        bool is_better =
            !*best || (kernels->prefers_general ? k->arguments.count > (*best)->arguments.count
                                                : k->arguments.count < (*best)->arguments.count);
        if (is_better) *best = k;
    }
    berth_generic_kernel *own = found ? NULL : make(kernels, hash, form, &wanted, like, arena);
    // That of another function does where it has as few arguments as its own would, or is of an equal layer.
    if (!found && other && (like || other->arguments.count <= own->arguments.count)) found = other;
    if (found) {
        (void)berth_template_fits(&found->held, &found->arguments, &wanted, values);
        code->source = NULL;
        kernels->report.reused_count++;
    } else {
        found = own;
        (void)berth_template_fits(&found->held, &found->arguments, &wanted, values);
        code->source =
            berth_template_text(&wanted, &found->arguments, key->codegen, found->prefix, arena);
    }
    set_entries(code, found->prefix, values, found->arguments.count, arena);
    if (found->image) know_use(kernels, key, found, code);
    *c->out_kernel = found;
    return BERTH_OK;
}

void berth_generic_kernels_find(berth_generic_kernels *kernels, const berth_generic_key *key,
                                berth_arena *arena, berth_codegen_result *code,
                                berth_generic_kernel **out_kernel) {
    call c = {
        .kernels = kernels, .key = key, .arena = arena, .code = code, .out_kernel = out_kernel};
    with_lock(kernels, arena, find, &c);
}

// ---- keeping ------------------------------------------------------------------------------------

const berth_executable_image *berth_generic_kernel_image(const berth_generic_kernel *kernel) {
    return kernel->image;
}

const char *berth_generic_kernel_source(const berth_generic_kernel *kernel) {
    return kernel->source;
}

typedef struct keep_job {
    berth_generic_kernels *kernels;
    berth_generic_kernel **made;
    const char *const *sources;
    uint32_t count;
    const berth_executable_image *image;
    bool own_bytes;
} keep_job;

static void keep_one(berth_generic_kernels *kernels, berth_generic_kernel *made, const char *source,
                     const berth_executable_image *image) {
    berth_arena *arena = kernels->arena;
    const berth_template *held = &made->held;
    berth_generic_kernel *kept = berth_arena_new(arena, berth_generic_kernel);
    *kept = *made;
    kept->held.text = NULL;  // the form says it
    kept->held.hints = NULL;
    kept->held.numbers =
        berth_arena_copy(arena, held->numbers, (held->number_count + 1) * sizeof(int64_t));
    kept->arguments.of =
        berth_arena_copy(arena, made->arguments.of, (held->number_count + 1) * sizeof(uint32_t));
    kept->prefix = berth_arena_strdup(arena, made->prefix);
    kept->source = source ? berth_arena_strdup(arena, source) : NULL;
    kept->image = made->image = image;
    berth_generic_kernel **bucket = bucket_of(kernels, kept->like);
    kept->next = *bucket;
    *bucket = kept;
    if (kept->arguments.count)
        kernels->report.generic_count++;
    else
        kernels->report.exact_count++;
}

static berth_status run_keep(void *user) {
    keep_job *job = user;
    berth_arena *arena = job->kernels->arena;
    berth_executable_image *image = berth_arena_copy(arena, job->image, sizeof(*image));
    image->device_kind = berth_arena_strdup(arena, image->device_kind);
    image->format = berth_arena_strdup(arena, image->format);
    image->options = berth_arena_strdup(arena, image->options);
    if (job->own_bytes) image->data = berth_arena_copy(arena, image->data, image->size_bytes);
    image->external = "";
    for (uint32_t i = 0; i < job->count; ++i)
        keep_one(job->kernels, job->made[i], job->sources[i], image);
    return BERTH_OK;
}

berth_status berth_generic_kernels_keep(berth_generic_kernels *kernels, berth_generic_kernel **made,
                                        const char *const *sources, uint32_t count,
                                        const berth_executable_image *image, bool own_bytes) {
    keep_job job = {kernels, made, sources, count, image, own_bytes};
    pthread_mutex_lock(&kernels->lock);
    berth_status status = berth_arena_try(kernels->arena, run_keep, &job);
    pthread_mutex_unlock(&kernels->lock);
    return status;
}
