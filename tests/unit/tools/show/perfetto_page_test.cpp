// SPDX-License-Identifier: Apache-2.0
// The address of Perfetto's page: what it fetches, and which groups it opens.
#include "tools/show/perfetto_page.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

// One process; thread `pid + i` has i + 1 marks.
std::string dump_of(dump::Header header, uint32_t threads = 1) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  for (uint32_t thread = 0; thread < threads; ++thread) {
    for (uint32_t i = 0; i <= thread; ++i) {
      Record mark = make_record(Kind::nvtx_mark, 4'000'000 + i, 4'000'000 + i);
      mark.nvtx.message = names.intern("mark");
      if (!encoder.add(mark, header.pid() + thread, "thread")) throw std::bad_alloc();
    }
  }
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append(bytes, ChunkKind::summary, make_summary(8'000'000));
  return std::string(view(bytes));
}

dump::Header header_of(int rank, uint32_t pid, const std::string& host = "node1") {
  dump::Header header = make_header(0, rank);
  header.set_pid(pid);
  header.set_host(host);
  return header;
}

// The regular expressions of the groups that are opened, or "" where the page has no command.
std::string groups_of(const std::string& dumps) {
  const std::string start = "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/trace";
  const std::string page = perfetto_page(load(dumps), "http://127.0.0.1:9001/trace");
  EXPECT_EQ(page.substr(0, start.size()), start);
  const std::string command = "&startupCommands=" + percent_encoded(R"([{"args":[")"),
                    end = percent_encoded(R"("],"id":"dev.perfetto.ExpandTracksByRegex"}])");
  const std::string rest = page.substr(start.size());
  if (rest.empty()) return rest;
  EXPECT_TRUE(rest.starts_with(command)) << rest;
  EXPECT_TRUE(rest.ends_with(end)) << rest;
  std::string groups = rest.substr(command.size(), rest.size() - command.size() - end.size());
  std::string out;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] != '%') {
      out += groups[i];
      continue;
    }
    out += static_cast<char>(std::stoi(groups.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return out;  // as JSON has it: each backslash is two
}

TEST(PerfettoPage, SpellsWhatIsNotPlain) {
  EXPECT_EQ(percent_encoded("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(percent_encoded("/a b?\xC3\xA9", "/"), "/a%20b%3F%C3%A9");
}

TEST(PerfettoPage, OpensTheRanksInOrder) {
  EXPECT_EQ(groups_of(dump_of(header_of(1, 11)) + dump_of(header_of(0, 10))),
            R"(^rank 0: train \\(node1\\)|^GPU .*\\(rank 0\\)$| 10$)"
            R"(|^rank 1: train \\(node1\\)|^GPU .*\\(rank 1\\)$| 11$)");
}

TEST(PerfettoPage, OpensAtMostFourProcesses) {
  std::string dumps;
  for (int rank = 5; rank >= 0; --rank) {
    dumps += dump_of(header_of(rank, 10 + static_cast<uint32_t>(rank)));
  }
  const std::string groups = groups_of(dumps);
  EXPECT_NE(groups.find("^rank 3: "), std::string::npos) << groups;
  EXPECT_EQ(groups.find("^rank 4: "), std::string::npos) << groups;
}

TEST(PerfettoPage, OpensTheEightBusiestThreads) {
  const std::string groups = groups_of(dump_of(header_of(0, 10), 10));
  EXPECT_TRUE(groups.ends_with("$| 19$| 18$| 17$| 16$| 15$| 14$| 13$| 12$")) << groups;
}

TEST(PerfettoPage, NamesAreLiteral) {
  dump::Header header = header_of(-1, 10);
  header.set_command(0, "a.b(*)[1]");
  EXPECT_EQ(groups_of(dump_of(header)),
            R"(^a\\.b\\(\\*\\)\\[1\\] \\(node1\\)|^GPU .*\\(pid 10\\)$| 10$)");
}

// Perfetto counts other hosts' pids, and pids that are there twice, on.
TEST(PerfettoPage, OpensOnlyWhatPerfettoShowsByItsNumber) {
  dump::Header worker = header_of(0, 12);
  worker.set_parent_pid(10);
  const std::string groups =
      groups_of(dump_of(header_of(0, 10)) + dump_of(header_of(1, 11, "node2")) +
                dump_of(header_of(2, 10)) + dump_of(worker));
  EXPECT_EQ(groups, R"(^rank 0: train \\(node1\\)|^GPU .*\\(rank 0\\)$| 10$)");
}

}  // namespace
}  // namespace gpuprof::test
