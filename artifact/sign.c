#include "artifact/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/file_form.h"
#include "base/file.h"

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

_Static_assert(sizeof(berth_public_key) == crypto_sign_PUBLICKEYBYTES &&
                   sizeof(berth_secret_key) == crypto_sign_SECRETKEYBYTES &&
                   sizeof(((berth_file_signature *)0)->signature) == crypto_sign_BYTES,
               "sizes of Ed25519");

static const char secret_prefix[] = "berth secret key 1: ";
static const char public_prefix[] = "berth public key 1: ";
enum { key_file_limit = 256 };

static berth_status start(void) {
    if (sodium_init() >= 0) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "libsodium does not start on this machine");
}

// ---- key files ----------------------------------------------------------------------------------

// Writes a file that is not there yet.
static berth_status write_new(const char *path, mode_t mode, const char *prefix,
                              const uint8_t *bytes, size_t count) {
    char text[key_file_limit];
    size_t length = strlen(prefix);
    memcpy(text, prefix, length);
    sodium_bin2hex(text + length, sizeof(text) - length, bytes, count);
    length += 2 * count;
    text[length++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    berth_status status = BERTH_OK;
    if (fd < 0) {
        status = berth_status_make(errno == EEXIST ? BERTH_ALREADY_EXISTS : BERTH_IO,
                                   "cannot make \"%s\": %s", path, strerror(errno));
    } else {
        berth_file_part part = {text, length};
        status = berth_file_write_fd(fd, path, &part, 1);
        if (close(fd) != 0 && !status)
            status = berth_status_make(BERTH_IO, "cannot write \"%s\": %s", path, strerror(errno));
        if (status) unlink(path);
    }
    sodium_memzero(text, sizeof(text));
    return status;
}

static berth_status write_pair(const char *path, const char *public_path) {
    berth_secret_key secret;
    berth_public_key key;
    if (crypto_sign_keypair(key.bytes, secret.bytes) != 0)
        return berth_status_make(BERTH_UNAVAILABLE, "libsodium made no key");
    berth_status status = write_new(path, 0600, secret_prefix, secret.bytes, sizeof(secret.bytes));
    berth_secret_key_forget(&secret);
    if (status) return status;
    status = write_new(public_path, 0644, public_prefix, key.bytes, sizeof(key.bytes));
    if (status) unlink(path);
    return status;
}

berth_status berth_key_create(const char *path) {
    BERTH_TRY(start());
    size_t bytes = strlen(path) + sizeof(".pub");
    char *public_path = malloc(bytes);
    if (!public_path) return berth_status_oom();
    snprintf(public_path, bytes, "%s.pub", path);
    berth_status status = write_pair(path, public_path);
    free(public_path);
    return status;
}

// The key in the text of a key file.
static berth_status parse_key(const char *path, const char *text, bool secret, uint8_t *bytes,
                              size_t count) {
    const char *prefix = secret ? secret_prefix : public_prefix;
    const char *other = secret ? public_prefix : secret_prefix;
    if (strncmp(text, other, strlen(other)) == 0)
        return BAD("\"%s\" holds a %s key; the %s one is wanted here", path,
                   secret ? "public" : "secret", secret ? "secret" : "public");
    const char *end = NULL;
    size_t got = 0;
    if (strncmp(text, prefix, strlen(prefix)) != 0 ||
        sodium_hex2bin(bytes, count, text + strlen(prefix), strlen(text) - strlen(prefix), NULL,
                       &got, &end) != 0 ||
        got != count || (strcmp(end, "\n") != 0 && *end))
        return BAD("\"%s\" holds no %s key of berth", path, secret ? "secret" : "public");
    return BERTH_OK;
}

static berth_status read_key(const char *path, bool secret, uint8_t *bytes, size_t count) {
    BERTH_TRY(start());
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return berth_status_make(errno == ENOENT ? BERTH_NOT_FOUND : BERTH_IO,
                                 "cannot open the key \"%s\": %s", path, strerror(errno));
    char text[key_file_limit + 1] = "";
    struct stat info;
    berth_status status = BERTH_OK;
    ssize_t got =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? read(fd, text, key_file_limit) : -1;
    if (got < 0)
        status = berth_status_make(BERTH_IO, "cannot read the key \"%s\"", path);
    else
        status = parse_key(path, text, secret, bytes, count);
    if (!status && secret && (info.st_mode & (S_IRWXG | S_IRWXO))) {
        sodium_memzero(bytes, count);
        status = BAD("others may read the secret key \"%s\": change its mode to 0600, and make a "
                     "new one if somebody did",
                     path);
    }
    close(fd);
    sodium_memzero(text, sizeof(text));
    return status;
}

berth_status berth_secret_key_read(const char *path, berth_secret_key *out_key) {
    return read_key(path, true, out_key->bytes, sizeof(out_key->bytes));
}

berth_status berth_public_key_read(const char *path, berth_public_key *out_key) {
    return read_key(path, false, out_key->bytes, sizeof(out_key->bytes));
}

void berth_secret_key_forget(berth_secret_key *key) {
    sodium_memzero(key, sizeof(*key));
}

berth_public_key berth_secret_key_public(const berth_secret_key *key) {
    berth_public_key result;
    memcpy(result.bytes, key->bytes + sizeof(key->bytes) - sizeof(result.bytes),
           sizeof(result.bytes));
    return result;
}

void berth_public_key_hex(const berth_public_key *key, char out[65]) {
    sodium_bin2hex(out, 65, key->bytes, sizeof(key->bytes));
}

// ---- signatures ---------------------------------------------------------------------------------

berth_status berth_artifact__sign(const berth_file_part *parts, size_t count,
                                  const berth_secret_key *key, berth_file_signature *out) {
    BERTH_TRY(start());
    crypto_sign_state state;
    crypto_sign_init(&state);
    for (size_t i = 0; i < count; ++i)
        if (parts[i].size_bytes) crypto_sign_update(&state, parts[i].data, parts[i].size_bytes);
    const berth_public_key public_key = berth_secret_key_public(key);
    memcpy(out->public_key, public_key.bytes, sizeof(out->public_key));
    if (crypto_sign_final_create(&state, out->signature, NULL, key->bytes) != 0)
        return berth_status_make(BERTH_INTERNAL, "libsodium made no signature");
    return BERTH_OK;
}

// The signature that the bytes of a program file end with. False: there is none.
static bool find_signature(const uint8_t *data, size_t size_bytes, size_t *out_signed_bytes,
                           berth_file_signature *out) {
    berth_file_header header;
    berth_file_section section;  // the last one
    if (size_bytes < sizeof(header)) return false;
    memcpy(&header, data, sizeof(header));
    if (header.section_count == 0 || header.section_count > BERTH_SECTION_KINDS) return false;
    const size_t at = sizeof(header) + (header.section_count - 1) * sizeof(section);
    if (size_bytes < at + sizeof(section)) return false;
    memcpy(&section, data + at, sizeof(section));
    if (section.kind != (BERTH_SECTION_SIGNATURE | BERTH_SECTION_OPTIONAL) ||
        section.size_bytes != sizeof(*out) || size_bytes < sizeof(*out) ||
        section.offset_bytes != size_bytes - sizeof(*out))
        return false;
    *out_signed_bytes = (size_t)section.offset_bytes;
    memcpy(out, data + section.offset_bytes, sizeof(*out));
    return true;
}

static berth_status check_signature(const uint8_t *data, size_t size_bytes,
                                    const berth_public_key *key) {
    berth_file_signature signature;
    size_t signed_bytes = 0;
    if (!find_signature(data, size_bytes, &signed_bytes, &signature))
        return BAD("the program has no signature, and one is required");
    if (memcmp(signature.public_key, key->bytes, sizeof(key->bytes)) != 0)
        return BAD("the program was signed with another key than the one required");
    crypto_sign_state state;
    crypto_sign_init(&state);
    crypto_sign_update(&state, data, signed_bytes);
    if (crypto_sign_final_verify(&state, signature.signature, key->bytes) != 0)
        return BAD("the program was changed after it was signed");
    return BERTH_OK;
}

berth_status berth_program_read_signed(berth_arena *arena, const char *path,
                                       const berth_public_key *key, const berth_limits *limits,
                                       const berth_program **out_program) {
    *out_program = NULL;
    BERTH_TRY(start());
    char *data = NULL;
    size_t size_bytes = 0;
    const uint64_t most = limits && limits->bytes ? limits->bytes : SIZE_MAX / 2;
    BERTH_TRY(berth_file_read(arena, path, (size_t)most, &data, &size_bytes));
    return berth_status_prefix(
        berth_program_parse_signed(arena, data, size_bytes, key, out_program), "\"%s\"", path);
}

berth_status berth_program_parse_signed(berth_arena *arena, const void *data, size_t size_bytes,
                                        const berth_public_key *key,
                                        const berth_program **out_program) {
    *out_program = NULL;
    BERTH_TRY(start());
    if (size_bytes < sizeof(BERTH_PROGRAM_MAGIC) - 1 ||
        memcmp(data, BERTH_PROGRAM_MAGIC, sizeof(BERTH_PROGRAM_MAGIC) - 1) != 0)
        return BAD("not a Berth program file");
    BERTH_TRY(check_signature(data, size_bytes, key));
    return berth_program_parse(arena, data, size_bytes, out_program);
}

berth_status berth_program_file_signer(const char *path, bool *out_signed,
                                       berth_public_key *out_key) {
    *out_signed = false;
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    berth_file_signature signature;
    size_t signed_bytes = 0;
    *out_signed = find_signature(mapping.data, mapping.size_bytes, &signed_bytes, &signature);
    if (*out_signed) memcpy(out_key->bytes, signature.public_key, sizeof(out_key->bytes));
    berth_file_unmap(mapping);
    return BERTH_OK;
}
