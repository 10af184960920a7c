// Reader: reads files into buffers, many at a time. order → reader → worker.
//
// Three implementations share this contract: `pread` (the reference), `uring` (Linux io_uring) and,
// in tests/testing/storage, a fake whose files are in memory. A fourth one calls sources that have
// no files; its Submit blocks as long as the call takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/memory/buffer.h"
#include "core/result/result.h"
#include "io/readers/reader_kind.h"
#include "io/source/source.h"

namespace stoker {

class FileCalls;

// One read. Owned by the caller; from Submit until Reap returns it, it and everything it points to
// must stay in place and belong to the reader alone.
struct ReadRequest {
  // Set by the caller.
  std::string path;                  // keeps its capacity between uses
  uint64_t offset = 0;               // first byte to read
  uint64_t length = kUnknownLength;  // if unknown, to the end of the file, which is one sample
  GrowingBuffer buffer;              // grown as needed, and kept between uses
  uint64_t sample = 0;               // its id in the source; only a call reader needs it
  void* owner = nullptr;             // whose reads GiveUp ends
  uint32_t tag = 0;  // reads of one owner with equal tags are of one sample, and may be fetched
                     // together

  // Set by the reader.
  uint64_t size = 0;          // bytes now in `buffer`; kBufferPadding readable bytes follow them
  std::vector<uint8_t> rows;  // of the kLoaded fields, one after the other; from a call reader
  Status status;              // failure names the file and, where it applies, the offset
};

// Counts of a reader since it was made.
struct ReaderCounts {
  uint64_t calls = 0;  // system calls: entries into the ring; open, stat, read and close
  uint64_t opens = 0;  // of files
};

// A file that is read in ranges of known length holds many samples. A reader keeps such files open
// for their next ranges, by path, and closes the least recently read one when there are too many. A
// range that an open file does not have is read from the file that has the path now, once. So a
// file that is replaced or removed is read as it was until CloseFiles.
//
// A ring that cannot be entered any more, for example because the program has closed all
// descriptors, is replaced by plain reads. Reads that are still in the ring are awaited for two
// seconds after the last completion, then read again.
//
// Used by a single thread throughout: the ring belongs to the thread that made it (on another,
// reads still succeed, one by one).
class Reader {
 public:
  // Waits for the reads in flight, because the kernel uses their memory until then. (Reads that are
  // lost are left to the kernel, with their memory.)
  virtual ~Reader() = default;

  // Starts reads from the front of `requests` and returns how many: as many as there is room(). A
  // read may complete during this call. Interrupted calls (EINTR) and short reads are continued.
  // Each failure is returned by Reap.
  virtual size_t Submit(std::span<ReadRequest* const> requests) = 0;

  // Moves finished requests to `done`, in any order, and returns their number. Without `wait` it
  // takes the requests that have finished already. With `wait`, and with reads in flight, it sleeps
  // until one has finished, but no longer than about 50 ms, so that the caller is not blocked by
  // a slow read.
  //
  // A file that ends before offset + length, or before offset, is DataLoss; an unknown length ends
  // at the end of the file when it is read. An empty file is not an error here: size is 0. The
  // buffer grows for a larger file; ResourceExhausted if the budget has no room. Directories, FIFOs
  // and devices are InvalidArgument; one that blocks a read is detected half a second after all
  // other reads have finished (one that delivers the requested length may be read).
  virtual size_t Reap(std::span<ReadRequest*> done, bool wait) = 0;

  // Closes the files that the reader keeps open; files with reads in flight are closed once these
  // have finished.
  virtual void CloseFiles() {}

  // Called when nobody waits for this owner's reads any more: reads that may take long are given
  // up, and Reap returns them with Cancelled.
  virtual void GiveUp(const void* /*owner*/) {}

  // Gives back the memory of lost reads (see MakeUringReader) that have ended since, and returns
  // whether some have not. Reap does so, too; this is for a thread that has no reads in flight.
  virtual bool FreeLost() { return false; }

  virtual ReaderCounts counts() const { return {}; }

  virtual size_t in_flight() const = 0;  // submitted and not yet reaped
  virtual size_t capacity() const = 0;   // limit on requests in flight
  // How many requests Submit takes now.
  virtual size_t room() const { return capacity() - in_flight(); }
  virtual const char* name() const = 0;  // "uring", "pread"
};

// Probes io_uring (is it allowed, does it have the features, is memlock sufficient?) and, if it
// works, measures it against pread on a small temporary file ($TMPDIR, else /tmp). If kUring is
// wanted and not available, the error says why; kPread always works. Takes a few milliseconds. The
// probed ring is as deep as the real one will be.
//
// `limited`: reads have a time limit, which only the ring can enforce. kPread is then
// InvalidArgument, and so is kAuto if there is no io_uring.
Result<ReaderChoice> ChooseReader(ReaderKind wanted, uint32_t reads = 32, bool limited = false);

// `reads`: limit on reads in flight, 1 to 1024. `readers`: the Runtime's number of readers;
// together they keep up to 1,024 files open. The files of pread readers are descriptors of the
// process, so they keep at most an eighth of the limit of open files (RLIMIT_NOFILE).
Result<std::unique_ptr<Reader>> MakeReader(ReaderKind kind, uint32_t reads, int readers = 1,
                                           std::chrono::nanoseconds limit = {});  // not kAuto
// `files`: the number of files to keep open. A ring's files are not descriptors of the process, but
// the limit of open files also applies to the ring's table, which holds one for each read in
// flight, too: the ring keeps fewer files if need be.
//
// `limit`: how long a read may take; 0 means no limit. A read that takes longer is Unavailable, and
// is cancelled. If the kernel cannot cancel it, because a disk hangs, it is lost: its memory and
// its place among the reads in flight belong to the kernel until it ends, and the reader's thread
// cannot exit before; then FreeLost or Reap gives them back. When all places are lost, reads wait
// for one, also up to `limit`, and are then Unavailable through no fault of their files. With a
// limit, a FIFO is not distinguished from a file that hangs. A read that has to be repeated plainly
// (of an unexpected file) has no limit, and before Linux 6.3 the steps of a chain after the first
// are tried on the reader's thread, which a file system may block. Reads of pread cannot be given
// up.
//
// `calls`: the plain system calls of this reader alone (plain_read.h), for tests. Null means the
// system's.
std::unique_ptr<Reader> MakePreadReader(uint32_t reads, uint32_t files = 64,
                                        std::shared_ptr<const FileCalls> calls = nullptr);
Result<std::unique_ptr<Reader>> MakeUringReader(uint32_t reads, uint32_t files = 64,
                                                std::shared_ptr<const FileCalls> calls = nullptr,
                                                std::chrono::nanoseconds limit = {});
// Calls SampleSource::Load inside Submit, one at a time. `source` must outlive it.
std::unique_ptr<Reader> MakeCallReader(const SampleSource& source);

}  // namespace stoker
