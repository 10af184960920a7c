// The state of an iteration: what a program saves to go on with the next batch later, in another
// process, and with another number of ranks if need be.
//
// It is a JSON object of a few hundred bytes, the same from C++, Python and TensorFlow's
// checkpoints:
//
//   {"version": 3, "epoch": 1, "batch": 3, "start": 0,
//    "options": {"samples": "60", "fingerprint": "0123456789abcdef", "batch_size": "8", …}}
//
// `epoch`, `batch` and `start` are the BatchName of the next batch. `options` is the loader's
// Identity: a loader with another one refuses the state.
//
// `world` and `batch_size` may be others than the state's. Then the ranks have delivered the
// positions before P = start + batch × world × batch_size (of the state), and the rest of the epoch
// is dealt out from P on: each remaining sample comes once, with the random draws of its position.
// `remainder` and `drop_remainder` hold for the rest as for an epoch of n - P samples. Later epochs
// are as usual. The states of all ranks at one step agree, but for Remainder::kUneven in the last
// step, which some ranks do not have: rank 0 has it, and its state serves all.
#pragma once

#include <string>
#include <string_view>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/loader/loader_identity.h"

namespace stoker {

class Sampler;

std::string StateText(const Identity& identity, BatchName next);

// The batch with which an iteration of a loader with this identity and order goes on. Its index is
// Sampler::batches_from(start) if nothing of the epoch is left for its rank, and if the state is of
// the epoch's end. (There Python and Iterator::state save the start of the next epoch, so that each
// iteration has batches; TensorFlow saves the end.) If world × batch_size is the state's, index and
// start are, too. `same_ranks`: a state of another world or batch size is refused.
//
// The text may be hostile: its length, its options and what a message shows of them are limited.
// InvalidArgument: it is not a state, of another version, or its numbers are impossible.
// FailedPrecondition: it is of a loader with other options or samples, and the message has both
// values of the first twenty. Reads nothing but the text; O(1) in the samples.
Result<BatchName> ReadState(std::string_view state, const Identity& identity, const Sampler& order,
                            bool same_ranks = false);

}  // namespace stoker
