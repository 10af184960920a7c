#include "tests/testing/storage/fake_ring.h"

#include <fcntl.h>
#include <liburing.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace stoker::testing {

namespace {

std::atomic<FakeRings*> current{nullptr};

// The members of an io_uring_sqe that are used.
struct Operation {
  explicit Operation(const io_uring_sqe& sqe)
      : code(sqe.opcode),
        flags(sqe.flags),
        file(code == IORING_OP_READ ? static_cast<uint32_t>(sqe.fd) : sqe.file_index - 1),
        open_flags(static_cast<int>(sqe.open_flags)),
        length(sqe.len),
        data(reinterpret_cast<void*>(sqe.addr)),
        offset(sqe.off),
        user_data(sqe.user_data) {
    if (code == IORING_OP_OPENAT) path = static_cast<const char*>(data);
  }

  uint8_t code, flags;
  uint32_t file;  // its direct descriptor
  int open_flags;
  uint32_t length;
  void* data;
  uint64_t offset;
  uint64_t user_data;
  std::string path;  // of an open
};

struct Completion {
  uint64_t user_data;
  int32_t result;
};

// Operations that are linked: each begins when the one before has ended.
struct LinkedOperations {
  std::deque<Operation> left;
  std::string path;  // of the file that the next one concerns, where that is known
};

struct OpenFile {
  int descriptor = -1;
  uint64_t position = 0;
  std::string path;
};

class FakeKernel {
 public:
  FakeKernel(FakeRings& rings, unsigned entries)
      : rings_(rings),
        calls_(rings.MakeCalls()),
        random_(rings.NextSeed()),
        sqes_(entries),
        array_(entries),
        cqes_(size_t{2} * entries) {
    rings_.Opened(1);
  }
  ~FakeKernel() {
    for (const LinkedOperations& chain : chains_) rings_.Lost(static_cast<int>(chain.left.size()));
    for (OpenFile& file : files_) CloseFile(file);
    rings_.Opened(-1);
  }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  void Map(io_uring& ring) {
    const auto entries = static_cast<unsigned>(sqes_.size());
    ring = {};
    ring.sq.khead = &sq_head_;
    ring.sq.ktail = &sq_tail_;
    ring.sq.kflags = &sq_flags_;
    ring.sq.array = array_.data();
    ring.sq.sqes = sqes_.data();
    ring.sq.ring_mask = entries - 1;
    ring.sq.ring_entries = entries;
    ring.sq.ring_ptr = this;
    ring.cq.khead = &cq_head_;
    ring.cq.ktail = &cq_tail_;
    ring.cq.kflags = &cq_flags_;
    ring.cq.cqes = cqes_.data();
    ring.cq.ring_mask = 2 * entries - 1;
    ring.cq.ring_entries = 2 * entries;
    ring.features = IORING_FEAT_RW_CUR_POS | IORING_FEAT_EXT_ARG | IORING_FEAT_LINKED_FILE;
    ring.ring_fd = -1;
  }

  int RegisterFiles(unsigned files) {
    files_.resize(files);
    return 0;
  }

  int UpdateFiles(unsigned first, std::span<const int> descriptors) {
    for (size_t i = 0; i < descriptors.size(); ++i) CloseFile(files_.at(first + i));
    return static_cast<int>(descriptors.size());
  }

  // Takes operations from the queue. Returns how many, or -errno.
  int Submit(io_uring& ring) {
    ring.sq.sqe_head = ring.sq.sqe_tail;
    sq_tail_ = ring.sq.sqe_tail;
    if (const int error = Enter(); error != 0) return error;
    unsigned queued = sq_tail_ - sq_head_;
    if (queued > 1 && Chance(rings_.faults().partly)) {
      ++rings_.counts().partly;
      queued = 1 + static_cast<unsigned>(random_() % (queued - 1));
    }
    for (unsigned i = 0; i < queued; ++i) Take(sqes_[sq_head_++ % sqes_.size()]);
    linked_ = false;  // a chain ends where the kernel stops taking
    Advance();
    Show();
    return static_cast<int>(queued);
  }

  int GetEvents() {
    if (const int error = Enter(); error != 0) return error;
    Advance();
    Show();
    return 0;
  }

  // Lets time pass: completes what can complete, at least one operation.
  int Wait(io_uring& ring) {
    if (const int taken = Submit(ring); taken < 0) return taken;
    for (int i = 0; i < 100 && cq_tail_ == cq_head_; ++i) {
      if (!Advance() && posted_.empty()) break;
      Show();
    }
    if (cq_tail_ != cq_head_) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // everything hangs
    return -ETIME;
  }

