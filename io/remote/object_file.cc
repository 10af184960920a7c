#include "io/remote/object_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/result/try.h"
#include "core/system/file_stamp.h"

namespace stoker {

namespace {

constexpr size_t kFirstBlock = 64 << 10;
constexpr size_t kLargestBlock = 4 << 20;
constexpr size_t kPiece = 8 << 20;  // one request of a long read
constexpr uint32_t kPieces = 4;     // concurrent requests

}  // namespace

ObjectFile::ObjectFile(std::string url, std::unique_ptr<ObjectFetcher> fetcher)
    : url_(std::move(url)), fetcher_(std::move(fetcher)) {}

Result<std::unique_ptr<ObjectFile>> ObjectFile::Open(const std::string& url) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectFetcher> fetcher, ObjectFetcher::Make(kPieces));
  std::unique_ptr<ObjectFile> file(new ObjectFile(url, std::move(fetcher)));
  file->window_.resize(kFirstBlock);
  ObjectFetch fetch = file->FetchOf(0, file->window_);
  fetch.expected = nullptr;
  fetch.may_be_shorter = true;
  TRY(FetchObject(*file->fetcher_, fetch));
  file->window_.resize(fetch.size);
  file->version_ = fetch.version;
  file->block_ = kFirstBlock;
  return file;
}

Status ObjectFile::Identify() {
  const bool in_store = url_.starts_with("s3://") || url_.starts_with("gs://");
  if (version_.Text().empty() || version_.etag_names_content(in_store)) return {};
  std::vector<uint8_t> first = window_;  // it is read next
  ASSIGN_OR_RETURN(version_.content,
                   HashOfParts(version_.bytes, [this](uint64_t offset, std::span<uint8_t> to) {
                     return ReadAt(offset, to);
                   }));
  window_ = std::move(first);
  window_at_ = 0;
  block_ = kFirstBlock;
  return {};
}

ObjectFetch ObjectFile::FetchOf(uint64_t offset, std::span<uint8_t> to) const {
  ObjectFetch fetch;
  fetch.url = url_;
  fetch.offset = offset;
  fetch.length = to.size();
  fetch.expected = &version_;
  fetch.to = to;
  return fetch;
}

Result<size_t> ObjectFile::ReadAt(uint64_t offset, std::span<uint8_t> to) {
  if (offset >= version_.bytes) return size_t{0};
  to = to.first(std::min<uint64_t>(to.size(), version_.bytes - offset));
  const size_t whole = to.size();
  const std::lock_guard lock(mutex_);
  while (!to.empty()) {
    const bool has = window_at_ <= offset && offset < window_at_ + window_.size();
    if (!has && to.size() >= kLargestBlock) {
      TRY(ReadLong(offset, to));
      return whole;
    }
    if (!has) TRY(ReadWindow(offset, to.size()));
    const size_t skip = offset - window_at_;
    const size_t bytes = std::min(to.size(), window_.size() - skip);
    std::memcpy(to.data(), window_.data() + skip, bytes);
    to = to.subspan(bytes);
    offset += bytes;
  }
  return whole;
}

// A read that continues near the end of the last one doubles the block; any other read starts
// again.
Status ObjectFile::ReadWindow(uint64_t offset, size_t bytes) {
  const uint64_t end = window_at_ + window_.size();
  const bool goes_on = end <= offset && offset - end <= block_;
  block_ = goes_on ? std::min(2 * block_, kLargestBlock) : kFirstBlock;
  const uint64_t length = std::min<uint64_t>(std::max(block_, bytes), version_.bytes - offset);
  window_.resize(length);
  window_at_ = offset;
  ObjectFetch fetch = FetchOf(offset, window_);
  Status status = FetchObject(*fetcher_, fetch);
  if (!status.ok()) window_.clear();
  return status;
}

// Returns the error of the piece that failed first.
Status ObjectFile::ReadLong(uint64_t offset, std::span<uint8_t> to) {
  std::array<ObjectFetch, kPieces> pieces;
  std::vector<ObjectFetch*> idle;
  idle.reserve(kPieces);
  for (ObjectFetch& piece : pieces) idle.push_back(&piece);
  Status first;
  while (!to.empty() || fetcher_->running() != 0) {
    while (!to.empty() && !idle.empty() && first.ok()) {
      const std::span<uint8_t> piece = to.first(std::min(to.size(), kPiece));
      ObjectFetch* const fetch = idle.back();
      idle.pop_back();
      *fetch = FetchOf(offset, piece);
      fetcher_->Start(*fetch);
      offset += piece.size();
      to = to.subspan(piece.size());
    }
    if (fetcher_->running() == 0) break;
    std::array<ObjectFetch*, kPieces> done{};
    const size_t ended = fetcher_->Finish(done, /*wait_ms=*/1000);
    for (ObjectFetch* const fetch : std::span(done).first(ended)) {
      if (!fetch->status.ok() && first.ok()) first = fetch->status;
      idle.push_back(fetch);
    }
  }
  return first;
}

}  // namespace stoker
