// Plug-ins: shared libraries outside this tree that add operations, passes, lowerings, schedules,
// code generators, rules of a kind of device, strategies and dialects to the compiler. examples/vendor/
// is one, drivers/vta/compiler another.
//
//   // In the library, once:
//   static berth_status set_up(void) {
//       BERTH_TRY(berth_op_register(&definition, &kind));
//       return berth_pass_register(&pass, "simplify");
//   }
//   BERTH_PLUGIN("example", "0.1", set_up)
//
// Like drivers (devices/library.h), a plug-in takes Berth's functions from the program that loads it:
// leave them undefined in the library and link the program with exported symbols, as `berth` is. It
// is native code of this process (SECURITY.md).
#ifndef BERTH_COMPILER_PLUGIN_H_
#define BERTH_COMPILER_PLUGIN_H_

#include "compiler/extend.h"

// Changes whenever anything does that a plug-in sees.
#define BERTH_PLUGIN_INTERFACE 2

typedef struct berth_plugin {
    uint32_t interface_version;  // BERTH_PLUGIN_INTERFACE of the headers that it was built with
    uint32_t op_bytes;           // and sizes of what it shares with the compiler, as a second look
    uint32_t lower_bytes;
    uint32_t tfn_bytes;
    uint32_t pass_bytes;
    const char *name;
    const char *version;
    berth_status (*set_up)(void);  // registers all; called once
} berth_plugin;

#define BERTH_PLUGIN_SYMBOL "berth_plugin_of_this"
#define BERTH_PLUGIN(plugin_name, plugin_version, set_up_function)                                 \
    extern const berth_plugin berth_plugin_of_this;                                                \
    const berth_plugin berth_plugin_of_this = {.interface_version = BERTH_PLUGIN_INTERFACE,        \
                                               .op_bytes = sizeof(berth_op_definition),            \
                                               .lower_bytes = sizeof(berth_lower),                 \
                                               .tfn_bytes = sizeof(berth_tfn),                     \
                                               .pass_bytes = sizeof(berth_pass),                   \
                                               .name = (plugin_name),                              \
                                               .version = (plugin_version),                        \
                                               .set_up = (set_up_function)};

// Loads a plug-in for the rest of the process. Loading the same file again changes nothing. `path`
// names a file; nothing is searched for. Before modules are made, and by one thread at a time.
//   ownership: the library stays loaded, and *out_plugin in it
//   errors:    NOT_FOUND no such file; UNAVAILABLE it does not load (the loader's reason);
//              INCOMPATIBLE it is no plug-in, or one for another version of the interface; those of
//              its set_up (what it registered until then stays)
BERTH_MUST_USE berth_status berth_plugin_load(const char *path, const berth_plugin **out_plugin);

#endif  // BERTH_COMPILER_PLUGIN_H_
