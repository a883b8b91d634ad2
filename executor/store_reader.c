#include "executor/store_reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/file.h"

enum { piece_bytes = 256 << 10, least_bytes = 4 * piece_bytes };

// What is read: size_bytes of a file from offset_bytes on, or at `memory` where that is not NULL.
typedef struct store_part {
    int fd;
    uint64_t offset_bytes;
    const char *memory;
    char *data;
    uint64_t size_bytes;
} store_part;

struct berth_store_reader {
    berth_allocator allocator;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    bool stop;
    bool taken;   // a read goes on
    bool wanted;  // the other thread may take part in it
    bool helps;   // it does
    berth_status status;
    store_part part;        // that is read now
    _Atomic uint64_t next;  // its first byte that nobody reads yet
};

static berth_status read_range(const store_part *part, uint64_t at, uint64_t size_bytes) {
    if (!part->memory)
        return berth_file_read_range(part->fd, part->offset_bytes + at, part->data + at,
                                     (size_t)size_bytes);
    memcpy(part->data + at, part->memory + at, (size_t)size_bytes);
    return BERTH_OK;
}

static berth_status read_pieces(berth_store_reader *r) {
    for (;;) {
        uint64_t at = atomic_fetch_add(&r->next, (uint64_t)piece_bytes);
        if (at >= r->part.size_bytes) return BERTH_OK;
        uint64_t left = r->part.size_bytes - at;
        BERTH_TRY(read_range(&r->part, at, left < piece_bytes ? left : piece_bytes));
    }
}

static void *help(void *user) {
    berth_store_reader *r = user;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        if (!r->wanted) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        r->wanted = false;
        r->helps = true;
        pthread_mutex_unlock(&r->lock);
        berth_status status = read_pieces(r);
        pthread_mutex_lock(&r->lock);
        r->helps = false;
        r->status = status;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

berth_status berth_store_reader_create(berth_allocator allocator, berth_store_reader **out_reader) {
    *out_reader = NULL;
    berth_store_reader *r = berth_alloc(allocator, sizeof(*r));
    if (!r) return berth_status_oom();
    *r = (berth_store_reader){.allocator = allocator};
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        berth_free(allocator, r, sizeof(*r));
        return berth_status_make(BERTH_OUT_OF_MEMORY, "the system gives no mutex");
    }
    pthread_cond_init(&r->changed, NULL);
    sigset_t all, before;  // signals are for the application's threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&r->thread, NULL, help, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        berth_free(allocator, r, sizeof(*r));
        return berth_status_make(BERTH_UNAVAILABLE, "a thread that reads constants: %s",
                                 strerror(error));
    }
    *out_reader = r;
    return BERTH_OK;
}

void berth_store_reader_destroy(berth_store_reader *r) {
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    berth_free(r->allocator, r, sizeof(*r));
}

static bool take(berth_store_reader *r, const store_part *part) {
    if (!r || part->size_bytes < least_bytes) return false;
    pthread_mutex_lock(&r->lock);
    bool taken = r->taken;
    if (!taken) {
        r->taken = r->wanted = true;
        r->part = *part;
        atomic_store(&r->next, 0);
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return !taken;
}

static berth_status read_part(berth_store_reader *r, const store_part *part) {
    if (!take(r, part)) return read_range(part, 0, part->size_bytes);
    berth_status status = read_pieces(r);
    pthread_mutex_lock(&r->lock);
    r->wanted = false;
    while (r->helps) pthread_cond_wait(&r->changed, &r->lock);
    berth_status other = r->status;
    r->status = BERTH_OK;
    r->taken = false;
    pthread_mutex_unlock(&r->lock);
    if (!status) return other;
    berth_status_ignore(other);
    return status;
}

berth_status berth_store_reader_read(berth_store_reader *r, int fd, uint64_t offset_bytes,
                                     void *data, uint64_t size_bytes) {
    return read_part(
        r, &(store_part){
               .fd = fd, .offset_bytes = offset_bytes, .data = data, .size_bytes = size_bytes});
}

void berth_store_reader_copy(berth_store_reader *r, const void *source, void *data,
                             uint64_t size_bytes) {
    berth_status_ignore(read_part(
        r, &(store_part){.fd = -1, .memory = source, .data = data, .size_bytes = size_bytes}));
}
