// Shows for each fault of storage and of samples, under each policy for bad samples, the result of
// an epoch.
//
//     fault_table [--seeds N] [--only FAULT …]
//
// Prints a line for each fault, reader, number of images of a sample, and policy: how often the
// fault occurred, and the samples of all epochs, which were delivered, substituted, dropped, or
// belong to batches that an error replaced. Ends with 1 if a batch is not what the model says (ids,
// pixels, labels), a sample is lost or counted twice, or a file, ring, thread or byte of the budget
// is left.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/runtime/runtime_with_readers.h"
#include "io/ranges/path_source.h"
#include "io/readers/reader.h"
#include "io/remote/object_version.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/process/refused_memory.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/fake_ring.h"
#include "tests/testing/storage/faulty_disk.h"
#include "tests/testing/storage/object_server.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/torture/soak_model.h"

namespace stoker::testing {
namespace {

constexpr int kPhotos = 61;
constexpr uint32_t kBatch = 8;
constexpr uint64_t kBad[] = {5, 20, 21, 44};

enum class ReadBy : uint8_t { kPread, kRing, kObjects };
constexpr const char* kReaders[] = {"pread", "io_uring", "http"};
constexpr const char* kPolicies[] = {"fail", "substitute", "drop"};

// The photographs of a folder as objects of a server.
class PhotoObjects final : public SampleSource {
 public:
  PhotoObjects(std::shared_ptr<const SampleSource> from, std::string url)
      : from_(std::move(from)), url_(std::move(url)) {
    for (uint32_t id = 0; id < from_->size(); ++id) {
      std::string path, file;
      PathOf(id, path);
      from_->PathOf(from_->RangeOf(id).file, file);
      bytes_.push_back(std::filesystem::file_size(file));
      versions_.Add(path, {.bytes = bytes_.back(), .etag = "\"1\"", .modified_s = 0});
    }
  }

  uint64_t size() const override { return from_->size(); }
  std::span<const Field> fields() const override { return from_->fields(); }
  ByteRange RangeOf(uint64_t id) const override {
    return {.file = static_cast<uint32_t>(id), .offset = 0, .length = bytes_[id]};
  }
  void PathOf(uint32_t file, std::string& path) const override {
    path = url_ + "/" + std::to_string(file);
  }
  const ObjectVersions* objects() const override { return &versions_; }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    from_->FixedRows(field, ids, rows);
  }
  const std::vector<std::string>& classes() const override { return from_->classes(); }
  uint64_t memory_bytes() const override { return bytes_.size() * sizeof(uint64_t); }
  std::string Describe() const override { return "objects of " + from_->Describe(); }

