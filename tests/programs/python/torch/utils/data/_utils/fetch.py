# SPDX-License-Identifier: Apache-2.0


class _MapDatasetFetcher:
    def __init__(self, dataset):
        self.dataset = dataset

    def fetch(self, index):
        return self.dataset[index]
