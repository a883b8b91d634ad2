// Bad operands give a status, never a crash; so does an allocator that fails.
#include <criterion/criterion.h>

#include "tests/eval/support.h"

static const char *const odd_tensors[] = {
    "f32[2,3] ?1",
    "f32[] 1",
    "i64[1] 1",
    "i64[2] 0 1",
    "u8[3] 1 2 255",
    "f32[0,2]",
    "f32[1,2,4,4] ?2",
    "f32[2,2,3,3] ?3",
    "bool[2] 0 1",
    "f16[2] 1 -2",
    "i64[4] -5 7 0 9",
    "f32[2] nan inf",
    "i32[0]",
    "f64[1,1,1,1,1,1,1,1] 1",
    "i8[2,3] -1",
    "f32[3,2,2] ?4",
    "u64[2] -1 1",
    "f32[1,3] -1e30 2 1e30",
    "string[2,3] 'a' '' 'b\\xff' '-3'",
    "string[0]",
};

static const char *const odd_attrs[] = {
    "",
    "axis=-9 axes=[7] perm=[0,0] k=99 to=#i8 equation=ij,jk->ik",
    "axis=1 kernel_shape=[2,2] pads=[1,0,0,1] group=2 tile=2 output_shape=[1,1,1,1] to=#f16 "
    "equation=... blocksize=2 size=2 num_groups=2 pooled_shape=[1,1] axes=[0]",
    "axis=0 kernel_shape=[0] strides=[-1] group=0 tile=3 blocksize=0 size=-1 num_groups=0 "
    "equation=i,-> mode=cubic output_shape=[-1,2] pooled_shape=[-1,0] to=#none p=3",
    "pattern=(a|b)* mode=TF ngram_counts=[0,1] ngram_indexes=[1,0] pool_strings=<a,b,> "
    "max_gram_length=2 min_gram_length=1 max_skip_count=9 to=#string delimiter=a stopwords=<a> "
    "case_change_action=UPPER",
    "axis=-1 layout=1 direction=bidirectional block_size=2 batch_dims=1 mode=linear to=#u8 "
    "equation=ii->i time_axis=0 batch_axis=0 keepdims=0 output_height=-1 storage_order=1",
};

enum { tensor_count = sizeof(odd_tensors) / sizeof(odd_tensors[0]) };
enum { attr_count = sizeof(odd_attrs) / sizeof(odd_attrs[0]) };