 private:
  const std::shared_ptr<const SampleSource> from_;
  const std::string url_;
  std::vector<uint64_t> bytes_;  // by sample
  ObjectVersions versions_;
};

// Samples of two images, one of `photos` and the same one of `intact`. Samples with odd ids have
// the latter first, so that faults occur in either.
std::shared_ptr<const SampleSource> Pairs(const SampleSource& photos, const SampleSource& intact) {
  PathTable first, second;
  const auto labels = std::make_shared<std::vector<int64_t>>();
  for (uint64_t id = 0; id < kPhotos; ++id) {
    std::string path, other;
    photos.PathOf(photos.RangeOf(id).file, path);
    intact.PathOf(intact.RangeOf(id).file, other);
    if (id % 2 != 0) path.swap(other);
    first.Add(path);
    second.Add(other);
    labels->push_back(photos.LabelOf(id));
  }
  FilesOptions options{.columns = {{.name = "label",
                                    .dtype = DType::kI64,
                                    .row_shape = {},
                                    .data = labels->data(),
                                    .samples = labels->size()}},
                       .owner = labels};
  options.further.push_back(
      {.name = "second", .kind = Field::Kind::kImage, .paths = std::move(second)});
  return Files(std::move(first), std::move(options)).value();
}

// The preparation of a fault before an epoch.
struct Setting {
  const PhotoFolder& photos;
  DiskFaults disk{};
  RingFaults ring{};
  DecodeLimits limits{};
  std::function<void()> once_listed = [] {};  // called before the first read
  // Returns the server's answer to a request for this sample, instead of the right one.
  std::function<std::string(uint64_t id, const ObjectServer::Get&, std::string right)> answer =
      [](uint64_t, const ObjectServer::Get&, std::string right) { return right; };
  std::function<bool()> interrupt{};  // called while the consumer waits
  uint64_t refused_memory = 0;        // RefusedMemory's `each`
  std::shared_ptr<std::atomic<uint64_t>> hung{new std::atomic<uint64_t>(0)};  // reads that hung
  bool blames_no_sample = false;  // batches may fail for reasons that are not their samples'
  Faults bad{};                   // the samples that cannot be used, and why
};

void AllBad(Setting& setting, SampleFault fault) {
  for (const uint64_t id : kBad) setting.bad[id] = fault;
}

// Faults that pass: every policy gives the whole epoch.

void Nothing(Setting& /*setting*/) {}

void ShortReads(Setting& setting) {
  setting.disk.interrupted = setting.disk.would_block = 0.2;
  setting.disk.shorter = 0.4;
}

void LateCompletions(Setting& setting) { setting.ring.late = 0.7; }

void RefusedEntries(Setting& setting) {
  setting.ring.refused = 0.2;
  setting.ring.partly = 0.3;
}

void DeadRing(Setting& setting) {
  setting.ring.late = 0.7;
  setting.ring.lives = 5;
}

void DeadRingWithReads(Setting& setting) {
  setting.ring.late = 0.9;
  setting.ring.lives = 3;
  setting.ring.loses = true;
}

// The consumer's interrupts are the clock: they come as long as no batch does.
void HangingDisk(Setting& setting) {
  struct Hang {
    std::mutex mutex;
    std::condition_variable released;
    std::atomic<bool> hangs = true;
    int interrupts = 0;
  };
  const auto hang = std::make_shared<Hang>();
  const std::string path = setting.photos.FileOf(kBad[0]);
  setting.disk.before_read = [hang, path, hung = setting.hung](const std::string& read, uint64_t) {
    std::unique_lock lock(hang->mutex);
    if (read != path || !hang->hangs) return;
    ++*hung;
    hang->released.wait(lock, [&] { return !hang->hangs; });
  };
  setting.ring.hangs = [hang, path, hung = setting.hung](const std::string& read) {
    const bool hangs = hang->hangs && read == path;
    if (hangs) *hung = 1;
    return hangs;
  };
  setting.interrupt = [hang] {
    if (++hang->interrupts < 5) return false;
    const std::lock_guard lock(hang->mutex);
    hang->hangs = false;
    hang->released.notify_all();
    return false;
  };
}

void RefusedMappings(Setting& setting) { setting.refused_memory = 3; }

constexpr char kEmpty[] = "\r\nContent-Length: 0\r\n\r\n";

void FailingServer(Setting& setting) {
  setting.answer = [](uint64_t, const ObjectServer::Get& get, std::string right) {
    return get.number % 5 == 1 ? std::string("HTTP/1.1 500 No") + kEmpty : right;
  };
}

void CutConnections(Setting& setting) {
  setting.answer = [](uint64_t, const ObjectServer::Get& get, std::string right) {
    if (get.number % 5 != 1) return right;
    right.resize(right.size() - 1);
    return right.insert(right.find("ETag"), "Connection: close\r\n");
  };
}

// Faults of samples: the policy decides.

void Unreadable(Setting& setting) {
  setting.disk.bad_file = setting.photos.FileOf(kBad[1]);
  setting.disk.bad_from = 300;
  setting.bad[kBad[1]] = SampleFault::kUnreadable;
}

void Forbidden(Setting& setting) {
  Unreadable(setting);
  setting.disk.bad_from = 0;
  setting.disk.error = EACCES;
}

void Vanished(Setting& setting) {
  AllBad(setting, SampleFault::kVanished);
  std::vector<std::string> files;
  for (const uint64_t id : kBad) files.push_back(setting.photos.FileOf(id));
  setting.once_listed = [files] {
    for (const std::string& file : files) std::filesystem::remove(file);
  };
}

void Shrinking(Setting& setting) {
  AllBad(setting, SampleFault::kTruncated);
  struct Files {
    std::mutex mutex;
    std::set<std::string> whole;
  };
  const auto files = std::make_shared<Files>();
  for (const uint64_t id : kBad) files->whole.insert(setting.photos.FileOf(id));
  setting.disk.before_read = [files](const std::string& read, uint64_t) {
    const std::lock_guard lock(files->mutex);
    if (files->whole.erase(read) != 0) {
      std::filesystem::resize_file(read, std::filesystem::file_size(read) / 2);
    }
  };
}

void Damaged(Setting& setting) {
  AllBad(setting, SampleFault::kUndecodable);
  for (const uint64_t id : kBad) setting.photos.Overwrite(id, std::string(100, 'x'));
}

void Truncated(Setting& setting) {
  AllBad(setting, SampleFault::kTruncated);
  for (const uint64_t id : kBad) {
    std::filesystem::resize_file(setting.photos.FileOf(id), 100);
  }
}

void TooLarge(Setting& setting) {
  AllBad(setting, SampleFault::kOverLimits);
  const std::vector<uint8_t> large = MakeJpeg({.width = 200, .height = 200});
  for (const uint64_t id : kBad) setting.photos.Overwrite(id, {large.begin(), large.end()});
  setting.limits.max_pixels = 200 * 200 - 1;
}

void Unsupported(Setting& setting) {
  AllBad(setting, SampleFault::kUnsupported);
  std::string avif(
      "\0\0\0\x1c"
      "ftypavif\0\0\0\0avifmif1miaf",
      28);
  avif.resize(200);
  for (const uint64_t id : kBad) setting.photos.Overwrite(id, avif);
}

bool IsBad(uint64_t id) { return std::ranges::count(kBad, id) != 0; }

void MissingObjects(Setting& setting) {
  AllBad(setting, SampleFault::kVanished);
  setting.answer = [](uint64_t id, const ObjectServer::Get&, std::string right) {
    return IsBad(id) ? std::string("HTTP/1.1 404 No") + kEmpty : right;
  };
}

void ChangedObjects(Setting& setting) {
  AllBad(setting, SampleFault::kUndecodable);
  setting.answer = [](uint64_t id, const ObjectServer::Get&, std::string right) {
    if (IsBad(id)) right.replace(right.find("\"1\""), 3, "\"2\"");
    return right;
  };
}

// Faults that concern no sample: batches fail, whatever the policy says.

void NoDescriptors(Setting& setting) {
  setting.disk.no_descriptor = 0.05;
  setting.blames_no_sample = true;
}

void RefusingServer(Setting& setting) {
  setting.answer = [](uint64_t, const ObjectServer::Get& get, std::string right) {
    return get.number % 20 == 3 ? std::string("HTTP/1.1 401 No") + kEmpty : right;
  };
  setting.blames_no_sample = true;
}

struct Fault {
  const char* name;
  std::vector<ReadBy> readers;
  void (*arrange)(Setting&);
};

std::vector<Fault> AllFaults() {
  using enum ReadBy;
  return {{"none", {kPread, kRing, kObjects}, Nothing},
          {"EINTR, EAGAIN, short reads", {kPread, kRing}, ShortReads},
          {"late, out of order", {kRing}, LateCompletions},
          {"entries refused, in part", {kRing}, RefusedEntries},
          {"the ring dies", {kRing}, DeadRing},
          {"the ring dies and loses reads", {kRing}, DeadRingWithReads},
          {"a read hangs for a while", {kPread, kRing}, HangingDisk},
          {"memory refused", {kPread, kRing}, RefusedMappings},
          {"500 now and then", {kObjects}, FailingServer},
          {"connections cut", {kObjects}, CutConnections},
          {"EIO within a file", {kPread, kRing}, Unreadable},
          {"EACCES", {kPread, kRing}, Forbidden},
          {"files vanish", {kPread, kRing}, Vanished},
          {"files shrink while read", {kPread, kRing}, Shrinking},
          {"damaged", {kPread, kRing, kObjects}, Damaged},
          {"truncated", {kPread, kRing, kObjects}, Truncated},
          {"more pixels than allowed", {kPread, kRing, kObjects}, TooLarge},
          {"an unsupported format", {kPread, kRing, kObjects}, Unsupported},
          {"404", {kObjects}, MissingObjects},
          {"objects replaced", {kObjects}, ChangedObjects},
          {"EMFILE, ENFILE", {kPread, kRing}, NoDescriptors},
          {"401 now and then", {kObjects}, RefusingServer}};
}

struct Counts {
  uint64_t faults = 0;     // that occurred
  uint64_t delivered = 0;  // samples in their own places
  uint64_t substituted = 0, dropped = 0;
  uint64_t failed = 0;  // samples of batches that an error replaced

