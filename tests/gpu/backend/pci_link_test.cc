#include "gpu/backend/pci_link.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class PciLinkTest : public ::testing::Test {
 protected:
  PciLinkTest() {
    root_ = ::testing::TempDir() + "/pci_link_test." +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(root_ + "/0000:3b:00.0");
  }
  ~PciLinkTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ + "/0000:3b:00.0/" + name) << text << "\n";
  }
  PciLink ReadLink() { return LinkOf("0000:3B:00.0", root_); }

  std::string root_;
};

TEST_F(PciLinkTest, ComputesTheBandwidthOfEachGeneration) {
  const struct {
    const char* speed;
    const char* width;
    double gb_s;
  } cases[] = {{"2.5 GT/s PCIe", "16", 4},
               {"5.0 GT/s PCIe", "1", 0.5},
               {"8.0 GT/s PCIe", "16", 16 * 128.0 / 130},
               {"16 GT/s", "8", 16 * 128.0 / 130},
               {"32.0 GT/s PCIe", "16", 64 * 128.0 / 130},
               {"64.0 GT/s PCIe", "16", 128 * 242.0 / 256}};
  for (const auto& one : cases) {
    Write("current_link_speed", one.speed);
    Write("current_link_width", one.width);
    EXPECT_DOUBLE_EQ(ReadLink().gb_s, one.gb_s) << one.speed;
    EXPECT_EQ(ReadLink().best_gb_s, 0);
  }
}

TEST_F(PciLinkTest, ReportsCurrentAndBestBandwidthAndNode) {
  Write("current_link_speed", "2.5 GT/s PCIe");
  Write("current_link_width", "16");
  Write("max_link_speed", "16.0 GT/s PCIe");
  Write("max_link_width", "16");
  Write("numa_node", "1");
  const PciLink link = ReadLink();
  EXPECT_DOUBLE_EQ(link.gb_s, 4);
  EXPECT_DOUBLE_EQ(link.best_gb_s, 32 * 128.0 / 130);
  EXPECT_EQ(link.numa_node, 1);
}

TEST_F(PciLinkTest, MissingOrMalformedFilesAreUnknown) {
  const auto unknown = [](const PciLink& link) {
    return link.gb_s == 0 && link.best_gb_s == 0 && link.numa_node == -1;
  };
  EXPECT_TRUE(unknown(ReadLink()));
  EXPECT_TRUE(unknown(LinkOf("", root_)));
  EXPECT_TRUE(unknown(LinkOf("../..", root_)));
  Write("current_link_speed", "Unknown");
  Write("current_link_width", "0");
  Write("numa_node", "-1");
  EXPECT_TRUE(unknown(ReadLink()));
  Write("current_link_speed", "16.0 GT/s PCIe");
  EXPECT_TRUE(unknown(ReadLink()));  // a width of 0
  Write("current_link_width", "255");
  EXPECT_TRUE(unknown(ReadLink()));  // as reported by a device that has gone
  Write("current_link_speed", "-1");
  Write("current_link_width", "nan");
  EXPECT_TRUE(unknown(ReadLink()));
}

}  // namespace
}  // namespace stoker
