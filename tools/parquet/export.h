// SPDX-License-Identifier: Apache-2.0
// Tables of a run, added to a directory of those of others.
#pragma once

#include "tools/analysis/report.h"
#include "tools/parquet/event_rows.h"

namespace gpuprof::parquet_export {

struct Written {
  uint64_t rows = 0, bytes = 0, files = 0;
  size_t windows = 0;  // of processes: what the table `processes` has rows of
  size_t there = 0;    // windows that were in the directory before
  size_t changed = 0;  // of these: with another number of records then
};

// Writes what `folder` does not have of these processes, and nothing where it has all. Files
// appear together, those of `processes` last; none is changed. `report`: of all of the input,
// `parts`: what it was made of. `ranks`: as read_ranks() takes them, empty: all. Throws Failure.
Written write_tables(const Trace& trace, const analysis::Report& report,
                     const analysis::ReportParts& parts, const std::string& ranks,
                     const std::string& folder);

}  // namespace gpuprof::parquet_export
