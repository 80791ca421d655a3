//! The wordings of failures over the years and frameworks, and what people and machines put round them.

use cublame_core::blame::blame;
use cublame_core::catalog::{Language, Texts, facts};
use cublame_core::log::Log;
use cublame_core::{Evidence, Sources, Verdict};

/// The root cause's verdict on a text.
fn explain(text: &str) -> Option<Verdict> {
    let evidence = Evidence { log: Some(Log::from_text(text)), ..Evidence::default() };
    blame(&evidence, &Sources::default(), Texts::get(Language::English)).into_iter().next()
}

fn check_kind(text: &str, kind: &str) {
    let found = explain(text).map(|verdict| verdict.kind);
    assert_eq!(found.as_deref(), Some(kind), "{text}");
}

fn check_error(text: &str, name: &str, code: u32) {
    let error = explain(text).and_then(|verdict| verdict.error);
    assert_eq!(error.map(|error| (error.name, error.code)), Some((name.to_owned(), Some(code))), "{text}");
}

#[test]
fn every_cuda_error_is_known_in_every_spelling() {
    for kind in facts().kinds() {
        for error in &kind.errors {
            let (name, code, text) = (&error.name, error.code, &error.text);
            let mut spellings = vec![
                format!("RuntimeError: CUDA error: {text}"),
                format!(
                    "torch.AcceleratorError: CUDA error: {text}\nSearch for `{name}' in https://docs.nvidia.com/cuda"
                ),
                format!("cupy_backends.cuda.api.runtime.CUDARuntimeError: {name}: {text}"),
                format!("RuntimeError: Triton Error [CUDA]: {text}"),
                format!("CUDA error {code} at ggml-cuda.cu:6883: {text}"),
                format!("RuntimeError: CUDA runtime API error {name} ({code}):"),
                format!("terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: {text}"),
                format!("thrust::system::system_error: parallel_for failed: {name}: {text}"),
                format!("GPUassert: {text} kernel.cu 12"),
            ];
            if let Some(driver) = &error.driver {
                spellings.push(format!(
                    "numba.cuda.cudadrv.driver.CudaAPIError: [{code}] Call to cuMemFree results in {driver}"
                ));
                spellings.push(format!(
                    "numba.cuda.cudadrv.driver.CudaAPIError: [CUresult.{driver}] Call to cuMemcpy results in {driver}"
                ));
                spellings.push(format!("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: {driver}: {text}"));
            }
            if let Some(hip) = &error.hip {
                spellings
                    .push(format!("RuntimeError: HIP error: {text}\nSearch for `{hip}' in https://rocm.docs.amd.com"));
            }
            let legacy = error.legacy.unwrap_or(code);
            spellings.push(format!(
                "RuntimeError: cuda runtime error ({legacy}) : {text} at /pytorch/aten/src/THC/THCGeneral.cpp:50"
            ));
            spellings.push(format!(
                "THCudaCheck FAIL file=/pytorch/aten/src/THC/THCGeneral.cpp line=50 error={legacy} : {text}"
            ));
            for spelling in spellings {
                check_kind(&spelling, &kind.id);
                let found = explain(&spelling).and_then(|verdict| verdict.error).expect("an error");
                assert_eq!((found.code, found.legacy_code), (Some(code), error.legacy), "{spelling}");
            }
        }
    }
}

#[test]
fn errors_keep_the_name_that_the_evidence_gives_them() {
    check_error("RuntimeError: CUDA error: device-side assert triggered", "cudaErrorAssert", 710);
    check_error(
        "x.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        700,
    );
    check_error("RuntimeError: HIP error: unspecified launch failure", "hipErrorLaunchFailure", 719);
    check_error(
        "CudaAPIError: [700] Call to cuModuleUnload results in UNKNOWN_CUDA_ERROR",
        "cudaErrorIllegalAddress",
        700,
    );
    check_error(
        "Error 802: system not yet initialized (Triggered internally at CUDAFunctions.cpp:109.)",
        "cudaErrorSystemNotReady",
        802,
    );
    check_error("NCCL WARN Cuda failure 999 'unknown error'", "cudaErrorUnknown", 999);
    check_error("NCCL WARN Cuda failure 'out of memory'", "cudaErrorMemoryAllocation", 2);
}

