// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/short_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>

#include "formats/trace/names.h"
#include "tools/hash.h"

namespace gpuprof::analysis {
namespace {

constexpr std::string_view kOpening = "<({[", kClosing = ">)}]";

// They say how a kernel reaches its elements; what it does to them stands beside.
constexpr std::string_view kCommonArguments[] = {"Array",
                                                 "array",
                                                 "TrivialOffsetCalculator",
                                                 "OffsetCalculator",
                                                 "LoadWithoutCast",
                                                 "StoreWithoutCast",
                                                 "TensorListMetadata",
                                                 "RestrictPtrTraits",
                                                 "DefaultPtrTraits",
                                                 "Params"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls `visit(index)` for each byte of `text` that stands in no bracket, opening ones included.
// False: brackets do not match. "->", "operator<" and the like are no brackets.
template <typename Visit>
bool each_outside(std::string_view text, Visit visit) {
  std::string open;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == 'o' && text.substr(i).starts_with("operator") && (i == 0 || !is_word(text[i - 1]))) {
      size_t end = i + 8;
      while (end < text.size() && std::string_view("<>=-!+*/&|^%~").find(text[end]) != text.npos) {
        ++end;
      }
      if (text.substr(end).starts_with("()") && end == i + 8) end += 2;
      if (open.empty()) {
        for (; i < end; ++i) visit(i);
      }
      i = end - 1;
      continue;
    }
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;
    if (kClosing.find(c) != kClosing.npos) {
      if (open.empty() || kClosing.find(c) != kOpening.find(open.back())) return false;
      open.pop_back();
      continue;
    }
    if (open.empty()) visit(i);
    if (kOpening.find(c) != kOpening.npos) open += c;
  }
  return open.empty();
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  each_outside(text, [&](size_t i) {
    if (text[i] != ',') return;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  });
  if (!trimmed(text.substr(begin)).empty()) out.push_back(trimmed(text.substr(begin)));
  return out;
}

// "a::b<c::d>::e" at the "::" outside of brackets.
std::vector<std::string_view> components_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  each_outside(text, [&](size_t i) {
    if (i < begin || !text.substr(i).starts_with("::")) return;
    if (i > begin) out.push_back(text.substr(begin, i - begin));
    begin = i + 2;
  });
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

void erase_all(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at)) {
    text.erase(at, what.size());
  }
}

std::string parts_of(std::string_view text);

// "float, float, float" -> "float x3".
std::string list_of(const std::vector<std::string>& items) {
  std::string out;
  for (size_t i = 0; i < items.size();) {
    size_t end = i + 1;
    while (end < items.size() && items[end] == items[i]) ++end;
    const bool number = std::string_view("-0123456789").find(items[i].front()) != std::string::npos;
    const size_t count = number ? 1 : end - i;
    if (!out.empty()) out += ", ";
    out += items[i];
    if (count > 2) out += fmt::format(" x{}", count);
    i += count > 2 ? count : 1;
  }
  return out;
}

std::string arguments_of(std::string_view inside) {
  std::vector<std::string> items;
  for (const std::string_view each : split_at_commas(inside)) {
    std::string item = parts_of(each);
    const std::string_view head = std::string_view(item).substr(0, item.find('<'));
    const bool common = std::find(std::begin(kCommonArguments), std::end(kCommonArguments), head) !=
                        std::end(kCommonArguments);
    if (!common && !item.empty()) items.push_back(std::move(item));
  }
  return list_of(items);
}

// The inside of the brackets that `text` has from `at` on, and where they end.
struct Brackets {
  std::string_view inside;
  size_t end;
};
Brackets brackets_at(std::string_view text, size_t at) {
  size_t end = text.size();
  bool closed = false;
  std::string open(1, text[at]);
  for (size_t i = at + 1; i < text.size() && !closed; ++i) {
    const char c = text[i];
    if (c == '>' && text[i - 1] == '-') continue;
    if (kOpening.find(c) != kOpening.npos) open += c;
    if (kClosing.find(c) == kClosing.npos) continue;
    open.pop_back();
    closed = open.empty();
    if (closed) end = i;
  }
  return {text.substr(at + 1, end - at - 1), std::min(end + 1, text.size())};
}

