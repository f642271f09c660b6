import { api, load, loadAll, type Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import type { Sender } from "./sender.tsx";

/** The messages of a conversation, with what other lists know about its replies. */
export interface History {
  messages: Schemas["LocalMessage"][];
  /** Senders of replies by the ids of the replies. */
  senders: ReadonlyMap<string, Sender>;
  failures: ReadonlyMap<string, Schemas["Execution"]>;
}

const PAGE_SIZE = 100;

/** Reads the latest messages of a local conversation. */
export async function readHistory(id: string, limit: number, signal: AbortSignal): Promise<History> {
  const session_key = `local:${id}`;
  const [messages, replies, failures] = await Promise.all([
    load(
      api.GET("/api/local/sessions/{id}/messages", { params: { path: { id }, query: { limit } }, signal }),
    ),
    hasScope("read:messages")
      ? loadAll(
        (cursor) => {
          const query = { session_key, page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
          return api.GET("/api/messages/outbound", { params: { query }, signal });
        },
        limit,
      )
      : [],
    readFailures(session_key, signal),
  ]);
  return { messages, senders: new Map(replies.map((reply) => [reply.id, reply])), failures };
}

/** Reads the latest failed runs of a conversation, by their ids. Without the scope for it there are none. */
export async function readFailures(
  session_key: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Schemas["Execution"]>> {
  if (!hasScope("read:executions")) return new Map();
  const query = { session_id: session_key, status: "failed", page_size: PAGE_SIZE };
  const failed = await load(api.GET("/api/executions", { params: { query }, signal }));
  return new Map(failed.filter(({ failure }) => failure !== "cancelled").map((one) => [one.id, one]));
}
