#include "io/arrow/arrow_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/source/field.h"
#include "io/source/source.h"

namespace stoker {

namespace {

// Reads the columns of one record batch.
class BatchReader {
 public:
  BatchReader(const InputFile& file, const ArrowBatch& batch, uint64_t first_row)
      : file_(file), batch_(batch), first_row_(first_row) {}

  // A null image is a range without bytes, which fails when its turn comes; a null list has no
  // images.
  Status Images(const ArrowColumn& column, uint32_t number, ArrowTable& table) {
    const ArrowPosition& first = column.around.empty() ? column.position : column.around.front();
    const uint64_t images =
        column.is_list() ? static_cast<uint64_t>(batch_.nodes[first.nodes].rows) : batch_.rows;
    TRY(ReadOffsets(column, images));  // first: they bound the number of images by the file's size
    ASSIGN_OR_RETURN(const std::vector<bool> empty, ReadLists(column, images));
    ASSIGN_OR_RETURN(const std::vector<Stored> stored, StoredImages(column, images));
    uint64_t next = kNone;  // the image that continues the run
    for (uint64_t row = 0; row < batch_.rows; ++row) {
      const uint64_t begin = column.is_list() ? lists_[row] : row;
      const uint64_t end = !column.is_list() ? row + 1 : empty[row] ? begin : lists_[row + 1];
      if (end - begin > kMostPieces) return TooMany(column, row, end - begin);
      for (uint64_t i = begin; i < end; ++i) {
        const uint64_t length = offsets_[i + 1] - offsets_[i];
        if (stored[i] == Stored::kPath) return OnlyPath(column, i);
        if (length > std::numeric_limits<uint32_t>::max()) {
          return Refuse(Code::kInvalidArgument,
                        InImage(column, i) + " has " + std::to_string(length) + " bytes");
        }
        if (next != i) {
          table.images.BeginRun(number,
                                static_cast<uint64_t>(BufferOf(column, 2).offset) + offsets_[i]);
        }
        table.images.Add(stored[i] == Stored::kBytes ? length : 0);
        next = i + 1;
        if (stored[i] != Stored::kBytes && length != 0) next = kNone;
      }
      if (column.is_list()) table.ends.push_back(table.images.size());
    }
    return {};
  }

  Status Values(const ArrowColumn& column, ArrowValues& values) {
    TRY(CheckNulls(column));
    return IsString(column.dtype) ? Texts(column, values.texts) : Numbers(column, values.numbers);
  }

  // `classes`: the number of class names; 0 means labels may be any integers.
  Status Labels(const ArrowColumn& column, size_t classes, ArrowValues& labels) {
    if (IsString(column.dtype)) return Values(column, labels);
    ArrowValues given;
    TRY(Values(column, given));
    const Field field{.name = {}, .dtype = column.dtype};
    for (uint64_t row = 0; row < batch_.rows; ++row) {
      const uint8_t* number = given.numbers.data() + row * SizeOf(column.dtype);
      const int64_t label = field.ClassNumberIn(number);  // the largest integer for larger numbers
      if (column.dtype == DType::kU64 && std::memcmp(&label, number, sizeof(label)) != 0) {
        return Refuse(Code::kInvalidArgument, InRow(column, row) + " is a label above 2^63 - 1");
      }
      if (classes != 0 && (label < 0 || static_cast<uint64_t>(label) >= classes)) {
        return Unnamed(column, row, label, classes);
      }
      const auto* bytes = reinterpret_cast<const uint8_t*>(&label);
      labels.numbers.insert(labels.numbers.end(), bytes, bytes + sizeof(label));
    }
    return {};
  }

 private:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  enum class Stored : uint8_t { kBytes, kNull, kPath };  // what there is of an image

  Error Refuse(Code code, const std::string& cause, std::string advice = "") const {
    return {.code = code,
            .cause = cause,
            .file = file_.path(),
            .offset = batch_.at,
            .advice = std::move(advice)};
  }

