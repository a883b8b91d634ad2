// Signed programs: keys, and who signed a program (libberth-compiler). Programs are opened only where they
// are signed by berth_program_open_signed, which needs libberth alone. SECURITY.md says what that is worth.
//
//   berth_status status = berth_signing_key_create("release.key");    // and release.key.pub
//   if (!status) status = berth_program_save_signed(program, "digits.berth", "release.key");
//
// Everything here is thread-safe.
#ifndef BERTH_SIGNING_H_
#define BERTH_SIGNING_H_

#include <berth/program.h>
#include <berth/status.h>

BERTH_BEGIN

// Makes a new pair of keys (Ed25519): `path`, which only its owner may read, and `path`.pub. Errors:
// ALREADY_EXISTS either file is there; IO.
BERTH_API BERTH_MUST_USE berth_status berth_signing_key_create(const char *path);

#define BERTH_PUBLIC_KEY_DIGITS 64

// The public key, in hexadecimal and ended by 0, of a file: of a pair's, either of them, or of who signed a
// program file; that is "" where nobody did. The signature itself is not checked.
// Errors: NOT_FOUND, IO; INVALID_ARGUMENT the file holds none, or others may read the secret key.
BERTH_API BERTH_MUST_USE berth_status
berth_signing_key_show(const char *path, char out_digits[BERTH_PUBLIC_KEY_DIGITS + 1]);

// Whether a file holds a secret key that can sign; programs want to know before the work. Errors: as above.
BERTH_API BERTH_MUST_USE berth_status berth_signing_key_check(const char *key_path);

// As berth_program_save, signed with the secret key in the file `key_path`. Errors: as above.
BERTH_API BERTH_MUST_USE berth_status berth_program_save_signed(const berth_program *program,
                                                                const char *path,
                                                                const char *key_path);

BERTH_END

#endif  // BERTH_SIGNING_H_
