"""Runs until it is stopped."""

import os
import time

open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "started"), "w").close()
while True:
    time.sleep(0.05)
