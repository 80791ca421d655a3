"""Fails on every machine without an NVIDIA driver."""
import torch


def to_device(batch):
    return batch.cuda()  # @fault


def main():
    print("before the failure")
    to_device(torch.zeros(4, 4))


main()
