import threading

import torch

table, good, bad = torch.randn(10, 8), torch.tensor([3, 2]), torch.tensor([3, 12])
failed = []


class Worker(threading.Thread):
    def run(self):
        try:
            table[good]
            table[bad]
        except IndexError as error:
            failed.append(error)


worker = Worker()
worker.start()
worker.join()
raise failed[0]
