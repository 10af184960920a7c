#include "io/samples/sample_reads.h"

#include <utility>

#include "core/result/try.h"
#include "io/readers/plain_read.h"
#include "io/remote/object_reader.h"
#include "io/remote/object_url.h"

namespace stoker {

void SampleReads::Read(uint64_t id, ReadRequest& request, size_t piece) {
  Read(source_.RangeOfAny(id, piece), request);
}

void SampleReads::Read(const ByteRange& range, ReadRequest& request) {
  source_.PathOf(range.file, request.path);
  request.offset = range.offset;
  request.length = range.length;
  if (source_.objects() == nullptr || !IsObjectUrl(request.path)) return ReadPlainly(request);
  if (Status status = ReadObject(request); !status.ok()) request.status = std::move(status);
}

Status SampleReads::ReadObject(ReadRequest& request) {
  if (objects_ == nullptr) {
    ASSIGN_OR_RETURN(objects_, MakeObjectReader(/*reads=*/1, *source_.objects()));
  }
  ReadRequest* read = &request;
  objects_->Submit({&read, 1});
  while (objects_->Reap({&read, 1}, /*wait=*/true) == 0) {
  }
  return {};
}

}  // namespace stoker
