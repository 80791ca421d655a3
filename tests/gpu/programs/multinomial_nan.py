import torch
logits = torch.randn(4, 100, device="cuda"); logits[1, 3] = float("nan")
probs = logits.softmax(-1)
tok = torch.multinomial(probs, 1)          # @fault
print(tok.cpu())
