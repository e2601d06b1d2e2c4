"""Watches which memory files the processes of each host map: no two hosts may map one, as no two real ones could."""
import os
import pathlib
import threading

BETWEEN_LOOKS_S = 0.2


def parents():
    """Returns the parent of each process."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            found[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass  # it has ended
    return found


def descendants(pid, parent_of):
    """Returns a process and all below it."""
    found = [pid]
    for one in found:
        found += [child for child, parent in parent_of.items() if parent == one]
    return found


def memory_files(pid):
    """Returns device and inode of each memory file that a process maps."""
    try:
        lines = pathlib.Path("/proc", str(pid), "maps").read_text().splitlines()
    except OSError:
        return set()
    return {tuple(line.split()[3:5]) for line in lines if " /memfd:" in line or " /dev/shm/" in line}


class MemoryWatch:
    def __init__(self):
        self.files = {}  # what processes of a host have mapped, by the number of its first process
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def add(self, pid):
        self.files[pid] = set()
        if not self.thread.is_alive():
            self.thread.start()

    def watch(self):
        while not self.ended.wait(BETWEEN_LOOKS_S):
            self.look()

    def look(self):
        parent_of = parents()
        for host, files in list(self.files.items()):
            for pid in descendants(host, parent_of):
                files |= memory_files(pid)

    def end(self):
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()

    def shared(self):
        """Returns the files that processes of several hosts have mapped."""
        hosts = list(self.files.values())
        return set().union(*(one & other for number, one in enumerate(hosts) for other in hosts[:number]))
