# What the doctor asks the project's Python: one line of JSON. Understood by Python 2.7 and up.
import json
import sys

# A file of the working directory is not a package that is installed.
sys.path[:] = [folder for folder in sys.path if folder]

answer = {
    "executable": sys.executable or "",
    "version": ".".join(str(part) for part in sys.version_info[:3]),
    "frameworks": {},
    "architectures": [],
}
try:
    from importlib import metadata
except ImportError:
    metadata = None
installed = None
if metadata is not None:
    for distribution in metadata.distributions():
        try:
            name = distribution.metadata["Name"]
        except Exception:  # A damaged package is none of the doctor's business.
            continue
        if not name:
            continue
        if name == "torch":
            installed = distribution.version
        elif name in ("jax", "jaxlib", "numba", "triton", "tensorflow", "bitsandbytes") or name.startswith("cupy"):
            answer["frameworks"][name] = distribution.version
try:
    import torch

    answer["torch"] = str(torch.__version__)
    answer["torch_cuda"] = torch.version.cuda
    answer["torch_hip"] = getattr(torch.version, "hip", None)
    # torch.cuda.get_arch_list() is empty where there is no GPU; this is what it reads.
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    answer["architectures"] = (flags() or "").split() if flags else []
except Exception as failure:
    missing = isinstance(failure, ImportError) and getattr(failure, "name", None) == "torch"
    if installed or not missing:
        answer["torch"] = installed
        answer["torch_failure"] = "%s: %s" % (type(failure).__name__, failure)
sys.stdout.write("\n" + json.dumps(answer) + "\n")
