#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Two arguments of one call never both build code: C leaves their order to the compiler, so that the bytes of the output would
# depend on who built the tool. A function builds if it gives a value and takes what it is built with: a builder, or a state
# that has one. Usage: order.sh, in the source tree, or order.sh FILE...
set -eu
[ $# -gt 0 ] || set -- frontend ir passes llvm_backend emulator
# Of what takes these first, the value was there before; constants of LLVM are no code.
known='(const )?tl_(op|value|value_map|box|opcode|module) |const tl_lower |const tl_session |const stage_counter |LLVM[A-Za-z]*Ref '
constants='i1|i8|i16|i32|i64|f32|tl_math_const|tl_math_const_of|tl_session_[a-z0-9_]*'
builders=$(find frontend ir passes llvm_backend emulator "$@" -name '*.[ch]' -exec grep -oHE \
    '^(static )?(inline )?(tl_value \*|LLVMValueRef )[a-z_0-9]+\((const )?[A-Za-z_]+ ' {} + |
  grep -vE "\\(($known)|[ *]($constants)\\(" | sed -E 's/^([^:]*\.c):static .*[ *]([a-z_0-9]+)\(.*/\1:\2/; t; s/.*[ *]([a-z_0-9]+)\(.*/\1/' |
  sort -u | tr '\n' ' ')
find "$@" -name '*.c' | sort | xargs awk -v builders="$builders" '
  BEGIN { count_of = split(builders, list, " "); for (i = 1; i <= count_of; i++) is_builder[list[i]] }
  function builds(name) { return name in is_builder || (file ":" name) in is_builder || name ~ /^LLVMBuild/ }
  # Tokens of one file, comments and strings aside. At each depth: whether it is the list of a call, and how many of its
  # arguments hold a call that builds.
  function scan(text, file,    depth, line, token, before, i) {
    depth = 0; line = 1; before = ""
    while (length(text)) {
      if (match(text, /^[ \t\r]+/)) { text = substr(text, RLENGTH + 1); continue }
      if (substr(text, 1, 1) == "\n") { line++; text = substr(text, 2); continue }
      if (match(text, /^\/\/[^\n]*/) || match(text, /^"([^"\\\n]|\\.)*"/) || match(text, /^\047([^\047\\\n]|\\.)*\047/)) {
        text = substr(text, RLENGTH + 1); before = ""; continue }
      if (match(text, /^[A-Za-z_][A-Za-z0-9_]*/)) {
        before = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1); continue }
      token = substr(text, 1, 1); text = substr(text, 2)
      if (token == "(" || token == "{" || token == "[") {
        if (token == "(" && builds(before)) for (i = depth; i > 0; i--) { if (kind[i] == "call") holds[i] = 1; if (kind[i] == "{") break }
        depth++
        kind[depth] = token == "(" && before != "" && before !~ /^(if|for|while|switch|return|sizeof)$/ ? "call" : token
        name[depth] = before; holds[depth] = count[depth] = 0
      } else if (token == ")" || token == "}" || token == "]") {
        if (depth > 0) {
          if (kind[depth] == "call" && count[depth] + holds[depth] > 1) {
            printf "%s:%d: %d arguments of %s build code: their order is the compiler\047s choice\n", file, line, count[depth] + holds[depth], name[depth]
            failed = 1
          }
          depth--
        }
      } else if ((token == "," || token == ";") && depth > 0) { count[depth] += holds[depth]; holds[depth] = 0 }
      before = ""
    }
  }
  FNR == 1 && NR > 1 { scan(text, file); text = "" }
  { file = FILENAME; text = text $0 "\n" }
  END { scan(text, file); exit failed }'
