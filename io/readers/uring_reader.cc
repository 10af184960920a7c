// Reads many files at a time through one io_uring; uring_chain.h describes each file's operations.
//
// In the steady state, with the files in the page cache, a Submit is one system call, a Reap none,
// and nothing is allocated.
#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/time/stage_times.h"
#include "io/readers/kept_files.h"
#include "io/readers/plain_read.h"
#include "io/readers/reader.h"
#include "io/readers/uring_chain.h"
#include "io/readers/uring_setup.h"

namespace stoker {

namespace {

constexpr uint64_t kCancellation = ~uint64_t{0};  // user_data of operations outside a chain
constexpr uint64_t kMaxPerRead = 0x7ffff000;      // bytes; the kernel's own limit
constexpr int64_t kPatienceNs = 500'000'000;
constexpr int64_t kLongestWaitNs = 50'000'000;
constexpr int64_t kPatienceAtEndNs = 10'000'000;
constexpr uint64_t kPatienceWhenBrokenNs = 2'000'000'000;
constexpr uint64_t kLookForLateNs = 10'000'000;
// The time between two looks counts for a read up to a quarter of the limit, within these bounds:
constexpr uint64_t kLeastCountedNs = 20'000'000, kMostCountedNs = 1'000'000'000;
constexpr uint64_t kToBeCancelledNs = 200'000'000;  // for a read that was too late

// One read in flight. Its index is its user_data, with the step, and, unless its file is kept open,
// its direct descriptor.
struct Flight {
  ReadRequest* request = nullptr;
  KeptFile* file = nullptr;  // null: the file is not kept open
  Chain chain;
  uint64_t begun_ns = 0;      // when it began, if there is a time limit
  uint64_t cancelled_ns = 0;  // when it was first cancelled for taking longer; 0 if it was not
  bool enlarged = false;      // the buffer has already been grown to the file's size

  // For a read that was given up: the number of results that are missing, and the memory and file
  // that the kernel may use until they come. No other read takes this flight meanwhile.
  uint8_t lost = 0;
  GrowingBuffer lost_buffer;
  KeptFile* lost_file = nullptr;
};

// A request that waits for a flight, because reads are lost.
struct WaitingRead {
  ReadRequest* request;
  bool given_up = false;
};

// The file that a descriptor refers to: the program may close the ring's descriptor, and a file
// that it opens then gets the same number.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

Identity IdentityOf(int descriptor) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

// Whether a later entry into the ring may succeed. EEXIST: this is not the thread that made it.
bool MayPass(int result) {
  return result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY ||
         result == -ENOMEM || result == -ETIME || result == -EEXIST;
}

std::string SecondsOf(uint64_t ns) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%g s", static_cast<double>(ns) / 1e9);
  return text.data();
}

Error TooLate(const ReadRequest& request, uint64_t limit_ns) {
  return {.code = Code::kUnavailable,
          .cause = "the read has not ended within " + SecondsOf(limit_ns),
          .file = request.path,
          .offset = request.offset,
          .advice = "Check the storage, or raise read_timeout"};
}

// Nobody has tried to read this file: no policy may call it bad.
Error AllHang(const ReadRequest& request, size_t places, uint64_t limit_ns) {
  return {.code = Code::kUnavailable,
          .cause = "the read could not begin within " + SecondsOf(limit_ns) + ": all " +
                   std::to_string(places) + " reads in flight hang",
          .file = request.path,
          .advice = "Check the storage",
          .detail = Error::Detail::kOfNoSample};
}

void Pause() {
  constexpr timespec kShort{0, 1'000'000};
  (void)nanosleep(&kShort, nullptr);
}

uint64_t UserData(uint32_t index, ChainStep step) {
  return uint64_t{index} * kChainSteps + static_cast<uint64_t>(step);
}

void Tag(io_uring_sqe* sqe, uint32_t index, ChainStep step, unsigned flags) {
  sqe->flags = static_cast<uint8_t>(flags);
  sqe->user_data = UserData(index, step);
}

class UringReader final : public Reader {
 public:
  UringReader(uint32_t reads, uint32_t files, std::shared_ptr<const FileCalls> calls,
              std::chrono::nanoseconds limit)
      : limit_ns_(static_cast<uint64_t>(limit.count())),
        flights_(reads),
        most_files_(files),
        files_(files),
        calls_(std::move(calls)),
        process_(getpid()) {
    for (auto* indices : {&free_, &queued_, &finished_, &larger_}) indices->reserve(reads);
    waiting_.reserve(reads);
    for (uint32_t i = reads; i > 0; --i) free_.push_back(i - 1);
  }
  ~UringReader() override;
  Status Open();

