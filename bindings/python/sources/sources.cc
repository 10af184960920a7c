// stoker._stoker.Source: folders, lists and archives of images, records, and NumPy arrays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/python/batches/arrays.h"
#include "bindings/python/batches/columns.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/files/input_file.h"
#include "io/index/split_folders.h"
#include "io/manifest/manifest_roles.h"
#include "io/memory/arrays.h"
#include "io/open_source.h"
#include "io/ranges/path_source.h"
#include "io/ranges/range_source.h"
#include "io/samples/read_labels.h"
#include "io/select/sized.h"
#include "io/shards/shard_pattern.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

SourceHandle Open(const std::string& kind, const std::map<std::string, py::bytes>& arguments,
                  int threads) {
  SourceArguments texts;
  for (const auto& [name, value] : arguments) texts.emplace(name, value);
  Result<std::shared_ptr<const SampleSource>> source = [&] {
    const WithoutGil released;
    return OpenSource(kind, std::move(texts), threads);
  }();
  return {.source = Value(std::move(source))};
}

SourceHandle OpenArrays(const py::array& images, const std::optional<py::array>& labels) {
  std::vector<ArrayColumn> columns{ColumnOf("image", images)};
  if (labels) columns.push_back(ColumnOf("label", *labels));
  return {.source = Value(Arrays(std::move(columns), OwnerOf(py::make_tuple(images, labels))))};
}

// Appends a path: a str, bytes, or an os.PathLike.
void AddPath(py::handle item, PathTable& paths) {
  if (PyUnicode_Check(item.ptr()) && PyUnicode_IS_ASCII(item.ptr())) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
    return paths.Add({text, static_cast<size_t>(size)});
  }
  if (!PyUnicode_Check(item.ptr()) && !PyBytes_Check(item.ptr())) {
    const auto path = py::reinterpret_steal<py::object>(PyOS_FSPath(item.ptr()));
    if (!path) throw py::error_already_set();
    return AddPath(path, paths);
  }
  const auto bytes = PyBytes_Check(item.ptr())
                         ? py::reinterpret_borrow<py::object>(item)
                         : py::reinterpret_steal<py::object>(PyUnicode_EncodeFSDefault(item.ptr()));
  if (!bytes) throw py::error_already_set();
  paths.Add({PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))});
}

// Appends the path `name`[`index`].
void AddPath(py::handle item, const std::string& name, size_t index, PathTable& paths) {
  try {
    AddPath(item, paths);
  } catch (py::error_already_set& error) {
    const bool wrong_type = error.matches(PyExc_TypeError);
    if (!wrong_type && !error.matches(PyExc_UnicodeError)) throw;
    const auto text = py::str("{}[{}] must be a path, not {:.80}")
                          .format(name, index, py::repr(item))
                          .cast<std::string>();
    py::raise_from(error, wrong_type ? PyExc_TypeError : PyExc_ValueError, text.c_str());
    throw py::error_already_set();
  }
}

// Appends the paths of a list. `name`: the list's, for messages.
void AddPaths(const py::iterable& all, const std::string& name, PathTable& paths) {
  size_t index = 0;
  for (const py::handle item : all) AddPath(item, name, index++, paths);
}

PathTable PathsOf(const py::iterable& all, const std::string& name) {
  PathTable paths;
  paths.Reserve(py::len_hint(all));
  AddPaths(all, name, paths);
  return paths;
}

bool IsListOfPaths(py::handle item) {
  return PyList_Check(item.ptr()) || PyTuple_Check(item.ptr()) || py::isinstance<py::array>(item);
}

// Appends the paths of samples: one each, or a list of them, as the first sample has. Returns which
// are of which sample.
ImageNumbers AddSamples(const py::iterable& samples, const std::string& name, PathTable& paths) {
  std::vector<uint64_t> ends;
  paths.Reserve(py::len_hint(samples));
  for (const py::handle item : samples) {
    const bool is_list = IsListOfPaths(item);
    if (ends.empty() && (paths.size() != 0 || !is_list)) {
      AddPath(item, name, paths.size(), paths);
      continue;
    }
    const std::string of = name + "[" + std::to_string(ends.size()) + "]";
    if (!is_list) {
      throw py::type_error(of + " must be a list of paths, as the first one is, not " +
                           py::str("{:.80}").format(py::repr(item)).cast<std::string>());
    }
    AddPaths(py::reinterpret_borrow<py::iterable>(item), of, paths);
    ends.push_back(paths.size());
  }
  return ImageNumbers(std::move(ends));
}

