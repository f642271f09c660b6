import { useState } from "preact/hooks";
import { EVENT_KINDS } from "../../../src/domain/vocabulary.ts";
import { api, ask, type Schemas } from "../../live/api.ts";
import { TextField, Tick, wordsIn } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";

interface FormProps {
  /** null: a new one. */
  webhook: Schemas["Webhook"] | null;
  /** Called when it is done, with what has to be shown of a new one. */
  onClose: (made?: Schemas["WebhookCreated"]) => void;
}

/** A new webhook, or changes to one. */
export function WebhookForm({ webhook, onClose }: FormProps) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [events, setEvents] = useState(webhook?.events.join(" ") ?? "execution.failed");
  const [secret, setSecret] = useState("");
  const [enabled, setEnabled] = useState(webhook?.enabled ?? true);
  const sent = useSend(async () => {
    const body = {
      url: url.trim(),
      events: wordsIn(events),
      enabled,
      ...(secret === "" ? {} : { secret }),
    };
    if (webhook === null) return onClose(await ask(api.POST("/api/webhooks", { body: { name, ...body } })));
    const params = { path: { id_or_name: webhook.id } };
    // Of one of the configuration only this can be changed here.
    const change = webhook.origin === "config" ? { enabled } : body;
    await ask(api.PUT("/api/webhooks/{id_or_name}", { params, body: change }));
    onClose();
  });
  const { refusal } = sent;
  return (
    <DialogForm
      title={webhook === null ? "New webhook" : webhook.name}
      action={webhook === null ? "Make the webhook" : "Save"}
      sent={sent}
      onClose={() => onClose()}
    >
      {webhook === null && (
        <TextField
          label="Name"
          name="name"
          value={name}
          onInput={setName}
          refusal={refusal}
          required
          autofocus
        />
      )}
      {webhook?.origin !== "config" && (
        <>
          <TextField
            label="Address"
            name="url"
            value={url}
            onInput={setUrl}
            refusal={refusal}
            hint="With https:// before it"
            required
          />
          <TextField
            label="What it is told of"
            name="events"
            value={events}
            onInput={setEvents}
            refusal={refusal}
            hint="Kinds of events, such as execution.failed or task.*; * is everything"
            required
          />
          <details>
            <summary>What there is</summary>
            <p class="hint">{EVENT_KINDS.join(" ")}</p>
          </details>
          <TextField
            label="Secret"
            name="secret"
            type="password"
            value={secret}
            onInput={setSecret}
            refusal={refusal}
            autocomplete="off"
            hint={webhook === null ? "Empty: one is made, and shown once" : "Empty: it stays"}
          />
        </>
      )}
      <Tick label="It sends" checked={enabled} onChange={setEnabled} />
    </DialogForm>
  );
}
