// SPDX-License-Identifier: Apache-2.0
// The report for machines; docs/REPORT.md documents the schema, `schema` is its version.
#pragma once

#include "tools/analysis/report.h"
#include "tools/describe.h"

namespace gpuprof {

inline constexpr int kReportSchema = 1;

Json report_json(const analysis::Report& report);
// What GPUPROF_BUDGET left out: `left_out_kinds` of the report, and of both sides of a diff.
Json left_out_json(const analysis::LeftOutKinds& left_out);

}  // namespace gpuprof
