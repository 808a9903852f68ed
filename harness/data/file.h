// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#ifndef TL_HARNESS_FILE_H
#define TL_HARNESS_FILE_H

#include "support/status.h"
#include "support/strbuf.h"

// Appends the file's bytes ("-": standard input).
TL_MUST_USE tl_status tl_file_read(const char *path, tl_strbuf *out);

// Replaces the file in one step: writes a temporary beside it and renames. What exists and is no regular file
// (/dev/null, a pipe) is written in place; "-" is standard output.
TL_MUST_USE tl_status tl_file_write(const char *path, tl_str content);

// Makes the directory (not those above it) unless it exists.
TL_MUST_USE tl_status tl_file_make_directory(const char *path);

#endif
