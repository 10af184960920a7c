#include "io/select/clips.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/remote/object_version.h"
#include "io/select/sample_order.h"
#include "io/source/image_numbers.h"

namespace stoker {

namespace {

Error BadClips(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = "clips: " + std::move(cause),
          .advice = std::move(advice)};
}

// The clips of a source's episodes, numbered one episode after another.
struct ClipWindows {
  std::vector<uint64_t> begins;  // by episode: its first frame
  std::vector<uint64_t> ends;    // and the number of clips up to its end
  uint64_t step = 1;
  uint64_t too_short = 0;  // episodes without a clip, which are not listed

  uint64_t size() const { return ends.empty() ? 0 : ends.back(); }

  // Returns the first frame of a clip. Precondition: clip < size().
  uint64_t FirstFrame(uint64_t clip) const {
    const auto episode = std::ranges::upper_bound(ends, clip) - ends.begin();
    const uint64_t before = episode == 0 ? 0 : ends[static_cast<size_t>(episode) - 1];
    return begins[static_cast<size_t>(episode)] + (clip - before) * step;
  }

  // Adds the clips, `span` frames long each, of the episode [begin, end).
  void Add(uint64_t begin, uint64_t end, uint64_t span) {
    if (end - begin < span) {
      ++too_short;
      return;
    }
    begins.push_back(begin);
    ends.push_back(size() + (end - begin - span) / step + 1);
  }
};

class ClipSource final : public SampleSource {
 public:
  ClipSource(std::vector<Camera> cameras, std::vector<Field> fields, ClipWindows windows,
             const ClipOptions& options)
      : cameras_(std::move(cameras)),
        fields_(std::move(fields)),
        windows_(std::move(windows)),
        by_(options.by),
        frames_(options.frames),
        stride_(options.stride) {
    uint64_t files = 0;
    for (const Camera& camera : cameras_) {
      has_records_ = has_records_ || camera.source->has_records();
      file_ends_.push_back(files += camera.source->files());
      const ObjectVersions* const theirs = camera.source->objects();
      if (theirs == nullptr || cameras_.size() == 1) continue;
      if (!objects_) objects_.emplace();
      objects_->Add(*theirs);
    }
  }

  uint64_t size() const override { return windows_.size(); }
  std::span<const Field> fields() const override { return fields_; }
  uint64_t files() const override { return file_ends_.back(); }
  bool has_records() const override { return has_records_; }

  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> /*rows*/) const override {
    return UnpackPiece(id, 0, record);
  }
  Result<std::span<const uint8_t>> UnpackPiece(uint64_t id, size_t piece,
                                               std::span<const uint8_t> record) const override {
    const Frame frame = Find(id, piece);
    return frame.source().Unpack(frame.id, record, {});
  }