// `paths`: paths, or a list of paths for each sample. `further`: (name, dtype of a mask, fill,
// paths, root) of each further field of images, whose dtype is empty. `columns`: "label" comes
// first if there is one.
SourceHandle OpenFiles(
    const py::iterable& paths, const py::bytes& root,
    const std::vector<std::tuple<std::string, std::string, uint16_t, py::iterable, py::bytes>>&
        further,
    const py::dict& columns, const std::vector<std::string>& class_names) {
  PathTable table;
  ImageNumbers numbers = AddSamples(paths, "paths", table);
  std::vector<FurtherImages> images;
  for (const auto& [name, dtype, fill, theirs, folder] : further) {
    images.push_back({.name = name,
                      .kind = dtype.empty() ? Field::Kind::kImage : Field::Kind::kMask,
                      .dtype = dtype == NameOf(DType::kU16) ? DType::kU16 : DType::kU8,
                      .fill = fill,
                      .paths = PathsOf(theirs, name),
                      .root = folder});
  }
  const auto beside = std::make_shared<Beside>();
  FilesOptions options{.images = std::move(numbers),
                       .root = root,
                       .further = std::move(images),
                       .columns = ColumnsOf(columns, *beside),
                       .owner = beside,
                       .class_names = class_names};
  Result<std::shared_ptr<const SampleSource>> source = [&] {
    const WithoutGil released;
    return Files(std::move(table), std::move(options));
  }();
  return {.source = Value(std::move(source))};
}

// Returns (name, dtype of a mask, fill, paths, root) of each field of images that `files` makes the
// source of again; the paths are in one string, with a NUL after each. Precondition: `files` made
// it.
py::list GivenPathsTo(const SourceHandle& self) {
  py::list all;
  for (const GivenPaths& given : GivenPathsOf(*self.source)) {
    std::string joined;
    for (size_t i = 0; i < given.paths.size(); ++i) joined.append(given.paths[i]) += '\0';
    const bool is_mask = given.field.kind == Field::Kind::kMask;
    all.append(py::make_tuple(given.field.name, is_mask ? NameOf(given.field.dtype) : "",
                              given.field.fill, py::bytes(joined), py::bytes(given.root)));
  }
  return all;
}

// Returns how many images each sample has, int64 (samples,).
py::array_t<int64_t> CountsBySample(const SourceHandle& self) {
  py::array_t<int64_t> counts(static_cast<py::ssize_t>(self.source->size()));
  for (uint64_t id = 0; id < self.source->size(); ++id) {
    counts.mutable_data()[id] = static_cast<int64_t>(self.source->PiecesOf(id));
  }
  return counts;
}

// Opens images that lie in files, some of which have many. `runs`: (file, offset, ends): the number
// of a path, and where images that follow each other begin and end after the offset, one number
// more than images. `numbers`: ImageNumbers::ends, or empty if each image is a sample. `columns`:
// "label" comes first if there is one.
SourceHandle OpenRanges(
    const py::iterable& paths,
    const std::vector<std::tuple<uint32_t, uint64_t, py::array_t<int64_t>>>& runs,
    const py::array_t<uint64_t>& numbers, const py::dict& columns,
    std::vector<std::string> class_names, std::string described) {
  RangeSourceParts parts{.paths = PathsOf(paths, "paths"),
                         .has_label = columns.contains("label"),
                         .class_names = std::move(class_names),
                         .described = std::move(described)};
  for (const auto& [file, offset, ends] : runs) {
    const std::span<const int64_t> all(ends.data(), static_cast<size_t>(ends.size()));
    parts.images.BeginRun(file, offset + static_cast<uint64_t>(all.front()));
    for (size_t i = 1; i < all.size(); ++i) {
      const int64_t length = all[i] - all[i - 1];
      if (!std::in_range<uint32_t>(length)) throw py::value_error("an image of 4 GiB or more");
      parts.images.Add(static_cast<uint64_t>(length));
    }
  }
  parts.images.ShrinkToFit();
  const std::span<const uint64_t> ends(numbers.data(), static_cast<size_t>(numbers.size()));
  parts.numbers = ImageNumbers({ends.begin(), ends.end()});
  const uint64_t samples = ends.empty() ? parts.images.size() : ends.size();
  const auto beside = std::make_shared<Beside>();
  std::vector<ArrayColumn> made = ColumnsOf(columns, *beside);
  for (const ArrayColumn& column : made) {
    if (column.samples != samples) throw py::value_error("columns differ in length");
    if (!IsString(column.dtype)) parts.column_bytes += column.samples * column.row_bytes();
  }
  for (const StringRows& strings : beside->strings) parts.column_bytes += strings.memory_bytes();
  Result<std::shared_ptr<const SampleSource>> source =
      [&]() -> Result<std::shared_ptr<const SampleSource>> {
    const WithoutGil released;  // all rows are hashed
    ASSIGN_OR_RETURN(parts.columns, MemoryColumns::Make(std::move(made), beside));
    return MakeRangeSource(std::move(parts));
  }();
  return {.source = Value(std::move(source))};
}

