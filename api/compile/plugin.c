// Plug-ins of the compiler (<berth/compile.h>).
#include "compiler/plugin.h"

#include <berth/compile.h>

berth_status berth_compiler_load_plugin(const char *path, const char **out_name,
                                        const char **out_version) {
    const berth_plugin *plugin = NULL;
    if (out_name) *out_name = NULL;
    if (out_version) *out_version = NULL;
    BERTH_TRY(berth_plugin_load(path, &plugin));
    if (out_name) *out_name = plugin->name;
    if (out_version) *out_version = plugin->version;
    return BERTH_OK;
}
