#!/bin/sh
# Speaks like the agent CLI $FAKE_KIND. It has lost every session: asked to resume one, it writes $FAKE_WORDS on stderr, prints
# $FAKE_LINES on stdout, and exits with $FAKE_CODE.
[ "$1" = --version ] && { echo "99.0.0"; exit 0; }
session='' resume=''
while [ $# -gt 0 ]; do
  case $1 in
    --session-id) session=$2 ;;
    --session-id=*) session=${1#*=} ;;
    --resume | --session | resume) resume=1 ;;
    --resume=*) resume=1 ;;
  esac
  shift
done
cat > prompt.txt
if [ -n "$resume" ]; then
  printf '%b\n' "$FAKE_WORDS" >&2
  [ -z "$FAKE_LINES" ] || printf '%s\n' "$FAKE_LINES"
  exit "$FAKE_CODE"
fi
case $FAKE_KIND in
  claude | qwen)
    printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "$session"
    echo '{"type":"result","subtype":"success","is_error":false,"result":"hello","usage":{}}' ;;
  codex)
    printf '{"type":"thread.started","thread_id":"%s"}\n' "$(cat /proc/sys/kernel/random/uuid)"
    echo '{"type":"item.completed","item":{"type":"agent_message","text":"hello"}}'
    echo '{"type":"turn.completed","usage":{}}' ;;
  gemini)
    printf '{"type":"init","session_id":"%s"}\n' "$session"
    echo '{"type":"message","role":"assistant","content":"hello","delta":true}'
    echo '{"type":"result","status":"success","stats":{}}' ;;
  opencode)
    printf '{"type":"step_start","sessionID":"ses_%s"}\n' "$$"
    echo '{"type":"text","part":{"text":"hello"}}'
    echo '{"type":"step_finish","part":{"reason":"stop"}}' ;;
  copilot)
    echo '{"type":"user.message"}'
    echo '{"type":"assistant.message","data":{"content":"hello"}}'
    echo '{"type":"result","exitCode":0}' ;;
  goose)
    echo '{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}'
    echo '{"type":"complete","total_tokens":3}' ;;
esac
