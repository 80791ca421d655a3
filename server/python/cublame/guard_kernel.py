"""One look at one argument in one kernel: it counts the offenders, finds the first, writes both into pinned memory, and
can write a copy of the argument in which every offender is moved into its range.

The source is compiled by NVRTC, which comes with every CUDA build of torch, once for each GPU of a process.
"""

from __future__ import annotations

import ctypes
import glob
import os
import threading

import torch

#: How many looks may be under way on one GPU, and how many may belong to captured graphs.
PLACES = 4096
PLACES_OF_GRAPHS = 1024

#: Words of 8 bytes: what the kernel gathers on the GPU for a look, and what it writes for the host.
GATHERED = 4
RECORD = 4

THREADS = 256

SOURCE = r"""
struct Gathered { unsigned long long first_from_end, count, blocks, unused; };
struct Record { volatile long long ticket, count, first, bits; };

template <typename Bound> struct Request {
  const void *input;
  void *output;
  long long size;
  Bound low, last, ignore;
  Gathered *gathered;
  Record *record;
  volatile long long *alarm;
  long long ticket;
  long long ignores;
};

__device__ long long bits_of(long long value) { return value; }
__device__ long long bits_of(double value) { return __double_as_longlong(value); }

template <typename Value, typename Bound> __device__ void look(const Request<Bound> &request) {
  const Value *input = static_cast<const Value *>(request.input);
  Value *output = static_cast<Value *>(request.output);
  const unsigned long long size = request.size;
  unsigned long long first_from_end = 0, count = 0;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < request.size;
       i += static_cast<long long>(blockDim.x) * gridDim.x) {
    const Value value = input[i];
    const Bound bound = value;
    // A NaN is in no range.
    const bool right = (bound >= request.low && bound <= request.last) || (request.ignores && bound == request.ignore);
    if (!right) {
      count += 1;
      if (size - i > first_from_end) first_from_end = size - i;
    }
    if (output) output[i] = right ? value : static_cast<Value>(bound > request.last ? request.last : request.low);
  }
  if (count) {
    atomicAdd(&request.gathered->count, count);
    // Counted from the end, the first is the largest, and zero is none: the memory starts as zeros.
    atomicMax(&request.gathered->first_from_end, first_from_end);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(&request.gathered->blocks, 1ull) != gridDim.x - 1) return;
  // The last block tells the host, and leaves zeros for the next look.
  __threadfence();
  const unsigned long long found = atomicExch(&request.gathered->count, 0ull);
  const unsigned long long from_end = atomicExch(&request.gathered->first_from_end, 0ull);
  atomicExch(&request.gathered->blocks, 0ull);
  // A graph is replayed before the host may have read: the first violation stays.
  if (found && !(request.record->ticket == request.ticket && request.record->count)) {
    const unsigned long long first = size - from_end;
    request.record->first = first;
    request.record->bits = bits_of(static_cast<Bound>(input[first]));
    __threadfence_system();
    request.record->count = found;
    *request.alarm = 1;
  }
  __threadfence_system();
  request.record->ticket = request.ticket;
}

extern "C" __global__ void look_int32(Request<long long> request) { look<int>(request); }
extern "C" __global__ void look_int64(Request<long long> request) { look<long long>(request); }
extern "C" __global__ void look_float32(Request<double> request) { look<float>(request); }
extern "C" __global__ void look_float64(Request<double> request) { look<double>(request); }
"""

KERNELS = {
    torch.int32: "look_int32",
    torch.int64: "look_int64",
    torch.float32: "look_float32",
    torch.float64: "look_float64",
}


def _request(bound):
    class Request(ctypes.Structure):
        _fields_ = [
            ("input", ctypes.c_void_p),
            ("output", ctypes.c_void_p),
            ("size", ctypes.c_int64),
            ("low", bound),
            ("last", bound),
            ("ignore", bound),
            ("gathered", ctypes.c_void_p),
            ("record", ctypes.c_void_p),
            ("alarm", ctypes.c_void_p),
            ("ticket", ctypes.c_int64),
            ("ignores", ctypes.c_int64),
        ]

    return Request


