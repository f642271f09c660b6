import { api, buildQuery, loadPage, type Schemas } from "../../live/api.ts";
import { useConversationName } from "../../live/conversations.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { ChangesLink } from "./changes_link.tsx";
import { ConversationHead } from "./conversation_head.tsx";
import { type History, readFailures } from "./history.ts";
import { MessageList } from "./message_list.tsx";

type Message = Schemas["LocalMessage"];

const MESSAGES_SHOWN = 100;

export function PlatformConversation({ sessionKey }: { sessionKey: string }) {
  const read = useResource(
    sessionKey,
    (signal) => readLatest(sessionKey, signal),
    ({ kind, session_key }) => session_key === sessionKey && /^message\.(sent|received)$/.test(kind),
  );
  const questions = useOpenQuestions(sessionKey);
  const name = useConversationName(sessionKey) || sessionKey;
  return (
    <section class="conversation" aria-label={name}>
      <ConversationHead name={name}>
        {hasScope("read:executions") && <ChangesLink sessionKey={sessionKey} />}
      </ConversationHead>
      {read.data === undefined
        ? <LoadState error={read.error} />
        : read.data.messages.length === 0
        ? <Empty title="No messages are left in this conversation." />
        : <MessageList {...read.data} sessionId="" questions={questions} />}
      <p class="composer-note quiet">{describePlace(sessionKey)}</p>
    </section>
  );
}

// Tasks of the command line and of the API have conversations without a platform.
function describePlace(sessionKey: string): string {
  const [platform = ""] = sessionKey.split(":");
  if (platform === "cli") return "This conversation belongs to tasks of the command line or the API.";
  return `This conversation is on ${platform}. Reply there.`;
}

// Returns the latest messages of both directions, oldest first. Ids are in the order of time.
async function readLatest(session_key: string, signal: AbortSignal): Promise<History> {
  const params = { query: buildQuery({ session_key }) };
  const [inbound, outbound, failures] = await Promise.all([
    loadPage(api.GET("/api/messages/inbound", { params, signal })),
    loadPage(api.GET("/api/messages/outbound", { params, signal })),
    readFailures(session_key, signal),
  ]);
  const messages: Message[] = [
    ...inbound.items.map(({ id, content, received_at: ts }) => ({
      ...{ id, content, ts, role: "user" as const },
      ...{ media: null, reply_to: null, question_id: null },
    })),
    ...outbound.items.map(({ id, content, created_at: ts, message_id: reply_to, question_id }) => ({
      ...{ id, content, ts, role: "bee" as const },
      ...{ media: null, reply_to, question_id: question_id || null },
    })),
  ];
  return {
    messages: messages.toSorted((a, b) => a.id < b.id ? -1 : 1).slice(-MESSAGES_SHOWN),
    senders: new Map(outbound.items.map((reply) => [reply.id, reply])),
    failures,
  };
}
