# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write stand-ins of NVIDIA's self-extracting installers: shell scripts that say what they are.

They answer the real installer's options, refuse others in its words, write its log, and put files
of the real names at the real places: empty libraries, modules that are nothing but their version,
``dkms.conf``, the drivers' fleet's nvidia-smi. Nothing is built or loaded. With ``STANDIN_ROOT``
in the environment all of it goes below that folder; ``STANDIN_KERNEL`` takes the place of
``uname -r``.

``python -m tests.testbed.runfile DIR VERSION [driver|cuda]`` writes one and prints its path.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
from pathlib import Path

_SMI = Path(__file__).parent / "files/standins/nvidia-smi"

# How a stand-in can fail, and the words of the real installer for it.
FAILURES = {
    "build": "An error occurred while performing the step: \"Building kernel modules\". "
    "See /var/log/nvidia-installer.log for details.",
    "headers": "Unable to find the kernel source tree for the currently running kernel.  Please "
    "make sure you have installed the kernel source files for your kernel and that they are "
    "properly configured.",
    "load": "Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when this "
    "kernel module was built against the wrong or improperly configured kernel sources, with a "
    "version of gcc that differs from the one used to build the target kernel, or if another "
    "driver, such as nouveau, is present and prevents the NVIDIA kernel module from obtaining "
    "ownership of the NVIDIA device(s), or no NVIDIA device installed in this system is supported "
    "by this NVIDIA Linux graphics driver release.",
    "nouveau": "The Nouveau kernel driver is currently in use by your system.  This driver is "
    "incompatible with the NVIDIA driver, and must be disabled before proceeding.",
    "in-use": "An NVIDIA kernel module 'nvidia-uvm' appears to already be loaded in your kernel.  "
    "This may be because it is in use (for example, by an X server, a CUDA program, or the NVIDIA "
    "Persistence Daemon), but this may also happen if your kernel was configured without support "
    "for module unloading.",
    "disk": "Unable to write to file: No space left on device",
}  # fmt: skip


def driver_name(version: str, *, arch: str = "x86_64", suffix: str = "") -> str:
    """Return the name that NVIDIA gives a driver's file; suffix is -grid, for example."""
    return f"NVIDIA-Linux-{arch}-{version}{suffix}.run"


def cuda_name(cuda: str, driver: str) -> str:
    return f"cuda_{cuda}_{driver}_linux.run"


