// The fallback: two ops in TensorFlow's C API, built once for every TensorFlow. Python makes a
// tf.data.Dataset of them where the dataset op cannot be built (stoker/tensorflow/_fallback.py).
//
//   StokerEpoch(current, index, state) -> epoch
//                                            current, or the next epoch if that is negative; a
//                                            state of another loader, in bytes, is refused
//   StokerBatchAt(epoch, index) -> columns   one batch, by its name, in stoker's own memory,
//   without
//                                            a copy except of strings; if requested, sample ids
//                                            and paths follow
//
// Both ops name the loader by the attributes `key` and `spec`, as the dataset op does.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/c/stoker_c.h"
#include "bindings/tensorflow/fallback/tensorflow_c_api.h"

namespace {

// The table from stoker_tf_bind. Set once, before the first op runs.
std::atomic<const stoker_api*> bound_api{nullptr};
std::atomic<int (*)(void*)> bound_interrupted{nullptr};

const stoker_api& Api() { return *bound_api.load(std::memory_order_acquire); }

using StatusPtr = std::unique_ptr<TF_Status, void (*)(TF_Status*)>;
using TensorPtr = std::unique_ptr<TF_Tensor, void (*)(TF_Tensor*)>;
using BatchPtr = std::unique_ptr<stoker_batch, void (*)(stoker_batch*)>;

StatusPtr NewStatus() { return {TF_NewStatus(), &TF_DeleteStatus}; }
bool Ok(const StatusPtr& status) { return TF_GetCode(status.get()) == 0; }

// absl's status codes.
constexpr int kInvalidArgument = 3;
constexpr int kResourceExhausted = 8;
constexpr int kFailedPrecondition = 9;
constexpr int kInternal = 13;

constexpr int kString = 7;
constexpr int kInt64 = 9;

// A number of stoker's, and TensorFlow's for it.
struct Mapped {
  int32_t from;
  int to;
};

template <size_t n>
int Find(const Mapped (&all)[n], int32_t from, int otherwise) {
  for (const Mapped& one : all) {
    if (one.from == from) return one.to;
  }
  return otherwise;
}

int CodeOf(int32_t code) {
  constexpr Mapped kCodes[] = {{STOKER_CANCELLED, 1},
                               {STOKER_INVALID_ARGUMENT, kInvalidArgument},
                               {STOKER_NOT_FOUND, 5},
                               {STOKER_PERMISSION_DENIED, 7},
                               {STOKER_RESOURCE_EXHAUSTED, kResourceExhausted},
                               {STOKER_FAILED_PRECONDITION, kFailedPrecondition},
                               {STOKER_UNIMPLEMENTED, 12},
                               {STOKER_UNAVAILABLE, 14},
                               {STOKER_DATA_LOSS, 15}};
  return Find(kCodes, code, kInternal);
}

// Returns the TF_DataType of a column; 0 for none.
int TypeOf(int32_t dtype) {
  constexpr Mapped kTypes[] = {
      {STOKER_F32, 1},   {STOKER_F64, 2},          {STOKER_I32, 3},        {STOKER_U8, 4},
      {STOKER_I16, 5},   {STOKER_I8, 6},           {STOKER_I64, kInt64},   {STOKER_BOOL, 10},
      {STOKER_BF16, 14}, {STOKER_U16, 17},         {STOKER_F16, 19},       {STOKER_U32, 22},
      {STOKER_U64, 23},  {STOKER_STRING, kString}, {STOKER_BYTES, kString}};
  return Find(kTypes, dtype, 0);
}

// Takes ownership of the error, and returns whether there was none.
bool Check(stoker_error* error, const StatusPtr& status) {
  if (error == nullptr) return true;
  TF_SetStatus(status.get(), CodeOf(Api().error_code(error)), Api().error_message(error));
  Api().error_free(error);
  return false;
}

// The loader of one op of a graph, opened when a batch is first requested. Thread-safe.
class Source {
 public:
  struct Flags {
    bool sample_ids = false;  // they are the output after the columns
    bool paths = false;       // they are the output after those
    bool offsets = false;     // those of ragged columns are the last outputs
    bool pinned = false;      // the epoch is named, and the counter of epochs is not changed
  };

