"""The first launches of the process come from many threads at once."""
import threading

import driver

barrier = threading.Barrier(8)


def work(number):
    barrier.wait()
    for turn in range(3):
        driver.launch(0x1000 * (number + 1) + 0x40 * turn)


threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