static uint32_t next_random(uint32_t *state) {  // xorshift32 (Marsaglia 2003)
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

// Every operation on random choices of odd operands: it computes something or says what is wrong.
// With sanitizers this finds reads outside of tensors.
Test(eval_errors, odd_operands_never_crash) {
    uint32_t state = 12345, errors = 0;
    for (int kind = 0; kind < BERTH_OP_COUNT; ++kind) {
        const berth_op_facts *facts = berth_op_facts_get((berth_op_kind)kind);
        for (int round = 0; round < 150; ++round) {
            eval_case c = eval_begin();
            berth_tensor inputs[EVAL_MAX_OPERANDS], outputs[EVAL_MAX_OPERANDS];
            uint32_t most =
                (uint32_t)(facts->max_inputs < 0 ? facts->min_inputs + 3 : facts->max_inputs);
            uint32_t count = (uint32_t)facts->min_inputs +
                             next_random(&state) % (most - (uint32_t)facts->min_inputs + 1);
            uint32_t same = next_random(&state) % tensor_count;
            for (uint32_t i = 0; i < count; ++i) {
                uint32_t pick = next_random(&state) % tensor_count;
                inputs[i] = eval_tensor(&c, odd_tensors[round % 2 ? same : pick]);
                if (i > 0 && pick == 3) inputs[i] = (berth_tensor){0};
            }
            uint32_t results = facts->max_outputs < 0 ? 2 : (uint32_t)facts->max_outputs;
            berth_status status =
                eval_try(&c, (berth_op_kind)kind, inputs, count,
                         odd_attrs[next_random(&state) % attr_count], outputs, results);
            if (status) {
                ++errors;
                cr_assert_neq(berth_status_code(status), BERTH_INTERNAL, "%s: %s", facts->name,
                              berth_status_message(status));
                cr_assert(strncmp(berth_status_message(status), facts->name, strlen(facts->name)) ==
                          0);
            }
            berth_status_free(status);
            eval_end(&c);
        }
    }
    cr_assert_gt(errors, 1000);
}

typedef struct fail_case {
    const char *name, *operands, *attrs;
    uint32_t outputs;
} fail_case;

static const fail_case fail_cases[] = {
    {"conv", "f32[1,2,5,5] ?1; f32[3,2,3,3] ?2; f32[3] ?3", "pads=[1,1,1,1]", 1},
    {"top_k", "f32[3,9] ?1; i64[1] 3", "", 2},
    {"einsum", "f32[3,4] ?1; f32[4,5] ?2", "equation=ij,jk->ki", 1},
    {"resize", "f32[1,1,4,4] ?1; -; f32[4] 1 1 1.5 1.5", "mode=cubic", 1},
    {"lstm", "f32[2,1,3] ?1; f32[1,8,3] ?2; f32[1,8,2] ?3", "", 3},
    {"concat", "f32[2,2] ?1; f32[3,2] ?1", "axis=1", 1},  // reports an error
    {"string_split", "string[2] 'a,b' 'c'", "delimiter=,", 2},
    {"string_concat", "string[2] 'a' 'b'; string[1] 'c'", "", 1},
    {"string_normalizer", "string[2] 'a' 'B'", "stopwords=<b> case_change_action=UPPER", 1},
    {"lookup", "string[2] 'a' 'c'; string[2] 'a' 'b'; i64[2] 1 2; i64[] 0", "", 1},
    {"cast", "f32[2] 1 2.5", "to=#string", 1},
    {"tf_idf_vectorizer", "i64[3] 1 2 1",
     "mode=TF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] "
     "ngram_indexes=[0,1] pool_int64s=[1,2]",
     1},
};

// Fails allocation n of the evaluation, for n = 1, 2, ... until it gets through.
static void run_failing(const fail_case *f) {
    for (int_fast64_t n = 1;; ++n) {
        eval_case c = eval_begin();
        berth_tensor inputs[EVAL_MAX_OPERANDS], outputs[EVAL_MAX_OPERANDS];
        uint32_t count = eval_tensors(&c, f->operands, inputs);
        berth_op_kind kind = BERTH_OP_CONSTANT;
        cr_assert(berth_op_kind_from_name(f->name, &kind));
        berth_status status = eval_try(&c, kind, inputs, count, f->attrs, outputs, f->outputs);
        berth_code wanted = berth_status_code(status);
        berth_status_free(status);
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        berth_arena *arena = NULL;
        status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        cr_assert_null(status);
        counting.fail_at = n;
        status = berth_eval_op(c.module, c.main, 0, inputs, outputs, arena);
        bool through = counting.fail_at == 0 || berth_status_code(status) == wanted;
        if (!through) cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s", f->name);
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(counting.live_count, 0, "%s leaks when allocation %d fails", f->name, (int)n);
        eval_end(&c);
        if (through) {
            cr_assert_gt(n, 1, "%s allocates nothing", f->name);
            return;
        }
    }
}

Test(eval_errors, every_allocation_may_fail) {
    for (size_t i = 0; i < sizeof(fail_cases) / sizeof(fail_cases[0]); ++i)
        run_failing(&fail_cases[i]);
}

Test(eval_errors, messages_name_the_place) {
    eval_case c = eval_begin();
    berth_loc_id loc = berth_loc_node(c.module, "model.onnx", "my_add", "Add");
    berth_value_id x = berth_graph_add_param(c.module, c.main, "x", 0);
    berth_op_id op =
        berth_graph_add_op(c.module, c.main, 0, BERTH_OP_ADD, (berth_value_id[]){x, x}, 2, 1, loc);
    berth_tensor inputs[] = {eval_tensor(&c, "f32[2] 1"), eval_tensor(&c, "f32[3] 1")}, output;
    berth_status status = berth_eval_op(c.module, c.main, op, inputs, &output, c.arena);
    cr_assert_eq(berth_status_code(status), BERTH_INCOMPATIBLE);
    cr_assert(strstr(berth_status_message(status), "my_add"), "%s", berth_status_message(status));
    berth_status_free(status);
    eval_end(&c);
}
