import { Pencil, Send, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { Absent, Heading } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt, say } from "../../parts/toast.tsx";
import { Deliveries } from "./deliveries.tsx";
import { WebhookForm } from "./webhook_form.tsx";
import { stateOf } from "./webhooks.tsx";

type Webhook = Schemas["Webhook"];

const ABOVE = { href: "/console/system/webhooks", name: "Webhooks" };

/** One webhook: where it sends what, how it goes, and every try (contract 11). */
export function WebhookPage({ params: { id = "" } }: PageProps) {
  const [editing, setEditing] = useState(false);
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/webhooks/{id_or_name}", { params: { path: { id_or_name: id } }, signal })),
    () => true,
  );
  const webhook = read.data;
  if (webhook === undefined) return <Absent refusal={read.refusal} above={ABOVE} />;
  return (
    <>
      <Heading title={webhook.name} above={ABOVE}>
        {may("write:webhooks") && (
          <Actions
            webhook={webhook}
            edit={() => setEditing(true)}
            reload={read.reload}
          />
        )}
      </Heading>
      <div class="scrolled">
        {webhook.disabled_reason !== "" && !webhook.enabled && (
          <p class="notice warn">It was switched off: {webhook.disabled_reason}</p>
        )}
        <WebhookFacts webhook={webhook} />
        <Deliveries webhook={webhook} reload={read.reload} />
      </div>
      {editing && (
        <WebhookForm
          webhook={webhook}
          onClose={() => {
            setEditing(false);
            read.reload();
          }}
        />
      )}
    </>
  );
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const { id, url, events, attempt: tries, next_attempt_at, cursor, origin, created_at } = webhook;
  return (
    <Facts>
      <Fact name="Status">
        <Status of={stateOf(webhook)} />
      </Fact>
      <Fact name="Address" wide>
        <code class="path">{url}</code>
      </Fact>
      <Fact name="Events" wide>
        <code class="path">{events.join(", ")}</code>
      </Fact>
      <Fact name="Delivered up to">event {cursor}</Fact>
      <Fact name="Next try">
        {tries > 0 && (
          <>
            number {tries + 1}, <Ago at={next_attempt_at} />
          </>
        )}
      </Fact>
      <Fact name="Made">
        <Ago at={created_at} />
        {origin === "config" && " by the configuration"}
      </Fact>
      <Fact name="Id">
        <ShortId value={id} what="webhook id" />
      </Fact>
    </Facts>
  );
}

interface ActionsProps {
  webhook: Webhook;
  edit: () => void;
  reload: () => void;
}

function Actions({ webhook: { id, name, origin }, edit, reload }: ActionsProps) {
  const [, navigate] = useLocation();
  const params = { path: { id_or_name: id } };
  async function test(): Promise<void> {
    await attempt(async () => {
      const { status, error } = await ask(api.POST("/api/webhooks/{id_or_name}/test", { params }));
      say(error === "" ? `It answered ${status}` : `It does not work: ${error}`, error !== "");
    });
    reload();
  }
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Delete ${name}?`,
      text: "Nothing is sent to its address any more, and its tries are no longer listed.",
      action: "Delete the webhook",
    });
    const call = () => ask(api.DELETE("/api/webhooks/{id_or_name}", { params }));
    if (yes && await attempt(call, `${name} is deleted`)) navigate("/console/system/webhooks");
  }
  return (
    <>
      <Act run={() => test()}>
        <Send size={16} aria-hidden="true" /> Test
      </Act>
      <button type="button" onClick={edit}>
        <Pencil size={16} aria-hidden="true" /> Edit
      </button>
      {origin !== "config" && (
        <Act
          class="danger"
          run={() => remove()}
          label={`Delete ${name}`}
          title="Delete"
        >
          <Trash2 size={16} aria-hidden="true" />
        </Act>
      )}
    </>
  );
}
