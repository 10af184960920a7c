// An iterator of tf.data over one iteration of a stoker loader.
//
// Nothing is opened or read before the first GetNext, so that Restore and Skip before it decode
// nothing needlessly. With split providers (tf.data service's DYNAMIC sharding) the iterator
// requests splits ahead of what it delivers, and stores the splits in between in the checkpoint.
// Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <tensorflow/core/framework/dataset.h>
#include <tensorflow/core/framework/model.h>
#include <tensorflow/core/platform/cpu_info.h>

#include "bindings/tensorflow/native/batch_tensors-inl.h"
#include "bindings/tensorflow/native/library-inl.h"
#include "bindings/tensorflow/native/placement-inl.h"
#include "bindings/tensorflow/native/splits-inl.h"

namespace stoker_tf {

namespace data = tensorflow::data;

// `DatasetT` has source(), epoch() (-1 means the next one), batches() (per epoch), elements() and
// placement().
template <typename DatasetT>
class BatchIterator : public data::DatasetIterator<DatasetT> {
 public:
  using Base = data::DatasetIterator<DatasetT>;
  explicit BatchIterator(const typename Base::Params& params) : Base(params) {}
  ~BatchIterator() override {
    delivered_->Forget();
    if (splits_ != nullptr) splits_->Cancel();
    if (cursor_ != nullptr) Api().cursor_free(cursor_);
  }

  bool SymbolicCheckpointCompatible() const override { return true; }

  absl::Status Initialize(data::IteratorContext* ctx) override {
    const auto providers = ctx->split_providers();
    if (providers.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("stoker's dataset takes its splits from one provider, not from ",
                       providers.size(), ": another source's was handed to it"));
    }
    if (!providers.empty()) splits_ = providers.front();
    const auto* const library = ctx->flr();
    TF_RETURN_IF_ERROR(CheckPlacement(this->dataset()->placement(),
                                      library == nullptr ? nullptr : library->device()));
    return CheckBound();
  }

 protected:
  // The workers are shared by all loaders of the process, and there are as many as cores:
  // TensorFlow's AUTOTUNE has nothing to tune, and would set a parameter to its maximum.
  std::shared_ptr<data::model::Node> CreateNode(data::IteratorContext*,
                                                data::model::Node::Args args) const override {
    double workers = tensorflow::port::MaxParallelism();
    stoker_dataset_info info{};
    info.struct_size = sizeof(info);
    stoker_dataset* const loader = this->dataset()->source()->IfOpen();
    if (loader != nullptr && ToStatus(Api().dataset_info(loader, &info)).ok()) workers = info.cores;
    return data::model::MakeAsyncKnownRatioNode(
        std::move(args), /*ratio=*/0.0,
        {data::model::MakeNonTunableParameter(data::model::kParallelism, workers)});
  }

  data::TraceMeMetadata GetTraceMeMetadata() const override {
    return {{"parallelism", absl::StrCat(cores_.load(std::memory_order_relaxed))},
            {"depth", absl::StrCat(depth_.load(std::memory_order_relaxed))},
            {"batches", absl::StrCat(this->dataset()->batches())}};
  }

  absl::Status GetNextInternal(data::IteratorContext* ctx, std::vector<tensorflow::Tensor>* out,
                               bool* end_of_sequence) override {
    Wait wait(ctx->cancellation_manager(), [this] {
      if (splits_ != nullptr) splits_->Cancel();
    });
    // The lock is held while waiting, because a position in the middle of a call has no meaning;
    // ending the wait does not need it.
    tensorflow::mutex_lock lock(mutex_);
    if (wait.cancelled()) return absl::CancelledError("the iteration was cancelled");
    if (absl::Status status = OpenCursor(); !status.ok()) return Stuck(status);
    bool decided = splits_ != nullptr;
    if (!decided) Position(&decided);
    if (!decided) TF_RETURN_IF_ERROR(CheckNothingRestored(key()));
    bool left_out = false;
    do {
      TF_RETURN_IF_ERROR(GetBatch(ctx, wait, out, end_of_sequence, &left_out));
    } while (left_out);
    if (!*end_of_sequence && OnThreadOfPython()) Delivered::Here() = delivered_;
    return absl::OkStatus();
  }

