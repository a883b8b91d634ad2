#include "tests/cuda/emulation/launch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { most_threads = 1024, stack_bytes = 256 << 10 };

typedef struct fiber {
    ucontext_t context;
    bool ended;
} fiber;

enum { page_bytes = 4096 };

typedef struct runner {
    emulated_state state;  // first: what barriers get
    const emulated_launch *launch;
    ucontext_t scheduler;
    fiber *fibers;
    unsigned char *stacks;
    int current;  // the fiber that runs; -1 = called without one
    bool diverged;
} runner;

static _Thread_local runner *active;

static void fiber_main(void) {
    runner *r = active;
    r->launch->run(r->launch->arguments);
    r->fibers[r->current].ended = true;
    swapcontext(&r->fibers[r->current].context, &r->scheduler);
}

static void barrier(emulated_state *state) {
    runner *r = (runner *)state;
    if (r->current < 0) {  // others of the block went by without one
        r->diverged = true;
        return;
    }
    swapcontext(&r->fibers[r->current].context, &r->scheduler);
}

static int thread_count(const runner *r) {
    return (int)(r->launch->threads.x * r->launch->threads.y * r->launch->threads.z);
}

static void resume(runner *r, int thread) {
    emulated_place size = r->launch->threads;
    unsigned at = (unsigned)thread;
    r->state.thread = (emulated_place){at % size.x, at / size.x % size.y, at / size.x / size.y};
    r->current = thread;
    swapcontext(&r->scheduler, &r->fibers[thread].context);
}

static void start(runner *r, int thread) {
    fiber *f = &r->fibers[thread];
    f->ended = false;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = r->stacks + (size_t)thread * stack_bytes;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    resume(r, thread);
}

// The first thread tells whether the block has barriers; without any, the others are plain calls.
static void run_block(runner *r) {
    int count = thread_count(r);
    emulated_place size = r->launch->threads;
    start(r, 0);
    if (r->fibers[0].ended) {
        r->current = -1;
        for (int t = 1; t < count; ++t) {
            unsigned at = (unsigned)t;
            r->state.thread =
                (emulated_place){at % size.x, at / size.x % size.y, at / size.x / size.y};
            r->launch->run(r->launch->arguments);
        }
        return;
    }
    for (int t = 1; t < count; ++t) start(r, t);
    for (;;) {
        int ended = 0;
        for (int t = 0; t < count; ++t) ended += r->fibers[t].ended;
        if (ended == count) return;
        r->diverged |= ended != 0;
        if (r->diverged) return;
        for (int t = 0; t < count; ++t) resume(r, t);
    }
}

// What the launch gives of a block's memory begins at a multiple of 1024 bytes, as kernels declare it, and ends in front of
// a page that nobody may touch.
static bool give_shared(runner *r, unsigned char **out_pages, size_t *out_bytes) {
    size_t bytes = r->launch->shared_bytes,
           whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    *out_bytes = whole + page_bytes;
    *out_pages = mmap(NULL, *out_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*out_pages == MAP_FAILED) return false;
    r->state.shared = *out_pages + (whole - bytes) / 1024 * 1024;
    return mprotect(*out_pages + whole, page_bytes, PROT_NONE) == 0;
}

static void run_grid(runner *r) {
    emulated_place blocks = r->launch->blocks;
    for (unsigned z = 0; z < blocks.z; ++z)
        for (unsigned y = 0; y < blocks.y; ++y)
            for (unsigned x = 0; x < blocks.x && !r->diverged; ++x) {
                r->state.block = (emulated_place){x, y, z};
                memset(r->state.shared, 0xff, r->launch->shared_bytes);  // nobody has stored there
                run_block(r);
            }
}

bool emulated_run(const emulated_launch *launch) {
    runner r = {.launch = launch};
    r.state.threads = launch->threads;
    r.state.blocks = launch->blocks;
    r.state.barrier = barrier;
    r.fibers = calloc(most_threads, sizeof(fiber));
    void *stacks = mmap(NULL, (size_t)most_threads * stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *pages = NULL;
    size_t mapped_bytes = 0;
    bool ready = r.fibers && stacks != MAP_FAILED && thread_count(&r) <= most_threads &&
                 give_shared(&r, &pages, &mapped_bytes);
    r.stacks = stacks;
    runner *outer = active;
    active = &r;
    launch->enter(&r.state);
    if (ready) run_grid(&r);
    active = outer;
    if (stacks != MAP_FAILED) munmap(stacks, (size_t)most_threads * stack_bytes);
    if (pages && pages != MAP_FAILED) munmap(pages, mapped_bytes);
    free(r.fibers);
    return ready && !r.diverged;
}
