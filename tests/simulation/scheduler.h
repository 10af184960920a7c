// Scheduler: runs a program's threads as fibers on one thread and a virtual clock. Which of them
// goes on, and when time passes, is drawn from a seed, so that a seed repeats a run exactly.
//
// The program is not changed. thread_calls.cc defines the pthread and clock functions that it
// calls, and atomic_calls.cc those that a compiler calls for -fsanitize=thread; both call
// this class while a simulation runs. Each atomic operation and each lock is a scheduling point,
// before which another thread may run. Memory is sequentially consistent: errors that only a weaker
// order of memory shows are not found.
//
// Time passes by a little at each scheduling point, and when no thread can run it jumps to the next
// moment at which one can. A timed wait may end early (the clock jumps while others could run) and
// an untimed one without a cause (POSIX allows it). In half of the runs threads are suspended, for
// a time whose maximum differs from run to run: now and then, or three times in four that they come
// to some places in the program, which finds errors that need a delay exactly there. (Delays at
// chosen places: Li, Lu, Musuvathi, Nath, Padhye, "Efficient Scalable Thread-Safety-Violation
// Detection", SOSP 2019.)
//
// What ends a run as failed: Fail; a deadlock; a program that can only go on because a timed wait
// on a condition ends, which means that a wake-up was lost; more scheduling points than any run
// should need; use of freed memory (arena.h); a signal such as SIGSEGV; an exception that nobody
// catches; threads or memory that are left at the end. The process is ended, because a program that
// is wrong cannot be left.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simulation/fiber.h"

namespace stoker::testing {

enum class Policy : uint8_t {
  kRandom,      // any thread that can run, every so many points
  kPriorities,  // the one of highest priority; at a few random points the running one's becomes the
                // lowest. (PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized
                // Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.)
};

struct Schedule {
  uint64_t seed = 1;
  Policy policy = Policy::kRandom;
  bool trace = false;  // print each switch to standard error
  // To initialise what is made once for a process: memory is the system's, and may be kept.
  bool warm_up = false;
  uint64_t block = 0;    // print who allocates the block of this number (arena.h)
  std::string replay{};  // the command that repeats this run, for the report of a failure
};

struct ScheduleTotals {
  uint64_t points = 0, switches = 0, threads = 0;
  uint64_t clock_ns = 0;  // virtual
  uint64_t digest = 0;    // of all switches: equal for equal schedules
};

class Scheduler {
 public:
  static constexpr uint64_t kNever = ~uint64_t{0};

  // Null outside of Run.
  static Scheduler* Running() { return running_; }

  // Runs `body` and the threads that it starts. Returns when it has returned.
  static ScheduleTotals Run(const Schedule& schedule, const std::function<void()>& body);

  // Prints what was wrong and where each thread is, and ends the process with status 1.
  [[noreturn]] void Fail(const std::string& what);
  // The same for instrumented code, also outside of Run.
  [[noreturn]] static void FailMemory(const char* what, const void* address);

  // A number below n, from the seed. Precondition: n > 0.
  uint64_t Below(uint64_t n) { return Random() % n; }

  // Whether no thread that can run is passed over for long.
  bool is_fair() const {
    return schedule_.policy == Policy::kRandom && suspends_ == Suspends::kNever;
  }

  uint64_t now_ns() const { return now_ns_; }
  uint64_t points() const { return points_; }

  // A scheduling point.
  void Point() {
    now_ns_ += step_ns_;
    if (++points_ >= next_due_ || now_ns_ >= next_deadline_) HandleDue();
  }
  // `place`: the address of code that comes to a scheduling point next.
  void ComeTo(const void* place) {
    if (suspends_ == Suspends::kAtPlaces && IsSlow(place)) SuspendCurrent();
  }

  // For malloc_calls.cc.
  void NoteBlock(uint64_t number) {
    if (number == schedule_.block) PrintBlock();
  }

  // ---- For thread_calls.cc. Numbers of threads begin with 1.

  uint32_t Start(void* (*run)(void*), void* argument);
  void* Join(uint32_t thread);
  uint32_t self() const { return current_->number; }
  void Name(const char* name);
  bool HasEnded(uint32_t thread) const { return Of(thread).state == State::kEnded; }