  ByteRange RangeOf(uint64_t id) const override { return RangeOfPiece(id, 0); }
  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    const Frame frame = Find(id, piece);
    ByteRange range = frame.source().RangeOf(frame.id);
    range.file += FilesBefore(frame.camera);
    return range;
  }

  bool has_row_ranges(uint64_t id) const override {
    const Frame frame = Find(id, 0);
    return frame.source().has_row_ranges(frame.id);
  }
  ByteRange RangeOfRows(uint64_t id, int top, int bottom) const override {
    const Frame frame = Find(id, 0);
    return frame.source().RangeOfRows(frame.id, top, bottom);
  }
  ImageFacts FactsOf(uint64_t id) const override {
    const Frame frame = Find(id, 0);
    return frame.source().FactsOf(frame.id);
  }

  void PathOf(uint32_t file, std::string& path) const override {
    const auto camera =
        static_cast<size_t>(std::ranges::upper_bound(file_ends_, file) - file_ends_.begin());
    cameras_[camera].source->PathOf(file - FilesBefore(camera), path);
  }
  void NameOf(uint64_t id, std::string& name) const override { NameOfPiece(id, 0, name); }
  void NameOfPiece(uint64_t id, size_t piece, std::string& name) const override {
    const Frame frame = Find(id, piece);
    frame.source().NameOf(frame.id, name);
  }

  const ObjectVersions* objects() const override {
    if (cameras_.size() == 1) return first().objects();
    return objects_ ? &*objects_ : nullptr;
  }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    const bool is_first_alone = IsString(fields_[field].dtype);
    const uint64_t frames = is_first_alone ? 1 : frames_;
    const size_t theirs = field - cameras_.size() + 1;  // after the image
    const size_t bytes = fields_[field].row_bytes() / frames;
    auto* to = static_cast<uint8_t*>(rows);
    std::array<uint64_t, 64> some{};
    for (uint64_t next = 0, all = ids.size() * frames; next < all;) {
      const uint64_t count = std::min<uint64_t>(all - next, some.size());
      for (uint64_t i = 0; i < count; ++i, ++next) {
        some[i] = windows_.FirstFrame(ids[next / frames]) + next % frames * stride_;
      }
      first().FixedRows(theirs, std::span(some).first(count), to);
      to += count * bytes;
    }
  }

  std::string Warning() const override {
    std::string all;
    if (windows_.too_short != 0) {
      const uint64_t episodes = windows_.too_short + windows_.begins.size();
      all = std::to_string(windows_.too_short) + " of " + std::to_string(episodes) +
            Plural(episodes, " episode", " episodes") + " of " + first().Describe() +
            Plural(windows_.too_short, " is", " are") + " shorter than a clip, and left out";
    }
    std::vector<std::string> warnings;  // one for each source, which may be that of several cameras
    for (const Camera& camera : cameras_) {
      const std::string warning = camera.source->Warning();
      if (warning.empty() || std::ranges::find(warnings, warning) != warnings.end()) continue;
      warnings.push_back(warning);
      if (!all.empty()) all += "; and ";
      all += warning;
    }
    return all;
  }
  SkippedFiles Skipped() const override {
    SkippedFiles all;
    for (const Camera& camera : cameras_) all.Add(camera.source->Skipped());
    return all;
  }
  const std::vector<std::string>& classes() const override { return no_classes_; }

  uint64_t memory_bytes() const override {
    uint64_t bytes = sizeof(*this) + cameras_.capacity() * sizeof(Camera) +
                     fields_.capacity() * sizeof(Field) + by_.capacity() +
                     (windows_.begins.capacity() + windows_.ends.capacity()) * sizeof(uint64_t) +
                     file_ends_.capacity() * sizeof(uint64_t);
    for (const Camera& camera : cameras_) bytes += camera.source->memory_bytes();
    return bytes + (objects_ ? objects_->memory_bytes() : 0);
  }

  uint64_t Fingerprint() const override {
    uint64_t all = Hash64("clips " + std::to_string(frames_) + " " + std::to_string(stride_) + " " +
                          std::to_string(windows_.step));
    for (const std::vector<uint64_t>* numbers : {&windows_.begins, &windows_.ends}) {
      all = Hash64(
          {reinterpret_cast<const uint8_t*>(numbers->data()), numbers->size() * sizeof(uint64_t)},
          all);
    }
    for (const Camera& camera : cameras_) {
      const uint64_t theirs = camera.source->Fingerprint();
      if (theirs == 0) return 0;
      all = Hash64(std::to_string(theirs) + camera.name, all);
    }
    return all;
  }

  // Returns "clips(packed(front) and 3 more, 8 frames by 'episode')".
  std::string Describe() const override {
    const size_t more = cameras_.size() - 1;
    return "clips(" + first().Describe() +
           (more == 0 ? "" : " and " + std::to_string(more) + " more") + ", " +
           std::to_string(frames_) + Plural(frames_, " frame", " frames") +
           (by_.empty() ? "" : " by '" + by_ + "'") + ")";
  }

 private:
  struct Frame {
    const std::vector<Camera>& cameras;
    size_t camera = 0;
    uint64_t id = 0;  // in the camera's source
    const SampleSource& source() const { return *cameras[camera].source; }
  };
  Frame Find(uint64_t id, size_t piece) const {
    return {cameras_, piece / frames_, windows_.FirstFrame(id) + piece % frames_ * stride_};
  }
  const SampleSource& first() const { return *cameras_.front().source; }
  uint32_t FilesBefore(size_t camera) const {
    return camera == 0 ? 0 : static_cast<uint32_t>(file_ends_[camera - 1]);
  }

  const std::vector<Camera> cameras_;
  const std::vector<Field> fields_;
  const ClipWindows windows_;
  const std::string by_;
  const uint64_t frames_, stride_;
  std::vector<uint64_t> file_ends_;        // by camera: the number of its files and those before
  bool has_records_ = false;               // of any camera; the others' are images
  std::optional<ObjectVersions> objects_;  // of several cameras, unless they have files only
  const std::vector<std::string> no_classes_;
};

