#include "engine/arrays/sized_by_headers.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "engine/arrays/image_facts.h"
#include "engine/arrays/shared_work.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"
#include "io/files/section_file.h"
#include "io/index/dataset_index.h"
#include "io/readers/reader.h"
#include "io/samples/sample_reads.h"
#include "io/select/sized.h"
#include "transforms/decode/image_decoder.h"

namespace stoker {

namespace {

constexpr uint64_t kHeaderBytes = 64 << 10;                // enough for most JPEGs
constexpr uint64_t kMostHeaderMemory = uint64_t{1} << 30;  // of files, for all threads together
constexpr int kObjectThreads = 16;                         // they wait for a server
constexpr uint64_t kCompared = 8;                          // samples of an index that is given

// A program's calls have the bytes already.
uint64_t HeaderMemory(const SampleSource& source) {
  return source.calls() != 0 ? MemoryBudget::kNoLimit : kMostHeaderMemory;
}

// Reads one header after another. Used by one thread.
class HeaderReader {
 public:
  HeaderReader(const SampleSource& source, MemoryBudget& budget)
      : source_(source), reads_(source), rows_(LoadedBytes(source.fields())) {
    request_.buffer = GrowingBuffer(budget);
    if (source.calls() != 0) calls_ = MakeCallReader(source);
  }

  Result<ImageFacts> Read(ImageNumbers::Place at) {
    ByteRange range = source_.RangeOfAny(at.sample, at.piece);
    if (calls_ == nullptr && range.length == kUnknownLength) {
      source_.PathOf(range.file, request_.path);
      std::error_code failed;  // reading says why
      const uint64_t bytes = std::filesystem::file_size(request_.path, failed);
      if (!failed && bytes > range.offset) range.length = bytes - range.offset;
    }
    if (calls_ == nullptr && !source_.has_records() && range.length > kHeaderBytes) {
      ByteRange begin = range;
      begin.length = kHeaderBytes;
      if (Result<ImageFacts> facts = Read(at, begin); facts.ok()) {
        facts->file_bytes = range.length == kUnknownLength ? 0 : range.length;
        return facts;
      }
    }
    Result<ImageFacts> facts = Read(at, range);
    if (facts.ok()) return facts;
    Error error = std::move(facts).error().WithFile(request_.path);
    if (error.wanted_bytes != 0 && error.detail != Error::Detail::kNoMemory) {
      error.cause = "finding its size takes " + std::to_string(error.wanted_bytes) +
                    " bytes of memory, and at most 1 GiB is used for headers";
      error.changes.clear();
    }
    return NamedError(source_, at.sample, std::move(error), at.piece);
  }

 private:
  Result<ImageFacts> Read(ImageNumbers::Place at, const ByteRange& range) {
    if (calls_ == nullptr) {
      reads_.Read(range, request_);
    } else {
      ReadRequest* call = &request_;
      call->sample = at.sample;
      (void)calls_->Submit({&call, 1});
      (void)calls_->Reap({&call, 1}, /*wait=*/true);
    }
    TRY(std::exchange(request_.status, {}));
    std::span<const uint8_t> image(request_.buffer.data(), request_.size);
    ASSIGN_OR_RETURN(image, at.piece == 0 ? source_.Unpack(at.sample, image, rows_)
                                          : source_.UnpackPiece(at.sample, at.piece, image));
    ASSIGN_OR_RETURN(const ImageInfo info, decoder_.Open(image));
    return FactsOf(info, image);
  }

