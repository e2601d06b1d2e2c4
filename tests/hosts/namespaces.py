"""Hosts that share nothing but this machine's kernel and disk: each has namespaces of its own for network, name, memory between
processes, processes and mounts, with its own /tmp and /dev/shm, on a bridge."""
import os
import shutil
import socket
import subprocess
import tempfile
import pathlib

from several_hosts import BIN, HostsTest

# The shell becomes the program, so that a signal to the namespaces' first process reaches it.
INSIDE = """hostname "$1"; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /dev/shm; shift; exec "$@" """


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def why_not():
    """Returns why there can be no such hosts here; "": there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "ip (iproute2) or unshare (util-linux) is missing"
    probe = run("unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "true", check=False)
    return "" if probe.returncode == 0 else f"this system allows no namespaces: {probe.stderr.strip()}"


class Namespaces(HostsTest):
    """A test with hosts host0, host1, ... at addresses of their own. self.home is on all of them, as a shared disk is."""

    HOSTS = 2
    NAME = "strata"  # with which those of the bridge, cables and namespaces begin
    NETWORK = "10.213.77"

    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)
        super().setUp()
        # /tmp is another one on each host.
        folder = tempfile.TemporaryDirectory(prefix="hosts-", dir=BIN.parent)
        self.addCleanup(folder.cleanup)
        shutil.copy(self.home / "secret", folder.name)
        self.home = pathlib.Path(folder.name)
        self.take_bridge()
        self.remove_network()
        self.addCleanup(self.remove_network)
        try:
            run("ip", "link", "add", self.bridge(), "type", "bridge")
            run("ip", "link", "set", self.bridge(), "up")
            for host in range(self.HOSTS):
                self.add_host(host)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"this system has no bridge or no network namespaces: {error.stderr.strip()}")

    def take_bridge(self):
        """Waits until tests of no other build have a bridge of this name on this machine."""
        name = socket.socket(socket.AF_UNIX)
        self.addCleanup(name.close)

        def taken():
            try:
                name.bind(f"\0{self.bridge()}")
            except OSError:
                return False
            return True
        self.wait_until(taken, "the end of other tests that use the bridge", 600)

    def add_host(self, host):
        name, outside = self.namespace(host), self.cable(host)
        run("ip", "netns", "add", name)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", outside, "master", self.bridge(), "up")
        run("ip", "-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")

    @classmethod
    def remove_network(cls):
        for host in range(cls.HOSTS):
            run("ip", "netns", "del", cls.namespace(host), check=False)
            run("ip", "link", "del", cls.cable(host), check=False)
        run("ip", "link", "del", cls.bridge(), check=False)

    @classmethod
    def bridge(cls):
        return f"{cls.NAME}br0"

    @classmethod
    def namespace(cls, host):
        return f"{cls.NAME}host{host}"

    @classmethod
    def cable(cls, host):
        return f"{cls.NAME}ve{host}"

    @classmethod
    def address(cls, host):
        return f"{cls.NETWORK}.{host + 1}"

    def cut(self, host):
        """Takes the host off the network."""
        run("ip", "link", "set", self.cable(host), "down")

    def mend(self, host):
        run("ip", "link", "set", self.cable(host), "up")

    def on_host(self, host, command):
        return self.start_host(["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "--ipc", "--pid", "--mount", "--fork",
                                "--mount-proc", "--kill-child", "sh", "-c", INSIDE, "sh", f"host{host}", *command])

    def launch(self, ranks, program, options=()):
        """Starts mlaunch on each host, with as many ranks as `ranks` says; returns the processes, host 0 first."""
        where = ["--nnodes", str(len(ranks)), "--master-addr", self.address(0), "--master-port", "29500", "--run-secret", "secret"]
        return [self.on_host(host, [str(BIN / "mlaunch"), *where, "--node-rank", str(host), "-np", str(count), *options, *program])
                for host, count in enumerate(ranks)]
