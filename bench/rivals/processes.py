"""Reads from /proc what this process and those that it has started have used."""

import os
import pathlib
import time

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(process):
    """Returns the fields after the name, or None when the process has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def family():
    """Returns the numbers of this process and of all that descend from it."""
    stats = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    found, more = set(), {os.getpid()}
    while more:
        found |= more
        more = {child for child, stat in stats.items() if stat and int(stat[1]) in found} - found
    return found


def cpu_seconds():
    """Returns the CPU time of the family, user and system, with that of children that have ended."""
    ended = os.times()
    others = (_stat(process) for process in family() - {os.getpid()})
    ticks = sum(int(field) for stat in others if stat for field in stat[11:15])
    return time.process_time() + ended.children_user + ended.children_system + ticks / TICKS


def peak_mib():
    """Returns the most memory that was resident, summed over the family; shared pages count in each."""
    total = 0
    for process in family():
        try:
            lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return total / 1024


def age():
    """Returns for how many seconds this process has run."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(_stat("self")[19]) / TICKS
