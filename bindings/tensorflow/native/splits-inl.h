// Hands out one job's batches to the workers of tf.data service.
//
// A split is an int64 tensor (epoch, index in the epoch); with index kSkipped the worker asks
// again. Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <tensorflow/core/framework/dataset.h>

#include "bindings/tensorflow/native/library-inl.h"

namespace stoker_tf {

// (epoch, index): the name of a batch.
using BatchName = std::pair<int64_t, int64_t>;

constexpr int64_t kSkipped = -1;

inline tensorflow::Tensor ToTensor(const std::deque<BatchName>& names) {
  const auto n = static_cast<int64_t>(names.size());
  tensorflow::Tensor tensor(tensorflow::DT_INT64, tensorflow::TensorShape({n, 2}));
  auto matrix = tensor.matrix<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    matrix(i, 0) = names[i].first;
    matrix(i, 1) = names[i].second;
  }
  return tensor;
}

// The message that ends an epoch. It replaces end_of_splits, after which the dispatcher's journal
// forgets how many splits there were. See BatchSplits.
constexpr char kEndOfEpoch[] = "stoker: all batches of this epoch have been handed out";

inline bool IsEndOfEpoch(const absl::Status& status) {
  return absl::IsOutOfRange(status) && absl::StrContains(status.message(), kEndOfEpoch);
}

// The epochs in a restarted dispatcher's journal, by loader. Thread-safe.
class ReplayedEpochs {
 public:
  static ReplayedEpochs& Get() {
    static auto* const replayed = new ReplayedEpochs();
    return *replayed;
  }

  // A replayed job began another epoch.
  void NoteBegun(const std::string& key) {
    tensorflow::mutex_lock lock(mutex_);
    Loader& loader = loaders_[key];
    if (loader.asked) loader = {};  // another dispatcher starts in this process
    ++loader.epochs;
  }

  // Returns the epoch in whose middle a replayed job continues. Jobs of a loader come one after
  // another, so it is the last one; for two simultaneous jobs it is unknown.
  absl::Status Resume(const std::string& key, int64_t* epoch) {
    tensorflow::mutex_lock lock(mutex_);
    Loader& loader = EndReplay(key);
    if (loader.resumed) {
      return absl::FailedPreconditionError(
          "two iterations of one loader were under way when tf.data service's dispatcher was "
          "restarted, and which had which epoch is not known: name it with as_tf_dataset(epoch=k)");
    }
    loader.resumed = true;
    *epoch = loader.epochs - 1;
    return absl::OkStatus();
  }

  // Returns the loader's next epoch, after all that were replayed.
  int64_t Take(const std::string& key) {
    tensorflow::mutex_lock lock(mutex_);
    EndReplay(key);
    return static_cast<int64_t>(Api().epoch_take(key.c_str()));
  }

 private:
  struct Loader {
    int64_t epochs = 0;    // begun by replayed jobs
    bool asked = false;    // a worker has asked: the replay is over
    bool resumed = false;  // the last epoch has its job
  };

  // The loader, when a worker asks. The first time, its counter (a new process starts at 0) moves
  // past the replayed epochs; later the program sets it (follow_epochs).
  Loader& EndReplay(const std::string& key) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Loader& loader = loaders_[key];
    const auto replayed = static_cast<uint64_t>(loader.epochs);
    if (!loader.asked && Api().epoch_next(key.c_str()) < replayed) {
      Api().epoch_set_next(key.c_str(), replayed);
    }
    loader.asked = true;
    return loader;
  }

  tensorflow::mutex mutex_;
  std::map<std::string, Loader> loaders_ TF_GUARDED_BY(mutex_);
};

// Hands out epoch after epoch in one sequence: a repeat() in the workers requests the next epoch by
// Reset.
//
// A dispatcher in fault-tolerant mode that is restarted creates its providers again and requests as
// many splits from each as its journal counts; it neither repeats Reset nor says which epoch it
// was, and its count restarts at each end_of_splits. So there is none: an epoch ends with an error,
// which is not counted, and the count of splits alone determines the next epoch and batch. Finished
// jobs are replayed, too, so the sum over a loader's jobs is its next epoch. The replay runs on the
// Python thread that starts the dispatcher; workers are answered on gRPC's. Thread-safe.
class BatchSplits : public tensorflow::data::SplitProvider {
 public:
  // `epoch` < 0: the next one.
  BatchSplits(std::shared_ptr<Source> source, int64_t epoch, int64_t batches)
      : source_(std::move(source)), pinned_(epoch), batches_(batches), epoch_(epoch) {}

