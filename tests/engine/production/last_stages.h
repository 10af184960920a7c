// The stages after a sample's bytes have arrived, over a folder of photographs and without threads:
// the fixture of the tests that end rows.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/production/producer_parts.h"
#include "engine/production/stages.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"
#include "tests/testing/threads/one_lease.h"

namespace stoker::testing {

class LastStages : public ::testing::Test {
 protected:
  // Batches of `batch` of the photographs, or of pairs of them, 8 × 8 pixels; one batch is in
  // production.
  LastStages(uint64_t photos, uint32_t batch, std::optional<BatchMix> mix = std::nullopt,
             size_t pieces = 1)
      : photos_(static_cast<int>(photos), 2),
        order_(Sampler::Make({.samples = photos, .batch_size = batch}).value()),
        samples_(8, lease_->samples(), pieces) {
    options_.source = photos_.Source();
    if (pieces == 2) {
      second_.emplace(static_cast<int>(photos), 2);
      options_.source = std::make_shared<PairSource>(photos_.Source(), second_->Source());
    }
    options_.transforms = {RandomResizedCrop{.height = 8, .width = 8}};
    options_.mix = std::move(mix);
    options_.batch_size = batch;
    plan_ = PlanOf(options_, {}).value();
    std::vector<ColumnSpec> columns = ColumnsOf(options_, plan_, nullptr).value();
    std::optional<Mixer> mixer;
    if (options_.mix) mixer = Mixer::Make(options_, false, columns).value();
    pool_ =
        SlotPool::Make({.columns = columns, .batch_size = options_.batch_size, .working_slots = 1},
                       Reservation(budget_))
            .value();
    decoder_.emplace(options_, order_, plan_, mixer, nullptr, columns, nullptr, samples_,
                     lease_->samples(), Decoder::Refuse(), 1);
    assembler_.emplace(order_, pool_, /*depth=*/1, /*max_depth=*/1,
                       BatchSequence(Schedule::kEpochs, order_.batches_per_epoch(), {},
                                     order_.batches_per_epoch(), 9));
    finisher_.emplace(samples_, *assembler_, *decoder_, nullptr, *lease_, reads_, false, trace_);
  }

  const PhotoFolder photos_;
  std::optional<PhotoFolder> second_;  // of pairs
  LoaderOptions options_;
  const Sampler order_;
  MemoryBudget budget_{64 << 20};
  OneLease lease_;
  Trace trace_;
  ReadService reads_{1, {}, trace_};  // has no threads before Attach
  SamplesInFlight samples_;
  std::optional<Plan> plan_;
  std::shared_ptr<SlotPool> pool_;
  std::optional<Decoder> decoder_;
  std::optional<Assembler> assembler_;
  std::optional<BatchFinisher> finisher_;
};

}  // namespace stoker::testing