  Source(std::string key, std::string spec, Flags flags)
      : flags(flags), key_(std::move(key)), spec_(std::move(spec)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (dataset_ != nullptr) Api().dataset_free(dataset_);
  }

  const Flags flags;

  const char* key() const { return key_.c_str(); }

  // Returns NULL on failure, with the reason in `status`.
  stoker_dataset* Open(const StatusPtr& status) {
    const std::lock_guard lock(mutex_);
    if (dataset_ == nullptr) {
      Check(Api().dataset_open(key_.c_str(), spec_.c_str(), &dataset_), status);
    }
    return dataset_;
  }

  // Returns whether the state belongs to this loader. The state of the previous call is not checked
  // again.
  bool CheckState(const std::string& state, const StatusPtr& status) {
    stoker_dataset* const dataset = Open(status);
    if (dataset == nullptr) return false;
    const std::lock_guard lock(mutex_);
    if (state == checked_) return true;
    stoker_batch_name unused{};
    unused.struct_size = sizeof(unused);
    const bool same = Check(Api().dataset_place(dataset, state.c_str(), 1, &unused), status);
    if (same) checked_ = state;
    return same;
  }

 private:
  const std::string key_;
  const std::string spec_;
  std::mutex mutex_;
  std::string checked_;  // under mutex_
  stoker_dataset* dataset_ = nullptr;
};

std::string StringAttribute(TF_OpKernelConstruction* context, const char* name,
                            const StatusPtr& status) {
  int32_t list_size = 0;
  int32_t bytes = 0;
  TF_OpKernelConstruction_GetAttrSize(context, name, &list_size, &bytes, status.get());
  if (!Ok(status)) return {};
  std::string value(static_cast<size_t>(bytes), '\0');
  TF_OpKernelConstruction_GetAttrString(context, name, value.data(), value.size(), status.get());
  return value;
}

bool BoolAttribute(TF_OpKernelConstruction* context, const char* name, const StatusPtr& status) {
  unsigned char value = 0;
  TF_OpKernelConstruction_GetAttrBool(context, name, &value, status.get());
  return value != 0;
}

// `Extras`: whether the op has outputs after the batch's columns.
template <bool Extras>
void* Create(TF_OpKernelConstruction* context) {
  const StatusPtr status = NewStatus();
  if (bound_api.load(std::memory_order_acquire) == nullptr) {
    TF_SetStatus(
        status.get(), kFailedPrecondition,
        "stoker is not loaded in this process: import stoker.tensorflow before the dataset "
        "is used, also in the workers of tf.data service");
  }
  std::string key;
  std::string spec;
  if (Ok(status)) key = StringAttribute(context, "key", status);
  if (Ok(status)) spec = StringAttribute(context, "spec", status);
  Source::Flags flags;
  if (Extras && Ok(status)) flags.sample_ids = BoolAttribute(context, "sample_ids", status);
  if (Extras && Ok(status)) flags.paths = BoolAttribute(context, "paths", status);
  if (Extras && Ok(status)) flags.offsets = BoolAttribute(context, "offsets", status);
  if (!Extras && Ok(status)) flags.pinned = BoolAttribute(context, "pinned", status);
  if (Ok(status)) return new Source(std::move(key), std::move(spec), flags);
  TF_OpKernelConstruction_Failure(context, status.get());
  return nullptr;
}

void Destroy(void* kernel) { delete static_cast<Source*>(kernel); }

int64_t ScalarInput(TF_OpKernelContext* context, int input, const StatusPtr& status) {
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, input, &tensor, status.get());
  if (!Ok(status)) return -1;
  int64_t value = -1;
  std::memcpy(&value, TF_TensorData(tensor), sizeof(value));
  TF_DeleteTensor(tensor);
  return value;
}

