import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may, username } from "../../live/session.ts";
import { Choice, TextField } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, RefusalNotice } from "../../parts/notice.tsx";
import { byUse } from "./engines.ts";

/** The first steps on an empty service: an engine, a worker, hello. */
export function StartPage() {
  const engines = useResource("all engines", (signal) => ask(api.GET("/api/engines", { signal })));
  const [name, setName] = useState("Ada");
  const [engine, setEngine] = useState("");
  const [memory, setMemory] = useState("");
  const [, navigate] = useLocation();
  const { refusal, busy, submit } = useSend(async () => {
    const worker = await ask(api.POST("/api/workers", { body: { name, memory, engine } }));
    const session = await ask(
      api.POST("/api/local/sessions", { body: { worker_id: worker.id } }),
    );
    navigate(`/console/chat/${session.id}`);
  });
  if (!may("write:workers")) {
    return (
      <>
        <Heading title="Inbox" />
        <Empty title="There is no worker yet.">
          <p>{username.value} may not make one; an administrator does.</p>
        </Empty>
      </>
    );
  }
  const usable = byUse(engines.data ?? []);
  const models = usable.filter((one) => one !== "echo");
  return (
    <>
      <Heading title="Welcome" />
      <form class="form start scrolled" onSubmit={submit}>
        <p class="lead">
          Make a worker and say hello to it. A worker is an agent with a name, a directory of its own, and an
          engine: the program that thinks. Everything can be changed later.
        </p>
        <RefusalNotice refusal={refusal} />
        <TextField label="Name" name="name" value={name} onInput={setName} refusal={refusal} required />
        <TextField
          label="What should it know and do? (if you like)"
          name="memory"
          rows={3}
          value={memory}
          onInput={setMemory}
          refusal={refusal}
          placeholder="You write our newsletter. Short sentences, no exclamation marks."
        />
        <Choice
          label="Engine"
          value={engine}
          onChange={setEngine}
          options={[
            ["", usable[0] === undefined ? "The service's default" : `The service's default: ${usable[0]}`],
            ...usable.map((one) => [one, one] as const),
          ]}
          hint={engines.data === undefined
            ? "Looking for the engines that are installed here"
            : models.length === 0
            ? "No agent program was found on this machine, so echo stands in: it answers with what you say"
            : `Found here: ${models.join(", ")}. echo answers with what you say, to try things out`}
        />
        <Missing engines={engines.data ?? []} />
        <div class="actions">
          <button type="submit" class="primary" disabled={busy}>
            Make {name.trim() || "the worker"} and say hello
          </button>
        </div>
      </form>
    </>
  );
}

/** What else could think here, and how it comes here. */
function Missing({ engines }: { engines: Schemas["Engine"][] }) {
  const missing = engines.filter(({ usable }) => !usable);
  if (missing.length === 0) return null;
  return (
    <details>
      <summary>Engines that are not here</summary>
      <ul class="missing">
        {missing.map(({ name, detail }) => (
          <li key={name} class="hint">
            <strong>{name}</strong> {detail}
          </li>
        ))}
      </ul>
    </details>
  );
}
