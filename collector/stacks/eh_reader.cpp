// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/eh_reader.h"

#include <cstddef>
#include <cstring>

namespace gpuprof::eh {

template <typename T>
T Reader::fixed() {
  T value{};
  if (!ok || (end && end - at < static_cast<ptrdiff_t>(sizeof(T)))) {
    ok = false;
    return value;
  }
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

uint64_t Reader::uleb() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = fixed<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    if (!(byte & 0x80)) return value;
  }
  ok = false;
  return 0;
}

int64_t Reader::sleb() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64;) {
    const auto byte = fixed<uint8_t>();
    value |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte & 0x80) continue;
    if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  ok = false;
  return 0;
}

uint64_t Reader::pointer(uint8_t encoding) {
  if (encoding == kOmitted) return 0;
  const auto place = reinterpret_cast<uint64_t>(at);
  uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c: value = fixed<uint64_t>(); break;
    case 0x01: value = uleb(); break;
    case 0x02: value = fixed<uint16_t>(); break;
    case 0x03: value = fixed<uint32_t>(); break;
    case 0x09: value = static_cast<uint64_t>(sleb()); break;
    case 0x0a: value = static_cast<uint64_t>(int64_t{fixed<int16_t>()}); break;
    case 0x0b: value = static_cast<uint64_t>(int64_t{fixed<int32_t>()}); break;
    default: ok = false;
  }
  switch (encoding & 0x70) {
    case 0: break;
    case kRelativeToPlace: value += place; break;
    case kRelativeToData: value += reinterpret_cast<uint64_t>(data); break;
    default: ok = false;
  }
  return value;  // with kIndirect: where it lies; nobody here needs such a one
}

namespace {

// Numbers of registers in DWARF.
#if defined(__x86_64__)
constexpr uint64_t kFrame = 6, kStack = 7, kReturnAddress = 16;  // rbp, rsp
#elif defined(__aarch64__)
constexpr uint64_t kFrame = 29, kStack = 31, kReturnAddress = 30;  // x29, sp, x30
constexpr uint8_t kNegateSigned = 0x2d, kNegateSignedWithPc = 0x2c;
#endif
constexpr uint8_t kBaseRegisterOps = 0x70;  // DW_OP_breg0
constexpr uint8_t kLoad = 0x06;             // DW_OP_deref

// What functions of one kind have in common.
struct Common {
  uint64_t code_unit = 1;
  int64_t data_unit = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
  bool signal_frame = false;
  Reader program{};
};

bool read_common(const uint8_t* cie, Common& out) {
  Reader in{cie, nullptr, nullptr};
  const auto length = in.fixed<uint32_t>();
  if (length == 0 || length == 0xffffffffu) return false;
  in.end = in.at + length;
  if (in.fixed<uint32_t>() != 0) return false;  // not a CIE
  const auto version = in.fixed<uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* const augmentation = reinterpret_cast<const char*>(in.at);
  while (in.fixed<uint8_t>() != 0) {
  }
  out.code_unit = in.uleb();
  out.data_unit = in.sleb();
  if ((version == 1 ? in.fixed<uint8_t>() : in.uleb()) != kReturnAddress) return false;
  const uint8_t* program = in.at;
  for (const char* letter = augmentation; *letter && in.ok; ++letter) {
    switch (*letter) {
      case 'z': {
        const uint64_t bytes = in.uleb();
        out.has_augmentation = true;
        program = in.at + bytes;
        break;
      }
      case 'R': out.pointer_encoding = in.fixed<uint8_t>(); break;
      case 'L': (void)in.fixed<uint8_t>(); break;
      case 'P': {
        const auto encoding = in.fixed<uint8_t>();
        (void)in.pointer(encoding);
        break;
      }
      case 'S': out.signal_frame = true; break;
#if defined(__aarch64__)
      case 'B': break;  // with which key return addresses are signed
#endif
      default: return false;
    }
  }
  out.program = {program, in.end, nullptr, in.ok && program <= in.end};
  return out.program.ok;
}

// An expression of the form [frame pointer + offset], then perhaps what lies there.
bool read_expression(Reader& in, bool& loads, int64_t& offset) {
  const uint64_t bytes = in.uleb();
  if (!in.ok || bytes > static_cast<uint64_t>(in.end - in.at)) return false;
  Reader expression{in.at, in.at + bytes, nullptr};
  in.at += bytes;
  if (expression.fixed<uint8_t>() != kBaseRegisterOps + kFrame) return false;
  offset = expression.sleb();
  loads = expression.more();
  if (loads && expression.fixed<uint8_t>() != kLoad) return false;
  return expression.ok && !expression.more();
}

// What the instructions have said up to an address.
struct State {
  enum class How : uint8_t { same, at_end, at_frame, undefined, other };
  uint64_t end_register = kStack;
  int64_t end_offset = 0;
  bool end_loaded = false, end_other = false;
#if defined(__x86_64__)
  How frame = How::same, return_address = How::at_end;
#elif defined(__aarch64__)
  How frame = How::same, return_address = How::same;
#endif
  int64_t frame_offset = 0, return_offset = -8;
};

class Program {
 public:
  Program(const Common& common, uint64_t begin, uint64_t address)
      : common_(common), place_(begin), address_(address) {}

