# env: CUDA_VISIBLE_DEVICES=
import torch
x = torch.zeros(1).cuda()                  # @fault