  Error Damaged(const ArrowColumn& column, const std::string& cause) const {
    return Refuse(Code::kDataLoss, "in column '" + Printable(column.in_file) + "' " + cause +
                                       ": the file is damaged");
  }

  std::string InRow(const ArrowColumn& column, uint64_t row) const {
    return "row " + std::to_string(first_row_ + row) + " of column '" + Printable(column.in_file) +
           "'";
  }

  // `image`: its number in the batch.
  std::string InImage(const ArrowColumn& column, uint64_t image) const {
    if (!column.is_list()) return InRow(column, image);
    const auto row =
        static_cast<size_t>(std::ranges::upper_bound(lists_, image) - lists_.begin()) - 1;
    return "image " + std::to_string(image - lists_[row]) + " of " + InRow(column, row);
  }

  // Returns the `i`-th buffer of a field, whose first buffer is its validity.
  ArrowBuffer BufferAt(const ArrowPosition& position, size_t i) const {
    size_t index = position.buffers + i;
    for (size_t view = 0; view < position.views; ++view) index += batch_.view_buffers[view];
    return batch_.buffers[index];
  }
  ArrowBuffer BufferOf(const ArrowColumn& column, size_t i) const {
    return BufferAt(column.position, i);
  }

  // Reads the first `bytes` of a range that lies in the file.
  Result<std::span<const uint8_t>> Read(uint64_t offset, uint64_t bytes) {
    scratch_.resize(bytes);
    ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(offset, scratch_));
    if (got == bytes) return std::span<const uint8_t>(scratch_);
    return Refuse(Code::kDataLoss, "the file became shorter while it was read");
  }

  // Returns whether a buffer has at least `elements` elements of `bytes` bytes each.
  static bool Has(const ArrowBuffer& buffer, uint64_t elements, uint64_t bytes) {
    return elements <= static_cast<uint64_t>(buffer.length) / bytes;
  }

  Result<std::vector<Stored>> StoredImages(const ArrowColumn& column, uint64_t images) {
    std::vector<Stored> stored(images, Stored::kBytes);
    for (const ArrowPosition& position : column.around) {
      TRY(ForEachNull(column, position, images, 1, [&](uint64_t image) -> Status {
        stored[image] = Stored::kNull;
        return {};
      }));
    }
    TRY(ForEachNull(column, column.position, images, 1, [&](uint64_t image) -> Status {
      const bool has_path = !column.around.empty() && stored[image] == Stored::kBytes;
      stored[image] = has_path ? Stored::kPath : Stored::kNull;
      return {};
    }));
    return stored;
  }

  // Sets lists_ to where the images of rows begin, and the last ones end, if rows are lists.
  // Returns the rows that are null. `images`: their number, which the file's size bounds.
  Result<std::vector<bool>> ReadLists(const ArrowColumn& column, uint64_t images) {
    std::vector<bool> nulls;
    if (!column.is_list()) return nulls;
    if (column.list.type == ArrowType::kFixedSizeList) {
      const auto width = static_cast<uint64_t>(column.list.width);
      if (images / width != batch_.rows || images % width != 0) {
        return Damaged(column, "the number of images differs from that of its lists");
      }
      for (uint64_t row = 0; row <= batch_.rows; ++row) lists_.push_back(row * width);
    } else {
      const bool large = column.list.type == ArrowType::kLargeList;
      TRY(ReadOffsets(column, BufferAt(column.list_position, 1), large, batch_.rows, images,
                      lists_));
    }
    nulls.resize(batch_.rows);
    TRY(ForEachNull(column, column.list_position, batch_.rows, 1, [&](uint64_t row) -> Status {
      nulls[row] = true;
      return {};
    }));
    return nulls;
  }

  // Refuses null rows, and lists with null elements.
  Status CheckNulls(const ArrowColumn& column) {
    uint64_t elements = 1;  // of the field in each row; a row_shape has at most 2^32
    for (size_t i = 0; i < column.around.size(); ++i) {
      TRY(CheckNulls(column, column.around[i], elements));
      if (i < column.row_shape.size()) elements *= static_cast<uint64_t>(column.row_shape[i]);
    }
    return CheckNulls(column, column.position, elements);
  }