  // Runs until the address is reached. False: not understood.
  bool run(Reader in, bool initial) {
    while (in.more()) {
      if (!step(in)) return in.ok && passed_;
    }
    if (initial) initial_ = state_;
    return in.ok;
  }
  const State& state() const { return state_; }

 private:
  static constexpr int kDepth = 8;

  bool advance(uint64_t units) {
    place_ += units * common_.code_unit;
    passed_ = place_ > address_;
    return !passed_;
  }

  void set(uint64_t number, State::How how, int64_t offset = 0) {
    if (number == kFrame) state_.frame = how, state_.frame_offset = offset;
    if (number == kReturnAddress) state_.return_address = how, state_.return_offset = offset;
    // A caller's stack pointer is the end of the frame, unless somebody says otherwise.
    if (number == kStack && how != State::How::same) state_.end_other = true;
  }

  void restore(uint64_t number) {
    if (number == kFrame)
      state_.frame = initial_.frame, state_.frame_offset = initial_.frame_offset;
    if (number == kReturnAddress) {
      state_.return_address = initial_.return_address;
      state_.return_offset = initial_.return_offset;
    }
  }

  void define_end(uint64_t number, int64_t offset) {
    state_.end_register = number, state_.end_offset = offset;
    state_.end_loaded = state_.end_other = false;
  }

  int64_t scaled(int64_t value) const { return value * common_.data_unit; }

  bool step(Reader& in);
  bool extended(Reader& in, uint8_t code);
  bool expressions(Reader& in, uint8_t code);

