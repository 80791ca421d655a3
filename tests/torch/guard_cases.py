"""Calls whose arguments a CUDA kernel asserts on, and what the guard has to say of each; the same on every device."""

import torch
import torch.nn.functional as F

INDEX, VALUE = "GuardIndexError", "GuardValueError"
NAN, INF = float("nan"), float("inf")


def ints(*values, on):
    return torch.tensor(values, device=on)


def reals(*values, on):
    return torch.tensor(values, device=on)


def table(on):
    return torch.arange(15.0, device=on).reshape(3, 5)


def bag(indices, offsets, on):
    return F.embedding_bag(ints(*indices, on=on), torch.ones(10, 2, device=on), ints(*offsets, on=on))


def labels_2d(on):
    target = torch.zeros(1, 2, 2, dtype=torch.long, device=on)
    target[0, 1, 0] = 9
    return F.nll_loss(torch.zeros(1, 5, 2, 2, device=on), target)


def tokens(on):
    found = torch.zeros(32, 128, dtype=torch.long, device=on)
    found[3, 7] = 1003
    return found


def ctc(on, target_length):
    scores = torch.zeros(5, 1, 4, device=on).log_softmax(-1)
    return F.ctc_loss(scores, ints([1, 9], on=on), torch.tensor([5]), torch.tensor([target_length]))


def fractional_pool(on, sample):
    samples = torch.full((1, 1, 2), 0.5, device=on)
    samples[0, 0, 1] = sample
    return F.fractional_max_pool2d(torch.ones(1, 1, 5, 5, device=on), 2, output_size=2, _random_samples=samples)


def unpool(on):
    indices = torch.zeros(1, 1, 2, 2, dtype=torch.long, device=on)
    indices[0, 0, 1, 1] = 99
    return F.max_unpool2d(torch.ones(1, 1, 2, 2, device=on), indices, 2)


