#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "io/readers/reader.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Makes io_uring_setup fail for this thread from now on, as a container's seccomp profile does.
bool ForbidUring(uint32_t error_number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void ExpectPreadIsChosen(uint32_t error_number, Code code, const std::string& words) {
  std::thread([&] {
    if (!ForbidUring(error_number)) GTEST_SKIP() << "seccomp is not to be had";
    const Result<std::unique_ptr<Reader>> uring = MakeUringReader(8);
    ASSERT_FALSE(uring.ok());
    EXPECT_EQ(uring.error().code, code);
    EXPECT_THAT(uring.error().ToString(), HasSubstr(words));
    EXPECT_EQ(ChooseReader(ReaderKind::kUring).error().code, code);
    const Result<ReaderChoice> chosen = ChooseReader(ReaderKind::kAuto);
    ASSERT_TRUE(chosen.ok());
    EXPECT_EQ(chosen->kind, ReaderKind::kPread);
    EXPECT_THAT(chosen->reason, StartsWith("pread: "));
    EXPECT_THAT(chosen->reason, HasSubstr(words));
  }).join();
}

TEST(ChooseReader, FallsBackToPreadWithoutIoUring) {
  ExpectPreadIsChosen(EPERM, Code::kPermissionDenied, "io_uring is not allowed here (EPERM");
  ExpectPreadIsChosen(ENOSYS, Code::kUnimplemented, "there is no io_uring here (ENOSYS");
  ExpectPreadIsChosen(ENOMEM, Code::kResourceExhausted, "no memory may be locked");
  ExpectPreadIsChosen(EINVAL, Code::kUnimplemented, "Linux 5.19");
}

TEST(ChooseReader, ReportsItsMeasurementAndLeavesNoFile) {
  if (Result<std::unique_ptr<Reader>> uring = MakeUringReader(8); !uring.ok()) {
    GTEST_SKIP() << uring.error().ToString();
  }
  const testing::TempFolder folder;
  setenv("TMPDIR", folder.Path("").c_str(), 1);
  const Result<ReaderChoice> chosen = ChooseReader(ReaderKind::kAuto);
  unsetenv("TMPDIR");
  ASSERT_TRUE(chosen.ok());
  EXPECT_NE(chosen->kind, ReaderKind::kAuto);
  EXPECT_THAT(chosen->reason,
              StartsWith(chosen->kind == ReaderKind::kPread ? "pread" : "io_uring"));
  EXPECT_THAT(chosen->reason, HasSubstr(" us a read against pread's "));
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("")));
}

TEST(ChooseReader, WorksWithoutATemporaryFile) {
  if (Result<std::unique_ptr<Reader>> uring = MakeUringReader(8); !uring.ok()) {
    GTEST_SKIP() << uring.error().ToString();
  }
  setenv("TMPDIR", "/nowhere", 1);
  const Result<ReaderChoice> chosen = ChooseReader(ReaderKind::kAuto);
  unsetenv("TMPDIR");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->kind, ReaderKind::kUring);
  EXPECT_THAT(chosen->reason, HasSubstr("not measured"));
}

TEST(ChooseReader, HonoursAnExplicitKind) {
  const Result<ReaderChoice> pread = ChooseReader(ReaderKind::kPread);
  ASSERT_TRUE(pread.ok());
  EXPECT_EQ(pread->kind, ReaderKind::kPread);
  const Result<ReaderChoice> uring = ChooseReader(ReaderKind::kUring);
  EXPECT_EQ(uring.ok(), MakeUringReader(8).ok());
  if (uring.ok()) {
    EXPECT_EQ(uring->kind, ReaderKind::kUring);
  }
}

TEST(MakeReader, RefusesDepthsOutOfRange) {
  for (ReaderKind kind : {ReaderKind::kPread, ReaderKind::kUring}) {
    for (uint32_t depth : {0u, 1025u, ~0u}) {
      EXPECT_EQ(MakeReader(kind, depth).error().code, Code::kInvalidArgument);
    }
  }
  for (uint32_t depth : {1u, 3u, 1000u, 1024u}) {
    Result<std::unique_ptr<Reader>> reader = MakeReader(ReaderKind::kUring, depth);
    if (!reader.ok()) GTEST_SKIP() << reader.error().ToString();
    EXPECT_EQ((*reader)->capacity(), depth);
    EXPECT_STREQ((*reader)->name(), "uring");
  }
}

TEST(MakeReader, ErrorNamesALowLimitOfOpenFiles) {
  if (Result<std::unique_ptr<Reader>> uring = MakeUringReader(8); !uring.ok()) {
    GTEST_SKIP() << uring.error().ToString();
  }
  const int code = testing::ExitCodeOfChild([] {
    const rlimit low{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 1;
    const Result<std::unique_ptr<Reader>> reader = MakeUringReader(128);
    const bool refused = !reader.ok() && reader.error().code == Code::kResourceExhausted &&
                         reader.error().ToString().find("ulimit -n") != std::string::npos;
    return refused && MakeUringReader(64).ok() ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST(ChooseReader, ATimeLimitNeedsTheRing) {
  const Result<ReaderChoice> pread = ChooseReader(ReaderKind::kPread, 8, /*limited=*/true);
  ASSERT_FALSE(pread.ok());
  EXPECT_EQ(pread.error().code, Code::kInvalidArgument);
  EXPECT_THAT(pread.error().ToString(), HasSubstr("read_timeout needs io_uring"));
  const Result<ReaderChoice> automatic = ChooseReader(ReaderKind::kAuto, 8, /*limited=*/true);
  if (MakeUringReader(8).ok()) {
    ASSERT_TRUE(automatic.ok());
    EXPECT_EQ(automatic->kind, ReaderKind::kUring);
  } else {
    ASSERT_FALSE(automatic.ok());
    EXPECT_THAT(automatic.error().ToString(), HasSubstr("read_timeout needs io_uring"));
  }
}

}  // namespace
}  // namespace stoker