// "{lambda(float)#1}": its number and parameters.
struct Lambda {
  std::string number, parameters;
};
std::optional<Lambda> lambda_of(std::string_view component) {
  if (!component.starts_with("{lambda(") && !component.starts_with("'lambda")) return std::nullopt;
  const size_t round = component.find('(');
  if (round == component.npos) return Lambda{"1", ""};
  const Brackets parameters = brackets_at(component, round);
  const size_t mark = component.find('#', parameters.end);
  std::string number(mark == component.npos ? "" : component.substr(mark + 1));
  while (!number.empty() && std::isdigit(static_cast<unsigned char>(number.back())) == 0) {
    number.pop_back();
  }
  return Lambda{number, arguments_of(parameters.inside)};
}

// A component with its template arguments, without its parameters.
std::string component_text(std::string_view component) {
  const size_t bracket = component.find_first_of("<(");
  const bool an_operator = component.starts_with("operator");
  if (bracket == component.npos || an_operator) {
    return std::string(an_operator ? component.substr(0, component.find("() const")) : component);
  }
  std::string out(component.substr(0, bracket));
  if (component[bracket] == '(') return out;
  const Brackets arguments = brackets_at(component, bracket);
  const std::string text = arguments_of(arguments.inside);
  if (!text.empty()) out += "<" + text + ">";
  // What stands behind: "float const*" has no brackets, "Vec<float>*" has.
  const std::string_view rest = trimmed(component.substr(arguments.end));
  if (!rest.empty() && rest.find_first_not_of("*& ") == rest.npos) out += rest;
  return out;
}

// PyTorch's launchers: the functor that they are given says what runs.
constexpr std::string_view kLaunchers[] = {"gpu_kernel_impl<", "gpu_kernel_impl_nocast<"};

// Of a lambda: the function it stands in, and the numbers.
std::string lambda_text(const std::vector<std::string_view>& components) {
  std::string function, numbers, parameters;
  for (const std::string_view each : components) {
    if (const auto lambda = lambda_of(each)) {
      numbers += (numbers.empty() ? "" : ".") + lambda->number;
      parameters = lambda->parameters;
    } else if (numbers.empty() && (function.empty() || !each.starts_with("operator()"))) {
      function = component_text(each);  // of a functor's operator(): the functor
    }
  }
  for (const std::string_view launcher : kLaunchers) {
    if (!function.starts_with(launcher)) continue;
    return function.substr(launcher.size(), function.size() - launcher.size() - 1);
  }
  return fmt::format("{}{{{}({})}}", function, numbers, parameters);
}

// Of a name or type.
std::string parts_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('(')) {  // (some_enum)3
    const Brackets cast = brackets_at(text, 0);
    const std::string_view value = trimmed(text.substr(cast.end));
    return value.empty() ? parts_of(cast.inside) : parts_of(value);
  }
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    while (!text.empty() && (text.back() == 'u' || text.back() == 'l')) text.remove_suffix(1);
    return std::string(text);
  }
  const std::vector<std::string_view> components = components_of(text);
  if (components.empty()) return std::string(text);
  if (std::any_of(components.begin(), components.end(),
                  [](std::string_view each) { return lambda_of(each).has_value(); })) {
    return lambda_text(components);
  }
  // Namespaces have neither arguments nor parameters; a class that has is named.
  std::string out;
  for (size_t i = 0; i < components.size(); ++i) {
    const bool last = i + 1 == components.size();
    if (!last && components[i].find_first_of("<(") == components[i].npos && out.empty()) continue;
    if (!out.empty()) out += "::";
    out += component_text(components[i]);
  }
  return out;
}

// Where the function's name begins: behind its result.
size_t name_begin(std::string_view text) {
  size_t begin = 0;
  bool parameters = false;
  each_outside(text, [&](size_t i) {
    if (text[i] == '(' && i > 0) parameters = true;
    if (text[i] == ' ' && !parameters && !text.substr(i).starts_with(" const")) begin = i + 1;
  });
  return begin;
}

