import { Settings2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, load } from "../../live/api.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useGet, useResource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName, workers } from "../../live/workers.ts";
import { IconButton, LinkButton } from "../../parts/button.tsx";
import { formatConversationName, isUnnamed, takeFirstLine } from "../../parts/format.ts";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { attempt } from "../../parts/toast.tsx";
import { BudgetNotice } from "../workers/budget_notice.tsx";
import { ChangesLink } from "./changes_link.tsx";
import { Composer } from "./composer.tsx";
import { ConversationForm } from "./conversation_form.tsx";
import { ConversationHead } from "./conversation_head.tsx";
import { type OutgoingMessage, OutgoingMessageView } from "./message.tsx";
import { readHistory } from "./history.ts";
import { MessageList } from "./message_list.tsx";
import { ProgressView, useProgress } from "./progress.tsx";

const MESSAGES_READ = 200;
const NAME_MAX_CHARACTERS = 48;

/** A conversation of this console: its messages, the progress of its work, and the composer. */
export function LocalConversation({ id }: { id: string }) {
  const key = `local:${id}`;
  const path = { id };
  const session = useGet(
    "/api/local/sessions/{id}",
    { path },
    (event) => event.session_key === key && event.kind.startsWith("chat."),
  ).data;
  const [limit, setLimit] = useState(MESSAGES_READ);
  const history = useResource(
    `${id} ${limit}`,
    (signal) => readHistory(id, limit, signal),
    (event) => event.session_key === key && /^message\.(sent|received)$/.test(event.kind),
  );
  const progress = useProgress(key);
  const questions = useOpenQuestions(key);
  const [outgoing, setOutgoing] = useState<OutgoingMessage[]>([]);
  const [editing, setEditing] = useState(false);
  // A conversation without a name gets the first words as its name.
  function nameAfter(content: string): void {
    const name = takeFirstLine(content, NAME_MAX_CHARACTERS);
    if (!isUnnamed(session?.name) || history.data?.messages.length !== 0 || name === "") return;
    void attempt(() => load(api.PUT("/api/local/sessions/{id}", { params: { path }, body: { name } })));
  }
  const messages = history.data?.messages;
  const arrived = new Set(messages?.map((message) => message.id));
  const open = outgoing.filter((one) => one.messageId === null || !arrived.has(one.messageId));
  const workerId = session?.worker_id ?? "";
  const worker = findWorkerName(workerId);
  const name = formatConversationName(session?.name ?? "");
  if (history.error?.status === 404) {
    return (
      <Empty title="Conversation not found.">
        <Link href="/console/chat">All conversations</Link>
      </Empty>
    );
  }
  return (
    <section class="conversation" aria-label={name || "Conversation"}>
      <ConversationHead name={name}>
        {worker !== "" && (
          <span class="quiet">
            with <Link href={`/console/workers/${workerId}`}>{worker}</Link>
          </span>
        )}
        {hasScope("read:executions") && <ChangesLink sessionKey={key} />}
        {session !== undefined && hasScope("write:chat") && (
          <IconButton
            icon={Settings2}
            size={18}
            label="Conversation settings"
            onClick={() => setEditing(true)}
          />
        )}
      </ConversationHead>
      {messages === undefined ? <LoadState error={history.error} /> : (
        <MessageList
          messages={messages}
          senders={history.data?.senders}
          failures={history.data?.failures}
          sessionId={id}
          questions={questions}
          end={`${open.length} ${progress.state}`}
          before={messages.length >= limit && (
            <button
              type="button"
              class="earlier"
              onClick={() => setLimit(limit + MESSAGES_READ)}
            >
              Load earlier messages
            </button>
          )}
        >
          {messages.length === 0 && open.length === 0 && <Welcome worker={worker} id={workerId} />}
          {open.map((one) => <OutgoingMessageView key={one.number} message={one} />)}
          <ProgressView progress={progress} addressee={worker} />
        </MessageList>
      )}
      {hasScope("write:chat") && (
        <Composer
          id={id}
          executionId={progress.executionId}
          setOutgoing={setOutgoing}
          onSent={nameAfter}
        />
      )}
      {editing && session !== undefined && (
        <ConversationForm
          session={session}
          onClose={() => setEditing(false)}
        />
      )}
    </section>
  );
}

function Welcome({ worker, id }: { worker: string; id: string }) {
  const all = workers.value;
  if (all?.length === 0) {
    return (
      <Empty title="No workers yet.">
        <LinkButton href="/console/workers/new" class="primary">Create worker</LinkButton>
      </Empty>
    );
  }
  const names = (all ?? []).slice(0, 3).map(({ name }) => `@${name}`).join(", ");
  return (
    <Empty title={worker === "" ? "Say hello." : `Say hello to ${worker}.`}>
      {worker === "" && names !== "" && (
        <p>Start with a mention such as {names} to choose a worker. Otherwise the coordinator chooses.</p>
      )}
      <BudgetNotice target={id === "" ? "global" : `global,worker:${id}`} />
      {id !== "" && <EchoHint id={id} name={worker} />}
    </Empty>
  );
}

function EchoHint({ id, name }: { id: string; name: string }) {
  const status = useGet("/api/workers/{id}/status", { path: { id } }).data;
  if (status?.engine !== "echo") return null;
  return (
    <p>
      The echo engine repeats your message.{" "}
      <Link href={`/console/workers/${id}/edit`}>Choose another engine for {name}</Link>
    </p>
  );
}
