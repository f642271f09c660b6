import { useLocation } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope, username } from "../../live/session.ts";
import { Fields, Form, useForm } from "../../parts/form.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listUsable } from "./engines.ts";

/** The first steps on an empty service: create a worker and say hello. */
export function WelcomePage() {
  const engines = useGet("/api/engines", {});
  const [, navigate] = useLocation();
  const form = useForm({
    initial: { name: "Ada", memory: "", engine: "" },
    async send(body) {
      const worker = await load(api.POST("/api/workers", { body }));
      const session = await load(api.POST("/api/local/sessions", { body: { worker_id: worker.id } }));
      navigate(`/console/chat/${session.id}`);
    },
  });
  if (!hasScope("write:workers")) {
    return (
      <>
        <Heading title="Inbox" />
        <Empty title="No workers yet.">
          <p>Ask an administrator to create one. {username.value} does not have permission.</p>
        </Empty>
      </>
    );
  }
  const usable = listUsable(engines.data ?? []);
  return (
    <>
      <Heading title="Welcome" />
      <Form form={form} action={`Create ${form.values.name.trim() || "worker"} and say hello`} page>
        <p class="lead">
          Create a worker and say hello to it. A worker is an agent with a name, its own directory, and an
          engine: the program that runs the model. You can change everything later.
        </p>
        <Fields
          form={form}
          fields={[
            { name: "name", label: "Name", required: true },
            {
              name: "memory",
              label: "Instructions (optional)",
              rows: 3,
              placeholder: "You write our newsletter. Short sentences, no exclamation marks.",
            },
            {
              name: "engine",
              label: "Engine",
              options: [
                ["", usable[0] === undefined ? "Default" : `Default: ${usable[0]}`],
                ...usable.map((one) => [one, one] as const),
              ],
              hint: explainEngines(engines.data),
            },
          ]}
        />
        <MissingEngines engines={engines.data ?? []} />
      </Form>
    </>
  );
}

function explainEngines(engines: Schemas["Engine"][] | undefined): string {
  if (engines === undefined) return "Looking for installed engines";
  const found = listUsable(engines).filter((one) => one !== "echo");
  return found.length === 0
    ? "No agent program is installed, so the echo engine is used. It repeats your message"
    : `Installed: ${found.join(", ")}. The echo engine repeats your message, for a first test`;
}

function MissingEngines({ engines }: { engines: Schemas["Engine"][] }) {
  const missing = engines.filter(({ usable }) => !usable);
  if (missing.length === 0) return null;
  return (
    <details>
      <summary>Engines that are not installed</summary>
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
