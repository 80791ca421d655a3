"""What torch elastic's error file alone tells: the worker's own words are lost."""
import os

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if os.environ["RANK"] == "1":
        raise ValueError("only the error file has it")  # @fault
    import time

    time.sleep(60)


main()
