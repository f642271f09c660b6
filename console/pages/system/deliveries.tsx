import { useState } from "preact/hooks";
import { api, ask, askPage, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { durationText } from "../../parts/format.ts";
import { Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { say } from "../../parts/toast.tsx";

type Delivery = Schemas["WebhookDelivery"];

const PAGE_SIZE = 50;

interface DeliveriesProps {
  webhook: Schemas["Webhook"];
  reload: () => void;
}

/** Every try of a webhook, the latest first; from any event on, all can be delivered again (contract 11). */
export function Deliveries({ webhook, reload }: DeliveriesProps) {
  const { id, cursor: delivered } = webhook;
  const [after, setAfter] = useState<number | null>(null);
  // A try is no event of the journal, and follows one.
  const list = useList<Delivery>(id, (cursor, signal) => {
    const query = { page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    const params = { path: { id_or_name: id }, query };
    return askPage(api.GET("/api/webhooks/{id_or_name}/deliveries", { params, signal }));
  }, () => true);
  const items = list.data;
  const mayReplay = may("write:webhooks");
  return (
    <section>
      <div class="section-head">
        <h2>Deliveries</h2>
        {mayReplay && (
          <button
            type="button"
            class="small"
            onClick={() => setAfter(Math.max(0, delivered - 1))}
          >
            Deliver again
          </button>
        )}
      </div>
      {items === undefined
        ? <Waiting refusal={list.refusal} />
        : items.length === 0
        ? <p class="quiet">Nothing was sent yet. A test sends an event at once.</p>
        : (
          <ul class="list">
            {items.map((one) => (
              <DeliveryRow
                key={one.id}
                delivery={one}
                again={mayReplay && one.seq > 0 ? () => setAfter(one.seq - 1) : null}
              />
            ))}
          </ul>
        )}
      {items !== undefined && Number.parseInt(list.total) > items.length && (
        <button type="button" onClick={list.more}>More</button>
      )}
      {after !== null && (
        <ReplayForm
          webhookId={id}
          after={after}
          onClose={() => {
            setAfter(null);
            list.reload();
            reload();
          }}
        />
      )}
    </section>
  );
}

function DeliveryRow({ delivery, again }: { delivery: Delivery; again: (() => void) | null }) {
  const { seq, kind, attempt, status, error, duration_ms, created_at } = delivery;
  const words = [
    seq === 0 ? "a test" : `event ${seq}`,
    attempt > 1 ? `try ${attempt}` : "",
    error || `answered ${status}`,
    durationText(duration_ms),
  ];
  return (
    <li class="row whole">
      <Status of={error === "" ? "sent" : "failed"} bare />
      <span class="row-main">
        <span class="row-title">
          <code>{kind}</code>
        </span>
        <span class="row-note">{words.filter(Boolean).join(" · ")}</span>
      </span>
      <span class="row-side">
        <Ago at={created_at} />
      </span>
      {again !== null && (
        <button type="button" class="small" aria-label={`Deliver again from event ${seq}`} onClick={again}>
          Deliver again
        </button>
      )}
    </li>
  );
}

interface ReplayProps {
  webhookId: string;
  after: number;
  onClose: () => void;
}

function ReplayForm({ webhookId, after, onClose }: ReplayProps) {
  const [from, setFrom] = useState(String(after + 1));
  const sent = useSend(async () => {
    const params = { path: { id_or_name: webhookId } };
    const body = { after: Math.max(0, Number(from) - 1) };
    await ask(api.POST("/api/webhooks/{id_or_name}/replay", { params, body }));
    say("It is being delivered again");
    onClose();
  });
  return (
    <DialogForm title="Deliver again" action="Deliver again" sent={sent} onClose={onClose} narrow>
      <p>
        Everything from this event on that it is told of is sent once more. Whoever gets it knows an event by
        its <code>webhook-id</code>, which stays the same.
      </p>
      <TextField
        label="From event number"
        name="after"
        value={from}
        onInput={setFrom}
        refusal={sent.refusal}
        required
        autofocus
      />
    </DialogForm>
  );
}
