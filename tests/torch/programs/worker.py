"""A DataLoader worker touches CUDA; the parent prints the failure."""
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.zeros(3).cuda()  # @fault


if __name__ == "__main__":
    for batch in DataLoader(Pictures(), batch_size=2, num_workers=2):
        print(batch.shape)
