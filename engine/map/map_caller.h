// MapCaller: calls a program's MapFunction for one producer.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/map/map_function.h"

namespace stoker {

// Asks the function once for its name, its number of calls and its columns, and turns its
// exceptions into errors. Thread-safe.
class MapCaller {
 public:
  // `function` must outlive it. InvalidArgument: calls() or one of columns() is invalid, or the
  // function cannot describe itself.
  static Result<MapCaller> Of(const MapFunction& function);

  const std::string& name() const { return name_; }
  int calls() const { return calls_; }
  std::span<const ColumnSpec> columns() const { return columns_; }

  // Call the function. Return its error, with its name and the sample or the batch added.
  Status MapRow(const MappedRow& row) const;
  Status MapBatch(const Batch& batch) const;

 private:
  MapCaller(const MapFunction& function, std::string name, int calls,
            std::vector<ColumnSpec> columns)
      : function_(&function), name_(std::move(name)), calls_(calls), columns_(std::move(columns)) {}

  const MapFunction* function_;
  std::string name_;
  int calls_;
  std::vector<ColumnSpec> columns_;
};

}  // namespace stoker
