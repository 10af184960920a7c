// Lifecycle lets work run between Start and Halt, and never after Stop.
#include "engine/production/lifecycle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stoker {
namespace {

class LifecycleTest : public ::testing::Test {
 protected:
  std::vector<std::string> calls_;
  int slow_ = 0;  // how often work in progress takes longer than an interrupt may wait
  Status begins_;
  Lifecycle lifecycle_{{.begin =
                            [this] {
                              calls_.emplace_back("begin");
                              return begins_;
                            },
                        .give_up =
                            [this] {
                              EXPECT_TRUE(lifecycle_.ending());
                              calls_.emplace_back("give up");
                            },
                        .no_more =
                            [this] {
                              calls_.emplace_back("no more");
                              return true;
                            },
                        .complete =
                            [this] {
                              calls_.emplace_back("complete");
                              return slow_-- <= 0;
                            }}};
};

TEST_F(LifecycleTest, WorkBeginsOnceAndEndsInOrder) {
  EXPECT_TRUE(lifecycle_.Start().ok());
  EXPECT_TRUE(lifecycle_.Start().ok());
  EXPECT_FALSE(lifecycle_.ending());
  EXPECT_TRUE(lifecycle_.Halt().ok());
  EXPECT_EQ(calls_, (std::vector<std::string>{"begin", "give up", "no more", "complete"}));
  calls_.clear();
  EXPECT_TRUE(lifecycle_.TryHalt()) << "nothing runs";
  EXPECT_EQ(calls_, (std::vector<std::string>{"give up", "complete"}));
  bool set_up = false;
  EXPECT_TRUE(lifecycle_.Restart([&] { set_up = true; }).ok());
  EXPECT_TRUE(set_up);
  EXPECT_TRUE(lifecycle_.Start().ok());
  EXPECT_FALSE(lifecycle_.ending());
}

TEST_F(LifecycleTest, WorkThatCannotBeginIsNotEnded) {
  begins_ = Error{Code::kResourceExhausted, "no threads"};
  EXPECT_EQ(lifecycle_.Start().error().cause, "no threads");
  begins_ = {};
  EXPECT_TRUE(lifecycle_.Start().ok()) << "it is tried again";
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(LifecycleTest, AnInterruptEndsTheWaitAndHaltGoesOn) {
  ASSERT_TRUE(lifecycle_.Start().ok());
  slow_ = 3;
  const Status interrupted = lifecycle_.Halt([] { return true; });
  EXPECT_EQ(interrupted.error().code, Code::kCancelled);
  EXPECT_EQ(interrupted.error().cause, "the wait was interrupted");
  EXPECT_TRUE(lifecycle_.Halt([] { return false; }).ok());
  EXPECT_EQ(slow_, -1) << "it asked until the work had ended";
}

TEST_F(LifecycleTest, NothingBeginsAfterStop) {
  ASSERT_TRUE(lifecycle_.Start().ok());
  bool cancelled = false;
  lifecycle_.Stop([&] {
    EXPECT_FALSE(lifecycle_.stopped()) << "what is delivered is cancelled first";
    cancelled = true;
  });
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(lifecycle_.stopped());
  EXPECT_EQ(lifecycle_.Start().error().code, Code::kCancelled);
  EXPECT_EQ(lifecycle_.Restart([] { FAIL(); }).error().code, Code::kCancelled);
  EXPECT_TRUE(lifecycle_.Halt().ok());
  EXPECT_EQ(calls_.back(), "complete");
}

// Halt on one thread, Stop on another, as Ctrl-C does it.
TEST_F(LifecycleTest, AStopDuringAHaltIsTheCauseOfItsEnd) {
  slow_ = 1;
  const Status halted = lifecycle_.Halt([this] {
    lifecycle_.Stop([] {});
    return true;
  });
  EXPECT_EQ(halted.error().cause, "the loader was stopped");
}

}  // namespace
}  // namespace stoker
