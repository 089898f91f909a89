// SPDX-License-Identifier: Apache-2.0
// The memory log's table of what is allocated.
#include "formats/core/live_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace gpuprof {
namespace {

struct Region {
  explicit Region(uint64_t slots) : words(LiveTable::bytes_for(slots) / 8, 0) {
    LiveTable::format(words.data(), slots);
  }
  LiveTable table() { return {words.data(), words.size() * 8}; }
  std::vector<uint64_t> words;
};

LiveRow row(uint64_t address, uint64_t bytes, ApiId api = 1) {
  return {address, bytes, bytes * 3, 0, 7, 0, api, 0, {}};
}

std::map<std::pair<uint64_t, bool>, uint64_t> content(const LiveTable& table) {
  std::map<std::pair<uint64_t, bool>, uint64_t> out;
  table.each([&](const LiveRow& r) {
    EXPECT_TRUE(out.emplace(std::pair(r.address, r.api == kNoApi), r.bytes).second);
    EXPECT_EQ(r.ticks, r.bytes * 3);
  });
  return out;
}

TEST(LiveTable, keeps_what_is_inserted_until_it_is_removed) {
  Region region(1024);
  LiveTable table = region.table();
  ASSERT_EQ(table.slots(), 1024u);
  EXPECT_TRUE(table.insert(row(0x7f0000000000, 512)));
  EXPECT_TRUE(table.insert(row(0x7f0000000200, 64)));
  EXPECT_TRUE(table.insert(row(0x7f0000000000, 32, kNoApi))) << "a block at its segment's begin";
  EXPECT_FALSE(table.insert(row(0, 32)));
  EXPECT_EQ(content(table).size(), 3u);
  LiveRow was{};
  EXPECT_TRUE(table.remove(0x7f0000000000, false, was));
  EXPECT_EQ(was.bytes, 512u);
  EXPECT_FALSE(table.remove(0x7f0000000000, false, was));
  EXPECT_FALSE(table.remove(0, false, was));
  const LiveTable reader = region.table();
  const std::map<std::pair<uint64_t, bool>, uint64_t> left{{{0x7f0000000000, true}, 32},
                                                           {{0x7f0000000200, false}, 64}};
  EXPECT_EQ(content(reader), left) << "a reader that opens the region later";
}

TEST(LiveTable, an_address_given_again_replaces_its_row) {
  Region region(64);
  LiveTable table = region.table();
  EXPECT_TRUE(table.insert(row(0x1000, 1)));
  EXPECT_TRUE(table.insert(row(0x1000, 2)));
  const std::map<std::pair<uint64_t, bool>, uint64_t> one{{{0x1000, false}, 2}};
  EXPECT_EQ(content(table), one);
}

TEST(LiveTable, a_full_one_refuses_and_keeps_what_it_has) {
  Region region(64);
  LiveTable table = region.table();
  for (uint64_t i = 1; i <= 64; ++i) EXPECT_TRUE(table.insert(row(i * 256, i))) << i;
  EXPECT_FALSE(table.insert(row(65 * 256, 65)));
  EXPECT_TRUE(table.insert(row(64 * 256, 640)));
  EXPECT_EQ(content(table).size(), 64u);
  LiveRow was{};
  EXPECT_TRUE(table.remove(256, false, was));
  EXPECT_TRUE(table.insert(row(65 * 256, 65)));
}

TEST(LiveTable, half_full_has_room_at_any_place) {
  constexpr uint64_t kSlots = 131072;  // as a ring has
  Region region(kSlots);
  LiveTable table = region.table();
  std::mt19937_64 random(1);
  std::vector<uint64_t> kept;
  for (uint64_t i = 0; i < 500000; ++i) {
    if (kept.size() >= kSlots / 2) {
      std::swap(kept[random() % kept.size()], kept.back());
      LiveRow was{};
      ASSERT_TRUE(table.remove(kept.back(), false, was));
      kept.pop_back();
    }
    const uint64_t address = 0x7f0000000000 + (random() >> 18) * 512;
    ASSERT_TRUE(table.insert(row(address, 8))) << kept.size();
    kept.push_back(address);
  }
  EXPECT_EQ(kept.size(), kSlots / 2);
  EXPECT_EQ(content(table).size(), kept.size());
}

TEST(LiveTable, threads_do_not_disturb_each_other) {
  constexpr uint64_t kThreads = 4;
  Region region(1024);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    // An address may be seen twice: given back, and given again in another slot. No row is torn.
    while (!stop) {
      region.table().each([](const LiveRow& r) { ASSERT_EQ(r.ticks, r.bytes * 3); });
    }
  });
  std::vector<std::map<uint64_t, uint64_t>> kept(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      LiveTable table = region.table();
      std::mt19937_64 random(t);
      for (int i = 0; i < 50000; ++i) {
        const uint64_t address = ((random() % 100) * kThreads + t + 1) * 256;
        LiveRow was{};
        if (const auto found = kept[t].find(address); found != kept[t].end()) {
          ASSERT_TRUE(table.remove(address, false, was));
          ASSERT_EQ(was.bytes, found->second);
          kept[t].erase(found);
        } else {
          ASSERT_TRUE(table.insert(row(address, static_cast<uint64_t>(i) + 1)));
          kept[t][address] = static_cast<uint64_t>(i) + 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  std::map<std::pair<uint64_t, bool>, uint64_t> all;
  for (const auto& each : kept) {
    for (const auto& [address, bytes] : each) all[{address, false}] = bytes;
  }
  EXPECT_EQ(content(region.table()), all);
}

TEST(LiveTable, bytes_that_are_no_table_have_no_rows) {
  std::vector<uint64_t> words(100, 3);
  EXPECT_EQ(LiveTable(words.data(), words.size() * 8).slots(), 0u) << "no power of two";
  words[0] = 1024;
  EXPECT_EQ(LiveTable(words.data(), words.size() * 8).slots(), 0u) << "more than there is room for";
  words[0] = uint64_t{1} << 63;
  EXPECT_EQ(LiveTable(words.data(), words.size() * 8).slots(), 0u);
  EXPECT_EQ(LiveTable(words.data(), 4).slots(), 0u);
  EXPECT_EQ(LiveTable(nullptr, 0).slots(), 0u);
}

}  // namespace
}  // namespace gpuprof