  const Common& common_;
  uint64_t place_, address_;
  State state_{}, initial_{};
  State remembered_[kDepth];
  int depth_ = 0;
  bool passed_ = false;
};

// False: the address is reached (passed_), or the instruction is not known.
bool Program::step(Reader& in) {
  const auto code = in.fixed<uint8_t>();
  const uint8_t low = code & 0x3f;
  switch (code & 0xc0) {
    case 0x40: return advance(low);
    case 0x80: return set(low, State::How::at_end, scaled(static_cast<int64_t>(in.uleb()))), true;
    case 0xc0: return restore(low), true;
    default: return extended(in, code);
  }
}

bool Program::extended(Reader& in, uint8_t code) {
  switch (code) {
    case 0x00: return true;  // nop
    case 0x01:               // set_loc
      place_ = in.pointer(common_.pointer_encoding);
      passed_ = in.ok && place_ > address_;
      return !passed_;
    case 0x02: return advance(in.fixed<uint8_t>());
    case 0x03: return advance(in.fixed<uint16_t>());
    case 0x04: return advance(in.fixed<uint32_t>());
    case 0x06: return restore(in.uleb()), true;
    case 0x07: return set(in.uleb(), State::How::undefined), true;
    case 0x08: return set(in.uleb(), State::How::same), true;
    case 0x09: {  // register
      const uint64_t number = in.uleb();
      (void)in.uleb();
      return set(number, State::How::other), true;
    }
    case 0x0a:  // remember_state
      if (depth_ == kDepth) return false;
      remembered_[depth_++] = state_;
      return true;
    case 0x0b:  // restore_state
      if (depth_ == 0) return false;
      state_ = remembered_[--depth_];
      return true;
    case 0x0c: {  // def_cfa
      const uint64_t number = in.uleb();
      return define_end(number, static_cast<int64_t>(in.uleb())), true;
    }
    case 0x0d: return define_end(in.uleb(), state_.end_offset), true;  // def_cfa_register
    case 0x0e: return define_end(state_.end_register, static_cast<int64_t>(in.uleb())), true;
    case 0x12: {  // def_cfa_sf
      const uint64_t number = in.uleb();
      return define_end(number, scaled(in.sleb())), true;
    }
    case 0x13: return define_end(state_.end_register, scaled(in.sleb())), true;
    case 0x05:    // offset_extended
    case 0x11: {  // offset_extended_sf
      const uint64_t number = in.uleb();
      const int64_t offset = code == 0x05 ? static_cast<int64_t>(in.uleb()) : in.sleb();
      return set(number, State::How::at_end, scaled(offset)), true;
    }
    case 0x2e: return (void)in.uleb(), true;  // GNU_args_size
#if defined(__aarch64__)
    case kNegateSigned:
    case kNegateSignedWithPc: return true;  // the signature is taken off wherever there is one
#endif
    default: return expressions(in, code);
  }
}

bool Program::expressions(Reader& in, uint8_t code) {
  bool loads = false;
  int64_t offset = 0;
  switch (code) {
    case 0x0f:  // def_cfa_expression
      state_.end_other = !read_expression(in, loads, offset);
      state_.end_register = kFrame, state_.end_offset = offset, state_.end_loaded = loads;
      return in.ok;
    case 0x10: {  // expression: where the register is saved
      const uint64_t number = in.uleb();
      const bool plain = read_expression(in, loads, offset) && !loads;
      return set(number, plain ? State::How::at_frame : State::How::other, offset), in.ok;
    }
    case 0x14:  // val_offset
    case 0x15:  // val_offset_sf
    {
      const uint64_t number = in.uleb();
      (void)in.uleb();
      return set(number, State::How::other), true;
    }
    case 0x16: {  // val_expression
      const uint64_t number = in.uleb();
      (void)read_expression(in, loads, offset);
      return set(number, State::How::other), in.ok;
    }
    default: return false;
  }
}

// False: not understood.
bool to_saved(State::How how, FrameRule::Saved& out) {
  switch (how) {
    case State::How::undefined:  // lost: no frame further out can rely on it
    case State::How::same: out = FrameRule::Saved::no; break;
    case State::How::at_end: out = FrameRule::Saved::at_end; break;
    case State::How::at_frame: out = FrameRule::Saved::at_frame; break;
    case State::How::other: return false;
  }
  return true;
}

bool to_rule(const State& state, FrameRule& out) {
  using How = State::How;
  out = FrameRule();
  if (state.return_address == How::undefined) {
    out.base = FrameRule::Base::outermost;
    return true;
  }
  const bool from_frame = state.end_register == kFrame;
  if (state.end_other || (!from_frame && state.end_register != kStack)) return false;
#if defined(__x86_64__)
  if (state.return_address != How::at_end || state.return_offset != -8) return false;
  if (state.frame_offset != static_cast<int16_t>(state.frame_offset)) return false;
#endif
  if (state.end_offset != static_cast<int32_t>(state.end_offset)) return false;
  if (state.frame_offset != static_cast<int32_t>(state.frame_offset)) return false;
  if (state.return_offset != static_cast<int32_t>(state.return_offset)) return false;
  if (!to_saved(state.frame, out.saved) || !to_saved(state.return_address, out.returns)) {
    return false;
  }
  out.saved_offset = static_cast<int32_t>(state.frame_offset);
  out.return_offset = static_cast<int32_t>(state.return_offset);
  out.offset = static_cast<int32_t>(state.end_offset);
  out.base = state.end_loaded ? FrameRule::Base::loaded
             : from_frame     ? FrameRule::Base::frame
                              : FrameRule::Base::stack;
  return true;
}

}  // namespace

bool read_rule(const uint8_t* fde, uint64_t address, FrameRule& out) {
  Reader in{fde, nullptr, nullptr};
  const auto length = in.fixed<uint32_t>();
  if (length == 0 || length == 0xffffffffu) return false;
  in.end = in.at + length;
  const uint8_t* const here = in.at;
  const auto distance = in.fixed<uint32_t>();
  Common common;
  if (distance == 0 || !read_common(here - distance, common)) return false;
  const uint64_t begin = in.pointer(common.pointer_encoding);
  const uint64_t bytes = in.pointer(common.pointer_encoding & 0x0f);
  if (!in.ok || (common.pointer_encoding & kIndirect) || address - begin >= bytes) return false;
  if (common.signal_frame) {
    out = FrameRule();
    out.base = FrameRule::Base::signal_frame;
    return true;
  }
  if (common.has_augmentation) {
    const uint64_t skip = in.uleb();
    if (!in.ok || skip > static_cast<uint64_t>(in.end - in.at)) return false;
    in.at += skip;
  }
  Program program(common, begin, address);
  return program.run(common.program, true) && program.run(in, false) &&
         to_rule(program.state(), out);
}

}  // namespace gpuprof::eh
