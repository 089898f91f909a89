// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto/text_window.h"

#include <algorithm>
#include <cstring>

#include "formats/kineto/scan.h"

namespace gpuprof::kineto {

std::string_view Stretch::view() const {
  return {text.data(), text.size() - std::min(text.size(), kScanPadding)};
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

bool TextWindow::take(size_t bytes, size_t most, Stretch& out) {
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
  out.text.assign(text().data(), cut);
  out.text.append(kScanPadding, '\0');
  out.offset = offset_;
  consume(cut);
  out.last = ended_ && text().empty();
  return cut > 0;
}

}  // namespace gpuprof::kineto
