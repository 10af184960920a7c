#include "bindings/cli/pack/list_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/packed/packed_format.h"
#include "transforms/decode/format.h"

namespace stoker {
namespace {

using packed_set::Form;
using packed_set::Sample;
using SetJsonObject = nlohmann::ordered_json;

constexpr size_t kPieceBytes = 1 << 20;

const char* FormName(Form form) {
  switch (form) {
    case Form::kFile:
      return "as it is";
    case Form::kPackedJpeg:
    case Form::kPackedMask:
    case Form::kPackedPng:
    case Form::kPackedPngAndFile:
      return "packed";
    case Form::kEqualPng:
      return "equal";
  }
  return "unknown";
}

std::string PathOf(const PackedIndex& index, uint64_t id, size_t piece) {
  std::string path;
  index.AppendPath(id, piece, path);
  return path;
}

std::string LineOf(const PackedIndex& index, uint64_t id, size_t piece) {
  const Sample& sample = index.SampleOf(id, piece);
  return fmt::format("{:>7} {:>9} {:>9} {:<7} {:>5}x{:<5} {} at {:<10} {}\n", id, sample.file_bytes,
                     sample.bytes, FormName(sample.form), sample.width, sample.height,
                     packed_set::ShardName(sample.shard()), sample.offset(),
                     Printable(PathOf(index, id, piece)));
}

std::string JsonOf(const PackedIndex& index, uint64_t id, size_t piece) {
  const Sample& sample = index.SampleOf(id, piece);
  const int64_t label = index.list().LabelOf(id);
  SetJsonObject json = {
      {"id", id},
      {"path", PathOf(index, id, piece)},
      {"label", label == kNoLabel ? SetJsonObject(nullptr) : SetJsonObject(label)},
      {"bytes", sample.file_bytes},
      {"stored_bytes", sample.bytes},
      {"packed", sample.form != Form::kFile},
      {"equal", sample.form == Form::kEqualPng},
      {"format", NameOf(static_cast<ImageFormat>(sample.format))},
      {"width", sample.width},
      {"height", sample.height},
      {"shard", packed_set::ShardName(sample.shard())},
      {"offset", sample.offset()}};
  if (index.pieces() > 1) json["field"] = index.further().fields[piece].name.data();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Calls `write` with the texts of all samples' images, in large pieces, the first of them after
// `piece`, and returns the rest.
template <typename TextOf>
Result<std::string> WriteAll(const PackedIndex& index, std::string piece, const TextWriter& write,
                             const TextOf& text_of) {
  for (uint64_t id = 0; id < index.samples().size(); ++id) {
    for (size_t image = 0; image < index.pieces(); ++image) piece += text_of(id, image);
    if (piece.size() < kPieceBytes) continue;
    TRY(write(piece));
    piece.clear();
  }
  return piece;
}

}  // namespace

Status WriteSetText(const PackedIndex& index, const TextWriter& write) {
  std::string heading = fmt::format("{:>7} {:>9} {:>9} {:<7} {:^11} {:<26} {}\n", "id", "bytes",
                                    "stored", "form", "size", "where", "path");
  ASSIGN_OR_RETURN(const std::string rest,
                   WriteAll(index, std::move(heading), write,
                            [&](uint64_t id, size_t image) { return LineOf(index, id, image); }));
  return write(rest);
}

Status WriteSetJson(const std::string& source, const PackedIndex& index, const TextWriter& write) {
  const auto is_there = [](const packed_set::Shard& shard) { return shard.bytes != 0; };
  const SetJsonObject summary = {{"source", source},
                                 {"samples", index.samples().size()},
                                 {"classes", index.list().classes},
                                 {"shards", std::ranges::count_if(index.shards(), is_there)}};
  std::string begin = summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  begin.resize(begin.size() - 2);  // the line feed and the brace at its end
  begin += ",\n  \"photographs\": [";
  ASSIGN_OR_RETURN(const std::string rest,
                   WriteAll(index, std::move(begin), write, [&](uint64_t id, size_t image) {
                     return (id + image == 0 ? "\n    " : ",\n    ") + JsonOf(index, id, image);
                   }));
  return write(rest + "\n  ]\n}\n");
}

}  // namespace stoker
