#include "engine/runtime/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "core/time/trace.h"
#include "engine/memory/memory_manager.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/runtime_with_readers.h"
#include "engine/tuning/tuner.h"
#include "io/readers/reader.h"
#include "io/remote/object_reader.h"
#include "io/source/source.h"

namespace stoker {

namespace {

constexpr uint32_t kUsualMaxReads = 64;  // per reader thread, if none is given
constexpr double kMaxSeconds = 1e6;

// The settings that the user has given, which are not tuned.
TunerSettings FixedBy(const RuntimeOptions& given, int threads) {
  return {.depth = 0, .workers = std::min(given.threads, threads), .reads = given.all_reads()};
}

Status CheckRange(const char* option, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return Error{Code::kInvalidArgument, std::string(option) + " is " + std::to_string(value) +
                                           "; it must be between " + std::to_string(low) + " and " +
                                           std::to_string(high)};
}

Status CheckSeconds(const char* option, double value) {
  if (value >= 0 && value <= kMaxSeconds) return {};
  return Error{Code::kInvalidArgument, std::string(option) + " is " + std::to_string(value) +
                                           "; it must be between 0 and 1000000"};
}

Status Check(const RuntimeOptions& options) {
  TRY(CheckRange("threads", options.threads, 0, 1024));
  TRY(CheckRange("reader_threads", options.reader_threads, 1, 64));
  TRY(CheckRange("reads_in_flight", options.reads_in_flight, 0, 1024));
  TRY(CheckSeconds("read_timeout", options.read_timeout));
  return CheckSeconds("stall_seconds", options.stall_seconds);
}

struct Workers {
  std::unique_ptr<Executor> executor;
  std::string reason;  // why it differs from what was asked for; empty means it does not
};

std::string FewerWorkers(int workers, int wanted) {
  const std::string limits = ThreadLimits();
  return "the system has threads for " + std::to_string(workers) + " of " + std::to_string(wanted) +
         " workers" + (limits.empty() ? "" : ": " + limits);
}

// Leaves some of the system's threads for those that are started later.
Result<Workers> MakeWorkers(const RuntimeOptions& options) {
  constexpr int kSpare = 2;  // for a copier and the caller
  const auto made = [&options](Result<std::unique_ptr<Executor>> executor,
                               std::string reason) -> Result<Workers> {
    if (!executor.ok()) return std::move(executor).error();
    const int workers = (*executor)->concurrency();
    if (workers < options.threads) reason = FewerWorkers(workers, options.threads);
    return Workers{*std::move(executor), std::move(reason)};
  };
  if (options.make_executor) return made(options.make_executor(options.threads), "");
  const int others = options.reader_threads + kSpare;
  const int there = ThreadsToBeHad(options.threads + others) - others;
  if (there < options.threads) return made(MakeThreadsExecutor(std::max(there, 1)), "");
  if (options.executor == ExecutorKind::kThreads) {
    return made(MakeThreadsExecutor(options.threads), "");
  }
  if (const char* const why = WhyNotTbb()) {
    return made(MakeThreadsExecutor(options.threads), why);
  }
  return Workers{MakeTbbExecutor(options.threads), ""};
}

}  // namespace

struct Runtime::Parts {
  Parts(RuntimeOptions filled_in, TunerSettings given, ReaderChoice chosen,
        ReadService::ReaderFactory make_reader, Workers made)
      : options(std::move(filled_in)),
        fixed(given),
        reader(std::move(chosen)),
        executor_reason(std::move(made.reason)),
        memory(options.memory_budget, options.threads, [this] { WakeReaders(); }),
        executor(std::move(made.executor)),
        reads(options.reader_threads, std::move(make_reader), trace) {}

  // The threads of one source with calls or objects. The entry is in the list as long as the
  // threads exist.
  struct OfSource {
    const SampleSource* source;
    ReadService* service;
    std::weak_ptr<ReadService> shared;
  };

  void WakeReaders();
  void EndReads(ReadService* service);