  Status CheckNulls(const ArrowColumn& column, const ArrowPosition& position, uint64_t per_row) {
    return ForEachNull(column, position, batch_.rows, per_row, [&](uint64_t row) -> Status {
      return Refuse(Code::kInvalidArgument, InRow(column, row) + " is null");
    });
  }

  // `rows`: those of the batch, or all images of lists. `per_row`: number of elements in a row, at
  // least 1. Calls `take` with the row of each null.
  template <typename Take>
  Status ForEachNull(const ArrowColumn& column, const ArrowPosition& position, uint64_t rows,
                     uint64_t per_row, Take take) {
    const ArrowNode& node = batch_.nodes[position.nodes];
    if (rows > std::numeric_limits<int64_t>::max() / per_row ||
        static_cast<uint64_t>(node.rows) != rows * per_row) {
      return Damaged(column, "the number of rows differs from that of its record batch");
    }
    if (node.nulls == 0) return {};
    const ArrowBuffer validity = BufferAt(position, 0);
    const auto elements = static_cast<uint64_t>(node.rows);
    if (!Has(validity, elements / 8 + (elements % 8 == 0 ? 0 : 1), 1)) {
      return Damaged(column, "the bitmap of nulls is too short");
    }
    ASSIGN_OR_RETURN(const auto bits,
                     Read(static_cast<uint64_t>(validity.offset), (elements + 7) / 8));
    for (uint64_t i = 0; i < elements; ++i) {
      if ((bits[i / 8] >> (i % 8) & 1) == 0) TRY(take(i / per_row));
    }
    return {};
  }

  Error TooMany(const ArrowColumn& column, uint64_t row, uint64_t images) const {
    return Refuse(Code::kInvalidArgument,
                  InRow(column, row) + " has " + std::to_string(images) + " images; at most " +
                      std::to_string(kMostPieces) + " are possible",
                  "Make samples of fewer images");
  }

  Error OnlyPath(const ArrowColumn& column, uint64_t image) const {
    return Refuse(Code::kInvalidArgument,
                  InImage(column, image) + " has no bytes; the dataset stores only a path",
                  "Save the dataset by save_to_disk(), which puts the images into its files, or "
                  "open it in Python by stoker.from_hf");
  }

  Error Unnamed(const ArrowColumn& column, uint64_t row, int64_t label, size_t classes) const {
    return Refuse(Code::kDataLoss,
                  InRow(column, row) + " is " + std::to_string(label) +
                      ", which has no class name: there are " + std::to_string(classes),
                  "Leave the labels out, if they are unknown: label=None");
  }

  // Sets offsets_ to the offsets of a field's rows in its data. `rows`: those of the batch, or all
  // images of lists.
  Status ReadOffsets(const ArrowColumn& column, uint64_t rows) {
    const bool large =
        column.field.type == ArrowType::kLargeBinary || column.field.type == ArrowType::kLargeUtf8;
    const auto most = static_cast<uint64_t>(BufferOf(column, 2).length);
    return ReadOffsets(column, BufferOf(column, 1), large, rows, most, offsets_);
  }

  // Reads where rows begin and end among the `most` elements that they consist of. DataLoss if an
  // offset is outside these, or below the one before it.
  Status ReadOffsets(const ArrowColumn& column, const ArrowBuffer& from, bool large, uint64_t rows,
                     uint64_t most, std::vector<uint64_t>& offsets) {
    offsets.assign(1, 0);
    if (rows == 0) return {};  // the buffer may be empty
    const size_t bytes = large ? sizeof(int64_t) : sizeof(int32_t);
    if (rows >= static_cast<uint64_t>(from.length) || !Has(from, rows + 1, bytes)) {
      return Damaged(column, "there are too few offsets");
    }
    ASSIGN_OR_RETURN(const auto read, Read(static_cast<uint64_t>(from.offset), (rows + 1) * bytes));
    offsets.resize(rows + 1);
    int64_t before = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const int64_t offset = large ? Load<int64_t>(read, i) : Load<int32_t>(read, i);
      if (offset < before || static_cast<uint64_t>(offset) > most) {
        return Damaged(column, "the offset of " +
                                   (column.is_list() ? "a list or an image"
                                                     : "row " + std::to_string(first_row_ + i)) +
                                   " is wrong");
      }
      offsets[i] = static_cast<uint64_t>(offset);
      before = offset;
    }
    return {};
  }

