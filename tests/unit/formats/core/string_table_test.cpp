// SPDX-License-Identifier: Apache-2.0
#include "formats/core/string_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gpuprof {
namespace {

struct Region {
  explicit Region(size_t bytes) : words(bytes / 8, 0) { StringTable::format(data(), size()); }
  void* data() { return words.data(); }
  size_t size() const { return words.size() * 8; }
  StringTable table() { return {data(), size(), &used}; }

  std::vector<uint64_t> words;
  std::atomic<uint64_t> used{0};
};

TEST(StringTable, GivesOneIdPerText) {
  Region region(1 << 16);
  StringTable table = region.table();
  EXPECT_EQ(table.intern(""), 0u);
  EXPECT_EQ(table.get(0), "");
  const StringId a = table.intern("cudaMalloc"), b = table.intern("cudaFree");
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, b);
  EXPECT_EQ(table.intern(std::string("cudaMalloc")), a);
  EXPECT_EQ(table.get(a), "cudaMalloc");
  EXPECT_EQ(table.get(b), "cudaFree");
  EXPECT_EQ(region.table().get(b), "cudaFree") << "a reader that opens the region later";
}

TEST(StringTable, TellsWhereItsSlotsEnd) {
  for (const size_t bytes : {size_t{4096}, size_t{100000}, size_t{1} << 20}) {
    Region region(bytes);
    StringTable table = region.table();
    const char* const first = table.get(table.intern("first")).data();
    EXPECT_EQ(first - static_cast<char*>(region.data()) - sizeof(uint32_t),
              StringTable::slot_bytes(region.size()));
  }
}

TEST(StringTable, KeepsBytesAsTheyAreAndCutsLongTexts) {
  Region region(1 << 16);
  StringTable table = region.table();
  const std::string bytes("a\0\xff\"\n", 5);
  EXPECT_EQ(table.get(table.intern(bytes)), bytes);
  EXPECT_EQ(table.get(table.intern(std::string(5000, 'x'))), std::string(5000, 'x'));
}

TEST(StringTable, CutTextsStayApart) {
  Region region(1 << 20);
  StringTable table = region.table();
  const std::string same(70'000, 'x');
  const StringId one = table.intern(same + "1"), two = table.intern(same + "2");
  EXPECT_NE(one, two);
  EXPECT_EQ(table.intern(same + "1"), one);
  EXPECT_EQ(table.intern(same + "2"), two);
  for (const StringId id : {one, two}) {
    EXPECT_EQ(table.get(id).size(), StringTable::kMaxText);
    EXPECT_EQ(table.get(id).substr(0, 65'000), same.substr(0, 65'000));
    EXPECT_EQ(table.get(id).substr(StringTable::kMaxText - 19, 3), "...");
  }
  const std::string longest(StringTable::kMaxText, 'y');
  EXPECT_EQ(table.get(table.intern(longest)), longest);
}

TEST(StringTable, ClearedTableHasRoomAgain) {
  Region region(4096);
  StringTable table = region.table();
  for (int round = 0; round < 3; ++round) {
    StringId last = 1;
    for (int i = 0; last; ++i) {
      ASSERT_LT(i, 1000);
      last = table.intern("round " + std::to_string(round) + ", name " + std::to_string(i));
    }
    EXPECT_EQ(table.get(1), "round " + std::to_string(round) + ", name 0");
    table.clear();
    EXPECT_EQ(table.get(1).size() + region.used.load(), table.get(1).size());
  }
}

TEST(StringTable, FullTableGivesZeroAndKeepsWhatItHas) {
  Region region(4096);
  StringTable table = region.table();
  std::vector<StringId> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(table.intern("name " + std::to_string(i)));
  EXPECT_NE(ids.front(), 0u);
  EXPECT_EQ(ids.back(), 0u);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!ids[i]) continue;
    EXPECT_EQ(table.get(ids[i]), "name " + std::to_string(i));
  }
  EXPECT_EQ(table.intern("name 0"), ids[0]);
}

