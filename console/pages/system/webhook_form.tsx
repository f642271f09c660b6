import { useState } from "preact/hooks";
import { EVENT_KINDS } from "../../../src/domain/call/vocabulary.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { splitWords } from "../../parts/field.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";

interface FormProps {
  webhook: Schemas["Webhook"] | null;
  onClose: () => void;
}

/** Edits a webhook, or creates one and shows its secret. */
export function WebhookForm({ webhook, onClose }: FormProps) {
  const [created, setCreated] = useState<Schemas["WebhookCreated"] | null>(null);
  const form = useForm({
    initial: {
      name: "",
      url: webhook?.url ?? "",
      events: webhook?.events.join(" ") ?? "execution.failed",
      secret: "",
      enabled: webhook?.enabled ?? true,
    },
    async send({ name, url, events, secret, enabled }) {
      const body = {
        ...{ url: url.trim(), events: splitWords(events), enabled },
        ...(secret === "" ? {} : { secret }),
      };
      if (webhook === null) {
        return setCreated(await load(api.POST("/api/webhooks", { body: { name, ...body } })));
      }
      const params = { path: { id_or_name: webhook.id } };
      await load(api.PUT("/api/webhooks/{id_or_name}", { params, body: configured ? { enabled } : body }));
      onClose();
    },
  });
  // The configuration defines the other fields of such a webhook.
  const configured = webhook?.origin === "config";
  return (
    <FormDialog
      form={form}
      title={webhook === null ? "New webhook" : webhook.name}
      action={webhook === null ? "Create webhook" : "Save"}
      onClose={onClose}
      secret={created && {
        title: `Secret of ${created.name}`,
        text: "The receiver verifies the signature of each call with it, as defined by Standard Webhooks.",
        secret: created.secret,
      }}
      fields={[
        webhook === null && { name: "name", label: "Name", required: true, autofocus: true },
        !configured && { name: "url", label: "URL", hint: "Starts with https://", required: true },
        !configured && {
          name: "events",
          label: "Events",
          hint: "Event kinds, e.g. execution.failed or task.*. Use * for all events",
          required: true,
          values: { title: "Available events", names: EVENT_KINDS },
        },
        !configured && {
          name: "secret",
          label: "Secret",
          type: "password",
          autocomplete: "off",
          hint: webhook === null
            ? "Leave empty to generate one. The page shows it once"
            : "Leave empty to keep the secret",
        },
        { name: "enabled", label: "Enabled", type: "checkbox" },
      ]}
    />
  );
}