// Finds the columns of a manifest: the index of the paths, whether there is a label, and the
// indices of the label and the further columns.
py::tuple ManifestRolesOf(const std::string& path, const std::vector<std::string>& names,
                          const std::string& path_column,
                          const std::optional<std::string>& label_column,
                          const std::optional<std::vector<std::string>>& columns) {
  Result<ManifestRoles> roles = FindRoles(
      names, {.path_column = path_column, .label_column = label_column, .columns = columns});
  if (!roles.ok()) roles = Error(roles.error()).WithFile(path);
  const ManifestRoles found = Value(std::move(roles));
  return py::make_tuple(found.path, found.has_label, found.values);
}

// Returns the paths of a shard pattern.
std::vector<py::bytes> ShardsOf(const std::string& pattern, const std::string& root) {
  const auto paths = Value(ExpandShards(pattern, root));
  return {paths.begin(), paths.end()};
}

// Converts text with file names, which may be any bytes.
py::object Text(const std::string& bytes) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

py::list ClassesOf(const SourceHandle& self) {
  py::list names;
  for (const std::string& name : self.source->classes()) {
    names.append(Text(name));
  }
  return names;
}

// Returns the byte range of a sample's piece.
ByteRange PieceOf(const SampleSource& source, uint64_t id, size_t piece) {
  if (id >= source.size()) throw py::index_error("no such sample");
  const bool is_record = piece == 0 && source.has_records();
  if (!is_record && !source.in_memory() && piece >= source.PiecesOf(id)) {
    const size_t images = source.PiecesOf(id);
    throw py::index_error("sample " + std::to_string(id) + " has " + std::to_string(images) +
                          Plural(images, " image", " images"));
  }
  return source.RangeOfAny(id, piece);
}

py::bytes PathOf(const SourceHandle& self, uint64_t id, size_t piece) {
  std::string path;
  self.source->PathOf(PieceOf(*self.source, id, piece).file, path);
  return py::bytes(path);
}

// Returns a sample's name (SampleSource::NameOf); empty means it has none.
py::bytes NameOf(const SourceHandle& self, uint64_t id) {
  if (id >= self.source->size()) throw py::index_error("no such sample");
  std::string name;
  self.source->NameOf(id, name);
  return py::bytes(name);
}

// Returns (offset, length) of a sample's piece, or of its record, in its file; None means all of
// the file.
py::object RangeOf(const SourceHandle& self, uint64_t id, size_t piece) {
  const ByteRange range = PieceOf(*self.source, id, piece);
  if (range.length == kUnknownLength) return py::none();
  return py::make_tuple(range.offset, range.length);
}

