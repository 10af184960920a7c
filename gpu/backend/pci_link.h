// Reads the speed and the NUMA node of a device's link, as Linux reports them.
#pragma once

#include <string>

namespace stoker {

struct PciLink {
  // GB/s (10^9 bytes) in one direction, without the link's own encoding; 0 means unknown. Packets
  // have headers too, so copies reach some 80 to 90% of this.
  double gb_s = 0;       // at present; an idle device may have slowed its link
  double best_gb_s = 0;  // the device's maximum
  int numa_node = -1;    // -1 means unknown
};

// `bus`: "0000:3b:00.0", in upper or lower case. `root`: the root folder; tests use their own.
PciLink LinkOf(const std::string& bus, const std::string& root = "/sys/bus/pci/devices");

}  // namespace stoker
