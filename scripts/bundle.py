#!/usr/bin/env python3
"""Packs a build into strata-VERSION-linux-x86_64.tar.xz, which runs wherever its folder lies.

    bundle.py BUILD OUTPUT

The bundle has everything that the programs need but glibc, libstdc++, libgcc and CUDA. Refuses programs that would need Open MPI,
gRPC or CUDA to start, libraries that no program may need, and a bundle that together with the repository is larger than 60 MiB.
Modules for several hosts must stay below 7 MB packed, with what they alone need. Prints the archive's path last.
`scripts/dev bundle` builds what this packs.
"""
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_BYTES = 60 << 20  # the repository's files and the archive together
HOSTS_LIMIT_BYTES = 7_000_000  # what several hosts alone need, packed

# Programs by folder of the bundle, as patterns in the build.
PROGRAMS = {
    "bin": ["bin/train", "bin/plan", "bin/mlaunch", "bin/generate", "bin/doctor", "bin/inspect"],
    "tests": ["tests/golden_test", "tests/train_on_threads", "tests/gpu_*_test"],
    "bench": ["bench/*_bench"],
}
# What runs over several hosts open, and the page of a run; their libraries come along, too.
HOSTS_MODULES = ["lib/libstrata_control.so", "lib/libstrata_gloo.so"]
MODULES = [*HOSTS_MODULES, "lib/libstrata_web.so"]
# Files of the repository, and their places in the bundle.
FILES = {
    "configs": "configs",
    "docs": "docs",
    "README.md": "docs/repository.md",
    "tests/golden": "tests/golden",
    "tests/program": "tests/program",
    "scripts/tokenize.py": "scripts/tokenize.py",
    "scripts/strata_convert": "scripts/strata_convert",
    "scripts/gpu_check.py": "scripts/gpu_check.py",
    "scripts/gpu_sampler.py": "scripts/gpu_sampler.py",
    "scripts/gpu_check.json": "scripts/gpu_check.json",
    "scripts/gpu_check_more.json": "scripts/gpu_check_more.json",
    "scripts/gpu_bench.json": "scripts/gpu_bench.json",
    "scripts/gpu_bench_more.json": "scripts/gpu_bench_more.json",
    "scripts/gpu_foresight.json": "scripts/gpu_foresight.json",
    "scripts/gpu-check": "bin/gpu-check",
    "scripts/gpu-bench": "bin/gpu-bench",
    "bench/peers/gpu_row.py": "bench/peers/gpu_row.py",
}
# Debian packages that a source build (preset cuda-min) needs beside compilers, and which of their files.
DEVELOPMENT = {
    "libhwy-dev": "usr/(include/hwy/|lib/x86_64-linux-gnu/cmake/)",
    "libhwy1": r"usr/lib/x86_64-linux-gnu/libhwy",  # CMake's file asks for all of its libraries
    "libfmt-dev": r"usr/(include/|lib/x86_64-linux-gnu/cmake/)",
    "libfmt9": r"usr/lib/x86_64-linux-gnu/libfmt",
    "libdnnl-dev": r"usr/include/",
    "libgtest-dev": r"usr/(include/|lib/x86_64-linux-gnu/(cmake/|libgtest))",
    "libgmock-dev": r"usr/(include/|lib/x86_64-linux-gnu/(cmake/|libgmock))",
    "libcli11-dev": r"usr/include/",
    "libxxhash-dev": r"usr/include/",
    "liburing-dev": r"usr/(include/|lib/x86_64-linux-gnu/liburing\.a)",
}
# Packages that are linked into programs, or are headers in them.
STATIC = [*DEVELOPMENT, "libbenchmark-dev"]

OF_THE_SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|ld-linux|linux-vdso)")
FORBIDDEN = re.compile(r"^lib(mpi|open-|grpc|protobuf|gloo|cuda|cublas|cudnn|nccl|nvidia)")
FORBIDDEN_IN_MODULES = re.compile(r"^lib(mpi|open-|cuda|cublas|cudnn|nccl|nvidia)")
STAMP = "2000-01-01 00:00:00Z"  # time of all files, so that equal bundles have equal bytes


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def die(message):
    sys.exit(f"bundle.py: {message}")


def needed(binary):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", binary))


