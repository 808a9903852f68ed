# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every YAML block of the pages is a spec that compiles, and whose check, if it has one, passes. A block that is a part of a
# spec names its rest: `<!-- in: NAME -->` before it is test/pages/NAME.yaml, where `#HERE` stands for the block.
. "$(dirname "$0")/lib.sh"
sources=$2

# extract PAGE: writes $work/N.yaml, $work/N.line and, where it names one, $work/N.context.
extract() {
  rm -f "$work"/*.yaml "$work"/*.line "$work"/*.context
  awk -v work="$work" '
    /^<!-- in: / { context = $3; next }
    !inside && /^```yaml$/ { inside = 1; n++; print NR > (work "/" n ".line"); if (context != "") print context > (work "/" n ".context"); context = ""; next }
    inside && /^```$/ { inside = 0; close(work "/" n ".yaml"); next }
    inside { print > (work "/" n ".yaml"); next }
    NF { context = "" }
  ' "$1"
}

# complete N: puts the block into its rest, as deep as the mark stands.
complete() {
  context=$sources/test/pages/$(cat "$work/$1.context").yaml
  awk -v block="$work/$1.yaml" '
    /^ *#HERE$/ { indent = $0; sub(/#HERE$/, "", indent); while ((getline line < block) > 0) print (line == "" ? "" : indent line); next }
    { print }
  ' "$context" >"$work/whole" && mv "$work/whole" "$work/$1.yaml"
}

check_page() {
  page=$1
  extract "$sources/docs/$page"
  blocks=0
  for line in "$work"/*.line; do
    n=$(basename "$line" .line)
    spec=$work/$n.yaml
    [ -f "$work/$n.context" ] && complete "$n"
    cp -r "$sources"/test/pages/include/. "$work/"
    blocks=$((blocks + 1))
    for kernel in $(sed -n -E 's/^(kernel|chain): *([A-Za-z0-9_]+).*/\2/p' "$spec"); do
      "$bin/tl-llc" --kernel="$kernel" "$spec" -o "$work/ptx" >"$work/out" 2>&1 || {
        fail "docs/$page, the block at line $(cat "$line"): $kernel does not compile"
        sed 's/^/  | /' "$work/out" | grep -v warning | head -40
        continue
      }
    done
    grep -q '^check:' "$spec" || continue
    "$bin/tl-run" --check --device=emu "$spec" >"$work/out" 2>&1 || {
      fail "docs/$page, the block at line $(cat "$line"): its check fails"
      sed 's/^/  | /' "$work/out" | grep -v warning | head -40
    }
  done
  echo "docs/$page: $blocks blocks"
  [ "$blocks" -ge "$2" ] || fail "docs/$page has only $blocks blocks"
}

check_page tutorial.md 6
check_page side-by-side.md 10
check_page language.md 49
finish
