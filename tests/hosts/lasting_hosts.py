"""Hosts that stay when an mlaunch on them ends, so that what it leaves there can be seen."""
import os
import pathlib
import signal
import subprocess

from namespaces import INSIDE, Namespaces
from several_hosts import BIN, is_running

TIME_WAIT = "06"  # of a TCP connection: the kernel alone remembers it


class LastingHosts(Namespaces):
    """A test on hosts of which each has a process that does nothing and holds its namespaces."""

    HOSTS = 3

    def setUp(self):
        super().setUp()
        self.holders, self.mounts = {}, {}
        for host in range(self.HOSTS):
            self.boot(host)

    def boot(self, host):
        """Starts a host that has nothing of an earlier one of its name."""
        marker = self.home / f"up{host}"
        marker.unlink(missing_ok=True)
        outer = self.on_host(host, ["sh", "-c", f"touch up{host}; exec sleep infinity"])
        self.wait_until(marker.exists, "a host")
        [holder] = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        self.holders[host] = (outer, int(holder))
        self.mounts[host] = self.seen_by(host, "mounts")

    def holder(self, host):
        return self.holders[host][1]

    def power_off(self, host):
        """All processes of the host die at once, and what it had in memory goes."""
        outer, holder = self.holders[host]
        os.kill(holder, signal.SIGKILL)
        outer.wait()

    def seen_by(self, host, name):
        return pathlib.Path(f"/proc/{self.holder(host)}/{name}").read_text()

    def enter(self, host, command, name):
        """Starts a command on a host; what it prints is added to the file `name`."""
        inside = ["nsenter", "--target", str(self.holder(host)), "--net", "--uts", "--ipc", "--pid", "--mount", "--wd", *command]
        with open(self.home / name, "ab") as output:
            process = subprocess.Popen(inside, env=self.environment_of_hosts(), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       start_new_session=True)
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def environment_of_hosts():
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")}
        return kept | {"XDG_CACHE_HOME": "/tmp/cache", "STRATA_RUNS_DIR": "/tmp/runs"}  # of the host alone

    def join(self, host, ranks, program, options=()):
        """Starts the mlaunch of one host of a run with as many ranks on each host as `ranks` says."""
        command = [str(BIN / "mlaunch"), "--nnodes", str(len(ranks)), "--node-rank", str(host), "--master-addr", self.address(0), "--master-port",
                   "29500", "--run-secret", "secret", "-np", str(ranks[host]), *options, *program]
        return self.enter(host, command, f"said{host}")

    def processes(self, host, name=None):
        """Returns the processes of a host other than its holder, or those of one program."""
        namespace, found = os.readlink(f"/proc/{self.holder(host)}/ns/pid"), []
        for entry in os.listdir("/proc"):
            try:
                if not entry.isdigit() or int(entry) == self.holder(host) or os.readlink(f"/proc/{entry}/ns/pid") != namespace:
                    continue
                if (name is None or os.path.basename(os.readlink(f"/proc/{entry}/exe")) == name) and is_running(int(entry)):
                    found.append(int(entry))
            except OSError:
                pass  # it has ended
        return sorted(found)

    def left_on(self, host):
        """Returns what is on a host that was not there at its start: processes, sockets, mounts, files in memory. How a run ended is kept there
        for `mlaunch status`, and the reports of its attempts; of a run whose mlaunch was killed, what was known of it last."""
        left = [f"process {pid}: {pathlib.Path(f'/proc/{pid}/cmdline').read_text()[:200]!r}" for pid in self.processes(host)]
        for table in ("net/tcp", "net/tcp6"):
            for line in self.seen_by(host, table).splitlines()[1:]:
                words = line.split()
                if words[3] != TIME_WAIT and words[9] != "0":  # a socket of a process has a number
                    left.append(f"{table}: {line.strip()}")
        left += [f"net/unix: {line}" for line in self.seen_by(host, "net/unix").splitlines()[1:]]
        # Mounts also go: those of other hosts' namespaces, with these.
        left += [f"mount {line}" for line in set(self.seen_by(host, "mounts").splitlines()) - set(self.mounts[host].splitlines())]
        root = pathlib.Path(f"/proc/{self.holder(host)}/root")
        for folder in ("tmp", "dev/shm"):
            left += [f"file {path.relative_to(root)}" for path in (root / folder).rglob("*")
                     if not path.is_dir() and path.suffix != ".ended" and path.stem != "report"
                     and not (path.suffix == ".record" and not path.with_suffix(".ended").exists())]
        return left
