#include "io/select/clips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "io/folder/masks.h"
#include "io/memory/arrays.h"
#include "io/memory/string_rows.h"
#include "io/ranges/path_source.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/numbered_source.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NumberedSource;
using Source = std::shared_ptr<const SampleSource>;

// Files "0.jpg", "1.jpg", … with the number of their episode, as a number and as text, and a state.
Source Frames(const std::vector<int32_t>& episodes, const std::string& root = "/camera") {
  struct Elements {
    std::vector<int32_t> episodes;
    std::vector<float> states;
    StringRows tasks;
  };
  const auto elements = std::make_shared<Elements>();
  elements->episodes = episodes;
  FilesOptions options{.root = root, .owner = elements};
  PathTable paths;
  for (size_t i = 0; i < episodes.size(); ++i) {
    paths.Add(std::to_string(i) + ".jpg");
    elements->states.insert(elements->states.end(), {static_cast<float>(i), 0.5F});
    elements->tasks.Add("task " + std::to_string(episodes[i]));
  }
  options.columns = {{"label", DType::kI32, {}, elements->episodes.data(), episodes.size()},
                     {"state", DType::kF32, {2}, elements->states.data(), episodes.size()},
                     elements->tasks.Column("task", DType::kString)};
  return Files(std::move(paths), std::move(options)).value();
}

std::string FileOfPiece(const SampleSource& source, uint64_t id, size_t piece) {
  std::string path;
  source.PathOf((piece == 0 ? source.RangeOf(id) : source.RangeOfPiece(id, piece)).file, path);
  return path;
}

template <typename T>
std::vector<T> RowsOf(const SampleSource& source, size_t field, const std::vector<uint64_t>& ids) {
  std::vector<T> rows(ids.size() * source.fields()[field].row_bytes() / sizeof(T));
  source.FixedRows(field, ids, rows.data());
  return rows;
}

std::string ClipsErrorOf(std::vector<Camera> cameras, const ClipOptions& options = {.frames = 2}) {
  const Result<Source> made = Clips(std::move(cameras), options);
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : made.error().Message();
}

// The frames of each clip, by trying each frame as the first one.
std::vector<std::vector<uint64_t>> ClipsOf(const std::vector<int32_t>& episodes,
                                           const ClipOptions& options) {
  std::vector<std::vector<uint64_t>> clips;
  uint64_t in_episode = 0;
  for (uint64_t first = 0; first < episodes.size(); ++first) {
    in_episode = first > 0 && episodes[first] == episodes[first - 1] ? in_episode + 1 : 0;
    if (in_episode % options.step != 0) continue;
    std::vector<uint64_t> clip;
    const uint64_t span = uint64_t{options.frames - 1} * options.stride + 1;
    uint64_t equal = 0;
    while (equal < span && first + equal < episodes.size() &&
           episodes[first + equal] == episodes[first]) {
      ++equal;
    }
    if (equal < span) continue;
    for (uint64_t i = 0; i < options.frames; ++i) clip.push_back(first + i * options.stride);
    clips.push_back(clip);
  }
  return clips;
}

TEST(Clips, AreThoseThatAFrameByFrameSearchFinds) {
  for (int round = 0; round < testing::Effort(300); ++round) {
    RandomStream random({3, 0, static_cast<uint64_t>(round)}, 0);
    std::vector<int32_t> episodes;
    const uint64_t runs = 1 + random.Below(6);
    for (uint64_t run = 0; run < runs; ++run) {  // a number may come again later
      const int32_t last = episodes.empty() ? -1 : episodes.back();
      episodes.insert(episodes.end(), 1 + random.Below(run == 0 ? 40 : 20),
                      (last + 1 + static_cast<int32_t>(random.Below(2))) % 3);
    }
    const ClipOptions options{.by = random.Below(2) == 0 ? "label" : "task",
                              .frames = static_cast<uint32_t>(1 + random.Below(5)),
                              .stride = static_cast<uint32_t>(1 + random.Below(3)),
                              .step = static_cast<uint32_t>(1 + random.Below(4))};
    const std::vector<std::vector<uint64_t>> expected = ClipsOf(episodes, options);
    const Result<Source> made =
        Clips({{"a", Frames(episodes, "/a")}, {"b", Frames(episodes, "/b")}}, options);
    ASSERT_EQ(made.ok(), !expected.empty()) << "round " << round;
    if (!made.ok()) continue;
    const SampleSource& clips = **made;
    ASSERT_EQ(clips.size(), expected.size()) << "round " << round;
    ASSERT_EQ(clips.pieces(), 2 * options.frames);
    for (uint64_t id = 0; id < clips.size(); ++id) {
      std::vector<float> states;
      for (uint64_t i = 0; i < options.frames; ++i) {
        const std::string name = std::to_string(expected[id][i]) + ".jpg";
        EXPECT_EQ(FileOfPiece(clips, id, i), "/a/" + name);
        EXPECT_EQ(FileOfPiece(clips, id, options.frames + i), "/b/" + name);
        states.insert(states.end(), {static_cast<float>(expected[id][i]), 0.5F});
      }
      EXPECT_EQ(RowsOf<float>(clips, 3, {id}), states);
    }
  }
}