void FreeScalar(void* data, size_t, void*) { delete static_cast<int64_t*>(data); }

// Makes later iterators take later epochs, also in a process that only restored a checkpoint.
void NotePassed(const char* key, int64_t epoch) {
  const auto passed = static_cast<uint64_t>(epoch);
  if (Api().epoch_next(key) <= passed) Api().epoch_set_next(key, passed + 1);
}

std::string BytesInput(TF_OpKernelContext* context, int input, const StatusPtr& status) {
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, input, &tensor, status.get());
  if (!Ok(status)) return {};
  std::string bytes(static_cast<const char*>(TF_TensorData(tensor)), TF_TensorByteSize(tensor));
  TF_DeleteTensor(tensor);
  return bytes;
}

// An iteration takes its epoch with its batch 0. If it begins at another batch, tf.data service has
// distributed one epoch's batches over several iterators, each of which would take an epoch.
int64_t Epoch(const Source& source, int64_t current, int64_t index, const StatusPtr& status) {
  if (current >= 0) {
    if (!source.flags.pinned) NotePassed(source.key(), current);
    return current;
  }
  if (index == 0 && Api().epoch_restored(source.key()) != 0) {
    TF_SetStatus(
        status.get(), kFailedPrecondition,
        "load_state_dict restored a batch in the middle of an epoch, where only an iteration "
        "over the loader itself continues. Save and restore iterators of as_tf_dataset() by "
        "tf.train.Checkpoint");
    return -1;
  }
  if (index == 0) return static_cast<int64_t>(Api().epoch_take(source.key()));
  TF_SetStatus(status.get(), kFailedPrecondition,
               "with stoker's prebuilt ops several workers share only an epoch that is named: use "
               "as_tf_dataset(epoch=k), or the dataset op (stoker build-tf-plugin)");
  return -1;
}

void ComputeEpoch(void* kernel, TF_OpKernelContext* context) {
  const StatusPtr status = NewStatus();
  const int64_t current = ScalarInput(context, 0, status);
  const int64_t index = Ok(status) ? ScalarInput(context, 1, status) : 0;
  const std::string state = Ok(status) ? BytesInput(context, 2, status) : std::string();
  auto& source = *static_cast<Source*>(kernel);
  std::unique_ptr<int64_t> epoch;
  if (Ok(status) && source.CheckState(state, status)) {
    epoch = std::make_unique<int64_t>(Epoch(source, current, index, status));
  }
  if (Ok(status)) {
    const TensorPtr tensor(
        TF_NewTensor(kInt64, nullptr, 0, epoch.get(), sizeof(int64_t), &FreeScalar, epoch.get()),
        &TF_DeleteTensor);
    static_cast<void>(epoch.release());
    TF_SetOutput(context, 0, tensor.get(), status.get());
  }
  if (!Ok(status)) TF_OpKernelContext_Failure(context, status.get());
}

// Gives an element of a string tensor a copy of the bytes. Returns false, with the reason in
// `status`, if there is no memory.
bool SetString(TF_TString& element, const char* bytes, uint64_t size, const StatusPtr& status) {
  auto* const copy = static_cast<char*>(std::malloc(size + 1));
  if (copy == nullptr) {
    TF_SetStatus(status.get(), kResourceExhausted, "out of memory for the strings of a batch");
    return false;
  }
  if (size != 0) std::memcpy(copy, bytes, size);
  copy[size] = '\0';
  element = {size * 4 + kOwnedString, size, copy};
  return true;
}

