import { Link } from "wouter-preact";
import { api, ask, askPage } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { workers } from "../../live/workers.ts";
import { firstLine, timeText } from "../../parts/format.ts";
import { Heading } from "../../parts/heading.tsx";
import { Empty, Loading, Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { StartPage } from "../start/start.tsx";
import { ExecutionRow } from "../work/execution_row.tsx";

const DAY_MS = 86_400_000;
const SHOWN = 20;

/** What needs a person, and what goes on; an empty service begins here (contract 17). */
export function InboxPage() {
  const all = workers.value;
  if (all === undefined) return <Loading />;
  if (all.length === 0) return <StartPage />;
  return <Inbox />;
}

function Inbox() {
  const read = useResource(
    "inbox",
    readInbox,
    ({ kind }) => /^(execution|message|engine|worker)\./.test(kind),
  );
  const inbox = read.data;
  return (
    <>
      <Heading title="Inbox">
        <Link href="/console/chat" class="button primary">Open the chat</Link>
      </Heading>
      {inbox === undefined ? <Waiting refusal={read.refusal} /> : (
        <div class="scrolled">
          <Needs inbox={inbox} />
          <section>
            <h2>Going on now</h2>
            {inbox.running.length === 0
              ? <p class="quiet">Nothing runs at the moment.</p>
              : (
                <div class="list">
                  {inbox.running.map((one) => <ExecutionRow key={one.id} execution={one} />)}
                </div>
              )}
          </section>
        </div>
      )}
    </>
  );
}

type InboxData = Awaited<ReturnType<typeof readInbox>>;

async function readInbox(signal: AbortSignal) {
  const since = Date.now() - DAY_MS;
  const get = <T,>(query: T) => ({ params: { query: { page_size: SHOWN, ...query } }, signal });
  const [failed, running, lost, undelivered, overview] = await Promise.all([
    askPage(api.GET("/api/executions", get({ status: "failed", completed_from: since }))),
    askPage(api.GET("/api/executions", get({ status: "pending,running" }))),
    askPage(api.GET("/api/messages/inbound", get({ status: "failed", received_from: since }))),
    askPage(api.GET("/api/messages/outbound", get({ status: "failed" }))),
    ask(api.GET("/api/system/overview", { signal })),
  ]);
  return {
    failed: failed.items.filter(({ failure }) => failure !== "cancelled"),
    running: running.items,
    lost: lost.items,
    undelivered: undelivered.items,
    limited: overview.limited_engines,
    paused: overview.workers.paused,
  };
}

function Needs({ inbox }: { inbox: InboxData }) {
  const { failed, lost, undelivered, limited, paused } = inbox;
  const none = failed.length + lost.length + undelivered.length + limited.length + paused === 0;
  return (
    <section>
      <h2>Needs you</h2>
      {none
        ? (
          <Empty title="Nothing needs you.">
            <p>Failures and what could not be delivered appear here.</p>
          </Empty>
        )
        : (
          <div class="list">
            {limited.map(({ engine, until }) => (
              <Link key={engine} href="/console/system" class="row">
                <Status of="limited" bare />
                <span class="row-main">
                  <span class="row-title">{engine} waits for its provider's limit</span>
                  <span class="row-note">until {timeText(until)}</span>
                </span>
              </Link>
            ))}
            {paused > 0 && (
              <Link href="/console/workers?status=paused" class="row">
                <Status of="paused" bare />
                <span class="row-main">
                  <span class="row-title">
                    {paused === 1 ? "One worker is paused" : `${paused} workers are paused`}
                  </span>
                  <span class="row-note">Their tasks wait until they go on</span>
                </span>
              </Link>
            )}
            {failed.map((one) => <ExecutionRow key={one.id} execution={one} />)}
            {lost.map((one) => (
              <MessageNeed
                key={one.id}
                id={one.id}
                title={one.content}
                note={one.error}
                at={one.received_at}
                of="failed"
              />
            ))}
            {undelivered.map((one) => (
              <MessageNeed
                key={one.id}
                id={one.message_id}
                title={one.content}
                note={one.error}
                at={one.created_at}
                of="undelivered"
              />
            ))}
          </div>
        )}
    </section>
  );
}

function MessageNeed(
  { id, title, note, at, of }: { id: string; title: string; note: string; at: number; of: string },
) {
  return (
    <Link href={`/console/messages/${id}`} class="row">
      <Status of={of} bare />
      <span class="row-main">
        <span class="row-title">{firstLine(title)}</span>
        <span class="row-note">{firstLine(note)}</span>
      </span>
      <span class="row-side">
        <Ago at={at} />
      </span>
    </Link>
  );
}