  absl::Status GetNext(tensorflow::Tensor* split, bool* end_of_splits) override {
    tensorflow::mutex_lock lock(mutex_);
    *end_of_splits = batches_ == 0;
    if (*end_of_splits) return absl::OkStatus();
    TF_RETURN_IF_ERROR(CheckBound());
    if (OnThreadOfPython()) {
      Replay();
    } else {
      *end_of_splits = counted_ && AtEnd();
      if (*end_of_splits) return absl::OkStatus();
      TF_RETURN_IF_ERROR(DecideEpoch());
    }
    *split = tensorflow::Tensor(tensorflow::DT_INT64, tensorflow::TensorShape({2}));
    split->vec<int64_t>()(0) = epoch_;
    split->vec<int64_t>()(1) = skipping_ ? kSkipped : next_ % batches_;
    ++next_;
    return absl::OkStatus();
  }

  // In the middle of an epoch (as with take(3).repeat()) the rest of it is handed out as skipped,
  // so that the count stays correct.
  absl::Status Reset() override {
    tensorflow::mutex_lock lock(mutex_);
    skipping_ = next_ > 0;
    return absl::OkStatus();
  }

  absl::Status Save(std::function<std::string(std::string)> full_name,
                    tensorflow::data::IteratorStateWriter* writer) override {
    tensorflow::mutex_lock lock(mutex_);
    TF_RETURN_IF_ERROR(writer->WriteScalar(full_name("split_epoch"), epoch_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(full_name("split_skipping"), skipping_));
    return writer->WriteScalar(full_name("split_next"), next_);
  }

  absl::Status Restore(std::function<std::string(std::string)> full_name,
                       tensorflow::data::IteratorStateReader* reader) override {
    tensorflow::mutex_lock lock(mutex_);
    int64_t skipping = 0;
    TF_RETURN_IF_ERROR(reader->ReadScalar(full_name("split_epoch"), &epoch_));
    TF_RETURN_IF_ERROR(reader->ReadScalar(full_name("split_skipping"), &skipping));
    skipping_ = skipping != 0;
    return reader->ReadScalar(full_name("split_next"), &next_);
  }

  // TensorFlow asks before it saves a snapshot (distributed_save), but not for jobs. A snapshot has
  // its own journal, which needs end_of_splits and none of the above.
  int64_t Cardinality() const override {
    counted_ = true;
    return batches_;
  }

 private:
  bool AtEnd() const TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next_ > 0 && next_ % batches_ == 0 && !skipping_;
  }

  // The result of this split is discarded.
  void Replay() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (next_ % batches_ == 0 && pinned_ < 0) ReplayedEpochs::Get().NoteBegun(source_->epochs());
  }

  absl::Status DecideEpoch() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (AtEnd()) return absl::OutOfRangeError(kEndOfEpoch);
    if (next_ % batches_ == 0) {
      skipping_ = false;
      if (pinned_ < 0) {
        TF_RETURN_IF_ERROR(CheckNothingRestored(source_->epochs()));
        epoch_ = ReplayedEpochs::Get().Take(source_->epochs());
      }
    }
    if (epoch_ >= 0) return absl::OkStatus();
    return ReplayedEpochs::Get().Resume(source_->epochs(), &epoch_);
  }

  const std::shared_ptr<Source> source_;
  const int64_t pinned_;
  const int64_t batches_;
  mutable std::atomic<bool> counted_{false};
  tensorflow::mutex mutex_;
  int64_t epoch_ TF_GUARDED_BY(mutex_);          // < 0: not decided, or unknown after a replay
  int64_t next_ TF_GUARDED_BY(mutex_) = 0;       // splits handed out, in all epochs
  bool skipping_ TF_GUARDED_BY(mutex_) = false;  // batches left in the epoch
};

}  // namespace stoker_tf
