#include "engine/production/batches/bad_sample_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/result/plural.h"
#include "core/result/secrets.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "transforms/spec/option.h"

namespace stoker {

namespace {

// Returns a text that JSON can hold: `text` itself, unless it is not UTF-8.
std::string InUtf8(const std::string& text) { return IsUtf8(text) ? text : Printable(text); }

// Returns a line of the list.
std::string LineOf(BatchName batch, const BadRow& bad) {
  const Error error = WithoutSecrets(bad.error);
  nlohmann::ordered_json line = {{"path", InUtf8(error.file)},
                                 {"offset", nullptr},
                                 {"id", bad.sample},
                                 {"epoch", batch.epoch},
                                 {"batch", batch.index},
                                 {"start", batch.start},
                                 {"class", NameOf(bad.fault)},
                                 {"cause", InUtf8(error.cause)},
                                 {"action", NameOf(bad.action)}};
  if (error.offset) line["offset"] = *error.offset;
  return line.dump() + "\n";
}

}  // namespace

Result<std::shared_ptr<BadSampleLog>> BadSampleLog::Open(std::string list, double most) {
  Descriptor file;
  if (!list.empty()) {
    file = Descriptor(
        open(list.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!file.open()) return SystemError(errno, "cannot open the list of bad samples", list);
  }
  return std::shared_ptr<BadSampleLog>(new BadSampleLog(std::move(list), std::move(file), most));
}

BadSampleLog::BadSampleLog(std::string list, Descriptor file, double most)
    : list_(std::move(list)), file_(std::move(file)), most_(most) {}

void BadSampleLog::Count(BatchName batch, uint64_t samples, const std::vector<BadRow>& bad,
                         bool failed) {
  CountRows(batch, samples, bad, failed);
  if (!bad.empty()) (void)Append();  // Check returns the error
}

void BadSampleLog::CountRows(BatchName batch, uint64_t samples, const std::vector<BadRow>& bad,
                             bool failed) {
  const std::lock_guard lock(mutex_);
  uint64_t rows = 0;
  for (size_t i = 0; i < bad.size(); ++i) {
    ++counts_.faults[static_cast<size_t>(bad[i].fault)];
    if (file_.open()) lines_ += LineOf(batch, bad[i]);
    const bool last_of_row = i + 1 == bad.size() || bad[i + 1].row != bad[i].row;
    if (!last_of_row || failed) continue;
    CountRow(bad[i]);
    ++rows;
  }
  if (failed) return;
  samples_ += samples;
  in_a_row_ = rows == samples ? in_a_row_ + rows : 0;
  const uint64_t lost = counts_.substituted + counts_.dropped;
  if (ended_ || most_ == 1) return;
  if (in_a_row_ >= kInARow) {
    ended_ = TooMany("the last " + std::to_string(in_a_row_) +
                     " samples, one after the other, could not be used");
  } else if (samples_ >= kSamplesBefore &&
             static_cast<double>(lost) > most_ * static_cast<double>(samples_)) {
    ended_ =
        TooMany(std::to_string(lost) + " of " + std::to_string(samples_) + " samples " +
                Plural(lost, "was", "were") + " substituted or dropped, more than the share of " +
                NumberText(most_) + " that may be");
  }
}

void BadSampleLog::CountRow(const BadRow& last) {
  counts_.substituted += last.action == OnBad::kSubstitute ? 1 : 0;
  counts_.dropped += last.action == OnBad::kDrop ? 1 : 0;
  if (!first_) first_ = last.error;
}

Status BadSampleLog::Check() {
  TRY(Append());
  const std::lock_guard lock(mutex_);
  return ended_ ? Status(*ended_) : Status();
}

// Each call appends whole lines; on a local file system lines of other processes do not get in
// between. The part of a line that was not written comes first next time.
Status BadSampleLog::Append() {
  const std::lock_guard appending(append_);
  std::string lines;
  {
    const std::lock_guard lock(mutex_);
    if (lines_.empty()) return {};
    lines.swap(lines_);
  }
  ssize_t written = 0;
  do {
    written = write(*file_, lines.data(), lines.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(lines.size())) return {};
  Error error = SystemError(written < 0 ? errno : ENOSPC, "cannot list bad samples", list_);
  error.advice = "Make room on its disk; the next call tries again, and nothing is lost";
  lines.erase(0, static_cast<size_t>(std::max<ssize_t>(written, 0)));
  const std::lock_guard lock(mutex_);
  lines_.insert(0, lines);
  return error;
}

// Returns the error, with the classes of the bad samples and what is known of the first.
Error BadSampleLog::TooMany(std::string what) const {
  std::vector<OptionChange> changes = {{OptionChange::How::kRaise, "max_bad_fraction"}};
  changes.insert(changes.end(), first_->changes.begin(), first_->changes.end());
  Error first = WithoutSecrets(*first_);
  first.changes.clear();
  return Error{
      .code = Code::kDataLoss,
      .cause = std::move(what) + " (" + TextOf(counts_.faults) + "); the first: " + first.Message(),
      .advice = "`stoker verify` lists all bad samples; remove them",
      .changes = std::move(changes)};
}

BadCounts BadSampleLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace stoker