_OF_INTEGERS = _request(ctypes.c_int64)
_OF_REALS = _request(ctypes.c_double)
_LARGEST = (1 << 63) - 1


class Unavailable(Exception):
    """The kernel cannot be compiled, loaded or launched here."""


def looker_of(device):
    """The kernel of a GPU, made when it is first asked for; raises Unavailable."""
    with _making:
        if device not in _lookers:
            try:
                _lookers[device] = Looker(device)
            except (Unavailable, OSError, AttributeError) as error:
                raise Unavailable(str(error)) from error
        return _lookers[device]


_lookers = {}
_making = threading.Lock()


class Looker:
    """The kernel on one GPU, with the memory through which it tells what it found."""

    def __init__(self, device):
        self.device = device
        self.lock = threading.Lock()
        self.driver = _driver()
        with torch.cuda.device(device):
            self.context = ctypes.c_void_p()
            # The zeros make sure that there is a context of torch's for this thread.
            places = PLACES + PLACES_OF_GRAPHS
            self.gathered = torch.zeros(places * GATHERED, dtype=torch.int64, device="cuda")
            # A look on another stream must not come before the zeros.
            torch.cuda.current_stream().synchronize()
            _expect(self.driver.cuCtxGetCurrent(ctypes.byref(self.context)), "cuCtxGetCurrent")
            self.functions = _load(self.driver, device)
        # A last record of which only the first word is used: a look that belongs to a graph has found something.
        self.records = torch.zeros((places + 1) * RECORD, dtype=torch.int64, pin_memory=True)
        self.gathered_at = self.gathered.data_ptr()
        self.records_at = self.records.data_ptr()
        self.record = (ctypes.c_int64 * ((places + 1) * RECORD)).from_address(self.records_at)
        self.alarm = places * RECORD
        self.most_blocks = 2 * torch.cuda.get_device_properties(device).multi_processor_count
        self.tickets = 0
        self.taken_by_graphs = 0
        self.under_way = [None] * PLACES

    def can(self, requirement):
        return requirement.tensor.dtype in self.functions and requirement.total > 0

    def look(self, requirement, copy, captured=False):
        """Begins a look; None where a graph has no place left."""
        tensor = requirement.tensor.contiguous()
        mended = torch.empty_like(tensor) if copy else None
        with self.lock:
            self.tickets = ticket = self.tickets + 1
            if captured:
                if self.taken_by_graphs == PLACES_OF_GRAPHS:
                    return None
                place = PLACES + self.taken_by_graphs
                self.taken_by_graphs += 1
            else:
                place = ticket % PLACES
                before = self.under_way[place]
                if before is not None:
                    before.settle()
            look = Look(self, requirement, place, ticket, mended)
            self.record[place * RECORD + 1] = 0
            if not captured:
                self.under_way[place] = look
        self.start(look, tensor)
        return look

    def start(self, look, tensor):
        requirement = look.requirement
        real = tensor.is_floating_point()
        last = requirement.last
        if last is None:
            last = float("inf") if real else _LARGEST
        request = (_OF_REALS if real else _OF_INTEGERS)(
            tensor.data_ptr(),
            None if look.mended is None else look.mended.data_ptr(),
            requirement.total,
            requirement.low,
            last,
            requirement.ignore or 0,
            self.gathered_at + look.place * GATHERED * 8,
            self.records_at + look.place * RECORD * 8,
            self.records_at + self.alarm * 8,
            look.ticket,
            requirement.ignore is not None,
        )
        blocks = min(-(-requirement.total // (4 * THREADS)), self.most_blocks)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(request))
        stream = torch._C._cuda_getCurrentRawStream(self.device)
        function = self.functions[tensor.dtype]
        if torch.cuda.current_device() != self.device:
            with torch.cuda.device(self.device):
                self.launch(function, blocks, stream, arguments)
        else:
            self.launch(function, blocks, stream, arguments)

    def launch(self, function, blocks, stream, arguments):
        launched = self.driver.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)
        if launched == INVALID_CONTEXT:
            # A thread in which the CUDA runtime, which binds it by itself, was not called yet.
            _expect(self.driver.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")
            launched = self.driver.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)
        _expect(launched, "cuLaunchKernel")

    def alarmed(self):
        """Has a look that belongs to a graph found something since this was last asked?"""
        if not self.record[self.alarm]:
            return False
        self.record[self.alarm] = 0
        return True


class Look:
    """A look that was begun: as PlainCheck of guard_check.py."""

    __slots__ = ("dtype", "found", "is_settled", "looker", "mended", "place", "requirement", "ticket")

    def __init__(self, looker, requirement, place, ticket, mended):
        self.looker = looker
        self.requirement = requirement
        self.dtype = requirement.tensor.dtype
        self.place = place
        self.ticket = ticket
        self.mended = mended
        self.found = None
        self.is_settled = False

    def is_done(self):
        return self.is_settled or self.looker.record[self.place * RECORD] == self.ticket

    def wait(self):
        torch.cuda.current_stream(self.looker.device).synchronize()
        if not self.is_done():
            # It was begun on another stream.
            torch.cuda.synchronize(self.looker.device)

    def settle(self):
        """Takes the answer out of the place, which is then free for another look."""
        if not self.is_settled:
            if not self.is_done():
                self.wait()
            self.found = self.read()
            self.is_settled = True
            self.looker.under_way[self.place] = None

    def offender(self):
        self.settle()
        return self.found

    def read(self):
        at = self.place * RECORD
        _, count, first, bits = self.looker.record[at : at + RECORD]
        if not count:
            return None
        if self.dtype.is_floating_point:
            return ctypes.c_double.from_buffer(ctypes.c_int64(bits)).value, first, count
        return bits, first, count

    def take(self):
        """What a look that belongs to a graph has found; a replay may find the next."""
        found = self.read()
        self.looker.record[self.place * RECORD + 1] = 0
        return found


# NVRTC and the driver, by their C interfaces.


def _driver():
    driver = ctypes.CDLL("libcuda.so.1")
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    driver.cuLaunchKernel.argtypes = [pointer] + [number] * 7 + [pointer] * 3
    driver.cuCtxSetCurrent.argtypes = [pointer]
    return driver


#: CUDA_ERROR_INVALID_CONTEXT
INVALID_CONTEXT = 201


def _load(driver, device):
    major, minor = torch.cuda.get_device_capability(device)
    code = compile_for("sm_%d%d" % (major, minor))
    module = ctypes.c_void_p()
    _expect(driver.cuModuleLoadData(ctypes.byref(module), code), "cuModuleLoadData")
    functions = {}
    for dtype, name in KERNELS.items():
        function = ctypes.c_void_p()
        found = driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        _expect(found, "cuModuleGetFunction")
        functions[dtype] = function
    return functions


def compile_for(architecture):
    """The kernel's machine code for a GPU architecture such as `sm_90`."""
    nvrtc = _find_nvrtc()
    program = ctypes.c_void_p()
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"cublame_guard.cu", 0, None, None)
    _expect(created, "nvrtcCreateProgram")
    try:
        options = [b"--gpu-architecture=" + architecture.encode(), b"--std=c++14"]
        compiled = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        _expect(compiled, "nvrtcCompileProgram")
        size = ctypes.c_size_t()
        _expect(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
        code = ctypes.create_string_buffer(size.value)
        _expect(nvrtc.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN")
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _find_nvrtc():
    """The library that torch itself uses: by name where the system finds it, else in the wheel beside torch."""
    name = "libnvrtc.so.{}".format(torch.version.cuda.split(".")[0])
    if name == "libnvrtc.so.11":
        name = "libnvrtc.so.11.2"
    beside = os.path.dirname(os.path.dirname(torch.__file__))
    for path in [
        name,
        *glob.glob(os.path.join(beside, "nvidia", "*", "lib", name)),
        *glob.glob(os.path.join(beside, "torch", "lib", "libnvrtc*.so*")),
    ]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            pass
    raise OSError(f"{name} was not found")


def _expect(result, call):
    if result != 0:
        raise Unavailable("%s returned %d" % (call, result))
