import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./short_id.tsx";

export interface Secret {
  title: string;
  text: string;
  secret: string;
  children?: ComponentChildren;
}

export function SecretDialog({ title, text, secret, onClose, children }: Secret & { onClose: () => void }) {
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
