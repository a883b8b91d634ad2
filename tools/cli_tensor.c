#include "tools/cli_tensor.h"

#include <berth/tensor_file.h>

static void free_tensor(void *holder) {
    berth_tensor_free(*(berth_tensor **)holder);
}

berth_status berth_cli_tensor_parse(berth_arena *arena, const void *data, size_t size_bytes,
                                    berth_tensor *out_tensor) {
    berth_tensor **holder = berth_arena_new(arena, berth_tensor *);
    berth_arena_defer(arena, free_tensor, holder);
    BERTH_TRY(berth_tensor_parse(data, size_bytes, holder));
    *out_tensor = **holder;
    return BERTH_OK;
}
