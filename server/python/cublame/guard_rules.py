"""What each guarded op demands of its arguments: the assertions of torch's CUDA kernels, as data.

A rule takes an op's arguments and gives its requirements. Where a call is malformed in another way (a dimension that is
not there, a tensor of another type) a rule may raise anything: the call is then made, and torch says what is wrong.
"""

from __future__ import annotations

import torch

from .guard_errors import GuardIndexError, GuardValueError


class Requirement:
    """That every element of a tensor is at least `low`, at most `last`, or equal to `ignore`. NaN never is."""

    __slots__ = (
        "argument",
        "error",
        "ignore",
        "last",
        "low",
        "mend",
        "shape",
        "slot",
        "tensor",
        "tensor_type",
        "text",
        "total",
    )

    def __init__(self, slot, argument, tensor, low, last, ignore=None, error=GuardIndexError, text=None, mend=None):
        #: Where the argument stands: its number, or (number, number in a list). None: it has no replacement.
        self.slot = slot
        self.argument = argument
        self.tensor = tensor
        self.low = low
        #: None: no upper end.
        self.last = last
        self.ignore = ignore
        self.error = error
        #: What to say of an offender, where "is outside" does not say it.
        self.text = text
        #: Gives an argument that the kernel accepts, where the tensor that is looked at is not the argument itself.
        self.mend = mend
        self.shape = tuple(tensor.shape)
        self.tensor_type = tensor.dtype
        self.total = tensor.numel()

    def wrong(self):
        tensor = self.tensor
        right = tensor >= self.low
        if self.last is not None:
            right &= tensor <= self.last
        if self.ignore is not None:
            right |= tensor == self.ignore
        return right.logical_not_()

    def mended(self, wrong):
        if self.mend is not None:
            return self.mend()
        tensor = self.tensor
        if tensor.is_floating_point():
            tensor = tensor.nan_to_num(nan=self.low)
        return torch.where(wrong, tensor.clamp(self.low, self.last), tensor)

    def allows_nothing(self):
        return self.last is not None and self.last < self.low

    def forget_tensor(self):
        """A requirement that waits to be found out keeps no memory of the program alive."""
        self.tensor = self.mend = None

    def allowed(self):
        if self.last is None or self.last == LARGEST.get(self.tensor_type):
            return f"[{self.low:g}, inf)"
        if isinstance(self.last, int):
            # As Python's own ranges are written.
            return "[%d, %d)" % (self.low, self.last + 1)
        return f"[{self.low:g}, {self.last:g}]"


#: The largest finite numbers.
LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)}


def index(slot, tensor, size, argument="index", negative=False, ignore=None):
    return Requirement(slot, argument, tensor, -size if negative else 0, size - 1, ignore)


def probability(slot, tensor, argument):
    return Requirement(slot, argument, tensor, 0.0, 1.0, error=GuardValueError)


def not_negative(slot, tensor, argument):
    low = 0.0 if tensor.is_floating_point() else 0
    return Requirement(slot, argument, tensor, low, None, error=GuardValueError)


def size_of(tensor, dim):
    return tensor.size(dim) if tensor.dim() else 1


# Lookups.


def embedding(weight, indices, *rest):
    return [index(1, indices, weight.size(0))]


def embedding_dense_backward(grad, indices, num_weights, padding_idx, *rest):
    # The kernel passes over the padding, whatever it is.
    return [index(1, indices, num_weights, ignore=padding_idx)]


def embedding_bag(weight, indices, offsets, *rest):
    return [index(1, indices, weight.size(0)), *_offsets(2, offsets, indices.numel())]


def _offsets(slot, offsets, end):
    def in_order():
        return offsets.clamp(0, end).cummax(0)[0]

    def text(value, position):
        return "the offset at %s is %d smaller than the one before it" % ([position[0] + 1], -value)

    found = [Requirement(slot, "offset", offsets, 0, end, mend=in_order)]
    if offsets.numel() > 1:
        steps = offsets[1:] - offsets[:-1]
        found.append(Requirement(slot, "offset", steps, 0, None, error=GuardValueError, text=text, mend=in_order))
    return found


def embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, *rest):
    return [index(1, indices, num_weights)]


def embedding_bag_per_sample_weights_backward(grad, weight, indices, *rest):
    return [index(2, indices, weight.size(0))]


# Indexing.


def advanced_index(tensor, indices, *rest, **named):
    found = []
    dim = 0
    for number, indexing in enumerate(indices):
        if indexing is None:
            dim += 1
        elif indexing.dtype in (torch.bool, torch.uint8):
            dim += indexing.dim()
        else:
            argument = "index" if len(indices) == 1 else "index for dimension %d" % dim
            found.append(index((1, number), indexing, tensor.size(dim), argument, negative=True))
            dim += 1
    return found


