// Measures the calls that record events.
#pragma once

#include <memory>

#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

// Durations of calls on the host, in microseconds.
struct CallTimes {
  int calls = 0;
  double median_us = 0, most_us = 0;
};
struct RecordTimes {
  CallTimes record;      // Device::Record, on a stream
  CallTimes record_all;  // Device::RecordAll
};

// Makes `calls` of each, in turns, while the device is idle; or, if it is to be busy, as many of
// them as there is time for while a kernel and copies to the device run.
Result<RecordTimes> MeasureRecords(Device& device, bool busy, int calls);

}  // namespace stoker
