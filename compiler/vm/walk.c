// Walking through byte code. Ways part where a condition is not known, and end where what they know was
// there before: registers that nobody reads any more do not count. What a loop carries is followed round
// by round for as long as the walker's limit says, then joined with the round before, so that a walk
// ends.
#include "compiler/vm/walk.h"

#include <string.h>

#include "base/str.h"
#include "compiler/vm/counted.h"
#include "compiler/vm/walker.h"

enum { most_rounds = 512, most_merges = 64, most_depth = 16 };
#define MOST_STEPS ((uint64_t)2000000)

// A place that jumps lead to, and what was known there.
typedef struct place {
    bool is_target;
    bool is_loop;             // a jump back leads here
    uint64_t *live;           // registers that are read before they are written again
    const walk_value **last;  // what was known the last time
    uint32_t visits;
    BERTH_VEC(berth_hash128) seen;
} place;

typedef struct way {
    uint32_t next;  // word to go on at
    const walk_value **registers;
} walk_way;

typedef struct walk {
    walker *w;
    const berth_vm_function *function;
    place *places;  // per word
    uint32_t live_words;
    uint32_t depth;  // of calls
    BERTH_VEC(walk_way) ways;
    const walk_value **results;  // joined over all ways that returned
    bool returned;
    berth_arena *arena;
} walk;

// ---- which registers count ----------------------------------------------------------------------

static void set_bit(uint64_t *bits, uint32_t index, bool on) {
    if (index == BERTH_VM_NONE) return;
    if (on)
        bits[index / 64] |= (uint64_t)1 << index % 64;
    else
        bits[index / 64] &= ~((uint64_t)1 << index % 64);
}

// Registers of the instruction's operands of the kinds in `letters` are set to `on`.
static void mark(const uint32_t *code, uint32_t at, const char *letters, bool on, uint64_t *bits) {
    const char *letter = berth_vm_instruction(berth_vm_opcode_of(code[at]))->operands;
    uint32_t operand = at + 1;
    for (; *letter; ++letter) {
        bool is_list = *letter == 'D' || *letter == 'S';
        uint32_t count = is_list ? code[operand] : 1;
        for (uint32_t i = 0; i < count && strchr(letters, *letter); ++i)
            set_bit(bits, code[operand + is_list + i], on);
        operand += count + is_list;
    }
}

static bool jumps(uint32_t word) {
    return strchr(berth_vm_instruction(berth_vm_opcode_of(word))->operands, 't') != NULL;
}

static bool goes_on(uint32_t word) {
    berth_vm_opcode opcode = berth_vm_opcode_of(word);
    return opcode != BERTH_VM_JUMP && opcode != BERTH_VM_RETURN && opcode != BERTH_VM_FAIL;
}

// What is live before the instruction at `at`, from what is live after it. True: it is more than before.
static bool add_live(const walk *k, uint32_t at, uint64_t *bits) {
    const uint32_t *code = k->function->code;
    uint32_t next = at + berth_vm_length_of(code[at]);
    bool more = false;
    memset(bits, 0, k->live_words * sizeof(*bits));
    for (uint32_t i = 0; i < k->live_words; ++i) {
        if (goes_on(code[at])) bits[i] |= k->places[next].live[i];
        if (jumps(code[at])) bits[i] |= k->places[code[next - 1]].live[i];
    }
    mark(code, at, "dD", false, bits);
    mark(code, at, "somS", true, bits);
    for (uint32_t i = 0; i < k->live_words; ++i) {
        more |= (bits[i] & ~k->places[at].live[i]) != 0;
        k->places[at].live[i] |= bits[i];
    }
    return more;
}

static void find_places(walk *k) {
    const berth_vm_function *function = k->function;
    BERTH_VEC(uint32_t) begins = {0};
    k->places = berth_arena_new_array(k->arena, place, function->code_count + 1);
    k->live_words = (function->register_count + 63) / 64;
    uint64_t *bits = berth_arena_new_array(k->arena, uint64_t, k->live_words + 1);
    for (uint32_t at = 0; at < function->code_count;) {
        uint32_t length = berth_vm_length_of(function->code[at]);
        berth_vec_push(k->arena, &begins, at);
        k->places[at].live = berth_arena_new_array(k->arena, uint64_t, k->live_words + 1);
        if (jumps(function->code[at])) {
            uint32_t target = function->code[at + length - 1];
            k->places[target].is_target = true;
            k->places[target].is_loop |= target <= at;
        }
        at += length;
    }
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = begins.count; i-- > 0;) more |= add_live(k, begins.data[i], bits);
    }
}

