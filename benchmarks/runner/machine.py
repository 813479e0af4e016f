"""What the figures depend on: the machine, Python and the versions of the packages."""

import os
import platform
import sysconfig
from pathlib import Path


def processor() -> str:
    """Return the name of the processor, as well as this system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine() -> str:
    """Return the processor, its cores and the system."""
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def python() -> str:
    """Return the implementation, the version and how it was built."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    build = "with" if "--enable-optimizations" in options else "without"
    return f"{platform.python_implementation()} {platform.python_version()}, {build} PGO"
