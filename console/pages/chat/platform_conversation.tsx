import { ArrowLeft } from "lucide-preact";
import { useEffect } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, askPage, type ChatMessage } from "../../live/api.ts";
import { useConversationName } from "../../live/conversations.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { MessageView } from "./message.tsx";
import { newDay, Thread } from "./message_list.tsx";

const SHOWN = 100;

/** A conversation of another platform: what was said there, to be read and not to be written in. */
export function Elsewhere({ sessionKey }: { sessionKey: string }) {
  const said = useResource(
    sessionKey,
    (signal) => latest(sessionKey, signal),
    ({ kind, session_key }) => session_key === sessionKey && /^message\.(sent|received)$/.test(kind),
  );
  const questions = useOpenQuestions(sessionKey);
  const name = useConversationName(sessionKey) || sessionKey;
  useEffect(() => {
    document.title = `${name} · svc`;
  }, [name]);
  const messages = said.data;
  return (
    <section class="conversation" aria-label={name}>
      <header class="conversation-head">
        <Link href="/console/chat" class="icon on-phone" aria-label="All conversations">
          <ArrowLeft size={18} aria-hidden="true" />
        </Link>
        <h2>{name}</h2>
      </header>
      {messages === undefined
        ? <Waiting refusal={said.refusal} />
        : messages.length === 0
        ? <Empty title="Nothing was said here, or it was removed with age." />
        : (
          <Thread count={messages.length} busy="">
            {messages.map((message, index) => (
              <MessageView
                key={message.id}
                message={message}
                sessionId=""
                day={newDay(messages[index - 1], message)}
                question={questions?.find((one) => one.id === message.question_id)}
              />
            ))}
          </Thread>
        )}
      <p class="composer-note quiet">
        This conversation is on another platform. Write there to go on with it.
      </p>
    </section>
  );
}

// The latest of both directions, oldest first; ids are in the order of time.
async function latest(session_key: string, signal: AbortSignal): Promise<ChatMessage[]> {
  const params = { query: { session_key, page_size: SHOWN } };
  const [inbound, outbound] = await Promise.all([
    askPage(api.GET("/api/messages/inbound", { params, signal })),
    askPage(api.GET("/api/messages/outbound", { params, signal })),
  ]);
  const said: ChatMessage[] = [
    ...inbound.items.map(({ id, content, received_at }) => ({
      id,
      role: "user" as const,
      content,
      ts: received_at,
      media: null,
      reply_to: null,
      question_id: null,
    })),
    ...outbound.items.map(({ id, content, created_at, message_id, question_id }) => ({
      id,
      role: "bee" as const,
      content,
      ts: created_at,
      media: null,
      reply_to: message_id,
      question_id: question_id || null,
    })),
  ];
  return said.toSorted((a, b) => a.id < b.id ? -1 : 1).slice(-SHOWN);
}
