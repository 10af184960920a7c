#include "bindings/cli/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace stoker {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine with two devices; little is known about the second one.
DoctorReport MadeUpReport() {
  DoctorReport report;
  report.version = "1.2.3";
  report.memlock_bytes = 8 << 20;
  report.reader_reason = "uring: as fast as pread";
  report.libraries = {{"zlib", "1.2.13"}};
  report.visible_devices = "1,0";
  report.cuda.built = true;
  report.cuda.runtime = 13000;
  report.cuda.min_driver = 13000;
  report.cuda.driver = 13020;
  report.cuda.devices = {{.ordinal = 0,
                          .name = "Some GPU",
                          .memory_bytes = uint64_t{80} << 30,
                          .capability = 90,
                          .bus = "0000:3B:00.0",
                          .link_gb_s = 4,
                          .best_link_gb_s = 31.5,
                          .numa_node = 1},
                         {.ordinal = 1, .name = "Other GPU", .bus = "0000:5E:00.0"}};
  return report;
}

TEST(DoctorTest, ExaminesThisMachine) {
  const DoctorReport report = Examine().value();
  EXPECT_GE(report.cores, 1);
  EXPECT_GT(report.available_memory, 0u);
  EXPECT_GT(report.memory_budget, 0u);
  EXPECT_LE(report.memory_budget, report.available_memory);
  EXPECT_TRUE(report.reader == "uring" || report.reader == "pread") << report.reader;
  EXPECT_NE(report.simd, "");
  for (const auto& [name, version, found] : report.libraries) {
    EXPECT_THAT(version, ::testing::MatchesRegex("[0-9]+\\.[0-9]+(\\.[0-9]+)?")) << name;
  }
  // There is a device, or a reason why there is none; never both.
  EXPECT_EQ(report.cuda.devices.empty(), !report.cuda.why_not.empty());
  EXPECT_EQ(report.cuda.built, report.cuda.runtime > 0);
}

TEST(DoctorTest, TextDescribesDriverAndDevices) {
  const std::string text = DoctorText(MadeUpReport());
  EXPECT_THAT(text, HasSubstr("stoker 1.2.3\n"));
  EXPECT_THAT(text, HasSubstr("driver         CUDA 13.2; CUDA 13.0 is the least that is needed\n"));
  EXPECT_THAT(text, HasSubstr("cuda:0         Some GPU, 80.0 GiB, capability 9.0\n"));
  EXPECT_THAT(text, HasSubstr("bus 0000:3B:00.0, NUMA node 1\n"));
  EXPECT_THAT(text,
              HasSubstr("link 4.0 GB/s each way at present; 31.5 GB/s when it is not idle\n"));
  EXPECT_THAT(text, HasSubstr("bus 0000:5E:00.0, NUMA node unknown\n"));
  EXPECT_THAT(text, HasSubstr("link unknown\n"));
  EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES=\"1,0\"\n"));
  EXPECT_THAT(text, HasSubstr("memlock        8.0 MiB\n"));
  EXPECT_THAT(text, Not(HasSubstr("no device")));
}

TEST(DoctorTest, JsonDescribesDriverAndDevices) {
  const json report = json::parse(DoctorJson(MadeUpReport()));
  EXPECT_EQ(report["memlock_bytes"], 8 << 20);
  EXPECT_EQ(report["libraries"]["zlib"], "1.2.13");
  const json& cuda = report["cuda"];
  EXPECT_EQ(cuda["driver"], "13.2");
  EXPECT_EQ(cuda["visible_devices"], "1,0");
  EXPECT_EQ(cuda["why_not"], nullptr);
  EXPECT_EQ(cuda["registered_bytes"], 0);
  EXPECT_EQ(cuda["devices"][0]["capability"], "9.0");
  EXPECT_EQ(cuda["devices"][0]["link_gb_s"], 4);
  EXPECT_EQ(cuda["devices"][0]["numa_node"], 1);
  EXPECT_EQ(cuda["devices"][1]["link_gb_s"], nullptr);
  EXPECT_EQ(cuda["devices"][1]["numa_node"], nullptr);
}

TEST(DoctorTest, ColoursWhatIsGoodAndWhatIsMissing) {
  DoctorReport report = MadeUpReport();
  report.reader = "uring";
  report.libraries.push_back({"libcurl", "not found: remote objects cannot be read", false});
  const std::string text = DoctorText(report, /*colour=*/true);
  EXPECT_THAT(text, HasSubstr("\x1b[1mstoker 1.2.3\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("reader         \x1b[32muring: as fast as pread\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("libraries      \x1b[33mzlib 1.2.13, libcurl not found: "));
  EXPECT_THAT(text, HasSubstr("memlock        8.0 MiB\n"));
  EXPECT_THAT(DoctorText(report), Not(HasSubstr("\x1b")));
  const std::regex codes("\x1b\\[[0-9]+m");
  EXPECT_EQ(std::regex_replace(text, codes, ""), DoctorText(report));
}

TEST(DoctorTest, WithoutCudaSaysWhyThereIsNoDevice) {
  DoctorReport report;
  report.cuda.why_not = "stoker was built without CUDA";
  const std::string text = DoctorText(report);
  EXPECT_THAT(text, HasSubstr("no device      stoker was built without CUDA\n"));
  EXPECT_THAT(text, HasSubstr("memlock        no limit\n"));
  EXPECT_THAT(text, Not(HasSubstr("driver")));
  const json cuda = json::parse(DoctorJson(report))["cuda"];
  EXPECT_EQ(cuda["built"], false);
  for (const char* member : {"runtime", "least_driver", "driver", "visible_devices"}) {
    EXPECT_EQ(cuda[member], nullptr) << member;
  }
  EXPECT_EQ(cuda["devices"], json::array());
}

}  // namespace
}  // namespace stoker
