#include "tests/simulation/scheduler.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "tests/simulation/arena.h"

namespace stoker::testing {

namespace {

constexpr uint64_t kMostPoints = 20'000'000;  // runs need a few hundred thousand at most
constexpr uint64_t kMostAlone = 20'000;       // points until priorities are drawn again

// In the first bytes of a pthread_mutex_t; zero if it is unlocked.
struct Mutex {
  uint32_t owner;  // a thread's number
  uint32_t is_awaited;
};

Mutex& MutexAt(void* address) { return *static_cast<Mutex*>(address); }

// A function's name without its parameters, from what backtrace gives; empty for code of others.
std::string FunctionAt(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return "";
  int status = 0;
  char* const plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  if (plain == nullptr) return "";
  std::string name = plain;
  std::free(plain);
  const bool ours = name.find("stoker::") != std::string::npos;
  if (!ours || name.find("::Scheduler::") != std::string::npos) return "";
  if (name.rfind("std::", 0) == 0 || name.find("std::__") != std::string::npos) return "";
  const size_t end = name.find('(', name.rfind("(anonymous namespace)") == std::string::npos
                                        ? 0
                                        : name.rfind("(anonymous namespace)") + 1);
  return name.substr(0, end);
}

void PrintCalls() {
  std::array<void*, 48> calls{};
  const int count = backtrace(calls.data(), static_cast<int>(calls.size()));
  std::string before;
  for (int i = 0; i < count; ++i) {
    const std::string name = FunctionAt(calls[static_cast<size_t>(i)]);
    if (!name.empty() && name != before) std::fprintf(stderr, "      %s\n", name.c_str());
    before = name;
  }
}

void OnSignal(int number) {
  Arena::TurnOff();
  const std::string what = std::string("signal ") + strsignal(number);
  if (Scheduler* const running = Scheduler::Running()) running->Fail(what);
  std::fprintf(stderr, "%s outside of a simulation\n", what.c_str());
  std::_Exit(1);
}

void OnTerminate() {
  Scheduler* const running = Scheduler::Running();
  if (running == nullptr) std::abort();
  std::string what = "std::terminate was called";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      what = std::string("an exception that nobody catches: ") + exception.what();
    } catch (...) {
      what = "an exception that nobody catches";
    }
  }
  running->Fail(what);
}

void CatchCrashes() {
  static std::array<char, size_t{64} << 10> stack;
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(number, &action, nullptr);
  }
  std::set_terminate(&OnTerminate);
}

// Stacks outlive a run, so that the next one need not map them.
StackPool& Stacks() {
  static StackPool pool;
  return pool;
}

}  // namespace

Scheduler* Scheduler::running_ = nullptr;

// ---- A run

Scheduler::Scheduler(const Schedule& schedule)
    : schedule_(schedule),
      random_(schedule.seed * 2 + (schedule.policy == Policy::kRandom ? 0 : 1)) {
  DrawPace();
}

