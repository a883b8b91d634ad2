#include "compiler/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynlib.h"

enum { most_plugins = 16 };

static struct {
    char path[PATH_MAX];  // real
    const berth_plugin *plugin;
} loaded[most_plugins];
static uint32_t loaded_count;

static berth_status check(const char *path, const berth_plugin *plugin) {
    if (!plugin)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s is no plug-in: it does not export %s (compiler/plugin.h)",
                                 path, BERTH_PLUGIN_SYMBOL);
    if (plugin->interface_version != BERTH_PLUGIN_INTERFACE ||
        plugin->op_bytes != sizeof(berth_op_definition) ||
        plugin->lower_bytes != sizeof(berth_lower) || plugin->tfn_bytes != sizeof(berth_tfn) ||
        plugin->pass_bytes != sizeof(berth_pass))
        return berth_status_make(
            BERTH_INCOMPATIBLE,
            "%s was built for version %u of the plug-in interface (or for other headers of it); "
            "this is version %d: build it again with the headers installed here",
            path, plugin->interface_version, BERTH_PLUGIN_INTERFACE);
    if (!plugin->name || !plugin->version || !plugin->set_up)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s: the plug-in lacks its name, version or set_up", path);
    return BERTH_OK;
}

berth_status berth_plugin_load(const char *path, const berth_plugin **out_plugin) {
    char real[PATH_MAX];
    *out_plugin = NULL;
    if (!realpath(path, real))
        return berth_status_make(errno == ENOMEM ? BERTH_OUT_OF_MEMORY : BERTH_NOT_FOUND,
                                 "cannot load the plug-in %s: %s", path, strerror(errno));
    for (uint32_t i = 0; i < loaded_count; ++i) {
        if (strcmp(loaded[i].path, real) != 0) continue;
        *out_plugin = loaded[i].plugin;
        return BERTH_OK;
    }
    if (loaded_count == most_plugins)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%s: only %d plug-ins can be loaded", path,
                                 (int)most_plugins);
    berth_dynlib *library = NULL;
    BERTH_TRY(berth_dynlib_open((const char *const[]){real, NULL}, &library));
    const berth_plugin *plugin = berth_dynlib_symbol(library, BERTH_PLUGIN_SYMBOL);
    berth_status status = check(path, plugin);
    if (status) {
        berth_dynlib_close(library);
        return status;
    }
    berth_dynlib_abandon(library);  // what it registers before a failure stays
    BERTH_TRY(berth_status_prefix(plugin->set_up(), "plug-in %s", plugin->name));
    memcpy(loaded[loaded_count].path, real, sizeof(real));
    loaded[loaded_count++].plugin = plugin;
    *out_plugin = plugin;
    return BERTH_OK;
}
