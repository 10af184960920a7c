// The arguments of calls that take Python's images: HeldInput, HeldInputs and KeptRuntime.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/result/result.h"
#include "engine/arrays/encoded_input.h"
#include "engine/runtime/runtime.h"

namespace stoker::python {

// The bytes of an image, held from the conversion to the end of the decoding; or a path.
class HeldInput {
 public:
  // `image`: a buffer of contiguous bytes, or if `is_path` the bytes of a path.
  HeldInput(const pybind11::handle& image, bool is_path) {
    if (PyObject_GetBuffer(image.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
      throw pybind11::error_already_set();
    }
    const auto size = static_cast<size_t>(buffer_.len);
    if (is_path) {
      input_.path.assign(static_cast<const char*>(buffer_.buf), size);
    } else {
      input_.bytes = {static_cast<const uint8_t*>(buffer_.buf), size};
    }
  }
  ~HeldInput() { PyBuffer_Release(&buffer_); }
  HeldInput(const HeldInput&) = delete;
  HeldInput& operator=(const HeldInput&) = delete;

  const EncodedInput& input() const { return input_; }

 private:
  Py_buffer buffer_{};
  EncodedInput input_;
};

// Pairs of an image and whether it is a path.
using GivenImages = std::vector<std::pair<pybind11::object, bool>>;

class HeldInputs {
 public:
  explicit HeldInputs(const GivenImages& images) {
    for (const auto& [image, is_path] : images) {
      held_.push_back(std::make_unique<HeldInput>(image, is_path));
      inputs_.push_back(held_.back()->input());
    }
  }

  const std::vector<EncodedInput>& inputs() const { return inputs_; }

 private:
  std::vector<std::unique_ptr<HeldInput>> held_;
  std::vector<EncodedInput> inputs_;
};

// The default Runtime of calls without one. It is kept, so that its threads need not start again
// for the next call.
class KeptRuntime {
 public:
  KeptRuntime() = default;
  ~KeptRuntime() { Release({}, runtime_); }
  KeptRuntime(const KeptRuntime&) = delete;
  KeptRuntime& operator=(const KeptRuntime&) = delete;

  // Returns what `call(Runtime&)` returns, which is called without the GIL. Throws what a signal's
  // handler raised meanwhile. Called and returns with the GIL held.
  template <typename T, typename Call>
  Result<T> Run(const RuntimeHandle& given, const Call& call) {
    std::shared_ptr<Runtime> used = given.runtime;
    Result<T> result = [&]() -> Result<T> {
      const WithoutGil released;
      if (used == nullptr) {
        Result<std::shared_ptr<Runtime>> usual = Runtime::Default();
        if (!usual.ok()) return std::move(usual).error();
        used = *std::move(usual);
      }
      return call(*used);
    }();
    if (given.runtime == nullptr && used != nullptr) Keep(std::move(used));
    if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
    return result;
  }

 private:
  void Keep(std::shared_ptr<Runtime> runtime) {
    {
      const std::lock_guard lock(mutex_);
      std::swap(runtime_, runtime);
    }
    Release({}, runtime);
  }

  std::mutex mutex_;  // taken and released with the GIL held (waiting.h)
  std::shared_ptr<Runtime> runtime_;
};

}  // namespace stoker::python
