#!/bin/sh
# Speaks like Claude Code (facts, engines 3), for what a real one cannot be made to do. The last line of the prompt is
# the mode. It knows the sessions that it began, by files in its state directory.
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
session='' resume=''
while [ $# -gt 0 ]; do
  case $1 in
    --session-id) session=$2; shift ;;
    --resume) session=$2 resume=1; shift ;;
  esac
  shift
done
prompt=$(cat)
mode=$(printf '%s\n' "$prompt" | tail -n 1)
argument=${mode#* }
mode=${mode%% *}
# After a check that failed the prompt ends with our own words.
[ "$mode" = Fix ] && mode=spend argument=3
known=$CLAUDE_CONFIG_DIR/$session

init() { printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "${1:-$session}"; touch "$known"; }
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1"; }
use() { printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%s"}}]}}\n' "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":%s,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":1,"output_tokens":2}}\n' "${2:-false}" "$1" "${3:-0.5}"; }

if [ -n "$resume" ] && [ ! -e "$known" ]; then
  echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: '"$session"'"]}'
  exit 1
fi
case $mode in
  ok) init; say hello; result "done $argument" ;;
  prompt) init; printf '%s' "$prompt" > prompt.txt; result "${resume:-0}" ;;
  spend) # spend COUNT: so many messages of 150 tokens each, one after the other, and then it waits
    init
    for turn in $(seq "$argument"); do
      printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"turn"}],"usage":{"input_tokens":100,"output_tokens":50}},"parent_tool_use_id":null}\n' "$turn"
      sleep 0.05
    done
    [ -e free ] || sleep 300
    printf '{"type":"result","subtype":"success","is_error":false,"result":"spent","total_cost_usd":1,"usage":{"input_tokens":%s,"output_tokens":%s}}\n' $((argument * 100)) $((argument * 50)) ;;
  window) # window NAME UTILIZATION SECONDS: what the provider says of a window that ends in so long
    init
    set -- $argument
    printf '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":%s,"rateLimitType":"%s","utilization":%s}}\n' "$(($(date +%s) + $3))" "$1" "$2"
    result "said" ;;
  until) init; while [ ! -e "$argument" ]; do sleep 0.02; done; result "found it" ;;
  cost) init; result ok false "$argument" ;;
  silent) ;;
  speechless) init; result "" ;;
  acted) init; use "true"; result "" ;;
  half) init; say hello; printf '{"type":"result","subtype":"succ' ;;
  garbage) printf 'no json \377\376 \033[31mred\033[0m\n{"type":}\n[1]\n'; echo "it broke" >&2; exit 3 ;;
  linger) init; result "done early"; trap '' INT; sleep 300 ;;
  exists)
    if [ -z "$resume" ]; then touch "$known"; echo "Error: Session ID $session is already in use." >&2; exit 1; fi
    init; result resumed ;;
  stray) if [ -n "$resume" ]; then init 00000000-0000-0000-0000-000000000000; sleep 300; fi; init; result "told: $(printf '%s' "$prompt" | grep -c 'so far')" ;;
  forget) init; rm -f "$known"; result forgotten ;;
  long-line) init; printf '{"type":"user","message":"'; head -c "$argument" /dev/zero | tr '\0' x; printf '"}\n'; result long ;;
  hang) init; sleep 300 ;;
  partial-hang) init; say "so far"; sleep 300 ;;
  finish-then-fail) init; result fine; exit 9 ;;
  ask) init; if read -r answer < /dev/tty; then result "answered"; else result "no terminal"; fi 2>/dev/null ;;
  key) init; result "$ANTHROPIC_API_KEY" ;;
  cut) # cut COUNT: its key behind so many letters, in everything that is shown cut
    long=$(head -c "$argument" /dev/zero | tr '\0' x)$ANTHROPIC_API_KEY
    init "$long!"; init; use "$long"
    printf '{"type":"user","message":{"content":[{"type":"tool_result","content":"%s"}]}}\n' "$long"
    { printf '%s' "$long"; head -c 70000 /dev/zero | tr '\0' y; echo; } >&2
    result "$long" true; exit 1 ;;
  limit) # limit [SECONDS]: refused for so long, as long as there is no file `free` in the work directory
    init
    if [ -e free ]; then printf '%s' "$prompt" > prompt.txt; result "through ${resume:-0}"; exit 0; fi
    [ "$argument" = limit ] || printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' "$(($(date +%s) + argument))"
    printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"terminal_reason":"api_error","result":"API Error: 429 rate limit"}\n'
    exit 1 ;;
  as) # as WORDS: answers with its name. Refused while there is a file `limited.NAME` with the seconds, or nothing, in it; not logged in with `refused.NAME`
    init
    printf '%s' "$prompt" > "prompt.$FAKE_NAME"
    echo "$session" >> "sessions.$FAKE_NAME"
    if [ -e "limited.$FAKE_NAME" ]; then
      [ "$argument" = speak ] && say "so far"
      seconds=$(cat "limited.$FAKE_NAME")
      [ -n "$seconds" ] && printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' "$(($(date +%s) + seconds))"
      printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"terminal_reason":"api_error","result":"API Error: 429 rate limit"}\n'
      exit 1
    fi
    if [ -e "refused.$FAKE_NAME" ]; then
      printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"terminal_reason":"api_error","result":"Invalid API key"}\n'
      exit 1
    fi
    [ "$argument" = hang ] && [ ! -e free ] && sleep 300
    result "$FAKE_NAME says $argument" ;;
  *) init; result "no mode $mode" ;;
esac
