// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/walks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tools/analysis/bits.h"

namespace gpuprof::analysis {
namespace {

TEST(Bits, NeighboursAreFoundAcrossWords) {
  constexpr uint32_t kFirst = 1000, kEnd = 1400;
  std::mt19937 random(7);
  for (const unsigned one_in : {1u, 3u, 150u, 1000u}) {
    Bits bits(kFirst, kEnd);
    std::vector<bool> expected(kEnd);
    for (uint32_t i = kFirst; i < kEnd; ++i) {
      if (random() % one_in) continue;
      bits.set(i);
      expected[i] = true;
    }
    for (uint32_t i = kFirst; i < kEnd; ++i) {
      EXPECT_EQ(bits.test(i), expected[i]);
      uint32_t next = i, last = i;
      while (next < kEnd && !expected[next]) ++next;
      while (last >= kFirst && !expected[last]) --last;
      EXPECT_EQ(bits.next(i), next);
      EXPECT_EQ(bits.last(i), last < kFirst ? kEnd : last);
    }
    EXPECT_EQ(bits.next(kEnd), kEnd);
  }
}

TEST(Bits, OfNoEvents) {
  EXPECT_EQ(Bits(5, 5).next(5), 5u);
  EXPECT_FALSE(Bits().test(3));
}

// Items with the given begins.
class ListWalk {
 public:
  struct Item {
    int64_t begin;
    int list;
  };
  ListWalk(std::vector<int64_t> begins, int list) : begins_(std::move(begins)), list_(list) {}
  bool next(Item& out) {
    if (at_ == begins_.size()) return false;
    out = {begins_[at_++], list_};
    return true;
  }

 private:
  std::vector<int64_t> begins_;
  int list_;
  size_t at_ = 0;
};

TEST(MergedWalk, IsInOrderAndListByListWhereTheyBeginTogether) {
  std::mt19937 random(11);
  MergedWalk<ListWalk> walk;
  std::vector<std::pair<int64_t, int>> expected;
  for (int list = 0; list < 9; ++list) {
    std::vector<int64_t> begins;
    int64_t begin = 0;
    for (int i = 0; i < list * 7; ++i) begins.push_back(begin += random() % 3);
    for (const int64_t each : begins) expected.emplace_back(each, list);
    walk.add(ListWalk(std::move(begins), list));
  }
  walk.begin();
  std::stable_sort(expected.begin(), expected.end());
  for (const auto& [begin, list] : expected) {
    ASSERT_FALSE(walk.at_end());
    EXPECT_EQ(walk->begin, begin);
    EXPECT_EQ(walk->list, list);
    ++walk;
  }
  EXPECT_TRUE(walk.at_end());
}

}  // namespace
}  // namespace gpuprof::analysis
