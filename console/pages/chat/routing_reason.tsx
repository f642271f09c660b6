import { Route as RouteIcon } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { findWorkerName } from "../../live/workers.ts";
import { IconButton } from "../../parts/button.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";

export function RoutingReason({ messageId }: { messageId: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <IconButton
        icon={RouteIcon}
        small
        aria-expanded={open}
        label="Why this worker?"
        title="Why this worker?"
        onClick={() => setOpen(!open)}
      />
      {open && <Reason messageId={messageId} />}
    </>
  );
}

function Reason({ messageId: id }: { messageId: string }) {
  const read = useGet("/api/messages/{id}/trace", { path: { id } }, (event) => event.message_id === id);
  if (read.data === undefined) return <ErrorNotice error={read.error} />;
  return (
    <span class="why" role="note">
      {formatReason(read.data)} <Link href={`/console/messages/${encodeURIComponent(id)}`}>View trace</Link>
    </span>
  );
}

function formatReason({ routing, tasks, message }: Schemas["MessageTrace"]): string {
  const names = [...new Set(tasks.map(({ worker_id }) => findWorkerName(worker_id) || "a deleted worker"))];
  const run = routing.at(-1);
  if (run === undefined) return message.error || "Not routed yet.";
  const routed = names.length === 0 ? "Routed to no worker" : `Routed to ${names.join(", ")}`;
  const by = run.engine === "rules" ? "by rules" : "by the coordinator";
  return [`${routed} ${by}`, run.error || run.reason].filter(Boolean).join(": ") + ".";
}
