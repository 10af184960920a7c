// A training loop over two epochs of shuffled, augmented batches of the photographs in class
// folders.
//
//   cmake -S examples/cpp -B example -DCMAKE_PREFIX_PATH=WHERE_STOKER_IS_INSTALLED
//   cmake --build example && example/train_loop photos/train
//
// The "training step" only computes the mean of each batch's pixels.

#include <stoker/stoker.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>

namespace {

double Step(const stoker::Batch& batch) {
  const auto pixels = batch.images().as<uint8_t>();
  const uint64_t sum = std::accumulate(pixels.begin(), pixels.end(), uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(pixels.size());
}

void Train(const char* directory) {
  stoker::LoaderOptions options;
  options.source = stoker::ImageFolder(directory).value();
  options.transforms = {stoker::RandomResizedCrop{.height = 224, .width = 224},
                        stoker::RandomHorizontalFlip{}};
  options.batch_size = 64;
  options.shuffle = true;
  options.seed = 1;
  options.epochs = 2;

  // value() throws on an error. Programs without exceptions check ok(), then read error().
  auto loader = stoker::Loader::Open(options).value();
  for (uint64_t epoch = 0; epoch < *options.epochs; ++epoch) {
    std::map<int64_t, int> images_of_label;
    auto batches = loader->Iterate();  // over the next epoch
    // An empty batch says that the epoch has ended. The batch's memory returns to the loader at the
    // end of each iteration of the loop.
    while (stoker::Batch batch = batches->Next().value()) {
      for (int64_t label : batch.labels().as<int64_t>()) ++images_of_label[label];
      std::cout << "epoch " << epoch << ", batch " << batch.index() << ": " << batch.rows()
                << " images, mean " << Step(batch) << '\n';
    }
    for (const auto& [label, images] : images_of_label) {
      std::cout << "epoch " << epoch << ", label " << label << ": " << images << " images\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: train_loop DIRECTORY\n";
    return 2;
  }
  try {
    Train(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "train_loop: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
