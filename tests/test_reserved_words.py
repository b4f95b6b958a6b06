"""The words that cannot be names, compared with what the compilers take.

Every identifier in the headers of NVRTC and of the host, with C++'s and PTX's own words, is used as
a size, an array, a temporary, a loop variable and a kernel: it is either refused, or compiles.
"""

import re
import subprocess
from pathlib import Path

import pytest
from seams import host as _host
from seams import include_directory, preamble
from seams import preamble_device_functions as device_functions
from seams import words as _words

import loopkit as lk

WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,60}")
TEXT = re.compile(rb"[\t\n\r -~]{200,}")
HOST = Path(_host.__file__).parent
HOST_OPTIONS = ("-std=c++17", "-x", "c++", "-include", str(HOST / "cuda_words.h"), "-I", str(HOST))
DECLARED = re.compile(rb"(?<=\x00)[A-Za-z_]\w{0,60}(?=\x00)")
PREAMBLE = preamble(device_functions())

VARIABLE = """\
static __device__ void lk_a{i}(int const {name}, float *lk_x) {{ lk_x[threadIdx.x] = {name}; }} \
static __device__ void lk_b{i}(float *__restrict__ {name}) \
{{ {name}[blockIdx.x + min(1, 2)] = 1; }} \
static __device__ void lk_c{i}() {{ float {name}; {name} = 1.0f; }} \
static __device__ void lk_d{i}() {{ for (long long {name} = 0; {name} < 4; ++{name}) {{ }} }} \
static __device__ void lk_e{i}() {{ __shared__ float {name}[4]; {name}[0] = 1.0f; }}"""
KERNEL = 'extern "C" __global__ void __launch_bounds__(256) {name}(float *__restrict__ lk_a);'
HEADERS = "complex ctype fenv inttypes math stdio stdlib string time unistd wchar"


def _nvrtc_words():
    """The identifiers in the headers that NVRTC carries inside, and in those that kernels include.

    NVRTC does not print what it has preprocessed, but its libraries hold headers as text, and a
    table of the functions that the compiler itself declares.
    """
    from cuda.bindings import nvrtc

    nvrtc.nvrtcVersion()
    found = set()
    maps = Path("/proc/self/maps").read_text().splitlines()
    main = next(Path(line.split()[-1]) for line in maps if "libnvrtc.so" in line)
    for library in main.parent.glob("libnvrtc-builtins.so*"):
        for text in TEXT.findall(library.read_bytes()):
            if b"threadIdx" in text or b"#define" in text:
                found.update(WORD.findall(text))
    data = main.read_bytes()
    table = data.find(b"\0__syncthreads_count\0")
    for word in DECLARED.findall(data[max(0, table - 150_000) : table + 150_000]):
        # Linkers store a string that ends another one as its tail: norm stands in rnorm alone.
        found.update(filter(WORD.fullmatch, (word[at:] for at in range(len(word) - 1))))
    for header in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp16.hpp", "cuda_bf16.hpp"):
        file = Path(include_directory()) / header
        if file.is_file():
            found.update(WORD.findall(file.read_bytes()))
    return found


def _host_words():
    """The identifiers and the macros that the host's compiler knows before a kernel."""
    found = set()
    for macros in ((), ("-dM",)):
        done = subprocess.run(
            ["g++", *HOST_OPTIONS, "-E", *macros, "/dev/null"], capture_output=True, check=True
        )
        found.update(WORD.findall(done.stdout))
    return found


def _c_words():
    """The identifiers of C's library, of which compilers know some without any header."""
    text = "".join(f"#include <{name}.h>\n" for name in HEADERS.split())
    command = ["g++", "-x", "c++", "-E", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return set(WORD.findall(done.stdout))


def candidates():
    words = {word.decode() for word in _nvrtc_words() | _host_words() | _c_words()}
    return sorted(words | _words.KEYWORDS | _words.CUDA | _words.CALLED | _words.LIBRARY)


def source(form, names):
    lines = [form.format(name=name, i=i) for i, name in enumerate(names)]
    return PREAMBLE + "\n".join(lines) + "\n"


def rejected_by_nvrtc(text):
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"k.cu", 0, [], [])
    options = [b"--gpu-architecture=compute_90a", b"--std=c++17", b"--no-cache", b"-w"]
    options.append(f"--include-path={include_directory()}".encode())
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    return log.decode(errors="replace") if int(status) else ""


def rejected_by_host(text):
    command = ["g++", "-fsyntax-only", "-w", *HOST_OPTIONS, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


COMPILERS = (rejected_by_nvrtc, rejected_by_host)


@pytest.mark.nvrtc
@pytest.mark.host
@pytest.mark.parametrize("rejected", COMPILERS)
def test_what_is_not_refused_as_a_variable_compiles(rejected):
    words = candidates()
    assert len(words) > 4000 and {"threadIdx", "__half", "sqrtf", "clock64", "norm", "jn"} <= set(
        words
    )
    free = [word for word in words if not _words.meaning(word)]
    assert not rejected(source(VARIABLE, free))


@pytest.mark.nvrtc
@pytest.mark.host
@pytest.mark.parametrize("rejected", COMPILERS)
def test_what_is_not_refused_as_a_kernel_compiles(rejected):
    free = [w for w in candidates() if not _words.meaning(w) and w not in _words.LIBRARY]
    assert not rejected(source(KERNEL, free))


def test_the_lists_say_what_is_refused():
    for word in sorted(_words.KEYWORDS | _words.CUDA | _words.CALLED):
        with pytest.raises(lk.InvalidArgumentError, match=f"'{word}' cannot be"):
            lk.GlobalArg(word)
    with pytest.raises(lk.InvalidArgumentError, match="'_' cannot be the name of a kernel"):
        lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = 1", name="_")
    for word in sorted(_words.LIBRARY):
        lk.GlobalArg(word)


@pytest.mark.parametrize("word", ["a", "j0", "gamma", "index", "lam", "y1", "time", "std", "round"])
def test_names_that_people_use_are_free(word):
    assert not _words.meaning(word)
    kernel = lk.make_kernel(f"{{ [i]: 0 <= i < {word}_ }}", f"{word}[i] = 1")
    assert kernel.prove().ok


@pytest.mark.parametrize("word", ["lk", "LK", "NV", "CU", "LOOPKIT", "_"])
def test_names_are_made_from_any_other(word):
    """Also from those that begin as what is reserved does."""
    kernel = lk.make_kernel(f"{{ [{word}]: 0 <= {word} < n }}", f"y[{word}] = 2*{word}")
    for step in (
        kernel.split_iname(word, 4),
        kernel.chunk_iname(word, 4),
        kernel.duplicate_inames(word, "id:insn"),
    ):
        assert step.prove().ok and not any(_words.meaning(name) for name in step.all_inames)