#: A name, the call, the exception's type and its sentence.
WRONG = [
    (
        "embedding",
        lambda on: F.embedding(tokens(on), torch.ones(1000, 8, device=on)),
        INDEX,
        "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)",
    ),
    (
        "embedding of int32",
        lambda on: F.embedding(tokens(on).int(), torch.ones(1000, 8, device=on)),
        INDEX,
        "embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)",
    ),
    (
        "embedding, a negative index",
        lambda on: F.embedding(ints(2, -1, on=on), torch.ones(10, 2, device=on)),
        INDEX,
        "embedding index: value -1 at [1] is outside [0, 10) (1 of 2)",
    ),
    (
        "embedding, max_norm",
        lambda on: F.embedding(ints(2, 11, on=on), torch.ones(10, 2, device=on), max_norm=1.0),
        INDEX,
        "embedding index: value 11 at [1] is outside [0, 10) (1 of 2)",
    ),
    (
        "embedding of a strided index",
        lambda on: F.embedding(tokens(on).t(), torch.ones(1000, 8, device=on)),
        INDEX,
        "embedding index: value 1003 at [7, 3] is outside [0, 1000) (1 of 4096)",
    ),
    (
        "embedding_bag",
        lambda on: bag((1, 11, 12), (0, 2), on),
        INDEX,
        "embedding_bag index: value 11 at [1] is outside [0, 10) (2 of 3)",
    ),
    (
        "embedding_bag, offsets",
        lambda on: bag((1, 2, 3), (0, 2, 1), on),
        VALUE,
        "embedding_bag offset: the offset at [2] is 1 smaller than the one before it",
    ),
    ("index", lambda on: table(on)[ints(0, 7, on=on)], INDEX, "index: value 7 at [1] is outside [-3, 3) (1 of 2)"),
    (
        "index, second dimension",
        lambda on: table(on)[:, ints(0, -6, on=on)],
        INDEX,
        "index for dimension 1: value -6 at [1] is outside [-5, 5) (1 of 2)",
    ),
    (
        "index, behind a mask",
        lambda on: torch.ones(2, 3, 4, device=on)[torch.ones(2, 3, dtype=torch.bool, device=on), ints(4, on=on)],
        INDEX,
        "index for dimension 2: value 4 at [0] is outside [-4, 4) (1 of 1)",
    ),
    (
        "index_put",
        lambda on: table(on).__setitem__(ints(3, on=on), 1.0),
        INDEX,
        "index_put index: value 3 at [0] is outside [-3, 3) (1 of 1)",
    ),
    (
        "index_select",
        lambda on: table(on).index_select(1, ints(5, on=on)),
        INDEX,
        "index_select index: value 5 at [0] is outside [0, 5) (1 of 1)",
    ),
    (
        "index_add",
        lambda on: table(on).index_add_(0, ints(3, on=on), torch.ones(1, 5, device=on)),
        INDEX,
        "index_add index: value 3 at [0] is outside [0, 3) (1 of 1)",
    ),
    (
        "index_copy",
        lambda on: table(on).index_copy(0, ints(3, on=on), torch.ones(1, 5, device=on)),
        INDEX,
        "index_copy index: value 3 at [0] is outside [0, 3) (1 of 1)",
    ),
    (
        "index_fill",
        lambda on: table(on).index_fill(0, ints(-4, on=on), 1.0),
        INDEX,
        "index_fill index: value -4 at [0] is outside [-3, 3) (1 of 1)",
    ),
    (
        "index_reduce",
        lambda on: table(on).index_reduce(0, ints(3, on=on), torch.ones(1, 5, device=on), "mean"),
        INDEX,
        "index_reduce index: value 3 at [0] is outside [0, 3) (1 of 1)",
    ),
    (
        "gather",
        lambda on: table(on).gather(1, ints([1, 6], [0, 0], on=on)),
        INDEX,
        "gather index: value 6 at [0, 1] is outside [0, 5) (1 of 4)",
    ),
    (
        "scatter",
        lambda on: table(on).scatter_(1, ints([6], on=on), 1.0),
        INDEX,
        "scatter index: value 6 at [0, 0] is outside [0, 5) (1 of 1)",
    ),
    (
        "scatter, from a tensor",
        lambda on: table(on).scatter(1, ints([6], on=on), torch.ones(1, 1, device=on)),
        INDEX,
        "scatter index: value 6 at [0, 0] is outside [0, 5) (1 of 1)",
    ),
    (
        "scatter, reduced",
        lambda on: table(on).scatter(1, ints([6], on=on), 2.0, reduce="multiply"),
        INDEX,
        "scatter index: value 6 at [0, 0] is outside [0, 5) (1 of 1)",
    ),
    (
        "scatter_add",
        lambda on: table(on).scatter_add(0, ints([3], on=on), torch.ones(1, 1, device=on)),
        INDEX,
        "scatter_add index: value 3 at [0, 0] is outside [0, 3) (1 of 1)",
    ),
    (
        "scatter_reduce",
        lambda on: table(on).scatter_reduce(0, ints([3], on=on), torch.ones(1, 1, device=on), "amax"),
        INDEX,
        "scatter_reduce index: value 3 at [0, 0] is outside [0, 3) (1 of 1)",
    ),
    (
        "take",
        lambda on: table(on).take(ints(15, on=on)),
        INDEX,
        "take index: value 15 at [0] is outside [-15, 15) (1 of 1)",
    ),
    (
        "put",
        lambda on: table(on).put_(ints(-16, on=on), reals(1.0, on=on)),
        INDEX,
        "put index: value -16 at [0] is outside [-15, 15) (1 of 1)",
    ),
    (
        "masked_scatter",
        lambda on: table(on).masked_scatter(torch.ones(3, 5, dtype=torch.bool, device=on), torch.ones(4, device=on)),
        VALUE,
        "masked_scatter source: 4 elements for a mask that selects 15",
    ),
    ("max_unpool2d", unpool, INDEX, "max_unpool index: value 99 at [0, 0, 1, 1] is outside [0, 16) (1 of 4)"),
    (
        "fractional_max_pool2d",
        lambda on: fractional_pool(on, -3.0),
        VALUE,
        "fractional_max_pool random sample: value -3.0 at [0, 0, 1] is outside [0, 1] (1 of 2)",
    ),
    (
        "repeat_interleave",
        lambda on: torch.repeat_interleave(ints(1, 2, on=on), ints(2, -3, on=on)),
        VALUE,
        "repeat_interleave repeats: value -3 at [1] is outside [0, inf) (1 of 2)",
    ),
    (
        "repeat_interleave, output_size",
        lambda on: torch.repeat_interleave(ints(1, 2, on=on), ints(2, 3, on=on), output_size=4),
        VALUE,
        "repeat_interleave output_size: 4, and the repeats add up to 5",
    ),
    (
        "nll_loss",
        lambda on: F.nll_loss(table(on), ints(1, -100, 9, on=on)),
        INDEX,
        "nll_loss target label: value 9 at [2] is outside [0, 5) (1 of 3)",
    ),
    (
        "cross_entropy",
        lambda on: F.cross_entropy(table(on), ints(1, 2, -1, on=on)),
        INDEX,
        "nll_loss target label: value -1 at [2] is outside [0, 5) (1 of 3)",
    ),
    (
        "nll_loss of an image",
        labels_2d,
        INDEX,
        "nll_loss target label: value 9 at [0, 1, 0] is outside [0, 5) (1 of 4)",
    ),
    (
        "multi_margin_loss",
        lambda on: F.multi_margin_loss(table(on), ints(1, 2, 9, on=on)),
        INDEX,
        "multi_margin_loss target label: value 9 at [2] is outside [0, 5) (1 of 3)",
    ),
    (
        "multilabel_margin_loss",
        lambda on: F.multilabel_margin_loss(table(on)[:1], ints([1, 9, -1, 0, 0], on=on)),
        INDEX,
        "multilabel_margin_loss target label: value 9 at [0, 1] is outside [-1, 5) (1 of 5)",
    ),
    ("ctc_loss", lambda on: ctc(on, 2), INDEX, "ctc_loss target label: value 9 at [0, 1] is outside [0, 4) (1 of 2)"),
    (
        "binary_cross_entropy",
        lambda on: F.binary_cross_entropy(reals(0.5, 1.5, on=on), reals(0.0, 1.0, on=on)),
        VALUE,
        "binary_cross_entropy input probability: value 1.5 at [1] is outside [0, 1] (1 of 2)",
    ),
    (
        "binary_cross_entropy, NaN",
        lambda on: F.binary_cross_entropy(reals(0.5, NAN, on=on), reals(0.0, 1.0, on=on)),
        VALUE,
        "binary_cross_entropy input probability: value nan at [1] is outside [0, 1] (1 of 2)",
    ),
    (
        "binary_cross_entropy, target",
        lambda on: F.binary_cross_entropy(reals(0.5, 0.5, on=on), reals(-1.0, 1.0, on=on)),
        VALUE,
        "binary_cross_entropy target probability: value -1.0 at [0] is outside [0, 1] (1 of 2)",
    ),
    (
        "multinomial",
        lambda on: torch.multinomial(reals([0.5, 0.5], [1.0, -1.0], on=on), 1),
        VALUE,
        "multinomial probability: value -1.0 at [1, 1] is outside [0, inf) (1 of 4)",
    ),
    (
        "multinomial, infinite",
        lambda on: torch.multinomial(reals(INF, 0.5, on=on), 1),
        VALUE,
        "multinomial probability: value inf at [0] is outside [0, inf) (1 of 2)",
    ),
    (
        "multinomial of halves",
        lambda on: torch.multinomial(reals(NAN, 0.5, on=on).half(), 1),
        VALUE,
        "multinomial probability: value nan at [0] is outside [0, inf) (1 of 2)",
    ),
    (
        "multinomial, zeros",
        lambda on: torch.multinomial(reals([0.5, 0.5], [0.0, 0.0], on=on), 1),
        VALUE,
        "multinomial probability: the row at [1] sums to 0.0",
    ),
    (
        "bernoulli",
        lambda on: torch.bernoulli(reals(0.5, 2.0, on=on)),
        VALUE,
        "bernoulli probability: value 2.0 at [1] is outside [0, 1] (1 of 2)",
    ),
    (
        "poisson",
        lambda on: torch.poisson(reals(0.5, -2.0, on=on)),
        VALUE,
        "poisson rate: value -2.0 at [1] is outside [0, inf) (1 of 2)",
    ),
    (
        "_assert_async",
        lambda on: torch._assert_async(ints(0, on=on)[0], "no token is left"),
        VALUE,
        "_assert_async condition: no token is left",
    ),
]

