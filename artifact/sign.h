// Signatures of program files: Ed25519ph (RFC 8032, by libsodium) over every byte of the file
// before the signature, which is the file's last section together with the public key it was made
// with.
//
// A secret key and its public key are two files, each of one line of text:
//   berth secret key 1: <128 hexadecimal digits>     only its owner may read it (mode 0600)
//   berth public key 1: <64 hexadecimal digits>      for whoever checks
//
//   BERTH_TRY(berth_key_create("release.key"));                    // and release.key.pub
//   BERTH_TRY(berth_secret_key_read("release.key", &secret));
//   BERTH_TRY(berth_program_write_signed(program, "m.berth", &secret));
//   berth_secret_key_forget(&secret);
//   ...
//   BERTH_TRY(berth_public_key_read("release.key.pub", &key));
//   BERTH_TRY(berth_program_read_signed(arena, "m.berth", &key, NULL, &program));
#ifndef BERTH_ARTIFACT_SIGN_H_
#define BERTH_ARTIFACT_SIGN_H_

#include "artifact/program.h"
#include "base/limits.h"

typedef struct berth_public_key {
    uint8_t bytes[32];
} berth_public_key;

typedef struct berth_secret_key {
    uint8_t bytes[64];
} berth_secret_key;

// Makes a new pair: `path` (mode 0600) and `path`.pub. Errors: ALREADY_EXISTS either file is there;
// IO.
BERTH_MUST_USE berth_status berth_key_create(const char *path);

// Errors: NOT_FOUND, IO; INVALID_ARGUMENT the file holds no such key, or others may read the secret
// one.
BERTH_MUST_USE berth_status berth_secret_key_read(const char *path, berth_secret_key *out_key);
BERTH_MUST_USE berth_status berth_public_key_read(const char *path, berth_public_key *out_key);
void berth_secret_key_forget(berth_secret_key *key);  // overwrites it

berth_public_key berth_secret_key_public(const berth_secret_key *key);
void berth_public_key_hex(const berth_public_key *key, char out[65]);

// Writes the program with a signature (complete or not at all).
BERTH_MUST_USE berth_status berth_program_write_signed(const berth_program *program,
                                                       const char *path,
                                                       const berth_secret_key *key);

// Opens a program file only if `key` signed it. The file is read into memory that belongs to
// `arena`, not mapped: what was checked is what is used, whatever happens to the file.
// `limits` as in berth_program_read, but for items. Errors: as berth_program_read; INVALID_ARGUMENT no signature, another key's, or the file was
// changed after it was signed.
BERTH_MUST_USE berth_status berth_program_read_signed(berth_arena *arena, const char *path,
                                                      const berth_public_key *key,
                                                      const berth_limits *limits,
                                                      const berth_program **out_program);

// The same from the bytes of such a file, which outlive `arena`.
BERTH_MUST_USE berth_status berth_program_parse_signed(berth_arena *arena, const void *data,
                                                       size_t size_bytes,
                                                       const berth_public_key *key,
                                                       const berth_program **out_program);

// Who signed a program file: *out_signed says whether somebody did. The signature is not checked.
BERTH_MUST_USE berth_status berth_program_file_signer(const char *path, bool *out_signed,
                                                      berth_public_key *out_key);

#endif  // BERTH_ARTIFACT_SIGN_H_
