# SPDX-License-Identifier: Apache-2.0
"""What a worker does, and how it is known as one, as in PyTorch."""
from torch import _C

from .fetch import _MapDatasetFetcher

_worker_info = None


class WorkerInfo:
    def __init__(self, **values):
        self.__dict__.update(values)


def _worker_loop(dataset, indices, results, worker_id, num_workers):
    global _worker_info
    if hasattr(_C, "_set_thread_name"):
        _C._set_thread_name("pt_data_worker")
    _worker_info = WorkerInfo(id=worker_id, num_workers=num_workers, dataset=dataset)
    fetcher = _MapDatasetFetcher(dataset)
    while True:
        index = indices.get()
        if index is None:
            return
        results.put((index, fetcher.fetch(index)))
