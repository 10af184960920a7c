// Processes images through the table of C functions, as a program in another language would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/processor_config.h"
#include "bindings/c/stoker_c.h"
#include "engine/arrays/processor.h"
#include "engine/runtime/runtime.h"
#include "tests/bindings/c/taken_error.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kQwen = R"({"image_processor_type": "Qwen2VLImageProcessor"})";
constexpr const char* kClip = R"({"image_processor_type": "CLIPImageProcessor"})";

class ProcessorCallsTest : public ::testing::Test {
 protected:
  ProcessorCallsTest() {
    for (uint64_t id = 0; id < 6; ++id) {
      paths_.push_back(photos_.FileOf(id));
      files_.push_back(stoker::testing::BytesOfFile(paths_.back()));
    }
    for (size_t i = 0; i < files_.size(); ++i) {
      const bool as_path = i % 2 == 1;
      images_.push_back({sizeof(stoker_encoded), files_[i].data(), files_[i].size(),
                         as_path ? paths_[i].c_str() : nullptr});
    }
  }

  std::string Take(stoker_error* error) { return stoker::testing::TakenError(*api_, error); }

  stoker_processor* Open(const char* config, const stoker_processor_options* options = nullptr) {
    stoker_processor* processor = nullptr;
    EXPECT_EQ(Take(api_->processor_open(config, options, &processor)), "");
    return processor;
  }
  std::string OpenError(const char* config, const stoker_processor_options* options = nullptr) {
    stoker_processor* processor = nullptr;
    const std::string error = Take(api_->processor_open(config, options, &processor));
    EXPECT_EQ(processor, nullptr);
    return error;
  }
  std::string RunError(const stoker_processor* processor, const std::vector<stoker_encoded>& images,
                       std::vector<uint8_t>& into, const stoker_interrupt* interrupt = nullptr) {
    stoker_array_shape shape{};
    shape.struct_size = sizeof(shape);
    const std::string error =
        Take(api_->processor_run(processor, images.data(), images.size(), interrupt, into.data(),
                                 into.size(), &shape, nullptr));
    EXPECT_EQ(shape.ndim == 0, !error.empty()) << "outputs are untouched by errors";
    return error;
  }

  // Returns what the C++ interface makes of the same images.
  stoker::ProcessedImages Expected(const char* config) const {
    const auto recipe =
        stoker::ParseProcessorConfig(config, stoker::ResampledAs::kTorchvision).value();
    const auto processor = stoker::Processor::Create({.recipe = recipe}).value();
    std::vector<stoker::EncodedInput> inputs;
    for (const std::string& path : paths_) inputs.push_back({.bytes = {}, .path = path});
    return processor->ProcessAll(inputs, *stoker::Runtime::Default().value()).value();
  }

  const stoker_api* api_ = stoker_get_api(STOKER_ABI_VERSION);
  stoker::testing::PhotoFolder photos_{6, 2};
  std::vector<std::string> paths_, files_;
  std::vector<stoker_encoded> images_;
};

