// Errors of the C functions, as texts that tests compare.
#pragma once

#include <string>

#include "bindings/c/stoker_c.h"

namespace stoker::testing {

// Returns the error's code and message, and frees it; "" if there is no error.
inline std::string TakenError(const stoker_api& api, stoker_error* error) {
  if (error == nullptr) return "";
  const std::string text = std::to_string(api.error_code(error)) + " " + api.error_message(error);
  api.error_free(error);
  return text;
}

}  // namespace stoker::testing
