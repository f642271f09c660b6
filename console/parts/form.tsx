import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Refusal, refusalOf } from "../live/api.ts";
import { Dialog } from "./dialog.tsx";
import { RefusalNotice } from "./notice.tsx";

/** A form that is being sent, and what the service said against it. */
export interface Sent {
  refusal: Refusal | null;
  /** While the answer is on its way: what is sent once must not be sent twice. */
  busy: boolean;
  submit: (event: Event) => Promise<void>;
}

/** Sends a form with `send`; whatever that throws is kept as a refusal to be shown. */
export function useSend(send: () => Promise<unknown>): Sent {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  // What is wrong may stand far above the button.
  useEffect(() => {
    if (refusal !== null) {
      document.querySelector("[aria-invalid=true], [role=alert]")?.scrollIntoView({ block: "center" });
    }
  }, [refusal]);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (busy) return;
    setRefusal(null);
    setBusy(true);
    try {
      await send();
    } catch (error) {
      setRefusal(refusalOf(error));
    }
    setBusy(false);
  }
  return { refusal, busy, submit };
}

interface DialogFormProps {
  title: string;
  /** The word on the button that sends it. */
  action: string;
  sent: Sent;
  onClose: () => void;
  children: ComponentChildren;
  narrow?: boolean;
  /** Takes the thing of the form away, behind a question of its own. */
  onDelete?: () => void;
}

/** A window with a form: its fields, what was said against them, and the ways out. */
export function DialogForm(props: DialogFormProps) {
  const { title, action, sent, onClose, children, narrow = false, onDelete } = props;
  return (
    <Dialog title={title} onClose={onClose} wide={!narrow}>
      <form class="form" onSubmit={sent.submit}>
        <RefusalNotice refusal={sent.refusal} />
        {children}
        <div class="actions end">
          {onDelete !== undefined && (
            <button type="button" class="danger left" onClick={onDelete}>Delete</button>
          )}
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" class="primary" disabled={sent.busy}>{action}</button>
        </div>
      </form>
    </Dialog>
  );
}