  template <typename T>
  static T Load(std::span<const uint8_t> bytes, size_t i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }

  Status Texts(const ArrowColumn& column, StringRows& texts) {
    TRY(ReadOffsets(column, batch_.rows));
    const auto begin = static_cast<uint64_t>(BufferOf(column, 2).offset) + offsets_.front();
    const uint64_t bytes = offsets_.back() - offsets_.front();
    ASSIGN_OR_RETURN(const auto read, Read(begin, bytes));
    const std::string_view all(reinterpret_cast<const char*>(read.data()), read.size());
    for (uint64_t row = 0; row < batch_.rows; ++row) {
      const std::string_view text =
          all.substr(offsets_[row] - offsets_.front(), offsets_[row + 1] - offsets_[row]);
      if (column.dtype == DType::kString && !IsUtf8(text)) {
        return Refuse(Code::kDataLoss, InRow(column, row) + " is not valid UTF-8");
      }
      texts.Add(text);
    }
    return {};
  }

  Status Numbers(const ArrowColumn& column, std::vector<uint8_t>& numbers) {
    uint64_t elements = batch_.rows;  // CheckNulls has found that there are no more than 2^63
    for (const int64_t d : column.row_shape) elements *= static_cast<uint64_t>(d);
    const ArrowBuffer from = BufferOf(column, 1);
    const bool bits = column.dtype == DType::kBool;
    const size_t size = SizeOf(column.dtype);
    const uint64_t needed = bits ? elements / 8 + (elements % 8 == 0 ? 0 : 1) : elements;
    if (!Has(from, needed, size)) return Damaged(column, "there are too few values");
    ASSIGN_OR_RETURN(const auto read, Read(static_cast<uint64_t>(from.offset), needed * size));
    if (!bits) {
      numbers.insert(numbers.end(), read.begin(), read.end());
      return {};
    }
    for (uint64_t i = 0; i < elements; ++i) numbers.push_back(read[i / 8] >> (i % 8) & 1);
    return {};
  }

  const InputFile& file_;
  const ArrowBatch& batch_;
  const uint64_t first_row_;
  std::vector<uint8_t> scratch_;
  std::vector<uint64_t> offsets_;  // of the column's bytes
  std::vector<uint64_t> lists_;    // of the column's images, if rows are lists
};

}  // namespace

void ArrowTable::Append(ArrowTable other) {
  for (const uint64_t end : other.ends) ends.push_back(images.size() + end);
  images.Append(other.images);
  columns.resize(other.columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<uint8_t>& from = other.columns[i].numbers;
    columns[i].numbers.insert(columns[i].numbers.end(), from.begin(), from.end());
    columns[i].texts.Append(std::move(other.columns[i].texts));
  }
}

Status AddBatch(const InputFile& file, uint32_t number, const ArrowBatch& batch, uint64_t first_row,
                const ArrowColumns& columns, ArrowTable& table) {
  if (batch.rows == 0) return {};
  BatchReader reader(file, batch, first_row);
  TRY(reader.Images(columns.columns[0], number, table));
  for (size_t i = 1; i < columns.columns.size(); ++i) {
    const bool is_label = columns.has_label && i == 1;
    const ArrowColumn& column = columns.columns[i];
    ArrowValues& values = table.columns[i - 1];
    TRY(is_label ? reader.Labels(column, columns.class_names.size(), values)
                 : reader.Values(column, values));
  }
  return {};
}

}  // namespace stoker