  size_t Submit(std::span<ReadRequest* const> requests) override;
  size_t Reap(std::span<ReadRequest*> done, bool wait) override;
  void CloseFiles() override;
  void GiveUp(const void* owner) override;
  bool FreeLost() override;
  ReaderCounts counts() const override;
  size_t in_flight() const override { return in_flight_; }
  size_t capacity() const override { return flights_.size(); }
  const char* name() const override { return "uring"; }

 private:
  void Start(uint32_t index);
  ChainKind ChooseKind(Flight& flight);
  void Queue(uint32_t index, ChainKind kind);
  void SendQueued();
  unsigned Send();
  void NoteEntry(int result);
  size_t DeliverFinished(std::span<ReadRequest*> done);
  size_t DeliverWaiting(std::span<ReadRequest*> done);
  bool Resolve(const WaitingRead& waiting, uint64_t now);
  ReadRequest* Deliver(Flight& flight);
  void Collect();
  void StartWaiting();
  void Complete(uint32_t index, ChainStep step, int32_t result);
  void EndLate();
  void CancelChain(uint32_t index);
  void QueueCancel(uint64_t user_data, unsigned flags);
  void CompleteLost(uint32_t index);
  void GiveUpRead(uint32_t index);
  void EndKept(Flight& flight);
  void CloseKept(KeptFile& file);
  bool Enlarge(Flight& flight);
  void Wait(int64_t longest_ns);
  void CancelWhatIsNoFile();
  void Cancel(uint64_t user_data, unsigned flags);
  size_t in_kernel() const { return in_flight_ - finished_.size() - waiting_.size(); }

  const uint64_t limit_ns_;  // for each read; 0 means none
  uint64_t polled_ns_ = 0;   // for late reads
  io_uring ring_{};
  bool IsOurs() const { return IdentityOf(ring_.ring_fd) == identity_; }