Status CheckNumbers(const std::vector<Camera>& cameras, const ClipOptions& options) {
  if (options.frames == 0 || options.stride == 0 || options.step == 0) {
    return BadClips("frames, stride and step are 1 or more; they are " +
                    std::to_string(options.frames) + ", " + std::to_string(options.stride) +
                    " and " + std::to_string(options.step));
  }
  const uint64_t images = cameras.size() * uint64_t{options.frames};
  if (images <= kMostPieces) return {};
  return BadClips("a clip has " + std::to_string(images) + " images; at most " +
                  std::to_string(kMostPieces) + " are possible");
}

// Checks that a camera has an image in each frame and nothing else that is encoded.
Status CheckCamera(const Camera& camera, const SampleSource& first) {
  const SampleSource& source = *camera.source;
  const std::string name = source.Describe();
  TRY(CheckNoOrder("clips", &source));
  if (source.in_memory()) {
    return BadClips("samples of " + name + " are not encoded images",
                    "Cut clips from arrays in memory with NumPy");
  }
  if (source.calls() != 0) {
    return BadClips(name + " calls the program for its samples, which gives one image at a time",
                    "Give files, archives or a packed set");
  }
  TRY(CheckFixedImages("clips", source));
  if (source.pieces() != 1 || source.has_clips()) {
    return BadClips("each sample of " + name + " has " +
                        (source.has_clips() ? "a clip" : "several images") +
                        ", and a camera has one image in each frame",
                    source.has_clips() ? "Make clips of single frames"
                                       : "Give each image as a camera of its own");
  }
  const auto loaded = std::ranges::find(source.fields(), Field::Kind::kLoaded, &Field::kind);
  if (loaded != source.fields().end()) {
    return BadClips("field '" + loaded->name + "' of " + name +
                        " is read with the image, and clips have values that are in memory",
                    "Open it without this field");
  }
  if (source.size() == first.size()) return {};
  return BadClips(name + " has " + std::to_string(source.size()) +
                      Plural(source.size(), " frame", " frames") + ", and " + first.Describe() +
                      " has " + std::to_string(first.size()),
                  "All cameras need the same frames, in the same order");
}

Status CheckCameras(const std::vector<Camera>& cameras) {
  if (cameras.empty()) return BadClips("no source was given");
  uint64_t files = 0;
  for (const Camera& camera : cameras) {
    if (camera.source == nullptr) return BadClips("no source was given for '" + camera.name + "'");
    TRY(CheckCamera(camera, *cameras.front().source));
    files += camera.source->files();
    if (files > kMostSourceFiles) return BadClips("the sources have more than 2^32 files");
  }
  return {};
}

// Returns a field of the first source as clips have it.
Result<Field> FieldOfClips(const Field& of_frames, const SampleSource& source, uint32_t frames) {
  if (of_frames.is_of_objects()) {
    return BadClips("samples of " + source.Describe() + " have objects ('" + of_frames.name +
                        "'), and clips have none yet",
                    "Open the images without their objects");
  }
  Field field = of_frames;
  field.is_label = false;
  if (!IsString(field.dtype)) field.row_shape.insert(field.row_shape.begin(), frames);
  return field;
}

