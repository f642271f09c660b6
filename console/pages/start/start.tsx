import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may, username } from "../../live/session.ts";
import { Choice, TextField } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { Heading } from "../../parts/heading.tsx";
import { Empty, RefusalNotice } from "../../parts/notice.tsx";
import { usableEngines } from "../workers/engines.ts";

/** The first steps on an empty service: an engine, a worker, hello. */
export function StartPage() {
  const engines = useResource("engines", usableEngines);
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
  const models = (engines.data ?? []).filter((one) => one !== "echo");
  return (
    <>
      <Heading title="Welcome" />
      <form class="form start scrolled" onSubmit={submit}>
        <p class="lead">
          Make a worker and say hello to it. It takes a minute, and everything can be changed later.
        </p>
        <RefusalNotice refusal={refusal} />
        <Choice
          label="Engine"
          value={engine}
          onChange={setEngine}
          options={[["", "The service's default"], ...(engines.data ?? []).map((one) => [one, one] as const)]}
          hint={engines.data === undefined
            ? "Looking for the engines that are installed here"
            : models.length === 0
            ? "No agent program was found on this machine, so echo stands in: it answers with what you say. Install one (claude, codex, gemini …), and choose it here later."
            : `Found here: ${models.join(", ")}. echo answers with what you say, to try things out.`}
        />
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
        <div class="actions">
          <button type="submit" class="primary" disabled={busy}>
            Make {name.trim() || "the worker"} and say hello
          </button>
        </div>
      </form>
    </>
  );
}
