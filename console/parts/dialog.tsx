import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "wouter-preact";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Makes the dialog wide enough for a form. */
  wide?: boolean;
}

/** A modal window. It keeps the focus inside, and Escape closes it. */
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

export interface Confirmation {
  title: string;
  /** Text that names what the user loses. */
  text: string;
  /** The label of the button that confirms. */
  action: string;
}

const open = signal<{ question: Confirmation; answer: (yes: boolean) => void } | null>(null);

/** Asks the user to confirm. Returns whether the user confirmed. */
export function confirm(question: Confirmation): Promise<boolean> {
  return new Promise((resolve) => {
    open.value = {
      question,
      answer(yes) {
        open.value = null;
        resolve(yes);
      },
    };
  });
}

export function ConfirmationDialog() {
  const [path] = useLocation();
  // A user who leaves the page has not confirmed.
  useEffect(() => () => open.peek()?.answer(false), [path]);
  if (open.value === null) return null;
  const { question, answer } = open.value;
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <p>{question.text}</p>
      <div class="actions end">
        <button type="button" onClick={() => answer(false)}>Cancel</button>
        <button type="button" class="danger" onClick={() => answer(true)}>{question.action}</button>
      </div>
    </Dialog>
  );
}
