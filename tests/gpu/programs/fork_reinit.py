import torch
from torch.utils.data import Dataset, DataLoader
class D(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        return torch.zeros(3).cuda()       # @fault
torch.zeros(1).cuda()
for b in DataLoader(D(), batch_size=2, num_workers=2):
    print(b.shape)