void SetStrings(TF_OpKernelContext* context, const BatchPtr& batch, int output,
                const stoker_column& column, const StatusPtr& status) {
  uint64_t elements = 1;
  for (int32_t d = 0; d < column.ndim; ++d) elements *= static_cast<uint64_t>(column.dims[d]);
  const TensorPtr tensor(TF_AllocateOutput(context, output, kString, column.dims, column.ndim,
                                           elements * sizeof(TF_TString), status.get()),
                         &TF_DeleteTensor);
  if (!Ok(status)) return;
  auto* const strings = static_cast<TF_TString*>(TF_TensorData(tensor.get()));
  for (uint64_t i = 0; i < elements; ++i) {
    const char* bytes = nullptr;
    uint64_t size = 0;
    if (!Check(Api().batch_string(batch.get(), output, i, &bytes, &size), status)) return;
    if (!SetString(strings[i], bytes, size, status)) return;
  }
}

void FreeColumn(void*, size_t, void* owner) { Api().owner_free(static_cast<stoker_owner*>(owner)); }

void SetColumn(TF_OpKernelContext* context, const BatchPtr& batch, int output,
               const StatusPtr& status) {
  stoker_column column{};
  column.struct_size = sizeof(column);
  if (!Check(Api().batch_column(batch.get(), output, &column), status)) return;
  const int type = TypeOf(column.dtype);
  if (type != TF_ExpectedOutputDataType(context, output)) {
    TF_SetStatus(status.get(), kInternal, "stoker's column is of another type than the op's");
    return;
  }
  if (type == kString) return SetStrings(context, batch, output, column, status);
  stoker_owner* const owner = Api().batch_owner(batch.get(), output);
  if (owner == nullptr) {
    TF_SetStatus(status.get(), kResourceExhausted, "out of memory for a batch");
    return;
  }
  const TensorPtr tensor(TF_NewTensor(type, column.dims, column.ndim, column.data,
                                      static_cast<size_t>(column.bytes), &FreeColumn, owner),
                         &TF_DeleteTensor);
  TF_SetOutput(context, output, tensor.get(), status.get());
}

// Sets an output to the offsets of a ragged column, (rows + 1,).
void SetOffsets(TF_OpKernelContext* context, const BatchPtr& batch, int32_t index, int64_t rows,
                int output, const StatusPtr& status) {
  stoker_column column{};
  column.struct_size = sizeof(column);
  if (!Check(Api().batch_column(batch.get(), index, &column), status)) return;
  stoker_owner* const owner = Api().batch_owner(batch.get(), index);
  if (owner == nullptr) {
    TF_SetStatus(status.get(), kResourceExhausted, "out of memory for a batch");
    return;
  }
  const int64_t numbers = rows + 1;
  const TensorPtr tensor(
      TF_NewTensor(kInt64, &numbers, 1, const_cast<int64_t*>(column.offsets),
                   static_cast<size_t>(numbers) * sizeof(int64_t), &FreeColumn, owner),
      &TF_DeleteTensor);
  TF_SetOutput(context, output, tensor.get(), status.get());
}

void SetSampleIds(TF_OpKernelContext* context, const uint64_t* ids, int64_t rows, int output,
                  const StatusPtr& status) {
  const size_t bytes = static_cast<size_t>(rows) * sizeof(int64_t);
  const TensorPtr tensor(TF_AllocateOutput(context, output, kInt64, &rows, 1, bytes, status.get()),
                         &TF_DeleteTensor);
  if (Ok(status)) std::memcpy(TF_TensorData(tensor.get()), ids, bytes);
}

void SetPaths(TF_OpKernelContext* context, stoker_dataset* dataset, const uint64_t* ids,
              int64_t rows, int output, const StatusPtr& status) {
  const size_t bytes = static_cast<size_t>(rows) * sizeof(TF_TString);
  const TensorPtr tensor(TF_AllocateOutput(context, output, kString, &rows, 1, bytes, status.get()),
                         &TF_DeleteTensor);
  if (!Ok(status)) return;
  auto* const strings = static_cast<TF_TString*>(TF_TensorData(tensor.get()));
  char path[STOKER_MAX_PATH];
  for (int64_t row = 0; row < rows; ++row) {
    if (!Check(Api().dataset_path(dataset, ids[row], path), status)) return;
    if (!SetString(strings[row], path, std::strlen(path), status)) return;
  }
}

