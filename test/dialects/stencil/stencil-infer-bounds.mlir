// RUN: twofour-opt %s --split-input-file --verify-diagnostics --stencil-infer-bounds | filecheck %s

// Each temp becomes as large as its uses need, whatever the bounds of the fields.

!field = !stencil.field<#stencil.bounds<[-4, -4], [68, 68]>, f64>
!temp = !stencil.temp<2 : i64, f64>

// CHECK-LABEL: func.func @one_apply(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-1, 0], [64, 66]>, f64>
// CHECK: "stencil.apply"
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[0, 0], [64, 64]>, f64>
func.func @one_apply(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 0, 2>} : (!temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : (!temp, !field) -> ()
  return
}

// -----

// Along a chain the reach adds up: one point a stage to the left, two to the right.

!field = !stencil.field<#stencil.bounds<[-4], [68]>, f32>
!temp = !stencil.temp<1 : i64, f32>

// CHECK-LABEL: func.func @chain(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-2], [68]>, f32>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[-1], [66]>, f32>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[0], [64]>, f32>
func.func @chain(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f32
    %b = "stencil.access"(%t) {offset = array<i64: 2>} : (!temp) -> f32
    %s = arith.addf %a, %b : f32
    "stencil.return"(%s) : (f32) -> ()
  }) : () -> !temp
  %q = "stencil.apply"() ({
    %a = "stencil.access"(%r) {offset = array<i64: -1>} : (!temp) -> f32
    %b = "stencil.access"(%r) {offset = array<i64: 2>} : (!temp) -> f32
    %s = arith.addf %a, %b : f32
    "stencil.return"(%s) : (f32) -> ()
  }) : () -> !temp
  "stencil.store"(%q, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// A temp with several uses holds the smallest box around all of them.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @several_stores(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-6], [65]>, f64>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[-5], [64]>, f64>
func.func @several_stores(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    %b = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[-5], [3]>} : (!temp, !field) -> ()
  "stencil.store"(%r, %w) {bounds = #stencil.bounds<[60], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// The results of an apply share one box; a result that nothing uses takes that of the other.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @several_results(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK: }) : () -> (!stencil.temp<#stencil.bounds<[0], [64]>, f64>, !stencil.temp<#stencil.bounds<[0], [64]>, f64>, !stencil.temp<#stencil.bounds<[0], [64]>, f64>)
func.func @several_results(%u: !field, %v: !field, %w: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r:3 = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
    "stencil.return"(%a, %a, %a) : (f64, f64, f64) -> ()
  }) : () -> (!temp, !temp, !temp)
  "stencil.store"(%r#0, %v) {bounds = #stencil.bounds<[0], [8]>} : (!temp, !field) -> ()
  "stencil.store"(%r#2, %w) {bounds = #stencil.bounds<[7], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// A buffer is as large as its uses need, and so is what it buffers.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @buffer(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[-1], [63]>, f64>
// CHECK: "stencil.buffer"(%{{.*}}) : (!stencil.temp<#stencil.bounds<[-1], [63]>, f64>) -> !stencil.temp<#stencil.bounds<[-1], [63]>, f64>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @buffer(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %b = "stencil.buffer"(%r) : (!temp) -> !temp
  %q = "stencil.apply"() ({
    %a = "stencil.access"(%b) {offset = array<i64: -1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%q, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// A temp of lower rank needs the domain along its own axes.

!cube = !stencil.field<#stencil.bounds<[0, 0, 0], [4, 5, 6]>, f64>
!line = !stencil.field<#stencil.bounds<[-9], [9]>, f64>
!plane = !stencil.field<#stencil.bounds<[-9, -9], [9, 9]>, f64>

// CHECK-LABEL: func.func @lower_rank(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[1], [6]>, f64>
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-1, 0], [3, 8]>, f64>
func.func @lower_rank(%l: !line, %p: !plane, %v: !cube) {
  %lt = "stencil.load"(%l) : (!line) -> !stencil.temp<1 : i64, f64>
  %pt = "stencil.load"(%p) : (!plane) -> !stencil.temp<2 : i64, f64>
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%lt) {offset = array<i64: 1>, offset_mapping = array<i64: 1>} : (!stencil.temp<1 : i64, f64>) -> f64
    %b = "stencil.access"(%pt) {offset = array<i64: -1, 0>, offset_mapping = array<i64: 0, 2>} : (!stencil.temp<2 : i64, f64>) -> f64
    %c = "stencil.access"(%pt) {offset = array<i64: -1, 2>, offset_mapping = array<i64: 0, 2>} : (!stencil.temp<2 : i64, f64>) -> f64
    %s = arith.addf %a, %b : f64
    %q = arith.addf %s, %c : f64
    "stencil.return"(%q) : (f64) -> ()
  }) : () -> !stencil.temp<3 : i64, f64>
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0, 0], [4, 5, 6]>} : (!stencil.temp<3 : i64, f64>, !cube) -> ()
  return
}

