#!/bin/sh
# Says what a real agent CLI said: the recorded stream $REPLAY/<mode>, where the mode is the last word of the prompt. With
# a file `free` in the work directory it is `said` for every mode. SESSION in a stream is the session that is asked for.
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
session=$FIRST_SESSION
while [ $# -gt 0 ]; do
  case $1 in --session-id | --resume | resume) session=$2; shift ;; esac
  shift
done
mode=$(tail -n 1 | tr -cd a-z | tail -c 8)
[ -e free ] && mode=said
[ -e "$REPLAY/$mode" ] || mode=said
sed "s/SESSION/$session/g" "$REPLAY/$mode"
# Codex keeps what its provider says of its windows in the file of its session.
if [ -e "$REPLAY/session" ] && [ "$mode" = said ]; then
  mkdir -p "$CODEX_HOME/sessions/2026/11/22"
  cat "$REPLAY/session" >> "$CODEX_HOME/sessions/2026/11/22/rollout-2026-11-22T06-12-02-$session.jsonl"
fi
[ "$mode" = said ]