TEST(Clips, HaveTheFieldsOfTheirFrames) {
  const Source frames = Frames({4, 4, 4, 7, 7});
  const Source clips =
      Clips({{"front", frames}, {"wrist", frames}}, {.by = "label", .frames = 2}).value();
  const std::span<const Field> fields = clips->fields();
  ASSERT_EQ(fields.size(), 5u);
  EXPECT_EQ(fields[0].name, "front");
  EXPECT_EQ(fields[0].count, 2u);
  EXPECT_EQ(fields[1].name, "wrist");
  EXPECT_EQ(clips->encoded_fields(), 2u);
  EXPECT_EQ(fields[2].name, "label");
  EXPECT_THAT(fields[2].row_shape, ElementsAre(2));
  EXPECT_FALSE(clips->label()) << "labels are those of frames";
  EXPECT_THAT(fields[3].row_shape, ElementsAre(2, 2));
  EXPECT_THAT(fields[4].row_shape, ElementsAre());
  EXPECT_THAT(RowsOf<int32_t>(*clips, 2, {2, 0}), ElementsAre(7, 7, 4, 4));
  EXPECT_THAT(RowsOf<float>(*clips, 3, {1}), ElementsAre(1, 0.5, 2, 0.5));
  EXPECT_THAT(RowsOf<std::string_view>(*clips, 4, {2, 1}), ElementsAre("task 7", "task 4"));
}

TEST(Clips, RowsOfManyClipsAreThoseOfEach) {
  const Source clips =
      Clips({{"image", Frames(std::vector<int32_t>(300))}}, {.frames = 100, .step = 3}).value();
  std::vector<uint64_t> ids;
  std::vector<float> expected;
  for (uint64_t id = clips->size(); id-- > 0;) {
    ids.push_back(id);
    const std::vector<float> row = RowsOf<float>(*clips, 2, {id});
    EXPECT_EQ(row[0], static_cast<float>(3 * id));
    EXPECT_EQ(row[198], static_cast<float>(3 * id + 99));
    expected.insert(expected.end(), row.begin(), row.end());
  }
  EXPECT_EQ(RowsOf<float>(*clips, 2, ids), expected);
}

TEST(Clips, OneFrameIsAClip) {
  const Source clips = Clips({{"image", Frames({0, 0, 1})}}, {.frames = 1}).value();
  EXPECT_EQ(clips->size(), 3u);
  EXPECT_EQ(clips->pieces(), 1u);
  EXPECT_TRUE(clips->has_clips());
}

TEST(Clips, PassTheAnswersOfTheirSourcesOn) {
  const auto one = std::make_shared<NumberedSource>(20, 0, "one");
  const auto two = std::make_shared<NumberedSource>(20, 100, "two");
  const Source clips = Clips({{"a", one}, {"b", two}}, {.frames = 3, .stride = 4}).value();
  EXPECT_EQ(clips->size(), 12u);
  EXPECT_EQ(clips->files(), 40u);
  EXPECT_EQ(clips->RangeOf(5).offset, 5u);
  EXPECT_EQ(clips->RangeOfPiece(5, 2).offset, 13u);
  EXPECT_EQ(clips->RangeOfPiece(5, 4).offset, 109u);
  EXPECT_EQ(FileOfPiece(*clips, 5, 2), "one/6");
  EXPECT_EQ(FileOfPiece(*clips, 5, 4), "two/2");
  EXPECT_EQ(clips->FactsOf(5).file_bytes, 5u);
  EXPECT_EQ(clips->Skipped().files(), 2u);
  EXPECT_EQ(clips->Warning(), "one is a test; and two is a test");
  EXPECT_EQ(clips->Describe(), "clips(one and 1 more, 3 frames)");
  EXPECT_GT(clips->memory_bytes(), 2000u);
  EXPECT_TRUE(clips->classes().empty());
  const auto fingerprint = [&](const Source& b, const ClipOptions& options) {
    return Clips({{"a", one}, {"b", b}}, options).value()->Fingerprint();
  };
  EXPECT_EQ(clips->Fingerprint(), fingerprint(two, {.frames = 3, .stride = 4}));
  EXPECT_NE(clips->Fingerprint(), fingerprint(one, {.frames = 3, .stride = 4}));
  EXPECT_NE(clips->Fingerprint(), fingerprint(two, {.frames = 3, .stride = 5}));
  EXPECT_NE(clips->Fingerprint(), fingerprint(two, {.frames = 3, .stride = 4, .step = 2}));
}

