#include "tests/torture/soak_job.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/options/bad_policy.h"

namespace stoker::testing {

SoakTotals& SoakTotals::operator+=(const SoakTotals& other) {
  for (const auto member :
       {&SoakTotals::sets, &SoakTotals::batches, &SoakTotals::samples,
        &SoakTotals::rows_decoded_again, &SoakTotals::failed, &SoakTotals::substituted,
        &SoakTotals::dropped, &SoakTotals::resumed, &SoakTotals::restored, &SoakTotals::sought,
        &SoakTotals::interrupted, &SoakTotals::by_name, &SoakTotals::beside, &SoakTotals::stopped,
        &SoakTotals::refused}) {
    this->*member += other.*member;
  }
  return *this;
}

void DrawOrder(Draw& draw, LoaderOptions& options) {
  options.shuffle = draw.Chance(0.8);
  options.seed = draw.Below(1000);
  options.world = static_cast<uint32_t>(draw.Of<uint64_t>({1, 1, 2, 3, 8}));
  options.rank = static_cast<uint32_t>(draw.Below(options.world));
  options.remainder = draw.Of({Remainder::kUneven, Remainder::kDrop, Remainder::kPad});
  const uint64_t step = uint64_t{options.batch_size} * options.world;
  options.drop_remainder = draw.Chance(0.2) && step <= options.source->size();
  options.on_bad =
      BadPolicy::Parse(draw.Of<const char*>({"fail", "substitute", "drop", "substitute",
                                             "undecodable=drop,truncated=substitute",
                                             "vanished=drop,unreadable=drop,truncated=drop"}))
          .value();
  options.max_bad_fraction = 1;
  options.lent_batches = 0;
}

SoakJob::SoakJob(Options options, const SoakStorage& storage, Draw draw, SoakTotals& totals)
    : options_(std::move(options)),
      storage_(storage),
      draw_(draw),
      model_(options_.loader, *storage_.disk, storage_.faults),
      totals_(totals) {}

std::string SoakJob::Run() {
  for (uint64_t life = 1 + draw_.Below(options_.most_lives); life > 0 && wrong_.empty(); --life) {
    Live();
  }
  ++totals_.sets;
  return wrong_;
}

// From opening a loader to its end, which leaves the position to the next one.
void SoakJob::Live() {
  if (!Open()) return;
  totals_.resumed += 1;
  for (uint64_t steps = draw_.Below(options_.most_steps); steps > 0; --steps) {
    if (!wrong_.empty() || refused_) break;
    Step();
  }
  if (draw_.Chance(0.2)) {
    Stop();
  } else {
    CheckCounts();
  }
  if (draw_.Chance(0.5)) Hold(0);  // else the batches outlive their loader
  if (draw_.Chance(0.5)) loader_.reset();
  iterator_.reset();
  loader_.reset();
}

bool SoakJob::Open() {
  LoaderOptions options = options_.loader;
  options.runtime = options_.runtime();
  options.depth = static_cast<int>(draw_.Below(6));
  bad_ = {};
  passed_ = 0;
  refused_ = false;
  auto loader = Loader::Open(std::move(options));
  if (!loader.ok()) {
    refused_ = options_.may_be_refused && loader.error().code == Code::kResourceExhausted;
    ++totals_.refused;
    if (!refused_) Wrong(loader.error().ToString());
    return false;
  }
  loader_ = *std::move(loader);
  iterator_ = loader_->Iterate();
  Seek(at_);
  return wrong_.empty();
}

void SoakJob::Step() {
  if (options_.hooks.step) options_.hooks.step();
  if (draw_.Chance(options_.seeks)) {
    ++totals_.sought;
    Seek(AnyBatch());
  }
  if (draw_.Chance(0.03)) Restore();
  if (draw_.Chance(0.03)) ByName();
  if (draw_.Chance(0.03)) Beside();
  if (draw_.Chance(0.03)) Interrupted();
  if (!refused_) Next(*iterator_, at_);
  Hold(draw_.Below(4));
}

void SoakJob::Hold(size_t most) {
  while (held_.size() > most) {
    Batch batch = std::move(held_.back());
    held_.pop_back();
    if (options_.hooks.discard) options_.hooks.discard(std::move(batch));
  }
}

BatchName SoakJob::AnyBatch() { return {draw_.Below(5), draw_.Below(model_.batches_per_epoch())}; }

void SoakJob::Seek(BatchName to) {
  const Status sought = iterator_->Seek(to);
  if (!sought.ok()) Wrong(sought.error().ToString());
  at_ = to;
}

// Another iterator goes on where this one would, from its state.
void SoakJob::Restore() {
  ++totals_.restored;
  const std::string state = iterator_->state();
  auto next = loader_->Iterate();
  const Status restored = next->Restore(state);
  if (!restored.ok()) return Wrong(restored.error().ToString());
  if (at_.index == model_.batches_per_epoch()) at_ = {at_.epoch + 1, 0};
  const auto position = next->position();
  if (!position || *position != at_) return Wrong("a restored iterator is at another batch");
  iterator_ = std::move(next);
}

// Takes the iterator's next batch, which must be the first one from `at` on that is delivered.
void SoakJob::Next(Iterator& iterator, BatchName& at) {
  if (at.index == model_.batches_per_epoch()) {
    at = {at.epoch + 1, 0};
    if (!iterator.Seek(at).ok()) Wrong("Seek to the next epoch failed");
  }
  Result<Batch> batch = iterator.Next();
  if (options_.hooks.gets) options_.hooks.gets(batch);
  if (IsRefusal(batch)) return;
  for (; at.index < model_.batches_per_epoch(); ++at.index) {
    const ExpectedBatch expected = model_.At(at);
    if (expected.fails || !expected.rows.empty()) {
      Check(std::move(batch), at, expected);
      ++at.index;
      break;
    }
    Count(expected);  // all its rows are left out: it is not delivered
  }
  const auto position = iterator.position();
  if (!position || *position != at) Wrong("the iterator is at another batch");
}

// Whether the batch was refused, because there was no memory for an engine or too many are lent:
// then the loader is left.
bool SoakJob::IsRefusal(const Result<Batch>& batch) {
  if (!options_.may_be_refused || batch.ok()) return false;
  if (batch.error().code != Code::kResourceExhausted || FaultOf(batch.error())) return false;
  ++totals_.refused;
  return refused_ = true;
}

void SoakJob::Count(const ExpectedBatch& expected) {
  if (expected.fails) return;
  totals_.substituted += expected.substituted;
  totals_.dropped += expected.dropped;
  bad_.substituted += expected.substituted;
  bad_.dropped += expected.dropped;
  ++passed_;
}

void SoakJob::Check(Result<Batch> batch, BatchName name, const ExpectedBatch& expected) {
  ++totals_.batches;
  Count(expected);
  if (expected.fails) {
    ++totals_.failed;
    if (batch.ok()) return Wrong(name, "it was delivered, with a sample that is bad");
    if (!FaultOf(batch.error())) Wrong(name, batch.error().ToString());
    return;
  }
  if (!batch.ok()) return Wrong(name, batch.error().ToString());
  if (!*batch) return Wrong(name, "it is missing");
  if (batch->name() != name) return Wrong(name, "another batch came");
  if (std::string different = model_.Differs(*batch, expected, 2); !different.empty()) {
    return Wrong(name, different);
  }
  totals_.samples += expected.rows.size();
  totals_.rows_decoded_again += std::min<size_t>(2, expected.rows.size());
  held_.push_front(*std::move(batch));
}

void SoakJob::ByName() {
  ++totals_.by_name;
  const BatchName name = AnyBatch();
  Result<Batch> batch = loader_->BatchAt(name);
  if (options_.hooks.gets) options_.hooks.gets(batch);
  if (!IsRefusal(batch)) Check(std::move(batch), name, model_.At(name));
}

// A second iteration next to the first one.
void SoakJob::Beside() {
  ++totals_.beside;
  const auto second = loader_->Iterate();
  BatchName at = AnyBatch();
  if (!second->Seek(at).ok()) return Wrong("Seek of a second iterator failed");
  for (uint64_t batches = 1 + draw_.Below(5); batches > 0 && !refused_; --batches) {
    Next(*second, at);
  }
}

// A wait that is interrupted loses nothing: the batch comes later. It may be the first one after
// Seek.
void SoakJob::Interrupted() {
  if (draw_.Chance(0.5)) Seek(AnyBatch());
  if (refused_ || at_.index == model_.batches_per_epoch()) return;
  const ExpectedBatch expected = model_.At(at_);
  if (expected.fails || expected.rows.empty()) return;
  Result<Batch> batch = iterator_->Next([] { return true; });
  if (!batch.ok() && batch.error().code == Code::kCancelled) {
    ++totals_.interrupted;
    return;
  }
  if (options_.hooks.gets) options_.hooks.gets(batch);
  if (IsRefusal(batch)) return;
  Check(std::move(batch), at_, expected);
  ++at_.index;
}

// Stops the loader while another thread waits for a batch, perhaps the first one after Seek.
void SoakJob::Stop() {
  if (draw_.Chance(0.5)) Seek(AnyBatch());
  Hold(0);  // so that the next batch may be lent
  ++totals_.stopped;
  std::thread stopper([this] {
    if (options_.hooks.step) options_.hooks.step();
    loader_->Stop();
  });
  while (true) {
    const Result<Batch> batch = iterator_->Next();
    if (batch.ok() && !*batch) break;  // the end of the epoch came first
    if (batch.ok() || FaultOf(batch.error())) continue;
    if (batch.error().code != Code::kCancelled && !IsRefusal(batch)) {
      Wrong(batch.error().ToString());
    }
    break;
  }
  stopper.join();
}

// Each row of the batches that were taken counts once.
void SoakJob::CheckCounts() {
  if (!wrong_.empty() || refused_) return;
  const LoaderStats stats = loader_->Stats();
  const auto check = [this](const char* what, uint64_t got, uint64_t expected) {
    if (got == expected) return;
    Wrong("the loader has counted " + std::to_string(got) + " " + what + ", not " +
          std::to_string(expected));
  };
  check("batches", stats.batches, passed_);
  check("substituted rows", stats.bad.substituted, bad_.substituted);
  check("dropped rows", stats.bad.dropped, bad_.dropped);
}

void SoakJob::Wrong(BatchName name, const std::string& what) { Wrong(TextOf(name) + ": " + what); }

void SoakJob::Wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

}  // namespace stoker::testing
