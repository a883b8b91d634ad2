// A network as TFLM (TensorFlow Lite for Microcontrollers) runs it: the peer of docs/bare.md, which
// scripts/bare_tflm.sh compiles for a Cortex-M with TFLM's sources (not part of this project).
// Reads the input on stdin, writes the output of its first run to stdout, both as bytes. On stderr it says
// how many bytes of its arena the interpreter uses and how many the objects beside it have;
// tests/bare/board counts the instructions of a run and its stack.
//
//   -DOPERATORS=4 -DADD_OPERATORS='resolver.AddConv2D();...'      what the network has, so that no other
//                                                                is linked
#include <cstdio>
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/kernels/add.h"
#include "tensorflow/lite/micro/kernels/conv.h"
#include "tensorflow/lite/micro/kernels/depthwise_conv.h"
#include "tensorflow/lite/micro/kernels/fully_connected.h"
#include "tensorflow/lite/micro/kernels/pooling.h"
#include "tensorflow/lite/micro/kernels/softmax.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

extern "C" {
extern const unsigned char network[];
// Stands in front of network_run and counts (tests/bare/board/measure.c).
int measured_run(const void *inputs, void *outputs);
int network_run(const void *inputs, void *outputs);
}

namespace {

using Resolver = tflite::MicroMutableOpResolver<OPERATORS>;

alignas(16) unsigned char arena[512 * 1024];  // the interpreter says what it needs of it
alignas(16) unsigned char objects[sizeof(Resolver) + sizeof(tflite::MicroInterpreter) + 16];
tflite::MicroInterpreter *interpreter;

}  // namespace

int network_run(const void *, void *) {
    return interpreter->Invoke() != kTfLiteOk;
}

// What an application that uses TFLM has to do before the first run.
__attribute__((noinline)) static int set_up() {
    Resolver &resolver = *new (objects) Resolver;
    ADD_OPERATORS
    interpreter = new (objects + (sizeof(Resolver) + 15) / 16 * 16)
        tflite::MicroInterpreter(tflite::GetModel(network), resolver, arena, sizeof(arena));
    return interpreter->AllocateTensors() != kTfLiteOk;
}

int main() {
    if (set_up()) {
        fprintf(stderr, "failed to allocate\n");
        return 1;
    }
    TfLiteTensor *input = interpreter->input(0), *output = interpreter->output(0);
    if (fread(input->data.raw, 1, input->bytes, stdin) != input->bytes || network_run(0, 0)) {
        fprintf(stderr, "failed to run\n");
        return 1;
    }
    fwrite(output->data.raw, 1, output->bytes, stdout);
    fprintf(stderr, "arena %u objects %u\n", unsigned(interpreter->arena_used_bytes()),
            unsigned(sizeof(Resolver) + sizeof(tflite::MicroInterpreter)));
    return measured_run(nullptr, nullptr);
}
