import type { Schemas } from "../../live/api.ts";
import { workers } from "../../live/workers.ts";

/** The sender of a reply. Unknown without the scope to read messages. */
export type Sender = Pick<Schemas["OutboundMessage"], "source_type" | "source_id">;

const HUES = 12;

/** The name of a worker at its reply, with a color that it keeps. */
export function SenderName({ sender: { source_type, source_id } }: { sender: Sender }) {
  if (source_type !== "worker") {
    return <p class="sender-name quiet">{source_type === "bee" ? "Coordinator" : "Service"}</p>;
  }
  const name = workers.value?.find(({ id }) => id === source_id)?.name ?? "Deleted worker";
  return <WorkerName id={source_id} name={name} />;
}

export function WorkerName({ id, name }: { id: string; name: string }) {
  return (
    <p class="sender-name" style={{ "--hue": chooseHue(id) }}>
      <span class="avatar" aria-hidden="true">{[...name][0]?.toUpperCase()}</span>
      <span>{name}</span>
    </p>
  );
}

// The end of an id is random. Its start is a time, which workers of the same hour share.
function chooseHue(id: string): number {
  return (Number.parseInt(id.slice(-4), 16) || 0) % HUES * (360 / HUES);
}
