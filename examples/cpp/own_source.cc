// Photographs that a program gets by calls of its own, from an archive, a database or a bucket.
// Here they are the files of one folder, in memory.
//
//   cmake -S examples/cpp -B example -DCMAKE_PREFIX_PATH=WHERE_STOKER_IS_INSTALLED
//   cmake --build example && example/own_source photos/train/class0

#include <stoker/stoker.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

// A source never changes, because threads use it at the same time.
class Archive final : public stoker::SampleSource {
 public:
  explicit Archive(std::vector<std::string> photographs) : photographs_(std::move(photographs)) {}

  uint64_t size() const override { return photographs_.size(); }
  std::span<const stoker::Field> fields() const override { return fields_; }

  // Two threads call Load. A source whose photographs are parts of files overrides RangeOf and
  // PathOf instead: stoker then reads them itself, with io_uring.
  int calls() const override { return 2; }
  stoker::Status Load(uint64_t id, stoker::LoadedSample& loaded) const override {
    const std::string& photograph = photographs_[id];
    const auto bytes = static_cast<uint64_t>(photograph.size());
    loaded.SetRow(1, {reinterpret_cast<const uint8_t*>(&bytes), sizeof(bytes)});
    return loaded.SetBytes({reinterpret_cast<const uint8_t*>(photograph.data()), bytes});
  }

  // Names a sample in messages: "photograph 17: truncated JPEG".
  stoker::ByteRange RangeOf(uint64_t id) const override {
    return {.file = static_cast<uint32_t>(id)};
  }
  void PathOf(uint32_t file, std::string& path) const override {
    path = "photograph " + std::to_string(file);
  }

  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return sizeof(*this); }
  std::string Describe() const override {
    return "an archive of " + std::to_string(size()) + " photographs";
  }

 private:
  const std::vector<std::string> photographs_;
  const std::vector<stoker::Field> fields_{
      {.name = "image", .kind = stoker::Field::Kind::kImage},
      {.name = "bytes", .kind = stoker::Field::Kind::kLoaded, .dtype = stoker::DType::kU64}};
  const std::vector<std::string> classes_;  // no labels
};

std::shared_ptr<const Archive> ReadAll(const char* folder) {
  std::vector<std::string> photographs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    photographs.emplace_back(std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>());
  }
  return std::make_shared<const Archive>(std::move(photographs));
}

void Show(const char* folder) {
  stoker::LoaderOptions options;
  options.source = ReadAll(folder);
  options.transforms = {stoker::RandomResizedCrop{.height = 224, .width = 224}};
  options.batch_size = 16;
  options.shuffle = true;
  auto loader = stoker::Loader::Open(options).value();
  auto batches = loader->Iterate();
  uint64_t images = 0, bytes = 0;
  while (stoker::Batch batch = batches->Next().value()) {
    images += static_cast<uint64_t>(batch.rows());
    for (const uint64_t size : batch.columns()[1].as<uint64_t>()) bytes += size;
  }
  std::cout << images << " images of " << bytes << " bytes\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: own_source FOLDER\n";
    return 2;
  }
  try {
    Show(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "own_source: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
