"""Faults of GPUs, as nvidia-smi and the kernel log tell of them, and of the containers that are to have them."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from pathlib import Path

from towline.lab.faults.fault import Fault, Values, host_of, number
from towline.lab.files import replace
from towline.lab.layout import GPU_NODES, GPUS_PER_NODE, Layout, find_host

_NODE = host_of("NODE", GPU_NODES)
_GPU = number("GPU", 0, GPUS_PER_NODE - 1, default=0)
_XID_TEXTS = {
    "13": "Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address",
    "31": "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f12_34560000",
    "43": "Ch 00000008",
    "45": "Ch 00000008",
    "48": "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 3",
    "63": "Row Remapper: New row marked for remapping, reset gpu to activate",
    "64": "Row Remapper: Failed to record row remapping",
    "74": "NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    "79": "GPU has fallen off the bus.",
    "94": "Contained ECC error",
    "95": "Uncontained ECC error",
    "119": "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",
}
"""What the driver adds to a line with an Xid error's number; others get none here."""
_HOOK_SAYS = "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch\n"
_HOOK = "98-nvidia.sh"


def _lose(layout: Layout, values: Values) -> None:
    node, gpu = values
    what = f"Unable to determine the device handle for GPU {_bus(gpu)}: GPU is lost."
    _put(layout, node, f"{gpu}/lost", f"{what}  Reboot the system to recover this GPU\n")
    _log(layout, node, "gpu-lost", _xid_line(gpu, "79"))


def _find_again(layout: Layout, values: Values) -> None:
    _take(layout, values[0], f"{values[1]}/lost")
    _unlog(layout, values[0], "gpu-lost")


def _xid(layout: Layout, values: Values) -> None:
    node, code, gpu = values
    _log(layout, node, "gpu-xid", _xid_line(gpu, code))


def _no_xid(layout: Layout, values: Values) -> None:
    _unlog(layout, values[0], "gpu-xid")


def _corrupt(layout: Layout, values: Values) -> None:
    node, gpu = values
    for name in ("volatile", "aggregate"):
        _put(layout, node, f"{gpu}/ecc.errors.uncorrected.{name}.total", "4\n")
    _log(layout, node, "gpu-ecc", _xid_line(gpu, "48"), _xid_line(gpu, "94"))


def _correct(layout: Layout, values: Values) -> None:
    for name in ("volatile", "aggregate"):
        _take(layout, values[0], f"{values[1]}/ecc.errors.uncorrected.{name}.total")
    _unlog(layout, values[0], "gpu-ecc")


def _occupy(layout: Layout, values: Values) -> None:
    _put(layout, values[0], f"{values[1]}/utilization.gpu", "97\n")


def _free(layout: Layout, values: Values) -> None:
    _take(layout, values[0], f"{values[1]}/utilization.gpu")


def _fail_hook(layout: Layout, values: Values) -> None:
    """The hook is one file for all nodes, and asks for its node's fault. One that is there already is run otherwise."""
    _put(layout, values[0], "hook", _HOOK_SAYS)
    hook, aside = _hook(layout), _hook_aside(layout)
    if not aside.exists():
        hook.parent.mkdir(mode=0o755, exist_ok=True)
        shutil.copy2(hook, aside) if hook.exists() else replace(aside, "#!/bin/sh\n", 0o755)
    fault = "/run/lab-gpu/faults/hook"
    script = f'#!/bin/sh\n[ ! -e {fault} ] || {{ cat {fault} >&2; exit 1; }}\nexec {shlex.quote(str(aside))} "$@"\n'
    replace(hook, script, 0o755)


def _mend_hook(layout: Layout, values: Values) -> None:
    _take(layout, values[0], "hook")
    hook, aside = _hook(layout), _hook_aside(layout)
    if aside.exists() and not any(_folder(layout, node.name).joinpath("hook").exists() for node in GPU_NODES):
        had_none = aside.read_text() == "#!/bin/sh\n"
        hook.unlink(missing_ok=True) if had_none else shutil.copy2(aside, hook)
        aside.unlink()


def _hook(layout: Layout) -> Path:
    return layout.runtime / "etc" / "enroot" / "hooks.d" / _HOOK


def _hook_aside(layout: Layout) -> Path:
    return layout.state / "faults" / _HOOK


def _bus(gpu: str) -> str:
    """As the nodes' nvidia-smi has it."""
    return f"00000000:{27 + int(gpu) * 16:02X}:00.0"


def _xid_line(gpu: str, code: str) -> str:
    where = _bus(gpu).lower().removeprefix("0000").rpartition(".")[0]
    text = _XID_TEXTS.get(code, "")
    who = "pid='<unknown>', name=<unknown>"
    return f"NVRM: Xid (PCI:{where}): {', '.join(filter(None, [code, who, text]))}"


def _folder(layout: Layout, node: str) -> Path:
    """What the node sees as /run/lab-gpu/faults."""
    return layout.state / "faults" / f"gpu.{node}"


def _put(layout: Layout, node: str, name: str, text: str) -> None:
    path = _folder(layout, node) / name
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace(path, text, 0o644)


def _take(layout: Layout, node: str, name: str) -> None:
    path = _folder(layout, node) / name
    path.unlink(missing_ok=True)
    if path.parent != _folder(layout, node) and path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()


def _log(layout: Layout, node: str, fault: str, *lines: str) -> None:
    """Have lines in the node's kernel log for as long as a fault is on."""
    stamp = f"{time.strftime('%b %e %H:%M:%S')} {node} kernel: [{time.monotonic():12.6f}] "
    _put(layout, node, f"kernel.{fault}", "".join(f"{stamp}{line}\n" for line in lines))
    _write_log(layout, node)


def _unlog(layout: Layout, node: str, fault: str) -> None:
    _take(layout, node, f"kernel.{fault}")
    _write_log(layout, node)


def _write_log(layout: Layout, node: str) -> None:
    log = layout.own(find_host(node)) / "log" / "kern.log"
    entries = "".join(path.read_text() for path in sorted(_folder(layout, node).glob("kernel.*")))
    if entries:
        replace(log, "".join(sorted(entries.splitlines(keepends=True), key=_uptime)), 0o644)
    else:
        log.unlink(missing_ok=True)


def _uptime(line: str) -> float:
    found = re.search(r"\[ *([0-9.]+)\]", line)
    return float(found[1]) if found else 0.0


FAULTS = (
    Fault("gpu-lost", "GPU of NODE has fallen off the bus: nvidia-smi fails", _lose, _find_again, (_NODE, _GPU)),
    Fault(
        "gpu-xid",
        "NODE's kernel log has the Xid error CODE of GPU",
        _xid,
        _no_xid,
        (_NODE, number("CODE", 1, 999), _GPU),
    ),
    Fault("gpu-ecc", "GPU of NODE counts uncorrectable memory errors", _corrupt, _correct, (_NODE, _GPU)),
    Fault("gpu-busy", "GPU of NODE is in use, says nvidia-smi", _occupy, _free, (_NODE, _GPU)),
    Fault(
        "hook-fail", "containers do not start on NODE: Enroot's hook for GPUs fails", _fail_hook, _mend_hook, (_NODE,)
    ),
)
