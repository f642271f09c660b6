import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

interface ActProps {
  /** What is done; until it is, the button does nothing more. */
  run: () => Promise<unknown>;
  children: ComponentChildren;
  class?: string;
  /** Its name where what it shows is not enough. */
  label?: string;
  title?: string;
}

/** A button that does something on the service, once at a time: on a slow line nobody knows whether a click was heard (contract 17.4). */
export function Act({ run, children, class: classes = "", label, title }: ActProps) {
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  async function press(): Promise<void> {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    try {
      await run();
    } finally {
      running.current = false;
      setBusy(false);
    }
  }
  // Not `disabled`: that would take the focus away from who works by keys.
  return (
    <button
      type="button"
      class={classes}
      aria-busy={busy}
      {...(label === undefined ? {} : { "aria-label": label })}
      {...(title === undefined ? {} : { title })}
      onClick={() => void press()}
    >
      {children}
    </button>
  );
}
