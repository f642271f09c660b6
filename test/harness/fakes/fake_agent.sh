#!/bin/sh
# An agent for tests. `fake_agent.sh MODE [ARGUMENT]`, or without arguments: the instruction on stdin is the mode.
# With FAKE_LEDGER it writes "start <task> <attempt> <pid> <ns> <execution>" and "end ..." with one write each, and holds a lock
# per task while it lives, so that two runs of one task at once leave an OVERLAP. With FAKE_LANES, too, the same per work directory.
if [ $# -eq 0 ]; then
  read -r mode argument
else
  mode=$1 argument=${2:-}
  cat > /dev/null
fi
# What follows it makes an instruction unique.
count=${argument%% *}

attempt=$(sed -n 's/.*"attempt": \([0-9]*\).*/\1/p' "${SVC_CONTEXT_FILE:-/dev/null}" 2>/dev/null)
note() {
  [ -z "$FAKE_LEDGER" ] || echo "$1 ${SVC_TASK_ID:-none} ${attempt:-0} $$ $(date +%s%N) ${SVC_EXECUTION_ID:-none}" >> "$FAKE_LEDGER"
}
leave() {
  note end
  exit "$1"
}
if [ -n "$FAKE_LEDGER" ]; then
  mkdir -p "$FAKE_LEDGER.d"
  exec 9> "$FAKE_LEDGER.d/${SVC_TASK_ID:-none}"
  flock --nonblock 9 || note OVERLAP
  if [ -n "$FAKE_LANES" ]; then
    exec 8> "$FAKE_LEDGER.d/lane$(pwd | tr / _)"
    flock --nonblock 8 || note OVERLAP-OF-LANE
  fi
  note start
fi

case $mode in
  ok) echo "${argument:-ok}" ;;
  say) echo "$argument" ;;
  silent) ;;
  both) echo out; echo err >&2 ;;
  exit) echo "about to exit $argument" >&2; leave "$count" ;;
  until) while [ ! -e "$argument" ]; do sleep 0.02; done; echo "found $argument" ;;
  sleep) sleep "$count"; echo "slept $argument" ;;
  mark) sleep "$count"; echo "mark $SVC_EXECUTION_ID $attempt" ;;
  mark-stubborn) trap '' INT TERM; sleep "$count"; echo "mark $SVC_EXECUTION_ID $attempt" ;;
  ignore-term)
    trap '' INT TERM
    for _ in 1 2 3; do (trap '' INT TERM; while :; do sleep 1; done) & done
    echo ready >&2
    while :; do sleep 1; done ;;
  setsid-escape)
    setsid sh -c 'trap "" INT TERM HUP; sleep 300' > /dev/null 2>&1 &
    setsid sh -c '(sleep 300 &) ; exit' > /dev/null 2>&1
    echo escaped ;;
  setsid-escape-and-stay)
    for _ in 1 2 3; do setsid sh -c 'trap "" INT TERM HUP; sleep 300' > /dev/null 2>&1 & done
    echo ready
    sleep 300 ;;
  fork-storm-and-stay)
    i=0; while [ $i -lt 64 ]; do setsid sleep 300 > /dev/null 2>&1 & i=$((i + 1)); done
    echo ready
    sleep 300 ;;
  hold-stdout) setsid sleep 300 & echo held ;;
  flood) yes "flood flood flood flood flood flood flood flood" | head -c "${count:-1000000000}" ;;
  euros) yes € | head -n "$argument" | tr -d '\n' ;;
  bad-utf8) printf 'ok \377\376 \303 \000 end\n' ;;
  long-line) head -c "${argument:-10000000}" /dev/zero | tr '\0' x; echo ;;
  env-dump) env ;;
  env-dump-stderr) env >&2; echo done ;;
  fd-dump) ls -l /proc/self/fd ;;
  mem-hog) head -c "${argument:-500000000}" /dev/zero | tail | wc -c ;;
  fork-storm) i=0; while [ $i -lt "${count:-64}" ]; do setsid sleep 300 > /dev/null 2>&1 & i=$((i + 1)); done; echo storm ;;
  stdin) cat; echo "end of input" ;;
  context) cat "$SVC_CONTEXT_FILE" ;;
  pwd) pwd ;;
  svc) [ $# -eq 0 ] || shift; eval "\"$SVC_CTL\" $argument" ;;
  umask) umask ;;
  oom-score) cat /proc/self/oom_score_adj ;;
  nice) nice; sed 's/.* //' /proc/self/autogroup ;;
  kill-server) kill -9 "$argument"; sleep 5 ;;
  swap-parent)
    trap 'cd /; mv "$argument" "$argument.away"; ln -s "$argument.other" "$argument"; exit 0' INT TERM
    touch "$argument.ready"
    while :; do sleep 0.05; done ;;
  touch-and-stay) touch "$argument"; sleep 300 ;;
  show-token-and-leave) echo "$SVC_TOKEN" > "$argument"; sleep 0.3; setsid sleep 300 > /dev/null 2>&1 & sleep 0.5; echo left ;;
  show-token-and-stay) echo "$SVC_TOKEN" > "$argument"; sleep 300 ;;
  touch) touch "$argument"; echo touched ;;
  tick) trap '' INT TERM; while :; do note tick; sleep 0.1; done ;;
  *) echo "fake agent: no mode $mode" >&2; leave 64 ;;
esac
leave 0
