import { Link } from "wouter-preact";
import { api, askPage, type Schemas } from "../../live/api.ts";
import { filtersOf, useAddress } from "../../live/address.ts";
import { useList } from "../../live/resource.ts";
import { workerName } from "../../live/workers.ts";
import { Choice } from "../../parts/field.tsx";
import { firstLine, platformText, whoText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Status, statusWord } from "../../parts/status.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { Ago } from "../../parts/time.tsx";

type Inbound = Schemas["InboundMessage"];
type Outbound = Schemas["OutboundMessage"];

const PAGE_SIZE = 100;
const IN = ["received", "feeding", "bee_processed", "merged", "failed"] as const;
const SOURCES = [["", "From everybody"], ["worker", "From workers"], ["bee", "From the coordinator"], [
  "system",
  "From the service",
]] as const;

/** Messages of all platforms, in and out, newest first (contract 17). */
export function MessagesPage() {
  const [{ way }] = useAddress("way");
  return (
    <>
      <Heading title="Messages" />
      <Tabs
        label="Messages"
        current={way === "out" ? "/console/messages?way=out" : "/console/messages"}
        tabs={[["/console/messages", "In"], ["/console/messages?way=out", "Out"]]}
      />
      {way === "out" ? <OutboundList /> : <InboundList />}
    </>
  );
}

function InboundList() {
  const [{ status }, change] = useAddress("status");
  const list = useList<Inbound>(
    status,
    (cursor, signal) => {
      const query = { page_size: PAGE_SIZE, ...filtersOf({ status, cursor: cursor ?? "" }) };
      return askPage(api.GET("/api/messages/inbound", { params: { query }, signal }));
    },
    ({ kind }) => kind.startsWith("message."),
  );
  return (
    <>
      <div class="filters">
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={[["", "Every status"], ...IN.map((one) => [one, statusWord(one)] as const)]}
        />
        {list.data !== undefined && <p class="count">{list.total} in all</p>}
      </div>
      <Listing
        list={list}
        empty={NONE}
        label="Messages that came in"
        row={(one) => (
          <MessageRow
            id={one.id}
            status={one.status}
            text={one.content}
            file={one.media?.name}
            note={[platformText(one.platform), one.sender_name || whoText(one.sender), firstLine(one.error)]}
            at={one.received_at}
          />
        )}
      />
    </>
  );
}

function OutboundList() {
  const [{ status, source }, change] = useAddress("status", "source");
  const list = useList<Outbound>(
    `${status} ${source}`,
    (cursor, signal) => {
      const query = {
        page_size: PAGE_SIZE,
        ...filtersOf({ status, source_type: source, cursor: cursor ?? "" }),
      };
      return askPage(api.GET("/api/messages/outbound", { params: { query }, signal }));
    },
    ({ kind }) => /^message\.(sent|undelivered)$/.test(kind),
  );
  return (
    <>
      <div class="filters">
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={[["", "Every status"], ["sent", "sent"], ["failed", "not delivered"]]}
        />
        <Choice
          bare
          label="From"
          value={source}
          onChange={(value) => change({ source: value })}
          options={SOURCES}
        />
        {list.data !== undefined && <p class="count">{list.total} in all</p>}
      </div>
      <Listing
        list={list}
        empty={NONE}
        label="Messages that went out"
        row={(one) => (
          <MessageRow
            id={one.message_id}
            status={one.status === "failed" ? "undelivered" : one.status}
            text={one.content}
            file={one.media?.name}
            note={[platformText(one.platform), sourceName(one), firstLine(one.error)]}
            at={one.sent_at ?? one.created_at}
          />
        )}
      />
    </>
  );
}

function sourceName({ source_type, source_id }: Outbound): string {
  if (source_type === "worker") return workerName(source_id) || "a worker";
  return source_type === "bee" ? "the coordinator" : "the service";
}

const NONE = (
  <Empty title="No messages.">
    <p>What is written in the chat and on other platforms appears here.</p>
    <Link href="/console/chat" class="button">Open the chat</Link>
  </Empty>
);

interface MessageRowProps {
  id: string;
  status: string;
  text: string;
  file: string | undefined;
  note: string[];
  at: number;
}

function MessageRow({ id, status, text, file, note, at }: MessageRowProps) {
  return (
    <Link href={`/console/messages/${encodeURIComponent(id)}`} class="row">
      <Status of={status} bare />
      <span class="row-main">
        <span class="row-title">{firstLine(text) || file}</span>
        <span class="row-note">{note.filter(Boolean).join(" · ")}</span>
      </span>
      <span class="row-side">
        <Ago at={at} />
      </span>
    </Link>
  );
}
