#include "tests/testing/samples/batch_bytes.h"

#include <gtest/gtest.h>

namespace stoker::testing {

ColumnBytes BytesOf(const Batch& batch) {
  ColumnBytes bytes;
  for (const Column& column : batch.columns()) {
    const auto* from = static_cast<const uint8_t*>(column.data);
    bytes.emplace_back(from, from + column.bytes());
  }
  return bytes;
}

ColumnBytes BytesOf(const DeviceBatch& batch, Device& device) {
  ColumnBytes bytes;
  EXPECT_TRUE(batch.Wait().ok());
  const DeviceStream stream = device.MakeStream().value();
  for (const Column& column : batch.columns()) {
    std::vector<uint8_t>& to = bytes.emplace_back(column.bytes());
    EXPECT_TRUE(device.Copy(to.data(), column.data, to.size(), stream).ok());
    EXPECT_TRUE(device.SynchronizeAll().ok());
  }
  device.Destroy(stream);
  return bytes;
}

}  // namespace stoker::testing