Result<std::vector<Field>> FieldsOf(const std::vector<Camera>& cameras, uint32_t frames) {
  std::vector<Field> fields;
  for (const Camera& camera : cameras) {
    Field field = camera.source->fields()[0];
    field.name = camera.name;
    field.count = frames;
    fields.push_back(std::move(field));
  }
  const SampleSource& first = *cameras.front().source;
  for (const Field& other : first.fields().subspan(1)) {
    ASSIGN_OR_RETURN(Field field, FieldOfClips(other, first, frames));
    fields.push_back(std::move(field));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto earlier = std::span(fields).first(i);
    if (std::ranges::find(earlier, fields[i].name, &Field::name) == earlier.end()) continue;
    return BadClips(
        "there are two fields '" + fields[i].name + "'",
        "Name cameras differently from each other and from the fields of " + first.Describe());
  }
  return fields;
}

// Calls `each` with the value of each frame, in order, as bytes that stay valid until the next
// call.
template <typename Each>
void ForEachValue(const SampleSource& source, size_t field, const Each& each) {
  const Field& of = source.fields()[field];
  const size_t bytes = of.row_bytes();
  constexpr uint64_t kTogether = 1024;
  std::vector<uint64_t> ids;
  std::vector<uint8_t> rows(kTogether * bytes);  // as aligned as any type
  for (uint64_t begin = 0; begin < source.size(); begin += kTogether) {
    ids.clear();
    for (uint64_t id = begin; id < std::min(begin + kTogether, source.size()); ++id) {
      ids.push_back(id);
    }
    source.FixedRows(field, ids, rows.data());
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string_view value(reinterpret_cast<const char*>(rows.data() + i * bytes), bytes);
      if (IsString(of.dtype)) value = reinterpret_cast<const std::string_view*>(rows.data())[i];
      each(begin + i, value);
    }
  }
}

Result<size_t> FieldNamed(const std::string& name, const SampleSource& source) {
  std::string names;
  for (size_t i = 1; i < source.fields().size(); ++i) {
    if (source.fields()[i].name == name) return i;
    names += (names.empty() ? "'" : ", '") + source.fields()[i].name + "'";
  }
  return BadClips("by is '" + name + "', and " + source.Describe() + " has " +
                  (names.empty() ? "images alone" : names));
}

Result<ClipWindows> WindowsOf(const SampleSource& source, const ClipOptions& options) {
  const uint64_t span = uint64_t{options.frames - 1} * options.stride + 1;
  ClipWindows windows;
  windows.step = options.step;
  uint64_t begin = 0;
  if (!options.by.empty()) {
    ASSIGN_OR_RETURN(const size_t field, FieldNamed(options.by, source));
    if (!source.fields()[field].row_shape.empty()) {
      return BadClips("by is '" + options.by + "', a column of arrays",
                      "Give one with a number or a text for each frame");
    }
    std::string last;
    ForEachValue(source, field, [&](uint64_t frame, std::string_view value) {
      if (value == last && frame != 0) return;
      if (frame != 0) windows.Add(begin, frame, span);
      begin = frame;
      last = value;
    });
  }
  windows.Add(begin, source.size(), span);
  if (windows.size() != 0) return windows;
  return BadClips("no episode of " + source.Describe() + " has " + std::to_string(span) +
                  Plural(span, " frame", " frames") + ", which a clip spans");
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Clips(std::vector<Camera> cameras,
                                                  const ClipOptions& options) {
  TRY(CheckCameras(cameras));
  TRY(CheckNumbers(cameras, options));
  ASSIGN_OR_RETURN(std::vector<Field> fields, FieldsOf(cameras, options.frames));
  ASSIGN_OR_RETURN(ClipWindows windows, WindowsOf(*cameras.front().source, options));
  return std::shared_ptr<const SampleSource>(std::make_shared<ClipSource>(
      std::move(cameras), std::move(fields), std::move(windows), options));
}

}  // namespace stoker
