#!/bin/sh
# A coordinator for tests: the prompt on stdin is kept in FAKE_BEE/prompt-<n>, and FAKE_BEE/answer-<n> (else the last
# answer there is) is what it says. An answer that begins with "!" is run by a shell instead.
n=$(($(cat "$FAKE_BEE/count" 2>/dev/null || echo 0) + 1))
echo $n > "$FAKE_BEE/count"
cat > "$FAKE_BEE/prompt-$n"
echo thinking >&2
i=$n
while [ $i -gt 0 ] && [ ! -f "$FAKE_BEE/answer-$i" ]; do i=$((i - 1)); done
case $(head -c 1 "$FAKE_BEE/answer-$i") in
  !) eval "$(tail -c +2 "$FAKE_BEE/answer-$i")" ;;
  *) cat "$FAKE_BEE/answer-$i" ;;
esac