def resolved(binary):
    """Returns the paths of all libraries that the loader would take, by name."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", binary), re.M))


def libraries(binaries, forbidden=FORBIDDEN):
    """Returns the libraries that binaries need beyond the system, by name; refuses those that must not be needed to start."""
    found = {}
    for binary in binaries:
        paths, queue = resolved(binary), needed(binary)
        while queue:
            name = queue.pop()
            if OF_THE_SYSTEM.match(name) or name in found:
                continue
            if forbidden.match(name):
                die(f"{binary} needs {name}; such libraries are opened when a run asks for them")
            if name not in paths:
                die(f"{binary} needs {name}, which is not installed")
            found[name] = pathlib.Path(paths[name]).resolve()
            queue += needed(found[name])
    return found


def newest(binaries, prefix):
    """Returns the newest symbol version of a system library that any of `binaries` asks for."""
    versions = {tuple(map(int, v.split(".")))
                for b in binaries
                for v in re.findall(rf"Name: {prefix}_([\d.]+)", run("readelf", "-W", "--version-info", b))}
    return ".".join(map(str, max(versions)))


def package_of(path):
    for tried in (path, pathlib.Path("/", *path.parts[2:])):  # /usr/lib may be listed as /lib
        done = subprocess.run(["dpkg", "-S", str(tried)], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    die(f"no Debian package owns {path}: its licence is unknown")


def copy_licences(names, folder):
    folder.mkdir()
    for name in sorted(names):
        text = pathlib.Path("/usr/share/doc", name, "copyright")
        if not text.is_file():
            die(f"{text} is missing")
        shutil.copyfile(text, folder / f"{name}.txt")


def copy_cuda_licence(compiler, folder):
    """Copies the licence of the CUDA runtime, which is linked into the programs."""
    toolkit = pathlib.Path(compiler).resolve().parent.parent
    texts = [*toolkit.glob("EULA.txt"), *toolkit.glob("dist-info/nvidia_cuda_runtime-*/licenses/*")]
    if texts:
        shutil.copyfile(texts[0], folder / "cuda-runtime.txt")
    else:
        (folder / "cuda-runtime.txt").write_text("NVIDIA CUDA Toolkit EULA: https://docs.nvidia.com/cuda/eula\n")


def copy_programs(build, top):
    copied = []
    for folder, patterns in PROGRAMS.items():
        (top / folder).mkdir()
        for pattern in patterns:
            matches = sorted(p for p in build.glob(pattern) if p.is_file() and os.access(p, os.X_OK))
            if not matches and "gpu_" not in pattern:  # GPU tests exist only where nvcc is
                die(f"{build}/{pattern} was not built")
            for program in matches:
                run("strip", "-o", top / folder / program.name, program)
                copied.append(top / folder / program.name)
    return copied


def copy_modules(build, top):
    """Copies the modules that were built; a build without gRPC, Gloo or libmicrohttpd lacks some."""
    copied = []
    for module in MODULES:
        if (build / module).is_file():
            run("strip", "-o", top / module, build / module)
            copied.append(top / module)
    return copied


def copy_files(top):
    ignore = shutil.ignore_patterns("__pycache__", "*.cpp", "*.h", "CMakeLists.txt")
    for source, target in FILES.items():
        (top / target).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, top / target, ignore=ignore)
        else:
            shutil.copy(ROOT / source, top / target)


def copy_development(top):
    for package, wanted in DEVELOPMENT.items():
        for name in run("dpkg", "-L", package).split("\n"):
            path = pathlib.Path(name)
            if not re.match("/" + wanted, name) or not path.is_file():
                continue
            target = top / "development" / path.relative_to("/usr")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    soname = next(p.name for p in (top / "lib").iterdir() if p.name.startswith("libdnnl.so"))
    link = top / "development/lib/x86_64-linux-gnu/libdnnl.so"
    link.symlink_to(os.path.relpath(top / "lib" / soname, link.parent))


def copy_cudnn_frontend(build, top):
    """Copies the headers from which cuDNN's attention is built, if the build had them."""
    named = cache_value(build, "STRATA_CUDNN_FRONTEND")
    folders = [pathlib.Path(named)] if named else sorted(ROOT.glob("build/cudnn-frontend-*/include"))
    if not folders or not (folders[-1] / "cudnn_frontend.h").is_file():
        return
    shutil.copytree(folders[-1], top / "development/include", dirs_exist_ok=True)
    shutil.copyfile("/usr/share/common-licenses/Apache-2.0", top / "licences/cudnn-frontend.txt")


def repository_bytes():
    names = run("git", "-C", ROOT, "ls-files", "-z").split("\0")[:-1]
    return sum((ROOT / n).lstat().st_size for n in names if (ROOT / n).exists())