def write(
    path: str | Path,
    version: str,
    *,
    kind: str = "driver",
    fail: str | None = None,
    seconds: float = 0,
) -> Path:
    """Write a stand-in and ``PATH.sha256sum`` beside it.

    :param path: the file, or a folder: then it gets the name that NVIDIA would give it.
    :param version: of the driver; for CUDA ``13.0.2_580.95.05``, or the toolkit's alone.
    :param fail: one of ``FAILURES``: the installation stops with these words.
    :param seconds: how long the build takes.
    """
    if fail is not None and fail not in FAILURES:
        raise ValueError(f"fail is {fail!r}; there are {', '.join(FAILURES)}")
    cuda, _line, driver = version.partition("_")
    driver = driver or ("580.95.05" if kind == "cuda" else cuda)
    place = Path(path)
    if place.is_dir():
        place = place / (cuda_name(cuda, driver) if kind == "cuda" else driver_name(version))
    text = _CUDA if kind == "cuda" else _DRIVER
    values = {
        "VERSION": driver,
        "CUDA": cuda,
        "FAIL": FAILURES[fail] if fail else "",
        "FAILS": fail or "",
        "NOUVEAU": FAILURES["nouveau"],
        "SECONDS": str(seconds),
        "OPEN": base64.b64encode(module(driver, "Dual MIT/GPL")).decode(),
        "PROPRIETARY": base64.b64encode(module(driver, "NVIDIA")).decode(),
        "SMI": base64.b64encode(_SMI.read_bytes()).decode(),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    place.write_text(text, encoding="utf-8")
    place.chmod(0o755)
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    Path(f"{place}.sha256sum").write_text(f"{digest}  {place.name}\n", encoding="utf-8")
    return place


def module(version: str, licence: str) -> bytes:
    """Return the smallest ELF file that has a section .modinfo with version and licence."""
    info = f"version={version}\0license={licence}\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    table = 64 + len(info) + len(names)
    header = b"\x7fELF\x02\x01" + b"\1".ljust(10, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)

    def section(name: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)

    return (
        header + info + names + section(0, 0, 0) + section(1, 64, len(info))
        + section(10, 64 + len(info), len(names))
    )  # fmt: skip


_DRIVER = r"""#!/bin/sh
# A stand-in of NVIDIA's driver installer, made by the testbed of kubegpu.nodes.
# Nothing in it is NVIDIA's; it builds and loads nothing.
version='@VERSION@'
fail='@FAILS@'
root=${STANDIN_ROOT:-}
kernel=${STANDIN_KERNEL:-$(uname -r)}
me=./nvidia-installer
silent= dkms=yes load=yes type=kernel running= modules=yes nouveau=yes
log=$root/var/log/nvidia-installer.log
list=$root/var/lib/nvidia/log

say() { printf '%s\n' "$*"; [ -n "$quiet_log" ] || printf '%s\n' "-> $*" >>"$log"; }
error() {
    printf '\nERROR: %s\n' "$*" >&2
    [ -n "$quiet_log" ] || printf 'ERROR: %s\n' "$*" >>"$log"
}
usage() {
    printf '%s: unrecognized option: "%s"\n\n' "$me" "$1" >&2
    printf 'ERROR: Invalid commandline, please run `%s --help` for usage information.\n' "$me" >&2
    exit 1
}
quiet_log=yes

for word in "$@"; do
    case $word in
    --info)
        echo
        echo "  Identification    : NVIDIA Accelerated Graphics Driver for Linux-x86_64 $version"
        echo "  Target directory  : NVIDIA-Linux-x86_64-$version"
        echo "  Uncompressed size : 1 KB (stand-in)"
        exit 0 ;;
    --check) echo "Verifying archive integrity... OK"; exit 0 ;;
    -h | --help | -A | --advanced-options) echo "nvidia-installer:  version $version (stand-in)"
        exit 0 ;;
    -v | --version) echo "nvidia-installer:  version $version (stand-in)"; exit 0 ;;
    --print-recommended-kernel-module-type) echo open; exit 0 ;;
    -s | --silent) silent=yes ;;
    -m=kernel-open | -m=open | --kernel-module-type=open | -M=open) type=kernel-open ;;
    --kernel-module-build-directory=kernel-open) type=kernel-open ;;
    -m=kernel | -m=proprietary | --kernel-module-type=proprietary | -M=proprietary) type=kernel ;;
    --kernel-module-build-directory=kernel) type=kernel ;;
    --dkms) dkms=yes ;;
    --no-dkms) dkms= ;;
    --skip-module-load) load= ;;
    --allow-installation-with-running-driver) running=yes ;;
    --no-kernel-module | --no-kernel-modules) modules= ;;
    --kernel-name=?* | -k=?*) kernel=${word#*=} ;;
    --uninstall) exec sh "$0" --standin-uninstall ;;
    --standin-uninstall) uninstall=yes ;;
    -z | --no-nouveau-check) nouveau= ;;
    -a | --accept-license | -q | --no-questions | --ui=none) ;;
    --no-cc-version-check | --no-x-check | --no-opengl-files | --no-install-compat32-libs) ;;
    --no-check-for-alternate-installs | --no-rebuild-initramfs | --rebuild-initramfs) ;;
    --disable-nouveau | --no-disable-nouveau | --no-drm | --no-peermem | --no-backup) ;;
    --no-systemd | --systemd | --no-install-libglvnd | --no-distro-scripts) ;;
    --tmpdir=?*) tmpdir=${word#*=} ;;
    --log-file-name=?* | --kernel-source-path=?* | --concurrency-level=?*) ;;
    --module-signing-secret-key=?* | --module-signing-public-key=?* | -j=?*) ;;
    *) usage "$word" ;;
    esac
done
branch=${version%%.*}
case " $* " in
*" --skip-module-load "* | *" --allow-installation-with-running-driver "*)
    [ "$branch" -ge 550 ] || usage --skip-module-load ;;
esac
case " $* " in *" -m="*) [ "$branch" -ge 515 ] || usage -m ;; esac
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
    echo "ERROR: nvidia-installer must be run as root" >&2
    exit 1
fi
if [ -z "$silent" ]; then
    echo "ERROR: Unable to open a terminal: this stand-in asks no question, give --silent" >&2
    exit 1
fi
# As the real one, it unpacks a program and runs it.
unpacked=$(mktemp -d "${tmpdir:-/tmp}/selfgz.XXXXXX") || exit 1
trap 'rm -rf "$unpacked"' EXIT
printf '#!/bin/sh\nexit 0\n' >"$unpacked/nvidia-installer"
chmod 700 "$unpacked/nvidia-installer"
if ! "$unpacked/nvidia-installer"; then
    echo "Signal caught, cleaning up: $unpacked/nvidia-installer cannot be run" >&2
    exit 1
fi
mkdir -p "$root/var/log" "$root/usr/bin" || exit 1
quiet_log=
{
    echo "nvidia-installer log file '/var/log/nvidia-installer.log'"
    echo "creation time: $(LC_ALL=C date)"
    echo "installer version: $version"
    echo
    echo "PATH: $PATH"
    echo
    echo "nvidia-installer command line:"
    echo "    $me"
    for word in "$@"; do echo "    $word"; done
    echo
    echo "Using built-in stream user interface"
} >"$log"
cat <<'end'
Verifying archive integrity... OK
Uncompressing NVIDIA Accelerated Graphics Driver for Linux-x86_64 @VERSION@ (stand-in)....

Welcome to the NVIDIA Software Installer for Unix/Linux

end
say "Detected 2 CPUs online; setting concurrency level to 2."
say "Installing NVIDIA driver version $version."
stop() {
    error "$(cat <<'end'
@FAIL@
end
)"
    error "Installation has failed.  Please see the file '/var/log/nvidia-installer.log' for" \
        "details.  You may find suggestions on fixing installation problems in the README" \
        "available on the Linux driver download page at www.nvidia.com."
    exit 1
}
if [ -n "$nouveau" ] && [ -z "$root" ] && [ -d /sys/module/nouveau ]; then
    error '@NOUVEAU@'
    exit 1
fi
case $fail in headers | nouveau) stop ;; in-use) [ -n "$running" ] || stop ;; esac
if [ -x "$root/usr/bin/nvidia-uninstall" ]; then
    say "There appears to already be a driver installed on your system.  As part of installing" \
        "this driver (version: $version), the existing driver will be uninstalled.  Are you sure" \
        "you want to continue? (Answer: Continue installation)"
    STANDIN_ROOT=$root "$root/usr/bin/nvidia-uninstall" --silent >/dev/null || exit 1
fi
say "Building kernel modules ($type) for $kernel:"
sleep @SECONDS@
case $fail in
build)
    cat >>"$log" <<'end'
-> The command `cd kernel-open; /usr/bin/make -k -j2` failed with the following output:

make[1]: Entering directory '/usr/src/linux-headers'
  CC [M]  nvidia/nv-pci.o
/tmp/x/kernel-open/nvidia/nv-pci.c:237:9: error: too few arguments to function 'x'
make[3]: *** [scripts/Makefile.build:234: nvidia/nv-pci.o] Error 1
end
    stop ;;
disk) stop ;;
esac
mkdir -p "$root/var/lib/nvidia" && : >"$list" || exit 1
put() { # path below the root, its content from standard input
    mkdir -p "$root${1%/*}" && cat >"$root$1" && printf '%s\n' "$1" >>"$list"
}
link() { # target, path
    mkdir -p "$root${2%/*}" && ln -sfn "$1" "$root$2" && printf '%s\n' "$2" >>"$list"
}
machine=$(uname -m)
libraries=/usr/lib/$machine-linux-gnu
[ -d "$root$libraries" ] || libraries=/usr/lib64
for name in libnvidia-ml libcuda libnvidia-ptxjitcompiler libnvidia-cfg; do
    put "$libraries/$name.so.$version" <<end
stand-in of $name $version
end
    link "$name.so.$version" "$libraries/$name.so.1"
    link "$name.so.1" "$libraries/$name.so"
done
if [ ! -e "$root/usr/bin/nvidia-smi" ] || grep -qi "stand-in for nvidia" \
    "$root/usr/bin/nvidia-smi" 2>/dev/null; then
    echo '@SMI@' | base64 -d | put /usr/bin/nvidia-smi
    chmod 755 "$root/usr/bin/nvidia-smi"
fi
put /usr/bin/nvidia-modprobe <<'end'
#!/bin/sh
# A stand-in of nvidia-modprobe: the fleet's modprobe makes the devices.
exit 0
end
put /usr/bin/nvidia-persistenced <<'end'
#!/bin/bash
# A stand-in of nvidia-persistenced, which goes to the background and keeps the devices open.
[ -e /dev/nvidiactl ] || { echo "Failed to query NVIDIA devices." >&2; exit 1; }
exec 8</dev/nvidiactl
setsid sleep infinity </dev/null >/dev/null 2>&1 &
end
chmod 755 "$root/usr/bin/nvidia-modprobe" "$root/usr/bin/nvidia-persistenced"
if [ -n "$modules" ]; then
    source=/usr/src/nvidia-$version
    put "$source/dkms.conf" <<end
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="$version"
AUTOINSTALL="yes"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/kernel/drivers/video"
end
    code='@OPEN@'
    if [ $type = kernel ]; then
        code='@PROPRIETARY@'
        put "$source/nvidia/nv-kernel.o_binary" </dev/null
    else
        put "$source/nvidia/nv.c" </dev/null
    fi
    if [ -n "$dkms" ]; then
        folder=/var/lib/dkms/nvidia
        mkdir -p "$root$folder/$version/$kernel/$machine/module"
        echo "$code" | base64 -d | put "$folder/$version/$kernel/$machine/module/nvidia.ko"
        # From there the stand-in of DKMS builds for other kernels, as the real one does.
        for place in "$root"/lib/modules/*; do
            for name in nvidia nvidia-uvm; do
                echo "$code" | base64 -d | put "$source/standin/${place##*/}/$name.ko"
            done
        done
        echo "$source/standin" | put "$folder/$version/standin"
        link "$source" "$folder/$version/source"
        link "$version/$kernel/$machine" "$folder/kernel-$kernel-$machine"
        place=updates/dkms
    else
        place=kernel/drivers/video
    fi
    for name in nvidia nvidia-uvm; do
        echo "$code" | base64 -d | put "/lib/modules/$kernel/$place/$name.ko"
    done
    index=$root/lib/modules/$kernel/modules.dep
    [ -e "$index" ] || printf '%s\n' "/lib/modules/$kernel/modules.dep" >>"$list"
    [ ! -e "$index" ] || grep -v '/nvidia.*\.ko:' "$index" >"$index.new"
    printf '%s\n' "$place/nvidia.ko:" "$place/nvidia-uvm.ko: $place/nvidia.ko" >>"$index.new"
    mv "$index.new" "$index"
    say "Kernel module compilation complete."
    if [ -n "$load" ]; then
        [ "$fail" != load ] || stop
        say "The stand-in loads no module."
    fi
fi
cat >"$root/usr/bin/nvidia-installer" <<'program'
#!/bin/sh
# A stand-in of nvidia-installer, as the driver's stand-in leaves it.
root=${STANDIN_ROOT:-}
list=$root/var/lib/nvidia/log
log=$root/var/log/nvidia-uninstall.log
silent= uninstall=
case $0 in *nvidia-uninstall) uninstall=yes ;; esac
for word in "$@"; do
    case $word in
    -s | --silent) silent=yes ;;
    --uninstall) uninstall=yes ;;
    -v | --version) echo "nvidia-installer:  version @VERSION@ (stand-in)"; exit 0 ;;
    -q | --no-questions | --ui=none | --no-rebuild-initramfs) ;;
    *)
        printf '%s: unrecognized option: "%s"\n\n' "$0" "$word" >&2
        printf 'ERROR: Invalid commandline, please run `%s --help` for usage information.\n' \
            "$0" >&2
        exit 1 ;;
    esac
done
[ -n "$uninstall" ] || { echo "ERROR: this stand-in only uninstalls" >&2; exit 1; }
[ -n "$silent" ] || { echo "ERROR: Unable to open a terminal: give --silent" >&2; exit 1; }
{
    echo "nvidia-installer log file '/var/log/nvidia-uninstall.log'"
    echo "creation time: $(LC_ALL=C date)"
    echo "installer version: @VERSION@"
    echo
    echo "nvidia-installer command line:"
    echo "    $0"
    echo
} >"$log"
say() { printf '%s\n' "$*"; printf '%s\n' "-> $*" >>"$log"; }
if [ ! -e "$list" ]; then
    say "There is no NVIDIA driver currently installed."
    exit 0
fi
say "Uninstalling NVIDIA Accelerated Graphics Driver for Linux-x86_64 (@VERSION@):"
kernels=
if [ -z "$root" ] && grep -qs "STAND-IN for DKMS" /usr/sbin/dkms; then
    dkms standin-remove "@VERSION@"
fi
while IFS= read -r path; do
    rm -f "$root$path"
    case $path in /lib/modules/*/nvidia.ko)
        kernel=${path#/lib/modules/}; kernels="$kernels ${kernel%%/*}" ;;
    esac
done <"$list"
for kernel in $kernels; do
    index=$root/lib/modules/$kernel/modules.dep
    [ -e "$index" ] || continue
    grep -v '/nvidia.*\.ko:' "$index" >"$index.new"
    mv "$index.new" "$index"
done
# Folders that are empty now, from the inside to the outside.
while IFS= read -r path; do
    folder=${path%/*}
    while [ -n "$folder" ] && [ "$folder" != /usr/bin ] && rmdir "$root$folder" 2>/dev/null; do
        folder=${folder%/*}
    done
done <"$list"
rm -f "$list" "$root/usr/bin/nvidia-uninstall" "$root/usr/bin/nvidia-installer"
rmdir "$root/var/lib/nvidia" 2>/dev/null
say "Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64" \
    "(@VERSION@) is complete."
exit 0
program
chmod 755 "$root/usr/bin/nvidia-installer"
ln -sf nvidia-installer "$root/usr/bin/nvidia-uninstall"
say "Installation of the NVIDIA Accelerated Graphics Driver for Linux-x86_64 (version: $version)" \
    "is now complete."
exit 0
"""

_CUDA = r"""#!/bin/sh
# A stand-in of NVIDIA's CUDA installer, made by the testbed of kubegpu.nodes.
# Nothing in it is NVIDIA's; its nvcc compiles nothing.
cuda='@CUDA@'
driver_version='@VERSION@'
fail='@FAILS@'
root=${STANDIN_ROOT:-}
short=${cuda%.*}
silent= toolkit= driver= link=yes
path=/usr/local/cuda-$short
for word in "$@"; do
    case $word in
    --silent) silent=yes ;;
    --toolkit) toolkit=yes ;;
    --driver) driver=yes ;;
    --installpath=?* | --toolkitpath=?* | --defaultroot=?*) path=${word#*=} ;;
    --override | --no-man-page | --no-drm | --no-opengl-libs | --kernelobjects | -m=kernel-open) ;;
    --override-driver-check | --samples | --documentation) ;;
    --tmpdir=?* | --librarypath=?*) ;;
    --info) echo "Identification: CUDA $cuda (stand-in)"; exit 0 ;;
    --check) echo "MD5 checksums are OK. All good."; exit 0 ;;
    --help) echo "CUDA installer $cuda (stand-in): --silent --toolkit --driver ..."; exit 0 ;;
    *)
        echo "unrecognised option '$word'" >&2
        echo "Run with --help for the options of this stand-in." >&2
        exit 1 ;;
    esac
done
if [ -z "$silent" ]; then
    echo "Error opening terminal: this stand-in shows no menu, give --silent" >&2
    exit 1
fi
if [ -z "$toolkit$driver" ]; then
    echo "--silent needs one of --driver, --toolkit" >&2
    exit 1
fi
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
    echo "Please run as root" >&2
    exit 1
fi
mkdir -p "$root/var/log" || exit 1
log=$root/var/log/cuda-installer.log
: >"$log"
say() { printf '[INFO]: %s\n' "$*" >>"$log"; }
say "Driver not installed."
say "Checking compiler version..."
say "Components to install: "
[ -z "$toolkit" ] || say "CUDA Toolkit $short"
[ -z "$driver" ] || say "Driver $driver_version"
sleep @SECONDS@
if [ -n "$fail" ]; then
    cat >>"$log" <<'end'
[ERROR]: @FAIL@
end
    echo " Installation failed. See log at /var/log/cuda-installer.log for details." >&2
    exit 1
fi
if [ -n "$driver" ]; then
    # The real one would install it; whoever asks for it is told by this file.
    mkdir -p "$root/usr/bin" "$root/var/lib/kubegpu-standin"
    echo "$driver_version" >"$root/var/lib/kubegpu-standin/cuda-installed-a-driver"
fi
if [ -n "$toolkit" ]; then
    target=$root$path
    mkdir -p "$target/bin" "$target/include" "$target/lib64" "$target/nvvm/bin" || exit 1
    cat >"$target/version.json" <<end
{
   "cuda" : {
      "name" : "CUDA SDK",
      "version" : "$cuda"
   },
   "cuda_nvcc" : {
      "name" : "CUDA NVCC",
      "version" : "$cuda"
   }
}
end
    echo "/* stand-in */" >"$target/include/cuda_runtime.h"
    echo "stand-in" >"$target/lib64/libcudart.so.$cuda"
    ln -sfn "libcudart.so.$cuda" "$target/lib64/libcudart.so.${short%%.*}"
    cat >"$target/bin/nvcc" <<end
#!/bin/sh
# A stand-in of nvcc $cuda: it compiles nothing, but wants a source and writes the output.
output=a.out source=
while [ \$# -gt 0 ]; do
    case \$1 in
    --version | -V)
        echo "nvcc: NVIDIA (R) Cuda compiler driver (stand-in)"
        echo "Cuda compilation tools, release $short, V$cuda"
        exit 0 ;;
    -o | --output-file) output=\$2; shift ;;
    -*) ;;
    *) source=\$1 ;;
    esac
    shift
done
if [ -z "\$source" ]; then
    echo "nvcc fatal   : No input files specified; use option --help for more information" >&2
    exit 1
fi
if [ ! -e "\$source" ]; then
    echo "nvcc fatal   : Don't know what to do with '\$source'" >&2
    exit 1
fi
printf '#!/bin/sh\n# stand-in, compiled from %s\n' "\$source" >"\$output" && chmod 755 "\$output"
end
    cat >"$target/bin/cuda-uninstaller" <<end
#!/bin/sh
# A stand-in of cuda-uninstaller for CUDA $cuda.
root=\${STANDIN_ROOT:-}
[ "\$*" = --silent ] || { echo "unrecognised option '\$*'" >&2; exit 1; }
[ "\$(readlink "\$root/usr/local/cuda")" != "$path" ] || rm -f "\$root/usr/local/cuda"
rm -rf "\$root$path" "\$root/etc/ld.so.conf.d/cuda-$(echo "$short" | tr . -).conf"
echo "Successfully uninstalled"
end
    chmod 755 "$target/bin/nvcc" "$target/bin/cuda-uninstaller"
    mkdir -p "$root/etc/ld.so.conf.d" "$root/usr/local"
    echo "$path/lib64" >"$root/etc/ld.so.conf.d/cuda-$(echo "$short" | tr . -).conf"
    ln -sfn "$path" "$root/usr/local/cuda"
fi
cat <<end
===========
= Summary =
===========

Driver:   $([ -n "$driver" ] && echo Installed || echo "Not Selected")
Toolkit:  $([ -n "$toolkit" ] && echo "Installed in $path/" || echo "Not Selected")

To uninstall the CUDA Toolkit, run cuda-uninstaller in $path/bin
Logfile is /var/log/cuda-installer.log
end
exit 0
"""


if __name__ == "__main__":
    print(write(sys.argv[1], sys.argv[2], kind=sys.argv[3] if len(sys.argv) > 3 else "driver"))
