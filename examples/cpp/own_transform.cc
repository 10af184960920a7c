// A transform of the program's own, after those of stoker: it leaves eight levels of each colour.
//
//   cmake -S examples/cpp -B example -DCMAKE_PREFIX_PATH=WHERE_STOKER_IS_INSTALLED
//   cmake --build example && example/own_transform photos/train

#include <stoker/stoker.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace {

// Several workers call MapRow at the same time, so it changes nothing but its row. A function of
// whole batches overrides calls() and MapBatch instead, and has threads of its own.
class Posterize final : public stoker::MapFunction {
 public:
  std::string Describe() const override { return "Posterize"; }  // in messages and statistics

  // The row of one image: after the crop, in the loader's type and layout.
  stoker::Status MapRow(const stoker::MappedRow& row) const override {
    const stoker::ColumnSpec& image = row.columns()[0];
    if (image.dtype != stoker::DType::kU8) {
      // "photos/a.jpg: Posterize of sample 17: …" instead of the batch.
      return stoker::Error{stoker::Code::kInvalidArgument, "the images are no bytes"};
    }
    for (uint8_t& value : row.as<uint8_t>(0)) value &= kLevels;
    return {};
  }

  static constexpr uint8_t kLevels = 0xE0;
};

void Show(const char* folder) {
  stoker::LoaderOptions options;
  options.source = stoker::ImageFolder(folder).value();
  options.transforms = {stoker::RandomResizedCrop{.height = 224, .width = 224}};
  options.map = std::make_shared<const Posterize>();
  options.batch_size = 16;
  options.shuffle = true;
  auto loader = stoker::Loader::Open(options).value();
  auto batches = loader->Iterate();
  uint64_t images = 0, others = 0;
  while (stoker::Batch batch = batches->Next().value()) {
    images += static_cast<uint64_t>(batch.rows());
    for (const uint8_t value : batch.images().as<uint8_t>()) {
      others += (value & ~Posterize::kLevels) != 0 ? 1 : 0;
    }
  }
  std::cout << images << " images, " << others << " values of other levels\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: own_transform FOLDER\n";
    return 2;
  }
  try {
    Show(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "own_transform: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