 private:
  bool Chance(double fraction) {
    return static_cast<double>(random_() >> 11) * 0x1.0p-53 < fraction;
  }

  bool dead() const { return rings_.faults().lives >= 0 && entered_ > rings_.faults().lives; }

  int Enter() {
    ++entered_;
    ++rings_.counts().entries;
    if (dead()) {
      ++rings_.counts().dead;
      if (!rings_.faults().loses) {  // the kernel goes on without being entered
        Advance();
        Show();
      }
      return -EBADF;
    }
    if (!Refused()) return 0;
    constexpr int kErrors[] = {-EINTR, -EAGAIN, -EBUSY};
    return kErrors[++rings_.counts().refused % 3];
  }

  // The first entry is refused without a draw: threads that are slow need few entries in an epoch,
  // and all of them may be lucky.
  bool Refused() {
    const double refused = rings_.faults().refused;
    return refused > 0 && (entered_ == 1 || Chance(refused));
  }

  void Take(const io_uring_sqe& sqe) {
    if (sqe.opcode == IORING_OP_ASYNC_CANCEL) return Cancel(sqe);
    if (!linked_) chains_.emplace_back();
    LinkedOperations& chain = chains_.back();
    const Operation& operation = chain.left.emplace_back(sqe);
    if (!operation.path.empty()) chain.path = operation.path;
    if (!linked_ && operation.path.empty()) chain.path = files_.at(operation.file).path;
    linked_ = (sqe.flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK)) != 0;
  }

  // Cancels only operations that have begun: the first one of a chain.
  void Cancel(const io_uring_sqe& sqe) {
    int found = 0;
    for (LinkedOperations& chain : chains_) {
      const bool any = (sqe.cancel_flags & IORING_ASYNC_CANCEL_ANY) != 0;
      if (chain.left.empty() || !Hangs(chain) || !rings_.faults().cancels) continue;
      if (!any && chain.left.front().user_data != sqe.addr) continue;
      ++found;
      ++rings_.counts().cancelled;
      End(chain, -ECANCELED);
    }
    posted_.push_back({sqe.user_data, found > 0 ? 0 : -ENOENT});
  }

  bool Hangs(const LinkedOperations& chain) const {
    return rings_.faults().hangs && rings_.faults().hangs(chain.path) &&
           chain.left.front().code != IORING_OP_CLOSE;
  }

  // Runs operations of the chains, in any order. Returns whether any could proceed.
  bool Advance() {
    if (dead() && rings_.faults().loses) return false;
    bool could = false;
    std::shuffle(chains_.begin(), chains_.end(), random_);
    for (LinkedOperations& chain : chains_) {
      while (!chain.left.empty() && !Hangs(chain)) {
        could = true;
        if (Late()) break;
        End(chain, Do(chain.left.front()));
      }
    }
    std::erase_if(chains_, [](const LinkedOperations& chain) { return chain.left.empty(); });
    return could;
  }

  bool Late() {
    const bool late = Chance(rings_.faults().late);
    if (late) ++rings_.counts().late;
    return late;
  }

  // Ends the chain's first operation.
  void End(LinkedOperations& chain, int32_t result) {
    const Operation ended = std::move(chain.left.front());
    chain.left.pop_front();
    posted_.push_back({ended.user_data, result});
    const bool read_less =
        ended.code == IORING_OP_READ && result < static_cast<int32_t>(ended.length);
    if ((ended.flags & IOSQE_IO_LINK) == 0 || (result >= 0 && !read_less)) return;
    for (const Operation& never : std::exchange(chain.left, {})) {
      posted_.push_back({never.user_data, -ECANCELED});
    }
  }

  int32_t Do(const Operation& operation) {
    OpenFile& file = files_.at(operation.file);
    switch (operation.code) {
      case IORING_OP_OPENAT:
        return Open(file, operation);
      case IORING_OP_READ:
        return Read(file, operation);
      case IORING_OP_CLOSE:
        CloseFile(file);
        return 0;
      default:
        return -EINVAL;
    }
  }

  // The read does not block, so that it may meet EAGAIN.
  int32_t Open(OpenFile& file, const Operation& operation) {
    const int flags = operation.open_flags | O_NONBLOCK;
    const int descriptor = calls_->Open(operation.path.c_str(), flags);
    if (descriptor < 0) return descriptor;
    CloseFile(file);
    file = {descriptor, 0, operation.path};
    return 0;
  }