// -----

// Known bounds are kept, also where less would do.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>
!large = !stencil.temp<#stencil.bounds<[-7], [70]>, f64>
!result = !stencil.temp<#stencil.bounds<[-2], [66]>, f64>

// CHECK-LABEL: func.func @known(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-7], [70]>, f64>
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-3], [65]>, f64>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[-2], [66]>, f64>
func.func @known(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !large
  %q = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0>} : (!large) -> f64
    %b = "stencil.access"(%q) {offset = array<i64: -1>} : (!temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !result
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!result, !field) -> ()
  return
}

// -----

// Sums and patch operators need their reach; addends the domain itself.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @linear_ops(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-3], [65]>, f64>
// CHECK: "stencil.weighted_sum"(%{{.*}}) {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK: "nm.patch_matmul"(%{{.*}}, %{{.*}}) {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @linear_ops(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %a = "stencil.weighted_sum"(%t) {offsets = [[-3]], weights = array<f64: 1.0>} : (!temp) -> !temp
  %r = "nm.patch_matmul"(%t, %a) {
    tile = array<i64: 1>, matrix = [array<f64: 1.0>], output_offsets = [[0]], input_offsets = [[1]],
    offsets = [[1]], weights = array<f64: 1.0>
  } : (!temp, !temp) -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// A time loop whose fields are swapped.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @time_loop(
// CHECK: scf.for
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-1], [65]>, f64>
// CHECK: }) : () -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @time_loop(%u: !field, %v: !field, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a, %b = scf.for %i = %zero to %n step %one iter_args(%now = %u, %next = %v) -> (!field, !field) {
    %t = "stencil.load"(%now) : (!field) -> !temp
    %r = "stencil.apply"() ({
      %l = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
      %h = "stencil.access"(%t) {offset = array<i64: 1>} : (!temp) -> f64
      %s = arith.addf %l, %h : f64
      "stencil.return"(%s) : (f64) -> ()
    }) : () -> !temp
    "stencil.store"(%r, %next) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
    scf.yield %next, %now : !field, !field
  }
  return
}

// -----

// An access inside a branch of the region counts.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @branch(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[-1], [64]>, f64>
func.func @branch(%u: !field, %v: !field, %c: i1) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %s = scf.if %c -> (f64) {
      %l = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
      scf.yield %l : f64
    } else {
      %h = "stencil.access"(%t) {offset = array<i64: 0>} : (!temp) -> f64
      scf.yield %h : f64
    }
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// What no store needs stays unknown; declarations are left alone.

// CHECK-LABEL: func.func private @declared(!stencil.field<1 : i64, f64>)
func.func private @declared(!stencil.field<1 : i64, f64>)

// CHECK-LABEL: func.func @unused(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<1 : i64, f64>
func.func @unused(%u: !stencil.field<1 : i64, f64>) {
  %t = "stencil.load"(%u) : (!stencil.field<1 : i64, f64>) -> !stencil.temp<1 : i64, f64>
  return
}

// -----

// A field that is too small: the error stands at the access that reaches too far.

!field = !stencil.field<#stencil.bounds<[0, -1], [64, 65]>, f64>
!temp = !stencil.temp<2 : i64, f64>

func.func @too_small(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%t) {offset = array<i64: 0, 1>} : (!temp) -> f64
    // expected-error @+1 {{'stencil.access' op expected the field's bounds to cover [-1,63]x[0,64], got [0,64]x[-1,65]}}
    %b = "stencil.access"(%t) {offset = array<i64: -1, 0>} : (!temp) -> f64
    %s = arith.addf %a, %b : f64
    "stencil.return"(%s) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [64, 64]>} : (!temp, !field) -> ()
  return
}

// -----

