"""The samplers, loaders and splits of both libraries draw the same numbers."""

import pytest
import torch
import torch.utils.data as theirs

import rushlight
import rushlight.utils.data as ours

BOTH = [(rushlight, ours), (torch, theirs)]


def agree(run):
    results = []
    for library, data in BOTH:
        library.manual_seed(4)
        results.append((run(library, data), library.rand(2).tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("sampler", [
    lambda data: data.RandomSampler(range(11)),
    lambda data: data.RandomSampler(range(11), replacement=True, num_samples=70),
    lambda data: data.RandomSampler(range(11), num_samples=25),
    lambda data: data.SubsetRandomSampler([3, 5, 8, 13]),
    lambda data: data.WeightedRandomSampler([0.1, 0.2, 0.7], 9),
    lambda data: data.WeightedRandomSampler([0.1, 0.2, 0.7], 2, replacement=False),
    lambda data: data.DistributedSampler(range(11), 3, 1, seed=5),
    lambda data: data.BatchSampler(data.RandomSampler(range(11)), 4, True),
])  # fmt: skip
def test_samplers(sampler):
    agree(lambda library, data: [list(sampler(data)), list(sampler(data))])


@pytest.mark.parametrize("lengths", [[3, 7], [0.33, 0.33, 0.34], [0.5, 0.5]])
def test_random_split(lengths):
    agree(lambda library, data: [list(part.indices) for part in data.random_split(range(10), lengths)])


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
def test_loaders(workers, persistent):
    def run(library, data):
        loader = data.DataLoader(
            range(10),
            batch_size=3,
            shuffle=True,
            num_workers=workers,
            persistent_workers=persistent,
            collate_fn=lambda rows: (rows, library.rand(1).item() if workers else 0),
        )
        return [list(loader) for _ in range(3)]

    agree(run)


@pytest.mark.parametrize("lengths", [[1, 2], [0.5, 0.6], [-0.5, 1.5]])
def test_errors(lengths):
    texts = []
    for _, data in BOTH:
        with pytest.raises(ValueError) as caught:
            data.random_split(range(10), lengths)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
