// A source that is made of others passes every function of SampleSource on.
#include "io/select/selected_source.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace stoker {
namespace {

// Overrides what it must. The pointer to its last function tells how many functions come before.
class Least : public SampleSource {
 public:
  uint64_t size() const override { return 1; }
  std::span<const Field> fields() const override { return {}; }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t /*file*/, std::string& /*path*/) const override {}
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return ""; }
  virtual void Last() const {}

 private:
  std::vector<std::string> classes_;
};

// The addresses of an object's virtual functions, by the Itanium C++ ABI.
std::vector<uintptr_t> FunctionsOf(const SampleSource& source, size_t count) {
  uintptr_t table = 0;
  std::memcpy(&table, static_cast<const void*>(&source), sizeof(table));
  std::vector<uintptr_t> functions(count);
  std::memcpy(functions.data(), reinterpret_cast<const void*>(table), count * sizeof(uintptr_t));
  return functions;
}

// By the same: a virtual function is its offset in the table, 1 more on x86-64.
size_t LastIndex() {
  auto last = &Least::Last;
  uintptr_t offset = 0;
  std::memcpy(&offset, &last, sizeof(offset));
  return (offset & ~uintptr_t{1}) / sizeof(uintptr_t);
}

// A function that SelectedSource does not override is the same in both tables. If this fails after
// a function was added to SampleSource, forward it in SelectedSource.
TEST(SelectedSource, OverridesEveryFunction) {
  const size_t count = LastIndex();
  ASSERT_GE(count, 20U);
  const auto least = std::make_shared<Least>();
  const SelectedSource selected("combine", {least}, nullptr);
  const std::vector<uintptr_t> theirs = FunctionsOf(*least, count);
  const std::vector<uintptr_t> ours = FunctionsOf(selected, count);
  for (size_t i = 0; i < count; ++i) EXPECT_NE(ours[i], theirs[i]) << "function " << i;
}

}  // namespace
}  // namespace stoker
