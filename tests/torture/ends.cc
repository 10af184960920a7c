// Ends loaders in each possible way, as often as asked, and compares the descriptors, threads and
// memory of the process before and after.
//
//     ends [--times N] [--only NAME …]
//
// Prints a line for each kind: how long the slowest end took, and what was left. Ends with 1 if a
// descriptor, a thread or a batch is left; the memory is for the reader to judge. All threads are
// the Runtime's own, because TBB keeps its own for the process.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/slow_reader.h"
#include "core/numbers/random.h"
#include "engine/loader/loader.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/readers/reader.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Held {
  int descriptors = OpenDescriptors();
  int threads = LiveThreads();
  uint64_t resident_kib = MemoryNow().resident / 1024;
};

// Waits in each call, as a function of a program may.
class SlowMap final : public MapFunction {
 public:
  std::string Describe() const override { return "slow"; }
  int calls() const override { return 2; }
  Status MapBatch(const Batch&) const override {
    std::this_thread::sleep_for(microseconds(700));
    return {};
  }
};

// The common parts of the ends: photographs, half of them bad if requested.
class Ends {
 public:
  Ends() {
    for (uint64_t id = 0; id < 40; id += 2) half_bad_.Overwrite(id, "no photograph");
  }

  LoaderOptions Options(RandomStream& random) const {
    LoaderOptions options;
    options.source = source_;
    options.transforms = {RandomResizedCrop{.height = 32, .width = 32}};
    options.batch_size = 4;
    options.shuffle = true;
    options.depth = 1 + static_cast<int>(random.Below(5));
    options.runtime = Runtime::Create(Threads(random)).value();
    return options;
  }

  LoaderOptions OfOneRuntime(RandomStream& random) const {
    LoaderOptions options = Options(random);
    options.runtime = runtime_;
    return options;
  }

  // Reads take `latency` or more.
  LoaderOptions SlowReads(RandomStream& random, milliseconds latency = milliseconds(2)) const {
    LoaderOptions options = Options(random);
    auto disk = std::make_shared<SlowDisk>(SlowStorage{.latency = latency});
    options.runtime = RuntimeWithReaders(Threads(random), [disk] {
                        return SlowReader::Make(MakePreadReader(4), disk);
                      }).value();
    return options;
  }

  LoaderOptions BadHalf(RandomStream& random, const char* on_bad) const {
    LoaderOptions options = Options(random);
    options.source = half_bad_source_;
    options.on_bad = BadPolicy::Parse(on_bad).value();
    options.max_bad_fraction = 1;
    return options;
  }

 private:
  static RuntimeOptions Threads(RandomStream& random) {
    return {.threads = 1 + static_cast<int>(random.Below(3)),
            .reader = random.Below(2) == 0 ? ReaderKind::kPread : ReaderKind::kAuto,
            .reader_threads = 1 + static_cast<int>(random.Below(2)),
            .executor = ExecutorKind::kThreads};
  }

  const PhotoFolder photos_{40, 2}, half_bad_{40, 2};
  const std::shared_ptr<const SampleSource> source_ = photos_.Source();
  const std::shared_ptr<const SampleSource> half_bad_source_ = half_bad_.Source();
  const std::shared_ptr<Runtime> runtime_ =
      Runtime::Create({.threads = 2, .executor = ExecutorKind::kThreads}).value();
};

std::shared_ptr<Loader> Open(LoaderOptions options) {
  return Loader::Open(std::move(options)).value();
}

// Takes up to `most` batches; errors of samples are passed.
std::vector<Batch> Take(Iterator& iterator, uint64_t most) {
  std::vector<Batch> batches;
  for (uint64_t i = 0; i < most; ++i) {
    Result<Batch> batch = iterator.Next();
    if (batch.ok() && *batch) batches.push_back(*std::move(batch));
  }
  return batches;
}

void Pause(RandomStream& random) { std::this_thread::sleep_for(microseconds(random.Below(3000))); }

using End = std::function<void()>;

// Ends by dropping iterator and loader, whatever they are doing.
End Dropped(std::shared_ptr<Loader> loader, std::shared_ptr<Iterator> iterator) {
  return [loader = std::move(loader), iterator = std::move(iterator)]() mutable {
    iterator.reset();
    loader.reset();
  };
}

// Makes a loader from which some batches were taken, and which works on the next ones.
End InTheMiddle(LoaderOptions options, RandomStream& random) {
  auto loader = Open(std::move(options));
  auto iterator = loader->Iterate();
  Take(*iterator, 1 + random.Below(4));
  Pause(random);
  return Dropped(std::move(loader), std::move(iterator));
}

// Each of the following functions makes a loader and brings it to the point where it is to end; it
// returns the function that ends it.