#[test]
fn wordings_without_a_cuda_error_value() {
    for (kind, text) in [
        (
            "oom",
            "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
        ),
        (
            "oom",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 4.00 GiB",
        ),
        (
            "oom",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 4.00 GiB",
        ),
        (
            "oom",
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 4.00 GiB",
        ),
        (
            "oom",
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes (allocated so far: 512 bytes).",
        ),
        (
            "oom",
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,512] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
        ),
        ("oom", "tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized."),
        (
            "jax-resource-exhausted",
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.",
        ),
        (
            "oom-host",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 52428800 bytes. Error code 12 (Cannot allocate memory)",
        ),
        (
            "oom-host",
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000, 1000000) and data type float64",
        ),
        ("oom-host", "MemoryError"),
        ("oom-host", "RuntimeError: DataLoader worker (pid 12345) is killed by signal: Killed."),
        ("oom-host", "./run.sh: line 3: 71234 Killed                  python train.py"),
        ("oom-host", "Killed"),
        ("oom-host", "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)"),
        ("oom-host", "Last State: Terminated, Reason: OOMKilled, Exit Code: 137"),
        ("segfault", "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)"),
        ("segfault", "Process finished with exit code -1073741819 (0xC0000005)"),
        ("oom-host", "[12345.678901] Out of memory: Killed process 4321 (python) total-vm:1kB, anon-rss:2kB"),
        (
            "oom-host",
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0. Some of your processes may have been killed by the cgroup out-of-memory handler.",
        ),
        ("oom-host", "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL"),
        (
            "shm-exhausted",
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        ),
        (
            "shm-exhausted",
            "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
        ),
        (
            "shm-exhausted",
            "RuntimeError: unable to open shared memory object </torch_1234_56> in read-write mode: Too many open files (24)",
        ),
        ("shm-exhausted", "OSError: [Errno 28] No space left on device: '/dev/shm/abc'"),
        ("shm-exhausted", "Bus error (core dumped)"),
        ("segfault", "Segmentation fault (core dumped)"),
        (
            "segfault",
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n  File \"a.py\", line 3 in f",
        ),
        ("segfault", "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Segmentation fault."),
        (
            "library-missing",
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        ),
        (
            "library-missing",
            "ImportError: /home/dev/.venv/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        ),
        (
            "library-missing",
            "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file: No such file or directory",
        ),
        (
            "library-missing",
            "OSError: [WinError 126] The specified module could not be found. Error loading \"C:\\x\\torch\\lib\\fbgemm.dll\" or one of its dependencies.",
        ),
        ("no-driver", "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"),
        ("no-driver", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"),
        ("driver-too-old", "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."),
        ("no-device", "RuntimeError: No CUDA GPUs are available"),
        (
            "no-device",
            "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present.",
        ),
        ("not-compiled-cuda", "AssertionError: Torch not compiled with CUDA enabled"),
        (
            "deserialize-cuda",
            "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        ),
        (
            "deserialize-cuda",
            "RuntimeError: Attempting to deserialize object on CUDA device 2 but torch.cuda.device_count() is 1.",
        ),
        (
            "forked-subprocess",
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
        ),
        (
            "same-device",
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        ),
        (
            "same-device",
            "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor",
        ),
        ("same-device", "RuntimeError: Expected object of backend CPU but got backend CUDA for argument #2 'weight'"),
        ("same-device", "RuntimeError: expected device cuda:0 but got device cpu"),
        (
            "same-device",
            "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
        ),
        ("same-device", "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"),
        (
            "wrong-device",
            "RuntimeError: arguments are located on different GPUs at /pytorch/aten/src/THC/generic/THCTensorMasked.cu:28",
        ),
        (
            "wrong-device",
            "RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cuda:1",
        ),
        (
            "wrong-device",
            "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        ),
        ("wrong-device", "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)"),
        (
            "cublas-not-initialized",
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        ),
        (
            "cublas-alloc-failed",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        (
            "cublas-execution-failed",
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)`",
        ),
        (
            "cublas-invalid-value",
            "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx( handle)`",
        ),
        (
            "cublas",
            "RuntimeError: cublas runtime error : the GPU program failed to execute at /pytorch/aten/src/THC/THCBlas.cu:249",
        ),
        ("cublas", "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`"),
        ("cudnn-execution-failed", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
        ("cudnn-internal-error", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
        ("cudnn-mapping-error", "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR"),
        (
            "cudnn",
            "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
        ),
        ("cudnn", "RuntimeError: GET was unable to find an engine to execute this computation"),
        ("cufft-internal-error", "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR"),
        ("cufft", "RuntimeError: cuFFT error: CUFFT_INVALID_SIZE"),
        ("cusparse", "RuntimeError: CUDA error: CUSPARSE_STATUS_EXECUTION_FAILED when calling `cusparseSpMM(handle)`"),
        (
            "cusolver",
            "RuntimeError: cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`",
        ),
        (
            "nccl-unhandled-cuda",
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'",
        ),
        (
            "nccl",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2395, remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        ),
        (
            "nccl",
            "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/ProcessGroupNCCL.cpp:784, invalid usage, NCCL version 2.7.8",
        ),
        (
            "nccl",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, internal error - please report this issue to the NCCL developers, NCCL version 2.19.3\nncclInternalError: Internal check failed.",
        ),
        (
            "nccl-timeout",
            "[rank0]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:621] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.",
        ),
        ("address-in-use", "RuntimeError: Address already in use"),
        (
            "address-in-use",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
        ),
        (
            "triton-out-of-resources",
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 66560, Hardware limit: 65536.",
        ),
        (
            "triton-out-of-resources",
            "triton.runtime.autotuner.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.",
        ),
        (
            "triton-compile",
            "triton.compiler.errors.CompilationError: at 12:4:\n    x = tl.load(p)\n    ^\nValueError('bad')",
        ),
        ("triton-compile", "RuntimeError: PassManager::run failed"),
        ("ptxas", "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'"),
        ("ptxas", "RuntimeError: `ptxas` failed with error code 255"),
        ("anomaly-nan", "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."),
        (
            "env-too-late",
            "RuntimeError: config[i] == get()->name() INTERNAL ASSERT FAILED at \"../c10/cuda/CUDACachingAllocator.cpp\":644, please report a bug to PyTorch. Allocator backend parsed at runtime != allocator backend parsed at load time",
        ),
        (
            "illegal-address",
            "Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege.",
        ),
        ("illegal-address", "NVRM: Xid (PCI:0000:3b:00): 31, pid=1, Ch 00000010, intr 00000000. MMU Fault"),
        ("gpu-lost", "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        (
            "gpu-lost",
            "[  12.345678] NVRM: Xid (PCI:0000:3b:00): 119, pid=1, name=python, Timeout waiting for RPC from GSP!",
        ),
        ("ecc", "NVRM: Xid (PCI:0000:3b:00): 94, pid=1, Contained ECC error."),
        ("ecc", "NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row marked for remapping"),
        ("nvlink", "NVRM: Xid (PCI:0000:3b:00): 74, pid=1, NVLink: fatal error detected on link 2"),
        (
            "system-not-ready",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized",
        ),
        ("driver-mismatch", "Failed to initialize NVML: Driver/library version mismatch"),
        ("unknown-error", "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment"),
        ("invalid-device-ordinal", "AssertionError: Invalid device id"),
        ("stream-capture", "RuntimeError: Cannot prepare for replay during capturing stage."),
        (
            "child-failed",
            "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.",
        ),
        ("unrecognised", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'"),
    ] {
        check_kind(text, kind);
    }
}

#[test]
fn text_that_tells_of_no_failure_has_no_verdict() {
    for text in [
        "",
        "step 12 loss 0.31",
        "Using CUDA device 0: NVIDIA H100",
        "If you run out of memory, lower the batch size",
        "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        "2024-01-01 10:00:00,123 - trainer - INFO - out of memory errors are retried",
        "E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        "    raise RuntimeError(\"CUDA error: device-side assert triggered\")",
    ] {
        assert_eq!(explain(text), None, "{text}");
    }
}

#[test]
fn assertions_of_every_age() {
    let place = "block: [0,0,0], thread: [2,0,0] Assertion";
    for (text, file, line, kernel, condition) in [
        (format!("../aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: {place} `srcIndex < srcSelectDimSize` failed."), "../aten/src/ATen/native/cuda/Indexing.cu", 1292, Some("indexSelectLargeIndex"), "srcIndex < srcSelectDimSize"),
        (format!("/opt/conda/conda-bld/pytorch_1518244421288/work/torch/lib/THCUNN/ClassNLLCriterion.cu:101: void cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, Dtype *, long *, int) [with Dtype = float, Acctype = float]: {place} `t >= 0 && t < n_classes` failed."), "/opt/conda/conda-bld/pytorch_1518244421288/work/torch/lib/THCUNN/ClassNLLCriterion.cu", 101, Some("cunn_ClassNLLCriterion_updateOutput_kernel"), "t >= 0 && t < n_classes"),
        (format!("C:\\actions-runner\\_work\\pytorch\\pytorch\\aten\\src\\ATen\\native\\cuda\\IndexKernel.cu:93: {place} `index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"` failed."), "C:\\actions-runner\\_work\\pytorch\\pytorch\\aten\\src\\ATen\\native\\cuda\\IndexKernel.cu", 93, None, "index >= -sizes[i] && index < sizes[i] && \"index out of bounds\""),
        (format!("unknown:0: unknown: {place} `index out of bounds: 0 <= tmp4 < 32000` failed."), "unknown", 0, None, "index out of bounds: 0 <= tmp4 < 32000"),
        (format!("<frozen importlib._bootstrap_external>:883: _call_with_frames_removed: {place} `index out of bounds: 0 <= tmp0 < 10` failed."), "<frozen importlib._bootstrap_external>", 883, Some("_call_with_frames_removed"), "index out of bounds: 0 <= tmp0 < 10"),
        (format!("/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:109: _assert_async_cuda_kernel: {place} `probability tensor contains either `inf`, `nan` or element < 0` failed."), "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu", 109, Some("_assert_async_cuda_kernel"), "probability tensor contains either `inf`, `nan` or element < 0"),
        (format!("  0%|          | 0/70 [00:00<?, ?it/s]/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): {place} `-sizes[i] <= index` failed."), "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu", 92, Some("operator()"), "-sizes[i] <= index"),
        (format!("[rank1]: (Worker_TP1 pid=9) kernel.cu:12: my_kernel: {place} `i < n` failed."), "kernel.cu", 12, Some("my_kernel"), "i < n"),
        ("[CUDA_KERNEL_ASSERT] /pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [5,0,0], thread: [0,0,0]: Assertion failed: `ind >=0 && ind < ind_dim_size`: Expected 0 <= index < ind_dim_size(10), but got index = 12".to_owned(), "/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu", 16, Some("vectorized_gather_kernel"), "ind >=0 && ind < ind_dim_size"),
    ] {
        let verdict = explain(&text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(verdict.kind, "device-assert");
        let assert = &verdict.asserts[0];
        assert_eq!((assert.file.as_str(), assert.line), (file, line));
        assert_eq!((assert.kernel.as_deref(), assert.condition.as_str()), (kernel, condition));
    }
}

#[test]
fn known_assertions_say_what_they_mean() {
    for (id, condition, kernel) in [
        ("index-select", "srcIndex < srcSelectDimSize", "indexSelectSmallIndex"),
        (
            "vectorized-gather",
            "ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"",
            "vectorized_gather_kernel",
        ),
        ("advanced-index", "index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"", "operator()"),
        ("advanced-index", "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"", "operator()"),
        ("gather-scatter", "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"", "operator()"),
        ("gather-scatter", "indexValue >= 0 && indexValue < src.sizes[dim]", "THCudaTensor_gatherKernel"),
        (
            "scatter-add",
            "ind >= 0 && ind < self_dim_size && \"vectorized scatter add kernel index out of bounds\"",
            "vectorized_scatter_add_kernel",
        ),
        ("index-destination", "dstIndex < dstAddDimSize", "indexAddSmallIndex"),
        ("index-destination", "dstIndex_ < dstFillDimSize", "indexFill"),
        ("index-copy-fill", "idx >= 0 && idx < self_dim_size && \"index_copy_(): index out of bounds\"", "operator()"),
        ("take-put", "idx < numel && idx >= -numel && \"cuda_take_put_kernel() index out of bounds\"", "operator()"),
        ("take-put", "linearIndex < size && linearIndex >= -size", "TensorTakeOp"),
        ("masked-scatter", "totalElements <= srcSize", "masked_scatter_size_check"),
        ("class-label", "t >= 0 && t < n_classes", "nll_loss_forward_reduce_cuda_kernel_2d"),
        ("class-label-2d", "cur_target >= 0 && cur_target < n_classes", "nll_loss2d_forward_kernel"),
        ("nll2d-size", "input_index >= 0", "nll_loss2d_forward_kernel"),
        ("bce-input", "input_val >= zero && input_val <= one", "operator()"),
        ("bce-input", "*input >= 0. && *input <= 1.", "bce_functor"),
        ("bce-target", "target_val >= zero && target_val <= one", "operator()"),
        (
            "multi-margin-target",
            "target_k >= 0 && target_k < dim && \"target index is out of bounds\"",
            "MultiMarginLoss_forward_kernel",
        ),
        ("multinomial", "val >= zero", "sampleMultinomialOnce"),
        ("multinomial", "!THCNumerics<T>::isnan(val)", "sampleMultinomialOnce"),
        ("multinomial", "cumdist[size - 1] > static_cast<scalar_t>(0)", "sampleMultinomialOnce"),
        ("multinomial", "!(sum > accZero)", "sampleMultinomialOnce"),
        (
            "probability-tensor",
            "probability tensor contains either `inf`, `nan` or element < 0",
            "_assert_async_cuda_kernel",
        ),
        ("assert-async", "input[0] != 0", "_assert_async_cuda_kernel"),
        ("bernoulli", "0 <= p && p <= 1", "operator()"),
        ("bernoulli", "0 <= p4 && p4 <= 1", "operator()"),
        ("repeat-negative", "repeat >= 0", "compute_cuda_kernel"),
        ("embedding-bag-offsets", "end >= begin", "EmbeddingBag_updateOutputKernel"),
        ("fractional-pool", "maxIndex != -1", "fractional_max_pool2d_out_cuda_frame"),
        ("topk", "writeIndex < outputSliceSize", "gatherTopK"),
        ("inductor-index", "index out of bounds: 0 <= tmp4 < 32000", ""),
        ("framework-invariant", "false", "reduce_kernel"),
    ] {
        assert_eq!(facts().assert(condition, kernel).map(|assert| assert.id.as_str()), Some(id), "{condition}");
        let texts = Texts::get(Language::English);
        assert!(texts.find(&format!("asserts.{id}.summary")).is_some(), "{id} has no text");
    }
}

#[test]
fn every_kind_has_its_words() {
    for kind in facts().kinds() {
        assert!(cublame_core::catalog::explain::is_known(&kind.id), "{}", kind.id);
    }
}
