#include "gpu/backend/pci_link.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace stoker {

namespace {

// Returns the number at the beginning of a file; `otherwise` if there is none.
double NumberIn(const std::string& path, double otherwise) {
  std::ifstream file(path);
  double number = otherwise;
  return file >> number ? number : otherwise;
}

// Returns the share of a lane's bits that carry packets: 8 of 10 up to PCIe 2, 128 of 130 up to
// PCIe 5, and 242 bytes of each flit of 256 from PCIe 6 on.
double PayloadShare(double gt_s) {
  if (gt_s <= 5) return 8.0 / 10;
  return gt_s <= 32 ? 128.0 / 130 : 242.0 / 256;
}

// The files contain "16.0 GT/s PCIe" ("16 GT/s" in old kernels) and "16", or "Unknown" and 0.
double Speed(const std::string& folder, const std::string& which) {
  const double gt_s = NumberIn(folder + which + "_link_speed", 0);
  const double lanes = NumberIn(folder + which + "_link_width", 0);
  if (!(gt_s > 0 && lanes > 0 && lanes <= 32)) return 0;
  return gt_s * lanes * PayloadShare(gt_s) / 8;
}

}  // namespace

PciLink LinkOf(const std::string& bus, const std::string& root) {
  std::string folder = bus;
  std::transform(folder.begin(), folder.end(), folder.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  folder = root + "/" + folder + "/";
  return {.gb_s = Speed(folder, "current"),
          .best_gb_s = Speed(folder, "max"),
          .numa_node = static_cast<int>(NumberIn(folder + "numa_node", -1))};
}

}  // namespace stoker
