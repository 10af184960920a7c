#include "core/system/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

namespace stoker {

namespace {

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // the file does not exist, or contains the word "max"
}

// Returns this process' group in a hierarchy (an empty `controller` means v2's single one), from
// lines like "0::/a/b" and "4:cpu,cpuacct:/a/b" of /proc/self/cgroup.
std::string GroupOf(const MachineRoot& root, const std::string& controller) {
  std::ifstream file(root.proc + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    if (controller.empty() && second == first + 1) return line.substr(second + 1);
    for (std::string name; std::getline(names, name, ',');) {
      if (!controller.empty() && name == controller) return line.substr(second + 1);
    }
  }
  return "/";
}

// Returns the folders whose limits apply: the group's own and every ancestor's. In a container the
// group's path may not be visible; the root of the mount is then the container's own group.
std::vector<std::string> Folders(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1 && group.front() == '/') {
    folders.push_back(mount + group);
    group.resize(group.find_last_of('/'));
  }
  folders.push_back(mount);
  return folders;
}

double QuotaCores(const MachineRoot& root) {
  double cores = 1e9;
  for (const std::string& folder : Folders(root.cgroup, GroupOf(root, ""))) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && period > 0) cores = std::min(cores, quota / period);
  }
  for (const std::string& folder : Folders(root.cgroup + "/cpu", GroupOf(root, "cpu"))) {
    const auto quota = ReadNumber(folder + "/cpu.cfs_quota_us");
    const auto period = ReadNumber(folder + "/cpu.cfs_period_us");
    if (!quota || !period || *period == 0) continue;
    if (static_cast<int64_t>(*quota) < 0) continue;  // -1: no limit
    cores = std::min(cores, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  return cores;
}

// Returns the page cache, which does not count as used because it is reclaimed when memory is
// needed; without files in memory (tmpfs), which the kernel counts in it.
uint64_t PageCache(const std::string& stat_file, const std::string& key,
                   const std::string& in_memory) {
  std::ifstream file(stat_file);
  std::string name;
  uint64_t bytes = 0, cache = 0, kept = 0;
  while (file >> name >> bytes) {
    if (name == key) cache = bytes;
    if (name == in_memory) kept = bytes;
  }
  return cache - std::min(cache, kept);
}

uint64_t Remaining(std::optional<uint64_t> limit, std::optional<uint64_t> used, uint64_t cache) {
  if (!limit) return ~uint64_t{0};
  const uint64_t needed = used.value_or(0) - std::min(used.value_or(0), cache);
  return *limit - std::min(*limit, needed);
}

}  // namespace

int AllottedCores(const MachineRoot& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const double quota = QuotaCores(root);
  if (quota < cores) cores = static_cast<int>(quota + 0.999);
  return std::max(cores, 1);
}

int RanksHere() {
  constexpr int kMax = 1 << 16;
  const char* const text = std::getenv("LOCAL_WORLD_SIZE");
  if (text == nullptr) return 1;
  int ranks = 0;
  const char* const end = text + std::strlen(text);
  const auto [behind, error] = std::from_chars(text, end, ranks);
  return error == std::errc() && behind == end ? std::clamp(ranks, 1, kMax) : 1;
}

int DefaultThreads(const MachineRoot& root) {
  return std::max(AllottedCores(root) / RanksHere(), 1);
}

uint64_t DefaultMemory(const MachineRoot& root) {
  constexpr uint64_t kMax = uint64_t{4} << 30;
  return std::min(AvailableMemory(root) / 4, kMax) / static_cast<uint64_t>(RanksHere());
}

Status CheckThreads(int threads) {
  constexpr int kMax = 256;
  if (threads >= 0 && threads <= kMax) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "threads is " + std::to_string(threads),
               .advice = "Give 0 (the cores allotted) to " + std::to_string(kMax)};
}

uint64_t AvailableMemory(const MachineRoot& root) {
  uint64_t bytes = ~uint64_t{0};
  std::ifstream meminfo(root.proc + "/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") bytes = kilobytes * 1024;
  }
  for (const std::string& folder : Folders(root.cgroup, GroupOf(root, ""))) {
    bytes = std::min(
        bytes, Remaining(ReadNumber(folder + "/memory.max"), ReadNumber(folder + "/memory.current"),
                         PageCache(folder + "/memory.stat", "file", "shmem")));
  }
  for (const std::string& folder : Folders(root.cgroup + "/memory", GroupOf(root, "memory"))) {
    bytes = std::min(bytes,
                     Remaining(ReadNumber(folder + "/memory.limit_in_bytes"),
                               ReadNumber(folder + "/memory.usage_in_bytes"),
                               PageCache(folder + "/memory.stat", "total_cache", "total_shmem")));
  }
  return bytes;
}

uint32_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur, UINT32_MAX));
}

std::optional<CgroupThreads> ThreadsOfCgroup(const MachineRoot& root) {
  std::vector<std::string> folders = Folders(root.cgroup, GroupOf(root, ""));
  std::ranges::move(Folders(root.cgroup + "/pids", GroupOf(root, "pids")),
                    std::back_inserter(folders));
  std::optional<CgroupThreads> nearest;
  for (const std::string& folder : folders) {
    const auto most = ReadNumber(folder + "/pids.max");
    if (!most) continue;
    const CgroupThreads group{*most, ReadNumber(folder + "/pids.current").value_or(0)};
    const auto left = [](const CgroupThreads& g) { return g.most - std::min(g.most, g.there); };
    if (!nearest || left(group) < left(*nearest)) nearest = group;
  }
  return nearest;
}

}  // namespace stoker
