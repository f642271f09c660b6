import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "wouter-preact";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Fills a phone's screen and has room for a form. */
  wide?: boolean;
}

/** A window over the page: keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(event) => (event.preventDefault(), onClose())}
    >
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

interface Question {
  title: string;
  /** What will be lost, in plain words. */
  text: string;
  /** The word on the button that does it. */
  action: string;
}

const asked = signal<{ question: Question; answer: (yes: boolean) => void } | null>(null);

/** Asks before something that cannot be taken back (contract 17). */
export function confirmed(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value = {
      question,
      answer(yes) {
        asked.value = null;
        resolve(yes);
      },
    };
  });
}

/** Where such a question is shown; once in the page. */
export function Confirmation() {
  const [path] = useLocation();
  // Who goes back has not said yes, and no longer sees what it was about.
  useEffect(() => () => asked.peek()?.answer(false), [path]);
  if (asked.value === null) return null;
  const { question, answer } = asked.value;
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <p>{question.text}</p>
      <div class="actions end">
        <button type="button" onClick={() => answer(false)}>Leave it</button>
        <button type="button" class="danger" onClick={() => answer(true)}>{question.action}</button>
      </div>
    </Dialog>
  );
}