  uint64_t samples() const { return delivered + substituted + dropped + failed; }
  void Add(const Counts& other) {
    faults += other.faults;
    delivered += other.delivered;
    substituted += other.substituted;
    dropped += other.dropped;
    failed += other.failed;
  }
};

// One epoch of a loader with a fault and a policy.
class Trial {
 public:
  Trial(const Fault& fault, ReadBy reader, int images, const char* policy, uint64_t seed)
      : reader_(reader) {
    setting_.disk.seed = setting_.ring.seed = seed;
    fault.arrange(setting_);
    disk_ = std::make_unique<FaultyDisk>(setting_.disk);
    rings_ = std::make_unique<FakeRings>(setting_.ring, [this] { return disk_->Calls(); });
    options_.source = photos_.Source();
    if (images == 2)
      options_.source = Pairs(*options_.source, *intact_.emplace(kPhotos, 3).Source());
    if (reader == ReadBy::kObjects) Serve();
    KeepContent();
    options_.transforms = {RandomResizedCrop{.height = 64, .width = 64}, RandomHorizontalFlip{}};
    options_.limits = setting_.limits;
    options_.batch_size = kBatch;
    options_.shuffle = true;
    options_.seed = seed;
    options_.on_bad = BadPolicy::Parse(policy).value();
    options_.max_bad_fraction = 1;
  }