// Returns the bytes of a piece's range.
py::bytes ReadSample(const SourceHandle& self, uint64_t id, size_t piece) {
  const ByteRange range = PieceOf(*self.source, id, piece);
  std::string path;
  self.source->PathOf(range.file, path);
  std::vector<uint8_t> bytes;
  Status status = [&]() -> Status {
    const WithoutGil released;
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
    ASSIGN_OR_RETURN(const FileStamp stamp, file.Stamp());
    const uint64_t rest = stamp.bytes - std::min(range.offset, stamp.bytes);
    bytes.resize(std::min(range.length, rest));
    ASSIGN_OR_RETURN(const size_t got, file.ReadAt(range.offset, bytes));
    bytes.resize(got);
    return {};
  }();
  Check(std::move(status));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns an array for the rows of some samples.
py::array EmptyRows(const Field& field, size_t samples) {
  std::vector<int64_t> shape{static_cast<int64_t>(samples)};
  shape.insert(shape.end(), field.row_shape.begin(), field.row_shape.end());
  return {NumPyType(field.dtype), shape};
}

// Returns a copy of what the objects of a sample have in a field, (objects, …).
py::array ObjectsOf(const SampleSource& source, size_t field, uint64_t id) {
  const std::span<const uint8_t> from = source.View(field, id);
  const Field& of = source.fields()[field];
  py::array rows = EmptyRows(of, from.size() / of.row_bytes());
  std::ranges::copy(from, static_cast<uint8_t*>(rows.mutable_data()));
  return rows;
}

// Returns the value that a sample has in a field in memory: a number, an array or a string.
py::object FixedValueOf(const SampleSource& source, size_t field, uint64_t id) {
  if (source.fields()[field].is_of_objects()) return ObjectsOf(source, field, id);
  if (IsString(source.fields()[field].dtype)) return StringsOf(source, field, {&id, 1})[0];
  py::array row = EmptyRows(source.fields()[field], 1);
  source.FixedRows(field, {&id, 1}, row.mutable_data());
  return row.ndim() == 1 ? row.attr("item")() : row.attr("squeeze")(0);
}

// Returns the value that a sample has in a field that comes with the image.
py::object LoadedValueOf(const Field& field, const uint8_t* row) {
  if (!IsString(field.dtype)) {
    const py::array copy(NumPyType(field.dtype), field.row_shape, row);
    return copy[py::tuple()];  // a scalar, if it is one
  }
  std::string_view string;
  std::memcpy(&string, row, sizeof(string));
  return ListOf({&string, 1}, field.dtype)[0];
}

// Returns (image, rows): the encoded image in a sample's record, and the rows of the fields that
// are not encoded.
py::tuple UnpackRecord(const SourceHandle& self, uint64_t id, const py::bytes& record) {
  if (id >= self.source->size()) throw py::index_error("no such sample");
  const std::span<const Field> fields = self.source->fields();
  const auto bytes = record.cast<std::string_view>();
  std::vector<uint8_t> loaded(LoadedBytes(fields));
  const std::span<const uint8_t> image = Value(self.source->Unpack(
      id, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, loaded));
  py::list rows;
  const uint8_t* row = loaded.data();
  for (size_t field = 1; field < fields.size(); ++field) {
    if (fields[field].is_encoded()) continue;
    const bool is_loaded = fields[field].kind == Field::Kind::kLoaded;
    rows.append(is_loaded ? LoadedValueOf(fields[field], row)
                          : FixedValueOf(*self.source, field, id));
    row += LoadedBytes(fields[field]);
  }
  return py::make_tuple(py::bytes(reinterpret_cast<const char*>(image.data()), image.size()), rows);
}

py::dict SkippedBy(const SourceHandle& self) {
  py::dict counts;
  for (const auto& [extension, count] : self.source->Skipped().by_extension) {
    counts[py::str(extension)] = count;
  }
  return counts;
}

// Returns Field::count by encoded field.
py::list CountsOfImages(const SourceHandle& self) {
  py::list counts;
  for (const Field& field : self.source->fields().first(self.source->encoded_fields())) {
    counts.append(field.count);
  }
  return counts;
}

py::list NamesOfMasks(const SourceHandle& self) {
  py::list names;
  for (const Field& field : self.source->fields()) {
    if (field.kind == Field::Kind::kMask) names.append(field.name);
  }
  return names;
}

py::list NamesOfObjects(const SourceHandle& self) {
  py::list names;
  for (const Field& field : self.source->fields()) {
    if (field.is_of_objects()) names.append(field.name);
  }
  return names;
}

// Returns the number of objects of each sample, int64 (samples,); None if samples have no objects.
py::object ObjectCountsOf(const SourceHandle& self) {
  const SampleSource& source = *self.source;
  const std::span<const Field> fields = source.fields();
  const auto field = std::ranges::find_if(fields, &Field::is_of_objects);
  if (field == fields.end()) return py::none();
  py::array_t<int64_t> counts(static_cast<py::ssize_t>(source.size()));
  const std::span made(counts.mutable_data(), source.size());
  {
    const WithoutGil released;
    const size_t each = field->row_bytes(), number = static_cast<size_t>(field - fields.begin());
    for (size_t id = 0; id < made.size(); ++id) {
      made[id] = static_cast<int64_t>(source.View(number, id).size() / each);
    }
  }
  return counts;
}

// Returns the values that a sample has in memory, by field: numbers, arrays and strings.
py::list RowOf(const SourceHandle& self, uint64_t id) {
  if (id >= self.source->size()) throw py::index_error("no such sample");
  py::list values;
  for (size_t field = 0; field < self.source->fields().size(); ++field) {
    const Field& of = self.source->fields()[field];
    if (of.kind != Field::Kind::kFixed && !of.is_of_objects()) continue;
    values.append(FixedValueOf(*self.source, field, id));
  }
  return values;
}

bool HasLabelsInMemory(const SourceHandle& self) {
  const std::optional<size_t> label = self.source->label();
  return label && self.source->fields()[*label].kind == Field::Kind::kFixed;
}

// Returns the labels of these samples; of none, an empty array of the labels' type. Precondition:
// there are labels, and no calls give them.
py::array LabelsOf(const SourceHandle& self, const py::array_t<uint64_t>& ids) {
  const SampleSource& source = *self.source;
  const std::span<const uint64_t> all(ids.data(), static_cast<size_t>(ids.size()));
  if (!std::ranges::all_of(all, [&](uint64_t id) { return id < source.size(); })) {
    throw py::index_error("no such sample");
  }
  py::array rows = EmptyRows(source.fields()[*source.label()], all.size());
  auto* const data = static_cast<uint8_t*>(rows.mutable_data());
  const Status status = [&] {
    const WithoutGil released;
    return ReadLabels(source, all, data, OnSignals());
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  Check(status);
  return rows;
}

// Returns the rows of a field in memory, of all samples, as a read-only array of bytes (samples,
// bytes of a row). It keeps the source alive. A field of objects has no rows of one size.
py::array BytesOfRows(const py::object& self, size_t field) {
  const SampleSource& source = *self.cast<const SourceHandle&>().source;
  if (field >= source.fields().size()) throw py::index_error("no such field");
  if (source.fields()[field].is_of_objects()) {
    throw py::value_error("the column is ragged");
  }
  const std::span<const uint8_t> first = source.View(field, 0);
  if (first.empty()) throw py::value_error("not in memory");
  const std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(source.size()),
                                       static_cast<py::ssize_t>(first.size())};
  const py::ssize_t stride = shape[0] < 2 ? 0 : source.View(field, 1).data() - first.data();
  py::array_t<uint8_t> rows(shape, std::vector<py::ssize_t>{stride, 1}, first.data(), self);
  rows.attr("setflags")(py::arg("write") = false);
  return rows;
}

// Returns (height, width) of an image as viewed, or None.
py::object ImageSizeOf(const SourceHandle& self, uint64_t id, size_t piece) {
  (void)PieceOf(*self.source, id, piece);
  const ImageFacts facts = self.source->FactsOfPiece(id, piece);
  if (facts.width == 0 || facts.height == 0) return py::none();
  const bool turned = facts.orientation >= 5;  // EXIF: 5 to 8 swap width and height
  return turned ? py::make_tuple(facts.width, facts.height)
                : py::make_tuple(facts.height, facts.width);
}

// Returns what is known about each image, if their number varies; otherwise about the first one of
// each sample.
py::array_t<ImageFacts> FactsIn(const SourceHandle& self) {
  const SampleSource& source = *self.source;
  const ImageNumbers numbers = NumberImages(source);
  py::array_t<ImageFacts> facts(static_cast<py::ssize_t>(numbers.Begin(source.size())));
  for (uint64_t i = 0; i < static_cast<uint64_t>(facts.size()); ++i) {
    const auto [id, piece] = numbers.PlaceOf(i);
    facts.mutable_data()[i] = source.FactsOfPiece(id, piece);
  }
  return facts;
}

}  // namespace