// Returns the ragged columns of the batch.
std::vector<int32_t> RaggedColumns(const BatchPtr& batch, int32_t columns,
                                   const StatusPtr& status) {
  std::vector<int32_t> ragged;
  for (int32_t i = 0; i < columns && Ok(status); ++i) {
    stoker_column column{};
    column.struct_size = sizeof(column);
    if (!Check(Api().batch_column(batch.get(), i, &column), status)) break;
    if (column.offsets != nullptr) ragged.push_back(i);
  }
  return ragged;
}

// The outputs after the columns.
struct Extras {
  Extras(TF_OpKernelContext* context, const Source& source, size_t ragged)
      : offsets(TF_NumOutputs(context) - (source.flags.offsets ? static_cast<int>(ragged) : 0)),
        paths(offsets - (source.flags.paths ? 1 : 0)),
        sample_ids(paths - (source.flags.sample_ids ? 1 : 0)) {}

  // The first output of each, or of what follows. Sample ids follow the columns.
  const int offsets, paths, sample_ids;
};

// Checks that the op has outputs for columns of the batch (labels that the source does not have are
// omitted) and for the extras of its attributes, with their types: a graph may come from anywhere,
// and TensorFlow does not check the outputs.
bool CheckOutputs(TF_OpKernelContext* context, const Source& source, const Extras& extras,
                  int columns_of_batch, const StatusPtr& status) {
  const auto type = [&](int output) { return TF_ExpectedOutputDataType(context, output); };
  bool fits = extras.sample_ids >= 1 && extras.sample_ids <= columns_of_batch;
  if (fits && source.flags.sample_ids) fits = type(extras.sample_ids) == kInt64;
  if (fits && source.flags.paths) fits = type(extras.paths) == kString;
  for (int output = extras.offsets; fits && output < TF_NumOutputs(context); ++output) {
    fits = type(output) == kInt64;
  }
  if (!fits) {
    TF_SetStatus(status.get(), kInvalidArgument,
                 "the op's output_types are not those of the loader's columns, with int64 for "
                 "sample_ids, string for paths and int64 for offsets after them: make the dataset "
                 "again");
  }
  return fits;
}

void SetOutputs(TF_OpKernelContext* context, const Source& source, stoker_dataset* dataset,
                const BatchPtr& batch, const StatusPtr& status) {
  stoker_batch_info info{};
  info.struct_size = sizeof(info);
  if (!Check(Api().batch_info(batch.get(), &info), status)) return;
  const std::vector<int32_t> ragged = RaggedColumns(batch, info.columns, status);
  if (!Ok(status)) return;
  const Extras extras(context, source, ragged.size());
  if (!CheckOutputs(context, source, extras, info.columns, status)) return;
  for (int i = 0; Ok(status) && i < extras.sample_ids; ++i) SetColumn(context, batch, i, status);
  if (source.flags.sample_ids && Ok(status)) {
    SetSampleIds(context, info.sample_ids, info.rows, extras.sample_ids, status);
  }
  if (source.flags.paths && Ok(status)) {
    SetPaths(context, dataset, info.sample_ids, info.rows, extras.paths, status);
  }
  for (size_t i = 0; source.flags.offsets && Ok(status) && i < ragged.size(); ++i) {
    SetOffsets(context, batch, ragged[i], info.rows, extras.offsets + static_cast<int>(i), status);
  }
}

void WarnOnce(stoker_dataset* dataset) {
  if (const char* warning = Api().dataset_warning(dataset)) {
    static_cast<void>(std::fprintf(stderr, "stoker: %s\n", warning));
  }
}

