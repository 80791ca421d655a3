"""What a run may ask of torch beside its exceptions: who holds the memory when it runs out, the forward calls of backward.

Both change what the program costs, so both are asked for on the command line. Loaded when torch has been imported.
"""

import os
import sys
import time

MOST_SITES = 10
# Two a second; when there are more, every second one goes.
MOST_HISTORY = 1024
INTERVAL = 0.5


def arrange(torch, is_users):
    """Puts in force what the environment asks for, and returns the memory's keeper, if any."""
    if os.environ.get("CUBLAME_ANOMALY") == "1":
        # Without the check for NaN, which would wait for the GPU after each step and find another failure than this one.
        torch.autograd.set_detect_anomaly(True, check_nan=False)
    if os.environ.get("CUBLAME_MEMORY") == "1":
        keeper = MemoryKeeper(torch, is_users)
        # Before the first use of a GPU there is no allocator to record, and to make one here would be too early: the
        # program may yet choose its devices, or fork.
        torch.cuda._lazy_call(keeper.start)
        return keeper
    return None


class MemoryKeeper:
    """Records where memory is allocated, and sums it up at the moment in which it runs out."""

    def __init__(self, torch, is_users):
        self.torch = torch
        self.is_users = is_users
        self.history = {}
        self.interval = INTERVAL
        self.held = None

    def start(self):
        try:
            torch = self.torch
            if not self.is_recorded():
                torch.cuda.memory._record_memory_history(enabled="state", stacks="python")
            torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory)
            sys.modules["_thread"].start_new_thread(self.watch, ())
        except Exception as error:
            sys.stderr.write("cublame: who holds the memory is not recorded: %s.\n" % error)

    def is_recorded(self):
        """The program's own recording stays as it is."""
        enabled = getattr(self.torch._C, "_cuda_isHistoryEnabled", None)
        return bool(enabled and enabled())

    def watch(self):
        """The live bytes over time. A reading of counters: no GPU is asked."""
        pid = os.getpid()
        while os.getpid() == pid:
            try:
                self.note(time.time())
            except Exception:
                return
            time.sleep(self.interval)

    def note(self, now):
        doubled = self.interval
        for device in range(self.torch._C._cuda_getDeviceCount()):
            history = self.history.setdefault(device, [])
            history.append([now, allocated(self.torch, device)])
            if len(history) > MOST_HISTORY:
                del history[1::2]
                doubled = 2 * self.interval
        self.interval = doubled

    def out_of_memory(self, device, *_):
        """Called by the allocator before it raises; nothing has been freed yet."""
        try:
            self.held = self.sum_up(device)
        except Exception:
            self.held = None

    def sum_up(self, device):
        sites, total, elsewhere = {}, 0, 0
        for segment in self.torch.cuda.memory._snapshot()["segments"]:
            if segment["device"] != device:
                continue
            for block in segment["blocks"]:
                if block["state"] != "active_allocated":
                    continue
                total += block["size"]
                site = self.site_of(block)
                if site is None:
                    elsewhere += block["size"]
                else:
                    counts = sites.setdefault(site, [0, 0])
                    counts[0] += block["size"]
                    counts[1] += 1
        largest = sorted(sites.items(), key=lambda item: -item[1][0])
        return {
            "device": device,
            "allocated": total,
            "elsewhere": elsewhere,
            "sites": [
                {"file": file, "path": path_of(file), "line": line, "function": name, "bytes": counts[0], "blocks": counts[1]}
                for (file, line, name), counts in largest[:MOST_SITES]
            ],
            "history": self.history.get(device, []) + [[time.time(), total]],
        }

    def site_of(self, block):
        """The innermost line of the user's."""
        frames = block.get("frames")
        if frames is None:
            history = block.get("history") or [{}]
            frames = history[-1].get("frames")
        for frame in frames or ():
            if frame["line"] and frame["filename"] != "??" and self.is_users(frame["filename"]):
                return frame["filename"], frame["line"], frame["name"]
        return None

    def taken(self):
        """What was summed up last, once."""
        held, self.held = self.held, None
        return held


def allocated(torch, device):
    return torch._C._cuda_memoryStats(device)["allocated_bytes"]["all"]["current"]


def path_of(filename):
    path = os.path.abspath(filename)
    return path if not filename.startswith("<") and os.path.isfile(path) else None