void AddSources(py::module_& module) {
  PYBIND11_NUMPY_DTYPE(ImageFacts, file_bytes, width, height, orientation, format);
  py::class_<SourceHandle>(module, "Source")
      .def("__len__", [](const SourceHandle& self) { return self.source->size(); })
      .def_property_readonly("names",
                             [](const SourceHandle& self) {
                               std::vector<std::string> names;
                               for (const Field& field : self.source->fields()) {
                                 names.push_back(field.name);
                               }
                               return names;
                             })
      .def_property_readonly("classes", &ClassesOf)
      .def_property_readonly(
          "has_labels", [](const SourceHandle& self) { return self.source->label().has_value(); })
      .def_property_readonly("fingerprint",
                             [](const SourceHandle& self) {
                               const WithoutGil released;  // the array may be a mapped file
                               return FingerprintText(*self.source);
                             })
      .def_property_readonly("warning",
                             [](const SourceHandle& self) { return Text(self.source->Warning()); })
      .def_property_readonly("skipped", &SkippedBy)
      .def_property_readonly(
          "skipped_warning",
          [](const SourceHandle& self) { return Text(self.source->Skipped().Warning()); })
      .def(
          "split_warning",
          [](const SourceHandle& self, const std::string& directory) {
            return Text(SplitWarning(directory, self.source->classes()));
          },
          py::arg("directory"))
      .def(
          "packed_split_warning",
          [](const SourceHandle& self, const std::string& directory) {
            return Text(PackedSplitWarning(directory, self.source->classes()));
          },
          py::arg("directory"))
      .def_property_readonly("in_memory",
                             [](const SourceHandle& self) { return self.source->in_memory(); })
      .def("rows", &BytesOfRows, py::arg("field"))
      .def("path", &PathOf, py::arg("sample"), py::arg("piece") = 0)
      .def("name", &NameOf, py::arg("sample"))
      .def("range", &RangeOf, py::arg("sample"), py::arg("piece") = 0)
      .def("read", &ReadSample, py::arg("sample"), py::arg("piece") = 0)
      .def_property_readonly("pieces",
                             [](const SourceHandle& self) { return self.source->pieces(); })
      .def_property_readonly("counts", &CountsOfImages)
      .def_property_readonly("varies",
                             [](const SourceHandle& self) { return self.source->varies(); })
      .def_property_readonly("image_counts", &CountsBySample)
      .def_property_readonly("masks", &NamesOfMasks)
      .def_property_readonly("objects", &NamesOfObjects)
      .def("object_counts", &ObjectCountsOf)
      .def_property_readonly("has_records",
                             [](const SourceHandle& self) { return self.source->has_records(); })
      .def("unpack", &UnpackRecord, py::arg("sample"), py::arg("record"))
      .def("labels", &LabelsOf, py::arg("samples"))
      .def_property_readonly("labels_in_memory", &HasLabelsInMemory)
      .def("row", &RowOf, py::arg("sample"))
      .def_property_readonly("given_paths", &GivenPathsTo)
      .def("image_size", &ImageSizeOf, py::arg("sample"), py::arg("piece") = 0)
      .def_property_readonly("facts", &FactsIn);
  module.def("open_source", &Open, py::arg("kind"), py::arg("arguments"), py::arg("threads"));
  module.def("arrays", &OpenArrays, py::arg("images"), py::arg("labels"));
  module.def("manifest_roles", &ManifestRolesOf, py::arg("path"), py::arg("names"),
             py::arg("path_column"), py::arg("label_column"), py::arg("columns"));
  module.def("shards", &ShardsOf, py::arg("pattern"), py::arg("root"));
  module.def("files", &OpenFiles, py::arg("paths"), py::arg("root"), py::arg("further"),
             py::arg("columns"), py::arg("class_names"));
  module.attr("MOST_IMAGES") = kMostPieces;
  module.def("ranges", &OpenRanges, py::arg("paths"), py::arg("runs"), py::arg("numbers"),
             py::arg("columns"), py::arg("class_names"), py::arg("described"));
}

}  // namespace stoker::python
