// Fingerprints and ids of a loader's batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/production/producer.h"

namespace stoker::testing {

// Passes each batch of the loader's next epochs to `take`; fails the test on an error, which ends
// the epoch.
void ForEachBatch(Loader& loader, uint64_t epochs, const std::function<void(const Batch&)>& take);

// Options of shuffled batches of 8 augmented photographs, on two workers.
LoaderOptions SmallBatches(std::shared_ptr<const SampleSource> source);

// Returns a hash of every byte of the batch, its shape, its ids and its position.
uint64_t Fingerprint(const Batch& batch);

// Takes batches to the end of the epoch; fails the test on an error.
std::vector<uint64_t> TakeEpoch(Producer& producer);  // fingerprints
std::vector<uint64_t> TakeEpoch(Iterator& iterator);
std::vector<uint64_t> TakeIds(Producer& producer);  // sample ids
// fingerprints of the next `batches`
std::vector<uint64_t> Take(Producer& producer, size_t batches);

}  // namespace stoker::testing