static bool is_live(const place *p, uint32_t index) {
    return (p->live[index / 64] >> index % 64 & 1u) != 0;
}

// ---- ways ---------------------------------------------------------------------------------------

static berth_hash128 hash_of(const walk *k, const place *p, const walk_way *way) {
    berth_arena *scratch = berth_arena_create_child(k->arena);
    berth_strbuf text = berth_strbuf_make(scratch);
    berth_hash128 none = {0};
    for (uint32_t i = 0; i < k->function->register_count; ++i) {
        if (!is_live(p, i)) continue;
        const walk_value *value = way->registers[i];
        berth_strbuf_add_n(&text, (const char *)(value ? &value->hash : &none), sizeof(none));
    }
    berth_hash128 hash = berth_hash128_of(text.data, text.length);
    berth_arena_destroy(scratch);
    return hash;
}

// Whether the way has been here with what it knows; where too many came, it forgets what differs from the
// last one.
static bool was_here(const walk *k, walk_way *way) {
    place *p = &k->places[way->next];
    uint32_t count = k->function->register_count;
    uint32_t limit = p->is_loop ? k->w->rounds : most_merges * k->w->rounds;
    for (uint32_t i = 0; i < count; ++i)
        if (!is_live(p, i)) way->registers[i] = NULL;
    for (uint32_t i = 0; i < count && p->last && p->visits >= limit; ++i)
        if (is_live(p, i))
            way->registers[i] = walk_join(k->w->arena, p->last[i], way->registers[i]);
    berth_hash128 hash = hash_of(k, p, way);
    for (uint32_t i = 0; i < p->seen.count; ++i)
        if (berth_hash128_equal(p->seen.data[i], hash)) return true;
    berth_vec_push(k->arena, &p->seen, hash);
    p->visits++;
    p->last = berth_arena_copy(k->arena, way->registers, count * sizeof(*p->last));
    return false;
}

static void part(walk *k, const walk_way *from, uint32_t next) {
    walk_way other = {.next = next};
    other.registers = berth_arena_copy(
        k->arena, from->registers, (k->function->register_count + 1) * sizeof(*other.registers));
    berth_vec_push(k->arena, &k->ways, other);
}

// ---- instructions -------------------------------------------------------------------------------

static const walk_value *reg(const walk_way *way, uint32_t index) {
    return index == BERTH_VM_NONE ? NULL : way->registers[index];
}

static berth_status walk_function(walker *w, uint32_t index, const walk_value *const *arguments,
                                  uint32_t depth, const walk_value **out_results,
                                  bool *out_returned);

// Operands: index, results, operands. `*out_ends`: a call from which nothing comes back.
static berth_status do_lists(walk *k, walk_way *way, berth_vm_opcode opcode, const uint32_t *at,
                             bool *out_ends) {
    walker *w = k->w;
    uint32_t output_count = at[1], input_count = at[2 + output_count];
    const uint32_t *outputs = at + 2, *inputs = outputs + output_count + 1;
    const walk_value **values =
        berth_arena_array(k->arena, (size_t)input_count + output_count + 1, sizeof(*values));
    bool returned = true;
    for (uint32_t i = 0; i < input_count; ++i) values[i] = reg(way, inputs[i]);
    if (opcode == BERTH_VM_CALL)
        BERTH_TRY(walk_function(w, at[0], values, k->depth + 1, values + input_count, &returned));
    else
        BERTH_TRY(
            walk_piece(w, opcode == BERTH_VM_RUN ? at[0] : w->code->program->segment_count + at[0],
                       values, values + input_count));
    for (uint32_t i = 0; i < output_count && returned; ++i)
        way->registers[outputs[i]] = values[input_count + i];
    *out_ends = !returned;
    return BERTH_OK;
}

static berth_status not_known(const walk *k, uint32_t word, const char *what) {
    return berth_status_make(BERTH_UNSUPPORTED,
                             "byte code of @%s, word %u: it is not known before a run what %s is, "
                             "so a program file cannot have code for what comes after it",
                             k->function->name, word, what);
}

