import torch

logits = torch.randn(4, 100)
logits[1, 3] = float("nan")
probabilities = logits.softmax(-1)
print(torch.multinomial(probabilities, 1))  # @fault
