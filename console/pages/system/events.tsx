import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { onEvent } from "../../live/events.ts";
import { useResource } from "../../live/resource.ts";
import { findWorkerName } from "../../live/workers.ts";
import { formatActor } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { SystemHead } from "./system_head.tsx";

type JournalEvent = Schemas["Event"];

const PAGE_SIZE = 100;
const EVENTS_MAX = 5_000;
const ROW_PX = 44;

export function Page() {
  const [values, change] = useAddress("kind");
  const [fresh, setFresh] = useState<JournalEvent[]>([]);
  useEffect(() => onEvent((event) => setFresh((before) => [event, ...before].slice(0, EVENTS_MAX))), []);
  const read = useResource<JournalEvent[]>("events", async (signal) => {
    const headers = { accept: "application/json" };
    const params = { query: { page_size: PAGE_SIZE } };
    const page = await load(api.GET("/api/events", { params, headers, signal }));
    return typeof page === "string" ? [] : page;
  });
  const last = read.data?.at(-1)?.seq ?? 0;
  const all = [...fresh.filter(({ seq }) => seq > last), ...(read.data ?? []).toReversed()];
  const text = values.kind.toLowerCase();
  const matches = all.filter(({ kind, actor }) => `${kind} ${actor}`.toLowerCase().includes(text));
  return (
    <>
      <SystemHead current="/console/system/events" />
      <FilteredListing
        filters={[{ name: "kind", label: "Kind or actor" }]}
        values={values}
        change={change}
        count={`latest ${all.length}`}
        list={{ ...read, data: read.data && matches }}
        label="Events"
        height={ROW_PX}
        row={(event) => <EventRow event={event} />}
        empty={<Empty title="No events yet." />}
      />
    </>
  );
}

function EventRow({ event }: { event: JournalEvent }) {
  const subject = findSubject(event);
  return (
    <Row
      title={<code>{event.kind}</code>}
      notes={[formatEventActor(event.actor), formatData(event.data)]}
      side={
        <>
          {subject !== null && <Link href={subject[0]}>{subject[1]}</Link>}
          <Ago at={event.at} />
        </>
      }
    />
  );
}

function findSubject(event: JournalEvent): [href: string, name: string] | null {
  const { execution_id, task_id, message_id, worker_id } = event;
  if (execution_id !== "") return [`/console/executions/${execution_id}`, "run"];
  if (task_id !== "") return [`/console/tasks/${task_id}`, "task"];
  if (message_id !== "") return [`/console/messages/${encodeURIComponent(message_id)}`, "message"];
  return worker_id === "" ? null : [`/console/workers/${worker_id}`, "worker"];
}

function formatEventActor(actor: string): string {
  const worker = /^worker:(.+)$/.exec(actor)?.[1];
  return worker === undefined ? formatActor(actor) : findWorkerName(worker) || "a worker";
}

function formatData(data: Record<string, unknown>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== "" && value !== null)
    .map(([name, value]) => `${name}: ${formatValue(value)}`)
    .join(", ");
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function formatValue(value: unknown): string {
  if (typeof value === "string") return UUID.test(value) ? `…${value.slice(-6)}` : value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  return JSON.stringify(value);
}
