import { Route as RouteIcon } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { workerName } from "../../live/workers.ts";
import { RefusalNotice } from "../../parts/notice.tsx";

type Trace = Schemas["MessageTrace"];

/** Who a message went to, and why; read when somebody asks (contract 17). */
export function Why({ messageId }: { messageId: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class="icon small"
        aria-expanded={open}
        aria-label="Why this worker?"
        title="Why this worker?"
        onClick={() => setOpen(!open)}
      >
        <RouteIcon size={14} aria-hidden="true" />
      </button>
      {open && <Reason messageId={messageId} />}
    </>
  );
}

function Reason({ messageId: id }: { messageId: string }) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/messages/{id}/trace", { params: { path: { id } }, signal })),
    (event) => event.message_id === id,
  );
  if (read.data === undefined) return <RefusalNotice refusal={read.refusal} />;
  return (
    <span class="why" role="note">
      {wordsOf(read.data)}{" "}
      <Link href={`/console/messages/${encodeURIComponent(id)}`}>All that happened with it</Link>
    </span>
  );
}

function wordsOf({ routing, tasks, message }: Trace): string {
  const names = [...new Set(tasks.map(({ worker_id }) => workerName(worker_id) || "a deleted worker"))];
  const run = routing.at(-1);
  if (run === undefined) return message.error || "It was not given to anybody yet.";
  const who = names.length === 0 ? "It went to nobody" : `It went to ${names.join(", ")}`;
  const how = run.engine === "rules" ? "by rules" : "by the coordinator";
  return [`${who}, ${how}`, run.error || run.reason].filter(Boolean).join(": ") + ".";
}
