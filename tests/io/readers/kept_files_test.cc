#include "io/readers/kept_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/testing/random.h"

namespace stoker {
namespace {

TEST(KeptFiles, TheLeastRecentlyUsedFileMakesRoom) {
  KeptFiles files(2);
  KeptFile* a = files.Take("a");
  files.Take("b");
  EXPECT_EQ(files.Find("a"), a);
  const uint32_t slot_of_b = files.Find("b")->slot;
  EXPECT_NE(slot_of_b, a->slot);
  files.Find("a");
  KeptFile* c = files.Take("c");
  EXPECT_EQ(c->slot, slot_of_b);
  EXPECT_EQ(c->path, "c");
  EXPECT_EQ(files.Find("b"), nullptr);
  EXPECT_EQ(files.Find("a"), a);
  EXPECT_EQ(files.Find("c"), c);
}

TEST(KeptFiles, AFileWithReadsInFlightKeepsItsSlot) {
  KeptFiles files(2);
  KeptFile* a = files.Take("a");
  KeptFile* b = files.Take("b");
  a->reads = b->reads = 1;
  EXPECT_EQ(files.Take("c"), nullptr);
  files.Drop(*a);
  EXPECT_EQ(files.Find("a"), nullptr);
  EXPECT_EQ(files.Take("a"), nullptr) << "its slot is still read from";
  b->open = true;
  b->reads = 0;
  KeptFile* c = files.Take("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->slot, b->slot);
  EXPECT_FALSE(c->open);
}

TEST(KeptFiles, DropAllNamesTheIdleOnes) {
  KeptFiles files(3);
  files.Take("a");
  files.Take("b")->reads = 1;
  std::vector<std::string> closed;
  files.DropAll([&](const KeptFile& file) { closed.push_back(file.path); });
  EXPECT_EQ(closed, std::vector<std::string>{"a"});
  EXPECT_EQ(files.Find("a"), nullptr);
  EXPECT_EQ(files.Find("b"), nullptr);
}

TEST(KeptFiles, WithoutSlotsKeepsNothing) {
  KeptFiles files(0);
  EXPECT_EQ(files.Find("a"), nullptr);
  EXPECT_EQ(files.Take("a"), nullptr);
}

// A literal implementation of the same rules.
class PlainTable {
 public:
  struct Entry {
    std::string path;
    uint32_t reads = 0;
    bool kept = false;
  };
  explicit PlainTable(size_t slots) : slots_(slots) {}

  Entry* Find(const std::string& path) {
    for (Entry& e : entries_) {
      if (e.kept && e.path == path) return Touch(e);
    }
    return nullptr;
  }
  Entry* Take(const std::string& path) {
    if (entries_.size() < slots_) {
      entries_.push_back({path, 0, true});
      return &entries_.back();
    }
    for (Entry& e : entries_) {
      if (e.reads != 0) continue;
      e = {path, 0, true};
      return Touch(e);
    }
    return nullptr;
  }

 private:
  Entry* Touch(Entry& entry) {  // the most recently used one is the last
    std::rotate(&entry, &entry + 1, entries_.data() + entries_.size());
    return &entries_.back();
  }

  size_t slots_;
  std::vector<Entry> entries_;
};

TEST(KeptFiles, DoesWhatAPlainTableDoes) {
  for (uint32_t slots : {1u, 2u, 5u, 16u}) {
    KeptFiles files(slots);
    PlainTable table(slots);
    testing::Random random(slots);
    for (int step = 0; step < 20'000; ++step) {
      const std::string path = std::to_string(random.Between(1, 2 * static_cast<int>(slots)));
      KeptFile* file = files.Find(path);
      PlainTable::Entry* entry = table.Find(path);
      ASSERT_EQ(file != nullptr, entry != nullptr) << step;
      if (file == nullptr) {
        file = files.Take(path);
        entry = table.Take(path);
        ASSERT_EQ(file != nullptr, entry != nullptr) << step;
      }
      if (file == nullptr) continue;
      ASSERT_EQ(file->path, path);
      ASSERT_EQ(file->reads, entry->reads) << step;
      if (random.OneIn(5)) {
        files.Drop(*file);
        entry->kept = false;
      }
      file->reads = entry->reads = random.OneIn(3) ? 1 : 0;
    }
  }
}

}  // namespace
}  // namespace stoker
