// StokerTestSplitState(saved, restored, steps), for test_service.py: what workers of tf.data
// service do that write a snapshot (distributed_save). They save their iterators, which take their
// batches by splits, now and then, and one that is started again restores them.
//
// Takes `steps` elements of the dataset `saved` by its own splits, saves the iterator, and restores
// an iterator of the dataset `restored` from that. Returns the status of this in words: "OK", or
// the refusal. Other errors are the op's.
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorflow/core/framework/dataset.h>
#include <tensorflow/core/framework/op.h>
#include <tensorflow/core/framework/op_kernel.h>
#include <tensorflow/core/framework/shape_inference.h>

namespace {

using absl::Status;
using absl::string_view;
using tensorflow::Tensor;
using tensorflow::tstring;
namespace data = tensorflow::data;

class State : public data::IteratorStateWriter, public data::IteratorStateReader {
 public:
  Status WriteScalar(string_view key, int64_t value) override {
    return WriteTensor(key, Tensor(value));
  }
  Status WriteScalar(string_view name, string_view key, int64_t value) override {
    return WriteTensor(name, key, Tensor(value));
  }
  Status WriteScalar(string_view key, const tstring& value) override {
    return WriteTensor(key, Tensor(value));
  }
  Status WriteScalar(string_view name, string_view key, const tstring& value) override {
    return WriteTensor(name, key, Tensor(value));
  }
  Status WriteTensor(string_view key, const Tensor& value) override {
    return WriteTensor("", key, value);
  }
  Status WriteTensor(string_view name, string_view key, const Tensor& value) override {
    values_[KeyOf(name, key)] = value;
    return absl::OkStatus();
  }

  bool Contains(string_view key) const override { return Contains("", key); }
  bool Contains(string_view name, string_view key) const override {
    return values_.count(KeyOf(name, key)) != 0;
  }
  Status ReadScalar(string_view key, int64_t* value) const override {
    return ReadScalar("", key, value);
  }
  Status ReadScalar(string_view name, string_view key, int64_t* value) const override {
    return Read(name, key, value);
  }
  Status ReadScalar(string_view key, tstring* value) const override {
    return ReadScalar("", key, value);
  }
  Status ReadScalar(string_view name, string_view key, tstring* value) const override {
    return Read(name, key, value);
  }
  Status ReadTensor(string_view key, Tensor* value) const override {
    return ReadTensor("", key, value);
  }
  Status ReadTensor(tensorflow::FunctionLibraryRuntime*, string_view key,
                    Tensor* value) const override {
    return ReadTensor("", key, value);
  }
  Status ReadTensor(string_view name, string_view key, Tensor* value) const override {
    const auto found = values_.find(KeyOf(name, key));
    if (found == values_.end()) return absl::NotFoundError(KeyOf(name, key));
    *value = found->second;
    return absl::OkStatus();
  }
  Status ReadTensor(tensorflow::FunctionLibraryRuntime*, string_view name, string_view key,
                    Tensor* value) const override {
    return ReadTensor(name, key, value);
  }

 private:
  static std::string KeyOf(string_view name, string_view key) {
    return std::string(name) + "|" + std::string(key);
  }

  template <typename Value>
  Status Read(string_view name, string_view key, Value* value) const {
    Tensor tensor;
    TF_RETURN_IF_ERROR(ReadTensor(name, key, &tensor));
    *value = tensor.scalar<Value>()();
    return absl::OkStatus();
  }

  std::map<std::string, Tensor> values_;
};

class SplitState : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  // On a thread that is not Python's, as a worker's are.
  void Compute(tensorflow::OpKernelContext* ctx) override {
    Status status, refusal;
    std::thread([&] { status = Run(ctx, &refusal); }).join();
    OP_REQUIRES_OK(ctx, status);
    Tensor* said = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, {}, &said));
    said->scalar<tstring>()() = refusal.ToString();
  }

 private:
  // What an iterator needs, in the order of their ends.
  struct Iteration {
    tensorflow::CancellationManager cancellation;
    std::unique_ptr<data::IteratorContext> context;
    std::unique_ptr<data::IteratorBase> iterator;
  };

  static Status Begin(tensorflow::OpKernelContext* ctx, int input, Iteration* iteration) {
    data::DatasetBase* dataset = nullptr;
    TF_RETURN_IF_ERROR(data::GetDatasetFromVariantTensor(ctx->input(input), &dataset));
    std::vector<std::unique_ptr<data::SplitProvider>> providers;
    TF_RETURN_IF_ERROR(dataset->MakeSplitProviders(&providers));
    data::IteratorContext::Params params(ctx);
    params.cancellation_manager = &iteration->cancellation;
    for (auto& provider : providers) params.split_providers.push_back(std::move(provider));
    iteration->context = std::make_unique<data::IteratorContext>(std::move(params));
    return dataset->MakeIterator(iteration->context.get(), /*parent=*/nullptr, "Iterator",
                                 &iteration->iterator);
  }

  static Status Run(tensorflow::OpKernelContext* ctx, Status* refusal) {
    Iteration saved, restored;
    TF_RETURN_IF_ERROR(Begin(ctx, 0, &saved));
    for (int64_t steps = ctx->input(2).scalar<int64_t>()(); steps > 0; --steps) {
      std::vector<Tensor> element;
      bool ended = false;
      TF_RETURN_IF_ERROR(saved.iterator->GetNext(saved.context.get(), &element, &ended));
      if (ended) return absl::OutOfRangeError("the epoch has fewer batches");
    }
    State state;
    data::SerializationContext saving(data::SerializationContext::Params{ctx});
    TF_RETURN_IF_ERROR(saved.iterator->Save(&saving, &state));
    TF_RETURN_IF_ERROR(Begin(ctx, 1, &restored));
    *refusal = restored.iterator->Restore(restored.context.get(), &state);
    return absl::OkStatus();
  }
};

REGISTER_OP("StokerTestSplitState")
    .Input("saved: variant")
    .Input("restored: variant")
    .Input("steps: int64")
    .Output("said: string")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* shapes) {
      shapes->set_output(0, shapes->Scalar());
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("StokerTestSplitState").Device(tensorflow::DEVICE_CPU), SplitState);

}  // namespace
