// StokerDataset: a loader as a source of tf.data. Compiled where TensorFlow is installed, for
// exactly that TensorFlow: its C++ interfaces differ from release to release.
//
// Promises: the tensors are stoker's own memory, not copies; each new iterator takes the next epoch
// unless the dataset names one; checkpoints hold a state (loader_state.h), and restoring replays
// nothing; an error replaces one batch; nothing here ends the process.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tensorflow/core/framework/common_shape_fns.h>
#include <tensorflow/core/framework/full_type_util.h>
#include <tensorflow/core/framework/op.h>
#include <tensorflow/core/framework/op_kernel.h>
#include <tensorflow/core/framework/partial_tensor_shape.h>

#include "bindings/tensorflow/native/iterator-inl.h"

namespace stoker_tf {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::PartialTensorShape;

// The op's attributes.
struct Attributes {
  std::string key;
  std::string spec;    // empty with a device
  std::string epochs;  // key of the epoch counter
  std::string device;  // that the loader copies its batches to: "cuda:0"; empty for the host
  int64_t epoch;       // -1: the next one
  int64_t batches;     // per epoch
  bool drops_rows;     // a batch may lose all its rows, and is then left out
  Elements elements;
};

class Dataset : public data::DatasetBase {
 public:
  Dataset(tensorflow::OpKernelContext* ctx, Attributes attributes, Placement placement)
      : DatasetBase(data::DatasetContext(ctx)),
        attributes_(std::move(attributes)),
        placement_(std::move(placement)),
        source_(std::make_shared<Source>(attributes_.key, attributes_.spec, attributes_.epochs)) {}

  const std::shared_ptr<Source>& source() const { return source_; }
  int64_t epoch() const { return attributes_.epoch; }
  int64_t batches() const { return attributes_.batches; }
  const Elements& elements() const { return attributes_.elements; }
  const Placement& placement() const { return placement_; }

  std::unique_ptr<data::IteratorBase> MakeIteratorInternal(
      const std::string& prefix) const override {
    return std::make_unique<BatchIterator<Dataset>>(
        BatchIterator<Dataset>::Params{this, absl::StrCat(prefix, "::Stoker")});
  }
  absl::Status MakeSplitProviders(
      std::vector<std::unique_ptr<data::SplitProvider>>* providers) const override {
    TF_RETURN_IF_ERROR(CheckMovable());
    providers->push_back(
        std::make_unique<BatchSplits>(source_, attributes_.epoch, attributes_.batches));
    return absl::OkStatus();
  }

  const DataTypeVector& output_dtypes() const override { return attributes_.elements.types; }
  const std::vector<PartialTensorShape>& output_shapes() const override {
    return attributes_.elements.shapes;
  }
  std::string DebugString() const override { return "stoker::Dataset"; }
  int64_t CardinalityInternal(data::CardinalityOptions) const override {
    return attributes_.drops_rows ? data::kUnknownCardinality : attributes_.batches;
  }
  absl::Status InputDatasets(std::vector<const DatasetBase*>* inputs) const override {
    inputs->clear();
    return absl::OkStatus();
  }
  // An iterator's only state besides the files is its epoch, which the checkpoint contains.
  absl::Status CheckExternalState() const override { return absl::OkStatus(); }

 protected:
  absl::Status AsGraphDefInternal(data::SerializationContext*, DatasetGraphDefBuilder* builder,
                                  tensorflow::Node** output) const override {
    TF_RETURN_IF_ERROR(CheckMovable());
    const auto value = [builder](const auto& attribute) {
      tensorflow::AttrValue attr;
      builder->BuildAttrValue(attribute, &attr);
      return attr;
    };
    return builder->AddDataset(this, {},
                               {{"key", value(attributes_.key)},
                                {"spec", value(attributes_.spec)},
                                {"epoch", value(attributes_.epoch)},
                                {"batches", value(attributes_.batches)},
                                {"drops_rows", value(attributes_.drops_rows)},
                                {"columns", value(attributes_.elements.columns)}},
                               output);
  }

 private:
  // A dataset that was made a graph may be made again on another device or in another process.
  absl::Status CheckMovable() const {
    if (!placement_.on_device) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("batches on ", attributes_.device,
                     " stay there: their dataset can be neither saved nor shared among processes"));
  }

  const Attributes attributes_;
  const Placement placement_;
  const std::shared_ptr<Source> source_;
};

// Reads what both ops have.
absl::Status ReadAttributes(tensorflow::OpKernelConstruction* ctx, Attributes* attributes) {
  TF_RETURN_IF_ERROR(ctx->GetAttr("key", &attributes->key));
  TF_RETURN_IF_ERROR(ctx->GetAttr("epoch", &attributes->epoch));
  TF_RETURN_IF_ERROR(ctx->GetAttr("batches", &attributes->batches));
  TF_RETURN_IF_ERROR(ctx->GetAttr("drops_rows", &attributes->drops_rows));
  Elements& elements = attributes->elements;
  TF_RETURN_IF_ERROR(ctx->GetAttr("columns", &elements.columns));
  TF_RETURN_IF_ERROR(ctx->GetAttr("output_types", &elements.types));
  return ctx->GetAttr("output_shapes", &elements.shapes);
}

