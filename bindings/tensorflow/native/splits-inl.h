// One job's batches, handed out one by one to the workers of tf.data service, wherever they are.
//
// A split is an int64 tensor (epoch, index in the epoch). Part of dataset_op.cc, which is compiled
// where TensorFlow is installed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <tensorflow/core/framework/dataset.h>

#include "bindings/tensorflow/native/library-inl.h"

namespace stoker_tf {

// (epoch, index): the name of a batch.
using BatchName = std::pair<int64_t, int64_t>;

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

// Takes its epoch with the first split; Reset (a repeat() above, a job that begins anew) takes the
// next one, or the same where it was named. Thread-safe.
class BatchSplits : public tensorflow::data::SplitProvider {
 public:
  // `epoch` < 0: whichever is next.
  BatchSplits(std::shared_ptr<Source> source, int64_t epoch, int64_t batches)
      : source_(std::move(source)), pinned_(epoch), batches_(batches), epoch_(epoch) {}

  absl::Status GetNext(tensorflow::Tensor* split, bool* end_of_splits) override {
    tensorflow::mutex_lock lock(mutex_);
    *end_of_splits = next_ >= batches_;
    if (*end_of_splits) return absl::OkStatus();
    if (epoch_ < 0) {
      TF_RETURN_IF_ERROR(CheckBound());
      epoch_ = static_cast<int64_t>(Api().epoch_take(source_->key().c_str()));
    }
    *split = tensorflow::Tensor(tensorflow::DT_INT64, tensorflow::TensorShape({2}));
    split->vec<int64_t>()(0) = epoch_;
    split->vec<int64_t>()(1) = next_++;
    return absl::OkStatus();
  }

  absl::Status Reset() override {
    tensorflow::mutex_lock lock(mutex_);
    next_ = 0;
    epoch_ = pinned_;
    return absl::OkStatus();
  }

  absl::Status Save(std::function<std::string(std::string)> full_name,
                    tensorflow::data::IteratorStateWriter* writer) override {
    tensorflow::mutex_lock lock(mutex_);
    TF_RETURN_IF_ERROR(writer->WriteScalar(full_name("split_epoch"), epoch_));
    return writer->WriteScalar(full_name("split_next"), next_);
  }

  absl::Status Restore(std::function<std::string(std::string)> full_name,
                       tensorflow::data::IteratorStateReader* reader) override {
    tensorflow::mutex_lock lock(mutex_);
    TF_RETURN_IF_ERROR(reader->ReadScalar(full_name("split_epoch"), &epoch_));
    return reader->ReadScalar(full_name("split_next"), &next_);
  }

  int64_t Cardinality() const override { return batches_; }

 private:
  const std::shared_ptr<Source> source_;
  const int64_t pinned_;
  const int64_t batches_;
  tensorflow::mutex mutex_;
  int64_t epoch_ TF_GUARDED_BY(mutex_);
  int64_t next_ TF_GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker_tf
