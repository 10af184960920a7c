// Converts a batch's columns to tensors, without a copy; strings are copied.
//
// Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <absl/strings/str_cat.h>
#include <tensorflow/core/framework/allocator.h>
#include <tensorflow/core/framework/partial_tensor_shape.h>
#include <tensorflow/core/framework/tensor.h>
#include <tensorflow/core/framework/types.h>

#include "bindings/tensorflow/native/library-inl.h"

namespace stoker_tf {

inline tensorflow::DataType TypeOf(int32_t dtype) {
  constexpr std::pair<int32_t, tensorflow::DataType> kTypes[] = {
      {STOKER_BOOL, tensorflow::DT_BOOL},     {STOKER_U8, tensorflow::DT_UINT8},
      {STOKER_I8, tensorflow::DT_INT8},       {STOKER_U16, tensorflow::DT_UINT16},
      {STOKER_I16, tensorflow::DT_INT16},     {STOKER_U32, tensorflow::DT_UINT32},
      {STOKER_I32, tensorflow::DT_INT32},     {STOKER_U64, tensorflow::DT_UINT64},
      {STOKER_I64, tensorflow::DT_INT64},     {STOKER_F16, tensorflow::DT_HALF},
      {STOKER_BF16, tensorflow::DT_BFLOAT16}, {STOKER_F32, tensorflow::DT_FLOAT},
      {STOKER_F64, tensorflow::DT_DOUBLE},    {STOKER_STRING, tensorflow::DT_STRING},
      {STOKER_BYTES, tensorflow::DT_STRING}};
  return Find(kTypes, dtype, tensorflow::DT_INVALID);
}

// The memory of one column, which is returned to stoker with the last tensor over it.
class ColumnBuffer : public tensorflow::TensorBuffer {
 public:
  // `data` is that of the column, or its offsets.
  ColumnBuffer(const stoker_column& column, void* data, size_t bytes, stoker_owner* owner)
      : TensorBuffer(data), bytes_(bytes), memory_(MemoryOf(column)), owner_(owner) {}
  ~ColumnBuffer() override { Api().owner_free(owner_); }

  size_t size() const override { return bytes_; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription*) const override {}
  bool GetAllocatedBytes(size_t* bytes) const override {
    *bytes = bytes_;
    return true;
  }
  // Tells operations not to reuse the memory for their results.
  bool OwnsMemory() const override { return false; }
  // Pinned memory is copied to a GPU directly, pageable memory through a pinned copy that
  // TensorFlow makes. Not run on a GPU so far.
  tensorflow::AllocatorMemoryType GetMemoryType() const override { return memory_; }

 private:
  static tensorflow::AllocatorMemoryType MemoryOf(const stoker_column& column) {
    if (column.pinned == 0) return tensorflow::AllocatorMemoryType::kUnknown;
    return column.pinned == 1 ? tensorflow::AllocatorMemoryType::kHostPinned
                              : tensorflow::AllocatorMemoryType::kHostPageable;
  }