// The same at the end of a chain.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func @too_small_for_a_chain(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected the field's bounds to cover [-2,62], got [-1,65]}}
    %a = "stencil.access"(%t) {offset = array<i64: -1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %q = "stencil.apply"() ({
    %a = "stencil.access"(%r) {offset = array<i64: -1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%q, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// The same for a temp of lower rank, and for a sum.

!plane = !stencil.field<#stencil.bounds<[0, 0], [4, 8]>, f64>
!line = !stencil.field<#stencil.bounds<[0], [8]>, f64>

func.func @too_small_in_lower_rank(%u: !line, %v: !plane) {
  %t = "stencil.load"(%u) : (!line) -> !stencil.temp<1 : i64, f64>
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected the field's bounds to cover [1,9], got [0,8]}}
    %a = "stencil.access"(%t) {offset = array<i64: 1>, offset_mapping = array<i64: 1>} : (!stencil.temp<1 : i64, f64>) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !stencil.temp<2 : i64, f64>
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0, 0], [4, 8]>} : (!stencil.temp<2 : i64, f64>, !plane) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[0], [8]>, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func @too_small_for_a_sum(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  // expected-error @+1 {{'stencil.weighted_sum' op expected the field's bounds to cover [-1,9], got [0,8]}}
  %r = "stencil.weighted_sum"(%t) {offsets = [[-1], [1]], weights = array<f64: 1.0, 1.0>} : (!temp) -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [8]>} : (!temp, !field) -> ()
  return
}

// -----

// Bounds of a temp that are known but too small for what reads it.

!field = !stencil.field<#stencil.bounds<[-8], [72]>, f64>
!temp = !stencil.temp<1 : i64, f64>
!small = !stencil.temp<#stencil.bounds<[0], [64]>, f64>

func.func @known_but_too_small(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !small
  %r = "stencil.apply"() ({
    // expected-error @+1 {{'stencil.access' op expected the temp's bounds to cover [1,65], got [0,64]}}
    %a = "stencil.access"(%t) {offset = array<i64: 1>} : (!small) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// A field of unknown bounds that is read.

!unknown = !stencil.field<1 : i64, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func @unknown_field(%u: !unknown, %v: !unknown) {
  // expected-error @+1 {{'stencil.load' op expected a field with known bounds, got !stencil.field<1 : i64, f64>}}
  %t = "stencil.load"(%u) : (!unknown) -> !temp
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [8]>} : (!temp, !unknown) -> ()
  return
}

// -----

// What is computed for nobody has no bounds: it is erased, with all that is computed for it alone.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @unread(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
// CHECK-NEXT: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<1 : i64, f64>
// CHECK-NEXT: "stencil.store"
// CHECK-NEXT: return
func.func @unread(%u: !field, %v: !field) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %o = "stencil.load"(%v) : (!field) -> !temp
  %r = "stencil.apply"() ({
    %a = "stencil.access"(%o) {offset = array<i64: 1>} : (!temp) -> f64
    "stencil.return"(%a) : (f64) -> ()
  }) : () -> !temp
  %b = "stencil.buffer"(%r) : (!temp) -> !temp
  %s = "stencil.weighted_sum"(%b) {offsets = [[0]], weights = array<f64: 2.0>} : (!temp) -> !temp
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

// Functions of modules inside the module are functions like others, and so are blocks in regions.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @nested(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
module {
  module {
    func.func @nested(%u: !field, %v: !field, %c: i1) {
      %t = "stencil.load"(%u) : (!field) -> !temp
      scf.if %c {
        "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
      }
      return
    }
  }
}

// -----

// A block that others follow may hold such regions as well.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

// CHECK-LABEL: func.func @in_a_region_of_its_block(
// CHECK: "stencil.load"(%{{.*}}) : {{.*}} -> !stencil.temp<#stencil.bounds<[0], [64]>, f64>
func.func @in_a_region_of_its_block(%u: !field, %v: !field, %c: i1) {
  cf.br ^next
^next:
  %t = "stencil.load"(%u) : (!field) -> !temp
  scf.if %c {
    "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  }
  return
}

// -----

// Nothing is known of uses in other blocks, nor of those by ops of other dialects.

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func @stored_in_another_block(%u: !field, %v: !field) {
  scf.execute_region {
    %t = "stencil.load"(%u) : (!field) -> !temp
    cf.br ^next
  ^next:
    scf.execute_region {
      // expected-error @+1 {{'stencil.store' op expected temps to be used in the block that computes them}}
      "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
      scf.yield
    }
    scf.yield
  }
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func @chosen(%u: !field, %v: !field, %c: i1) {
  %t = "stencil.load"(%u) : (!field) -> !temp
  %s = "stencil.load"(%v) : (!field) -> !temp
  // expected-error @+1 {{'arith.select' op expected no temps outside of stencil ops, got !stencil.temp<1 : i64, f64>}}
  %r = arith.select %c, %t, %s : !temp
  "stencil.store"(%r, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}

// -----

!field = !stencil.field<#stencil.bounds<[-1], [65]>, f64>
!temp = !stencil.temp<1 : i64, f64>

func.func private @made() -> !temp

func.func @made_elsewhere(%v: !field) {
  // expected-error @+1 {{'func.call' op expected no temps outside of stencil ops, got !stencil.temp<1 : i64, f64>}}
  %t = call @made() : () -> !temp
  "stencil.store"(%t, %v) {bounds = #stencil.bounds<[0], [64]>} : (!temp, !field) -> ()
  return
}