TEST_F(ProcessorCallsTest, TheArrayIsThatOfCpp) {
  for (const char* config : {kQwen, kClip}) {
    const stoker::ProcessedImages expected = Expected(config);
    stoker_processor* const processor = Open(config);
    stoker_array_shape shape{}, again{};
    shape.struct_size = again.struct_size = sizeof(shape);
    ASSERT_EQ(
        Take(api_->processor_shape(processor, images_.data(), images_.size(), nullptr, &shape)),
        "");
    EXPECT_EQ(shape.dtype, STOKER_F32);
    EXPECT_EQ(shape.bytes, expected.array.shape.bytes());
    EXPECT_EQ(std::vector<int64_t>(shape.dims, shape.dims + shape.ndim),
              expected.array.shape.sides);

    std::vector<uint8_t> memory(1 + shape.bytes + 3, 0xAB);
    std::vector<stoker_image_rows> rows(images_.size());
    for (stoker_image_rows& each : rows) each.struct_size = sizeof(each);
    ASSERT_EQ(Take(api_->processor_run(processor, images_.data(), images_.size(), nullptr,
                                       memory.data() + 1, shape.bytes, &again, rows.data())),
              "");
    EXPECT_EQ(again.bytes, shape.bytes);
    EXPECT_EQ(std::memcmp(memory.data() + 1, expected.array.memory.get(), shape.bytes), 0);
    EXPECT_EQ(memory.front(), 0xAB);
    EXPECT_EQ(std::vector<uint8_t>(memory.end() - 3, memory.end()), std::vector<uint8_t>(3, 0xAB));
    for (size_t i = 0; i < rows.size(); ++i) {
      const stoker::ImagePlan& plan = expected.images[i];
      EXPECT_EQ(rows[i].height, plan.image.height);
      EXPECT_EQ(rows[i].width, plan.image.width);
      EXPECT_EQ(rows[i].rows, plan.rows);
      EXPECT_EQ(rows[i].grid_height, plan.Grid(plan.canvases[0]).height);
      EXPECT_EQ(rows[i].grid_width, plan.Grid(plan.canvases[0]).width);
    }
    api_->processor_free(processor);
  }
  api_->processor_free(nullptr);
}

TEST_F(ProcessorCallsTest, OneImageAndItsPlan) {
  stoker_processor* const processor = Open(kQwen);
  const stoker::ProcessedImages expected = Expected(kQwen);
  size_t at = 0;
  for (size_t i = 0; i < images_.size(); ++i) {
    stoker_array_shape planned{}, shape{};
    stoker_image_rows plan{}, rows{};
    planned.struct_size = shape.struct_size = sizeof(shape);
    plan.struct_size = rows.struct_size = sizeof(rows);
    const auto [width, height] = expected.images[i].image;
    ASSERT_EQ(Take(api_->processor_plan(processor, height, width, &planned, &plan)), "");
    std::vector<uint8_t> memory(planned.bytes);
    ASSERT_EQ(Take(api_->processor_run(processor, &images_[i], 1, nullptr, memory.data(),
                                       memory.size(), &shape, &rows)),
              "");
    EXPECT_EQ(std::memcmp(&shape, &planned, sizeof(shape)), 0);
    EXPECT_EQ(std::memcmp(&rows, &plan, sizeof(rows)), 0);
    const auto* const all = static_cast<const uint8_t*>(expected.array.memory.get());
    EXPECT_EQ(std::memcmp(memory.data(), all + at, memory.size()), 0);
    at += memory.size();
  }
  EXPECT_EQ(at, expected.array.shape.bytes());
  api_->processor_free(processor);
}

TEST_F(ProcessorCallsTest, MemoryThatIsTooShortIsNotWritten) {
  stoker_processor* const processor = Open(kQwen);
  const size_t bytes = Expected(kQwen).array.shape.bytes();
  for (const size_t wrong : {size_t{0}, size_t{1}, bytes - 1}) {
    std::vector<uint8_t> memory(wrong, 0xAB);
    EXPECT_THAT(RunError(processor, images_, memory),
                AllOf(StartsWith("1 "), HasSubstr(std::to_string(bytes) + " bytes")));
    EXPECT_THAT(memory, Each(0xAB));
  }
  api_->processor_free(processor);
}