#: What no kernel minds, and what torch refuses by itself.
RIGHT = [
    ("fractional_max_pool2d", lambda on: fractional_pool(on, 0.9)),
    ("embedding", lambda on: F.embedding(ints([0, 9], on=on), torch.ones(10, 2, device=on))),
    ("embedding of nothing", lambda on: F.embedding(ints(on=on).long(), torch.ones(0, 2, device=on))),
    ("embedding_bag", lambda on: bag((1, 2, 3), (0, 2, 2, 3), on)),
    ("index from the end", lambda on: table(on)[ints(-3, on=on), ints(-5, on=on)]),
    ("index_fill from the end", lambda on: table(on).index_fill(0, ints(-1, on=on), 1.0)),
    ("take from the end", lambda on: table(on).take(ints(-15, on=on))),
    ("cross_entropy, ignored", lambda on: F.cross_entropy(table(on), ints(1, -100, 4, on=on))),
    ("multilabel_margin_loss", lambda on: F.multilabel_margin_loss(table(on)[:1], ints([1, -1, 0, 0, 0], on=on))),
    ("ctc_loss, padded", lambda on: ctc(on, 1)),
    (
        "masked_scatter",
        lambda on: table(on).masked_scatter(ints(1, 0, 0, 1, 0, on=on).bool(), torch.ones(6, device=on)),
    ),
    ("multinomial, unlikely", lambda on: torch.multinomial(reals(0.0, 1e-42, on=on), 1)),
    ("bernoulli", lambda on: torch.bernoulli(reals(0.0, 1.0, on=on))),
    ("repeat_interleave", lambda on: torch.repeat_interleave(ints(1, 2, on=on), ints(0, 3, on=on), output_size=3)),
]


