"""`cublame repro` on programs that fail for real on the CPU: the failing call alone, made small, fails in the same way.

usage: test_repro.py CUBLAME   (with the interpreter of a venv that has torch)
"""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CUBLAME = os.path.abspath(sys.argv[1])

# program, exception of the call alone, what the small program must say
MINIMAL = [
    ("embedding", "IndexError", ["torch.zeros((32, 128), dtype=torch.int64)", "input[3, 7] = 1003", "set_seed(3)"]),
    ("label", "IndexError", ["target[5] = 10", "cross_entropy(input, target, label_smoothing=0.1)"]),
    ("indexing", "IndexError", ["key_1[6] = 16", "x[key_0, key_1, 1:5]"]),
    ("probability", "RuntimeError", ['float("nan")', "torch.multinomial(x, 1)"]),
    ("scatter", "RuntimeError", ["index[10] = 77", "x.scatter_add_(0, index, src)"]),
    ("backward", "RuntimeError", ["index[2] = 25", "torch.ops.aten.index_add.default(x, 0, index, source)"]),
    ("thread", "IndexError", ["key[1] = 12", "x[key]"]),
    ("compiled", "IndexError", ["key[1] = 200", "x[key]"]),
    ("shapes", "RuntimeError", ['with torch.autocast("cpu", dtype=torch.bfloat16):', "x.matmul(other)"]),
]
passed = failed = 0


def check(name, test):
    global passed, failed
    with tempfile.TemporaryDirectory() as folder:
        try:
            test(os.path.realpath(folder))
            passed += 1
        except AssertionError as error:
            failed += 1
            print("FAILED %s: %s" % (name, error))


def cublame(folder, *words):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUBLAME", "CUDA_")) or name.endswith("_FOR_TEST")}
    env.update(XDG_STATE_HOME=os.path.join(folder, "state"), HF_TOKEN="hf_0123456789abcdef0123", LC_ALL="C.UTF-8")
    return subprocess.run([CUBLAME, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)


def failing_run(folder, program):
    shutil.copy(os.path.join(HERE, "repro", program + ".py"), folder)
    os.mkdir(os.path.join(folder, ".cublame"))
    done = cublame(folder, "run", "--", sys.executable, program + ".py")
    assert done.returncode == 1, "exit code %d: %s" % (done.returncode, done.stderr[-2000:])


def minimal(program, exception, says):
    def test(folder):
        failing_run(folder, program)
        done = cublame(folder, "repro", "--minimal", "--yes")
        assert done.returncode == 0, done.stderr[-3000:]
        assert "cublame: reproduced: " in done.stderr and "(%s)" % exception in done.stderr, done.stderr[-2000:]
        (path,) = done.stdout.splitlines()
        text = open(path).read()
        for words in says:
            assert words in text, "%r is not in\n%s" % (words, text)
        assert os.listdir(os.path.dirname(path)) == ["repro.py"], os.listdir(os.path.dirname(path))
        alone = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=100)
        assert alone.returncode == 1 and alone.stderr.splitlines()[-1].startswith(exception), alone.stderr

    return test


def not_torchs(folder):
    failing_run(folder, "plain")
    done = cublame(folder, "repro", "--minimal", "--yes")
    assert done.returncode == 2, done.returncode
    assert "plain.py:4 is none of torch's functions" in done.stderr, done.stderr[-2000:]
    assert done.stdout == ""


def values_that_are_kept(folder):
    """Where there is no time to make it smaller, the values lie beside the program; a bundle says so."""
    failing_run(folder, "embedding")
    (run,) = (name for name in os.listdir(os.path.join(folder, ".cublame", "runs")) if not name.startswith("."))
    captured, made = os.path.join(folder, "captured"), os.path.join(folder, ".cublame", "runs", run, "repro")
    os.mkdir(captured)
    os.mkdir(made)
    program = os.path.join(folder, "embedding.py")
    os.environ["CUBLAME_CAPTURE_FOR_TEST"] = "\n".join((captured, program, "12"))
    cublame(folder, "run", "--", "sh", "-c", 'CUBLAME_CAPTURE="$CUBLAME_CAPTURE_FOR_TEST" exec "$0" "$1"', sys.executable, program)
    reduce = os.path.join(HERE, "..", "..", "server", "src", "hook", "_cublame_reduce.py")
    subprocess.run([sys.executable, "-I", reduce, captured, made, "0"], check=True, timeout=100)
    assert {"repro.py", "tensors.pt"} <= set(os.listdir(made)), os.listdir(made)
    alone = subprocess.run([sys.executable, os.path.join(made, "repro.py")], capture_output=True, text=True, timeout=100)
    assert alone.returncode == 1 and alone.stderr.splitlines()[-1].startswith("IndexError"), alone.stderr
    bundled = cublame(folder, "repro", "--dry-run", run)
    assert "repro/tensors.pt" in bundled.stderr and "VALUES OF YOUR DATA" in bundled.stderr, bundled.stderr


def bundle(folder):
    failing_run(folder, "embedding")
    done = cublame(folder, "repro", "--yes", "--output", "given.tar.gz")
    assert (done.returncode, done.stdout) == (0, "given.tar.gz\n"), done.stderr
    with tarfile.open(os.path.join(folder, "given.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        packages = archive.extractfile(next(name for name in archive.getnames() if name.endswith("/packages.txt"))).read().decode()
        seeds = archive.extractfile(next(name for name in archive.getnames() if name.endswith("/seeds.txt"))).read().decode()
    wanted = {"README.md", "run.json", "report.json", "log.txt", "sources/embedding.py", "seeds.txt", "packages.txt", "machine.txt"}
    assert wanted <= names, wanted - names
    assert "torch==2.11.0" in packages, packages
    assert seeds == "embedding.py:16: torch.manual_seed(3)\n", seeds
    again = cublame(folder, "repro", "--yes", "--output", "given.tar.gz")
    assert again.returncode == 2 and "is there already" in again.stderr, again.stderr


for name, exception, says in MINIMAL:
    check(name, minimal(name, exception, says))
check("not torch's", not_torchs)
check("values that are kept", values_that_are_kept)
check("bundle", bundle)
print("%d passed, %d failed" % (passed, failed))
sys.exit(bool(failed))
