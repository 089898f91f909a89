// SPDX-License-Identifier: Apache-2.0
#include "tools/symbols/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "formats/trace/names.h"

namespace gpuprof {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

// "space::Type::" of where the function was written; "" where it is in no scope.
std::string scope_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die at = *die;
  // From the copy to its original, and from there to its declaration in a class.
  for (const unsigned link : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Die next;
    if (dwarf_attr(&at, link, &attribute) && dwarf_formref_die(&attribute, &next)) at = next;
  }
  Dwarf_Die* found = nullptr;
  const int count = dwarf_getscopes_die(&at, &found);
  const std::unique_ptr<Dwarf_Die, FreeMemory> scopes(found);
  std::string out;
  for (int i = 1; i < count; ++i) {  // the first is the function itself
    const int tag = dwarf_tag(&found[i]);
    const char* const name = dwarf_diename(&found[i]);
    if (tag == DW_TAG_namespace) {
      out.insert(0, std::string(name ? name : "(anonymous namespace)") + "::");
    } else if ((tag == DW_TAG_class_type || tag == DW_TAG_structure_type) && name) {
      out.insert(0, std::string(name) + "::");
    }
  }
  return out;
}

// The mangled name demangled, else the plain one in its scope.
std::string function_name(Dwarf_Die* die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, name, &attribute)) continue;
    const char* const text = dwarf_formstring(&attribute);
    if (text && text[0]) return demangle(text);
  }
  const char* const name = dwarf_diename(die);
  return name ? scope_of(die) + name : std::string();
}

uint64_t number_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0) return 0;
  return value;
}

// Where the function that `die` is an inlined copy of was called.
void set_call_place(Dwarf_Die* unit, Dwarf_Die* die, Frame& frame) {
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const uint64_t file = number_of(die, DW_AT_call_file);
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return;
  const char* const name = dwarf_filesrc(files, file, nullptr, nullptr);
  if (!name) return;
  frame.file = name;
  frame.line = static_cast<uint32_t>(number_of(die, DW_AT_call_line));
}

void set_line(Dwarf_Die* unit, uint64_t address, Frame& frame) {
  Dwarf_Line* const line = dwarf_getsrc_die(unit, address);
  int number = 0;
  const char* const name = line ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
  if (!name || dwarf_lineno(line, &number) != 0 || number <= 0) return;
  frame.file = name;
  frame.line = static_cast<uint32_t>(number);
}

// The DIEs around an address, innermost first: of functions, inlined functions and blocks.
std::vector<Dwarf_Die> scopes_at(Dwarf_Die* unit, uint64_t address) {
  Dwarf_Die* found = nullptr;
  int count = dwarf_getscopes(unit, address, &found);
  const std::unique_ptr<Dwarf_Die, FreeMemory> by_address(found);
  if (count <= 0) return {};
  // The scopes of an inlined function are those of where it was written; what counts here is where
  // its copy lies.
  Dwarf_Die* around = nullptr;
  count = dwarf_getscopes_die(&found[0], &around);
  const std::unique_ptr<Dwarf_Die, FreeMemory> by_place(around);
  if (count <= 0) return {};
  return std::vector<Dwarf_Die>(around, around + count);
}

// Where a unit that another one imports has its entries; else where those within an entry are.
bool first_within(Dwarf_Die* at, Dwarf_Die* out) {
  Dwarf_Attribute attribute;
  Dwarf_Die unit;
  if (dwarf_tag(at) != DW_TAG_imported_unit) return dwarf_child(at, out) == 0;
  return dwarf_attr(at, DW_AT_import, &attribute) && dwarf_formref_die(&attribute, &unit) &&
         dwarf_child(&unit, out) == 0;
}

// No entry of the unit lies deeper than compilers nest them, and there are not endlessly many.
bool entries_are_shallow(Dwarf_Die unit) {
  constexpr size_t kDeepest = 1000, kMost = 50'000'000;
  std::vector<Dwarf_Die> path = {unit};
  Dwarf_Die next;
  for (size_t count = 0; count < kMost; ++count) {
    if (first_within(&path.back(), &next)) {
      path.push_back(next);
      if (path.size() > kDeepest) return false;
      continue;
    }
    while (path.size() > 1 && dwarf_siblingof(&path.back(), &next) != 0) path.pop_back();
    if (path.size() == 1) return true;
    path.back() = next;
  }
  return false;
}

}  // namespace

DwarfLines::DwarfLines(Dwarf* dwarf) : dwarf_(dwarf) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
      if (begin < end) ranges_.push_back({begin, end, dwarf_dieoffset(&die)});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

bool DwarfLines::is_shallow(Dwarf_Die unit) const {
  const auto [known, fresh] = shallow_.try_emplace(dwarf_dieoffset(&unit), true);
  if (fresh) known->second = entries_are_shallow(unit);
  return known->second;
}

std::vector<Frame> DwarfLines::at(uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin() || address >= after[-1].end) return {};
  Dwarf_Die unit;
  if (!dwarf_offdie(dwarf_, after[-1].unit, &unit) || !is_shallow(unit)) return {};
  std::vector<Frame> frames;
  Frame frame;
  set_line(&unit, address, frame);
  for (Dwarf_Die& die : scopes_at(&unit, address)) {
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    frame.function = function_name(&die);
    frame.inlined = tag == DW_TAG_inlined_subroutine;
    frames.push_back(frame);
    if (tag == DW_TAG_subprogram) break;
    frame = Frame();
    set_call_place(&unit, &die, frame);
  }
  return frames;
}

}  // namespace gpuprof
