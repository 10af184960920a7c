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
//   3. The template keeps only the class of each of its rows. An epoch permutes the batches, and
//      which sample of a class is in which of its rows; so any batch stays within the budget.
//
// A position is a row's index in the template. With Remainder::kPad batches wrap; positions
// continue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct TokenBatchOptions {
  std::span<const uint32_t> tokens;  // of each sample, at most `budget`; 0 is possible
  uint32_t budget = 1;               // the most tokens of a batch
  uint32_t most_rows = 1;            // at least 1
  uint64_t seed = 0;
  bool shuffle = false;
  bool padded = false;  // rows × the largest of a batch count, instead of the sum
};

// The numbers of this definition, for both of its forms.
inline constexpr uint32_t kTokenLookahead = 256;
inline constexpr uint64_t kTemplateEpoch = uint64_t{1} << 33;  // of step 2's order; no epoch has it
constexpr bool IsOfTokenClass(uint32_t tokens, uint32_t largest, bool shuffle) {
  return shuffle ? uint64_t{tokens} * 64 >= uint64_t{largest} * 63 : tokens == largest;
}
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

  // The number of batches in each epoch, over all ranks; `full`: without the last one if the
  // smallest sample would still fit in it.
  uint64_t batches(bool full) const { return full ? full_ : begins_.size() - 1; }
  uint32_t most_rows() const { return most_rows_; }  // of any batch
  double fill() const { return fill_; }              // tokens / (batches × budget)
  // A budget with which batches would be fuller than these, which are less than 97 % full: four
  // times the largest sample. 0 if that is not the reason, if an epoch then has few batches, of
  // which the last one is not full, or if they are padded.
  uint64_t fuller_budget() const { return fuller_; }
  // An upper bound, over the batches of all epochs, of the sum of `of`, a number of each sample; of
  // padded batches, of the rows × the largest.
  uint64_t MostOf(std::span<const uint32_t> of) const;
  // Equal for the same batches in all epochs of a seed.
  uint64_t Hash() const;

  // The positions of the batch `number` of `batches` in an epoch; beyond these, again from the
  // first. O(1).
  struct Rows {
    uint64_t position = 0;  // of the first row
    uint32_t count = 0;
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
  void EndBatch();
  uint64_t MemberAt(uint64_t epoch, uint64_t position) const;
  size_t ClassOf(uint32_t member) const;

  const uint64_t seed_;
  const bool shuffle_, padded_;
  uint32_t most_rows_ = 0;
  uint64_t full_ = 0;  // batches; the last one is the only one that may not be full
  double fill_ = 0;
  uint64_t fuller_ = 0;
  std::vector<uint32_t> members_;       // samples, by (tokens, id)
  std::vector<uint32_t> class_begins_;  // in members_, and their number
  std::vector<uint32_t> slots_;         // by position: a member of the row's class
  std::vector<uint32_t> begins_;        // of batches, in slots_, and their number
};

// The batches of an epoch, as lists of samples, made literally: the specification that TokenBatches
// is compared with. Precondition: there are samples.
struct PlainTokenBatches {
  PlainTokenBatches(const TokenBatchOptions& options, uint64_t epoch);
  std::vector<std::vector<uint64_t>> batches;
  uint64_t full = 0;  // TokenBatches::batches(true)
};

}  // namespace stoker
