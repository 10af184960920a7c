#include "tests/testing/samples/batches.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/testing/threads/executors.h"

namespace stoker::testing {

namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {  // FNV-1a, a word at a time
  return (hash ^ value) * 0x100000001b3;
}

template <typename Batches>
std::vector<uint64_t> Prints(Batches& batches) {
  std::vector<uint64_t> prints;
  while (true) {
    Result<Batch> batch = batches.Next();
    if (!batch.ok()) ADD_FAILURE() << batch.error().ToString();
    if (!batch.ok() || !*batch) return prints;
    prints.push_back(Fingerprint(*batch));
  }
}

}  // namespace

void ForEachBatch(Loader& loader, uint64_t epochs, const std::function<void(const Batch&)>& take) {
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto iterator = loader.Iterate();
    while (true) {
      const Result<Batch> batch = iterator->Next();
      if (!batch.ok()) ADD_FAILURE() << batch.error().ToString();
      if (!batch.ok() || !*batch) break;
      take(*batch);
    }
  }
}

LoaderOptions SmallBatches(std::shared_ptr<const SampleSource> source) {
  LoaderOptions options;
  options.source = std::move(source);
  options.transforms = {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}};
  options.batch_size = 8;
  options.shuffle = true;
  options.seed = 5;
  options.runtime = Runtime::Create(RuntimeUnderTest(2)).value();
  return options;
}

uint64_t Fingerprint(const Batch& batch) {
  uint64_t hash = Mix(Mix(0xcbf29ce484222325, batch.epoch()), batch.index());
  for (uint64_t id : batch.sample_ids()) hash = Mix(hash, id);
  for (const Column& column : batch.columns()) {
    const auto* data = static_cast<const uint8_t*>(column.data);
    for (size_t i = 0, bytes = column.bytes(); i < bytes; ++i) hash = Mix(hash, data[i]);
  }
  return hash;
}

std::vector<uint64_t> TakeEpoch(Producer& producer) { return Prints(producer); }
std::vector<uint64_t> TakeEpoch(Iterator& iterator) { return Prints(iterator); }

std::vector<uint64_t> TakeIds(Producer& producer) {
  std::vector<uint64_t> ids;
  while (true) {
    Result<Batch> batch = producer.Next();
    if (!batch.ok()) ADD_FAILURE() << batch.error().ToString();
    if (!batch.ok() || !*batch) return ids;
    ids.insert(ids.end(), batch->sample_ids().begin(), batch->sample_ids().end());
  }
}

std::vector<uint64_t> Take(Producer& producer, size_t batches) {
  std::vector<uint64_t> prints;
  while (prints.size() < batches) {
    Result<Batch> batch = producer.Next();
    if (!batch.ok()) {
      ADD_FAILURE() << batch.error().ToString();
      return prints;
    }
    if (*batch) prints.push_back(Fingerprint(*batch));
  }
  return prints;
}

}  // namespace stoker::testing
