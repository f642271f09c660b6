import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import type { Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Listing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { SystemHead } from "./system_head.tsx";
import { WebhookForm } from "./webhook_form.tsx";

export function Page() {
  const [creating, setCreating] = useState(false);
  const list = useList("/api/webhooks", {}, /^webhook\./);
  return (
    <>
      <SystemHead current="/console/system/webhooks">
        <Button class="primary" icon={Plus} press={() => setCreating(true)} scope="write:webhooks">
          New webhook
        </Button>
      </SystemHead>
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
      {creating && <WebhookForm webhook={null} onClose={() => (setCreating(false), list.reload())} />}
    </>
  );
}

export function getState({ enabled, attempt }: Schemas["Webhook"]): string {
  if (!enabled) return "off";
  return attempt > 0 ? "retrying" : "sending";
}
