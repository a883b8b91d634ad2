#include "ir/dim_binding.h"

#include <string.h>

#include "ir/dim.h"

bool berth_dim_bind(berth_dim_bindings *bindings, int64_t dim, int64_t extent) {
    if (!berth_dim_is_symbol(dim) || dim == BERTH_DIM_UNKNOWN || extent == BERTH_DIM_UNKNOWN ||
        berth_dim_is_expression(bindings->module, dim))
        return true;
    for (uint32_t i = 0; i < bindings->list.count; ++i)
        if (bindings->list.data[i].symbol == dim) return bindings->list.data[i].extent == extent;
    berth_vec_push(bindings->arena, &bindings->list, ((berth_dim_binding){dim, extent}));
    return true;
}

int64_t berth_dim_bound(void *user, const char *symbol) {
    berth_dim_bindings *bindings = user;
    for (uint32_t i = 0; i < bindings->list.count; ++i) {
        const berth_str_id name = berth_dim_symbol_name(bindings->list.data[i].symbol);
        if (strcmp(berth_module_str(bindings->module, name), symbol) == 0)
            return bindings->list.data[i].extent;
    }
    bindings->missed = true;
    return BERTH_DIM_UNKNOWN;
}
