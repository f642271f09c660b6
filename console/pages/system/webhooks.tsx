import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, buildQuery, loadPage, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { Listing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { SecretDialog } from "../../parts/secret.tsx";
import { SystemTabs } from "./system_tabs.tsx";
import { WebhookForm } from "./webhook_form.tsx";

/** The webhooks. */
export function Page() {
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState<Schemas["WebhookCreated"] | null>(null);
  const list = useList<Schemas["Webhook"]>("webhooks", (cursor, signal) => {
    return loadPage(api.GET("/api/webhooks", { params: { query: buildQuery({}, cursor) }, signal }));
  }, /^webhook\./);
  return (
    <>
      <Heading title="System">
        {hasScope("write:webhooks") && (
          <Button class="primary" icon={Plus} press={() => setCreating(true)}>New webhook</Button>
        )}
      </Heading>
      <SystemTabs current="/console/system/webhooks" />
      <Listing
        list={list}
        label="Webhooks"
        row={(webhook) => (
          <Row
            href={`/console/system/webhooks/${webhook.id}`}
            status={getState(webhook)}
            title={webhook.name}
            notes={[webhook.url]}
            side={<span>{webhook.events.join(", ")}</span>}
          />
        )}
        empty={
          <Empty title="No webhooks yet.">
            <p>A webhook sends signed events, e.g. a failed run, to a URL of yours.</p>
          </Empty>
        }
      />
      {creating && (
        <WebhookForm
          webhook={null}
          onClose={(webhook) => {
            setCreating(false);
            if (webhook !== undefined) setCreated(webhook);
            list.reload();
          }}
        />
      )}
      {created !== null && (
        <SecretDialog
          title={`Secret of ${created.name}`}
          text="The receiver verifies the signature of each call with it, as defined by Standard Webhooks."
          secret={created.secret}
          onClose={() => setCreated(null)}
        />
      )}
    </>
  );
}

/** Returns the state of a webhook. */
export function getState({ enabled, attempt }: Schemas["Webhook"]): string {
  if (!enabled) return "off";
  return attempt > 0 ? "retrying" : "sending";
}
