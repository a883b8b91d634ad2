// Signed programs: what one key signed opens with that key, and nothing else does.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/file.h"
#include "artifact/file_form.h"
#include "artifact/sign.h"
#include "base/file.h"
#include "tests/artifact/random_program.h"
#include "tests/check.h"

static berth_arena *arena;
static char folder[64];
static const char *key_path, *public_path, *program_path;

static const char *in_folder(const char *name) {
    return berth_arena_printf(arena, "%s/%s", folder, name);
}

static void setup(void) {
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    strcpy(folder, "/tmp/berth-sign-XXXXXX");
    cr_assert(mkdtemp(folder));
    key_path = in_folder("key");
    public_path = in_folder("key.pub");
    program_path = in_folder("program");
}

static void teardown(void) {
    static const char *const names[] = {"key", "key.pub", "other", "other.pub", "program"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) unlink(in_folder(names[i]));
    rmdir(folder);
    berth_arena_destroy(arena);
}

TestSuite(artifact_sign, .init = setup, .fini = teardown);

static void make_keys(const char *path, berth_secret_key *secret, berth_public_key *key) {
    assert_ok(berth_key_create(path));
    assert_ok(berth_secret_key_read(path, secret));
    assert_ok(berth_public_key_read(berth_arena_printf(arena, "%s.pub", path), key));
}

static berth_status open_signed(const berth_public_key *key) {
    const berth_program *program = NULL;
    berth_status status = berth_program_read_signed(arena, program_path, key, NULL, &program);
    cr_expect_eq(program == NULL, status != NULL);
    return status;
}

Test(artifact_sign, what_a_key_signed_opens_with_it) {
    berth_secret_key secret, other_secret;
    berth_public_key key, other;
    make_keys(key_path, &secret, &key);
    make_keys(in_folder("other"), &other_secret, &other);
    const berth_public_key derived = berth_secret_key_public(&secret);
    cr_expect_eq(memcmp(&key, &derived, sizeof(key)), 0);
    const berth_program *program = random_program(arena, 3);
    assert_ok(berth_program_write_signed(program, program_path, &secret));
    const berth_program *back = NULL;
    assert_ok(berth_program_read_signed(arena, program_path, &key, NULL, &back));
    cr_expect_null(program_difference(program, back));
    assert_fails(open_signed(&other), BERTH_INVALID_ARGUMENT, "another key");
    bool is_signed = false;
    berth_public_key signer;
    assert_ok(berth_program_file_signer(program_path, &is_signed, &signer));
    cr_expect(is_signed && memcmp(&signer, &key, sizeof(key)) == 0);
    // It is a program like any other where no signature is asked for.
    assert_ok(berth_program_read(arena, program_path, NULL, &back));
    assert_ok(berth_program_file_check(berth_allocator_system(), program_path, NULL));
    // Signed again with another key, and without one.
    assert_ok(berth_program_write_signed(program, program_path, &other_secret));
    assert_fails(open_signed(&key), BERTH_INVALID_ARGUMENT, "another key");
    assert_ok(berth_program_write(program, program_path));
    assert_fails(open_signed(&key), BERTH_INVALID_ARGUMENT, "no signature");
    assert_ok(berth_program_file_signer(program_path, &is_signed, &signer));
    cr_expect_not(is_signed);
}

// Any changed byte, with the checksums made right again, and any shorter or longer file.
Test(artifact_sign, every_change_is_noticed) {
    berth_secret_key secret;
    berth_public_key key;
    make_keys(key_path, &secret, &key);
    assert_ok(berth_program_write_signed(random_program(arena, 5), program_path, &secret));
    char *data = NULL;
    size_t size_bytes = 0;
    assert_ok(berth_file_read(arena, program_path, 1 << 24, &data, &size_bytes));
    for (size_t at = 0; at<size_bytes; at += at + 200> size_bytes ? 1 : 13) {
        data[at] ^= 0x20;
        FILE *file = fopen(program_path, "wb");  // not berth_file_write, which syncs
        cr_assert(file && fwrite(data, 1, size_bytes, file) == size_bytes && fclose(file) == 0);
        berth_status status = open_signed(&key);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "byte %zu of %zu", at,
                     size_bytes);
        berth_status_free(status);
        data[at] ^= 0x20;
    }
    for (size_t length = 0; length < size_bytes; length += 97) {
        FILE *file = fopen(program_path, "wb");
        cr_assert(file && fwrite(data, 1, length, file) == length && fclose(file) == 0);
        berth_status status = open_signed(&key);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "length %zu", length);
        berth_status_free(status);
    }
    char *longer = berth_arena_alloc(arena, size_bytes + 1);
    memcpy(longer, data, size_bytes);
    assert_ok(berth_file_write(program_path, longer, size_bytes + 1));
    berth_status status = open_signed(&key);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
    assert_ok(berth_file_write(program_path, data, size_bytes));
    assert_ok(open_signed(&key));
}

Test(artifact_sign, key_files) {
    berth_secret_key secret;
    berth_public_key key;
    struct stat info;
    make_keys(key_path, &secret, &key);
    cr_assert_eq(stat(key_path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);
    assert_fails(berth_key_create(key_path), BERTH_ALREADY_EXISTS, key_path);
    assert_fails(berth_public_key_read(key_path, &key), BERTH_INVALID_ARGUMENT,
                 "holds a secret key; the public one is wanted");
    assert_fails(berth_secret_key_read(public_path, &secret), BERTH_INVALID_ARGUMENT,
                 "the secret one is wanted");
    assert_fails(berth_public_key_read(in_folder("none"), &key), BERTH_NOT_FOUND, "none");
    assert_fails(berth_public_key_read(folder, &key), BERTH_IO, folder);
    cr_assert_eq(chmod(key_path, 0640), 0);
    assert_fails(berth_secret_key_read(key_path, &secret), BERTH_INVALID_ARGUMENT, "0600");
    static const char *const bad[] = {"", "berth public key 1: ", "berth public key 1: zz\n",
                                      "berth public key 2: 00\n", "hello\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        assert_ok(berth_file_write(public_path, bad[i], strlen(bad[i])));
        assert_fails(berth_public_key_read(public_path, &key), BERTH_INVALID_ARGUMENT,
                     "holds no public key");
    }
    // A pair is made whole or not at all.
    unlink(key_path);
    assert_fails(berth_key_create(key_path), BERTH_ALREADY_EXISTS, ".pub");
    cr_expect_not(berth_file_exists(key_path));
}
