import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, ask, type JournalEvent } from "../../live/api.ts";
import { onEvent } from "../../live/events.ts";
import { useResource } from "../../live/resource.ts";
import { workerName } from "../../live/workers.ts";
import { Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Ago } from "../../parts/time.tsx";
import { SystemTabs } from "./system_tabs.tsx";

const PAGE_SIZE = 100;
const KEPT_MAX = 5_000;
const ROW_PX = 52;

/** The journal: the latest events, and every new one as it happens (contract 17). */
export function EventsPage() {
  const [{ kind }, change] = useAddress("kind");
  const [fresh, setFresh] = useState<JournalEvent[]>([]);
  useEffect(() => onEvent((event) => setFresh((before) => [event, ...before].slice(0, KEPT_MAX))), []);
  const read = useResource<JournalEvent[]>("events", async (signal) => {
    const headers = { accept: "application/json" };
    const page = await ask(
      api.GET("/api/events", { params: { query: { page_size: PAGE_SIZE } }, headers, signal }),
    );
    return typeof page === "string" ? [] : page;
  });
  const last = read.data?.at(-1)?.seq ?? 0;
  const all = [...fresh.filter(({ seq }) => seq > last), ...(read.data ?? []).toReversed()];
  const small = kind.toLowerCase();
  const shown = all.filter((event) => `${event.kind} ${event.actor}`.toLowerCase().includes(small));
  return (
    <>
      <Heading title="System" />
      <SystemTabs current="/console/system/events" />
      <div class="filters">
        <input
          type="search"
          aria-label="Kind or actor"
          placeholder="Kind or actor"
          value={kind}
          onInput={(event) => change({ kind: event.currentTarget.value })}
        />
        <p class="count">the latest {all.length}</p>
      </div>
      {read.data === undefined
        ? <Waiting refusal={read.refusal} />
        : shown.length === 0
        ? (
          <Empty title={small === "" ? "Nothing has happened yet." : "Nothing matches."}>
            {small !== "" && <button type="button" onClick={() => change({ kind: "" })}>Show all</button>}
          </Empty>
        )
        : (
          <Rows
            label="Events"
            count={shown.length}
            height={ROW_PX}
            row={(index) => {
              const event = shown[index];
              return event && <EventRow event={event} />;
            }}
          />
        )}
    </>
  );
}

function EventRow({ event }: { event: JournalEvent }) {
  const about = placeOf(event);
  return (
    <div class="row event">
      <span class="row-main">
        <span class="row-title">
          <code>{event.kind}</code>
        </span>
        <span class="row-note">
          {[actorText(event.actor), dataText(event.data)].filter(Boolean).join(" · ")}
        </span>
      </span>
      <span class="row-side">
        {about !== null && <Link href={about[0]}>{about[1]}</Link>}
        <Ago at={event.at} />
      </span>
    </div>
  );
}

function placeOf({ execution_id, task_id, message_id, worker_id }: JournalEvent): [string, string] | null {
  if (execution_id !== "") return [`/console/executions/${execution_id}`, "run"];
  if (task_id !== "") return [`/console/tasks/${task_id}`, "task"];
  if (message_id !== "") return [`/console/messages/${encodeURIComponent(message_id)}`, "message"];
  if (worker_id !== "") return [`/console/workers/${worker_id}`, "worker"];
  return null;
}

function actorText(actor: string): string {
  const worker = /^worker:(.+)$/.exec(actor)?.[1];
  return worker === undefined ? actor.replace(/^operator:|^user:/, "") : workerName(worker) || "a worker";
}

function dataText(data: Record<string, unknown>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== "" && value !== null)
    .map(([name, value]) => `${name}: ${valueText(value)}`)
    .join(", ");
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

// An id by its ending, as everywhere; the whole of it is in `svc ctl events`.
function valueText(value: unknown): string {
  if (typeof value === "string") return UUID.test(value) ? `…${value.slice(-6)}` : value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  return JSON.stringify(value);
}
