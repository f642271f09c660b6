import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { useTimeRange } from "../../live/time_range.ts";
import { findWorkerName } from "../../live/workers.ts";
import { LinkButton } from "../../parts/button.tsx";
import { formatActor, formatPlatform, takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row, TIME_FILTER } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { formatPreview } from "../../parts/plain_text.ts";
import { Tabs } from "../../parts/tabs.tsx";
import { Ago } from "../../parts/time.tsx";

const INBOUND = "/console/messages";
const OUTBOUND = "/console/messages?way=out";
const INBOUND_STATUSES = ["received", "feeding", "bee_processed", "merged", "failed"];
const OUTBOUND_STATUSES = [["", "All statuses"], ["sent", "sent"], ["failed", "not delivered"]] as const;
const SOURCES = [
  ["", "All senders"],
  ["worker", "Workers"],
  ["bee", "Coordinator"],
  ["system", "Service"],
] as const;

export function Page() {
  const [{ way }] = useAddress("way");
  return (
    <>
      <Heading title="Messages" />
      <Tabs
        label="Messages"
        current={way === "out" ? OUTBOUND : INBOUND}
        tabs={[[INBOUND, "Inbound"], [OUTBOUND, "Outbound"]]}
      />
      {way === "out" ? <OutboundList /> : <InboundList />}
    </>
  );
}

function InboundList() {
  const [values, change] = useAddress("text", "status", "since", "from", "to");
  const { text, status } = values;
  const { from, to } = useTimeRange(values);
  const list = useList(
    "/api/messages/inbound",
    { text, status, received_from: from, received_to: to },
    /^message\./,
  );
  return (
    <FilteredListing
      filters={[
        { name: "text", label: "Search messages" },
        { name: "status", label: "Status", options: listStatusOptions("All statuses", INBOUND_STATUSES) },
        TIME_FILTER,
      ]}
      values={values}
      change={change}
      list={list}
      label="Inbound messages"
      empty={<NoMessages />}
      row={({ id, status, content, media, platform, sender_name, sender, error, received_at }) => (
        <Row
          href={`/console/messages/${encodeURIComponent(id)}`}
          status={status}
          title={formatPreview(content) || media?.original_name}
          notes={[formatPlatform(platform), sender_name || formatActor(sender), takeFirstLine(error)]}
          side={<Ago at={received_at} />}
        />
      )}
    />
  );
}

function OutboundList() {
  const [values, change] = useAddress("text", "status", "source", "since", "from", "to");
  const { text, status, source } = values;
  const { from, to } = useTimeRange(values);
  const list = useList(
    "/api/messages/outbound",
    { text, status, source_type: source, sent_from: from, sent_to: to },
    /^message\.(sent|undelivered)$/,
  );
  return (
    <FilteredListing
      filters={[
        { name: "text", label: "Search messages" },
        { name: "status", label: "Status", options: OUTBOUND_STATUSES },
        { name: "source", label: "Sender", options: SOURCES },
        TIME_FILTER,
      ]}
      values={values}
      change={change}
      list={list}
      label="Outbound messages"
      empty={<NoMessages />}
      row={(one) => (
        <Row
          href={`/console/messages/${encodeURIComponent(one.message_id)}`}
          status={one.status === "failed" ? "undelivered" : one.status}
          title={formatPreview(one.content) || one.media?.original_name}
          notes={[formatPlatform(one.platform), formatSender(one), takeFirstLine(one.error)]}
          side={<Ago at={one.sent_at ?? one.created_at} />}
        />
      )}
    />
  );
}

function formatSender({ source_type, source_id }: Schemas["OutboundMessage"]): string {
  if (source_type === "worker") return findWorkerName(source_id) || "worker";
  return source_type === "bee" ? "coordinator" : "service";
}

function NoMessages() {
  return (
    <Empty title="No messages.">
      <p>Messages from the chat and from other platforms appear here.</p>
      <LinkButton href="/console/chat">Open the chat</LinkButton>
    </Empty>
  );
}
