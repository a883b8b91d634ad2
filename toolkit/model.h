// A model ready to run: an ONNX file, or a module as text or JSON (toolkit/module_file.h), compiled
// for a target; or a program file made by `berth build`.
//
//   berth_model_options options = {.target = "opencl -host=cpu"};
//   berth_model *model;
//   BERTH_TRY(berth_model_load("mnist.onnx", &options, &model));
//   BERTH_TRY(berth_session_open(allocator, berth_model_program(model), NULL, &session));
#ifndef BERTH_TOOLKIT_MODEL_H_
#define BERTH_TOOLKIT_MODEL_H_

#include "artifact/program.h"
#include "artifact/sign.h"
#include "compiler/compile.h"
#include "compiler/onnx/import.h"
#include "target/target.h"

typedef struct berth_model berth_model;

typedef enum berth_general_program {
    BERTH_GENERAL_NONE,
    BERTH_GENERAL_TAKEN,  // only one that is kept
    BERTH_GENERAL_MADE,
} berth_general_program;

typedef struct berth_model_options {
    const char *target;  // any spelling of docs/target.md; NULL = the one
                         // that a module was planned for, else "cpu"
    // (optional) Taken instead of `target`, as it is; outlives the model.
    const berth_multi_target *multi_target;
    berth_target_options target_options;  // host, pins, overrides, ...; `machine` is filled in here
    berth_import_options import;          // symbolic dimensions, known inputs
    berth_compile_options compile;        // `target`, `known_inputs` are filled in here
    // (optional) A file of measured costs (compiler/cost/table.h), read for compile.costs.
    const char *costs;
    // (optional) A file of tuned decisions (compiler/tuning/table.h), read for compile.tuned.
    const char *tuned;
    bool only_these_inputs;  // the model will run on import.inputs alone: their values may be
                             // compiled in where shapes or branches need them
    // (optional) out, after an error: the virtual machine runs it (toolkit/vm_session.h). False where
    // shapes of inputs are missing.
    bool *needs_vm;
    // (optional) out: by how many bytes a plan that is refused exceeds a memory; 0 = it is not that
    uint64_t *over_bytes;
    // For executor "vm": a program of it is made (toolkit/vm_build.h, which says what the texts are). False:
    // that executor is refused.
    bool makes_vm_program;
    const char *const *specialisations;
    uint32_t specialisation_count;
    const char *const *states;  // of such a program (compiler/vm/states.h)
    uint32_t state_count;
    // (optional) "vta:0,opencl:0": sessions of the virtual machine do not compute on the host what these can,
    // although it is faster there (berth_vm_emit); what runs elsewhere all the same is not an error here.
    const char *required_devices;
    // Sessions of the virtual machine run a program for many shapes that the folder of kernels has, or make one once
    // shapes change (vm_general.h), where all devices work in one memory.
    berth_general_program general_program;
    const berth_public_key *required_key;  // NULL = any file; else only a program signed with it
} berth_model_options;

// Loads, plans and compiles a model, or opens a program file (then only options.target is looked
// at: NULL, or it must be the target the program was built for; and options.required_key). Errors:
// those of import, target, compile and program files.
BERTH_MUST_USE berth_status berth_model_load(const char *path, const berth_model_options *options,
                                             berth_model **out_model);
// The same of an ONNX model in memory that outlives *out_model and what uses its program.
//   name:   for messages
//   folder: where external data is looked up; NULL = there is none
BERTH_MUST_USE berth_status berth_model_load_memory(const void *data, size_t size_bytes,
                                                    const char *name, const char *folder,
                                                    const berth_model_options *options,
                                                    berth_model **out_model);
// What is no program file is refused where options.required_key asks for a signature; `name` is for
// the message. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_model__refuse_unsigned(const berth_model_options *options,
                                                         const char *name);
// The same of a module that `build` makes in an arena, each time anew: placing may compile it several
// times.
typedef berth_status berth_model_builder(void *user, berth_arena *arena, berth_module **out_module);
BERTH_MUST_USE berth_status berth_model_load_built(berth_model_builder *build, void *user,
                                                   const char *name,
                                                   const berth_model_options *options,
                                                   berth_model **out_model);
void berth_model_destroy(berth_model *model);  // after all sessions of it are closed; NULL is fine

const berth_program *berth_model_program(const berth_model *model);       // NULL when stopped early
const berth_plan *berth_model_plan(const berth_model *model);             // NULL for program files
const berth_memory_report *berth_model_memory(const berth_model *model);  // NULL for program files
const berth_module *
berth_model_module(const berth_model *model);  // as the pipeline left it; NULL for program files
const berth_multi_target *berth_model_target(const berth_model *model);

// Per step of the program, the work of the call it is a part of (compiler/cost/work.h), NULL for copies;
// NULL for program files and programs that a module kept.
const struct berth_work *const *berth_model_step_works(const berth_model *model);

// What was decided of the functions that were scheduled (compiler/tuning/kernel_choice.h), and per step of the
// program the index of its function there; 0 and NULL for program files.
const struct berth_kernel_choice *berth_model_choices(const berth_model *model,
                                                      uint32_t *out_count);
const uint32_t *berth_model_step_choices(const berth_model *model);

// The measured costs that the model was planned by; NULL = none.
struct berth_cost_table *berth_model_costs(const berth_model *model);

// Inputs whose values were compiled in; *out_count is 0 for program files.
const berth_known_use *berth_model_known_uses(const berth_model *model, uint32_t *out_count);

// Facts about this machine for target parsing: CPU, and the devices that drivers find.
BERTH_MUST_USE berth_status berth_machine_facts_local(berth_arena *arena,
                                                      berth_machine_facts *out_facts);
// The same, asking drivers only where the text of a target needs them: opening one takes time.
BERTH_MUST_USE berth_status berth_machine_facts_for(berth_arena *arena, const char *target,
                                                    berth_machine_facts *out_facts);

#endif  // BERTH_TOOLKIT_MODEL_H_
