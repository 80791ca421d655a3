import torch, torch.nn as nn, torch.nn.functional as F
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x, y):
    logits = model(x)
    loss = F.cross_entropy(logits, y)      # @fault
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss
for i in range(20):
    x = torch.randn(16, 32, device="cuda")
    y = torch.randint(0, 10, (16,), device="cuda")
    if i == 7:
        y[5] = 10
    loss = step(x, y)
print(loss.item())