TEST(StringTable, LimitedTableTouchesNothingBehind) {
  Region region(1 << 16);
  StringTable table = region.table();
  const size_t limit = StringTable::slot_bytes(region.size()) + 1000;
  table.limit(limit);
  std::vector<StringId> ids;
  for (int i = 0; i < 100; ++i) {
    const StringId id = table.intern("the text of number " + std::to_string(i));
    if (id == 0) break;
    ids.push_back(id);
  }
  EXPECT_EQ(ids.size(), 10u + (1000 - 10 * 24) / 28) << "24 bytes each, of two digits 28";
  const auto* const bytes = static_cast<const char*>(region.data());
  EXPECT_TRUE(std::all_of(bytes + limit, bytes + region.size(), [](char c) { return c == 0; }));
  table.limit(region.size());
  const StringId later = table.intern("a later text");
  EXPECT_EQ(table.get(later), "a later text");
  EXPECT_EQ(table.intern("the text of number 7"), ids[7]);
}

TEST(StringTable, ManyThreadsAgreeOnIds) {
  constexpr int kThreads = 8, kTexts = 2000;
  Region region(1 << 20);
  std::vector<std::vector<StringId>> ids(kThreads, std::vector<StringId>(kTexts));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      StringTable table = region.table();
      for (int i = 0; i < kTexts; ++i) {
        const int text = t % 2 ? i : kTexts - 1 - i;
        ids[t][text] = table.intern("kernel_" + std::to_string(text));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StringTable table = region.table();
  std::set<StringId> distinct;
  for (int i = 0; i < kTexts; ++i) {
    EXPECT_EQ(table.get(ids[0][i]), "kernel_" + std::to_string(i));
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[t][i], ids[0][i]);
    distinct.insert(ids[0][i]);
  }
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kTexts));
}

TEST(StringTable, DamagedRegionIsNeverReadOutOfBounds) {
  Region region(4096);
  StringTable table = region.table();
  const StringId id = table.intern("text");
  for (uint64_t slots : {uint64_t{0}, uint64_t{3}, ~uint64_t{0}, uint64_t{1} << 40}) {
    region.words[0] = slots;
    StringTable damaged = region.table();
    EXPECT_EQ(damaged.get(id), "");
    EXPECT_EQ(damaged.intern("text"), 0u);
  }
  StringTable::format(region.data(), region.size());
  for (uint32_t bad = 0; bad < 5000; ++bad) EXPECT_LE(region.table().get(bad).size(), 4095u);
  EXPECT_EQ(region.table().get(0xffffffff), "");
  EXPECT_EQ(StringTable().get(1), "");
  EXPECT_EQ(StringTable(nullptr, 0, nullptr).get(1), "");
}

TEST(ShapeTable, InternsEqualShapesOnceAndSaysWhenFull) {
  std::vector<uint64_t> words(1024, 0);
  std::atomic<uint64_t> used{0};
  ShapeTable::format(words.data(), words.size() * 8);
  ShapeTable table(words.data(), words.size() * 8, &used);
  LaunchShape shape{};
  shape.grid = {4, 2, 1};
  const uint32_t id = table.intern(shape);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(table.intern(shape), id);
  ASSERT_NE(table.get(id), nullptr);
  EXPECT_EQ(table.get(id)->grid.x, 4u);
  uint32_t last = id;
  for (uint32_t i = 5; i < 1000; ++i) {
    shape.grid.x = i;
    last = table.intern(shape);
    if (!last) break;
    EXPECT_EQ(table.get(last)->grid.x, i);
  }
  EXPECT_EQ(last, 0u);
  EXPECT_EQ(table.get(0), nullptr);
  EXPECT_EQ(table.get(1000), nullptr);
  EXPECT_EQ(ShapeTable().get(1), nullptr);
}

TEST(HashBytes, IsTheSameForEver) {
  // The values are in ring files: a change would need a new ring version.
  EXPECT_EQ(hash_bytes("", 0), hash_bytes(nullptr, 0));
  EXPECT_NE(hash_bytes("a", 1), hash_bytes("b", 1));
  EXPECT_NE(hash_bytes("a", 1), hash_bytes("a\0", 2));
}

}  // namespace
}  // namespace gpuprof