  const size_t bytes_;
  const tensorflow::AllocatorMemoryType memory_;
  stoker_owner* const owner_;
};

// Returns a copy of the strings of column `i`.
inline absl::Status StringTensor(const stoker_batch* batch, int32_t i,
                                 const tensorflow::TensorShape& shape, tensorflow::Tensor* tensor) {
  *tensor = tensorflow::Tensor(tensorflow::DT_STRING, shape);
  const auto strings = tensor->flat<tensorflow::tstring>();
  for (int64_t n = 0; n < strings.size(); ++n) {
    const char* bytes = nullptr;
    uint64_t size = 0;
    TF_RETURN_IF_ERROR(
        ToStatus(Api().batch_string(batch, i, static_cast<uint64_t>(n), &bytes, &size)));
    strings(n).assign(bytes, size);
  }
  return absl::OkStatus();
}

// Makes a tensor over memory of column `i` of the batch.
inline absl::Status TensorOver(const stoker_batch* batch, int32_t i, const stoker_column& column,
                               void* data, tensorflow::DataType type,
                               const tensorflow::TensorShape& shape,
                               std::vector<tensorflow::Tensor>* tensors) {
  stoker_owner* const owner = Api().batch_owner(batch, i);
  if (owner == nullptr) return absl::ResourceExhaustedError("out of memory for a batch");
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * tensorflow::DataTypeSize(type);
  tensors->emplace_back(type, shape,
                        tensorflow::core::RefCountPtr<tensorflow::TensorBuffer>(
                            new ColumnBuffer(column, data, bytes, owner)));
  return absl::OkStatus();
}

// Converts column `i` of the batch, which must match the dataset's declaration.
inline absl::Status ToTensor(const stoker_batch* batch, int32_t i, tensorflow::DataType type,
                             const tensorflow::PartialTensorShape& declared,
                             std::vector<tensorflow::Tensor>* tensors) {
  stoker_column column{};
  column.struct_size = sizeof(column);
  TF_RETURN_IF_ERROR(ToStatus(Api().batch_column(batch, i, &column)));
  tensorflow::TensorShape shape;
  for (int32_t d = 0; d < column.ndim; ++d) shape.AddDim(column.dims[d]);
  if (TypeOf(column.dtype) != type || !declared.IsCompatibleWith(shape)) {
    return absl::InternalError(absl::StrCat(
        "stoker's column ", column.name, " is ", tensorflow::DataTypeString(TypeOf(column.dtype)),
        shape.DebugString(), ", the dataset says ", tensorflow::DataTypeString(type),
        declared.DebugString()));
  }
  if (type == tensorflow::DT_STRING) {
    tensors->emplace_back();
    return StringTensor(batch, i, shape, &tensors->back());
  }
  return TensorOver(batch, i, column, column.data, type, shape, tensors);
}

// Converts the offsets of ragged column `i`, (rows + 1,).
inline absl::Status OffsetsTensor(const stoker_batch* batch, int32_t i,
                                  const tensorflow::PartialTensorShape& declared,
                                  std::vector<tensorflow::Tensor>* tensors) {
  stoker_batch_info info{};
  info.struct_size = sizeof(info);
  TF_RETURN_IF_ERROR(ToStatus(Api().batch_info(batch, &info)));
  stoker_column column{};
  column.struct_size = sizeof(column);
  TF_RETURN_IF_ERROR(ToStatus(Api().batch_column(batch, i, &column)));
  const tensorflow::TensorShape shape({info.rows + 1});
  if (column.offsets == nullptr || !declared.IsCompatibleWith(shape)) {
    return absl::InternalError(absl::StrCat("stoker's column ", column.name, " of ", info.rows,
                                            " rows has other offsets than the dataset says, ",
                                            declared.DebugString()));
  }
  return TensorOver(batch, i, column, const_cast<int64_t*>(column.offsets), tensorflow::DT_INT64,
                    shape, tensors);
}

// The components of a dataset's elements.
struct Elements {
  // Components that are not columns: made from a batch's sample ids, or the offsets of ragged
  // column i, kOffsets - i.
  enum Extra : int64_t { kSampleIds = -1, kPaths = -2, kOffsets = -3 };

  tensorflow::DataTypeVector types;
  std::vector<tensorflow::PartialTensorShape> shapes;
  std::vector<int64_t> columns;  // for each component, a column of the batch, or an Extra
};

// Returns (rows,): the sample of each row.
inline tensorflow::Tensor SampleIds(const uint64_t* ids, int64_t rows) {
  tensorflow::Tensor tensor(tensorflow::DT_INT64, tensorflow::TensorShape({rows}));
  std::copy_n(ids, rows, tensor.vec<int64_t>().data());
  return tensor;
}

// Returns (rows,): the file of each row.
inline absl::Status Paths(stoker_dataset* dataset, const uint64_t* ids, int64_t rows,
                          tensorflow::Tensor* paths) {
  *paths = tensorflow::Tensor(tensorflow::DT_STRING, tensorflow::TensorShape({rows}));
  char path[STOKER_MAX_PATH];
  for (int64_t row = 0; row < rows; ++row) {
    TF_RETURN_IF_ERROR(ToStatus(Api().dataset_path(dataset, ids[row], path)));
    paths->vec<tensorflow::tstring>()(row) = path;
  }
  return absl::OkStatus();
}

// Returns (rows,): the ids of the batch's samples, or their files.
inline absl::Status ExtraTensor(stoker_dataset* dataset, const stoker_batch* batch, int64_t extra,
                                tensorflow::Tensor* tensor) {
  stoker_batch_info info{};
  info.struct_size = sizeof(info);
  TF_RETURN_IF_ERROR(ToStatus(Api().batch_info(batch, &info)));
  if (extra == Elements::kPaths) return Paths(dataset, info.sample_ids, info.rows, tensor);
  *tensor = SampleIds(info.sample_ids, info.rows);
  return absl::OkStatus();
}

// Converts the requested columns; others (labels that the source does not have) are released.
inline absl::Status ToTensors(stoker_dataset* dataset, const stoker_batch* batch,
                              const Elements& elements, std::vector<tensorflow::Tensor>* tensors) {
  std::vector<tensorflow::Tensor> made;
  made.reserve(elements.types.size());
  for (size_t i = 0; i < elements.columns.size(); ++i) {
    const int64_t column = elements.columns[i];
    if (column <= Elements::kOffsets) {
      const auto of = static_cast<int32_t>(Elements::kOffsets - column);
      TF_RETURN_IF_ERROR(OffsetsTensor(batch, of, elements.shapes[i], &made));
    } else if (column < 0) {
      made.emplace_back();
      TF_RETURN_IF_ERROR(ExtraTensor(dataset, batch, column, &made.back()));
    } else {
      TF_RETURN_IF_ERROR(ToTensor(batch, static_cast<int32_t>(column), elements.types[i],
                                  elements.shapes[i], &made));
    }
  }
  *tensors = std::move(made);
  return absl::OkStatus();
}

}  // namespace stoker_tf
