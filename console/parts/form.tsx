import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, toApiError } from "../live/api_error.ts";
import { useDraft } from "../live/draft.ts";
import { LinkButton } from "./button.tsx";
import { confirm, type Confirmation, Dialog } from "./dialog.tsx";
import { type Field, FieldView } from "./field.tsx";
import { ErrorNotice } from "./notice.tsx";
import { type Secret, SecretDialog } from "./secret.tsx";
import { attempt } from "./toast.tsx";

type Values = Record<string, string | boolean>;

/** The state of a form: its values by field name, and the error of the service. */
export interface FormState<V extends Values = Values> {
  values: V;
  set: (change: Partial<V>) => void;
  error: ApiError | null;
  /** Whether a request is running. */
  busy: boolean;
  submit: (event: Event) => Promise<void>;
}

/** Holds the values of a form and sends them. With a `draft` name, unsent values survive a reload. */
export function useForm<V extends Values>(
  { initial, send, draft }: { initial: V; send: (values: V) => Promise<unknown>; draft?: string },
): FormState<V> {
  const [first] = useState(() => JSON.stringify(initial));
  const kept = useDraft(draft ?? "", first);
  const state = useState(first);
  const [text, setText] = draft === undefined ? state : kept;
  // A draft of an older version has fewer fields.
  const values: V = { ...initial, ...JSON.parse(text) as V };
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    // The field with the error may be far above the button.
    if (error !== null) {
      document.querySelector("[aria-invalid=true], [role=alert]")?.scrollIntoView({ block: "center" });
    }
  }, [error]);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (busy) return;
    setError(null);
    setBusy(true);
    try {
      await send(values);
      if (draft !== undefined) setText(first);
    } catch (failure) {
      setError(toApiError(failure));
    }
    setBusy(false);
  }
  const set = (change: Partial<V>) => setText(JSON.stringify({ ...values, ...change }));
  return { values, set, error, busy, submit };
}

export function Fields<V extends Values>(
  { form, fields }: { form: FormState<V>; fields: readonly (Field<keyof V & string> | false)[] },
) {
  return (
    <>
      {fields.map((field) =>
        field !== false && (
          <FieldView
            key={field.name}
            field={field}
            value={form.values[field.name] ?? ""}
            set={(value) => form.set({ [field.name]: value } as Partial<V>)}
            error={form.error}
          />
        )
      )}
    </>
  );
}

interface FormProps<V extends Values> {
  form: FormState<V>;
  /** The label of the submit button. */
  action: string;
  children: ComponentChildren;
  /** The address that Cancel leads to. */
  cancel?: string;
  /** Whether the form fills the page. */
  page?: boolean;
}

export function Form<V extends Values>(
  { form, action, cancel, page = false, children }: FormProps<V>,
) {
  return (
    <form class={page ? "form scrolled" : "form"} onSubmit={form.submit}>
      <ErrorNotice error={form.error} />
      {children}
      <div class={cancel === undefined ? "actions" : "actions end sticky"}>
        {cancel !== undefined && <LinkButton href={cancel}>Cancel</LinkButton>}
        <button type="submit" class="primary" disabled={form.busy}>{action}</button>
      </div>
    </form>
  );
}

interface FormDialogProps<V extends Values> {
  form: FormState<V>;
  title: string;
  /** The label of the submit button. */
  action: string;
  fields: readonly (Field<keyof V & string> | false)[];
  onClose: () => void;
  /** Content above the fields. */
  children?: ComponentChildren;
  /** Content below the fields. */
  below?: ComponentChildren;
  narrow?: boolean;
  /** The secret of the created object. The dialog shows it once, instead of the form. */
  secret?: Secret | null;
  /** Adds a Delete button, which asks before it deletes. */
  remove?: { question: Confirmation; run: () => Promise<unknown>; after: () => void };
}

export function FormDialog<V extends Values>(props: FormDialogProps<V>) {
  const { form, title, action, fields, onClose, children, below } = props;
  const { narrow = false, secret = null, remove } = props;
  if (secret !== null) return <SecretDialog {...secret} onClose={onClose} />;
  async function deleteSubject(): Promise<void> {
    if (remove === undefined) return;
    onClose();
    if (await confirm(remove.question) && await attempt(remove.run, "Deleted")) remove.after();
  }
  return (
    <Dialog title={title} onClose={onClose} wide={!narrow}>
      <form class="form" onSubmit={form.submit}>
        <ErrorNotice error={form.error} />
        {children}
        <Fields form={form} fields={fields} />
        {below}
        <div class="actions end">
          {remove !== undefined && (
            <button
              type="button"
              class="danger left"
              onClick={() => void deleteSubject()}
            >
              Delete
            </button>
          )}
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary" disabled={form.busy}>{action}</button>
        </div>
      </form>
    </Dialog>
  );
}
