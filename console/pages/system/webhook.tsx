import { Pencil, Send, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { showToast } from "../../parts/toast.tsx";
import { Deliveries } from "./deliveries.tsx";
import { WebhookForm } from "./webhook_form.tsx";
import { getState } from "./webhooks.tsx";

type Webhook = Schemas["Webhook"];

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet("/api/webhooks/{id_or_name}", { path: { id_or_name: id } }, () => true);
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/system/webhooks", name: "Webhooks" }}
      title={({ name }) => name}
      actions={(webhook) => hasScope("write:webhooks") && <Actions webhook={webhook} reload={read.reload} />}
    >
      {(webhook) => (
        <>
          {webhook.disabled_reason !== "" && !webhook.enabled && (
            <Notice tone="warn">Disabled: {webhook.disabled_reason}</Notice>
          )}
          <WebhookFacts webhook={webhook} />
          <Deliveries webhook={webhook} reload={read.reload} />
        </>
      )}
    </DetailPage>
  );
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const { id, url, events, attempt, next_attempt_at, cursor, origin, created_at } = webhook;
  return (
    <Facts
      values={{
        "Status": <Status value={getState(webhook)} />,
        "URL": <code>{url}</code>,
        "Events": <code>{events.join(", ")}</code>,
        "Last delivered": `event ${cursor}`,
        "Next attempt": attempt > 0 && (
          <>
            number {attempt + 1}, <Ago at={next_attempt_at} />
          </>
        ),
        "Created": (
          <>
            <Ago at={created_at} />
            {origin === "config" && " by the configuration"}
          </>
        ),
        "ID": <ShortId value={id} subject="webhook id" />,
      }}
      wide={["URL", "Events"]}
    />
  );
}

function Actions({ webhook, reload }: { webhook: Webhook; reload: () => void }) {
  const { id, name, origin } = webhook;
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  const params = { path: { id_or_name: id } };
  async function test(): Promise<void> {
    const { status, error } = await load(api.POST("/api/webhooks/{id_or_name}/test", { params }));
    showToast(error === "" ? `The receiver returned ${status}` : `Delivery failed: ${error}`, error !== "");
  }
  return (
    <>
      <Button icon={Send} press={test} after={reload}>Test</Button>
      <Button icon={Pencil} press={() => setEditing(true)}>Edit</Button>
      {origin !== "config" && (
        <Button
          class="danger"
          icon={Trash2}
          label={`Delete ${name}`}
          title="Delete"
          confirm={{
            title: `Delete ${name}?`,
            text: "Events are no longer sent to its URL, and the list of its deliveries is lost.",
            action: "Delete webhook",
          }}
          press={() => load(api.DELETE("/api/webhooks/{id_or_name}", { params }))}
          done={`${name} deleted`}
          after={(succeeded) => succeeded && navigate("/console/system/webhooks")}
        />
      )}
      {editing && <WebhookForm webhook={webhook} onClose={() => (setEditing(false), reload())} />}
    </>
  );
}
