import { useEffect, useState } from "preact/hooks";

const PREFIX = "svc.draft.";

/** State of a text in the session storage of this tab. It survives reloads, an expired session and visits of other pages. */
export function useDraft(name: string, initial = ""): [string, (text: string) => void] {
  const key = PREFIX + name;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? initial);
  useEffect(() => setText(sessionStorage.getItem(key) ?? initial), [key]);
  function set(next: string): void {
    setText(next);
    if (next === initial) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, next);
  }
  return [text, set];
}
