// SPDX-License-Identifier: Apache-2.0
// Work done by several threads whose results are taken in the order in which it was given out.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace gpuprof {

// As many threads as the machine has, within reason.
inline unsigned worker_count() {
  constexpr unsigned kMostThreads = 8;  // past that, taking results in order is what takes long
  return std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
}

// `Job` has run(), which touches nothing that others write; what it throws comes out of next().
// Used from one thread, which does jobs itself while it has to wait for one, and all of them where
// the system gives it no other thread. Destroying it drops the jobs that were not begun.
template <typename Job>
class OrderedJobs {
 public:
  explicit OrderedJobs(unsigned threads = worker_count()) : count_(threads) {}
  OrderedJobs(const OrderedJobs&) = delete;
  OrderedJobs& operator=(const OrderedJobs&) = delete;
  ~OrderedJobs() {
    {
      const std::lock_guard guard(lock_);
      over_ = true;
      waiting_.clear();
    }
    came_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Past that, results should be taken before more is given out: what is in memory is bounded.
  // As many as let nobody run out of work while the owner takes results or a job.
  bool has_room() const { return jobs_.size() < count_ + size_t{6}; }
  bool empty() const { return jobs_.empty(); }

  // `alone`: no other job follows, so that a thread is not worth starting.
  void submit(std::unique_ptr<Job> job, bool alone = false) {
    if (!(alone && jobs_.empty())) start_threads();
    if (threads_.empty()) {
      jobs_.push_back({std::move(job), true, nullptr});
      return run(jobs_.back());
    }
    {
      const std::lock_guard guard(lock_);
      jobs_.push_back({std::move(job), false, nullptr});
      waiting_.push_back(&jobs_.back());
    }
    came_.notify_one();
  }
  // The same for one that needs no work but keeps its place.
  void submit_done(std::unique_ptr<Job> job) { jobs_.push_back({std::move(job), true, nullptr}); }

  // The oldest job, done; null: there is none.
  std::unique_ptr<Job> next() {
    if (jobs_.empty()) return nullptr;
    {
      std::unique_lock guard(lock_);
      while (!jobs_.front().done) {
        waiting_.empty() ? done_.wait(guard) : run_next(guard);
      }
    }
    Entry entry = std::move(jobs_.front());
    jobs_.pop_front();
    if (entry.error) std::rethrow_exception(entry.error);
    return std::move(entry.job);
  }

 private:
  struct Entry {
    std::unique_ptr<Job> job;
    bool done;  // under the lock
    std::exception_ptr error;
  };

  void start_threads() {
    if (count_ <= 1) return;
    try {
      while (threads_.size() + 1 < count_) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      count_ = static_cast<unsigned>(threads_.size()) + 1;  // a limit on processes or memory
    }
  }

  static void run(Entry& entry) {
    try {
      entry.job->run();
    } catch (...) {
      entry.error = std::current_exception();
    }
  }

  void work() {
    std::unique_lock guard(lock_);
    while (true) {
      came_.wait(guard, [this] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      run_next(guard);
      done_.notify_one();
    }
  }

  // Runs the oldest job that waits, outside the lock.
  void run_next(std::unique_lock<std::mutex>& guard) {
    Entry* const entry = waiting_.front();
    waiting_.pop_front();
    guard.unlock();
    run(*entry);
    guard.lock();
    entry->done = true;
  }

  unsigned count_;
  std::vector<std::thread> threads_;
  std::deque<Entry> jobs_;  // in order; touched by the owner only; entries do not move
  std::deque<Entry*> waiting_;
  std::mutex lock_;
  std::condition_variable came_, done_;
  bool over_ = false;
};

}  // namespace gpuprof
