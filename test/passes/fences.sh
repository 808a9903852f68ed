# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# No proxy fence stands twice: between two of the same memory something touches memory, or another way leads there. Of every
# spec for sm_90a, as it is lowered. Usage: fences.sh TL_OPT DIRECTORY…
opt=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tl-fences.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 fences=0
for spec in $(find "$@" -name '*.yaml' | sort); do
  # What only another target compiles is none of this.
  "$opt" "$spec" --target=sm_90a >"$work/ir" 2>/dev/null || continue
  awk -v spec="$spec" '
    /^ *fence_proxy/ {
      if ($0 == last) { print spec ": twice before line " NR; bad = 1 }
      last = $0
      next
    }
    # What computes, orders or declares touches nothing that a fence is about.
    /^ *(mbarrier_arrive|barrier$|bulk_commit|%[A-Za-z0-9_.]+ = (const|add|sub|mul|min|max|cmp|select|floordiv|mod|and|or|xor|not|cast|tensor|tensor_map|alloc|view|stage_tile) )/ { next }
    { last = "" }
    END { exit bad }' "$work/ir" || failed=1
  fences=$((fences + $(grep -c '^ *fence_proxy' "$work/ir")))
done
[ "$fences" -gt 50 ] || { echo "only $fences fences in all"; failed=1; }
exit $failed
