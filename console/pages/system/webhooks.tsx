import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, askPage, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { Status } from "../../parts/status.tsx";
import { SystemTabs } from "./system_tabs.tsx";
import { WebhookForm } from "./webhook_form.tsx";

type Webhook = Schemas["Webhook"];

const PAGE_SIZE = 100;

/** Addresses outside that are told what happens here (contract 11). */
export function WebhooksPage() {
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Schemas["WebhookCreated"] | null>(null);
  const list = useList<Webhook>("webhooks", (cursor, signal) => {
    const query = cursor === undefined ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
    return askPage(api.GET("/api/webhooks", { params: { query }, signal }));
  }, ({ kind }) => kind.startsWith("webhook."));
  return (
    <>
      <Heading title="System">
        {may("write:webhooks") && (
          <button type="button" class="primary" onClick={() => setMaking(true)}>
            <Plus size={16} aria-hidden="true" /> New webhook
          </button>
        )}
      </Heading>
      <SystemTabs current="/console/system/webhooks" />
      <Listing
        list={list}
        label="Webhooks"
        row={(webhook) => <WebhookRow webhook={webhook} />}
        empty={
          <Empty title="Nobody outside is told of anything.">
            <p>A webhook sends what happens here, such as a failed run, to an address of yours, signed.</p>
          </Empty>
        }
      />
      {making && (
        <WebhookForm
          webhook={null}
          onClose={(created) => {
            setMaking(false);
            if (created !== undefined) setMade(created);
            list.reload();
          }}
        />
      )}
      {made !== null && (
        <SecretOnce
          title={`The secret of ${made.name}`}
          text="Whoever gets the calls checks their signature with it, by Standard Webhooks."
          secret={made.secret}
          onClose={() => setMade(null)}
        />
      )}
    </>
  );
}

function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { id, name, url, events } = webhook;
  return (
    <Link href={`/console/system/webhooks/${id}`} class="row">
      <Status of={stateOf(webhook)} bare />
      <span class="row-main">
        <span class="row-title">{name}</span>
        <span class="row-note">{url}</span>
      </span>
      <span class="row-side">
        <span>{events.join(", ")}</span>
      </span>
    </Link>
  );
}

/** How a webhook stands, in a word that Status knows. */
export function stateOf({ enabled, attempt }: Webhook): string {
  if (!enabled) return "off";
  return attempt > 0 ? "retrying" : "sending";
}
