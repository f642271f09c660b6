import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { formatDuration } from "../../parts/format.ts";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { showToast } from "../../parts/toast.tsx";

interface DeliveriesProps {
  webhook: Schemas["Webhook"];
  reload: () => void;
}

export function Deliveries({ webhook: { id, cursor: delivered }, reload }: DeliveriesProps) {
  const [from, setFrom] = useState<number | null>(null);
  // No event of the journal reports an attempt, but each attempt follows one.
  const path = "/api/webhooks/{id_or_name}/deliveries";
  const list = useList(path, {}, () => true, { id_or_name: id });
  const writable = hasScope("write:webhooks");
  return (
    <Section
      title="Deliveries"
      actions={writable && (
        <Button class="small" press={() => setFrom(Math.max(1, delivered))}>Redeliver</Button>
      )}
    >
      <ShortListing
        list={list}
        empty="No deliveries yet. Use Test to send an event now."
        row={(delivery) => (
          <DeliveryRow delivery={delivery}>
            {writable && delivery.seq > 0 && (
              <Button
                class="small"
                label={`Redeliver from event ${delivery.seq}`}
                press={() => setFrom(delivery.seq)}
              >
                Redeliver
              </Button>
            )}
          </DeliveryRow>
        )}
      />
      {from !== null && (
        <RedeliveryForm
          webhookId={id}
          from={from}
          onClose={() => (setFrom(null), list.reload(), reload())}
        />
      )}
    </Section>
  );
}

interface RowProps {
  delivery: Schemas["WebhookDelivery"];
  children: preact.ComponentChildren;
}

function DeliveryRow({ delivery, children }: RowProps) {
  const { seq, kind, attempt, status, error, duration_ms, created_at } = delivery;
  return (
    <Row
      status={error === "" ? "sent" : "failed"}
      title={<code>{kind}</code>}
      notes={[
        seq === 0 ? "test" : `event ${seq}`,
        attempt > 1 && `attempt ${attempt}`,
        error || `returned ${status}`,
        formatDuration(duration_ms),
      ]}
      side={<Ago at={created_at} />}
    >
      {children}
    </Row>
  );
}

interface FormProps {
  webhookId: string;
  from: number;
  onClose: () => void;
}

function RedeliveryForm({ webhookId, from, onClose }: FormProps) {
  const form = useForm({
    initial: { after: String(from) },
    async send({ after }) {
      const params = { path: { id_or_name: webhookId } };
      const body = { after: Math.max(0, Number(after) - 1) };
      await load(api.POST("/api/webhooks/{id_or_name}/replay", { params, body }));
      showToast("Redelivery started");
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title="Redeliver events"
      action="Redeliver"
      onClose={onClose}
      narrow
      fields={[{ name: "after", label: "First event number", required: true, autofocus: true }]}
    >
      <p>
        All matching events from this number on are sent again. The receiver recognizes an event by its{" "}
        <code>webhook-id</code>, which does not change.
      </p>
    </FormDialog>
  );
}
