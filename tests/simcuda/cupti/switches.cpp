// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "tests/simcuda/core/version.h"

namespace gpuprof::simcuda {
namespace {

struct Row {
  std::string_view name;
  uint64_t CuptiSwitches::*value;
};
// NAME is NAME=1.
constexpr Row kRows[] = {
    {"nodriver", &CuptiSwitches::no_driver},
    {"dies_without_driver", &CuptiSwitches::dies_without_driver},
    {"subscriber_taken", &CuptiSwitches::subscriber_taken},
    {"reversed_order", &CuptiSwitches::reversed_order},
    {"late_nodes", &CuptiSwitches::late_nodes},
    {"late_graph_times", &CuptiSwitches::late_graph_times},
    {"late_graph_crash", &CuptiSwitches::late_graph_crash},
    {"finalize_graph_crash", &CuptiSwitches::finalize_graph_crash},
    {"sticky_graph_trace", &CuptiSwitches::sticky_graph_trace},
    {"late_transfers_as_kernels", &CuptiSwitches::late_transfers_as_kernels},
    {"no_body_records", &CuptiSwitches::no_body_records},
    {"first_iteration_only", &CuptiSwitches::first_iteration_only},
    {"foreign_clock", &CuptiSwitches::foreign_clock},
    {"dead_after_empty_session", &CuptiSwitches::dead_after_empty_session},
    {"no_device_sync_records", &CuptiSwitches::no_device_sync_records},
    {"ids_need_api_kinds", &CuptiSwitches::ids_need_api_kinds},
    {"old_driver", &CuptiSwitches::old_driver},
    {"v1_v2_once", &CuptiSwitches::v1_v2_once},
    {"own_call_words", &CuptiSwitches::own_call_words},
    {"whole_buffers", &CuptiSwitches::whole_buffers},
    {"deliver_in_calls", &CuptiSwitches::deliver_in_calls},
    {"v2_registers_once", &CuptiSwitches::v2_registers_once},
    {"reset_loses_records", &CuptiSwitches::reset_loses_records},
    {"refuse_kind", &CuptiSwitches::refused_kind},
    {"drop", &CuptiSwitches::drop_every},
    {"zero_ts", &CuptiSwitches::zero_timestamps_every},
    {"reversed_ts", &CuptiSwitches::reversed_timestamps_every},
    {"duplicate_ts", &CuptiSwitches::duplicate_timestamps_every},
    {"unknown_kind", &CuptiSwitches::unknown_kind_every},
    {"incomplete", &CuptiSwitches::incomplete_every},
    {"callback_zero_ts", &CuptiSwitches::callback_zero_every},
    {"buffers_run_out", &CuptiSwitches::buffers_run_out_after},
    {"hold_buffers", &CuptiSwitches::hold_buffers},
    {"subscribe_ms", &CuptiSwitches::subscribe_ms},
    {"first_subscribe_ms", &CuptiSwitches::first_subscribe_ms},
    {"forced_flush_ms", &CuptiSwitches::forced_flush_ms},
    {"launch_id", &CuptiSwitches::launch_id},
    {"overhead_kind", &CuptiSwitches::overhead_kind},
    {"overhead_us", &CuptiSwitches::overhead_us},
    {"next_record_us", &CuptiSwitches::next_record_us},
};

bool take_graph_ids(std::string_view value, GraphIds& out) {
  constexpr std::string_view kNames[] = {"right", "stale", "previous", "zero"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), value);
  if (found == std::end(kNames)) return false;
  out = static_cast<GraphIds>(found - std::begin(kNames));
  return true;
}

bool take_number(std::string_view name, std::string_view value, CuptiSwitches& out) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), out.*row.value);
    return error == std::errc() && end == value.data() + value.size();
  }
  return false;
}

bool take(std::string_view item, CuptiSwitches& out) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const std::string_view value = equals == item.npos ? "1" : item.substr(equals + 1);
  if (name == "refuse") {
    out.refused = value;
    return !value.empty();
  }
  return name == "graph_ids" ? take_graph_ids(value, out.graph_ids) : take_number(name, value, out);
}

CuptiSwitches read_switches() {
  CuptiSwitches s;
  constexpr uint32_t kRightGraphIds = 130101;  // fixed in 13.1 update 1
  if (cupti_version() < kRightGraphIds) s.graph_ids = GraphIds::stale;
  s.dies_without_driver = cupti_version() / 100 == 1302;
  const char* text = std::getenv("SIMCUDA_CUPTI");
  std::string_view rest(text == nullptr ? "" : text);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (!take(item, s)) {
      fmt::print(stderr, "simcuda: SIMCUDA_CUPTI={} is no switch; README.md lists them\n", item);
    }
  }
  return s;
}

}  // namespace

const CuptiSwitches& switches() {
  static const CuptiSwitches& instance = *new CuptiSwitches(read_switches());
  return instance;
}

bool is_refused(std::string_view function) { return switches().refused == function; }

}  // namespace gpuprof::simcuda
