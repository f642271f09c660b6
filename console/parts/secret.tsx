import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./short_id.tsx";

interface SecretProps {
  title: string;
  /** What it is for, and for whom. */
  text: string;
  secret: string;
  onClose: () => void;
  /** What is done with it next. */
  children?: ComponentChildren;
}

/** Something that is shown once and stored nowhere in the page (contract 9). */
export function SecretOnce({ title, text, secret, onClose, children }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} wide>
      <p>{text}</p>
      <p class="secret">
        <code>{secret}</code>
        <CopyButton text={secret} what="secret" />
      </p>
      <p class="hint">It is shown only now: keep it where it belongs before you close this.</p>
      {children}
      <div class="actions end">
        <button type="button" class="primary" onClick={onClose}>I have it</button>
      </div>
    </Dialog>
  );
}