// As of programs that were compiled before the last members existed.
TEST_F(ProcessorCallsTest, ShorterStructsAreNotReadOrWrittenBeyondTheirSize) {
  stoker_processor_options options{};
  std::memset(&options, 0xFF, sizeof(options));
  options.struct_size = offsetof(stoker_processor_options, pillow);
  options.dtype = STOKER_U8;
  stoker_processor* const processor = Open(kClip, &options);
  stoker_array_shape shape;
  stoker_image_rows rows;
  std::memset(&shape, 0xAB, sizeof(shape));
  std::memset(&rows, 0xAB, sizeof(rows));
  shape.struct_size = offsetof(stoker_array_shape, bytes);
  rows.struct_size = offsetof(stoker_image_rows, grid_height);
  ASSERT_EQ(Take(api_->processor_plan(processor, 300, 500, &shape, &rows)), "");
  EXPECT_EQ(shape.dtype, STOKER_U8);
  EXPECT_EQ(shape.dims[3], 224);
  EXPECT_EQ(shape.bytes, 0xABABABABABABABABu);
  EXPECT_EQ(rows.width, 500);
  EXPECT_EQ(rows.rows, static_cast<int64_t>(0xABABABABABABABABu));

  // An element of another size: `path` does not exist yet.
  std::vector<stoker_encoded> images = images_;
  for (stoker_encoded& image : images) image.path = paths_[0].c_str();
  std::vector<char> old;
  constexpr size_t kOld = offsetof(stoker_encoded, path);
  for (const stoker_encoded& image : images) {
    stoker_encoded shorter = image;
    shorter.struct_size = kOld;
    const char* const from = reinterpret_cast<const char*>(&shorter);
    old.insert(old.end(), from, from + kOld);
  }
  std::vector<uint8_t> memory(images.size() * 3 * 224 * 224), wanted(memory.size());
  shape.struct_size = sizeof(shape);
  ASSERT_EQ(Take(api_->processor_run(processor, reinterpret_cast<stoker_encoded*>(old.data()),
                                     images.size(), nullptr, memory.data(), memory.size(), &shape,
                                     nullptr)),
            "");
  ASSERT_EQ(RunError(processor, images_, wanted), "");
  EXPECT_EQ(memory, wanted);
  api_->processor_free(processor);
}

TEST_F(ProcessorCallsTest, TheFirstStructHasTheSizeOfAll) {
  stoker_processor* const processor = Open(kQwen);
  const stoker::ProcessedImages expected = Expected(kQwen);
  std::vector<stoker_image_rows> rows(images_.size());
  rows.front().struct_size = sizeof(rows.front());
  for (size_t i = 1; i < images_.size(); ++i) images_[i].struct_size = 0;
  rows[1].struct_size = ~uint64_t{0};
  stoker_array_shape shape{};
  shape.struct_size = sizeof(shape);
  std::vector<uint8_t> memory(expected.array.shape.bytes());
  const auto run = [&] {
    return Take(api_->processor_run(processor, images_.data(), images_.size(), nullptr,
                                    memory.data(), memory.size(), &shape, rows.data()));
  };
  ASSERT_EQ(run(), "");
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].struct_size, sizeof(rows[i]));
    EXPECT_EQ(rows[i].rows, expected.images[i].rows);
  }
  for (const uint64_t wrong : {0u, 7u, 12u, 1u << 20}) {
    rows.front().struct_size = wrong;
    EXPECT_THAT(run(), HasSubstr("struct_size of rows[0] is " + std::to_string(wrong)));
    images_.front().struct_size = wrong;
    EXPECT_THAT(run(), HasSubstr("struct_size of images[0] is " + std::to_string(wrong)));
    images_.front().struct_size = sizeof(images_.front());
  }
  api_->processor_free(processor);
}