  // `left_out`: the batch has lost all its rows; only batches of splits are delivered then.
  absl::Status GetBatch(data::IteratorContext* ctx, const Wait& wait,
                        std::vector<tensorflow::Tensor>* out, bool* end_of_sequence, bool* left_out)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    *left_out = false;
    if (splits_ != nullptr) {
      TF_RETURN_IF_ERROR(ClaimSplits(wait));
      *end_of_sequence = claimed_.empty();  // other workers have taken the rest
      if (*end_of_sequence) return absl::OkStatus();
    }
    stoker_batch* next = nullptr;
    int32_t passed = 0;
    this->RecordStop(ctx);
    stoker_error* const error = Api().cursor_next(cursor_, wait.interrupt(), &next, &passed);
    this->RecordStart(ctx);
    const std::unique_ptr<stoker_batch, void (*)(stoker_batch*)> batch(next, Api().batch_free);
    if (error != nullptr) return Failed(ToStatus(error), passed != 0);
    if (const char* warning = Api().dataset_warning(loader_)) {
      // TensorFlow's log is not used: most programs run at a level that omits warnings.
      std::fprintf(stderr, "stoker: %s\n", warning);
    }
    *end_of_sequence = batch == nullptr;
    if (*end_of_sequence) {
      refusals_ = 0;
      if (claimed_.empty()) return absl::OkStatus();
      return absl::InternalError("stoker lost a split that it had claimed");
    }
    if (!claimed_.empty()) claimed_.pop_front();
    if (absl::Status status = Hand(batch.get(), out); !status.ok()) {
      out->clear();
      if (splits_ != nullptr) return status;
      Api().cursor_take_back(cursor_);
      return Stuck(status);
    }
    refusals_ = 0;
    *left_out = !out->empty() && out->front().dim_size(0) == 0;
    if (*left_out) out->clear();
    return absl::OkStatus();
  }

  absl::Status Hand(const stoker_batch* batch, std::vector<tensorflow::Tensor>* out)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Placement& placement = this->dataset()->placement();
    if (placement.on_device) {
      TF_RETURN_IF_ERROR(ToStatus(Api().batch_wait_on(batch, placement.stream)));
    }
    return ToTensors(loader_, batch, this->dataset()->elements(), out);
  }

  absl::Status SkipInternal(data::IteratorContext* ctx, int num_to_skip, bool* end_of_sequence,
                            int* num_skipped) override {
    if (splits_ != nullptr) {  // others may have taken the batches in between
      return Base::SkipInternal(ctx, num_to_skip, end_of_sequence, num_skipped);
    }
    tensorflow::mutex_lock lock(mutex_);
    TF_RETURN_IF_ERROR(OpenCursor());
    bool decided = false;
    stoker_batch_name at = Position(&decided);
    if (!decided) {
      TF_RETURN_IF_ERROR(CheckNothingRestored(key()));
      at.epoch = Api().epoch_take(key());
    }
    const auto left = static_cast<int64_t>(at.end - at.index);
    *num_skipped = static_cast<int>(std::clamp<int64_t>(left, 0, num_to_skip));
    *end_of_sequence = *num_skipped < num_to_skip;
    at.index += static_cast<uint64_t>(*num_skipped);
    return ToStatus(Api().cursor_seek(cursor_, &at));
  }

  absl::Status SaveInternal(data::SerializationContext* ctx,
                            data::IteratorStateWriter* writer) override {
    tensorflow::mutex_lock lock(mutex_);
    const std::string& prefix = this->prefix();
    TF_RETURN_IF_ERROR(OpenCursor());
    // An iterator that was never used has no epoch, and saving it takes none: its state is that of
    // epoch 0, and only identifies its loader.
    bool decided = false;
    std::string state;
    TF_RETURN_IF_ERROR(StateAt(Position(&decided), &state));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, "pin", this->dataset()->epoch()));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, "state", tensorflow::tstring(state)));
    // Otherwise batches that no rank had are in TensorFlow's buffers, and in the checkpoint.
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix, "symbolic", static_cast<int64_t>(ctx->symbolic_checkpoint())));
    if (splits_ != nullptr) {
      TF_RETURN_IF_ERROR(writer->WriteTensor(prefix, "claimed", ToTensor(claimed_)));
      TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, "end_of_splits", end_of_splits_));
      return splits_->Save([this](const std::string& name) { return this->full_name(name); },
                           writer);
    }
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, "decided", static_cast<int64_t>(decided)));
    return writer->WriteScalar(prefix, "next_epoch", static_cast<int64_t>(Api().epoch_next(key())));
  }

  absl::Status RestoreInternal(data::IteratorContext* ctx,
                               data::IteratorStateReader* reader) override {
    tensorflow::mutex_lock lock(mutex_);
    stoker_batch_name next{};
    TF_RETURN_IF_ERROR(ReadState(reader, &next));
    if (splits_ != nullptr) return RestoreSplits(ctx, reader);
    const std::string& prefix = this->prefix();
    int64_t decided = 0;
    int64_t next_epoch = 0;
    TF_RETURN_IF_ERROR(reader->ReadScalar(prefix, "decided", &decided));
    TF_RETURN_IF_ERROR(reader->ReadScalar(prefix, "next_epoch", &next_epoch));
    // A pinned iteration neither takes epochs nor sets the next one.
    if (this->dataset()->epoch() < 0) Api().epoch_set_next(key(), next_epoch);
    return decided == 0 ? absl::OkStatus() : ToStatus(Api().cursor_seek(cursor_, &next));
  }

 private:
  // Returns the batch at which the iteration continues. FailedPrecondition: the checkpoint comes
  // from another loader, or from another pinned epoch. Splits are batches of one world and batch
  // size.
  absl::Status ReadState(data::IteratorStateReader* reader, stoker_batch_name* next)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!reader->Contains(this->prefix(), "state")) {
      return absl::FailedPreconditionError(
          "the checkpoint has no state of a stoker loader: an older stoker saved it, or the "
          "iterator is of another dataset. Leave the iterator out of the checkpoint");
    }
    tensorflow::tstring state;
    int64_t pin = -1;
    int64_t symbolic = 0;
    TF_RETURN_IF_ERROR(reader->ReadScalar(this->prefix(), "state", &state));
    TF_RETURN_IF_ERROR(reader->ReadScalar(this->prefix(), "pin", &pin));
    TF_RETURN_IF_ERROR(reader->ReadScalar(this->prefix(), "symbolic", &symbolic));
    TF_RETURN_IF_ERROR(OpenCursor());
    TF_RETURN_IF_ERROR(PlaceOf(state, symbolic != 0, next));
    if (pin == this->dataset()->epoch()) return absl::OkStatus();
    const auto named = [](int64_t epoch) {
      return epoch < 0 ? std::string("as_tf_dataset()")
                       : absl::StrCat("as_tf_dataset(epoch=", epoch, ")");
    };
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint is of ", named(pin), ", this is ", named(this->dataset()->epoch())));
  }

  // Another world or batch size is possible only with a symbolic checkpoint: other checkpoints
  // contain the batches in TensorFlow's buffers, which each rank would deliver again.
  absl::Status PlaceOf(const tensorflow::tstring& state, bool symbolic, stoker_batch_name* next)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    next->struct_size = sizeof(*next);
    const auto place = [&](bool same_ranks) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ToStatus(Api().dataset_place(loader_, state.c_str(), same_ranks ? 1 : 0, next));
    };
    const absl::Status status = place(splits_ != nullptr || !symbolic);
    if (!status.ok() && splits_ == nullptr && !symbolic && place(false).ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          status.message(),
          " Or save it with options.experimental_symbolic_checkpoint = True: this "
          "checkpoint has batches in TensorFlow's buffers, which each rank would have again"));
    }
    TF_RETURN_IF_ERROR(status);
    return CheckRows(*next);
  }

  // The rest of an epoch may end with a short batch, also where whole epochs do not.
  absl::Status CheckRows(const stoker_batch_name& next) {
    const auto& shape = this->dataset()->elements().shapes.front();
    const int64_t rows = shape.dims() > 0 ? shape.dim_size(0) : -1;
    const auto last = static_cast<int64_t>(next.last_rows);
    if (rows < 0 || next.index >= next.end || last == rows) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "what is left of the checkpoint's epoch ends with a batch of ", last,
        " rows, and this dataset's batches have ", rows,
        " each. Restore it with another batch_size, or with one that does not divide an epoch"));
  }

  const char* key() const { return this->dataset()->source()->epochs().c_str(); }

  // Finds or opens the loader, which may list a folder, but starts nothing.
  absl::Status OpenCursor() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (cursor_ != nullptr) return absl::OkStatus();
    TF_RETURN_IF_ERROR(this->dataset()->source()->Open(&loader_));
    TF_RETURN_IF_ERROR(ReadInfo());
    const int64_t epoch = this->dataset()->epoch();
    return ToStatus(Api().cursor_open(loader_, epoch, epoch >= 0, &cursor_));
  }

  absl::Status ReadInfo() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    stoker_dataset_info info{};
    info.struct_size = sizeof(info);
    TF_RETURN_IF_ERROR(ToStatus(Api().dataset_info(loader_, &info)));
    cores_ = info.cores;
    depth_ = info.depth;
    return absl::OkStatus();
  }

  // Returns the next batch to deliver; batch 0 of the pinned epoch, or of epoch 0, while no epoch
  // is decided and with splits.
  stoker_batch_name Position(bool* decided) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    stoker_batch_name at{};
    at.struct_size = sizeof(at);
    stoker_error* const error = Api().cursor_place(cursor_, &at);
    *decided = error == nullptr;
    if (*decided) return at;
    Api().error_free(error);
    at.epoch = static_cast<uint64_t>(std::max<int64_t>(this->dataset()->epoch(), 0));
    at.end = static_cast<uint64_t>(this->dataset()->batches());
    return at;
  }

  absl::Status StateAt(const stoker_batch_name& at, std::string* state)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    uint64_t size = 1;
    do {
      state->resize(size);
      TF_RETURN_IF_ERROR(
          ToStatus(Api().dataset_state(loader_, &at, state->data(), state->size(), &size)));
    } while (size > state->size());
    state->pop_back();  // the NUL
    return absl::OkStatus();
  }

  absl::Status Failed(absl::Status status, bool passed) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (passed && !claimed_.empty()) claimed_.pop_front();
    if (passed || absl::IsCancelled(status)) {
      refusals_ = 0;
      return status;
    }
    return Stuck(status);
  }

  // Handles an error that the next call would repeat. The error keeps its code, so that a program
  // may make room and try again; because ignore_errors() would retry forever, it becomes Cancelled
  // after many repetitions.
  absl::Status Stuck(const absl::Status& status) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (++refusals_ <= kMaxRefusals) return status;
    return absl::CancelledError(
        absl::StrCat("the same ", kMaxRefusals, " times: ", status.message()));
  }

  // Claims splits so that stoker always has as many batches to work on as its depth allows, which
  // is tuned, plus the one that is delivered next. The provider may be remote, and is waited for
  // with mutex_ held: Wait's callback cancels it without taking any of these locks.
  absl::Status ClaimSplits(const Wait& wait) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TF_RETURN_IF_ERROR(ReadInfo());
    const size_t ahead = static_cast<size_t>(std::max(depth_.load(), 1)) + 1;
    while (!end_of_splits_ && claimed_.size() < ahead) {
      tensorflow::Tensor split;
      const absl::Status status = splits_->GetNext(&split, &end_of_splits_);
      if (IsEndOfEpoch(status)) end_of_splits_ = true;
      if (end_of_splits_) break;
      TF_RETURN_IF_ERROR(status);
      if (split.dtype() != tensorflow::DT_INT64 || split.NumElements() != 2) {
        return absl::InternalError("a split of another dataset was handed to stoker's");
      }
      const BatchName name(split.flat<int64_t>()(0), split.flat<int64_t>()(1));
      if (name.second == kSkipped) {  // there may be thousands, each a call to the dispatcher
        if (wait.cancelled()) return absl::CancelledError("the iteration was cancelled");
        if (this->dataset()->epoch() < 0) left_epoch_ = name.first;
        continue;
      }
      TF_RETURN_IF_ERROR(CheckEpoch(name.first));
      TF_RETURN_IF_ERROR(Claim(name));
    }
    return absl::OkStatus();
  }

  // An iterator has the batches of one epoch only; otherwise samples would be repeated or lost.
  absl::Status CheckEpoch(int64_t epoch) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (split_epoch_ < 0) split_epoch_ = epoch;
    if (epoch >= 0 && left_epoch_ == epoch) {
      return absl::FailedPreconditionError(
          absl::StrCat("tf.data service's dispatcher handed out the rest of epoch ", epoch,
                       ", which was to be skipped: it was restarted meanwhile, and cannot tell "
                       "that a repetition "
                       "had ended early. Restart the job"));
    }
    if (epoch >= 0 && split_epoch_ == epoch) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("tf.data service's dispatcher went from epoch ", split_epoch_, " to ", epoch,
                     " in the middle: it was restarted, and cannot tell what came before. ",
                     "Name the epoch: as_tf_dataset(epoch=k)"));
  }

  absl::Status Claim(BatchName name) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    stoker_batch_name batch{};
    batch.struct_size = sizeof(batch);
    batch.epoch = static_cast<uint64_t>(name.first);
    batch.index = static_cast<uint64_t>(name.second);
    TF_RETURN_IF_ERROR(ToStatus(Api().cursor_append(cursor_, &batch)));
    claimed_.push_back(name);
    return absl::OkStatus();
  }

  absl::Status RestoreSplits(data::IteratorContext* ctx, data::IteratorStateReader* reader)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tensorflow::Tensor claimed;
    int64_t end = 0;
    TF_RETURN_IF_ERROR(reader->ReadTensor(ctx->flr(), this->prefix(), "claimed", &claimed));
    TF_RETURN_IF_ERROR(reader->ReadScalar(this->prefix(), "end_of_splits", &end));
    end_of_splits_ = end != 0;
    TF_RETURN_IF_ERROR(OpenCursor());
    const auto names = claimed.matrix<int64_t>();
    for (int64_t i = 0; i < claimed.dim_size(0); ++i) {
      TF_RETURN_IF_ERROR(CheckEpoch(names(i, 0)));
      TF_RETURN_IF_ERROR(Claim({names(i, 0), names(i, 1)}));
    }
    return splits_->Restore([this](const std::string& name) { return this->full_name(name); },
                            reader);
  }

  void TakeBack() {
    tensorflow::mutex_lock lock(mutex_);
    if (cursor_ != nullptr) Api().cursor_take_back(cursor_);
  }

  static constexpr int kMaxRefusals = 1000;

  std::atomic<int32_t> cores_{0};  // 0: not opened
  std::atomic<int32_t> depth_{0};
  std::shared_ptr<data::SplitProvider> splits_;             // from Initialize
  tensorflow::mutex mutex_;                                 // used by one thread at a time
  stoker_dataset* loader_ TF_GUARDED_BY(mutex_) = nullptr;  // the dataset's, which outlives this
  stoker_cursor* cursor_ TF_GUARDED_BY(mutex_) = nullptr;
  int refusals_ TF_GUARDED_BY(mutex_) = 0;  // since the last batch
  bool end_of_splits_ TF_GUARDED_BY(mutex_) = false;
  int64_t split_epoch_ TF_GUARDED_BY(mutex_) = -1;       // of the splits; < 0: none yet
  int64_t left_epoch_ TF_GUARDED_BY(mutex_) = -1;        // whose rest was skipped; < 0: none
  std::deque<BatchName> claimed_ TF_GUARDED_BY(mutex_);  // and not delivered, in order
  const std::shared_ptr<Delivered> delivered_ = std::make_shared<Delivered>([this] { TakeBack(); });
};

}  // namespace stoker_tf
