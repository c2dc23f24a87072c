"""Azure's VM sizes: what a name such as STANDARD_NC6 asks for."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from lapis.errors import ComputeTargetException


class VmSize(NamedTuple):
    name: str
    cores: int
    memory_gb: float
    gpus: int = 0


def vm_size(name: str) -> VmSize:
    """The size of that name, in whatever case it is written."""
    found = _BY_NAME.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name.lower(), _BY_NAME, n=3, cutoff=0.6)
        hint = f" Near it: {', '.join(_BY_NAME[each].name for each in near)}." if near else ""
        raise ComputeTargetException(
            f"There is no VM size '{name}'.{hint} AmlCompute.supported_vmsizes(ws) lists all of them."
        )
    return found


def all_sizes() -> list[VmSize]:
    return list(_BY_NAME.values())


# Name, cores, memory in GB, GPUs: as Azure's price lists gave them.
_TABLE = """
Standard_A1_v2 1 2 0
Standard_A2_v2 2 4 0
Standard_A4_v2 4 8 0
Standard_A8_v2 8 16 0
Standard_B2s 2 4 0
Standard_B2ms 2 8 0
Standard_B4ms 4 16 0
Standard_B8ms 8 32 0
Standard_D1 1 3.5 0
Standard_D2 2 7 0
Standard_D3 4 14 0
Standard_D4 8 28 0
Standard_D11 2 14 0
Standard_D12 4 28 0
Standard_D13 8 56 0
Standard_D14 16 112 0
Standard_D1_v2 1 3.5 0
Standard_D2_v2 2 7 0
Standard_D3_v2 4 14 0
Standard_D4_v2 8 28 0
Standard_D5_v2 16 56 0
Standard_D11_v2 2 14 0
Standard_D12_v2 4 28 0
Standard_D13_v2 8 56 0
Standard_D14_v2 16 112 0
Standard_D15_v2 20 140 0
Standard_DS1_v2 1 3.5 0
Standard_DS2_v2 2 7 0
Standard_DS3_v2 4 14 0
Standard_DS4_v2 8 28 0
Standard_DS5_v2 16 56 0
Standard_DS11_v2 2 14 0
Standard_DS12_v2 4 28 0
Standard_DS13_v2 8 56 0
Standard_DS14_v2 16 112 0
Standard_DS15_v2 20 140 0
Standard_D2_v3 2 8 0
Standard_D4_v3 4 16 0
Standard_D8_v3 8 32 0
Standard_D16_v3 16 64 0
Standard_D32_v3 32 128 0
Standard_D64_v3 64 256 0
Standard_D2s_v3 2 8 0
Standard_D4s_v3 4 16 0
Standard_D8s_v3 8 32 0
Standard_D16s_v3 16 64 0
Standard_D32s_v3 32 128 0
Standard_D64s_v3 64 256 0
Standard_D2as_v4 2 8 0
Standard_D4as_v4 4 16 0
Standard_D8as_v4 8 32 0
Standard_D16as_v4 16 64 0
Standard_E2_v3 2 16 0
Standard_E4_v3 4 32 0
Standard_E8_v3 8 64 0
Standard_E16_v3 16 128 0
Standard_E32_v3 32 256 0
Standard_E2s_v3 2 16 0
Standard_E4s_v3 4 32 0
Standard_E4ds_v4 4 32 0
Standard_E8s_v3 8 64 0
Standard_E16s_v3 16 128 0
Standard_F1 1 2 0
Standard_F2 2 4 0
Standard_F4 4 8 0
Standard_F8 8 16 0
Standard_F16 16 32 0
Standard_F2s_v2 2 4 0
Standard_F4s_v2 4 8 0
Standard_F8s_v2 8 16 0
Standard_F16s_v2 16 32 0
Standard_F32s_v2 32 64 0
Standard_F64s_v2 64 128 0
Standard_F72s_v2 72 144 0
Standard_H8 8 56 0
Standard_H16 16 112 0
Standard_HB60rs 60 228 0
Standard_HC44rs 44 352 0
Standard_M64 64 1024 0
Standard_M128 128 2048 0
Standard_NC6 6 56 1
Standard_NC12 12 112 2
Standard_NC24 24 224 4
Standard_NC24r 24 224 4
Standard_NC6_Promo 6 56 1
Standard_NC12_Promo 12 112 2
Standard_NC24_Promo 24 224 4
Standard_NC24r_Promo 24 224 4
Standard_NC6s_v2 6 112 1
Standard_NC12s_v2 12 224 2
Standard_NC24s_v2 24 448 4
Standard_NC24rs_v2 24 448 4
Standard_NC6s_v3 6 112 1
Standard_NC12s_v3 12 224 2
Standard_NC24s_v3 24 448 4
Standard_NC24rs_v3 24 448 4
Standard_NC4as_T4_v3 4 28 1
Standard_NC8as_T4_v3 8 56 1
Standard_NC16as_T4_v3 16 110 1
Standard_NC64as_T4_v3 64 440 4
Standard_NC24ads_A100_v4 24 220 1
Standard_NC48ads_A100_v4 48 440 2
Standard_NC96ads_A100_v4 96 880 4
Standard_NC40ads_H100_v5 40 320 1
Standard_NC80adis_H100_v5 80 640 2
Standard_ND6s 6 112 1
Standard_ND12s 12 224 2
Standard_ND24s 24 448 4
Standard_ND24rs 24 448 4
Standard_ND40rs_v2 40 672 8
Standard_ND96asr_v4 96 900 8
Standard_ND96amsr_A100_v4 96 1900 8
Standard_ND96isr_H100_v5 96 1900 8
Standard_NV6 6 56 1
Standard_NV12 12 112 2
Standard_NV24 24 224 4
Standard_NV6_Promo 6 56 1
Standard_NV12s_v3 12 112 1
Standard_NV24s_v3 24 224 2
Standard_NV48s_v3 48 448 4
"""


def _read(table: str) -> dict[str, VmSize]:
    rows = [line.split() for line in table.strip().splitlines()]
    sizes = [VmSize(name, int(cores), float(memory), int(gpus)) for name, cores, memory, gpus in rows]
    return {each.name.lower(): each for each in sizes}


_BY_NAME = _read(_TABLE)