  bool open_ = false;
  Identity identity_;    // of the ring's descriptor
  bool broken_ = false;  // entering it fails, and will
  std::vector<Flight> flights_;
  const uint32_t most_files_;
  KeptFiles files_;       // a slot's direct descriptor follows those of the flights
  size_t in_flight_ = 0;  // requests
  size_t lost_ = 0;       // flights that are lost
  // Indices of flights. A flight that is in none of these lists is in the kernel, or lost there.
  std::vector<uint32_t> free_;
  std::vector<uint32_t> queued_;      // in the submission queue, in its order
  std::vector<uint32_t> finished_;    // to be returned by Reap
  std::vector<uint32_t> larger_;      // to be sent again with a larger buffer
  std::vector<WaitingRead> waiting_;  // in order
  uint64_t full_since_ns_ = 0;        // since then reads wait and no flight has become free
  uint64_t waiting_since_ = 0;        // in NowNanoseconds
  ReaderCounts counts_;               // of the ring
  const std::shared_ptr<const FileCalls> calls_;  // of ReadPlainly
  const pid_t process_;
};

Status UringReader::Open() {
  const auto reads = static_cast<uint32_t>(capacity());
  Status ready = SetUpRing(ring_, reads, most_files_);
  open_ = ready.ok();
  if (open_) identity_ = IdentityOf(ring_.ring_fd);
  if (open_ && limit_ns_ != 0) {  // reads that hang must leave threads to the others
    unsigned most_threads[] = {reads, reads};
    (void)io_uring_register_iowq_max_workers(&ring_, most_threads);
  }
  return ready;
}

UringReader::~UringReader() {
  if (!open_) return;
  waiting_since_ = NowNanoseconds();
  broken_ = broken_ || !IsOurs();
  in_flight_ -= waiting_.size();
  waiting_.clear();
  // A forked child inherits this memory, but not the reads: only their owner waits for them.
  while (getpid() == process_ && in_kernel() > 0) {
    // Repeated, because a cancelled read is followed by a probe that may block, too.
    Cancel(0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    Collect();
    if (in_kernel() > 0) Wait(kPatienceAtEndNs);
    Collect();
    if (limit_ns_ != 0) EndLate();
  }
  if (!IsOurs()) ring_.ring_fd = -1;  // it is not ours to close
  io_uring_queue_exit(&ring_);
  for (Flight& flight : flights_) {
    if (flight.lost > 0) flight.lost_buffer.Forget();
  }
}

size_t UringReader::Submit(std::span<ReadRequest* const> requests) {
  const size_t taken = std::min(requests.size(), capacity() - in_flight());
  if (in_kernel() == 0) waiting_since_ = NowNanoseconds();
  if (waiting_.empty()) full_since_ns_ = NowNanoseconds();
  for (ReadRequest* request : requests.first(taken)) {
    waiting_.push_back({request});
    ++in_flight_;
  }
  StartWaiting();
  SendQueued();
  return taken;
}

// Starts requests for which there is a free flight.
void UringReader::StartWaiting() {
  const size_t n = std::min(waiting_.size(), free_.size());
  if (n == 0) return;
  for (const WaitingRead& waiting : std::span(waiting_).first(n)) {
    const uint32_t index = free_.back();
    free_.pop_back();
    flights_[index].request = waiting.request;
    Start(index);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(n));
  if (!waiting_.empty()) full_since_ns_ = NowNanoseconds();
}

// Adds the chain to the submission queue or, if a chain cannot read this file, reads it plainly.
void UringReader::Start(uint32_t index) {
  Flight& flight = flights_[index];
  ReadRequest& request = *flight.request;
  request.size = 0;
  request.status = {};
  flight.file = nullptr;
  flight.enlarged = false;
  flight.cancelled_ns = 0;
  if (limit_ns_ != 0) flight.begun_ns = NowNanoseconds();
  bool fits = false;
  if (broken_) {
    // Read plainly.
  } else if (request.length != kUnknownLength) {
    fits = request.length > 0 && request.length <= kMaxUnseen &&
           request.offset <= static_cast<uint64_t>(INT64_MAX) - request.length &&
           MakeRoom(request.buffer, request.length).ok();
  } else {
    // The probe reads at the file's position, which starts at 0.
    fits = request.offset == 0 &&
           (request.buffer.capacity() > 0 || MakeRoom(request.buffer, kFirstBufferBytes).ok());
  }
  if (fits) {
    Queue(index, ChooseKind(flight));
  } else {
    flight.chain.Decline();
    finished_.push_back(index);
  }
}

// The first read of a file that is to be kept open opens it. Reads that come before it has done so
// open the file for themselves, and so do those for which there is no slot.
ChainKind UringReader::ChooseKind(Flight& flight) {
  const ReadRequest& request = *flight.request;
  if (request.length == kUnknownLength) return ChainKind::kFile;
  KeptFile* file = files_.Find(request.path);
  if (file != nullptr && !file->open) return ChainKind::kRange;
  const ChainKind kind = file != nullptr ? ChainKind::kNext : ChainKind::kFirst;
  if (file == nullptr) file = files_.Take(request.path);
  if (file == nullptr) return ChainKind::kRange;
  ++file->reads;
  flight.file = file;
  return kind;
}

void UringReader::Queue(uint32_t index, ChainKind kind) {
  Flight& flight = flights_[index];
  const ReadRequest& request = *flight.request;
  const bool known = kind != ChainKind::kFile;
  const auto asked = static_cast<uint32_t>(
      std::min(known ? request.length : request.buffer.capacity(), kMaxPerRead));
  const uint32_t slot =
      flight.file != nullptr ? static_cast<uint32_t>(capacity()) + flight.file->slot : index;
  const auto file = static_cast<int>(slot);
  constexpr unsigned kHardLink = IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
  constexpr uint64_t kFromPosition = ~uint64_t{0};
  // The kernel tries operations on this thread first, which a file system may block; its own
  // threads can be left.
  const unsigned where = limit_ns_ != 0 ? IOSQE_ASYNC : 0U;
  flight.chain.Begin(asked, kind);

  // Without O_NONBLOCK, although a FIFO may then block (see Wait): with it, file systems that
  // cannot read without blocking would refuse every read with EAGAIN.
  io_uring_sqe* sqe = nullptr;  // never after get_sqe: the queue has room for every chain
  if (Has(kind, ChainStep::kOpen)) {
    ++counts_.opens;
    sqe = io_uring_get_sqe(&ring_);
    io_uring_prep_openat_direct(sqe, AT_FDCWD, request.path.c_str(), O_RDONLY | O_NOCTTY, 0, slot);
    Tag(sqe, index, ChainStep::kOpen, where | IOSQE_IO_LINK);
  }

  sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_read(sqe, file, request.buffer.data(), asked,
                     known ? request.offset : kFromPosition);
  Tag(sqe, index, ChainStep::kRead,
      where | (Has(kind, ChainStep::kClose) ? kHardLink : IOSQE_FIXED_FILE));

  if (Has(kind, ChainStep::kProbe)) {
    sqe = io_uring_get_sqe(&ring_);
    // Its byte, which nobody reads, goes to the padding.
    io_uring_prep_read(sqe, file, request.buffer.data() + request.buffer.capacity(), 1,
                       kFromPosition);
    Tag(sqe, index, ChainStep::kProbe, where | kHardLink);
  }

  if (Has(kind, ChainStep::kClose)) {
    sqe = io_uring_get_sqe(&ring_);
    io_uring_prep_close_direct(sqe, slot);
    Tag(sqe, index, ChainStep::kClose, where);
  }
  queued_.push_back(index);
}

// One system call for all. Operations that the kernel does not take (out of memory, or a call from
// another thread than the ring's) are withdrawn, and their files read plainly.
void UringReader::SendQueued() {
  if (queued_.empty()) return;
  unsigned left = Send();
  for (auto index = queued_.rbegin(); left > 0; ++index) {
    const ChainKind kind = flights_[*index].chain.kind();
    for (auto step = kAllSteps.rbegin(); left > 0 && step != kAllSteps.rend(); ++step) {
      if (!Has(kind, *step)) continue;
      Complete(*index, *step, -ECANCELED);
      --left;
    }
  }
  queued_.clear();
}

// Submits and empties the queue, and returns the number of its last entries that the kernel did not
// take.
unsigned UringReader::Send() {
  int n = 0;
  do {
    ++counts_.calls;
    n = io_uring_submit(&ring_);
  } while (n == -EINTR || (n > 0 && io_uring_sq_ready(&ring_) > 0));
  NoteEntry(n);
  const unsigned left = io_uring_sq_ready(&ring_);
  broken_ = broken_ || (left > 0 && n >= 0 && !IsOurs());
  if (left > 0) {  // the kernel reads the tail only during the call, so it may be taken back
    const unsigned head = *ring_.sq.khead;
    ring_.sq.sqe_head = ring_.sq.sqe_tail = head;
    __atomic_store_n(ring_.sq.ktail, head, __ATOMIC_RELEASE);
  }
  return left;
}

// After the result of an entry into the ring.
void UringReader::NoteEntry(int result) {
  if (result >= 0 || broken_) return;
  broken_ = !MayPass(result) || (result == -EEXIST && !IsOurs());
}

size_t UringReader::Reap(std::span<ReadRequest*> done, bool wait) {
  if (done.empty() || in_flight() == 0) return 0;
  Collect();
  if (finished_.empty() &&
      (__atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN) != 0) {
    ++counts_.calls;
    (void)io_uring_get_events(&ring_);
    Collect();
  }
  const bool plainly = broken_ && !waiting_.empty();
  if (wait && finished_.empty() && !plainly) {
    Wait(kLongestWaitNs);
    Collect();
  }
  if (limit_ns_ != 0) EndLate();
  size_t n = DeliverFinished(done);
  n += DeliverWaiting(done.subspan(n));
  in_flight_ -= n;
  return n;
}

size_t UringReader::DeliverFinished(std::span<ReadRequest*> done) {
  const size_t n = std::min(done.size(), finished_.size());
  for (size_t i = 0; i < n; ++i) {
    Flight& flight = flights_[finished_[i]];
    done[i] = Deliver(flight);
    if (flight.lost == 0) free_.push_back(finished_[i]);
  }
  finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(n));
  return n;
}

// Requests that wait for a flight and need none: the ring is broken, or all flights have been lost
// for too long, or nobody wants them.
size_t UringReader::DeliverWaiting(std::span<ReadRequest*> done) {
  if (waiting_.empty()) return 0;
  const uint64_t now = NowNanoseconds();
  size_t n = 0;
  std::erase_if(waiting_, [&](const WaitingRead& waiting) {
    if (n == done.size() || !Resolve(waiting, now)) return false;
    done[n++] = waiting.request;
    return true;
  });
  return n;
}

bool UringReader::Resolve(const WaitingRead& waiting, uint64_t now) {
  ReadRequest& request = *waiting.request;
  const bool late = limit_ns_ != 0 && free_.empty() && now - full_since_ns_ >= limit_ns_;
  if (!waiting.given_up && !broken_ && !late) return false;
  request.size = 0;
  request.status = {};
  if (waiting.given_up) {
    request.status = Error{.code = Code::kCancelled, .cause = "the read was given up"};
  } else if (broken_) {
    ReadPlainly(request, *calls_);
  } else {
    request.status = AllHang(request, capacity(), limit_ns_);
  }
  return true;
}

void UringReader::GiveUp(const void* owner) {
  for (WaitingRead& waiting : waiting_) {
    waiting.given_up = waiting.given_up || waiting.request->owner == owner;
  }
}

bool UringReader::FreeLost() {
  if (lost_ == 0) return false;
  if (!broken_) {  // this thread may not have entered the kernel since the reads ended
    ++counts_.calls;
    (void)io_uring_get_events(&ring_);
  }
  Collect();
  return lost_ > 0;
}

ReadRequest* UringReader::Deliver(Flight& flight) {
  ReadRequest* const request = std::exchange(flight.request, nullptr);
  if (flight.chain.state() == Chain::State::kWhole) {
    request->size = flight.chain.size();
  } else if (flight.cancelled_ns != 0) {
    request->status = TooLate(*request, limit_ns_);
  } else {
    ReadPlainly(*request, *calls_);  // it also words the error
  }
  return request;
}

// Processes all available completions.
void UringReader::Collect() {
  unsigned head = 0;
  unsigned n = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    ++n;
    if (cqe->user_data == kCancellation) continue;
    Complete(static_cast<uint32_t>(cqe->user_data / kChainSteps),
             static_cast<ChainStep>(cqe->user_data % kChainSteps), cqe->res);
  }
  io_uring_cq_advance(&ring_, n);
  if (n > 0) waiting_since_ = NowNanoseconds();
  for (uint32_t index : larger_) Queue(index, ChainKind::kFile);
  larger_.clear();
  StartWaiting();
  SendQueued();
}