  const SampleSource& source_;
  SampleReads reads_;
  std::unique_ptr<Reader> calls_;  // null: samples are in files
  ReadRequest request_;
  std::vector<uint8_t> rows_;  // of the kLoaded fields
  // A loader's limits may be any, and the file may be cut off.
  ImageDecoder decoder_{{.max_pixels = int64_t{1} << 32, .accept_truncated = true}};
};

// Returns the facts of the images `wanted`; a width of 0 means that a header cannot be read.
Result<std::vector<ImageFacts>> ReadHeaders(const SampleSource& source, const ImageNumbers& numbers,
                                            Runtime& runtime, const Interrupt& interrupt,
                                            std::span<const uint64_t> wanted) {
  std::vector<ImageFacts> facts(wanted.size());
  if (wanted.empty()) return facts;
  const int calls = source.calls();
  const int threads = calls != 0 ? calls : source.objects() != nullptr ? kObjectThreads : 0;
  std::unique_ptr<Executor> own;  // for calls and objects; otherwise the workers read
  if (threads != 0) {
    ASSIGN_OR_RETURN(own, MakeThreadsExecutor(threads));
  }
  MemoryBudget budget(HeaderMemory(source));
  const auto read = [&](HeaderReader& reader, size_t at) -> Status {
    ASSIGN_OR_RETURN(facts[at], reader.Read(numbers.PlaceOf(wanted[at])));
    return {};
  };
  SharedWork work(
      wanted.size(),
      [&] {
        HeaderReader reader(source, budget);
        while (const std::optional<size_t> at = work.Next()) {
          Status status = read(reader, *at);
          const bool no_room = !status.ok() && status.error().wanted_bytes != 0;
          if (no_room) work.Fail(*at, std::move(status).error());  // it is read alone
        }
      },
      [&](size_t at) -> Status {
        HeaderReader reader(source, budget);
        (void)read(reader, at);  // otherwise its size stays unknown
        return {};
      });
  TRY(work.Run(own != nullptr ? *own : runtime.executor(), interrupt));
  return facts;
}

std::string SizeAndTag(const ImageFacts& facts) {
  return "height " + std::to_string(facts.height) + ", width " + std::to_string(facts.width) +
         " and orientation " + std::to_string(facts.orientation);
}

// Compares some sizes of an index with headers: fingerprints of other images may be equal.
Status CheckSome(const SampleSource& source, const ImageNumbers& numbers, Runtime& runtime,
                 const Interrupt& interrupt, const std::string& index,
                 const std::vector<ImageFacts>& facts) {
  std::vector<uint64_t> some;
  const uint64_t count = std::min<uint64_t>(kCompared, facts.size());
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = facts.size() / count * i + facts.size() % count * i / count;
    if (facts[at].width != 0) some.push_back(at);
  }
  ASSIGN_OR_RETURN(const std::vector<ImageFacts> headers,
                   ReadHeaders(source, numbers, runtime, interrupt, some));
  for (size_t i = 0; i < some.size(); ++i) {
    const ImageFacts &found = headers[i], &known = facts[some[i]];
    const bool is_same = found.width == known.width && found.height == known.height &&
                         found.orientation == known.orientation;
    if (found.width == 0 || is_same) continue;  // a loader says why an image cannot be read
    const auto [id, piece] = numbers.PlaceOf(some[i]);
    std::string path;
    source.PathOf(source.RangeOfAny(id, piece).file, path);
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this is the index of other images: sample " + std::to_string(id) + " (" +
                          path + ") has " + SizeAndTag(found) + ", in the index " +
                          SizeAndTag(known),
                 .file = index,
                 .advice = "Remove the file: it is written again"};
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> SizedByHeaders(
    std::shared_ptr<const SampleSource> source, Runtime& runtime, const std::string& index,
    const Interrupt& interrupt) {
  TRY(CheckSized(source.get()));
  TRY(runtime.CheckProcess());
  const uint64_t fingerprint = source->Fingerprint();
  if (!index.empty() && fingerprint == 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = source->Describe() + " has no fingerprint, by which it knows its index",
                 .file = index,
                 .advice = "Give no index; headers are then read each time"};
  }
  const ImageNumbers numbers = NumberImages(*source);
  DatasetIndex::AllFacts kept{.facts = std::vector<ImageFacts>(numbers.Begin(source->size())),
                              .alone = true};
  std::optional<SectionFileWriter> writer;
  if (!index.empty()) {
    auto read = DatasetIndex::ReadFacts(index, fingerprint, kept.facts.size());
    if (read.ok()) {
      kept = *std::move(read);
      TRY(CheckSome(*source, numbers, runtime, interrupt, index, kept.facts));
    } else if (read.error().code == Code::kNotFound) {
      auto created = SectionFileWriter::Create(index, 1);
      if (!created.ok()) return std::move(created).error();  // before headers are read
      writer.emplace(*std::move(created));
    } else {
      return std::move(read).error();
    }
  }
  std::vector<uint64_t> unknown;
  for (uint64_t i = 0; i < kept.facts.size(); ++i) {
    const auto [id, piece] = numbers.PlaceOf(i);
    ImageFacts& facts = kept.facts[i];
    const ImageFacts known = source->FactsOfPiece(id, piece);
    if (known.width != 0 || facts.width == 0) facts = known;
    if (facts.width == 0) unknown.push_back(i);
  }
  ASSIGN_OR_RETURN(const std::vector<ImageFacts> headers,
                   ReadHeaders(*source, numbers, runtime, interrupt, unknown));
  MemoryBudget budget(HeaderMemory(*source));
  HeaderReader again(*source, budget);
  std::string why;  // the error of the first one
  bool is_new = false;
  for (size_t i = 0; i < unknown.size(); ++i) {
    ImageFacts found = headers[i];
    if (found.width == 0 && why.empty()) {
      Result<ImageFacts> read = again.Read(numbers.PlaceOf(unknown[i]));
      if (read.ok()) {
        found = *read;
      } else {
        why = read.error().Message();
      }
    }
    if (found.width == 0) continue;
    kept.facts[unknown[i]] = found;
    is_new = true;
  }
  if (writer) {
    TRY(DatasetIndex::WriteFacts(*std::move(writer), fingerprint, kept.facts));
  } else if (!index.empty() && is_new && kept.alone) {
    // Without it these headers are read again the next time.
    Result<SectionFileWriter> file = SectionFileWriter::Create(index, 1);
    if (file.ok()) (void)DatasetIndex::WriteFacts(*std::move(file), fingerprint, kept.facts);
  }
  return SizedByFacts(std::move(source), std::move(kept.facts), why);
}

}  // namespace stoker