  // Adds the results; returns "" or what was wrong.
  std::string Run(Counts& total) {
    const int threads = LiveThreads();
    setting_.once_listed();
    TakeEpoch();
    if (LiveThreadsDownTo(threads) > threads) Wrong("a thread is left");
    if (disk_->open_files() != 0) Wrong("a file is left open");
    if (rings_->open_rings() != 0) Wrong("a ring is left");
    if (counts_.samples() != kPhotos) {
      Wrong(std::to_string(counts_.samples()) + " samples are accounted for");
    }
    CountFaults();
    total.Add(counts_);
    return wrong_;
  }

 private:
  void Serve() {
    server_ = std::make_unique<ObjectServer>([this](const ObjectServer::Get& get) {
      const uint64_t id = std::stoull(get.path.substr(1));
      const std::string right = ObjectServer::Part(BytesOfFile(photos_.FileOf(id)), get);
      const std::string answer = setting_.answer(id, get, right);
      faulty_answers_ += answer == right ? 0 : 1;
      return answer;
    });
    options_.source = std::make_shared<PhotoObjects>(options_.source, server_->url());
  }

  // The model's decoder.
  void KeepContent() {
    const SampleSource& source = *options_.source;
    for (uint64_t id = 0; id < kPhotos; ++id) {
      std::string path;
      source.PathOf(source.RangeOf(id).file, path);
      const bool is_file = reader_ != ReadBy::kObjects;
      const std::string bytes = BytesOfFile(is_file ? path : photos_.FileOf(id));
      content_.files[path].assign(bytes.begin(), bytes.end());
      for (size_t piece = 1; piece < source.pieces(); ++piece) {
        source.PathOf(source.RangeOfPiece(id, piece).file, path);
        const std::string others = BytesOfFile(path);
        content_.files[path].assign(others.begin(), others.end());
      }
    }
  }

  std::shared_ptr<Runtime> MakeRuntime() const {
    const RuntimeOptions options{.threads = 2, .executor = ExecutorKind::kThreads};
    if (reader_ == ReadBy::kObjects) return Runtime::Create(options).value();
    return RuntimeWithReaders(options,
                              [this]() -> Result<std::unique_ptr<Reader>> {
                                constexpr uint32_t kReads = 16, kFiles = 2;
                                if (reader_ == ReadBy::kRing)
                                  return MakeUringReader(kReads, kFiles, disk_->Calls());
                                return MakePreadReader(kReads, kFiles, disk_->Calls());
                              })
        .value();
  }

  void TakeEpoch() {
    SoakModel model(options_, content_, setting_.bad);
    const std::shared_ptr<Runtime> runtime = MakeRuntime();
    {
      LoaderOptions options = options_;
      options.runtime = runtime;
      const auto loader = Loader::Open(std::move(options)).value();
      const auto iterator = loader->Iterate();
      const RefusedMemory memory(setting_.refused_memory, 64 << 10);
      while (iterator->position()->index < model.batches_per_epoch() && wrong_.empty()) {
        TakeBatch(*iterator, model);
      }
      counts_.faults += memory.refused();
      const BadCounts bad = loader->Stats().bad;
      if (bad.substituted != counts_.substituted || bad.dropped != counts_.dropped) {
        Wrong("the loader counts " + std::to_string(bad.substituted) + " substituted, " +
              std::to_string(bad.dropped) + " dropped");
      }
    }
    if (runtime->budget().used() != 0 && !setting_.ring.loses) Wrong("memory is left");
  }

