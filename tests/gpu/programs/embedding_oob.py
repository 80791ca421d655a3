import torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(1000, 64)
        self.fc = nn.Linear(64, 8)
    def forward(self, tok):
        x = self.emb(tok)                  # @fault
        return self.fc(x).mean(dim=1)
def main():
    net = Net().cuda()
    tok = torch.randint(0, 1000, (32, 128), device="cuda")
    tok[3, 7] = 1003
    out = net(tok)
    loss = out.pow(2).sum()
    print("loss", loss.item())
main()