TEST_F(ProcessorCallsTest, OptionsAreThoseOfCpp) {
  stoker_processor_options options{};
  options.struct_size = sizeof(options);
  options.overrides = R"({"size": 100, "crop_size": 96})";
  options.dtype = STOKER_BF16;
  options.pillow = 1;
  options.max_pixels = 1000;
  options.memory_budget = 1 << 28;
  stoker_processor* processor = Open(kClip, &options);
  stoker_array_shape shape{};
  stoker_image_rows rows{};
  shape.struct_size = sizeof(shape);
  rows.struct_size = sizeof(rows);
  ASSERT_EQ(Take(api_->processor_plan(processor, 300, 500, &shape, &rows)), "");
  EXPECT_EQ(shape.dtype, STOKER_BF16);
  EXPECT_EQ(shape.bytes, 2u * 3 * 96 * 96);
  std::vector<uint8_t> memory(6 * shape.bytes);
  EXPECT_THAT(RunError(processor, images_, memory),
              AllOf(StartsWith("5 "), HasSubstr("images[0]: "), HasSubstr("limit of 1000")));
  api_->processor_free(processor);

  for (const auto& [change, words] :
       std::vector<std::pair<void (*)(stoker_processor_options&), const char*>>{
           {[](stoker_processor_options& o) { o.dtype = STOKER_U16; }, "dtype is 4"},
           {[](stoker_processor_options& o) { o.dtype = -1; }, "dtype is -1"},
           {[](stoker_processor_options& o) { o.max_pixels = -1; }, "max_pixels"},
           {[](stoker_processor_options& o) { o.max_scans = -5; }, "max_scans"},
           {[](stoker_processor_options& o) { o.overrides = "{"; }, "overrides"},
           {[](stoker_processor_options& o) { o.overrides = R"({"sizes": 3})"; }, "sizes"}}) {
    stoker_processor_options wrong = options;
    change(wrong);
    EXPECT_THAT(OpenError(kClip, &wrong), AllOf(StartsWith("1 "), HasSubstr(words)));
  }
}

TEST_F(ProcessorCallsTest, ErrorsNameTheirCause) {
  EXPECT_THAT(OpenError("{"), StartsWith("1 "));
  EXPECT_THAT(OpenError(R"({"image_processor_type": "NoImageProcessor"})"),
              HasSubstr("image_processor_type"));
  stoker_processor* const processor = Open(kQwen);
  std::vector<uint8_t> memory(Expected(kQwen).array.shape.bytes());
  EXPECT_THAT(RunError(processor, {}, memory), HasSubstr("there are no images"));

  stoker_array_shape shape{};
  stoker_image_rows rows{};
  shape.struct_size = sizeof(shape);
  rows.struct_size = sizeof(rows);
  for (const auto& [height, width] : {std::pair{0, 5}, {5, -1}, {65536, 5}}) {
    EXPECT_THAT(Take(api_->processor_plan(processor, height, width, &shape, &rows)),
                HasSubstr("must be 1 to 65535"));
  }
  EXPECT_THAT(Take(api_->processor_plan(processor, 10, 3000, &shape, &rows)),
              HasSubstr("aspect ratio"));

  std::vector<stoker_encoded> images = images_;
  images[3].path = "/nowhere/a.jpg";
  EXPECT_THAT(RunError(processor, images, memory), AllOf(StartsWith("2 "), HasSubstr("a.jpg")));
  EXPECT_THAT(Take(api_->processor_shape(processor, images.data(), images.size(), nullptr, &shape)),
              AllOf(StartsWith("2 "), HasSubstr("a.jpg")));
  images[3].path = "";
  EXPECT_THAT(RunError(processor, images, memory), HasSubstr("images[3]: the path is empty"));
  images[3] = {sizeof(stoker_encoded), nullptr, 0, nullptr};
  EXPECT_THAT(RunError(processor, images, memory), AllOf(StartsWith("4 "), HasSubstr("images[3]")));
  images[3] = {sizeof(stoker_encoded), "no image", 8, nullptr};
  EXPECT_THAT(RunError(processor, images, memory), AllOf(StartsWith("4 "), HasSubstr("images[3]")));
  api_->processor_free(processor);
}

TEST_F(ProcessorCallsTest, ThreadsShareAProcessor) {
  stoker_processor* const processor = Open(kQwen);
  const stoker::ProcessedImages expected = Expected(kQwen);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      std::vector<uint8_t> memory(expected.array.shape.bytes());
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(RunError(processor, images_, memory), "");
        EXPECT_EQ(std::memcmp(memory.data(), expected.array.memory.get(), memory.size()), 0);
      }
    });
  }
  threads.clear();
  api_->processor_free(processor);
}

}  // namespace