  // `mutex` and `condition` are their addresses; a mutex is unlocked while its first eight bytes
  // are zero.
  void Lock(void* mutex);
  bool TryLock(void* mutex);
  void Unlock(void* mutex);
  // False: the deadline has passed.
  bool Wait(const void* condition, void* mutex, uint64_t deadline_ns);
  void Notify(const void* condition, bool all);
  void CheckNobodyWaits(const void* condition);
  // Stands for the world outside, such as storage: a program may wait for it.
  void SleepUntil(uint64_t deadline_ns);
  void PassTime();  // the clock is read: it may have taken a moment
  uint64_t cpu_ns(uint32_t thread) const;
  int64_t blocks() const { return current_->blocks; }

  // Whether the thread waits for a condition now, in a call that does not end by itself.
  bool WaitsForCondition(uint32_t thread) const {
    const Thread& it = Of(thread);
    return it.state == State::kBlocked && it.waits == Waits::kCondition;
  }

 private:
  enum class State : uint8_t { kReady, kBlocked, kEnded };
  enum class Waits : uint8_t { kMutex, kCondition, kThread, kClock };
  enum class Suspends : uint8_t { kNever, kAtTimes, kAtPlaces };

  struct Thread {
    uint32_t number = 0;
    State state = State::kReady;
    Waits waits = Waits::kMutex;  // while blocked
    const void* on = nullptr;     // while blocked: an address
    uint64_t deadline_ns = kNever;
    bool timed_out = false;
    int64_t priority = 0;
    int64_t blocks = 0;  // how often it has blocked
    uint64_t cpu_ns = 0;
    uint64_t resumed_ns = 0;
    size_t ready_at = 0;  // in ready_
    std::array<char, 16> name{};
    void* (*run)(void*) = nullptr;
    void* argument = nullptr;
    void* result = nullptr;
    void* stack = nullptr;
    std::unique_ptr<Fiber> fiber;
    // What C++'s run-time library keeps for each system thread.
    std::array<uint64_t, 2> exceptions{};
    int error_number = 0;
  };

  explicit Scheduler(const Schedule& schedule);
  ~Scheduler();

  uint64_t Random();
  void DrawPace();
  void DrawSuspensions();
  Thread& Of(uint32_t number) { return *threads_[number - 1]; }
  const Thread& Of(uint32_t number) const { return *threads_[number - 1]; }

  void HandleDue();
  void Disturb();
  bool IsSlow(const void* place);
  void SuspendCurrent();
  void ChangePriority();
  int64_t DrawPriority();
  void EndTimedWaits();
  void JumpClock();
  void Wake(Thread& thread, bool timed_out);
  void WakeAllOn(const void* on, Waits waits);
  bool Block(Waits waits, const void* on, uint64_t deadline_ns);
  bool Suspend(Waits waits, const void* on, uint64_t deadline_ns);
  Thread& Choose();
  void SwitchTo(Thread& next);
  static void RunThread(void* thread);
  [[noreturn]] void EndThread();
  void CheckEnd();
  void PrintThreads();
  void PrintBlock() const;
  std::string WaitsFor(const Thread& thread) const;

  static Scheduler* running_;

  const Schedule schedule_;
  uint64_t random_;
  uint64_t points_ = 0, next_due_ = 0;
  uint64_t now_ns_ = 0, next_deadline_ = kNever;
  uint64_t switches_ = 0, digest_ = 0;
  // Drawn once for each run.
  uint64_t step_ns_ = 1;         // that pass at each point
  uint64_t period_ = 1;          // kRandom: points between two choices, on average
  uint64_t longest_moment_ = 1;  // that passes while the clock is read, in nanoseconds
  uint64_t disturb_every_ = kNever;
  uint64_t next_disturb_ = kNever;
  Suspends suspends_ = Suspends::kNever;
  uint64_t longest_suspension_ = 1;  // in nanoseconds
  uint64_t suspend_every_ = 1;       // kAtTimes: points, on average
  uint64_t next_suspension_ = kNever;
  // kAtPlaces: those are slow whose number, in the order in which a run comes to them, leaves this
  // remainder.
  uint64_t slow_place_ = 0, place_period_ = 1;
  std::unordered_map<const void*, uint64_t> places_;  // their numbers
  std::vector<uint64_t> changes_;                     // kPriorities: points, the last one first
  int64_t lowest_ = 0;                                // priority so far
  uint64_t next_draw_ = kNever;                       // of priorities

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> ready_;
  Thread* current_ = nullptr;
  Fiber outside_;
  bool printing_ = false;  // where each thread is
  std::function<void()> body_;
};

}  // namespace stoker::testing
