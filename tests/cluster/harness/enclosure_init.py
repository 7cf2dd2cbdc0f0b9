"""The first process inside a node's enclosure: hides what must not be shared, then buries the dead.

Run by enclosure.py as `unshare ... python enclosure_init.py DIRECTORY`; uses the standard library
only. When it ends, the kernel kills every process inside and takes the mounts and the network
away. Not guaranteed: anything for a process that enters before the file `ready` is there.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

# Where containerd (its shims' sockets), the CNI library (its cache) and the kubelet (the socket for
# device plugins, links to logs) write, whatever their configuration says.
PRIVATE = ("/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers")

# What the kubelet sets at its start, of the whole machine and for ever. It gets copies.
KERNEL = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def main(directory: Path) -> None:
    for path in PRIVATE:
        private = directory / path.strip("/").replace("/", "-")
        private.mkdir()
        bind(private, Path(path))
    for name in KERNEL:
        real = Path("/proc/sys", name)
        if real.exists():
            copy = directory / name.replace("/", "-")
            copy.write_bytes(real.read_bytes())
            bind(copy, real)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    (directory / "ready").touch()
    while True:
        # Shims lose their parents at once and end one by one: without this each stays a zombie.
        signal.sigwait([signal.SIGCHLD])
        while reaped():
            pass


def bind(source: Path, target: Path) -> None:
    subprocess.run(["mount", "--bind", source, target], check=True)


def reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
