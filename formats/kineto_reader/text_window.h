// SPDX-License-Identifier: Apache-2.0
// A window that slides over a trace file's text, and is cut into stretches between events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/kineto_reader/byte_source.h"

namespace gpuprof::kineto {

// May be used again for the next one: then its memory is.
struct Stretch {
  std::string memory;  // has kScanPadding zeros behind the text
  size_t begin = 0, size = 0;
  uint64_t offset = 0;
  bool last = false;  // nothing follows

  void set(std::string text, uint64_t its_offset);
  std::string_view view() const { return {memory.data() + begin, size}; }
};

class TextWindow {
 public:
  explicit TextWindow(ByteSource& source) : source_(source) {}

  // What is in the window. Followed by kScanPadding readable bytes.
  std::string_view text() const { return {text_.data() + begin_, size_ - begin_}; }
  uint64_t offset() const { return offset_; }  // of text() in the whole
  bool ended() const { return ended_; }        // text() is all that is left
  // Drops the first bytes of text().
  void consume(size_t bytes);
  // Makes the window larger; false: there is no more text.
  bool grow(size_t bytes);
  // Puts text that was taken out back in front.
  void give_back(std::string_view text);

  // The next stretch: about `bytes`, ending before an event as far as one can tell from near its
  // end; more where no event begins in that many. False: nothing is left.
  bool take(size_t bytes, size_t most, Stretch& out);

 private:
  void skip_blanks(size_t bytes);
  void hand_over(size_t cut, Stretch& out);

  ByteSource& source_;
  std::string text_;  // [begin_, size_) is in use
  size_t begin_ = 0, size_ = 0;
  uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace gpuprof::kineto
