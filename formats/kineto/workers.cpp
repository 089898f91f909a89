// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto/workers.h"

namespace gpuprof::kineto {

Workers::~Workers() {
  {
    const std::lock_guard guard(lock_);
    over_ = true;
    waiting_.clear();
  }
  came_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(std::unique_ptr<Job> job) {
  const bool single = job->stretch.last && jobs_.empty() && threads_.empty();
  if (single || count_ <= 1) {
    job->run();
    job->done = true;
    jobs_.push_back(std::move(job));
    return;
  }
  while (threads_.size() < count_) threads_.emplace_back([this] { work(); });
  {
    const std::lock_guard guard(lock_);
    waiting_.push_back(job.get());
    jobs_.push_back(std::move(job));
  }
  came_.notify_one();
}

std::unique_ptr<Job> Workers::next() {
  if (jobs_.empty()) return nullptr;
  std::unique_lock guard(lock_);
  done_.wait(guard, [this] { return jobs_.front()->done; });
  std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void Workers::work() {
  std::unique_lock guard(lock_);
  while (true) {
    came_.wait(guard, [this] { return over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Job* const job = waiting_.front();
    waiting_.pop_front();
    guard.unlock();
    job->run();
    guard.lock();
    job->done = true;
    done_.notify_one();
  }
}

}  // namespace gpuprof::kineto
