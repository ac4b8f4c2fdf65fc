# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several fields, which differ in what a call reads, stores and hands on."""

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# Two fields that read each other.
COUPLED = """
!field = !stencil.field<[-2,15]x[-2,18]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @coupled(%u : !field, %v : !field, %p : !field, %q : !field) {
  %ut = stencil.load %u : !field -> !temp
  %vt = stencil.load %v : !field -> !temp
  %l, %m = stencil.apply(%a = %ut : !temp, %b = %vt : !temp) -> (!temp, !temp) {
    %n = stencil.access %a[-1, 0] : !temp
    %s = stencil.access %a[1, 0] : !temp
    %e = stencil.access %b[0, 1] : !temp
    %c = stencil.access %b[0, 0] : !temp
    %x = arith.subf %s, %n : f64
    %y = arith.addf %e, %c : f64
    stencil.return %x, %y : f64, f64
  }
  %r, %t = stencil.apply(%a = %ut : !temp, %d = %l : !temp, %f = %m : !temp) -> (!temp, !temp) {
    %quarter = arith.constant 0.25 : f64
    %c = stencil.access %a[0, 0] : !temp
    %dn = stencil.access %d[-1, 0] : !temp
    %ds = stencil.access %d[1, 0] : !temp
    %fw = stencil.access %f[0, -1] : !temp
    %0 = arith.addf %dn, %ds : f64
    %1 = arith.mulf %0, %quarter : f64
    %2 = arith.addf %c, %1 : f64
    %3 = arith.mulf %quarter, %fw : f64
    stencil.return %2, %3 : f64, f64
  }
  stencil.store %r to %p(<[0, 0], [13, 16]>) : !temp to !field
  stencil.store %t to %q(<[0, 0], [13, 16]>) : !temp to !field
  return
}
"""
# Three time levels of which two are only read: those of one axis have neighbours far away.
LEVELS_1D = """
!field = !stencil.field<[-3,40]xf32>
!temp = !stencil.temp<?xf32>
func.func @levels(%old : !field, %now : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %half = arith.constant 0.5 : f32
    %w = stencil.access %u[-3] : !temp
    %e = stencil.access %u[2] : !temp
    %c = stencil.access %o[1] : !temp
    %we = arith.addf %w, %e : f32
    %0 = arith.mulf %we, %half : f32
    %1 = arith.mulf %c, %half : f32
    %2 = arith.subf %0, %1 : f32
    stencil.return %2 : f32
  }
  stencil.store %r to %next(<[0], [37]>) : !temp to !field
  return
}
"""
# Two fields of three axes, one of which is read as it is.
DRAG_3D = """
!field = !stencil.field<[-1,8]x[-1,11]x[-2,19]xf64>
!temp = !stencil.temp<?x?x?xf64>
func.func @drag(%u : !field, %k : !field, %v : !field) {
  %ut = stencil.load %u : !field -> !temp
  %kt = stencil.load %k : !field -> !temp
  %r = stencil.apply(%a = %ut : !temp, %b = %kt : !temp) -> (!temp) {
    %t = stencil.access %a[-1, 0, 0] : !temp
    %s = stencil.access %a[0, 1, 0] : !temp
    %e = stencil.access %a[0, 0, 2] : !temp
    %w = stencil.access %a[0, 0, -2] : !temp
    %d = stencil.access %b[0, -1, 1] : !temp
    %0 = arith.addf %t, %s : f64
    %1 = arith.subf %e, %w : f64
    %2 = arith.mulf %1, %d : f64
    %3 = arith.subf %0, %2 : f64
    %half = arith.constant 0.5 : f64
    %4 = arith.mulf %3, %half : f64
    stencil.return %4 : f64
  }
  stencil.store %r to %v(<[0, 0, 0], [7, 10, 17]>) : !temp to !field
  return
}
"""
# Two parts of a field are stored: what lies between them keeps its values.
PARTS_1D = """
!field = !stencil.field<[-1,31]xf64>
!temp = !stencil.temp<?xf64>
func.func @parts(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = stencil.access %a[-1] : !temp
    %e = stencil.access %a[1] : !temp
    %0 = arith.subf %w, %e : f64
    stencil.return %0 : f64
  }
  %s = stencil.apply(%a = %t : !temp) -> (!temp) {
    %c = stencil.access %a[0] : !temp
    %0 = arith.mulf %c, %c : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0], [9]>) : !temp to !field
  stencil.store %s to %v(<[20], [30]>) : !temp to !field
  return
}
"""
# Two parts that are the whole interior of a field.
HALVES = """
!field = !stencil.field<[-1,9]x[-2,14]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @halves(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = stencil.access %a[-1, 0] : !temp
    %e = stencil.access %a[0, 2] : !temp
    %0 = arith.subf %w, %e : f64
    stencil.return %0 : f64
  }
  %s = stencil.apply(%a = %t : !temp) -> (!temp) {
    %c = stencil.access %a[1, 0] : !temp
    %0 = arith.mulf %c, %c : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[5, 0], [8, 12]>) : !temp to !field
  stencil.store %s to %v(<[0, 0], [5, 12]>) : !temp to !field
  return
}
"""
# A copy, between others in place: what is loaded keeps its value.
IN_PLACE = """
!field = !stencil.field<[-1,9]x[-2,12]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @in_place(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %w = stencil.access %a[0, -2] : !temp
    %s = stencil.access %a[1, 0] : !temp
    %0 = arith.subf %w, %s : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %u(<[0, 0], [8, 10]>) : !temp to !field
  stencil.store %t to %v(<[0, 0], [8, 10]>) : !temp to !field
  return
}
"""
# No call reads a halo, which the results have all the same.
POINTWISE = """
!field = !stencil.field<[-1,9]x[-2,14]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @pointwise(%old : !field, %now : !field, %next : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %ot = stencil.load %old : !field -> !temp
  %nt = stencil.load %now : !field -> !temp
  %r = stencil.apply(%o = %ot : !temp, %u = %nt : !temp) -> (!temp) {
    %b = stencil.access %o[0, 0] : !temp
    %c = stencil.access %u[0, 0] : !temp
    %d = arith.subf %c, %b : f64
    stencil.return %d : f64
  }
  stencil.store %r to %next(<[0, 0], [8, 12]>) : !temp to !field
  return
}
"""
# Fields that are stored as a whole, since they have no halo.
BARE = """
!field = !stencil.field<[0,9]x[0,14]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @bare(%u : !field, %v : !field) {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %c = stencil.access %a[0, 0] : !temp
    %s = arith.mulf %c, %c : f64
    %d = arith.subf %c, %s : f64
    stencil.return %d : f64
  }
  stencil.store %r to %v(<[0, 0], [9, 14]>) : !temp to !field
  return
}
"""
# Each result takes over the values of the field before it, and has another interior.
CHAIN = """
!field = !stencil.field<[-2,14]x[-2,32]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @chain(%u : !field, %v : !field, %w : !field)
    attributes {stencil.rotation = array<i64: 1, 2, 0>} {
  %t = stencil.load %u : !field -> !temp
  %r = stencil.apply(%a = %t : !temp) -> (!temp) {
    %e = stencil.access %a[-1, 2] : !temp
    %0 = arith.mulf %e, %e : f64
    stencil.return %0 : f64
  }
  stencil.store %r to %v(<[0, 0], [12, 30]>) : !temp to !field
  stencil.store %r to %w(<[2, 3], [9, 11]>) : !temp to !field
  stencil.store %r to %w(<[2, 15], [9, 26]>) : !temp to !field
  return
}
"""
TEXTS = {
    "wave2d": (EXAMPLES / "wave2d.mlir").read_text(),
    "gray_scott": (EXAMPLES / "gray_scott.mlir").read_text(),
    "coupled": COUPLED,
    "levels": LEVELS_1D,
    "drag": DRAG_3D,
    "parts": PARTS_1D,
    "halves": HALVES,
    "in_place": IN_PLACE,
    "pointwise": POINTWISE,
    "bare": BARE,
    "chain": CHAIN,
}
