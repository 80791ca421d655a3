"""A thread fails and the process leaves with 0."""
import threading

import torch


def work():
    torch.zeros(1).cuda()  # @fault


thread = threading.Thread(target=work)
thread.start()
thread.join()
print("main goes on")