End NeverIterated(const Ends& ends, RandomStream& random) {
  return [loader = Open(ends.Options(random))]() mutable { loader.reset(); };
}

End ManyOfOneRuntime(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.OfOneRuntime(random));
  auto iterator = loader->Iterate();
  if (random.Below(2) == 0) Take(*iterator, 1);
  return Dropped(std::move(loader), std::move(iterator));
}

End LeftEarly(const Ends& ends, RandomStream& random) {
  return InTheMiddle(ends.Options(random), random);
}

void ThrowWhileIterating(Loader& loader) {
  const auto iterator = loader.Iterate();
  const Batch held = iterator->Next().value();
  throw std::runtime_error("of the consumer");
}

End ExceptionOfConsumer(const Ends& ends, RandomStream& random) {
  return [loader = Open(ends.Options(random))]() mutable {
    try {
      ThrowWhileIterating(*loader);
    } catch (const std::runtime_error&) {
      loader.reset();
    }
  };
}

End BatchesOutliveLoader(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.Options(random));
  auto batches = std::make_shared<std::vector<Batch>>(Take(*loader->Iterate(), 5));
  return [loader = std::move(loader), batches = std::move(batches)]() mutable {
    loader.reset();
    for (const Batch& batch : *batches) batch.images().as<uint8_t>()[0] ^= 1;
    batches.reset();
  };
}

End IteratorOutlivesLoader(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.Options(random));
  std::shared_ptr<Iterator> iterator = loader->Iterate();
  return [loader = std::move(loader), iterator = std::move(iterator)]() mutable {
    loader.reset();
    Take(*iterator, 2);
    iterator.reset();
  };
}

End AllBatchesHeld(const Ends& ends, RandomStream& random) {
  LoaderOptions options = ends.Options(random);
  options.lent_batches = 2;
  auto loader = Open(std::move(options));
  std::shared_ptr<Iterator> iterator = loader->Iterate();
  auto held = std::make_shared<std::vector<Batch>>(Take(*iterator, 4));
  return [loader, iterator, held]() mutable {
    iterator.reset();
    loader.reset();
    held.reset();
  };
}

End ReadsHang(const Ends& ends, RandomStream& random) {
  return InTheMiddle(ends.SlowReads(random), random);
}

End MapWorks(const Ends& ends, RandomStream& random) {
  LoaderOptions options = ends.Options(random);
  options.map = std::make_shared<SlowMap>();
  return InTheMiddle(std::move(options), random);
}

End SamplesSubstituted(const Ends& ends, RandomStream& random) {
  return InTheMiddle(ends.BadHalf(random, "substitute"), random);
}

End SamplesFail(const Ends& ends, RandomStream& random) {
  return InTheMiddle(ends.BadHalf(random, "fail"), random);
}

End CopiedToDevice(const Ends& ends, RandomStream& random) {
  LoaderOptions options = ends.Options(random);
  options.to_device = DeviceOptions{.devices = {Device::Open({}).value()}, .buffers = 2};
  auto loader = Open(std::move(options));
  auto iterator = loader->Iterate();
  for (uint64_t i = random.Below(4); i > 0; --i) (void)iterator->NextOnDevice().value();
  Pause(random);
  return Dropped(std::move(loader), std::move(iterator));
}

End AfterSeek(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.Options(random));
  auto iterator = loader->Iterate();
  for (uint64_t i = 0; i < 4; ++i) {
    iterator->Seek({i, random.Below(10)}).value();
    Take(*iterator, random.Below(2));
  }
  return Dropped(std::move(loader), std::move(iterator));
}

End StopOnAnotherThread(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.SlowReads(random));
  std::shared_ptr<Iterator> iterator = loader->Iterate();
  const auto after = microseconds(random.Below(3000));
  return [loader = std::move(loader), iterator = std::move(iterator), after]() mutable {
    std::thread stopper([loader, after] {
      std::this_thread::sleep_for(after);
      loader->Stop();
    });
    while (iterator->Next().ok()) continue;
    stopper.join();
    iterator.reset();
    loader.reset();
  };
}

End Interrupted(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.SlowReads(random, kInterruptInterval + milliseconds(30)));
  std::shared_ptr<Iterator> iterator = loader->Iterate();
  return [loader = std::move(loader), iterator = std::move(iterator)]() mutable {
    const Result<Batch> batch = iterator->Next([] { return true; });
    if (batch.ok() || batch.error().code != Code::kCancelled)
      throw std::runtime_error("the interrupt did not end the wait");
    iterator.reset();
    loader.reset();
  };
}

