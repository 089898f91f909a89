// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/text_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/kineto_reader/scan.h"

namespace gpuprof::kineto {

void Stretch::set(std::string text, uint64_t its_offset) {
  begin = 0;
  size = text.size();
  offset = its_offset;
  memory = std::move(text);
  memory.append(kScanPadding, '\0');
}

void TextWindow::consume(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

bool TextWindow::grow(size_t bytes) {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(text_.data(), text_.data() + begin_, size_ - begin_);
    size_ -= begin_;
    begin_ = 0;
  }
  text_.resize(std::max(text_.size(), size_ + bytes + kScanPadding));
  const size_t got = source_.read(text_.data() + size_, bytes);
  size_ += got;
  std::memset(text_.data() + size_, 0, kScanPadding);
  ended_ = got < bytes;
  return got > 0;
}

void TextWindow::give_back(std::string_view text) {
  std::string joined(text);
  joined += this->text();
  size_ = joined.size();
  joined.append(kScanPadding, '\0');
  text_ = std::move(joined);
  begin_ = 0;
  offset_ -= text.size();
}

// Blanks in front are nobody's: a file may have gigabytes of them.
void TextWindow::skip_blanks(size_t bytes) {
  do {
    const std::string_view view = text();
    const char* const end = view.data() + view.size();
    consume(static_cast<size_t>(skip_space(view.data(), end) - view.data()));
  } while (text().empty() && grow(bytes));
}

bool TextWindow::take(size_t bytes, size_t most, Stretch& out) {
  skip_blanks(bytes);
  size_t cut = 0;
  for (size_t wanted = bytes;; wanted *= 2) {
    if (text().size() < wanted) grow(wanted - text().size());
    if (ended_ && text().size() <= wanted) {
      cut = text().size();
      break;
    }
    const std::string_view view = text().substr(0, std::min(text().size(), wanted));
    const char* const start = last_event_start(view.data(), view.data() + view.size());
    if (start && start > view.data()) {
      cut = static_cast<size_t>(start - view.data());
      break;
    }
    if (wanted >= most) {
      cut = view.size();
      break;
    }
  }
  hand_over(cut, out);
  return cut > 0;
}

// What is taken out keeps its place in memory; what follows it, which is little, moves to the
// memory that `out` had.
void TextWindow::hand_over(size_t cut, Stretch& out) {
  const std::string_view rest = text().substr(cut);
  std::string next = std::move(out.memory);
  next.resize(std::max(next.size(), rest.size() + kScanPadding));
  std::memcpy(next.data(), rest.data(), rest.size());
  std::memset(next.data() + rest.size(), 0, kScanPadding);
  std::memset(text_.data() + begin_ + cut, 0, kScanPadding);
  out.begin = begin_;
  out.size = cut;
  out.offset = offset_;
  out.last = ended_ && rest.empty();
  size_ = rest.size();
  begin_ = 0;
  offset_ += cut;
  out.memory = std::exchange(text_, std::move(next));
}

}  // namespace gpuprof::kineto
