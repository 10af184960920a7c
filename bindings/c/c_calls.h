// The ends of all C functions: errors, and structs whose size the caller sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "bindings/c/stoker_types.h"
#include "core/batch/batch.h"
#include "core/batch/dtype.h"
#include "core/result/result.h"

struct stoker_error {
  int32_t code;
  std::string message;
  const char* fixed = nullptr;  // replaces `message`, which needs memory
};

namespace stoker::c {

inline int32_t CodeOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return STOKER_INVALID_ARGUMENT;
    case Code::kNotFound:
      return STOKER_NOT_FOUND;
    case Code::kPermissionDenied:
      return STOKER_PERMISSION_DENIED;
    case Code::kDataLoss:
      return STOKER_DATA_LOSS;
    case Code::kResourceExhausted:
      return STOKER_RESOURCE_EXHAUSTED;
    case Code::kFailedPrecondition:
      return STOKER_FAILED_PRECONDITION;
    case Code::kUnimplemented:
      return STOKER_UNIMPLEMENTED;
    case Code::kCancelled:
      return STOKER_CANCELLED;
    case Code::kUnavailable:
      return STOKER_UNAVAILABLE;
  }
  return STOKER_INTERNAL;
}

// Both lists have the same order.
static_assert(static_cast<int>(DType::kBool) == STOKER_BOOL &&
              static_cast<int>(DType::kI64) == STOKER_I64 &&
              static_cast<int>(DType::kF64) == STOKER_F64 &&
              static_cast<int>(DType::kString) == STOKER_STRING &&
              static_cast<int>(DType::kBytes) == STOKER_BYTES);
inline int32_t DTypeOf(DType dtype) { return static_cast<int32_t>(dtype); }

// Needs no memory and is never destroyed; error_free ignores it.
inline stoker_error* NoMemory() {
  alignas(stoker_error) static unsigned char storage[sizeof(stoker_error)];
  static auto* const error =
      new (storage) stoker_error{STOKER_RESOURCE_EXHAUSTED, {}, "no memory is left."};
  return error;
}

inline stoker_error* Failed(const Error& error) {
  return new stoker_error{CodeOf(error.code), error.Message(), nullptr};
}

inline stoker_error* Unexpected(const char* what) noexcept {
  try {
    return new stoker_error{STOKER_INTERNAL, what, nullptr};
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// Runs a function that may throw or return an Error, and converts both into a stoker_error.
template <typename Body>
stoker_error* Run(const Body& body) noexcept {
  try {
    Status status = body();
    return status.ok() ? nullptr : Failed(status.error());
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::exception& e) {
    return Unexpected(e.what());
  }
}

// Fills the members of a caller's struct that its version, of `size` bytes, has.
template <typename Struct>
void Fill(Struct* theirs, Struct ours, uint64_t size) {
  ours.struct_size = size;
  std::memcpy(theirs, &ours, std::min<uint64_t>(size, sizeof(Struct)));
}
template <typename Struct>
void Fill(Struct* theirs, const Struct& ours) {
  Fill(theirs, ours, theirs->struct_size);
}

inline Interrupt InterruptOf(const stoker_interrupt* interrupt) {
  if (interrupt == nullptr || interrupt->asked == nullptr) return {};
  return [asked = interrupt->asked, context = interrupt->context] { return asked(context) != 0; };
}

// Returns the members of a caller's struct that its version, of `size` bytes, has, and 0 for the
// others.
template <typename Struct>
Struct Given(const Struct* theirs, uint64_t size) {
  Struct ours{};
  std::memcpy(&ours, theirs, std::min<uint64_t>(size, sizeof(Struct)));
  return ours;
}

// Returns element `i` of a caller's array of structs of `size` bytes.
template <typename Struct>
Struct* ElementOf(Struct* array, uint64_t size, uint64_t i) {
  using Byte = std::conditional_t<std::is_const_v<Struct>, const char, char>;
  return reinterpret_cast<Struct*>(reinterpret_cast<Byte*>(array) + i * size);
}

// The functions of stoker_c.h for image processors.
stoker_error* ProcessorOpen(const char* config, const stoker_processor_options* options,
                            stoker_processor** processor);
void ProcessorFree(stoker_processor* processor);
stoker_error* ProcessorPlan(const stoker_processor* processor, int32_t height, int32_t width,
                            stoker_array_shape* shape, stoker_image_rows* image);
stoker_error* ProcessorShape(const stoker_processor* processor, const stoker_encoded* images,
                             uint64_t count, const stoker_interrupt* interrupt,
                             stoker_array_shape* shape);
stoker_error* ProcessorRun(const stoker_processor* processor, const stoker_encoded* images,
                           uint64_t count, const stoker_interrupt* interrupt, void* into,
                           uint64_t bytes, stoker_array_shape* shape, stoker_image_rows* rows);

}  // namespace stoker::c