Scheduler::~Scheduler() {
  for (const auto& thread : threads_) Stacks().Give(thread->stack);
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t Scheduler::Random() {
  uint64_t z = random_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void Scheduler::DrawPace() {
  now_ns_ = 1'000'000'000;
  step_ns_ = uint64_t{1} << Below(10);
  period_ = uint64_t{1} << Below(8);
  longest_moment_ = uint64_t{1} << Below(18);
  if (schedule_.warm_up) period_ = 1000;
  if (Below(2) == 0) disturb_every_ = uint64_t{1} << (6 + Below(8));
  next_disturb_ = disturb_every_ == kNever ? kNever : 1 + Below(2 * disturb_every_);
  DrawSuspensions();
  if (schedule_.policy != Policy::kPriorities) return;
  next_draw_ = kMostAlone;
  const uint64_t length = uint64_t{1} << (8 + Below(9));
  changes_.resize(Below(12));
  for (uint64_t& change : changes_) change = Below(length);
  std::ranges::sort(changes_, std::greater<>());
}

void Scheduler::DrawSuspensions() {
  const uint64_t kind = Below(4);
  longest_suspension_ = uint64_t{1} << (14 + Below(15));
  if (kind == 0) {
    suspends_ = Suspends::kAtTimes;
    suspend_every_ = uint64_t{1} << (4 + Below(8));
    next_suspension_ = 1 + Below(2 * suspend_every_);
  } else if (kind == 1) {
    suspends_ = Suspends::kAtPlaces;
    place_period_ = uint64_t{1} << (2 + Below(5));
    slow_place_ = Below(place_period_);
  }
}

ScheduleTotals Scheduler::Run(const Schedule& schedule, const std::function<void()>& body) {
  CatchCrashes();
  Arena::Reset();
  Scheduler scheduler(schedule);
  scheduler.body_ = body;
  running_ = &scheduler;
  const auto run_body = [](void* self) -> void* {
    static_cast<Scheduler*>(self)->body_();
    return nullptr;
  };
  const uint32_t first = scheduler.Start(run_body, &scheduler);
  scheduler.current_ = &scheduler.Of(first);
  scheduler.Name("main");
  if (!schedule.warm_up) Arena::TurnOn();
  Fiber::Switch(scheduler.outside_, *scheduler.current_->fiber);
  Arena::TurnOff();
  running_ = nullptr;
  return {.points = scheduler.points_,
          .switches = scheduler.switches_,
          .threads = scheduler.threads_.size(),
          .clock_ns = scheduler.now_ns_,
          .digest = scheduler.digest_ ^ scheduler.points_ ^ scheduler.now_ns_ << 20};
}

// ---- Threads

uint32_t Scheduler::Start(void* (*run)(void*), void* argument) {
  const Arena::Off system_memory;
  threads_.push_back(std::make_unique<Thread>());
  ready_.reserve(threads_.capacity());  // Wake is called where malloc is the program's
  Thread& thread = *threads_.back();
  thread.number = static_cast<uint32_t>(threads_.size());
  thread.run = run;
  thread.argument = argument;
  thread.stack = Stacks().Take();
  thread.fiber = std::make_unique<Fiber>(thread.stack, &Scheduler::RunThread, &thread);
  thread.priority = DrawPriority();
  thread.ready_at = ready_.size();
  ready_.push_back(&thread);
  next_due_ = 0;
  return thread.number;
}

void Scheduler::RunThread(void* thread) {
  Thread& self = *static_cast<Thread*>(thread);
  Scheduler& scheduler = *running_;
  self.resumed_ns = scheduler.now_ns_;
  self.result = self.run(self.argument);
  scheduler.EndThread();
}

void Scheduler::EndThread() {
  Thread& self = *current_;
  if (self.number == 1) CheckEnd();
  self.state = State::kEnded;
  ready_[self.ready_at] = ready_.back();
  ready_[self.ready_at]->ready_at = self.ready_at;
  ready_.pop_back();
  WakeAllOn(&self, Waits::kThread);
  if (self.number == 1) {
    Fiber::Switch(*self.fiber, outside_);
  } else {
    SwitchTo(Choose());
  }
  std::abort();
}

void Scheduler::CheckEnd() {
  for (const auto& thread : threads_) {
    if (thread->number != 1 && thread->state != State::kEnded) Fail("a thread is left at the end");
  }
  const ArenaUse use = Arena::use();
  if (use.blocks == 0) return;
  Fail(std::to_string(use.blocks) + " blocks of memory, of " + std::to_string(use.bytes) +
       " bytes, are left at the end; the first was the " + std::to_string(Arena::FirstLeft()) +
       "th that was allocated (--block)");
}

void* Scheduler::Join(uint32_t number) {
  Point();
  Thread& thread = Of(number);
  while (thread.state != State::kEnded) Block(Waits::kThread, &thread, kNever);
  return thread.result;
}

void Scheduler::Name(const char* name) {
  std::strncpy(current_->name.data(), name, current_->name.size() - 1);
}

// ---- Which thread goes on

// Called at a point at which something is due.
void Scheduler::HandleDue() {
  if (points_ >= kMostPoints) Fail("it does not end");
  if (now_ns_ >= next_deadline_) EndTimedWaits();
  if (points_ >= next_disturb_) Disturb();
  if (points_ >= next_suspension_) return SuspendCurrent();
  if (points_ < next_due_) return;
  if (schedule_.policy == Policy::kRandom) {
    next_due_ = points_ + 1 + Below(2 * period_);
  } else {
    ChangePriority();
  }
  next_due_ = std::min(next_due_, next_suspension_);
  SwitchTo(Choose());
}

// Now and then all priorities are drawn again: else threads that poll for one of lower priority
// would never end.
void Scheduler::ChangePriority() {
  while (!changes_.empty() && points_ >= changes_.back()) {
    changes_.pop_back();
    current_->priority = --lowest_;
  }
  if (points_ >= next_draw_) {
    for (const auto& thread : threads_) thread->priority = DrawPriority();
    next_draw_ = points_ + kMostAlone;
  }
  next_due_ = changes_.empty() ? next_draw_ : std::min(next_draw_, changes_.back());
}

int64_t Scheduler::DrawPriority() { return static_cast<int64_t>(Below(1'000'000)); }

// A wait without a time limit ends without a cause, or time passes while threads could run.
void Scheduler::Disturb() {
  next_disturb_ = points_ + 1 + Below(2 * disturb_every_);
  if (Below(2) == 0 && next_deadline_ != kNever) {
    now_ns_ = std::max(now_ns_, next_deadline_);
    EndTimedWaits();
    return;
  }
  Thread& any = *threads_[Below(threads_.size())];
  if (any.state == State::kBlocked && any.waits == Waits::kCondition) Wake(any, false);
}

// Numbers places in the order in which they are seen, because a seed should mean the same wherever
// the program is loaded.
bool Scheduler::IsSlow(const void* place) {
  const Arena::Off system_memory;
  const uint64_t number = places_.try_emplace(place, places_.size()).first->second;
  return number % place_period_ == slow_place_ && Below(4) != 0;
}

void Scheduler::SuspendCurrent() {
  if (suspends_ == Suspends::kAtTimes) next_suspension_ = points_ + 1 + Below(2 * suspend_every_);
  Suspend(Waits::kClock, nullptr, now_ns_ + 1 + Below(longest_suspension_));
}

Scheduler::Thread& Scheduler::Choose() {
  while (ready_.empty()) JumpClock();
  if (schedule_.policy == Policy::kRandom) return *ready_[Below(ready_.size())];
  return **std::ranges::max_element(ready_, {}, &Thread::priority);
}

void Scheduler::SwitchTo(Thread& next) {
  if (&next == current_) return;
  ++switches_;
  digest_ = (digest_ ^ (points_ << 8 | next.number)) * 0x9E3779B97F4A7C15;
  digest_ ^= digest_ >> 29;
  if (schedule_.trace) {
    std::fprintf(stderr, "%10llu %12.6f ms  %u %s -> %u %s\n",
                 static_cast<unsigned long long>(points_), static_cast<double>(now_ns_) / 1e6,
                 current_->number, current_->name.data(), next.number, next.name.data());
  }
  Thread& self = *current_;
  self.cpu_ns += now_ns_ - self.resumed_ns;
  self.error_number = errno;
  std::memcpy(self.exceptions.data(), abi::__cxa_get_globals(), sizeof(self.exceptions));
  std::memcpy(abi::__cxa_get_globals(), next.exceptions.data(), sizeof(next.exceptions));
  errno = next.error_number;
  next.resumed_ns = now_ns_;
  current_ = &next;
  Fiber::Switch(*self.fiber, *next.fiber);
  while (printing_) {
    PrintCalls();
    Fiber::Switch(*self.fiber, outside_);
  }
}

// ---- Waits

// Nothing can happen before the next deadline. The world outside is always a wait for the clock: if
// nobody waits for that, only time limits are left, and a program that needs them has lost a
// wake-up.
void Scheduler::JumpClock() {
  const auto is_blocked_on = [](Waits waits) {
    return [waits](const auto& thread) {
      return thread->state == State::kBlocked && thread->waits == waits;
    };
  };
  if (!std::ranges::any_of(threads_, is_blocked_on(Waits::kClock))) {
    Fail(next_deadline_ == kNever ? "no thread can go on"
                                  : "no thread can go on before a time limit: a wake-up is lost");
  }
  now_ns_ = std::max(now_ns_, next_deadline_);
  EndTimedWaits();
}

void Scheduler::EndTimedWaits() {
  next_deadline_ = kNever;
  for (const auto& thread : threads_) {
    if (thread->state != State::kBlocked || thread->deadline_ns == kNever) continue;
    if (thread->deadline_ns <= now_ns_) {
      Wake(*thread, true);
    } else {
      next_deadline_ = std::min(next_deadline_, thread->deadline_ns);
    }
  }
}

void Scheduler::Wake(Thread& thread, bool timed_out) {
  thread.state = State::kReady;
  thread.timed_out = timed_out;
  thread.deadline_ns = kNever;
  thread.ready_at = ready_.size();
  ready_.push_back(&thread);
  if (schedule_.policy == Policy::kPriorities) next_due_ = 0;
}

void Scheduler::WakeAllOn(const void* on, Waits waits) {
  for (const auto& thread : threads_) {
    if (thread->state == State::kBlocked && thread->on == on && thread->waits == waits) {
      Wake(*thread, false);
    }
  }
}

// Returns false if the deadline has passed.
bool Scheduler::Block(Waits waits, const void* on, uint64_t deadline_ns) {
  ++current_->blocks;
  return Suspend(waits, on, deadline_ns);
}

bool Scheduler::Suspend(Waits waits, const void* on, uint64_t deadline_ns) {
  Thread& self = *current_;
  self.state = State::kBlocked;
  self.waits = waits;
  self.on = on;
  self.deadline_ns = deadline_ns;
  next_deadline_ = std::min(next_deadline_, deadline_ns);
  ready_[self.ready_at] = ready_.back();
  ready_[self.ready_at]->ready_at = self.ready_at;
  ready_.pop_back();
  SwitchTo(Choose());
  return !self.timed_out;
}

void Scheduler::Lock(void* mutex) {
  Point();
  if (MutexAt(mutex).owner == current_->number) Fail("a thread locks a mutex that it holds");
  while (MutexAt(mutex).owner != 0) {
    MutexAt(mutex).is_awaited = 1;
    Block(Waits::kMutex, mutex, kNever);
  }
  MutexAt(mutex).owner = current_->number;
}

bool Scheduler::TryLock(void* mutex) {
  Point();
  if (MutexAt(mutex).owner != 0) return false;
  MutexAt(mutex).owner = current_->number;
  return true;
}

void Scheduler::Unlock(void* mutex) {
  if (MutexAt(mutex).owner != current_->number) Fail("a thread unlocks a mutex of another");
  const bool is_awaited = MutexAt(mutex).is_awaited != 0;
  MutexAt(mutex) = {};
  if (is_awaited) WakeAllOn(mutex, Waits::kMutex);
  Point();
}

bool Scheduler::Wait(const void* condition, void* mutex, uint64_t deadline_ns) {
  Point();
  if (MutexAt(mutex).owner != current_->number) Fail("a thread waits without its mutex");
  const bool is_awaited = MutexAt(mutex).is_awaited != 0;
  MutexAt(mutex) = {};
  if (is_awaited) WakeAllOn(mutex, Waits::kMutex);
  const bool in_time = Block(Waits::kCondition, condition, deadline_ns);
  while (MutexAt(mutex).owner != 0) {
    MutexAt(mutex).is_awaited = 1;
    Block(Waits::kMutex, mutex, kNever);
  }
  MutexAt(mutex).owner = current_->number;
  return in_time;
}

void Scheduler::Notify(const void* condition, bool all) {
  Point();
  if (all) return WakeAllOn(condition, Waits::kCondition);
  uint64_t waiting = 0;
  Thread* chosen = nullptr;
  for (const auto& thread : threads_) {
    const bool waits = thread->state == State::kBlocked && thread->on == condition &&
                       thread->waits == Waits::kCondition;
    if (waits && Below(++waiting) == 0) chosen = thread.get();
  }
  if (chosen != nullptr) Wake(*chosen, false);
}

void Scheduler::CheckNobodyWaits(const void* condition) {
  for (const auto& thread : threads_) {
    if (thread->state == State::kBlocked && thread->on == condition) {
      Fail("a condition is destroyed for which a thread waits");
    }
  }
}

void Scheduler::SleepUntil(uint64_t deadline_ns) {
  Point();
  if (deadline_ns > now_ns_) Block(Waits::kClock, nullptr, deadline_ns);
}

void Scheduler::PassTime() {
  now_ns_ += Below(longest_moment_);
  Point();
}

uint64_t Scheduler::cpu_ns(uint32_t number) const {
  const Thread& thread = Of(number);
  return thread.cpu_ns + (&thread == current_ ? now_ns_ - thread.resumed_ns : 0);
}

// ---- Failures

std::string Scheduler::WaitsFor(const Thread& thread) const {
  if (thread.state == State::kReady) return "can run";
  const std::string limit = thread.deadline_ns == kNever ? "" : ", with a time limit";
  switch (thread.waits) {
    case Waits::kMutex:
      return "waits for a mutex";
    case Waits::kCondition:
      return "waits for a condition" + limit;
    case Waits::kThread:
      return "waits for the end of a thread";
    case Waits::kClock:
      return "sleeps";
  }
  return "";
}

// Each prints its own calls, from its own stack.
void Scheduler::PrintThreads() {
  printing_ = true;
  Thread& failed = *current_;
  for (const auto& thread : threads_) {
    if (thread->state == State::kEnded) continue;
    std::fprintf(stderr, "  thread %u %s: %s\n", thread->number, thread->name.data(),
                 thread.get() == &failed && thread->state == State::kReady
                     ? "runs"
                     : WaitsFor(*thread).c_str());
    if (thread.get() == &failed) {
      PrintCalls();
    } else if (thread->fiber->begun()) {
      Fiber::Switch(outside_, *thread->fiber);
    }
  }
}

void Scheduler::PrintBlock() const {
  const Arena::Off system_memory;
  std::fprintf(stderr, "block %llu is allocated by thread %u %s:\n",
               static_cast<unsigned long long>(schedule_.block), current_->number,
               current_->name.data());
  PrintCalls();
}

void Scheduler::Fail(const std::string& what) {
  running_ = nullptr;
  Arena::TurnOff();
  std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(schedule_.seed),
              schedule_.policy == Policy::kRandom ? "random" : "priorities", what.c_str());
  std::printf("replay: %s\n", schedule_.replay.c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "at point %llu, %.6f ms:\n", static_cast<unsigned long long>(points_),
               static_cast<double>(now_ns_) / 1e6);
  PrintThreads();
  std::_Exit(1);
}

void Scheduler::FailMemory(const char* what, const void* address) {
  if (running_ != nullptr) running_->Fail(what);
  std::fprintf(stderr, "%s: %p, outside of a simulation\n", what, address);
  std::abort();
}

}  // namespace stoker::testing