void UringReader::Complete(uint32_t index, ChainStep step, int32_t result) {
  Flight& flight = flights_[index];
  if (flight.lost > 0) return CompleteLost(index);
  flight.chain.OnCompletion(step, result);
  if (flight.chain.state() == Chain::State::kInKernel) return;
  if (flight.file != nullptr) EndKept(flight);
  if (flight.chain.state() == Chain::State::kLarger && flight.cancelled_ns == 0 &&
      Enlarge(flight)) {
    larger_.push_back(index);
  } else {
    finished_.push_back(index);
  }
}

// Cancels reads that have taken too long. Reads that cannot be cancelled are left to the kernel.
// Time between two checks counts little, because chains may not have progressed either.
void UringReader::EndLate() {
  const uint64_t now = NowNanoseconds();
  const uint64_t passed = now - polled_ns_;
  if (passed < kLookForLateNs) return;
  polled_ns_ = now;
  const uint64_t counted = std::clamp(limit_ns_ / 4, kLeastCountedNs, kMostCountedNs);
  const uint64_t away = passed - std::min(passed, counted);
  full_since_ns_ = std::min(full_since_ns_ + away, now);
  bool cancelled = false;
  for (uint32_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    if (flight.chain.state() != Chain::State::kInKernel) continue;
    flight.begun_ns = std::min(flight.begun_ns + away, now);
    if (now - flight.begun_ns < limit_ns_) continue;
    flight.cancelled_ns =
        flight.cancelled_ns == 0 ? now : std::min(flight.cancelled_ns + away, now);
    if (now - flight.cancelled_ns < kToBeCancelledNs) {
      CancelChain(i);
      cancelled = true;
    } else {
      GiveUpRead(i);
    }
  }
  if (cancelled) (void)Send();
  Collect();
}

