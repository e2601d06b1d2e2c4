"""Becomes a program that has the service of NCCL's RAS beside it: it listens at a port, and a process of its own answers there.

    serves_as_nccl.py PORT ANSWER PROGRAM...
"""
import os
import socket
import sys


def answer(connection, text):
    with connection, connection.makefile("rw") as stream:
        for words in ("SERVER PROTOCOL 2\n", "OK\n", text + "\n"):
            stream.readline()
            stream.write(words)
            stream.flush()


def serve(listener, text, program):
    """Serves for as long as the program lives."""
    listener.settimeout(0.2)
    while os.getppid() == program:
        try:
            answer(listener.accept()[0], text)
        except TimeoutError:
            pass


def main(port, text, *program):
    # Ranks of a host share the port.
    listener = socket.create_server(("127.0.0.1", int(port)), reuse_port=True)
    own = os.getpid()
    if os.fork() == 0:
        serve(listener, text, own)
        os._exit(0)
    listener.set_inheritable(True)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])
