// Reads by two threads: every byte of any part of a file or of memory, from several callers at once; a file that
// is too short.
#include "executor/store_reader.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

enum { file_bytes = (9 << 20) + 12345, most_reads = 40 };

typedef struct fixture {
    berth_store_reader *reader;
    int fd;
} fixture;

// No two pieces of 256 KiB are alike.
static uint32_t word_at(uint64_t i) {
    return (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 13);
}

static fixture make(void) {
    fixture f;
    char path[] = "/tmp/berth-store-XXXXXX";
    uint32_t *words = malloc(file_bytes + sizeof(uint32_t));
    for (uint64_t i = 0; i * sizeof(*words) < file_bytes; ++i) words[i] = word_at(i);
    f.fd = mkstemp(path);
    cr_assert_geq(f.fd, 0);
    unlink(path);
    cr_assert_eq(write(f.fd, words, file_bytes), file_bytes);
    free(words);
    assert_ok(berth_store_reader_create(berth_allocator_system(), &f.reader));
    return f;
}

static void drop(fixture *f) {
    berth_store_reader_destroy(f->reader);
    close(f->fd);
}

// Parts that begin and end at words, from 4 bytes to nearly all.
static void *read_parts(void *user) {
    fixture *f = user;
    uint32_t *words = malloc(file_bytes);
    uint64_t state = (uint64_t)(uintptr_t)words;
    for (int i = 0; i < most_reads; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t first = (state >> 33) % (file_bytes / 4 - 1);
        uint64_t count = 1 + (state >> 20) % (file_bytes / 4 - first);
        memset(words, 0xa5, file_bytes);
        assert_ok(berth_store_reader_read(f->reader, f->fd, first * 4, words, count * 4));
        uint64_t wrong = 0;
        for (uint64_t k = 0; k < count; ++k) wrong += words[k] != word_at(first + k);
        cr_expect_eq(wrong, 0, "%llu of %llu words from %llu on", (unsigned long long)wrong,
                     (unsigned long long)count, (unsigned long long)first);
    }
    free(words);
    return NULL;
}

Test(store_reader, reads_every_byte_for_several_threads, .timeout = 120) {
    fixture f = make();
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) cr_assert_eq(pthread_create(&threads[i], NULL, read_parts, &f), 0);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    drop(&f);
}

Test(store_reader, says_where_a_file_is_too_short, .timeout = 60) {
    fixture f = make();
    char *bytes = malloc(file_bytes);
    for (int i = 0; i < 20; ++i) {
        berth_status status = berth_store_reader_read(f.reader, f.fd, 1 << 20, bytes, file_bytes);
        cr_expect_eq(berth_status_code(status), BERTH_IO);
        berth_status_ignore(status);
        // What failed leaves nothing behind.
        assert_ok(berth_store_reader_read(f.reader, f.fd, 0, bytes, file_bytes));
    }
    free(bytes);
    drop(&f);
}

Test(store_reader, one_thread_reads_alone_without_a_reader) {
    fixture f = make();
    uint32_t *words = malloc(2 << 20);
    assert_ok(berth_store_reader_read(NULL, f.fd, 4096, words, 2 << 20));
    cr_expect_eq(words[5], word_at(1024 + 5));
    free(words);
    drop(&f);
}

Test(store_reader, copies_from_memory) {
    fixture f = make();
    uint32_t *from = malloc(file_bytes), *to = malloc(file_bytes + sizeof(*to));
    uint64_t count = file_bytes / sizeof(*from);
    for (uint64_t i = 0; i < count; ++i) from[i] = word_at(i);
    for (int i = 0; i < 20; ++i) {  // large and small, with two threads and with one
        uint64_t words = i % 2 ? 1000 + (uint64_t)i : count - (uint64_t)i;
        memset(to, 0xa5, file_bytes + sizeof(*to));
        berth_store_reader_copy(i % 4 < 2 ? f.reader : NULL, from + i, to, words * sizeof(*to));
        cr_expect_eq(memcmp(to, from + i, words * sizeof(*to)), 0, "copy %d", i);
        cr_expect_eq(to[words], 0xa5a5a5a5, "copy %d writes past its end", i);
    }
    free(from);
    free(to);
    drop(&f);
}
