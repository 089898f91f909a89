// SPDX-License-Identifier: Apache-2.0
#include "formats/io/parallel_output.h"

namespace gpuprof {

void ParallelOutput::Stretch::run() {
  if (fill) size = fill(text);
  if (pack) gzip_member({text.data(), size}, packed);
}

std::unique_ptr<ParallelOutput::Stretch> ParallelOutput::spare() {
  if (!jobs_.has_room()) write_next();
  if (spare_.empty()) return std::make_unique<Stretch>();
  std::unique_ptr<Stretch> stretch = std::move(spare_.back());
  spare_.pop_back();
  return stretch;
}

void ParallelOutput::submit(std::unique_ptr<Stretch> stretch) {
  stretch->pack = file_.compression() == Compression::gzip;
  stretch->fill || stretch->pack ? jobs_.submit(std::move(stretch))
                                 : jobs_.submit_done(std::move(stretch));
}

void ParallelOutput::add(Fill fill, uint64_t events) {
  std::unique_ptr<Stretch> stretch = spare();
  stretch->fill = std::move(fill);
  stretch->events = events;
  submit(std::move(stretch));
}

void ParallelOutput::write(std::string& text) {
  if (text.empty()) return;
  std::unique_ptr<Stretch> stretch = spare();
  stretch->text.swap(text);
  text.clear();
  stretch->size = stretch->text.size();
  stretch->events = 0;
  submit(std::move(stretch));
}

void ParallelOutput::write_next() {
  std::unique_ptr<Stretch> stretch = jobs_.next();
  if (!stretch) return;
  stretch->pack ? file_.write_members(stretch->packed)
                : file_.write(stretch->text.data(), stretch->size);
  if (done_ && stretch->events) done_(stretch->events);
  stretch->fill = nullptr;
  stretch->packed.clear();
  spare_.push_back(std::move(stretch));
}

void ParallelOutput::finish() {
  while (!jobs_.empty()) write_next();
}

}  // namespace gpuprof
