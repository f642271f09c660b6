import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./short_id.tsx";

interface SecretProps {
  title: string;
  text: string;
  secret: string;
  onClose: () => void;
  children?: ComponentChildren;
}

/** Shows a secret once; the page does not store it. */
export function SecretDialog({ title, text, secret, onClose, children }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} wide>
      <p>{text}</p>
      <p class="secret">
        <code>{secret}</code>
        <CopyButton text={secret} subject="secret" />
      </p>
      <p class="hint">Copy it now. You cannot see it again after you close this dialog.</p>
      {children}
      <div class="actions end">
        <button type="button" class="primary" onClick={onClose}>Done</button>
      </div>
    </Dialog>
  );
}
