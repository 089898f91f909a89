# SPDX-License-Identifier: Apache-2.0
"""A loader as PyTorch's: workers are processes that are given indices and send batches, in order, some ahead."""
import multiprocessing

from ._utils import worker

AHEAD = 2  # batches for each worker


class DataLoader:
    def __init__(self, dataset, num_workers, start="fork"):
        self.dataset, self.count = dataset, num_workers
        context = multiprocessing.get_context(start)
        self.results = context.Queue()
        self.indices = [context.Queue() for _ in range(num_workers)]
        self.workers = [context.Process(target=worker._worker_loop, daemon=True,
                                        args=(dataset, indices, self.results, number, num_workers))
                        for number, indices in enumerate(self.indices)]
        for process in self.workers:
            process.start()

    def __iter__(self):
        asked, ready = min(AHEAD * self.count, len(self.dataset)), {}
        for index in range(asked):
            self.indices[index % self.count].put(index)
        for index in range(len(self.dataset)):
            while index not in ready:
                number, batch = self.results.get()
                ready[number] = batch
            if asked < len(self.dataset):
                self.indices[asked % self.count].put(asked)
                asked += 1
            yield ready.pop(index)

    def close(self):
        """The workers' exit codes."""
        for indices in self.indices:
            indices.put(None)
        return self._codes()

    def kill(self):
        for process in self.workers:
            process.kill()
        return self._codes()

    def _codes(self):
        for process in self.workers:
            process.join(30)
        return [process.exitcode for process in self.workers]
