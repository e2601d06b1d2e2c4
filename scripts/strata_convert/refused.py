"""Messages to the user."""
import sys


class Refused(Exception):
    """The input is at fault; the message says where, and what to do."""


def note(message):
    sys.stderr.write("strata_convert: %s\n" % message)
