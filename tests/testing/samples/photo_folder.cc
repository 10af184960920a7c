#include "tests/testing/samples/photo_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/folder/image_folder.h"
#include "tests/testing/images/make_jpeg.h"

namespace stoker::testing {

namespace fs = std::filesystem;

PhotoFolder::PhotoFolder(int count, int classes) {
  std::string pattern = (fs::path(::testing::TempDir()) / "stoker_photos_XXXXXX").string();
  path_ = mkdtemp(pattern.data());
  for (int i = 0; i < count; ++i) {
    JpegOptions options;
    options.width = 40 + i * 7 % 61;
    options.height = 40 + i * 11 % 53;
    options.sampling = i % 3 == 0 ? Luma(2, 2) : Luma(1, 1);
    options.seed = static_cast<uint64_t>(i);
    const std::vector<uint8_t> bytes = MakeJpeg(options);
    const fs::path folder = fs::path(path_) / ("class" + std::to_string(i % classes));
    fs::create_directories(folder);
    std::ofstream(folder / ("photo" + std::to_string(1000 + i) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

PhotoFolder::~PhotoFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::shared_ptr<const SampleSource> PhotoFolder::Source() const {
  return ImageFolder(path_).value();
}

std::string PhotoFolder::FileOf(uint64_t id) const {
  const auto source = Source();
  std::string path;
  source->PathOf(source->RangeOf(id).file, path);
  return path;
}

void PhotoFolder::Overwrite(uint64_t id, const std::string& bytes) const {
  std::ofstream(FileOf(id), std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace stoker::testing