  const RuntimeOptions options;
  const TunerSettings fixed;
  const ReaderChoice reader;
  const std::string executor_reason;
  const pid_t process = getpid();
  MemoryManager memory;
  Trace trace;
  std::unique_ptr<Executor> executor;  // declared before the reader threads, which submit to it
  ReadService reads;
  std::mutex of_sources_mutex;
  std::vector<OfSource> of_sources;  // under of_sources_mutex
};

// Does not share ownership of a service: the last owner joins the threads, and this thread may be
// one of them.
void Runtime::Parts::WakeReaders() {
  reads.Wake();
  const std::lock_guard lock(of_sources_mutex);
  for (const OfSource& one : of_sources) one.service->Wake();
}

// Joins the threads without the lock, which WakeReaders takes on them.
void Runtime::Parts::EndReads(ReadService* service) {
  const std::unique_ptr<ReadService> ended(service);
  const std::lock_guard lock(of_sources_mutex);
  std::erase_if(of_sources, [service](const OfSource& one) { return one.service == service; });
}

Result<std::shared_ptr<Runtime>> Runtime::Create(const RuntimeOptions& options) {
  return RuntimeWithReaders(options, nullptr);
}

Result<std::shared_ptr<Runtime>> RuntimeWithReaders(const RuntimeOptions& given,
                                                    ReadService::ReaderFactory make_reader,
                                                    bool tune_workers) {
  TRY(Check(given));
  RuntimeOptions options = given;
  if (options.threads == 0) options.threads = DefaultThreads();
  if (options.reads_in_flight == 0) options.reads_in_flight = kUsualMaxReads;
  if (options.memory_budget == 0) options.memory_budget = DefaultMemory();
  ReaderChoice choice{ReaderKind::kPread, "given by the caller"};
  if (!make_reader) {
    const bool limited = options.read_timeout > 0;
    ASSIGN_OR_RETURN(choice, ChooseReader(options.reader, options.reads_in_flight, limited));
    make_reader = [kind = choice.kind, reads = options.reads_in_flight,
                   readers = options.reader_threads,
                   limit = std::chrono::nanoseconds(
                       static_cast<int64_t>(std::ceil(options.read_timeout * 1e9)))] {
      return MakeReader(kind, reads, readers, limit);
    };
  }
  ASSIGN_OR_RETURN(Workers workers, MakeWorkers(options));
  options.threads = workers.executor->concurrency();
  TunerSettings fixed = FixedBy(given, options.threads);
  if (tune_workers) fixed.workers = 0;
  return std::make_shared<Runtime>(std::make_unique<Runtime::Parts>(
      std::move(options), fixed, std::move(choice), std::move(make_reader), std::move(workers)));
}

namespace {

// One per process: when the parent forked, another of its threads may have held the lock.
struct DefaultRuntime {
  const pid_t process = getpid();
  std::mutex mutex;
  std::weak_ptr<Runtime> runtime;
};

DefaultRuntime& DefaultHere() {
  static std::atomic<DefaultRuntime*> shared{nullptr};  // never destroyed: it may be used while the
                                                        // process exits
  DefaultRuntime* here = shared.load();
  if (here != nullptr && here->process == getpid()) return *here;
  auto made = std::make_unique<DefaultRuntime>();
  if (shared.compare_exchange_strong(here, made.get())) return *made.release();
  return *here;  // another thread was faster
}

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::Default() {
  DefaultRuntime& here = DefaultHere();
  std::lock_guard lock(here.mutex);
  if (std::shared_ptr<Runtime> runtime = here.runtime.lock()) return runtime;
  Result<std::shared_ptr<Runtime>> made = Create();
  if (made.ok()) here.runtime = *made;
  return made;
}

Runtime::Runtime(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Runtime::~Runtime() {
  // The threads do not exist in a forked child: nothing may be joined or freed there.
  if (parts_->process != getpid()) (void)parts_.release();
}

Status Runtime::CheckProcess() const {
  if (parts_->process == getpid()) return {};
  return Error{.code = Code::kFailedPrecondition,
               .cause = "this loader, or its Runtime, was created in process " +
                        std::to_string(parts_->process) +
                        " and does not work in its forked child " + std::to_string(getpid()),
               .advice = "Create a loader in the child, without a Runtime of the parent"};
}

void Runtime::Log(const std::string& line) const {
  if (parts_->options.log) return parts_->options.log(line);
  (void)std::fputs(("stoker: " + line + "\n").c_str(), stderr);
}

MemoryManager& Runtime::memory() { return parts_->memory; }
const MemoryBudget& Runtime::budget() { return parts_->memory.budget(); }
Executor& Runtime::executor() { return *parts_->executor; }
const std::string& Runtime::executor_reason() const { return parts_->executor_reason; }
ReadService& Runtime::reads() { return parts_->reads; }

std::shared_ptr<ReadService> Runtime::ReadsOf(const SampleSource& source) {
  const bool has_calls = source.calls() != 0;
  if (!has_calls && source.objects() == nullptr) return nullptr;
  const std::lock_guard lock(parts_->of_sources_mutex);
  for (const Parts::OfSource& one : parts_->of_sources) {
    if (one.source != &source) continue;
    if (std::shared_ptr<ReadService> there = one.shared.lock()) return there;
  }
  const RuntimeOptions& options = parts_->options;
  const auto make = [&source, has_calls,
                     reads = options.reads_in_flight]() -> Result<std::unique_ptr<Reader>> {
    if (has_calls) return MakeCallReader(source);
    return MakeObjectReader(reads, *source.objects(), /*neighbours=*/source.pieces());
  };
  const int threads = has_calls ? source.calls() : options.reader_threads;
  auto made = std::make_unique<ReadService>(threads, make, parts_->trace);
  ReadService* const service = made.get();
  parts_->of_sources.push_back({&source, service, {}});
  std::shared_ptr<ReadService> shared(
      made.release(), [parts = parts_.get()](ReadService* ended) { parts->EndReads(ended); });
  parts_->of_sources.back().shared = shared;
  return shared;
}

Trace& Runtime::trace() { return parts_->trace; }
const TunerSettings& Runtime::fixed() const { return parts_->fixed; }
const ReaderChoice& Runtime::reader() const { return parts_->reader; }
const RuntimeOptions& Runtime::options() const { return parts_->options; }

}  // namespace stoker
