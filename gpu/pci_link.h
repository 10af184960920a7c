// How fast a device's link is, and which NUMA node it is attached to: what Linux says.
#pragma once

#include <string>

namespace stoker {

struct PciLink {
  // GB/s (10^9 bytes) of one direction, without the link's own encoding; 0: unknown. Packets have
  // headers too: copies reach some 80 to 90% of it.
  double gb_s = 0;       // at present; a device that is idle may have slowed its link
  double best_gb_s = 0;  // that the device is able to
  int numa_node = -1;    // -1: unknown
};

// `bus`: "0000:3b:00.0", in either case. `root`: tests give a folder of their own.
PciLink LinkOf(const std::string& bus, const std::string& root = "/sys/bus/pci/devices");

}  // namespace stoker