TEST(Clips, EpisodesThatAreTooShortAreCounted) {
  const Source clips =
      Clips({{"image", Frames({0, 0, 1, 2, 2, 2, 3})}}, {.by = "label", .frames = 2}).value();
  EXPECT_EQ(clips->size(), 3u);
  EXPECT_EQ(clips->Warning(),
            "2 of 4 episodes of files(0.jpg and 6 more) are shorter than a clip, and left out");
  EXPECT_THAT(
      Clips({{"image", Frames({0, 0, 1})}}, {.by = "label", .frames = 2}).value()->Warning(),
      HasSubstr("1 of 2 episodes of files(0.jpg and 2 more) is shorter than a clip"));
}

TEST(Clips, ASourceOfTwoCamerasWarnsOnce) {
  const auto one = std::make_shared<NumberedSource>(20, 0, "one");
  EXPECT_EQ(Clips({{"a", one}, {"b", one}}, {}).value()->Warning(), "one is a test");
}

TEST(Clips, SubsetsKeepThePiecesAndTheirNames) {
  const Source clips = Clips({{"image", Frames({0, 0, 0, 1, 1})}}, {.frames = 2}).value();
  const Source some = Subset(clips, std::vector<uint64_t>{3, 0}).value();
  EXPECT_EQ(some->pieces(), 2u);
  EXPECT_EQ(FileOfPiece(*some, 0, 1), "/camera/4.jpg");
  EXPECT_EQ(FileOfPiece(*some, 1, 1), "/camera/1.jpg");
}

TEST(Clips, AMistakeIsNamed) {
  const Source frames = Frames({0, 0, 0});
  const auto refused = [&](const ClipOptions& options) {
    return ClipsErrorOf({{"image", frames}}, options);
  };
  EXPECT_THAT(ClipsErrorOf({}), HasSubstr("no source was given"));
  EXPECT_THAT(ClipsErrorOf({{"image", nullptr}}), HasSubstr("no source was given for 'image'"));
  EXPECT_THAT(refused({.frames = 0}), HasSubstr("1 or more; they are 0, 1 and 1"));
  EXPECT_THAT(refused({.stride = 0}), HasSubstr("1 or more"));
  EXPECT_THAT(refused({.step = 0}), HasSubstr("1 or more"));
  EXPECT_THAT(refused({.frames = 1025}), HasSubstr("1025 images; at most 1024"));
  EXPECT_THAT(refused({.frames = 4}), HasSubstr("no episode of files(0.jpg and 2 more) "
                                                "has 4 frames"));
  EXPECT_THAT(refused({.frames = 2, .stride = ~uint32_t{0}}), HasSubstr("4294967296 frames"));
  EXPECT_THAT(refused({.by = "episode", .frames = 2}),
              HasSubstr("by is 'episode', and files(0.jpg and 2 more) has 'label', "
                        "'state', 'task'"));
  EXPECT_THAT(refused({.by = "state", .frames = 2}),
              HasSubstr("by is 'state', a column of arrays"));
  EXPECT_THAT(ClipsErrorOf({{"a", frames}, {"b", Frames({0, 0})}}),
              HasSubstr("has 2 frames, and files(0.jpg and 2 more) has 3"));
  EXPECT_THAT(ClipsErrorOf({{"a", frames}, {"a", frames}}), HasSubstr("two fields 'a'"));
  EXPECT_THAT(ClipsErrorOf({{"state", frames}}), HasSubstr("two fields 'state'"));
  const Source clips = Clips({{"image", frames}}, {.frames = 2}).value();
  EXPECT_THAT(ClipsErrorOf({{"image", clips}}), HasSubstr("has a clip"));
  const Source weighted = Weighted(frames, std::vector<double>{1, 2, 3}).value();
  EXPECT_THAT(ClipsErrorOf({{"image", weighted}}), HasSubstr("an order of its own"));
  const std::vector<uint8_t> pixels(36);
  const Source arrays = Arrays({{"image", DType::kU8, {2, 2, 3}, pixels.data(), 3}}, {}).value();
  EXPECT_THAT(ClipsErrorOf({{"image", arrays}}), HasSubstr("are not encoded images"));
}

TEST(Clips, ValuesThatAreReadWithImagesAreRefused) {
  const testing::TempFolder folder;
  folder.Write("records", testing::ImageRecord("a", 1) + testing::ImageRecord("b", 2));
  const std::string path = folder.path() + "/records";
  EXPECT_THAT(ClipsErrorOf({{"image", TfRecord(path).value()}}),
              HasSubstr("field 'label' of tfrecord(" + path + ") is read with the image"));
  EXPECT_TRUE(Clips({{"image", TfRecord(path, {.label = ""}).value()}}, {.frames = 2}).ok());
}

}  // namespace
}  // namespace stoker
