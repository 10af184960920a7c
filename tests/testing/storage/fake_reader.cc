#include "tests/testing/storage/fake_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace stoker::testing {

namespace {

constexpr size_t kOverwritten = 16 << 10;  // bytes of a buffer: all of a small file's

}  // namespace

FakeReader::FakeReader(std::shared_ptr<const FakeDisk> disk, uint32_t depth, uint64_t seed)
    : disk_(std::move(disk)), depth_(depth), state_(seed) {
  flights_.reserve(depth);
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t FakeReader::Random() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

bool FakeReader::Chance(double fraction) {
  return static_cast<double>(Random() >> 11) * 0x1.0p-53 < fraction;
}

int FakeReader::FaultOf(const std::string& path) {
  const auto fault = disk_->faults.find(path);
  if (fault != disk_->faults.end()) {
    int& failed = failed_[path];
    if (fault->second.times < 0 || failed < fault->second.times) {
      ++failed;
      return fault->second.error_number;
    }
  }
  return Chance(disk_->random_failures) ? EIO : 0;
}

size_t FakeReader::RoomFor(const std::string& path, size_t size) const {
  const auto room = disk_->room.find(path);
  return std::max({size, size_t{1}, room != disk_->room.end() ? room->second : 0});
}

void FakeReader::Read(ReadRequest& request) {
  request.size = 0;
  request.status = {};
  const auto file = disk_->files.find(request.path);
  int error_number = FaultOf(request.path);
  if (error_number == 0 && file == disk_->files.end()) error_number = ENOENT;
  if (error_number != 0) {
    request.status = SystemError(error_number, "cannot read (a fake fault)", request.path);
    return;
  }
  const std::vector<uint8_t>& bytes = file->second;
  const bool known = request.length != kUnknownLength;
  if (request.offset > bytes.size() || (known && request.length > bytes.size() - request.offset)) {
    request.status = Error{.code = Code::kDataLoss,
                           .cause = "the file ends too early",
                           .file = request.path,
                           .offset = request.offset};
    return;
  }
  const size_t size = known ? request.length : bytes.size() - request.offset;
  if (Status room = request.buffer.Grow(RoomFor(request.path, size)); !room.ok()) {
    request.status = std::move(room).error().WithFile(request.path);
    return;
  }
  if (size > 0) std::memcpy(request.buffer.data(), bytes.data() + request.offset, size);
  request.size = size;
}

size_t FakeReader::Submit(std::span<ReadRequest* const> requests) {
  const size_t taken = std::min(requests.size(), depth_ - flights_.size());
  for (ReadRequest* request : requests.first(taken)) {
    const uint64_t delay =
        Chance(disk_->at_once) ? 0 : 1 + Random() % std::max(disk_->longest_delay, 1u);
    flights_.push_back({request, time_ + delay});
    // The buffer belongs to the reader now: overwrite it, so that other uses are noticed.
    if (const size_t bytes = request->buffer.capacity(); bytes > 0) {
      std::memset(request->buffer.data(), 0xDD, std::min(bytes, kOverwritten));
    }
  }
  return taken;
}

size_t FakeReader::Reap(std::span<ReadRequest*> done, bool wait) {
  if (flights_.empty() || done.empty()) return 0;
  if (wait) time_ = std::max(time_, std::ranges::min(flights_, {}, &Flight::due).due);
  size_t n = 0;
  while (n < done.size()) {
    const auto due = std::partition(flights_.begin(), flights_.end(),
                                    [&](const Flight& f) { return f.due > time_; });
    if (due == flights_.end()) break;
    const auto many = static_cast<uint64_t>(flights_.end() - due);
    Flight& chosen = due[static_cast<ptrdiff_t>(Random() % many)];
    Read(*chosen.request);  // It is read as late as possible: the buffer belongs to the reader
                            // until now.
    done[n++] = chosen.request;
    chosen = flights_.back();
    flights_.pop_back();
  }
  ++time_;
  return n;
}

}  // namespace stoker::testing