void UringReader::CancelChain(uint32_t index) {
  for (ChainStep step : {ChainStep::kOpen, ChainStep::kRead, ChainStep::kProbe}) {
    QueueCancel(UserData(index, step), 0);
  }
}

// The kernel keeps the read's memory. Unless it was cancelled, it is done again, plainly.
void UringReader::GiveUpRead(uint32_t index) {
  Flight& flight = flights_[index];
  flight.lost = flight.chain.missing();
  ++lost_;
  flight.lost_buffer = flight.request->buffer.HandOver();
  flight.lost_file = std::exchange(flight.file, nullptr);
  if (flight.lost_file != nullptr) files_.Drop(*flight.lost_file);
  flight.chain.Decline();
  finished_.push_back(index);
}

void UringReader::CompleteLost(uint32_t index) {
  Flight& flight = flights_[index];
  if (--flight.lost > 0) return;
  --lost_;
  flight.lost_buffer.Free();
  KeptFile* const file = std::exchange(flight.lost_file, nullptr);
  if (file != nullptr && --file->reads == 0) CloseKept(*file);
  if (flight.request == nullptr) free_.push_back(index);  // else when it has been delivered
}

// A file that did not give the whole range is not kept: ReadPlainly opens what has its path now.
void UringReader::EndKept(Flight& flight) {
  KeptFile& file = *std::exchange(flight.file, nullptr);
  --file.reads;
  if (flight.chain.state() == Chain::State::kWhole) {
    file.open = true;
  } else {
    files_.Drop(file);
  }
  if (!file.kept && file.reads == 0) CloseKept(file);
}

