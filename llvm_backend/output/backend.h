// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scheduled tile IR → LLVM IR → PTX, and the hand-over of the device module to the emulator.
// The only header of llvm_backend that other modules include; it names no LLVM type.
#ifndef TL_LLVM_BACKEND_BACKEND_H
#define TL_LLVM_BACKEND_BACKEND_H

#include "ir/ir.h"
#include "ir/target.h"
#include "llvm_backend/device/debug_info.h"
#include "support/diag.h"
#include "support/manifest.h"
#include "support/status.h"
#include "support/strbuf.h"

// One compile: owns an LLVM context and everything made in it. Not shared between threads; several may exist at once.
typedef struct tl_backend tl_backend;

typedef struct tl_backend_options {
  int ptx_version;  // 0: the larger of the target's floor and what the used ops need
  int opt_level;    // 0 to 3; 3 is the default of the tools
  tl_str doc;       // the kernel's documentation, for the manifest. Copied
  // For the emulator only: where elements of a parallel may meet in memory, each access says whose it is, and elements
  // are lowered one by one.
  bool marks_elements;
} tl_backend_options;

// Lowers the module's kernel. `module` must be at scheduled level after the whole pipeline. Owned by the caller.
TL_MUST_USE tl_status tl_backend_create(const tl_module *module, const tl_target *target,
                                        const tl_backend_options *options, tl_diags *diags, tl_backend **out_backend);
void tl_backend_destroy(tl_backend *backend);
// One backend of the kernels of several, for PTX of all and their manifest: `chain` says how they follow each other
// (NULL: not at all). The kernels' names must differ. The parts stay the caller's and are not needed afterwards.
TL_MUST_USE tl_status tl_backend_link(tl_backend *const *parts, uint32_t num_parts, const tl_target *target,
                                      const tl_backend_options *options, const tl_manifest_chain *chain,
                                      tl_backend **out_backend);

// The same of a kernel and its aligned version.
TL_MUST_USE tl_status tl_backend_link_versions(tl_backend *const versions[2], const tl_target *target,
                                               const tl_backend_options *options, tl_backend **out_backend);

// LLVM IR as lowered (before optimisation) …
TL_MUST_USE tl_status tl_backend_print_llvm(tl_backend *backend, tl_strbuf *out);
// … and after it (runs it when needed). This is what PTX and the emulator are made from.
TL_MUST_USE tl_status tl_backend_print_llvm_opt(tl_backend *backend, tl_strbuf *out);
// Manifest, blank line, PTX.
TL_MUST_USE tl_status tl_backend_emit_ptx(tl_backend *backend, tl_strbuf *out);
// The same with the line of the spec (.file, .loc) of each instruction, which is the only difference.
TL_MUST_USE tl_status tl_backend_emit_ptx_lines(tl_backend *backend, tl_strbuf *out);
// The manifest. Borrowed from the backend.
TL_MUST_USE tl_status tl_backend_manifest(tl_backend *backend, const tl_manifest **out);

// The optimised device module as LLVM bitcode (device ops still named functions, no inline asm). free() the bytes.
TL_MUST_USE tl_status tl_backend_device_bitcode(tl_backend *backend, char **out_bytes, size_t *out_len);

// What goes with it, for messages. Borrowed from the backend.
const tl_debug_info *tl_backend_debug_info(const tl_backend *backend);

// "22.1.8". Static.
const char *tl_backend_llvm_version(void);

#endif