static berth_status do_sequence(const walk *k, walk_way *way, berth_vm_opcode opcode,
                                const uint32_t *at, uint32_t word, bool *out_ends) {
    berth_arena *arena = k->w->arena;
    const walk_value *value = reg(way, opcode == BERTH_VM_APPEND ? at[0] : at[1]), *made = NULL;
    walk_kind wanted = opcode == BERTH_VM_SPLIT ? WALK_TENSOR : WALK_SEQUENCE;
    if (!value || value->kind != wanted) return not_known(k, word, "an operand");
    switch (opcode) {
    case BERTH_VM_APPEND: made = walk_insert(arena, value, reg(way, at[1]), NULL, true); break;
    case BERTH_VM_INSERT:
        made = walk_insert(arena, value, reg(way, at[2]), reg(way, at[3]), at[3] == BERTH_VM_NONE);
        break;
    case BERTH_VM_ERASE:
        made = walk_erase(arena, value, reg(way, at[2]), at[2] == BERTH_VM_NONE);
        break;
    case BERTH_VM_AT: made = walk_at(arena, value, reg(way, at[2])); break;
    case BERTH_VM_STACK:
        made = walk_stack(arena, value, 0, true, &k->w->code->program->constants[at[2]]);
        break;
    case BERTH_VM_JOIN: made = walk_stack(arena, value, (int32_t)at[2], at[3] == 1, NULL); break;
    case BERTH_VM_SPLIT:
        made = walk_split(arena, value, reg(way, at[2]), (int32_t)at[3], at[4] == 1);
        break;
    default: made = walk_length(arena, value); break;
    }
    way->registers[at[0]] = made;
    *out_ends = made == NULL;
    return BERTH_OK;
}

static void make_sequence(const walk *k, const walk_way *way, const uint32_t *at) {
    const walk_value **items =
        berth_arena_array(k->arena, (size_t)at[1] + 1, sizeof(const walk_value *));
    for (uint32_t i = 0; i < at[1]; ++i) items[i] = reg(way, at[2 + i]);
    way->registers[at[0]] = walk_sequence(k->w->arena, items, at[1], false);
}

static berth_status do_number(const walk *k, const walk_way *way, berth_vm_opcode opcode,
                              const uint32_t *at) {
    int64_t number = 0;
    const walk_value *value = reg(way, opcode == BERTH_VM_HAS ? at[1] : at[0]);
    berth_tensor made = {.dtype = BERTH_DTYPE_I64};
    uint8_t has = value && value->kind != WALK_NOTHING;
    bool known = walk_number(value, &number) && number < INT64_MAX;
    number++;
    if (opcode == BERTH_VM_INCREMENT && known) made.data = &number;
    if (opcode == BERTH_VM_HAS) made.dtype = BERTH_DTYPE_BOOL;
    if (opcode == BERTH_VM_HAS && !(value && value->kind == WALK_ANYTHING)) made.data = &has;
    way->registers[at[0]] =
        walk_tensor(k->w->arena, &made, opcode == BERTH_VM_INCREMENT && known && value->assumed);
    return BERTH_OK;
}

// Goes on, or leads to `target`, or (where it is not known) both.
static void do_jump(walk *k, walk_way *way, berth_vm_opcode opcode, const uint32_t *at) {
    int64_t a = 0, b = 0;
    if (opcode == BERTH_VM_JUMP_UNLESS) {
        if (!walk_number(reg(way, at[0]), &a))
            part(k, way, at[1]);
        else if (a == 0)
            way->next = at[1];
    } else if (!walk_number(reg(way, at[0]), &a) || !walk_number(reg(way, at[1]), &b)) {
        part(k, way, at[2]);
    } else if (a >= b) {
        way->next = at[2];
    }
}

static void do_return(walk *k, const walk_way *way, const uint32_t *at) {
    for (uint32_t i = 0; i < at[0]; ++i) {
        const walk_value *value = reg(way, at[1 + i]);
        k->results[i] = k->returned ? walk_join(k->w->arena, k->results[i], value) : value;
    }
    k->returned = true;
}

// ---- counts of data -----------------------------------------------------------------------------

// The instruction is a slice by a count (compiler/vm/counted.h), of a vector of known length.
static bool takes_count(const walk *k, const walk_way *way, const uint32_t *at,
                        const walk_value **out_all, uint32_t *out_register) {
    const berth_vm_host_operation *held = &k->w->code->host_operations[at[0]];
    const berth_op *op = &berth_graph_get(k->w->module, held->function)->ops.data[held->op];
    const uint32_t *inputs = at + 3 + at[1];
    if (berth_attrs_int(k->w->module, &op->attrs, BERTH_ATTR_COUNTED, 0) != BERTH_COUNTED_TAKE)
        return false;
    *out_all = reg(way, inputs[0]);
    *out_register = inputs[2];
    return walk_is_static(*out_all) && (*out_all)->tensor.rank == 1;
}

