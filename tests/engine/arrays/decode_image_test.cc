// Single images: the arrays of a pool, which Python's are, and requests that are refused.
#include "engine/arrays/decode_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/arrays/decoder_pool.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> PixelsOf(const DecodedArray& array) {
  const auto* const data = static_cast<const uint8_t*>(array.memory.get());
  return {data, data + array.shape.bytes()};
}

TEST(DecodeImage, GivesTheArraysOfAPool) {
  const std::vector<std::vector<uint8_t>> images = {
      testing::MakeJpeg({.width = 41, .height = 30, .orientation = 6, .seed = 1}),
      testing::MakePng({.width = 41, .height = 30, .seed = 2})};
  std::vector<ArrayRequest> requests(6);
  requests[1].channels = Channels::kGray;
  requests[2].channels = Channels::kUnchanged;
  requests[3].region = Rect{3, 5, 20, 10};
  requests[4].resize = Resize{.height = 16, .width = 8};
  requests[5].dtype = DType::kF32;
  requests[5].layout = Layout::kNchw;
  DecoderPool pool({}, 256 << 20);
  const testing::TempFolder folder;
  for (const std::vector<uint8_t>& image : images) {
    const std::string path =
        folder.Write("image", {reinterpret_cast<const char*>(image.data()), image.size()});
    for (const ArrayRequest& request : requests) {
      const DecodedArray wanted = pool.Decode(EncodedInput{image, {}}, request).value();
      for (const DecodedArray& got :
           {DecodeImage(image, request).value(), DecodeImageFile(path, request).value()}) {
        EXPECT_EQ(got.shape.sides, wanted.shape.sides);
        EXPECT_EQ(got.shape.dtype, wanted.shape.dtype);
        EXPECT_EQ(PixelsOf(got), PixelsOf(wanted));
      }
    }
  }
  EXPECT_THAT(DecodeImage(images[0]).value().shape.sides, ElementsAre(41, 30, 3));  // turned
}

TEST(DecodeImage, RefusesWhatIsNotPossible) {
  const std::vector<uint8_t> image = testing::MakeJpeg({.width = 40, .height = 30, .seed = 1});
  std::vector<std::pair<ArrayRequest, const char*>> cases(6);
  cases[0] = {{.region = Rect{0, 0, 41, 30}}, "not inside"};
  cases[1] = {{.resize = Resize{}}, "resize"};
  cases[2] = {{.dtype = DType::kI64}, "dtype is int64"};
  cases[3] = {{.channels = Channels::kUnchanged, .layout = Layout::kNchw}, "own type"};
  cases[4] = {{.channels = Channels::kUnchanged, .dtype = DType::kF32}, "own type"};
  cases[5] = {{.resize = Resize{.height = -1, .width = 5}}, "resize"};
  for (const auto& [request, words] : cases) {
    const Result<DecodedArray> refused = DecodeImage(image, request);
    ASSERT_FALSE(refused.ok()) << words;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().cause, HasSubstr(words));
  }
  EXPECT_EQ(DecodeImage({}).error().code, Code::kDataLoss);
  EXPECT_EQ(DecodeImage(image, {}, {.max_pixels = 1199}).error().code, Code::kResourceExhausted);
  EXPECT_EQ(DecodeImage(image, {}, {.max_pixels = 0}).error().code, Code::kInvalidArgument);
  const Error missing = DecodeImageFile("/no/such/file").error();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_EQ(missing.advice, "The target of a symbolic link may be missing");
  EXPECT_EQ(DecodeImageFile("").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace stoker
