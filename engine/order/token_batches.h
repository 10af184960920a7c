// TokenBatches: the batches of an epoch that are filled up to a number of tokens instead of rows.
//
// They are planned once, as a template, so each epoch has the same number of batches:
//
//   1. Samples whose numbers of tokens differ by at most 1/64 are a class, and count as its largest
//      one. Without shuffling, a class has one number.
//   2. The samples, in a random order or in that of the source, are dealt out into batches. The
//      oldest of the next 256 samples goes into the batch if it fits; if it does not, the largest
//      that does. The batch is complete when none fits, or when it has its most rows.
//      Padded batches have samples of similar sizes instead: from the largest on, each batch takes
//      the next samples as long as its rows × its largest class are within the budget.
//      In buckets all samples are one class. A run of W batches has one length L, which is drawn
//      from (seed, the run's number), and W × ⌊budget / L⌋ rows. The samples that are left for the
//      last run are dealt out evenly to its batches; fewer than W have a batch each. An epoch
//      permutes runs instead of batches, so all batches of a step of W ranks, [sW, (s + 1)W), have
//      one length. (timm's naflex_dataset.py draws such a schedule, too.)
//   3. The template keeps only the class of each of its rows. An epoch permutes the batches, and
//      which sample of a class is in which of its rows; so any batch stays within the budget.
//
// A position is a row's index in the template. With Remainder::kPad batches wrap; positions
// continue. In buckets only the first row of each is repeated, with the last run's length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/options/buckets.h"

namespace stoker {

struct TokenBatchOptions {
  std::span<const uint32_t> tokens;  // of each sample, at most `budget`; 0 is possible
  uint32_t budget = 1;               // the most tokens of a batch
  uint32_t most_rows = 1;            // at least 1
  uint64_t seed = 0;
  bool shuffle = false;
  bool padded = false;  // rows × the largest of a batch count, instead of the sum
  // If not null, `tokens` are equal, and only their number matters. It must outlive the call, and
  // RowsOf(bucket, budget, most_rows) must be at least 1 for each bucket.
  const Buckets* buckets = nullptr;
  uint32_t run = 1;  // W, the batches of a step; 1 without buckets
};

// The numbers of this definition, for both of its forms.
inline constexpr uint32_t kTokenLookahead = 256;
inline constexpr uint64_t kTemplateEpoch = uint64_t{1} << 33;  // of step 2's order; no epoch has it
constexpr bool IsOfTokenClass(uint32_t tokens, uint32_t largest, bool shuffle) {
  return shuffle ? uint64_t{tokens} * 64 >= uint64_t{largest} * 63 : tokens == largest;
}
inline constexpr uint32_t kBucketStream = 0xfffb;  // of random draws, which no transform has
// The seeds of step 3: of the batches (0), and of each class, from the smallest (1) on.
constexpr uint64_t TokenSeed(uint64_t seed, uint64_t of) {
  return seed + (of + 1) * 0x9E3779B97F4A7C15;
}

// Immutable and thread-safe. The same options give the same batches on every machine. It has 8
// bytes for each sample, and 4 for each batch and each class.
class TokenBatches {
 public:
  // Precondition: there are 1 to kMostSamples samples.
  explicit TokenBatches(const TokenBatchOptions& options);

  static constexpr uint64_t kMostSamples = ~uint32_t{0};
  // An upper bound of the bytes for each sample while batches are planned, with those of `tokens`.
  static constexpr uint64_t kPlanBytes = 64;

  bool has_buckets() const { return !lengths_.empty(); }

  // The number of batches in each epoch, over all ranks; `full`: without the last one if the
  // smallest sample would still fit in it, or without the last run if it is not full.
  uint64_t batches(bool full) const { return full ? full_ : begins_.size() - 1; }
  uint32_t most_rows() const { return most_rows_; }  // of any batch
  double fill() const { return fill_; }              // tokens / (batches × budget)
  // A budget with which batches would be fuller than these, which are less than 97 % full: four
  // times the largest sample. 0 if that is not the reason, if an epoch then has few batches, of
  // which the last one is not full, or if they are padded.
  uint64_t fuller_budget() const { return fuller_; }
  // An upper bound, over the batches of all epochs, of the sum of `of`, a number of each sample; of
  // padded batches, of the rows × the largest. In buckets, of the rows × their length.
  uint64_t MostOf(std::span<const uint32_t> of) const;
  // Equal for the same batches in all epochs of a seed.
  uint64_t Hash() const;

  // The positions of the batch `number` of `batches` in an epoch; beyond these, again from the
  // first. O(1).
  struct Rows {
    uint64_t position = 0;  // of the first row
    uint32_t count = 0;
    uint32_t length = 0;  // of each row, in buckets
  };
  Rows RowsOf(uint64_t epoch, uint64_t number, uint64_t batches) const;

  // Returns the sample at a position. O(log classes).
  uint64_t SampleAt(uint64_t epoch, uint64_t position) const {
    return members_[MemberAt(epoch, position)];
  }

  // The number of samples that may replace the one at a position: the others of its class and all
  // with fewer tokens. Substitute returns one of them. Precondition: index < SubstitutesFor.
  uint64_t SubstitutesFor(uint64_t position) const;
  uint64_t Substitute(uint64_t epoch, uint64_t position, uint64_t index) const;

 private:
  // Fill slots_ and begins_. Return whether the last batch is full. `tops`: the tokens of each
  // class.
  bool Pack(const TokenBatchOptions& options, std::span<const uint32_t> tops);
  bool PackBySize(const TokenBatchOptions& options, std::span<const uint32_t> tops);
  // Also fills lengths_ and full_. Returns rows × length of all batches.
  uint64_t PackInBuckets(const TokenBatchOptions& options);
  void EndBatch();
  uint64_t MemberAt(uint64_t epoch, uint64_t position) const;
  size_t ClassOf(uint32_t member) const;

  const uint64_t seed_;
  const bool shuffle_, padded_;
  const uint32_t run_;
  uint32_t most_rows_ = 0;
  uint64_t full_ = 0;  // batches, a multiple of run_; those after them may not be full
  double fill_ = 0;
  uint64_t fuller_ = 0;
  std::vector<uint32_t> members_;       // samples, by (tokens, id)
  std::vector<uint32_t> class_begins_;  // in members_, and their number
  std::vector<uint32_t> slots_;         // by position: a member of the row's class
  std::vector<uint32_t> begins_;        // of batches, in slots_, and their number
  std::vector<uint32_t> lengths_;       // of runs, in buckets
  uint64_t most_places_ = 0;            // in buckets: rows × length of any batch
};

// The batches of an epoch, as lists of samples, made literally: the specification that TokenBatches
// is compared with. Precondition: there are samples.
struct PlainTokenBatches {
  PlainTokenBatches(const TokenBatchOptions& options, uint64_t epoch);
  std::vector<std::vector<uint64_t>> batches;
  uint64_t full = 0;  // TokenBatches::batches(true)
};

// The same of options with buckets.
struct PlainBucketBatches {
  PlainBucketBatches(const TokenBatchOptions& options, uint64_t epoch);
  std::vector<std::vector<uint64_t>> batches;
  std::vector<uint32_t> lengths;  // by batch
  uint64_t full = 0;
};

}  // namespace stoker