// A way for each count that there can be, the largest first. `*out_parted`: they begin with this instruction again.
static berth_status follow_counts(walk *k, const walk_way *way, uint32_t word, bool *out_parted) {
    const uint32_t *at = k->function->code + word + 1;
    const walk_value *all = NULL;
    uint32_t end = BERTH_VM_NONE;
    int64_t count = 0;
    *out_parted = takes_count(k, way, at, &all, &end) && !walk_number(reg(way, end), &count);
    if (!*out_parted) return BERTH_OK;
    const int64_t most = all->tensor.dims[0];
    if (most + 1 > (int64_t)BERTH_VM_MOST_COUNTS - k->w->reached->count_total) {
        const berth_vm_piece *piece = &k->w->code->program->host_operations[at[0]];
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s: data decides how many of %lld elements there are, and with "
                                 "what else data decides these are more than %u combinations to "
                                 "have code for in a program file",
                                 piece->name, (long long)most, BERTH_VM_MOST_COUNTS);
    }
    k->w->reached->count_total += (uint32_t)most + 1;
    for (; count <= most; ++count) {
        const berth_tensor known = {
            .dtype = BERTH_DTYPE_I64, .rank = 1, .dims = {1}, .data = &count};
        part(k, way, word);
        k->ways.data[k->ways.count - 1].registers[end] = walk_tensor(k->w->arena, &known, true);
    }
    return BERTH_OK;
}

static berth_status step(walk *k, walk_way *way, uint32_t word, bool *out_ends) {
    const uint32_t *at = k->function->code + word + 1;
    berth_vm_opcode opcode = berth_vm_opcode_of(at[-1]);
    *out_ends = !goes_on(at[-1]) && opcode != BERTH_VM_JUMP;
    switch (opcode) {
    case BERTH_VM_CONST:
        way->registers[at[0]] =
            walk_tensor(k->w->arena, &k->w->code->program->constants[at[1]], false);
        return BERTH_OK;
    case BERTH_VM_GET:
        *out_ends = !reg(way, at[1]) || reg(way, at[1])->kind == WALK_NOTHING;
        way->registers[at[0]] = reg(way, at[1]);
        return BERTH_OK;
    case BERTH_VM_MOVE: way->registers[at[0]] = reg(way, at[1]); return BERTH_OK;
    case BERTH_VM_DROP:
        for (uint32_t i = 0; i < at[0]; ++i) way->registers[at[1 + i]] = NULL;
        return BERTH_OK;
    case BERTH_VM_HOST:
        BERTH_TRY(follow_counts(k, way, word, out_ends));
        return *out_ends ? BERTH_OK : do_lists(k, way, opcode, at, out_ends);
    case BERTH_VM_RUN:
    case BERTH_VM_CALL: return do_lists(k, way, opcode, at, out_ends);
    case BERTH_VM_RETURN: do_return(k, way, at); return BERTH_OK;
    case BERTH_VM_FAIL: return BERTH_OK;
    case BERTH_VM_JUMP: way->next = at[0]; return BERTH_OK;
    case BERTH_VM_JUMP_UNLESS:
    case BERTH_VM_JUMP_UNLESS_BELOW: do_jump(k, way, opcode, at); return BERTH_OK;
    case BERTH_VM_INCREMENT:
    case BERTH_VM_HAS: return do_number(k, way, opcode, at);
    case BERTH_VM_SEQUENCE: make_sequence(k, way, at); return BERTH_OK;
    case BERTH_VM_NOTHING: way->registers[at[0]] = walk_nothing(k->w->arena); return BERTH_OK;
    default: return do_sequence(k, way, opcode, at, word, out_ends);
    }
}

// Operations that do not fit end a way, as they would end a run.
static berth_status note_end(const walk *k, berth_status status) {
    walker *w = k->w;
    berth_code code = berth_status_code(status);
    if (code != BERTH_INVALID_ARGUMENT && code != BERTH_INCOMPATIBLE && code != BERTH_OUT_OF_RANGE)
        return status;
    berth_log_message(w->log, BERTH_LOG_INFO, "a run of these shapes ends with an error: %s",
                      berth_status_message(status));
    if (w->stopped)
        berth_status_free(status);
    else
        w->stopped = status;
    return BERTH_OK;
}

