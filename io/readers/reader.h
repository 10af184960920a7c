// Reader: file bytes into buffers, many reads at a time. order → reader → worker.
//
// One contract, three implementations: `pread` (the reference), `uring` (Linux io_uring) and, in
// tests/testing, a fake that injects faults.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/buffer.h"
#include "core/result.h"
#include "core/sample.h"

namespace stoker {

// One read. Owned by the caller; it and everything it points to stays put, and is the reader's
// alone, from Submit until Reap hands it back.
struct ReadRequest {
  // Set by the caller.
  std::string path;                  // capacity is kept from one use to the next
  uint64_t offset = 0;               // first byte wanted
  uint64_t length = kUnknownLength;  // unknown: up to the end of the file
  GrowingBuffer buffer;              // grown as needed, kept from one use to the next
  void* owner = nullptr;             // the caller's own; readers do not look at it

  // Set by the reader.
  uint64_t size = 0;  // bytes now in `buffer`; kBufferPadding readable bytes follow them
  Status status;      // failure names the file and, where it applies, the offset
};

// Used by one thread for all its life: the ring belongs to the thread that made it (on another,
// reads still succeed, one by one).
class Reader {
 public:
  // Reaps what is in flight, for its memory belongs to the kernel until then.
  virtual ~Reader() = default;

  // Starts reads, from the front of `requests`, and says how many it took: all, unless that would
  // exceed capacity(). A read may complete at once, inside this call. Interrupted calls (EINTR) and
  // short reads are continued, never returned. Failures come back through Reap, one by one.
  virtual size_t Submit(std::span<ReadRequest* const> requests) = 0;

  // Moves finished requests to `done` and says how many, in any order. Without `wait`,
  // whatever has finished already; with it, and something in flight, it sleeps until one has, but
  // no longer than about 50 ms, so that its caller can look up from a slow read.
  //
  // A file that ends before offset + length, or before offset, is DataLoss; an unknown length ends
  // at the end of the file as it is when read. An empty file is no error here: size is 0. A file
  // larger than the buffer grows the buffer; when the budget has no room: ResourceExhausted.
  // Directories, FIFOs and devices are InvalidArgument; one that keeps a read waiting is found out
  // half a second after nothing else is left to wait for (one that does give the length asked for
  // may be read).
  virtual size_t Reap(std::span<ReadRequest*> done, bool wait) = 0;

  virtual size_t in_flight() const = 0;  // submitted and not yet reaped
  virtual size_t capacity() const = 0;   // most requests in flight
  virtual const char* name() const = 0;  // "pread", "uring"
};

enum class ReaderKind { kAuto, kUring, kPread };

// What was chosen and, in words for the user, why.
struct ReaderChoice {
  ReaderKind kind = ReaderKind::kPread;  // never kAuto
  std::string reason;
};

// Probes io_uring (allowed here? the features needed? room under memlock?) and, where it works,
// measures it against pread on a small temporary file ($TMPDIR, else /tmp). kUring where it cannot
// be had is an error that says why; kPread always works. A few milliseconds.
// The ring that is probed is as deep as the real one will be.
Result<ReaderChoice> ChooseReader(ReaderKind wanted, uint32_t depth = 32);

// `depth`: most reads in flight, 1 to 1024.
Result<std::unique_ptr<Reader>> MakeReader(ReaderKind kind, uint32_t depth);  // not kAuto
std::unique_ptr<Reader> MakePreadReader(uint32_t depth);
Result<std::unique_ptr<Reader>> MakeUringReader(uint32_t depth);

}  // namespace stoker
