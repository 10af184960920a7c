// A program with a race of its own next to a loader.
#include <stoker/stoker.h>

#include <cstdint>
#include <thread>

namespace {
uint64_t batches = 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  stoker::LoaderOptions options;
  options.source = stoker::ImageFolder(argv[1]).value();
  options.transforms = {stoker::RandomResizedCrop{.height = 32, .width = 32}};
  options.batch_size = 16;
  auto loader = stoker::Loader::Open(options).value();
  auto iterator = loader->Iterate();
  std::thread other([] { ++batches; });
  while (stoker::Batch batch = iterator->Next().value()) ++batches;
  other.join();
  return 0;
}