static berth_status follow(walk *k, walk_way *way) {
    for (bool ends = false; !ends;) {
        uint32_t word = way->next;
        if (k->places[word].is_target && was_here(k, way)) return BERTH_OK;
        if (++k->w->steps > MOST_STEPS)
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "byte code of @%s has more ways through it than can be "
                                     "followed",
                                     k->function->name);
        way->next = word + berth_vm_length_of(k->function->code[word]);
        berth_status status = step(k, way, word, &ends);
        if (status) return note_end(k, status);
    }
    return BERTH_OK;
}

static berth_status walk_function(walker *w, uint32_t index, const walk_value *const *arguments,
                                  uint32_t depth, const walk_value **out_results,
                                  bool *out_returned) {
    const berth_vm_function *function = &w->code->program->functions[index];
    if (depth > most_depth)
        return berth_status_make(BERTH_UNSUPPORTED, "calls are nested more than %d deep at @%s",
                                 most_depth, function->name);
    walk k = {.w = w, .function = function, .depth = depth, .results = out_results};
    k.arena = berth_arena_create_child(w->arena);
    find_places(&k);
    walk_way first = {.next = 0};
    first.registers =
        berth_arena_array(k.arena, (size_t)function->register_count + 1, sizeof(*first.registers));
    for (uint32_t i = 0; i < function->parameter_count; ++i) first.registers[i] = arguments[i];
    berth_vec_push(k.arena, &k.ways, first);
    berth_status status = BERTH_OK;
    while (k.ways.count && !status) {
        walk_way next = k.ways.data[--k.ways.count];
        status = follow(&k, &next);
    }
    *out_returned = k.returned;
    berth_arena_destroy(k.arena);
    return status;
}

// ---- the model ----------------------------------------------------------------------------------

typedef struct walk_job {
    walker w;
    const berth_tensor *inputs;
} walk_job;

static berth_status walk_model(void *user) {
    walk_job *job = user;
    walker *w = &job->w;
    const berth_vm_program *program = w->code->program;
    uint32_t piece_count = program->segment_count + program->host_operation_count;
    w->by_value = berth_arena_new_array(w->arena, uint32_t, piece_count + 1);
    const walk_value **arguments =
        berth_arena_array(w->arena, (size_t)program->input_count + 1, sizeof(*arguments));
    const walk_value **results =
        berth_arena_array(w->arena, (size_t)program->output_count + 1, sizeof(*results));
    for (uint32_t i = 0; i < program->input_count; ++i) {
        const berth_tensor anything = {.rank = -1};
        const walk_value *item = walk_tensor(w->arena, &anything, false);
        arguments[i] = program->inputs[i].is_tensor ? walk_tensor(w->arena, &job->inputs[i], true)
                                                    : walk_sequence(w->arena, &item, 1, true);
    }
    bool returned = false;
    BERTH_TRY(walk_function(w, 0, arguments, 0, results, &returned));
    if (returned || !w->stopped) return BERTH_OK;
    berth_status status = w->stopped;
    w->stopped = BERTH_OK;
    return status;
}

static berth_status walk_in_arena(void *user) {
    walk_job *job = user;
    return berth_arena_try(job->w.arena, walk_model, job);
}

// With so many rounds of loops one by one; without a trace where that is not enough.
static berth_status walk_rounds(walk_job job, uint32_t rounds) {
    berth_vm_reached *reached = job.w.reached;
    const uint32_t before = reached->list.count, counts = reached->count_total;
    job.w.rounds = rounds;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job.w.arena));
    berth_status status = berth_arena_try(reached->arena, walk_in_arena, &job);
    if (status) reached->list.count = before, reached->count_total = counts;
    berth_status_free(job.w.stopped);
    berth_arena_destroy(job.w.arena);
    return status;
}

berth_status berth_vm_walk(berth_module *module, const berth_vm_code *code,
                           const berth_tensor *inputs, berth_log log, berth_vm_reached *reached) {
    walk_job job = {.w = {.module = module, .code = code, .log = log, .reached = reached},
                    .inputs = inputs};
    berth_status status = walk_rounds(job, 1);
    if (!status || berth_status_code(status) != BERTH_UNSUPPORTED) return status;
    berth_status_free(status);
    return walk_rounds(job, most_rounds);
}