absl::Status CheckElements(const Elements& elements) {
  const size_t size = elements.types.size();
  if (elements.shapes.size() != size || elements.columns.size() != size) {
    return absl::InvalidArgumentError("a dataset needs a column and a shape for each type");
  }
  for (size_t i = 0; i < size; ++i) {
    const int64_t column = elements.columns[i];
    const bool is_extra = column < 0 && column >= Elements::kOffsets - INT32_MAX;
    const auto type = column == Elements::kPaths ? tensorflow::DT_STRING : tensorflow::DT_INT64;
    const bool fits = is_extra ? elements.types[i] == type : column >= 0 && column <= INT32_MAX;
    if (fits) continue;
    return absl::InvalidArgumentError(absl::StrCat("component ", i, " of type ",
                                                   tensorflow::DataTypeString(elements.types[i]),
                                                   " does not fit column ", column));
  }
  return absl::OkStatus();
}

class DatasetOp : public data::DatasetOpKernel {
 public:
  explicit DatasetOp(tensorflow::OpKernelConstruction* ctx) : DatasetOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadAttributes(ctx, &attributes_));
    attributes_.epochs = attributes_.key;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("spec", &attributes_.spec));
    OP_REQUIRES_OK(ctx, CheckElements(attributes_.elements));
  }

 protected:
  void MakeDataset(tensorflow::OpKernelContext* ctx, data::DatasetBase** output) override {
    *output = new Dataset(ctx, attributes_, {});
  }

 private:
  Attributes attributes_;
};

// On a GPU, and on the CPU for stoker's device "host".
class DeviceDatasetOp : public data::DatasetOpKernel {
 public:
  explicit DeviceDatasetOp(tensorflow::OpKernelConstruction* ctx) : DatasetOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadAttributes(ctx, &attributes_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("epochs", &attributes_.epochs));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("device", &attributes_.device));
    OP_REQUIRES_OK(ctx, CheckElements(attributes_.elements));
  }

 protected:
  void MakeDataset(tensorflow::OpKernelContext* ctx, data::DatasetBase** output) override {
    Placement placement;
    OP_REQUIRES_OK(ctx, FindPlacement(ctx, attributes_.device, &placement));
    *output = new Dataset(ctx, attributes_, std::move(placement));
  }

 private:
  Attributes attributes_;
};

// Stateful, so that two ops are never merged into one.
REGISTER_OP("StokerDataset")
    .Output("handle: variant")
    .Attr("key: string")
    .Attr("spec: string")
    .Attr("epoch: int = -1")
    .Attr("batches: int >= 0")
    .Attr("drops_rows: bool = false")
    .Attr("columns: list(int) >= 1")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("One epoch of a stoker loader, in batches. Made by stoker's as_tf_dataset.");

REGISTER_OP("StokerDeviceDataset")
    .Output("handle: variant")
    .Attr("key: string")
    .Attr("epochs: string")
    .Attr("device: string")
    .Attr("epoch: int = -1")
    .Attr("batches: int >= 0")
    .Attr("drops_rows: bool = false")
    .Attr("columns: list(int) >= 1")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    // Tells TensorFlow that the handle is in the host's memory, wherever it passes it on.
    .SetTypeConstructor(tensorflow::full_type::VariadicTensorContainer(tensorflow::TFT_DATASET,
                                                                       "output_types"))
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(
        "One epoch of batches that a stoker loader copies to a device. Made by to_device(...)'s "
        "as_tf_dataset.");

REGISTER_KERNEL_BUILDER(Name("StokerDataset").Device(tensorflow::DEVICE_CPU), DatasetOp);
REGISTER_KERNEL_BUILDER(Name("StokerDeviceDataset").Device(tensorflow::DEVICE_CPU),
                        DeviceDatasetOp);
REGISTER_KERNEL_BUILDER(
    Name("StokerDeviceDataset").Device(tensorflow::DEVICE_GPU).HostMemory("handle"),
    DeviceDatasetOp);

}  // namespace
}  // namespace stoker_tf

// Receives stoker's table, with a function that any thread may call to ask whether Python has a
// signal to handle (NULL if none), and PyGILState_GetThisThreadState. Returns NULL, or why the
// table was refused. A second call with another table is refused: a process has one libstoker.
extern "C" __attribute__((visibility("default"))) const char* stoker_tf_bind(
    const stoker_api* api, int (*interrupted)(void*), void* (*python_thread)()) {
  if (api == nullptr || api->abi_version != STOKER_ABI_VERSION ||
      api->struct_size < sizeof(stoker_api)) {
    return "the plugin was built for another version of stoker; run `stoker build-tf-plugin "
           "--force`";
  }
  stoker_tf::Binding& binding = stoker_tf::TheBinding();
  const stoker_api* bound = nullptr;
  if (!binding.api.compare_exchange_strong(bound, api) && bound != api) {
    return "another libstoker is bound already; a process can have one";
  }
  binding.interrupted.store(interrupted, std::memory_order_release);
  binding.python_thread.store(python_thread, std::memory_order_release);
  return nullptr;
}

// Python brackets `next` with these, on one thread: stoker_tf_take_back takes back what an iterator
// has delivered on this thread since stoker_tf_expect.
extern "C" __attribute__((visibility("default"))) void stoker_tf_expect() {
  stoker_tf::Delivered::Here().reset();
}
extern "C" __attribute__((visibility("default"))) void stoker_tf_take_back() {
  if (const auto delivered = stoker_tf::Delivered::Here().lock()) delivered->TakeBack();
  stoker_tf::Delivered::Here().reset();
}

// Returns the TensorFlow version that the op was compiled for.
extern "C" __attribute__((visibility("default"))) const char* stoker_tf_built_for() {
  return STOKER_TF_VERSION;
}