def along_dimension(tensor, dim, indices, *rest, **named):
    return [index(2, indices, size_of(tensor, dim))]


def along_dimension_or_from_its_end(tensor, dim, indices, *rest, **named):
    return [index(2, indices, size_of(tensor, dim), negative=True)]


def flat(tensor, indices, *rest, **named):
    return [index(1, indices, tensor.numel(), negative=True)]


def masked_scatter(tensor, mask, source):
    room = source.numel()
    selected = mask.sum() * (tensor.numel() // max(mask.numel(), 1))

    def text(value, position):
        return "%d elements for a mask that selects %d" % (room, value)

    def as_many_as_there_are():
        whole = mask.expand_as(tensor)
        return whole & (whole.flatten().cumsum(0) <= room).view(whole.shape)

    return [Requirement(1, "source", selected, 0, room, error=GuardValueError, text=text, mend=as_many_as_there_are)]


def max_unpool(tensor, indices, output_size, *rest, **named):
    size = 1
    for along in output_size:
        size *= along
    return [index(1, indices, size)]


def fractional_max_pool(tensor, kernel_size, output_size, samples, **named):
    # A sample places a window; one outside places it outside of the input.
    return [probability(3, samples, "random sample")]


def repeat_interleave(repeats, output_size=None):
    found = [not_negative(0, repeats, "repeats")]
    if output_size is not None:

        def text(value, position):
            return "%d, and the repeats add up to %d" % (output_size, value)

        whole = Requirement(
            None, "output_size", repeats.sum(), output_size, output_size, error=GuardValueError, text=text
        )
        found.append(whole)
    return found


# Losses.


def nll_loss(scores, target, weight, reduction, ignore_index, *rest, **named):
    return [index(1, target, _classes(scores), "target label", ignore=ignore_index)]


def nll_loss_backward(grad, scores, target, weight, reduction, ignore_index, *rest, **named):
    return [index(2, target, _classes(scores), "target label", ignore=ignore_index)]


def _classes(scores):
    return scores.size(0 if scores.dim() == 1 else 1)


def multi_margin_loss(scores, target, *rest, **named):
    return [index(1, target, scores.size(-1), "target label")]


def multi_margin_loss_backward(grad, scores, target, *rest, **named):
    return [index(2, target, scores.size(-1), "target label")]


def multilabel_margin_loss(scores, target, *rest, **named):
    # A label of -1 ends a row.
    return [Requirement(1, "target label", target, -1, scores.size(-1) - 1)]


def multilabel_margin_loss_backward(grad, scores, target, *rest, **named):
    return [Requirement(2, "target label", target, -1, scores.size(-1) - 1)]


def binary_cross_entropy(probabilities, target, *rest, **named):
    return [probability(0, probabilities, "input probability"), probability(1, target, "target probability")]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, *rest, **named):
    return [_ctc_targets(1, log_probs, targets, target_lengths)]


def ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, *rest, **named):
    return [_ctc_targets(2, log_probs, targets, target_lengths)]


def _ctc_targets(slot, log_probs, targets, target_lengths):
    classes = log_probs.size(-1)
    if targets.dim() < 2:
        return index(slot, targets, classes, "target label")
    # What stands behind a target's length is padding and may be anything.
    lengths = torch.as_tensor(target_lengths, device=targets.device).reshape(-1, 1)
    padding = torch.arange(targets.size(1), device=targets.device) >= lengths
    looked_at = targets.masked_fill(padding, 0)

    def mend():
        return torch.where(padding, targets, targets.clamp(0, classes - 1))

    return Requirement(slot, "target label", looked_at, 0, classes - 1, mend=mend)


# Sampling.


def multinomial(probabilities, *rest, **named):
    largest = LARGEST[probabilities.dtype]
    sums = probabilities.sum(-1)

    def text(value, position):
        return "the row{} sums to {}".format(f" at {position}" if position is not None else "", value)

    def likely_rows():
        clean = probabilities.nan_to_num(0.0, 0.0, 0.0).clamp(min=0)
        return torch.where(clean.sum(-1, keepdim=True) > 0, clean, torch.ones_like(clean))

    smallest = torch.finfo(probabilities.dtype).smallest_normal
    finite = Requirement(0, "probability", probabilities, 0.0, largest, error=GuardValueError, mend=likely_rows)
    # Very unlikely rows may add up to less than the smallest normal number, and are rows all the same.
    positive = Requirement(
        0,
        "probability",
        sums.masked_fill(sums > 0, smallest),
        smallest,
        None,
        error=GuardValueError,
        text=text,
        mend=likely_rows,
    )
    return [finite, positive]


def bernoulli_in_place(tensor, probabilities, **named):
    return [probability(1, probabilities, "probability")]


