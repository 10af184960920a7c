// MapCaller: calls a program's MapFunction for one producer.
#pragma once

#include <string>
#include <utility>

#include "core/batch.h"
#include "core/result.h"
#include "engine/loader/map_function.h"

namespace stoker {

// Asks the function once for its name and its number of calls, and turns its exceptions into
// errors. Thread-safe.
class MapCaller {
 public:
  // `function` must outlive it. InvalidArgument: calls(), or it cannot say what it is.
  static Result<MapCaller> Of(const MapFunction& function);

  const std::string& name() const { return name_; }
  int calls() const { return calls_; }

  // Call the function. Return its error, with its name and the sample or the batch added.
  Status MapRow(const MappedRow& row) const;
  Status MapBatch(const Batch& batch) const;

 private:
  MapCaller(const MapFunction& function, std::string name, int calls)
      : function_(&function), name_(std::move(name)), calls_(calls) {}

  const MapFunction* function_;
  std::string name_;
  int calls_;
};

}  // namespace stoker
