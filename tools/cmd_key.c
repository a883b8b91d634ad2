// berth key: keys that programs are signed with.
#include <string.h>

#include "artifact/file.h"
#include "artifact/sign.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct key_command {
    berth_cli_model cli;
    const char *action;
    const char *file;
} key_command;

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "Output: text or json", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    key_command *command = state->input;
    switch (key) {
    case 'f': command->cli.format = arg; return 0;
    case ARGP_KEY_ARG:
        if (command->file) berth_cli_wrong_usage(state, "only one file");
        if (command->action) {
            command->file = arg;
            return 0;
        }
        if (strcmp(arg, "create") != 0 && strcmp(arg, "show") != 0)
            berth_cli_wrong_usage(state, "the actions are create and show, not \"%s\"", arg);
        command->action = arg;
        return 0;
    case ARGP_KEY_END:
        if (!command->action) berth_cli_wrong_usage(state, "create or show?");
        if (!command->file) berth_cli_wrong_usage(state, "which file?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// The public key of a pair that is new, of a key file, or that signed a program.
static berth_status find_key(const key_command *command, bool *out_signed, berth_public_key *key) {
    *out_signed = true;
    if (strcmp(command->action, "create") == 0) {
        BERTH_TRY(berth_key_create(command->file));
    } else if (berth_program_file_is(command->file)) {
        return berth_program_file_signer(command->file, out_signed, key);
    } else {
        berth_status status = berth_public_key_read(command->file, key);
        if (berth_status_code(status) != BERTH_INVALID_ARGUMENT) return status;
        berth_status_free(status);
    }
    berth_secret_key secret;
    BERTH_TRY(berth_secret_key_read(command->file, &secret));
    *key = berth_secret_key_public(&secret);
    berth_secret_key_forget(&secret);
    return BERTH_OK;
}

static berth_status run(void *state) {
    key_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    bool is_signed = false;
    berth_public_key key = {0};
    char hex[65] = "";
    BERTH_TRY(find_key(command, &is_signed, &key));
    if (is_signed) berth_public_key_hex(&key, hex);
    if (json)
        berth_cli_print_json(json_pack("{s:o, s:o}", "file", berth_cli_json_text(command->file),
                                       "public_key", is_signed ? json_string(hex) : json_null()));
    else
        berth_cli_print("%s: %s%s\n", command->file, is_signed ? "public key " : "not signed", hex);
    return BERTH_OK;
}

int berth_cmd_key(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse, "create FILE\nshow FILE",
                 "Makes a pair of keys, FILE (secret, for `berth build --sign`) and FILE.pub (for "
                 "`berth run --require-signature`), or shows the public key of a key file, or with "
                 "which key a program was signed.",
                 NULL, NULL, NULL},
        .run = run};
    key_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
