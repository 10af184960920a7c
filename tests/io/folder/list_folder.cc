// list_folder DIR [THREADS]: for each sample "<label> <path>" and a zero byte; exit code 1 and the
// error on standard error when there is no such list. With --summary instead of paths: counts,
// seconds and bytes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/folder/image_folder.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "list_folder DIR [THREADS] [--summary]\n");
    return 2;
  }
  const bool summary = std::string_view(argv[argc - 1]) == "--summary";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  const auto start = std::chrono::steady_clock::now();
  auto source = stoker::ImageFolder(argv[1], {.threads = threads});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!source.ok()) {
    std::fprintf(stderr, "%s\n", source.error().ToString().c_str());
    return 1;
  }
  const stoker::SampleSource& list = **source;
  if (summary) {
    std::printf("%llu samples in %zu classes, %.3f s, %.1f bytes a sample\n",
                static_cast<unsigned long long>(list.size()), list.classes().size(),
                seconds.count(),
                static_cast<double>(list.memory_bytes()) / static_cast<double>(list.size()));
    return 0;
  }
  std::string path;
  for (uint64_t id = 0; id < list.size(); ++id) {
    list.PathOf(list.RangeOf(id).file, path);
    std::printf("%lld %s", static_cast<long long>(list.LabelOf(id)), path.c_str());
    std::putchar('\0');
  }
  return 0;
}
