import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, buildQuery, load, loadPage, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";

type Context = Schemas["SessionContext"] & { id: string };

const RUNS_READ = 50;
const CONVERSATIONS_MAX = 10;

export function WorkerContexts({ workerId }: { workerId: string }) {
  const [open, setOpen] = useState(false);
  return (
    <Section title="Memory">
      <p>
        Before each run the worker reads <Link href="/console/memory">the memory</Link>{" "}
        of all conversations and of the current one.
      </p>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Conversation contexts</summary>
        {open && <Contexts workerId={workerId} />}
      </details>
    </Section>
  );
}

function Contexts({ workerId }: { workerId: string }) {
  const list = useResource(
    workerId,
    (signal) => readContexts(workerId, signal),
    ({ kind, worker_id }) => worker_id === workerId || kind === "session.cleared",
  );
  return (
    <ShortListing
      list={list}
      empty="No stored contexts. Each conversation starts fresh."
      row={(context) => <ContextRow context={context} reload={list.reload} />}
    />
  );
}

function ContextRow({ context, reload }: { context: Context; reload: () => void }) {
  const { session_key, worker_id, worker_name, engine, updated_at } = context;
  const params = { path: { worker_id }, query: { session_key } };
  return (
    <Row
      title={<ConversationLink sessionKey={session_key} />}
      notes={[engine]}
      side={<Ago at={updated_at} />}
    >
      <Button
        scope="write:sessions"
        class="small"
        confirm={{
          title: "Forget this conversation?",
          text: `${worker_name} loses its context and starts fresh with the next message. Messages are kept.`,
          action: "Forget context",
        }}
        press={() => load(api.DELETE("/api/contexts/{worker_id}", { params }))}
        done="Forgotten"
        after={reload}
      >
        Forget
      </Button>
    </Row>
  );
}

// The API lists contexts by conversation, so this reads the conversations of the worker's recent runs.
async function readContexts(id: string, signal: AbortSignal): Promise<Context[]> {
  const params = { path: { id }, query: { page_size: RUNS_READ } };
  const runs = await loadPage(api.GET("/api/workers/{id}/executions", { params, signal }));
  const keys = [...new Set(runs.items.map(({ session_key }) => session_key))].slice(0, CONVERSATIONS_MAX);
  const found = await Promise.all(keys.map(async (session_key) => {
    const query = { ...buildQuery({}), session_key };
    return (await loadPage(api.GET("/api/contexts", { params: { query }, signal }))).items;
  }));
  return found.flat().filter(({ worker_id }) => worker_id === id)
    .map((context) => ({ ...context, id: context.session_key }));
}
