import { ArrowLeft, Settings2 } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName, workers } from "../../live/workers.ts";
import { firstLine } from "../../parts/format.ts";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { attempt } from "../../parts/toast.tsx";
import { Composer, type Sending } from "./composer.tsx";
import { ChatSettings } from "./chat_settings.tsx";
import { MessageView, SendingView } from "./message.tsx";
import { useProgress } from "./progress.ts";
import { ProgressView } from "./progress_view.tsx";
import { newDay, Thread } from "./thread.tsx";

const SHOWN_MAX = 200;
const NAME_MAX_CHARACTERS = 48;
const UNNAMED = "New session";

/** One conversation: what was said, what goes on, and the line to write in. */
export function Conversation({ id }: { id: string }) {
  const key = `local:${id}`;
  const session = useResource(
    id,
    (signal) => ask(api.GET("/api/local/sessions/{id}", { params: { path: { id } }, signal })),
    (event) => event.session_key === key && event.kind.startsWith("chat."),
  ).data;
  const [limit, setLimit] = useState(SHOWN_MAX);
  const history = useResource(
    `${id} ${limit}`,
    (signal) =>
      ask(
        api.GET("/api/local/sessions/{id}/messages", { params: { path: { id }, query: { limit } }, signal }),
      ),
    (event) => event.session_key === key && /^message\.(sent|received)$/.test(event.kind),
  );
  const progress = useProgress(key);
  const questions = useOpenQuestions(key);
  const [sending, setSending] = useState<Sending[]>([]);
  const [settings, setSettings] = useState(false);
  // A conversation that nobody has named is called after its first words.
  function nameIt(content: string): void {
    const name = firstLine(content, NAME_MAX_CHARACTERS);
    if (session?.name !== UNNAMED || history.data?.length !== 0 || name === "") return;
    void attempt(() =>
      ask(api.PUT("/api/local/sessions/{id}", { params: { path: { id } }, body: { name } }))
    );
  }
  const messages = history.data;
  const arrived = new Set(messages?.map((message) => message.id));
  const open = sending.filter((one) => one.messageId === null || !arrived.has(one.messageId));
  const worker = workerName(session?.worker_id ?? "");
  useEffect(() => {
    document.title = `${session?.name ?? "Chat"} · svc`;
  }, [session?.name]);
  if (history.refusal?.status === 404) {
    return (
      <Empty title="This conversation is not here (any more).">
        <Link href="/console/chat">All conversations</Link>
      </Empty>
    );
  }
  return (
    <section class="conversation" aria-label={session?.name ?? "Conversation"}>
      <header class="conversation-head">
        <Link href="/console/chat" class="icon on-phone" aria-label="All conversations">
          <ArrowLeft size={18} aria-hidden="true" />
        </Link>
        <h2>{session?.name ?? "Conversation"}</h2>
        {worker !== "" && <span class="quiet">with {worker}</span>}
        {session !== undefined && may("write:chat") && (
          <button
            type="button"
            class="icon"
            aria-label="Settings of this conversation"
            onClick={() => setSettings(true)}
          >
            <Settings2 size={18} aria-hidden="true" />
          </button>
        )}
      </header>
      {messages === undefined
        ? <Waiting refusal={history.refusal} />
        : (
          <Thread count={messages.length + open.length} busy={progress.state}>
            {messages.length >= limit && (
              <button
                type="button"
                class="earlier"
                onClick={() => setLimit(limit + SHOWN_MAX)}
              >
                Earlier messages
              </button>
            )}
            {messages.length === 0 && open.length === 0 && <Hello worker={worker} />}
            {messages.map((message, index) => (
              <MessageView
                key={message.id}
                message={message}
                sessionId={id}
                day={newDay(messages[index - 1], message)}
                question={questions?.find((one) => one.id === message.question_id)}
              />
            ))}
            {open.map((one) => <SendingView key={one.number} sending={one} />)}
            <ProgressView progress={progress} />
          </Thread>
        )}
      {may("write:chat") && <Composer id={id} setSending={setSending} onSent={nameIt} />}
      {settings && session !== undefined && (
        <ChatSettings
          session={session}
          onClose={() => setSettings(false)}
        />
      )}
    </section>
  );
}

function Hello({ worker }: { worker: string }) {
  const all = workers.value;
  if (all?.length === 0) {
    return (
      <Empty title="There is nobody to talk to yet.">
        <a class="button primary" href="/console/workers/new">Make a worker</a>
      </Empty>
    );
  }
  const names = (all ?? []).slice(0, 3).map(({ name }) => `@${name}`).join(", ");
  return (
    <Empty title={worker === "" ? "Say hello." : `Say hello to ${worker}.`}>
      {worker === "" && names !== "" && (
        <p>Begin with a name, such as {names}, to say who it is for; without one the coordinator decides.</p>
      )}
    </Empty>
  );
}