  int32_t Read(OpenFile& file, const Operation& operation) const {
    if (file.descriptor < 0) return -EBADF;
    const bool from_position = operation.offset == ~uint64_t{0};
    const uint64_t offset = from_position ? file.position : operation.offset;
    const int64_t n = calls_->Read(file.descriptor, operation.data, operation.length, offset);
    if (n > 0 && from_position) file.position += static_cast<uint64_t>(n);
    return static_cast<int32_t>(n);
  }

  void CloseFile(OpenFile& file) {
    if (file.descriptor >= 0) (void)calls_->Close(file.descriptor);
    file = {};
  }

  // Makes completions visible, in any order.
  void Show() {
    std::shuffle(posted_.begin(), posted_.end(), random_);
    std::vector<Completion> later;
    for (const Completion& completion : posted_) {
      if (cq_tail_ - cq_head_ == cqes_.size() || Late()) {
        later.push_back(completion);
        continue;
      }
      io_uring_cqe& cqe = cqes_[cq_tail_++ % cqes_.size()];
      cqe.user_data = completion.user_data;
      cqe.res = completion.result;
    }
    posted_ = std::move(later);
  }

  FakeRings& rings_;
  const std::shared_ptr<const FileCalls> calls_;
  std::mt19937_64 random_;
  std::vector<io_uring_sqe> sqes_;
  std::vector<unsigned> array_;
  std::vector<io_uring_cqe> cqes_;
  unsigned sq_head_ = 0, sq_tail_ = 0, sq_flags_ = 0, cq_head_ = 0, cq_tail_ = 0, cq_flags_ = 0;
  int64_t entered_ = 0;
  bool linked_ = false;
  std::vector<OpenFile> files_;
  std::vector<LinkedOperations> chains_;
  std::vector<Completion> posted_;  // and not yet visible
};

FakeKernel& KernelOf(io_uring* ring) { return *static_cast<FakeKernel*>(ring->sq.ring_ptr); }

}  // namespace

FakeRings::FakeRings(RingFaults faults, std::function<std::shared_ptr<const FileCalls>()> calls)
    : faults_(std::move(faults)), calls_(std::move(calls)) {
  current = this;
}

FakeRings::~FakeRings() { current = nullptr; }

}  // namespace stoker::testing

using ::stoker::testing::FakeKernel;
using ::stoker::testing::KernelOf;

extern "C" {

int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned /*flags*/) {
  ::stoker::testing::FakeRings* const rings = ::stoker::testing::current;
  if (rings == nullptr) return -ENOSYS;
  (new FakeKernel(*rings, std::bit_ceil(entries)))->Map(*ring);  // until io_uring_queue_exit
  return 0;
}

void io_uring_queue_exit(io_uring* ring) { delete &KernelOf(ring); }

io_uring_probe* io_uring_get_probe_ring(io_uring* /*ring*/) {
  constexpr size_t kOps = IORING_OP_LAST;
  const size_t bytes = sizeof(io_uring_probe) + kOps * sizeof(io_uring_probe_op);
  auto* const probe = static_cast<io_uring_probe*>(std::calloc(1, bytes));
  probe->last_op = kOps - 1;
  for (size_t i = 0; i < kOps; ++i) probe->ops[i].flags = IO_URING_OP_SUPPORTED;
  return probe;
}

void io_uring_free_probe(io_uring_probe* probe) { std::free(probe); }

int io_uring_register_files_sparse(io_uring* ring, unsigned files) {
  return KernelOf(ring).RegisterFiles(files);
}

int io_uring_register_files_update(io_uring* ring, unsigned first, const int* files,
                                   unsigned count) {
  return KernelOf(ring).UpdateFiles(first, {files, count});
}

int io_uring_register_iowq_max_workers(io_uring* /*ring*/, unsigned* /*most*/) { return 0; }

int io_uring_submit(io_uring* ring) { return KernelOf(ring).Submit(*ring); }

int io_uring_get_events(io_uring* ring) { return KernelOf(ring).GetEvents(); }

int io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** /*first*/, unsigned /*wait*/,
                                     __kernel_timespec* /*longest*/, sigset_t* /*signals*/) {
  return KernelOf(ring).Wait(*ring);
}

}  // extern "C"