  void TakeBatch(Iterator& iterator, SoakModel& model) {
    const BatchName at = *iterator.position();
    const Result<Batch> batch = iterator.Next(setting_.interrupt);
    // Without memory there is no batch yet; the next call asks again.
    if (!batch.ok() && *iterator.position() == at) return Blame(batch.error());
    const ExpectedBatch expected = model.At(at);
    if (batch.ok() && !expected.fails) {
      const std::string different = model.Differs(*batch, expected, kBatch);
      if (!different.empty()) Wrong("batch " + std::to_string(at.index) + ": " + different);
      counts_.delivered += expected.rows.size() - expected.substituted;
      counts_.substituted += expected.substituted;
      counts_.dropped += expected.dropped;
      return;
    }
    counts_.failed += std::min<uint64_t>(kBatch, kPhotos - at.index * kBatch);
    if (batch.ok()) return Wrong("batch " + std::to_string(at.index) + " has a bad sample");
    if (!expected.fails) return Blame(batch.error());
    if (!FaultOf(batch.error())) Wrong(batch.error().ToString());
  }

  // An error that concerns no sample.
  void Blame(const Error& error) {
    const bool may_be = setting_.blames_no_sample || setting_.refused_memory != 0;
    if (!may_be || FaultOf(error)) Wrong(error.ToString());
  }

  void CountFaults() {
    const FaultyDisk::Counts& disk = disk_->counts();
    counts_.faults += disk.interrupted + disk.would_block + disk.shorter + disk.no_descriptor;
    const RingCounts& ring = rings_->counts();
    counts_.faults += ring.late + ring.refused + ring.partly + ring.dead;
    counts_.faults += faulty_answers_ + *setting_.hung + setting_.bad.size();
  }

  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  const ReadBy reader_;
  const PhotoFolder photos_{kPhotos, 3};
  std::optional<PhotoFolder> intact_;
  Setting setting_{.photos = photos_};
  std::unique_ptr<FaultyDisk> disk_;
  std::unique_ptr<FakeRings> rings_;
  FakeDisk content_;
  LoaderOptions options_;
  Counts counts_;
  std::atomic<uint64_t> faulty_answers_{0};
  std::string wrong_;
  std::unique_ptr<ObjectServer> server_;  // ends first: it calls this object
};

// Prints a line for each policy; returns whether all results were right. `images`: of a sample.
bool RunFault(const Fault& fault, ReadBy reader, int images, uint64_t seeds) {
  bool right = true;
  for (const char* const policy : kPolicies) {
    Counts counts;
    std::string wrong;
    for (uint64_t seed = 1; seed <= seeds && wrong.empty(); ++seed) {
      wrong = Trial(fault, reader, images, policy, seed).Run(counts);
      if (!wrong.empty()) wrong = "seed " + std::to_string(seed) + ": " + wrong;
    }
    if (wrong.empty() && counts.faults == 0 && fault.arrange != Nothing)
      wrong = "no fault occurred";
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("%-30s %-8s %6d %-10s %7llu %9llu %11llu %7llu %6llu = %llu%s%s\n", fault.name,
                kReaders[static_cast<size_t>(reader)], images, policy, number(counts.faults),
                number(counts.delivered), number(counts.substituted), number(counts.dropped),
                number(counts.failed), number(counts.samples()),
                wrong.empty() ? "" : "  WRONG: ", wrong.c_str());
    std::fflush(stdout);
    right = right && wrong.empty();
  }
  return right;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) {
  uint64_t seeds = 5;
  std::vector<std::string> only;
  CLI::App app("Each fault under each policy: what an epoch gives.");
  app.add_option("--seeds", seeds, "how many epochs of each");
  app.add_option("--only", only, "these faults alone");
  CLI11_PARSE(app, argc, argv);
  std::printf("%-30s %-8s %6s %-10s %7s %9s %11s %7s %6s = samples\n", "fault", "reader", "images",
              "policy", "faults", "delivered", "substituted", "dropped", "failed");
  bool right = true;
  for (const auto& fault : stoker::testing::AllFaults()) {
    if (!only.empty() && std::ranges::count(only, fault.name) == 0) continue;
    for (const auto reader : fault.readers) {
      const int most = reader == stoker::testing::ReadBy::kObjects ? 1 : 2;
      for (int images = 1; images <= most; ++images) {
        right = stoker::testing::RunFault(fault, reader, images, seeds) && right;
      }
    }
  }
  return right ? 0 : 1;
}
