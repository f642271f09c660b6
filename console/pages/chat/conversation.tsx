import { ArrowLeft, Settings2 } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName, workers } from "../../live/workers.ts";
import { conversationText, firstLine, isUnnamed } from "../../parts/format.ts";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { attempt } from "../../parts/toast.tsx";
import { Composer, type Sending } from "./composer.tsx";
import { ChatSettings } from "./conversation_form.tsx";
import { MessageView, SendingView } from "./message.tsx";
import { useProgress } from "./progress.ts";
import { ProgressView } from "./progress_view.tsx";
import { newDay, Thread } from "./message_list.tsx";

const SHOWN_MAX = 200;
const NAME_MAX_CHARACTERS = 48;

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
    if (!isUnnamed(session?.name) || history.data?.length !== 0 || name === "") return;
    void attempt(() =>
      ask(api.PUT("/api/local/sessions/{id}", { params: { path: { id } }, body: { name } }))
    );
  }
  const messages = history.data;
  const arrived = new Set(messages?.map((message) => message.id));
  const open = sending.filter((one) => one.messageId === null || !arrived.has(one.messageId));
  const worker = workerName(session?.worker_id ?? "");
  const name = conversationText(session?.name ?? "");
  useEffect(() => {
    document.title = `${name === "" ? "Chat" : name} · svc`;
  }, [name]);
  if (history.refusal?.status === 404) {
    return (
      <Empty title="This conversation is not here (any more).">
        <Link href="/console/chat">All conversations</Link>
      </Empty>
    );
  }
  return (
    <section class="conversation" aria-label={name || "Conversation"}>
      <header class="conversation-head">
        <Link href="/console/chat" class="icon on-phone" aria-label="All conversations">
          <ArrowLeft size={18} aria-hidden="true" />
        </Link>
        <h2>{name || "Conversation"}</h2>
        {worker !== "" && (
          <span class="quiet with">
            with <Link href={`/console/workers/${session?.worker_id}`}>{worker}</Link>
          </span>
        )}
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
            {messages.length === 0 && open.length === 0 && (
              <Hello worker={worker} id={session?.worker_id ?? ""} />
            )}
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
            <ProgressView progress={progress} addressee={worker} />
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

function Hello({ worker, id }: { worker: string; id: string }) {
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
      {id !== "" && <Parrot id={id} name={worker} />}
    </Empty>
  );
}

/** Says that a worker only repeats, before somebody wonders about its answers. */
function Parrot({ id, name }: { id: string; name: string }) {
  const status = useResource(
    `engine of ${id}`,
    (signal) => ask(api.GET("/api/workers/{id}/status", { params: { path: { id } }, signal })),
  ).data;
  if (status?.engine !== "echo") return null;
  return (
    <p>
      Its engine is echo, which answers with what you say.{" "}
      <Link href={`/console/workers/${id}/edit`}>Give {name} another one</Link>
    </p>
  );
}
