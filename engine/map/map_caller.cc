#include "engine/map/map_caller.h"

#include <exception>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "io/memory/memory_columns.h"

namespace stoker {

namespace {

constexpr int kMostMapCalls = 256;

// Calls the program's code, which may throw.
template <typename Call>
Status CatchExceptions(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return Error{.code = Code::kUnavailable, .cause = error.what()};
  } catch (...) {
    return Error{.code = Code::kUnavailable,
                 .cause = "it threw something that is not a std::exception"};
  }
}

// Refuses a column that no batch can have.
Status CheckColumn(const std::string& name, const ColumnSpec& column) {
  if (IsString(column.dtype)) {
    return Error{Code::kInvalidArgument, "the column '" + column.name + "' of " + name +
                                             " has strings; a function adds numbers only"};
  }
  if (column.is_ragged()) {
    return Error{Code::kInvalidArgument, "the column '" + column.name + "' of " + name +
                                             " is ragged; a function adds dense columns only"};
  }
  Status status =
      CheckRow({.name = column.name, .dtype = column.dtype, .row_shape = column.row_shape});
  if (status.ok()) return status;
  Error error = std::move(status).error();
  error.cause = "the columns of " + name + ": " + error.cause;
  return error;
}

}  // namespace

Result<MapCaller> MapCaller::Of(const MapFunction& function) {
  std::string name;
  int calls = 0;
  std::vector<ColumnSpec> columns;
  const Status said = CatchExceptions([&]() -> Status {
    name = function.Describe();
    (void)function.InState();  // an error shows here: later the loader calls it without a catch
    calls = function.calls();
    columns = function.columns();
    return {};
  });
  if (!said.ok()) {
    return Error{
        Code::kInvalidArgument,
        "Describe(), InState(), calls() or columns() of the map function: " + said.error().cause};
  }
  if (calls < 0 || calls > kMostMapCalls) {
    return Error{Code::kInvalidArgument, "calls() of " + name + " is " + std::to_string(calls) +
                                             "; it must be between 0 and " +
                                             std::to_string(kMostMapCalls)};
  }
  for (const ColumnSpec& column : columns) TRY(CheckColumn(name, column));
  return MapCaller(function, std::move(name), calls, std::move(columns));
}

Status MapCaller::MapRow(const MappedRow& row) const {
  Status status = CatchExceptions([&] { return function_->MapRow(row); });
  if (status.ok()) return status;
  Error error = std::move(status).error();
  error.cause = name_ + " of sample " + std::to_string(row.sample()) + ": " + error.cause;
  error.wanted_bytes = 0;
  return error;
}

Status MapCaller::MapBatch(const Batch& batch) const {
  Status status = CatchExceptions([&] { return function_->MapBatch(batch); });
  if (status.ok()) return status;
  Error error = std::move(status).error();
  error.cause = TextOf(batch.name()) + ": " + error.cause;
  error.wanted_bytes = 0;
  return std::move(error).WithFile(name_);
}

}  // namespace stoker