// Of a mangled name that the C++ library here cannot read: its innermost identifier.
std::string identifier_of(std::string_view mangled) {
  std::string found;
  size_t at = mangled.find_first_of("0123456789");
  while (at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0) {
    size_t length = 0;
    while (at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0) {
      length = std::min<size_t>(length * 10 + static_cast<size_t>(mangled[at++] - '0'), 1 << 20);
    }
    if (length == 0 || at + length > mangled.size()) break;
    found = mangled.substr(at, length);
    at += length;
  }
  return found;
}

// Without "_kernel" and the numbers that its arguments begin with (elements a thread, threads).
std::string without_numbers(std::string_view text) {
  const size_t bracket = text.find('<');
  if (bracket == text.npos || !text.ends_with('>')) return std::string(text);
  std::string_view head = text.substr(0, bracket);
  if (head.ends_with("_kernel")) head.remove_suffix(7);
  std::string_view arguments = text.substr(bracket + 1);
  while (true) {
    const size_t end = arguments.find_first_not_of("0123456789");
    if (end == arguments.npos || end == 0 || !arguments.substr(end).starts_with(", ")) break;
    arguments.remove_prefix(end + 2);
  }
  return std::string(head) + "<" + std::string(arguments);
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Both ends of `text` and `digits` of the hash of `full`. Functor and types stand at the end.
std::string tagged(std::string_view whole, std::string_view full, size_t width, size_t digits) {
  const std::string tag =
      "~" + fmt::format("{:016x}", fnv1a(full)).substr(0, std::min<size_t>(digits, 16));
  if (whole.size() + tag.size() <= width) return std::string(whole) + tag;
  const std::string text = without_numbers(whole);
  if (text.size() + tag.size() <= width) return text + tag;
  constexpr std::string_view kGap = "...";
  const size_t room = width > tag.size() + kGap.size() ? width - tag.size() - kGap.size() : 2;
  const size_t at_end = text.find('<') == text.npos ? room / 3 : room * 3 / 5;
  size_t head = room - at_end, tail = text.size() - at_end;
  while (head > 0 && continues_character(text[head])) --head;
  while (tail < text.size() && continues_character(text[tail])) ++tail;
  return text.substr(0, head) + std::string(kGap) + text.substr(tail) + tag;
}

}  // namespace

std::string name_parts(std::string_view name) {
  std::string text = demangle(name);
  if (text.starts_with("_Z")) {
    const std::string identifier = identifier_of(text);
    return identifier.empty() ? text : identifier + "<...>";
  }
  if (text.ends_with(".kd")) text.resize(text.size() - 3);
  if (const size_t clone = text.find(" [clone "); clone != text.npos) text.resize(clone);
  for (const char* const hidden :
       {"(anonymous namespace)::", "{anonymous}::", "<unnamed>::", "(anonymous class)::"}) {
    erase_all(text, hidden);
  }
  const bool cxx =
      text.find("::") != text.npos || text.find('<') != text.npos || text.find('(') != text.npos;
  if (!cxx || !each_outside(text, [](size_t) {})) return text;
  const std::string parts = parts_of(std::string_view(text).substr(name_begin(text)));
  return parts.empty() || !is_word(parts.front()) ? text : parts;
}

std::map<std::string, std::string, std::less<>> short_names(std::span<const std::string> names,
                                                            size_t width) {
  constexpr size_t kFirstDigits = 4, kMostDigits = 16, kLeastWidth = 24;
  width = std::max(width, kLeastWidth);
  std::map<std::string, std::string, std::less<>> out, parts;
  std::map<std::string, size_t> alike;
  for (const std::string& name : names) {
    const auto [at, fresh] = parts.try_emplace(name, std::string());
    if (!fresh) continue;
    at->second = name_parts(name);
    ++alike[at->second];
  }
  for (const auto& [name, text] : parts) {
    const bool whole = alike[text] == 1 && text.size() <= width && !text.ends_with("<...>");
    out[name] = whole ? text : tagged(text, name, width, kFirstDigits);
  }
  for (size_t digits = 2 * kFirstDigits; digits <= kMostDigits; digits *= 2) {
    std::map<std::string, size_t> shown;
    for (const auto& [name, text] : out) ++shown[text];
    for (auto& [name, text] : out) {
      if (shown[text] > 1) text = tagged(parts[name], name, width, digits);
    }
  }
  return out;
}

}  // namespace gpuprof::analysis
