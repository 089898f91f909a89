// SPDX-License-Identifier: Apache-2.0
// How page and comment say what changed between two runs.
#include "tools/report/diff_output.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/report/diff_html.h"

namespace gpuprof {
namespace {

using analysis::Change;
using analysis::Diff;

// 20 and 30 steps that differ by less than noise.
Diff a_diff() {
  Diff diff;
  diff.base_steps = 20;
  diff.new_steps = 30;
  diff.step_time = diff.typical_step = {1000, 1002, 0.2, -1.5, 1.9, 0.8};
  return diff;
}

std::string page_of(const Diff& diff) { return diff_html(diff_json(diff, gate_of(diff, 0))); }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DiffPage, TypicalStepsAreMediansAndTheMeanIsNotKnown) {
  Diff diff = a_diff();
  diff.step_time = {5000, 6000, 20, -30, 70, 0.5};
  diff.typical_step = {1000, 1100, 10, 9.5, 10.5, 0.001};
  const std::string page = page_of(diff);
  EXPECT_TRUE(has(page, "<span>Typical step before</span><b>1.000 ms</b><small>median of 20 steps"))
      << page.substr(page.find("<section"), 2000);
  EXPECT_TRUE(has(page, "<span>Typical step now</span><b>1.100 ms</b><small>median of 30 steps"));
  EXPECT_TRUE(has(page,
                  "a few steps are so long that the mean&#39;s change is not known (-30.0 % to "
                  "+70.0 %)</p>"));
  diff.step_time = diff.typical_step;
  diff.significant = true;
  EXPECT_TRUE(
      has(page_of(diff), "<span>Step time now</span><b>1.100 ms</b><small>mean of 30 steps"));
}

TEST(DiffPage, AChangeTooSmallToCountIsNotCalledNoise) {
  Diff diff = a_diff();
  EXPECT_TRUE(has(page_of(diff), "<b>none beyond noise</b><small>-1.5 % to +1.9 % "));
  EXPECT_TRUE(has(page_of(diff), "no change beyond noise (-1.5 % to +1.9 %)</p>"));
  diff.step_time = diff.typical_step = {1000, 1005, 0.5, 0.3, 0.7, 0.001};
  const std::string page = page_of(diff);
  EXPECT_TRUE(has(page, "<b>too small to count</b><small>+0.3 % to +0.7 % "));
  EXPECT_TRUE(has(page, "too small a change to count (+0.3 % to +0.7 %)</p>"));
  EXPECT_FALSE(has(page, "none beyond noise</b>"));
}

TEST(DiffComment, ValuesOfTheRunsAreTextOfOneLine) {
  Diff diff = a_diff();
  const std::string gpu = "![x](http://a/x.png) <img src=x onerror=alert(1)> @all\n# H1 `*_&$~";
  diff.setup = {{analysis::SetupPart::gpu, {"A100"}, {gpu}},
                {analysis::SetupPart::recorded, {}, {"GPUPROF_STACKS=a\n| b"}}};
  const std::string comment = diff_markdown(diff, gate_of(diff, 0));
  EXPECT_TRUE(has(comment,
                  "GPU A100 -> !\\[x\\](http://a/x.png) &lt;img src=x onerror=alert(1)> "
                  "@&#8203;all\\\\u000a# H1 \\`\\*\\_&amp;\\$\\~; "
                  "recorded only in new: GPUPROF_STACKS=a\\\\u000a| b\n"))
      << comment;
  const std::string text = diff_text(diff, gate_of(diff, 0), {1000, false});
  EXPECT_TRUE(
      has(text, "@all\\u000a# H1 `*_&$~; recorded only in new: GPUPROF_STACKS=a\\u000a| b\n"))
      << text;
  diff.reason = "dir/<b>\n# x: the first run";
  EXPECT_EQ(diff_markdown(diff, gate_of(diff, 0)),
            "**No comparison**: dir/&lt;b>\\\\u000a# x: the first run\n");
}

TEST(DiffComment, NamesTheRunsThatItCompares) {
  Diff diff = a_diff();
  const DiffRuns runs{{"runs/1", "a|b`c\n"}, {"runs/<2>"}};
  const std::string names = "\nbase `runs/1` `a|b'c\\u000a`, new `runs/<2>`\n";
  EXPECT_TRUE(has(diff_markdown(diff, gate_of(diff, 0), runs), "(-1.5 % to +1.9 %)\n" + names));
  EXPECT_FALSE(has(diff_markdown(diff, gate_of(diff, 0)), "base `"));
  diff.reason = "why";
  EXPECT_EQ(diff_markdown(diff, gate_of(diff, 0), runs), "**No comparison**: why\n" + names);
}

TEST(DiffPage, NamesTheRunsThatItCompares) {
  const Diff diff = a_diff();
  Json json = diff_json(diff, gate_of(diff, 0));
  EXPECT_TRUE(has(diff_html(json), "<title>gpuprof diff</title>"));
  json["base"] = {"runs/1", "runs/2", "runs/3"};
  json["new"] = {"runs/<4>"};
  const std::string page = diff_html(json);
  EXPECT_TRUE(
      has(page, "<title>runs/&lt;4&gt; against runs/1, runs/2 and 1 more - gpuprof diff</title>"))
      << page.substr(0, 1000);
  EXPECT_TRUE(has(page,
                  "<p class=\"run\">base <code>runs/1</code> <code>runs/2</code> "
                  "<code>runs/3</code></p>\n<p class=\"run\">new <code>runs/&lt;4&gt;</code></p>"));
}

TEST(DiffComment, HasShortNamesAndSaysHowManyMoreThereAre) {
  Diff diff = a_diff();
  const auto with = [&](int count) {
    diff.changes.clear();
    for (int i = 0; i < count; ++i) {
      Change change;
      change.kind = "kernel";
      change.name = "void lib::map_kernel<4, lib::Add<float> >(int) <<<" + std::to_string(i) +
                    "x1x1, 32x1x1>>>";
      change.base_us = 10;
      change.new_us = 20;
      change.change_pct = 100;
      change.significant = true;
      diff.changes.push_back(change);
    }
    diff.changes.emplace_back().name = "other";
    return diff_markdown(diff, gate_of(diff, 0));
  };
  const std::string all = with(12);
  EXPECT_TRUE(has(all, "| kernel | `map_kernel<4, Add<float>> <<<11x1x1, 32x1x1>>>` | ")) << all;
  EXPECT_FALSE(has(all, "--format html"));
  EXPECT_FALSE(has(all, "other"));
  const std::string some = with(15);
  EXPECT_FALSE(has(some, "<<<12x1x1"));
  EXPECT_TRUE(some.ends_with("|\n\nand 3 more: --format html lists all\n")) << some;
}

TEST(DiffComment, WhatIsNotExcludedIsBesideTheLimit) {
  Diff diff = a_diff();
  diff.step_time = diff.typical_step = {1000, 1020, 2, 1.5, 5.4, 0.001};
  diff.significant = true;
  EXPECT_TRUE(
      has(diff_text(diff, gate_of(diff, 5), {1000, false}),
          "\nNo slow-down of more than 5 % is certain, but one of 5.4 % is not excluded: "));
  diff.step_time = diff.typical_step = {1000, 1002, 0.2, -1.5, 5.4, 0.8};
  diff.significant = false;
  EXPECT_TRUE(has(diff_text(diff, gate_of(diff, 0), {1000, false}),
                  "\nNo regression beyond noise, but a slow-down of 5.4 % is not excluded: "));
}

TEST(DiffPage, ItsSentenceIsInTheJson) {
  Diff diff = a_diff();
  const Json json = diff_json(diff, gate_of(diff, 0));
  EXPECT_EQ(json["headline"],
            "Steps take 1.002 ms (1.000 ms before): no change beyond noise (-1.5 % to +1.9 %)");
  diff.reason = "too few steps";
  EXPECT_EQ(diff_json(diff, gate_of(diff, 0))["headline"], "");
}

}  // namespace
}  // namespace gpuprof
