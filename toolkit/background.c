#include "toolkit/background.h"

#include <pthread.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/atomics.h"

typedef struct work {
    struct work *next;
    void (*run)(void *job);
    void (*drop)(void *job);
    void *job;
} work;

struct berth_background {
    pthread_mutex_t lock;
    work *first, **last;  // that waits
    pthread_t thread;
    bool has_thread;  // it is to be joined; the owner's
    bool works;       // the thread has not seen that there is nothing left
    atomic_uint ends;
};

static void drop(work *w) {
    w->drop(w->job);
    berth_free(berth_allocator_system(), w, sizeof(*w));
}

// The next thing to do; NULL: there is none, and the thread ends.
static work *take(berth_background *b) {
    pthread_mutex_lock(&b->lock);
    work *w = b->first;
    if (w) b->first = w->next;
    if (!b->first) b->last = &b->first;
    b->works = w != NULL;
    pthread_mutex_unlock(&b->lock);
    return w;
}

// On Linux a thread has a priority of its own, which the compilers that it starts inherit.
static void lower_priority(void) {
#ifdef __linux__
    enum { background_nice = 10 };
    (void)setpriority(PRIO_PROCESS, 0, background_nice);
#endif
}

static void *thread_main(void *user) {
    berth_background *b = user;
    lower_priority();
    for (work *w; (w = take(b)) != NULL; drop(w))
        if (!berth_background_ends(b)) w->run(w->job);
    return NULL;
}

berth_status berth_background_create(berth_background **out_background) {
    berth_background *b = berth_calloc(berth_allocator_system(), 1, sizeof(*b));
    *out_background = b;
    if (!b) return berth_status_oom();
    pthread_mutex_init(&b->lock, NULL);
    b->last = &b->first;
    atomic_init(&b->ends, 0);
    return BERTH_OK;
}

void berth_background_wait(berth_background *background) {
    if (!background || !background->has_thread) return;
    pthread_join(background->thread, NULL);
    background->has_thread = false;
}

void berth_background_destroy(berth_background *background) {
    if (!background) return;
    atomic_store(&background->ends, 1);
    berth_background_wait(background);
    for (work *w; (w = take(background)) != NULL;) drop(w);  // of a thread that did not start
    pthread_mutex_destroy(&background->lock);
    berth_free(berth_allocator_system(), background, sizeof(*background));
}

bool berth_background_ends(const berth_background *background) {
    return atomic_load(&background->ends) != 0;
}

void berth_background_add(berth_background *background, void (*run)(void *job),
                          void (*drop_job)(void *job), void *job) {
    berth_background *b = background;
    work *w = berth_calloc(berth_allocator_system(), 1, sizeof(*w));
    if (!w) {
        drop_job(job);
        return;
    }
    *w = (work){.run = run, .drop = drop_job, .job = job};
    pthread_mutex_lock(&b->lock);
    *b->last = w;
    b->last = &w->next;
    const bool works = b->works;
    b->works = true;
    pthread_mutex_unlock(&b->lock);
    if (works) return;
    berth_background_wait(b);  // it has seen that there is nothing left
    b->has_thread = pthread_create(&b->thread, NULL, thread_main, b) == 0;
    if (b->has_thread) return;
    while ((w = take(b)) != NULL) drop(w);
}
