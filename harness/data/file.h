// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole files in and out.
#ifndef TL_HARNESS_FILE_H
#define TL_HARNESS_FILE_H

#include "support/status.h"
#include "support/strbuf.h"

// The largest text (PTX, JSON, a list of goldens) that is read.
#define TL_FILE_MAX_TEXT_BYTES (UINT64_C(64) << 20)

// Appends the file's bytes ("-": standard input); pipes may be read. LIMIT when there are more than `max_bytes`.
TL_MUST_USE tl_status tl_file_read(const char *path, uint64_t max_bytes, tl_strbuf *out);
// The same for what makes no sense as a stream: anything but a regular file is INVALID_ARGUMENT.
TL_MUST_USE tl_status tl_file_read_regular(const char *path, uint64_t max_bytes, tl_strbuf *out);

// Replaces the file in one step: writes a temporary beside it and renames. What exists and is no regular file
// (/dev/null, a pipe) is written in place; "-" is standard output.
TL_MUST_USE tl_status tl_file_write(const char *path, tl_str content);

// Makes the directory (not those above it) unless it exists.
TL_MUST_USE tl_status tl_file_make_directory(const char *path);

// Writes all of it to an open file; `name` is for messages.
TL_MUST_USE tl_status tl_file_write_to(int fd, const char *name, tl_str content);

#endif