// Only now and then: a file that makes room for another is closed by the open of that one.
void UringReader::CloseKept(KeptFile& file) {
  file.open = false;
  if (broken_ || !IsOurs()) return;
  constexpr int kNothing = -1;
  (void)io_uring_register_files_update(&ring_, static_cast<unsigned>(capacity()) + file.slot,
                                       &kNothing, 1);
}

ReaderCounts UringReader::counts() const {
  const ReaderCounts& plain = calls_->counts();
  return {counts_.calls + plain.calls, counts_.opens + plain.opens};
}

void UringReader::CloseFiles() {
  files_.DropAll([this](KeptFile& file) {
    if (file.open) CloseKept(file);
  });
}

// Once per request: a file that has outgrown the buffer again is read plainly.
bool UringReader::Enlarge(Flight& flight) {
  if (flight.enlarged) return false;
  flight.enlarged = true;
  struct stat info {};
  return stat(flight.request->path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         MakeRoom(flight.request->buffer, static_cast<uint64_t>(info.st_size)).ok();
}

// Sleeps until something completes, or for this long. If nothing has completed for a while, cancels
// reads that never will.
void UringReader::Wait(int64_t longest_ns) {
  io_uring_cqe* first = nullptr;
  __kernel_timespec longest{0, longest_ns};
  ++counts_.calls;
  const int entered = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &longest, nullptr);
  NoteEntry(entered);
  if (entered < 0 && entered != -ETIME && entered != -EINTR) Pause();
  // Measured by the clock, not by the call's result: signals may keep ending it early.
  const uint64_t now = NowNanoseconds();
  const uint64_t patience = broken_ ? kPatienceWhenBrokenNs : uint64_t{kPatienceNs};
  if (now - waiting_since_ < patience || io_uring_cq_ready(&ring_) > 0) return;
  if (!broken_) {
    // Querying its kind may hang, too; if there is a time limit, that decides.
    if (limit_ns_ == 0) CancelWhatIsNoFile();
  } else {
    for (uint32_t i = 0; i < flights_.size(); ++i) {
      if (flights_[i].chain.state() == Chain::State::kInKernel) GiveUpRead(i);
    }
  }
  waiting_since_ = now;
}

// A FIFO waits for its writer, a terminal for input. ReadPlainly will return the error.
void UringReader::CancelWhatIsNoFile() {
  for (uint32_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].chain.state() != Chain::State::kInKernel) continue;
    if (flights_[i].chain.kind() == ChainKind::kNext) continue;  // known to be a file
    struct stat info {};
    if (stat(flights_[i].request->path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) continue;
    CancelChain(i);
  }
  (void)Send();
}

void UringReader::Cancel(uint64_t user_data, unsigned flags) {
  QueueCancel(user_data, flags);
  (void)Send();
}

void UringReader::QueueCancel(uint64_t user_data, unsigned flags) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_cancel64(sqe, user_data, static_cast<int>(flags));
  sqe->user_data = kCancellation;
}

}  // namespace

Result<std::unique_ptr<Reader>> MakeUringReader(uint32_t reads, uint32_t files,
                                                std::shared_ptr<const FileCalls> calls,
                                                std::chrono::nanoseconds limit) {
  if (calls == nullptr) calls = std::make_shared<const FileCalls>();
  const uint32_t descriptors = DescriptorLimit();
  const uint32_t room = descriptors - std::min(descriptors, reads);
  auto reader =
      std::make_unique<UringReader>(reads, std::min(files, room), std::move(calls), limit);
  TRY(reader->Open());
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace stoker