def bernoulli(probabilities, **named):
    return [probability(0, probabilities, "probability")]


def poisson(rates, *rest, **named):
    return [not_negative(0, rates, "rate")]


def assert_async(condition, message="a tensor that was asserted to be true is not"):
    return [
        Requirement(
            0,
            "condition",
            condition != 0,
            1,
            1,
            error=GuardValueError,
            text=lambda *_: message,
            mend=lambda: torch.ones_like(condition),
        )
    ]


#: An op as messages name it, its rule, and the names of its kernels. A composite op of torch comes to one of them.
GUARDED = (
    ("embedding", embedding, ("embedding", "embedding_renorm_")),
    ("embedding backward", embedding_dense_backward, ("embedding_dense_backward",)),
    ("embedding_bag", embedding_bag, ("_embedding_bag", "_embedding_bag_forward_only")),
    ("embedding_bag backward", embedding_bag_dense_backward, ("_embedding_bag_dense_backward",)),
    (
        "embedding_bag backward",
        embedding_bag_per_sample_weights_backward,
        ("_embedding_bag_per_sample_weights_backward",),
    ),
    ("index", advanced_index, ("index.Tensor", "index.Tensor_out")),
    ("index_put", advanced_index, ("_index_put_impl_",)),
    ("index_select", along_dimension, ("index_select", "index_select.out")),
    ("index_add", along_dimension, ("index_add", "index_add_", "index_add.out")),
    ("index_copy", along_dimension, ("index_copy", "index_copy_", "index_copy.out")),
    ("index_reduce", along_dimension, ("index_reduce", "index_reduce_", "index_reduce.out")),
    ("index_fill", along_dimension_or_from_its_end, ("index_fill_.int_Scalar", "index_fill_.int_Tensor")),
    ("gather", along_dimension, ("gather", "gather.out")),
    (
        "scatter",
        along_dimension,
        tuple(
            f"scatter{in_place}.{which + out}"
            for which in ("src", "value", "reduce", "value_reduce")
            for in_place, out in (("", ""), ("_", ""), ("", "_out"))
        ),
    ),
    ("scatter_add", along_dimension, ("scatter_add", "scatter_add_", "scatter_add.out")),
    ("scatter_reduce", along_dimension, ("scatter_reduce.two", "scatter_reduce_.two", "scatter_reduce.two_out")),
    ("take", flat, ("take", "take.out")),
    ("put", flat, ("put_",)),
    ("masked_scatter", masked_scatter, ("masked_scatter_",)),
    ("max_unpool", max_unpool, ("max_unpool2d", "max_unpool2d.out", "max_unpool3d", "max_unpool3d.out")),
    (
        "fractional_max_pool",
        fractional_max_pool,
        (
            "fractional_max_pool2d",
            "fractional_max_pool2d.output",
            "fractional_max_pool3d",
            "fractional_max_pool3d.output",
        ),
    ),
    ("repeat_interleave", repeat_interleave, ("repeat_interleave.Tensor",)),
    (
        "nll_loss",
        nll_loss,
        ("nll_loss_forward", "nll_loss_forward.output", "nll_loss2d_forward", "nll_loss2d_forward.output"),
    ),
    (
        "nll_loss backward",
        nll_loss_backward,
        ("nll_loss_backward", "nll_loss_backward.grad_input", "nll_loss2d_backward", "nll_loss2d_backward.grad_input"),
    ),
    ("multi_margin_loss", multi_margin_loss, ("multi_margin_loss", "multi_margin_loss.out")),
    (
        "multi_margin_loss backward",
        multi_margin_loss_backward,
        ("multi_margin_loss_backward", "multi_margin_loss_backward.grad_input"),
    ),
    (
        "multilabel_margin_loss",
        multilabel_margin_loss,
        ("multilabel_margin_loss_forward", "multilabel_margin_loss_forward.output"),
    ),
    (
        "multilabel_margin_loss backward",
        multilabel_margin_loss_backward,
        ("multilabel_margin_loss_backward", "multilabel_margin_loss_backward.grad_input"),
    ),
    ("binary_cross_entropy", binary_cross_entropy, ("binary_cross_entropy", "binary_cross_entropy.out")),
    ("ctc_loss", ctc_loss, ("_ctc_loss", "_ctc_loss.Tensor")),
    ("ctc_loss backward", ctc_loss_backward, ("_ctc_loss_backward", "_ctc_loss_backward.Tensor")),
    ("multinomial", multinomial, ("multinomial", "multinomial.out")),
    ("bernoulli", bernoulli_in_place, ("bernoulli_.Tensor",)),
    ("bernoulli", bernoulli, ("bernoulli.out",)),
    ("poisson", poisson, ("poisson",)),
    ("_assert_async", assert_async, ("_assert_async", "_assert_async.msg")),
)
