#include "bindings/cli/inspect/packing_gain.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/cli/pack/file_packer.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "io/readers/plain_read.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"

namespace stoker {
namespace {

constexpr uint64_t kMostMeasuredBytes = uint64_t{64} << 20;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct MeasuredFile {
  uint64_t id = 0;
  std::array<std::vector<uint8_t>, 2> forms;  // as it is and packed, each with kBufferPadding
  bool failed = false;

  std::span<const uint8_t> bytes(size_t form) const {
    return std::span(forms[form]).first(forms[form].size() - kBufferPadding);
  }
};

class GainMeter {
 public:
  explicit GainMeter(const Plan& plan)
      : plan_(plan), workspace_(plan.MakeWorkspace(decode_memory_)) {
    request_.buffer = GrowingBuffer(read_memory_);
    for (auto& row : rows_) row.resize(plan.row_bytes());
  }

  void Add(uint64_t id, const std::string& path) {
    std::error_code error;  // is found again when the file is read
    const uint64_t bytes = std::filesystem::file_size(path, error);
    if (!error && bytes > kMostMeasuredBytes) {
      ++gain_.too_large;
      return;
    }
    Result<MeasuredFile> file = Read(id, path);
    if (!file.ok()) {
      ++gain_.failed;
      return;
    }
    const size_t forms = file->forms[1].empty() ? 1 : 2;
    Group& group = groups_[forms - 1];
    group.bytes += file->forms[0].size();
    group.files.push_back(*std::move(file));
    if (group.files.size() == kMostFiles || group.bytes >= kMostMeasuredBytes)
      Measure(group, forms);
  }

  PackingGain Take() {
    for (const size_t forms : {1, 2}) Measure(groups_[forms - 1], forms);
    return gain_;
  }

 private:
  static constexpr size_t kMostFiles = 8;

  // Files that are decoded in one run.
  struct Group {
    std::vector<MeasuredFile> files;
    uint64_t bytes = 0;
  };

  Result<MeasuredFile> Read(uint64_t id, const std::string& path) {
    ASSIGN_OR_RETURN(PackedFile packed, packer_.Pack(path));
    MeasuredFile file{.id = id, .forms = {}};
    file.forms[0] = std::move(packed.image);
    if (packed.reason.empty()) {
      request_.path = path;
      ReadPlainly(request_);
      TRY(request_.status);
      file.forms[1] = std::exchange(
          file.forms[0], {request_.buffer.data(), request_.buffer.data() + request_.size});
      file.forms[1].resize(file.forms[1].size() + kBufferPadding);
    }
    file.forms[0].resize(file.forms[0].size() + kBufferPadding);
    return file;
  }

  // `forms`: 1 if the files are stored unchanged.
  void Measure(Group& group, size_t forms) {
    std::vector<MeasuredFile> files = std::exchange(group, {}).files;
    for (size_t form = 0; form < forms; ++form) Decode(files, form);  // warms up
    gain_.failed += std::erase_if(files, [](const MeasuredFile& file) { return file.failed; });
    if (files.empty()) return;
    constexpr size_t kRounds = 3;
    std::array<double, 2> least;
    least.fill(std::numeric_limits<double>::infinity());
    for (size_t round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < forms; ++i) {
        const size_t form = (round + i) % forms;
        least[form] = std::min(least[form], Decode(files, form));
      }
    }
    gain_.measured += files.size();
    gain_.packed += forms == 2 ? files.size() : 0;
    for (const MeasuredFile& file : files) {
      gain_.file_bytes += file.bytes(0).size();
      gain_.packed_bytes += file.bytes(forms - 1).size();
    }
    gain_.file_seconds += least[0];
    gain_.packed_seconds += least[forms - 1];
  }

  // Returns the CPU time.
  double Decode(std::vector<MeasuredFile>& files, size_t form) {
    const double begin = CpuSeconds();
    PlanRun run(plan_, *workspace_, times_);
    size_t next = 0;
    const auto fill = [&] {
      for (; run.has_room() && next < files.size(); ++next) {
        run.Begin({.tag = static_cast<uint32_t>(next),
                   .bytes = files[next].bytes(form),
                   .key = {.position = files[next].id},
                   .to = {.row = rows_[next].data()}});
      }
    };
    for (fill(); run.busy(); fill()) {
      const std::optional<FinishedRows> rows = run.Advance();
      if (rows && !rows->status.ok()) files[rows->tag].failed = true;
    }
    return CpuSeconds() - begin;
  }

  const Plan& plan_;
  MemoryBudget read_memory_{2 * kMostMeasuredBytes}, decode_memory_{uint64_t{1} << 30};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_;
  StageTimes times_;
  FilePacker packer_;
  ReadRequest request_;
  std::array<Group, 2> groups_;  // stored unchanged; packed
  std::array<std::vector<uint8_t>, kMostFiles> rows_;
  PackingGain gain_;
};

}  // namespace

Result<std::optional<PackingGain>> MeasurePacking(
    const SampleSource& source, uint64_t files,
    const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  const uint64_t count = std::min(files, source.size());
  if (count == 0) return std::optional<PackingGain>();
  ASSIGN_OR_RETURN(const Plan plan, Plan::Compile({RandomResizedCrop{224, 224}},
                                                  {.limits = {.accept_16_bits = true}}));
  GainMeter meter(plan);
  std::string path;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = (2 * i + 1) * source.size() / (2 * count);
    source.PathOf(source.RangeOf(id).file, path);
    meter.Add(id, path);
    if (progress && !progress(i + 1, count)) {
      return Error{Code::kCancelled, "stopped before packing was measured", source.Describe()};
    }
  }
  return std::optional(meter.Take());
}

}  // namespace stoker
