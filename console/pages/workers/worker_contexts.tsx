import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, askPage, type Schemas, type Worker } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";

type Context = Schemas["SessionContext"];

const RUNS_READ = 50;
const CONVERSATIONS_MAX = 10;
const CONTEXTS_READ = 100;

/** What a worker has in mind: its contexts in the conversations that it ran in last, and what everybody is told. */
export function Remembered({ worker }: { worker: Worker }) {
  const [open, setOpen] = useState(false);
  return (
    <section>
      <h2>What it remembers</h2>
      <p>
        Before each run it reads <Link href="/console/memory">the memory</Link>{" "}
        of everywhere and of the conversation.
      </p>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Conversations that it goes on with</summary>
        {open && <Contexts worker={worker} />}
      </details>
    </section>
  );
}

function Contexts({ worker }: { worker: Worker }) {
  const read = useResource(
    worker.id,
    (signal) => contextsOf(worker.id, signal),
    ({ kind, worker_id }) => worker_id === worker.id || kind === "session.cleared",
  );
  if (read.data === undefined) return <Waiting refusal={read.refusal} />;
  if (read.data.length === 0) return <p class="quiet">None: it begins anew in each.</p>;
  return (
    <ul class="list">
      {read.data.map((context) => (
        <ContextRow key={context.session_key} context={context} reload={read.reload} />
      ))}
    </ul>
  );
}

function ContextRow({ context, reload }: { context: Context; reload: () => void }) {
  const { session_key, worker_id, worker_name, engine, updated_at } = context;
  async function forget(): Promise<void> {
    const yes = await confirmed({
      title: "Let it forget this conversation?",
      text:
        `What ${worker_name} has in mind of it is lost; it begins anew with the next message. What was said stays.`,
      action: "Forget it",
    });
    if (!yes) return;
    const params = { path: { worker_id }, query: { session_key } };
    await attempt(() => ask(api.DELETE("/api/contexts/{worker_id}", { params })), "Forgotten");
    reload();
  }
  return (
    <li class="row">
      <span class="row-main">
        <span class="row-title">
          <ConversationLink sessionKey={session_key} />
        </span>
        <span class="row-note">{engine}</span>
      </span>
      <span class="row-side">
        <Ago at={updated_at} />
      </span>
      {may("write:sessions") && <Act class="small" run={() => forget()}>Forget</Act>}
    </li>
  );
}

// Contexts are listed by conversation; those of its latest runs are the ones that anybody looks for.
async function contextsOf(id: string, signal: AbortSignal): Promise<Context[]> {
  const runs = await askPage(
    api.GET("/api/workers/{id}/executions", {
      params: { path: { id }, query: { page_size: RUNS_READ } },
      signal,
    }),
  );
  const keys = [...new Set(runs.items.map(({ session_key }) => session_key))].slice(0, CONVERSATIONS_MAX);
  const found = await Promise.all(keys.map(async (session_key) => {
    const query = { session_key, page_size: CONTEXTS_READ };
    return (await askPage(api.GET("/api/contexts", { params: { query }, signal }))).items;
  }));
  return found.flat().filter(({ worker_id }) => worker_id === id);
}