def cache_value(build, key):
    found = re.search(rf"^{key}(:\w+)?=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[2] if found else ""


def pack(top, archive):
    tar = ["tar", "-C", top.parent, "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
           f"--mtime={STAMP}", "-cf", "-", top.name]
    # The dictionary reaches from one test program to the next, because they hold the same kernels.
    xz = ["xz", "--x86", "--lzma2=preset=4,dict=128MiB", "-T1"]
    with open(archive, "wb") as file:
        producer = subprocess.Popen(list(map(str, tar)), stdout=subprocess.PIPE)
        done = subprocess.run(xz, stdin=producer.stdout, stdout=file)
        producer.stdout.close()  # tar ends, too, where xz could not go on
        if producer.wait() != 0 or done.returncode != 0:
            die(f"cannot write {archive}")


def packed_bytes(files):
    """Returns how many bytes files take when each is packed by itself."""
    return sum(len(lzma.compress(file.read_bytes(), preset=1)) for file in files)


def main():
    if len(sys.argv) != 3:
        die("usage: bundle.py BUILD OUTPUT")
    build, output = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    version = cache_value(build, "CMAKE_PROJECT_VERSION")
    name = f"strata-{version}-linux-x86_64"
    top = output / name
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)

    programs = copy_programs(build, top)
    for program in programs:
        rpath = re.findall(r"\((R\w*PATH)\).*\[(.*)\]", run("readelf", "-d", program))
        own = [name for name in needed(program) if not OF_THE_SYSTEM.match(name)]
        # RPATH and not RUNPATH, because libraries also find each other by RPATH.
        if own and rpath != [("RPATH", "$ORIGIN/../lib")]:
            die(f"{program.name} looks for {own[0]} in {rpath or 'the system'}, not in the bundle's lib; build it with "
                "the preset bundle")
    (top / "lib").mkdir()
    of_programs = libraries(programs)
    modules = copy_modules(build, top)
    found = of_programs | libraries(modules, FORBIDDEN_IN_MODULES)
    for library, path in found.items():
        shutil.copyfile(path, top / "lib" / library)
    binaries = [*programs, *(top / "lib").iterdir()]
    copy_files(top)
    copy_development(top)
    copy_licences({*STATIC, *map(package_of, found.values())}, top / "licences")

    cuda = any(p.name.startswith("gpu_") for p in programs)
    facts = {
        "version": version,
        "commit": run("git", "-C", ROOT, "describe", "--always", "--dirty").strip(),
        "glibc": newest(binaries, "GLIBC"),
        "libstdcxx": newest(binaries, "GLIBCXX"),
        "cuda_architectures": cache_value(build, "STRATA_CUDA_ARCHITECTURES") if cuda else "none",
    }
    if cuda:
        copy_cuda_licence(cache_value(build, "CMAKE_CUDA_COMPILER"), top / "licences")
        copy_cudnn_frontend(build, top)
    (top / "bundle.json").write_text(json.dumps(facts, indent=2) + "\n")
    readme = (ROOT / "scripts/bundle_readme.md").read_text()
    (top / "README.md").write_text(readme.format(**facts, name=name))

    of_hosts = [module for module in modules if str(module.relative_to(top)) in HOSTS_MODULES]
    alone = libraries(of_hosts, FORBIDDEN_IN_MODULES).keys() - of_programs.keys()
    hosts_bytes = packed_bytes([*of_hosts, *(top / "lib" / library for library in alone)])
    archive = output / f"{name}.tar.xz"
    pack(top, archive)
    shutil.rmtree(top)
    size, sources = archive.stat().st_size, repository_bytes()
    print(f"{size / 2**20:.1f} MiB, the repository {sources / 2**20:.1f} MiB; needs glibc {facts['glibc']}, "
          f"GLIBCXX_{facts['libstdcxx']}; CUDA architectures: {facts['cuda_architectures']}")
    print(f"modules for several hosts with the libraries that they alone need: {hosts_bytes / 1e6:.1f} MB of it")
    if hosts_bytes > HOSTS_LIMIT_BYTES:
        die(f"modules for several hosts take more than {HOSTS_LIMIT_BYTES / 1e6:.0f} MB")
    if size + sources > LIMIT_BYTES:
        die(f"together more than {LIMIT_BYTES >> 20} MiB")
    print(archive)


if __name__ == "__main__":
    main()