// Iterates until a signal ends the process.
[[noreturn]] void IterateForEver(LoaderOptions options) {
  const auto loader = Open(std::move(options));
  while (true) {
    const auto iterator = loader->Iterate();
    if (Take(*iterator, 10).empty()) _exit(1);
  }
}

End Terminated(const Ends& ends, RandomStream& random) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    IterateForEver(ends.SlowReads(random));
  }
  std::this_thread::sleep_for(microseconds(random.Below(30'000)));
  return [child] {
    int status = 0;
    kill(child, SIGTERM);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
      throw std::runtime_error("SIGTERM did not end the child");
  };
}

// The child gets an error, and neither hangs nor ends anything of its parent.
void Fork(Iterator& iterator) {
  const int code = ExitCodeOfChild([&] {
    const Result<Batch> batch = iterator.Next();
    return !batch.ok() && batch.error().code == Code::kFailedPrecondition ? 0 : 1;
  });
  if (code != 0) throw std::runtime_error("the child did not get its error");
  if (!iterator.Next().ok()) throw std::runtime_error("the parent cannot go on");
}

End Forked(const Ends& ends, RandomStream& random) {
  auto loader = Open(ends.Options(random));
  std::shared_ptr<Iterator> iterator = loader->Iterate();
  Take(*iterator, 1 + random.Below(3));
  return [loader = std::move(loader), iterator = std::move(iterator)]() mutable {
    Fork(*iterator);
    iterator.reset();
    loader.reset();
  };
}

struct Kind {
  const char* name;
  End (*begin)(const Ends&, RandomStream&);
};

constexpr Kind kKinds[] = {{"never iterated", NeverIterated},
                           {"many of one Runtime", ManyOfOneRuntime},
                           {"left early", LeftEarly},
                           {"exception of the consumer", ExceptionOfConsumer},
                           {"batches outlive the loader", BatchesOutliveLoader},
                           {"the iterator outlives the loader", IteratorOutlivesLoader},
                           {"all batches held", AllBatchesHeld},
                           {"reads hang", ReadsHang},
                           {"the program's function works", MapWorks},
                           {"samples are substituted", SamplesSubstituted},
                           {"samples fail", SamplesFail},
                           {"copied to a device", CopiedToDevice},
                           {"Seek, then left", AfterSeek},
                           {"Stop on another thread", StopOnAnotherThread},
                           {"an interrupt, then left", Interrupted},
                           {"SIGTERM", Terminated},
                           {"fork", Forked}};

// ThreadSanitizer hangs in the child of a process with threads.
#if defined(__SANITIZE_THREAD__)
constexpr bool kCanFork = false;
#else
constexpr bool kCanFork = true;
#endif

// Returns whether nothing is left.
bool Run(const Kind& kind, uint64_t times) {
  const Ends ends;
  RandomStream random({7, 0, 0}, 0);
  for (int i = 0; i < 3; ++i) kind.begin(ends, random)();  // libraries keep what they use first
  const Held before;
  Clock::duration longest{};
  for (uint64_t i = 0; i < times; ++i) {
    const End end = kind.begin(ends, random);
    const Clock::time_point begun = Clock::now();
    end();
    longest = std::max(longest, Clock::now() - begun);
  }
  (void)LiveThreadsDownTo(before.threads);
  const Held after;
  std::printf("%-34s %6llu  %8.1f ms  %3d → %-3d  %3d → %-3d  %8llu → %llu KiB\n", kind.name,
              static_cast<unsigned long long>(times),
              std::chrono::duration<double, std::milli>(longest).count(), before.descriptors,
              after.descriptors, before.threads, after.threads,
              static_cast<unsigned long long>(before.resident_kib),
              static_cast<unsigned long long>(after.resident_kib));
  std::fflush(stdout);
  return after.descriptors == before.descriptors && after.threads <= before.threads;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) {
  uint64_t times = 1000;
  std::vector<std::string> only;
  CLI::App app("The ends of loaders, and what they leave.");
  app.add_option("--times", times, "how often each");
  app.add_option("--only", only, "these kinds alone");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-34s %6s  %11s  %9s  %9s  %s\n", "end", "times", "slowest", "files", "threads",
              "resident");
  bool clean = true;
  for (const auto& kind : stoker::testing::kKinds) {
    if (!only.empty() && std::ranges::count(only, kind.name) == 0) continue;
    const bool forks =
        kind.begin == stoker::testing::Forked || kind.begin == stoker::testing::Terminated;
    if (forks && !stoker::testing::kCanFork) {
      std::printf("%-34s not under ThreadSanitizer\n", kind.name);
      continue;
    }
    clean = stoker::testing::Run(kind, times) && clean;
  }
  if (!clean) std::printf("something is left\n");
  return clean ? 0 : 1;
}
