"""How much memory a process has ever had, asked by itself.

Not `ru_maxrss`: what the process was forked from, pytest with all that it has loaded, counts into that.
"""

PEAK = "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])  # kB\n"
