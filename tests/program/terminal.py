"""Runs a program on a terminal of a given width, and finds what its screen shows."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


def run_on_terminal(command, columns, *, cwd, env, limit_s=60):
    """Returns the exit code and all bytes sent to the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def take_terminal():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=theirs, stdout=theirs,
                               stderr=theirs, preexec_fn=take_terminal)
    os.close(theirs)
    sent, end = b"", time.monotonic() + limit_s
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # every process has closed it
                break
            if not part:
                break
            sent += part
        return process.wait(max(0.1, end - time.monotonic())), sent
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)


def lines_on_screen(sent):
    """Returns the lines that the bytes leave on the screen, which does not wrap here."""
    lines, at = [""], 0
    for token in re.findall(r"\x1b\[K|[\r\n]|[^\r\n\x1b]+|\x1b", sent.decode(errors="replace")):
        line = lines[-1]
        if token == "\n":
            lines.append("")
        elif token == "\r":
            at = 0
        elif token == "\x1b[K":
            lines[-1] = line[:at]
        else:
            lines[-1] = line[:at].ljust(at) + token + line[at + len(token):]
            at += len(token)
    return lines


def widest_rewritten_line(sent):
    """Returns the width of the longest text that a carriage return goes back over."""
    widest = 0
    for line in sent.decode(errors="replace").replace("\r\n", "\n").split("\n"):
        parts = [part.replace("\x1b[K", "") for part in line.split("\r")]
        widest = max([widest] + [len(part) for part in parts[:-1]])
    return widest
