"""Writes files and folders that survive a crash, and folders that appear whole or not at all."""
import contextlib
import fcntl
import os
import shutil

from refused import Refused


def sync(path):
    """Brings a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path, data):
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def appearing_folder(target):
    """Makes a folder beside `target` that takes its name at the end. The caller syncs the files that it writes."""
    target = os.path.abspath(target)
    if os.path.isdir(target) and not os.path.islink(target) and not os.listdir(target):
        os.rmdir(target)
    if os.path.lexists(target):
        raise Refused("%s: exists already; choose another name or remove it" % target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    # The name is like those of a run's own staging folders, so the next run removes what a crash leaves.
    staging = "%s.tmp-convert-%d" % (target, os.getpid())
    os.mkdir(staging, 0o700)
    try:
        yield staging
        for root, _, _ in os.walk(staging):
            sync(root)
        os.rename(staging, target)
        sync(os.path.dirname(target))
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


@contextlib.contextmanager
def output_lock(output):
    """Keeps runs out of an output folder while it is held."""
    path = os.path.join(output, ".strata-lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused("%s: in use by a run; wait for it to end, or choose another output folder" % output) from None
    finally:
        os.close(descriptor)
