// The scripts never evaluate a word of the line: words are passed as arguments, and candidates are text (decision
// 0010). `eval`, `compgen -W` and unquoted expansions would run what a user typed or named a worker.

const BASH = `# bash completion for svc; needs no package. In ~/.bashrc: source <(svc completion bash)
_svc_complete() {
  local reply
  COMPREPLY=()
  while IFS= read -r reply; do
    COMPREPLY+=("$reply")
  done < <(command svc complete bash "$COMP_TYPE" "$COMP_WORDBREAKS" "\${COMP_LINE:0:COMP_POINT}" "\${COLUMNS:-80}" </dev/null 2>/dev/null)
  if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[/=] ]] && type compopt >/dev/null 2>&1; then
    compopt -o nospace
  fi
}
complete -F _svc_complete svc
`;

const ZSH = `#compdef svc
# zsh completion for svc. In ~/.zshrc: source <(svc completion zsh), or this file as _svc in a directory of fpath.
_svc() {
  local line value
  local -a asked values shown open open_shown
  asked=("\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}")
  while IFS= read -r line; do
    value="\${line%%$'\\t'*}"
    if [[ "$value" == */ || "$value" == *= ]]; then
      open+=("$value")
      open_shown+=("$value")
    else
      values+=("$value")
      shown+=("$value\${\${line#*$'\\t'}:+  -- \${line#*$'\\t'}}")
    fi
  done < <(command svc complete words -- "\${asked[@]}" </dev/null 2>/dev/null)
  local ret=1
  if (( \${#values} )); then
    if [[ "\${values[*]}" == "\${shown[*]}" ]]; then
      compadd -V svc -- "\${values[@]}" && ret=0
    else
      compadd -V svc -l -d shown -- "\${values[@]}" && ret=0
    fi
  fi
  (( \${#open} )) && compadd -V svc_open -S '' -d open_shown -- "\${open[@]}" && ret=0
  return ret
}
if [[ "\${funcstack[1]}" == _svc ]]; then
  _svc "$@"
else
  if (( ! \${+functions[compdef]} )); then
    autoload -Uz compinit && compinit -i
  fi
  compdef _svc svc
fi
`;

const FISH = `# fish completion for svc. In ~/.config/fish/config.fish: svc completion fish | source
function __svc_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct | string unescape 2>/dev/null)
    or set current (commandline -ct | string replace --regex '^[\\x27\\x22]' '')
    command svc complete words -- $words "$current" </dev/null 2>/dev/null
end
complete --command svc --erase
complete --command svc --no-files --keep-order --arguments '(__svc_complete)'
`;

/** The completion script of each shell (contract 6). */
export const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
