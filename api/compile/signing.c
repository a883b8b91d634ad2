// Signed programs (<berth/signing.h>).
#include <berth/signing.h>

#include "artifact/file.h"
#include "artifact/sign.h"

berth_status berth_signing_key_create(const char *path) {
    return berth_key_create(path);
}

static berth_status find_key(const char *path, bool *out_there, berth_public_key *out_key) {
    *out_there = true;
    if (berth_program_file_is(path)) return berth_program_file_signer(path, out_there, out_key);
    berth_status status = berth_public_key_read(path, out_key);
    if (berth_status_code(status) != BERTH_INVALID_ARGUMENT) return status;
    berth_status_free(status);
    berth_secret_key secret;
    BERTH_TRY(berth_secret_key_read(path, &secret));
    *out_key = berth_secret_key_public(&secret);
    berth_secret_key_forget(&secret);
    return BERTH_OK;
}

berth_status berth_signing_key_show(const char *path,
                                    char out_digits[BERTH_PUBLIC_KEY_DIGITS + 1]) {
    bool there = false;
    berth_public_key key = {0};
    out_digits[0] = 0;
    BERTH_TRY(find_key(path, &there, &key));
    if (there) berth_public_key_hex(&key, out_digits);
    return BERTH_OK;
}

berth_status berth_signing_key_check(const char *key_path) {
    berth_secret_key secret;
    BERTH_TRY(berth_secret_key_read(key_path, &secret));
    berth_secret_key_forget(&secret);
    return BERTH_OK;
}

berth_status berth_program_save_signed(const berth_program *program, const char *path,
                                       const char *key_path) {
    berth_secret_key secret;
    BERTH_TRY(berth_secret_key_read(key_path, &secret));
    berth_status status = berth_program_write_signed(program, path, &secret);
    berth_secret_key_forget(&secret);
    return status;
}
