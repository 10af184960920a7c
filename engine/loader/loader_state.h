// The state of an iteration: saved by a program that wants to continue with the next batch later,
// in another process and perhaps with another number of ranks.
//
// It is a JSON object of a few hundred bytes, the same from C++, Python and TensorFlow's
// checkpoints:
//
//   {"version": 3, "epoch": 1, "batch": 3, "start": 0,
//    "options": {"samples": "60", "fingerprint": "0123456789abcdef", "batch_size": "8", …}}
//
// `epoch`, `batch` and `start` are the BatchName of the next batch. `options` is the loader's
// Identity: a loader with a different identity refuses the state.
//
// `world` and `batch_size` may differ from the state's. Then the ranks have delivered the positions
// before P = start + batch × world × batch_size (of the state), and the rest of the epoch is dealt
// out from P on: each remaining sample comes once, with the random draws of its position.
// `remainder` and `drop_remainder` apply to the rest as to an epoch of n - P samples. Later epochs
// are as usual. With batch_tokens the ranks deal out batches: `start` and P count these,
// batch_size, their most rows, must be the state's, and "token batches" is the hash of all. The
// states of all ranks at one step agree, except with Remainder::kUneven at the last step, which
// some ranks do not have: rank 0 has it, so all can use its state.
#pragma once

#include <string>
#include <string_view>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/loader/loader_identity.h"

namespace stoker {

class Sampler;

std::string StateText(const Identity& identity, BatchName next);

// Returns the batch with which a loader with this identity and order continues. Its index is
// Sampler::batches_from(start) if nothing of the epoch is left for its rank, or the state was saved
// at the epoch's end. (At the end Python and Iterator::state save the start of the next epoch, so
// that each iteration has batches; TensorFlow saves the end.) If world × batch_size is the state's,
// so are index and start. `same_ranks`: refuse a state of another world or batch size.
//
// The text may be hostile: its length, its options and the part shown in a message are limited.
// InvalidArgument: it is not a state, is of another version, or has impossible numbers.
// FailedPrecondition: the options or samples differ; the message has both values of the first
// twenty differences. Reads nothing but the text; O(1) in the samples.
Result<BatchName> ReadState(std::string_view state, const Identity& identity, const Sampler& order,
                            bool same_ranks = false);

}  // namespace stoker
