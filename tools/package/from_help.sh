#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Man pages and shell completions from what `TOOL --help` says. Usage: from_help.sh man|bash|zsh|fish BIN-DIRECTORY [TOOL]
# `man` writes the page of TOOL, the others one file for all tools.
set -eu
form=$1
bin=$2
tools='tl-llc tl-run tl-opt tl-golden'

# Every option of a tool, "--emit=KIND" or "-o FILE", one a line.
options() {
  "$bin/$1" --help | grep -oE '(^|[ [])(--[a-z-]+(\[?=[^] ,;:)]+\]?)?|-[oDOW])' | sed 's/^[ []*//; s/\[=.*//' | sort -u
}
# "--emit=" where a value follows, "--check" where none does.
words() { options "$1" | sed -E 's/=.*/=/' | sort -u | tr '\n' ' '; }
values() { # of --emit and others that stand in the help as "--emit=KIND   a, b (default), c"
  "$bin/$1" --help | sed -n -E "s/^  --$2=[A-Z]+ +(.*)/\1/p" | sed -E 's/\([^)]*\)//g; s/;.*//; s/:.*//' | tr -d ' ' | tr ',' ' '
}

man_page() {
  tool=$1
  "$bin/$tool" --help | awk -v tool="$tool" -v version="$("$bin/$tool" --version | awk 'NR == 1 { print $2 }')" '
    function text(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); if (s ~ /^[.'"'"']/) s = "\\&" s; return s }
    NR == 1 {
      upper = toupper(tool); usage = $0; sub(/^Usage: /, "", usage); sub(tool " ?", "", usage); next
    }
    !described && NF { about = about (about == "" ? "" : " ") $0; next }
    !described {
      described = 1
      printf ".TH %s 1 \"\" \"tl-llc %s\" \"User Commands\"\n.SH NAME\n%s \\- ", upper, version, tool
      first = about; sub(/\..*/, "", first)
      print text(tolower(substr(first, 1, 1)) substr(first, 2))
      printf ".SH SYNOPSIS\n.B %s\n%s\n.SH DESCRIPTION\n%s\n.SH OPTIONS\n", text(tool), text(usage), text(about)
      next
    }
    /^  [^ ]/ {
      line = substr($0, 3)
      if (match(line, /   +/)) { head = substr(line, 1, RSTART - 1); rest = substr(line, RSTART + RLENGTH) }
      else if (match(line, /  +/) && RSTART > 10) { head = substr(line, 1, RSTART - 1); rest = substr(line, RSTART + RLENGTH) }
      else { head = line; rest = "" }
      printf ".TP\n.B %s\n%s\n", text(head), rest == "" ? "See docs/cli.md." : text(rest); next
    }
    NF { sub(/^ +/, ""); print text($0) }
    END { printf ".SH EXIT STATUS\n0: success; 1: failure; 2: wrong usage; 70: internal error; 77: no GPU (docs/cli.md).\n.SH SEE ALSO\ntl\\-llc(1), tl\\-run(1), tl\\-opt(1), tl\\-golden(1)\n" }'
}

bash_completion() {
  echo '# Completions of the tl-llc tools.'
  for tool in $tools; do
    name=$(echo "$tool" | tr - _)
    cat <<END
_$name() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  COMPREPLY=()
  [ "\$word" = = ] && word=
  if [ "\$before" = = ]; then before="\${COMP_WORDS[COMP_CWORD - 2]}"; fi
  case "\$before" in
END
    for option in emit device via landing target; do
      list=$(values "$tool" $option)
      [ $option != target ] || list=$("$bin/tl-llc" --list-targets | awk '{ print $1 }' | tr '\n' ' ')
      ! options "$tool" | grep -q "^--$option" || echo "    --$option) COMPREPLY=(\$(compgen -W '$list' -- \"\$word\")); return ;;"
    done
    cat <<END
  esac
  case "\$word" in
    -*) COMPREPLY=(\$(compgen -W '$(words "$tool")' -- "\$word")); [[ "\${COMPREPLY[0]}" == *= ]] && compopt -o nospace ;;
    *) COMPREPLY=(\$(compgen -f -- "\$word")) ;;
  esac
}
complete -o filenames -F _$name $tool
END
  done
}

zsh_completion() {
  echo "#compdef $tools"
  # shellcheck disable=SC2016 # zsh expands it
  echo 'case "$service" in'
  for tool in $tools; do
    echo "  $tool) _arguments \\"
    options "$tool" | grep '^--' | sort -t= -u -k1,1 | sed -E "s/^(--[a-z-]+)=(.*)/    '\1=:\2:_files' \\\\/; t; s/^(--[a-z-]+)$/    '\1' \\\\/"
    echo "    '*:file:_files' ;;"
  done
  echo "esac"
}

fish_completion() {
  for tool in $tools; do
    options "$tool" | grep '^--' | sed -E "s/^--([a-z-]+)=.*/complete -c $tool -l \1 -r/; t; s/^--([a-z-]+)$/complete -c $tool -l \1/" | sort -u
  done
}

case $form in
  man) man_page "$3" ;;
  bash) bash_completion ;;
  zsh) zsh_completion ;;
  fish) fish_completion ;;
  *) exit 2 ;;
esac
