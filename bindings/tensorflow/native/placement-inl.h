// Placement says where a dataset's batches are: in the host's memory, or on the device that the
// loader copies them to, where TensorFlow's compute stream uses them.
//
// TensorFlow gives work to one compute stream of each GPU, and drops a tensor when it has given the
// stream the last work that uses it; copies on other streams hold the tensor until they are done.
// So the compute stream waits until a batch has arrived, and stoker reuses the batch's memory after
// the work that this stream had when the last tensor was dropped.
//
// Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <string>

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/core/framework/device.h>
#include <tensorflow/core/framework/op_kernel.h>
#include <xla/stream_executor/platform.h>
#include <xla/stream_executor/stream.h>
#include <xla/stream_executor/stream_executor.h>

#include "bindings/tensorflow/native/library-inl.h"

namespace stoker_tf {

struct Placement {
  bool on_device = false;         // the loader copies its batches to a device
  std::string tensorflow_device;  // the full name of the op's; only set with on_device
  void* stream = nullptr;         // its compute stream; NULL on the CPU
};

// Returns the handle that stoker knows TensorFlow's stream by, if `device` is the stream's.
inline absl::Status HandleOf(tensorflow::OpKernelContext* ctx, stream_executor::Stream& stream,
                             const std::string& device, void** handle) {
  stream_executor::StreamExecutor& executor = *stream.parent();
  const std::string& platform = executor.GetPlatform()->Name();
  const std::string name = platform == "CUDA" ? absl::StrCat("cuda:", executor.device_ordinal())
                           // The tests' GPU, whose streams are those of stoker's device "host".
                           : platform == "STOKER_STAND_IN" ? "host"
                                                           : platform;
  if (name != device) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loader's batches are on ", device, ", and TensorFlow's device ", ctx->device()->name(),
        " is ", name,
        ": make a loader with to_device for each device, and do not place its dataset"));
  }
  if (platform == "CUDA") {
    *handle = stream.platform_specific_handle().stream;
  } else {
    TF_Status* const status = TF_NewStatus();
    *handle = TF_GetStream(reinterpret_cast<TF_OpKernelContext*>(ctx), status);
    TF_DeleteStatus(status);
  }
  if (*handle != nullptr) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("TensorFlow does not tell its stream of ", ctx->device()->name()));
}

// Finds the placement of a dataset whose batches are on `device` ("cuda:0", "host").
inline absl::Status FindPlacement(tensorflow::OpKernelContext* ctx, const std::string& device,
                                  Placement* placement) {
  placement->on_device = true;
  placement->tensorflow_device = ctx->device()->name();
  tensorflow::DeviceContext* const on = ctx->op_device_context();
  if (on != nullptr && on->stream() != nullptr) {
    return HandleOf(ctx, *on->stream(), device, &placement->stream);
  }
  if (device == "host") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the loader's batches are on ", device, ", and TensorFlow has placed their dataset on ",
      placement->tensorflow_device, ", which cannot use them: does this TensorFlow see the GPU?"));
}

// Checks that an iterator runs where the dataset was placed. A step that TensorFlow has for the CPU
// only (map, take, a `for` over the dataset in a tf.function, ...) has an iterator there, and would
// take the device's memory for the host's.
inline absl::Status CheckPlacement(const Placement& placement, const tensorflow::Device* device) {
  if (!placement.on_device ||
      (device != nullptr && device->name() == placement.tensorflow_device)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the dataset of to_device is on ", placement.tensorflow_device,
      ", and was to be iterated on ", device == nullptr ? "another device" : device->name(),
      ". TensorFlow has no map, take, repeat and the like for a GPU, so this dataset must be the "
      "last step; and inside a tf.function, loop over iter(dataset), not over the dataset"));
}

}  // namespace stoker_tf
