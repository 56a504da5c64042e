#!/usr/bin/env python3
"""Writes the fixtures of the losses for embeddings: values and gradients computed by sentence-transformers.

    python3 fixtures_sentences.py

The JSON file has the format that fixtures.py describes. It was written with sentence-transformers 6.2.0 and torch 2.15.
"""
import math

import torch
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss, MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim

from fixtures import case, rand, write


def contrastive_cases():
    for name, texts, scale in (
        ("pairs", [[0, 1], [2, 3], [4, 5], [6, 7]], 20.0),
        ("hard negatives", [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], 5.0),
        ("equal texts", [[0, 1, 2], [0, 3, 4], [5, 1, 0], [6, 7, 7], [8, 8, 2]], 10.0),
    ):
        texts = torch.tensor(texts)
        rows, each = texts.shape
        vectors = rand(rows * each, 6)

        def similarity(queries, documents):  # of queries (B) and documents (K-1, B), in this order
            allowed, own = texts[:, 1:].t().reshape(-1), torch.arange(rows)
            equal = (allowed[None] == texts[:, :1]) | (allowed[None] == texts[:, 1:2])
            equal[own, own] = False  # a query's own positive counts
            return cos_sim(queries, documents).masked_fill(equal, -math.inf)

        loss = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=scale, similarity_fct=similarity)
        columns = [vectors[i::each] for i in range(each)]
        yield case(name, {"vectors": vectors, "texts": texts}, {}, {"loss": loss.compute_loss_from_embeddings(columns, None)}, scale=1 / scale)
    vectors, scores = rand(8, 6), torch.tensor([0.5, -1, 0.25, 1])
    loss = CosineSimilarityLoss(torch.nn.Identity()).compute_loss_from_embeddings([vectors[0::2], vectors[1::2]], scores)
    yield case("scores", {"vectors": vectors, "texts": torch.arange(8).reshape(4, 2), "scores": scores}, {}, {"loss": loss}, scale=1)


if __name__ == "__main__":
    torch.manual_seed(7)
    write("contrastive", list(contrastive_cases()))
