# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ptxas has to say of kernels, where it is installed: no warnings, and no spills but a few.

How many registers a kernel takes is estimated; the estimates are too low for some.
"""

from twofour.targets.gpu.ptx import assemble

# Bytes by kernel, arithmetic, schedule and chip, of CUDA 13.0.
KNOWN = {
    ("heat3d_ftcs", "bf16", "simt", "sm_80"): 8,
    ("jacobi3d_poisson6", "bf16", "simt", "sm_80"): 8,
    ("advect_diffuse3d_upwind", "bf16", "simt", "sm_80"): 8,
    ("lbm_d3q7_advection_diffusion", "bf16", "simt", "sm_80"): 8,
    ("lbm_isotropic_grad_e8_2d", "f64", "simt", "sm_90"): 40,
    ("tti2d_gzz_o8", "f64", "simt", "sm_90"): 16,
    ("fdtd_yee_dx_2d", "f16", "stream", "sm_90"): 40,
    ("fdtd_yee_dx_2d", "bf16", "stream", "sm_90"): 40,
    ("ieee17_j3d17pt", "f16", "stream", "sm_90"): 40,
    ("ieee17_j3d17pt", "bf16", "stream", "sm_90"): 40,
    ("yask_3plane_r3", "f16", "stream", "sm_80"): 24,
    ("yask_3plane_r3", "bf16", "stream", "sm_80"): 24,
    ("yask_3plane_r3", "bf16", "stream", "sm_90"): 100,
}


def check_resources(
    ptx: str, chip: str, name: str = "", arithmetic: str = "", schedule: str = ""
) -> None:
    """Assert that ptxas takes the kernels, and spills no more than is known of a built-in one."""
    code = assemble(ptx, chip)
    if code is not None:
        most = KNOWN.get((name, arithmetic, schedule, chip), 0)
        assert not code.warnings
        assert all(max(r.spill_bytes, r.local_bytes) <= most for r in code.resources.values())
