import { useState } from "preact/hooks";
import { api, load } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { splitWords } from "../../parts/field.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { CopyButton } from "../../parts/short_id.tsx";

/** Builds the command that starts a runner on its machine, with its token in a file there. */
export function buildStartCommand(): string {
  return `svc runner --url ${location.origin} --token-file runner.token`;
}

/** Creates a runner, and shows its token with the next steps on its machine. */
export function RunnerForm({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null);
  const form = useForm({
    initial: { name: "", labels: "", allow_admin: false, secrets: false },
    async send({ name, labels, allow_admin, secrets }) {
      const body = { name, labels: splitWords(labels), allow_admin, secrets };
      setCreated(await load(api.POST("/api/runners", { body })));
    },
  });
  const command = buildStartCommand();
  return (
    <FormDialog
      form={form}
      title="Add runner"
      action="Create token"
      onClose={onClose}
      secret={created && {
        title: `Token of ${created.name}`,
        text:
          "On the runner's machine, save the token in a file that only its user can read, e.g. runner.token:",
        secret: created.token,
        children: (
          <>
            <p>Then start the runner. It appears in this list.</p>
            <p class="secret">
              <code>{command}</code>
              <CopyButton text={command} subject="command" />
            </p>
            {location.protocol !== "https:" && (
              <p class="hint">
                On another machine the URL of this service must start with https:, because each request
                contains the token.
              </p>
            )}
          </>
        ),
      }}
      fields={[
        {
          name: "name",
          label: "Name",
          placeholder: "mac1",
          hint: "One name per machine",
          required: true,
          autofocus: true,
        },
        {
          name: "labels",
          label: "Labels",
          placeholder: "macos gpu",
          hint: "A worker runs on a runner that has all labels of the worker",
        },
        {
          name: "allow_admin",
          label: "Run workers with all scopes (*:*)",
          type: "checkbox",
          hint: "Gives the owner of the machine full access to this service",
        },
        ...(hasScope("write:secrets")
          ? [
            {
              name: "secrets",
              label: "Send stored secrets",
              type: "checkbox",
              hint: "The owner of the machine can read the secrets that its workers name",
            } as const,
          ]
          : []),
      ]}
    />
  );
}
