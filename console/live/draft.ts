import { useEffect, useState } from "preact/hooks";

const PREFIX = "svc.draft.";

/** State of text that is kept for this tab under a name: it survives a reload, an expired session and other pages. */
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
