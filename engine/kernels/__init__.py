"""Hot kernels: one name each, computed by the compiled library or, where none loads, by the NumPy reference."""

from engine.kernels.reference import maxsim_bits, maxsim_bits_argmax, pack_sign_bits, scan_int8

__all__ = ["maxsim_bits", "maxsim_bits_argmax", "pack_sign_bits", "scan_int8"]