void ComputeBatch(void* kernel, TF_OpKernelContext* context) {
  const StatusPtr status = NewStatus();
  auto* const source = static_cast<Source*>(kernel);
  const int64_t epoch = ScalarInput(context, 0, status);
  const int64_t index = Ok(status) ? ScalarInput(context, 1, status) : 0;
  stoker_dataset* const dataset = Ok(status) ? source->Open(status) : nullptr;
  if (dataset != nullptr) {
    const stoker_interrupt interrupt{sizeof(stoker_interrupt), bound_interrupted.load(), nullptr};
    stoker_batch* made = nullptr;
    stoker_batch_name name{};
    name.struct_size = sizeof(name);
    name.epoch = static_cast<uint64_t>(epoch);
    name.index = static_cast<uint64_t>(index);
    if (Check(Api().dataset_batch_at(dataset, &name,
                                     interrupt.asked != nullptr ? &interrupt : nullptr, &made),
              status)) {
      const BatchPtr batch(made, Api().batch_free);
      WarnOnce(dataset);
      SetOutputs(context, *source, dataset, batch, status);
    }
  }
  if (!Ok(status)) TF_OpKernelContext_Failure(context, status.get());
}

// The op is not marked as stateful, although an epoch comes from a counter: tf.data would warn at
// each checkpoint of a pipeline with a stateful function, and the epoch taken is in the checkpoint
// (as the state of a scan()). Inputs are arguments of a function, so no op is folded.
void Register(const char* op, std::initializer_list<const char*> inputs, const char* output,
              void* (*create)(TF_OpKernelConstruction*),
              void (*compute)(void*, TF_OpKernelContext*)) {
  const StatusPtr status = NewStatus();
  TF_OpDefinitionBuilder* const builder = TF_NewOpDefinitionBuilder(op);
  for (const char* input : inputs) TF_OpDefinitionBuilderAddInput(builder, input);
  TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderAddAttr(builder, "key: string");
  TF_OpDefinitionBuilderAddAttr(builder, "spec: string");
  if (std::strcmp(output, "epoch: int64") == 0) {
    TF_OpDefinitionBuilderAddAttr(builder, "pinned: bool = false");
  } else {
    TF_OpDefinitionBuilderAddAttr(builder, "sample_ids: bool = false");
    TF_OpDefinitionBuilderAddAttr(builder, "paths: bool = false");
    TF_OpDefinitionBuilderAddAttr(builder, "offsets: bool = false");
    TF_OpDefinitionBuilderAddAttr(builder, "output_types: list(type) >= 1");
  }
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder,
                                                  &TF_ShapeInferenceContextSetUnknownShape);
  TF_RegisterOpDefinition(builder, status.get());
  TF_RegisterKernelBuilder(op, TF_NewKernelBuilder(op, "CPU", create, compute, &Destroy),
                           status.get());
}

struct Registration {
  Registration() {
    Register("StokerEpoch", {"current: int64", "index: int64", "state: uint8"}, "epoch: int64",
             &Create<false>, &ComputeEpoch);
    Register("StokerBatchAt", {"epoch: int64", "index: int64"}, "columns: output_types",
             &Create<true>, &ComputeBatch);
  }
};
const Registration kRegistration;

}  // namespace

// Like the dataset op's function of this name, receives stoker's table, and a function that any
// thread may call to ask whether Python has a signal to handle (NULL if none). The third argument
// is unused here. Returns NULL, or why the table was refused.
extern "C" __attribute__((visibility("default"))) const char* stoker_tf_bind(
    const stoker_api* api, int (*interrupted)(void*), void* (*)()) {
  if (api == nullptr || api->abi_version != STOKER_ABI_VERSION ||
      api->struct_size < sizeof(stoker_api)) {
    return "the fallback was built for another version of stoker; install the package again";
  }
  const stoker_api* bound = nullptr;
  if (!bound_api.compare_exchange_strong(bound, api) && bound != api) {
    return "another libstoker is bound already; a process can have one";
  }
  bound_interrupted.store(interrupted, std::memory_order_release);
  return nullptr;
}