def backward_cases(on):
    """The backward of an op, given an argument that the forward was not: a name, the call and the sentence."""
    ops = torch.ops.aten
    grad, scores = torch.ones(2, 4, device=on), torch.zeros(2, 5, device=on)
    one = torch.ones((), device=on)
    return [
        (
            "embedding",
            lambda: ops.embedding_dense_backward(grad, ints(1, 9, on=on), 5, -1, False),
            "embedding backward index: value 9 at [1] is outside [0, 5) (1 of 2)",
        ),
        (
            "nll_loss",
            lambda: ops.nll_loss_backward(one, scores, ints(1, 9, on=on), None, 1, -100, one),
            "nll_loss backward target label: value 9 at [1] is outside [0, 5) (1 of 2)",
        ),
        (
            "multi_margin_loss",
            lambda: ops.multi_margin_loss_backward(one, scores, ints(1, 9, on=on), 1, 1.0),
            "multi_margin_loss backward target label: value 9 at [1] is outside [0, 5) (1 of 2)",
        ),
        (
            "gather",
            lambda: ops.gather_backward(grad, scores, 1, ints([0, 0, 0, 7], [0, 0, 0, 0], on=on), False),
            "scatter_add index: value 7 at [0, 3] is outside [0, 5) (1 of 8)",
        ),
        (
            "index_select",
            lambda: ops.index_select_backward(torch.ones(2, 5, device=on), [2, 5], 0, ints(0, 2, on=on)),
            "index_add index: value 2 at [1] is outside [0, 2) (1 of 2)",
        ),
    ]
