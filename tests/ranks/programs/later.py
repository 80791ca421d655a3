"""Two ranks fail for reasons of their own; the last one is the first to do so."""
import os
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
meeting = os.path.join(os.environ["MEETING"], "failed")
if rank == world - 1:
    try:
        [].pop()  # @fault
    finally:
        open(meeting, "w").close()
elif rank == 0:
    while not os.path.exists(meeting):
        time.sleep(0.01)
    time.sleep(0.1)
    {}["other"]
else:
    time.sleep(60)
